"""Bad input: every fault is one line that names table, row, value and rule."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from planner.errors import InputError
from planner_models.multicast import Multicast
from tests.models.multicast.fabrics import fat, tree


def find_faults(tables: dict[str, pd.DataFrame], table: str, column: str, value: object) -> list[str]:
    frame = tables[table].astype({column: object})
    frame.loc[0, column] = value
    with pytest.raises(InputError) as error:
        Multicast.from_tables(tables | {table: frame})
    return list(error.value.faults)


@pytest.mark.parametrize(
    ("table", "column", "value", "words"),
    [
        ("switches", "layer", "middle", "layer is 'middle', must be core, aggregation or edge"),
        ("switches", "switch", "zz", "is no switch"),
        ("links", "lower", "a99", "lower 'a99' is no switch"),
        ("links", "upper", "e00", "must go from an edge to an aggregation switch of its pod"),
        ("hosts", "switch", "e99", "switch 'e99' is no edge switch"),
        ("hosts", "port", 64.0, "must be whole and below 64"),
        ("fabric", "kind", "ab", "column 'k' is missing"),
    ],
)
def test_bad_trees_are_one_clear_line(table: str, column: str, value: object, words: str) -> None:
    assert any(words in fault for fault in find_faults(tree(), table, column, value))


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
        ({"switch": ["core-0"], "entries": [-1.0]}, "must be at least 0"),
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


@pytest.mark.parametrize(
    ("table", "column", "value", "words"),
    [
        ("fabric", "k", 5.0, "must be even"),
        ("fabric", "partitions", 3.0, "must be k^2/4"),
        ("fabric", "core_copies", 2.0, "must be core_copies"),
        ("fabric", "aggregation_copies", 1.5, "must be whole"),
        ("fabric", "edge_entries", -1.0, "must be at least 0"),
        ("fabric", "kind", "fat", "must be one of ab, standard, portland, tree"),
        ("members", "host", "h999", "no host of the fabric"),
        ("members", "group", "g999", "in no row of groups"),
        ("hosts", "pod", 9.0, "must be whole and below 4"),
        ("hosts", "port", 0.0, "another host has the same port"),
    ],
)
def test_bad_input_is_one_clear_line(table: str, column: str, value: object, words: str) -> None:
    tables = fat().to_tables()
    frame = tables[table].astype({column: object})
    frame.loc[1 if table != "fabric" else 0, column] = value
    with pytest.raises(InputError) as error:
        Multicast.from_tables(tables | {table: frame})
    assert any(words in fault for fault in error.value.faults)


def test_a_group_without_members_is_named() -> None:
    tables = fat().to_tables()
    members = tables["members"][tables["members"]["group"] != "g7"]
    with pytest.raises(InputError, match="group 'g7' has no members"):
        Multicast.from_tables(tables | {"members": members})


def test_a_fabric_without_ports_is_one_clear_line() -> None:
    tables = fat().to_tables()
    del tables["hosts"]
    with pytest.raises(InputError, match="column 'k' is missing"):
        Multicast.from_tables(tables | {"fabric": tables["fabric"].drop(columns="k")})


def test_a_host_in_a_pod_without_edge_switches_is_named() -> None:
    tables = tree()
    switches = tables["switches"]
    is_moved = (switches["layer"] == "edge") & (switches["pod"] == switches["pod"].max())
    pod = switches["pod"].where(~is_moved, 0.0)
    hosts = pd.DataFrame({"host": ["a"], "pod": [float(switches["pod"].max())], "edge": [0.0], "port": [0.0]})
    with pytest.raises(InputError, match="hosts row 1: its pod has fewer edge switches"):
        Multicast.from_tables(tables | {"switches": switches.assign(pod=pod), "hosts": hosts})
