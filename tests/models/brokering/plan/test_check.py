"""Checks of plans: rejected tables, and counted constraint violations."""

from __future__ import annotations

import pandas as pd
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


ROUNDS = pd.DataFrame({"round": [1.0, 2.0], "overbooked": [1.0, 0.0], "withdrawn": [2.0, 0.0]})
OFFERS = pd.DataFrame({"cluster": ["a", "b"], "markup": [1.1, 1.0], "promise": [0.5, 1.0]})
TRAFFIC = pd.DataFrame(
    {"window": [1.0, 1.0], "cdn": ["x", "y"], "region": ["world", "world"], "mbps": [5.0, 0.0]}
)


@pytest.mark.parametrize(
    ("table", "frame", "message"),
    [
        ("rounds", ROUNDS, None),
        ("rounds", ROUNDS.iloc[:1], "rounds row 1: 1 of 2 clusters overbooked, 2 mappings withdrawn"),
        ("rounds", ROUNDS.iloc[1:], "rounds: round is 2 where 1 is expected"),
        ("rounds", pd.concat([ROUNDS, ROUNDS]), "rounds: round is 1 where 3 is expected"),
        ("rounds", ROUNDS.assign(overbooked=[9.0, 0.0]), "rounds row 1: 9 of 2 clusters overbooked"),
        ("rounds", ROUNDS.assign(overbooked=[1.0, 1.0]), "rounds row 2: 1 of 2 clusters overbooked"),
        ("offers", OFFERS, None),
        ("offers", OFFERS.assign(cluster=["a", "bb"]), "offers row 2: 'bb' is no cluster; did you mean"),
        ("offers", pd.concat([OFFERS, OFFERS]), "offers row 3: cluster 'a' is there twice"),
        ("offers", OFFERS.iloc[:1], "offers: cluster 'b' has no bid, every cluster must have one"),
        (
            "rounds",
            pd.DataFrame({"round": [1, 2, 3.0], "overbooked": [1, 1, 0.0], "withdrawn": [2, 3, 0.0]}),
            "rounds row 2: 3 mappings withdrawn, 2 in the first round",
        ),
        ("traffic", TRAFFIC, None),
        ("traffic", TRAFFIC.assign(window=2.0), "traffic: window is 2 where 1 is expected"),
        ("traffic", TRAFFIC.assign(cdn="x"), "traffic row 2: CDN 'x' is there twice in a window"),
        ("traffic", TRAFFIC.assign(cdn="x", region=["EU", "world"]), None),
        ("traffic", TRAFFIC.drop(columns="region"), None),
    ],
)
def test_records_that_cannot_be_are_rejected(table: str, frame: pd.DataFrame, message: str | None) -> None:
    problem = make([("Lyon", 1000.0, 10)], [("a", "x", "Lyon", 60.0, 0.1), ("b", "y", "Oslo", 50.0, 0.2)])
    plan = Assignment(
        assignments=problem.clients.assign(cluster="a"), **{table: frame.reset_index(drop=True)}
    )
    if message is None:
        assert not len(check(problem, plan))
        return
    with pytest.raises(PlanRejected) as caught:
        check(problem, plan)
    assert str(caught.value).startswith(message)
