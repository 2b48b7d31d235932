"""The plan of system `capacity`: modules to buy, and the routes of all demands without failures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd

from planner.arrays import Floats
from planner.contract.tables import collect_tables
from planner_models.capacity.problem.problem import CapacityPlanning
from planner_models.capacity.problem.schema import PLAN_TABLES, PURCHASES

TRACE: Final = 1e-9
"""Share of the largest demand below which a flow is rounding."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Purchases:
    """Modules to buy, and the routing of demands in the state without failures.

    purchases  link, module, count, added_mbps, cost, setup_cost, and where there are several years, year
    flows      target, link, tail, rate_mbps, year?
    unserved   source, target, class?, rate_mbps, year?; demand that is left out
    tunnel_flows  tunnel, rate_mbps, year?; traffic of demands with tunnels; None where there are none
    """

    purchases: pd.DataFrame
    flows: pd.DataFrame
    unserved: pd.DataFrame
    tunnel_flows: pd.DataFrame | None = None

    def to_tables(self) -> dict[str, pd.DataFrame]:
        """Return the tables of the plan."""
        return collect_tables(self, PLAN_TABLES)


def tabulate_purchases(problem: CapacityPlanning, counts: Floats) -> pd.DataFrame:
    """Return the table of purchases, (Y, M) of each module in each year, with their costs."""
    options, years = problem.options, problem.year_numbers
    rows = []
    has_bought = np.zeros(len(problem.lines), dtype=bool)
    for index, year in enumerate(years):
        price = float(problem.price_factor[index])
        for module in np.flatnonzero(np.round(counts[index]) > 0).tolist():
            line, count = int(options.link[module]), float(np.round(counts[index, module]))
            setup = 0.0 if has_bought[line] else float(problem.setup_cost[line]) * price
            has_bought[line] = True
            rows.append(
                {
                    "link": problem.names[line],
                    "module": options.name[module],
                    "count": count,
                    "added_mbps": count * float(options.size[module]),
                    "cost": count * float(options.cost[module]) * price,
                    "setup_cost": setup,
                    "year": float(year),
                }
            )
    frame = pd.DataFrame(rows, columns=list(PURCHASES.columns))
    return frame if problem.years is not None else frame.drop(columns="year")
