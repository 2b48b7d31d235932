"""Packets through compiled tables: every member once, with shared entries and with failures."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.errors import InputError
from planner_models.multicast import Channels, Multicast, designs, failures, forwarding
from planner_models.multicast.forwarding import _Packet
from tests.multicast.fabrics import PLANNING, fat, tree

TREES = [("ab", 4, 1), ("ab", 4, 2), ("ab", 8, 2), ("standard", 8, 2), ("portland", 8, 2), ("portland", 8, 1)]


def drawn(kind: str, k: int, copies: int, seed: int, **more: Any) -> Multicast:
    problem = fat(k=k, aggregation_copies=copies, groups=15, table_size=6, seed=seed, **more)
    tables = problem.to_tables()
    return Multicast.from_tables(tables | {"fabric": tables["fabric"].assign(kind=kind)})


def wanted(problem: Multicast, group: int) -> set[tuple[int, int]]:
    hosts = problem.host_of[problem.group_of == group]
    ports = problem.hosts["port"].to_numpy(int)
    return {(int(problem.edge_of_host[host]), int(ports[host])) for host in hosts}


def in_hardware(problem: Multicast, plan: Channels) -> list[int]:
    names = problem.groups["group"].tolist()
    return [names.index(name) for name in plan.partitions["group"]]


def allowed(problem: Multicast, plan: Channels, group: int) -> set[tuple[int, int]]:
    """Ports that groups which share an entry with this one want, and its own: from memberships alone."""
    names = problem.groups["group"].tolist()
    found = set()
    for edge in {edge for edge, _ in wanted(problem, group)}:
        switch = problem.wiring.edges[edge]
        at = plan.meta_groups[plan.meta_groups["switch"] == switch].astype({"group": str})
        entry = at.loc[at["group"] == names[group], "meta_group"]
        mates = at.loc[at["meta_group"].isin(entry), "group"] if len(entry) else [names[group]]
        for mate in mates:
            found |= {place for place in wanted(problem, names.index(mate)) if place[0] == edge}
    return found


@settings(max_examples=12, deadline=None)
@given(
    st.sampled_from(TREES),
    st.integers(0, 99),
    st.sampled_from(["near", "random"]),
    st.sampled_from(PLANNING),
    st.integers(0, 10**6),
)
def test_every_member_gets_a_packet_exactly_once(
    shape: tuple[str, int, int], seed: int, placement: str, design: Any, pick: int
) -> None:
    problem = drawn(*shape, seed, placement=placement)
    plan = design.decide(problem).plan
    tables = forwarding.compiled(problem, plan)
    for group in in_hardware(problem, plan):
        sources = problem.host_of[problem.group_of == group]
        source = int(sources[pick % len(sources)])
        got = forwarding.walk(problem, plan, tables, group=group, source=source)
        assert set(got.copies.values()) == {1}
        assert set(got.copies) == allowed(problem, plan, group)
        assert wanted(problem, group) <= set(got.copies)
        assert max(got.links.values()) <= 6


@pytest.mark.parametrize("design", PLANNING, ids=lambda design: design.name)
@pytest.mark.parametrize("shape", [("ab", 8, 2), ("portland", 4, 1)])
def test_tables_have_the_entries_that_the_plan_counts(design: Any, shape: tuple[str, int, int]) -> None:
    problem = drawn(*shape, 1, placement="random")
    plan = design.decide(problem).plan
    tables = forwarding.compiled(problem, plan)
    assert np.array_equal(tables.entries(), plan.entries["entries"].to_numpy(int))


def test_packets_on_a_tree_by_tables() -> None:
    problem = Multicast.from_tables(tree())
    plan = designs.partitioned_aggregated(problem).plan
    tables = forwarding.compiled(problem, plan)
    assert np.array_equal(tables.entries(), plan.entries["entries"].to_numpy(int))
    for group in in_hardware(problem, plan):
        source = int(problem.host_of[problem.group_of == group][0])
        got = forwarding.walk(problem, plan, tables, group=group, source=source)
        assert set(got.copies.values()) == {1}
        assert set(got.copies) == allowed(problem, plan, group)


# --- failures -----------------------------------------------------------------------------


def served(problem: Multicast, plan: Channels, group: int, source: int, state: failures.Alive) -> set[int]:
    """Pods that can be served: by brute force over chains of working links."""
    row = plan.partitions.set_index("group").loc[problem.groups["group"].iloc[group]]
    held = problem.distribution(int(row["copies"]))
    part = int(row["partition"])
    wires = problem.wiring
    mine, cores = held.aggregation[:, part], held.core[:, part]
    links = state.up & mine[:, None] & cores[None, :]
    pod = wires.aggregation_pod
    own = int(wires.edge_pod[problem.edge_of_host[source]])
    edge = problem.edge_of_host[source]
    reach: set[int] = set()
    for a in np.flatnonzero(mine & (pod == own) & state.down[:, edge]).tolist():
        reach.add(own)
        for core in np.flatnonzero(links[a]).tolist():
            seen, todo = {core}, [core]
            while todo:  # detours of any length, through switches and cores of the partition
                at = todo.pop()
                for b in np.flatnonzero(links[:, at]).tolist():
                    reach.add(int(pod[b]))
                    joined = (state.down[b] & state.down).any(axis=1)
                    for c in np.flatnonzero(joined & mine | (np.arange(len(pod)) == b)).tolist():
                        for again in np.flatnonzero(links[c]).tolist():
                            if again not in seen:
                                seen.add(again)
                                todo.append(again)
    return reach


@settings(max_examples=12, deadline=None)
@given(
    st.sampled_from(TREES),
    st.integers(0, 99),
    st.integers(0, 12),
    st.booleans(),
    st.sampled_from(PLANNING),
)
def test_with_failures_members_get_a_packet_once_or_cannot_be_reached(
    shape: tuple[str, int, int], seed: int, count: int, links: bool, design: Any
) -> None:
    problem = drawn(*shape, seed, placement="random")
    rng = np.random.default_rng(seed)
    wires = problem.wiring
    switches = failures.draw(wires, min(count, len(wires.aggregations) // 3), rng)
    cut = [(wires.aggregations[a], wires.cores[c]) for a, c in np.argwhere(wires.up)[: 2 * links]]
    state = failures.alive(wires, switches=switches, links=cut)
    plan = design.decide(problem).plan
    tables = forwarding.compiled(problem, plan)
    for group in in_hardware(problem, plan):
        source = int(problem.host_of[problem.group_of == group][0])
        got = forwarding.walk(problem, plan, tables, group=group, source=source, state=state)
        assert set(got.copies.values()) <= {1}
        pods = served(problem, plan, group, source, state)
        everywhere = wanted(problem, group)
        if len({edge for edge, _ in everywhere}) == 1:
            assert everywhere <= set(got.copies)
            continue
        reached = {int(wires.edge_pod[edge]) for edge, _ in got.copies}
        assert {place for place in everywhere if int(wires.edge_pod[place[0]]) in reached} <= set(got.copies)
        assert set(got.copies) <= allowed(problem, plan, group)
        assert reached <= pods
        if got.root is not None:  # else even the source's pod has no way up
            row = plan.partitions.set_index("group").loc[problem.groups["group"].iloc[group]]
            held = problem.distribution(int(row["copies"]))
            found = failures.ways(wires, held, int(row["partition"]), state)
            hops = found.hops[found.cores.tolist().index(got.root)]
            own = int(wires.edge_pod[problem.edge_of_host[source]])
            spans = {int(wires.edge_pod[edge]) for edge, _ in everywhere}
            assert reached == {pod for pod in spans if np.isfinite(hops[pod])} | {own} & spans


def test_one_failed_switch_is_bypassed_in_three_hops_on_ab_and_five_on_standard_trees() -> None:
    for kind, extra in (("ab", 2), ("portland", 2), ("standard", 4)):
        problem = drawn(kind, 8, 2, 5, placement="random")
        plan = designs.partitioned(problem).plan
        tables = forwarding.compiled(problem, plan)
        detours = set()
        for switch in problem.wiring.aggregations:
            state = failures.alive(problem.wiring, switches=[switch])
            for group in in_hardware(problem, plan)[:5]:
                source = int(problem.host_of[problem.group_of == group][0])
                before = forwarding.walk(problem, plan, tables, group=group, source=source)
                after = forwarding.walk(problem, plan, tables, group=group, source=source, state=state)
                assert set(after.copies) == set(before.copies)
                assert set(after.copies.values()) == {1}
                detours |= {after.links[place] - before.links[place] for place in before.links}
        assert detours == {0, extra}


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(TREES), st.integers(0, 999), st.integers(0, 14))
def test_ways_are_those_of_packets(shape: tuple[str, int, int], seed: int, count: int) -> None:
    problem = drawn(*shape, 0)
    wires = problem.wiring
    rng = np.random.default_rng(seed)
    state = failures.alive(wires, switches=failures.draw(wires, min(count, len(wires.aggregations)), rng))
    held = problem.distribution(shape[2])
    plan = designs.partitioned(problem).plan
    tables = forwarding.compiled(problem, plan)
    for part in range(held.partitions):
        found = failures.ways(wires, held, part, state)
        packet = _Packet(wires=wires, held=held, part=part, group=0, tables=tables, state=state)
        for row, core in enumerate(found.cores.tolist()):
            for pod in range(wires.pods):
                way = packet.into(core, pod)
                assert found.hops[row, pod] == (np.inf if way is None else way[1])


def test_a_failed_link_within_a_pod_is_bypassed_with_two_more_links() -> None:
    problem = drawn("ab", 8, 2, 4, placement="random")
    plan = designs.partitioned_aggregated(problem).plan
    tables = forwarding.compiled(problem, plan)
    wires = problem.wiring
    cut = [
        (edge, wires.aggregations[4 * int(pod)])
        for edge, pod in zip(wires.edges[::3], wires.edge_pod[::3], strict=True)
    ]
    state = failures.alive(wires, links=cut)
    longer = 0
    for group in in_hardware(problem, plan):
        source = int(problem.host_of[problem.group_of == group][0])
        before = forwarding.walk(problem, plan, tables, group=group, source=source)
        after = forwarding.walk(problem, plan, tables, group=group, source=source, state=state)
        assert after.copies == before.copies
        assert {after.links[place] - before.links[place] for place in before.links} <= {0, 2}
        longer += sum(after.links.values()) > sum(before.links.values())
    assert longer


# --- statistics ---------------------------------------------------------------------------


def test_without_failures_nothing_is_longer_and_nobody_is_lost() -> None:
    problem = drawn("ab", 8, 2, 0, placement="random")
    plan = designs.partitioned(problem).plan
    found = failures.rerouted(problem, plan, failures.alive(problem.wiring))
    assert (found.stretch == 1).all()
    assert (found.unreachable == 0).all()


def test_pods_are_lost_as_often_as_all_their_copies_fail() -> None:
    problem = fat(k=8, aggregation_copies=2, groups=60, table_size=60, placement="random", tenants=1)
    plan = designs.partitioned(problem, choose="arrival").plan
    for failed in (4, 8):
        lost = []
        for seed in range(60):
            rng = np.random.default_rng(seed)
            state = failures.alive(problem.wiring, switches=failures.draw(problem.wiring, failed, rng))
            held = problem.distribution(2)
            each_part = [failures.ways(problem.wiring, held, part, state) for part in range(held.partitions)]
            lost += [np.isinf(each.hops).all(axis=0).mean() for each in each_part]
        expected = failures.expected_unreachable(switches=32, copies=2, failed=failed)
        assert np.mean(lost) == pytest.approx(expected, rel=0.2)
        found = failures.rerouted(problem, plan, state, rng=np.random.default_rng(0))
        assert np.nanmin(found.stretch) >= 1
        assert ((found.unreachable >= 0) & (found.unreachable <= 1)).all()


def test_more_failures_reach_fewer() -> None:
    problem = fat(k=8, aggregation_copies=2, groups=60, table_size=60, placement="random")
    plan = designs.partitioned(problem, choose="arrival").plan
    order = np.random.default_rng(0).permutation(len(problem.wiring.aggregations))
    last = 0.0
    for count in (0, 5, 10, 20, 32):
        names = problem.wiring.aggregations[order[:count]].tolist()
        state = failures.alive(problem.wiring, switches=names)
        mean = failures.rerouted(problem, plan, state).unreachable.mean()
        assert mean >= last - 1e-9
        last = mean
    assert last > 0.5


def test_cost_of_section_3_3_1() -> None:
    assert failures.cost(48) == failures.Cost(
        identifiers=72, identifier_bits=7, edge_rules=24, aggregation_rules=72
    )


def test_unknown_failures_are_one_clear_line() -> None:
    wires = fat().wiring
    with pytest.raises(InputError, match="'aggregation-9-9' is no switch"):
        failures.alive(wires, switches=["aggregation-9-9"])
    with pytest.raises(InputError, match="no link from 'edge-0-0' up to 'core-0'"):
        failures.alive(wires, links=[("edge-0-0", "core-0")])
    with pytest.raises(InputError, match="failed_aggregations is 9, must be from 0 to 8"):
        failures.draw(wires, 9, np.random.default_rng(0))


@settings(max_examples=8, deadline=None)
@given(
    st.integers(2, 4),
    st.integers(2, 4),
    st.integers(0, 99),
    st.sampled_from(PLANNING),
    st.integers(0, 4),
)
def test_packets_on_drawn_trees_arrive_once_with_and_without_failures(
    pods: int, switches: int, seed: int, design: Any, count: int
) -> None:
    problem = Multicast.from_tables(tree(pods=pods, switches=switches, cores=2 * switches, seed=seed))
    wires = problem.wiring
    plan = design.decide(problem).plan
    tables = forwarding.compiled(problem, plan)
    state = failures.alive(wires, switches=failures.draw(wires, count, np.random.default_rng(seed)))
    held = problem.distribution(problem.aggregation_copies)
    for group in in_hardware(problem, plan):
        source = int(problem.host_of[problem.group_of == group][-1])
        whole = forwarding.walk(problem, plan, tables, group=group, source=source)
        assert set(whole.copies.values()) == {1}
        assert set(whole.copies) == allowed(problem, plan, group)
        got = forwarding.walk(problem, plan, tables, group=group, source=source, state=state)
        assert set(got.copies.values()) <= {1}
        assert set(got.copies) <= set(whole.copies)
        reached = {int(wires.edge_pod[edge]) for edge, _ in got.copies}
        assert {place for place in whole.copies if int(wires.edge_pod[place[0]]) in reached} == set(
            got.copies
        )
    for part in range(held.partitions):
        found = failures.ways(wires, held, part, state)
        packet = _Packet(wires=wires, held=held, part=part, group=0, tables=tables, state=state)
        for row, core in enumerate(found.cores.tolist()):
            for pod in range(pods):
                way = packet.into(core, pod)
                assert found.hops[row, pod] == (np.inf if way is None else way[1])
