"""What a content provider pays each CDN for a series of windows: by the bit, or by the 95th percentile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from planner_models.brokering.assignment import Assignment
from planner_models.brokering.check import served
from planner_models.brokering.problem import Brokering

Rule = Literal["bits", "95th percentile"]
PricedBy = Literal["contract", "cluster"]


def bill(
    problems: Sequence[Brokering],
    plans: Sequence[Assignment],
    *,
    rule: Rule = "bits",
    priced_by: PricedBy = "contract",
    hours_per_window: float = 1.0,
) -> pd.DataFrame:
    """One row a CDN: mean_mbps, billed_mbps, price (by traffic), amount in the terms' currency.

    bits             every bit is paid for
    95th percentile  the busiest 5% of the windows are free: the traffic of the next busiest one is
                     paid for all of the time
    Either way at least the commitment is paid for.

    source  Mukerjee 2018, 3.2.1 (95/5 model)
    """
    if not problems or len(problems) != len(plans):
        raise ValueError(
            f"{len(problems)} problems and {len(plans)} plans: must be as many, and one at least"
        )
    pairs = [_window(problem, plan, priced_by) for problem, plan in zip(problems, plans, strict=True)]
    mbps = np.array([traffic for traffic, _ in pairs])  # (W, D)
    charge = np.array([hourly for _, hourly in pairs])  # (W, D)
    mean = mbps.mean(axis=0)
    per_mbps = np.divide(charge.sum(axis=0), mbps.sum(axis=0), out=np.zeros(len(mean)), where=mean > 0)
    first = problems[0]
    listed = np.nanmean(first.contract_price, axis=0) * first.terms.units_per_mbps_hour
    per_mbps = np.where(mean > 0, per_mbps, listed)  # a commitment is paid for without traffic too
    counted = mean if rule == "bits" else percentile_95(mbps)
    billed = np.maximum(counted, first.commitment_mbps)
    return pd.DataFrame(
        {
            "cdn": first.cdn_names,
            "mean_mbps": mean,
            "billed_mbps": billed,
            "price": per_mbps / first.terms.units_per_mbps_hour,
            "amount": billed * per_mbps * hours_per_window * len(problems),
        }
    )


def percentile_95(mbps: NDArray[np.float64]) -> NDArray[np.float64]:
    """(D,) the largest of the windows (W, D) that is left when the busiest 5% are dropped."""
    kept = max(int(np.ceil(0.95 * len(mbps))), 1)
    ordered: NDArray[np.float64] = np.sort(mbps, axis=0)[kept - 1]
    return ordered


def _window(
    problem: Brokering, plan: Assignment, priced_by: PricedBy
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(D,) Mbit/s, and what an hour of it costs."""
    done = served(problem, plan)
    traffic = done.count * done.bitrate_mbps
    owner = problem.cdn[done.cluster]
    by_contract = problem.contract_price[done.location, owner]
    price = by_contract if priced_by == "contract" else problem.unit_cost[done.cluster]
    hourly = np.where(traffic > 0, traffic * price, 0.0) * problem.terms.units_per_mbps_hour
    mbps, charge = (
        np.bincount(owner, weights=amount, minlength=len(problem.cdn_names)).astype(float)
        for amount in (traffic, hourly)
    )
    return mbps, charge
