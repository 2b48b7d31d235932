"""Updates in random order: closed forms, designs that promise no loop, and walks of packets."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from scipy.stats import norm

from planner.contract.simulation import SimulationResult
from planner.options import Options
from planner_models.updates import SYSTEM, Update
from planner_models.updates.plan.check import evaluate
from planner_models.updates.problem import generators
from planner_models.updates.problem.adjustments import adjust
from planner_models.updates.simulation import draw_times, measure_union, play_once, simulate
from tests.models.updates.updates import updates, walk_all

PROFILE = settings(max_examples=8, deadline=None, derandomize=True)


def run(problem: Update, name: str, **given: float) -> SimulationResult:
    return simulate(
        problem,
        design=SYSTEM.design(name),
        information={},
        decision_parameters={},
        options=Options(),
        **given,  # type: ignore[arg-type]
    )


@pytest.mark.slow
def test_a_line_that_turns_around_loops_in_all_orders_but_one() -> None:
    for switches, runs in ((3, 1000), (5, 500)):
        result = run(generators.zigzag(switches=switches), "one_shot", runs=runs).metrics
        share = 1 - 1 / math.factorial(switches - 1)
        assert result["runs_with_loops_share"] == pytest.approx(share, abs=4 * math.sqrt(0.25 / runs))


@pytest.mark.slow
def test_a_loop_of_two_lasts_the_mean_difference_of_their_times() -> None:
    spread = 0.8
    problem = adjust(generators.zigzag(switches=3), rule_ms=4.0)
    result = run(problem, "one_shot", runs=1500, spread=spread).metrics["loops_ms"]
    # half of the mean difference of two lognormal times: the Gini coefficient of one, times its mean
    assert result == pytest.approx(4.0 * (2 * norm.cdf(spread / math.sqrt(2)) - 1), rel=0.1)


@pytest.mark.slow
@PROFILE
@given(problem=updates(most_switches=5))
def test_what_loops_or_is_lost_is_so_in_a_walk_with_the_same_rules(problem: Update) -> None:
    plan = SYSTEM.design("one_shot").run(problem).plan
    assert plan is not None
    evaluation = evaluate(problem, plan)
    for seed in range(3):
        result = play_once(evaluation, np.random.default_rng(seed), spread=0.5, answer_s=0.0)
        time_s, end_s = draw_times(evaluation, np.random.default_rng(seed), spread=0.5, answer_s=0.0)
        slots = problem.slots
        for kind, (start, end) in (("loop", result.loops), ("lost", result.holes)):
            moments = np.unique(np.r_[0.0, time_s, end_s])
            for index in ((moments[1:] + moments[:-1]) / 2).tolist():
                met = False
                for item, name in enumerate(problem.class_index):
                    current = slots.owner[evaluation.ops.slot] == item
                    is_next = {
                        str(problem.switch_index[slots.switch[slot]]): bool(when <= index)
                        for slot, when in zip(evaluation.ops.slot[current], time_s[current], strict=True)
                    }
                    met |= kind in walk_all(problem, str(name), is_next)
                assert met == bool(((start <= index) & (index < end)).any())


@pytest.mark.slow
@PROFILE
@given(problem=updates(classes=3))
def test_designs_that_promise_it_lose_nothing_in_any_order(problem: Update) -> None:
    for name in ("ordered", "decentral", "two_phase_changed", "extension_first"):
        result = run(problem, name, runs=5).metrics
        assert (result["runs_with_loops_share"], result["runs_with_black_holes_share"]) == (0, 0), name


def test_overload_needs_traffic_that_two_links_share_in_turn() -> None:
    problem = generators.reweigh(name="sndlib/abilene", classes="pairs", count=60, slack=0.05, headroom=0.5)
    crowded, within = (run(problem, name, runs=10) for name in ("two_phase_changed", "congestion_free"))
    assert (crowded.metrics["runs_with_overload_share"] or 0) >= 0.5
    assert (crowded.metrics["overload_ms"] or 0) > 0
    assert (within.metrics["overload_ms"], within.metrics["lost_traffic_mbit"]) == (0, 0)
    assert list(crowded.tables["runs"]["run"]) == list(range(1, 11))


def test_a_union_of_times_counts_no_moment_twice() -> None:
    assert measure_union(np.array([3.0, 0.0, 1.0]), np.array([4.0, 2.0, 2.5])) == pytest.approx(3.5)
    assert measure_union(np.zeros(0), np.zeros(0)) == 0
