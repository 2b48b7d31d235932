"""Stored runs: filter, pivot, draw, and go down to one run and its plan. A sweep may be writing."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal

import pandas as pd
import streamlit as st
from plotly import graph_objects as go

from planner.charts import COLOURS
from planner.errors import PlannerError
from planner.store import Store
from planner_dashboard import session, show

MOST_ROWS: Final = 1_000
"""Of runs in the table; charts take all that the filter holds for."""
MOST_POINTS: Final = 100_000
MOST_PLAN_ROWS: Final = 2_000
NOTHING: Final = "none"


def page() -> None:
    """The page, from top to bottom."""
    st.title("Sweeps")
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
    lines, points, spread, runs = st.tabs(["Lines", "Trade-off", "Distribution", "Runs"])
    metrics, settings = store.metric_names(), store.setting_names()
    with lines:
        _lines(store, where, metrics, settings)
    with points:
        _points(store, where, metrics)
    with spread:
        _spread(store, where, metrics)
    with runs:
        _runs(store, where, total)


def _lines(store: Store, where: str | None, metrics: list[str], settings: list[str]) -> None:
    columns = st.columns(4)
    value = columns[0].selectbox("figure", metrics, key="lines figure")
    across = columns[1].selectbox("by", [*settings, "design", "system", "label"], key="lines by")
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
    figure.update_layout(xaxis_title=across, yaxis_title=value, height=440)
    show.chart(figure, "lines")
    st.dataframe(frame)


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
                text=rows["digest"].str[:12],
                marker={"size": 6, "color": COLOURS[place % len(COLOURS)]},
            )
        )
    figure.update_layout(xaxis_title=across, yaxis_title=up, height=520)
    show.chart(figure, "points")
    if len(frame) == MOST_POINTS:
        st.caption(f"the first {MOST_POINTS:,} runs; a filter chooses others")


def _spread(store: Store, where: str | None, metrics: list[str]) -> None:
    value = st.selectbox("figure", metrics, key="spread figure")
    frame = store.runs(where, columns=["label", value], limit=MOST_POINTS).dropna()
    figure = go.Figure()
    for place, (label, rows) in enumerate(frame.groupby("label", sort=False)):
        figure.add_trace(go.Box(x=rows[value], name=str(label), marker_color=COLOURS[place % len(COLOURS)]))
    figure.update_layout(
        xaxis_title=value, showlegend=False, height=120 + 50 * max(2, frame["label"].nunique())
    )
    show.chart(figure, "spread")


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
