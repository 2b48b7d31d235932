"""Plans that change few entries of the plan before: never more than allowed, and never worse than none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.errors import InputError
from planner_models.multicast import SYSTEM, Multicast, check, measure
from planner_models.multicast.designs.partitioned_aggregated import partition_and_share
from planner_models.multicast.plan.adaptation import adapt_plan
from planner_models.multicast.plan.forwarding import compare_plans
from tests.models.multicast.designs.test_unicast_exchange import draw_problem


def change_members(problem: Multicast, events: int, seed: int) -> Multicast:
    """Return the problem after random joins and leaves; no group loses its last member."""
    rng = np.random.default_rng(seed)
    members = set(zip(problem.group_of.tolist(), problem.host_of.tolist(), strict=True))
    for _ in range(events):
        group, host = int(rng.integers(len(problem.groups))), int(rng.integers(len(problem.hosts)))
        if (group, host) not in members:
            members.add((group, host))
        elif sum(one == group for one, _ in members) > 1:
            members.remove((group, host))
    pairs = np.array(sorted(members))
    return problem.with_members(pairs[:, 0], pairs[:, 1])


def require_limit(problem: Multicast, previous: Any, limits: tuple[int, ...], **parameters: Any) -> None:
    """Require that plans keep the limit, are legal and no worse than the adapted plan."""
    adapted = adapt_plan(problem, previous.plan)
    assert not len(check(problem, adapted))
    worst = measure(problem, adapted, None)["host_traffic_mbps"]
    for limit in limits:
        decision = partition_and_share(problem, previous=previous, most_changes=limit, **parameters)
        assert not len(check(problem, decision.plan))
        metrics = measure(problem, decision.plan, previous.plan)
        changes = compare_plans(problem, decision.plan, adapted)[["add", "remove"]].to_numpy().sum()
        assert metrics["entries_changed"] == changes <= limit
        assert metrics["host_traffic_mbps"] <= worst * (1 + 1e-9)
        assert metrics["host_traffic_mbps"] == pytest.approx(decision.proof.objective)
        assert decision.proof.bound <= decision.proof.objective * (1 + 1e-9)
    without = partition_and_share(problem, previous=previous, **parameters)
    free = partition_and_share(problem, previous=previous, most_changes=10**6, **parameters)
    assert free.proof.objective <= without.proof.objective * (1 + 1e-9)


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 30))
def test_no_plan_changes_more_entries_than_allowed(seed: int, events: int) -> None:
    problem = draw_problem(seed)
    previous = partition_and_share(problem)
    require_limit(change_members(problem, events, seed), previous, (0, 3, 20))


@pytest.mark.slow
def test_no_plan_changes_more_entries_than_allowed_in_many_problems() -> None:
    for seed in range(5000, 5020):
        problem = draw_problem(seed)
        require_limit(change_members(problem, seed % 40, seed), partition_and_share(problem), (0, 1, 7, 60))


def test_groups_that_are_gone_or_new_are_no_obstacle() -> None:
    problem = draw_problem(6)
    previous = partition_and_share(problem)
    gone = np.zeros(len(problem.groups), dtype=bool)
    gone[::3] = True
    require_limit(problem.without_groups(gone), previous, (0, 10))
    fewer = partition_and_share(problem.without_groups(gone))
    require_limit(problem, fewer, (0, 10, 50))


def test_more_changes_save_more() -> None:
    problem = draw_problem(2)
    tables = problem.to_tables()
    tight = Multicast.from_tables(tables | {"fabric": problem.fabric.assign(edge_entries=1.0)})
    first = partition_and_share(tight)
    wide = Multicast.from_tables(tables | {"fabric": problem.fabric.assign(edge_entries=20.0)})
    traffic = [
        partition_and_share(wide, previous=first, most_changes=limit).proof.objective
        for limit in (0, 10, 40, 10**6)
    ]
    assert traffic[0] >= traffic[1] >= traffic[2] >= traffic[3]
    assert traffic[0] > traffic[3]


def test_the_limit_is_for_edge_switches() -> None:
    with pytest.raises(
        InputError, match="most_changes: is for entries shared by edge switches, share is both"
    ):
        partition_and_share(draw_problem(1), share="both", most_changes=3)
    design = SYSTEM.design("partitioned_aggregated")
    assert design.keeps_previous({"most_changes": 3})
    assert not design.keeps_previous({})
