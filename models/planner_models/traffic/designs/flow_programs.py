"""Flows by one linear program: over all links, or over given paths."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
import scipy.sparse as sp

from planner import backends
from planner.arrays import Floats
from planner.backends import Solution
from planner.contract.design import Decision
from planner.contract.proof import Status
from planner.options import Options
from planner_models.flows import (
    given_path_flow,
    interior_point,
    link_flow_program,
    path_flow_program,
    split_ratios,
)
from planner_models.flows.link_flow_program import Objective
from planner_models.flows.previous_routes import PreviousRoutes
from planner_models.traffic.designs.path_flows import total_flow
from planner_models.traffic.plan import plan as routing
from planner_models.traffic.plan.flow_decision import SolvedFlows, flows_over_paths
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.problem.problem import Traffic

INTERIOR_POINT_PATHS: Final = 2_000  # candidate paths from which the interior-point method of its own is used


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


def solve_over_paths(
    problem: Traffic,
    unit: float,
    objective: Objective,
    paths: path_flow_program.CandidatePaths,
    options: Options,
    least_mbps: float | None,
    *,
    by_lp: bool,
    previous: Decision[Routing] | None,
) -> tuple[Solution, SolvedFlows | None]:
    """Return the solution over given paths, and its flows; None where it has none.

    unit        factor of the demands at which it is solved
    least_mbps  traffic that the plan delivers at least
    by_lp       by the linear program, however many paths there are
    previous    decision whose routes the search over many paths starts from
    """
    scaled = problem.scale_demands(unit)
    solution = None if by_lp else _solve_by_paths(scaled, objective, paths, options, previous)
    if solution is None:
        program = path_flow_program.build(scaled, objective, paths, least_mbps=least_mbps)
        solution = backends.solve(program, options)
    if solution.x is None:
        return solution, None
    is_partial = objective == "total" or least_mbps is not None
    x = solution.x[: len(paths.demand)] / unit
    return solution, flows_over_paths(problem, paths, x, is_partial=is_partial)


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
    is_maximum = objective in ("concurrent", "utilization")
    if not has_many_paths(paths, options) or (objective != "total" and not is_maximum):
        return None
    solution: Solution | None = None
    plan = None if previous is None else previous.plan
    if plan is not None and len(problem.links) <= total_flow.MAX_SIMPLEX_LINKS:
        start = PreviousRoutes.of(problem, plan).among(paths)
        solve = given_path_flow.solve_utilization if is_maximum else given_path_flow.solve_total
        solution = solve(problem, paths, start, options)
    if solution is None:
        search = interior_point.solve_utilization if is_maximum else interior_point.solve_total
        solution = search(problem, paths, options)
    if objective == "concurrent" and solution.objective and solution.bound:
        solution = replace(solution, objective=1 / solution.objective, bound=1 / solution.bound)
    is_late = options.time_limit_s is not None
    return solution if solution.status is Status.OPTIMAL or is_late else None
