"""Windows of a problem: parts of it, whose plans are those of the whole."""

from __future__ import annotations

import numpy as np
import pytest

from planner_models.analytics import SYSTEM, Analytics
from planner_models.analytics.designs import optimum
from planner_models.analytics.problem.generators import diurnal
from planner_models.analytics.problem.windows import IntervalWindows, generate_windows, take_intervals


def test_windows_are_the_intervals_in_turn() -> None:
    series = generate_windows(sites=4, pops=2, queries=3, hours=0.5, window_intervals=4)
    problem = diurnal(sites=4, pops=2, queries=3, hours=0.5)
    windows = list(series)
    assert [label for label, _ in windows] == ["0000s", "1200s"]
    assert len(series) == 2
    capacity = np.concatenate([window.capacity_mbps for _, window in windows])
    assert np.array_equal(capacity, problem.capacity_mbps)
    assert np.array_equal(np.concatenate([window.cells for _, window in windows]), problem.cells)


def test_a_window_is_the_problem_that_its_tables_make() -> None:
    problem = diurnal(sites=4, pops=2, queries=3, hours=0.5)
    assert problem.join.shape  # kept in the window
    window = take_intervals(problem, np.array([2, 3]))
    again = Analytics.from_tables(window.to_tables())
    for name in ("records", "capacity_mbps", "has_data", "join", "merged_share", "site_value_usd"):
        assert np.array_equal(getattr(window, name), getattr(again, name)), name


@pytest.mark.slow
def test_windows_start_from_the_prices_before_and_have_the_same_value() -> None:
    problem = diurnal(sites=6, pops=2, queries=5, hours=0.5, bandwidth=0.4)
    series = IntervalWindows(problem=problem, window_intervals=3)
    design, previous, total = SYSTEM.design("optimum"), None, 0.0
    for _, window in series:
        previous = design.run(window, previous=previous)
        assert previous.plan is not None
        assert previous.proof.bound is not None
        total += previous.proof.bound
        assert len(previous.plan.prices)
    assert total == pytest.approx(optimum.plan(problem).proof.bound, rel=1e-4)
    prices = optimum.read_prices(problem, previous)
    assert prices is not None
    assert (prices >= 0).all()
    assert prices.any()
