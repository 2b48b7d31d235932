"""Reproduction targets of system `analytics`, declared in `data/published/analytics.toml`.

Section 1: yearly falls of prices, and the 100 most popular domains of each minute.
"""

from __future__ import annotations

import csv
import inspect
from functools import cache
from importlib.resources import files
from typing import Final

import numpy as np

from planner.arrays import Floats
from planner.contract.targets import Study, TargetValues, read_targets
from planner_models.analytics.problem import operators
from planner_models.analytics.problem.generated_queries import cdn
from planner_models.analytics.published.examples import find_combination, find_policy, find_queries

CITED: Final = "a figure that the paper cites; no run gives it"
GROWTH: Final = 1.5  # of a domain that becomes popular, from one minute to the next
MOST_MINUTES: Final = 60


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
