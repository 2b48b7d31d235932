r"""Routing that takes at most a given share of the traffic off its present routes.

For each demand k with rate r_k, of which p_k can stay on its present flow F_k (`moved_traffic`):

    kept_k   flow on the present links, at most F_k on each
    w_k      traffic routed anew, over all links, given paths, or routes that keep limits
    moved_k  >= w_k - (r_k - p_k), >= 0: what is new, or comes from links that are gone, is no moved traffic
    sum_k moved_k <= most_moved * sum_k p_k

with the objective of `optimum`. The dual value of the last row is the price of the limit. The least moved
traffic of all plans is that of this program, since any plan consists of kept flow and flow routed anew. Small
programs are solved as they are (`by_program`), large ones and those under limits of routes over paths that
are generated.

Over generated paths a demand is divided into parts: one for each path of its present flow, with the traffic
there, and one for what has to change in any case. A part takes its present path, or any other path together
with a row of its own, whose capacity is the traffic that may be moved; so the limit is a link like others
(`path_program`). Where not all of a demand can be served, each of its parts is reduced; the largest share of
all demands is that of plans that reduce the parts alike. Bounds hold for all plans under the limit
(`kept_flows`).

Under latency limits and rules, traffic is kept and moved on routes that keep them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Final

import numpy as np
import pandas as pd
import scipy.sparse as sp
from pydantic import Field

from planner.arrays import Bools
from planner.contract.design import Decision
from planner.contract.progress import report
from planner.contract.proof import Proof, Status
from planner.errors import InputError
from planner.options import Options
from planner.search.judged import feasible, undecided
from planner_models.flows.link_flow_program import METRIC_OF, Objective, link_cost
from planner_models.flows.path_flow_program import CandidatePaths
from planner_models.flows.previous_routes import decompose_by_demand
from planner_models.flows.route_limits import RouteLimits
from planner_models.graphs.path_search import FoundPaths
from planner_models.traffic.designs import class_priorities
from planner_models.traffic.designs.class_priorities import Level
from planner_models.traffic.designs.limited_moves import path_program
from planner_models.traffic.designs.limited_moves.by_program import ProgramSearch
from planner_models.traffic.designs.limited_moves.path_program import (
    DEFAULT_GAP,
    Found,
    PathProgram,
    PathTraffic,
)
from planner_models.traffic.designs.limited_moves.search import FIT_TOLERANCE, HELD, MoveLimit, Search
from planner_models.traffic.designs.routable import shed_demands
from planner_models.traffic.plan import plan as routing
from planner_models.traffic.plan.flow_decision import decide_by_plan, flows_over_paths, refuse_solver_options
from planner_models.traffic.plan.moved_traffic import PresentFlow, flow_by_demand
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.plan.verified_flow import verify_flow
from planner_models.traffic.problem.problem import Traffic

MAX_PROGRAM_COLUMNS: Final = 20_000
"""Variables up to which the linear program is solved as it is; about as fast as over paths."""

MovedShare = Annotated[
    Annotated[float, Field(ge=0, le=1)] | None,
    Field(
        description="largest share of the traffic that may leave its routes in the plan before, in a roll; "
        "what is new, or loses its links, does not count"
    ),
]
BACKEND: Final = "primal simplex over paths"


@dataclass(frozen=True, kw_only=True, eq=False)
class Request:
    """A plan that may reroute little of the traffic of the plan before.

    previous    the plan before
    free        decision without the limit, which is returned where it keeps the limit
    most_moved  share of the traffic that may leave its routes
    levels      of the classes, where they have an order
    """

    previous: Routing
    free: Decision[Routing]
    most_moved: float
    objective: Objective
    levels: Sequence[Level] | None


def route(
    problem: Traffic,
    request: Request,
    *,
    left_out: Bools,
    found: CandidatePaths | None,
    scope: str | None,
    options: Options,
) -> Decision[Routing]:
    """Return the best plan that reroutes at most the share `most_moved` of the traffic of `previous`.

    left_out  (K,) demands that have no path, and are shed
    found     paths for traffic that is routed anew; None for all
    scope     of bounds over given paths
    returns   Decision with a Routing whose tables are `rerouting`, what the limit costs, and `moved`
    raises    InputError for a solver that is chosen where the program is solved over paths
    """
    previous, free, most_moved = request.previous, request.free, request.most_moved
    present = PresentFlow.of(problem, previous)
    if present.total_mbps <= 0 or free.proof.status is Status.INFEASIBLE:
        return free
    if free.plan is not None and _moved_share(problem, present, free.plan) <= most_moved:
        return _with_tables(problem, present, free, free, most_moved, None)
    routable = problem.with_rates(np.where(left_out, 0.0, problem.rate_mbps)) if left_out.any() else problem
    if not len(routable.targets):
        return free
    limit = MoveLimit(present=PresentFlow.of(routable, previous), most_moved=most_moved)
    search = _choose_search(routable, limit, found, free.plan, options)
    made = shed_demands(problem, left_out, search.solve(request.objective, request.levels))
    of_limit = f"plans that reroute at most {most_moved:.4%} of the traffic"
    covers = ", ".join(filter(None, (of_limit, made.proof.bound_scope, scope)))
    made = replace(made, proof=replace(made.proof, bound_scope=covers))
    is_late = made.plan is None and made.proof.status is Status.UNDECIDED
    if is_late and request.objective in ("delivered", "total") and options.service != "all":
        made = _keep_present(problem, present, made.proof)
    if made.plan is None:
        return made
    return _with_tables(problem, present, made, free, most_moved, search.gain_per_point)


def _choose_search(
    problem: Traffic,
    limit: MoveLimit,
    paths: CandidatePaths | None,
    free: Routing | None,
    options: Options,
) -> Search:
    """Return the search by one linear program, or over paths.

    free  plan without the limit, whose paths the search starts from
    """
    limits = RouteLimits.of(problem)
    is_split = paths is not None and paths.share is not None
    if is_split and limits is not None:
        raise InputError(
            "most_moved: tunnels that are lists of segments and limits of routes are not solved together; "
            "give such tunnels as paths, or leave one of the three out"
        )
    anew = len(problem.targets) * len(problem.links) if paths is None else len(paths.demand)
    is_small = limit.present.flow.nnz + anew <= MAX_PROGRAM_COLUMNS
    if is_split or (limits is None and (is_small or options.is_solver_chosen)):
        return ProgramSearch(problem, limit, options, paths)
    start = FoundPaths(
        demand=np.zeros(0, dtype=np.int64),
        start=np.zeros(1, dtype=np.int64),
        link=np.zeros(0, dtype=np.int32),
    )
    if paths is not None:
        oracle, start = path_program.over_given_paths(problem, paths), paths.found
    elif limits is not None:
        oracle = path_program.over_routes_within(problem, limits)
    else:
        oracle = path_program.over_all_paths(problem)
        if free is not None:
            start, _ = decompose_by_demand(problem, flow_by_demand(problem, free))
    program = path_program.PathProgram(problem, limit, oracle, start, limits)
    return PathSearch(limit, options, program, has_routes=limits is not None)


def _keep_present(problem: Traffic, present: PresentFlow, proof: Proof) -> Decision[Routing]:
    """Return the plan that moves nothing, for want of time: present flows, reduced to the capacities.

    A demand whose present flow has lost links is shed.
    """
    surplus = sp.csr_array(present.flow @ problem.incidence.T).tocoo()
    is_end = (surplus.col == problem.source[surplus.row]) | (surplus.col == problem.target[surplus.row])
    lost = np.abs(surplus.data) > FIT_TOLERANCE * problem.rate_mbps[surplus.row]
    share = np.ones(len(problem.demands))
    share[surplus.row[~is_end & lost]] = 0.0
    flow = sp.csr_array(sp.diags_array(share) @ present.flow)
    over = np.asarray(flow.sum(axis=0)).ravel() / problem.capacity_mbps
    entries = flow.tocoo()
    np.minimum.at(share, entries.row, 1 / np.maximum(over[entries.col], 1.0))
    plan = routing.routing_by_demand(problem, sp.csr_array(sp.diags_array(share) @ present.flow))
    value, offered = float(verify_flow(problem, plan).served_mbps.sum()), float(problem.rate_mbps.sum())
    current = replace(
        proof, status=Status.FEASIBLE, metric="delivered_mbps", objective=value, bound=max(offered, value)
    )
    return Decision(plan=plan, proof=current, guarantees=frozenset({"capacity", "demand"}))


def _moved_share(problem: Traffic, present: PresentFlow, plan: Routing) -> float:
    moved = present.moved_mbps(problem, flow_by_demand(problem, plan))
    return float(moved.sum()) / present.total_mbps


def _with_tables(
    problem: Traffic,
    present: PresentFlow,
    made: Decision[Routing],
    free: Decision[Routing],
    most_moved: float,
    gain_per_point: dict[str, float] | None,
) -> Decision[Routing]:
    """Return the decision with the tables `rerouting` and `moved` of its plan.

    gain_per_point  by metric, what a limit that is larger by a percentage point brings; None: nothing
    """
    assert made.plan is not None
    moved = present.moved_mbps(problem, flow_by_demand(problem, made.plan))
    rows = np.flatnonzero(moved > 0)
    ends = {name: problem.demands[name].to_numpy()[rows] for name in problem.demand_key}
    freely = None if free.plan is None else _moved_share(problem, present, free.plan)
    unlimited = {} if free.plan is None else _values(problem, free)
    table = []
    for metric, value in _values(problem, made).items():
        other = unlimited.get(metric)
        less = metric in ("max_utilization", "cost")
        loss = None if other is None else max(value - other if less else other - value, 0.0)
        table.append(
            {
                "metric": metric,
                "most_moved": most_moved,
                "moved_share": float(moved.sum()) / present.total_mbps,
                "value": value,
                "gain_per_point": 0.0 if gain_per_point is None else gain_per_point.get(metric),
                "free_moved_share": freely,
                "free_value": other,
                "loss": loss,
            }
        )
    plan = replace(
        made.plan, rerouting=pd.DataFrame(table), moved=pd.DataFrame({**ends, "rate_mbps": moved[rows]})
    )
    return replace(made, plan=plan)


def _values(problem: Traffic, decision: Decision[Routing]) -> dict[str, float]:
    """Return the objective value by its metric and, where all is delivered, the largest utilization."""
    plan, proof = decision.plan, decision.proof
    assert plan is not None
    values: dict[str, float] = {}
    if proof.metric is not None and proof.objective is not None:
        values[proof.metric] = proof.objective
    if proof.metric == "delivered_mbps" and plan.shed is None:
        load = verify_flow(problem, plan).load_mbps
        values["max_utilization"] = float((load / problem.capacity_mbps).max(initial=0.0))
    return values


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
