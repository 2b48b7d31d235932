"""The cheapest set of upgrades that serves all, beside the list of upgrades."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from html import escape
from pathlib import Path
from typing import Any, Final

import streamlit as st

from planner_dashboard import session
from planner_dashboard.question import Question
from planner_dashboard.rendering import shown_name
from planner_dashboard.upgrades import work
from planner_dashboard.upgrades.search import Search
from planner_dashboard.upgrades.work import FoundCheapest, FoundUpgrades

SEARCH: Final = Search("cheapest")


def show_cheapest(
    question: Question,
    tables: Path,
    label: str,
    upgrades_found: FoundUpgrades,
    on_apply: Callable[[Mapping[str, Any]], None],
) -> None:
    """Show the cheapest set beside a list of upgrades; the search starts on request.

    Arguments as those of `panel.show_panel`.
    """
    st.markdown("**The cheapest set**")
    request = (question, label)
    cheapest: FoundCheapest | None = SEARCH.find(request)
    if cheapest is not None:
        _show_found(cheapest, upgrades_found, on_apply)
        return
    if SEARCH.is_running(request):
        session.show_progress(SEARCH.name, "proving the cheapest set", "cancelled")
        return
    if SEARCH.was_stopped(request):
        session.show_failure(SEARCH.name)
    st.caption("The list takes one upgrade at a time. Another set may serve all for less.")
    st.button(
        "Find the cheapest set",
        key="find cheapest",
        on_click=partial(SEARCH.start, request, work.find_cheapest, question, tables, label),
        width="stretch",
    )


def _show_found(
    cheapest: FoundCheapest,
    upgrades_found: FoundUpgrades,
    on_apply: Callable[[Mapping[str, Any]], None],
) -> None:
    for sentence in [*cheapest.sentences, cheapest.compare(upgrades_found)]:
        if sentence:
            st.markdown(session.escape_markdown(sentence))
    if not cheapest.elements:
        return
    in_list = {step.element for step in upgrades_found.steps}
    rows = "".join(
        f"<div role='listitem' class='planner-step'><b>{escape(shown_name(name))}</b>"
        f"<span>{'' if name in in_list else 'not in the list'}</span></div>"
        for name in cheapest.elements
    )
    st.html(f"<div class='planner-steps' role='list'>{rows}</div>")
    st.button(
        "Apply the cheapest set",
        key="apply cheapest",
        on_click=partial(on_apply, cheapest.adjustments),
        width="stretch",
    )
