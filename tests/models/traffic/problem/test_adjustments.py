"""Scaled capacities of all links: changes, and errors of values."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import planner
from planner.contract.notes import notes_of, observe_notes
from planner.errors import InputError
from planner_models.traffic import SYSTEM, Traffic
from planner_models.traffic.designs.optimum import optimum
from planner_models.traffic.problem.adjustments import (
    SENT_IN_PART,
    SPLIT,
    add_opposites,
    find_divided,
    lacks_opposite,
)
from tests import commands
from tests.models.traffic.networks import both_ways, network, problems

RING = network(both_ways([("a", "b", 1.0), ("b", "c", 4.0), ("c", "a", 2.0)]), [("a", "b", 1.0)])
LINES = [("a", "b", 100.0), ("b", "c", 100.0)]
ROWS = [("a", "b", 10.0), ("b", "c", 20.0), ("a", "d", 10.0), ("d", "c", 5.0)]


def test_only_capacities_are_scaled() -> None:
    twice = SYSTEM.problem.adjust(RING, capacity_scale=2.0)
    assert twice.capacity_mbps.tolist() == (2 * RING.capacity_mbps).tolist()
    assert twice.rate_mbps.tolist() == RING.rate_mbps.tolist()
    assert twice.links.drop(columns="capacity_mbps").equals(RING.links.drop(columns="capacity_mbps"))


def test_slow_links_keep_their_share_of_scaled_capacity() -> None:
    slow = SYSTEM.problem.adjust(RING, capacity_scale=3.0, capacity_factors={"b->c": 0.5})
    assert dict(zip(slow.link_labels, slow.capacity_mbps, strict=True))["b->c"] == 6.0


@settings(max_examples=15)
@given(problems(), st.sampled_from([0.25, 0.5, 3.0]))
def test_the_largest_share_that_fits_scales_with_capacity(problem: Traffic, factor: float) -> None:
    before, after = (
        optimum.route(item, objective="concurrent").proof.objective
        for item in (problem, SYSTEM.problem.adjust(problem, capacity_scale=factor))
    )
    assert before is not None
    assert after == pytest.approx(factor * before, rel=1e-6)


@pytest.mark.parametrize(
    ("factor", "fault"),
    [
        (1e308, "links row 2: capacity_mbps is inf, must be a finite number; for no limit write 1e+12"),
        (1e11, "links row 2: capacity_mbps is 100000000000000.0, must be at most 1e+12"),
        (1e-15, "links row 1: capacity_mbps is 1.0000000000000001e-16, must be 0 or at least 1e-15"),
    ],
)
def test_capacities_out_of_range_are_errors(factor: float, fault: str) -> None:
    problem = network([("a", "b", 0.1), ("b", "a", 1e3)], [("a", "b", 0.1)])
    with pytest.raises(InputError) as caught:
        SYSTEM.problem.adjust(problem, capacity_scale=factor)
    assert fault in caught.value.faults


@pytest.mark.parametrize(
    ("value", "rule"),
    [("0", "must be greater than 0"), ("inf", "must be a finite number"), ("'x'", "must be a number")],
)
def test_an_invalid_scale_is_one_line(tmp_path: Path, value: str, rule: str) -> None:
    (tmp_path / "s.toml").write_text(
        'system = "traffic"\n[problem]\nsource = "generate"\npreset = "abilene"\n[designs.ecmp]\n'
    )
    result = commands.planner("solve", tmp_path / "s.toml", "--set", f"problem.capacity_scale={value}")
    assert result.code == 1
    assert result.err.strip().endswith(f"s.toml: problem.capacity_scale is {value}, {rule}")
    assert len(result.err.strip().splitlines()) == 1


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


def test_a_priority_that_is_neither_is_named_with_the_reason(tmp_path: Path) -> None:
    rows = "source,target,rate_mbps,Priority,admission\na,b,20,7,7\na,c,60,0,0\n"
    (note,) = [
        item for item in notes_of(planner.solve(scenario(tmp_path, rows)).problem) if "reservations" in item
    ]
    assert note.startswith("warning: ")
    assert "demands.csv: 'Priority', 'admission': setup_priority and hold_priority, 0 to 7" in note


def test_designs_without_reservations_say_that_they_ignore_priorities(tmp_path: Path) -> None:
    rows = "source,target,rate_mbps,Setup Priority,holding priority\na,b,20,7,7\na,c,60,0,0\n"
    made = planner.compare(scenario(tmp_path, rows), designs=["optimum", "ecmp", "cspf"])
    assert "It does not consider priorities of reservations." in made.verdict
    assert "ecmp does not consider priorities of reservations." in made.verdict
    assert "cspf does not" not in made.verdict
    problem = made.runs[0].problem
    assert problem.setup_priority.tolist() == problem.hold_priority.tolist() == [7, 0]


def doubts_of(problem: Traffic) -> list[str]:
    """Return the doubts about a problem that nothing adjusts."""
    notes: list[str] = []
    with observe_notes(notes.append):
        SYSTEM.problem.adjust(Traffic.from_tables(problem.to_tables()))
    return [note for note in notes if note.startswith("warning: ")]


def test_rows_for_both_ways_are_in_doubt_and_one_parameter_mends_them() -> None:
    problem = network(ROWS, [("a", "c", 12.0), ("c", "a", 8.0), ("b", "d", 1.0)])
    (doubt,) = doubts_of(problem)
    assert doubt.startswith("warning: links: no row has an opposite one, and 2 demands have no path")
    assert "problem.both_directions = true" in doubt
    both = SYSTEM.problem.adjust(problem, both_directions=True)
    assert not both.unreachable.any()
    expected = network(both_ways(ROWS), [("a", "c", 12.0), ("c", "a", 8.0), ("b", "d", 1.0)])
    for item in (both, expected):
        rows = item.links[["tail", "head", "capacity_mbps"]].astype(str)
        assert sorted(rows.itertuples(index=False, name=None)) == sorted(
            expected.links[["tail", "head", "capacity_mbps"]].astype(str).itertuples(index=False, name=None)
        )


@pytest.mark.parametrize(
    ("rows", "demands"),
    [
        (ROWS, [("a", "c", 12.0)]),  # a network in one direction, such as that of a broadcast
        (both_ways(ROWS), [("c", "a", 1.0)]),
        ([*ROWS, ("c", "d", 5.0)], [("b", "a", 1.0)]),  # some rows are of both ways already
        ([("a", "b", 1.0), ("b", "c", 1.0), ("c", "a", 1.0)], [("b", "a", 1.0)]),  # a ring in one direction
        (ROWS, [("c", "a", 0.0)]),
    ],
)
def test_networks_that_may_be_meant_so_are_not_in_doubt(
    rows: list[tuple[str, str, float]], demands: list[tuple[str, str, float]]
) -> None:
    assert doubts_of(network(rows, demands)) == []


@given(problems(), st.data())
def test_every_link_has_an_opposite_afterwards_and_nothing_else_changes(
    problem: Traffic, data: st.DataObject
) -> None:
    up = np.array(
        data.draw(st.lists(st.booleans(), min_size=len(problem.links), max_size=len(problem.links)))
    )
    up[0] = True
    traffic = Traffic(
        nodes=problem.nodes, links=problem.numbered_links[up].reset_index(drop=True), demands=problem.demands
    )
    both = add_opposites(traffic)
    assert not lacks_opposite(both).any()
    assert both.links["capacity_mbps"].iloc[: len(traffic.links)].tolist() == traffic.capacity_mbps.tolist()
    assert len(both.links) == len(traffic.links) + int(lacks_opposite(traffic).sum())
    assert add_opposites(both) is both
    assert not (both.unreachable & ~traffic.unreachable).any()


def test_parallel_links_keep_their_numbers() -> None:
    rows = [("a", "b", 1.0), ("a", "b", 2.0), ("b", "a", 3.0)]
    both = add_opposites(network(rows, [("a", "b", 1.0)]))
    assert dict(zip(both.link_labels, both.capacity_mbps, strict=True)) == {
        "a->b": 1.0,
        "a->b#2": 2.0,
        "b->a": 3.0,
        "b->a#2": 2.0,
    }


def test_a_scenario_says_so(tmp_path: Path) -> None:
    (tmp_path / "links.csv").write_text("tail,head,capacity_gbps\na,b,10\nb,c,10\n")
    (tmp_path / "demands.csv").write_text("source,target,rate_gbps\nc,a,4\n")
    (tmp_path / "s.toml").write_text(
        'system = "traffic"\n[problem]\nsource = "tables"\npath = "."\nboth_directions = true\n'
        "[designs.ecmp]\n"
    )
    result = planner.solve(tmp_path / "s.toml")
    assert result.metrics["delivered_mbps"] == pytest.approx(4_000)
    assert not any("both_directions" in note for note in notes_of(result.problem))  # it was obeyed
    doubted = planner.solve(tmp_path / "s.toml", changes={"problem.both_directions": None})
    (doubt,) = (note for note in notes_of(doubted.problem) if "both_directions" in note)
    assert doubt.startswith("warning: links.csv: no row has an opposite one")


def test_an_explicit_answer_ends_the_doubt(tmp_path: Path) -> None:
    """The warning asks for a value; the same problem, with the value that keeps it, has no warning."""
    problem = network(ROWS, [("c", "a", 8.0)])
    for answer in (True, False):
        notes: list[str] = []
        with observe_notes(notes.append):
            adjusted = SYSTEM.problem.adjust(Traffic.from_tables(problem.to_tables()), both_directions=answer)
        assert len(adjusted.links) == (8 if answer else 4)
        assert bool(adjusted.unreachable.any()) != answer
        assert not any("both_directions" in note for note in notes)
    (tmp_path / "links.csv").write_text("tail,head,capacity_gbps\na,b,10\nb,c,10\n")
    (tmp_path / "demands.csv").write_text("source,target,rate_gbps\nc,a,4\na,c,1\n")
    text = 'system = "traffic"\n[problem]\nsource = "tables"\npath = "."\n[designs.ecmp]\n'
    (tmp_path / "s.toml").write_text(text)
    said = planner.solve(tmp_path / "s.toml")
    assert any("problem.both_directions = true" in note for note in notes_of(said.problem))
    answered = planner.solve(tmp_path / "s.toml", changes={"problem.both_directions": False})
    assert not any("both_directions" in note for note in notes_of(answered.problem))
    assert answered.metrics["delivered_mbps"] == said.metrics["delivered_mbps"] == pytest.approx(1_000)
