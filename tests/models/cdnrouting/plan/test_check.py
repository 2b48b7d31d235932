"""The check of plans: worked loads and delays, violations with amounts, and tables that are no plan."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest

from planner.errors import PlanRejected
from planner_models.cdnrouting import Delivery, DeliveryPlan, check
from planner_models.cdnrouting.plan.check import evaluate
from planner_models.cdnrouting.plan.metrics import measure, rounds_to_settle


def line(capacity: float = 10.0) -> Delivery:
    """Return a -> b -> c with background from a to c, a cluster at a and clients at b and c."""
    return Delivery(
        nodes=pd.DataFrame({"node": ["a", "b", "c"]}),
        links=pd.DataFrame(
            [("a", "b", capacity, 1.0, 1.0, 2.0), ("b", "c", capacity, 1.0, 1.0, 3.0)],
            columns=["tail", "head", "capacity_mbps", "weight", "cost", "latency_ms"],
        ),
        demands=pd.DataFrame({"source": ["a"], "target": ["c"], "rate_mbps": [1.0]}),
        clients=pd.DataFrame(
            {
                "location": ["b", "c"],
                "content": "video",
                "bitrate_kbps": 1000.0,
                "clients": [2.0, 2.0],
            }
        ),
        clusters=pd.DataFrame({"cluster": ["s"], "location": ["a"], "capacity_mbps": [4.0]}),
        places=pd.DataFrame({"location": ["a", "b", "c"], "node": ["a", "b", "c"], "share": 1.0}),
    )


def plan_of(amounts: tuple[float, float] = (2.0, 2.0)) -> DeliveryPlan:
    return DeliveryPlan(
        assignments=pd.DataFrame(
            {"location": ["b", "c"], "content": "video", "cluster": "s", "mbps": list(amounts)}
        ),
        routes=pd.DataFrame(
            [("b", "a", "b", 1.0), ("c", "a", "b", 1.0), ("c", "b", "c", 1.0)],
            columns=["target", "tail", "head", "share"],
        ),
    )


def test_loads_and_delays_are_those_by_hand() -> None:
    problem = line()
    (state,) = evaluate(problem, plan_of())
    assert state.load.tolist() == [5.0, 3.0]
    assert state.cdn_load.tolist() == [4.0, 2.0]
    assert state.delay_ms == pytest.approx([2 + 1.0, 3 + 3 / 7])  # u / (1 - u) is 1 and 3/7
    assert state.mean_delay_ms == pytest.approx((5 * 3 + 3 * (3 + 3 / 7)) / 5)
    assert state.cdn_delay_ms == pytest.approx((4 * 3 + 2 * (3 + 3 / 7)) / 4)
    assert state.isp_cost == pytest.approx((5 + 2 * (5 - 10 / 3)) + 3)
    assert not len(check(problem, plan_of()))


def test_overload_delays_along_the_tangent() -> None:
    (state,) = evaluate(line(capacity=4.0), plan_of())
    assert state.utilization[0] == pytest.approx(1.25)
    assert state.delay_ms[0] == pytest.approx(2 + 19 + 0.3 * 400)


@pytest.mark.parametrize(
    ("plan", "limit", "amount"),
    [
        (plan_of((2.5, 2.0)), "clusters", 4.5),
        (plan_of((2.5, 2.0)), "clients", 2.5),
        (plan_of((1.0, 2.0)), "served", 1.0),
    ],
)
def test_violations_have_amounts(plan: DeliveryPlan, limit: str, amount: float) -> None:
    frame = check(line(), plan).of_limits([limit]).frame
    assert frame["amount"].tolist() == [amount]


def test_a_bargain_must_not_exceed_the_reaction() -> None:
    outcome = pd.DataFrame({"isp_cost": [9.0], "cdn_delay_ms": [1.0]})
    frame = check(line(), replace(plan_of(), outcome=outcome)).of_limits(["outcome"]).frame
    assert frame["where"].tolist() == ["isp_cost", "cdn_delay_ms"]


REJECTED = {
    "an unknown cluster": (
        "assignments",
        {"cluster": ["s", "x"]},
        "assignments row 2: 'x' is no cluster",
    ),
    "unknown clients": (
        "assignments",
        {"content": ["video", "news"]},
        "assignments row 2: there are no clients of location and content 'c' and 'news'",
    ),
    "no such link": ("routes", {"head": ["b", "c", "c"]}, "routes row 2: a->c is no link with capacity"),
    "no target": ("routes", {"target": ["x", "c", "c"]}, "routes row 1: no traffic ends at 'x'"),
    "shares": ("routes", {"share": [1.0, 1.0, 0.4]}, "add up to 0.4, must be 1"),
    "no way on": (
        "routes",
        {"target": ["b", "c", "b"]},
        "routes: traffic to 'c' has no way on at 'b'",
    ),
}


@pytest.mark.parametrize("case", REJECTED)
def test_tables_that_are_no_plan_are_rejected(case: str) -> None:
    table, columns, words = REJECTED[case]
    plan = plan_of()
    changed = replace(plan, **{table: getattr(plan, table).assign(**columns)})
    with pytest.raises(PlanRejected) as result:
        check(line(), changed)
    assert words in str(result.value)


def test_a_circle_is_rejected() -> None:
    problem = line()
    back = pd.DataFrame([("b", "a", 10.0, 1.0, 1.0, 2.0)], columns=problem.links.columns)
    circular = replace(problem, links=pd.concat([problem.links, back], ignore_index=True))
    routes = plan_of().routes.assign(head=["b", "b", "a"], tail=["a", "a", "b"])
    with pytest.raises(PlanRejected, match="runs in a circle"):
        check(circular, replace(plan_of(), routes=routes))


def test_a_plan_of_several_states_has_means() -> None:
    plan = plan_of()
    states = [
        plan.assignments.assign(move=1.0),
        plan.assignments.assign(move=2.0, mbps=[2.0, 1.0]),
    ]
    moving = replace(
        plan,
        assignments=pd.concat(states, ignore_index=True),
        routes=pd.concat([plan.routes.assign(move=move) for move in (1.0, 2.0)], ignore_index=True),
    )
    each = [state.mean_delay_ms for state in evaluate(line(), moving)]
    metrics = measure(line(), moving, None)
    assert metrics["mean_delay_ms"] == pytest.approx(sum(each) / 2)
    assert metrics["swing"] == pytest.approx(max(each) / min(each))
    assert metrics["moved_share"] == pytest.approx(0.5 / 3.5)


@pytest.mark.parametrize(
    ("moved", "settled"), [([2.0, 1.0, 0.0], 2.0), ([2.0, 1.0, 1.0], None), ([0.0], 0.0)]
)
def test_a_reaction_settles_where_nothing_moves(moved: list[float], settled: float | None) -> None:
    rounds = pd.DataFrame(
        {"round": [float(row + 1) for row in range(len(moved))], "mover": "cdn", "moved_mbps": moved}
    )
    assert rounds_to_settle(line(), rounds) == settled
