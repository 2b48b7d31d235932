"""Panel of the worst failures: each element fails alone; a map of the losses, and the list, worst first."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from html import escape
from pathlib import Path
from typing import Final

import streamlit as st

from planner.formatting import percent
from planner_dashboard import fragments, pictures, session
from planner_dashboard.question import Question
from planner_dashboard.rendering import shown_name
from planner_dashboard.upgrades import work
from planner_dashboard.upgrades.panel import STYLE, Apply
from planner_dashboard.upgrades.search import Search
from planner_dashboard.upgrades.work import FoundFailure, FoundFailures

SEARCH: Final = Search("failures")
SELECTED: Final = "selected failure"
MOST_LISTED: Final = 12
HEIGHT: Final = 560


def show_failures(question: Question, tables: Path, label: str, on_fail: Apply) -> None:
    """Show the cost of each failure under one design; the search starts on request.

    tables   folder of the uploaded tables
    on_fail  asks the question again with the adjustments of the failure that a user chooses
    """
    st.html(STYLE)
    st.subheader("Which failures hurt")
    request = (question, label)
    failures_found: FoundFailures | None = SEARCH.find(request)
    if failures_found is not None:
        _show_found(failures_found, on_fail)
        return
    if SEARCH.is_running(request):
        session.show_progress(SEARCH.name, "failing each element alone", "cancelled")
        fragments.show_repeatedly(_show_partial, every_s=1.5)
        return
    if SEARCH.was_stopped(request):
        session.show_failure(SEARCH.name)
        stopped: FoundFailures | None = SEARCH.partial()
        if stopped is not None:
            _show_found(stopped, on_fail)
    st.caption("Each element fails alone, and the design decides again.")
    st.button(
        "Find failures that hurt",
        key="find failures",
        on_click=partial(SEARCH.start, request, work.find_failures, question, tables, label),
    )


def _show_partial() -> None:
    """Show the worst failures found so far, while the search runs."""
    failures_found: FoundFailures | None = SEARCH.partial()
    if failures_found is not None:
        st.caption(f"{failures_found.tried:,} of {failures_found.total:,} failures tried; the worst so far:")
        st.html(_list_html(failures_found.failures))


def _show_found(result: FoundFailures, on_fail: Apply) -> None:
    st.markdown(session.escape_markdown(result.verdict))
    if not result.failures:
        return
    left_column, right = (
        st.columns([6, 4], gap="medium") if result.map is not None else (None, st.container())
    )
    if left_column is not None and result.map is not None:
        with left_column:
            selected = _chosen(result)
            clicked = pictures.show_network(
                result.map,
                key="map of failures",
                selected=selected.element if selected else "",
                height=HEIGHT,
            )
            if clicked is not None:
                here = (
                    failure.name
                    for failure in result.failures
                    if (failure.kind, failure.element) == _pair(clicked)
                )
                st.session_state[SELECTED] = next(here, None)
    with right:
        _show_choice(result, on_fail)
        st.html(_list_html(result.failures))
        if len(result.failures) > MOST_LISTED:
            st.caption(f"The {MOST_LISTED} worst of {len(result.failures):,} failures.")


def _show_choice(result: FoundFailures, on_fail: Apply) -> None:
    """Show a field that selects a failure, its cost, and a button that lets the element fail."""
    state = st.session_state
    failure = _chosen(result)
    state["choose failure"] = failure.name if failure else None

    def select() -> None:
        state[SELECTED] = state["choose failure"]

    st.selectbox(
        "Failure",
        [each.name for each in result.failures],
        index=None,
        key="choose failure",
        on_change=select,
        format_func=shown_name,
        placeholder="Click the map, or find by name" if result.map is not None else "Find by name",
        label_visibility="collapsed",
    )
    if failure is not None:
        st.markdown(
            session.escape_markdown(f"After the failure of {shown_name(failure.name)}: {failure.words}.")
        )
        st.button("Fail it", key="fail it", on_click=partial(on_fail, failure.adjustments), width="stretch")


def _chosen(result: FoundFailures) -> FoundFailure | None:
    """Return the failure that the user has selected."""
    name = st.session_state.get(SELECTED)
    return next((failure for failure in result.failures if failure.name == name), None)


def _pair(selected: pictures.Selected) -> tuple[str, str]:
    return selected.kind, selected.name


def _list_html(failures: Sequence[FoundFailure]) -> str:
    """Return the worst failures, each with a bar of the length of its cost."""
    shown = failures[:MOST_LISTED]
    largest = max((failure.size for failure in shown), default=0.0) or 1.0
    rows = "".join(
        f"<div role='listitem'><div class='planner-step'><b>{escape(shown_name(failure.name))}</b>"
        f"<b>{escape(failure.cost if failure.share is None else percent(failure.share))}</b></div>"
        f"<div class='planner-step planner-dim'><span>{'loses no more' if failure.is_harmless else ''}</span>"
        f"<span>{escape('' if failure.share is None else failure.cost)}</span></div>"
        "<div class='planner-track planner-thin'>"
        f"<span class='planner-cost' style='width:{100 * failure.size / largest:.2f}%'></span></div></div>"
        for failure in shown
    )
    return f"<div class='planner-steps' role='list'>{rows}</div>"
