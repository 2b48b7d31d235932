"""Free windows by column generation: at most as many as there are, and enough of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.options import Options
from planner_models.contracts import Month
from planner_models.contracts.designs import burst_sets, free_windows, program
from planner_models.contracts.designs.program import Region
from planner_models.contracts.problem import generators
from planner_models.contracts.problem.problem import PERCENTILE
from tests.models.contracts.months import make, months


@settings(max_examples=25)
@given(months(windows=40), st.floats(min_value=0.2, max_value=0.9), st.sampled_from([5, 40]))
def test_no_contract_has_more_free_windows_than_are_free(problem: Month, part: float, groups: int) -> None:
    region = Region.of(problem, 0)
    level = np.maximum(region.level_limits[0], part * region.level_limits[1])
    selected = burst_sets.choose(region, level, groups=groups)
    assert (selected.is_free.sum(axis=0) <= region.free).all()
    filling = free_windows.fill(region, level, selected.is_free)
    if free_windows.is_complete(region, filling):
        np.testing.assert_allclose(filling.load.sum(axis=1), region.traffic, rtol=1e-6)
    assert (filling.load <= region.most + 1e-9).all()


def test_sets_of_contracts_cover_what_none_covers_alone() -> None:
    contracts = [(name, PERCENTILE, 1.0, 50.0, 0.0) for name in "abc"]
    problem = make(
        [60.0] * 36 + [110.0] * 4, contracts
    )  # levels 20: two contracts are free in each busy window
    selected = burst_sets.choose(Region.of(problem, 0), np.full(3, 20.0), groups=40)
    assert selected.is_free[36:].sum() == 6  # all free windows of three contracts
    item = burst_sets.choose(Region.of(problem, 0), np.full(3, 30.0), groups=40)
    assert item.is_free[36:].sum(axis=1).min() >= 1
    assert free_windows.fill(Region.of(problem, 0), np.full(3, 30.0), item.is_free).missing == 0


@settings(max_examples=20)
@given(st.lists(st.floats(min_value=0, max_value=1e6), min_size=1, max_size=60), st.integers(1, 30))
def test_groups_are_of_consecutive_traffic(values: list[float], groups: int) -> None:
    traffic = np.array(values)
    group = program.group_windows(traffic, groups)
    assert set(group.tolist()) == set(range(int(group.max()) + 1))
    assert group.max() < 2 * groups + 1
    ordered = group[np.argsort(traffic, kind="stable")]
    assert (np.diff(ordered) >= 0).all()


def test_a_relaxation_with_fewer_free_windows_leads_to_a_complete_plan() -> None:
    problem = generators.month(clients=2_000, cdns=6, days=3, window_minutes=30, seed=4)
    region = Region.of(problem, 0)
    level = 0.5 * region.level_limits[1]
    filling = free_windows.complete(region, level, Options())
    assert filling is not None
    assert free_windows.is_complete(region, filling)
    assert (filling.load <= region.most * (1 + 1e-9)).all()
    assert (filling.load >= region.least - 1e-9).all()


@settings(max_examples=12)
@given(months(windows=40), st.floats(min_value=0.3, max_value=0.9), st.floats(min_value=0.9, max_value=1.1))
def test_kept_columns_and_prices_rate_other_levels_alike(problem: Month, part: float, change: float) -> None:
    region = Region.of(problem, 0)
    low, high = region.level_limits
    level = np.maximum(low, part * high)
    other = np.clip(level * change, low, high)
    master = burst_sets.MasterProgram(region, 40)
    master.rate(level)
    anew = burst_sets.MasterProgram(region, 40).rate(other)
    assert master.rate(other) == pytest.approx(anew, rel=1e-3)
    assert master.rate(other, 0.99 * anew) >= 0.99 * anew * (1 - 1e-9)
    assert master.rate(level, 0.0) <= burst_sets.MasterProgram(region, 40).rate(level) * (1 + 1e-3)
