"""The panel of a selected element: its load, price and users, and what can be done to it."""

from __future__ import annotations

from functools import partial
from html import escape

import streamlit as st

from planner.contract.elements import ElementKind, ElementReport
from planner.formatting import amount_or_number
from planner.reports.document import table_of
from planner.scenarios.scenario import Scenario
from planner_dashboard import rendering, session, worker
from planner_dashboard.question import Question
from planner_dashboard.what_if import history
from planner_dashboard.what_if.changes import adjustments_of, shown_name, with_adjustments

Element = tuple[str, str]
"""Kind and name of an element."""
SELECTED = "selected"


def selected() -> Element | None:
    """Return the selected element of the session."""
    found: Element | None = st.session_state.get(SELECTED)
    return found


def select(element: Element | None) -> None:
    """Select an element, or none."""
    st.session_state[SELECTED] = element


def show_finder(answer: worker.Answer) -> None:
    """Show a field that selects exactly one element by its name."""
    names = [(kind, name) for kind, found in answer.elements.items() for name in found]
    if not names:
        return
    state = st.session_state
    now = selected()
    key = f"find {answer.question.scenario}"
    state[key] = now if now in names else None

    st.selectbox(
        "Find",
        names,
        index=None,
        format_func=lambda one: f"{shown_name(one[1])} ({one[0]})",
        key=key,
        on_change=lambda: select(state[key]),
        placeholder="Find " + ", ".join(kind for kind, found in answer.elements.items() if found),
        label_visibility="collapsed",
    )


def show_element(
    scenario: Scenario, question: Question, answer: worker.Answer, design: worker.DesignAnswer
) -> None:
    """Show the selected element: what the plan does with it, and its actions."""
    element = selected()
    assert element is not None
    kind_name, name = element
    kind = next((one for one in scenario.system.problem.elements if one.name == kind_name), None)
    if kind is None:
        return
    with st.container(key="element"):
        st.subheader(session.escape_markdown(shown_name(name)), anchor=False)
        st.caption(session.escape_markdown(kind.name))
        _show_actions(scenario, question, kind, name)
        wanted = (answer.folder, design.label, *element)
        report: ElementReport | None = session.on_request(
            "describe", wanted, worker.describe, *wanted, activity="reading the plan"
        )
        if report is not None:
            _show_report(report)
        st.button("Close", on_click=select, args=(None,), key="close element", type="tertiary")


def _show_actions(scenario: Scenario, question: Question, kind: ElementKind, name: str) -> None:
    """Show a button for each action; one that is done can be taken back."""
    adjustments = adjustments_of(scenario, question)
    for action in kind.actions:
        is_done = action.is_done(adjustments, name)
        changed = action.undo(adjustments, name) if is_done else action.apply(adjustments, name)
        st.button(
            f"Restore ({action.state})" if is_done else action.name,
            key=f"action {kind.name} {name} {action.name}",
            on_click=partial(history.ask, with_adjustments(scenario, question, changed)),
            type="primary" if is_done else "secondary",
            width="stretch",
        )


def _show_report(report: ElementReport) -> None:
    facts = "".join(
        f"<dt>{escape(fact.label)}</dt><dd>{escape(_text(fact.value, fact.unit))}</dd>"
        for fact in report.facts
    )
    st.html(f"<dl class='planner-facts'>{facts}</dl>")
    for section in report.sections:
        if len(section.frame):
            rendering.show_table(
                table_of(section.frame, section.units, title=section.title, caption=section.note)
            )


def _text(value: float | str | None, unit: str) -> str:
    return value if isinstance(value, str) else amount_or_number(value, unit)
