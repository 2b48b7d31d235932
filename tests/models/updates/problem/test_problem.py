"""Bad tables of system `updates`, with the exact messages; presets."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from planner.errors import InputError
from planner.io.table_files import check_problem
from planner_models.updates import Update
from planner_models.updates.problem import generators
from planner_models.updates.problem.schema import TABLES

NAMES = ["a", "b", "c"]
RULES = ["class", "switch", "next_hop", "share"]


def tables() -> dict[str, pd.DataFrame]:
    """Return one class from a to c, by b and then direct."""
    return {
        "switches": pd.DataFrame({"switch": NAMES, "rule_capacity": [2.0, 2.0, 2.0]}),
        "links": pd.DataFrame([("a", "b"), ("b", "c"), ("a", "c"), ("b", "a")], columns=["from", "to"]),
        "classes": pd.DataFrame(
            [("k", "a", "c", "", np.nan, "")],
            columns=["class", "ingress", "egress", "guarantee", "flow_life_s", "waypoints"],
        ),
        "now": pd.DataFrame([("k", "a", "b", 1.0), ("k", "b", "c", 1.0)], columns=RULES),
        "next": pd.DataFrame([("k", "a", "c", 1.0)], columns=RULES),
    }


BAD = [
    ("classes", 0, "egress", "x", "classes row 1: egress 'x' is no switch of the table switches"),
    ("now", 0, "class", "kk", "now row 1: class 'kk' is no class of the table classes; did you mean 'k'?"),
    ("now", 0, "next_hop", "x", "now row 1: next_hop 'x' is no switch of the table switches"),
    ("now", 1, "next_hop", "a", "now: class 'k' loops through 'a', before any update"),
    ("now", 1, "switch", "c", "now row 2: there is no link from 'c' to 'c'"),
    ("next", 0, "next_hop", "b", "next: class 'k' ends at 'b', without a rule, before any update"),
    ("now", 0, "share", 0.5, "now row 1: shares of class 'k' at switch 'a' add up to 0.5, must be 1"),
    ("switches", 0, "rule_capacity", 0.0, "rule_capacity is 0, but now alone needs 1 rule at 'a'"),
    ("classes", 0, "guarantee", "per_flow", "guarantee of class 'k' is per_flow, which needs flow_life_s"),
    ("classes", 0, "waypoints", "x", "classes row 1: waypoint 'x' is no switch of the table switches"),
    ("classes", 0, "guarantee", "waypoint", "guarantee of class 'k' is waypoint, but it has no waypoints"),
    ("classes", 0, "ingress", "c", "now: class 'k' has rules, but none at its ingress 'c'"),
]


@pytest.mark.parametrize(("table", "row", "column", "value", "line"), BAD)
def test_bad_tables(table: str, row: int, column: str, value: object, line: str) -> None:
    inputs = tables()
    values = inputs[table][column].astype(object)
    values.iloc[row] = value
    inputs[table][column] = values
    with pytest.raises(InputError) as result:
        Update.from_tables(inputs)
    assert any(line in fault for fault in result.value.faults), result.value.faults


def test_a_link_of_the_other_direction_only_is_named() -> None:
    inputs = tables()
    inputs["now"] = pd.DataFrame([("k", "a", "c", 1.0), ("k", "c", "b", 1.0)], columns=RULES)
    with pytest.raises(InputError) as result:
        Update.from_tables(inputs)
    (line,) = result.value.faults
    start = "now row 2: there is no link from 'c' to 'b'"
    assert line == f"{start}; there is one in the other direction, and each needs a row"


def test_two_rows_of_one_class_and_switch_are_split_or_refused() -> None:
    inputs = tables()
    again = pd.DataFrame([("k", "a", "c", 1.0)], columns=RULES)
    inputs["now"] = pd.concat([inputs["now"], again], ignore_index=True)
    with pytest.raises(InputError, match="add up to 2, must be 1; it has 2 rows"):
        Update.from_tables(inputs)


def test_a_bad_guarantee_is_the_only_fault_where_ingresses_are_blank() -> None:
    inputs = tables()
    inputs["classes"] = inputs["classes"].assign(ingress="", guarantee="no_lop")
    inputs["classes"].loc[1] = inputs["classes"].iloc[0]
    inputs["classes"].loc[1, ["class", "guarantee"]] = ["m", "no_loop"]
    for name in ("now", "next"):
        inputs[name] = pd.concat([inputs[name], inputs[name].assign(**{"class": "m"})], ignore_index=True)
    with pytest.raises(InputError) as result:
        check_problem(TABLES, inputs, Update.from_tables)
    assert len(result.value.faults) == 1, result.value.faults
    assert result.value.faults[0].startswith("classes row 1: guarantee is 'no_lop'")


def test_a_new_class_cannot_ask_for_delivery() -> None:
    inputs = tables()
    inputs["now"] = inputs["now"].iloc[:0]
    Update.from_tables(inputs)
    inputs["classes"]["guarantee"] = "no_black_hole"
    with pytest.raises(
        InputError, match="it has no path in now: its packets are lost without the update too"
    ):
        Update.from_tables(inputs)


def test_a_waypoint_on_neither_path() -> None:
    inputs = tables()
    inputs["now"] = inputs["next"].copy()
    inputs["classes"]["waypoints"] = "b"
    with pytest.raises(
        InputError, match="waypoint 'b' of class 'k' is on no path of it, neither now nor next"
    ):
        Update.from_tables(inputs)


def test_a_class_without_a_path() -> None:
    inputs = tables()
    inputs["now"], inputs["next"] = inputs["now"].iloc[:0], inputs["next"].iloc[:0]
    with pytest.raises(InputError, match="class 'k' has a path neither in now nor in next"):
        Update.from_tables(inputs)


@pytest.mark.parametrize("name", sorted(generators.PRESETS))
def test_presets_are_updates(name: str) -> None:
    problem = generators.PRESETS[name]()
    assert problem.slots.changes.any()
    assert problem.reverse().rules_now.tolist() == problem.rules_next.tolist()


def test_maintenance_leaves_no_packets_that_pass() -> None:
    problem = generators.maintenance(name="sndlib/abilene", classes="pairs", switch="KSCYng")
    index = problem.switch_index.get_loc("KSCYng")
    slots = problem.slots
    passing = slots.next.has_rule() & (slots.switch == index) & (problem.ingress[slots.owner] != index)
    assert not passing.any()


def test_a_wrong_table_of_switches_is_told_in_few_lines() -> None:
    inputs = tables()
    names = [f"n{row}" for row in range(20)]
    inputs["links"] = pd.DataFrame({"from": names, "to": names[::-1]})
    rules = pd.DataFrame({"class": "k", "switch": names, "next_hop": names[::-1], "share": 1.0})
    with pytest.raises(InputError) as caught:
        Update(**(inputs | {"now": rules, "next": rules}))
    lines = str(caught.value).splitlines()
    assert lines[0] == "links row 1: from 'n0' is no switch of the table switches; valid: a, b, c"
    assert len(lines) < 20
