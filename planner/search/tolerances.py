"""The tolerances of searches, in one table: each with its meaning and unit.

`planner.contract.tolerances` has those of checks: designs stop at its RELATIVE, and a check allows a little
more. A search names a tolerance of this table by its meaning, and gives a number of its own only to step
sizes, shares of time and other parameters of its method.
"""

from __future__ import annotations

from typing import Final

from planner.contract.proof import OPTIMAL_GAP
from planner.contract.tolerances import EXACT, RELATIVE

STATED_GAP: Final = OPTIMAL_GAP
"""Relative gap at which a plan is optimal where options state none: of searches that end there."""
OPTIMALITY: Final = RELATIVE
"""The same, of searches that end at the optimum but for the tolerances of a solver."""
EXACT_OPTIMALITY: Final = EXACT
"""The same, where objective value and bound are computed from given numbers, and only sums and products
round."""
INTERIOR_POINT: Final = 1e-5
"""The same, of searches that end at a solution of an interior-point method without crossover."""
CONSISTENCY: Final = RELATIVE
"""Largest relative amount by which an objective value may be better than its bound."""
ROUNDING: Final = EXACT
"""Relative difference of two computations of one amount: a bound that is so much on the wrong side is moved
to the objective value without a note."""
