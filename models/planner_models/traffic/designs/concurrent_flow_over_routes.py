"""The approximation scheme for concurrent flow over tunnels, given paths, or routes within limits.

Where all routes within limits count, the shortest of each demand is found after each phase, and joins the
known ones; within a phase demands take the shortest known route. The lengths bound the optimum whatever
routes are known, so that the ratio is what objective and bound prove.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
import scipy.sparse as sp

from planner.arrays import Floats
from planner.compiled import njit, run_small_in_python
from planner.contract.design import Decision
from planner.options import Options
from planner.search.deadline import Deadline
from planner.search.judged import undecided
from planner.search.tolerances import SUM_ROUNDING
from planner_models.flows import path_flow_program
from planner_models.flows.link_flow_program import METRIC_OF
from planner_models.graphs.indexing import sum_by_index
from planner_models.traffic.designs.column_generation.column_generation import MinMaxObjective
from planner_models.traffic.designs.column_generation.decision import decide_without_demand
from planner_models.traffic.designs.concurrent_flow_phases import Phases
from planner_models.traffic.designs.flow_decision import SolvedFlows, decide_by_plan
from planner_models.traffic.designs.restricted_routes.route_choice import RouteChoice
from planner_models.traffic.plan import plan as routing
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.problem.problem import Traffic

SAME: Final = SUM_ROUNDING  # relative: a remainder below it is rounding


def route(
    problem: Traffic,
    routes: RouteChoice,
    *,
    objective: MinMaxObjective,
    epsilon: float,
    gap: float,
    deadline: Deadline,
    options: Options,
    backend: str,
) -> Decision[Routing]:
    """Return the decision for demands that all have a route; the bound holds for the routes of `routes`.

    gap    relative, at which the search ends
    deadline  at which it ends
    """
    if not (problem.rate_mbps > 0).any():
        return decide_without_demand(problem, objective)
    scheme = _RouteScheme(problem, routes, epsilon, deadline)
    for iteration in scheme.iterate():
        if iteration.utilization - iteration.bound <= gap * iteration.utilization:
            break
    limit = (1 / scheme.bound if scheme.bound > 0 else None) if objective == "concurrent" else scheme.bound
    proof = undecided(bound=limit, metric=METRIC_OF[objective], bound_scope=routes.scope, backend=backend)
    if np.isinf(scheme.utilization):
        return Decision(plan=None, proof=proof)
    # the ratio alone makes no plan optimal: that takes a gap in the options
    exact = options if options.gap is not None else replace(options, gap=0.0)
    return decide_by_plan(problem, objective, scheme.flows(), proof, exact)


class _RouteScheme(Phases):
    """The flow sent so far over each route known, and the lengths of links."""

    def __init__(self, problem: Traffic, routes: RouteChoice, epsilon: float, deadline: Deadline) -> None:
        super().__init__(problem.capacity_mbps, epsilon, deadline)
        self.problem, self.routes = problem, routes
        self.wanted = np.flatnonzero(problem.rate_mbps > 0)
        self.rate = problem.rate_mbps[self.wanted]
        self.amount = np.zeros(len(routes.demand))
        self.times = 0.0  # multiple of the demands that has been sent

    def _first_load(self) -> Floats:
        self._find_routes()
        uses, demand = self.routes.uses, self.routes.demand
        order = np.lexsort((uses @ self.length, demand))
        _, first = np.unique(demand[order], return_index=True)
        return np.asarray(uses[order[first]].T @ self.rate)

    def _find_routes(self) -> None:
        """Add the shortest routes to the known ones, and update the bound."""
        distance, added = self.routes.find_cheapest(self.wanted, self.length)
        self.bound = max(self.bound, float(self.rate @ distance) / self._volume())
        self.amount = np.r_[self.amount, np.zeros(added)]

    def _run_phase(self, scale: float) -> bool:
        if self._is_late():
            return False
        uses, demand = self.routes.uses, self.routes.demand
        order = np.argsort(demand, kind="stable")
        first = np.r_[np.searchsorted(demand[order], self.wanted), len(order)]
        _send(
            first,
            order,
            uses.indptr.astype(np.int64),
            uses.indices.astype(np.int64),
            uses.data,
            self.capacity,
            scale * self.rate,
            self.epsilon,
            self.length,
            self.amount,
        )
        self.times += scale
        self._scale_lengths()
        load = uses.T @ self.amount / self.times
        self.utilization = float((load / self.capacity).max())
        self._find_routes()
        return True

    def _columns(self) -> int:
        return len(self.amount)

    def flows(self) -> SolvedFlows:
        """Return the plan in which the routes of a demand share it as they did over all phases."""
        problem = self.problem
        paths, amount = self.routes.routes(self.amount)
        sent = sum_by_index(paths.demand, amount, len(problem.demands))
        rate = amount * (problem.rate_mbps / np.where(sent > 0, sent, 1.0))[paths.demand]

        def make_plan(share: Floats | float) -> Routing:
            shared = rate * np.broadcast_to(share, len(problem.demands))[paths.demand]
            by_demand = sp.csr_array(
                (shared, (paths.demand, np.arange(len(shared)))), shape=(len(problem.demands), len(shared))
            )
            table = path_flow_program.route_table(problem, paths, shared)
            return routing.routing_by_demand(problem, by_demand @ paths.uses, table)

        return SolvedFlows(np.where(sent > 0, problem.rate_mbps, 0.0), make_plan)


@run_small_in_python(max_elements=1_000)
@njit(cache=True)
def _send(first, order, start, link, share, capacity, rate, epsilon, length, amount):  # type: ignore[no-untyped-def]
    """Send each demand over its shortest routes, in parts that fill a link; lengths grow in place.

    first  (K + 1,): the routes of demand k are order[first[k] : first[k + 1]]
    """
    for k in range(len(rate)):
        remaining = rate[k]
        while remaining > 0.0:
            best, shortest = -1, np.inf
            for j in range(first[k], first[k + 1]):
                p, total = order[j], 0.0
                for i in range(start[p], start[p + 1]):
                    total += share[i] * length[link[i]]
                if total < shortest:
                    best, shortest = p, total
            fraction = remaining
            for i in range(start[best], start[best + 1]):
                fraction = min(fraction, capacity[link[i]] / share[i])
            for i in range(start[best], start[best + 1]):
                length[link[i]] *= 1.0 + epsilon * fraction * share[i] / capacity[link[i]]
            amount[best] += fraction
            remaining = remaining - fraction if remaining - fraction > SAME * rate[k] else 0.0
