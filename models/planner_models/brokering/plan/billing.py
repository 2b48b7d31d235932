"""Bills of a content provider by its contracts, over windows: by the bit, or by the 95th percentile.

Each contract has a bill of its own, for the traffic of its region: a commitment for one region is not met by
traffic of another one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, get_args

import numpy as np
import pandas as pd

from planner.arrays import Floats, Ints
from planner.contract.design import Decision
from planner_models.brokering.plan.plan import Assignment, locate_rows
from planner_models.brokering.problem import geography
from planner_models.brokering.problem.problem import Brokering

BillingRule = Literal["bits", "95th percentile"]


def bill(
    problems: Sequence[Brokering],
    plans: Sequence[Assignment],
    *,
    rule: BillingRule = "bits",
    hours_per_window: float = 1.0,
) -> pd.DataFrame:
    """Return one row per contract: cdn, region, mean_mbps, billed_mbps, price, unused, amount.

    Prices, and which contract holds where, are those of the last window.

    bits             every bit is paid for
    95th percentile  the busiest 5% of the windows are free; the traffic of the next busiest window is
                     paid for all the time
    At least the commitment is paid for by either rule; `unused` is the part of `amount` for traffic below it
    that was not sent. Both are in the terms' currency; NaN where clients are served without a contract.

    source  Mukerjee 2018, 3.2.1 (95/5 model)
    """
    if not problems or len(problems) != len(plans):
        raise ValueError(
            f"{len(problems)} problems and {len(plans)} plans: must be as many, and one at least"
        )
    pairs = [contract_traffic(problem, plan) for problem, plan in zip(problems, plans, strict=True)]
    mbps = pd.DataFrame(
        [
            pd.Series(payment, index=_contract_keys(problem))
            for problem, (payment, _) in zip(problems, pairs, strict=True)
        ]
    ).reindex(columns=_contract_keys(problems[-1]), fill_value=0.0)
    frame = _bill_contracts(problems[-1], mbps.fillna(0.0).to_numpy(float), rule)
    frame[["unused", "amount"]] *= hours_per_window * len(problems)
    if any(uncovered > 0 for _, uncovered in pairs):
        frame["amount"] = np.nan
    return frame


def hourly_bills(problem: Brokering, plan: Assignment) -> dict[BillingRule, float | None]:
    """Return the bill of an hour, over this window and earlier ones, by either rule.

    None where clients are served by a CDN whose contracts do not cover them.
    """
    now, uncovered = contract_traffic(problem, plan)
    if uncovered > 0:
        return dict.fromkeys(get_args(BillingRule))
    mbps = now[None]
    earlier = _earlier_traffic(plan)
    if earlier is not None:
        before = earlier.set_index(["window", "cdn", "region"])["mbps"].unstack(["cdn", "region"])  # noqa: PD010
        mbps = np.vstack([before.reindex(columns=_contract_keys(problem)).fillna(0.0).to_numpy(float), mbps])
    return {
        rule: float(_bill_contracts(problem, mbps, rule)["amount"].sum()) for rule in get_args(BillingRule)
    }


def hourly_cost(problem: Brokering, plan: Assignment) -> float:
    """Return the cost of an hour of the plan: the traffic of this window and the commitments.

    Prices are those of `prices_paid`; committed traffic that is not sent is paid for at its contract's.
    """
    location, cluster, mbps = locate_rows(problem, plan)
    sent = float(np.nan_to_num(prices_paid(problem, location, cluster)) @ mbps)
    return sent * problem.terms.units_per_mbps_hour + hourly_unused(problem, plan)


def hourly_unused(problem: Brokering, plan: Assignment) -> float:
    """Return the part of an hour's cost that is for committed traffic that the plan does not send."""
    if problem.contracts is None or not problem.contract_terms["commitment_mbps"].any():
        return 0.0
    return float(_bill_contracts(problem, contract_traffic(problem, plan)[0][None])["unused"].sum())


def prices_paid(problem: Brokering, location: Ints, cluster: Ints) -> Floats:
    """Return the price of traffic from clusters to locations, shape as given.

    It is that of the contract, where the problem lists contracts and one covers it, else the cluster's cost
    or bid.
    """
    price: Floats = problem.price[location, cluster]
    if problem.contracts is None:
        return price
    by_contract = problem.contract_price[location, problem.cdn[cluster]]
    return np.where(np.isnan(by_contract), price, by_contract)


def add_traffic_history(
    problem: Brokering, decision: Decision[Assignment], previous: Decision[Assignment] | None
) -> Decision[Assignment]:
    """Return the decision with the `traffic` of earlier windows in its plan."""
    if decision.plan is None or previous is None or previous.plan is None:
        return decision
    past = _earlier_traffic(previous.plan)
    window = float(count_windows(previous.plan))
    last = problem.contract_terms[["cdn", "region"]].assign(mbps=contract_traffic(problem, previous.plan)[0])
    last.insert(0, "window", window)
    history = last if past is None else pd.concat([past, last], ignore_index=True)
    return replace(decision, plan=replace(decision.plan, traffic=history))


def count_windows(plan: Assignment) -> int:
    """Return the number of windows up to that of a plan, its own included."""
    past = _earlier_traffic(plan)
    return 1 if past is None else int(past["window"].max()) + 1


def _earlier_traffic(plan: Assignment) -> pd.DataFrame | None:
    """Return window, cdn, region and mbps of the windows before the plan's; None where there are none."""
    if plan.traffic is None or plan.traffic.empty:
        return None
    region = plan.traffic.get("region", geography.WORLD)
    return plan.traffic.assign(region=region)[["window", "cdn", "region", "mbps"]]


def percentile_95(mbps: Floats) -> Floats:
    """Return the largest traffic of each column, after the busiest 5% of the windows (W, K) are dropped."""
    needed = max(int(np.ceil(0.95 * len(mbps))), 1)
    ordered: Floats = np.sort(mbps, axis=0)[needed - 1]
    return ordered


def contract_traffic(problem: Brokering, plan: Assignment) -> tuple[Floats, float]:
    """Return the traffic of each contract, (K,) Mbit/s, and the traffic that no contract covers, Mbit/s."""
    location, cluster, mbps = locate_rows(problem, plan)
    is_known = (location >= 0) & (cluster >= 0)  # an earlier window may have had other places
    location, cluster, mbps = location[is_known], cluster[is_known], mbps[is_known]
    contract = problem.contract_of[location, problem.cdn[cluster]]
    covered = contract >= 0
    total = np.bincount(contract[covered], weights=mbps[covered], minlength=len(problem.contract_terms))
    return total.astype(float), float(mbps[~covered].sum())


def _contract_keys(problem: Brokering) -> pd.MultiIndex:
    """Return CDN and region of each contract, (K,)."""
    return pd.MultiIndex.from_frame(problem.contract_terms[["cdn", "region"]])


def _bill_contracts(problem: Brokering, mbps: Floats, rule: BillingRule = "bits") -> pd.DataFrame:
    """Return one row per contract for traffic (W, K); `unused` and `amount` are of one hour."""
    terms = problem.contract_terms
    mean = mbps.mean(axis=0)
    sent = mean if rule == "bits" else percentile_95(mbps)
    billed = np.maximum(sent, terms["commitment_mbps"].to_numpy(float))
    hourly = terms["price"].to_numpy(float) * problem.terms.units_per_mbps_hour
    return terms[["cdn", "region"]].assign(
        mean_mbps=mean,
        billed_mbps=billed,
        price=terms["price"],
        unused=(billed - sent) * hourly,
        amount=billed * hourly,
    )
