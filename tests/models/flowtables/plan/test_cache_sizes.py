"""Misses of every cache size against a plain simulation of single sizes, and their times."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner_models.flowtables import SYSTEM, measure
from planner_models.flowtables.plan.cache_sizes import count_misses, find_size_curve
from planner_models.flowtables.problem.generators import acl


def simulate(entry: list[int], size: int) -> int:
    """Return the misses of a cache that replaces the least recently used entry."""
    held: OrderedDict[int, None] = OrderedDict()
    misses = 0
    for link_down in entry:
        if link_down >= 0 and link_down in held:
            held.move_to_end(link_down)
            continue
        misses += 1
        if link_down >= 0 and size:
            held[link_down] = None
            if len(held) > size:
                held.popitem(last=False)
    return misses


@given(st.lists(st.integers(-1, 7), max_size=80))
@settings(max_examples=100, deadline=None)
def test_every_size_has_the_misses_of_its_simulation(entry: list[int]) -> None:
    misses = count_misses(np.array(entry, dtype=np.int64), 8)
    assert misses.tolist() == [simulate(entry, size) for size in range(9)]


def test_places_are_numbered_again_without_an_error() -> None:
    random = np.random.default_rng(1)
    entry = np.minimum(random.zipf(1.3, size=5_000) - 1, 199)
    misses = count_misses(entry, 200)
    for size in (0, 1, 5, 40, 150, 200):
        assert misses[size] == simulate(entry.tolist(), size)
    assert (np.diff(misses) <= 0).all()


def test_a_cache_of_all_entries_takes_the_time_of_the_plan() -> None:
    problem = acl(rules=60, connections=500, seed=2)
    plan = SYSTEM.design("all").run(problem).plan
    assert plan is not None
    metrics = measure(problem, plan, None)
    curve = find_size_curve(problem, plan, connections_per_s=100.0)
    assert curve.misses[0] == len(problem.flows)
    assert curve.misses[-1] == metrics["misses"]
    assert curve.connection_us[-1] == pytest.approx(metrics["cpu_per_connection_us"])
    assert curve.revalidate_us[-1] == pytest.approx(1e6 * (metrics["revalidation_s"] or 0.0) / 100)
    total = curve.connection_us + curve.revalidate_us
    assert total[curve.best] == total.min()
    # checks that cost nothing leave no reason for a smaller cache; dear ones for none
    free = find_size_curve(problem.with_costs(revalidate_us=0.0), plan, connections_per_s=100.0)
    assert free.misses[free.best] == metrics["misses"]
    assert find_size_curve(problem, plan, connections_per_s=1e-3).best == 0
