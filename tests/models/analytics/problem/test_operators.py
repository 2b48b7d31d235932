"""Operators against plain counting, and what the paper says that needs care."""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner_models.analytics.problem import operators
from planner_models.analytics.problem.generated_queries import cdn, latency_histogram, sensors
from planner_models.analytics.problem.schema import MERGEABLE

Counts = st.lists(st.lists(st.integers(0, 30), min_size=8, max_size=8), min_size=1, max_size=4)


def test_top_lists_do_not_merge_exactly() -> None:
    """ "There is one unambiguous way to merge" two cubes (section 4): not where they hold the largest cells.

    The true first is b with 7; lists of two name a or c with 5.
    """
    counts = np.array([[5.0, 4.0, 0.0, 0.0], [0.0, 3.0, 5.0, 4.0]])  # a, b, c, d
    lists = operators.merge_lists(counts, 1, 2)
    assert lists.counts.tolist() == [5.0]
    assert lists.cells.tolist() != [1]
    exact = operators.find_top_k(counts, 1)
    assert (exact.cells.tolist(), exact.counts.tolist()) == ([1], [7.0])


@settings(max_examples=100, deadline=None)
@given(Counts, st.integers(1, 8))
def test_three_rounds_find_the_largest_cells_and_lists_keep_their_proven_error(
    rows: list[list[int]], k: int
) -> None:
    counts = np.array(rows, dtype=float)
    total = sum((Counter(dict(enumerate(row))) for row in rows), Counter())
    largest = sorted((count for count in total.values() if count > 0), reverse=True)[:k]
    top_k = operators.find_top_k(counts, k)
    assert sorted(top_k.counts.tolist(), reverse=True) == largest
    lists = operators.merge_lists(counts, k, k)
    if largest:
        short = counts.sum(axis=0)[lists.cells] - lists.counts
        assert (short >= 0).all()
        assert (short <= lists.proven_error * largest[-1] + 1e-9).all()


Records = st.lists(st.tuples(st.integers(0, 3), st.integers(-9, 9)), max_size=12)  # cell, value
EDGES = np.array([-9.5, -4.5, -0.5, 3.5, 9.5])

CELLS: dict[str, tuple[Callable[[list[int]], Any], Callable[[Any, Any], Any]]] = {
    "count": (len, operator.add),
    "max": (max, max),
    "mean": (lambda own_values: np.array([sum(own_values), len(own_values)]), operator.add),
    "quantile": (lambda own_values: np.histogram(own_values, bins=EDGES)[0], operator.add),
    "distinct": (frozenset, operator.or_),
}
"""Of each aggregate: what a cell holds of its values, and how two cells merge."""


def make_cube(aggregate: str, records: list[tuple[int, int]]) -> dict[int, Any]:
    values: dict[int, list[int]] = {}
    for cell, value in records:
        values.setdefault(cell, []).append(value)
    return {cell: CELLS[aggregate][0](own_values) for cell, own_values in values.items()}


@pytest.mark.parametrize("aggregate", MERGEABLE)
@settings(max_examples=30, deadline=None)
@given(sites=st.lists(Records, min_size=1, max_size=4), order=st.randoms(use_true_random=False))
def test_merged_cubes_are_the_cube_of_merged_data(
    aggregate: str, sites: list[list[tuple[int, int]]], order: Any
) -> None:
    """In any order of sites; each aggregate that the schema calls mergeable."""
    cubes = [make_cube(aggregate, records) for records in sites]
    order.shuffle(cubes)
    merged: dict[int, Any] = {}
    for cube in cubes:
        for cell, own_values in cube.items():
            merged[cell] = CELLS[aggregate][1](merged[cell], own_values) if cell in merged else own_values
    full = make_cube(aggregate, [record for records in sites for record in records])
    assert merged.keys() == full.keys()
    assert all(np.array_equal(merged[cell], full[cell]) for cell in full)


@settings(max_examples=50, deadline=None)
@given(Counts, st.integers(0, 5))
def test_merged_sketches_are_the_sketch_of_merged_counts(rows: list[list[int]], seed: int) -> None:
    counts = np.array(rows, dtype=float)
    each = [operators.make_sketch(own_values, 4, 3, np.random.default_rng(seed)) for own_values in counts]
    sketch = operators.make_sketch(counts.sum(axis=0), 4, 3, np.random.default_rng(seed))
    merged = sketch._replace(rows=np.sum([item.rows for item in each], axis=0))
    assert np.array_equal(merged.rows, sketch.rows)
    assert np.array_equal(
        merged.estimate(), operators.sketch_counts(counts.sum(axis=0), 4, 3, np.random.default_rng(seed))
    )


def test_time_coarsened_in_nested_steps_is_that_of_one_step_and_otherwise_not() -> None:
    values = np.random.default_rng(2).normal(size=60)
    nested = operators.coarsen_time(operators.coarsen_time(values, 5), 10)
    assert nested == pytest.approx(operators.coarsen_time(values, 10))
    crossed = operators.coarsen_time(operators.coarsen_time(values, 2), 5)
    assert crossed != pytest.approx(operators.coarsen_time(values, 5))


def test_means_depend_on_the_order_in_the_last_bits() -> None:
    """ "The same result regardless of the input data order" (section 4): not bit for bit of floating sums."""
    values = [1e16, 1.0, -1e16]
    assert sum(values) != sum([values[0], values[2], values[1]])
    assert math.fsum(values) == math.fsum(values[::-1])


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 50), min_size=20, max_size=20), st.integers(0, 5))
def test_sketches_never_count_too_little(row: list[int], seed: int) -> None:
    counts = np.array(row, dtype=float)
    result = operators.sketch_counts(counts, 8, 3, np.random.default_rng(seed))
    assert (result >= counts).all()


def test_sketches_and_samples_keep_their_bounds_as_often_as_they_say() -> None:
    rng = np.random.default_rng(3)
    counts = operators.draw_zipf_counts(rng, sites=1, cells=500, records=20_000, skew=0.99)[0]
    width, depth = 200, 4
    over = np.concatenate([operators.sketch_counts(counts, width, depth, rng) - counts for _ in range(20)])
    assert (over > math.e / width * counts.sum()).mean() <= math.exp(-depth)
    inside = 0
    for _ in range(10_000):
        estimate, half = operators.sample_count(2_000, 20_000, 0.05, rng)
        inside += abs(estimate - 2_000) <= half
    assert inside >= 0.94 * 10_000


def test_histograms_err_by_a_bucket_at_most() -> None:
    values = np.random.default_rng(5).exponential(size=5_000)
    edges = np.linspace(0.0, values.max() + 1e-9, 41)
    for share in (0.5, 0.9, 0.99):
        true = float(np.quantile(values, share))
        assert abs(operators.histogram_quantile(values, edges, share) - true) <= (edges[1] - edges[0])


def test_the_100_most_popular_domains() -> None:
    """100 of 200 entries: few bytes and nearly all found; three rounds are exact (section 1)."""
    rng = np.random.default_rng(1)
    counts = operators.draw_zipf_counts(rng, sites=40, cells=20_000, records=20_000, skew=0.99)
    all_bytes = float((counts > 0).sum()) * operators.ENTRY_BYTES
    short, longer = operators.merge_lists(counts, 100, 100), operators.merge_lists(counts, 100, 200)
    exact = operators.find_top_k(counts, 100)
    assert short.recall < longer.recall <= exact.recall == 1
    assert exact.count_error == 0
    assert short.bytes_sent < exact.bytes_sent < 0.5 * all_bytes
    assert longer.count_error < longer.proven_error


@pytest.mark.parametrize("preset", [cdn, latency_histogram, sensors])
def test_errors_of_generated_levels_rise_as_bytes_fall(preset: object) -> None:
    problem = preset(hours=0.1)  # type: ignore[operator]
    for _, own_values in problem.levels[problem.levels["operator"] != "none"].groupby("query"):
        size = own_values["bytes_per_record"] + own_values["bytes_per_cell"]
        assert (np.diff(size) < 0).all()
        assert (np.diff(own_values["error"]) >= 0).all()
        if "proven_error" in own_values:
            assert (np.diff(own_values["proven_error"].dropna()) >= 0).all()


@pytest.mark.slow
def test_no_proven_error_is_broken_in_10_000_intervals() -> None:
    """Lists are short by the sum of the last counts at most, sketches never, quantiles by half a bucket."""
    rng = np.random.default_rng(11)
    for _ in range(10_000):
        counts = operators.draw_zipf_counts(
            rng, sites=3, cells=30, records=int(rng.integers(20, 400)), skew=0.9, local_part=0.5
        )
        total = counts.sum(axis=0)
        result = operators.merge_lists(counts, 4, int(rng.integers(4, 9)))
        smallest = total[operators.largest(total, 4)[-1]]
        short = total[result.cells] - result.counts
        assert (short >= 0).all()
        assert short.max() <= result.proven_error * smallest + 1e-9
        assert (operators.sketch_counts(total, 16, 2, rng) >= total).all()
        values = rng.exponential(size=20)
        edges = np.linspace(0.0, values.max() + 1e-9, int(rng.integers(2, 30)))
        error = abs(
            operators.histogram_quantile(values, edges, 0.9) - np.quantile(values, 0.9, method="inverted_cdf")
        )
        assert error <= edges[1] / 2 + 1e-9
