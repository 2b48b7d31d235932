"""Designs that plan one interval after another end soon after a limit, with levels for every interval."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from planner import Options, clock
from planner_models.analytics.designs import backfill, optimum, priced, site_values
from planner_models.analytics.designs.decision import REPAIR, IntervalDeadline
from planner_models.analytics.plan.check import check
from planner_models.analytics.plan.plan import read_levels
from planner_models.analytics.problem import generators


def test_time_for_short_plans_of_later_intervals_is_reserved(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [10.0]
    monkeypatch.setattr(clock, "now", lambda: now[0])
    deadline = IntervalDeadline(Options(time_limit_s=5.0), 11)
    deadline.start_interval()
    now[0] = 10.1
    deadline.end_build()
    assert deadline.search_s() == pytest.approx(4.9 - REPAIR * 0.1 * 10)
    assert IntervalDeadline(Options(), 3).search_s() == np.inf


@pytest.mark.parametrize(
    "decide",
    [
        optimum.plan,
        priced.choose_by_prices,
        site_values.choose_by_own_value,
        backfill.send_later,
        partial(backfill.send_later, order="foreseen"),
    ],
)
def test_a_limit_that_is_over_leaves_a_plan_of_all_intervals(decide: object) -> None:
    problem = generators.small(seed=1)
    decision = decide(problem, options=Options(time_limit_s=1e-9))  # type: ignore[operator]
    assert decision.plan is not None
    assert decision.proof.is_cut
    levels = read_levels(problem, decision.plan)
    assert levels.shape[0] == len(problem.interval_numbers)
    if decision.guarantees is None:  # all limits
        assert not len(check(problem, decision.plan).of_limits(None))
