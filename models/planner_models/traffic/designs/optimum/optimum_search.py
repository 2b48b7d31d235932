"""Search for the best routing over given routes: by linear programming, column generation or over paths.

A linear program is one over all links, or over given paths.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Final, Literal

import numpy as np
import scipy.sparse as sp
from pydantic import Field

from planner import backends
from planner.arrays import Bools, Floats
from planner.backends import Solution
from planner.backends.linear_program import LinearProgram
from planner.contract.design import Decision
from planner.contract.proof import Status
from planner.options import Options
from planner.search.deadline import Deadline
from planner.search.judged import of_solution
from planner.search.tolerances import FEASIBILITY
from planner_models.flows import (
    given_path_flow,
    interior_point,
    link_flow_program,
    path_flow_program,
    split_ratios,
    total_flow,
)
from planner_models.flows.link_flow_program import METRIC_OF, Objective
from planner_models.flows.previous_routes import PreviousRoutes
from planner_models.flows.restricted_flow import LeastDelivery, RestrictedFlow
from planner_models.flows.route_limits import RouteLimits
from planner_models.traffic.designs import column_generation, path_flows
from planner_models.traffic.designs.demand_scale import demand_scale, path_scale, rescale_solution
from planner_models.traffic.designs.route_choice import (
    Choice,
    HopLimit,
    PathCount,
    describe_paths,
    find_candidates,
)
from planner_models.traffic.plan import plan as routing
from planner_models.traffic.plan.flow_decision import (
    OPTIMALITY_GAP,
    SolvedFlows,
    decide_by_plan,
    flows_over_paths,
    merge_proofs,
    refuse_solver_options,
)
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.problem.problem import Traffic

MAX_EXPLAINED_FLOWS: Final = 50_000
"""Flow variables up to which conflicting rows explain that not all demand fits."""
MAX_PROGRAM_FLOWS: Final = 1_000_000  # flow variables of a linear program; larger ones need gigabytes
MAX_ENDING_PROGRAM_FLOWS: Final = 20_000
"""Flow variables up to which the linear program, which needs no compiling, ends a search that stalls."""
COLUMN_GENERATION_FLOWS: Final = 10_000
"""Flow variables from which method `auto` uses column generation."""
TOTAL_COLUMN_GENERATION_FLOWS: Final = 5_000
"""The same for the largest total flow. Where everything fits, routes below the number above are shortened."""

LARGE_DEMANDS: Final = 100_000
LARGE_LINKS: Final = 800  # with more of both, the simplex method over paths takes hours for the least cost
SEARCH_S_PER_DEMAND: Final = (
    5e-6  # CPU seconds until the first routes and plan of a large search, as measured
)
MIN_MAX_S_PER_DEMAND: Final = 2.5e-6  # the same for the concurrent flow and the utilization
FIT_TOLERANCE: Final = FEASIBILITY  # of the demands; where all but this share fits, all counts as fitting

Method = Annotated[
    Literal["auto", "lp", "columns"],
    Field(
        description="lp: the linear program, exact; columns: column generation, to a gap of 1e-6, "
        "or exact; auto: columns where the linear program is large"
    ),
]
INTERIOR_POINT_PATHS: Final = 2_000  # candidate paths from which the interior-point method of its own is used


@dataclass(frozen=True, kw_only=True)
class GivenRoutes:
    """The routes that traffic may take, and the method."""

    paths: PathCount = "any"
    path_choice: Choice = "shortest"
    max_hops: HopLimit = None
    method: Method = "auto"


class OptimumSearch:
    """The problem with the routes that traffic may take, and the way to solve it."""

    def __init__(
        self,
        problem: Traffic,
        routes: GivenRoutes,
        options: Options,
        previous: Decision[Routing] | None = None,
    ) -> None:
        self.problem, self.method, self.options = problem, routes.method, options
        self.previous = previous
        self.deadline = Deadline.of(options)
        self.scope: str | None = None
        self.found: path_flow_program.CandidatePaths | None = None
        self.restricted: RestrictedFlow | None = None
        limits = RouteLimits.of(problem)
        if routes.paths != "any":
            self.found = find_candidates(problem, routes.paths, routes.path_choice, routes.max_hops, limits)
            self.scope = describe_paths(routes.paths, routes.path_choice, routes.max_hops, limits)
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
        if decision.proof.status is Status.OPTIMAL or is_late or options.is_solver_chosen:
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
        return self._generate_columns("concurrent", self._options_left().share_time(0.5), 1 + FIT_TOLERANCE)

    def shorten(self, together: Decision[Routing]) -> Decision[Routing]:
        """Return the decision that serves all with the shortest routes, in the time that is left."""
        return path_flows.shorten(self.problem, together, self._options_left())

    def uses_columns(self, objective: Objective) -> bool:
        """Return whether column generation solves for an objective, and not a linear program."""
        if self.found is not None or self.restricted is not None or objective == "cost":
            return False
        min_size = (
            TOTAL_COLUMN_GENERATION_FLOWS if objective in ("total", "delivered") else COLUMN_GENERATION_FLOWS
        )
        return self.method == "columns" or (
            self.method == "auto" and _is_column_generation_faster(self.problem, self.options, min_size)
        )

    def needed_s(self, objective: Objective) -> float:
        """Return the CPU seconds that column generation takes until its first plan; 0 where that is soon."""
        demands = int((self.problem.rate_mbps > 0).sum())
        if demands <= LARGE_DEMANDS or not self.uses_columns(objective):
            return 0.0
        return demands * (
            MIN_MAX_S_PER_DEMAND if objective in ("concurrent", "utilization") else SEARCH_S_PER_DEMAND
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
        return has_many_paths(self.found, self.options)

    def find_least_cost(self) -> Decision[Routing]:
        """Return the least-cost decision: exact, or to a gap where the simplex method would take hours."""
        problem, options, previous = self.problem, self.options, self.previous
        if self.found is None and len(problem.demands) > LARGE_DEMANDS and len(problem.links) > LARGE_LINKS:
            return path_flows.route_cheaply(problem, options=options, previous=previous)
        return path_flows.route_cheapest(
            problem, paths=self.found, scope=self.scope, options=options, previous=previous
        )

    def is_too_large(self, objective: Objective) -> bool:
        """Return whether the linear program over links, where one is solved, is too large for the memory."""
        flows = len(self.problem.targets) * len(self.problem.links)
        over_links = self.found is None and self.restricted is None
        return over_links and not self.uses_columns(objective) and flows > MAX_PROGRAM_FLOWS

    def _solve_total(self, options: Options) -> Decision[Routing]:
        """Return the decision for the largest total flow; a linear program may end a search that stalls."""
        flows = len(self.problem.targets) * len(self.problem.links)
        is_by_program = self.method == "auto" and flows <= MAX_ENDING_PROGRAM_FLOWS
        decision = path_flows.route_most(
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
        return self.deadline.options(self.options)

    def _solve_program(
        self, objective: Objective, options: Options, least_mbps: float | None
    ) -> Decision[Routing]:
        problem = self.problem
        unit = demand_scale(problem) if objective in ("concurrent", "utilization") else 1.0
        if self.found is not None and objective == "concurrent":
            unit = path_scale(problem, self.found)
        if self.restricted is not None:
            unit = 1.0
            solution, flows = _solve_restricted(problem, self.restricted, objective, options, least_mbps)
        elif self.found is None:
            solution, flows = solve_over_links(problem, unit, objective, options, least_mbps)
        else:
            solution, flows = self._solve_over_paths(unit, objective, self.found, options, least_mbps)
        solution = rescale_solution(solution, unit if objective == "concurrent" else 1 / unit)
        proof = of_solution(
            solution,
            objective=solution.objective,
            bound=solution.bound,
            metric=METRIC_OF[objective],
            bound_scope=self.scope or (None if least_mbps is None else "plans that deliver the most"),
            reasons=solution.reasons,
        )
        if flows is None:
            return Decision(plan=None, proof=proof)
        return decide_by_plan(problem, objective, flows, proof, options)

    def _solve_over_paths(
        self,
        unit: float,
        objective: Objective,
        paths: path_flow_program.CandidatePaths,
        options: Options,
        least_mbps: float | None,
    ) -> tuple[Solution, SolvedFlows | None]:
        """Return the solution over given paths, and its flows; None where it has none.

        unit        factor of the demands at which it is solved
        least_mbps  traffic that the plan delivers at least
        """
        scaled = self.problem.scale_demands(unit)
        by_lp = self.method == "lp" or least_mbps is not None
        solution = None if by_lp else _solve_by_paths(scaled, objective, paths, options, self.previous)
        if solution is None:
            program = path_flow_program.build(scaled, objective, paths, least_mbps=least_mbps)
            solution = backends.solve(program, options)
        if solution.x is None:
            return solution, None
        is_partial = objective == "total" or least_mbps is not None
        x = solution.x[: len(paths.demand)] / unit
        return solution, flows_over_paths(self.problem, paths, x, is_partial=is_partial)

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


def solves_total_over_paths(problem: Traffic, options: Options) -> bool:
    """Return whether the largest total flow over all routes is found by generated paths."""
    is_free = RouteLimits.of(problem) is None and not problem.has_classes and options.service != "all"
    return is_free and _is_column_generation_faster(problem, options, TOTAL_COLUMN_GENERATION_FLOWS)


def _is_column_generation_faster(problem: Traffic, options: Options, min_size: int) -> bool:
    """Return whether column generation is faster than the linear program, as measured.

    min_size  flow variables from which it is

    Seconds on one core: targets x links, linear program, columns to a gap of 1e-6

        geant        1,584    0.03   0.02
        germany50    8,800    0.43   0.12
        ta2          9,072    0.54   0.09
        fat tree 6  17,172    0.85   0.01
        TataNld     51,766    3.6    0.19
    """
    return not options.is_solver_chosen and len(problem.targets) * len(problem.links) >= min_size


def has_many_paths(paths: path_flow_program.CandidatePaths, options: Options) -> bool:
    """Return whether paths are so many that the linear program is slow, and no solver is chosen for it."""
    return not options.is_solver_chosen and paths.share is None and len(paths.demand) >= INTERIOR_POINT_PATHS


def solve_over_links(
    problem: Traffic, unit: float, objective: Objective, options: Options, least_mbps: float | None
) -> tuple[Solution, SolvedFlows | None]:
    """Return the solution of the linear program over all links, and its flows; None where it has none.

    unit        factor of the demands at which it is solved
    least_mbps  traffic that the plan delivers at least
    """
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


def _solve_restricted(
    problem: Traffic,
    restricted: RestrictedFlow,
    objective: Objective,
    options: Options,
    least_mbps: float | None,
) -> tuple[Solution, SolvedFlows | None]:
    """Return the solution over paths that are added where they can improve it, and its flows."""
    minimums = []
    if least_mbps is not None:
        minimums = [LeastDelivery(value=np.ones(len(problem.demands)), amount=least_mbps)]
    result = restricted.solve(objective, options, minimums)
    if result.solution.x is None:
        return result.solution, None
    is_partial = objective == "total" or least_mbps is not None
    return result.solution, flows_over_paths(problem, result.paths, result.solution.x, is_partial=is_partial)


def _solve_by_paths(
    problem: Traffic,
    objective: Objective,
    paths: path_flow_program.CandidatePaths,
    options: Options,
    previous: Decision[Routing] | None,
) -> Solution | None:
    """Return the solution for many paths; None where a solver for linear programs is to be asked.

    By the simplex method from the routes of the decision before, or by the interior-point method.
    """
    if not has_many_paths(paths, options) or objective not in ("total", "concurrent", "utilization"):
        return None
    solve, search = given_path_flow.solve_utilization, interior_point.solve_utilization
    if objective == "total":
        solve, search = given_path_flow.solve_total, interior_point.solve_total
    solution: Solution | None = None
    plan = None if previous is None else previous.plan
    if plan is not None and len(problem.links) <= total_flow.MAX_SIMPLEX_LINKS:
        start = PreviousRoutes.of(problem, plan).among(paths)
        solution = solve(problem, paths, start, options)
    if solution is None:
        solution = search(problem, paths, options)
    if objective == "concurrent" and solution.objective and solution.bound:
        solution = replace(solution, objective=1 / solution.objective, bound=1 / solution.bound)
    is_late = options.time_limit_s is not None
    return solution if solution.status is Status.OPTIMAL or is_late else None
