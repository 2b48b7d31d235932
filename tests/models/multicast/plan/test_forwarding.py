"""Packets through compiled tables: every member once, with shared entries and with failures."""

from __future__ import annotations

import functools
from collections import defaultdict
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner_models.multicast import SYSTEM, Channels, Multicast
from planner_models.multicast.designs import partitioned, partitioned_aggregated
from planner_models.multicast.plan import forwarding, rerouting
from planner_models.multicast.plan.forwarding import _Packet
from planner_models.multicast.problem import failures
from tests.models.multicast.fabrics import PLANNING, WITH_ENTRIES, fat, fat_of_kind, tree

TREES = [("ab", 4, 1), ("ab", 4, 2), ("ab", 8, 2), ("standard", 8, 2), ("portland", 8, 2), ("portland", 8, 1)]


def member_ports(problem: Multicast, group: int) -> set[tuple[int, int]]:
    hosts = problem.host_of[problem.group_of == group]
    ports = problem.hosts["port"].to_numpy(int)
    return {(int(problem.edge_of_host[host]), int(ports[host])) for host in hosts}


def in_hardware(problem: Multicast, plan: Channels) -> list[int]:
    names = problem.groups["group"].tolist()
    return [names.index(name) for name in plan.partitions["group"]]


class SharedEntries:
    """Ports that receive the packets of a group, from memberships and shared entries of a plan alone.

    The index by switch is built once for all groups of a plan.
    """

    def __init__(self, problem: Multicast, plan: Channels) -> None:
        self._problem = problem
        self._names = problem.groups["group"].tolist()
        self._rows = {name: row for row, name in enumerate(self._names)}
        self._members = functools.cache(functools.partial(member_ports, problem))
        self._entries: dict[tuple[Any, str], set[Any]] = defaultdict(set)
        self._groups: dict[tuple[Any, Any], list[str]] = defaultdict(list)
        table = plan.meta_groups
        for switch, group, entry in zip(table["switch"], table["group"], table["meta_group"], strict=True):
            self._entries[switch, str(group)].add(entry)
            self._groups[switch, entry].append(str(group))

    def ports(self, group: int) -> set[tuple[int, int]]:
        """Return ports of the group and of groups that share an entry with it, on its own edge switches."""
        name = self._names[group]
        result = set()
        for edge in {edge for edge, _ in self._members(group)}:
            switch = self._problem.wiring.edges[edge]
            entries = self._entries.get((switch, name), set())
            mates = [mate for entry in entries for mate in self._groups[switch, entry]] or [name]
            for mate in mates:
                result |= {port for port in self._members(self._rows[mate]) if port[0] == edge}
        return result


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(
    st.sampled_from(TREES),
    st.integers(0, 99),
    st.sampled_from(["near", "random"]),
    st.sampled_from(WITH_ENTRIES),
    st.integers(0, 10**6),
)
def test_every_member_gets_a_packet_exactly_once(
    shape: tuple[str, int, int], seed: int, placement: str, design: Any, pick: int
) -> None:
    problem = fat_of_kind(*shape, seed, placement=placement)
    plan = design.decide(problem).plan
    tables = forwarding.compile_tables(problem, plan)
    shared = SharedEntries(problem, plan)
    for group in in_hardware(problem, plan):
        sources = problem.host_of[problem.group_of == group]
        source = int(sources[pick % len(sources)])
        got = forwarding.send_packet(problem, plan, tables, group=group, source=source)
        assert set(got.copies.values()) == {1}
        assert set(got.copies) == shared.ports(group)
        assert member_ports(problem, group) <= set(got.copies)
        assert max(got.links.values()) <= 6


@pytest.mark.parametrize("design", PLANNING, ids=lambda design: design.name)
@pytest.mark.parametrize("shape", [("ab", 8, 2), ("portland", 4, 1)])
def test_tables_have_the_entries_that_the_plan_counts(design: Any, shape: tuple[str, int, int]) -> None:
    problem = fat_of_kind(*shape, 1, placement="random")
    plan = design.decide(problem).plan
    tables = forwarding.compile_tables(problem, plan)
    assert np.array_equal(tables.entries(), plan.entries["entries"].to_numpy(int))


def test_packets_on_a_tree_by_tables() -> None:
    problem = Multicast.from_tables(tree())
    plan = partitioned_aggregated.partition_and_share(problem).plan
    tables = forwarding.compile_tables(problem, plan)
    shared = SharedEntries(problem, plan)
    assert np.array_equal(tables.entries(), plan.entries["entries"].to_numpy(int))
    for group in in_hardware(problem, plan):
        source = int(problem.host_of[problem.group_of == group][0])
        got = forwarding.send_packet(problem, plan, tables, group=group, source=source)
        assert set(got.copies.values()) == {1}
        assert set(got.copies) == shared.ports(group)


# --- failures -----------------------------------------------------------------------------


def reachable_pods(
    problem: Multicast, plan: Channels, group: int, source: int, state: failures.WorkingLinks
) -> set[int]:
    """Return the pods that can be served, by brute force over chains of working links."""
    row = plan.partitions.set_index("group").loc[problem.groups["group"].iloc[group]]
    held = problem.distribution(int(row["copies"]))
    share = int(row["partition"])
    wires = problem.wiring
    current, cores = held.aggregation[:, share], held.core[:, share]
    links = state.up & current[:, None] & cores[None, :]
    pod = wires.aggregation_pod
    own_values = int(wires.edge_pod[problem.edge_of_host[source]])
    edge = problem.edge_of_host[source]
    reach: set[int] = set()
    for a in np.flatnonzero(current & (pod == own_values) & state.down[:, edge]).tolist():
        reach.add(own_values)
        for core in np.flatnonzero(links[a]).tolist():
            seen, todo = {core}, [core]
            while todo:  # detours of any length, through switches and cores of the partition
                index = todo.pop()
                for b in np.flatnonzero(links[:, index]).tolist():
                    reach.add(int(pod[b]))
                    joined = (state.down[b] & state.down).any(axis=1)
                    for c in np.flatnonzero(joined & current | (np.arange(len(pod)) == b)).tolist():
                        for again in np.flatnonzero(links[c]).tolist():
                            if again not in seen:
                                seen.add(again)
                                todo.append(again)
    return reach


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(
    st.sampled_from(TREES),
    st.integers(0, 99),
    st.integers(0, 12),
    st.booleans(),
    st.sampled_from(WITH_ENTRIES),
)
def test_with_failures_members_get_a_packet_once_or_cannot_be_reached(
    shape: tuple[str, int, int], seed: int, count: int, links: bool, design: Any
) -> None:
    problem = fat_of_kind(*shape, seed, placement="random")
    rng = np.random.default_rng(seed)
    wires = problem.wiring
    switches = failures.draw_failures(wires, min(count, len(wires.aggregations) // 3), rng)
    cut = [(wires.aggregations[a], wires.cores[c]) for a, c in np.argwhere(wires.up)[: 2 * links]]
    state = failures.find_working_links(wires, switches=switches, links=cut)
    plan = design.decide(problem).plan
    tables = forwarding.compile_tables(problem, plan)
    shared = SharedEntries(problem, plan)
    for group in in_hardware(problem, plan):
        source = int(problem.host_of[problem.group_of == group][0])
        got = forwarding.send_packet(problem, plan, tables, group=group, source=source, state=state)
        assert set(got.copies.values()) <= {1}
        pods = reachable_pods(problem, plan, group, source, state)
        everywhere = member_ports(problem, group)
        if len({edge for edge, _ in everywhere}) == 1:
            assert everywhere <= set(got.copies)
            continue
        reached = {int(wires.edge_pod[edge]) for edge, _ in got.copies}
        assert {position for position in everywhere if int(wires.edge_pod[position[0]]) in reached} <= set(
            got.copies
        )
        assert set(got.copies) <= shared.ports(group)
        assert reached <= pods
        if got.root is not None:  # else even the source's pod has no way up
            row = plan.partitions.set_index("group").loc[problem.groups["group"].iloc[group]]
            held = problem.distribution(int(row["copies"]))
            detours = rerouting.find_detours(wires, held, int(row["partition"]), state)
            hops = detours.hops[detours.cores.tolist().index(got.root)]
            own_values = int(wires.edge_pod[problem.edge_of_host[source]])
            spans = {int(wires.edge_pod[edge]) for edge, _ in everywhere}
            assert reached == {pod for pod in spans if np.isfinite(hops[pod])} | {own_values} & spans


def test_one_failed_switch_is_bypassed_in_three_hops_on_ab_and_five_on_standard_trees() -> None:
    for kind, extra in (("ab", 2), ("portland", 2), ("standard", 4)):
        problem = fat_of_kind(kind, 8, 2, 5, placement="random")
        plan = partitioned.partition_addresses(problem).plan
        tables = forwarding.compile_tables(problem, plan)
        detours = set()
        for switch in problem.wiring.aggregations:
            state = failures.find_working_links(problem.wiring, switches=[switch])
            for group in in_hardware(problem, plan)[:5]:
                source = int(problem.host_of[problem.group_of == group][0])
                before = forwarding.send_packet(problem, plan, tables, group=group, source=source)
                after = forwarding.send_packet(problem, plan, tables, group=group, source=source, state=state)
                assert set(after.copies) == set(before.copies)
                assert set(after.copies.values()) == {1}
                detours |= {after.links[link] - before.links[link] for link in before.links}
        assert detours == {0, extra}


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(TREES), st.integers(0, 999), st.integers(0, 14))
def test_ways_are_those_of_packets(shape: tuple[str, int, int], seed: int, count: int) -> None:
    problem = fat_of_kind(*shape, 0)
    wires = problem.wiring
    rng = np.random.default_rng(seed)
    state = failures.find_working_links(
        wires, switches=failures.draw_failures(wires, min(count, len(wires.aggregations)), rng)
    )
    held = problem.distribution(shape[2])
    plan = partitioned.partition_addresses(problem).plan
    tables = forwarding.compile_tables(problem, plan)
    for share in range(held.partitions):
        detours = rerouting.find_detours(wires, held, share, state)
        packet = _Packet(wires=wires, held=held, part=share, group=0, tables=tables, state=state)
        for row, core in enumerate(detours.cores.tolist()):
            for pod in range(wires.pods):
                way = packet.enter_pod(core, pod)
                assert detours.hops[row, pod] == (np.inf if way is None else way[1])


def test_a_failed_link_within_a_pod_is_bypassed_with_two_more_links() -> None:
    problem = fat_of_kind("ab", 8, 2, 4, placement="random")
    plan = partitioned_aggregated.partition_and_share(problem).plan
    tables = forwarding.compile_tables(problem, plan)
    wires = problem.wiring
    cut = [
        (edge, wires.aggregations[4 * int(pod)])
        for edge, pod in zip(wires.edges[::3], wires.edge_pod[::3], strict=True)
    ]
    state = failures.find_working_links(wires, links=cut)
    longer = 0
    for group in in_hardware(problem, plan):
        source = int(problem.host_of[problem.group_of == group][0])
        before = forwarding.send_packet(problem, plan, tables, group=group, source=source)
        after = forwarding.send_packet(problem, plan, tables, group=group, source=source, state=state)
        assert after.copies == before.copies
        assert {after.links[link] - before.links[link] for link in before.links} <= {0, 2}
        longer += sum(after.links.values()) > sum(before.links.values())
    assert longer


@pytest.mark.slow
@settings(max_examples=8, deadline=None)
@given(
    st.integers(2, 4),
    st.integers(2, 4),
    st.integers(0, 99),
    st.sampled_from(WITH_ENTRIES),
    st.integers(0, 4),
)
def test_packets_on_drawn_trees_arrive_once_with_and_without_failures(
    pods: int, switches: int, seed: int, design: Any, count: int
) -> None:
    problem = Multicast.from_tables(tree(pods=pods, switches=switches, cores=2 * switches, seed=seed))
    wires = problem.wiring
    plan = design.decide(problem).plan
    tables = forwarding.compile_tables(problem, plan)
    shared = SharedEntries(problem, plan)
    state = failures.find_working_links(
        wires, switches=failures.draw_failures(wires, count, np.random.default_rng(seed))
    )
    held = problem.distribution(problem.aggregation_copies)
    for group in in_hardware(problem, plan):
        source = int(problem.host_of[problem.group_of == group][-1])
        full = forwarding.send_packet(problem, plan, tables, group=group, source=source)
        assert set(full.copies.values()) == {1}
        assert set(full.copies) == shared.ports(group)
        got = forwarding.send_packet(problem, plan, tables, group=group, source=source, state=state)
        assert set(got.copies.values()) <= {1}
        assert set(got.copies) <= set(full.copies)
        reached = {int(wires.edge_pod[edge]) for edge, _ in got.copies}
        assert {copy for copy in full.copies if int(wires.edge_pod[copy[0]]) in reached} == set(got.copies)
    for share in range(held.partitions):
        detours = rerouting.find_detours(wires, held, share, state)
        packet = _Packet(wires=wires, held=held, part=share, group=0, tables=tables, state=state)
        for row, core in enumerate(detours.cores.tolist()):
            for pod in range(pods):
                way = packet.enter_pod(core, pod)
                assert detours.hops[row, pod] == (np.inf if way is None else way[1])


def test_a_plan_differs_from_itself_in_no_rule_and_from_nothing_in_all() -> None:
    problem = fat(k=8, aggregation_copies=2, groups=300, table_size=25)
    plan = partitioned_aggregated.partition_and_share(problem).plan
    assert len(plan.meta_groups)
    assert not len(forwarding.compare_plans(problem, plan, plan))
    empty = SYSTEM.plan.from_tables(problem, {"partitions": plan.partitions.iloc[:0]})
    new = forwarding.compare_plans(problem, plan, empty).set_index("switch")
    taken = plan.entries.set_index("switch")["entries"]
    assert new["remove"].sum() == 0
    assert new["add"].to_dict() == taken[taken > 0].astype(int).to_dict()


def test_numbers_of_shared_entries_mean_nothing() -> None:
    problem = fat(k=8, aggregation_copies=2, groups=300, table_size=25)
    plan = partitioned_aggregated.partition_and_share(problem).plan
    other = plan.meta_groups.assign(
        meta_group=plan.meta_groups["meta_group"].max() - plan.meta_groups["meta_group"]
    )
    assert not len(forwarding.compare_plans(problem, replace(plan, meta_groups=other), plan))


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 99), st.sampled_from(PLANNING), st.sampled_from(PLANNING))
def test_rules_turn_one_plan_into_the_other(seed: int, one: object, two: object) -> None:
    problem = fat(groups=15, table_size=6, seed=seed, placement="random")
    plans = [design.decide(problem).plan for design in (one, two)]  # type: ignore[attr-defined]
    result = forwarding.compare_plans(problem, plans[1], plans[0]).set_index("switch")
    entries = [plan.entries.set_index("switch")["entries"] for plan in plans]
    net = (result["add"] - result["remove"]).reindex(entries[0].index).fillna(0)
    assert (entries[0] + net == entries[1]).all()
    back = forwarding.compare_plans(problem, plans[0], plans[1]).set_index("switch")
    assert back["add"].to_dict() == result["remove"].to_dict()


def test_a_new_member_changes_the_switches_above_it() -> None:
    problem = fat(groups=10, table_size=40, seed=1)
    plan = partitioned.partition_addresses(problem).plan
    group = problem.groups["group"].iloc[0]
    inside = set(problem.members.loc[problem.members["group"] == group, "host"].astype(str))
    stranger = next(host for host in problem.hosts["host"] if host not in inside)
    members = pd.concat([problem.members.astype(str), pd.DataFrame({"group": [group], "host": [stranger]})])
    after = replace(problem, members=members.reset_index(drop=True))
    result = forwarding.compare_plans(
        after, partitioned.partition_addresses(after).plan, plan, before=problem
    )
    where = problem.hosts.set_index("host").loc[stranger]
    assert f"edge-{where['pod']:.0f}-{where['edge']:.0f}" in set(result["switch"])
    assert (result.loc[result["layer"] == "edge", ["add", "remove"]].sum(axis=1) <= 2).all()


def test_rules_of_a_tree() -> None:
    problem = Multicast.from_tables(tree())
    plans = [design.decide(problem).plan for design in PLANNING[:2]]
    tables = [forwarding.compile_tables(problem, plan) for plan in plans]
    result = forwarding.compare_plans(problem, plans[1], plans[0])
    assert result["add"].sum() - result["remove"].sum() == len(tables[1].rules) - len(tables[0].rules)
