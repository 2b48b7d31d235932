"""Reservations as routers make them: constrained shortest paths with setup and hold priorities (RSVP-TE).

Each demand is a label-switched path that is admitted whole, on one path, or refused. A link has, at each
priority, the bandwidth that reservations of this hold priority and stronger ones leave. A reservation takes
its path over links with enough of it, and preempts weaker ones that then have too little.
"""

from __future__ import annotations

from planner.contract.design import Decision
from planner.options import Options
from planner.search.deadline import Deadline
from planner.search.judged import feasible
from planner_models.traffic.designs.reserved_paths import (
    Order,
    PathSearch,
    Reservations,
    Tie,
    admit_paths,
    signal_all,
)
from planner_models.traffic.designs.routable import shed_unreachable_by_demand
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.problem.problem import Traffic


@shed_unreachable_by_demand
def route(
    problem: Traffic, *, order: Order = "priority", tie: Tie = "first", options: Options = Options()
) -> Decision[Routing]:
    """Admit each demand whole on the shortest path with enough available bandwidth, by setup priority.

    Paths keep latency limits and rules. A demand without a path is shed. One that is preempted is signalled
    again after the others, and so are those that were refused before. At the time limit, demands that are not
    signalled yet are shed.

    source  RFC 3209 (RSVP-TE), RFC 3630 (available bandwidth by priority), RFC 4655, 3.1 (CSPF)
    """
    reservations = Reservations.of(problem, problem.setup_priority, problem.hold_priority)
    signal_all(problem, reservations, PathSearch(problem, tie), order, Deadline.of(options))
    plan = admit_paths(problem, reservations.path)
    return Decision(plan=plan, proof=feasible(), guarantees=frozenset({"capacity"}))
