"""How pages show what is asked for: charts, tables of metrics, tables of plans."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import pandas as pd
import streamlit as st

from planner.report import ARROWS, number, unit_of, which_best

if TYPE_CHECKING:
    from plotly import graph_objects as go

    from planner_dashboard.work import Answer


CONFIG: Final[dict[str, Any]] = {"displaylogo": False}


def chart(figure: go.Figure | str, key: str, *, on_select: bool = False) -> Any:
    """A plotly figure, or its JSON, in the colours of the page; what is chosen in it, where it can be."""
    made = _read(figure) if isinstance(figure, str) else figure
    made.layout.font.color = None
    if on_select:
        return st.plotly_chart(
            made, key=key, theme="streamlit", config=CONFIG, on_select="rerun", selection_mode="points"
        )
    return st.plotly_chart(made, key=key, theme="streamlit", config=CONFIG)


def charts(given: Sequence[str], key: str) -> None:
    """Charts below each other."""
    for place, figure in enumerate(given):
        chart(figure, f"{key} {place}")


@lru_cache(maxsize=32)
def _read(figure: str) -> go.Figure:
    """A chart is sent with every change of its page, and read once."""
    import plotly.io  # not before there is a chart: it takes as long as the forms

    return plotly.io.from_json(figure)


def metrics(answer: Answer, before: Answer | None) -> None:
    """Metrics side by side, with the change since the answer before."""
    earlier = {} if before is None else {design.label: design for design in before.designs}
    rows: dict[str, dict[str, str]] = {}
    best: dict[tuple[str, str], bool] = {}
    for name, key in (("status", "status"), ("gap", "gap"), ("seconds", "seconds")):
        rows[name] = {
            design.label: str(getattr(design, key)) if key == "status" else number(getattr(design, key))
            for design in answer.designs
        }
    rows["limits broken ↓"] = {design.label: str(design.broken) for design in answer.designs}
    for metric in answer.metrics:
        values = {design.label: design.metrics.get(metric.name) for design in answer.designs}
        known = [value for value in values.values() if value is not None]
        if not known:
            continue
        name = f"{metric.name} {unit_of(metric)}"
        tops = which_best(metric, list(values.values()), known)
        best |= {(name, label): is_best for label, is_best in zip(values, tops, strict=True)}
        rows[name] = {}
        for label, value in values.items():
            was = earlier[label].metrics.get(metric.name) if label in earlier else None
            rows[name][label] = number(value) + _change(value, was)
    if answer.reference is not None:
        rows["share of bound ↑"] = {
            label: "-" if share is None else f"{share:.1%}" for label, share in answer.shares.items()
        }
    frame = pd.DataFrame.from_dict(rows, orient="index")
    weights = [
        ["font-weight: 700" if best.get((str(row), str(column))) else "" for column in frame]
        for row in frame.index
    ]
    bold = pd.DataFrame(weights, index=frame.index, columns=frame.columns)
    st.dataframe(frame.style.apply(lambda _frame: bold, axis=None), height="content")
    told = [ARROWS]
    if answer.reference is not None:
        told.append(f"share of bound: of the best {answer.reference} that is possible")
    if before is not None:
        told.append("in brackets: the change since the plan before")
    st.caption("; ".join(told))


def _change(value: float | None, was: float | None) -> str:
    if value is None or was is None or _same(value, was):
        return ""
    return f" ({'+' if value > was else '−'}{number(abs(value - was))})"


def _same(one: float | None, other: float) -> bool:
    return one is not None and math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)


def tables(given: Mapping[str, tuple[pd.DataFrame, int]], nothing: str) -> None:
    """The first rows of tables."""
    if not any(count for _, count in given.values()):
        st.caption(nothing)
    for name, (frame, count) in given.items():
        if count:
            cut = (
                f", the first {len(frame):,} of {count:,} rows" if len(frame) < count else f", {count:,} rows"
            )
            st.caption(name + cut)
            st.dataframe(frame, hide_index=True)
