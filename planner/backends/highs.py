"""HiGHS, fed with sparse arrays.

What `auto` means for a linear program, and the measurements behind it, stand at `_auto`.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import highspy
import numpy as np
from highspy import HighsModelStatus

from planner.backends import Solution, memory
from planner.backends.apart import apart
from planner.backends.linear import LinearProgram
from planner.backends.verify import InfeasibleOrUnbounded, judge
from planner.errors import InputError, SolverFailure
from planner.options import Options
from planner.proof import Status

NAME = f"highs {highspy.HIGHS_VERSION_MAJOR}.{highspy.HIGHS_VERSION_MINOR}.{highspy.HIGHS_VERSION_PATCH}"

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

SOLVER = {"simplex": "simplex", "interior-point": "ipm", "pdlp": "pdlp"}


def solve(model: LinearProgram, options: Options, *, crossover: bool = True) -> Solution:
    """Solve with HiGHS.

    crossover  after an interior point, move on to a vertex: few nonzeros, and a basis as proof.
               Without it the answer counts only as far as its values prove it.

    Raises InfeasibleOrUnbounded where HiGHS cannot tell which, InputError for an algorithm that
    integer programs do not have, SolverFailure where HiGHS fails or rejects the model.
    """
    if refused := faults(model, options):
        raise InputError(*refused)
    if model.is_integer:
        return _integer(model, options)
    if options.algorithm == "auto":
        return _auto(model, options, crossover)
    start = memory.basis_for(model) if options.algorithm == "simplex" else None
    return _linear(model, options, options.algorithm, crossover, start=start)


def faults(model: LinearProgram, options: Options) -> list[str]:
    """Why this cannot run, one line each; [] if it can."""
    if model.is_integer and options.algorithm in ("interior-point", "pdlp"):
        return [f"highs has no algorithm '{options.algorithm}' for integer programs: leave it at 'auto'"]
    return []


def _auto(model: LinearProgram, options: Options, crossover: bool) -> Solution:
    """The algorithm that the model's shape suggests; the same model always takes the same way.

    Seconds on one core (simplex / interior point with crossover), and simplex iterations per row:

        cheapest flow,    8,514 x 37,260       0.46 /  0.77     1.6
        cheapest flow,   20,234 x 88,760       0.58 /  1.7
        assignment,       3,400 x 180,000      1.5  /  2.4      1.5
        covering,         1,000 x 8,000        3.1  /  1.1      4.1
        concurrent flow,  3,072 x 16,385       0.92 /  0.99     2.5   (fat tree)
        concurrent flow,  2,724 x 11,201       1.9  /  0.51     4.9
        concurrent flow,  8,514 x 37,261      32    /  3.6
        concurrent flow, 20,234 x 88,761     >40    / 12

    Where hardly any variable has a cost (the best worst share of many) most steps of the simplex
    gain nothing: the interior point goes first. Elsewhere the simplex goes first, and two
    iterations per row tell whether it goes well; unlike seconds, they make the answer repeat.
    PDLP pays on the largest fat trees only, and its answers may miss the accuracy asked of it: it
    is left to those who ask for it.
    """
    rows, columns = model.shape
    started = time.perf_counter()
    start = memory.basis_for(model)
    if start is not None:
        steps = int(WARM_ITERATIONS_PER_ROW * max(rows, SMALL))
        solution = _linear(model, options, "simplex", iterations=steps, start=start)
        left = _left(options, started)
        if solution.status in CONCLUSIVE or left == 0.0:
            return solution
        memory.give_up(model)
        options = replace(options, time_limit_s=left)
    if rows > SMALL and np.count_nonzero(model.cost) < SPARSE_COST * columns:
        return _linear(model, options, "interior-point", crossover)
    started = time.perf_counter()
    solution = _linear(model, options, "simplex", iterations=int(ITERATIONS_PER_ROW * max(rows, SMALL)))
    left = _left(options, started)
    if solution.status in CONCLUSIVE or left == 0.0:
        return solution
    return _linear(model, replace(options, time_limit_s=left), "interior-point", crossover)


SMALL = 1000
"""Rows up to which the simplex is quick whatever the shape."""

ITERATIONS_PER_ROW = 2.0
"""Steps of the simplex per row after which the interior point takes over."""

WARM_ITERATIONS_PER_ROW = 0.25
"""Steps per row from a basis at hand (`memory`) after which that was no help, and all starts afresh:
few were needed where demands grew, most of a cold start's where other demands were let in."""

SPARSE_COST = 0.01
"""Share of variables with a cost below which the interior point goes first."""

PDLP_ACCURACY = 1e-10
"""What HiGHS' PDLP is asked for, so that most of its answers pass the check at 1e-6."""

CONCLUSIVE = (Status.OPTIMAL, Status.INFEASIBLE, Status.UNBOUNDED)


def _linear(
    model: LinearProgram,
    options: Options,
    algorithm: str,
    crossover: bool = True,
    iterations: int | None = None,
    start: Any = None,
) -> Solution:
    started = time.perf_counter()
    basis = algorithm == "simplex" or (algorithm == "interior-point" and crossover)
    highs = _prepared(model, options, algorithm, crossover)
    if iterations is not None:
        _set(highs, "simplex_iteration_limit", iterations)
    if start is not None:
        highs.setBasis(start)
    solution = _answer(model, highs, options, f"{NAME} {algorithm}", basis)
    left = _left(options, started)
    if left == 0.0:
        return solution
    if solution.status is Status.INFEASIBLE and _may_be_unbounded(model):
        algorithm, basis = "simplex", True  # presolve calls some unbounded models infeasible
    elif basis or solution.status in CONCLUSIVE:
        return solution
    # Else, without a basis: what presolve takes out comes back without its right dual values.
    highs = _prepared(model, replace(options, time_limit_s=left), algorithm, crossover)
    _set(highs, "presolve", "off")
    again = _answer(model, highs, options, f"{NAME} {algorithm}", basis)
    return again if again.x is not None or again.status in CONCLUSIVE else solution


def _prepared(model: LinearProgram, options: Options, algorithm: str, crossover: bool) -> highspy.Highs:
    highs = load(model, options)
    _set(highs, "solver", SOLVER[algorithm])
    _set(highs, "run_crossover", "on" if crossover else "off")
    if algorithm == "pdlp":
        # Relative to the norm of all limits together; at the default some rows stay far off.
        _set(highs, "pdlp_optimality_tolerance", PDLP_ACCURACY)
    return highs


def _answer(
    model: LinearProgram, highs: highspy.Highs, options: Options, backend: str, basis: bool
) -> Solution:
    claimed = run(highs, backend)
    values = highs.getSolution()
    if claimed is Status.OPTIMAL:
        memory.keep(model, highs)
    return judge(
        model,
        claimed=claimed,
        vertex=basis,
        x=np.array(values.col_value) if values.value_valid else None,
        row_duals=_sign(model) * np.array(values.row_dual) if values.dual_valid else None,
        gap=options.gap,
        backend=backend,
    )


def _left(options: Options, started: float) -> float | None:
    """Seconds left of the time limit, at least 0; None without one."""
    if options.time_limit_s is None:
        return None
    return max(0.0, options.time_limit_s - (time.perf_counter() - started))


def _may_be_unbounded(model: LinearProgram) -> bool:
    """True where some variable gains without a limit of its own."""
    gain = -_sign(model) * model.cost
    return bool(np.any(((gain > 0) & np.isinf(model.upper)) | ((gain < 0) & np.isinf(model.lower))))


def _integer(model: LinearProgram, options: Options) -> Solution:
    started = time.perf_counter()
    solution = _branch_and_bound(model, options)
    left = _left(options, started)
    if solution.status is not Status.INFEASIBLE or left == 0.0:
        return solution
    # Probing in presolve calls a few models infeasible that are not: a second look without it.
    again = _branch_and_bound(model, replace(options, time_limit_s=left), without=PROBING)
    return again if again.x is not None else solution


PROBING = 1 << 15
"""HiGHS' bit for this rule of presolve."""


def _branch_and_bound(model: LinearProgram, options: Options, without: int = 0) -> Solution:
    highs = load(model, options)
    _set(highs, "presolve_rule_off", without)
    if options.gap is not None:
        _set(highs, "mip_rel_gap", options.gap)
        _set(highs, "mip_abs_gap", 1e-9)  # its default, 1e-6, would end small objectives early
    backend = f"{NAME} branch-and-bound"
    claimed = run(highs, backend)
    values, info = highs.getSolution(), highs.getInfo()
    found = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    return judge(
        model,
        claimed=claimed,
        x=np.array(values.col_value) if found else None,
        bound=_sign(model) * info.mip_dual_bound,
        gap=options.gap,
        backend=backend,
    )


def _sign(model: LinearProgram) -> float:
    return 1.0 if model.sense == "min" else -1.0


def load(model: LinearProgram, options: Options = Options()) -> highspy.Highs:
    """A silent HiGHS that holds the model and the options' limits, ready to run.

    A maximum is handed over as the minimum of the negated costs: HiGHS 1.13 confuses the signs of
    dual values when PDLP or the interior point maximises.
    """
    highs = highspy.Highs()
    _set(highs, "output_flag", False)
    highs.HandleUserInterrupt = True  # so that Ctrl-C can stop it
    if options.time_limit_s is not None:
        _set(highs, "time_limit", float(options.time_limit_s))
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


def run(highs: highspy.Highs, backend: str) -> Status:
    """Run to the end and translate the status."""
    apart(highs.run, cancel=highs.cancelSolve)
    status = highs.getModelStatus()
    if status == HighsModelStatus.kUnboundedOrInfeasible:
        raise InfeasibleOrUnbounded(backend)
    if status not in STATUS:
        raise SolverFailure(f"{NAME} failed: {highs.modelStatusToString(status)}")
    return STATUS[status]


def _set(highs: highspy.Highs, option: str, value: Any) -> None:
    if highs.setOptionValue(option, value) == highspy.HighsStatus.kError:
        raise SolverFailure(f"{NAME} does not take {option} = {value}")
