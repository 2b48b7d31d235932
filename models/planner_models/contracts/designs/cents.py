"""Bound on a bill in integer cents, from a bound on its computed value.

Each contract's amount is rounded to the nearest cent, half a cent up: it is less than half a cent below what
it computes to, and exactly known where the contract cannot be billed for more than its commitment. A bill is
a whole number of cents above that. Where bills are so small that these halves of a cent matter, an integer
program of the month finds the least bill in cents itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from planner import backends
from planner.arrays import Floats
from planner.backends.linear_program import LinearProgram
from planner.backends.program_builder import ProgramBuilder
from planner.options import Options
from planner.search.tolerances import ROUNDING
from planner_models.contracts.designs import program, switching
from planner_models.contracts.designs.program import MonthProgram, Region
from planner_models.contracts.plan.bill import round_to_cents
from planner_models.contracts.problem.problem import Month

CENT: Final = 0.01
HALF: Final = 0.5 - 1e-5
"""Largest part of a cent that rounds down; nearer to half a cent, a solver's tolerance would decide."""


def least_bill(regions: Sequence[Region], computed: float) -> float:
    """Return a bound on the bill of regions, in whole cents, from a bound on the sum that it computes to."""
    halves, certain = 0, 0.0
    for region in regions:
        for contract in range(len(region.contracts)):
            if _is_fixed(region, contract):
                exact = region.amount(contract, 0.0)
                certain += exact - round_to_cents(exact)
            else:
                halves += 1
    lowest = (computed - certain) / CENT - halves / 2
    accuracy = ROUNDING * max(abs(computed), 1.0) / CENT
    # amounts are less than half a cent lower, not by half a cent: so a whole number of cents is not reached
    cents = math.ceil(lowest - accuracy) if not halves else math.floor(lowest + accuracy) + 1
    return round(max(cents, 0) * CENT, 2)


def _is_fixed(region: Region, contract: int) -> bool:
    """Return whether a contract is never billed for more than its commitment."""
    upper = region.most[:, contract]
    largest = upper.mean() if region.is_mean[contract] else upper.max(initial=0.0)
    return bool(largest <= region.commitment[contract]) or not region.steps[contract][1].any()


def solve_in_cents(problem: Month, options: Options) -> tuple[float | None, Floats | None]:
    """Return a bound on the bill in whole cents, and loads (W, N), by an integer program for each region.

    None where unknown.
    """
    bound: float | None = 0.0
    load: Floats | None = np.zeros((problem.windows, len(problem.names)))
    for row in range(len(problem.regions)):
        region = Region.of(problem, row)
        if not len(region.contracts):
            continue
        built = program.build(region, exact=True)
        solution = backends.solve(count_in_cents(built), options)
        if solution.bound is None or bound is None:
            bound = None
        else:
            bound += math.ceil(solution.bound - 1e-6) * CENT
        if solution.x is None or load is None:
            load = None
            continue
        repaired = program.repair(region, built.load.values(solution.x))
        load[:, region.contracts] = repaired
        if region.moved_share < 1 and not switching.is_within_limit(region, repaired):
            load = None
    return bound if bound is None else round(bound, 2), load


def count_in_cents(built: MonthProgram) -> LinearProgram:
    """Return a month's program with a whole number of cents for each contract as its objective."""
    m = ProgramBuilder.extend(built.program, name="contracts in cents", has_cost=False)
    count = built.level.shape[0]
    cents = m.variables("cents", count, cost=1.0, integer=True)
    price = built.program.cost[built.steps.columns] / CENT
    amount = (built.steps * price).sum_by(built.price_contracts, count)
    m.constrain("cents", amount - cents, upper=HALF)
    return m.build()
