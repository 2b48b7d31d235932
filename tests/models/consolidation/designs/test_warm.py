"""Plans that follow another one: moves between two plans, and machines that leave and arrive."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from planner.contract.design import Decision
from planner.options import Options
from planner_models.consolidation import Consolidation, check, measure
from planner_models.consolidation.designs import patterns, repack, warm
from planner_models.consolidation.plan.plan import ConsolidationPlan
from planner_models.consolidation.plan.previous import count_moved
from planner_models.consolidation.plan.reading import read_plan
from planner_models.consolidation.problem.arrivals import arrivals
from planner_models.consolidation.problem.generators import awkward
from tests.models.consolidation.fleets import machines, make


def contents(problem: Consolidation, plan: ConsolidationPlan) -> list[tuple[int, np.ndarray]]:
    """Return type and machines of each single host."""
    reading = read_plan(problem, plan)
    per_host = reading.per_host(reading.machines)
    rows = [row for row, hosts in enumerate(reading.hosts.astype(int)) for _ in range(hosts)]
    return [(int(reading.host_type[row]), per_host[row]) for row in rows]


def fewest_moves(problem: Consolidation, before: ConsolidationPlan, after: ConsolidationPlan) -> float:
    """Return the fewest moves between two plans, over all matches of their hosts."""
    first, second = contents(problem, before), contents(problem, after)
    first += [(-1, np.zeros(len(problem.machines)))] * max(len(second) - len(first), 0)
    total = sum(item for _, item in second)
    return min(
        float(
            sum(
                total
                - sum(
                    np.minimum(first[row][1], item) * (first[row][0] == kind)
                    for row, (kind, item) in zip(order, second, strict=True)
                )
            )
        )
        for order in permutations(range(len(first)), len(second))
    )


@pytest.mark.parametrize("seed", range(4))
def test_moves_between_two_plans_are_the_fewest(seed: int) -> None:
    problem = awkward(machines=14, shapes=5, network=False, seed=seed)
    before, after = patterns.plan(problem).plan, warm.plan_omniscient(problem).plan
    assert before is not None
    assert after is not None
    moved = count_moved(problem, before, read_plan(problem, after))
    assert moved is not None
    assert moved.sum() == fewest_moves(problem, before, after)
    assert measure(problem, after, before)["moves"] == moved.sum()


@pytest.mark.parametrize("plan", [repack.plan, warm.plan_omniscient], ids=["repack", "omniscient"])
def test_machines_that_stay_do_not_move_from_hour_to_hour(plan: object) -> None:
    last: Decision[ConsolidationPlan] | None = None
    for _, problem in arrivals(machines=60, shapes=4, hours=5):
        options = {"budget": 0.0} if plan is repack.plan else {}
        decision = plan(problem, options=Options(), previous=last, **options)  # type: ignore[operator]
        assert not len(check(problem, decision.plan).of_limits(decision.guarantees))
        if last is not None:
            assert measure(problem, decision.plan, last.plan)["moves"] == 0
        last = decision


def test_a_budget_empties_hosts_of_the_plan_before() -> None:
    """Four machines that a rule kept on hosts of their own fit on one, by three moves of 1 GB."""
    apart = {"kind": ["apart"], "group": ["g"], "domain": ["host"]}
    start = patterns.plan(make(machines=machines(count=[4.0], vcpus_min=[4.0], group=["g"]), rules=apart))
    left = make(machines=machines(count=[4.0], vcpus_min=[4.0], group=["g"]))
    stay = repack.plan(left, budget=0.0, previous=start).plan
    fewer = repack.plan(left, budget=0.8, previous=start).plan
    assert stay is not None
    assert fewer is not None
    assert measure(left, stay, start.plan)["hosts"] == 4
    metrics = measure(left, fewer, start.plan)
    assert metrics["hosts"] == 1
    assert metrics["moves"] == metrics["moved_gb"] == 3


def test_hosts_become_empty_as_machines_leave_that_are_known_to_leave() -> None:
    """Best fit mixes machines that leave with those that stay; with known events, their hosts are apart."""
    tables = {
        "machines": machines(count=[4.0, 4.0], vcpus_min=[8.0, 8.0]),
        "events": {"at_s": [10.0], "machine": ["m1"], "what": ["leaves"], "machines": [4.0]},
    }
    problem = make(**tables)
    start = warm.plan_omniscient(problem)
    later = make(machines=machines(count=[4.0, 0.0], vcpus_min=[8.0, 8.0]))
    plan = warm.plan_omniscient(later, previous=start).plan
    assert plan is not None
    metrics = measure(later, plan, start.plan)
    assert metrics["hosts"] == 2
    assert metrics["moves"] == 0
