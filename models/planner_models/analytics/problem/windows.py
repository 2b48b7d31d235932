"""Parts of a problem in time: some of its intervals, and consecutive windows of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
from pydantic import Field

from planner.arrays import Ints
from planner.contract.parameters import spread
from planner.io.table_files import find_tables, read_tables
from planner_models.analytics.problem import generators
from planner_models.analytics.problem.problem import Analytics
from planner_models.analytics.problem.schema import OPTIONAL_TABLES, TABLES

WindowIntervals = Annotated[int, Field(ge=1, le=10_000, description="intervals of a window")]


def take_intervals(problem: Analytics, rows: Ints) -> Analytics:
    """Return the problem of some of its intervals, by their places in time, which follow each other.

    Sites keep a row for each cube that they have data of in any interval, so that the same sites take part.
    """
    numbers = problem.interval_numbers[rows]
    intervals = problem.intervals[problem.intervals["interval"].isin(numbers)].reset_index(drop=True)
    cubes = problem.cubes["cube"].astype(str).tolist()
    has = np.zeros((len(problem.site_names), len(cubes)), dtype=bool)
    has[problem.volume_places[1], problem.volume_places[2]] = True
    site, cube = np.nonzero(has)
    volume = pd.DataFrame(
        {
            "site": pd.Categorical.from_codes(
                np.tile(site, len(rows)), categories=pd.Index(problem.site_names)
            ),
            "cube": pd.Categorical.from_codes(np.tile(cube, len(rows)), categories=pd.Index(cubes)),
            "interval": np.repeat(numbers, len(site)),
            "records": problem.records[rows][:, site, cube].ravel(),
            "cells": problem.cells[rows][:, site, cube].ravel(),
        }
    )
    bandwidth = problem.bandwidth
    if bandwidth is not None:
        bandwidth = bandwidth[bandwidth["interval"].isin(numbers)].reset_index(drop=True)
    return problem.in_other_times(intervals=intervals, volume=volume, bandwidth=bandwidth)


@dataclass(frozen=True, kw_only=True, eq=False)
class IntervalWindows:
    """A problem as consecutive windows of its intervals, each labelled by the time of its start."""

    problem: Analytics
    window_intervals: int

    def __len__(self) -> int:
        return -(-len(self.problem.interval_numbers) // self.window_intervals)

    def __iter__(self) -> Iterator[tuple[str, Analytics]]:
        count = len(self.problem.interval_numbers)
        digits = len(f"{self.problem.start_s[-1]:.0f}")
        for first in range(0, count, self.window_intervals):
            rows = np.arange(first, min(first + self.window_intervals, count))
            start = float(self.problem.start_s[first])
            decimals = f"{start % 1:.6g}"[1:] if start % 1 else ""
            yield f"{int(start):0{digits}d}{decimals}s", take_intervals(self.problem, rows)


def read_windows(
    *,
    path: Annotated[Path, Field(description="folder with the tables of the whole time")],
    window_intervals: WindowIntervals = 12,
) -> IntervalWindows:
    """Read a problem in tables as consecutive windows.

    raises  InputError for faulty tables
    """
    tables = read_tables(TABLES, find_tables(TABLES, path, OPTIONAL_TABLES))
    return IntervalWindows(problem=Analytics.from_tables(tables), window_intervals=window_intervals)


@spread(day=generators.Day(), combinations=generators.Combinations())
def generate_windows(
    *,
    window_intervals: WindowIntervals = 12,
    sites: generators.Sites = 200,
    pops: generators.Pops = 20,
    queries: generators.Queries = 50,
    day: generators.Day,
    combinations: generators.Combinations,
    seed: generators.Seed = 0,
) -> IntervalWindows:
    """Generate sites around the world (see preset diurnal) as consecutive windows."""
    problem = generators.diurnal(
        sites=sites,
        pops=pops,
        queries=queries,
        **vars(day),
        **vars(combinations),
        seed=seed,
    )
    return IntervalWindows(problem=problem, window_intervals=window_intervals)
