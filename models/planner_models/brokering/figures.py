"""Figures of Mukerjee 2018, chapter 3, that look into a market: who gains, who is used, what moves.

The thesis' traces are not public, so figures are of the problem given, usually `generate.world`.
Comparisons of designs by their metrics need none of this: those are scenarios.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
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
DEAR: Final = 5 / 19  # of the countries: A to E of those that Fig. 3.14 to 3.16 name


def plan_of(believed: Brokering) -> Assignment:
    """The broker's plan on what it believes; ValueError where there is none."""
    plan = market.assign(believed, method="flow", options=QUICK).plan
    if plan is None:
        raise ValueError("the broker finds no room for all clients")
    return plan


def alternatives(problem: Brokering, *, cdn: str = "distributed", most: int = 4) -> pd.Series:
    """Percent of clients with at least 1, 2, ... more clusters of one CDN within 25% of its best score.

    Its attribute "mean" is how many a client has on average.

    source  Mukerjee 2018, Table 3.1
    """
    mine = problem.cdn == problem.cdn_names.index(cdn)
    score = problem.score[:, mine]
    others = (score <= SIMILAR_SCORE * score.min(axis=1, keepdims=True)).sum(axis=1) - 1
    clients = np.bincount(problem.location, weights=problem.count, minlength=len(score))
    shares = pd.Series(
        {k: 100 * clients[others >= k].sum() / clients.sum() for k in range(1, most + 1)}, name="percent"
    )
    shares.attrs["mean"] = float(others @ clients / clients.sum())
    return shares


def country_costs(problem: Brokering, *, most: int = 20) -> pd.Series:
    """Mean cost of the clusters in the countries with most traffic over the mean of all, dearest first.

    source  Mukerjee 2018, Fig. 3.4
    """
    wanted = pd.Series(problem.demand_mbps).groupby(problem.country.astype(str)).sum()
    countries = problem.country[problem.cluster_location].astype(str)
    cost = pd.Series(problem.unit_cost).groupby(countries).mean()
    largest = wanted[wanted.index.isin(cost.index)].nlargest(most).index
    over_all = cost[largest] / float(problem.unit_cost.mean())
    return over_all.sort_values(ascending=False, kind="stable")


def use_by_size(problem: Brokering) -> pd.DataFrame:
    """A row a CDN: percent of clients that a flat-rate broker sends it, in smaller and larger cities.

    Larger is the half of the cities with clients that has more of them.

    source  Mukerjee 2018, Fig. 3.6
    """
    plan = plan_of(sees.brokered(problem)).assignments
    by_city = plan.groupby("location")["clients"].sum()
    large = (plan["location"].map(by_city) > by_city.median()).to_numpy(bool)
    owner = plan["cluster"].map(problem.clusters.set_index("cluster")["cdn"])
    use = {}
    for name, part in (("smaller", ~large), ("larger", large)):
        clients = plan["clients"][part].groupby(owner[part]).sum().reindex(problem.cdn_names).fillna(0.0)
        use[name] = 100 * clients / max(float(clients.sum()), 1e-12)
    return pd.DataFrame(use)


def use_by_country(problem: Brokering, *, least: int = 100) -> pd.DataFrame:
    """A row a country with `least` clients and more: percent of them that each CDN serves (Fig. 3.8)."""
    plan = plan_of(sees.brokered(problem)).assignments
    country = plan["location"].map(problem.locations.set_index("location")["country"])
    owner = plan["cluster"].map(problem.clusters.set_index("cluster")["cdn"])
    clients = plan.groupby([country, owner])["clients"].sum().unstack(fill_value=0)  # noqa: PD010
    clients = clients[clients.sum(axis=1) >= least]
    return 100 * clients.div(clients.sum(axis=1), axis=0)


def profits(problem: Brokering) -> tuple[pd.DataFrame, pd.DataFrame]:
    """By CDN, and by country: traffic and profit under flat prices and under bids (Fig. 3.11 to 3.17).

    Columns: brokered_mbps, brokered_price_to_cost, brokered_profit, marketplace_mbps,
    marketplace_profit; by CDN also contract_price, by country also cost (mean of its clusters).
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
    by_cdn, by_country = frames
    by_cdn["contract_price"] = problem.derived_price
    countries = problem.country[problem.cluster_location].astype(str)
    by_country["cost"] = pd.Series(problem.unit_cost).groupby(countries).mean()
    return by_cdn, by_country


def moved(problems: Iterable[Brokering], believed: Callable[[Brokering], Brokering]) -> pd.Series:
    """Percent of the traffic that changes its CDN from each window to the next (the question of Fig. 3.5)."""
    last: Assignment | None = None
    shares = []
    for problem in problems:
        plan = plan_of(believed(problem))
        if last is not None:
            shares.append(measure(problem, plan, last)["moved_between_cdns_percent"] or 0.0)
        last = plan
    return pd.Series(shares, name="moved_percent")


def at_equal(curve: pd.DataFrame, held: str, wanted: str) -> float | None:
    """`wanted` on the trade-off curve where `held` equals Brokered's (1); None where it never does.

    source  Mukerjee 2018, Fig. 3.18
    """
    ordered = curve.sort_values(held)
    values = ordered[held].to_numpy(float)
    if not values[0] <= 1 <= values[-1]:
        return None
    return float(np.interp(1.0, values, ordered[wanted].to_numpy(float)))
