"""Plans of system `analytics` from tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pandas as pd

from planner.contract.table import Table
from planner.contract.tables import validate
from planner.errors import InputError
from planner_models.analytics.plan.backfill import tabulate_kept
from planner_models.analytics.plan.merging import tabulate_merged
from planner_models.analytics.plan.plan import (
    ANSWERS,
    ARCHIVED,
    BACKFILL,
    KEPT,
    LEVELS,
    MERGED,
    PRICES,
    Levels,
    read_backfill,
    read_levels,
    refuse,
    tabulate_answers,
)
from planner_models.analytics.problem.problem import Analytics
from planner_models.analytics.problem.tables import find_rows


def from_tables(problem: Analytics, tables: Mapping[str, pd.DataFrame]) -> Levels:
    """Return the plan in its tables; `answers`, `merged` and `kept` follow from the others where absent.

    raises  InputError with every fault; PlanRejected for names and intervals that there are none of
    """
    if "levels" not in tables:
        raise InputError("levels: is missing")
    plan = Levels(levels=_read(tables, LEVELS), answers=pd.DataFrame())
    levels = read_levels(problem, plan)
    answers = _read(tables, ANSWERS) if "answers" in tables else tabulate_answers(problem, levels)
    merged = _read(tables, MERGED) if "merged" in tables else tabulate_merged(problem, levels)
    plan = replace(plan, answers=answers, merged=merged)
    if "prices" in tables:
        prices = _read(tables, PRICES)
        unknown = find_rows(problem.link_names, prices["link"]) < 0
        refuse(prices, "prices", unknown, lambda row: f"there is no uplink of '{row['link']}'")
        plan = replace(plan, prices=prices)
    if "backfill" in tables:
        plan = replace(plan, backfill=_read(tables, BACKFILL))
    if "archived" in tables:
        plan = replace(plan, archived=_read(tables, ARCHIVED))
    late = read_backfill(problem, plan)
    return replace(plan, kept=_read(tables, KEPT) if "kept" in tables else tabulate_kept(problem, late))


def _read(tables: Mapping[str, pd.DataFrame], table: Table) -> pd.DataFrame:
    frame = tables[table.name]
    return validate(table, frame, where=frame.attrs.get("where"))
