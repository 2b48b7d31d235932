"""Adjustments of tables: sizes by layer and switch, equal plans, and refused sizes."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from planner_models.multicast import SYSTEM, Multicast, check
from tests.models.multicast.fabrics import PLANNING, fat, tree

OWN = pd.DataFrame({"switch": ["edge-0-0", "core-1"], "entries": [5.0, 12.0], "occupied": [2.0, 4.0]})


def free(problem: Multicast) -> pd.Series:
    return pd.Series(problem.free_entries, index=problem.wiring.switches)


def test_a_size_applies_to_every_switch() -> None:
    problem = Multicast.from_tables(fat().to_tables() | {"switches": OWN})
    assert free(problem)["edge-0-0"] == 3  # worked out before it changes
    wide = SYSTEM.problem.adjust(problem, table_size=50)
    assert set(free(wide).drop(["edge-0-0", "core-1"])) == {50}
    assert free(wide)[["edge-0-0", "core-1"]].tolist() == [48, 46]
    assert free(problem)["edge-0-0"] == 3
    again = Multicast.from_tables(wide.to_tables())
    assert again.free_entries.tolist() == wide.free_entries.tolist()


def test_a_layer_can_have_its_own_size() -> None:
    wide = SYSTEM.problem.adjust(fat(), table_size=50, edge_entries=7)
    assert [set(wide.free(layer).tolist()) for layer in ("core", "aggregation", "edge")] == [{50}, {50}, {7}]
    edge = SYSTEM.problem.adjust(fat(), edge_entries=7)
    assert [edge.table_size(layer) for layer in ("core", "aggregation", "edge")] == [12, 12, 7]


def test_sizes_apply_to_trees_by_table() -> None:
    wide = SYSTEM.problem.adjust(Multicast.from_tables(tree()), core_entries=3)
    assert [wide.table_size(layer) for layer in ("core", "aggregation", "edge")] == [3, 20, 9]


@pytest.mark.parametrize("design", PLANNING, ids=[design.name for design in PLANNING])
def test_plans_fit_the_adjusted_tables(design: Any) -> None:
    drawn = fat(table_size=6)
    asked = SYSTEM.problem.adjust(fat(table_size=20), table_size=6)
    plans = [design.decide(problem).plan for problem in (drawn, asked)]
    assert not len(check(asked, plans[1]))
    for name, frame in plans[0].to_tables().items():
        assert frame.equals(plans[1].to_tables()[name]), name


@pytest.mark.parametrize("given", [{"table_size": 3}, {"table_size": 9, "core_entries": 3}])
def test_a_table_smaller_than_what_is_occupied_has_no_free_entry(given: dict[str, int]) -> None:
    problem = Multicast.from_tables(fat().to_tables() | {"switches": OWN})
    small = SYSTEM.problem.adjust(problem, **given)
    assert free(small)["core-1"] == 0
    assert free(small).min() == 0
    again = Multicast.from_tables(small.to_tables())
    assert again.free_entries.tolist() == small.free_entries.tolist()
    for design in PLANNING:
        assert not len(check(small, design.decide(small).plan)), design.name
