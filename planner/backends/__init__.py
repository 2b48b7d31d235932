"""Ways to solve a formal model: one call, whatever the solver.

`solve(model, options)` takes a `LinearProgram` (`planner.backends.linear`) to the backend that
`options.backend` names and returns a `Solution`. Solvers are imported at the first solve.

One sign convention holds for every backend and both senses:
`row_duals[i]` is the change of the objective per unit of row i's limit, and
`reduced_costs = cost - matrix.T @ row_duals`.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Protocol, cast

from planner.errors import InputError
from planner.options import Options
from planner.proof import Status

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from planner.backends.doctor import Found
    from planner.backends.linear import LinearProgram

__all__ = ["Solution", "available", "solve"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Solution:
    """What a backend found, in the model's own sense. None for unknown, never 0 or inf.

    x              (n,) values of the variables; None without a plan
    row_duals      (m,) objective per unit of each row's limit; None for integer programs and
                   where the solver gives none
    reduced_costs  (n,) cost minus what the rows' duals explain of it; None as above
    objective      value of x, recomputed from the model
    bound          no x is better than this; smaller than the objective when minimising
    seconds        wall time, the solver's set-up included
    backend        what solved it, e.g. "highs 1.13.1 simplex"
    reasons        why there is no plan: conflicting rows and limits by name
    """

    status: Status
    backend: str
    x: NDArray[np.float64] | None = None
    row_duals: NDArray[np.float64] | None = None
    reduced_costs: NDArray[np.float64] | None = None
    objective: float | None = None
    bound: float | None = None
    seconds: float | None = None
    reasons: tuple[str, ...] = ()


def solve(model: LinearProgram, options: Options = Options()) -> Solution:
    """Solve a linear or mixed-integer program with the backend that `options` names.

    Raises InputError where the backend cannot express the model or honour an option, and
    SolverFailure where the solver crashes, refuses its licence or rejects the model.
    """
    from planner.backends.conflict import contradictory_limits

    started = time.perf_counter()
    backend = _backend(options.backend)
    if refused := backend.faults(model, options):
        raise InputError(*refused)
    if reasons := contradictory_limits(model):
        solution = Solution(status=Status.INFEASIBLE, backend=options.backend, reasons=reasons)
    elif model.shape[1] == 0:
        solution = _without_variables(model, options)
    else:
        solution = _decided(backend, model, options)
        if solution.status is Status.INFEASIBLE:
            solution = _explained(solution, model, min(EXPLAIN_S, _left(options, started)))
    return replace(solution, seconds=time.perf_counter() - started)


EXPLAIN_S = 10.0
"""Most seconds spent on finding out which rows conflict."""


def _without_variables(model: LinearProgram, options: Options) -> Solution:
    """The one plan there is, which keeps every limit; solvers differ in what they make of it."""
    import numpy as np

    duals = None if model.is_integer else np.zeros(model.shape[0])
    return Solution(
        status=Status.OPTIMAL,
        backend=options.backend,
        x=model.cost.copy(),
        row_duals=duals,
        reduced_costs=model.cost.copy(),
        objective=model.offset,
        bound=model.offset,
    )


def _explained(solution: Solution, model: LinearProgram, seconds: float) -> Solution:
    """With the rows that conflict; a claim that proves false, as PDLP's may, is no proof."""
    from planner.backends.conflict import explain

    reasons = explain(model, seconds=seconds)
    if reasons is None:
        claim = f"{solution.backend} calls the model infeasible, which it is not"
        return replace(solution, status=Status.UNDECIDED, reasons=(claim,))
    return replace(solution, reasons=reasons)


def _decided(backend: Backend, model: LinearProgram, options: Options) -> Solution:
    """Solve; where the solver cannot tell infeasible from unbounded, ask again without costs."""
    from planner.backends.verify import InfeasibleOrUnbounded

    started = time.perf_counter()
    try:
        return backend.solve(model, options)
    except InfeasibleOrUnbounded as ambiguous:
        limit = None if options.time_limit_s is None else _left(options, started)
        costless = replace(model, cost=model.cost * 0.0, offset=0.0)
        try:
            probe = backend.solve(costless, replace(options, time_limit_s=limit))
        except InfeasibleOrUnbounded:  # nothing costs, so nothing is unbounded
            return Solution(status=Status.INFEASIBLE, backend=str(ambiguous))
        status = Status.UNBOUNDED if probe.x is not None else probe.status
        return Solution(status=status, backend=probe.backend, reasons=probe.reasons)


class Backend(Protocol):
    """What each backend's module offers."""

    def faults(self, model: LinearProgram, options: Options) -> list[str]:
        """Why this cannot run, one line each; [] if it can."""

    def solve(self, model: LinearProgram, options: Options) -> Solution:
        """The answer, judged; InfeasibleOrUnbounded where the solver cannot tell which."""


def _backend(name: str) -> Backend:
    family = name.partition(":")[0]
    try:
        return cast("Backend", import_module(f"planner.backends.{family}"))
    except ModuleNotFoundError as missing:
        raise InputError(
            f"backend '{name}' needs the package '{missing.name}', which is not installed"
        ) from missing


def _left(options: Options, started: float) -> float:
    """Seconds left of the time limit, at least one: an explanation is worth that."""
    if options.time_limit_s is None:
        return EXPLAIN_S
    return max(1.0, options.time_limit_s - (time.perf_counter() - started))


def available() -> list[Found]:
    """Every backend and solver on this system, each with its version and one tiny solve."""
    from planner.backends.doctor import find

    return find()
