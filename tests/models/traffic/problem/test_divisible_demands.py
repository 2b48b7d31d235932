"""The note on demands that plans may split and send in part: where the links of a node are short."""

from __future__ import annotations

from pathlib import Path

import pytest

import planner
from planner.contract.notes import notes_of
from planner_models.traffic.problem.divisible_demands import SENT_IN_PART, SPLIT, find_divided
from tests.models.traffic.networks import both_ways, network

LINES = [("a", "b", 100.0), ("b", "c", 100.0)]


@pytest.mark.parametrize(
    ("demands", "is_short"),
    [
        ([("a", "b", 200.0), ("a", "c", 60.0)], True),  # leave a
        ([("a", "c", 60.0), ("b", "c", 60.0)], True),  # enter c
        ([("b", "a", 60.0), ("b", "c", 60.0)], False),
        ([("a", "c", 100.0)], False),
        ([("b", "a", 0.0)], False),
    ],
)
def test_demands_of_a_node_are_compared_with_its_links(
    demands: list[tuple[str, str, float]], is_short: bool
) -> None:
    assert (find_divided(network(both_ways(LINES), demands)) is not None) == is_short


def test_a_demand_wider_than_each_link_is_split_at_best() -> None:
    square = both_ways([("a", "b", 10.0), ("b", "d", 10.0), ("a", "c", 10.0), ("c", "d", 10.0)])
    assert find_divided(network(square, [("a", "d", 11.0)])) == SPLIT
    assert find_divided(network(square, [("a", "d", 21.0)])) == SENT_IN_PART
    assert find_divided(network(square, [("a", "d", 10.0), ("a", "b", 10.0)])) is None


@pytest.mark.parametrize("rate", [1e-6, 1.0, 1e9])
def test_a_demand_is_compared_with_its_links_at_every_size(rate: float) -> None:
    """Beside it, a line of another size with as much demand as it carries."""
    other = [("c", "d", 1e9), ("d", "e", 1e-6)]
    full = [("c", "d", 1e9), ("d", "e", 1e-6)]
    lines = both_ways([("a", "b", rate), *other])
    assert find_divided(network(lines, [("a", "b", rate * (1 + 1e-12)), *full])) is None
    assert find_divided(network(lines, [("a", "b", rate * (1 + 1e-8)), *full])) == SENT_IN_PART
    square = both_ways([("a", "b", rate), ("b", "x", rate), ("a", "c", rate), ("c", "x", rate), *other[1:]])
    assert find_divided(network(square, [("a", "x", rate * (1 + 1e-12))])) is None
    assert find_divided(network(square, [("a", "x", rate * (1 + 1e-8))])) == SPLIT


def scenario(folder: Path, demands: str, more: str = "") -> Path:
    (folder / "links.csv").write_text("tail,head,capacity_mbps,weight\na,b,100,1\nb,c,100,1\n")
    (folder / "demands.csv").write_text(demands)
    text = f'system = "traffic"\n[problem]\nsource = "tables"\npath = "."\n{more}[designs.optimum]\n'
    (folder / "s.toml").write_text(text)
    return folder / "s.toml"


def test_a_comparison_says_that_whole_reservations_are_not_modelled(tmp_path: Path) -> None:
    made = planner.compare(scenario(tmp_path, "source,target,rate_mbps\na,b,200\na,c,60\n"))
    assert SENT_IN_PART in notes_of(made.runs[0].problem)
    assert SENT_IN_PART in made.to_dict()["problem"]["notes"]


def test_links_are_counted_after_opposite_ones_were_added(tmp_path: Path) -> None:
    file = scenario(tmp_path, "source,target,rate_mbps\nb,c,60\nb,a,60\n", "both_directions = true\n")
    assert SENT_IN_PART not in notes_of(planner.solve(file).problem)


def test_priorities_of_reservations_are_named_with_the_reason(tmp_path: Path) -> None:
    rows = "source,target,rate_mbps,Setup Priority,hold_priority\na,b,20,7,7\na,c,60,0,0\n"
    (note,) = [
        item for item in notes_of(planner.solve(scenario(tmp_path, rows)).problem) if "preempts" in item
    ]
    assert note.startswith("warning: ")
    assert "demands.csv: 'Setup Priority', 'hold_priority': no demand preempts another" in note
    assert SENT_IN_PART not in notes_of(planner.solve(scenario(tmp_path, rows)).problem)
