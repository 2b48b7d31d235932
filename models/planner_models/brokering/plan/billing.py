"""Bills of a content provider over a series of windows: by the bit, or by the 95th percentile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, get_args

import numpy as np
import pandas as pd

from planner.arrays import Floats
from planner.contract.design import Decision
from planner_models.brokering.plan.plan import Assignment, locate_rows
from planner_models.brokering.problem.problem import Brokering

BillingRule = Literal["bits", "95th percentile"]
PricedBy = Literal["contract", "cluster"]


def bill(
    problems: Sequence[Brokering],
    plans: Sequence[Assignment],
    *,
    rule: BillingRule = "bits",
    priced_by: PricedBy = "contract",
    hours_per_window: float = 1.0,
) -> pd.DataFrame:
    """Return one row per CDN: mean_mbps, billed_mbps, price (by traffic), amount in the terms' currency.

    bits             every bit is paid for
    95th percentile  the busiest 5% of the windows are free; the traffic of the next busiest window is
                     paid for all the time
    At least the commitment is paid for by either rule.

    source  Mukerjee 2018, 3.2.1 (95/5 model)
    """
    if not problems or len(problems) != len(plans):
        raise ValueError(
            f"{len(problems)} problems and {len(plans)} plans: must be as many, and one at least"
        )
    pairs = [cdn_traffic(problem, plan, priced_by) for problem, plan in zip(problems, plans, strict=True)]
    mbps, charge = (np.array(part) for part in zip(*pairs, strict=True))
    frame = _bill_cdns(problems[0], mbps, charge, rule)
    frame["amount"] *= hours_per_window * len(problems)
    return frame


def hourly_bills(problem: Brokering, plan: Assignment) -> dict[BillingRule, float | None]:
    """Return the bill of an hour at contract prices, over this window and earlier ones, by either rule.

    None where a CDN has no contract for clients that it serves.
    """
    mbps, charge = (np.atleast_2d(part) for part in cdn_traffic(problem, plan, "contract"))
    if plan.traffic is not None and len(plan.traffic):
        before = plan.traffic.set_index(["window", "cdn"])
        columns = {
            name: before[name].unstack(fill_value=0).reindex(columns=problem.cdn_names, fill_value=0.0)  # noqa: PD010
            for name in ("mbps", "charge_per_hour")
        }
        mbps = np.vstack([columns["mbps"].to_numpy(float), mbps])
        charge = np.vstack([columns["charge_per_hour"].to_numpy(float), charge])
    amounts = {
        rule: float(_bill_cdns(problem, mbps, charge, rule)["amount"].sum(skipna=False))
        for rule in get_args(BillingRule)
    }
    return {rule: None if np.isnan(amount) else amount for rule, amount in amounts.items()}


def add_traffic_history(
    problem: Brokering, decision: Decision[Assignment], previous: Decision[Assignment] | None
) -> Decision[Assignment]:
    """Return the decision with the `traffic` of earlier windows in its plan, at present prices."""
    if decision.plan is None or previous is None or previous.plan is None:
        return decision
    earlier = previous.plan
    mbps, charge = cdn_traffic(problem, earlier, "contract")
    past = [] if earlier.traffic is None or earlier.traffic.empty else [earlier.traffic]
    window = float(past[0]["window"].max()) + 1 if past else 1.0
    columns = {"window": window, "cdn": problem.cdn_names, "mbps": mbps, "charge_per_hour": charge}
    history = pd.concat([*past, pd.DataFrame(columns).fillna(0.0)], ignore_index=True)
    return replace(decision, plan=replace(decision.plan, traffic=history))


def percentile_95(mbps: Floats) -> Floats:
    """Return the largest traffic per CDN, (D,), after the busiest 5% of the windows (W, D) are dropped."""
    needed = max(int(np.ceil(0.95 * len(mbps))), 1)
    ordered: Floats = np.sort(mbps, axis=0)[needed - 1]
    return ordered


def cdn_traffic(problem: Brokering, plan: Assignment, priced_by: PricedBy) -> tuple[Floats, Floats]:
    """Return the traffic of each CDN, (D,) Mbit/s, and its cost per hour; NaN without a contract."""
    location, cluster, mbps = locate_rows(problem, plan)
    is_known = (location >= 0) & (cluster >= 0)  # an earlier window may have had other places
    location, cluster, mbps = location[is_known], cluster[is_known], mbps[is_known]
    cdn = problem.cdn[cluster]
    price = problem.contract_price[location, cdn] if priced_by == "contract" else problem.unit_cost[cluster]
    hourly = np.where(mbps > 0, mbps * price, 0.0) * problem.terms.units_per_mbps_hour
    total, charge = (
        np.bincount(cdn, weights=amount, minlength=len(problem.cdn_names)).astype(float)
        for amount in (mbps, hourly)
    )
    return total, charge


def _bill_cdns(problem: Brokering, mbps: Floats, charge: Floats, rule: BillingRule) -> pd.DataFrame:
    """Return one row per CDN for traffic (W, D) and its cost per hour; `amount` is of one hour."""
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
