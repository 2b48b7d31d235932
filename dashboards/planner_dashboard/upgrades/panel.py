"""Panel of the best upgrades: the list with the gain of each, the budget, and the Pareto curve."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from html import escape
from pathlib import Path
from typing import Any, Final

import streamlit as st

from planner.formatting import counted, few, percent
from planner_dashboard import fragments, session
from planner_dashboard.question import Question
from planner_dashboard.rendering import shown_name
from planner_dashboard.upgrades import cheapest, curve, work
from planner_dashboard.upgrades.search import Search
from planner_dashboard.upgrades.work import BoughtStep, BudgetPoint, FoundUpgrades

Apply = Callable[[Mapping[str, Any]], None]
"""Called with adjustments of the problem, as the callback of a button."""

STYLE: Final = Path(__file__).with_name("style.css")
SEARCH: Final = Search("upgrades")
TRACK_END: Final = 1.2
"""Share at the right end of a track; a tick stands at 1."""
MAX_STEPS: Final = 10
MOST_NAMES: Final = 4


def show_panel(question: Question, tables: Path, label: str, on_apply: Apply) -> None:
    """Show the upgrades for a question and one of its designs; the search starts on request.

    tables    folder of the uploaded tables
    on_apply  asks the question again with the adjustments of the upgrades that a user applies
    """
    st.html(STYLE)
    st.subheader("Best upgrades")
    request = (question, label)
    upgrades_found: FoundUpgrades | None = SEARCH.find(request)
    if upgrades_found is not None:
        _show_found(upgrades_found, on_apply)
        if upgrades_found.loses:
            cheapest.show_cheapest(question, tables, label, upgrades_found, on_apply)
        return
    if SEARCH.is_running(request):
        st.caption("Each step is the upgrade that gains most once the steps above it are bought.")
        session.show_progress(SEARCH.name, "solving with each candidate", "cancelled")
        fragments.show_repeatedly(_show_partial, every_s=1.0)
        return
    if SEARCH.was_stopped(request):
        session.show_failure(SEARCH.name)
        stopped: FoundUpgrades | None = SEARCH.partial()
        if stopped is not None:
            st.caption("Found before:")
            _show_found(stopped, on_apply)
    st.caption("A list of upgrades, each the one that gains most after those before it.")
    st.button(
        "Find upgrades",
        key="find upgrades",
        on_click=partial(SEARCH.start, request, work.find_upgrades, question, tables, label, None, MAX_STEPS),
        width="stretch",
    )


def _show_partial() -> None:
    """Show the steps found so far, while the search runs."""
    upgrades_found: FoundUpgrades | None = SEARCH.partial()
    if upgrades_found is not None:
        st.html(list_steps(upgrades_found.steps, upgrades_found.before))


def _show_found(result: FoundUpgrades, on_apply: Apply) -> None:
    if not result.steps:
        st.markdown(session.escape_markdown(result.verdict))
        return
    st.caption("Each step is the upgrade that gains most once the steps above it are bought.")
    st.html(list_steps(result.steps, result.before))
    st.html(f"<p class='planner-sum'>{escape(_sum_words(result))}</p>")
    st.button(
        "Apply the list",
        key="apply upgrades",
        type="primary",
        on_click=partial(on_apply, result.adjustments),
        width="stretch",
    )
    notes = [result.caveat]
    if result.ending:
        notes.append(f"It ends because {result.ending}.")
    if result.dropped:
        notes.append(
            "Left out, as later steps made it needless: "
            f"{few([shown_name(name) for name in result.dropped])}."
        )
    if result.without_cost:
        notes.append(f"{result.without_cost:,} upgrades have no cost in the tables, and are no candidates.")
    st.caption(session.escape_markdown(" ".join(notes)))
    if len(result.points) > 1:
        _show_budget(result, on_apply)


def _sum_words(result: FoundUpgrades) -> str:
    """Return the cost and gain of the whole list."""
    count = len(result.steps)
    head = counted(count, "upgrades")
    if result.total_cost:
        head += f" for {result.total_cost}"
    share = result.steps[-1].share
    if share is None:
        return f"{head}: {result.metric.partition(', ')[0]} {result.steps[-1].reached}."
    return f"{head}: {_share_words(share)}."


def _share_words(share: float) -> str:
    """Return the share of demand that fits, above 1 where demand can grow."""
    if share < 1:
        return f"{percent(share)} of demand fits"
    return "all demand fits" + (f", with {percent(share - 1)} to spare" if share > 1.0005 else "")


def list_steps(steps: Sequence[BoughtStep], before: float | None) -> str:
    """Return the steps with a track for each: grey before it, blue gained, green beyond all demand.

    before  place of the track before the first step, 0 to 1; None for its start
    """
    before = before or 0.0
    rows = []
    for step in steps:
        now = step.part if step.share is None else step.share
        rows.append(_step_html(step, before, now))
        before = now
    return f"<div class='planner-steps' role='list'>{''.join(rows)}</div>"


def _step_html(step: BoughtStep, before: float, now: float) -> str:
    has_share = step.share is not None
    end = max(TRACK_END, now) if has_share else 1.0
    needed = min(now, 1.0) if has_share else now
    parts = [
        ("planner-before", min(before, needed)),
        ("planner-gained", max(0.0, needed - min(before, needed))),
    ]
    if has_share and now > 1:
        already = max(0.0, before - 1)
        parts += [("planner-before", already), ("planner-beyond", max(0.0, now - 1 - already))]
    bars = "".join(
        f"<span class='{kind}' style='width:{100 * width / end:.2f}%'></span>"
        for kind, width in parts
        if width > 0
    )
    tick = f"<span class='planner-tick' style='left:{100 / end:.2f}%'></span>" if has_share else ""
    value = percent(step.share) if has_share else step.reached
    facts = " · ".join(filter(None, [step.adds, step.cost]))
    name, label = escape(shown_name(step.element)), escape(f"{shown_name(step.element)}: {value}", quote=True)
    return (
        f"<div role='listitem'><div class='planner-step'><b>{name}</b><b>{escape(value)}</b></div>"
        f"<div class='planner-step planner-dim'><span>{escape(facts)}</span>"
        f"<span>{escape(step.gain)}</span></div>"
        f"<div class='planner-track' role='img' aria-label='{label}'>{bars}{tick}</div></div>"
    )


# --- the budget ---------------------------------------------------------------------------


def _show_budget(result: FoundUpgrades, on_apply: Apply) -> None:
    """Show the Pareto curve, and the purchases of a budget."""
    st.markdown("**What a budget reaches**")
    points = result.points
    indices = list(range(len(points)))
    index = st.select_slider(
        "Budget" if result.has_costs else "Number of upgrades",
        indices,
        value=indices[-1],
        format_func=lambda index_: points[index_].cost_words,
        key=f"budget {len(points)} {points[-1].cost}",
    )
    point = points[index]
    st.html(curve.curve_html(points, index, _axis(result), result.metric))
    st.markdown(session.escape_markdown(_budget_words(point)))
    st.button(
        "Apply what this budget buys",
        key="apply budget",
        disabled=not point.elements,
        on_click=partial(on_apply, point.adjustments),
        width="stretch",
    )
    st.caption("Of all sets of upgrades that were solved; another set may reach more for the same cost.")


def _axis(result: FoundUpgrades) -> str:
    if not result.has_costs:
        return "upgrades"
    return f"cost, {result.cost_unit}" if result.cost_unit else "cost"


def _budget_words(point: BudgetPoint) -> str:
    share = "" if point.share is None else f" ({_share_words(point.share)})"
    if not point.elements:
        return f"Without an upgrade: {point.reached}{share}."
    names: Sequence[str] = [shown_name(element) for element in point.elements]
    return f"{point.reached}{share} with {few(names, MOST_NAMES)}."
