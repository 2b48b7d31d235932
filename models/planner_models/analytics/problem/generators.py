"""Synthetic problems. No number here is a claim about a real network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

import numpy as np
import pandas as pd
from pydantic import Field

from planner.arrays import Floats
from planner.contract.parameters import spread
from planner_models.analytics.problem.problem import Analytics
from planner_models.analytics.problem.schema import COARSEST, SUM, WORST
from planner_models.analytics.problem.tables import BYTES_PER_MBIT

NIGHT: Final = 0.3  # records of the quietest hour over those of the busiest
RECORD_NOISE: Final = 0.1  # standard deviation of the logarithm of a site's records
BANDWIDTH_MEMORY_S: Final = 900.0  # in which the autocorrelation of a link's bandwidth falls to 1/e
FINEST_BYTES: Final = 16.0  # of a cell
BYTES_SHARES: Final = (1.0, 0.5, 0.25, 0.12, 0.05)
VALUE_SHARES: Final = (1.0, 0.93, 0.82, 0.65, 0.4)
SECONDS: Final = (1.0, 5.0, 10.0, 30.0, 60.0)
WIDTHS: Final = (4096, 2048, 1024, 512, 256)

Sites = Annotated[int, Field(ge=1, le=5_000, description="sites that generate data")]
Pops = Annotated[int, Field(ge=1, le=500, description="points of presence that sites are connected to")]
Queries = Annotated[int, Field(ge=1, le=1_000, description="standing queries")]
Hours = Annotated[float, Field(gt=0, le=744, description="hours")]
Minutes = Annotated[float, Field(gt=0, le=1_440, description="minutes of an interval")]
Bandwidth = Annotated[
    float, Field(gt=0, description="capacity of each uplink over the mean load of all queries at full detail")
]
Variation = Annotated[
    float, Field(ge=0, le=2, description="standard deviation of the logarithm of a link's bandwidth in time")
]
Part = Annotated[float, Field(ge=0, le=1, description="part of the queries to which sites add values")]
AdHocPart = Annotated[
    float,
    Field(
        ge=0, le=1, description="part of the queries that are asked once, over stored data of the hour before"
    ),
]
SharedPart = Annotated[
    float,
    Field(ge=0, le=1, description="part of the queries that use the data of another one of the same cube"),
]
BackfillMinutes = Annotated[
    float,
    Field(
        ge=0,
        le=1e6,
        description="minutes in which finer data may be sent later, and in which its value halves; 0: none",
    ),
]
Seed = Annotated[int, Field(ge=0, description="seed of all random draws")]


@dataclass(frozen=True, kw_only=True)
class Times:
    """Hours and intervals that are generated, and the bandwidth in them."""

    hours: Hours = 24.0
    interval_minutes: Minutes = 5.0
    bandwidth: Bandwidth = 0.35


@dataclass(frozen=True, kw_only=True)
class Day(Times):
    """Hours and intervals that are generated, and bandwidth that varies in them."""

    variation: Variation = 0.25


@dataclass(frozen=True, kw_only=True)
class Combinations:
    """Parts of the queries whose answers are sums, and of which the worst site counts."""

    sum_part: Part = 0.2
    worst_part: Part = 0.2


@dataclass(frozen=True, kw_only=True)
class Reuse:
    """Later data, and data that several queries use."""

    backfill_minutes: BackfillMinutes = 0.0
    ad_hoc_part: AdHocPart = 0.0
    shared_part: SharedPart = 0.0


@spread(day=Day(), combinations=Combinations(), reuse=Reuse())
def diurnal(
    *,
    sites: Sites = 200,
    pops: Pops = 20,
    queries: Queries = 50,
    day: Day,
    combinations: Combinations,
    reuse: Reuse,
    seed: Seed = 0,
) -> Analytics:
    """Generate sites around the world with a daily load, queries of six levels, and links that vary."""
    rng = np.random.default_rng(seed)
    times = tabulate_intervals(day.hours, day.interval_minutes)
    locations = draw_places(rng, sites, pops)
    cubes = max(1, queries // 5)
    cube_names = [f"cube{row + 1}" for row in range(cubes)]
    hour = times["start_s"].to_numpy(float) / 3600
    daily = draw_days(rng, hour, sites)
    size = rng.lognormal(8.0, 0.8, size=(sites, cubes))
    records = np.round(daily[:, :, None] * size, 1)
    volume = tabulate_volume(locations["site"].tolist(), cube_names, records, np.round(records**0.8, 1))
    names = [f"query{row + 1}" for row in range(queries)]
    combine = np.full(queries, COARSEST, dtype=object)
    order = rng.permutation(queries)
    sums, worst = round(combinations.sum_part * queries), round(combinations.worst_part * queries)
    combine[order[:sums]], combine[order[sums : sums + worst]] = SUM, WORST
    table = pd.DataFrame(
        {
            "query": names,
            "cube": [cube_names[row % cubes] for row in range(queries)],
            "value_usd": np.round(rng.lognormal(0.0, 0.8, size=queries), 3),
            "combine": combine,
            "deadline_s": 2 * 60 * day.interval_minutes,
        }
    )
    levels = pd.concat(
        [_draw_levels(rng, name, str(kind)) for name, kind in zip(names, combine, strict=True)]
    )
    problem = Analytics(
        sites=locations,
        pops=tabulate_pops(pops),
        intervals=times,
        cubes=pd.DataFrame({"cube": cube_names, "aggregate": "count"}),
        volume=volume,
        queries=table,
        levels=levels.reset_index(drop=True),
        merging=_draw_merging(rng, names, levels, locations),
        **_draw_reuse(
            np.random.default_rng((seed, 1)),
            table,
            times,
            reuse.ad_hoc_part,
            reuse.shared_part,
            reuse.backfill_minutes,
        ),
    )
    return set_bandwidth(problem, day.bandwidth, day.variation, rng)


def _draw_reuse(
    rng: np.random.Generator,
    queries: pd.DataFrame,
    times: pd.DataFrame,
    ad_hoc_part: float,
    shared_part: float,
    backfill_minutes: float,
) -> dict[str, pd.DataFrame | None]:
    """Draw ad hoc queries, queries that use the data of another one, and the table of later data."""
    names = queries["query"].tolist()
    order = rng.permutation(len(names))
    ad_hoc = [names[row] for row in order[: round(ad_hoc_part * len(names))].tolist()]
    asked = rng.integers(1, len(times) + 1, size=len(ad_hoc)).astype(float)
    before = np.floor(3600 / times["length_s"].iloc[0])
    source_of: dict[tuple[str, str], str] = {}
    shares: list[tuple[str, str]] = []
    for row in order[len(ad_hoc) :].tolist():
        key = (str(queries["cube"].iloc[row]), str(queries["combine"].iloc[row]))
        if key not in source_of:
            source_of[key] = names[row]
        elif len(shares) < round(shared_part * len(names)):
            shares.append((names[row], source_of[key]))
    late = [name for name in names if name not in ad_hoc and name not in {query for query, _ in shares}]
    seconds = 60 * backfill_minutes
    return {
        "ad_hoc": pd.DataFrame({"query": ad_hoc, "interval": asked, "since": np.maximum(asked - before, 1.0)})
        if ad_hoc
        else None,
        "shares": pd.DataFrame(shares, columns=["query", "uses"]) if shares else None,
        "backfill": pd.DataFrame({"query": late, "window_s": seconds, "half_life_s": seconds})
        if seconds > 0
        else None,
    }


def _draw_levels(rng: np.random.Generator, query: str, kind: str) -> pd.DataFrame:
    """Draw six levels of a query, the last one without data."""
    bytes_share = np.array(BYTES_SHARES) ** rng.uniform(0.8, 1.2)
    share = np.array(VALUE_SHARES) ** rng.uniform(0.5, 1.5)
    count = len(bytes_share)
    operator, names, parameter = {
        COARSEST: ("interval", [f"{size:g} s" for size in SECONDS], list(SECONDS)),
        SUM: ("sample", [f"{size:.0%}" for size in BYTES_SHARES], list(BYTES_SHARES)),
        WORST: ("sketch", [f"width {width}" for width in WIDTHS], [float(width) for width in WIDTHS]),
    }[kind]
    return pd.DataFrame(
        {
            "query": query,
            "level": [*names, "none"],
            "operator": [*([operator] * count), "none"],
            "parameter": [*parameter, np.nan],
            "bytes_per_record": 0.0,
            "bytes_per_cell": [*np.round(FINEST_BYTES * bytes_share, 4), 0.0],
            "error": [*np.round(0.2 * (1 - share), 5), 0.0],
            "value_share": [*np.round(share, 4), 0.0],
        }
    )


def _draw_merging(
    rng: np.random.Generator, queries: list[str], levels: pd.DataFrame, locations: pd.DataFrame
) -> pd.DataFrame:
    """Draw the part of bytes that is left where cells of a point of presence's sites are merged."""
    counts = locations["pop"].value_counts(sort=False)
    rows = []
    for query in queries:
        overlap = rng.uniform(0.2, 0.8)
        for pop, sites in counts.items():
            share = overlap / sites + (1 - overlap)
            own_levels = levels.loc[(levels["query"] == query) & (levels["operator"] != "none"), "level"]
            rows += [(pop, query, level, round(float(share), 4)) for level in own_levels]
    return pd.DataFrame(rows, columns=["pop", "query", "level", "merged_share"])


def tabulate_intervals(hours: float, minutes: float) -> pd.DataFrame:
    """Return the intervals of some hours, at least one."""
    count = max(1, round(hours * 60 / minutes))
    number = np.arange(1.0, count + 1)
    return pd.DataFrame(
        {"interval": number, "start_s": (number - 1) * minutes * 60, "length_s": minutes * 60}
    )


def tabulate_pops(count: int) -> pd.DataFrame:
    """Return points of presence that merge cells."""
    names = [f"pop{row + 1}" for row in range(count)]
    return pd.DataFrame({"pop": names, "uplink_mbps": 1.0, "merges": "yes"})


def draw_places(rng: np.random.Generator, sites: int, pops: int) -> pd.DataFrame:
    """Draw the point of presence of each site; each has at least one site where there are enough."""
    pop = np.concatenate([np.arange(min(pops, sites)), rng.integers(0, pops, size=max(sites - pops, 0))])
    return pd.DataFrame(
        {
            "site": [f"site{row + 1}" for row in range(sites)],
            "pop": [f"pop{row + 1}" for row in pop.tolist()],
            "uplink_mbps": 1.0,
        }
    )


def draw_days(rng: np.random.Generator, hour: Floats, sites: int) -> Floats:
    """Draw the records of each interval and site over those of its busiest hour, (K, S)."""
    east = rng.uniform(0, 24, size=sites)
    daily = 0.5 - 0.5 * np.cos(2 * np.pi * (hour[:, None] + east) / 24)
    level = NIGHT + (1 - NIGHT) * daily
    return np.asarray(level * rng.lognormal(0.0, RECORD_NOISE, size=level.shape))


def tabulate_volume(sites: list[str], cubes: list[str], records: Floats, cells: Floats) -> pd.DataFrame:
    """Return the table of records and cells, (K, S, C) each."""
    interval, site, cube = (indices.ravel() for indices in np.indices(records.shape))
    return pd.DataFrame(
        {
            "site": pd.Categorical.from_codes(site, categories=pd.Index(sites)),
            "cube": pd.Categorical.from_codes(cube, categories=pd.Index(cubes)),
            "interval": interval + 1.0,
            "records": records.ravel(),
            "cells": np.minimum(cells, records).ravel(),
        }
    )


def finest_bytes(problem: Analytics) -> Floats:
    """Return the bytes of all queries at their finest levels on each uplink, (K, S + G), after merging."""
    site = np.zeros((len(problem.interval_numbers), len(problem.site_names)))
    before_pop = np.zeros_like(site)
    finest = problem.level_rows[:, 0]
    sizes = problem.levels[["bytes_per_record", "bytes_per_cell"]].to_numpy(float)[finest]
    for query, cube in enumerate(problem.cube_of.tolist()):
        sent = problem.records[:, :, cube] * sizes[query, 0] + problem.cells[:, :, cube] * sizes[query, 1]
        site += sent
        before_pop += sent * problem.merged_share[problem.pop_of, query, 0]
    pop = np.zeros((len(site), len(problem.pop_names)))
    np.add.at(pop.T, problem.pop_of, before_pop.T)
    return np.concatenate([site, pop], axis=1)


def set_bandwidth(
    problem: Analytics, bandwidth: float, variation: float, rng: np.random.Generator
) -> Analytics:
    """Return the problem with capacities of links drawn about a multiple of their mean load, Mbit/s."""
    load = finest_bytes(problem).mean(axis=0)
    mean = bandwidth * load / float(problem.length_s.mean()) / BYTES_PER_MBIT
    factor = draw_variation(rng, problem.length_s, len(mean), variation)
    return problem.with_capacity(np.round(mean * factor, 6))


def draw_variation(rng: np.random.Generator, length_s: Floats, count: int, variation: float) -> Floats:
    """Draw factors of mean 1 of some links in each interval, (K, count), with falling autocorrelation.

    variation  standard deviation of the logarithm
    """
    memory = np.exp(-float(length_s.mean()) / BANDWIDTH_MEMORY_S)
    state = rng.standard_normal(count)
    rows = []
    for _ in range(len(length_s)):
        rows.append(np.exp(variation * state - variation**2 / 2))
        state = memory * state + np.sqrt(1 - memory**2) * rng.standard_normal(count)
    return np.array(rows)


def small(*, seed: Seed = 0) -> Analytics:
    """Generate three intervals of six sites and five queries."""
    return diurnal(sites=6, pops=2, queries=5, hours=0.25, bandwidth=0.4, sum_part=0.2, seed=seed)
