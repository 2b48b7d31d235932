"""Checks of plans: rejected tables, and counted constraint violations."""

from __future__ import annotations

import pytest

from planner.errors import PlanRejected
from planner_models.brokering import Assignment, check
from planner_models.brokering.designs.broker import assignment
from tests.models.brokering.markets import market as make


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cluster": "zz"}, "assignments row 1: 'zz' is no cluster"),
        ({"clients": 0.5}, "assignments row 1: clients is 0.5, must be a whole number, 0 or more"),
        (
            {"clients": 11.0},
            "assignments: 11 clients of Lyon/isp/news at 1000 kbit/s are assigned, there are 10",
        ),
        ({"bitrate_kbps": 7.0}, "assignments row 1: Lyon/isp/news at 7 kbit/s are no clients"),
        ({"cluster": "b"}, "assignments row 1: cluster 'b' is not on offer to 'Lyon'"),
    ],
)
def test_tables_that_are_no_plan_are_rejected(change: dict[str, object], message: str) -> None:
    problem = make(
        [("Lyon", 1000.0, 10)],
        [("a", "x", "Lyon", 60.0, 0.1), ("b", "y", "Oslo", 50.0, 0.2)],
        bids=[("Lyon", "a")],
    )
    plan = assignment.assign(problem).plan
    assert plan is not None
    with pytest.raises(PlanRejected) as caught:
        check(problem, Assignment(assignments=plan.assignments.assign(**change)))
    assert str(caught.value).startswith(message)


def test_constraint_violations_are_listed_with_their_amounts() -> None:
    problem = make([("Lyon", 1000.0, 10)], [("a", "x", "Lyon", 8.0, 0.1)], background_mbps=[1.0])
    frame = problem.clients.assign(cluster="a")
    broken = check(problem, Assignment(assignments=frame)).frame
    assert broken[["limit", "amount", "allowed"]].to_numpy().tolist() == [["capacity", 11.0, 8.0]]
    few = check(problem, Assignment(assignments=frame.assign(clients=7.0))).frame
    assert few[["limit", "amount", "allowed"]].to_numpy().tolist() == [["demand", 7.0, 10.0]]
