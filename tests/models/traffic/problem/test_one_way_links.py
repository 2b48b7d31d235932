"""Tables with one row for both ways: the warning where they are read as one-way links, and opposites."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import planner
from planner.contract.notes import notes_of, observe_notes
from planner_models.traffic import SYSTEM, Traffic
from planner_models.traffic.problem.one_way_links import add_opposites, lacks_opposite
from tests.models.traffic.networks import both_ways, network, problems

ROWS = [("a", "b", 10.0), ("b", "c", 20.0), ("a", "d", 10.0), ("d", "c", 5.0)]


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
