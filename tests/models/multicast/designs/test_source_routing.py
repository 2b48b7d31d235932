"""Headers in packets: each packet is sent link by link by plain code, which counts copies and bytes."""

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

from planner.contract.proof import Status
from planner.errors import InputError, PlanRejected
from planner.options import Options
from planner_models.multicast import SYSTEM, Channels, Multicast, check, measure
from planner_models.multicast.designs.partitioned import store_everywhere
from planner_models.multicast.designs.source_routing import replicate_by_index, route_by_source
from planner_models.multicast.plan.forwarding import compare_plans
from tests.models.multicast.fabrics import fat, tree, with_tables


@functools.cache
def places(problem: Multicast) -> dict[str, dict[int, dict[int, set[int]]]]:
    """Return the ports with members of each group, by pod, then edge switch of the fabric."""
    wires = problem.wiring
    where = {
        str(host): (int(pod), int(edge), int(port))
        for host, pod, edge, port in problem.hosts[["host", "pod", "edge", "port"]].itertuples(index=False)
    }
    first = {pod: int(np.argmax(wires.edge_pod == pod)) for pod in range(problem.pods)}
    result: dict[str, Any] = defaultdict(lambda: defaultdict(lambda: defaultdict(set)))
    members = zip(problem.members["group"].astype(str), problem.members["host"].astype(str), strict=True)
    for group, host in members:
        pod, edge, port = where[host]
        result[group][pod][first[pod] + edge].add(port)
    return result


def walk_elmo(  # noqa: C901
    problem: Multicast, plan: Channels, group: str
) -> tuple[int, int, dict[tuple[int, int], int]]:
    """Return copies on links, bytes of headers on links, and copies by host, of one packet."""
    wires, pods = problem.wiring, places(problem)[group]
    rules = plan.header_rules[plan.header_rules["group"].astype(str) == group]
    rule = dict(zip(rules["switch"].astype(str), rules["rule"].astype(int), strict=True))
    edges = {edge: ports for inside in pods.values() for edge, ports in inside.items()}
    source, home = min(edges), int(wires.edge_pod[min(edges)])

    def name(bits: int) -> int:
        return max(1, int(np.ceil(np.log2(bits)))) + 1

    def size(used: dict[str, int], bitmap: int, bits: int) -> int:
        shared = [item for item in used.values() if item >= 0]
        default = -2 in used.values()
        return (len(set(shared)) * (bitmap + 1) + len(shared) * bits + default * (bitmap + 1) + 7) // 8

    in_pod, above = int(np.bincount(wires.edge_pod).max()), int(np.bincount(wires.aggregation_pod).max())
    of_edges = {item: position for item, position in rule.items() if not item.startswith("pod-")}
    of_pods = {item: position for item, position in rule.items() if item.startswith("pod-")}
    last = size(of_edges, problem.ports, name(len(wires.edges)))
    pod_part = size(of_pods, in_pod, name(problem.pods))
    core_part = (problem.pods + 7) // 8 if len(pods) > 1 else 0
    up = (in_pod + int(wires.up.sum(axis=1).max()) + 1 + 7) // 8 if len(edges) > 1 else 0
    here = (problem.ports + above + 1 + 7) // 8
    links, sent = 1, here + up + core_part + pod_part + last
    got: dict[tuple[int, int], int] = defaultdict(int)

    def serve(edge: int) -> None:
        nonlocal links
        label = str(wires.edges[edge])
        cells = of_edges.get(label, -2)
        if edge in edges and cells == -1:
            ports = edges[edge]
        else:
            if edge not in edges and -2 not in of_edges.values():
                return
            ports = set().union(
                *(edges[other] for other in edges if of_edges[str(wires.edges[other])] == cells)
            )
        for port in ports:
            links += 1
            got[edge, port] += 1

    for port in edges[source]:
        links += 1
        got[source, port] += 1
    if len(edges) > 1:
        links += 1
        sent += up + core_part + pod_part + last
        for edge in set(pods[home]) - {source}:
            links, sent = links + 1, sent + last
            serve(edge)
    if len(pods) > 1:
        links, sent = links + 1, sent + core_part + pod_part + last
        start = {pod: int(np.argmax(wires.edge_pod == pod)) for pod in range(problem.pods)}
        for pod in set(pods) - {home}:
            links, sent = links + 1, sent + pod_part + last
            index = of_pods[f"pod-{pod}"]
            alike = [pod] if index == -1 else [item for item in pods if of_pods[f"pod-{item}"] == index]
            numbers = {edge - start[item] for item in alike for edge in pods[item]}
            for number in numbers:
                if number < int((wires.edge_pod == pod).sum()):
                    links, sent = links + 1, sent + last
                    serve(start[pod] + number)
    return links, sent, got


def require_packets(problem: Multicast, plan: Channels, packet_bytes: int) -> None:
    """Require that packets reach every member once, and that metrics are what the packets do."""
    traffic = hosts = 0.0
    for group, rate in zip(problem.groups["group"].astype(str), problem.rate_mbps.tolist(), strict=True):
        links, sent, got = walk_elmo(problem, plan, group)
        members = {
            (edge, port)
            for pod in places(problem)[group].values()
            for edge, ports in pod.items()
            for port in ports
        }
        assert members <= set(got)
        assert set(got.values()) == {1}
        traffic += rate * (links + sent / packet_bytes)
        header = float(plan.headers.set_index(plan.headers["group"].astype(str)).loc[group, "header_bytes"])
        hosts += rate * (1 + header / packet_bytes + len(got))
    metrics = measure(problem, plan, None)
    assert metrics["link_traffic_mbps"] == pytest.approx(traffic)
    assert metrics["host_traffic_mbps"] == pytest.approx(hosts)


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(st.integers(0, 999), st.integers(8, 40), st.integers(0, 3), st.integers(0, 6), st.integers(0, 3))
def test_packets_do_what_is_measured(seed: int, size: int, pods: int, redundancy: int, table: int) -> None:
    drawn = fat(k=4, groups=12, seed=seed, placement="random", table_size=table)
    decision = route_by_source(
        drawn, header_bytes=size, pod_rules=pods, redundancy=redundancy, packet_bytes=100
    )
    assert not len(check(drawn, decision.plan))
    assert decision.plan.headers["header_bytes"].max() <= size
    metrics = measure(drawn, decision.plan, None)
    assert metrics["host_traffic_mbps"] == pytest.approx(decision.proof.objective)
    assert decision.proof.bound <= decision.proof.objective
    require_packets(drawn, decision.plan, 100)


def test_trees_with_pods_of_different_sizes_are_measured_too() -> None:
    problem = Multicast.from_tables(tree(pods=4, edges=3, seed=3))
    for size in (9, 12, 40):
        decision = route_by_source(problem, header_bytes=size, redundancy=4, packet_bytes=200)
        assert not len(check(problem, decision.plan))
        require_packets(problem, decision.plan, 200)


def test_longer_headers_need_fewer_entries_and_copies() -> None:
    problem = fat(k=8, aggregation_copies=2, groups=300, table_size=5, placement="random")
    result = [
        measure(problem, route_by_source(problem, header_bytes=size, pod_rules=8).plan, None)
        for size in (20, 40, 325)
    ]
    entries = [each["edge_entries_mean"] + each["aggregation_entries_mean"] for each in result]
    assert entries[0] > entries[1] > entries[2] == 0
    assert result[0]["overhead_mbps"] > result[2]["overhead_mbps"] == 0
    assert result[2]["redundant_share"] == pytest.approx(0)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 999), st.sampled_from([64, 128]), st.integers(2, 40))
def test_bit_strings_are_counted_link_by_link(seed: int, bits: int, table: int) -> None:
    problem = fat(k=12, aggregation_copies=1, groups=12, seed=seed, placement="random", table_size=table)
    decision = replicate_by_index(problem, string_bits=bits, packet_bytes=100)
    assert not len(check(problem, decision.plan))
    assert measure(problem, decision.plan, None)["host_traffic_mbps"] == pytest.approx(
        decision.proof.objective
    )
    sent, header = set(decision.plan.headers["group"].astype(str)), 12 + bits // 8
    traffic, pod_of = 0.0, problem.wiring.edge_pod
    for group, rate in zip(problem.groups["group"].astype(str), problem.rate_mbps.tolist(), strict=True):
        pods = places(problem)[group]
        edges = {edge: ports for inside in pods.values() for edge, ports in inside.items()}
        source = min(edges)
        members = sum(len(ports) for ports in edges.values())
        if group not in sent:
            for edge, ports in edges.items():
                far = 2 if edge == source else 4 if pod_of[edge] == pod_of[source] else 6
                traffic += rate * far * len(ports)
            continue
        links = 0
        for share in {edge // bits for edge in edges if edge != source}:
            current = {edge for edge in edges if edge // bits == share and edge != source}
            away = {int(pod_of[edge]) for edge in current} - {int(pod_of[source])}
            links += 1 + (len(away) > 0) + len(away) + len(current)
        traffic += rate * (1 + members + links * (1 + header / 100))
    assert measure(problem, decision.plan, None)["link_traffic_mbps"] == pytest.approx(traffic)


def test_edge_tables_limit_bit_strings() -> None:
    problem = fat(groups=40, table_size=6)
    decision = replicate_by_index(problem)
    metrics = measure(problem, decision.plan, None)
    assert 0 < metrics["groups_by_unicast"] < 40
    assert metrics["core_entries_max"] == metrics["aggregation_entries_max"] == 0
    refused = replicate_by_index(problem, options=Options(service="all"))
    assert refused.plan is None
    assert refused.proof.status is Status.INFEASIBLE
    assert "entries, 6 are free" in refused.proof.reasons[0]
    assert len(route_by_source(problem, options=Options(service="all")).plan.headers) == 40


def test_without_headers_links_are_counted_by_packets() -> None:
    problem = fat(groups=20, table_size=5, placement="random")
    plan = store_everywhere(problem).plan
    selected, pod_of, traffic = set(plan.partitions["group"].astype(str)), problem.wiring.edge_pod, 0.0
    for group, rate in zip(problem.groups["group"].astype(str), problem.rate_mbps.tolist(), strict=True):
        pods = places(problem)[group]
        edges = {edge: ports for inside in pods.values() for edge, ports in inside.items()}
        source, several, across = min(edges), len(edges) > 1, len(pods) > 1
        members = sum(len(ports) for ports in edges.values())
        if group in selected:
            links = 1 + several + across + len(pods) - 1 + several * len(edges) + members
        else:
            links = sum(
                (2 if edge == source else 4 if pod_of[edge] == pod_of[source] else 6) * len(ports)
                for edge, ports in edges.items()
            )
        traffic += rate * links
    assert measure(problem, plan, None)["link_traffic_mbps"] == pytest.approx(traffic)


def test_entries_of_headers_are_differences_of_plans() -> None:
    problem = fat(groups=40, k=8, aggregation_copies=2, table_size=9)
    long, short = (route_by_source(problem, header_bytes=n, pod_rules=m).plan for n, m in ((325, 8), (16, 0)))
    assert not len(compare_plans(problem, long, long))
    added = compare_plans(problem, short, long)["add"].sum()
    assert added == short.entries["entries"].sum() > 0
    assert measure(problem, short, long)["rules_changed"] > 0


def test_bad_headers_are_refused_in_one_line() -> None:
    problem = fat()
    with pytest.raises(InputError, match="header_bytes is 8, the headers of this fabric need"):
        route_by_source(fat(k=16, aggregation_copies=2), header_bytes=8)
    plan = route_by_source(problem).plan
    tables = plan.to_tables()

    def refused(**changed: pd.DataFrame) -> str:
        with pytest.raises(PlanRejected) as caught:
            check(problem, SYSTEM.plan.from_tables(problem, tables | changed))
        return str(caught.value)

    headers, rules = tables["headers"].astype({"group": str}), tables["header_rules"]
    assert "must be elmo or bier" in refused(headers=headers.assign(scheme="elm"))
    assert "'x' is no group" in refused(headers=headers.assign(group=["x", *headers["group"][1:]]))
    assert "is said to have 999 bytes" in refused(headers=headers.assign(header_bytes=999.0))
    assert "must have one row" in refused(header_rules=rules.iloc[1:])
    for twice in ([0, *range(len(rules))], [1, *range(1, len(rules))]):
        with pytest.raises(PlanRejected, match="must have one row"):
            check(problem, replace(plan, header_rules=rules.iloc[twice]))
    turned = SYSTEM.plan.from_tables(problem, tables | {"header_rules": rules.iloc[::-1]})
    assert measure(problem, turned, None) == measure(problem, SYSTEM.plan.from_tables(problem, tables), None)
    with pytest.raises(PlanRejected, match="needs both or none"):
        SYSTEM.plan.from_tables(problem, {name: tables[name] for name in tables if name != "headers"})
    large = fat(k=12, aggregation_copies=1)
    by_bits = replicate_by_index(large, string_bits=64).plan.to_tables()
    moved = by_bits["header_rules"].assign(rule=by_bits["header_rules"]["rule"] + 1)
    with pytest.raises(PlanRejected, match="is in another set"):
        check(large, SYSTEM.plan.from_tables(large, by_bits | {"header_rules": moved}))


def test_sharing_tables() -> None:
    """Fewer free entries never make headers shorter than they may be, and never overflow a table."""
    for entries in (0.0, 1.0, 50.0):
        problem = with_tables(
            fat(k=8, aggregation_copies=2, groups=200, placement="random"),
            dict.fromkeys(("edge_entries", "aggregation_entries", "core_entries"), entries),
        )
        decision = route_by_source(problem, header_bytes=20, redundancy=3)
        assert not len(check(problem, decision.plan))
