"""The master problem against SciPy's linear programming."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from planner.search.deadline import Deadline
from planner_models.flows import master_problem


def draw_master(seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    groups, rows = int(rng.integers(1, 8)), int(rng.integers(1, 12))
    group = np.sort(
        np.concatenate([np.arange(groups), rng.integers(0, groups, size=int(rng.integers(0, 20)))])
    )
    load = rng.random((rows, len(group))) * (rng.random((rows, len(group))) < 0.6)
    load[0] += 1e-3  # a row without load would make the optimum 0
    return load, group


def optimum(load: np.ndarray, group: np.ndarray) -> float:
    rows, columns = load.shape
    groups = int(group.max()) + 1
    item = np.zeros((groups, columns + 1))
    item[group, np.arange(columns)] = 1
    answer = linprog(
        np.r_[np.zeros(columns), 1],
        A_ub=np.c_[load, -np.ones(rows)],
        b_ub=np.zeros(rows),
        A_eq=item,
        b_eq=np.ones(groups),
    )
    return float(answer.fun)


@given(st.integers(0, 10_000), st.booleans())
@settings(max_examples=60, deadline=None)
def test_weights_are_optimal_and_prices_prove_it(seed: int, warm: bool) -> None:
    load, group = draw_master(seed)
    rng = np.random.default_rng(seed + 1)
    weight = rng.random(len(group)) * (rng.random(len(group)) < 0.5) if warm else np.ones(len(group))
    price = rng.random(len(load)) if warm else np.ones(len(load))
    solved = master_problem.solve(load, group, weight=weight, price=price, gap=1e-7)

    assert (solved.weight >= 0).all()
    assert (solved.price >= 0).all()
    assert np.bincount(group, solved.weight) == pytest.approx(np.ones(group.max() + 1))
    assert solved.price.sum() == pytest.approx(1)
    assert (load @ solved.weight).max() == pytest.approx(solved.value)
    by_group = [(solved.price @ load)[group == g].min() for g in range(group.max() + 1)]
    assert sum(by_group) == pytest.approx(solved.bound)
    assert solved.value - solved.bound <= 1e-7 * solved.value
    assert solved.value == pytest.approx(optimum(load, group), rel=1e-6)


@pytest.mark.parametrize("gap", [0.3, 1e-2, 1e-4])
def test_an_early_stop_brackets_the_optimum(gap: float) -> None:
    load, group = draw_master(12)
    best = optimum(load, group)
    solved = master_problem.solve(load, group, weight=np.ones(len(group)), price=np.ones(len(load)), gap=gap)
    assert solved.bound <= best * (1 + 1e-9)
    assert best <= solved.value * (1 + 1e-9)
    assert solved.value - solved.bound <= gap * solved.value


def test_the_time_limit_returns_valid_bounds() -> None:
    load, group = draw_master(5)
    solved = master_problem.solve(
        load, group, weight=np.ones(len(group)), price=np.ones(len(load)), gap=0, deadline=Deadline(0.0, 0.0)
    )
    assert solved.bound <= optimum(load, group) <= solved.value
