"""Timeouts that phi-accrual fits, beside the usual one."""

from __future__ import annotations

import pandas as pd
import pytest

from planner_models.membership import Membership
from planner_models.membership.designs import raft
from planner_models.membership.plan.check import check, read_plan
from planner_models.membership.plan.metrics import measure
from planner_models.membership.problem.generators import regions


def timeout_s(problem: Membership, **parameters: float) -> float:
    plan = raft.plan_phi(problem, **parameters).plan
    assert plan is not None
    assert not len(check(problem, plan).frame)
    return read_plan(problem, plan)[0].placement.timeout_s


def test_the_timeout_grows_with_phi_with_pauses_and_with_loss() -> None:
    usual = timeout_s(regions(loss=0.0))
    # without loss the deviation is Akka's least one: 1 s + 3 s + 5.6 deviations
    assert usual == pytest.approx(4.0 + 5.61 * 0.1, abs=0.01)
    assert timeout_s(regions(loss=0.0), threshold=12.0) > usual
    assert timeout_s(regions(loss=0.0), pause_s=1.0) == pytest.approx(usual - 2)
    assert timeout_s(regions(loss=0.05)) > usual


def test_a_timeout_of_the_table_is_kept() -> None:
    problem = regions()
    rows = [("phi", 500.0, 2_000.0, float("nan"), 80.0)]
    columns = ["kind", "interval_ms", "timeout_ms", "capacity_per_s", "bytes"]
    problem = Membership(
        sites=problem.sites,
        delays=problem.delays,
        services=problem.services,
        watchers=pd.DataFrame(rows, columns=columns),
    )
    assert timeout_s(problem) == 2.0


def test_a_longer_timeout_has_fewer_false_alarms_and_slower_detection() -> None:
    problem = regions(loss=0.1)
    of = {}
    for threshold in (2.0, 8.0):
        plan = raft.plan_phi(problem, threshold=threshold, pause_s=0.0).plan
        assert plan is not None
        of[threshold] = measure(problem, plan, None)
    assert (of[8.0]["false_alarms"] or 0.0) < (of[2.0]["false_alarms"] or 0.0)
    assert (of[8.0]["detect_s"] or 0.0) > (of[2.0]["detect_s"] or 0.0)
