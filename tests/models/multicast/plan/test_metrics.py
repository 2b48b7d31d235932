"""Metrics against packets and members."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.runs.evaluation import evaluate
from planner.scenarios.scenario import Entry
from planner_models.multicast import SYSTEM, Channels, Multicast, check, measure
from planner_models.multicast.designs.partitioned_aggregated import partition_and_share
from planner_models.multicast.plan import metrics
from planner_models.multicast.problem import topology
from tests.models.multicast.fabrics import WITH_ENTRIES, fat, with_tables


def deliver_packet(
    problem: Multicast, plan: Channels, group: str, core: int | None
) -> dict[tuple[int, int, int], int]:
    """Return copies at each (pod, edge, port) of a packet of the group, down from a core by table entries."""
    row = plan.partitions.set_index("group").loc[group]
    ra, share = int(row["copies"]), int(row["partition"])
    position = problem.members.astype(str).merge(problem.hosts, on="host")
    current = position[position["group"] == group]
    held = topology.aggregation_partitions(problem.kind, problem.k, ra)
    wires = topology.connected_cores(problem.kind, problem.k)
    copies: dict[tuple[int, int, int], int] = {}
    for pod in current["pod"].unique().astype(int):
        ways = [
            i for i in range(problem.half) if held[pod, i, share] and (core is None or core in wires[pod, i])
        ]
        assert ways  # a switch of the pod with the partition, below that core
        if core is not None:
            assert len(ways) == 1
        for edge in current.loc[current["pod"] == pod, "edge"].unique().astype(int):
            switch, groups = f"edge-{pod}-{edge}", [group]
            shared = plan.meta_groups[plan.meta_groups["switch"] == switch]
            if len(shared):
                entry = shared.loc[shared["group"] == group, "meta_group"].item()
                groups = shared.loc[shared["meta_group"] == entry, "group"].tolist()
            here = position[
                (position["pod"] == pod) & (position["edge"] == edge) & position["group"].isin(groups)
            ]
            for port in here["port"].unique().astype(int):
                copies[pod, edge, port] = copies.get((pod, edge, port), 0) + 1
    return copies


@pytest.mark.slow
@settings(max_examples=6, deadline=None)
@given(st.integers(0, 99), st.sampled_from([(4, 1), (8, 2)]), st.sampled_from(WITH_ENTRIES[:-1]))
def test_packets_reach_every_member_once_and_overhead_is_what_others_get(
    seed: int, tree: tuple[int, int], design: Any
) -> None:
    k, ra = tree
    problem = fat(k=k, aggregation_copies=ra, groups=20, table_size=6, seed=seed, placement="random")
    plan = design.decide(problem).plan
    rate = problem.groups.set_index("group")["rate_mbps"]
    position = problem.members.astype(str).merge(problem.hosts, on="host")
    extra = 0.0
    for name, share, copies in plan.partitions[["group", "partition", "copies"]].itertuples(index=False):
        cores = np.flatnonzero(topology.core_partition(k, int(copies)) == share)
        requested = {
            tuple(map(int, index))
            for index in position.loc[position["group"] == name, ["pod", "edge", "port"]].to_numpy()
        }
        for core in cores[[0, -1]].tolist():
            got = deliver_packet(problem, plan, name, core)
            assert set(got.values()) == {1}
            assert requested <= set(got)
        extra += rate[name] * len(set(got) - requested)
    assert measure(problem, plan, None)["overhead_mbps"] == pytest.approx(extra)


@pytest.mark.parametrize("share", ["edge", "aggregation", "both"])
@pytest.mark.parametrize("method", ["agglomerative", "algorithm2"])
def test_overhead_at_both_layers_is_recounted_from_the_members(share: str, method: str) -> None:
    problem = with_tables(
        fat(k=8, aggregation_copies=2, groups=150, placement="random"),
        {"core_entries": 99.0, "aggregation_entries": 20.0, "edge_entries": 20.0},
    )
    run = evaluate(
        SYSTEM,
        problem,
        Entry(
            label="x",
            design=SYSTEM.design("partitioned_aggregated"),
            parameters={"share": share, "method": method, "weigh_unicast": False},
        ),
    )
    assert not len(run.violations)
    position = problem.members.astype(str).merge(problem.hosts, on="host")
    rate = dict(zip(problem.groups["group"], problem.rate_mbps.tolist(), strict=True))
    ports = {
        f"edge-{pod:.0f}-{edge:.0f}": fraction.groupby("group")["port"].agg(set).to_dict()
        for (pod, edge), fraction in position.groupby(["pod", "edge"])
    }
    below = {
        int(pod): fraction.groupby("group")["edge"].agg(set).to_dict()
        for pod, fraction in position.groupby("pod")
    }
    extra = {"edge": 0.0, "aggregation": 0.0}
    rows = run.plan.meta_groups.astype({"switch": str, "group": str})
    assert len(rows)
    for (switch, _), fraction in rows.groupby(["switch", "meta_group"]):
        layer, pod = switch.split("-")[:2]
        wants = ports[switch] if layer == "edge" else below[int(pod)]
        reached = set().union(*(wants[group] for group in fraction["group"]))
        # each of two switches of a pod that hold the group carries half of it
        half = 1.0 if layer == "edge" else 0.5
        extra[layer] += half * sum(rate[group] * len(reached - wants[group]) for group in fraction["group"])
    assert run.metrics["overhead_mbps"] == pytest.approx(extra["edge"], abs=1e-6)
    assert run.metrics["edge_link_overhead_mbps"] == pytest.approx(extra["aggregation"], abs=1e-6)
    if share != "edge":
        assert run.metrics["aggregation_entries_max"] <= 20
    if share == "both":
        assert run.metrics["groups_with_entries"] == 150


def test_groups_that_a_full_table_refuses_count_as_unicast() -> None:
    """A plan for larger tables looks no better for the entries that do not fit."""
    problem = fat(k=4, groups=40, table_size=99)
    small = SYSTEM.problem.adjust(problem, edge_entries=4)
    plan = SYSTEM.design("partitioned").decide(problem).plan
    position = problem.members.astype(str).merge(problem.hosts, on="host")
    names = problem.groups["group"].tolist()
    refused = set()
    for _, share in position.groupby(["pod", "edge"]):
        refused |= set(sorted(share["group"].unique(), key=names.index)[4:])
    assert 0 < len(refused) < 40
    rate, members = problem.rate_mbps, problem.member_counts
    alone = np.array([name in refused for name in names])
    metrics = measure(small, plan, None)
    assert set(check(small, plan).frame["limit"]) == {"table"}
    assert metrics["host_traffic_mbps"] == pytest.approx(
        float(rate @ np.where(alone, 2 * members, 1 + members))
    )
    assert metrics["groups_by_unicast"] == len(refused)
    decision = SYSTEM.design("partitioned").decide(small)
    assert metrics["host_traffic_mbps"] >= decision.proof.bound * (1 - 1e-9)


def test_a_full_table_refuses_shared_entries_in_the_order_of_their_numbers() -> None:
    problem = fat(k=8, aggregation_copies=1, groups=150, table_size=99, placement="random")
    wide, small = (SYSTEM.problem.adjust(problem, edge_entries=size) for size in (8, 5))
    plan = partition_and_share(wide, weigh_unicast=False).plan
    edge = plan.meta_groups.astype({"switch": str, "group": str})
    nth = edge.groupby("switch")["meta_group"].rank("dense")
    refused = set(edge.loc[nth > 5, "group"])
    position = problem.members.astype(str).merge(problem.hosts, on="host")
    names = problem.groups["group"].tolist()
    for (pod, number), share in position.groupby(["pod", "edge"]):
        if f"edge-{pod}-{number}" not in set(edge["switch"]):
            refused |= set(sorted(share["group"].unique(), key=names.index)[5:])
    assert 0 < len(refused) < 150
    assert measure(small, plan, None)["groups_by_unicast"] == len(refused)


def test_what_members_miss_after_failures_is_lost() -> None:
    problem = fat(k=4, groups=40, table_size=99)
    plan = SYSTEM.design("partitioned").decide(problem).plan
    assert measure(problem, plan, None)["lost_mbps"] == 0
    failed = problem.with_failed(["aggregation-0-0", "aggregation-0-1"])
    position = problem.members.astype(str).merge(problem.hosts, on="host")
    rate = dict(zip(problem.groups["group"], problem.rate_mbps.tolist(), strict=True))
    lost = measure(failed, plan, None)["lost_mbps"]
    # pod 0 is cut off: members there get packets from their own edge switch alone
    upper = sum(rate[group] for group in position["group"]) * 1.0
    assert 0 < lost < upper
    assert set(SYSTEM.plan.headline.losses) == {"lost_mbps"}


def test_rates_are_summed_by_port_in_the_order_of_pairs() -> None:
    random = np.random.default_rng(1)
    switch, rates = random.integers(0, 5, 300), random.random(300)
    masks = random.integers(0, 1 << 63, 300, dtype=np.uint64)
    total = metrics.sum_by_port(np.zeros((5, 64)), switch, rates, masks)
    for port in range(64):
        pairs = np.flatnonzero(masks & np.uint64(1 << port))
        assert np.array_equal(total[:, port], np.bincount(switch[pairs], rates[pairs], minlength=5))
