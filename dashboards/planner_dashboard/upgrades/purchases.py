"""Panel of what a plan buys: its purchases with what each brings, the budget, and the curve with bounds."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Final

import streamlit as st

from planner_dashboard import session
from planner_dashboard.question import Question
from planner_dashboard.upgrades import curve, work
from planner_dashboard.upgrades.panel import STYLE, Apply, list_steps
from planner_dashboard.upgrades.search import Search
from planner_dashboard.upgrades.work import FoundPurchases

SEARCH: Final = Search("purchases")
BUDGETS: Final = 5
"""Smaller budgets that are tried."""


def show_purchases(question: Question, tables: Path, label: str, on_apply: Apply) -> None:
    """Show what the plan of one design buys; the explanation starts on request.

    tables    folder of the uploaded tables
    on_apply  asks the question again with the budget that a user chooses
    """
    st.html(STYLE)
    st.subheader("What to buy")
    wanted = (question, label)
    found: FoundPurchases | None = SEARCH.find(wanted)
    if found is not None:
        _show_found(found, on_apply)
        return
    if SEARCH.is_running(wanted):
        session.show_progress(SEARCH.name, "explaining the purchases", "cancelled")
        return
    if SEARCH.was_stopped(wanted):
        session.show_failure(SEARCH.name)
    st.caption(
        "The purchases in the order in which they bring most for their cost, and what a budget reaches."
    )
    st.button(
        "Show purchases and budgets",
        key="find purchases",
        on_click=partial(SEARCH.start, wanted, work.find_purchases, question, tables, label, BUDGETS),
        width="stretch",
    )


def _show_found(found: FoundPurchases, on_apply: Apply) -> None:
    for sentence in found.sentences:
        st.markdown(session.escape_markdown(sentence))
    if found.steps:
        st.html(list_steps(found.steps, found.first))
        st.caption(session.escape_markdown(found.note[:1].upper() + found.note[1:] + "."))
    if len(found.points) > 1:
        _show_budget(found, on_apply)


def _show_budget(found: FoundPurchases, on_apply: Apply) -> None:
    """Show what each budget reaches beside its bound, and a button that asks for the chosen one."""
    st.markdown("**What a budget reaches**")
    points = found.points
    places = list(range(len(points)))
    place = st.select_slider(
        "Budget", places, value=places[-1], format_func=lambda one: points[one].cost_words,
        key=f"purchase budget {len(points)} {points[-1].cost}",
    )  # fmt: skip
    chosen = points[place]
    st.html(curve.curve_html(points, place, "budget", found.metric))
    st.markdown(session.escape_markdown(f"With a budget of {chosen.cost_words}: {chosen.reached}."))
    st.button(
        "Plan with this budget",
        key="apply purchase budget",
        disabled=place == places[-1],
        on_click=partial(on_apply, chosen.adjustments),
        width="stretch",
    )
    has_bounds = any(one.bound is not None for one in points)
    st.caption(session.escape_markdown(f"{'Dashed: the bound. ' * has_bounds}{found.budget_note}."))
