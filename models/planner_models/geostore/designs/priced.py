"""Prices of load: regions announce them, and each group chooses where it is cheapest.

Regions raise the price of an operation while they have more load than their servers carry, and lower it while
they have less (tatonnement). Groups do not know of each other. The prices that lost least so far are kept.
"""

from __future__ import annotations

from typing import Annotated, Final

import numpy as np
from pydantic import Field

from planner.arrays import Floats
from planner.contract.design import Decision
from planner.options import Options
from planner.search.deadline import Deadline
from planner.search.judged import gap_of
from planner_models.geostore.designs.assembly import decide, refuse_unreachable
from planner_models.geostore.designs.fleet import component_load
from planner_models.geostore.designs.optimum import gap_for
from planner_models.geostore.designs.placed import Placed
from planner_models.geostore.designs.placer import Placer
from planner_models.geostore.information import PRICE_ROUNDS
from planner_models.geostore.plan.plan import StorePlan
from planner_models.geostore.problem.problem import Geostore

STEP: Final = 0.5
"""Change of the price of a region with twice the load that it carries, over the mean cost of an operation."""


@refuse_unreachable
def place(
    problem: Geostore,
    *,
    rounds: Annotated[
        int, Field(ge=1, le=1_000, description="announcements of prices; one where no region is limited")
    ] = PRICE_ROUNDS,
    options: Options = Options(),
) -> Decision[StorePlan]:
    """Let each component of groups choose at the prices of regions, which change with their load.

    Without limits of servers prices stay 0, and the choice is that of `optimum`. With them groups of equal
    tastes choose the same region at equal prices, so that some load is refused or pays too much.
    """
    placer = Placer(
        problem=problem, gap=gap_of(options, default=gap_for(problem)), deadline=Deadline.of(options)
    )
    prices = np.zeros(len(problem.regions))
    best, lowest = placer.place_all(), np.inf
    for number in range(rounds if problem.is_limited.any() else 1):
        placed = best if number == 0 else placer.at_prices(prices, {}).place_all()
        load = np.asarray(sum(component_load(problem, item.groups) for item in placed))
        usd = _true_cost(problem, placed, prices, load)
        if usd < lowest:
            best, lowest = placed, usd
        if placer.deadline.is_over:
            break
        prices = _announce(problem, prices, load, STEP * usd / load.sum() / np.sqrt(number + 1.0))
    return decide(problem, [plan for item in best for plan in item.groups])


def _true_cost(problem: Geostore, placed: list[Placed], prices: Floats, load: Floats) -> float:
    """Return the cost of plans without prices, and with the penalty of load beyond servers, USD a month."""
    refused = np.maximum(load - problem.capacity, 0.0).sum()
    return float(sum(item.cost for item in placed) - prices @ load + problem.refused_usd * refused)


def _announce(problem: Geostore, prices: Floats, load: Floats, step: float) -> Floats:
    """Return the next prices of an operation in each region, (N,): higher where load exceeds capacity."""
    limited = problem.is_limited
    capacity = np.where(limited, np.maximum(problem.capacity, 1e-9), 1.0)
    excess = np.where(limited, np.clip(load / capacity - 1.0, -1.0, 1.0), 0.0)
    return np.clip(prices + step * excess, 0.0, problem.refused_usd)
