"""What a content provider pays each CDN for a series of windows: by the bit, or by the 95th percentile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from planner.system import Decision
from planner_models.brokering.assignment import Assignment
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
    pairs = [traffic(problem, plan, priced_by) for problem, plan in zip(problems, plans, strict=True)]
    mbps, charge = (np.array(part) for part in zip(*pairs, strict=True))
    frame = _billed(problems[0], mbps, charge, rule)
    frame["amount"] *= hours_per_window * len(problems)
    return frame


def so_far(problem: Brokering, plan: Assignment) -> dict[Rule, float | None]:
    """What an hour costs at contract prices, over this window and those before, by either rule.

    None where a CDN has no contract for clients that it serves.
    """
    mbps, charge = (np.atleast_2d(part) for part in traffic(problem, plan, "contract"))
    if plan.traffic is not None and len(plan.traffic):
        before = plan.traffic.set_index(["window", "cdn"])
        columns = {
            name: before[name].unstack(fill_value=0).reindex(columns=problem.cdn_names, fill_value=0.0)  # noqa: PD010
            for name in ("mbps", "charge_per_hour")
        }
        mbps = np.vstack([columns["mbps"].to_numpy(float), mbps])
        charge = np.vstack([columns["charge_per_hour"].to_numpy(float), charge])
    amounts: dict[Rule, float | None] = {}
    rules: tuple[Rule, ...] = ("bits", "95th percentile")
    for rule in rules:
        amount = float(_billed(problem, mbps, charge, rule)["amount"].sum(skipna=False))
        amounts[rule] = None if np.isnan(amount) else amount
    return amounts


def remembered(
    problem: Brokering, decision: Decision[Assignment], previous: Decision[Assignment] | None
) -> Decision[Assignment]:
    """The decision, its plan with the `traffic` of the windows before; at the prices of the present one."""
    if decision.plan is None or previous is None or previous.plan is None:
        return decision
    last = previous.plan
    mbps, charge = traffic(problem, last, "contract")
    window = 1.0 if last.traffic is None or last.traffic.empty else float(last.traffic["window"].max()) + 1
    row = pd.DataFrame(
        {"window": window, "cdn": problem.cdn_names, "mbps": mbps, "charge_per_hour": charge}
    ).fillna(0.0)
    history = row if window == 1 else pd.concat([last.traffic, row], ignore_index=True)
    return replace(decision, plan=replace(decision.plan, traffic=history))


def percentile_95(mbps: NDArray[np.float64]) -> NDArray[np.float64]:
    """(D,) the largest of the windows (W, D) that is left when the busiest 5% are dropped."""
    kept = max(int(np.ceil(0.95 * len(mbps))), 1)
    ordered: NDArray[np.float64] = np.sort(mbps, axis=0)[kept - 1]
    return ordered


def traffic(
    problem: Brokering, plan: Assignment, priced_by: PricedBy
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(D,) Mbit/s of each CDN in a window, and what an hour of it costs; NaN without a contract for it."""
    frame = plan.assignments
    location = problem.location_places.get_indexer(pd.Index(frame["location"]))
    cluster = problem.cluster_places.get_indexer(pd.Index(frame["cluster"]))
    known = (location >= 0) & (cluster >= 0)  # a window before may have had other places
    location, cluster = location[known], cluster[known]
    mbps = (frame["clients"].to_numpy(float) * frame["bitrate_kbps"].to_numpy(float) / 1000)[known]
    owner = problem.cdn[cluster]
    price = problem.contract_price[location, owner] if priced_by == "contract" else problem.unit_cost[cluster]
    hourly = np.where(mbps > 0, mbps * price, 0.0) * problem.terms.units_per_mbps_hour
    total, charge = (
        np.bincount(owner, weights=amount, minlength=len(problem.cdn_names)).astype(float)
        for amount in (mbps, hourly)
    )
    return total, charge


def _billed(
    problem: Brokering, mbps: NDArray[np.float64], charge: NDArray[np.float64], rule: Rule
) -> pd.DataFrame:
    """One row a CDN for windows of traffic (W, D) and what each costs an hour; `amount` is of an hour."""
    mean = mbps.mean(axis=0)
    per_mbps = np.divide(charge.sum(axis=0), mbps.sum(axis=0), out=np.zeros(len(mean)), where=mean > 0)
    commitment = problem.commitment_mbps
    prices = np.where(np.isnan(problem.contract_price), 0.0, problem.contract_price)
    offered = np.maximum((~np.isnan(problem.contract_price)).sum(axis=0), 1)
    listed = prices.sum(axis=0) / offered * problem.terms.units_per_mbps_hour
    per_mbps = np.where(mean > 0, per_mbps, listed)  # a commitment is paid for without traffic too
    billed = np.maximum(mean if rule == "bits" else percentile_95(mbps), commitment)
    return pd.DataFrame(
        {
            "cdn": problem.cdn_names,
            "mean_mbps": mean,
            "billed_mbps": billed,
            "price": per_mbps / problem.terms.units_per_mbps_hour,
            "amount": billed * per_mbps,
        }
    )
