"""Stored runs: filter, pivot, draw, and go down to one run and its plan. A sweep may be writing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final, Literal

import pandas as pd
import streamlit as st
from plotly import graph_objects as go

from planner.chart_style import COLOURS
from planner.errors import PlannerError
from planner.store import Store
from planner_dashboard import session, show

MOST_ROWS: Final = 1_000
"""Of runs in the table; charts take all that the filter holds for."""
MOST_POINTS: Final = 100_000
NAMED: Final = 20_000
"""Points that tell their runs; for more, names alone would take seconds."""
MOST_PLAN_ROWS: Final = 2_000
NOTHING: Final = "none"
LAYOUT: Final = {
    "margin": {"l": 10, "r": 10, "t": 20, "b": 10},
    "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom"},
}


def page() -> None:
    """The page below its title."""
    stores = session.stores()
    if not stores:
        st.info(
            "No store is open. Start with `planner dashboard --store FOLDER`, where FOLDER is what "
            "`planner sweep ... --out FOLDER` writes, also while it writes."
        )
        return
    path = st.selectbox("store", stores, format_func=lambda one: one.name)
    st.session_state.setdefault("where", st.query_params.get("where", ""))
    where = st.text_input(
        "filter",
        key="where",
        placeholder="system = traffic and problem.scale >= 2",
        help="names, = != < <= > >=, like, in, is none, and, or, not",
    )
    st.query_params["where"] = where
    try:
        with Store(path) as store:
            _shown(store, where or None)
    except PlannerError as error:
        session.said(error)


def _shown(store: Store, where: str | None) -> None:
    total = store.count(where)
    left, right = st.columns([4, 1], vertical_alignment="center")
    left.caption(f"{total:,} of {len(store):,} runs")
    if right.button("Read again", help="a sweep may have written more"):
        st.rerun()
    if not total:
        st.info("No run fits the filter.")
        return
    metrics, settings = store.metric_names(), store.setting_names()
    views: dict[str, Callable[[], None]] = {
        "Lines": lambda: _lines(store, where, metrics, settings),
        "Trade-off": lambda: _points(store, where, metrics),
        "Distribution": lambda: _spread(store, where, metrics),
        "Runs": lambda: _runs(store, where, total),
    }
    for tab, shown in zip(
        st.tabs(list(views), key="sweeps view", on_change="rerun"), views.values(), strict=True
    ):
        if tab.open:  # only that one is read and drawn
            with tab:
                shown()


def _lines(store: Store, where: str | None, metrics: list[str], settings: list[str]) -> None:
    columns = st.columns(4)
    value = columns[0].selectbox("figure", metrics, key="lines figure")
    moved = _moved(store, where, settings)
    across = columns[1].selectbox(
        "by", [*moved, *(name for name in settings if name not in moved), "design", "system", "label"],
        key="lines by",
    )  # fmt: skip
    series = columns[2].selectbox(
        "lines", ["design", "label", "system", *settings, NOTHING], key="lines series"
    )
    how: Literal["mean", "min", "max"] = columns[3].selectbox(
        "of runs alike", ["mean", "min", "max"], key="lines how"
    )
    apart = None if series in (NOTHING, across) else series
    frame = store.chart(value, by=across, series=apart, where=where, how=how)
    figure = go.Figure()
    numbers = pd.to_numeric(pd.Series(frame.index), errors="coerce").notna().all()
    for place, name in enumerate(frame):
        colour = COLOURS[place % len(COLOURS)]
        x, y = frame.index, frame[name]
        if numbers:
            figure.add_trace(go.Scatter(x=x, y=y, name=str(name), mode="lines+markers", line_color=colour))
        else:
            figure.add_trace(go.Bar(x=x.astype(str), y=y, name=str(name), marker_color=colour))
    figure.update_layout(xaxis_title=across, yaxis_title=value, height=440, **LAYOUT)
    show.chart(figure, "lines")
    st.dataframe(frame)


def _moved(store: Store, where: str | None, settings: list[str]) -> list[str]:
    """The settings in which the runs differ: what a sweep moved. Numbers come first."""
    frame = store.runs(where, columns=settings, limit=MOST_ROWS)
    moved = [name for name in settings if len(frame[name].unique()) > 1]
    return sorted(moved, key=lambda name: not pd.api.types.is_numeric_dtype(frame[name].infer_objects()))


def _points(store: Store, where: str | None, metrics: list[str]) -> None:
    columns = st.columns(2)
    across = columns[0].selectbox("across", metrics, key="points across")
    up = columns[1].selectbox("up", metrics, index=min(1, len(metrics) - 1), key="points up")
    if across == up:
        st.info("Choose two figures.")
        return
    frame = store.runs(where, columns=["digest", "label", across, up], limit=MOST_POINTS).dropna()
    figure = go.Figure()
    for place, (label, rows) in enumerate(frame.groupby("label", sort=False)):
        figure.add_trace(
            # drawn by the graphics processor: a hundred thousand points stay responsive
            go.Scattergl(
                x=rows[across],
                y=rows[up],
                name=str(label),
                mode="markers",
                text=rows["digest"].str[:12] if len(frame) <= NAMED else None,
                marker={"size": 6, "color": COLOURS[place % len(COLOURS)]},
            )
        )
    figure.update_layout(xaxis_title=across, yaxis_title=up, height=520, **LAYOUT)
    show.chart(figure, "points")
    st.caption(f"{len(frame):,} runs" + _cut(frame))


def _spread(store: Store, where: str | None, metrics: list[str]) -> None:
    value = st.selectbox("figure", metrics, key="spread figure")
    frame = store.runs(where, columns=["label", value], limit=MOST_POINTS).dropna()
    figure = go.Figure()
    for place, (label, rows) in enumerate(frame.groupby("label", sort=False)):
        # five figures of each, however many runs there are
        least, low, middle, high, most = rows[value].astype(float).quantile([0, 0.25, 0.5, 0.75, 1])
        figure.add_trace(
            go.Box(
                y=[str(label)], lowerfence=[least], q1=[low], median=[middle], q3=[high], upperfence=[most],
                orientation="h", marker_color=COLOURS[place % len(COLOURS)],
            )
        )  # fmt: skip
    figure.update_layout(
        xaxis_title=value,
        showlegend=False,
        height=120 + 50 * max(2, frame["label"].nunique()),
        **LAYOUT,
    )
    show.chart(figure, "spread")
    st.caption("least, quartiles and most" + _cut(frame))


def _cut(frame: pd.DataFrame) -> str:
    return (
        f"; of the first {MOST_POINTS:,} runs: a filter chooses others" if len(frame) == MOST_POINTS else ""
    )


def _runs(store: Store, where: str | None, total: int) -> None:
    frame = store.runs(where, limit=MOST_ROWS)
    if total > len(frame):
        st.caption(f"the first {len(frame):,}")
    chosen = st.dataframe(
        frame, hide_index=True, on_select="rerun", selection_mode="single-row", key="runs table"
    )
    rows = chosen["selection"]["rows"]
    if not rows:
        st.caption("choose a run to see what it was asked, what it says, and its plan")
        return
    run = frame.iloc[rows[0]]
    st.subheader(f"{run['label']} on {run['scenario']}")
    for kind, text in store.messages(run["digest"]):
        st.markdown(f"- {kind}: " + session.plain(text))
    with st.expander("what it was asked"):
        st.json(store.request(run["digest"]))
    plan = run.get("plan")
    if not isinstance(plan, str) or not plan:
        st.caption("no plan is kept")
        return
    folder: Path = store.plan_folder(plan)
    st.caption(f"the plan, in {folder.name}")
    tables = {name: (table.head(MOST_PLAN_ROWS), len(table)) for name, table in store.plan(plan).items()}
    show.tables(tables, "the plan is empty")
