"""The tolerances of searches, in one table: each with its meaning. All are relative, and have no unit.

`planner.contract.tolerances` has those of checks: designs stop at its RELATIVE, and a check allows a little
more. A search takes a tolerance of this table, under the name that it has there or one that says what it is
relative to. It gives a number of its own only to step sizes, shares of time and other parameters of its
method, and to limits that have a unit.
"""

from __future__ import annotations

from typing import Final

from planner.contract import tolerances
from planner.contract.proof import OPTIMAL_GAP

# --- gaps between objective value and bound, at which a plan is optimal or a search ends ---

COARSE_GAP: Final = 1e-3
"""Gap at which searches of large problems end, where options state none."""
STATED_GAP: Final = OPTIMAL_GAP
"""Gap at which a plan is optimal, where options state none: of searches that end there."""
INTERIOR_POINT: Final = 1e-5
"""Gap of solutions of an interior-point method without crossover, and of searches that end as soon."""
OPTIMALITY: Final = tolerances.RELATIVE
"""Gap of searches that end at the optimum but for the tolerances of a solver."""
CONSISTENCY: Final = tolerances.RELATIVE
"""Largest amount by which an objective value may be better than its bound."""

# --- amounts in solutions of programs ---

FEASIBILITY: Final = tolerances.RELATIVE
"""Largest violation of a limit, and largest missing share of a demand that counts as served."""
SOLVED_SHARE: Final = 1e-6
"""Smallest share of a demand, or weight of a column, in a program's solution that is used."""
SOLVER: Final = 1e-7
"""Accuracy of the amounts and dual values that a linear program's solver returns."""

# --- differences that are rounding ---

ROUNDING: Final = tolerances.EXACT
"""Difference of two computations of one amount."""
NEGLIGIBLE: Final = 1e-9
"""Amount, relative to the whole, that counts as none."""
IMPROVEMENT: Final = 1e-9
"""Smallest gain of a move, or reduced cost of a column, that counts."""
SUM_ROUNDING: Final = tolerances.ROUNDING
"""Difference of two sums of the same terms, in another order."""
