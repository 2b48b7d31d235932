"""A number that makes tables invalid is named, in place of every row."""

from __future__ import annotations

import pytest

import planner
from planner.errors import InputError
from planner.scenarios.adjusted_problems import adjust_problem


@pytest.mark.parametrize("key", ["problem.scale", "problem.capacity_scale"])
def test_a_factor_that_is_too_large_is_named_with_its_value_and_the_rule(key: str) -> None:
    changes = {"problem.scale": 2.0, "problem.capacity_scale": 2.0, key: 1e300}
    scenario = planner.load("traffic/wan_cuts", changes=changes)
    with pytest.raises(InputError) as refused:
        scenario.make_problem()
    (line,) = refused.value.faults
    assert line.startswith(f"{key} is 1e+300, must keep all values valid; with it, ")
    assert "must be at most 1e+12" in line


def test_a_problem_in_memory_and_events_name_the_factor_too() -> None:
    problem = planner.load("traffic/wan_cuts").make_problem()
    with pytest.raises(InputError, match=r"^problem\.scale is 1e\+300, must keep all values valid"):
        planner.solve(problem, design="ecmp", changes={"problem.scale": 1e300})
    scenario = planner.load(
        "traffic/wan_cuts", changes={"series.windows": 2, "events.2.problem.scale": 1e300}
    )
    assert scenario.make_series is not None
    with pytest.raises(InputError, match=r"^problem\.scale is 1e\+300, must keep all values valid"):
        list(scenario.make_series())


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), -1.0])
@pytest.mark.parametrize("name", ["traffic/wan_cuts", "circuits/skewed_64"])
def test_a_factor_that_is_no_amount_is_refused_at_once(name: str, value: float) -> None:
    with pytest.raises(InputError, match=r"problem\.scale is \S+, must be (a finite number|greater than)"):
        planner.load(name, changes={"problem.scale": value})


def test_faults_that_name_an_adjustment_and_faults_of_none_stay() -> None:
    def refuse(problem: float, *, fail: int = 0, scale: float = 1.0) -> float:
        if fail:
            raise InputError(f"fail is {fail}, must be at most 0")
        if problem < 0:
            raise InputError("row 1: must be at least 0")
        return problem * scale

    assert adjust_problem(refuse, 2.0, {"scale": 3.0}) == 6.0
    with pytest.raises(InputError, match=r"^fail is 3, must be at most 0$"):
        adjust_problem(refuse, 1.0, {"fail": 3, "scale": 2.0})
    with pytest.raises(InputError, match=r"^row 1: must be at least 0$"):
        adjust_problem(refuse, -1.0, {"scale": 2.0})
