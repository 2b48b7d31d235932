"""Delays in queues against closed forms, the policy of the paper, and observations."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner_models.analytics import Analytics, measure
from planner_models.analytics.designs import rules
from planner_models.analytics.information import observe_bandwidth
from planner_models.analytics.plan.answers import find_answers, find_loads, replay_queues
from planner_models.analytics.plan.plan import make_plan
from planner_models.analytics.problem.generated_queries import latency_histogram
from planner_models.analytics.problem.generators import small
from tests.models.analytics.problems import make, problems, tables

MBPS = 1600 * 8 / 60 / 1e6  # carries what a site sends at 1 s in an interval


def test_data_beyond_the_capacity_waits_and_comes_late() -> None:
    problem = make(sites=1, intervals=4).with_capacity(
        np.array([[MBPS, 9.0], [MBPS / 2, 9.0], [MBPS, 9.0], [2 * MBPS, 9.0]])
    )
    levels = np.zeros((4, 1, 1), dtype=np.int64)
    delays = replay_queues(problem, find_loads(problem, levels))
    assert delays.backlog == pytest.approx([0, 800, 800, 0])
    assert delays.site_s[:, 0] == pytest.approx([0, 30, 15, 0])
    figures = measure(problem, make_plan(problem, levels), None)
    assert figures["late_loss"] == 0  # deadlines are two intervals
    assert figures["backlog_gb"] == pytest.approx(800e-9)


def test_a_link_that_stays_down_loses_the_answers_and_ends_the_wait_at_none() -> None:
    problem = make(sites=1, intervals=2).with_capacity(np.array([[0.0, 9.0], [0.0, 9.0]]))
    figures = measure(problem, make_plan(problem, np.zeros((2, 1, 1), dtype=np.int64)), None)
    assert figures["late_loss"] == 2
    assert figures["value"] == 0
    assert figures["freshness_p99_s"] is None


def test_the_queue_of_a_point_of_presence_comes_after_those_of_its_sites() -> None:
    capacity = np.array([[MBPS, MBPS, MBPS], [MBPS, MBPS, 2 * MBPS], [MBPS, MBPS, 4 * MBPS]])
    problem = make(sites=2, intervals=3).with_capacity(capacity)
    delays = replay_queues(problem, find_loads(problem, np.zeros((3, 2, 1), dtype=np.int64)))
    assert delays.backlog == pytest.approx([1600, 1600, 0])
    assert delays.site_s[0].tolist() == pytest.approx([30, 30])


def test_the_policy_of_the_paper_steps_down_as_bandwidth_falls() -> None:
    """Every second, up to every thirty seconds, then fewer buckets (section 4), in this order."""
    problem = latency_histogram(sites=1, pops=1, hours=0.5, variation=0.0, bandwidth=1.0)
    names = problem.level_names[0]
    seen = []
    for share in np.geomspace(2.0, 0.004, 15):
        decision = rules.adapt_locally(problem.with_capacity(problem.capacity_mbps * share))
        assert decision.plan is not None
        positions = decision.plan.answers["level"].map(names.index)
        seen.append(float(positions.mean()))
    assert (np.diff(seen) >= 0).all()
    assert seen[0] == 0
    assert seen[-1] >= names.index("30 s, 10 buckets")
    assert names[:4] == ["1 s", "2 s", "6 s", "30 s"]


@pytest.mark.parametrize(("second", "expected"), [(0.2, 0.2), (np.nan, None)])
def test_proven_errors_are_those_of_the_joint_level_or_of_the_worst_site(
    second: float, expected: float | None
) -> None:
    inputs = tables(combine=("coarsest", "sum"))
    inputs["levels"]["proven_error"] = [0.1, second, 0.4, np.nan] * 2
    problem = Analytics.from_tables(inputs)
    levels = np.array([[[0, 1], [1, 3]]])  # 1 s and 5 s make an answer of 5 s; the second site adds nothing
    figures = measure(problem, make_plan(problem, levels), None)
    assert figures["error_p95"] == pytest.approx(0.2)
    assert figures["proven_error_p95"] == (expected and pytest.approx(expected))
    assert measure(make(), make_plan(make(), levels[:, :, :1]), None)["proven_error_p95"] is None


def test_observations_are_exact_or_late_noisy_or_coarse() -> None:
    problem = small()
    assert observe_bandwidth(problem) is problem
    late = observe_bandwidth(problem, age_s=300.0)
    assert np.allclose(late.capacity_mbps[1:], problem.capacity_mbps[:-1])
    noisy = observe_bandwidth(problem, noise=0.5, seed=1)
    assert not np.allclose(noisy.capacity_mbps, problem.capacity_mbps)
    coarse = observe_bandwidth(problem, granularity_links=6)
    state = coarse.capacity_mbps[:, :6] / problem.capacity_mbps[:, :6].mean(axis=0)
    assert np.allclose(state, state[:, :1])
    assert np.allclose(coarse.capacity_mbps[:, 6:], problem.capacity_mbps[:, 6:])


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(problems(), st.integers(0, 1_000))
def test_compiled_answers_and_loads_are_those_of_plain_loops(problem: Analytics, seed: int) -> None:
    """The same levels, values and bytes, site by site and query by query, as the tables say them."""
    shape = (1, len(problem.site_names), len(problem.query_names))
    counts = np.array([len(names) for names in problem.level_names])
    selected_levels = np.random.default_rng(seed).integers(-1, counts, size=shape)
    answers = find_answers(problem, selected_levels)
    loads = find_loads(problem, selected_levels, answers)
    site_bytes, pop_bytes, wasted = np.zeros(shape[1]), np.zeros(len(problem.pop_names)), np.zeros(shape[1])
    sizes = [problem.level_column(name) for name in ("bytes_per_record", "bytes_per_cell")]

    def size(site: int, query: int, level: int) -> float:
        cube = problem.cube_of[query]
        volume = (problem.records[0, site, cube], problem.cells[0, site, cube])
        return float(sum(fraction[query, level] * own for fraction, own in zip(sizes, volume, strict=True)))

    for query in range(shape[2]):
        levels = selected_levels[0, :, query].tolist()
        sent = [level >= 0 and not problem.is_none[query, level] for level in levels]
        if problem.is_sum[query]:
            share = [problem.value_share[query, level] if level >= 0 else 0.0 for level in levels]
            value, is_answered = float(np.dot(share, problem.site_value_usd[:, query])), any(sent)
            assert answers.level[0, query] == (levels[0] if len(set(levels)) == 1 else -1)
        else:
            joined = levels[0]
            for level in levels[1:]:
                joined = problem.join[query, joined, level] if joined >= 0 and level >= 0 else -1
            is_answered = joined >= 0 and not problem.is_none[query, joined]
            value = problem.value_usd[query] * problem.value_share[query, joined] if is_answered else 0.0
            assert answers.level[0, query] == joined
        assert answers.value_usd[0, query] == pytest.approx(value)
        assert answers.is_answered[0, query] == is_answered
        for site, level in enumerate(levels):
            if level < 0:
                continue
            own_values, pop = size(site, query, level), problem.pop_of[site]
            site_bytes[site] += own_values
            pop_bytes[pop] += own_values * problem.merged_share[pop, query, level]
            if not problem.is_sum[query]:
                able = [
                    size(site, query, other)
                    for other in range(counts[query])
                    if is_answered
                    and problem.may_send[site, query, other]
                    and problem.refines[query, other, answers.level[0, query]]
                ]
                wasted[site] += own_values - (min([own_values, *able]) if is_answered else 0.0)
    assert loads.site[0] == pytest.approx(site_bytes)
    assert loads.pop[0] == pytest.approx(pop_bytes)
    assert loads.wasted[0] == pytest.approx(wasted)
