"""REPETITA files: units, numbered ends, and faults."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from planner.errors import InputError
from planner_models.traffic.problem.readers import repetita

GRAPH = """NODES 3
label x y
0_Rome 12.48 41.89
Oslo 10.75 59.91
Oslo 10.8 59.9

EDGES 4
label src dest weight bw delay
edge_0 0 1 5 1000000 678
edge_1 1 0 5 2500 678
edge_2 0 1 1 1 1
edge_3 1 2 1 10000000 0.5
"""
DEMANDS = """DEMANDS 3
label src dest bw
demand_0 0 1 435117
demand_1 1 2 0.25
demand_2 0 1 3
"""


def read(tmp_path: Path, graph: str = GRAPH, demands: str | None = DEMANDS) -> dict[str, pd.DataFrame]:
    (tmp_path / "net.graph").write_text(graph, encoding="utf-8")
    if demands is not None:
        (tmp_path / "net.demands").write_text(demands, encoding="utf-8")
    return repetita.read(tmp_path / "net.graph")


def faults(tmp_path: Path, graph: str = GRAPH, demands: str | None = DEMANDS) -> tuple[str, ...]:
    with pytest.raises(InputError) as caught:
        read(tmp_path, graph, demands)
    return caught.value.faults


def test_units_and_ends(tmp_path: Path) -> None:
    tables = read(tmp_path)
    assert tables["nodes"].values.tolist() == [
        ["0_Rome", 41.89, 12.48],
        ["Oslo (1)", 59.91, 10.75],
        ["Oslo (2)", 59.9, 10.8],
    ]
    assert tables["links"].values.tolist() == [
        ["0_Rome", "Oslo (1)", 1000.0, 5.0, 0.678],
        ["Oslo (1)", "0_Rome", 2.5, 5.0, 0.678],
        ["0_Rome", "Oslo (1)", 0.001, 1.0, 0.001],
        ["Oslo (1)", "Oslo (2)", 10_000.0, 1.0, 0.0005],
    ]
    # two demands between the same nodes are one
    assert tables["demands"].values.tolist() == [
        ["0_Rome", "Oslo (1)", 435.12],
        ["Oslo (1)", "Oslo (2)", 0.00025],
    ]


def test_demands_beside_the_graph(tmp_path: Path) -> None:
    (tmp_path / "net.0000.demands").write_text(DEMANDS, encoding="utf-8")
    assert len(read(tmp_path, demands=None)["demands"]) == 2
    other = tmp_path / "other.demands"
    other.write_text("DEMANDS 1\nlabel src dest bw\nd 2 0 1000\n", encoding="utf-8")
    assert repetita.read(tmp_path / "net.graph", demands=other)["demands"]["rate_mbps"].tolist() == [1]


def test_no_demands(tmp_path: Path) -> None:
    assert faults(tmp_path, demands=None) == (
        "net.graph: has no net.demands nor net.0000.demands beside it; set demands to a file",
    )


def test_labels_may_contain_blanks_and_equal_titles(tmp_path: Path) -> None:
    graph = GRAPH.replace("0_Rome", "New York").replace("Oslo 10.8 59.9", "EDGES 10.8 59.9")
    assert read(tmp_path, graph)["nodes"]["node"].tolist() == ["New York", "Oslo", "EDGES"]


@pytest.mark.parametrize("position", ["NaN NaN", "1200 59.9"])
def test_positions_that_are_no_degrees(tmp_path: Path, position: str) -> None:
    assert list(read(tmp_path, GRAPH.replace("10.8 59.9", position))["nodes"]) == ["node"]


def test_windows_line_ends_and_a_byte_order_mark(tmp_path: Path) -> None:
    assert len(read(tmp_path, "\ufeff" + GRAPH.replace("\n", "\r\n"))["links"]) == 4


def test_a_title_without_a_number(tmp_path: Path) -> None:
    assert len(read(tmp_path, GRAPH.replace("EDGES 4", "EDGES"))["links"]) == 4


def test_every_fault_of_both_files_at_once(tmp_path: Path) -> None:
    graph = (
        GRAPH.replace("NODES 3", "NODES 4").replace("10.75", "east").replace("Oslo 10.8 59.9", "Oslo 59.9")
    )
    graph = graph.replace("edge_0 0 1 5", "edge_0 0 3 five").replace("edge_2 0 1", "edge_2 -1 x")
    graph = graph.replace("0.5", "slow")
    demands = DEMANDS.replace("0 1 435117", "0 7 ?").replace("DEMANDS 3", "DEMANDS three")
    assert faults(tmp_path, graph, demands) == (
        "net.graph line 1: says 4 NODES, but 3 lines follow",
        "net.graph line 4: x is 'east', must be a number",
        "net.graph line 5: has 2 fields, must have 3 fields",
        "net.graph line 9: dest is '3', must be the number of a node, 0 to 2",
        "net.graph line 9: weight is 'five', must be a number",
        "net.graph line 11: src is '-1', must be the number of a node, 0 to 2",
        "net.graph line 11: dest is 'x', must be the number of a node, 0 to 2",
        "net.graph line 12: delay is 'slow', must be a number",
        "net.demands line 1: number of DEMANDS is 'three', must be a whole number",
        "net.demands line 3: dest is '7', must be the number of a node, 0 to 2",
        "net.demands line 3: bw is '?', must be a number",
    )


@pytest.mark.parametrize(
    ("graph", "line"),
    [
        ("", "net.graph: is empty, must begin with a line 'NODES <number>'"),
        ("graph {}\n", "net.graph line 1: is 'graph {}', must be 'NODES <number>'"),
        (GRAPH[: GRAPH.index("EDGES")], "net.graph: must go on with a line 'EDGES <number>'"),
        ("NODES 0\nEDGES 0\nlabel\n", "net.graph line 1: must be followed by a line 'label x y'"),
    ],
)
def test_parts_that_are_missing(tmp_path: Path, graph: str, line: str) -> None:
    assert line in faults(tmp_path, graph, "DEMANDS 0\nlabel src dest bw\n")
