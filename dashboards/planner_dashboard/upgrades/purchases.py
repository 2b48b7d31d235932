"""Panel of a plan's purchases, each with its gain, the budget, and the curve with bounds."""

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
    """Show the purchases of the plan of one design; the explanation starts on request.

    tables    folder of the uploaded tables
    on_apply  asks the question again with the budget that a user chooses
    """
    st.html(STYLE)
    st.subheader("What to buy")
    request = (question, label)
    purchases_found: FoundPurchases | None = SEARCH.find(request)
    if purchases_found is not None:
        _show_found(purchases_found, on_apply)
        return
    if SEARCH.is_running(request):
        session.show_progress(SEARCH.name, "explaining the purchases", "cancelled")
        return
    if SEARCH.was_stopped(request):
        session.show_failure(SEARCH.name)
    st.caption(
        "The purchases in the order in which they bring most for their cost, and what a budget reaches."
    )
    st.button(
        "Show purchases and budgets",
        key="find purchases",
        on_click=partial(SEARCH.start, request, work.find_purchases, question, tables, label, BUDGETS),
        width="stretch",
    )


def _show_found(result: FoundPurchases, on_apply: Apply) -> None:
    for sentence in result.sentences:
        st.markdown(session.escape_markdown(sentence))
    if result.steps:
        st.html(list_steps(result.steps, result.first))
        st.caption(session.escape_markdown(result.note[:1].upper() + result.note[1:] + "."))
    if len(result.points) > 1:
        _show_budget(result, on_apply)


def _show_budget(result: FoundPurchases, on_apply: Apply) -> None:
    """Show the value of each budget beside its bound, and a button that asks for the selected one."""
    st.markdown("**What a budget reaches**")
    points = result.points
    indices = list(range(len(points)))
    index = st.select_slider(
        "Budget", indices, value=indices[-1], format_func=lambda index_: points[index_].cost_words,
        key=f"purchase budget {len(points)} {points[-1].cost}",
    )  # fmt: skip
    point = points[index]
    axis = f"budget, {result.budget_unit}" if result.budget_unit else "budget"
    st.html(curve.curve_html(points, index, axis, result.metric))
    st.markdown(session.escape_markdown(f"With a budget of {point.cost_words}: {point.reached}."))
    st.button(
        "Plan with this budget",
        key="apply purchase budget",
        disabled=index == indices[-1],
        on_click=partial(on_apply, point.adjustments),
        width="stretch",
    )
    has_bounds = any(item.bound is not None for item in points)
    st.caption(session.escape_markdown(f"{'Dashed: the bound. ' * has_bounds}{result.budget_note}."))
