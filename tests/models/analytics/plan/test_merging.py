"""Places of merging, data that is kept, and promises of errors, against loops and by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.errors import PlanRejected
from planner.runs.files import write_plan
from planner.scenarios.existing_plans import read_plan
from planner_models.analytics import SYSTEM, Analytics, check, measure
from planner_models.analytics.plan.answers import find_loads
from planner_models.analytics.plan.plan import make_plan
from planner_models.analytics.plan.reading import from_tables
from tests.models.analytics.problems import make, problems


def draw_levels(problem: Analytics, seed: int) -> np.ndarray:
    shape = (len(problem.interval_numbers), len(problem.site_names), len(problem.query_names))
    counts = [len(names) for names in problem.level_names]
    return np.random.default_rng(seed).integers(0, counts, size=shape)


@pytest.mark.slow
@settings(max_examples=25)
@given(problems(), st.integers(0, 1_000))
def test_bytes_are_fewer_exactly_where_data_is_merged(problem: Analytics, seed: int) -> None:
    levels = draw_levels(problem, seed)
    plan = make_plan(problem, levels)
    again = from_tables(problem, {"levels": plan.levels, "merged": plan.merged})
    pd.testing.assert_frame_equal(again.merged, plan.merged)
    for query, name in enumerate(problem.query_names):
        alone = np.full_like(levels, -1)
        alone[:, :, query] = levels[:, :, query]
        loads = find_loads(problem, alone)
        rows = plan.merged[plan.merged["query"] == name]
        for pop, pop_name in enumerate(problem.pop_names):
            sent = loads.site[0, problem.pop_of == pop].sum()
            blank = [""] if sent > 0 else []  # of points of presence with data of the query
            own_values = rows[rows["pop"].isin([pop_name, *blank])]["at"].tolist()
            merged = loads.pop[0, pop]
            expected = [] if sent == 0 else ["pop"] if merged < sent * (1 - 1e-12) else ["datacenter"]
            assert own_values == expected


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"at": "pop"}, "the levels are merged at: datacenter"),
        ({"pop": "r"}, "there is no pop 'r'"),
        ({"query": "q1"}, "there is no query 'q1'"),
        ({"interval": 2.0}, "there is no interval"),
    ],
)
def test_places_that_levels_do_not_make_are_rejected(change: dict[str, object], words: str) -> None:
    problem = make()
    plan = make_plan(problem, np.zeros((1, 2, 1), dtype=np.int64))
    changed = {**plan.to_tables(), "merged": plan.merged.assign(**change)}
    with pytest.raises(PlanRejected, match=words):
        check(problem, from_tables(problem, changed))


def test_a_missing_or_a_second_place_is_rejected() -> None:
    problem = make()
    plan = make_plan(problem, np.zeros((1, 2, 1), dtype=np.int64))
    decision = plan.merged.assign(pop="p")
    assert len(check(problem, from_tables(problem, {"levels": plan.levels, "merged": decision}))) == 0
    for merged in (plan.merged.iloc[:0], pd.concat([plan.merged, decision], ignore_index=True)):
        with pytest.raises(PlanRejected, match="merged"):
            check(problem, from_tables(problem, {"levels": plan.levels, "merged": merged}))


def test_a_promise_is_broken_by_data_that_comes_late() -> None:
    mbps = 1600 * 8 / 60 / 1e6  # carries what a site sends at 1 s in an interval
    problem = make(sites=1, intervals=3)
    levels = np.zeros((3, 1, 1), dtype=np.int64)
    for capacity, expected in ((1.0, 1.0), (0.5, 1 / 3), (0.0, 0.0)):
        slow = problem.with_capacity(np.array([[capacity * mbps, 9.0]] * 3))
        assert measure(slow, make_plan(slow, levels), None)["promise_kept"] == pytest.approx(expected)
    nothing = np.full((3, 1, 1), 3, dtype=np.int64)
    assert measure(problem, make_plan(problem, nothing), None)["promise_kept"] is None


def test_a_plan_in_files_is_read_as_it_was_written(tmp_path: Path) -> None:
    """Finished windows of a roll are read again."""
    problem = make(sites=2, intervals=2)
    plan = make_plan(problem, np.zeros((2, 2, 1), dtype=np.int64))
    for table_format in ("csv", "parquet"):
        write_plan(plan, tmp_path / table_format, table_format)
        again = read_plan(SYSTEM, problem, tmp_path / table_format)
        assert len(check(problem, again)) == 0
        for name, frame in plan.to_tables().items():
            assert len(again.to_tables()[name]) == len(frame), name
