"""Adjustments of tables: sizes by layer and switch, equal plans, and refused sizes."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from planner.errors import InputError
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


def test_tables_of_named_switches_are_scaled() -> None:
    problem = Multicast.from_tables(fat().to_tables() | {"switches": OWN})
    changed = SYSTEM.problem.adjust(problem, entry_factors={"edge-0-0": 2.5, "edge-1-0": 2.0, "core-1": 0.25})
    assert free(changed)[["edge-0-0", "edge-1-0", "core-1"]].tolist() == [10, 24, 0]
    remainder = ["edge-0-0", "edge-1-0", "core-1"]
    assert (free(changed).drop(remainder) == free(problem).drop(remainder)).all()
    again = Multicast.from_tables(changed.to_tables())
    assert again.free_entries.tolist() == changed.free_entries.tolist()
    plain = SYSTEM.problem.adjust(fat(), table_size=7, entry_factors={"core-0": 2.0})
    assert free(plain).value_counts().to_dict() == {7: 19, 14: 1}
    of_tree = SYSTEM.problem.adjust(Multicast.from_tables(tree()), entry_factors={"c0": 0.5, "e00": 2.0})
    assert free(of_tree)[["c0", "c1", "e00", "e01"]].tolist() == [10, 20, 18, 9]


def test_groups_change_their_rate_or_are_left_out() -> None:
    problem = fat()
    changed = SYSTEM.problem.adjust(problem, rate_factors={"g3": 2.0, "g5": 0.0, "g39": 0.0})
    assert changed.size()["groups"] == 38
    assert changed.rate_mbps[3] == 2 * problem.rate_mbps[3]
    tables = problem.to_tables()
    gone = ["g5", "g39"]
    remaining = {name: tables[name][~tables[name]["group"].isin(gone)] for name in ("groups", "members")}
    expected = Multicast.from_tables(tables | remaining)
    assert changed.group_names.tolist() == expected.group_names.tolist()
    assert changed.spread.start.tolist() == expected.spread.start.tolist()
    assert changed.spread.ports.tolist() == expected.spread.ports.tolist()
    plan = SYSTEM.design("partitioned").decide(changed).plan
    assert not len(check(changed, plan))
    again = Multicast.from_tables(changed.to_tables())
    assert again.member_counts.tolist() == changed.member_counts.tolist()


def test_switches_of_every_layer_fail_by_name() -> None:
    names = ("edge-0-0", "core-1", "aggregation-2-0")
    for design in PLANNING:
        lost = []
        for count in range(4):
            problem = SYSTEM.problem.adjust(fat(), fail_switches=names[:count])
            plan = design.decide(problem).plan
            metrics = SYSTEM.plan.measure(problem, plan, None)
            lost.append(metrics["lost_mbps"])
        assert lost[0] == 0
        assert lost[1] > 0
        assert min(lost[1:]) >= lost[1]
    both = SYSTEM.problem.adjust(problem, failed_aggregations=2)
    assert both.failed is not None
    assert both.failed["switch"].tolist()[:3] == list(names)
    again = Multicast.from_tables(both.to_tables())
    assert again.failed is not None
    assert again.failed["switch"].tolist() == both.failed["switch"].tolist()


def test_every_switch_may_fail() -> None:
    problem = SYSTEM.problem.adjust(fat(), fail_switches=tuple(fat().wiring.switches))
    metrics = SYSTEM.plan.measure(problem, SYSTEM.design("partitioned").decide(problem).plan, None)
    assert metrics["lost_mbps"] == pytest.approx((problem.rate_mbps * problem.member_counts).sum())


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ({"fail_switches": ["core-7"]}, "fail_switches: 'core-7' is no switch; did you mean 'core-3'?"),
        ({"entry_factors": {"h0": 2.0}}, "entry_factors: 'h0' is no switch"),
        ({"rate_factors": {"G1": 2.0}}, "rate_factors: 'G1' is no group; did you mean 'g1'?"),
        (
            {"rate_factors": {f"g{i}": 0.0 for i in range(40)}},
            "rate_factors: every group is left out, one at least must remain",
        ),
    ],
)
def test_a_change_that_cannot_be_is_one_line(given: dict[str, Any], fault: str) -> None:
    with pytest.raises(InputError) as caught:
        SYSTEM.problem.adjust(fat(), **given)
    assert caught.value.faults == (fault,)
