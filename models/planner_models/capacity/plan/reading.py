"""Plans that were made elsewhere: their tables, completed by costs and routes where they have none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import pandas as pd

from planner.contract.tables import validate_tables
from planner.errors import InputError
from planner_models.capacity.plan.check import read_counts
from planner_models.capacity.plan.plan import Purchases, tabulate_purchases
from planner_models.capacity.problem.problem import CapacityPlanning
from planner_models.capacity.problem.schema import FLOWS, PLAN_TABLES, UNSERVED
from planner_models.capacity.routing import capacity_by_year, route

FIGURES: Final = ("added_mbps", "cost", "setup_cost")
"""Columns of purchases that follow from the others."""


def from_tables(problem: CapacityPlanning, tables: Mapping[str, pd.DataFrame]) -> Purchases:
    """Return the plan in some tables; where it has no costs or no flows, they are computed.

    raises  InputError with every fault of the tables
    """
    frames = validate_tables(PLAN_TABLES, tables, required=("purchases",))
    faults = [
        f"{name}: column 'year' is missing; the problem has several years"
        for name, frame in frames.items()
        if problem.years is not None and "year" not in frame and len(frame)
    ]
    if faults:
        raise InputError(*faults)
    for table in (FLOWS, UNSERVED):
        if table.name not in frames:
            frames[table.name] = pd.DataFrame(columns=list(table.required_columns))
    plan = Purchases(**frames)
    if not set(FIGURES) <= set(plan.purchases):
        plan = replace(plan, purchases=tabulate_purchases(problem, read_counts(problem, plan)))
    if "flows" in tables or "tunnel_flows" in tables:
        return plan
    return route(problem, plan, capacity_by_year(problem, read_counts(problem, plan)))
