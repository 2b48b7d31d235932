"""Panel of an element that has failed: losses, its use before the failure, and remedies."""

from __future__ import annotations

from html import escape
from pathlib import Path

import streamlit as st

from planner.contract.elements import Action, ElementKind
from planner.formatting import amount_or_number
from planner.scenarios.scenario import Scenario
from planner_dashboard import rendering, session, worker
from planner_dashboard.question import Question
from planner_dashboard.what_if import history
from planner_dashboard.what_if.changes import adjustments_of, with_adjustments


def has_failed(scenario: Scenario, question: Question, kind: ElementKind, name: str) -> bool:
    """Return whether a question lets an element fail."""
    return _failure_of(scenario, question, kind, name) is not None


def _failure_of(scenario: Scenario, question: Question, kind: ElementKind, name: str) -> Action | None:
    adjustments = adjustments_of(scenario, question)
    return next((action for action in kind.with_role("failure") if action.is_done(adjustments, name)), None)


def show_failed(
    scenario: Scenario,
    answer: worker.Answer,
    design: worker.DesignAnswer,
    kind: ElementKind,
    name: str,
    tables: Path,
) -> None:
    """Show the losses of the plan without an element, and its use before the failure.

    tables  folder of the uploaded tables
    """
    action = _failure_of(scenario, answer.question, kind, name)
    assert action is not None
    lost = design.losses or ["loses nothing"]
    st.markdown(session.escape_markdown(f"Without it, {design.title} {' and '.join(lost)}."))
    adjustments = action.undo(adjustments_of(scenario, answer.question), name)
    before = with_adjustments(scenario, answer.question, adjustments)
    stored = history.answers().get(before)
    has_plan = stored is not None and (other := stored.design(design.label)) is not None and other.has_plan
    folder = stored.folder if stored is not None and has_plan else None
    request = (folder, before, design.label, kind.name, name)
    report: worker.RestoredElement | None = session.on_request(
        "restored", request, worker.describe_restored, *request, tables, activity="reading the plan with it"
    )
    if report is None:
        return
    st.html(_difference_html(scenario, design, report))
    st.markdown("**What it carried before**")
    if report.report is None:
        st.caption("Nothing is known of it.")
    else:
        rendering.show_report(report.report)
    st.caption("What would help: *Restore* above, or the upgrades below.")


def _difference_html(
    scenario: Scenario, design: worker.DesignAnswer, restored: worker.RestoredElement
) -> str:
    """Return the figures that its failure changes, with both values."""
    system = scenario.system
    rows = []
    for metric in dict.fromkeys([*system.ranks, *map(system.metric, system.plan.headline.losses)]):
        before, now = restored.metrics.get(metric.name), design.figures.metrics.get(metric.name)
        if before is None or now is None or abs(now - before) <= 1e-6 * max(abs(now), abs(before)):
            continue
        values = [amount_or_number(value, metric.unit) for value in (before, now)]
        rows.append(f"<dt>{escape(metric.label)}</dt><dd>{escape(' → '.join(values))}</dd>")
    if not rows:
        rows = ["<dt>With it</dt><dd>the same figures</dd>"]
    return f"<dl class='planner-facts'>{''.join(rows)}</dl>"
