"""The bound on the mean delay of all plans, to which plans are compared."""

from __future__ import annotations

from typing import Final
from weakref import WeakKeyDictionary

from planner.search.tolerances import COARSE_GAP, STATED_GAP
from planner_models.cdnrouting.plan.check import unserved_delay
from planner_models.cdnrouting.plan.flow_problem import Kinds, delay_cost, make_flow_problem
from planner_models.cdnrouting.problem.problem import Delivery
from planner_models.cdnrouting.problem.service import servable_mbps
from planner_models.flows.convex_flow import solve_convex_flow

MAX_SIZE: Final = 20_000
"""Targets times links up to which the bound is computed for the price of anarchy."""
SMALL: Final = 2_000
"""Targets times links up to which the gap of searches is that of optimality by default."""
_BOUNDS: WeakKeyDictionary[Delivery, float] = WeakKeyDictionary()


def default_gap(problem: Delivery) -> float:
    """Return the gap at which searches end where options state none."""
    network = problem.network
    return STATED_GAP if len(network.targets) * len(network.tail) <= SMALL else COARSE_GAP


def mean_delay(problem: Delivery, delayed: float) -> float:
    """Return the mean delay, ms, of all traffic for the delay of served traffic, Mbit/s times ms."""
    lost = float((problem.group_mbps - servable_mbps(problem)).sum())
    lost += float(problem.rate_mbps[~problem.is_connected].sum())
    lost = lost if lost > 1e-9 * problem.offered_mbps else 0.0
    return (delayed + lost * unserved_delay(problem)) / max(problem.offered_mbps, 1e-300)


def delay_bound(problem: Delivery) -> float | None:
    """Return the mean delay, ms, that no plan is below; None for problems too large to ask at once."""
    network = problem.network
    if len(network.targets) * len(network.tail) > MAX_SIZE:
        return None
    if problem not in _BOUNDS:
        kinds = Kinds.of(problem)
        flow = make_flow_problem(problem, delay_cost(problem), kinds.choice())
        solved = solve_convex_flow(flow, gap=default_gap(problem))
        _BOUNDS[problem] = mean_delay(problem, max(solved.bound, 0.0))
    return _BOUNDS[problem]
