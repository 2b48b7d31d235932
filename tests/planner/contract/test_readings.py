"""Columns that may be two: the routing metric and a price, and what is assumed where neither is given."""

from __future__ import annotations

import itertools
from pathlib import Path

import networkx as nx
import pytest

import planner
from planner.contract.notes import notes_of
from planner.errors import InputError
from planner.io.table_files import read_table
from planner.scenarios.from_files import write_scenario
from planner_models.traffic.problem.schema import LINKS

# A-C-B costs 20 and is shorter than A-B, so that C->B carries both demands
ROWS = (("A", "B", 30), ("B", "A", 30), ("A", "C", 10), ("C", "A", 10), ("C", "B", 10), ("B", "C", 10))
BOTH = (
    "links.csv: column '{0}' may be cost (price of carrying traffic, per Mbit/s) or weight (routing metric), "
    "and no column is weight: "
)


def scenario(folder: Path, column: str, mapping: str = "", *, factor: int = 1) -> Path:
    rows = [f"{tail},{head},100,{metric * factor}" for tail, head, metric in ROWS]
    (folder / "links.csv").write_text("\n".join([f"tail,head,capacity_mbps,{column}", *rows]) + "\n")
    (folder / "demands.csv").write_text("source,target,rate_mbps\nA,B,80\nC,B,40\n")
    path = folder / "scenario.toml"
    path.write_text(
        f'system = "traffic"\n[problem]\nsource = "tables"\npath = "."\n{mapping}\n[designs.ecmp]\n'
    )
    return path


def busiest_link_mbps(metrics: dict[tuple[str, str], float]) -> float:
    """Return the largest load of a link, by shortest paths of networkx; both paths here are unique."""
    graph = nx.DiGraph()
    graph.add_weighted_edges_from((tail, head, metric) for (tail, head), metric in metrics.items())
    load: dict[tuple[str, str], float] = {}
    for source, target, rate in (("A", "B", 80.0), ("C", "B", 40.0)):
        path = nx.shortest_path(graph, source, target, weight="weight")
        for link in itertools.pairwise(path):
            load[link] = load.get(link, 0.0) + rate
    return max(load.values())


@pytest.mark.parametrize("name", ["metric", "IGP metric", "ospf_cost", "IS-IS Metric", "te-metric", "weight"])
def test_a_routing_metric_of_another_name_decides_the_routes(tmp_path: Path, name: str) -> None:
    result = planner.solve(scenario(tmp_path, name))
    expected = busiest_link_mbps({(tail, head): metric for tail, head, metric in ROWS})
    assert expected == 120
    assert result.metrics["max_utilization"] == pytest.approx(expected / 100)
    said = [] if name == "weight" else [f"links.csv: read columns '{name}' as weight"]
    assert notes_of(result.problem) == said


def test_a_cost_without_a_weight_is_asked_about(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        planner.solve(scenario(tmp_path, "Cost"))
    advice = 'write [problem.columns.links] weight = "Cost" or cost = "Cost"'
    assert caught.value.faults == (BOTH.format("Cost") + advice,)


@pytest.mark.parametrize(("reading", "metric"), [("weight", None), ("cost", 1.0)])
def test_either_reading_of_a_cost_can_be_written(tmp_path: Path, reading: str, metric: float | None) -> None:
    result = planner.solve(scenario(tmp_path, "Cost", f'[problem.columns.links]\n{reading} = "Cost"'))
    expected = busiest_link_mbps({(tail, head): metric or inputs for tail, head, inputs in ROWS})
    assert result.metrics["max_utilization"] == pytest.approx(expected / 100)
    assert ("assumed: links.csv: all links weigh 1" in notes_of(result.problem)) == (reading == "cost")


def test_a_cost_beside_a_metric_is_a_price(tmp_path: Path) -> None:
    file = tmp_path / "links.csv"
    file.write_text("tail,head,capacity_mbps,cost,metric\nA,B,1,5,2\nB,A,1,6,3\n")
    links = read_table(LINKS, file)
    assert links["cost"].tolist() == [5, 6]
    assert links["weight"].tolist() == [2, 3]


def test_a_cost_that_is_the_same_everywhere_needs_no_question(tmp_path: Path) -> None:
    result = planner.solve(scenario(tmp_path, "cost", factor=0))
    assert notes_of(result.problem) == ["assumed: links.csv: all links weigh 1"]


def test_two_metrics_are_asked_about(tmp_path: Path) -> None:
    file = tmp_path / "links.csv"
    file.write_text("tail,head,capacity_mbps,igp_metric,te_metric\nA,B,1,5,2\n")
    with pytest.raises(InputError, match="'igp_metric' and 'te_metric' are both weight; keep one"):
        read_table(LINKS, file)


def test_a_new_scenario_says_its_option(tmp_path: Path) -> None:
    scenario(tmp_path, "cost").unlink()
    files = [tmp_path / "links.csv", tmp_path / "demands.csv"]
    with pytest.raises(InputError) as caught:
        write_scenario(files, system="traffic")
    advice = "say --column 'links.weight=cost' or --column 'links.cost=cost'"
    assert caught.value.faults == (BOTH.format("cost") + advice,)
    written = write_scenario(files, system="traffic", columns={"links": {"weight": "cost"}})
    assert written.problem.to_tables()["links"]["weight"].tolist() == [30, 30, 10, 10, 10, 10]


def test_a_file_that_no_scenario_maps_says_what_to_change(tmp_path: Path) -> None:
    scenario(tmp_path, "cost")
    with pytest.raises(InputError) as caught:
        read_table(LINKS, tmp_path / "links.csv")
    advice = "call it weight, or add a column weight (1 in every row is the default)"
    assert caught.value.faults == (BOTH.format("cost") + advice,)
