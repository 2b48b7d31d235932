"""Below the picture: designs side by side, the plan, its limits, and the downloads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import streamlit as st

from planner.contract.metrics import Metric
from planner.reports.document import Column, Table
from planner.scenarios.catalogue import find_system
from planner.scenarios.scenario import Scenario
from planner_dashboard import rendering, session, share, upgrades, worker
from planner_dashboard.rendering import show_tabs
from planner_dashboard.what_if.changes import ask_adjustments
from planner_dashboard.worker import Answer, DesignAnswer

DESIGNS, PLAN, FAILURES, LIMITS, SHARE = (
    "Designs side by side",
    "The plan",
    "Failures",
    "What limits it",
    "Share",
)


def show_details(
    scenario: Scenario, answer: Answer, design: DesignAnswer, before: Answer | None, tables: Path
) -> None:
    """Show the tabs below the picture.

    design  whose plan the picture shows
    before  the answer that changes are counted from; None for none
    tables  folder of the uploaded tables
    """
    views: list[tuple[str, Callable[[], object]]] = [
        (DESIGNS, lambda: _show_designs(scenario, answer, before)),
        (PLAN, lambda: _show_plan(answer, design, before)),
    ]
    if any(kind.with_role("failure") for kind in scenario.system.problem.elements) and design.has_plan:
        fail = partial(ask_adjustments, scenario, answer.question)
        views.append((FAILURES, lambda: upgrades.show_failures(answer.question, tables, design.label, fail)))
    if design.can_explain:
        views.append((LIMITS, lambda: _show_explanation(answer, tables, design.label)))
    show_tabs("view", *views, (SHARE, lambda: share.show_share(answer.question, answer, design.label)))


def _show_designs(scenario: Scenario, answer: Answer, before: Answer | None) -> None:
    system = find_system(answer.system)
    rendering.show_metrics(answer, before, system.table_metrics)
    for table in answer.groups:
        rendering.show_table(table)
    if len(system.table_metrics) < len(system.metrics):
        with st.expander(f"All {len(system.metrics)} metrics"):
            rendering.show_metrics(answer, before, system.metrics)
    with st.expander("What designs and metrics mean", key="meanings", on_change="rerun") as meanings:
        if meanings.open:
            _show_meanings(scenario, answer, system.table_metrics)
    rendering.show_lines(answer.notes)
    figures = session.on_request("charts", answer.folder, worker.charts, answer.folder, activity="drawing")
    if figures is not None:
        rendering.show_charts(figures, "comparison", side_by_side=True)


def _show_meanings(scenario: Scenario, answer: Answer, metrics: Sequence[Metric]) -> None:
    """Show a sentence on each design of an answer, and on each metric of its table."""
    designs = {design.name: design for design in scenario.system.designs}
    designs |= {entry.label: entry.design for entry in scenario.designs}
    labels = [design.label for design in answer.designs if design.label in designs]
    shown = [
        metric
        for metric in metrics
        if any(design.figures.metrics.get(metric.name) is not None for design in answer.designs)
    ]
    columns = (Column(label="Design"), Column(label="What it does"))
    rows = [[scenario.design_title(label), designs[label].about] for label in labels]
    rendering.show_table(Table(columns=columns, rows=rows, row_headers=1))
    columns = (Column(label="Metric"), Column(label="What it is"))
    rows = [[metric.label, metric.about] for metric in shown]
    rendering.show_table(Table(columns=columns, rows=rows, row_headers=1))


def _show_plan(answer: Answer, design: DesignAnswer, before: Answer | None) -> None:
    earlier = before.folder if before is not None else None
    request = (answer.folder, design.label, earlier)
    details: worker.DesignDetails | None = session.on_request(
        "details", request, worker.details, *request, activity="reading the plan"
    )
    if details is None:
        return
    rendering.show_lines(details.sentences)
    rendering.show_charts(details.charts, f"drawing {design.label}", side_by_side=True)
    if earlier is not None:
        st.subheader("Changes since the plan before")
        rendering.show_frames(details.changes, "No changes.")
    st.subheader("The plan")
    rendering.show_frames(details.tables, "No tables.")


def _show_explanation(answer: Answer, tables: Path, label: str) -> None:
    """Show the limits of a plan and the upgrades that pay, on request: it solves many times."""
    request = (answer.folder, label)
    key = "explanation asked"
    if st.session_state.get(key) != request:
        if st.button("Explain", help="Solve again to find the changes that matter most."):
            st.session_state[key] = request
            st.rerun()
        return
    section = session.on_request(
        "explain",
        request,
        worker.explain,
        answer.question,
        tables,
        label,
        activity="solving with each candidate",
    )
    if section is not None:
        rendering.show_part(section, f"explanation {label}")
