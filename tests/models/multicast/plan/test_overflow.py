"""Groups without an entry: flooding and slow path against packets that are followed one by one."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.contract.proof import Status
from planner.errors import PlanRejected
from planner.options import Options
from planner_models import multicast
from planner_models.multicast import Channels, Multicast, check, measure
from planner_models.multicast.designs import full_tables
from planner_models.multicast.plan import forwarding
from tests.models.multicast.fabrics import fat, tree

DESIGNS = ("flooding", "slow_path")


def solve(problem: Multicast, design: str, choose: str = "arrival") -> Channels:
    plan = multicast.SYSTEM.design(design).run(problem, parameters={"choose": choose}).plan
    assert plan is not None
    return plan


def small(seed: int, *, table_size: int = 4, is_tree: bool = False, **more: Any) -> Multicast:
    if is_tree:
        tables = tree(seed=seed)
        sizes = {f"{layer}_entries": float(table_size) for layer in ("core", "aggregation", "edge")}
        return Multicast.from_tables(tables | {"fabric": tables["fabric"].assign(**sizes)})
    return fat(seed=seed, groups=20, table_size=table_size, **more)


class Fabric:
    """The same problem in plain Python: who stores which group, and what a packet does at each switch."""

    def __init__(self, problem: Multicast, plan: Channels) -> None:
        self.problem = problem
        wires = problem.wiring
        self.pod_of = dict(zip(wires.edges, wires.edge_pod.tolist(), strict=True))
        self.edges_of: dict[int, list[str]] = {}
        for edge, pod in self.pod_of.items():
            self.edges_of.setdefault(pod, []).append(str(edge))
        self.above: dict[int, list[str]] = {}
        for switch, pod in zip(wires.aggregations, wires.aggregation_pod.tolist(), strict=True):
            self.above.setdefault(pod, []).append(str(switch))
        names = wires.edges[problem.edge_of_host].astype(str)
        self.edge_of = dict(zip(problem.hosts["host"].astype(str), names, strict=True))
        self.members: dict[str, set[str]] = {}
        for group, host in problem.members[["group", "host"]].astype(str).itertuples(index=False):
            self.members.setdefault(group, set()).add(host)
        self.rate = dict(zip(problem.groups["group"].astype(str), problem.rate_mbps.tolist(), strict=True))
        everyone = set(problem.hosts["host"].astype(str))
        self.domain = dict.fromkeys(self.rate, everyone)
        if problem.tenants is not None:
            of: dict[str, set[str]] = {}
            for tenant, host in problem.tenants[["tenant", "host"]].astype(str).itertuples(index=False):
                of.setdefault(tenant, set()).add(host)
            tenants = problem.groups[["group", "tenant"]].astype(str)
            self.domain = {group: of[tenant] for group, tenant in tenants.itertuples(index=False)}
        assert plan.overflow is not None
        rows = plan.overflow.astype(str).itertuples(index=False)
        self.handling = {(switch, group): handling for switch, group, handling in rows}

    def edges(self, group: str) -> set[str]:
        return {self.edge_of[host] for host in self.members[group]}

    def floods(self, switch: str, group: str, *, is_stored: bool) -> bool:
        return not is_stored or self.handling.get((switch, group)) == "flood"

    def copies(self, group: str, way: dict[int, str], core: str | None) -> list[tuple[str, str]]:
        """Return the copies of a packet on links (from, to) down, for given aggregation switches and core."""
        edges = self.edges(group)
        home = self.pod_of[min(edges, key=list(self.pod_of).index)]
        pods = {self.pod_of[edge] for edge in edges}
        floods_any = any(h == "flood" for (_, g), h in self.handling.items() if g == group)
        links: list[tuple[str, str]] = []
        reached: set[str] = set()
        if len(edges) == 1:
            reached = set(edges)
        else:
            entered = {home}
            if core is not None:
                targets = pods
                if floods_any and self.floods(core, group, is_stored=True):
                    targets = pods | {self.pod_of[self.edge_of[host]] for host in self.domain[group]}
                entered |= targets
                links += [(core, way[pod]) for pod in targets if pod != home]
            for pod in entered:
                targets_below = {edge for edge in edges if self.pod_of[edge] == pod}
                if floods_any and self.floods(way[pod], group, is_stored=pod in pods):
                    hosts = {self.edge_of[host] for host in self.domain[group]}
                    targets_below |= {edge for edge in hosts if self.pod_of[edge] == pod}
                links += [(way[pod], edge) for edge in targets_below]
                reached |= targets_below
        for edge in reached:
            hosts = {host for host in self.members[group] if self.edge_of[host] == edge}
            if self.floods(edge, group, is_stored=edge in edges):
                hosts |= {host for host in self.domain[group] if self.edge_of[host] == edge}
            links += [(edge, host) for host in hosts]
        return links

    def ways(self, group: str) -> list[tuple[dict[int, str], str | None]]:
        """Return all choices of an aggregation switch in each pod, and of a core where one is passed."""
        pods = {self.pod_of[edge] for edge in self.edges(group)}
        cores: list[str | None] = list(self.problem.wiring.cores.astype(str)) if len(pods) > 1 else [None]
        choices = product(*(self.above[pod] for pod in sorted(self.above)))
        return [(dict(zip(sorted(self.above), way, strict=True)), core) for way in choices for core in cores]


@pytest.mark.parametrize("is_tree", [False, True])
@pytest.mark.parametrize("choose", ["arrival", "value"])
@pytest.mark.parametrize("seed", range(3))
def test_flooded_packets_reach_what_packets_followed_one_by_one_do(
    seed: int, choose: str, is_tree: bool
) -> None:
    problem = small(seed, is_tree=is_tree)
    plan = solve(problem, "flooding", choose)
    fabric = Fabric(problem, plan)
    host_mbps = sum(fabric.rate.values())  # what sources send
    overhead = edge_overhead = 0.0
    for group, rate in fabric.rate.items():
        ways = fabric.ways(group)
        for way, core in ways:
            copies = fabric.copies(group, way, core)
            to_hosts = [host for _, host in copies if host in fabric.edge_of]
            assert fabric.members[group] <= set(to_hosts)
            assert len(set(to_hosts)) == len(to_hosts)
            share = rate / len(ways)
            host_mbps += share * len(to_hosts)
            overhead += share * len(set(to_hosts) - fabric.members[group])
            to_edges = [edge for _, edge in copies if edge in fabric.pod_of]
            edge_overhead += share * len([edge for edge in to_edges if edge not in fabric.edges(group)])
    metrics = measure(problem, plan, None)
    assert metrics["host_traffic_mbps"] == pytest.approx(host_mbps)
    assert metrics["overhead_mbps"] == pytest.approx(overhead)
    assert metrics["edge_link_overhead_mbps"] == pytest.approx(edge_overhead)
    assert metrics["groups_by_unicast"] == 0
    assert not len(check(problem, plan))


@pytest.mark.parametrize("is_tree", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_processors_drop_what_packets_followed_one_by_one_miss(seed: int, is_tree: bool) -> None:
    problem = small(seed, is_tree=is_tree)
    problem = problem.with_entries(problem.fabric.assign(processor_mbps=20.0), problem.switches)
    plan = solve(problem, "slow_path")
    fabric = Fabric(problem, plan)
    load = dict.fromkeys(problem.wiring.switches.astype(str), 0.0)
    for (switch, group), handling in fabric.handling.items():
        assert handling == "slow path"
        layer = problem.wiring.layers[problem.wiring.switches.get_loc(switch)]
        same = {
            "core": len(problem.wiring.cores),
            "aggregation": next((len(a) for a in fabric.above.values() if switch in a), 0),
            "edge": 1,
        }[layer]
        load[switch] += fabric.rate[group] / same
    assert max(load.values()) > 20
    kept = {switch: min(1.0, 20.0 / mbps) if mbps else 1.0 for switch, mbps in load.items()}

    def passes(switch: str, group: str) -> float:
        return kept[switch] if (switch, group) in fabric.handling else 1.0

    lost = 0.0
    for group, rate in fabric.rate.items():
        edges, ways = fabric.edges(group), fabric.ways(group)
        home = fabric.pod_of[min(edges, key=list(fabric.pod_of).index)]
        for way, core in ways:
            for host in fabric.members[group]:
                edge = fabric.edge_of[host]
                path = [edge]
                if len(edges) > 1:
                    path.append(way[home])
                if fabric.pod_of[edge] != home:
                    assert core is not None
                    path += [core, way[fabric.pod_of[edge]]]
                lost += rate / len(ways) * (1 - float(np.prod([passes(switch, group) for switch in path])))
    metrics = measure(problem, plan, None)
    assert lost > 0
    assert metrics["lost_mbps"] == pytest.approx(lost)
    assert metrics["processor_mbps_max"] == pytest.approx(max(load.values()))
    assert metrics["overloaded_processors"] == sum(mbps > 20 for mbps in load.values())
    assert metrics["host_traffic_mbps"] == pytest.approx(problem.rate_mbps @ (1 + problem.member_counts))


@pytest.mark.parametrize("design", DESIGNS)
def test_packets_through_the_compiled_tables_agree(design: str) -> None:
    problem = small(1)
    plan = solve(problem, design)
    tables = forwarding.compile_tables(problem, plan)
    assert (tables.entries() == plan.entries["entries"].to_numpy()).all()
    fabric = Fabric(problem, plan)
    first = problem.host_of[np.searchsorted(problem.group_of, np.arange(len(problem.groups)))]
    edge, port = problem.edge_of_host, problem.hosts["port"].to_numpy(int)
    names = problem.hosts["host"].astype(str).tolist()
    at = {names[row]: (int(edge[row]), int(port[row])) for row in range(len(names))}
    for row, group in enumerate(problem.group_names.astype(str)):
        sent = forwarding.send_packet(problem, plan, tables, group=row, source=int(first[row]))
        possible = [
            {at[host] for _, host in fabric.copies(group, way, core) if host in at}
            for way, core in fabric.ways(group)
        ]
        assert set(sent.copies) in possible
        assert set(sent.copies.values()) == {1}


@settings(max_examples=4)
@given(seed=st.integers(0, 1000), layer=st.sampled_from(["core", "aggregation", "edge"]))
def test_no_other_entries_of_a_switch_flood_less(seed: int, layer: str) -> None:
    problem = small(seed, table_size=6)
    best = solve(problem, "flooding", "value")
    assert best.overflow is not None
    cost = measure(problem, best, None)["host_traffic_mbps"]
    for choose in ("arrival", "value"):
        decision = full_tables.flood_without_entry(problem, choose=choose)  # type: ignore[arg-type]
        assert decision.proof.bound == pytest.approx(cost)
    assert decision.proof.status is Status.OPTIMAL
    switch = next(
        name for name, of in zip(problem.wiring.switches, problem.wiring.layers, strict=True) if of == layer
    )
    # all other sets of groups of the same size at one switch
    is_here = (best.overflow["switch"] == switch).to_numpy()
    without = best.overflow[~is_here]
    all_out = full_tables.flood_without_entry(
        problem.with_entries(problem.fabric.assign(**{f"{layer}_entries": 0.0}), problem.switches)
    ).plan
    assert all_out is not None
    assert all_out.overflow is not None
    groups = all_out.overflow.loc[all_out.overflow["switch"] == switch, "group"].astype(str).tolist()
    for out in list(combinations(groups, int(is_here.sum())))[:40]:
        rows = pd.DataFrame({"switch": switch, "group": list(out), "handling": "flood"})
        table = pd.concat([without.astype(str), rows], ignore_index=True)
        plan = multicast.SYSTEM.plan.from_tables(problem, {"partitions": best.partitions, "overflow": table})
        assert not len(check(problem, plan))
        assert measure(problem, plan, None)["host_traffic_mbps"] >= cost * (1 - 1e-9)


def test_service_for_all_is_refused_only_where_the_least_load_of_a_processor_is_too_much() -> None:
    problem = small(0)
    least = solve(problem, "slow_path", "value")
    largest = measure(problem, least, None)["processor_mbps_max"]
    assert largest is not None
    for limit, is_served in ((largest, True), (largest * 0.99, False)):
        limited = problem.with_entries(problem.fabric.assign(processor_mbps=limit), problem.switches)
        decision = full_tables.forward_by_processor(limited, options=Options(service="all"))
        assert (decision.plan is not None) == is_served
        if not is_served:
            assert decision.proof.status is Status.INFEASIBLE
            assert "has to forward" in decision.proof.reasons[0]


@pytest.mark.parametrize("design", DESIGNS)
def test_plans_survive_their_tables(design: str) -> None:
    problem = small(2)
    plan = solve(problem, design)
    again = multicast.SYSTEM.plan.from_tables(problem, plan.to_tables())
    assert measure(problem, again, None) == measure(problem, plan, None)


def test_spoiled_tables_are_refused() -> None:
    problem = small(0)
    plan = solve(problem, "flooding")
    overflow = plan.overflow
    assert overflow is not None
    overflow = overflow.astype(str)
    stored = overflow.iloc[0]
    alone = next(
        str(group)
        for group in problem.group_names
        if not ((overflow["switch"] == stored["switch"]) & (overflow["group"] == group)).any()
        and group not in set(problem.members.loc[problem.members["host"].isin(["h0", "h1"]), "group"])
    )
    for table, message in (
        (overflow.assign(group="nobody"), "'nobody' is no group"),
        (overflow.assign(switch="nowhere"), "'nowhere' is no switch"),
        (pd.concat([overflow, overflow.iloc[:1]]), "twice"),
        (pd.DataFrame([{"switch": "edge-0-0", "group": alone, "handling": "flood"}]), "needs no entry"),
    ):
        with pytest.raises(PlanRejected, match=message):
            check(problem, replace(plan, overflow=table))
    shared = pd.DataFrame(
        {"switch": ["edge-0-0"], "meta_group": [0.0], "group": [str(problem.group_names[0])]}
    )
    with pytest.raises(PlanRejected, match="meta_groups"):
        check(problem, replace(plan, meta_groups=shared))
