"""Loads by fixed rules, as operators set them: cheapest contract first, commitments first, fixed shares.

Where all traffic must be carried and contracts cannot carry it, they prove so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from planner.arrays import Floats
from planner.contract.design import Decision
from planner.contract.proof import Proof
from planner.formatting import amount
from planner.options import Options
from planner.search.judged import feasible, infeasible
from planner_models.contracts.designs.program import Region
from planner_models.contracts.plan.metrics import measure
from planner_models.contracts.plan.plan import Loads, make_plan
from planner_models.contracts.problem.problem import Month

BACKEND: Final = "rule"


def plan_cheapest_first(problem: Month, *, options: Options = Options()) -> Decision[Loads]:
    """Fill the contract with the lowest first price up to its most load in each window, then the next."""
    return _plan(problem, lambda region: _pour(region, [region.most]), options)


def plan_commitments_first(problem: Month, *, options: Options = Options()) -> Decision[Loads]:
    """Fill contracts to their commitments in each window, the cheapest first, then to their most load."""
    return _plan(problem, pour_commitments_first, options)


def plan_fixed_shares(problem: Month, *, options: Options = Options()) -> Decision[Loads]:
    """Split each window's traffic in proportion to the most loads of the contracts."""

    def split(region: Region) -> Floats:
        load = region.least.copy()
        room = region.most - load
        total, remaining = room.sum(axis=1), region.traffic - load.sum(axis=1)
        share = np.divide(remaining, total, out=np.zeros_like(remaining), where=total > 0).clip(0.0, 1.0)
        return np.asarray(load + share[:, None] * room)

    return _plan(problem, split, options)


def pour_commitments_first(region: Region) -> Floats:
    """Return the loads (W, N) that fill commitments first, then the remainder, the cheapest contract first.

    Loads rise with the traffic, so that no traffic changes its contract between windows.
    """
    return _pour(region, [np.minimum(region.most, region.commitment), region.most])


def _pour(region: Region, limits: list[Floats]) -> Floats:
    """Return the loads (W, N) after filling each limit in turn, the contract of the lowest price first."""
    load = region.least.copy()
    prices = [float(prices[0]) for _, prices in region.steps]
    for limit in limits:
        for contract in np.argsort(prices, kind="stable").tolist():
            remaining = np.maximum(region.traffic - load.sum(axis=1), 0.0)
            load[:, contract] += np.clip(limit[:, contract] - load[:, contract], 0.0, remaining)
    return load


def _plan(problem: Month, rule: Callable[[Region], Floats], options: Options) -> Decision[Loads]:
    """Return the decision of a rule for each region; its objective value has no bound."""
    shortage = prove_shortage(problem, options)
    if shortage is not None:
        return Decision(plan=None, proof=shortage)
    load = np.zeros((problem.windows, len(problem.names)))
    for row in range(len(problem.regions)):
        region = Region.of(problem, row)
        load[:, region.contracts] = rule(region)
    made = make_plan(problem, load)
    objective = measure(problem, made, None)["objective"]
    proof = feasible(objective, metric="objective", backend=BACKEND)
    return Decision(plan=made, proof=proof)


def prove_shortage(problem: Month, options: Options) -> Proof | None:
    """Return the proof that no plan carries all traffic; None where one does, or where it need not."""
    shortage = problem.traffic_mbps - problem.servable_mbps
    if options.service != "all" or shortage.max() <= 1e-9 * max(float(problem.traffic_mbps.max()), 1.0):
        return None
    window, region = np.unravel_index(int(shortage.argmax()), shortage.shape)
    traffic = float(problem.traffic_mbps[window, region])
    reason = (
        f"window {window + 1} has {amount(traffic, 'Mbit/s')} of traffic in region "
        f"'{problem.regions[int(region)]}'; its contracts carry at most "
        f"{amount(float(problem.servable_mbps[window, region]), 'Mbit/s')}"
    )
    return infeasible(reason, metric="objective")
