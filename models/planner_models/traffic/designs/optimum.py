"""Multi-commodity flow by linear programming or column generation, over all routes or given paths."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Final, Literal, NamedTuple

import numpy as np
import scipy.sparse as sp
from pydantic import Field

from planner import backends
from planner.arrays import Bools, Floats
from planner.backends import Solution
from planner.backends.linear_program import LinearProgram
from planner.contract.design import Decision
from planner.contract.proof import Proof, Status
from planner.errors import InputError
from planner.options import Options, Service
from planner_models.traffic.designs import (
    class_priorities,
    link_flow_program,
    path_flow_program,
)
from planner_models.traffic.designs.column_generation import column_generation
from planner_models.traffic.designs.column_generation.decision import (
    decide_without_demand,
    refuse_solver_options,
    scale_plan,
)
from planner_models.traffic.designs.demand_scale import demand_scale, path_scale, rescale_solution
from planner_models.traffic.designs.fitted_plan import fit_plan
from planner_models.traffic.designs.flow_decision import (
    OPTIMALITY_GAP,
    SolvedFlows,
    as_delivered,
    decide_by_plan,
    flows_over_paths,
    merge_proofs,
)
from planner_models.traffic.designs.limited_moves import limited_moves
from planner_models.traffic.designs.link_flow_program import METRIC_OF, Objective, link_cost
from planner_models.traffic.designs.path_flows import (
    given_path_flow,
    interior_point,
    least_cost,
    shortest_routes,
    total_flow,
)
from planner_models.traffic.designs.path_search import PathChoice
from planner_models.traffic.designs.previous_routes import PreviousRoutes
from planner_models.traffic.designs.restricted_routes.candidates import (
    describe_lack,
    describe_paths,
    find_candidates,
    require_paths,
)
from planner_models.traffic.designs.restricted_routes.restricted_flow import LeastDelivery, RestrictedFlow
from planner_models.traffic.designs.routable import (
    refuse_demands,
    shed_demands,
    shed_unreachable_within_limits,
)
from planner_models.traffic.plan import plan as routing
from planner_models.traffic.plan import split_ratios
from planner_models.traffic.plan.check import verify_flow
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.problem.problem import Traffic
from planner_models.traffic.problem.route_limits import RouteLimits

LEAST_TOLERANCE: Final = 1e-7  # of the most traffic, which the cheapest plan may deliver less
MAX_EXPLAINED_FLOWS: Final = 50_000
"""Flow variables up to which conflicting rows explain that not all demand fits."""
MAX_PROGRAM_FLOWS: Final = 1_000_000  # flow variables of a linear program; larger ones need gigabytes
INTERIOR_POINT_PATHS: Final = 2_000  # candidate paths from which the interior-point method of its own is used
MAX_ENDING_PROGRAM_FLOWS: Final = 20_000
"""Flow variables up to which the linear program, which needs no compiling, ends a search that stalls."""
COLUMN_GENERATION_FLOWS: Final = 10_000
"""Flow variables from which method `auto` uses column generation."""
TOTAL_COLUMN_GENERATION_FLOWS: Final = 5_000
"""The same for the largest total flow. Where everything fits, routes below the number above are shortened."""

FIT_TOLERANCE: Final = 1e-6  # of the demands; where all but this share fits, all counts as fitting

ObjectiveChoice = Annotated[
    Objective,
    Field(
        description="delivered: most traffic, then least busiest link; concurrent: grow all demands alike; "
        "utilization: least busiest link; total: most traffic; cost: cheapest that delivers the most"
    ),
]
PathCount = Annotated[
    Annotated[int, Field(gt=0)] | Literal["any", "tunnels"],
    Field(
        description="routes that traffic may take: any, that many paths for each demand, or the tunnels of "
        "the problem; in each case those that keep latency limits and rules"
    ),
]
Choice = Annotated[
    PathChoice,
    Field(
        description="with a number of paths: the shortest; link-disjoint ones, each the shortest without the "
        "links of those before (disjoint), or as many as there are (most_disjoint)"
    ),
]
Method = Annotated[
    Literal["auto", "lp", "columns"],
    Field(
        description="lp: the linear program, exact; columns: column generation, to a gap of 1e-6, "
        "or exact; auto: columns where the linear program is large"
    ),
]
HopLimit = Annotated[
    Annotated[int, Field(gt=0)] | None, Field(description="with a number of paths: the most links of one")
]


def route(
    problem: Traffic,
    *,
    objective: ObjectiveChoice = "delivered",
    paths: PathCount = "any",
    path_choice: Choice = "shortest",
    max_hops: HopLimit = None,
    method: Method = "auto",
    classes: class_priorities.Order = "strict",
    most_moved: limited_moves.MovedShare = None,
    options: Options = Options(),
    previous: Decision[Routing] | None = None,
) -> Decision[Routing]:
    """Solve for the best routing for one objective, by linear programming.

    The plan sends every demand at its rate where that fits. Where it does not, `delivered`, `total` and
    `cost` shed as little traffic as possible, and `concurrent` serves the same share of all demands; with
    `options.service` "all" the problem is infeasible instead. `delivered` solves `concurrent` first: where
    all demands fit, that is the routing with the least utilization, by column generation below 10,000 flow
    variables also that with the shortest routes (`shortest_routes`); where they do not, every routing that
    delivers the most fills a link, and `total` finds one. Where the time limit comes first, or where a chosen
    solver would get more than a million flow variables, a heuristic delivers what it can (`fitted_plan`).
    Rates are in Mbit/s.

    Method "auto" uses `columns` over all routes from 10,000 flow variables (targets times links) on, for
    the largest total flow from 5,000 on, where it was 4 to 100 times faster, unless a backend or an
    algorithm is chosen.

    Where demands have classes and not all fits, `delivered`, `total` and `cost` serve them in the order of
    their priorities (`class_priorities`), with a proof for each; `cost` then takes the cheapest of these
    plans. `concurrent` and `utilization` treat all classes alike.

    Column generation starts from the routes of `previous`, and so does the search over many given paths; what
    is proven does not depend on them.

    With `most_moved` the plan takes at most that share of the traffic off its routes in the plan `previous`,
    and has a table `rerouting` of what that costs (`limited_moves`).

    A demand without a path within `max_hops`, its latency limit and its rules is shed too; with one, the
    concurrent flow of all is 0. Under limits, paths="any" searches all routes that keep them, by column
    generation (`restricted_flow`).

    returns  Decision with a Routing; its bound holds for all routings (that keep limits) with paths="any"
    raises   InputError for `max_hops` without a number of paths, or objective "cost" on links without a cost
    source   Sen et al. 2013, equation (1); concurrent flow: Shahrokhi and Matula 1990
    """
    given = _GivenRoutes(paths, path_choice, max_hops, method)
    by_class = problem.has_classes and classes != "ignored" and objective in ("delivered", "total", "cost")
    levels = class_priorities.make_levels(problem, classes) if by_class else None
    if most_moved is None or previous is None or previous.plan is None:
        return _route_freely(problem, objective, given, levels, options, previous)
    started = time.perf_counter()
    free = _route_freely(problem, objective, given, levels, _options_from(started, options, 0.5), previous)
    left = _options_from(started, options)
    return _limit_moves(problem, previous.plan, free, most_moved, objective, given, levels, left)


class _GivenRoutes(NamedTuple):
    """The routes that traffic may take, as the parameters of `route` say, and the method."""

    paths: int | Literal["any", "tunnels"]
    choice: PathChoice
    max_hops: int | None
    method: Method


def _options_from(started: float, options: Options, part: float = 1.0) -> Options:
    """Return the options with that part of the time that is left since `started`."""
    if options.time_limit_s is None:
        return options
    passed = time.perf_counter() - started
    return replace(options, time_limit_s=max(part * (options.time_limit_s - passed), 1e-3))


def _route_freely(
    problem: Traffic,
    objective: Objective,
    given: _GivenRoutes,
    levels: Sequence[class_priorities.Level] | None,
    options: Options,
    previous: Decision[Routing] | None,
) -> Decision[Routing]:
    """Route demands, whatever moves; `levels` of classes, where they have an order.

    previous  decision that the search starts from
    """
    started = time.perf_counter()
    first = options if levels is None else _options_from(started, options, 1 / 3)
    decision = _route_alike(problem, objective=objective, given=given, options=first, previous=previous)
    if levels is None or decision.plan is None or not len(problem.routable.targets) or not len(problem.links):
        return decision
    left = _options_from(started, options)
    if decision.plan.shed is None:
        return class_priorities.prove_all_served(decision, levels, problem.rate_mbps)
    search = _Search(problem.routable, given, left)
    routable = search.problem
    if not (routable.rate_mbps > 0)[~search.without_path()].any():
        return decision  # no route of any demand keeps the limits
    if search.uses_columns(objective):
        found = class_priorities.route_by_columns(routable, levels, options=left)
    elif search.restricted is not None:
        found = class_priorities.route_within_limits(
            routable,
            levels,
            restricted=search.restricted,
            scope=search.scope,
            has_least_cost=objective == "cost",
            options=left,
        )
    elif search.is_too_large(objective):
        found = class_priorities.judge_plan(routable, decision, levels, options=left)
    else:
        found = class_priorities.route_by_program(
            routable,
            levels,
            found=search.found,
            scope=search.scope,
            has_least_cost=objective == "cost",
            options=left,
        )
    return found if routable is problem else shed_demands(problem, problem.unreachable, found)


def _limit_moves(
    problem: Traffic,
    previous: Routing,
    free: Decision[Routing],
    most_moved: float,
    objective: Objective,
    given: _GivenRoutes,
    levels: Sequence[class_priorities.Level] | None,
    options: Options,
) -> Decision[Routing]:
    """Return the best plan that takes at most a share of the traffic off its routes in the plan before.

    free  the decision without that limit
    """
    if not len(problem.links) or not len(problem.routable.targets):
        return free
    search = _Search(problem.routable, given, options)
    left_out = search.without_path() | problem.unreachable
    return limited_moves.route(
        problem,
        previous,
        free,
        left_out=left_out,
        objective=objective,
        most_moved=most_moved,
        found=search.found,
        scope=search.scope,
        levels=levels,
        options=options,
    )


@shed_unreachable_within_limits
def _route_alike(
    problem: Traffic,
    *,
    objective: Objective,
    given: _GivenRoutes,
    options: Options,
    previous: Decision[Routing] | None,
) -> Decision[Routing]:
    """Route demands without regard to classes, see `route`."""
    require_paths(given.paths, given.max_hops)
    _require_method(given.method, given.paths)
    if not len(problem.targets):
        return decide_without_demand(problem, objective)
    if objective == "cost":
        link_cost(problem)  # raises where links have none
    search = _Search(problem, given, options, previous)
    left_out = search.without_path()
    if not left_out.any():
        return _route(search, objective)
    if options.service == "all":
        return refuse_demands(problem, left_out, describe_lack(problem, search.found, given.max_hops))
    search.problem = problem.with_rates(np.where(left_out, 0.0, problem.rate_mbps))
    if len(search.problem.targets):
        decision = _route(search, objective)
    else:
        decision = decide_without_demand(search.problem, objective)
    decision = shed_demands(problem, left_out, decision)
    proof = replace(decision.proof, bound_scope=search.scope)
    if proof.metric == "concurrent_flow" and proof.objective is not None:
        proof = replace(proof, objective=0.0, bound=0.0)
    return replace(decision, proof=proof)


def _route(search: _Search, objective: Objective) -> Decision[Routing]:
    """Return the decision for demands that all have a path."""
    problem, is_strict = search.problem, search.options.service == "all"
    if objective in ("concurrent", "utilization") and not is_strict:
        return search.solve(objective)
    if objective == "cost" and not is_strict and search.finds_least_cost():
        return least_cost.route(
            problem,
            paths=search.found,
            scope=search.scope,
            options=search.options,
            previous=search.previous,
        )
    finds_total = not is_strict and search.uses_columns("total")
    together = search.try_to_fit() if finds_total else search.solve("concurrent")
    if (together.proof.objective or 0.0) >= 1 - FIT_TOLERANCE:  # everything fits
        if finds_total and not search.uses_columns("concurrent"):
            together = search.shorten(together)
        if objective in ("delivered", "total"):
            return as_delivered(problem, together, Status.OPTIMAL)
        return together if objective == "concurrent" else search.solve(objective)
    if is_strict:
        return search.prove_infeasible(objective, together)
    is_undecided = together.proof.bound is None or together.proof.bound >= 1  # the time limit came first
    if (is_undecided and not finds_total and search.restricted is None) or search.is_too_large("total"):
        most = _deliver_by_heuristic(search, together, None)
    else:
        most = search.solve("total")
        if most.proof.status is not Status.OPTIMAL and not finds_total and search.restricted is None:
            other = _deliver_by_heuristic(search, together, most.proof.bound)
            is_better = (other.proof.objective or 0.0) > (most.proof.objective or 0.0)
            most = other if most.plan is None or is_better else most
    if objective == "cost" and most.proof.objective is not None:
        return search.solve("cost", least_mbps=most.proof.objective * (1 - LEAST_TOLERANCE))
    return most


def _deliver_by_heuristic(
    search: _Search, together: Decision[Routing], bound: float | None
) -> Decision[Routing]:
    """Return the best plan that heuristics make of a concurrent flow, within the capacities.

    Over given paths, and where flows are too many, it is the concurrent flow itself.
    """
    problem = search.problem
    plain = as_delivered(problem, together, Status.FEASIBLE, bound=bound)
    if search.found is not None:
        return plain
    share = min(together.proof.objective or 1.0, 1.0)
    whole = None if together.plan is None else scale_plan(problem, together.plan, 1 / share)
    plan = fit_plan(problem, whole)
    if plan is None:
        return plain
    value = float(verify_flow(problem, plan).served_mbps.sum())
    limit = min(float(problem.rate_mbps.sum()), np.inf if bound is None else bound)
    proof = replace(plain.proof, status=Status.FEASIBLE, objective=value, bound=max(value, limit))
    return Decision(plan=plan, proof=proof, guarantees=frozenset({"capacity", "demand"}))


class _Search:
    """The problem with the routes that traffic may take, and the way to solve it."""

    def __init__(
        self,
        problem: Traffic,
        given: _GivenRoutes,
        options: Options,
        previous: Decision[Routing] | None = None,
    ) -> None:
        self.problem, self.method, self.options = problem, given.method, options
        self.previous = previous
        self.started = time.perf_counter()
        self.scope: str | None = None
        self.found: path_flow_program.CandidatePaths | None = None
        self.restricted: RestrictedFlow | None = None
        limits = RouteLimits.of(problem)
        if given.paths != "any":
            self.found = find_candidates(problem, given.paths, given.choice, given.max_hops, limits)
            self.scope = describe_paths(given.paths, given.choice, given.max_hops, limits)
        elif limits is not None:
            refuse_solver_options("optimum over routes under limits", options)
            before = None if previous is None else previous.plan
            start = None if before is None else PreviousRoutes.of(problem, before)
            self.restricted = RestrictedFlow(problem, limits, start)
            self.scope = "routes that keep latency limits and rules"

    def without_path(self) -> Bools:
        """Return the demands with a rate that none of the routes serves, shape (K,)."""
        if self.found is not None:
            return self.found.without_path(self.problem)
        if self.restricted is not None:
            return self.restricted.without_path
        return np.zeros(len(self.problem.demands), dtype=bool)

    def solve(self, objective: Objective, *, least_mbps: float | None = None) -> Decision[Routing]:
        """Return the decision for an objective other than `delivered`, in the time that is left.

        Where the linear program is too ill-conditioned for its solver to prove an optimum, column generation
        goes on.
        """
        options = self._options_left()
        if self.uses_columns(objective):
            if objective == "concurrent" or objective == "utilization":
                return self._generate_columns(objective, options)
            return self._solve_total(options)
        decision = self._solve_program(objective, options, least_mbps)
        is_given = self.found is not None or self.restricted is not None
        if is_given or (objective != "concurrent" and objective != "utilization"):
            return decision
        options = self._options_left()
        is_late = options.time_limit_s is not None and options.time_limit_s < 0.01
        is_solver_chosen = options.backend != "highs" or options.algorithm != "auto"
        if decision.proof.status is Status.OPTIMAL or is_late or is_solver_chosen:
            return decision
        return merge_proofs(decision, self._generate_columns(objective, options), options)

    def _generate_columns(
        self, objective: column_generation.MinMaxObjective, options: Options, enough: float = np.inf
    ) -> Decision[Routing]:
        """Return the decision of column generation, from the plan before where there is one."""
        return column_generation.route(
            self.problem, objective=objective, enough=enough, options=options, previous=self.previous
        )

    def try_to_fit(self) -> Decision[Routing]:
        """Return the decision for the concurrent flow in half the time that is left.

        Where column generation proves that not everything fits, it has a bound and no plan.
        """
        options = self._options_left()
        if options.time_limit_s is not None:
            options = replace(options, time_limit_s=0.5 * options.time_limit_s)
        return self._generate_columns("concurrent", options, 1 + FIT_TOLERANCE)

    def shorten(self, together: Decision[Routing]) -> Decision[Routing]:
        """Return the decision that serves all with the shortest routes, in the time that is left."""
        return shortest_routes.shorten(self.problem, together, self._options_left())

    def uses_columns(self, objective: Objective) -> bool:
        """Return whether column generation solves for an objective, and not a linear program."""
        if self.found is not None or self.restricted is not None or objective == "cost":
            return False
        least = (
            TOTAL_COLUMN_GENERATION_FLOWS if objective in ("total", "delivered") else COLUMN_GENERATION_FLOWS
        )
        return self.method == "columns" or (
            self.method == "auto" and _is_column_generation_faster(self.problem, self.options, least)
        )

    def finds_least_cost(self) -> bool:
        """Return whether the simplex method over paths solves for the cost, and not a linear program."""
        has_segments = self.found is not None and self.found.share is not None
        if self.restricted is not None or has_segments:
            return False
        if self.method != "auto" or self.found is None:
            is_columns = self.method == "columns"
            return is_columns or (
                self.method == "auto"
                and _is_column_generation_faster(self.problem, self.options, COLUMN_GENERATION_FLOWS)
            )
        is_solver_chosen = self.options.backend != "highs" or self.options.algorithm != "auto"
        return not is_solver_chosen and len(self.found.demand) >= INTERIOR_POINT_PATHS

    def is_too_large(self, objective: Objective) -> bool:
        """Return whether the linear program over links, where one is solved, is too large for the memory."""
        flows = len(self.problem.targets) * len(self.problem.links)
        over_links = self.found is None and self.restricted is None
        return over_links and not self.uses_columns(objective) and flows > MAX_PROGRAM_FLOWS

    def _solve_total(self, options: Options) -> Decision[Routing]:
        """Return the decision for the largest total flow; a linear program may end a search that stalls."""
        flows = len(self.problem.targets) * len(self.problem.links)
        is_by_program = self.method == "auto" and flows <= MAX_ENDING_PROGRAM_FLOWS
        decision = total_flow.route(
            self.problem, exact=not is_by_program, options=options, previous=self.previous
        )
        options = self._options_left()
        is_late = options.time_limit_s is not None and options.time_limit_s < 0.01
        gap = decision.proof.gap
        is_proven = gap is not None and gap <= max(options.gap or 0.0, OPTIMALITY_GAP)
        if is_proven or is_late or not is_by_program:
            return decision
        return merge_proofs(decision, self._solve_program("total", options, None), options)

    def _options_left(self) -> Options:
        """Return the options with the time that is left."""
        return _options_from(self.started, self.options)

    def _solve_program(
        self, objective: Objective, options: Options, least_mbps: float | None
    ) -> Decision[Routing]:
        problem = self.problem
        unit = demand_scale(problem) if objective in ("concurrent", "utilization") else 1.0
        if self.found is not None and objective == "concurrent":
            unit = path_scale(problem, self.found)
        if self.restricted is not None:
            unit = 1.0
            least = (
                []
                if least_mbps is None
                else [LeastDelivery(value=np.ones(len(problem.demands)), amount=least_mbps)]
            )
            restricted = self.restricted.solve(objective, options, least)
            is_partial = objective == "total" or least_mbps is not None
            solution = restricted.solution
            flows = None
            if solution.x is not None:
                flows = flows_over_paths(problem, restricted.paths, solution.x, is_partial=is_partial)
        elif self.found is None:
            solution, flows = _solve_over_links(problem, unit, objective, options, least_mbps)
        else:
            by_lp = self.method == "lp" or least_mbps is not None
            solution, flows = _solve_over_paths(
                problem, unit, objective, self.found, options, least_mbps, by_lp=by_lp, previous=self.previous
            )
        solution = rescale_solution(solution, unit if objective == "concurrent" else 1 / unit)
        proof = Proof(
            status=solution.status,
            objective=solution.objective,
            bound=solution.bound,
            metric=METRIC_OF[objective],
            bound_scope=self.scope or (None if least_mbps is None else "plans that deliver the most"),
            backend=solution.backend,
            reasons=solution.reasons,
        )
        if flows is None:
            return Decision(plan=None, proof=proof)
        return decide_by_plan(problem, objective, flows, proof, options)

    def prove_infeasible(self, objective: Objective, together: Decision[Routing]) -> Decision[Routing]:
        """Return the decision where not all demand fits, with the reason; undecided without proof."""
        bound, metric = together.proof.bound, METRIC_OF[objective]
        if bound is None or bound >= 1:
            return Decision(plan=None, proof=replace(together.proof, status=Status.UNDECIDED, metric=metric))
        reason = f"at most {bound:.4%} of every demand fits at the same time"
        names: tuple[str, ...] = ()
        size = len(self.problem.targets) * len(self.problem.links)
        if size <= MAX_EXPLAINED_FLOWS and self.restricted is None:
            fit = self._program("delivered")
            fit.lower[fit.cost == 1.0] = fit.upper[fit.cost == 1.0]  # every demand at its rate
            names = backends.solve(fit, replace(self.options, backend="highs")).reasons
        proof = replace(
            together.proof,
            status=Status.INFEASIBLE,
            objective=None,
            bound=None,
            metric=metric,
            reasons=(reason, *names),
        )
        return Decision(plan=None, proof=proof)

    def _program(self, objective: Objective) -> LinearProgram:
        if self.found is None:
            return link_flow_program.build(self.problem, objective).program
        return path_flow_program.build(self.problem, objective, self.found)


def model(
    problem: Traffic,
    *,
    objective: Objective = "delivered",
    paths: int | Literal["any", "tunnels"] = "any",
    path_choice: PathChoice = "shortest",
    max_hops: int | None = None,
    method: Method = "auto",  # noqa: ARG001 - the same program, whatever solves it
    classes: class_priorities.ClassOrder = "strict",  # noqa: ARG001 - the program of all classes together
    most_moved: float | None = None,  # noqa: ARG001 - there is no plan before
    service: Service = "best",
) -> LinearProgram:
    """Return the linear program of which `route` finds the optimum with the same parameters.

    With service "all" every demand must be served at its rate, within the capacities. Classes count as one:
    the levels of a problem with classes are programs of their own.
    """
    require_paths(paths, max_hops)
    problem = problem.merged
    if service == "all":
        return _require_all(_model(problem, objective, paths, path_choice, max_hops))
    return _model(problem.routable, objective, paths, path_choice, max_hops)


def _model(
    problem: Traffic,
    objective: Objective,
    paths: int | Literal["any", "tunnels"],
    path_choice: PathChoice,
    max_hops: int | None,
) -> LinearProgram:
    limits = RouteLimits.of(problem)
    if paths == "any" and limits is not None:
        raise InputError(
            "paths is 'any': the linear program over links has no latency limits and rules; give a number of "
            "paths, or 'tunnels'"
        )
    if paths == "any":
        return link_flow_program.build(problem, objective).program
    found = find_candidates(problem, paths, path_choice, max_hops, limits)
    return path_flow_program.build(problem, objective, found)


def _require_all(program: LinearProgram) -> LinearProgram:
    """Return the program with every demand at its rate at least, and no link above its capacity."""
    lower, upper = program.lower.copy(), program.upper.copy()
    for block in program.columns:
        chosen = slice(block.start, block.stop)
        if block.name == "served":
            lower[chosen] = upper[chosen]
        elif block.name == "lambda":
            lower[chosen] = 1.0
        elif block.name == "utilization":
            upper[chosen] = 1.0
    return replace(program, lower=lower, upper=upper)


def _solve_over_links(
    problem: Traffic, unit: float, objective: Objective, options: Options, least_mbps: float | None
) -> tuple[Solution, SolvedFlows | None]:
    scaled = problem.scale_demands(unit)
    if options.backend.startswith("pyomo:"):
        solution, flow, served = _solve_formulation(scaled, objective, options, least_mbps)
    else:
        fast = link_flow_program.build(scaled, objective, least_mbps=least_mbps)
        solution = backends.solve(fast.program, options)
        if solution.x is None:
            return solution, None
        flow, served = fast.flow_mbps(solution.x), scaled.rate_mbps.copy()
        if objective == "total" or least_mbps is not None:
            served[problem.rate_mbps > 0] = solution.x[len(fast.link) :]
    if flow is None:
        return solution, None
    rate = np.clip(served / unit, 0.0, problem.rate_mbps)
    ratios = split_ratios.ratios_of_solution(problem, sp.coo_array(flow / unit))
    return solution, SolvedFlows(
        rate,
        lambda share: routing.routing_by_demand(
            problem, split_ratios.apply_ratios(problem, ratios, rate * share)
        ),
    )


def _solve_formulation(
    problem: Traffic, objective: Objective, options: Options, least_mbps: float | None
) -> tuple[Solution, sp.coo_array | None, Floats]:
    """Solve the formal model through Pyomo: slow, an independent check of the fast program."""
    from planner.backends import pyomo
    from planner_models.traffic.designs.formulation import flow_mbps, formulation, rates_mbps

    m = formulation(problem, objective=objective, least_mbps=least_mbps)
    solution = pyomo.solve_model(m, options)
    if solution.objective is None:
        return solution, None, problem.rate_mbps
    served = rates_mbps(problem, m) if objective == "total" or least_mbps is not None else problem.rate_mbps
    return solution, flow_mbps(problem, m), served


def _solve_over_paths(
    problem: Traffic,
    unit: float,
    objective: Objective,
    found: path_flow_program.CandidatePaths,
    options: Options,
    least_mbps: float | None,
    *,
    by_lp: bool,
    previous: Decision[Routing] | None,
) -> tuple[Solution, SolvedFlows | None]:
    scaled = problem.scale_demands(unit)
    solution = None if by_lp else _solve_by_paths(scaled, objective, found, options, previous)
    if solution is None:
        program = path_flow_program.build(scaled, objective, found, least_mbps=least_mbps)
        solution = backends.solve(program, options)
    if solution.x is None:
        return solution, None
    is_partial = objective == "total" or least_mbps is not None
    x = solution.x[: len(found.demand)] / unit
    return solution, flows_over_paths(problem, found, x, is_partial=is_partial)


def _solve_by_paths(
    problem: Traffic,
    objective: Objective,
    found: path_flow_program.CandidatePaths,
    options: Options,
    previous: Decision[Routing] | None,
) -> Solution | None:
    """Return the solution for many paths; None where a solver for linear programs is to be asked.

    By the simplex method from the routes of the decision before, or by the interior-point method.
    """
    is_solver_chosen = options.backend != "highs" or options.algorithm != "auto"
    is_maximum = objective in ("concurrent", "utilization")
    if is_solver_chosen or len(found.demand) < INTERIOR_POINT_PATHS or found.share is not None:
        return None
    if objective != "total" and not is_maximum:
        return None
    solution: Solution | None = None
    plan = None if previous is None else previous.plan
    if plan is not None and len(problem.links) <= total_flow.MAX_SIMPLEX_LINKS:
        start = PreviousRoutes.of(problem, plan).among(found)
        solve = given_path_flow.solve_utilization if is_maximum else given_path_flow.solve_total
        solution = solve(problem, found, start, options)
    if solution is None:
        search = interior_point.solve_utilization if is_maximum else interior_point.solve_total
        solution = search(problem, found, options)
    if objective == "concurrent" and solution.objective and solution.bound:
        solution = replace(solution, objective=1 / solution.objective, bound=1 / solution.bound)
    is_late = options.time_limit_s is not None
    return solution if solution.status is Status.OPTIMAL or is_late else None


def solves_total_over_paths(problem: Traffic, options: Options) -> bool:
    """Return whether the largest total flow over all routes is found by generated paths."""
    is_free = RouteLimits.of(problem) is None and not problem.has_classes and options.service != "all"
    return is_free and _is_column_generation_faster(problem, options, TOTAL_COLUMN_GENERATION_FLOWS)


def _is_column_generation_faster(problem: Traffic, options: Options, least: int) -> bool:
    """Return whether column generation is faster than the linear program, as measured.

    least  flow variables from which it is

    Seconds on one core: targets x links, linear program, columns to a gap of 1e-6

        geant        1,584    0.03   0.02
        germany50    8,800    0.43   0.12
        ta2          9,072    0.54   0.09
        fat tree 6  17,172    0.85   0.01
        TataNld     51,766    3.6    0.19
    """
    is_solver_chosen = options.backend != "highs" or options.algorithm != "auto"
    return not is_solver_chosen and len(problem.targets) * len(problem.links) >= least


def _require_method(method: Method, paths: int | Literal["any", "tunnels"]) -> None:
    if method == "columns" and paths != "any":
        given = "tunnels" if paths == "tunnels" else "a number of paths"
        raise InputError(f"method is 'columns', which does not know {given}: leave it at 'auto'")
