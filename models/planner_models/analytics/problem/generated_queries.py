"""Queries with errors of levels that are computed from generated records."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Final, NamedTuple

import numpy as np
import pandas as pd
from pydantic import Field

from planner.arrays import Floats
from planner.contract.parameters import spread
from planner_models.analytics.problem import operators
from planner_models.analytics.problem.generators import (
    Day,
    Pops,
    Seed,
    Sites,
    diurnal,
    draw_days,
    draw_places,
    set_bandwidth,
    small,
    tabulate_intervals,
    tabulate_pops,
    tabulate_volume,
)
from planner_models.analytics.problem.problem import Analytics
from planner_models.analytics.problem.schema import COARSEST, SUM, WORST

COLUMNS: Final = [
    "query", "level", "operator", "parameter", "bytes_per_record", "bytes_per_cell", "error", "value_share",
    "proven_error",
]  # fmt: skip
RECORD_BYTES: Final = 24.0
TRIALS: Final = 200  # samples and seconds from which errors of samples and of time are computed

Domains = Annotated[
    int, Field(ge=10, le=1_000_000, description="domains, of which the most popular are wanted")
]
Skew = Annotated[float, Field(ge=0, le=3, description="exponent of Zipf's law, by which popularity falls")]
Local = Annotated[
    float, Field(ge=0, le=1, description="part of a site's records whose popularity has an order of its own")
]
Records = Annotated[
    int, Field(ge=100, le=10_000_000, description="records of a site in its busiest interval")
]


class _Level(NamedTuple):
    """Level of a query, with its measured error and the proven bound on it; NaN for none."""

    name: str
    operator: str
    parameter: float
    bytes_per_record: float
    bytes_per_cell: float
    error: float
    proven_error: float = np.nan


def _rows(query: str, levels: list[_Level]) -> pd.DataFrame:
    """Return levels of a query; the value falls with the error; the last level sends no data."""
    rows = [
        (
            query,
            level.name,
            level.operator,
            level.parameter,
            round(level.bytes_per_record, 6),
            round(level.bytes_per_cell, 6),
            round(level.error, 6),
            round(max(1 - level.error, 0.0), 6),
            round(level.proven_error, 6),
        )
        for level in levels
    ]
    none = (query, "none", "none", np.nan, 0.0, 0.0, 0.0, 0.0, np.nan)
    return pd.DataFrame([*rows, none], columns=COLUMNS)


@dataclass(frozen=True, kw_only=True)
class Popularity:
    """Popularity of the domains of a CDN."""

    domains: Domains = 20_000
    wanted: Annotated[int, Field(ge=1, le=10_000, description="most popular domains that are wanted")] = 100
    skew: Skew = 0.99
    local_part: Local = 0.0


@spread(popularity=Popularity(), day=Day(hours=1.0, interval_minutes=1.0, bandwidth=0.3))
def cdn(
    *,
    sites: Sites = 40,
    pops: Pops = 6,
    popularity: Popularity,
    records: Records = 20_000,
    day: Day,
    seed: Seed = 0,
) -> Analytics:
    """Generate a CDN with queries for the most popular domains of each minute, and requests by country.

    Counts of domains are drawn for one interval; the errors of lists of several lengths and of sketches are
    those of the answers from these counts. What can be proven is more: a list omits counts up to its last
    one, and a sketch adds e/width of all counts at most, with a probability of 98%.

    source  Rabkin et al. 2013, section 1 (the 100 most popular domains, each minute)
    """
    rng = np.random.default_rng(seed)
    counts = operators.draw_zipf_counts(
        rng,
        sites=sites,
        cells=popularity.domains,
        records=records,
        skew=popularity.skew,
        local_part=popularity.local_part,
    )
    seen = float((counts > 0).sum()) / sites
    levels = [_Level("all counts", "dimension", 1.0, 0.0, operators.ENTRY_BYTES, 0.0, 0.0)]
    for factor in (5, 2, 1):
        merged_lists = operators.merge_lists(counts, popularity.wanted, factor * popularity.wanted)
        if merged_lists.bytes_sent / sites < operators.ENTRY_BYTES * seen:
            size = merged_lists.bytes_sent / sites / seen
            name, listed = f"{factor * popularity.wanted} entries", float(factor * popularity.wanted)
            levels.append(
                _Level(name, "top_k", listed, 0.0, size, merged_lists.count_error, merged_lists.proven_error)
            )
    merged = counts.sum(axis=0)
    top = operators.largest(merged, popularity.wanted)
    sketches = [_Level("exact", "dimension", 1.0, 0.0, operators.ENTRY_BYTES, 0.0, 0.0)]
    for width in (4096, 1024, 256):
        found_counts = operators.sketch_counts(merged, width, 4, rng)
        error = float(np.mean(np.minimum(found_counts[top] / merged[top] - 1, 1.0)))
        size = 4 * width * operators.COUNTER_BYTES / seen
        if size < operators.ENTRY_BYTES:
            proven = float(math.e / width * merged.sum() / merged[top[-1]])
            sketches.append(_Level(f"width {width}", "sketch", float(width), 0.0, size, error, proven))
    tables = [_rows("popular_domains", levels), _rows("domain_counts", sketches)]
    tables.append(_rows("requests_by_country", _sample_levels(rng, records)))
    queries = pd.DataFrame(
        [
            ("popular_domains", "domains", 3.0, WORST, 2 * 60 * day.interval_minutes),
            ("domain_counts", "counts", 2.0, WORST, 4 * 60 * day.interval_minutes),
            ("requests_by_country", "counts", 1.0, SUM, 2 * 60 * day.interval_minutes),
        ],
        columns=["query", "cube", "value_usd", "combine", "deadline_s"],
    )
    workload = _Workload(
        cubes=pd.DataFrame({"cube": ["domains", "counts"], "aggregate": ["top_k", "count"]}),
        queries=queries,
        levels=tables,
        size=np.array([[records, seen]] * 2),
        merging=_measure_overlap(counts, tables[1], "domain_counts"),
    )
    return _assemble(rng, workload, sites, pops, day)


def _sample_levels(rng: np.random.Generator, records: int) -> list[_Level]:
    """Return samples of records with the 95th percentile of the error of a count of a tenth of them."""
    levels = [_Level("all records", "sample", 1.0, RECORD_BYTES, 0.0, 0.0, 0.0)]
    for rate in (0.25, 0.05, 0.01):
        true = records / 10
        errors = [abs(operators.sample_count(true, records, rate, rng)[0] / true - 1) for _ in range(TRIALS)]
        levels.append(
            _Level(
                f"1 in {1 / rate:g}",
                "sample",
                rate,
                rate * RECORD_BYTES,
                0.0,
                min(float(np.percentile(errors, 95)), 1.0),
            )
        )
    return levels


def _measure_overlap(counts: Floats, levels: pd.DataFrame, query: str) -> pd.DataFrame:
    """Return the part of cells that is left where counts of groups of sites are merged, by size of group."""
    used = counts > 0
    rows = []
    for level in levels.loc[levels["operator"].isin(["dimension", "sketch"]), "level"]:
        is_sketch = str(level).startswith("width")
        for size in range(2, len(counts) + 1):
            share = 1 / size if is_sketch else float(used[:size].any(axis=0).sum() / used[:size].sum())
            rows.append((size, query, level, round(share, 4)))
    return pd.DataFrame(rows, columns=["sites", "query", "level", "merged_share"])


@spread(day=Day(hours=2.0, interval_minutes=1.0, bandwidth=0.2, variation=0.5))
def latency_histogram(
    *,
    sites: Sites = 20,
    pops: Pops = 4,
    records: Records = 20_000,
    day: Day,
    seed: Seed = 0,
) -> Analytics:
    """Generate sites that report a histogram of latencies under the policy of the paper.

    Every second under normal conditions, up to every 30 seconds, then with fewer buckets. Errors are those
    of the 95th percentile of drawn latencies, whose level moves from second to second.

    source  Rabkin et al. 2013, section 4 (degradation policies)
    """
    rng = np.random.default_rng(seed)
    seconds = rng.lognormal(0.0, 0.15, size=TRIALS * 6)
    latencies = np.exp(rng.normal(3.5, 0.6, size=20_000))
    true = float(np.quantile(latencies, 0.95))
    finest = 80
    levels = []
    error = 0.0
    for length in (1, 2, 6, 30):
        error = float(np.mean(np.abs(operators.coarsen_time(seconds, length) / seconds - 1)))
        levels.append(
            _Level(
                f"{length} s", "interval", float(length), 0.0, operators.ENTRY_BYTES / length, min(error, 1.0)
            )
        )
    for buckets in (40, 20, 10):
        edges = np.geomspace(latencies.min() * 0.999, latencies.max() * 1.001, buckets + 1)
        wide = abs(operators.histogram_quantile(latencies, edges, 0.95) / true - 1)
        size = operators.ENTRY_BYTES / 30 * buckets / finest
        levels.append(
            _Level(f"30 s, {buckets} buckets", "buckets", float(buckets), 0.0, size, min(error + wide, 1.0))
        )
        error += wide
    table = _rows("latencies", levels)
    queries = pd.DataFrame(
        [("latencies", "latencies", 1.0, COARSEST, 2 * 60 * day.interval_minutes)],
        columns=["query", "cube", "value_usd", "combine", "deadline_s"],
    )
    policy = pd.DataFrame(
        {"query": "latencies", "step": np.arange(1.0, len(levels) + 1), "level": table["level"].iloc[:-1]}
    )
    workload = _Workload(
        cubes=pd.DataFrame({"cube": ["latencies"], "aggregate": ["quantile"]}),
        queries=queries,
        levels=[table],
        size=np.array([[records, 60.0 * day.interval_minutes * finest]]),
    )
    problem = _assemble(rng, workload, sites, pops, day)
    return Analytics(**{**problem.to_tables(), "policies": policy.reset_index(drop=True)})


@spread(day=Day(hours=2.0, bandwidth=0.2, variation=0.5))
def sensors(
    *,
    sites: Sites = 30,
    pops: Pops = 3,
    records: Records = 5_000,
    day: Day,
    seed: Seed = 0,
) -> Analytics:
    """Generate sensors on links of little bandwidth: means over time, and samples of readings of each place.

    source  Rabkin et al. 2013, section 2 (imaging data, adaptive resource control)
    """
    rng = np.random.default_rng(seed)
    state = np.cumsum(rng.normal(0.0, 0.02, size=6_000))
    readings = np.exp(state - state.mean())
    levels = []
    for length in (1, 10, 60, 300):
        error = float(np.mean(np.abs(operators.coarsen_time(readings, length) / readings - 1)))
        size = RECORD_BYTES / length
        levels.append(_Level(f"{length} s", "interval", float(length), 0.0, size, min(error, 1.0)))
    tables = [_rows("means", levels), _rows("readings", _sample_levels(rng, records))]
    queries = pd.DataFrame(
        [
            ("means", "readings", 2.0, COARSEST, 2 * 60 * day.interval_minutes),
            ("readings", "readings", 1.0, SUM, 4 * 60 * day.interval_minutes),
        ],
        columns=["query", "cube", "value_usd", "combine", "deadline_s"],
    )
    workload = _Workload(
        cubes=pd.DataFrame({"cube": ["readings"], "aggregate": ["mean"]}),
        queries=queries,
        levels=tables,
        size=np.array([[records, records]]),
    )
    return _assemble(rng, workload, sites, pops, day)


@dataclass(frozen=True, kw_only=True)
class _Workload:
    """Queries, and the data that they are about.

    size     (C, 2) records and cells of each cube in a site's busiest interval
    merging  sites, query, level, merged_share: by the number of sites of a point of presence
    """

    cubes: pd.DataFrame
    queries: pd.DataFrame
    levels: list[pd.DataFrame]
    size: Floats
    merging: pd.DataFrame | None = None


def _assemble(rng: np.random.Generator, workload: _Workload, sites: int, pops: int, day: Day) -> Analytics:
    """Return the problem of sites with a daily load and links that vary."""
    cubes, size, merging = workload.cubes, workload.size, workload.merging
    times = tabulate_intervals(day.hours, day.interval_minutes)
    locations = draw_places(rng, sites, pops)
    daily = draw_days(rng, times["start_s"].to_numpy(float) / 3600, sites)
    volume = tabulate_volume(
        locations["site"].tolist(), cubes["cube"].tolist(), np.round(daily[:, :, None] * size[:, 0], 1),
        np.round(daily[:, :, None] * size[:, 1], 1),
    )  # fmt: skip
    if merging is not None:
        counts = locations["pop"].value_counts(sort=False).rename("sites").rename_axis("pop").reset_index()
        merging = counts.merge(merging, on="sites").drop(columns="sites")
    levels_table = pd.concat(
        [level.dropna(axis=1, how="all") for level in workload.levels], ignore_index=True
    )
    problem = Analytics(
        sites=locations,
        pops=tabulate_pops(pops),
        intervals=times,
        cubes=cubes,
        volume=volume,
        queries=workload.queries,
        levels=levels_table,
        merging=merging if merging is not None and len(merging) else None,
    )
    return set_bandwidth(problem, day.bandwidth, day.variation, rng)


PRESETS: Final[Mapping[str, Callable[..., Analytics]]] = {
    "diurnal": diurnal,
    "cdn": cdn,
    "latency_histogram": latency_histogram,
    "sensors": sensors,
    "small": small,
}
