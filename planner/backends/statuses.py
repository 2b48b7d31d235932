"""Statuses of commercial solvers by their numbers, as their manuals list them; no solver is imported.

A status of a search that ended early becomes FEASIBLE where the solver has a solution: `verification.judge`
decides that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from planner.backends.verification import InfeasibleOrUnbounded
from planner.contract.proof import Status
from planner.errors import SolverFailure

AMBIGUOUS: Final = "infeasible or unbounded"
"""A status that does not tell which of the two; `planner.backends.dispatch` finds out."""

StatusTable = Mapping[Any, Status | str]


def read_status(table: StatusTable, code: object, name: str, text: object = None) -> Status:
    """Return the meaning of a solver's status.

    name    of the solver with its version
    text    the status in an error; default: `status CODE`
    raises  SolverFailure for a status that the table does not have; InfeasibleOrUnbounded
    """
    status = table.get(code)
    if status is None:
        raise SolverFailure(f"{name} failed: {text or f'status {code}'}")
    if not isinstance(status, Status):
        raise InfeasibleOrUnbounded(name)
    return status


GUROBI: Final[StatusTable] = {
    # https://docs.gurobi.com, Optimization Status Codes
    2: Status.OPTIMAL,
    3: Status.INFEASIBLE,
    4: AMBIGUOUS,
    5: AMBIGUOUS,  # UNBOUNDED: there is a ray, not always a point to start from
    6: Status.UNDECIDED,  # CUTOFF
    7: Status.UNDECIDED,  # ITERATION_LIMIT
    8: Status.UNDECIDED,  # NODE_LIMIT
    9: Status.UNDECIDED,  # TIME_LIMIT
    10: Status.UNDECIDED,  # SOLUTION_LIMIT
    11: Status.UNDECIDED,  # INTERRUPTED
    12: Status.UNDECIDED,  # NUMERIC
    13: Status.UNDECIDED,  # SUBOPTIMAL
    15: Status.UNDECIDED,  # USER_OBJ_LIMIT
    16: Status.UNDECIDED,  # WORK_LIMIT
    17: Status.UNDECIDED,  # MEM_LIMIT
}

CPLEX: Final[StatusTable] = {
    # https://www.ibm.com/docs/en/icos, Solution status codes
    1: Status.OPTIMAL,
    2: AMBIGUOUS,  # unbounded: there is a ray, not always a point to start from
    3: Status.INFEASIBLE,
    4: AMBIGUOUS,
    5: Status.UNDECIDED,  # optimal with infeasibilities of the unscaled problem
    6: Status.UNDECIDED,  # a solution, not proven because of numerical difficulties
    10: Status.UNDECIDED,  # iteration limit
    11: Status.UNDECIDED,  # time limit
    12: Status.UNDECIDED,  # objective limit
    13: Status.UNDECIDED,  # aborted
    20: AMBIGUOUS,  # the optimal face is unbounded, without a solution of the barrier method
    22: Status.UNDECIDED,  # dual objective limit
    25: Status.UNDECIDED,  # deterministic time limit
    101: Status.OPTIMAL,
    102: Status.OPTIMAL,  # within the gap requested
    103: Status.INFEASIBLE,
    104: Status.UNDECIDED,  # solution limit
    105: Status.UNDECIDED,  # node limit, with a solution
    106: Status.UNDECIDED,
    107: Status.UNDECIDED,  # time limit, with a solution
    108: Status.UNDECIDED,
    109: Status.UNDECIDED,  # an error after a solution
    110: Status.UNDECIDED,
    111: Status.UNDECIDED,  # memory limit, with a solution
    112: Status.UNDECIDED,
    113: Status.UNDECIDED,  # aborted, with a solution
    114: Status.UNDECIDED,
    115: Status.UNDECIDED,  # optimal with infeasibilities of the unscaled problem
    118: AMBIGUOUS,
    119: AMBIGUOUS,
    131: Status.UNDECIDED,  # deterministic time limit, with a solution
    132: Status.UNDECIDED,
    133: AMBIGUOUS,  # the relaxation is unbounded
}

XPRESS: Final[StatusTable] = {
    # https://www.fico.com/fico-xpress-optimization/docs, SOLSTATUS
    0: Status.UNDECIDED,  # no solution was found
    1: Status.OPTIMAL,
    2: Status.UNDECIDED,  # a solution, not proven
    3: Status.INFEASIBLE,
    4: AMBIGUOUS,  # unbounded: there is a ray, not always a point to start from
}
