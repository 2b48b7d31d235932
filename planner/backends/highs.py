"""HiGHS, fed with sparse arrays.

`_solve_auto` says how `auto` chooses an algorithm for a linear program, and by which measurements.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import Any

import highspy
import numpy as np
from highspy import HighsModelStatus

from planner import clock
from planner.arrays import Floats
from planner.backends import basis_cache
from planner.backends.linear_program import LinearProgram
from planner.backends.solution import Solution
from planner.backends.solver_thread import run_in_thread
from planner.backends.verification import InfeasibleOrUnbounded, judge
from planner.contract.proof import Status
from planner.errors import SolverFailure
from planner.options import Options

VERSION = f"{highspy.HIGHS_VERSION_MAJOR}.{highspy.HIGHS_VERSION_MINOR}.{highspy.HIGHS_VERSION_PATCH}"
NAME = f"highs {VERSION}"

STATUS = {  # https://ergo-code.github.io/HiGHS/dev/structures/enums/#HighsModelStatus
    HighsModelStatus.kOptimal: Status.OPTIMAL,
    HighsModelStatus.kModelEmpty: Status.OPTIMAL,  # no rows and no variables
    HighsModelStatus.kInfeasible: Status.INFEASIBLE,
    HighsModelStatus.kUnbounded: Status.UNBOUNDED,
    # These become FEASIBLE or OPTIMAL where the values themselves prove it.
    HighsModelStatus.kTimeLimit: Status.UNDECIDED,
    HighsModelStatus.kIterationLimit: Status.UNDECIDED,
    HighsModelStatus.kSolutionLimit: Status.UNDECIDED,
    HighsModelStatus.kObjectiveBound: Status.UNDECIDED,
    HighsModelStatus.kObjectiveTarget: Status.UNDECIDED,
    HighsModelStatus.kInterrupt: Status.UNDECIDED,
    HighsModelStatus.kHighsInterrupt: Status.UNDECIDED,
    HighsModelStatus.kUnknown: Status.UNDECIDED,  # also said of right answers without a basis
}

CLOCK_STEP_S = 1.0
"""Least step of the system's clock that counts as one."""

SOLVER_OPTION = {"simplex": "simplex", "interior-point": "ipm", "pdlp": "pdlp"}


def solve(model: LinearProgram, options: Options, *, crossover: bool = True) -> Solution:
    """Solve with HiGHS.

    crossover  after an interior point, move on to a vertex: few nonzeros, and a basis as proof.
               Without it the answer counts only as far as its values prove it.

    raises  InfeasibleOrUnbounded where HiGHS does not tell which; SolverFailure where HiGHS fails or
            rejects the model
    """
    if model.is_integer:
        return _solve_integer(model, options)
    if options.algorithm == "auto":
        return _solve_auto(model, options, crossover)
    start = basis_cache.get_basis(model) if options.algorithm == "simplex" else None
    return _solve_linear(model, options, options.algorithm, crossover, start=start)


def version(solver: str) -> str:  # noqa: ARG001 - it is one solver
    """Return the version of HiGHS."""
    return VERSION


def _solve_auto(model: LinearProgram, options: Options, crossover: bool) -> Solution:
    """Solve a linear program with the algorithm that its shape suggests, the same for the same model.

    Seconds on one core (simplex / interior point with crossover), and simplex iterations per row:

        cheapest flow,    8,514 x 37,260       0.46 /  0.77     1.6
        cheapest flow,   20,234 x 88,760       0.58 /  1.7
        assignment,       3,400 x 180,000      1.5  /  2.4      1.5
        covering,         1,000 x 8,000        3.1  /  1.1      4.1
        concurrent flow,  3,072 x 16,385       0.92 /  0.99     2.5   (fat tree)
        concurrent flow,  2,724 x 11,201       1.9  /  0.51     4.9
        concurrent flow,  8,514 x 37,261      32    /  3.6
        concurrent flow, 20,234 x 88,761     >40    / 12

    Where hardly any variable has a cost (as in max-min objectives) most simplex iterations improve
    nothing: the interior point goes first. Elsewhere the simplex goes first and gets two iterations
    per row; unlike a limit in seconds, this makes the answer reproducible. PDLP is faster on the
    largest fat trees only, and its answers may miss the accuracy requested: it runs only by name.
    """
    rows, columns = model.shape
    started = clock.now()
    start = basis_cache.get_basis(model)
    if start is not None:
        iterations = int(WARM_ITERATIONS_PER_ROW * max(rows, SMALL_ROWS))
        solution = _solve_linear(model, options, "simplex", iterations=iterations, start=start)
        left_s = _time_left_s(options, started)
        if solution.status in CONCLUSIVE or left_s == 0.0:
            return solution
        basis_cache.exclude_basis(model)
        options = replace(options, time_limit_s=left_s)
    if rows > SMALL_ROWS and np.count_nonzero(model.cost) < SPARSE_COST_SHARE * columns:
        return _solve_linear(model, options, "interior-point", crossover)
    started = clock.now()
    solution = _solve_linear(
        model, options, "simplex", iterations=int(ITERATIONS_PER_ROW * max(rows, SMALL_ROWS))
    )
    left_s = _time_left_s(options, started)
    if solution.status in CONCLUSIVE or left_s == 0.0:
        return solution
    return _solve_linear(model, replace(options, time_limit_s=left_s), "interior-point", crossover)


SMALL_ROWS = 1000
"""Rows up to which the simplex is quick for any shape."""

ITERATIONS_PER_ROW = 2.0
"""Simplex iterations per row after which the interior point takes over."""

WARM_ITERATIONS_PER_ROW = 0.25
"""Simplex iterations per row from a cached basis after which the solve starts again without it. Few were
needed where demands grew, nearly as many as without a basis where other demands entered."""

SPARSE_COST_SHARE = 0.01
"""Share of variables with a cost below which the interior point goes first."""

PDLP_TOLERANCE = 1e-10
"""Optimality tolerance of PDLP, with which most of its answers pass the verification at 1e-6."""

CONCLUSIVE = (Status.OPTIMAL, Status.INFEASIBLE, Status.UNBOUNDED)


def _solve_linear(
    model: LinearProgram,
    options: Options,
    algorithm: str,
    crossover: bool = True,
    iterations: int | None = None,
    start: Any = None,
) -> Solution:
    started = clock.now()
    has_basis = algorithm == "simplex" or (algorithm == "interior-point" and crossover)
    highs = _load_with_algorithm(model, options, algorithm, crossover)
    if iterations is not None:
        _set(highs, "simplex_iteration_limit", iterations)
    if start is not None:
        highs.setBasis(start)
    solution = _run_and_judge(model, highs, options, f"{NAME} {algorithm}", has_basis)
    left_s = _time_left_s(options, started)
    if left_s == 0.0:
        return solution
    if solution.status is Status.INFEASIBLE and _has_unlimited_gain(model):
        algorithm, has_basis = "simplex", True  # presolve calls some unbounded models infeasible
    elif has_basis or solution.status in CONCLUSIVE:
        return solution
    # Without a basis, variables that presolve removed come back with wrong dual values: solve without it.
    highs = _load_with_algorithm(model, replace(options, time_limit_s=left_s), algorithm, crossover)
    _set(highs, "presolve", "off")
    again = _run_and_judge(model, highs, options, f"{NAME} {algorithm}", has_basis)
    return again if again.x is not None or again.status in CONCLUSIVE else solution


def _load_with_algorithm(
    model: LinearProgram, options: Options, algorithm: str, crossover: bool
) -> highspy.Highs:
    highs = load(model, options)
    _set(highs, "solver", SOLVER_OPTION[algorithm])
    _set(highs, "run_crossover", "on" if crossover else "off")
    if algorithm == "pdlp":
        # Relative to the norm of all limits together; at the default some rows stay far off.
        _set(highs, "pdlp_optimality_tolerance", PDLP_TOLERANCE)
    return highs


def _run_and_judge(
    model: LinearProgram, highs: highspy.Highs, options: Options, backend: str, has_basis: bool
) -> Solution:
    claimed = run(highs, backend)
    values = highs.getSolution()
    if claimed is Status.OPTIMAL:
        basis_cache.store_basis(model, highs)
    return judge(
        model,
        claimed=claimed,
        has_basis=has_basis,
        x=np.array(values.col_value) if values.value_valid else None,
        row_duals=_sign(model) * np.array(values.row_dual) if values.dual_valid else None,
        gap=options.gap,
        backend=backend,
    )


def _time_left_s(options: Options, started: float) -> float | None:
    """Return the seconds left of the time limit, at least 0; None without a limit."""
    if options.time_limit_s is None:
        return None
    return max(0.0, options.time_limit_s - (clock.now() - started))


def _has_unlimited_gain(model: LinearProgram) -> bool:
    """Return whether some variable improves the objective in a direction where it has no limit."""
    gain = -_sign(model) * model.cost
    return bool(np.any(((gain > 0) & np.isinf(model.upper)) | ((gain < 0) & np.isinf(model.lower))))


def _solve_integer(model: LinearProgram, options: Options) -> Solution:
    started = clock.now()
    solution = _branch_and_bound(model, options)
    left_s = _time_left_s(options, started)
    if solution.status is not Status.INFEASIBLE or left_s == 0.0:
        return solution
    # Probing in presolve calls a few feasible models infeasible: solve again without it.
    again = _branch_and_bound(model, replace(options, time_limit_s=left_s), disabled_rule=PROBING_RULE)
    return again if again.x is not None else solution


PROBING_RULE = 1 << 15
"""Bit of this rule in HiGHS' option `presolve_rule_off`."""


def _branch_and_bound(model: LinearProgram, options: Options, disabled_rule: int = 0) -> Solution:
    highs = load(model, options)
    _set(highs, "presolve_rule_off", disabled_rule)
    if model.start is not None:
        _start_from(highs, model.start, model.shape[1])
    if options.gap is not None:
        _set(highs, "mip_rel_gap", options.gap)
        _set(highs, "mip_abs_gap", 1e-9)  # its default, 1e-6, would end small objectives early
    backend = f"{NAME} branch-and-bound"
    claimed = run(highs, backend)
    values, info = highs.getSolution(), highs.getInfo()
    is_found = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    return judge(
        model,
        claimed=claimed,
        x=np.array(values.col_value) if is_found else None,
        bound=_sign(model) * info.mip_dual_bound,
        gap=options.gap,
        backend=backend,
    )


def _start_from(highs: highspy.Highs, start: Floats, count: int) -> None:
    """Pass values of the first variables of `count`; HiGHS searches for those of the others."""
    if len(start) < count:
        highs.setSolution(len(start), np.arange(len(start), dtype=np.int32), start)
        return
    solution = highspy.HighsSolution()
    solution.col_value, solution.value_valid = start.tolist(), True
    highs.setSolution(solution)


def _sign(model: LinearProgram) -> float:
    return 1.0 if model.sense == "min" else -1.0


def load(model: LinearProgram, options: Options = Options()) -> highspy.Highs:
    """Return a silent HiGHS with the model and the options, ready to run.

    A maximum is passed as the minimum of the negated costs: HiGHS 1.13 confuses the signs of dual
    values when PDLP or the interior point maximises.
    """
    highs = highspy.Highs()
    _set(highs, "output_flag", False)
    highs.HandleUserInterrupt = True  # so that Ctrl-C can stop it
    if options.time_limit_s is not None:
        _limit_time(highs, float(options.time_limit_s))
    if options.threads is not None:
        _set(highs, "threads", options.threads)
    if options.seed is not None:
        _set(highs, "random_seed", options.seed)
    matrix, (rows, columns) = model.matrix, model.shape
    integer = np.zeros(columns, dtype=bool) if model.integer is None else model.integer
    status = highs.passModel(
        columns,
        rows,
        matrix.nnz,
        int(highspy.MatrixFormat.kRowwise),
        int(highspy.ObjSense.kMinimize),
        _sign(model) * model.offset,
        model.cost if model.sense == "min" else -model.cost,
        model.lower,
        model.upper,
        model.row_lower,
        model.row_upper,
        matrix.indptr,
        matrix.indices,
        matrix.data,
        integer.astype(np.int32),
    )
    if status == highspy.HighsStatus.kError:
        raise SolverFailure(f"{NAME} calls the model '{model.name}' invalid")
    return highs


def _limit_time(highs: highspy.Highs, limit_s: float) -> None:
    """Let HiGHS end after so many seconds from now, of the clock of time limits."""
    _set(highs, "time_limit", clock.wall_limit_s(limit_s))
    if not clock.is_counting_cpu():
        return
    end = clock.cpu_now() + limit_s
    for interrupt in (highs.cbMipInterrupt, highs.cbSimplexInterrupt, highs.cbIpmInterrupt):
        interrupt.subscribe(lambda event: event.interrupt() if clock.cpu_now() > end else None)


def run(highs: highspy.Highs, backend: str) -> Status:
    """Run HiGHS to its end and return its status in our terms.

    HiGHS reads the system's clock: where that is set forward, the search goes on for the rest of its limit;
    where it is set back, the search is cancelled at its limit.
    """
    limit_s = _remaining_s(highs)
    before_s, started = highs.getRunTime(), time.monotonic()
    run_in_thread(highs.run, cancel=highs.cancelSolve, time_limit_s=limit_s)
    elapsed_s = time.monotonic() - started
    is_forward = highs.getRunTime() - before_s > elapsed_s + CLOCK_STEP_S
    if is_forward and highs.getModelStatus() == HighsModelStatus.kTimeLimit:
        limit_s -= elapsed_s
        _set(highs, "time_limit", highs.getRunTime() + max(0.0, limit_s))
        run_in_thread(highs.run, cancel=highs.cancelSolve, time_limit_s=limit_s)
    status = highs.getModelStatus()
    if status == HighsModelStatus.kUnboundedOrInfeasible:
        raise InfeasibleOrUnbounded(backend)
    if status == HighsModelStatus.kNotset and limit_s < math.inf:
        return Status.UNDECIDED  # seen of HiGHS 1.13 where a limit of CPU time interrupts it
    if status not in STATUS:
        raise SolverFailure(f"{NAME} failed: {highs.modelStatusToString(status)}")
    return STATUS[status]


def _remaining_s(highs: highspy.Highs) -> float:
    """Return the seconds until the time limit of HiGHS, which counts those of all runs; inf without one.

    raises  SolverFailure where the system's clock was set back before the first run of HiGHS: it would write
            outside of its memory
    """
    run_s: float = highs.getRunTime()
    if run_s < 0:
        raise SolverFailure(f"{NAME}: the system's clock was set back by {-run_s:.0f} s meanwhile; run again")
    limit_s: float = highs.getOptionValue("time_limit")[1]
    return limit_s - run_s


def _set(highs: highspy.Highs, option: str, value: Any) -> None:
    if highs.setOptionValue(option, value) == highspy.HighsStatus.kError:
        raise SolverFailure(f"{NAME} does not take {option} = {value}")
