"""Traffic, cost, price and profit of each CDN and each country."""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd

from planner.arrays import Floats, Ints
from planner_models.brokering.plan.check import read_assignment
from planner_models.brokering.plan.plan import Assignment
from planner_models.brokering.problem.problem import Brokering

MARKUP: Final = 1.2  # of a CDN on a price that only covers its cost

COLUMNS: Final = (
    "traffic_mbps",
    "cost_per_hour",
    "flat_price_per_hour",
    "price_to_cost",
    "profit_at_flat_price",
    "profit_at_cluster_price",
)


def profit_by_cdn(problem: Brokering, plan: Assignment, *, markup: float = MARKUP) -> pd.DataFrame:
    """Return one row per CDN: its traffic, and cost, price and profit of an hour of it.

    flat_price_per_hour      markup times its contract price; NaN where it has none for a client
    price_to_cost            flat price over cost; below 1 it loses money; NaN without traffic
    profit_at_flat_price     flat price less cost
    profit_at_cluster_price  the same at markup times its clusters' costs
    source                   Mukerjee 2018, 3.7.1, Fig. 3.11 to 3.13
    """
    return _profit_by_owner(problem, plan, problem.cdn, problem.cdn_names, "cdn", markup)


def profit_by_country(problem: Brokering, plan: Assignment, *, markup: float = MARKUP) -> pd.DataFrame:
    """Return the same with one row per country with clusters, by the country that serves the traffic.

    source  Mukerjee 2018, 3.7.1, Fig. 3.14 to 3.16
    """
    names, country = np.unique(problem.country[problem.cluster_location].astype(str), return_inverse=True)
    return _profit_by_owner(problem, plan, country, names.tolist(), "country", markup)


def _profit_by_owner(
    problem: Brokering, plan: Assignment, owner: Ints, names: list[str], column: str, markup: float
) -> pd.DataFrame:
    assignment = read_assignment(problem, plan)
    traffic = assignment.count * assignment.bitrate_mbps
    per_hour = problem.terms.units_per_mbps_hour
    owner_of_row = owner[assignment.cluster]

    def total(amount: Floats) -> Floats:
        return np.bincount(owner_of_row, weights=amount, minlength=len(names)).astype(float)

    cost = total(traffic * problem.unit_cost[assignment.cluster]) * per_hour
    flat_price = problem.contract_price[assignment.location, problem.cdn[assignment.cluster]]
    paid = total(np.where(traffic > 0, traffic * flat_price, 0.0)) * per_hour * markup
    ratio = np.divide(paid, cost, out=np.full(len(names), np.nan), where=cost > 0)
    columns = (total(traffic), cost, paid, ratio, paid - cost, (markup - 1) * cost)
    return pd.DataFrame({column: names, **dict(zip(COLUMNS, columns, strict=True))})
