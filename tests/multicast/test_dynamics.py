"""Updates of joins and leaves: printed values, simulation against closed form, events replayed by hand."""

from __future__ import annotations

import dataclasses
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.errors import InputError
from planner_models.multicast import Multicast, dynamics, series
from planner_models.multicast.problem import OF_MEMBERS
from tests.multicast.fabrics import fat

FIGURE_7 = dynamics.Tenant(pods=8, edges=24, hosts=24, aggregation_copies=3, core_copies=9)


def test_figure_7() -> None:
    assert FIGURE_7.size == 4608
    assert dynamics.burst(FIGURE_7, 300, batched=False).total == pytest.approx(2.78, abs=0.01)
    assert dynamics.burst(FIGURE_7, 300, batched=True).total == pytest.approx(0.62, abs=0.01)
    assert dynamics.next_join(FIGURE_7, 300).total == pytest.approx(1.63, abs=0.01)
    assert dynamics.next_leave(FIGURE_7, 300).total == pytest.approx(1.64, abs=0.01)


def test_update_load_of_section_4_3_2() -> None:
    table_2b = dynamics.Updates(edge=1, aggregation=(1.89 + 1.86) / 2, core=(1.64 + 1.55) / 2)
    load = dynamics.update_load(table_2b, k=48, events_per_pod=1000)
    assert (round(load.edge), round(load.aggregation), round(load.core)) == (42, 78, 133)


tenants = st.builds(
    dynamics.Tenant,
    pods=st.integers(1, 3),
    edges=st.integers(1, 3),
    hosts=st.integers(1, 4),
    aggregation_copies=st.integers(1, 3),
    core_copies=st.integers(1, 9),
)


@given(tenants, st.data())
def test_closed_form_is_what_is_drawn(tenant: dynamics.Tenant, data: st.DataObject) -> None:
    joins = data.draw(st.integers(1, tenant.size))
    for batched in (False, True):
        exact = dynamics.burst(tenant, joins, batched=batched)
        rng = np.random.default_rng(1)
        drawn = dynamics.simulated_burst(tenant, joins, batched=batched, rng=rng, times=300)
        assert drawn.edge == pytest.approx(exact.edge, rel=0.15)
        assert drawn.aggregation == pytest.approx(exact.aggregation, rel=0.15)
        assert drawn.core == pytest.approx(exact.core, rel=0.15)


@given(tenants)
def test_single_joins_add_up_to_a_burst(tenant: dynamics.Tenant) -> None:
    for joins in {1, tenant.size // 2 or 1, tenant.size}:
        steps = [dynamics.next_join(tenant, members).total for members in range(joins)]
        assert sum(steps) == pytest.approx(joins * dynamics.burst(tenant, joins, batched=False).total)
        undone = [dynamics.next_leave(tenant, members + 1).total for members in range(joins)]
        assert undone == pytest.approx(steps)


@given(tenants, st.data())
def test_batches_never_take_more(tenant: dynamics.Tenant, data: st.DataObject) -> None:
    joins = data.draw(st.integers(1, tenant.size))
    one, all_ = (dynamics.burst(tenant, joins, batched=batched).total for batched in (True, False))
    assert one <= all_ + 1e-9


# --- all groups ---------------------------------------------------------------------------


def of_one_tenant(problem: Multicast) -> Multicast:
    """The problem with all its groups belonging to one tenant that is everywhere."""
    hosts = problem.hosts["host"].tolist()
    return dataclasses.replace(
        problem,
        tenants=pd.DataFrame({"tenant": "t0", "host": hosts}),
        groups=problem.groups.assign(tenant="t0"),
    )


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 999), st.sampled_from([1, 2]))
def test_updates_of_switches_add_up_to_those_of_events(seed: int, copies: int) -> None:
    problem = of_one_tenant(fat(k=8, aggregation_copies=copies, groups=20, seed=seed))
    churn = dynamics.churn(problem, events=500, rng=np.random.default_rng(seed))
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
    churn = dynamics.churn(problem, events=20_000, rng=np.random.default_rng(0))
    tenant = dynamics.Tenant(pods=8, edges=4, hosts=4, aggregation_copies=2, core_copies=4)
    # the group's size wanders between nothing and all hosts: joins at every size, each as often
    mean = np.mean([dynamics.next_join(tenant, size).total for size in range(tenant.size)])
    assert churn.joins.total == pytest.approx(mean, rel=0.25)
    assert churn.leaves.total == pytest.approx(churn.joins.total, rel=0.02)


def test_compiled_events_are_those_of_plain_python() -> None:
    problem = of_one_tenant(fat(groups=4, seed=2))
    group = np.sort(np.random.default_rng(0).integers(0, 4, size=200))
    count = problem.member_counts
    order = np.argsort(problem.group_of, kind="stable")
    arguments = (
        group,
        np.random.default_rng(1).random(200) < 0.5,
        np.random.default_rng(2).random(200),
        *dynamics.tenant_hosts(problem),
        np.concatenate([[0], np.cumsum(count)]),
        problem.host_of[order],
        problem.edge_of_host,
        problem.wiring.edge_pod,
        0,
    )
    compiled, plain = dynamics._run(*arguments), dynamics._run.py_func(*arguments)
    for one, two in zip(compiled[:4], plain[:4], strict=True):
        assert np.array_equal(one, two)
    # replayed with sets of hosts
    joined, at, at_edge_only, _, strange = plain
    assert strange == -1
    for g in range(4):
        spread = dict.fromkeys(range(problem.edge_count), 0)
        for edge, there, _ in zip(*(column.tolist() for column in problem.at_edge), strict=True):
            if there == g:
                mask = problem.at_edge[2][(problem.at_edge[0] == edge) & (problem.at_edge[1] == g)][0]
                spread[edge] = int(mask).bit_count()
        for i in np.flatnonzero(group == g).tolist():
            edge = int(problem.edge_of_host[at[i]])
            assert at_edge_only[i] == (spread[edge] == (0 if joined[i] else 1))
            spread[edge] += 1 if joined[i] else -1
            assert spread[edge] >= 0


def members_after(problem: Multicast, events: int, seed: int, upto: int) -> dict[str, set[int]]:
    """Hosts of each group after the first events in time: replayed from the compiled events."""
    rng = np.random.default_rng(seed)
    count = problem.member_counts
    group = rng.choice(len(count), size=events, p=count / count.sum())
    time = np.argsort(group, kind="stable")
    order = np.argsort(problem.group_of, kind="stable")
    joined, host, *_ = dynamics._run(
        group[time],
        rng.random(events) < 0.5,
        rng.random(events),
        *dynamics.tenant_hosts(problem),
        np.concatenate([[0], np.cumsum(count)]),
        problem.host_of[order],
        problem.edge_of_host,
        problem.wiring.edge_pod,
        0,
    )
    names = problem.groups["group"].tolist()
    found = {
        name: set(problem.host_of[problem.group_of == number].tolist()) for number, name in enumerate(names)
    }
    for i in range(events):
        if time[i] < upto:
            mine = found[names[group[time[i]]]]
            assert (int(host[i]) in mine) != joined[i]
            mine ^= {int(host[i])}
    return found


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 99), st.sampled_from([7, 25, 60]))
def test_batches_change_what_differs_at_their_ends(seed: int, batch: int) -> None:
    problem = of_one_tenant(fat(k=4, aggregation_copies=1, groups=4, seed=seed))
    events = 60
    made = dynamics.churn(problem, events=events, rng=np.random.default_rng(seed), batch=batch)
    edge_of, pod_of = problem.edge_of_host, problem.wiring.edge_pod
    edges = pods = cores = 0
    for start in range(0, events, batch):
        before, after = (
            members_after(problem, events, seed, upto) for upto in (start, min(start + batch, events))
        )
        for name in before:
            one, two = before[name], after[name]
            edges += len({int(edge_of[host]) for host in one ^ two})
            at = [{int(edge_of[host]) for host in each} for each in (one, two)]
            pods += len({int(pod_of[edge]) for edge in at[0] ^ at[1]})
            spans = [{int(pod_of[edge]) for edge in each} for each in at]
            cores += spans[0] != spans[1]
    assert made.batched.edge == pytest.approx(edges / events)
    assert made.batched.aggregation == pytest.approx(pods / events)  # one copy of each partition
    assert made.batched.core == pytest.approx(cores / events)
    alone = dynamics.churn(problem, events=events, rng=np.random.default_rng(seed))
    assert alone.joins == made.joins
    assert alone.batched.total >= made.batched.total
    mean = (alone.events[0] * alone.joins.total + alone.events[1] * alone.leaves.total) / events
    assert alone.batched.total == pytest.approx(mean)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: dynamics.burst(FIGURE_7, 4609, batched=True), "joins is 4609, must be from 1 to 4608"),
        (lambda: dynamics.next_join(FIGURE_7, 4608), "must be from 0 to 4607"),
        (lambda: dynamics.next_leave(FIGURE_7, 0), "must be from 1 to 4608"),
        (lambda: dataclasses.replace(FIGURE_7, pods=0), "pods is 0, must be at least 1"),
    ],
)
def test_bad_numbers_are_one_clear_line(call: object, words: str) -> None:
    assert callable(call)
    with pytest.raises(InputError, match=words):
        call()


def test_problems_in_series_differ_by_what_joined_and_left() -> None:
    problem = fat(k=8, aggregation_copies=2, groups=40)
    windows = list(series.Churned(problem=problem, windows=11, events=50, seed=1))
    assert [label for label, _ in windows] == [f"{window:02d}" for window in range(11)]
    assert windows[0][1] is problem
    for (_, one), (_, two) in pairwise(windows):
        before, after = (
            set(zip(each.group_of.tolist(), each.host_of.tolist(), strict=True)) for each in (one, two)
        )
        assert 0 < len(before ^ after) <= 50
        assert (two.member_counts > 0).all()
        again = Multicast.from_tables(two.to_tables())  # and it is a problem as any other
        assert np.array_equal(again.edges_in_pod, two.edges_in_pod)
        kept = {name for name in vars(two) if name in vars(type(two))} - set(OF_MEMBERS)
        for name in kept - {"_distributions"}:  # what was worked out before still holds
            assert np.array_equal(getattr(two, name), getattr(again, name)), name
    with pytest.raises(InputError, match="joins and leaves need this table"):
        series.Churned(problem=dataclasses.replace(problem, tenants=None), windows=2, events=5, seed=0)


def test_dynamics_need_tenants_that_hold_the_members() -> None:
    bare = dataclasses.replace(fat(), tenants=None)
    with pytest.raises(InputError, match="need this table"):
        dynamics.churn(bare, events=10, rng=np.random.default_rng(0))
    problem = of_one_tenant(fat(groups=3))
    assert problem.tenants is not None
    with pytest.raises(InputError, match="batch is 0, must be at least 1"):
        dynamics.churn(problem, events=10, rng=np.random.default_rng(0), batch=0)
    few = dataclasses.replace(problem, tenants=problem.tenants.astype(str).iloc[:1])
    with pytest.raises(InputError, match="is no host of its tenant"):
        dynamics.churn(few, events=1000, rng=np.random.default_rng(0))
