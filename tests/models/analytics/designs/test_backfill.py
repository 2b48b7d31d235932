"""Data that is sent later: its value by hand, its limits, and what the check finds."""

from __future__ import annotations

import functools
import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from planner.errors import PlanRejected
from planner_models.analytics import SYSTEM, Analytics, check, measure
from planner_models.analytics.designs.backfill import send_later
from planner_models.analytics.plan.plan import Levels
from planner_models.analytics.plan.reading import from_tables
from planner_models.analytics.problem.generators import diurnal
from tests.models.analytics.problems import tables


def two_intervals(combine: str = "coarsest", sites: int = 2, **columns: Any) -> Analytics:
    """Return sites that carry 500 bytes in the first minute, and 4,000 in the second; 10 s need 400."""
    inputs = tables(sites=sites, intervals=2, combine=(combine,))
    names = inputs["sites"]["site"].tolist()
    rate = 8 / 60 / 1e6
    inputs["bandwidth"] = pd.DataFrame(
        {
            "link": np.repeat([*names, "p"], 2),
            "interval": [1.0, 2.0] * (sites + 1),
            "mbps": [*([500 * rate, 4_000 * rate] * sites), 1.0, 1.0],
        }
    )
    inputs["backfill"] = pd.DataFrame({"query": ["q0"], "window_s": [60.0], "half_life_s": [120.0]})
    inputs["sites"] = inputs["sites"].assign(**columns)
    return Analytics.from_tables(inputs)


def plan_of(problem: Analytics, **parameters: Any) -> Levels:
    plan = send_later(problem, **parameters).plan
    assert plan is not None
    return plan


@pytest.mark.parametrize("combine", ["coarsest", "sum", "worst"])
@pytest.mark.parametrize("order", ["after", "together"])
def test_finer_data_comes_a_minute_later(combine: str, order: str) -> None:
    problem = two_intervals(combine)
    plan = plan_of(problem, order=order)
    figures = measure(problem, plan, None)
    assert figures["value"] == pytest.approx(0.5 + 1.0)
    assert figures["backfill_value"] == pytest.approx(0.5 * 0.5 ** (60 / 120))
    assert figures["sent_gb"] == pytest.approx(2 * (400 + 1_600 + 1_600) / 1e9)
    assert len(check(problem, plan)) == 0
    again = from_tables(problem, plan.to_tables())
    assert measure(problem, again, None) == figures


def test_storage_and_the_window_limit_what_is_sent_later() -> None:
    full = two_intervals(storage_gb=1e-6)
    assert len(plan_of(full).backfill) == 0
    assert len(plan_of(two_intervals(storage_gb=2e-6)).backfill) == 2
    short = replace(full, backfill=full.backfill.assign(window_s=30.0))  # type: ignore[union-attr]
    assert len(plan_of(short).backfill) == 0
    never = replace(full, backfill=None)
    assert len(plan_of(never).backfill) == 0


def test_the_check_finds_storage_and_capacity_that_is_exceeded() -> None:
    plan = plan_of(two_intervals())
    little = two_intervals(storage_gb=1e-6)
    assert set(check(little, plan).frame["limit"]) == {"storage"}
    narrow = two_intervals().with_capacity(two_intervals().capacity_mbps * [[1, 1, 1], [0.7, 1, 1]])
    assert check(narrow, plan).frame["where"].tolist() == ["s0, interval 2"]


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("sent", 1.0, "is sent in interval 1, must be later than its own"),
        ("sent", 9.0, "interval 1 or 9 is none"),
        ("level", "7 s", "query 'q0' has no level '7 s'"),
        ("site", "s9", "there is no site 's9'"),
        ("query", "q9", "there is no query 'q9'"),
    ],
)
def test_faulty_rows_are_rejected(column: str, value: object, words: str) -> None:
    problem = two_intervals(sites=1)
    changed = plan_of(problem).to_tables()
    changed["backfill"] = changed["backfill"].assign(**{column: value})
    with pytest.raises(PlanRejected, match=words):
        from_tables(problem, changed)


def best_of_all(problem: Analytics) -> float:
    """Return the most total value of plans of two intervals, by trying each with and without later data.

    Later data only adds to what links carry: levels that exceed limits without it exceed them with it.
    """
    names = [name for name in problem.level_names[0] if name != "none"]
    best = 0.0
    for first, second in itertools.product([*names, "none"], repeat=2):
        rows = [(1.0, "q0", first, ""), (2.0, "q0", second, "")]
        levels = pd.DataFrame(rows, columns=["interval", "query", "level", "site"])
        for later in [None, *names]:
            made: dict[str, pd.DataFrame] = {"levels": levels}
            if later is not None:
                made["backfill"] = pd.DataFrame(
                    {"interval": 1.0, "sent": 2.0, "query": "q0", "level": later, "site": problem.site_names}
                )
            plan = from_tables(problem, made)
            if not len(check(problem, plan)):
                best = max(best, measure(problem, plan, None)["total_value"] or 0.0)
            elif later is None:
                break
    return best


@pytest.mark.parametrize("combine", ["coarsest", "sum", "worst"])
@pytest.mark.parametrize(
    "bytes_later",
    [
        2_000,
        pytest.param(1_200, marks=pytest.mark.slow),
        *(pytest.param(size, marks=pytest.mark.exhaustive) for size in (2_600, 3_400)),
    ],
)
def test_foreseen_prices_bound_all_plans_of_two_intervals(combine: str, bytes_later: float) -> None:
    """Where the second interval carries little more than its own data, waiting competes with it."""
    problem = two_intervals(combine)
    rate = 8 / 60 / 1e6
    problem = problem.with_capacity(np.array([[500, 500, 1e9], [bytes_later, bytes_later, 1e9]]) * rate)
    decision = send_later(problem, order="foreseen")
    assert decision.plan is not None
    assert decision.proof.bound is not None
    assert not len(check(problem, decision.plan))
    best = best_of_all(problem)
    value = measure(problem, decision.plan, None)["total_value"]
    assert decision.proof.objective == pytest.approx(value)
    assert decision.proof.bound >= best * (1 - 1e-9)
    after, together = (
        measure(problem, plan_of(problem, order=order), None) for order in ("after", "together")
    )
    assert (value or 0.0) >= (after["total_value"] or 0.0) * (1 - 1e-9)
    assert combine == "sum" or best >= max(value or 0.0, together["total_value"] or 0.0) * (1 - 1e-9)


@functools.cache
def limited_storage() -> Analytics:
    """Return a problem whose sites store a part of what they send later."""
    problem = diurnal(sites=12, pops=3, queries=8, hours=2.0, variation=0.6, backfill_minutes=30.0, seed=4)
    return replace(problem, sites=problem.sites.assign(storage_gb=2e-4))


@functools.cache
def bounds_of_limited_storage() -> tuple[float | None, float | None]:
    """Return the bounds of the value in time and of all value."""
    problem = limited_storage()
    in_time, total = SYSTEM.design("optimum").run(problem), send_later(problem, order="foreseen")
    return in_time.proof.bound, total.proof.bound


@pytest.mark.slow
@pytest.mark.parametrize("order", ["after", "together", "foreseen"])
def test_plans_keep_all_limits_and_backfill_adds_value(order: str) -> None:
    problem = limited_storage()
    plan = plan_of(problem, order=order)
    assert len(check(problem, plan)) == 0
    figures = measure(problem, plan, None)
    bound_in_time, bound = bounds_of_limited_storage()
    assert bound_in_time is not None
    assert (figures["value"] or 0) <= bound_in_time * (1 + 1e-9)
    assert (figures["backfill_value"] or 0) > 0
    assert (figures["total_value"] or 0) <= (figures["offered_value"] or 0)
    assert bound is not None
    assert (figures["total_value"] or 0) <= bound * (1 + 1e-9)
