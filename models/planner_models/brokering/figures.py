"""The tables and figures of Mukerjee 2018, chapter 3, on any problem: frames to set beside the published.

The thesis' traces are not public, so figures are of the problem given, usually `generate.world`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pandas as pd

from planner.options import Options
from planner_models.brokering import market, profit, sees
from planner_models.brokering.assignment import Assignment
from planner_models.brokering.measure import measure
from planner_models.brokering.problem import Brokering

QUICK: Final = Options(gap=1e-2)  # medians do not change any more
SIMILAR_SCORE: Final = 1.25  # of the best: an alternative (Table 3.1)
BOUGHT: Final = ("median_cost", "median_score", "median_distance_km")


def plan_of(believed: Brokering) -> Assignment:
    """The broker's plan on what it believes; ValueError where there is none."""
    plan = market.assign(believed, method="flow", options=QUICK).plan
    if plan is None:
        raise ValueError("the broker finds no room for all clients")
    return plan


def table_3_1(problem: Brokering, *, cdn: str = "distributed", most: int = 4) -> pd.DataFrame:
    """alternatives, share_percent: clients with so many more clusters of one CDN within 25% of its best."""
    mine = problem.cdn == problem.cdn_names.index(cdn)
    score = problem.score[:, mine]
    alternatives = (score <= SIMILAR_SCORE * score.min(axis=1, keepdims=True)).sum(axis=1) - 1
    clients = np.bincount(problem.location, weights=problem.count, minlength=len(score))
    shares = [100 * clients[alternatives >= k].sum() / clients.sum() for k in range(1, most + 1)]
    return pd.DataFrame({"alternatives": range(1, most + 1), "share_percent": shares})


def table_3_3(problem: Brokering) -> pd.DataFrame:
    """One row a design: median cost, score, distance, load and share congested."""
    believed = {
        "brokered": sees.brokered(problem),
        "multicluster_2": sees.multicluster(problem, bids=2),
        "multicluster_100": sees.multicluster(problem, bids=100),
        "dynamicpricing": sees.dynamic_pricing(problem),
        "dynamicmulticluster": sees.dynamic_multicluster(problem),
        "bestlookup": sees.best_lookup(problem),
        "marketplace": sees.marketplace(problem),
        "omniscient": problem,
    }
    columns = (*BOUGHT, "median_load_percent", "congested_percent", "objective")
    rows = {}
    for name, offers in believed.items():
        worth = measure(problem, plan_of(offers), None)
        rows[name] = [worth[column] for column in columns]
    return pd.DataFrame.from_dict(rows, orient="index", columns=list(columns)).rename_axis("design")


def fig_3_6(problem: Brokering, *, cdn: str = "distributed") -> pd.DataFrame:
    """cities, share_percent: use of one CDN by a flat-rate broker, in the smaller and the larger half."""
    plan = plan_of(sees.brokered(problem)).assignments
    owner = plan["cluster"].map(problem.clusters.set_index("cluster")["cdn"])
    by_city = plan.groupby("location")["clients"].sum()
    large = plan["location"].map(by_city > by_city.median()).to_numpy(bool)
    clients = plan["clients"].to_numpy(float)
    its = clients * (owner == cdn).to_numpy()
    shares = [100 * its[part].sum() / clients[part].sum() for part in (~large, large)]
    return pd.DataFrame({"cities": ["smaller", "larger"], "share_percent": shares})


def profits(problem: Brokering) -> tuple[pd.DataFrame, pd.DataFrame]:
    """By CDN, and by country: traffic and profit under flat prices and under bids (Fig. 3.11 to 3.17).

    cost_per_gb   what the traffic of the two plans together costs on average
    """
    flat, bids = plan_of(sees.brokered(problem)), plan_of(sees.marketplace(problem))
    frames = []
    for by, key in ((profit.by_cdn, "cdn"), (profit.by_country, "country")):
        one, other = by(problem, flat).set_index(key), by(problem, bids).set_index(key)
        frames.append(
            pd.DataFrame(
                {
                    "brokered_mbps": one["traffic_mbps"],
                    "brokered_price_to_cost": one["price_to_cost"],
                    "brokered_profit": one["profit_at_flat_price"],
                    "marketplace_mbps": other["traffic_mbps"],
                    "marketplace_profit": other["profit_at_cluster_price"],
                }
            )
        )
    return frames[0], frames[1]


def fig_3_18(problem: Brokering, weights: Sequence[float]) -> pd.DataFrame:
    """cost_weight, and the marketplace's medians over those of Brokered, for each weight.

    The broker of today keeps the problem's own weight.
    """
    base = measure(problem, plan_of(sees.brokered(problem)), None)
    offers = sees.marketplace(problem)
    rows = []
    for weight in weights:
        worth = measure(problem, plan_of(offers.weighing(cost_weight=weight)), None)
        ratios = [(worth[name] or 0.0) / max(base[name] or 0.0, 1e-12) for name in BOUGHT]
        rows.append((weight, *ratios))
    return pd.DataFrame(rows, columns=["cost_weight", "cost", "score", "distance"])


def at_equal(curve: pd.DataFrame, held: str, wanted: str) -> float | None:
    """`wanted` on the trade-off curve where `held` equals Brokered's (1); None where it never does."""
    ordered = curve.sort_values(held)
    values = ordered[held].to_numpy(float)
    if not values[0] <= 1 <= values[-1]:
        return None
    return float(np.interp(1.0, values, ordered[wanted].to_numpy(float)))


def fig_3_19(problem: Brokering, bids: Sequence[int] = (1, 2, 3, 5, 10, 100)) -> pd.DataFrame:
    """bids, mean_cost, mean_score, objective of the marketplace."""
    rows = []
    for count in bids:
        worth = measure(problem, plan_of(sees.marketplace(problem, bids=count)), None)
        rows.append((count, worth["mean_cost"], worth["mean_score"], worth["objective"]))
    return pd.DataFrame(rows, columns=["bids", "mean_cost", "mean_score", "objective"])


def median_cost_range(problem: Brokering) -> float:
    """The dearest country's mean cluster cost over the cheapest's, countries with clients (Fig. 3.4)."""
    countries = problem.country[problem.cluster_location].astype(str)
    wanted = set(problem.country[np.unique(problem.location[problem.count > 0])].astype(str))
    cost = pd.Series(problem.unit_cost).groupby(countries).mean()
    cost = cost[cost.index.isin(wanted)]
    return float(cost.max() / cost.min())
