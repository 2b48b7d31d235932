"""Changes of a network's tables: each leaves a valid problem of traffic, or one whose faults are said."""

from __future__ import annotations

import pandas as pd
import pytest

from planner.scenarios.catalogue import find_system
from planner_dashboard.own_data import network_edits as edits
from planner_dashboard.own_data import tasks
from planner_dashboard.own_data.drafts import Draft
from planner_dashboard.own_data.network_edits import Place

TRAFFIC = find_system("traffic")


@pytest.fixture
def frames() -> dict[str, pd.DataFrame]:
    nodes = pd.DataFrame(
        {"node": ["a", "b", "c"], "latitude": [50.0, 51.0, 52.0], "longitude": [8.0, 9.0, 7.0]}
    )
    links = [("a", "b", 10.0), ("b", "a", 10.0), ("b", "c", 5.0), ("c", "b", 5.0)]
    return {
        "nodes": nodes,
        "links": pd.DataFrame(links, columns=["tail", "head", "capacity_mbps"]),
        "demands": pd.DataFrame(
            [("a", "c", 2.0), ("c", "a", 3.0), ("a", "b", 1.0)], columns=["source", "target", "rate_mbps"]
        ),
    }


def check(frames: dict[str, pd.DataFrame], tmp_path_factory: pytest.TempPathFactory) -> tasks.Checked:
    return tasks.check_tables("traffic", frames, {}, tmp_path_factory.mktemp("stored"))


def test_a_node_and_its_links_are_added_and_removed_again(
    frames: dict[str, pd.DataFrame], tmp_path_factory: pytest.TempPathFactory
) -> None:
    more = edits.add_node(frames, "d", Place(latitude=50.5, longitude=10.0))
    assert edits.node_names(more) == ["a", "b", "c", "d"]
    more = edits.add_link(more, "c", "d", {"capacity_mbps": 7.0}, both_ways=True)
    more = edits.set_demand(more, None, "a", "d", 4.0)
    assert edits.link_names(more) == ["a<->b", "b<->c", "c<->d"]
    checked = check(more, tmp_path_factory)
    assert not checked.faults
    assert "4 nodes, 6 links, 4 demands" in checked.size
    less = edits.remove_node(more, "d")
    for name, frame in frames.items():
        pd.testing.assert_frame_equal(less[name], frame, check_dtype=False)


def test_a_renamed_node_keeps_its_links_and_demands(frames: dict[str, pd.DataFrame]) -> None:
    renamed = edits.rename_node(frames, "c", "Köln")
    assert edits.link_names(renamed) == ["a<->b", "b<->Köln"]
    assert [name for _, name in edits.demand_names(renamed, "Köln")] == ["Köln → a", "a → Köln"]


def test_a_link_is_set_and_removed_in_both_directions(frames: dict[str, pd.DataFrame]) -> None:
    assert edits.rows_of_link(frames, "b<->c") == [2, 3]
    assert edits.rows_of_link(frames, "c<->b") == [2, 3]
    assert edits.rows_of_link(frames, "b->c") == [2]
    changed = edits.set_link(frames, "b<->c", {"capacity_mbps": 8.0, "latency_ms": 1.5, "cost": None})
    assert changed["links"]["capacity_mbps"].tolist() == [10.0, 10.0, 8.0, 8.0]
    assert changed["links"]["latency_ms"].tolist()[2:] == [1.5, 1.5]
    assert "cost" not in changed["links"], "a blank figure adds no column"
    assert edits.link_values(changed, "b<->c", ["capacity_mbps", "latency_ms", "cost"]) == {
        "capacity_mbps": 8.0, "latency_ms": 1.5, "cost": None,
    }  # fmt: skip
    assert edits.link_names(edits.remove_link(frames, "b<->c")) == ["a<->b"]
    assert frames["links"]["capacity_mbps"].tolist() == [10.0, 10.0, 5.0, 5.0], "tables are not changed"


def test_parallel_links_are_told_apart(frames: dict[str, pd.DataFrame]) -> None:
    frames["links"]["parallel"] = 0.0
    more = edits.add_link(frames, "a", "b", {"capacity_mbps": 3.0}, both_ways=True)
    assert more["links"]["parallel"].tolist()[-2:] == [2.0, 2.0]
    assert edits.rows_of_link(more, "a<->b#2") == [4, 5]
    assert edits.rows_of_link(edits.add_link(frames, "a", "b", {}, both_ways=False), "a->b#2") == [4]


def test_a_demand_is_moved_set_joined_and_removed(frames: dict[str, pd.DataFrame]) -> None:
    (row, name), *_ = edits.demand_names(frames, "c")
    assert name == "c → a"
    moved = edits.set_demand(frames, row, "b", "a", 3.5)["demands"]
    assert moved.to_numpy().tolist()[row] == ["b", "a", 3.5]
    joined = edits.set_demand(frames, 2, "a", "c", 1.0)["demands"]
    assert joined.to_numpy().tolist() == [["a", "c", 3.0], ["c", "a", 3.0]]
    assert len(edits.remove_demand(frames, 0)["demands"]) == 2


def test_a_new_link_has_the_usual_figures(frames: dict[str, pd.DataFrame]) -> None:
    columns = edits.number_columns(TRAFFIC, frames)
    assert columns[:1] == ["capacity_mbps"]
    assert {"latency_ms", "cost", "upgrade_cost"} <= set(columns)
    assert edits.usual_values(frames, columns)["capacity_mbps"] == 7.5
    assert edits.usual_values(frames, columns)["cost"] is None
    assert edits.is_usually_both_ways(frames)
    assert not edits.is_usually_both_ways({"links": frames["links"].iloc[[0, 2]]})


def test_a_change_of_several_tables_is_one_step(frames: dict[str, pd.DataFrame]) -> None:
    draft = Draft(system="traffic", frames=frames)
    draft.change_all(edits.remove_node(frames, "c"))
    assert edits.node_names(draft.frames) == ["a", "b"]
    draft.undo()
    assert draft.frames is frames
    draft.redo()
    assert len(draft.frames["demands"]) == 1


def test_what_is_no_problem_is_said_as_for_files(
    frames: dict[str, pd.DataFrame], tmp_path_factory: pytest.TempPathFactory
) -> None:
    wrong = edits.set_link(frames, "a<->b", {"capacity_mbps": -1.0})
    faults = check(wrong, tmp_path_factory).faults
    assert any("links row 1: capacity_mbps is -1" in fault for fault in faults), faults
