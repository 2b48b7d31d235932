"""Trees by tables: every design works, and a fat tree by tables counts the same entries."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import planner
from planner.contract.notes import make_with_notes, notes_of
from planner.errors import InputError
from planner.runs.evaluation import evaluate
from planner.scenarios.scenario import Entry
from planner_models.multicast import SYSTEM, Multicast, check
from planner_models.multicast.designs import partitioned
from planner_models.multicast.plan.forwarding import compile_tables, send_packet
from planner_models.multicast.problem import equations, topology
from tests.models.multicast.fabrics import PLANNING, fat, require_distribution, tree

LEAVES, SPINES = ("l0", "l1", "l2"), ("s0", "s1")


@pytest.mark.parametrize("design", PLANNING, ids=lambda design: design.name)
def test_every_design_works_on_a_tree(design: Any) -> None:
    problem = Multicast.from_tables(tree())
    run = evaluate(SYSTEM, problem, Entry(label=design.name, design=design))
    assert run.plan is not None
    assert not len(run.violations)
    again = Multicast.from_tables(problem.to_tables())
    assert not len(check(again, SYSTEM.plan.from_tables(again, run.plan.to_tables())))


def test_a_fat_tree_by_tables_counts_the_same_entries() -> None:
    problem = fat(placement="random", k=4)
    wires = problem.wiring
    tables = problem.to_tables()
    layer_pod = [("core", 0)] * len(wires.cores)
    layer_pod += [("aggregation", pod) for pod in wires.aggregation_pod.tolist()]
    layer_pod += [("edge", pod) for pod in wires.edge_pod.tolist()]
    rows = [(name, *position) for name, position in zip(wires.switches, layer_pod, strict=True)]
    links = [(wires.aggregations[a], wires.cores[c]) for a, c in np.argwhere(wires.up).tolist()]
    held = problem.distribution(1)
    above = wires.cores.append(wires.aggregations)
    holds = np.argwhere(np.vstack([held.core, held.aggregation])).tolist()
    same = Multicast.from_tables(
        tables
        | {
            "fabric": tables["fabric"].assign(kind="tree"),
            "switches": pd.DataFrame(rows, columns=["switch", "layer", "pod"]),
            "links": pd.DataFrame(links, columns=["lower", "upper"]),
            "holds": pd.DataFrame([(above[s], p) for s, p in holds], columns=["switch", "partition"]),
        }
    )
    item, two = (partitioned.partition_addresses(each).plan for each in (problem, same))
    pd.testing.assert_frame_equal(item.entries, two.entries)


def tables(upper: str = "core", lower: str = "edge", entries: int = 512, groups: int = 6) -> dict[str, Any]:
    """Return three leaves with four hosts each, two spines, and groups with a member below every leaf."""
    names = [f"h{leaf[1]}{port}" for leaf, port in itertools.product(LEAVES, range(4))]
    return {
        "fabric": pd.DataFrame(
            {
                "kind": ["tree"],
                "partitions": [1],
                "core_copies": [1],
                "aggregation_copies": [1],
                "core_entries": [entries],
                "aggregation_entries": [7],
                "edge_entries": [entries],
            }
        ),
        "switches": pd.DataFrame(
            {"switch": [*SPINES, *LEAVES], "layer": [upper] * 2 + [lower] * 3, "pod": [0, 0, 0, 1, 2]}
        ),
        "links": pd.DataFrame([*itertools.product(LEAVES, SPINES)], columns=["lower", "upper"]),
        "hosts": pd.DataFrame(
            {"host": names, "switch": np.repeat(LEAVES, 4), "port": np.tile(np.arange(4), 3)}
        ),
        "groups": pd.DataFrame({"group": [f"g{i}" for i in range(groups)], "rate_mbps": 1.0}),
        "members": pd.DataFrame(
            [(f"g{i}", f"h{leaf[1]}{i % 4}") for i in range(groups) for leaf in LEAVES],
            columns=["group", "host"],
        ),
    }


def entries_of(problem: Multicast, design: str, **parameters: Any) -> dict[str, float]:
    run = planner.solve(problem, design=design, **parameters)
    assert run.constraints.met
    return dict(run.plan.entries[["switch", "entries"]].itertuples(index=False))


@pytest.mark.parametrize(("upper", "lower"), [("core", "edge"), ("spine", "leaf"), ("Spine", "ToR")])
def test_every_switch_holds_every_group_that_passes_it(upper: str, lower: str) -> None:
    problem = make_with_notes(lambda: Multicast.from_tables(tables(upper, lower)))
    assert entries_of(problem, "per_switch") == dict.fromkeys([*SPINES, *LEAVES], 6.0)
    assert problem.free_entries.tolist() == [512] * 5, "spines have the numbers of cores"
    (note,) = notes_of(problem)
    assert note.startswith("assumed: two tiers: each of 3 leaves reaches the others over any of 2 spines;")


def test_its_own_tables_make_it_again_without_a_word() -> None:
    problem = Multicast.from_tables(tables())
    again = make_with_notes(lambda: Multicast.from_tables(problem.to_tables()))
    assert notes_of(again) == []
    assert again.free_entries.tolist() == problem.free_entries.tolist()


def test_hosts_by_pod_and_edge_are_below_the_same_leaves() -> None:
    inputs = tables()
    inputs["hosts"] = inputs["hosts"].assign(pod=np.repeat([0, 1, 2], 4), edge=0).drop(columns="switch")
    problem = Multicast.from_tables(inputs)
    assert problem.edge_of_host.tolist() == Multicast.from_tables(tables()).edge_of_host.tolist()
    inputs["hosts"].loc[3, "edge"] = 1
    with pytest.raises(InputError, match="hosts row 4: there is no leaf 1 in pod 0"):
        Multicast.from_tables(inputs)


def test_a_packet_reaches_each_member_once() -> None:
    problem = Multicast.from_tables(tables())
    plan = planner.solve(problem, design="partitioned").plan
    compiled = compile_tables(problem, plan)
    for group, source in itertools.product(range(6), (0, 5, 11)):
        delivery = send_packet(problem, plan, compiled, group=group, source=source)
        reached = {(leaf, group % 4) for leaf in range(3)} - {(source // 4, source % 4)}
        assert set(delivery.copies) - {(source // 4, source % 4)} == reached
        assert set(delivery.copies.values()) == {1}


@pytest.mark.slow
@pytest.mark.parametrize("design", [field.name for field in SYSTEM.designs])
def test_every_design_keeps_tables_that_are_too_small(design: str) -> None:
    problem = Multicast.from_tables(tables(entries=3))
    run = planner.solve(problem, design=design, time_limit_s=5)
    if design == "bound":
        assert run.proof.bound is not None
        return
    assert run.plan is not None
    if design != "per_switch":
        assert run.constraints.met
    assert run.metrics["core_entries_max"] is None


def test_what_is_no_leaf_spine_is_refused() -> None:
    inputs = tables()
    inputs["links"] = inputs["links"].iloc[1:]
    with pytest.raises(InputError, match="leaf 'l0' must be linked to spine 's0'"):
        Multicast.from_tables(inputs)
    inputs = tables(upper="aggregation")
    inputs["switches"]["pod"] = [0, 1, 0, 1, 1]
    with pytest.raises(InputError, match="there is no core switch, which several pods need"):
        Multicast.from_tables(inputs)


def test_a_failed_spine_loses_what_it_alone_held() -> None:
    problem = Multicast.from_tables(tables())
    lost = {}
    for design in ("partitioned", "per_switch"):
        tried = planner.failures(problem, design=design, kinds="switch").to_frame()
        lost[design] = len(tried)
    assert lost == {"partitioned": 5, "per_switch": 5}
    explained = planner.explain(problem, design="partitioned")
    assert explained.explanation.sections[0].frame["layer"].tolist() == ["aggregation", "edge"]


@given(st.integers(1, 8), st.sampled_from(["ab", "standard", "portland"]), st.data())
def test_fat_trees_reach_every_pod_with_every_partition(
    half: int, kind: topology.Kind, data: st.DataObject
) -> None:
    ra = data.draw(st.sampled_from([copies for copies in range(1, half + 1) if half % copies == 0]))
    wires = topology.fat_tree(kind, 2 * half)
    assert (wires.up.sum(axis=0) == 2 * half).all()  # a core has as many ports as there are pods
    assert (wires.up.sum(axis=1) == half).all()
    require_distribution(wires, topology.distribute_addresses(kind, 2 * half, ra), ra**2, ra)


def test_the_kinds_of_fat_tree_differ_in_how_pods_connect() -> None:
    patterns = {
        kind: len(np.unique(np.sort(topology.connected_cores(kind, 8), axis=2), axis=0))
        for kind in ("standard", "ab", "portland")
    }
    assert patterns == {"standard": 1, "ab": 2, "portland": 4}


@given(st.integers(1, 12), st.sampled_from(["ab", "standard", "portland"]), st.data())
def test_every_partition_is_replicated_as_said(half: int, kind: topology.Kind, data: st.DataObject) -> None:
    k = 2 * half
    layout = data.draw(st.sampled_from(equations.list_layouts(k)))
    ra = layout.aggregation_copies
    assert not equations.find_layout_faults(k, layout.partitions, layout.core_copies, ra)
    core = topology.core_partition(k, ra, kind)
    assert (np.bincount(core) == layout.core_copies).all()
    assert len(np.bincount(core)) == layout.partitions
    held = topology.aggregation_partitions(kind, k, ra)
    assert (held.sum(axis=1) == ra).all()  # in every pod
    assert (held.sum(axis=2) == 2 * layout.partitions * ra // k).all()  # Np, equal shares
    # each pod connects once to each core
    assert (np.sort(topology.connected_cores(kind, k).reshape(k, -1)) == np.arange(half**2)).all()
