"""The best plan under a limit of rerouted traffic by the simplex method over paths that it generates.

A demand is divided into parts: one for each path of its present flow, with the traffic there, and one for
what has to change in any case. A part takes its present path, or any other path together with a row of its
own, whose capacity is the traffic that may be moved; so the limit is a link like others (`path_program`).
Where not all of a demand can be served, each of its parts is reduced; the largest share of all demands is
that of plans that reduce the parts alike. Bounds hold for all plans under the limit (`kept_flows`).

Under latency limits and rules, traffic is kept and moved on routes that keep them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from planner.contract.design import Decision
from planner.contract.progress import report
from planner.contract.proof import Proof, Status
from planner.options import Options
from planner.search.judged import feasible, undecided
from planner_models.flows.link_flow_program import METRIC_OF, Objective, link_cost
from planner_models.traffic.designs import class_priorities
from planner_models.traffic.designs.class_priorities import Level
from planner_models.traffic.designs.column_generation.decision import refuse_solver_options
from planner_models.traffic.designs.flow_decision import decide_by_plan, flows_over_paths
from planner_models.traffic.designs.limited_moves.path_program import (
    DEFAULT_GAP,
    Found,
    PathProgram,
    PathTraffic,
)
from planner_models.traffic.designs.limited_moves.search import HELD, MoveLimit, Search
from planner_models.traffic.plan.plan import Routing

BACKEND: Final = "primal simplex over paths"


class PathSearch(Search):
    """The steps over the paths of one program, which keeps those found from one step to the next."""

    def __init__(self, limit: MoveLimit, options: Options, program: PathProgram, *, has_routes: bool) -> None:
        refuse_solver_options("most_moved over generated paths", options)
        super().__init__(program.problem, limit, options)
        self.program, self.has_routes = program, has_routes
        self.gap = options.gap or DEFAULT_GAP

    def spread(self, objective: Objective, *, must_fit: bool = False) -> Decision[Routing]:
        """Solve for the smallest largest utilization of plans that serve everything."""
        metric = METRIC_OF[objective]
        is_shared = objective == "concurrent"
        enough = 1.0 if must_fit else np.inf
        result: Found | None = None
        for result in self.program.spread(self.gap, self.deadline, enough=enough):
            value, bound = result.value, result.bound
            report(metric, 1 / value if is_shared else value, 1 / bound if is_shared else bound)
        if result is None:
            return Decision(plan=None, proof=undecided(metric=metric))
        self.set_gain("max_utilization", result.move_price)
        if is_shared:
            self.set_gain("concurrent_flow", result.move_price / result.value**2)
        bound = 1 / result.bound if is_shared else result.bound
        proof = undecided(bound=bound, metric=metric, backend=BACKEND)
        return self._decide(objective, result.traffic, proof, is_partial=False)

    def grow(self) -> Decision[Routing]:
        """Solve for the largest share of all demands, which is less than 1, within the capacities."""
        result = self.program.grow(self.gap, self.deadline)
        if result is None:
            return Decision(plan=None, proof=undecided(metric="concurrent_flow"))
        self.set_gain("concurrent_flow", result.move_price)
        proof = undecided(bound=result.bound, metric="concurrent_flow", backend=BACKEND)
        return self._decide("concurrent", result.traffic, proof, is_partial=False)

    def deliver_most(self, *, has_least_cost: bool) -> Decision[Routing]:
        """Solve for the most served traffic, then for the least cost of such plans if that is wanted."""
        every = Level(name="all", value=np.where(self.problem.rate_mbps > 0, 1.0, 0.0))
        bounds = self.program.deliver([every], self.gap, self.deadline)
        self.set_gain("delivered_mbps", self.program.move_price())
        if has_least_cost and bounds[0] is not None:
            return self._find_cheapest("plans that deliver the most")
        proof = Proof(status=Status.FEASIBLE, bound=bounds[0], metric="delivered_mbps", backend=BACKEND)
        return self._decide("total", self.program.traffic(), proof, is_partial=True)

    def find_cheapest(self) -> Decision[Routing]:
        """Solve for the least cost of plans that deliver everything."""
        every = Level(name="all", value=np.where(self.problem.rate_mbps > 0, 1.0, 0.0))
        self.program.deliver([every], self.gap, self.deadline)
        return self._find_cheapest(None)

    def _find_cheapest(self, scope: str | None) -> Decision[Routing]:
        """Solve for the least cost of plans that leave out as little as the present one."""
        bound = self.program.find_cheapest(link_cost(self.problem), self.gap, self.deadline)
        self.set_gain("cost", self.program.move_price())
        proof = Proof(status=Status.FEASIBLE, bound=bound, metric="cost", bound_scope=scope, backend=BACKEND)
        return self._decide("cost", self.program.traffic(), proof, is_partial=True)

    def solve_levels(self, levels: Sequence[Level], *, has_least_cost: bool) -> Decision[Routing]:
        """Solve for the levels of classes one after the other."""
        bounds = self.program.deliver(levels, self.gap, self.deadline)
        self.gain_per_point = {}  # the price of one level is not that of all
        if len(levels) == 1:
            self.set_gain("delivered_mbps", self.program.move_price())
        if has_least_cost and bounds[-1] is not None:
            self.program.find_cheapest(link_cost(self.problem), self.gap, self.deadline)
            self.gain_per_point = {}
        made = self._decide(
            "total",
            self.program.traffic(),
            feasible(metric="delivered_mbps", backend=BACKEND),
            is_partial=True,
        )
        assert made.plan is not None
        return class_priorities.decide_levels(
            self.problem,
            made.plan,
            levels,
            [None if bound is None else bound * (1 + HELD) for bound in bounds],
            scope=None,
            backend=BACKEND,
            options=self.options,
        )

    def _decide(
        self, objective: Objective, traffic: PathTraffic | None, proof: Proof, *, is_partial: bool
    ) -> Decision[Routing]:
        """Return the decision for traffic on paths."""
        if traffic is None:
            return Decision(plan=None, proof=proof)
        paths, rate = traffic.paths, traffic.rate
        flows = flows_over_paths(self.problem, paths, rate, is_partial=is_partial, has_routes=self.has_routes)
        return decide_by_plan(self.problem, objective, flows, proof, self.options_left())
