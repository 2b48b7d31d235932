"""Checks at the nearest replica: no gaps, cost between that of groups alone and closure, and simulation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import planner
from planner.options import Options
from planner_models.geostore import Geostore, StorePlan, check, measure
from planner_models.geostore.designs import optimum
from planner_models.geostore.designs.assembly import assemble, weak_plan
from planner_models.geostore.plan.evaluation import evaluate
from planner_models.geostore.problem.adjustments import adjust
from tests.models.geostore.stores import store, with_groups

SEEDS = st.integers(0, 1_000)
EXACT = Options(gap=1e-6)


def place(problem: Geostore, checks: str) -> StorePlan:
    """Return the plan of the optimum with checks, whose cost is not below its bound."""
    decision = optimum.place(adjust(problem, checks=checks), options=EXACT)
    assert decision.plan is not None
    assert decision.proof.bound is not None
    assert decision.proof.objective is not None
    assert decision.proof.bound <= decision.proof.objective * (1 + 1e-9)
    return decision.plan


def usd(problem: Geostore, plan: StorePlan) -> float:
    """Return the cost of a month."""
    value = measure(problem, plan, None)["usd_per_month"]
    assert value is not None
    return value


@given(seed=SEEDS)
@settings(max_examples=6)
def test_remote_checks_leave_no_gap_and_cost_no_less_than_groups_alone(seed: int) -> None:
    problem = store(seed, regions=6, groups=4, users=3, chain=4, limit_ms=150.0)
    closed, remote, cheapest = (place(problem, checks) for checks in ("closure", "remote", "cheapest"))
    for plan in (closed, remote, cheapest):
        assert not len(check(problem, plan).of_limits(["order"]))
        assert evaluate(problem, plan).gaps == []
    alone = optimum.place(replace(problem, depends=None), options=EXACT).proof.bound
    assert alone is not None
    assert usd(problem, cheapest) <= min(usd(problem, closed), usd(problem, remote)) * (1 + 1e-6)
    assert usd(problem, cheapest) >= alone * (1 - 1e-6)


def chain() -> tuple[Geostore, StorePlan]:
    """Return groups in a chain, and a plan whose remote checks have a gap."""
    problem = with_groups(store(1, regions=3, groups=3, users=2, limit_ms=None), failures=0.0)
    names = problem.region_index.tolist()
    access = pd.DataFrame(
        [(group, region, 10.0, 1.0) for group in ("g1", "g2", "g3") for region in names],
        columns=["group", "region", "reads_per_s", "writes_per_s"],
    )
    depends = pd.DataFrame({"group": ["g2", "g3"], "on": ["g1", "g2"], "share": 1.0, "per_write": 1.0})
    problem = replace(problem, access=access, depends=depends)
    held = np.array([[1, 1, 1], [1, 1, 0], [1, 0, 1]], dtype=bool)
    plans = [
        replace(weak_plan(problem, row, held[row], np.zeros(3, dtype=np.int64)), checks="remote")
        for row in range(3)
    ]
    return problem, assemble(problem, plans)


def test_a_chain_with_a_gap_is_refused_by_name() -> None:
    problem, plan = chain()
    (where,) = check(problem, plan).of_limits(["order"]).frame["where"]
    assert where.startswith("group 'g2', checked for region")


def test_remote_checks_take_messages_time_and_a_region_that_must_be_there() -> None:
    problem, plan = chain()
    state = evaluate(problem, plan)
    checks = state.remote_checks
    rows = sorted(zip(checks.group.tolist(), checks.region.tolist(), strict=True))
    assert rows == [(2, 2)]  # g3 is in the third region, where g2 is not
    nearest = int(checks.nearest[0])
    assert checks.per_s.tolist() == [3.0]
    month = 30 * 24 * 3600
    price = problem.usd_per_gb[2, nearest] + problem.usd_per_gb[nearest, 2]
    assert checks.usd(problem) == pytest.approx(3.0 * month * 16 / 1e9 * price)
    direct = problem.copy_ms[0, 2] + problem.rtt_ms[2, nearest]
    assert state.stale_ms[2] == pytest.approx(max(direct, problem.copy_ms[0, 2]))
    assert measure(problem, plan, None)["blocked_per_s"] == pytest.approx(3.0)
    local = replace(plan, classes=plan.classes.assign(checks="local"))
    assert measure(problem, local, None)["blocked_per_s"] == 0.0
    assert usd(problem, plan) - usd(problem, local) == pytest.approx(checks.usd(problem))


@pytest.mark.slow
def test_histories_under_remote_checks_are_causal() -> None:
    problem = adjust(store(5, regions=6, groups=4, users=3, chain=4, limit_ms=150.0), checks="remote")
    result = planner.simulate(problem, designs=["optimum"], histories=40).runs[0].result
    assert result is not None
    assert result.metrics["gaps"] == 0
    assert result.metrics["breaches"] == 0
