"""Metrics of system `capacity`.

The traffic that each class gets of a plan: without failures, and in the failure that hurts it most.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pandas as pd

from planner.arrays import Bools, Floats
from planner.contract.metrics import MONEY, Headline, less, more
from planner.contract.plan import Breakdown
from planner.contract.tolerances import allowance
from planner.formatting import amount, counted
from planner_models.capacity.plan.check import Evaluation, evaluate
from planner_models.capacity.plan.plan import Purchases
from planner_models.capacity.problem.problem import CapacityPlanning
from planner_models.capacity.problem.tables import FITS
from planner_models.capacity.routing import FlowProgram, limit_by_priority, usable_share

MOST_FAILURES: Final = 20
"""Failures that a table shows, the worst first."""
METRICS: Final = (
    more(
        "delivered_mbps",
        "Mbit/s",
        "demand that fits in the worst state and year; a state is a failure, or none. What need not fit in a "
        "failure does not count against it: demands that it cuts off whatever is bought, and the share that "
        "a class leaves unprotected",
    ),
    more("offered_mbps", "Mbit/s", "demand of the year with the most"),
    less("unserved_mbps", "Mbit/s", "demand that does not fit in the worst state and year"),
    less(
        "total_cost",
        MONEY,
        "cost of purchases, of what is there already, and of routing without failures, in all years",
    ),
    less("cost_of_all", MONEY, "total cost of a plan that delivers all demands; unknown where it does not"),
    less("purchase_cost", MONEY, "cost of modules and setup, in all years"),
    less("module_cost", MONEY, "cost of modules, in all years"),
    less(
        "lease_cost",
        MONEY,
        "cost of leased modules in all years, a part of that of modules; unknown where none can be leased",
    ),
    less("setup_cost", MONEY, "cost of the first module on each link beside the module's own, in all years"),
    less("routing_cost", MONEY, "cost of the traffic on links in the state without failures, in all years"),
    less("installed_cost", MONEY, "cost of the capacity that is there already"),
    less("over_budget", MONEY, "cost of purchases beyond the budget; unknown without a budget"),
    less("upgraded_links", "links", "links that modules are bought for"),
    less("bought_modules", "modules", "modules that are bought"),
    less("added_mbps", "Mbit/s", "capacity that is bought"),
    less("max_utilization", "", "largest load over capacity without failures, in the last year"),
    more(
        "survived_failures",
        "failures",
        "failures under which all fits that must, in every year, and that cut nothing off",
    ),
    more("failures", "failures", "failures to survive"),
    less(
        "expected_unserved_mbps",
        "Mbit/s",
        "probability of each failure times what does not fit under it in the worst year, added up; unknown "
        "without probabilities",
    ),
    less("cut_off_mbps", "Mbit/s", "demand that the worst failure cuts off, whatever is bought"),
    less("cutting_failures", "failures", "failures that cut demands off, whatever is bought"),
    more(
        "no_failure_mbps",
        "Mbit/s",
        "demand that is delivered without failures, in the year with the most",
    ),
    more(
        "protected_mbps",
        "Mbit/s",
        "demand that must fit under every failure, in the year with the most; unknown without classes",
    ),
    more(
        "worst_failure_mbps",
        "Mbit/s",
        "demand of a class that is delivered in its worst failure, where all demands are offered in full and "
        "classes are served in the order of their priority; by class only",
    ),
    less(
        "unprotected_mbps",
        "Mbit/s",
        "demand that need not fit in a failure, as its class is not protected, in the year with the most",
    ),
)
MOST_PROGRAMS: Final = 3_000
"""Linear programs up to which failures are tried."""


def say_unavoidable(metrics: Mapping[str, float | None]) -> str:
    """Return the sentence on unavoidable losses in failures: demands cut off, unprotected shares."""
    parts = []
    cut, cutting = metrics.get("cut_off_mbps") or 0.0, metrics.get("cutting_failures") or 0.0
    if cutting:
        of = f"{cutting:,.0f} of {metrics.get('failures') or 0.0:,.0f} failures"
        verb = "cuts off" if cutting == 1 else "cut off up to"
        parts.append(f"{of} {verb} {amount(cut, 'Mbit/s')}, which no purchase avoids.")
    unprotected = metrics.get("unprotected_mbps") or 0.0
    if unprotected > FITS * (metrics.get("offered_mbps") or 0.0):
        parts.append(
            f"Classes leave {amount(unprotected, 'Mbit/s')} unprotected, which need not survive a failure."
        )
    return " ".join(parts)


def say_period(problem: CapacityPlanning) -> str:
    """Return the time that a cost is for: `over 4 years`; "" for purchases of one year."""
    return "" if problem.years is None else f"over {counted(len(problem.years), 'years')}"


HEADLINE: Final = Headline(
    metric="delivered_mbps",
    verb="delivers {} of required demand in the worst case",
    total="offered_mbps",
    then="total_cost",
    then_words="at a cost of",
    then_period=say_period,
    losses={"unserved_mbps": "leaves {} unserved in the worst case"},
    required={"budget": "over_budget"},
    unavoidable=say_unavoidable,
    table=(
        "delivered_mbps",
        "unserved_mbps",
        "total_cost",
        "purchase_cost",
        "upgraded_links",
        "max_utilization",
        "survived_failures",
        "cut_off_mbps",
        "over_budget",
    ),
)
LIMITS: Final = {
    "limits": "links with more modules than allowed",
    "budget": "exceeded budgets",
    "capacity": "overloaded links",
    "states": "states in which not all demands fit",
}


def measure(
    problem: CapacityPlanning,
    plan: Purchases,
    previous: Purchases | None,  # noqa: ARG001 - the signature of `measure`
) -> dict[str, float | None]:
    """Return a value for every metric."""
    evaluation = evaluate(problem, plan)
    offered = float(problem.rate_mbps.sum(axis=1).max(initial=0.0))
    unserved = evaluation.worst_shed
    total = evaluation.purchase_cost + evaluation.routing_cost + problem.installed_cost
    bought = evaluation.counts.sum(axis=0)
    full, load = evaluation.capacity[-1][evaluation.row_line], evaluation.load[-1]
    used = load > 0
    has_room = full > 0
    utilization = float((load[used & has_room] / full[used & has_room]).max(initial=0.0))
    states, probability = len(problem.states.names), problem.states.probability
    cut = cut_off_by_state(problem)
    return {
        "delivered_mbps": offered - unserved,
        "offered_mbps": offered,
        "unserved_mbps": unserved,
        "total_cost": total,
        "cost_of_all": total if unserved <= problem.rounding_share * offered else None,
        "purchase_cost": evaluation.purchase_cost,
        "module_cost": evaluation.module_cost,
        "lease_cost": _lease_cost(problem, evaluation),
        "setup_cost": evaluation.setup_cost,
        "routing_cost": evaluation.routing_cost,
        "installed_cost": problem.installed_cost,
        "over_budget": None
        if problem.budget is None
        else max(evaluation.purchase_cost - problem.budget, 0.0),
        "upgraded_links": float(len(np.unique(problem.options.link[bought > 0]))),
        "bought_modules": float(bought.sum()),
        "added_mbps": float(bought @ problem.options.size),
        "max_utilization": utilization,
        "survived_failures": float(is_survived(problem, evaluation.shed).sum()) if states else None,
        "failures": float(states) if states else None,
        "expected_unserved_mbps": None
        if probability is None
        else float(evaluation.shed[:, 1:].max(axis=0) @ probability),
        "cut_off_mbps": float(cut.max(initial=0.0)) if states else None,
        "cutting_failures": float((cut > 0).sum()) if states else None,
        "no_failure_mbps": float(evaluation.sent[int(np.argmax(problem.rate_mbps.sum(axis=1)))].sum()),
        "protected_mbps": offered - _unprotected(problem) if states and problem.has_classes else None,
        "worst_failure_mbps": None,
        "unprotected_mbps": _unprotected(problem) if states and problem.has_classes else None,
    }


def _lease_cost(problem: CapacityPlanning, evaluation: Evaluation) -> float | None:
    """Return the cost of leased modules in all years; None where no module can be leased."""
    leased = problem.options.leased
    if not leased.any():
        return None
    return float(problem.price_factor @ (evaluation.counts[:, leased] @ problem.options.cost[leased]))


def cut_off_by_state(problem: CapacityPlanning) -> Floats:
    """Return the demand that each state cuts off, beyond that without any route, (1 + S,), Mbit/s."""
    is_cut = problem.cut_off & ~problem.cut_off[0]
    return np.asarray((problem.rate_mbps @ is_cut.T).max(axis=0, initial=0.0))


def is_survived(problem: CapacityPlanning, shed: Floats) -> Bools:
    """Return whether all fits that must under each failure, and nothing is cut off, (S,).

    shed  (Y, 1 + S) rate that is shed in each year and state, Mbit/s
    """
    fits = ~leaves_out(problem, shed)[:, 1:].any(axis=0)
    return np.asarray(fits & (cut_off_by_state(problem)[1:] <= 0))


def leaves_out(problem: CapacityPlanning, shed: Floats) -> Bools:
    """Return whether a year and state leaves out demand that must fit, (Y, 1 + S).

    A solver's rounding is none; demands without a path are some, at any rate.

    shed  (Y, 1 + S) rate that is shed in each year and state, Mbit/s
    """
    never = (problem.rate_mbps * problem.cut_off[0]).sum(axis=1)[:, None]
    offered = float(problem.rate_mbps.sum(axis=1).max(initial=0.0))
    return np.asarray((shed > problem.rounding_share * offered) | (shed - never > allowance(0.0, never)))


def _unprotected(problem: CapacityPlanning) -> float:
    """Return the rate that classes leave unprotected in failures, in the year with the most, Mbit/s."""
    share = problem.class_table["protected_share"].to_numpy(float)[problem.class_of]
    return float((problem.rate_mbps @ (1 - share)).max(initial=0.0))


def break_down(problem: CapacityPlanning, plan: Purchases) -> Breakdown | None:
    """Return the traffic of each class; without classes the unserved traffic under each failure, worst first.

    None where there are no classes and all fits.
    """
    evaluation = evaluate(problem, plan)
    if problem.has_classes:
        return break_down_classes(problem, evaluation)
    frame = tabulate_failures(problem, evaluation)
    if frame is None or not len(frame):
        return None
    return Breakdown(title="What does not fit under each failure", group="failure", frame=frame)


def tabulate_failures(problem: CapacityPlanning, evaluation: Evaluation) -> pd.DataFrame | None:
    """Return failures under which not all fits, the worst first; None without failures."""
    names = problem.states.names
    if not names:
        return None
    worst = evaluation.shed[:, 1:].max(axis=0)
    offered = float(problem.rate_mbps.sum(axis=1).max(initial=0.0))
    order = np.argsort(-worst, kind="stable")
    is_left_out = np.any(leaves_out(problem, evaluation.shed)[:, 1:], axis=0)
    order = order[is_left_out[order]][:MOST_FAILURES]
    return pd.DataFrame(
        {
            "failure": [names[row] for row in order.tolist()],
            "unserved_mbps": worst[order],
            "delivered_mbps": offered - worst[order],
        }
    )


def break_down_classes(problem: CapacityPlanning, evaluation: Evaluation) -> Breakdown:
    """Return the offered and served traffic of each class in the busiest year, the highest priority first.

    In a failure all demands are offered in full, and classes are served in the order of their priority, those
    of one priority together.
    """
    year = int(np.argmax(problem.rate_mbps.sum(axis=1)))
    table = problem.class_table
    rate, sent = problem.rate_mbps[year], evaluation.sent[year]
    count = len(table)
    offered: Floats = np.bincount(problem.class_of, weights=rate, minlength=count).astype(float)
    columns: dict[str, Any] = {
        "class": table["class"].astype(str),
        "offered_mbps": offered,
        "no_failure_mbps": np.bincount(problem.class_of, weights=sent, minlength=count),
    }
    states = len(problem.states.names)
    if states and states * problem.class_table["priority"].nunique() <= MOST_PROGRAMS:
        program = FlowProgram(problem)
        got: Floats = np.array(
            [
                _deliver(problem, program, evaluation.capacity[year], state, rate)
                for state in range(1, 1 + states)
            ]
        )
        got = np.where(offered - got <= problem.rounding_share * rate.sum(), offered, got)
        columns["protected_mbps"] = offered * table["protected_share"].to_numpy(float)
        columns["worst_failure_mbps"] = got.min(axis=0)
    title = "Traffic by class, the highest priority first"
    return Breakdown(title=title, group="class", frame=pd.DataFrame(columns))


def _deliver(
    problem: CapacityPlanning, program: FlowProgram, capacity: Floats, state: int, rate: Floats
) -> Floats:
    """Return the delivered traffic of each class in a state, (C,), Mbit/s."""
    offered = np.where(problem.cut_off[state] | problem.cut_off[0], 0.0, rate)
    up = usable_share(problem, state) * capacity
    limits = None
    if len(program.levels) > 1:
        limits = limit_by_priority(program, up, offered)
    shed = program.solve(up, offered, limits=limits).shed
    got = np.bincount(problem.class_of, weights=offered - shed, minlength=len(problem.class_table))
    return got.astype(float)
