"""Metrics against packets and members."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.runs.run import evaluate
from planner.scenarios.scenario import Entry
from planner_models.multicast import SYSTEM, Channels, Multicast, measure
from planner_models.multicast.problem import addresses
from tests.models.multicast.fabrics import PLANNING, fat, with_tables


def deliver_packet(
    problem: Multicast, plan: Channels, group: str, core: int | None
) -> dict[tuple[int, int, int], int]:
    """Return copies at each (pod, edge, port) of a packet of the group, down from a core by table entries."""
    row = plan.partitions.set_index("group").loc[group]
    ra, part = int(row["copies"]), int(row["partition"])
    place = problem.members.astype(str).merge(problem.hosts, on="host")
    mine = place[place["group"] == group]
    held = addresses.aggregation_partitions(problem.kind, problem.k, ra)
    wires = addresses.connected_cores(problem.kind, problem.k)
    copies: dict[tuple[int, int, int], int] = {}
    for pod in mine["pod"].unique().astype(int):
        ways = [
            i for i in range(problem.half) if held[pod, i, part] and (core is None or core in wires[pod, i])
        ]
        assert ways  # a switch of the pod with the partition, below that core
        if core is not None:
            assert len(ways) == 1
        for edge in mine.loc[mine["pod"] == pod, "edge"].unique().astype(int):
            switch, groups = f"edge-{pod}-{edge}", [group]
            shared = plan.meta_groups[plan.meta_groups["switch"] == switch]
            if len(shared):
                entry = shared.loc[shared["group"] == group, "meta_group"].item()
                groups = shared.loc[shared["meta_group"] == entry, "group"].tolist()
            here = place[(place["pod"] == pod) & (place["edge"] == edge) & place["group"].isin(groups)]
            for port in here["port"].unique().astype(int):
                copies[pod, edge, port] = copies.get((pod, edge, port), 0) + 1
    return copies


@pytest.mark.slow
@settings(max_examples=6, deadline=None)
@given(st.integers(0, 99), st.sampled_from([(4, 1), (8, 2)]), st.sampled_from(PLANNING[:-1]))
def test_packets_reach_every_member_once_and_overhead_is_what_others_get(
    seed: int, tree: tuple[int, int], design: Any
) -> None:
    k, ra = tree
    problem = fat(k=k, aggregation_copies=ra, groups=20, table_size=6, seed=seed, placement="random")
    plan = design.decide(problem).plan
    rate = problem.groups.set_index("group")["rate_mbps"]
    place = problem.members.astype(str).merge(problem.hosts, on="host")
    extra = 0.0
    for name, part, copies in plan.partitions[["group", "partition", "copies"]].itertuples(index=False):
        cores = np.flatnonzero(addresses.core_partition(k, int(copies)) == part)
        wanted = {
            tuple(map(int, at))
            for at in place.loc[place["group"] == name, ["pod", "edge", "port"]].to_numpy()
        }
        for core in cores[[0, -1]].tolist():
            got = deliver_packet(problem, plan, name, core)
            assert set(got.values()) == {1}
            assert wanted <= set(got)
        extra += rate[name] * len(set(got) - wanted)
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
            parameters={"share": share, "method": method},
        ),
    )
    assert not len(run.violations)
    place = problem.members.astype(str).merge(problem.hosts, on="host")
    rate = dict(zip(problem.groups["group"], problem.rate_mbps.tolist(), strict=True))
    ports = {
        f"edge-{pod:.0f}-{edge:.0f}": part.groupby("group")["port"].agg(set).to_dict()
        for (pod, edge), part in place.groupby(["pod", "edge"])
    }
    below = {int(pod): part.groupby("group")["edge"].agg(set).to_dict() for pod, part in place.groupby("pod")}
    extra = {"edge": 0.0, "aggregation": 0.0}
    rows = run.plan.meta_groups.astype({"switch": str, "group": str})
    assert len(rows)
    for (switch, _), part in rows.groupby(["switch", "meta_group"]):
        layer, pod = switch.split("-")[:2]
        wants = ports[switch] if layer == "edge" else below[int(pod)]
        reached = set().union(*(wants[group] for group in part["group"]))
        # each of two switches of a pod that hold the group carries half of it
        half = 1.0 if layer == "edge" else 0.5
        extra[layer] += half * sum(rate[group] * len(reached - wants[group]) for group in part["group"])
    assert run.metrics["overhead_mbps"] == pytest.approx(extra["edge"], abs=1e-6)
    assert run.metrics["edge_link_overhead_mbps"] == pytest.approx(extra["aggregation"], abs=1e-6)
    if share != "edge":
        assert run.metrics["aggregation_entries_max"] <= 20
    if share == "both":
        assert run.metrics["groups_with_entries"] == 150
