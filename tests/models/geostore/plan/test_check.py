"""The check of plans: worked bills and times, violations with names, and tables that are no plan."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

from planner.errors import PlanRejected
from planner_models.geostore import Geostore, StorePlan, check, measure
from planner_models.geostore.plan.evaluation import evaluate
from planner_models.geostore.plan.losses import measure_losses

MONTH = 30 * 24 * 3600


def pair(**columns: Any) -> Geostore:
    """Return two regions, 100 ms apart, and one group that users of both use."""
    return Geostore(
        regions=pd.DataFrame(
            {
                "region": ["a", "b", "c"],
                "storage_usd_gb_month": [0.1, 0.2, 0.3],
                "put_usd": [1e-6, 2e-6, 3e-6],
                "get_usd": [1e-7, 2e-7, 3e-7],
                "server_usd_month": 100.0,
                "server_kops": 1.0,
            }
        ),
        links=pd.DataFrame(
            [
                (s, t, 100.0, usd)
                for s, usd in (("a", 0.01), ("b", 0.02), ("c", 0.05))
                for t in "abc"
                if s != t
            ],
            columns=["source", "target", "rtt_ms", "usd_per_gb"],
        ),
        groups=pd.DataFrame(
            {"group": ["g"], "size_gb": [10.0], "object_bytes": [1000.0], "class": ["eventual"]}
        ).assign(**columns),
        access=pd.DataFrame(
            {"group": "g", "region": ["a", "b"], "reads_per_s": [10.0, 20.0], "writes_per_s": [1.0, 2.0]}
        ),
    )


def plan_of(**changes: Any) -> StorePlan:
    """Return replicas in a and b, each for its own users."""
    plan = StorePlan(
        replicas=pd.DataFrame({"group": "g", "region": ["a", "b"], "role": "replica", "copies": 1.0}),
        routes=pd.DataFrame(
            {
                "group": "g",
                "region": ["a", "b"],
                "read_from": ["a", "b"],
                "write_to": ["a", "b"],
                "read_ms": 1.0,
                "write_ms": 1.0,
            }
        ),
        propagation=pd.DataFrame(
            {"group": "g", "origin": ["a", "b"], "source": ["a", "b"], "target": ["b", "a"]}
        ),
        classes=pd.DataFrame(
            {"group": ["g"], "class": ["eventual"], "n": [2.0], "r": [1.0], "w": [1.0], "checks": ["none"]}
        ),
        servers=pd.DataFrame({"region": ["a", "b"], "servers": [0.013, 0.023]}),
    )
    return replace(plan, **changes)


def test_the_bill_is_that_by_hand() -> None:
    state = evaluate(pair(), plan_of())
    assert state.storage_usd == pytest.approx(10 * 0.1 + 10 * 0.2)
    requests = 10 * 1e-7 + 20 * 2e-7 + 3 * 1e-6 + 3 * 2e-6  # reads in each region, all writes in both
    assert state.request_usd == pytest.approx(requests * MONTH)
    assert state.egress_usd == pytest.approx((1 * 0.01 + 2 * 0.02) * 1e-6 * MONTH)  # 1 kB a write
    assert state.load.tolist() == [13.0, 23.0, 0.0]
    assert state.server_usd == pytest.approx(100 * 0.036)
    good = measure(pair(), plan_of(), None)["usd_per_million_good"]
    assert good == pytest.approx(state.usd / (33 * MONTH / 1e6))
    assert not len(check(pair(), plan_of()))


def test_causal_groups_carry_metadata() -> None:
    causal = plan_of(classes=plan_of().classes.assign(**{"class": "causal", "checks": "local"}))
    state = evaluate(pair(**{"class": "causal"}), causal)
    assert state.egress_usd == pytest.approx((1 * 0.01 + 2 * 0.02) * (1000 + 8 + 16) / 1e9 * MONTH)
    share = (30 * 16 + 3 * 24) / (33 * 1000)
    assert measure(pair(), causal, None)["metadata_share"] == pytest.approx(share)
    assert state.load[0] == pytest.approx(13 / (1 - 0.066))


def test_a_lost_region_loses_writes_on_their_way() -> None:
    losses = measure_losses(evaluate(pair(), plan_of()))
    assert losses["lost_writes"].tolist() == pytest.approx([1 * 0.0505, 2 * 0.0505, 0.0])
    assert losses["lost_groups"].tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("columns", "limit", "words"),
    [
        ({"class": "causal"}, "class", "group 'g' is eventual, asks for causal"),
        ({"failures": [2.0]}, "survival", "group 'g'"),
        ({"stale_ms": [40.0]}, "stale", "group 'g'"),
        ({"read_ms": [0.9]}, "limits", None),
    ],
)
def test_violations_are_named(columns: dict[str, Any], limit: str, words: str | None) -> None:
    found = check(pair(**columns), plan_of()).of_limits([limit]).frame
    assert found["where"].tolist() == ([] if words is None else [words])  # no region serves a page in 0.9 ms


def test_a_slow_page_violates_a_limit_that_some_region_keeps() -> None:
    routes = plan_of().routes.assign(read_from=["b", "b"], read_ms=[100.5, 1.0])
    servers = pd.DataFrame({"region": ["a", "b"], "servers": 0.1})
    frame = check(pair(read_ms=[50.0]), plan_of(routes=routes, servers=servers)).frame
    assert frame["limit"].tolist() == ["limits"]
    assert frame["where"].tolist() == ["reads of group 'g' from region 'a'"]
    assert (frame["amount"].iloc[0], frame["allowed"].iloc[0]) == (100.5, 50.0)


def test_order_cannot_be_checked_where_a_dependency_is_not() -> None:
    problem = pair(**{"class": "causal"})
    two = replace(
        problem,
        groups=pd.concat([problem.groups, problem.groups.assign(group="h")], ignore_index=True),
        access=pd.concat([problem.access, problem.access.assign(group="h")], ignore_index=True),
        depends=pd.DataFrame({"group": ["h"], "on": ["g"]}),
    )
    plan = plan_of()
    both = plan_of(
        replicas=pd.concat(
            [plan.replicas, plan.replicas.assign(group="h", region=["a", "c"])], ignore_index=True
        ),
        routes=pd.concat(
            [plan.routes, plan.routes.assign(group="h", read_from="a", write_to="a", read_ms=[1.0, 101.0],
                                             write_ms=[1.0, 101.0])],
            ignore_index=True,
        ),
        propagation=pd.concat(
            [plan.propagation, pd.DataFrame({"group": ["h"], "origin": "a", "source": "a", "target": "c"})],
            ignore_index=True,
        ),
        classes=pd.concat([plan.classes, plan.classes.assign(group="h")], ignore_index=True).assign(
            **{"class": "causal", "checks": "local"}
        ),
    )  # fmt: skip
    both = replace(both, routes=both.routes.assign(read_ms=[1, 1, 1, 100.5], write_ms=[1, 1, 1, 100.5]))
    frame = check(two, both).of_limits(["order"]).frame
    assert frame["where"].tolist() == ["group 'h' is in region 'c' without group 'g', which it depends on"]


PLAN = plan_of().to_tables()
REJECTED: dict[str, tuple[str, dict[str, Any], str]] = {
    "an unknown region": ("replicas", {"region": ["a", "x"]}, "replicas row 2: 'x' is no region"),
    "reads without a replica": (
        "routes",
        {"read_from": ["c", "b"]},
        "routes: group 'g' of region 'a' reads where no replica is",
    ),
    "writes without a replica": (
        "routes",
        {"write_to": ["c", "b"]},
        "routes: group 'g' of region 'a' writes where no replica is",
    ),
    "wrong times": ("routes", {"read_ms": [1.0, 2.0]}, "routes row 2: read_ms is 2, must be 1"),
    "a wrong number": ("classes", {"n": [3.0]}, "classes: group 'g' has 2 replicas that vote, not n"),
    "a copy that is missing": (
        "propagation",
        {"origin": ["a", "c"], "source": ["a", "c"]},
        "the replica of group 'g' in region 'a' gets no writes of 'b'",
    ),
    "a source without the write": (
        "propagation",
        {"source": ["c", "b"]},
        "propagation row 1: region 'c' does not have the writes of 'a'",
    ),
    "quorums that do not meet": (
        "classes",
        {"class": ["quorum"], "n": [2.0]},
        "has r + w = 2, must be above n = 2",
    ),
    "a leader that is missing": (
        "classes",
        {"class": ["leader"], "w": [2.0]},
        "must have a leader if it is led",
    ),
}


@pytest.mark.parametrize("case", REJECTED)
def test_tables_that_are_no_plan_are_rejected(case: str) -> None:
    table, columns, words = REJECTED[case]
    with pytest.raises(PlanRejected) as result:
        check(pair(), plan_of(**{table: PLAN[table].assign(**columns)}))
    assert words in str(result.value)


def test_front_ends_may_write_straight_to_every_replica() -> None:
    routes = plan_of().routes.assign(region=["a", "c"], read_from=["a", "b"], write_to=["a", "c"])
    problem = pair()
    elsewhere = replace(problem, access=problem.access.assign(region=["a", "c"]))
    copies = pd.DataFrame(
        {"group": "g", "origin": ["a", "c", "c"], "source": ["a", "c", "c"], "target": ["b", "a", "b"]}
    )
    routes = routes.assign(read_ms=[1.0, 100.5], write_ms=[1.0, 100.5])
    state = evaluate(elsewhere, plan_of(routes=routes, propagation=copies))
    assert state.write_ms.tolist() == [1.0, 100.5]
    assert state.egress_usd == pytest.approx(
        (1 * 0.01 + 2 * 2 * 0.05) * 1e-6 * MONTH + 20 * 1e-6 * 0.02 * MONTH
    )
