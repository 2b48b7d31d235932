"""Answer of a backend to a linear or integer program.

One sign convention holds for every backend and both senses: `row_duals[i]` is the change of the objective
per unit of row i's limit, and `reduced_costs = cost - matrix.T @ row_duals`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from planner.contract.proof import Status

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True, eq=False)
class Solution:
    """Status, values and bound in the model's own sense. None for unknown, never 0 or inf.

    x              (n,) values of the variables; None where no feasible point is known
    row_duals      (m,) objective per unit of each row's limit; None for integer programs and
                   where the solver gives none
    reduced_costs  (n,) cost minus `matrix.T @ row_duals`; None as above
    objective      value of x, recomputed from the model
    bound          no feasible point is better; smaller than the objective when minimising
    seconds        wall time, the solver's set-up included
    backend        solver and version, e.g. "highs 1.13.1 simplex"
    reasons        why there is no feasible point: conflicting rows and limits by name
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
