"""Reproduction targets of system `analytics`, declared in `data/published/analytics.toml`.

Section 1: yearly falls of prices, and the 100 most popular domains of each minute.

Sections 2 to 5: classes of queries, adaptation, the policy of section 4, granularities, and placement.
"""

from __future__ import annotations

import csv
import inspect
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import Final, NamedTuple

import numpy as np
import pandas as pd

from planner.arrays import Floats
from planner.contract.targets import Study, TargetValues, read_targets
from planner_models.analytics.designs import rules
from planner_models.analytics.information import observe_bandwidth
from planner_models.analytics.plan.answers import find_answers, find_loads, replay_queues
from planner_models.analytics.plan.metrics import find_timely_value
from planner_models.analytics.plan.plan import read_levels
from planner_models.analytics.problem import operators
from planner_models.analytics.problem.generated_queries import cdn, latency_histogram, sensors
from planner_models.analytics.problem.generators import BANDWIDTH_MEMORY_S
from planner_models.analytics.problem.problem import Analytics
from planner_models.analytics.problem.schema import TABLES

CITED: Final = "a figure that the paper cites; no run gives it"
GROWTH: Final = 1.5  # of a domain that becomes popular, from one minute to the next
MOST_MINUTES: Final = 60


BANDWIDTHS: Final = tuple(np.geomspace(4.0, 0.002, 25).tolist())
"""Capacity over the mean load at full detail, as bandwidth falls."""
AFTER: Final = "set after the example of the paper; the run shows that the rule reaches it"
SECONDS: Final = (1.0, 5.0, 10.0)


class Delays(NamedTuple):
    """Time from the end of an interval to its answer: of 99% and of all answers, s."""

    p99_s: float
    most_s: float


def find_queries(study: Study) -> TargetValues:  # noqa: ARG001 - always in full
    """Return periods that adaptation reaches as bandwidth falls, and its reaction time."""
    steps = _list_reached(sensors(sites=4, pops=1, hours=0.5, variation=0.0), "means")
    periods = [parameter for _, parameter in steps]
    delay = measure_reaction()
    return TargetValues(
        values={
            "anal_design_choices": float(len(_list_design_choices())),
            "anal_query_classes": float(len(_list_query_classes())),
            "anal_adapt_fine": min(periods),
            "anal_adapt_coarse": 60.0 / 60.0 if 60.0 in periods else None,
            "anal_fluctuation": 60.0 < BANDWIDTH_MEMORY_S <= 3600.0,
            "anal_reaction": delay.p99_s < 10.0,
        },
        notes={
            "anal_design_choices": "modelled by " + ", ".join(_list_design_choices()),
            "anal_query_classes": "modelled by " + ", ".join(_list_query_classes()),
            "anal_adapt_fine": AFTER,
            "anal_adapt_coarse": AFTER,
            "anal_fluctuation": "drawn bandwidth loses its autocorrelation in "
            f"{BANDWIDTH_MEMORY_S / 60:.0f} minutes",
            "anal_reaction": "bandwidth halves, sites know it 1 s late: 99% of the answers come within "
            f"{delay.p99_s:.1f} s, all within {delay.most_s:.1f} s",
        },
    )


def _list_design_choices() -> list[str]:
    """Return the tables and columns that model the design choices of section 1, in its order."""
    choices = (("sites", "storage_gb"), ("levels", "operator"), ("cubes", "aggregate"))
    columns = {table.name: table.columns for table in TABLES}
    return [f"{table}.{column}" for table, column in choices if column in columns.get(table, {})]


def _list_query_classes() -> list[str]:
    """Return the tables that model the classes of queries of section 2: standing and ad hoc."""
    return [table.name for table in TABLES if table.name in ("queries", "ad_hoc")]


def find_policy(study: Study) -> TargetValues:  # noqa: ARG001 - always in full
    """Return the steps of the policy of section 4 as bandwidth falls."""
    problem = latency_histogram(sites=4, pops=1, hours=0.2, variation=0.0)
    steps = _list_reached(problem, "latencies")
    names = problem.level_names[0]
    ranks = [names.index(level) for level, _ in steps]
    is_monotone = ranks == sorted(ranks)
    before_buckets = [size for level, size in steps if "buckets" not in level]
    delay = measure_reaction()
    finest, coarsest = _coarsen()
    seconds = before_buckets if is_monotone and len(before_buckets) < len(steps) else []
    return TargetValues(
        values={
            "anal_policy_start": seconds[0] if seconds else None,
            "anal_policy_max": seconds[-1] if seconds else None,
            "anal_delay_ok": delay.most_s,
            "anal_coarsen_from": finest,
            "anal_coarsen_to": coarsest / 60,
            "anal_holistic": _grows_with_data(),
        },
        notes={
            "anal_policy_start": f"{AFTER}, at ample bandwidth",
            "anal_policy_max": f"{AFTER}; then the histogram has fewer buckets, and levels only become "
            "coarser",
            "anal_delay_ok": "the longest delay of an answer as bandwidth halves and sites know it 1 s late",
            "anal_coarsen_from": "counts of each second of an hour",
            "anal_coarsen_to": "the same counts, joined to those of minutes, have the same sums",
            "anal_holistic": "exact quantiles keep all values, a histogram as many buckets at any size",
        },
    )


def find_combination(study: Study) -> TargetValues:  # noqa: ARG001 - needs no run
    """Return the granularity of an answer from two sites, and the places where data can be merged."""
    problem = _two_sites()
    fine, coarse = 0, 1
    levels = np.array([[[coarse], [fine]]])
    level = int(find_answers(problem, levels).level[0, 0])
    # site, point of presence where it merges, datacenter
    stages = [2 + int(merges == "yes") for merges in problem.pops["merges"]]
    return TargetValues(
        values={
            "anal_mix_fine": SECONDS[fine],
            "anal_mix_coarse": SECONDS[coarse],
            "anal_mix_result": SECONDS[level],
            "anal_placement_min": float(min(stages)),
            "anal_placement_max": float(max(stages)),
        },
        notes={
            "anal_mix_fine": "level of one site",
            "anal_mix_coarse": "level of the other site",
            "anal_placement_min": "site and datacenter, where a point of presence only forwards",
            "anal_placement_max": "also the point of presence, where it merges",
        },
    )


def _list_reached(problem: Analytics, query: str) -> list[tuple[str, float]]:
    """Return the levels of answers, with their parameters, that the policy reaches as bandwidth falls."""
    query_number = problem.query_names.index(query)
    parameter = problem.level_column("parameter")[query_number]
    reached: list[int] = []
    mean = problem.capacity_mbps / problem.capacity_mbps.mean()
    full = find_loads(problem, np.zeros((len(mean), len(problem.site_names), len(problem.query_names)), int))
    each_mbps = full.site.mean() / float(problem.length_s.mean()) * 8 / 1e6
    for bandwidth in BANDWIDTHS:
        capacity = mean * bandwidth * each_mbps
        capacity[:, len(problem.site_names) :] = 1e6
        decision = rules.adapt_locally(problem.with_capacity(capacity))
        assert decision.plan is not None
        levels = find_answers(problem, read_levels(problem, decision.plan)).level[:, query_number]
        usual = int(np.bincount(levels[levels >= 0]).argmax()) if (levels >= 0).any() else -1
        if usual >= 0 and not problem.is_none[query_number, usual] and usual not in reached:
            reached.append(usual)
    return [(problem.level_names[query_number][level], float(parameter[level])) for level in reached]


def measure_reaction(*, minutes: float = 20.0, sites: int = 10) -> Delays:
    """Return the delays of answers each second, where the bandwidth of all sites halves in the middle.

    Sites adapt by the policy of section 4, on the bandwidth of one second ago.
    """
    problem = latency_histogram(
        sites=sites, pops=2, hours=minutes / 60, interval_minutes=1 / 60, bandwidth=1.0, variation=0.0
    )
    problem = replace(problem, queries=problem.queries.assign(deadline_s=10.0))
    capacity = problem.capacity_mbps.copy()
    capacity[len(capacity) // 2 :] /= 2
    truth = problem.with_capacity(capacity)
    decision = rules.adapt_locally(observe_bandwidth(truth, age_s=1.0))
    assert decision.plan is not None
    levels = read_levels(truth, decision.plan)
    answers = find_answers(truth, levels)
    delays = replay_queues(truth, find_loads(truth, levels))
    wait: Floats = find_timely_value(truth, levels, answers, delays)[1]
    return Delays(float(np.nanpercentile(wait, 99)), float(np.nanmax(wait)))


def _coarsen() -> tuple[float, float]:
    """Return the periods of counts before and after they are joined, s; 0 where sums differ."""
    counts = np.random.default_rng(3).poisson(40.0, size=3_600).astype(float)
    minutes = operators.coarsen_time(counts, 60)[::60] * 60
    is_same = np.allclose(minutes, counts.reshape(60, 60).sum(axis=1)) and np.isclose(
        minutes.sum(), counts.sum()
    )
    return 1.0, float(len(counts) / len(minutes)) if is_same else 0.0


def _grows_with_data() -> bool:
    """Return whether exact quantiles grow in proportion to the data, and histograms do not."""
    rng = np.random.default_rng(4)
    fractions = [len(np.unique(rng.normal(size=size))) / size for size in (1_000, 2_000, 4_000, 8_000)]
    buckets = [len(np.histogram(rng.normal(size=size), bins=80)[0]) for size in (1_000, 8_000)]
    return bool(np.allclose(fractions, fractions[0]) and buckets[0] == buckets[1])


def _two_sites() -> Analytics:
    """Return two sites, at a point of presence that merges and at one that does not, and one query."""
    seconds = list(SECONDS)
    return Analytics.from_tables(
        {
            "sites": pd.DataFrame({"site": ["a", "b"], "pop": ["p", "r"], "uplink_mbps": 1.0}),
            "pops": pd.DataFrame({"pop": ["p", "r"], "uplink_mbps": 1.0, "merges": ["yes", "no"]}),
            "intervals": pd.DataFrame({"interval": [1.0], "start_s": [0.0], "length_s": [60.0]}),
            "cubes": pd.DataFrame({"cube": ["c"], "aggregate": ["count"]}),
            "volume": pd.DataFrame(
                {"site": ["a", "b"], "cube": "c", "interval": 1.0, "records": 100.0, "cells": 100.0}
            ),
            "queries": pd.DataFrame(
                {"query": ["q"], "cube": "c", "value_usd": 1.0, "combine": "coarsest", "deadline_s": 120.0}
            ),
            "levels": pd.DataFrame(
                {
                    "query": "q",
                    "level": [f"{size:g} s" for size in seconds],
                    "operator": "interval",
                    "parameter": seconds,
                    "bytes_per_record": 0.0,
                    "bytes_per_cell": [16.0, 8.0, 4.0],
                    "error": [0.0, 0.1, 0.2],
                    "value_share": [1.0, 0.9, 0.8],
                }
            ),
        }
    )


@cache
def _read_numbers() -> dict[str, float]:
    """Return the published numbers by id."""
    text = (files("planner_data") / "published" / "analytics.csv").read_text(encoding="utf-8")
    numbers = {}
    for row in csv.DictReader(text.splitlines()):
        try:
            numbers[row["id"]] = float(row["value"])
        except ValueError:
            continue
    return numbers


def yearly_fall(factor: float, years: float) -> float:
    """Return the yearly fall, percent, of a price that falls by a factor in some years."""
    return float(100 * (1 - factor ** (-1 / years)))


def find_prices(study: Study) -> TargetValues:  # noqa: ARG001 - needs no run
    """Return the yearly falls of prices that follow from the figures that the paper cites."""
    numbers = _read_numbers()
    years = numbers["anal_price_to"] - numbers["anal_price_from"]
    kinds = ("bw", "cpu", "storage")
    fall = {kind: yearly_fall(numbers[f"anal_{kind}_price"], years) for kind in kinds}
    values: dict[str, float | None] = {f"anal_{kind}_price_yearly": fall[kind] for kind in kinds}
    cited = [
        *(f"anal_{kind}_price" for kind in kinds),
        *("anal_price_from", "anal_price_to", "anal_data_created", "anal_bw_decline"),
        *("anal_cpu_decline_min", "anal_cpu_decline_max", "anal_disk_decline_min", "anal_disk_decline_max"),
        *("anal_cable_growth", "anal_cable_from", "anal_cable_to", "anal_cable_price"),
    ]
    notes = dict.fromkeys(cited, CITED)
    notes["anal_bw_decline"] = (
        f"{CITED}; it expects bandwidth to fall faster than disks, while from 2003 to 2008 it fell by "
        f"{fall['bw']:.0f}% a year and storage by {fall['storage']:.0f}%"
    )
    return TargetValues(values={**values, **dict.fromkeys(cited)}, notes=notes)


def find_top_100(study: Study) -> TargetValues:  # noqa: ARG001 - always in full
    """Return the entries that sites must list for all of the 100 most popular domains, and a rise."""
    sites, domains = 200, 100_000
    defaults = {name: parameter.default for name, parameter in inspect.signature(cdn).parameters.items()}
    count = int(defaults["wanted"])
    problem = cdn(sites=2, pops=1, domains=1_000, hours=0.1)
    counts = operators.draw_zipf_counts(
        np.random.default_rng(1), sites=sites, cells=domains, records=20_000, skew=0.99
    )
    listed = next(
        size for size in range(count, domains, 10) if operators.merge_lists(counts, count, size).recall == 1.0
    )
    exact, lists = operators.find_top_k(counts, count), operators.merge_lists(counts, count, count)
    rank, minutes = _follow_rise(count)
    every = float((counts > 0).sum()) * operators.ENTRY_BYTES
    return TargetValues(
        values={
            "anal_topk_k": float(count),
            "anal_topk_period": float(problem.length_s[0]) / 60,
            "anal_topk_sent": float(listed),
            "anal_topk_top": rank,
        },
        notes={
            "anal_topk_k": "default of preset cdn",
            "anal_topk_period": "default of preset cdn",
            "anal_topk_sent": f"{sites} sites, {domains:,} domains: lists of {count} find "
            f"{lists.recall:.0%} of them; three rounds find all with {exact.bytes_sent / every:.1%} of the "
            "bytes of all counts",
            "anal_topk_top": f"of a domain that rises by half each minute: it is no answer of the {minutes} "
            "minutes before, so that its history is only at the sites",
        },
    )


def _follow_rise(requested: int) -> tuple[float, int]:
    """Return the true rank at which a domain that rises first is in an answer, and the minutes before."""
    rng = np.random.default_rng(2)
    weight: Floats = np.arange(1, 2_001, dtype=float) ** -0.99
    for minute in range(MOST_MINUTES):
        counts = np.array([rng.multinomial(20_000, weight / weight.sum()) for _ in range(10)], dtype=float)
        answer = operators.merge_lists(counts, requested, requested).cells
        if len(weight) - 1 in answer:
            total = counts.sum(axis=0)
            return float((total > total[-1]).sum() + 1), minute
        weight[-1] *= GROWTH
    raise ValueError("the domain never becomes popular")


TARGETS: Final = read_targets(
    "analytics",
    {
        "prices": find_prices,
        "top_100": find_top_100,
        "queries": find_queries,
        "policy": find_policy,
        "combination": find_combination,
    },
)
