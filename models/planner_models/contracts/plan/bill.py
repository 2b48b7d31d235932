"""The bills of a month's loads: from the loads and contracts alone, in cents, one contract after the other.

Nothing here is shared with the designs, which compute amounts in arrays of their own: the bills check them.
"""

from __future__ import annotations

import math
from decimal import ROUND_HALF_UP, Decimal
from typing import Final

import pandas as pd

from planner.arrays import Floats
from planner_models.contracts.problem.problem import MEAN, PEAK, Month

CENT: Final = Decimal("0.01")


def bill(problem: Month, load_mbps: Floats, *, billing: str | None = None) -> pd.DataFrame:
    """Return one row per contract: its volume, the billed volume, and the payment.

    Columns: contract, billing, volume_mbps (by the billing rule), billed_mbps (at least the commitment),
    amount (whole cents), computed (the amount before it is rounded), unused (the part of the amount that is
    for traffic below the commitment that was not sent), free_windows (windows above the billed volume).

    load_mbps  (W, N)
    billing    a rule for all contracts, in place of their own
    source     95th percentile: Mukerjee 2018, 3.2.1 (95/5 model)
    """
    rows = []
    for contract, name in enumerate(problem.names):
        rule = billing or problem.billing[contract]
        loads = sorted(load_mbps[:, contract].tolist())
        if rule == MEAN:
            volume = math.fsum(loads) / len(loads)
        elif rule == PEAK:
            volume = loads[-1]
        else:
            volume = loads[len(loads) - problem.free_windows - 1]
        commitment = float(problem.contracts["commitment_mbps"].iloc[contract])
        billed = max(volume, commitment)
        steps = [list(map(float, column)) for column in problem.price_steps[contract]]
        computed = _price(billed, *steps)
        amount = _round(computed)
        rows.append(
            {
                "contract": name,
                "billing": rule,
                "volume_mbps": volume,
                "billed_mbps": billed,
                "amount": float(amount),
                "computed": float(computed),
                "unused": float(amount - _round(_price(min(volume, billed), *steps))),
                "free_windows": sum(load > billed * (1 + 1e-9) for load in loads) if rule != MEAN else 0,
            }
        )
    return pd.DataFrame(rows)


def _price(billed_mbps: float, volumes: list[float], prices: list[float]) -> Decimal:
    """Return the price of a billed volume."""
    amount = Decimal(0)
    for step, (start, price) in enumerate(zip(volumes, prices, strict=True)):
        end = volumes[step + 1] if step + 1 < len(volumes) else math.inf
        volume = min(billed_mbps, end) - start
        if volume > 0:
            amount += Decimal(volume) * Decimal(price)
    return amount


def round_to_cents(amount: float) -> float:
    """Return an amount in whole cents, as bills round it."""
    return float(_round(Decimal(amount)))


def _round(amount: Decimal) -> Decimal:
    """Return an amount in whole cents, half a cent rounded up."""
    return amount.quantize(CENT, rounding=ROUND_HALF_UP)
