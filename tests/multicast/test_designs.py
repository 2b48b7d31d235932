"""Whole designs: plans that hold, bounds that bound, packets that arrive, bad plans refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pyomo.environ as pyo
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.errors import InputError, PlanRejected
from planner.run import evaluate
from planner.scenario import Entry
from planner_models.multicast import (
    SYSTEM,
    Channels,
    Multicast,
    addresses,
    check,
    designs,
    exact,
    generate,
    measure,
    select,
)


def small(**parameters: Any) -> Multicast:
    known: dict[str, Any] = {"k": 4, "aggregation_copies": 1, "tenants": 3, "groups": 40, "table_size": 12}
    return generate.datacenter(**(known | parameters))


PLANNING = tuple(design for design in SYSTEM.designs if design.name != "bound")


@pytest.mark.parametrize("design", PLANNING, ids=lambda design: design.name)
@pytest.mark.parametrize("placement", ["near", "random"])
def test_every_design_survives_the_engine(design: Any, placement: str) -> None:
    problem = small(placement=placement, k=8, aggregation_copies=2, groups=150, table_size=20)
    run = evaluate(SYSTEM, problem, Entry(label=design.name, design=design))
    assert run.plan is not None
    assert not len(run.violations)
    groups = run.metrics["hardware_groups"] + run.metrics["unicast_groups"]
    assert groups == 150
    tables = SYSTEM.plan_from_tables(problem, run.plan.to_tables())
    assert measure(problem, tables, run.plan)["rules_changed"] == 0


def test_coordination_pays() -> None:
    problem = small(k=8, aggregation_copies=2, groups=300, table_size=30)
    worth = {design.name: design.decide(problem).proof.objective for design in PLANNING}
    assert worth["partitioned_aggregated"] < worth["partitioned"] < worth["per_switch"]


def test_choosing_by_value_beats_first_come_and_equals_the_formal_model() -> None:
    problem = small(groups=25, table_size=6)
    value = designs.partitioned(problem)
    first = designs.partitioned(problem, choose="arrival")
    assert value.proof.objective < first.proof.objective
    reference = SYSTEM.formulation(problem)
    pyo.SolverFactory("appsi_highs").solve(reference)
    assert pyo.value(reference.host_traffic) == pytest.approx(value.proof.objective)


def test_exact_sharing_is_at_least_as_good() -> None:
    problem = small(groups=60, k=8, aggregation_copies=1, table_size=9)
    worth = {
        method: designs.partitioned_aggregated(problem, method=method).proof
        for method in ("agglomerative", "algorithm2", "optimum")
    }
    best = worth["optimum"].objective
    assert best <= worth["agglomerative"].objective + 1e-6
    assert best <= worth["algorithm2"].objective + 1e-6
    assert worth["optimum"].bound <= best


def test_first_overflow_is_exact() -> None:
    problem = small(groups=80)
    partition = select.in_turn(problem, 1)
    room = select.room(problem, partition, 1)
    most = select.first_overflow(room)
    assert most is not None
    counts = np.asarray(room.takes[:, :most].sum(axis=1)).ravel()
    more = np.asarray(room.takes[:, : most + 1].sum(axis=1)).ravel()
    assert (counts <= room.free).all()
    assert (more > room.free).any()


# --- packets ------------------------------------------------------------------------------


def delivered(
    problem: Multicast, plan: Channels, group: str, core: int | None
) -> dict[tuple[int, int, int], int]:
    """Copies at each (pod, edge, port) of a packet of the group: down from a core, by table entries."""
    row = plan.partitions.set_index("group").loc[group]
    ra, part = int(row["copies"]), int(row["partition"])
    place = problem.members.astype(str).merge(problem.hosts, on="host")
    mine = place[place["group"] == group]
    held = addresses.aggregation_partitions(problem.kind, problem.k, ra)
    wires = addresses.cores_of(problem.kind, problem.k)
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


@settings(max_examples=6, deadline=None)
@given(st.integers(0, 99), st.sampled_from([(4, 1), (8, 2)]), st.sampled_from(PLANNING))
def test_packets_reach_every_member_once_and_overhead_is_what_others_get(
    seed: int, tree: tuple[int, int], design: Any
) -> None:
    k, ra = tree
    problem = small(k=k, aggregation_copies=ra, groups=20, table_size=6, seed=seed, placement="random")
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
            got = delivered(problem, plan, name, core)
            assert set(got.values()) == {1}
            assert wanted <= set(got)
        extra += rate[name] * len(set(got) - wanted)
    assert measure(problem, plan, None)["overhead_mbps"] == pytest.approx(extra)


# --- bad plans and bad input --------------------------------------------------------------


def test_spoiled_plans_are_refused() -> None:
    problem = small()
    plan = designs.partitioned_aggregated(problem).plan
    assert len(plan.meta_groups)
    spoiled = [
        replace(plan, entries=plan.entries.assign(entries=plan.entries["entries"] + 1)),
        replace(plan, entries=plan.entries.iloc[1:]),
        replace(plan, meta_groups=plan.meta_groups.iloc[1:]),
        replace(plan, meta_groups=plan.meta_groups.assign(group="nobody")),
        replace(plan, partitions=plan.partitions.assign(partition=99.0)),
        replace(plan, partitions=plan.partitions.assign(copies=3.0)),
        replace(plan, partitions=pd.concat([plan.partitions, plan.partitions])),
    ]
    for each in spoiled:
        with pytest.raises(PlanRejected):
            check(problem, each)


def test_full_tables_are_reported_with_their_numbers() -> None:
    wide = small(table_size=1000)
    plan = designs.partitioned(wide, choose="arrival").plan
    tight = small(table_size=5)
    broken = check(tight, plan)
    assert set(broken.frame["limit"]) == {"table"}
    assert (broken.frame["amount"] > 5).all()


@pytest.mark.parametrize(
    ("table", "column", "value", "words"),
    [
        ("fabric", "k", 5.0, "must be even"),
        ("fabric", "partitions", 3.0, "must be k^2/4"),
        ("fabric", "core_copies", 2.0, "must be core_copies"),
        ("fabric", "aggregation_copies", 1.5, "must be whole"),
        ("fabric", "edge_entries", 0.0, "must be at least 1"),
        ("fabric", "kind", "fat", "must be one of ab, standard, portland, tree"),
        ("members", "host", "h999", "no host of the fabric"),
        ("members", "group", "g999", "in no row of groups"),
        ("hosts", "pod", 9.0, "must be whole and below 4"),
        ("hosts", "port", 0.0, "another host has the same port"),
    ],
)
def test_bad_input_is_one_clear_line(table: str, column: str, value: object, words: str) -> None:
    tables = small().to_tables()
    frame = tables[table].astype({column: object})
    frame.loc[1 if table != "fabric" else 0, column] = value
    with pytest.raises(InputError) as error:
        Multicast.from_tables(tables | {table: frame})
    assert any(words in fault for fault in error.value.faults)


def test_a_group_without_members_is_named() -> None:
    tables = small().to_tables()
    members = tables["members"][tables["members"]["group"] != "g7"]
    with pytest.raises(InputError, match="group 'g7' has no members"):
        Multicast.from_tables(tables | {"members": members})


def test_hosts_may_be_left_out() -> None:
    problem = small()
    tables = problem.to_tables()
    del tables["hosts"]
    assert Multicast.from_tables(tables).at_edge[2].tolist() == problem.at_edge[2].tolist()


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 999))
def test_no_choice_of_groups_and_no_sharing_beats_the_bound(seed: int) -> None:
    problem = small(groups=6, table_size=2, seed=seed, placement="random")
    tables = problem.to_tables()
    wide = tables["fabric"].assign(core_entries=99.0, aggregation_entries=99.0)
    problem = Multicast.from_tables(tables | {"fabric": wide})
    edge, group, masks = problem.at_edge
    rate, members = problem.rate_mbps, problem.member_counts
    best = float("inf")
    for chosen in range(2**6):
        kept = np.array([bool(chosen >> g & 1) for g in range(6)])
        worth = float((rate * np.where(kept, 1 + members, 2 * members)).sum())
        for switch in np.unique(edge):
            here = (edge == switch) & kept[group]
            if here.any():
                ports, rates = masks[here].tolist(), rate[group[here]].tolist()
                worth += exact.brute_force(ports, rates, 2)
        best = min(best, worth)
    assert designs.least_mbps(problem) <= best + 1e-9
    assert best <= designs.partitioned_aggregated(problem, method="optimum").proof.objective + 1e-9


def test_plans_made_elsewhere() -> None:
    problem = small()
    row = {"group": ["g1"], "partition": [2.0], "copies": [1.0]}
    plan = SYSTEM.plan_from_tables(problem, {"partitions": pd.DataFrame(row)})
    assert not len(check(problem, plan))
    assert measure(problem, plan, None)["hardware_groups"] == 1
    with pytest.raises(PlanRejected, match="there are 4"):
        SYSTEM.plan_from_tables(problem, {"partitions": pd.DataFrame(row | {"partition": [9.0]})})
    with pytest.raises(PlanRejected, match="no group"):
        SYSTEM.plan_from_tables(problem, {"partitions": pd.DataFrame(row | {"group": ["nobody"]})})
    with pytest.raises(PlanRejected, match="no table 'partitions'"):
        SYSTEM.plan_from_tables(problem, {})


def test_a_fabric_without_ports_is_one_clear_line() -> None:
    tables = small().to_tables()
    del tables["hosts"]
    with pytest.raises(InputError, match="column 'k' is missing"):
        Multicast.from_tables(tables | {"fabric": tables["fabric"].drop(columns="k")})


@pytest.mark.parametrize("size", [6, 12, 40])
def test_no_design_beats_the_bound(size: int) -> None:
    problem = small(groups=60, k=8, table_size=size, aggregation_copies=2)
    proven = designs.bound(problem)
    assert proven.plan is None
    for design in PLANNING[:3]:
        assert design.decide(problem).proof.objective >= proven.proof.bound - 1e-6
    integral = designs.partitioned_aggregated(problem).proof
    assert proven.proof.bound <= integral.bound + 1e-6
    if size == 40:  # room for all
        assert proven.proof.bound == pytest.approx(integral.objective)


def test_sharing_goes_on_from_the_previous_plan() -> None:
    problem = crowded()
    first = designs.partitioned_aggregated(problem)
    tables = problem.to_tables()
    gone = problem.groups["group"].iloc[::40].tolist()
    left = Multicast.from_tables(
        tables
        | {
            name: tables[name][~tables[name]["group"].astype(str).isin(gone)].reset_index(drop=True)
            for name in ("groups", "members")
        }
    )
    sticky = designs.partitioned_aggregated(left, keep=1.0, previous=first)
    anew = designs.partitioned_aggregated(left)
    assert not len(check(left, sticky.plan))
    assert sticky.proof.objective >= anew.proof.objective - 1e-6

    def entries(plan: Channels) -> set[tuple[str, frozenset[str]]]:
        rows = plan.meta_groups.astype({"switch": str, "group": str})
        rows = rows[~rows["group"].isin(gone)]
        return {
            (switch, frozenset(part["group"])) for (switch, _), part in rows.groupby(["switch", "meta_group"])
        }

    before = entries(first.plan)
    assert len(before & entries(sticky.plan)) > len(before & entries(anew.plan))


def crowded() -> Multicast:
    """Edge switches of 8 ports with more port sets than entries."""
    problem = small(k=16, aggregation_copies=2, groups=400, tenants=10, largest_tenant=100, sizes="uniform")
    return with_tables(problem, {"core_entries": 400.0, "aggregation_entries": 400.0, "edge_entries": 20.0})


def with_tables(problem: Multicast, fabric: dict[str, float]) -> Multicast:
    return Multicast.from_tables(problem.to_tables() | {"fabric": problem.fabric.assign(**fabric)})


@pytest.mark.parametrize("share", ["edge", "aggregation", "both"])
@pytest.mark.parametrize("method", ["agglomerative", "algorithm2"])
def test_overhead_at_both_layers_is_recounted_from_the_members(share: str, method: str) -> None:
    problem = with_tables(
        small(k=8, aggregation_copies=2, groups=150, placement="random"),
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
        assert run.metrics["hardware_groups"] == 150


def test_congestion_is_for_the_printed_heuristic() -> None:
    problem = crowded()
    linear = designs.partitioned_aggregated(problem, method="algorithm2")
    convex = designs.partitioned_aggregated(problem, method="algorithm2", port_mbps=200.0)
    assert not len(check(problem, convex.plan))
    assert convex.plan.meta_groups["meta_group"].tolist() != linear.plan.meta_groups["meta_group"].tolist()
    with pytest.raises(InputError, match="port_mbps"):
        designs.partitioned_aggregated(problem, port_mbps=200.0)
