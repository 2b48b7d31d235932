"""Updates of joins and leaves: sums over switches and events, and batches replayed by hand."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.errors import InputError
from planner_models.multicast import Multicast
from planner_models.multicast.plan import switch_groups
from planner_models.multicast.problem import churn, equations
from tests.models.multicast.fabrics import fat, of_one_tenant


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 999), st.sampled_from([1, 2]))
def test_updates_of_switches_add_up_to_those_of_events(seed: int, copies: int) -> None:
    problem = of_one_tenant(fat(k=8, aggregation_copies=copies, groups=20, seed=seed))
    churn = switch_groups.count_updates(problem, events=500, rng=np.random.default_rng(seed))
    assert sum(churn.events) == 500
    total = churn.events[0] * churn.joins.total + churn.events[1] * churn.leaves.total
    assert churn.switch_updates.sum() == pytest.approx(total)
    layers = problem.wiring.layers
    assert churn.switch_updates[layers == "edge"].sum() == 500
    cores = churn.events[0] * churn.joins.core + churn.events[1] * churn.leaves.core
    assert churn.switch_updates[layers == "core"].sum() == pytest.approx(cores)
    assert churn.table().loc["total", "join"] == pytest.approx(churn.joins.total)


def test_many_events_in_one_group_are_as_the_closed_form_says() -> None:
    problem = fat(k=8, aggregation_copies=2, groups=1, seed=3)
    hosts = problem.hosts["host"].tolist()
    members = pd.DataFrame({"group": "g0", "host": hosts[: len(hosts) // 2]})
    problem = of_one_tenant(dataclasses.replace(problem, members=members))
    churn = switch_groups.count_updates(problem, events=20_000, rng=np.random.default_rng(0))
    tenant = equations.Tenant(pods=8, edges=4, hosts=4, aggregation_copies=2, core_copies=4)
    # the group's size wanders between nothing and all hosts: joins at every size, each as often
    mean = np.mean([equations.join_updates(tenant, size).total for size in range(tenant.size)])
    assert churn.joins.total == pytest.approx(mean, rel=0.25)
    assert churn.leaves.total == pytest.approx(churn.joins.total, rel=0.02)


def members_after(problem: Multicast, events: int, seed: int, upto: int) -> dict[str, set[int]]:
    """Return the hosts of each group after the first events in time, replayed from the compiled events."""
    rng = np.random.default_rng(seed)
    count = problem.member_counts
    group = rng.choice(len(count), size=events, p=count / count.sum())
    time = np.argsort(group, kind="stable")
    joined, host, *_ = churn._replay_events(
        group[time],
        rng.random(events) < 0.5,
        rng.random(events),
        churn.tenant_hosts(problem),
        churn.list_members(problem),
        0,
    )
    names = problem.groups["group"].tolist()
    result = {
        name: set(problem.host_of[problem.group_of == number].tolist()) for number, name in enumerate(names)
    }
    for i in range(events):
        if time[i] < upto:
            current = result[names[group[time[i]]]]
            assert (int(host[i]) in current) != joined[i]
            current ^= {int(host[i])}
    return result


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 99), st.sampled_from([7, 25, 60]))
def test_batches_change_what_differs_at_their_ends(seed: int, batch: int) -> None:
    problem = of_one_tenant(fat(k=4, aggregation_copies=1, groups=4, seed=seed))
    events = 60
    made = switch_groups.count_updates(problem, events=events, rng=np.random.default_rng(seed), batch=batch)
    edge_of, pod_of = problem.edge_of_host, problem.wiring.edge_pod
    edges = pods = cores = 0
    for start in range(0, events, batch):
        before, after = (
            members_after(problem, events, seed, upto) for upto in (start, min(start + batch, events))
        )
        for name in before:
            item, two = before[name], after[name]
            edges += len({int(edge_of[host]) for host in item ^ two})
            index = [{int(edge_of[host]) for host in each} for each in (item, two)]
            pods += len({int(pod_of[edge]) for edge in index[0] ^ index[1]})
            spans = [{int(pod_of[edge]) for edge in each} for each in index]
            cores += spans[0] != spans[1]
    assert made.batched.edge == pytest.approx(edges / events)
    assert made.batched.aggregation == pytest.approx(pods / events)  # one copy of each partition
    assert made.batched.core == pytest.approx(cores / events)
    alone = switch_groups.count_updates(problem, events=events, rng=np.random.default_rng(seed))
    assert alone.joins == made.joins
    assert alone.batched.total >= made.batched.total
    mean = (alone.events[0] * alone.joins.total + alone.events[1] * alone.leaves.total) / events
    assert alone.batched.total == pytest.approx(mean)


def test_dynamics_need_tenants_that_hold_the_members() -> None:
    bare = dataclasses.replace(fat(), tenants=None)
    with pytest.raises(InputError, match="need this table"):
        switch_groups.count_updates(bare, events=10, rng=np.random.default_rng(0))
    problem = of_one_tenant(fat(groups=3))
    assert problem.tenants is not None
    with pytest.raises(InputError, match="batch is 0, must be at least 1"):
        switch_groups.count_updates(problem, events=10, rng=np.random.default_rng(0), batch=0)
    few = dataclasses.replace(problem, tenants=problem.tenants.astype(str).iloc[:1])
    with pytest.raises(InputError, match="is no host of its tenant"):
        switch_groups.count_updates(few, events=1000, rng=np.random.default_rng(0))
