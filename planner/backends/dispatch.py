"""Solves a program with the backend that the options name, and explains infeasible ones."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from planner.backends.registry import find_backend, model_faults, name_faults
from planner.backends.solution import Solution
from planner.contract.proof import Status
from planner.errors import InputError
from planner.options import Options

if TYPE_CHECKING:
    from planner.backends.backend import Implementation
    from planner.backends.linear_program import LinearProgram

EXPLANATION_LIMIT_S: Final = 10.0
"""Most seconds spent on finding the rows that conflict."""


def prefer_interior_point(options: Options) -> Options:
    """Return options with the interior-point method, where HiGHS solves and no algorithm is asked for.

    For linear programs on which the simplex method takes long, such as those with many optimal solutions.
    """
    is_free = options.backend == "highs" and options.algorithm == "auto"
    return replace(options, algorithm="interior-point") if is_free else options


def solve(model: LinearProgram, options: Options = Options()) -> Solution:
    """Solve a linear or mixed-integer program with the backend that `options` names.

    raises  InputError where the backend cannot express the model or honour an option; SolverFailure
            where the solver crashes, refuses its licence or rejects the model
    """
    from planner.backends.infeasibility import contradictory_limits

    started = time.perf_counter()
    if faults := [f"backend: {fault}" for fault in name_faults(options.backend)]:
        raise InputError(*faults)
    if faults := model_faults(model, options):
        raise InputError(*faults)
    if reasons := contradictory_limits(model):
        solution = Solution(status=Status.INFEASIBLE, backend=options.backend, reasons=reasons)
    elif model.shape[1] == 0:
        solution = _solve_without_variables(model, options)
    else:
        implementation = find_backend(options.backend.partition(":")[0]).load()
        solution = _solve_scaled(implementation, model, options)
        if model.start is not None and model.is_integer:
            solution = _at_least_start(solution, model, options)
        if solution.status is Status.INFEASIBLE:
            left_s = _time_left_s(options, started)
            solution = _explain_infeasibility(solution, model, min(EXPLANATION_LIMIT_S, left_s))
    return replace(solution, seconds=time.perf_counter() - started)


def _solve_scaled(implementation: Implementation, model: LinearProgram, options: Options) -> Solution:
    """Solve with rows of small coefficients scaled, and then small limits."""
    from planner.backends import row_scaling

    factors = row_scaling.find_factors(model)
    scaled = model if factors is None else row_scaling.scale_rows(model, factors)
    unit = row_scaling.find_unit_factor(scaled)
    if unit != 1.0:
        scaled = row_scaling.scale_amounts(scaled, unit)
    solution = _solve_decisively(implementation, scaled, options)
    if unit != 1.0:
        solution = row_scaling.unscale_amounts(solution, unit)
    return solution if factors is None else row_scaling.unscale_duals(solution, factors)


def _at_least_start(solution: Solution, model: LinearProgram, options: Options) -> Solution:
    """Return the better of a solution and the start of an integer program, where that is feasible."""
    from planner.backends.verification import judge
    from planner.contract.proof import relative_gap

    if solution.status not in (Status.FEASIBLE, Status.UNDECIDED):
        return solution
    start = judge(
        model, claimed=Status.UNDECIDED, backend=solution.backend, x=model.start, bound=solution.bound
    )
    if start.objective is None:
        return solution
    if solution.objective is not None:
        gain = start.objective - solution.objective
        if gain <= 0 if model.sense == "max" else gain >= 0:
            return solution
    gap = relative_gap(start.objective, start.bound)
    is_optimal = gap is not None and options.gap is not None and gap <= options.gap
    return replace(start, status=Status.OPTIMAL if is_optimal else Status.FEASIBLE)


def _solve_without_variables(model: LinearProgram, options: Options) -> Solution:
    """Return the empty point, the only one: solvers differ in their answers here."""
    import numpy as np

    return Solution(
        status=Status.OPTIMAL,
        backend=options.backend,
        x=model.cost.copy(),
        row_duals=np.zeros(model.shape[0]),
        reduced_costs=model.cost.copy(),
        objective=model.offset,
        bound=model.offset,
    )


def _explain_infeasibility(solution: Solution, model: LinearProgram, seconds: float) -> Solution:
    """Add the rows that conflict; undecided where the model is feasible after all, as PDLP may err."""
    from planner.backends.infeasibility import explain

    reasons = explain(model, seconds=seconds)
    if reasons is None:
        claim = f"{solution.backend} calls the model infeasible, which it is not"
        return replace(solution, status=Status.UNDECIDED, reasons=(claim,))
    return replace(solution, reasons=reasons)


def _solve_decisively(implementation: Implementation, model: LinearProgram, options: Options) -> Solution:
    """Solve; where the solver cannot tell infeasible from unbounded, solve again without costs."""
    from planner.backends.verification import InfeasibleOrUnbounded

    started = time.perf_counter()
    try:
        return implementation.solve(model, options)
    except InfeasibleOrUnbounded as ambiguous:
        limit_s = None if options.time_limit_s is None else _time_left_s(options, started)
        costless = replace(model, cost=model.cost * 0.0, offset=0.0)
        try:
            probe = implementation.solve(costless, replace(options, time_limit_s=limit_s))
        except InfeasibleOrUnbounded:  # nothing costs, so nothing is unbounded
            return Solution(status=Status.INFEASIBLE, backend=str(ambiguous))
        status = Status.UNBOUNDED if probe.x is not None else probe.status
        return Solution(status=status, backend=probe.backend, reasons=probe.reasons)


def _time_left_s(options: Options, started: float) -> float:
    """Return the seconds left of the time limit, at least 1, so that an explanation gets its chance."""
    if options.time_limit_s is None:
        return EXPLANATION_LIMIT_S
    return max(1.0, options.time_limit_s - (time.perf_counter() - started))
