"""Years in which links reach a utilization, with the plan's purchases and with the capacity of today."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import pandas as pd

from planner.arrays import Floats
from planner.contract.studies import Section
from planner.formatting import counted
from planner_models.capacity.plan.check import Evaluation
from planner_models.capacity.problem.problem import CapacityPlanning

MOST_LINKS: Final = 20
"""Links that the table shows, the first to reach the utilization first."""


def list_upgrade_times(
    problem: CapacityPlanning, evaluation: Evaluation, threshold: float, growth_per_year: float | None
) -> tuple[Section | None, str]:
    """Report in which year the load of each link without failures reaches a share of its capacity.

    Loads are those of the plan's routes; after the last year they grow with all demands.

    threshold        utilization to reach
    growth_per_year  growth of all demands after the last year; None: nothing is said on later years
    """
    load = _loads_of_links(problem, evaluation)
    used = np.flatnonzero(load.max(axis=0) > 0)
    if not len(used) or (problem.years is None and growth_per_year is None):
        return None, ""
    years = np.array(problem.year_numbers, dtype=float) if problem.years is not None else np.zeros(1)
    today = np.broadcast_to(problem.installed_mbps, load.shape)
    reached = {
        name: reach_years(load[:, used], capacity[:, used], years, threshold, growth_per_year)
        for name, capacity in (("without_purchases", today), ("with_the_plan", evaluation.capacity))
    }
    frame = pd.DataFrame(
        {
            "link": [problem.names[line] for line in used.tolist()],
            "load_mbps": load[-1, used],
            "capacity_mbps": evaluation.capacity[-1, used],
            **reached,
        }
    )
    shown = frame.sort_values(["with_the_plan", "without_purchases"], kind="stable", ignore_index=True)
    level = f"{100 * threshold:g}%"
    then = "" if growth_per_year is None else f"; after it demands grow by {100 * growth_per_year:g}% a year"
    start = "years from today" if problem.years is None else "year"
    section = Section(
        title=f"When links reach {level}",
        frame=shown.head(MOST_LINKS),
        units={
            "load_mbps": "Mbit/s",
            "capacity_mbps": "Mbit/s",
            "without_purchases": start,
            "with_the_plan": start,
        },
        note="load and capacity without failures in the last year, by the routes of the plan" + then,
    )
    count = int((frame["with_the_plan"] <= years[-1]).sum())
    before = int((frame["without_purchases"] <= years[-1]).sum())
    last = "today" if problem.years is None else f"by year {problem.year_numbers[-1]}"
    links = counted(before, "links", "reach")
    return section, (
        f"With the capacity of today {links} {level} {last}; with the plan {counted(count, 'links', 'do')}."
    )


def reach_years(
    load: Floats, capacity: Floats, years: Floats, threshold: float, growth_per_year: float | None
) -> Floats:
    """Return the year in which each link reaches a utilization, (L,); NaN for unknown.

    load, capacity   (Y, L) of links in each year, Mbit/s
    years            (Y,) numbers of the years
    growth_per_year  growth of loads after the last year; None: unknown
    """
    over = load >= threshold * capacity * (1 - 1e-9)
    over &= load > 0
    result = np.where(over.any(axis=0), years[np.argmax(over, axis=0)], np.nan)
    if growth_per_year is None:
        return result
    last = np.divide(load[-1], capacity[-1], out=np.full(load.shape[1], np.inf), where=capacity[-1] > 0)
    with np.errstate(divide="ignore"):
        later = years[-1] + np.log(threshold / last) / math.log1p(growth_per_year)
    later = np.where(np.isfinite(later), later, np.nan)
    return np.where(np.isnan(result), later, result)


def _loads_of_links(problem: CapacityPlanning, evaluation: Evaluation) -> Floats:
    """Return the load of each link in each year, of the busier direction where each has capacity, (Y, L)."""
    load = np.zeros((len(evaluation.load), len(problem.lines)))
    np.maximum.at(load.T, evaluation.row_line, evaluation.load.T)
    return load
