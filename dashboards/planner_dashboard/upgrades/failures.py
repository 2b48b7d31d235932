"""Panel of the worst failures: each element fails alone; a map of the losses, and the list, worst first."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from html import escape
from pathlib import Path
from typing import Final

import streamlit as st

from planner.formatting import percent
from planner_dashboard import pictures, session
from planner_dashboard.question import Question
from planner_dashboard.upgrades import work
from planner_dashboard.upgrades.panel import STYLE, Apply
from planner_dashboard.upgrades.search import Search
from planner_dashboard.upgrades.work import FoundFailure, FoundFailures
from planner_dashboard.what_if.changes import shown_name

SEARCH: Final = Search("failures")
SELECTED: Final = "selected failure"
MOST_LISTED: Final = 12
HEIGHT: Final = 560


def show_failures(question: Question, tables: Path, label: str, on_fail: Apply) -> None:
    """Show what each failure costs under one design; the search starts on request.

    tables   folder of the uploaded tables
    on_fail  asks the question again with the adjustments of the failure that a user chooses
    """
    st.html(STYLE)
    st.subheader("Which failures hurt")
    wanted = (question, label)
    found: FoundFailures | None = SEARCH.find(wanted)
    if found is not None:
        _show_found(found, on_fail)
        return
    if SEARCH.is_running(wanted):
        session.show_progress(SEARCH.name, "failing each element alone", "cancelled")
        _show_partial()
        return
    if SEARCH.was_stopped(wanted):
        session.show_failure(SEARCH.name)
        stopped: FoundFailures | None = SEARCH.partial()
        if stopped is not None:
            _show_found(stopped, on_fail)
    st.caption("Each element fails alone, and the design decides again.")
    st.button(
        "Find failures that hurt",
        key="find failures",
        on_click=partial(SEARCH.start, wanted, work.find_failures, question, tables, label),
    )


@st.fragment(run_every=1.5)
def _show_partial() -> None:
    """Show the worst failures found so far, while the search runs."""
    found: FoundFailures | None = SEARCH.partial()
    if found is not None:
        st.caption(f"{found.tried:,} of {found.total:,} failures tried; the worst so far:")
        st.html(_list_html(found.failures))


def _show_found(found: FoundFailures, on_fail: Apply) -> None:
    st.markdown(session.escape_markdown(found.verdict))
    if not found.failures:
        return
    left, right = st.columns([6, 4], gap="medium") if found.map is not None else (None, st.container())
    if left is not None and found.map is not None:
        with left:
            chosen = _chosen(found)
            clicked = pictures.show_network(
                found.map, key="map of failures", selected=chosen.element if chosen else "", height=HEIGHT
            )
            if clicked is not None:
                here = (one.name for one in found.failures if (one.kind, one.element) == _pair(clicked))
                st.session_state[SELECTED] = next(here, None)
    with right:
        _show_choice(found, on_fail)
        st.html(_list_html(found.failures))
        if len(found.failures) > MOST_LISTED:
            st.caption(f"The {MOST_LISTED} worst of {len(found.failures):,}.")


def _show_choice(found: FoundFailures, on_fail: Apply) -> None:
    """Show a field that selects a failure, what it costs, and a button that lets the element fail."""
    state = st.session_state
    one = _chosen(found)
    state["choose failure"] = one.name if one else None

    def select() -> None:
        state[SELECTED] = state["choose failure"]

    st.selectbox(
        "Failure",
        [each.name for each in found.failures],
        index=None,
        key="choose failure",
        on_change=select,
        format_func=shown_name,
        placeholder="Click the map, or find by name" if found.map is not None else "Find by name",
        label_visibility="collapsed",
    )
    if one is not None:
        st.markdown(session.escape_markdown(f"After the failure of {shown_name(one.name)}: {one.words}."))
        st.button("Fail it", key="fail it", on_click=partial(on_fail, one.adjustments), width="stretch")


def _chosen(found: FoundFailures) -> FoundFailure | None:
    """Return the failure that the user has selected."""
    name = st.session_state.get(SELECTED)
    return next((one for one in found.failures if one.name == name), None)


def _pair(selected: pictures.Selected) -> tuple[str, str]:
    return selected.kind, selected.name


def _list_html(failures: Sequence[FoundFailure]) -> str:
    """Return the worst failures, each with a bar as long as what it costs."""
    shown = failures[:MOST_LISTED]
    most = max((one.size for one in shown), default=0.0) or 1.0
    rows = "".join(
        f"<div role='listitem'><div class='planner-step'><b>{escape(shown_name(one.name))}</b>"
        f"<b>{escape(one.cost if one.share is None else percent(one.share))}</b></div>"
        f"<div class='planner-step planner-dim'><span>{'loses no more' if one.is_harmless else ''}</span>"
        f"<span>{escape('' if one.share is None else one.cost)}</span></div>"
        "<div class='planner-track planner-thin'>"
        f"<span class='planner-cost' style='width:{100 * one.size / most:.2f}%'></span></div></div>"
        for one in shown
    )
    return f"<div class='planner-steps' role='list'>{rows}</div>"
