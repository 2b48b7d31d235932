"""Progress of searches: an incumbent that no bound contradicts, and that the final plan is not worse than."""

from __future__ import annotations

import pytest

import planner
from planner import clock
from planner.contract import progress
from planner.scenarios.catalogue import find_system

SEARCHES = [
    ("brokering/market_33k_tight", "marketplace"),
    ("circuits/exact_8", "optimum"),
    ("livevideo/heavy_tail_1k_active", "optimum"),
    ("multicast/own_data", "partitioned_aggregated"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("scenario", "design"), SEARCHES)
def test_a_search_reports_its_incumbent_and_bound(scenario: str, design: str) -> None:
    states: list[progress.Progress] = []
    with progress.observe(states.append), clock.count_cpu_seconds():
        result = planner.solve(scenario, design=design, time_limit_s=5)
    assert states, "the search says how far it is"
    metric = find_system(scenario.partition("/")[0]).metric(states[-1].metric)
    sign = 1.0 if metric.better == "more" else -1.0
    for state in states:
        assert state.metric == metric.name
        if state.objective is not None and state.bound is not None:
            assert sign * state.objective <= sign * state.bound + 1e-6 * abs(state.bound)
    last = next(state.objective for state in reversed(states) if state.objective is not None)
    assert result.proof.objective is not None
    assert sign * result.proof.objective >= sign * last - 1e-6 * abs(last)


def test_nothing_is_reported_to_who_does_not_observe() -> None:
    states: list[progress.Progress] = []
    with progress.observe(states.append):
        progress.report("cost", 1.0, float("inf"))
    progress.report("cost", 2.0, None)
    assert states == [progress.Progress("cost", 1.0, None)]
