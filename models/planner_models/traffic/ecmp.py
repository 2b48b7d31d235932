"""Equal-cost multipath: at every hop, an even split over all next hops of equal weight."""

from __future__ import annotations

import time

import scipy.sparse as sp

from planner.options import Options
from planner.proof import Proof, Status
from planner.system import Decision
from planner_models.traffic import routing, splits
from planner_models.traffic.problem import Traffic
from planner_models.traffic.routing import Routing


def route(
    problem: Traffic,
    *,
    options: Options = Options(),  # noqa: ARG001, B008 - nothing is solved
    previous: Decision[Routing] | None = None,  # noqa: ARG001
) -> Decision[Routing]:
    """Even split at every hop over the next hops on shortest paths, as OSPF with ECMP does.

    Looks at link weights only: every demand is served, links may be overloaded.

    source  RFC 2328, 16.8; RFC 2992
    """
    return _along(problem, splits.even(problem, splits.shortest_links(problem)))


def route_single(
    problem: Traffic,
    *,
    options: Options = Options(),  # noqa: ARG001, B008
    previous: Decision[Routing] | None = None,  # noqa: ARG001
) -> Decision[Routing]:
    """Every demand on one shortest path; of equal paths the one whose links stand first in the table.

    Looks at link weights only: every demand is served, links may be overloaded.

    source  RFC 2328, 16.1
    """
    return _along(problem, splits.first(problem, splits.shortest_links(problem)))


def _along(problem: Traffic, ratios: sp.coo_array) -> Decision[Routing]:
    start = time.perf_counter()
    plan = routing.by_pair(problem, splits.follow(problem, ratios, problem.rate_mbps))
    proof = Proof(status=Status.FEASIBLE, seconds=time.perf_counter() - start)
    return Decision(plan=plan, proof=proof, keeps=frozenset({"demand"}))
