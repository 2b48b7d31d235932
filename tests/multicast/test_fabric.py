"""Trees by tables, address distribution on them, tables of single switches, other traffic, bad input."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.errors import InputError
from planner.run import evaluate
from planner.scenario import Entry
from planner.table_files import read_tables, write_table
from planner_models.multicast import (
    SYSTEM,
    Multicast,
    addresses,
    allocation,
    check,
    designs,
    fabric,
)
from tests.multicast.fabrics import PLANNING, fat, tree

# --- distribution -------------------------------------------------------------------------


def require_distribution(
    wires: fabric.Wiring, held: addresses.Distribution, core_copies: int, aggregation_copies: int
) -> None:
    """Exact replication, equal shares, and a path down from every core of a partition into every pod."""
    assert (held.core.sum(axis=0) == core_copies).all()
    assert np.ptp(held.core.sum(axis=1)) <= 1
    for pod in range(wires.pods):
        mine = held.aggregation[wires.aggregation_pod == pod]
        assert (mine.sum(axis=0) == aggregation_copies).all()
        assert np.ptp(mine.sum(axis=1)) <= 1
    for part in range(held.partitions):
        graph = nx.Graph()
        for core in np.flatnonzero(held.core[:, part]).tolist():
            for switch in np.flatnonzero(wires.up[:, core] & held.aggregation[:, part]).tolist():
                graph.add_edge(("core", core), ("pod", int(wires.aggregation_pod[switch])))
                graph.add_edge(("switch", switch), ("core", core))
            met = {pod for kind, pod in graph[("core", core)] if kind == "pod"}
            assert met == set(range(wires.pods))
        for switch in np.flatnonzero(held.aggregation[:, part]).tolist():
            assert ("switch", switch) in graph


@given(st.integers(1, 8), st.sampled_from(["ab", "standard", "portland"]), st.data())
def test_fat_trees_reach_every_pod_with_every_partition(
    half: int, kind: addresses.Kind, data: st.DataObject
) -> None:
    ra = data.draw(st.sampled_from([copies for copies in range(1, half + 1) if half % copies == 0]))
    wires = fabric.fat_tree(kind, 2 * half)
    assert (wires.up.sum(axis=0) == 2 * half).all()  # a core has as many ports as there are pods
    assert (wires.up.sum(axis=1) == half).all()
    require_distribution(wires, addresses.distributed(kind, 2 * half, ra), ra**2, ra)


def test_the_kinds_of_fat_tree_differ_in_how_pods_connect() -> None:
    patterns = {
        kind: len(np.unique(np.sort(addresses.cores_of(kind, 8), axis=2), axis=0))
        for kind in ("standard", "ab", "portland")
    }
    assert patterns == {"standard": 1, "ab": 2, "portland": 4}


@settings(max_examples=10, deadline=None)
@given(st.integers(2, 4), st.integers(2, 4), st.integers(1, 3), st.integers(1, 6), st.integers(0, 99))
def test_trees_by_constraint_programming(
    pods: int, switches: int, copies: int, partitions: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    pod = np.repeat(np.arange(pods), switches)
    cores = 2 * switches
    up = rng.random((len(pod), cores)) < 0.6
    wires = fabric.Wiring(
        cores=pd.Index([f"c{i}" for i in range(cores)]),
        aggregations=pd.Index([f"a{i}" for i in range(len(pod))]),
        edges=pd.Index([f"e{i}" for i in range(pods)]),
        aggregation_pod=pod,
        edge_pod=np.arange(pods),
        up=up,
    )
    try:
        held = allocation.allocated(
            wires, partitions=partitions, core_copies=copies, aggregation_copies=min(copies, switches)
        )
    except InputError as error:
        held, faults = None, " ".join(error.faults)
    if held is None:
        assert "there is none" in faults or "no link to pod" in faults
    else:
        require_distribution(wires, held, copies, min(copies, switches))
        assert not allocation.unreached(wires, held)


def test_constraint_programming_finds_a_distribution_where_algorithm_1_does() -> None:
    for kind in ("ab", "standard", "portland"):
        wires = fabric.fat_tree(kind, 8)
        held = allocation.allocated(wires, partitions=4, core_copies=4, aggregation_copies=2)
        require_distribution(wires, held, 4, 2)


def test_an_impossible_distribution_is_one_clear_line() -> None:
    with pytest.raises(InputError, match="aggregation_copies is 4, a pod has 3 aggregation switches"):
        Multicast.from_tables(tree(aggregation_copies=4))
    with pytest.raises(InputError, match="core_copies is 7, there are 6 cores"):
        Multicast.from_tables(tree(core_copies=7))
    with pytest.raises(InputError, match="within reach of every pod: there is none"):
        allocation.allocated(
            fabric.fat_tree("standard", 4), partitions=4, core_copies=1, aggregation_copies=2
        )


# --- trees in the system ------------------------------------------------------------------


@pytest.mark.parametrize("design", PLANNING, ids=lambda design: design.name)
def test_every_design_works_on_a_tree(design: Any) -> None:
    problem = Multicast.from_tables(tree())
    run = evaluate(SYSTEM, problem, Entry(label=design.name, design=design))
    assert run.plan is not None
    assert not len(run.violations)
    again = Multicast.from_tables(problem.to_tables())
    assert not len(check(again, SYSTEM.plan_from_tables(again, run.plan.to_tables())))


def test_a_fat_tree_by_tables_counts_the_same_entries() -> None:
    problem = fat(placement="random", k=4)
    wires = problem.wiring
    tables = problem.to_tables()
    layer_pod = [("core", 0)] * len(wires.cores)
    layer_pod += [("aggregation", pod) for pod in wires.aggregation_pod.tolist()]
    layer_pod += [("edge", pod) for pod in wires.edge_pod.tolist()]
    rows = [(name, *place) for name, place in zip(wires.switches, layer_pod, strict=True)]
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
    one, two = (designs.partitioned(each).plan for each in (problem, same))
    pd.testing.assert_frame_equal(one.entries, two.entries)


def test_single_switches_may_have_other_tables() -> None:
    problem = fat()
    tables = problem.to_tables()
    own = pd.DataFrame({"switch": ["edge-0-0", "core-1"], "entries": [5.0, 12.0], "occupied": [2.0, 4.0]})
    tight = Multicast.from_tables(tables | {"switches": own})
    free = pd.Series(tight.free_entries, index=tight.wiring.switches)
    assert free[["edge-0-0", "core-1", "core-0"]].tolist() == [3, 8, 12]
    plan = designs.partitioned(problem, choose="arrival").plan
    broken = check(tight, plan)
    assert set(broken.frame["where"]) <= {"edge-0-0", "core-1"}
    assert "edge-0-0" in set(broken.frame["where"])
    for design in PLANNING:
        assert not len(check(tight, design.decide(tight).plan))


def test_other_traffic_is_at_its_port() -> None:
    tables = fat().to_tables()
    rows = pd.DataFrame(
        {
            "upper": ["edge-0-1", "core-0", "aggregation-1-0"],
            "lower": ["h3", "aggregation-0-0", "edge-1-1"],
            "mbps": [7.0, 1.0, 2.0],
        }
    )
    problem = Multicast.from_tables(tables | {"background": rows})
    assert problem.port_background_mbps[1].tolist() == [0.0, 7.0]
    assert problem.port_background_mbps.sum() == 7.0


def test_many_memberships_need_little_memory_a_row(tmp_path: Path) -> None:
    problem = fat(groups=400, k=8, aggregation_copies=2, tenants=20)
    for name, table in problem.to_tables().items():
        write_table(table, tmp_path / f"{name}.parquet")
    files = {table.name: tmp_path / f"{table.name}.parquet" for table in SYSTEM.tables}
    read = read_tables(SYSTEM.tables, {name: path for name, path in files.items() if path.exists()})
    assert read["members"].memory_usage(index=False).sum() <= 8 * len(read["members"]) + 200_000
    again = Multicast.from_tables(read)
    for one, two in zip(problem.at_edge, again.at_edge, strict=True):
        assert np.array_equal(one, two)


@pytest.mark.slow
def test_millions_of_memberships_from_a_file_stay_small(tmp_path: Path) -> None:
    few = peak_mib(tmp_path / "few", k=8, aggregation_copies=1, groups=100, tenants=10, largest_tenant=50)
    many = peak_mib(
        tmp_path / "many",
        k=24,
        aggregation_copies=3,
        groups=9000,
        tenants=100,
        largest_tenant=3000,
        sizes="uniform",
    )
    assert many - few < 600, "a few hundred bytes a membership at most; Python and its libraries left out"


def peak_mib(folder: Path, **made: Any) -> float:
    """The most memory that solving a problem from files takes, with names as plain text in the files."""
    problem = fat(**made)
    folder.mkdir()
    for name, table in problem.to_tables().items():
        plain = table.astype(dict.fromkeys(table.select_dtypes("category"), str))
        write_table(plain, folder / f"{name}.parquet")
    assert made["groups"] < 9000 or len(problem.members) > 2_000_000
    (folder / "scenario.toml").write_text(
        'system = "multicast"\n[problem]\nsource = "tables"\npath = "."\n'
        '[designs.partitioned]\nchoose = "arrival"\n'
    )
    code = (
        "import planner, resource, sys\n"
        f"run = planner.solve({str(folder / 'scenario.toml')!r})\n"
        "assert run.exit_code == 0\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return float(done.stdout)


def test_port_sets_by_hand() -> None:
    problem = fat()
    place = problem.members.astype(str).merge(problem.hosts, on="host")
    expected: dict[tuple[int, str], int] = {}
    for row in place.itertuples():
        key = (int(row.pod) * 2 + int(row.edge), row.group)
        expected[key] = expected.get(key, 0) | 1 << int(row.port)
    names = problem.groups["group"].tolist()
    edge, group, masks = (column.tolist() for column in problem.at_edge)
    found = {(e, names[g]): mask for e, g, mask in zip(edge, group, masks, strict=True)}
    assert found == expected
    assert problem.edges_in_pod.sum() == len(expected)


# --- bad input ----------------------------------------------------------------------------


def spoiled(tables: dict[str, pd.DataFrame], table: str, column: str, value: object) -> list[str]:
    frame = tables[table].astype({column: object})
    frame.loc[0, column] = value
    with pytest.raises(InputError) as error:
        Multicast.from_tables(tables | {table: frame})
    return list(error.value.faults)


@pytest.mark.parametrize(
    ("table", "column", "value", "words"),
    [
        ("switches", "layer", "spine", "layer is 'spine', must be core, aggregation or edge"),
        ("switches", "switch", "zz", "is no switch"),
        ("links", "lower", "a99", "lower 'a99' is no switch"),
        ("links", "upper", "e00", "must go from an edge to an aggregation switch of its pod"),
        ("hosts", "switch", "e99", "switch 'e99' is no edge switch"),
        ("hosts", "port", 64.0, "must be whole and below 64"),
        ("fabric", "kind", "ab", "column 'k' is missing"),
    ],
)
def test_bad_trees_are_one_clear_line(table: str, column: str, value: object, words: str) -> None:
    assert any(words in fault for fault in spoiled(tree(), table, column, value))


def test_trees_need_their_tables() -> None:
    tables = tree()
    for name, words in (("links", "needs the tables switches and links"), ("hosts", "needs this table")):
        with pytest.raises(InputError, match=words):
            Multicast.from_tables({key: table for key, table in tables.items() if key != name})
    with pytest.raises(InputError, match="65 pods, or edge switches of a pod, must be at most 64"):
        Multicast.from_tables(tree(edges=65))
    with pytest.raises(InputError, match="must be numbered from 0"):
        Multicast.from_tables(tables | {"switches": tables["switches"].assign(pod=2.0)})


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ({"switch": ["edge-9-9"]}, "'edge-9-9' is no switch"),
        ({"switch": ["core-0"], "entries": [0.0]}, "must be at least 1"),
        (
            {"switch": ["core-0"], "occupied": [13.0]},
            "'core-0' has more entries occupied than its table holds",
        ),
    ],
)
def test_bad_switches_are_one_clear_line(rows: dict[str, list[object]], words: str) -> None:
    with pytest.raises(InputError, match=words):
        Multicast.from_tables(fat().to_tables() | {"switches": pd.DataFrame(rows)})


@pytest.mark.parametrize(
    ("lower", "words"),
    [("h0", None), ("h3", "'edge-0-0' has no link to 'h3'"), ("nobody", "is no switch and no host")],
)
def test_bad_background_is_one_clear_line(lower: str, words: str | None) -> None:
    rows = pd.DataFrame({"upper": ["edge-0-0"], "lower": [lower], "mbps": [1.0]})
    tables = fat().to_tables() | {"background": rows}
    if words is None:
        assert Multicast.from_tables(tables).port_background_mbps.sum() == 1
    else:
        with pytest.raises(InputError, match=words):
            Multicast.from_tables(tables)


def test_given_partitions_must_reach_every_pod() -> None:
    problem = fat()
    held = problem.distribution(1)
    above = problem.wiring.cores.append(problem.wiring.aggregations)
    rows = np.argwhere(np.vstack([held.core, held.aggregation])).tolist()
    holds = pd.DataFrame([(above[s], float(p)) for s, p in rows], columns=["switch", "partition"])
    assert Multicast.from_tables(problem.to_tables() | {"holds": holds}).distribution(1).partitions == 4
    for gone, words in (("aggregation-1-0", "does not reach pod 1"), ("core-0", "is at no core")):
        less = holds[holds["switch"] != gone]
        with pytest.raises(InputError, match=words):
            Multicast.from_tables(problem.to_tables() | {"holds": less})
    with pytest.raises(InputError, match="must be whole and below 4"):
        Multicast.from_tables(problem.to_tables() | {"holds": holds.assign(partition=holds["partition"] + 1)})


def test_tenants_of_groups_must_be_known() -> None:
    tables = fat().to_tables()
    tenants = pd.DataFrame({"tenant": ["t0"], "host": ["h0"]})
    groups = tables["groups"].drop(columns="tenant", errors="ignore").assign(tenant="t1")
    with pytest.raises(InputError, match="tenant 't1' is in no row of tenants"):
        Multicast.from_tables(tables | {"tenants": tenants, "groups": groups})
    with pytest.raises(InputError, match="host 'x' is no host of the fabric"):
        Multicast.from_tables(tables | {"tenants": tenants.assign(host="x")})
