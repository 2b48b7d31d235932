"""SWIM and Kubernetes' nodes: closed forms beside runs that draw every pause, probe and message."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from planner_models.membership import Membership, check, measure
from planner_models.membership.designs.detectors import plan_kubernetes_nodes, plan_swim
from planner_models.membership.plan.check import read_plan
from planner_models.membership.plan.watching import HELPERS, swim_lost_alarms, swim_suspicion_s
from planner_models.membership.problem.generators import gossip_row, service_row, site_row
from planner_models.membership.simulation.study import YEAR_S, run_services, tabulate_services


def three_zones(*, mean_s: float, per_month: float = 400.0) -> Membership:
    rows = [site_row("cloud", "region", fails_per_month=0.3)]
    for letter in "abc":
        rows.append(site_row(letter, "zone", "cloud", fails_per_month=3.0))
        rows.append(site_row(f"{letter} hosts", "host", letter, hosts=2.0, fails_per_month=9.0))
    return Membership(
        sites=pd.DataFrame(rows),
        services=pd.DataFrame([service_row(faults=1.0, failover_s=2.0)]),
        pauses=pd.DataFrame([("cloud", per_month, mean_s)], columns=["site", "per_month", "mean_s"]),
    )


@pytest.mark.parametrize(("decide", "mean_s"), [(plan_swim, 3.0), (plan_kubernetes_nodes, 30.0)])
def test_a_long_run_has_the_seconds_of_the_closed_forms(decide: object, mean_s: float) -> None:
    problem = three_zones(mean_s=mean_s)
    plan = decide(problem).plan  # type: ignore[operator]
    runs = run_services(problem, read_plan(problem, plan), 100 * YEAR_S, np.random.default_rng(1))
    row = tabulate_services(problem, runs, 100 * YEAR_S).iloc[0]
    assert row["false_alarms"] > 1_000
    assert row["false_alarms"] == pytest.approx(row["closed_false_alarms"], rel=0.05)
    assert row["no_quorum_s"] == pytest.approx(row["closed_no_quorum_s"], rel=0.15)
    assert row["down_s"] == pytest.approx(row["closed_down_s"], rel=0.15)
    assert row["two_leaders_s"] == pytest.approx(row["closed_two_leaders_s"], rel=0.2)


def count_unrefuted(loss: float, members: int, periods: int, rng: np.random.Generator) -> int:
    """Return how often a live member is declared down: every probe, every message of gossip by itself.

    Members know of a suspicion at once; each sends it 4 ceil(log10(n + 1)) times to random others.
    """
    suspicion = math.ceil(swim_suspicion_s(4.0, members))
    each = 4 * math.ceil(math.log10(members + 1))
    alarms = 0
    for _ in range(periods):
        if not (rng.random(members - 1) < 1 / (members - 1)).any():
            continue  # nobody probes it in this period
        direct = (rng.random(2) >= loss).all()
        helped = (rng.random((HELPERS, 4)) >= loss).all(axis=1).any()
        if direct or helped:
            continue
        targets = rng.integers(0, members - 1, each * members)
        gossip = (rng.random(len(targets))[targets == 0] >= loss).any()
        probes = rng.random((suspicion, members - 1)) < 1 / (members - 1)
        probed = (rng.random(int(probes.sum())) >= loss).any()
        alarms += not (gossip or probed)
    return alarms


def test_lost_messages_raise_as_many_alarms_as_the_closed_form_says() -> None:
    """Within a factor of two: probes of one period are counted one by one in the closed form."""
    loss, members, periods = 0.75, 8, 60_000
    rate = swim_lost_alarms(loss, 1.0, swim_suspicion_s(4.0, members), 4.0 * members / (members - 1))
    expected = rate * periods / 2_592_000
    found = count_unrefuted(loss, members, periods, np.random.default_rng(3))
    assert found > 100
    assert 0.5 < found / expected < 1.5


def test_suspicion_grows_with_the_group() -> None:
    problem = three_zones(mean_s=0.1)
    large = replace(problem, gossip=gossip_row(members=10_000.0))
    small_plan, large_plan = plan_swim(problem).plan, plan_swim(large).plan
    assert small_plan is not None
    assert large_plan is not None
    assert small_plan.watch["timeout_ms"].iloc[0] == 4_000
    assert large_plan.watch["timeout_ms"].iloc[0] == 16_000
    detect = measure(large, large_plan, None)["detect_s"]
    assert detect == pytest.approx(16 + 1 + 1, abs=0.1)  # first probe, end of its period, suspicion


def test_both_can_have_two_leaders_and_say_so() -> None:
    problem = three_zones(mean_s=3.0)
    for decide in (plan_swim, plan_kubernetes_nodes):
        plan = decide(problem).plan  # type: ignore[operator]
        assert "one_leader" in set(check(problem, plan).frame["limit"])


def test_a_pod_starts_elsewhere_after_grace_and_eviction() -> None:
    problem = three_zones(mean_s=0.1)
    plan = plan_kubernetes_nodes(problem).plan
    assert plan is not None
    assert measure(problem, plan, None)["detect_s"] == 50 - 5 + 300
    at_once = plan_kubernetes_nodes(problem, eviction_s=0.0).plan
    assert at_once is not None
    assert measure(problem, at_once, None)["detect_s"] == 45
