"""Plans that change few entries of the plan before: never more than allowed, and never worse than none."""

from __future__ import annotations

from itertools import product
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
from planner_models.multicast.plan.plan import Channels, build_plan
from planner_models.multicast.plan.rerouting import lost_by_group, lost_by_partition
from planner_models.multicast.problem.failures import working_links
from planner_models.multicast.problem.generators import datacenter
from tests.models.multicast.designs.test_unicast_exchange import draw_problem


def change_members(problem: Multicast, events: int, seed: int) -> Multicast:
    """Return the problem after random joins and leaves; no group loses its last member."""
    rng = np.random.default_rng(seed)
    members = set(zip(problem.group_of.tolist(), problem.host_of.tolist(), strict=True))
    for _ in range(events):
        group, host = int(rng.integers(len(problem.groups))), int(rng.integers(len(problem.hosts)))
        if (group, host) not in members:
            members.add((group, host))
        elif sum(item == group for item, _ in members) > 1:
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


@pytest.mark.exhaustive
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


def fail_some(problem: Multicast, seed: int) -> Multicast:
    """Return the problem with failed switches of any layer, and failed links."""
    rng, wires = np.random.default_rng(seed), problem.wiring
    names = rng.choice(wires.above.to_numpy(), size=int(rng.integers(0, 4)), replace=False).tolist()
    names += rng.choice(wires.edges.to_numpy(), size=int(rng.integers(0, 2)), replace=False).tolist()
    up, down = np.argwhere(wires.up), np.argwhere(wires.aggregation_pod[:, None] == wires.edge_pod)
    links = [(wires.aggregations[a], wires.cores[c]) for a, c in rng.permutation(up)[: rng.integers(0, 6)]]
    links += [(wires.edges[e], wires.aggregations[a]) for a, e in rng.permutation(down)[: rng.integers(0, 3)]]
    return problem.with_failed(names, links)


def list_losses(problem: Multicast, adapted: Channels, partitions: int) -> list[tuple[float, float]]:
    """Return entries changed and traffic lost of every plan without shared entries."""
    state, groups = working_links(problem), len(problem.groups)
    result = []
    for positions in product(range(-1, partitions), repeat=groups):
        where = np.array(positions)
        plan = build_plan(problem, where >= 0, problem.aggregation_copies, partition=np.maximum(where, 0))
        changes = compare_plans(problem, plan, adapted)[["add", "remove"]].to_numpy().sum()
        result.append((float(changes), float(lost_by_group(problem, plan, state).sum())))
    return result


def require_limits(problem: Multicast, broken: Multicast, limits: tuple[int, ...]) -> list[float]:
    """Require that plans around failures keep limits and lose no more than the plan before; return losses."""
    previous = partition_and_share(problem)
    adapted = adapt_plan(broken, previous.plan)
    before, losses = measure(broken, adapted, None)["lost_mbps"], []
    for limit in limits:
        decision = partition_and_share(broken, previous=previous, most_changes=limit, around_failures=True)
        assert not len(check(broken, decision.plan))
        metrics = measure(broken, decision.plan, previous.plan)
        assert metrics["entries_changed"] <= limit
        assert metrics["lost_mbps"] <= before * (1 + 1e-9)
        assert metrics["host_traffic_mbps"] == pytest.approx(decision.proof.objective)
        assert decision.proof.bound <= decision.proof.objective * (1 + 1e-9)
        losses.append(metrics["lost_mbps"])
    return losses


@pytest.mark.slow
@settings(max_examples=5, deadline=None)
@given(st.integers(0, 10**6))
def test_plans_around_failures_keep_the_limit_and_lose_no_more(seed: int) -> None:
    problem = draw_problem(seed)
    broken = fail_some(problem, seed)
    losses = require_limits(problem, broken, (0, 8, 10**6))
    unlimited = partition_and_share(broken, around_failures=True)
    assert not len(check(broken, unlimited.plan))
    without = partition_and_share(broken)
    lost = [measure(broken, each.plan, None)["lost_mbps"] for each in (unlimited, without)]
    assert lost[0] <= lost[1] * (1 + 1e-9)
    assert losses[-1] <= losses[0] * (1 + 1e-9)


@pytest.mark.exhaustive
def test_plans_around_failures_keep_the_limit_in_many_problems() -> None:
    for seed in range(7000, 7012):
        problem = draw_problem(seed)
        require_limits(problem, fail_some(problem, seed), (0, 5, 40))


@pytest.mark.slow
def test_no_plan_loses_less_than_the_best_of_all_places() -> None:
    problem = datacenter(k=4, aggregation_copies=1, tenants=1, groups=3, largest_tenant=10)
    broken = problem.with_failed(["aggregation-0-0"], [("aggregation-1-1", "core-3")])
    previous = partition_and_share(problem)
    every = list_losses(broken, adapt_plan(broken, previous.plan), 4)
    losses = require_limits(problem, broken, limits := (0, 6, 14, 10**6))
    lower = [min(lost for changes, lost in every if changes <= limit) for limit in limits]
    assert all(lost >= bound - 1e-9 for lost, bound in zip(losses, lower, strict=True))
    assert (losses[0], losses[-1]) == pytest.approx((lower[0], lower[-1]))
    assert losses[0] > losses[-1]


@settings(max_examples=4, deadline=None)
@given(st.integers(0, 10**6))
def test_losses_in_partitions_are_those_of_plans(seed: int) -> None:
    problem = fail_some(draw_problem(seed), seed)
    state, copies = working_links(problem), problem.aggregation_copies
    groups = np.arange(len(problem.groups))
    lost, by_unicast = lost_by_partition(problem, groups, state, copies=copies)
    everyone = np.ones(len(groups), dtype=bool)
    for partition in range(lost.shape[1]):
        plan = build_plan(problem, everyone, copies, partition=np.full(len(groups), partition))
        assert lost[:, partition] == pytest.approx(lost_by_group(problem, plan, state))
    assert by_unicast == pytest.approx(lost_by_group(problem, build_plan(problem, ~everyone, copies), state))


def test_a_cut_link_is_named_by_its_two_switches() -> None:
    problem = draw_problem(1)
    adjust = SYSTEM.problem.adjust
    broken = adjust(problem, fail_links=("aggregation-0-0<->edge-0-0",))
    assert broken.failed_pairs == [("edge-0-0", "aggregation-0-0")]
    assert not working_links(broken).down[0, 0]
    both = adjust(broken, fail_links=("edge-0-1<->aggregation-0-0",), fail_switches=("core-1",))
    assert len(both.failed_pairs) == 2
    assert Multicast.from_tables(both.to_tables()).failed_pairs == both.failed_pairs
    for name, message in (
        ("edge-0-0", "must name two switches"),
        ("edge-0-0<->core-0", "no link between 'edge-0-0' and 'core-0'"),
        ("edge-0-0<->core-99", "'core-99' is no switch"),
    ):
        with pytest.raises(InputError, match=message):
            adjust(problem, fail_links=(name,))


def test_plans_around_failures_share_at_edge_switches_alone() -> None:
    with pytest.raises(InputError, match="around_failures: is for entries shared by edge switches"):
        partition_and_share(draw_problem(1), share="aggregation", around_failures=True)
