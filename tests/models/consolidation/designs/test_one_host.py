"""Machines on one host: the published servers, and brute force."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable

import numpy as np
import pytest

from planner.contract.notes import make_with_notes, notes_of
from planner.contract.proof import Status
from planner_models.consolidation import Consolidation, check, measure
from planner_models.consolidation.designs import one_host
from planner_models.consolidation.plan.reading import read_plan
from planner_models.consolidation.problem.generators import tpcvms_amd, tpcvms_intel
from tests.models.consolidation.fleets import machines, make


def throughputs(problem: Consolidation, plan: object) -> list[float]:
    """Return the weighted throughputs of all machines, ascending."""
    reading = read_plan(problem, plan)  # type: ignore[arg-type]
    copies = reading.machines
    return sorted(np.repeat(reading.weighted, copies.times[copies.first].astype(int)).tolist())


def test_the_second_server_is_as_it_was_found_by_hand() -> None:
    """15 vCPUs each, one machine over both nodes and two in one node (Deehr et al. 2014, 3.1 and 3.2)."""
    problem = tpcvms_intel()
    decision = one_host.plan_max_min(problem)
    assert decision.proof.status is Status.OPTIMAL
    assert decision.plan is not None
    assert not len(check(problem, decision.plan))
    placement = decision.plan.placement.groupby("machine")
    assert placement["vcpus"].sum().tolist() == [15.0, 15.0, 15.0]
    assert sorted(placement.size()) == [1, 1, 2]
    assert decision.plan.helpers is not None
    assert decision.plan.helpers["threads"].sum() == 3


@pytest.mark.slow
def test_the_first_server_has_ten_vcpus_for_each() -> None:
    """10 vCPUs each in clients of 2, and 2 cores for helpers (Deehr et al. 2014, 3.1)."""
    problem = tpcvms_amd()
    decision = one_host.plan_max_min(problem)
    assert decision.proof.status is Status.OPTIMAL
    assert decision.plan is not None
    assert decision.plan.placement.groupby("machine")["vcpus"].sum().tolist() == [10.0, 10.0, 10.0]
    assert decision.plan.helpers is not None
    assert decision.plan.helpers["threads"].sum() == 2


@pytest.mark.parametrize("seed", range(6))
def test_max_min_equals_brute_force(seed: int) -> None:
    random = np.random.default_rng(seed)
    least = random.integers(1, 4, 2).astype(float)
    problem = make(
        hosts={"host_type": ["h"], "price_per_h": [1.0], "most": [1.0]},
        machines=machines(
            vcpus_min=least,
            vcpus_max=least + random.integers(0, 6, 2),
            memory_gb=random.integers(1, 30, 2).astype(float),
            split=["any", "even"],
            weight=random.choice([1.0, 2.0], 2),
        ),
        effects={"host_type": ["h"], "span_loss": [0.1], "scaling": [0.8]},
    )
    ways = one_host.list_ways(problem, 0, [0, 1])
    shape = problem.host_shapes[0].node
    best: list[float] = []
    for first, second in itertools.product(*(np.flatnonzero(ways.shape == row) for row in (0, 1))):
        use = np.array(ways.placings[first].node) + np.array(ways.placings[second].node)
        if (use <= shape + 1e-9).all():
            best = max(best, sorted([float(ways.weighted[first]), float(ways.weighted[second])]))
    decision = one_host.plan_max_min(problem)
    assert decision.plan is not None
    assert throughputs(problem, decision.plan) == pytest.approx(best)


def test_the_lowest_throughput_is_at_least_that_of_the_largest_sum() -> None:
    problem = tpcvms_intel()
    lowest, total = [], []
    for plan in (one_host.plan_max_min, one_host.plan_max_sum):
        made = plan(problem).plan
        assert made is not None
        metrics = measure(problem, made, None)
        lowest.append(metrics["score"] or 0.0)
        total.append(metrics["throughput"] or 0.0)
    assert lowest[0] > lowest[1]
    assert total[0] < total[1]


def test_machines_that_do_not_fit_are_refused_by_weight() -> None:
    problem = make(
        hosts={"host_type": ["h"], "price_per_h": [1.0], "most": [1.0]},
        machines=machines(vcpus_min=[8.0, 8.0, 8.0], weight=[1.0, 2.0, 2.0]),
    )
    plan = one_host.plan_max_min(problem).plan
    assert plan is not None
    assert plan.refused is not None
    assert plan.refused["machine"].tolist() == ["m0"]


def test_a_zone_without_room_holds_no_host() -> None:
    problem = make(
        hosts={"host_type": ["h"], "price_per_h": [1.0], "most": [1.0]},
        zones={"zone": ["full"], "most": [0.0]},
        machines=machines(vcpus_min=[2.0]),
    )
    decision = one_host.plan_max_min(problem)
    assert decision.plan is not None
    assert not len(check(problem, decision.plan))
    assert decision.plan.refused is not None


@pytest.mark.parametrize(("preset", "vcpus", "share"), [(tpcvms_amd, 10, 0.05), (tpcvms_intel, 15, 0.03)])
def test_published_results_stand_beside_ours(
    preset: Callable[..., Consolidation], vcpus: int, share: float
) -> None:
    problem = make_with_notes(preset)
    (note,) = notes_of(problem)
    lowest, total = map(float, re.findall(r"are ([\d.]+) and ([\d.]+) vCPUs", note)[0])
    plan = one_host.plan_max_min(problem).plan
    assert plan is not None
    ours = throughputs(problem, plan)
    assert f"with {vcpus} vCPUs" in note
    assert ours[0] == pytest.approx(lowest, rel=share)
    assert sum(ours) == pytest.approx(total, rel=share)
    assert not notes_of(make_with_notes(lambda: preset(machines=2)))
