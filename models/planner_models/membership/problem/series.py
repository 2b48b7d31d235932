"""Series of problems: months of a trace of incidents, with the rates of failures that are known by then."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Final

import numpy as np
import pandas as pd
from pydantic import Field

from planner.arrays import Floats
from planner.contract.units import DAY_S, MONTH_S
from planner.errors import InputError
from planner.io.table_files import find_tables, read_tables
from planner_models.membership.problem.problem import Membership
from planner_models.membership.problem.readers.incidents import read_outages
from planner_models.membership.problem.schema import MAX_RATE, OPTIONAL_TABLES, TABLES

MAX_WINDOWS: Final = 10_000
"""Windows that a trace may have."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Incidents:
    """A problem before each window of a trace of incidents.

    Each window has the incidents that began before it: they change the rates of failures of sites and their
    times to repair. A site whose outage lasts from before a window until after it is lost there.

    problem       sites with the rates that are assumed before the trace
    outages       site, start_s, end_s of each incident
    window_s      length of a window
    windows       number of windows
    prior_months  months of observation that the rates of the problem count as
    """

    problem: Membership
    outages: pd.DataFrame
    window_s: float
    windows: int
    prior_months: float

    def __len__(self) -> int:
        return self.windows

    def __iter__(self) -> Iterator[tuple[str, Membership]]:
        for window in range(self.windows):
            start_s = window * self.window_s
            yield f"day {round(start_s / DAY_S):04d}", self.problem_at(start_s)

    def problem_at(self, start_s: float) -> Membership:
        """Return the problem as it is known at the beginning of a window."""
        rate, repair_s = self.rates_at(start_s)
        is_out = (self.outages["start_s"] <= start_s) & (self.outages["end_s"] >= start_s + self.window_s)
        lost = set(self.outages.loc[is_out, "site"].astype(str)) if start_s else set()
        sites = self.problem.sites.assign(fails_per_month=rate, repair_s=repair_s)
        if lost:
            state = sites.get("state", pd.Series("", index=sites.index)).to_numpy(object).copy()
            state[sites["site"].astype(str).isin(lost).to_numpy(bool)] = "lost"
            sites = sites.assign(state=state)
        return replace(self.problem, sites=sites)

    def rates_at(self, until_s: float) -> tuple[Floats, Floats]:
        """Return failures in a month, (S,), and times to repair, s, after the incidents before a time.

        The mean of a gamma distribution that has the mean of the table, with the weight of the prior months;
        a row of hosts is observed for as many months as it has hosts.
        """
        problem = self.problem
        rate, repair_s = (problem.sites[name].to_numpy(float) for name in ("fails_per_month", "repair_s"))
        past = self.outages[self.outages["start_s"] < until_s]
        site = np.array([problem.row_of(name) for name in past["site"].astype(str)], dtype=np.int64)
        start_s, end_s = (past[name].to_numpy(float) for name in ("start_s", "end_s"))
        length = np.minimum(end_s, until_s) - start_s
        count = np.bincount(site, minlength=len(rate)).astype(float)
        total_s = np.bincount(site, weights=length, minlength=len(rate))
        each = np.where(problem.tree.is_host, np.maximum(problem.tree.capacity, 1), 1).astype(float)
        expected = rate * self.prior_months * each
        months = (self.prior_months + until_s / MONTH_S) * each
        known = np.where(count > 0, expected + count, 1.0)
        later = np.where(count > 0, (repair_s * expected + total_s) / known, repair_s)
        observed = np.where(months > 0, (expected + count) / np.maximum(months, 1e-12), rate)
        return np.minimum(observed, MAX_RATE), later


def incidents(
    *,
    path: Annotated[Path, Field(description="folder of the problem's tables, with rates assumed before")],
    trace: Annotated[Path, Field(description="CSV of incidents: site, start, end (dates, or s)")],
    days: Annotated[float, Field(gt=0, le=3_650, description="length of a window, days")] = 30.0,
    prior_months: Annotated[
        float,
        Field(ge=0, le=1e4, description="months of observation that the rates of the tables count as"),
    ] = 12.0,
) -> Incidents:
    """Return the windows of a trace of incidents, each with the rates known at its beginning.

    raises  InputError for a trace without incidents, or with too many windows
    """
    problem = Membership.from_tables(read_tables(TABLES, find_tables(TABLES, path, OPTIONAL_TABLES)))
    outages = read_outages(trace, problem.site_names)
    if not len(outages):
        raise InputError(f"{trace.name}: has no incidents, must have at least one")
    windows = max(math.ceil(float(outages["end_s"].max()) / (days * DAY_S)), 1)
    if windows > MAX_WINDOWS:
        raise InputError(
            f"{trace.name}: has {windows:,} windows of {days:g} days, must have at most {MAX_WINDOWS:,}; set "
            "more days"
        )
    return Incidents(
        problem=problem,
        outages=outages[["site", "start_s", "end_s"]],
        window_s=days * DAY_S,
        windows=windows,
        prior_months=prior_months,
    )


SERIES: Final = {"incidents": incidents}
