"""How pages show what is asked for: charts, tables of metrics, tables of plans."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd
import plotly.io
import streamlit as st

from planner import charts
from planner.drawing import Drawing
from planner.report import ARROWS, number, unit_of, which_best

if TYPE_CHECKING:
    from planner_dashboard.work import Answer


def chart(figure: Any, key: str) -> None:
    """A plotly figure, or its JSON, in the colours of the page."""
    made = plotly.io.from_json(figure) if isinstance(figure, str) else figure
    made.update_layout(font_color=None)
    st.plotly_chart(made, key=key, theme="streamlit")


def drawings(given: Sequence[Drawing], key: str) -> None:
    """The charts of drawings."""
    for place, drawing in enumerate(given):
        chart(charts.chart(drawing), f"{key} {place}")


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
        rows[f"share of the best {answer.reference} possible ↑"] = {
            label: "-" if share is None else f"{share:.1%}" for label, share in answer.shares.items()
        }
    frame = pd.DataFrame.from_dict(rows, orient="index")
    bold = frame.copy()
    for row in frame.index:
        for column in frame.columns:
            bold.loc[row, column] = "font-weight: 700" if best.get((str(row), str(column))) else ""
    st.dataframe(frame.style.apply(lambda _frame: bold, axis=None), height="content")
    st.caption(ARROWS + ("; in brackets: the change since the plan before" if before is not None else ""))


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
