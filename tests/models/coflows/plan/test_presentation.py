"""Upgrades of racks: which may gain, and by how much at most."""

from __future__ import annotations

import pytest

import planner
from planner_models.coflows import SYSTEM
from tests.models.coflows.instances import problem_of

PROBLEM = problem_of(
    {"one": 0.0, "two": 10.0}, [("one", "a", "b", 60.0), ("one", "a", "c", 60.0), ("two", "c", "b", 5.0)]
)


def test_the_first_upgrade_is_the_one_that_gains_most() -> None:
    def mean_ms(rack: str) -> float:
        faster = SYSTEM.problem.adjust(PROBLEM, packet_factors={rack: 2.0})
        value = planner.solve(faster, design="hybrid").metrics["mean_completion_ms"]
        assert value is not None
        return value

    upgrades = planner.upgrades(PROBLEM, design="hybrid")
    first = upgrades.steps[0].metrics["mean_completion_ms"]
    assert first == pytest.approx(min(mean_ms(rack) for rack in ("a", "b", "c")))


def test_links_that_a_plan_does_not_use_are_not_tried() -> None:
    assert not planner.upgrades(PROBLEM, design="sunflow").steps


def test_an_upgrade_names_a_rack() -> None:
    faster = SYSTEM.problem.adjust(PROBLEM, circuit_factors={"a": 2.0})
    assert faster.racks["circuit_mbps"].max() == 2_000
    with pytest.raises(planner.InputError, match="'nowhere' is no rack"):
        SYSTEM.problem.adjust(PROBLEM, circuit_factors={"nowhere": 2.0})
