"""Explanation of a plan: its purchases as a ladder, the gain of each step, and the value of a budget."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, Any, Final

import numpy as np
import pandas as pd
from pydantic import Field

from planner import clock
from planner.arrays import Bools, Floats
from planner.contract.metrics import MONEY
from planner.contract.proof import Proof
from planner.contract.studies import Decided, Explanation, Section
from planner.errors import PlannerError
from planner.formatting import amount, counted, counted_of, sizes
from planner.options import Options
from planner.search.tolerances import ROUNDING
from planner_models.capacity.designs.greedy import PurchaseSearch, purchase_cost
from planner_models.capacity.designs.upgrade_times import list_upgrade_times
from planner_models.capacity.plan.check import Evaluation, evaluate
from planner_models.capacity.plan.metrics import (
    MOST_FAILURES,
    cut_off_by_state,
    is_survived,
    leaves_out,
    measure,
    tabulate_failures,
)
from planner_models.capacity.plan.plan import Purchases
from planner_models.capacity.problem.problem import CapacityPlanning
from planner_models.capacity.routing import FlowProgram, capacity_by_year, shed_by_state

MOST_PROGRAMS: Final = 3_000
"""Linear programs that a ladder may take; larger ones join several links in a step."""

BUDGET_LIMIT_S: Final = 10.0
"""CPU seconds of each budget, unless the user's limit is shorter; at it the bound is still valid. With
seconds on the wall, answers would differ on a busy machine."""

EQUAL_COST: Final = ROUNDING
"""Relative difference of costs that count as the same."""

Part = tuple[Section | None, str]


def explain(
    problem: CapacityPlanning,
    decided: Decided,
    *,
    steps: Annotated[int, Field(ge=1, description="most steps of the ladder of purchases")] = 12,
    budgets: Annotated[
        int, Field(ge=0, description="budgets between nothing and the plan's cost that are tried; 0: none")
    ] = 3,
    threshold: Annotated[
        float, Field(gt=0, le=1, description="utilization without failures at which a link is to be upgraded")
    ] = 0.8,
    growth_per_year: Annotated[
        float | None,
        Field(
            gt=0,
            le=10,
            description="share by which all demands grow each year after the plan's last; default: unknown",
        ),
    ] = None,
    options: Options = Options(),
) -> Explanation:
    """Explain the purchases in their order, the harmful failures, and the value of smaller budgets.

    The ladder takes the plan's purchases in the order in which they make most traffic fit for their cost.
    Budgets are tried with the same design. The last table says in which year each link reaches `threshold`.
    """
    plan: Purchases = decided.decision.plan  # type: ignore[assignment]
    evaluation = evaluate(problem, plan)
    sentences, sections = [_say_proof(decided)], []
    for section, sentence in (
        _climb_ladder(problem, evaluation, steps),
        _list_failures(problem, evaluation),
        _list_cut_off(problem),
        list_upgrade_times(problem, evaluation, threshold, growth_per_year),
        _try_budgets(problem, decided, evaluation, budgets, options),
        *([] if decided.baseline is None else [_compare(problem, evaluation, decided)]),
    ):
        if sentence:
            sentences.append(sentence)
        if section is not None:
            sections.append(section)
    return Explanation(sentences=tuple(sentences), sections=tuple(sections))


def _money(cost: float) -> str:
    return f"{cost:,.6g} {MONEY}"


def _say_proof(decided: Decided) -> str:
    """Return the proof of the plan."""
    proof, cost = decided.decision.proof, decided.metrics["total_cost"] or 0.0
    none = "No plan" if proof.bound_scope is None else f"Of all {proof.bound_scope}, none"
    ranks = {rank.metric: rank for rank in proof.ranks}
    if "total_cost" in ranks:
        lower = ranks["total_cost"].bound
        delivery_note = ""
        if proof.metric == "delivered_mbps":
            reached = amount(ranks["delivered_mbps"].bound, "Mbit/s")
            delivery_note = f"{none} delivers more than {reached} in the worst case: proven. "
        if cost - lower <= 1e-6 * max(abs(cost), 1e-9):
            return f"{delivery_note}{none} that delivers as much costs less than {_money(cost)}: proven."
        share = (cost - lower) / max(abs(cost), 1e-9)
        return (
            f"{delivery_note}{none} that delivers as much costs less than {_money(lower)}: this one, for "
            f"{_money(cost)}, is within {max(share, 1e-4):.2%} of the least."
        )
    if proof.bound is not None and proof.metric == "delivered_mbps":
        return f"{none} delivers more than {amount(proof.bound, 'Mbit/s')} in the worst case: proven."
    return f"The plan costs {_money(cost)}; this design proves no bound, but optimum and rounding do."


def _climb_ladder(problem: CapacityPlanning, evaluation: Evaluation, steps: int) -> Part:
    """Report the plan's purchases in the order in which they make most traffic fit for their cost."""
    offered = float(problem.rate_mbps.sum(axis=1).max(initial=0.0))
    if not evaluation.counts.any():
        return None, "Nothing is bought."
    program = FlowProgram(problem)
    states = len(problem.year_numbers) * (1 + len(problem.states.names))
    shown = max(1, min(steps, MOST_PROGRAMS // states))
    groups = _order_purchases(problem, evaluation)
    size = -(-len(groups) // shown)
    counts = np.zeros_like(evaluation.counts)
    rows = [_rung(problem, program, counts, "before", offered)]
    for first in range(0, len(groups), size):
        group = groups[first : first + size]
        for year, line in group:
            here = problem.options.link == line
            counts[year, here] = evaluation.counts[year, here]
        rows.append(_rung(problem, program, counts, _name_group(problem, evaluation, group), offered))
    frame = pd.DataFrame(rows)
    frame.insert(2, "step_cost", np.diff(frame["cost"].to_numpy(float), prepend=0.0))
    section = Section(
        title="Ladder of purchases",
        frame=frame,
        units={"cost": MONEY, "delivered_mbps": "Mbit/s", "survives": "failures"},
        note="in the order in which they make most traffic fit for their cost; delivered: in the worst case; "
        "survives: failures under which all fits that must, and nothing is cut off",
        role="purchases",
    )
    lines = len(np.unique(problem.options.link[evaluation.counts.sum(axis=0) > 0]))
    last = rows[-1]["delivered_mbps"]
    last = offered if offered - last <= problem.rounding_share * offered else last
    sentence = (
        f"It buys {sizes({'modules': int(evaluation.counts.sum())})} for {sizes({'links': lines})} at a "
        f"cost of {_money(evaluation.purchase_cost)}; the worst case then delivers {amount(last, 'Mbit/s')}, "
        f"before {amount(rows[0]['delivered_mbps'], 'Mbit/s')}."
    )
    return section, sentence


def _order_purchases(problem: CapacityPlanning, evaluation: Evaluation) -> list[tuple[int, int]]:
    """Return the year and link of each purchase, in the order in which they save most for their cost."""
    search = PurchaseSearch.start(problem)
    search.only(evaluation.counts)
    search.climb()
    order = [(step.year, int(problem.options.link[step.module])) for step in search.steps]
    others = [
        (int(year), int(problem.options.link[module]))
        for year, module in np.argwhere(evaluation.counts > 0).tolist()
    ]
    return list(dict.fromkeys([*order, *others]))


def _rung(
    problem: CapacityPlanning, program: FlowProgram, counts: Floats, name: str, offered: float
) -> dict[str, Any]:
    """Return the row of a ladder: the served traffic with the purchases so far."""
    shed = shed_by_state(problem, capacity_by_year(problem, counts), program)
    shed += (problem.rate_mbps * problem.cut_off[0]).sum(axis=1)[:, None]
    row: dict[str, Any] = {
        "purchase": name,
        "cost": purchase_cost(problem, counts),
        "delivered_mbps": offered - float(shed.max(initial=0.0)),
    }
    if len(problem.states.names):
        row["survives"] = int(is_survived(problem, shed).sum())
    return row


def _name_group(problem: CapacityPlanning, evaluation: Evaluation, group: list[tuple[int, int]]) -> str:
    """Return purchases in words: `a<->b: 2 x 10G`."""
    parts = []
    for year, line in group:
        modules = np.flatnonzero((problem.options.link == line) & (evaluation.counts[year] > 0)).tolist()
        words = " + ".join(
            f"{evaluation.counts[year, module]:.0f} x {problem.options.name[module]}" for module in modules
        )
        when = f" in {problem.year_numbers[year]}" if problem.years is not None else ""
        parts.append(f"{problem.names[line]}: {words}{when}")
    shown = ", ".join(parts[:2])
    return shown + (f" and {len(parts) - 2} more links" if len(parts) > 2 else "")


def _list_failures(problem: CapacityPlanning, evaluation: Evaluation) -> Part:
    """Report the failures under which most is left unserved."""
    frame = tabulate_failures(problem, evaluation)
    if frame is None:
        return None, "No failure is to be survived."
    count = len(problem.states.names)
    lost = int(leaves_out(problem, evaluation.shed)[:, 1:].any(axis=0).sum())
    if not lost:
        is_all = bool((problem.required_share[1:] == 1).all())
        what = "All demands fit" if is_all else "What must fit does fit"
        return None, f"{what} under {_each_failure(count)}."
    section = Section(
        title="Failures that leave most unserved",
        frame=frame,
        units={"unserved_mbps": "Mbit/s", "delivered_mbps": "Mbit/s"},
    )
    return section, f"Under {counted_of(lost, count, 'failures')} not all demands fit."


def _each_failure(count: int) -> str:
    """Return words for all failures: `the one failure`, `each of 3 failures, checked one by one`."""
    return "the one failure" if count == 1 else f"each of {count:,} failures, checked one by one"


def _say_unroutable(problem: CapacityPlanning) -> str:
    """Return the demand without a route even without failures, and the reason."""
    off = problem.cut_off[0]
    if not off.any():
        return ""
    rate = amount(float(problem.rate_mbps[:, off].sum(axis=1).max(initial=0.0)), "Mbit/s")
    why = _why_cut_off(problem, off)
    return f"{rate} of demand have no route, whatever is bought: {why}."


def _why_cut_off(problem: CapacityPlanning, off: Bools) -> str:
    """Return the reason for which demands (D,) have no route."""
    paths = problem.tunnel_paths
    if paths is None or not (paths.pair_of[off] >= 0).all():
        return "no path is left"
    if np.isfinite(paths.limit_ms[paths.pair_of[off]]).all():
        return "no path within the latency limit is left"
    return "no tunnel is left"


def _list_cut_off(problem: CapacityPlanning) -> Part:
    """Report the failures that cut demands off, whatever is bought."""
    cut = problem.cut_off[1:] & ~problem.cut_off[0]
    unroutable = _say_unroutable(problem)
    rate = cut_off_by_state(problem)[1:]
    order = np.argsort(-rate, kind="stable")
    order = order[rate[order] > 0]
    if not len(order):
        return None, unroutable
    ends = problem.demands["source"] + " to " + problem.demands["target"]
    rows = []
    for state in order[:MOST_FAILURES].tolist():
        demands_cut = cut[state]
        names = list(dict.fromkeys(ends[demands_cut]))
        shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        rows.append(
            {
                "failure": problem.states.names[state],
                "cut_off_mbps": float(rate[state]),
                "demands": shown,
                "reason": _why_cut_off(problem, demands_cut),
            }
        )
    section = Section(
        title="Demands that a failure cuts off, whatever is bought",
        frame=pd.DataFrame(rows),
        units={"cut_off_mbps": "Mbit/s"},
    )
    count = len(problem.states.names)
    verb = "cuts demands" if len(order) == 1 else "cut demands"
    words = f"{counted_of(len(order), count, 'failures')} {verb} off, whatever is bought."
    return section, " ".join(filter(None, [unroutable, words]))


def _budget_values(problem: CapacityPlanning, evaluation: Evaluation, budgets: int) -> Iterator[float]:
    """Yield budgets from nothing to the cost of the plan's purchases, at even distances."""
    for step in range(budgets):
        yield evaluation.purchase_cost * step / budgets
    yield min(evaluation.purchase_cost, problem.budget or evaluation.purchase_cost)


def _bound_delivered(proof: Proof, offered_mbps: float) -> float | None:
    """Return the bound on the delivered traffic, Mbit/s; None where the proof has none."""
    bounds = [rank.bound for rank in proof.ranks if rank.metric == "delivered_mbps"]
    if bounds:
        return bounds[0]
    if proof.metric == "cost_of_all":  # no plan delivers more than all
        return offered_mbps
    return proof.bound if proof.metric == "delivered_mbps" else None


def _try_budgets(
    problem: CapacityPlanning, decided: Decided, evaluation: Evaluation, budgets: int, options: Options
) -> Part:
    """Report the delivered traffic of smaller budgets, by the same design."""
    if not budgets or evaluation.purchase_cost <= 0:
        return None, ""
    limit_s = min(BUDGET_LIMIT_S, options.time_limit_s or BUDGET_LIMIT_S)
    options = replace(options, time_limit_s=limit_s)
    rows: list[dict[str, Any]] = []
    for budget in _budget_values(problem, evaluation, budgets):
        changed = problem.with_network(budget=budget)
        try:
            with clock.count_cpu_seconds():
                decision = decided.design.run(changed, options=options, parameters=decided.parameters)
        except PlannerError:
            continue
        if decision.plan is None:
            continue
        figures = measure(changed, decision.plan, None)
        if (figures["over_budget"] or 0.0) > 1e-6 * max(budget, 1.0):
            continue  # a design that does not keep a budget
        rows.append(
            {
                "budget": budget,
                "spent": figures["purchase_cost"],
                "delivered_mbps": figures["delivered_mbps"],
                "at_most_mbps": _bound_delivered(decision.proof, figures["offered_mbps"] or 0.0),
                "survives": figures["survived_failures"],
            }
        )
    if not rows:
        return None, f"{decided.design.name} keeps no budget; optimum and greedy do."
    frame = pd.DataFrame(rows).dropna(axis="columns", how="all")
    section = Section(
        title="What a budget delivers in the worst case",
        frame=frame,
        units={
            "budget": MONEY,
            "delivered_mbps": "Mbit/s",
            "at_most_mbps": "Mbit/s",
            "survives": "failures",
        },
        note=f"{decided.design.label} decided again for each budget; "
        "at most: no plan within it delivers more",
        role="budgets",
    )
    return section, ""


def _compare(problem: CapacityPlanning, evaluation: Evaluation, decided: Decided) -> Part:
    """Report the links for which the plan buys more or less than the baseline."""
    before = evaluate(problem, decided.baseline)
    change = evaluation.capacity[-1] - before.capacity[-1]
    order = np.argsort(-np.abs(change), kind="stable")
    order = order[change[order] != 0]
    cost = evaluation.purchase_cost - before.purchase_cost
    frame = pd.DataFrame(
        {
            "link": [problem.names[line] for line in order.tolist()],
            "before": before.capacity[-1][order],
            "now": evaluation.capacity[-1][order],
            "change": change[order],
        }
    )
    units = dict.fromkeys(["before", "now", "change"], "Mbit/s")
    section = Section(title=f"Capacity against {decided.baseline_name}", frame=frame.head(20), units=units)
    if not len(frame) and abs(cost) <= EQUAL_COST * max(evaluation.purchase_cost, 1.0):
        return None, f"It buys the same capacity as {decided.baseline_name}."
    words = f"Against {decided.baseline_name} it buys {'more' if cost > 0 else 'less'} by {_money(abs(cost))}"
    if abs(cost) <= EQUAL_COST * max(evaluation.purchase_cost, 1.0):
        words = f"It buys for the same cost as {decided.baseline_name}"
    links = counted(len(frame), "links", "differ")
    return (section if len(frame) else None), f"{words}; {links}."
