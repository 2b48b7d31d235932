"""Failed clusters and scaled capacities: effects, unchanged data, and refused values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from planner.errors import InputError
from planner_models.brokering import SYSTEM, Brokering
from planner_models.brokering.designs import DESIGNS
from planner_models.brokering.designs.broker import assignment
from planner_models.brokering.plan.transportation import transportation_problem
from tests.models.brokering.markets import market as make
from tests.models.brokering.markets import markets


def two_cdns(**more: Any) -> Brokering:
    """Return two CDNs, one of them with two clusters."""
    return make(
        [("Lyon", 1000.0, 10), ("Oslo", 500.0, 4)],
        [("x1", "x", "Lyon", 60.0, 0.1), ("x2", "x", "Turin", 40.0, 0.3), ("y1", "y", "Oslo", 50.0, 0.2)],
        **more,
    )


def rules(*rows: tuple[str, ...]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["location", "isp", "content", "cdn", "cluster"])


@pytest.mark.slow
@settings(max_examples=25)
@given(markets(), st.integers(0, 5))
def test_a_failed_cluster_equals_one_that_never_existed(problem: Brokering, which: int) -> None:
    names = problem.clusters["cluster"].tolist()
    assume(which < len(names))
    remaining_problem = SYSTEM.problem.adjust(problem, fail_clusters=(names[which],))
    tables = problem.to_tables()
    for name in ("clusters", "scores"):
        tables[name] = tables[name][tables[name]["cluster"] != names[which]].reset_index(drop=True)
    never = Brokering.from_tables(tables)
    assert remaining_problem.clusters["cluster"].tolist() == names[:which] + names[which + 1 :]
    for table, other in zip(remaining_problem.to_tables().values(), never.to_tables().values(), strict=True):
        pd.testing.assert_frame_equal(table, other)
    assert np.array_equal(transportation_problem(remaining_problem).cost, transportation_problem(never).cost)


@pytest.mark.parametrize("design", DESIGNS, ids=[design.name for design in DESIGNS])
def test_no_design_uses_failed_clusters(design: Any) -> None:
    problem = SYSTEM.problem.adjust(two_cdns(), fail_clusters=("x*",))
    plan = design.run(design.observe(problem)).plan
    assert set(plan.assignments["cluster"]) == {"y1"}
    assert plan.assignments["clients"].sum() == 14


def test_scores_found_by_regression_stay_as_they_were() -> None:
    problem = two_cdns(scores=[("Lyon", "x1", 5.0), ("Lyon", "x2", 20.0)])
    remaining_problem = SYSTEM.problem.adjust(problem, fail_clusters=("x2",))
    assert remaining_problem.score.tolist() == problem.score[:, [0, 2]].tolist()
    unscored = SYSTEM.problem.adjust(two_cdns(), fail_clusters=("x2",))
    assert unscored.scores is None
    assert unscored.score.tolist() == two_cdns().score[:, [0, 2]].tolist()


def test_contracts_and_bids_of_remaining_clusters_stay() -> None:
    problem = two_cdns(
        contracts=[("x", "EU", 0.1), ("y", "EU", 0.2)],
        bids=[("Lyon", "x1"), ("Lyon", "y1"), ("Oslo", "y1"), ("Oslo", "x2"), ("Turin", "x2")],
    )
    item = SYSTEM.problem.adjust(problem, fail_clusters=("x1",))
    assert item.contracts is not None
    assert item.contracts["cdn"].tolist() == ["x", "y"]
    other = SYSTEM.problem.adjust(problem, fail_clusters=("x1", "x2"))
    assert other.cdn_names == ["y"]
    assert other.contracts is not None
    assert other.contracts["cdn"].tolist() == ["y"]
    assert other.bids is not None
    assert other.bids[["location", "cluster"]].to_numpy().tolist() == [["Lyon", "y1"], ["Oslo", "y1"]]


def test_rules_of_remaining_clusters_stay() -> None:
    tables = two_cdns().to_tables() | {
        "pinned": rules(("Lyon", "*", "*", "*", "x2"), ("Lyon", "*", "*", "y", "*")),
        "forbidden": rules(("Oslo", "*", "*", "x", "x1")),
    }
    remaining_problem = SYSTEM.problem.adjust(Brokering.from_tables(tables), fail_clusters=("x1", "x2"))
    assert remaining_problem.pinned is not None
    assert remaining_problem.pinned["cdn"].tolist() == ["*", "y"]  # the first names no cluster now
    assert remaining_problem.allowed.tolist() == [[True]] * len(remaining_problem.groups.count)
    assert remaining_problem.forbidden is None


@pytest.mark.parametrize(
    ("more", "names", "place"),
    [
        ({"pinned": rules(("Lyon", "*", "*", "*", "x2"))}, ("x2",), "Lyon"),
        (
            {"bids": pd.DataFrame([("Lyon", "x1"), ("Oslo", "y1")], columns=["location", "cluster"])},
            ("y1",),
            "Oslo",
        ),
    ],
)
def test_clients_whose_clusters_have_all_failed_are_shed(
    more: dict[str, pd.DataFrame], names: tuple[str, ...], place: str
) -> None:
    problem = Brokering.from_tables(two_cdns().to_tables() | more)
    failed = SYSTEM.problem.adjust(problem, fail_clusters=names)
    plan = assignment.assign(failed).plan
    assert plan is not None
    assert plan.shed is not None
    assert set(plan.shed["location"]) == {place}
    assert place not in set(plan.assignments["location"])
    assert not len(SYSTEM.plan.check(failed, plan))


@pytest.mark.parametrize(
    ("names", "fault"),
    [
        (("x3",), "problem.fail_clusters: 'x3' is no cluster; valid: x1, x2, y1"),
    ],
)
def test_an_impossible_failure_is_refused_in_one_line(names: tuple[str, ...], fault: str) -> None:
    with pytest.raises(InputError) as caught:
        SYSTEM.problem.adjust(two_cdns(), fail_clusters=names)
    assert caught.value.faults == (fault,)


def test_capacity_is_scaled_and_background_is_not() -> None:
    problem = two_cdns(background_mbps=[10.0, 30.0, 0.0])
    half = SYSTEM.problem.adjust(problem, capacity_scale=0.5)
    assert half.capacity_mbps.tolist() == [30.0, 20.0, 25.0]
    assert half.background_mbps.tolist() == [10.0, 30.0, 0.0]
    assert half.residual_mbps.tolist() == [20.0, 0.0, 25.0]
    both = SYSTEM.problem.adjust(problem, capacity_scale=0.5, free_scale=2.0)
    assert both.residual_mbps.tolist() == [40.0, 0.0, 50.0]
    assert problem.capacity_mbps.tolist() == [60.0, 40.0, 50.0]


@pytest.mark.parametrize("key", ["capacity_scale", "free_scale"])
def test_an_infinite_capacity_is_refused_in_one_line(key: str) -> None:
    with pytest.raises(InputError) as caught:
        SYSTEM.problem.adjust(two_cdns(), **{key: 1e308})
    assert caught.value.faults == (f"problem.{key}: is so large that a capacity is no finite number",)


@pytest.mark.parametrize("more", [{"fail_clusters": ("*",)}, {"fail_cdns": ("x", "y")}])
@pytest.mark.parametrize("design", DESIGNS, ids=[design.name for design in DESIGNS])
def test_without_any_cluster_all_clients_are_shed(design: Any, more: dict[str, Any]) -> None:
    problem = SYSTEM.problem.adjust(two_cdns(contracts=[("x", "EU", 0.1), ("y", "EU", 0.2)]), **more)
    plan = design.run(design.observe(problem)).plan
    assert not len(SYSTEM.plan.check(problem, plan))
    metrics = SYSTEM.plan.measure(problem, plan, None)
    assert metrics["shed"] == metrics["clients"] == 14
    assert metrics["served"] == 0


def test_a_cdn_that_leaves_takes_its_clusters() -> None:
    remaining_problem = SYSTEM.problem.adjust(two_cdns(), fail_cdns=("x",))
    assert remaining_problem.clusters["cluster"].tolist() == ["y1"]
    both = SYSTEM.problem.adjust(two_cdns(), fail_cdns=("x",), fail_clusters=("x1",))
    assert both.clusters["cluster"].tolist() == ["y1"]


def test_a_cdn_changes_all_its_prices() -> None:
    bids = pd.DataFrame(
        [("Lyon", "x1", 0.5), ("Oslo", "y1", 0.5), ("Turin", "y1", 0.5)],
        columns=["location", "cluster", "price"],
    )
    tables = two_cdns(contracts=[("x", "EU", 0.1), ("y", "EU", 0.2)]).to_tables() | {"bids": bids}
    problem = Brokering.from_tables(tables)
    dearer = SYSTEM.problem.adjust(problem, price_factors={"x": 1.2})
    assert dearer.unit_cost.tolist() == pytest.approx((problem.unit_cost * [1.2, 1.2, 1.0]).tolist())
    assert dearer.contracts is not None
    assert dearer.contracts["price"].tolist() == pytest.approx([0.12, 0.2])
    assert dearer.bids is not None
    assert dearer.bids["price"].tolist() == pytest.approx([0.6, 0.5, 0.5])


def test_clusters_and_places_are_scaled_by_exact_names() -> None:
    remaining_problem = SYSTEM.problem.adjust(
        two_cdns(), capacity_factors={"x1": 2.0}, demand_factors={"Lyon": 0.25}
    )
    assert remaining_problem.capacity_mbps.tolist() == [120.0, 40.0, 50.0]
    assert remaining_problem.count.tolist() == [2, 4]
    assert remaining_problem.demand_mbps.tolist()[:2] == [2.0, 2.0]


@pytest.mark.parametrize(
    ("more", "fault"),
    [
        ({"capacity_factors": {"x*": 2.0}}, "problem.capacity_factors: 'x*' is no cluster"),
        ({"price_factors": {"z": 2.0}}, "problem.price_factors: 'z' is no CDN"),
        ({"demand_factors": {"Rome": 2.0}}, "problem.demand_factors: 'Rome' is no place"),
        ({"fail_cdns": ("z",)}, "problem.fail_cdns: 'z' is no CDN"),
    ],
)
def test_unknown_names_are_refused_in_one_line(more: dict[str, Any], fault: str) -> None:
    with pytest.raises(InputError) as caught:
        SYSTEM.problem.adjust(two_cdns(), **more)
    (line,) = caught.value.faults
    assert line.startswith(fault)
