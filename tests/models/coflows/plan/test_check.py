"""The check of plans made elsewhere."""

from __future__ import annotations

from typing import Any

import pytest

from planner.errors import PlanRejected
from planner_models.coflows.plan.check import check
from planner_models.coflows.plan.completion import replay
from tests.models.coflows.instances import circuit_plan, problem_of

PROBLEM = problem_of(
    {"one": 0.0, "two": 20.0}, [("one", "a", "b", 10.0), ("one", "a", "c", 10.0), ("two", "a", "b", 10.0)]
)
GOOD = [
    ("one", "a", "b", 10.0, 20.0, 1.0),
    ("two", "a", "b", 20.0, 30.0, 1.0),
    ("one", "a", "c", 40.0, 50.0, 1.0),
]


def test_a_circuit_that_stays_up_needs_no_setup() -> None:
    assert not len(check(PROBLEM, circuit_plan(GOOD)))
    assert replay(PROBLEM, circuit_plan(GOOD)).coflow_ms.tolist() == [50.0, 10.0]


BAD: dict[str, tuple[int, tuple[Any, ...], list[list[Any]]]] = {
    "no time for the set-up": (
        2,
        ("one", "a", "c", 35.0, 45.0, 1.0),
        [["setup", "one a->c", 35.0, 40.0]],
    ),
    "a busy port": (2, ("one", "a", "c", 25.0, 35.0, 1.0), [["ports", "one a->c", 25.0, 30.0]]),
    "the first circuit without a set-up": (
        0,
        ("one", "a", "b", 5.0, 15.0, 1.0),
        [["setup", "one a->b", 5.0, 10.0]],
    ),
    "too short": (2, ("one", "a", "c", 40.0, 45.0, 1.0), [["coverage", "one", 1_875_000.0, 2_500_000.0]]),
}


@pytest.mark.parametrize("case", BAD)
def test_violations_have_amounts(case: str) -> None:
    position, row, expected = BAD[case]
    violations = check(
        PROBLEM, circuit_plan([row if position == index else good for index, good in enumerate(GOOD)])
    )
    assert violations.frame[["limit", "where", "amount", "allowed"]].to_numpy().tolist() == expected


def test_no_data_is_sent_before_it_is_there() -> None:
    early = [GOOD[0], ("two", "a", "b", 20.0, 30.0, 1.0), GOOD[2]]
    problem = problem_of(
        {"one": 0.0, "two": 25.0}, [("one", "a", "b", 10.0), ("one", "a", "c", 10.0), ("two", "a", "b", 10.0)]
    )
    violations = check(problem, circuit_plan(early))
    assert violations.frame[["limit", "amount", "allowed"]].to_numpy().tolist() == [["arrival", 20.0, 25.0]]


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (("three", "a", "b", 10.0, 20.0, 1.0), "'three' is no coflow of the problem"),
        (("two", "a", "c", 10.0, 20.0, 1.0), "coflow 'two' has no flow from 'a' to 'c'"),
        (("one", "a", "z", 10.0, 20.0, 1.0), "coflow 'one' has no flow from 'a' to 'z'"),
        (("one", "a", "b", 20.0, 20.0, 1.0), "end_ms must be greater than start_ms"),
        (("one", "a", "b", 10.0, 20.0, 2.0), "switch must be from 1 to 1"),
    ],
)
def test_wrong_tables_are_no_plan(row: tuple[Any, ...], words: str) -> None:
    with pytest.raises(PlanRejected) as result:
        check(PROBLEM, circuit_plan([row]))
    assert words in str(result.value)
