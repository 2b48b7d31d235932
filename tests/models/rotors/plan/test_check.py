"""The check: plans that violate each limit, and tables that are no plan."""

from __future__ import annotations

import functools
from collections.abc import Callable

import pandas as pd
import pytest

from planner.errors import InputError, PlanRejected
from planner_models.rotors import Routing, check
from planner_models.rotors.designs import DESIGNS
from planner_models.rotors.plan.plan import from_tables
from planner_models.rotors.problem import generators

PROBLEM = generators.small()


@functools.cache
def plan_of(name: str) -> Routing:
    return next(design for design in DESIGNS if design.name == name).decide(PROBLEM).plan


def changed(design: str, table: str, change: Callable[[pd.DataFrame], pd.DataFrame]) -> Routing:
    """Return the plan of a design with a changed table."""
    tables = plan_of(design).to_tables()
    return from_tables(PROBLEM, {**tables, table: change(tables[table].copy())})


def limits_of(plan: Routing) -> set[str]:
    """Return the names of the limits that a plan violates."""
    return set(check(PROBLEM, plan).frame["limit"])


def set_first(column: str, value: object) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """Return the change of a column's first value."""

    def change(frame: pd.DataFrame) -> pd.DataFrame:
        frame.loc[0, column] = value
        return frame

    return change


def test_too_much_traffic_is_found() -> None:
    more = changed("direct", "routes", lambda frame: frame.assign(rate_mbps=10 * frame["rate_mbps"]))
    assert {"capacity", "demand", "unserved"} <= limits_of(more)
    less = changed("direct", "routes", lambda frame: frame.iloc[1:])
    assert limits_of(less) == {"unserved"}


def test_too_much_traffic_at_once_is_found() -> None:
    more = changed("expander", "expander", lambda frame: frame.assign(rate_mbps=20 * frame["rate_mbps"]))
    assert {"instant", "urgent", "demand"} <= limits_of(more)


def test_a_short_night_is_found() -> None:
    early = changed("scheduled", "circuits", lambda frame: frame.assign(end_us=frame["end_us"] + 5.0))
    assert "night" in limits_of(early)


def test_a_port_in_use_is_found() -> None:
    def same(frame: pd.DataFrame) -> pd.DataFrame:
        frame.loc[1, ["start_us", "end_us", "switch"]] = frame.loc[0, ["start_us", "end_us", "switch"]]
        frame.loc[1, ["source_rack", "target_rack"]] = ["r1", "r3"]
        frame.loc[0, ["source_rack", "target_rack"]] = ["r1", "r2"]
        return frame

    assert "ports" in limits_of(changed("scheduled", "circuits", same))


def test_circuits_of_a_failed_rack_are_found() -> None:
    failed = PROBLEM.fail(["r1"])
    violations = check(failed, plan_of("scheduled"))
    assert "failed" in set(violations.frame["limit"])


@pytest.mark.parametrize(
    ("design", "table", "change", "words"),
    [
        ("two_hop", "circuits", set_first("end_us", 17.0), "are not those of the rotor switches' rotation"),
        (
            "two_hop",
            "circuits",
            lambda frame: frame.iloc[1:],
            "are not those of the rotor switches' rotation",
        ),
        ("scheduled", "circuits", set_first("switch", 9.0), "switch is 9, must be from 1 to 3"),
        ("scheduled", "circuits", set_first("end_us", 999.0), "must lie within the period of 300"),
        (
            "scheduled",
            "circuits",
            set_first("source_rack", "x"),
            "circuits row 1: source_rack 'x' is no rack",
        ),
        ("two_hop", "routes", set_first("via", "r99"), "routes row 1: via 'r99' is no other rack"),
        ("direct", "routes", set_first("target_rack", "r1"), "source_rack and target_rack are both 'r1'"),
        ("direct", "period", lambda frame: pd.concat([frame, frame]), "period: has 2 rows, must have one"),
    ],
)
def test_what_is_no_plan_is_rejected(
    design: str, table: str, change: Callable[[pd.DataFrame], pd.DataFrame], words: str
) -> None:
    with pytest.raises(PlanRejected, match=words):
        check(PROBLEM, changed(design, table, change))


def test_a_plan_needs_its_tables() -> None:
    with pytest.raises(InputError, match=r"^routes: is missing$"):
        from_tables(
            PROBLEM,
            {name: frame for name, frame in plan_of("direct").to_tables().items() if name != "routes"},
        )
