"""The plan of system `contracts`: the traffic of each contract in each window.

The bills of a month's loads: from the loads and contracts alone, in cents, one contract after the other.

Nothing here is shared with the designs, which compute amounts in arrays of their own: the bills check them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import Final

import numpy as np
import pandas as pd

from planner.arrays import Floats, Ints
from planner.contract.table import MAX_WINDOW, Table, label, number
from planner.contract.tables import validate
from planner.errors import InputError, PlanRejected
from planner_models.contracts.problem.bills import BOTH, IN, LARGER, OUT
from planner_models.contracts.problem.problem import MEAN, MOST_MBPS, PEAK, Month
from planner_models.networks.percentile_bills import billed_rank

LOADS: Final = Table(
    name="loads",
    about="traffic that a CDN carries for a region in a window",
    columns={
        "window": number("number of the window", at_least=0, at_most=MAX_WINDOW, whole=True),
        "cdn": label("CDN"),
        "region": label("region of the clients"),
        "load_mbps": number("traffic that it carries, Mbit/s", at_least=0, at_most=MOST_MBPS),
    },
    key=("window", "cdn", "region"),
    may_be_empty=True,
)
PLAN_TABLES: Final = (LOADS,)
CENT: Final = Decimal("0.01")


@dataclass(frozen=True, kw_only=True, eq=False)
class Loads:
    """Traffic of contracts by window.

    loads  window, cdn, region, load_mbps; windows without a row of a contract have no traffic there
    """

    loads: pd.DataFrame

    def to_tables(self) -> dict[str, pd.DataFrame]:
        """Return the tables of the plan."""
        return {"loads": self.loads}


def make_plan(problem: Month, load_mbps: Floats) -> Loads:
    """Return the plan of (W, N) loads."""
    window, contract = np.nonzero(load_mbps > 0)
    names = [problem.contracts[name].astype(str).to_numpy(object) for name in ("cdn", "region")]
    return Loads(
        loads=pd.DataFrame(
            {
                "window": problem.window_numbers[window],
                "cdn": names[0][contract],
                "region": names[1][contract],
                "load_mbps": load_mbps[window, contract],
            }
        )
    )


def from_tables(problem: Month, tables: Mapping[str, pd.DataFrame]) -> Loads:
    """Return the plan in its table.

    raises  InputError with every fault; PlanRejected for contracts and windows that there are none of
    """
    if "loads" not in tables:
        raise InputError("loads: is missing")
    frame = tables["loads"]
    plan = Loads(loads=validate(LOADS, frame, where=frame.attrs.get("where")))
    read_loads(problem, plan)
    return plan


def read_loads(problem: Month, plan: Loads) -> Floats:
    """Return the (W, N) loads of a plan; raises PlanRejected for a contract or a window that is none."""
    frame = plan.loads
    contract = problem.find_contracts(frame)
    if (contract < 0).any():
        row = int(np.argmax(contract < 0))
        raise PlanRejected(
            f"loads row {row + 1}: there is no contract of cdn '{frame['cdn'].iloc[row]}' in region "
            f"'{frame['region'].iloc[row]}'"
        )
    window = frame["window"].to_numpy(float)
    amount = frame["load_mbps"].to_numpy(float)
    numbers = problem.window_numbers
    position = np.minimum(np.searchsorted(numbers, window), len(numbers) - 1)
    unknown = numbers[position] != window
    if unknown.any():
        row = int(np.argmax(unknown))
        raise PlanRejected(
            f"loads row {row + 1}: there is no window {window[row]:.15g} in traffic; they are "
            f"{numbers[0]:.15g} to {numbers[-1]:.15g}"
        )
    if not (np.isfinite(amount) & (amount >= 0)).all():
        raise PlanRejected("loads: load_mbps must be a finite number and at least 0")
    load = np.zeros((problem.windows, len(problem.names)))
    np.add.at(load, (position, contract), amount)
    return load


def bill(problem: Month, load_mbps: Floats, *, billing: str | None = None) -> pd.DataFrame:
    """Return one row per bill, of one or more contracts: its volume, the billed volume, and the payment.

    The traffic of its contracts is added up in each window before the rule of billing applies. Where the
    larger direction is billed, that is the one of the larger volume.

    A percentile and a peak are those of the windows in which the contract is in force, and their price counts
    for the share of these windows; a mean is that of all windows.

    Columns: contract, billing, volume_mbps (by the billing rule), billed_mbps (at least the commitment),
    amount (whole cents, less the credit), computed (the amount before it is rounded), unused (the part of
    the amount that is for traffic below the commitment that was not sent), free_windows (windows above the
    billed volume).

    load_mbps  (W, N)
    billing    a rule for all contracts, in place of their own
    source     95th percentile: Mukerjee 2018, 3.2.1 (95/5 model)
    """
    rows = []
    for position, name in enumerate(problem.bills):
        members = np.flatnonzero(problem.bill == position)
        contract = int(members[0])  # whose terms are those of all
        rule = billing or problem.billing[contract]
        inside = problem.in_force[:, contract] | (rule == MEAN)
        series = [
            [math.fsum(window) for window in (load_mbps[:, members] * factor)[inside].tolist()]
            for factor in _metered(problem, members)
        ]
        volume = max(_volume(sorted(samples), rule) for samples in series)
        loads = [max(window) for window in zip(*series, strict=True)]
        commitment = float(problem.contracts["commitment_mbps"].iloc[contract])
        billed = max(volume, commitment)
        terms = _Terms.of(problem, contract, len(loads) / problem.windows)
        computed = terms.price(billed)
        amount = _round(computed)
        rows.append(
            {
                "contract": name,
                "billing": rule,
                "volume_mbps": volume,
                "billed_mbps": billed,
                "amount": float(amount),
                "computed": float(computed),
                "unused": float(amount - _round(terms.price(min(volume, billed)))),
                "free_windows": sum(load > billed * (1 + 1e-9) for load in loads) if rule != MEAN else 0,
            }
        )
    return pd.DataFrame(rows)


def _metered(problem: Month, members: Ints) -> list[Floats]:
    """Return the metered traffic of a Mbit/s out of contracts of one bill, (W, members), by direction."""
    into = problem.in_ratio[:, problem.region[members]]
    out = np.ones_like(into)
    return {OUT: [out], IN: [into], BOTH: [out + into], LARGER: [out, into]}[problem.metered[members[0]]]


def _volume(samples: list[float], rule: str) -> float:
    """Return the volume of ascending samples by a rule of billing."""
    if rule == MEAN:
        return math.fsum(samples) / len(samples)
    return samples[-1 if rule == PEAK else int(billed_rank(len(samples))) - 1]


@dataclass(frozen=True, kw_only=True)
class _Terms:
    """Prices of a contract as its tables have them.

    volumes, prices  from which billed volume, in Mbit/s, which price of a Mbit/s applies
    share            of the windows for which these prices count
    credit           amount that is taken off
    """

    volumes: list[float]
    prices: list[float]
    share: float
    credit: float

    @classmethod
    def of(cls, problem: Month, contract: int, share: float) -> _Terms:
        """Return the prices of a contract that bills a share of the windows."""
        volumes, prices = problem.listed_prices[contract]
        credit = problem.contracts["credit"].iloc[contract] if "credit" in problem.contracts else 0.0
        return cls(
            volumes=volumes.tolist(),
            prices=prices.tolist(),
            share=share,
            credit=0.0 if math.isnan(credit) else float(credit),
        )

    def price(self, billed_mbps: float) -> Decimal:
        """Return the price of a billed volume, less the credit, but at least 0."""
        amount = Decimal(0)
        for step, (start, price) in enumerate(zip(self.volumes, self.prices, strict=True)):
            end = self.volumes[step + 1] if step + 1 < len(self.volumes) else math.inf
            volume = min(billed_mbps, end) - start
            if volume > 0:
                amount += Decimal(volume) * Decimal(price)
        return max(amount * Decimal(self.share) - Decimal(self.credit), Decimal(0))


def round_to_cents(amount: float) -> float:
    """Return an amount in whole cents, as bills round it."""
    return float(_round(Decimal(amount)))


def _round(amount: Decimal) -> Decimal:
    """Return an amount in whole cents, half a cent rounded up."""
    return amount.quantize(CENT, rounding=ROUND_HALF_UP)
