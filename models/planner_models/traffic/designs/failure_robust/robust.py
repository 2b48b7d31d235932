"""The most traffic that survives every failure of a set by rerouting: admitted rates.

Under re-optimised restoration a routing can change with every failure; what is decided before is how much
of each demand is admitted. So the plan says how much, such that after each failure a controller finds routes
for all of it (`survivable_rates`), and routes it now with the least utilization of the busiest link. No
scheme that delivers in every failure what it admits can admit more, local restoration such as `ffc` neither.

Under latency limits and rules, and over tunnels, the plan lists in its table `routes` all paths that it
needs, now or in a failure; those that are only for failures have no traffic now.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Final, Literal

import numpy as np
import scipy.sparse as sp
from pydantic import Field

from planner import backends
from planner.arrays import Bools, Floats
from planner.contract import progress
from planner.contract.design import Decision
from planner.contract.proof import Proof, Status, relative_gap
from planner.errors import InputError
from planner.options import Options
from planner.search.deadline import Deadline
from planner.search.judged import optimal, undecided
from planner.search.tolerances import NEGLIGIBLE
from planner_models.flows import path_flow_program
from planner_models.flows.constrained_paths import RoutePool
from planner_models.flows.path_flow_program import CandidatePaths
from planner_models.flows.problem import MIN_GAP
from planner_models.flows.route_limits import RouteLimits
from planner_models.graphs import path_search
from planner_models.traffic.designs import class_priorities
from planner_models.traffic.designs.class_priorities import ORDER_SCOPE, Level
from planner_models.traffic.designs.failure_robust.survivable_rates import (
    DEFAULT_GAP,
    FailureNetwork,
    SurvivableRates,
    free_networks,
    grow_together,
    limited_networks,
    list_outages,
)
from planner_models.traffic.designs.failure_robust.surviving_paths import (
    add_guarantees,
    describe_unsafe,
    resolve_source,
)
from planner_models.traffic.designs.optimum import optimum
from planner_models.traffic.designs.optimum.optimum_search import FIT_TOLERANCE
from planner_models.traffic.designs.routable import refuse_demands
from planner_models.traffic.designs.route_choice import (
    Choice,
    PathCount,
    describe_lack,
    describe_paths,
    find_candidates,
)
from planner_models.traffic.plan.flow_decision import decide_without_demand, refuse_solver_options
from planner_models.traffic.plan.plan import Routing, list_shed, routing_by_demand, routing_by_target
from planner_models.traffic.problem.failure_sets import (
    FailureSet,
    FailureSource,
    FailuresParameter,
    build_failure_set,
)
from planner_models.traffic.problem.problem import Traffic

BACKEND: Final = "cutting planes over failures"
SCOPE: Final = "plans whose traffic survives every failure of the set that leaves it a path"
LEAST_TRAFFIC: Final = NEGLIGIBLE  # of a demand: less, admitted or on a route, is rounding

AdmissionObjective = Annotated[
    Literal["delivered", "concurrent"],
    Field(description="delivered: the most traffic; concurrent: the same share of all demands, the largest"),
]


def route(
    problem: Traffic,
    *,
    failures: FailuresParameter = None,
    objective: AdmissionObjective = "delivered",
    paths: PathCount = "any",
    path_choice: Choice = "shortest",
    classes: class_priorities.Order = "strict",
    options: Options = Options(),
) -> Decision[Routing]:
    """Admit the most traffic that a controller can reroute in every failure of a set.

    Traffic takes all routes, those within latency limits and rules where there are any, or given paths.
    Where not all can be admitted, higher classes come first (`classes`). Stops at `options.gap`, by default
    1e-6; at a time limit it returns the incumbent with its bound.

    A failure that leaves a demand without a path does not limit it: nothing could serve it then. A demand
    that a failure cuts off from its given paths or from those that keep its limits, while the network has
    another one, is admitted without a guarantee, and gets nothing then.

    returns  Decision with a Routing whose table `guarantees` lists the admitted rates; the bound holds for
             all plans whose traffic survives every failure
    raises   InputError for a backend or an algorithm, since it is its own solver, and for tunnels that are
             lists of segments
    source   Kelley 1960 (cutting planes); Onaga and Kakusho 1971 (metric inequalities)
    """
    refuse_solver_options("robust", options)
    deadline = Deadline.of(options)
    if not len(problem.links) or not len(problem.routable.targets):
        return _decide_nothing(problem, options)
    source = resolve_source(problem, failures)
    failure_set = build_failure_set(problem, source)
    routes = _find_routes(problem.routable, failure_set, paths, path_choice)
    left_out = problem.unreachable | routes.without_route(problem.routable)
    if options.service == "all" and left_out.any():
        reason = "has no path" if problem.unreachable.any() else routes.lack
        return refuse_demands(problem, left_out, reason)
    offered = np.where(left_out, 0.0, problem.rate_mbps)
    gap = DEFAULT_GAP if options.gap is None else options.gap
    if objective == "concurrent":
        best, proof = _admit_alike(offered, routes.networks, gap, deadline)
        proof = replace(proof, bound_scope=f"{routes.scope}, the same share of all demands")
    else:
        levels = class_priorities.make_levels(problem, classes)
        best, proof = _admit_by_level(offered, routes.networks, levels, options, deadline)
        is_of_order = len(levels) > 1 and proof.bound is None
        proof = replace(proof, bound_scope=f"{routes.scope}, {ORDER_SCOPE}" if is_of_order else routes.scope)
    proof = replace(proof, metric="delivered_mbps", backend=BACKEND)
    if best is None:
        return Decision(plan=None, proof=proof)
    best = np.where(best < LEAST_TRAFFIC * problem.rate_mbps, 0.0, best)
    total = float(problem.rate_mbps.sum())
    if options.service == "all" and total - float(best.sum()) > gap * total:
        return _refuse(proof, total)
    return _guarantee(problem, routes, best, source, proof)


def _guarantee(
    problem: Traffic, routes: _Routes, admitted: Floats, failures: FailureSource, proof: Proof
) -> Decision[Routing]:
    """Return the plan of admitted rates, with guarantees for the demands that no failure cuts off."""
    plan = routes.make_plan(problem, admitted)
    is_unsafe = routes.cut_off(problem) & (admitted > 0)
    safe = np.where(is_unsafe, 0.0, admitted)
    plan = add_guarantees(problem, plan, safe, failures=failures, at_once=1, restoration="reroute")
    return Decision(plan=plan, proof=replace(proof, reasons=describe_unsafe(problem, is_unsafe)))


def _decide_nothing(problem: Traffic, options: Options) -> Decision[Routing]:
    """Return the decision where no demand has a path."""
    if problem.unreachable.any() and options.service == "all":
        return refuse_demands(problem, problem.unreachable, "has no path")
    if len(problem.links) and not problem.unreachable.any():
        return decide_without_demand(problem, "total")
    none = sp.csr_array((len(problem.targets), len(problem.links)))
    plan = replace(routing_by_target(problem, none), shed=list_shed(problem, np.zeros(len(problem.demands))))
    proof = optimal(0.0, metric="delivered_mbps")
    return Decision(plan=plan, proof=proof)


def _prove(best: Floats | None, bound: float, gap: float) -> Proof:
    value = None if best is None else float(best.sum())
    reached = relative_gap(value, bound)
    is_optimal = reached is not None and reached <= max(gap, MIN_GAP)
    status = Status.UNDECIDED if best is None else Status.OPTIMAL if is_optimal else Status.FEASIBLE
    return Proof(status=status, objective=value, bound=bound)


def _admit_alike(
    offered: Floats, networks: Sequence[FailureNetwork], gap: float, deadline: Deadline
) -> tuple[Floats | None, Proof]:
    """Return the rates of demands that all get the same share, (K,), None for none found; and their proof."""
    share, upper = grow_together(offered, networks, deadline)
    best = None if share is None else share * offered
    return best, _prove(best, upper * float(offered.sum()), gap)


def _admit_by_level(
    offered: Floats,
    networks: Sequence[FailureNetwork],
    levels: Sequence[Level],
    options: Options,
    deadline: Deadline,
) -> tuple[Floats | None, Proof]:
    """Return the admitted rates (K,), the most of each level that those before leave, and their proof."""
    gap = DEFAULT_GAP if options.gap is None else options.gap
    search = SurvivableRates(offered, networks)
    bounds: list[float] = []
    for index, level in enumerate(levels):
        if index:
            search.next_level(level.value)
        else:
            search.maximize(level.value)
        search.run(options, deadline)
        if search.best is None and search.bound > 0:  # time is up
            break
        bounds.append(search.bound)
    best = search.best
    if len(levels) == 1 and (levels[0].value == 1).all():
        return best, _prove(best, search.bound, gap)
    if best is None:
        return None, undecided()
    return best, _prove_levels(best, offered, levels, bounds, gap)


def _prove_levels(
    best: Floats, offered: Floats, levels: Sequence[Level], bounds: Sequence[float], gap: float
) -> Proof:
    """Return the proof of admitted rates by the bound of each level; with a bound in all where all fit."""
    proofs = class_priorities.prove_reached(levels, bounds, best)
    allowed = max(2 * gap, MIN_GAP)  # later levels may take as much as the gap from those before
    is_optimal = len(proofs) == len(levels) and all(
        proof.bound - proof.objective <= allowed * max(proof.bound, 1e-300) for proof in proofs
    )
    is_all = float(best.sum()) >= float(offered.sum()) * (1 - gap)
    status = Status.OPTIMAL if is_optimal else Status.FEASIBLE
    bound = float(offered.sum()) if is_all else None
    return Proof(status=status, objective=float(best.sum()), bound=bound, levels=proofs)


def _refuse(proof: Proof, total: float) -> Decision[Routing]:
    """Return the decision where all traffic must survive and does not; by the bound, if it proves that."""
    share = None if proof.bound is None else proof.bound / total
    if share is None and proof.levels and proof.status is Status.OPTIMAL:
        share = (proof.objective or 0.0) / total
    is_proven = share is not None and share < 1 - FIT_TOLERANCE
    reason = f"at most {share:.4%} of all traffic survives every failure of the set"
    return Decision(
        plan=None,
        proof=Proof(
            status=Status.INFEASIBLE if is_proven else Status.UNDECIDED,
            reasons=(reason,) if is_proven else (),
        ),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Routes:
    """The routes that demands may take, as the networks that failures leave.

    is_listed  whether the plan lists its routes
    scope, lack  of bounds, and why a demand has no route, in words
    """

    networks: Sequence[FailureNetwork]
    failures: FailureSet
    is_listed: bool
    scope: str
    lack: str

    def without_route(self, problem: Traffic) -> Bools:
        """Return the demands with a rate and without a route, (K,)."""
        return (problem.rate_mbps > 0) & ~self.networks[0].has_route

    def cut_off(self, problem: Traffic) -> Bools:
        """Return the demands that some failure takes all routes from, while the network has a path, (K,)."""
        served = self.networks[0].has_route
        cut = np.zeros(len(served), dtype=bool)
        if self.is_listed:
            for network, down in zip(self.networks, list_outages(problem, self.failures), strict=True):
                lost = served & ~network.has_route
                if lost.any():
                    cut |= lost & ~problem.disconnected_demands(~down)
        return cut

    def make_plan(self, problem: Traffic, rate_mbps: Floats) -> Routing:
        """Return the routing of admitted rates, (K,), without failures: the least busiest link."""
        with progress.ignore():
            if self.is_listed:
                return self._list_routes(problem, rate_mbps)
            plan = optimum.route(problem.with_rates(rate_mbps), objective="utilization").plan
        assert plan is not None, "the rates can be routed"
        return replace(plan, shed=list_shed(problem, rate_mbps))

    def _list_routes(self, problem: Traffic, rate_mbps: Floats) -> Routing:
        pool = RoutePool(len(problem.links))
        for network in self.networks:
            routes_found = network.ask(rate_mbps).routes
            if routes_found is not None:
                pool.add(routes_found, np.arange(len(routes_found.demand)))
        admitted = problem.with_rates(rate_mbps)
        paths = CandidatePaths(found=pool.paths()[0], width=pool.width)
        served = CandidatePaths(
            found=path_search.take(paths.found, np.flatnonzero(rate_mbps[paths.demand] > 0)),
            width=pool.width,
        )
        rate = np.zeros(len(served.demand))
        if len(rate):
            program = path_flow_program.build(admitted, "utilization", served)
            solution = backends.solve(program, Options())
            assert solution.x is not None, "the rates can be routed"
            rate = np.maximum(solution.x[: len(rate)], 0.0)
            rate = np.where(rate > LEAST_TRAFFIC * rate_mbps[served.demand], rate, 0.0)
            total = np.bincount(served.demand, weights=rate, minlength=len(rate_mbps))
            rate *= np.divide(rate_mbps, total, out=np.zeros(len(total)), where=total > 0)[served.demand]
        entries = (served.demand, np.arange(len(rate)))
        of_demand = sp.csr_array((rate, entries), shape=(len(rate_mbps), len(rate)))
        routes = path_flow_program.route_table(problem, served, np.ones(len(rate)))
        plan = routing_by_demand(problem, of_demand @ served.uses, routes.assign(rate_mbps=rate))
        return replace(plan, shed=list_shed(problem, rate_mbps))


def _find_routes(
    problem: Traffic,
    failures: FailureSet,
    paths: int | Literal["any", "tunnels"],
    choice: Literal["shortest", "disjoint", "most_disjoint"],
) -> _Routes:
    """Return the routes that demands may take.

    raises  InputError for tunnels that are lists of segments
    """
    limits = RouteLimits.of(problem)
    if paths == "any" and limits is None:
        networks = free_networks(problem, failures)
        return _Routes(networks=networks, failures=failures, is_listed=False, scope=SCOPE, lack="has no path")
    candidates, over = None, "routes that keep latency limits and rules"
    if paths != "any":
        candidates = find_candidates(problem, paths, choice, None, limits)
        over = describe_paths(paths, choice, None, limits)
        if candidates.share is not None:
            raise InputError(
                "robust: tunnels are lists of segments, whose paths change with failures; give explicit "
                "tunnels, or leave paths at 'any'"
            )
    return _Routes(
        networks=limited_networks(problem, failures, candidates, limits),
        failures=failures,
        is_listed=True,
        scope=f"{SCOPE} among {over}",
        lack=describe_lack(problem, candidates, None),
    )
