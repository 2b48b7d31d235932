"""Panel of an element that has failed: losses, its use before the failure, and remedies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Final

import streamlit as st

from planner.contract.elements import Action, ElementKind
from planner.contract.metrics import Metric
from planner.contract.system import System
from planner.scenarios.scenario import Scenario
from planner_dashboard import rendering, session, worker
from planner_dashboard.question import Question
from planner_dashboard.what_if import history
from planner_dashboard.what_if.changes import adjustments_of, with_adjustments

SAME: Final = 1e-6
"""Relative difference up to which a figure is the same as before."""
SAME_FIGURES: Final = "<dt>With it</dt><dd>the same figures</dd>"


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
    if design.losses:
        st.markdown(session.escape_markdown(f"Without it, {design.title} {' and '.join(design.losses)}."))
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
    if not design.losses:
        st.markdown(session.escape_markdown(say_effect(scenario.system, design, report.metrics)))
    st.html(_difference_html(scenario.system, design, report.metrics))
    st.markdown("**What it carried before**")
    if report.report is None:
        st.caption("Nothing is known of it.")
    else:
        rendering.show_report(report.report)
    st.caption("What would help: *Restore* above, or the upgrades below.")


def say_effect(system: System, design: worker.DesignAnswer, before: Mapping[str, float | None]) -> str:
    """Return the effect of a failure by which a plan loses no demand, in one sentence.

    before  metrics of the plan without the failure
    """
    worse = [change for change in changed_metrics(system, design, before) if change.is_worse]
    if not worse:
        return f"Without it, {design.title} loses nothing."
    change = worse[0]
    way = "up" if change.now > change.before else "down"
    values = f"{change.metric.text(change.before)} to {change.metric.text(change.now)}"
    return f"Without it, {change.metric.words} of {design.title} went {way} from {values}."


@dataclass(frozen=True, kw_only=True)
class MetricChange:
    """A metric with its values before and after a failure."""

    metric: Metric
    before: float
    now: float

    @property
    def is_worse(self) -> bool:
        return (self.now < self.before) if self.metric.better == "more" else (self.now > self.before)


def changed_metrics(
    system: System, design: worker.DesignAnswer, before: Mapping[str, float | None]
) -> list[MetricChange]:
    """Return the figures of the top of the page that a failure changes, the headline metric first."""
    names = [*(metric.name for metric in system.ranks), *system.plan.headline.losses]
    changed = []
    for metric in map(system.metric, dict.fromkeys([*names, *(item.name for item in system.table_metrics)])):
        was, now = before.get(metric.name), design.figures.metrics.get(metric.name)
        is_judged = metric.better in ("more", "less")
        if was is None or now is None or not is_judged or abs(now - was) <= SAME * max(abs(now), abs(was)):
            continue
        changed.append(MetricChange(metric=metric, before=was, now=now))
    return changed


def _difference_html(system: System, design: worker.DesignAnswer, before: Mapping[str, float | None]) -> str:
    """Return the figures that its failure changes, with both values."""
    rows = [
        f"<dt>{escape(change.metric.label)}</dt>"
        f"<dd>{escape(' → '.join(map(change.metric.text, (change.before, change.now))))}</dd>"
        for change in changed_metrics(system, design, before)
    ]
    return f"<dl class='planner-facts'>{''.join(rows or [SAME_FIGURES])}</dl>"
