"""Stored runs: filters, charts, and single runs with their plans. A sweep may still write the store."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Literal

import pandas as pd
import streamlit as st
from plotly import graph_objects as go

from planner.contract.system import System
from planner.errors import PlannerError
from planner.formatting import amount_or_number, counted, counted_of, is_share, number, sizes, title_of
from planner.reports.colours import COLOURS
from planner.scenarios.catalogue import find_system, system_names
from planner.store.record import column_of
from planner.store.store import Store
from planner_dashboard import rendering, session, worker
from planner_dashboard.fields import field_label
from planner_dashboard.share import panel

MAX_ROWS: Final = 1_000
"""Runs in the table; charts use all runs of the filter."""
MAX_POINTS: Final = 100_000
MAX_NAMED_POINTS: Final = 20_000
"""With more points, the names of their runs would take seconds to send."""
NO_SERIES: Final = "none"
RUNS, KEPT = "Runs of sweeps", "Kept answers"
LAYOUT: Final = {
    "margin": {"l": 10, "r": 10, "t": 20, "b": 10},
    "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom"},
}


def page() -> None:
    """Show the page below its title."""
    stores = session.stores()
    if not stores:
        _show_without_store()
        return
    rendering.show_tabs("results view", (RUNS, _show_store), (KEPT, panel.show_stored))


def _show_without_store() -> None:
    """Show the purpose of this page, to a visitor with a browser only and to who starts the server."""
    st.markdown(
        "This page compares the runs of many settings, such as five designs at ten levels of demand. "
        "The server that you use has no such runs open, and a browser alone cannot open any."
    )
    st.markdown("What you can do here:")
    with st.container(horizontal=True):
        pages = st.session_state.get("pages", {})
        for address, words in (
            ("what_if", "Ask one question, and pin plans"),
            ("recipes", "See measured results of all systems"),
            ("reproduction", "See published values beside ours"),
        ):
            if address in pages:
                st.page_link(pages[address], label=words)
    with st.expander("For the person who starts the server"):
        st.markdown(
            "`planner sweep ... --out FOLDER` writes the runs, and `planner dashboard --store FOLDER` opens "
            "them here, also while the sweep runs. Answers can then be kept in the folder under *Share*."
        )


def _show_store() -> None:
    """Show the choice of a store and a filter, then its runs."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        path = st.selectbox("Store", session.stores(), format_func=lambda item: item.name, width=220)
        st.session_state.setdefault("where", st.query_params.get("where", ""))
        where = st.text_input(
            "Filter",
            key="where",
            placeholder="system = traffic and problem.scale >= 2",
            help="Names, = != < <= > >=, like, in, is none, and, or, not.",
        )
        st.button("Reload", help="Read the runs that a sweep has written since.")
    st.query_params["where"] = where
    try:
        with Store(path) as store:
            _show_runs(store, where or None)
    except PlannerError as error:
        session.show_error(error)


def _show_runs(store: Store, where: str | None) -> None:
    total = store.count(where)
    if not total:
        st.info("No run matches the filter.")
        return
    words = Words([find_system(name) for name in _systems(store, where)])
    for line in verdicts(store, where):
        st.markdown(f"**{session.escape_markdown(line)}**")
    st.caption(counted_of(total, len(store), "runs"))
    metrics, settings = store.metric_names(), store.setting_names()
    rendering.show_tabs(
        "sweeps view",
        ("Lines", lambda: _show_lines(store, where, metrics, settings, words)),
        ("Trade-off", lambda: _show_trade_off(store, where, metrics, words)),
        ("Distribution", lambda: _show_distribution(store, where, metrics, words)),
        ("Runs", lambda: _show_table(store, where, total, words)),
    )


def verdicts(store: Store, where: str | None) -> list[str]:
    """Return the best design in the mean, a sentence for each system of the runs."""
    lines = []
    for name in _systems(store, where):
        condition = f"system = {name}" if where is None else f"({where}) and system = {name}"
        system = find_system(name)
        metric = system.headline
        column = column_of(metric.name)
        if column not in store.metric_names():
            continue
        means = store.chart(column, by="label", where=condition)[column].dropna().astype(float)
        if not len(means):
            continue
        ranked = means.sort_values(ascending=metric.better == "less")
        words = Words([system])
        shown = [words.entry("label", label) for label in ranked.index]
        says = f"{system.label}, {metric.words} in the mean of {sizes({'runs': store.count(condition)})}: "
        says += f"{shown[0]} {amount_or_number(ranked.iloc[0], metric.unit)}"
        if len(ranked) > 1:
            says += f" is the best of {counted(len(ranked), 'designs')}, "
            says += f"{shown[-1]} {amount_or_number(ranked.iloc[-1], metric.unit)} the last"
        lines.append(f"{says}.")
    return lines


def _systems(store: Store, where: str | None) -> list[str]:
    """Return the systems of the runs of a filter that are installed here."""
    names = store.runs(where, columns=["system"], limit=MAX_POINTS)["system"].unique()
    return [str(name) for name in names if name in system_names()]


class Words:
    """Names of metrics and settings in words, with their units, as the systems of the runs declare them."""

    def __init__(self, systems: Sequence[System]) -> None:
        self._titles = {
            "system": {system.name: system.label for system in systems},
            "design": {design.name: design.label for system in systems for design in system.designs},
        }
        self._labels = {
            column_of(metric.name): f"{metric.label} [{metric.unit}]" if metric.unit else metric.label
            for system in systems
            for metric in system.metrics
        }
        self._shares = {
            column_of(metric.name)
            for system in systems
            for metric in system.metrics
            if is_share(metric.name, metric.unit)
        }

    def axis(self, name: str) -> dict[str, str]:
        """Return the title and the format of numbers of an axis; parts of a whole are in percent."""
        return {"title": self(name), "tickformat": ".4~%" if name in self._shares else ""}

    def entry(self, column: str, value: Any) -> str:
        """Return a value of a column in words: the title of a design or system, else the value."""
        text = str(value)
        if column not in ("design", "label", "system"):
            return text
        titles = self._titles["system" if column == "system" else "design"]
        return titles.get(text, title_of(text))

    def __call__(self, name: str) -> str:
        """Return a column of the store in words."""
        if name in self._labels:
            return self._labels[name]
        *section, last = name.split(".")
        label = field_label(last)
        return f"{section[1]}: {label}" if section[:1] == ["designs"] and section[1:] else label


def _show_lines(
    store: Store, where: str | None, metrics: list[str], settings: list[str], words: Words
) -> None:
    columns = st.columns(4)
    value = _choose_metric(columns[0], "Metric", metrics, words, key="lines metric")
    varied = _varied_settings(store, where, settings)
    horizontal = columns[1].selectbox(
        "By", [*varied, *(name for name in settings if name not in varied), "design", "system", "label"],
        key="lines by", format_func=words,
    )  # fmt: skip
    series = columns[2].selectbox(
        "Lines",
        ["design", "label", "system", *settings, NO_SERIES],
        key="lines series",
        format_func=words,
    )
    aggregate: Literal["mean", "min", "max"] = columns[3].selectbox(
        "Aggregate of equal runs", ["mean", "min", "max"], key="lines aggregate"
    )
    split = None if series in (NO_SERIES, horizontal) else series
    frame = store.chart(value, by=horizontal, series=split, where=where, how=aggregate)
    if split is not None:
        frame.columns = pd.Index([words.entry(split, name) for name in frame])
    if horizontal in ("design", "label", "system"):
        frame.index = pd.Index([words.entry(horizontal, name) for name in frame.index])
    figure = go.Figure()
    is_numeric = pd.to_numeric(pd.Series(frame.index), errors="coerce").notna().all()
    for index, name in enumerate(frame):
        colour = COLOURS[index % len(COLOURS)]
        x, y = frame.index, frame[name]
        if is_numeric:
            figure.add_trace(go.Scatter(x=x, y=y, name=str(name), mode="lines+markers", line_color=colour))
        else:
            figure.add_trace(go.Bar(x=x.astype(str), y=y, name=str(name), marker_color=colour))
    figure.update_layout(xaxis=words.axis(horizontal), yaxis=words.axis(value), height=440, **LAYOUT)
    rendering.show_chart(figure, "lines")
    shown = frame.rename_axis(index=words(horizontal)).style
    st.dataframe(shown.format(number, na_rep="-"))  # type: ignore[arg-type]  # the cells are numbers


def _choose_metric(container: Any, label: str, metrics: list[str], words: Words, **options: Any) -> str:
    """Show a choice of metrics in words; return the chosen one's name."""
    metric: str = container.selectbox(label, metrics, format_func=words, **options)
    return metric


def _varied_settings(store: Store, where: str | None, settings: list[str]) -> list[str]:
    """Return the settings in which the runs differ, numbers first."""
    frame = store.runs(where, columns=settings, limit=MAX_ROWS)
    varied = [name for name in settings if len(frame[name].unique()) > 1]
    return sorted(varied, key=lambda name: not pd.api.types.is_numeric_dtype(frame[name].infer_objects()))


def _show_trade_off(store: Store, where: str | None, metrics: list[str], words: Words) -> None:
    columns = st.columns(2)
    second = min(1, len(metrics) - 1)
    horizontal = _choose_metric(columns[0], "Horizontal axis", metrics, words, key="points horizontal")
    vertical = _choose_metric(
        columns[1], "Vertical axis", metrics, words, key="points vertical", index=second
    )
    if horizontal == vertical:
        st.info("Choose two metrics.")
        return
    frame = store.runs(where, columns=["digest", "label", horizontal, vertical], limit=MAX_POINTS).dropna()
    figure = go.Figure()
    for index, (label, rows) in enumerate(frame.groupby("label", sort=False)):
        figure.add_trace(
            # WebGL: a hundred thousand points stay responsive
            go.Scattergl(
                x=rows[horizontal],
                y=rows[vertical],
                name=words.entry("label", label),
                mode="markers",
                text=rows["digest"].str[:12] if len(frame) <= MAX_NAMED_POINTS else None,
                marker={"size": 6, "color": COLOURS[index % len(COLOURS)]},
            )
        )
    figure.update_layout(xaxis=words.axis(horizontal), yaxis=words.axis(vertical), height=520, **LAYOUT)
    rendering.show_chart(figure, "points")
    st.caption(counted(len(frame), "runs") + _limit_note(frame))


def _show_distribution(store: Store, where: str | None, metrics: list[str], words: Words) -> None:
    value = _choose_metric(st, "Metric", metrics, words, key="distribution metric")
    frame = store.runs(where, columns=["label", value], limit=MAX_POINTS).dropna()
    figure = go.Figure()
    for index, (label, rows) in enumerate(frame.groupby("label", sort=False)):
        # only five numbers of each design are sent to the page
        minimum, lower, median, upper, maximum = rows[value].astype(float).quantile([0, 0.25, 0.5, 0.75, 1])
        figure.add_trace(
            go.Box(
                y=[words.entry("label", label)],
                lowerfence=[minimum], q1=[lower], median=[median], q3=[upper], upperfence=[maximum],
                orientation="h", marker_color=COLOURS[index % len(COLOURS)],
            )
        )  # fmt: skip
    figure.update_layout(
        xaxis=words.axis(value),
        showlegend=False,
        height=120 + 50 * max(2, frame["label"].nunique()),
        **LAYOUT,
    )
    rendering.show_chart(figure, "spread")
    st.caption("minimum, quartiles and maximum" + _limit_note(frame))


def _limit_note(frame: pd.DataFrame) -> str:
    return (
        f"; only the first {MAX_POINTS:,} runs: use a filter to choose others"
        if len(frame) == MAX_POINTS
        else ""
    )


def _show_table(store: Store, where: str | None, total: int, words: Words) -> None:
    frame = store.runs(where, limit=MAX_ROWS)
    if total > len(frame):
        st.caption(f"the first {len(frame):,}")
    selected = st.dataframe(
        frame,
        hide_index=True,
        on_select="rerun",
        selection_mode="single-row",
        key="runs table",
        column_config={str(name): words(str(name)) for name in frame},
    )
    rows = selected["selection"]["rows"]
    if not rows:
        st.caption("Choose a run to see its request, its messages and its plan.")
        return
    run = frame.iloc[rows[0]]
    st.subheader(f"{words.entry('label', run['label'])} on {run['scenario']}")
    for kind, text in store.messages(run["digest"]):
        st.markdown(f"- {kind}: " + session.escape_markdown(text))
    with st.expander("Request"):
        st.json(store.request(run["digest"]))
    plan = run.get("plan")
    if not isinstance(plan, str) or not plan:
        st.caption("The plan is not stored.")
        return
    folder: Path = store.plan_folder(plan)
    st.caption(f"The plan, in {folder.name}")
    tables = {name: (table.head(worker.MAX_ROWS), len(table)) for name, table in store.plan(plan).items()}
    rendering.show_frames(tables, "The plan is empty.")
