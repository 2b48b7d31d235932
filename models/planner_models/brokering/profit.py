"""Who earns: traffic, cost, price and profit of each CDN and each country."""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from planner_models.brokering.assignment import Assignment
from planner_models.brokering.check import served
from planner_models.brokering.problem import Brokering

MARKUP: Final = 1.2  # what a CDN adds to a price that only covers its cost

COLUMNS: Final = (
    "traffic_mbps",
    "cost_per_hour",
    "flat_price_per_hour",
    "price_to_cost",
    "profit_at_flat_price",
    "profit_at_cluster_price",
)


def by_cdn(problem: Brokering, plan: Assignment, *, markup: float = MARKUP) -> pd.DataFrame:
    """One row a CDN: traffic, and what it costs and earns in an hour.

    flat_price_per_hour      markup times its contract price; NaN where it has none for a client
    price_to_cost            of that; below 1 it loses money; NaN without traffic
    profit_at_flat_price     of that
    profit_at_cluster_price  of markup times its clusters' costs instead
    source                   Mukerjee 2018, 3.7.1, Fig. 3.11 to 3.13
    """
    return _by(problem, plan, problem.cdn, problem.cdn_names, "cdn", markup)


def by_country(problem: Brokering, plan: Assignment, *, markup: float = MARKUP) -> pd.DataFrame:
    """The same, one row a country with clusters: where the traffic is served.

    source  Mukerjee 2018, 3.7.1, Fig. 3.14 to 3.16
    """
    names, country = np.unique(problem.country[problem.cluster_location].astype(str), return_inverse=True)
    return _by(problem, plan, country.astype(np.int64), [str(name) for name in names], "country", markup)


def _by(
    problem: Brokering,
    plan: Assignment,
    owner: NDArray[np.int64],
    names: list[str],
    what: str,
    markup: float,
) -> pd.DataFrame:
    done = served(problem, plan)
    traffic = done.count * done.bitrate_mbps
    per_hour = problem.terms.units_per_mbps_hour
    mine = owner[done.cluster]

    def total(amount: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.bincount(mine, weights=amount, minlength=len(names)).astype(float)

    cost = total(traffic * problem.unit_cost[done.cluster]) * per_hour
    flat = problem.contract_price[done.location, problem.cdn[done.cluster]]
    paid = total(np.where(traffic > 0, traffic * flat, 0.0)) * per_hour * markup
    ratio = np.divide(paid, cost, out=np.full(len(names), np.nan), where=cost > 0)
    columns = (total(traffic), cost, paid, ratio, paid - cost, (markup - 1) * cost)
    return pd.DataFrame({what: names, **dict(zip(COLUMNS, columns, strict=True))})
