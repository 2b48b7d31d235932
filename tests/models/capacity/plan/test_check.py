"""The check: costs, routes and failures of plans made elsewhere."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd
import pytest

import planner
from planner.errors import PlanRejected
from planner_models.capacity import CapacityPlanning, Purchases
from planner_models.capacity.plan.check import check, evaluate
from planner_models.capacity.plan.metrics import measure
from planner_models.capacity.plan.reading import from_tables
from planner_models.capacity.problem.adjustments import adjust
from tests.models.capacity.networks import problem_of, ring


def plan_of(problem: CapacityPlanning, *rows: tuple[str, str, float]) -> Purchases:
    """Return a plan of purchases (link, module, count); its costs and routes are computed."""
    return from_tables(problem, {"purchases": pd.DataFrame(rows, columns=["link", "module", "count"])})


def test_a_list_of_purchases_is_a_plan() -> None:
    problem = ring()
    plan = plan_of(problem, ("c<->a", "m", 2))
    assert plan.purchases[["added_mbps", "cost", "setup_cost"]].to_numpy().tolist() == [[20.0, 8.0, 0.0]]
    assert not len(check(problem, plan))
    assert measure(problem, plan, None)["total_cost"] == 8.0


def test_what_does_not_fit_under_a_failure_is_found() -> None:
    problem = adjust(ring(), failures="links")
    violations = check(problem, plan_of(problem, ("a<->c", "m", 2)))
    assert violations.frame[["limit", "where", "amount", "allowed"]].to_numpy().tolist() == [
        ["states", "a<->c", pytest.approx(5.0), 0.0]
    ]
    assert measure(problem, plan_of(problem, ("a<->c", "m", 2)), None)["survived_failures"] == 2


def test_probabilities_weigh_what_does_not_fit() -> None:
    failures = pd.DataFrame(
        [("f", "a<->c", 0.1), ("g", "b", 0.2)], columns=["failure", "member", "probability"]
    )
    problem = ring(failures=failures)
    figures = measure(problem, plan_of(problem, ("a<->c", "m", 1)), None)
    assert figures["expected_unserved_mbps"] == pytest.approx(0.1 * 5 + 0.2 * 5)


def test_with_a_budget_it_is_a_loss() -> None:
    problem = adjust(ring(), failures="links", budget=8.0)
    plan = plan_of(problem, ("a<->c", "m", 2))
    assert not len(check(problem, plan))
    assert measure(problem, plan, None)["unserved_mbps"] == pytest.approx(5.0)
    dear = plan_of(problem, ("a<->c", "m", 3))
    result = check(problem, dear).frame
    assert result[["limit", "amount", "allowed"]].to_numpy().tolist() == [["budget", 12.0, 8.0]]


def test_modules_have_limits() -> None:
    modules = pd.DataFrame([("m", 10.0, 4.0, 1.0)], columns=["module", "capacity_mbps", "cost", "max_count"])
    problem = ring(modules=modules)
    violations = check(problem, plan_of(problem, ("a<->c", "m", 2)))
    assert violations.frame[["limit", "where", "amount"]].to_numpy().tolist() == [
        ["limits", "m on a<->c", 2.0]
    ]


def with_flow(factor: float) -> Callable[[Purchases], dict[str, pd.DataFrame]]:
    return lambda plan: {"flows": plan.flows.assign(rate_mbps=plan.flows["rate_mbps"] * factor)}


WRONG: dict[str, tuple[Callable[[Purchases], dict[str, pd.DataFrame]], str]] = {
    "another cost": (
        lambda plan: {"purchases": plan.purchases.assign(cost=5.0)},
        "purchases row 1: cost is 5, must be 4",
    ),
    "another capacity": (
        lambda plan: {"purchases": plan.purchases.assign(added_mbps=50.0)},
        "purchases row 1: added_mbps is 50, must be 10",
    ),
    "a setup that costs nothing": (
        lambda plan: {"purchases": plan.purchases.assign(setup_cost=1.0)},
        "purchases: setup_cost of link a<->c is not what its first purchase costs",
    ),
    "an unknown link": (
        lambda plan: {"purchases": plan.purchases.assign(link="a<->z")},
        "purchases row 1: 'a<->z' is no link",
    ),
    "an unknown module": (
        lambda plan: {"purchases": plan.purchases.assign(module="n")},
        "purchases row 1: 'n' is no module of link a<->c",
    ),
    "half of the routes": (with_flow(0.5), "Mbit/s leave a, must be 15"),
    "demand that is left out but routed": (
        lambda _: {"unserved": pd.DataFrame([("a", "c", 5.0)], columns=["source", "target", "rate_mbps"])},
        "Mbit/s leave a, must be 10",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_tables_are_no_plan(case: str) -> None:
    change, words = WRONG[case]
    problem = ring()
    plan = plan_of(problem, ("a<->c", "m", 1))
    with pytest.raises(PlanRejected) as result:
        evaluate(problem, from_tables(problem, {**plan.to_tables(), **change(plan)}))
    assert words in str(result.value)


def test_routes_over_too_little_capacity_are_violations() -> None:
    problem = ring()
    plan = plan_of(problem, ("a<->c", "m", 1))
    flows = pd.DataFrame([("c", "a<->c", "a", 15.0)], columns=["target", "link", "tail", "rate_mbps"])
    violations = check(problem, from_tables(problem, {**plan.to_tables(), "flows": flows}))
    assert violations.frame[["limit", "where", "amount", "allowed"]].to_numpy().tolist() == [
        ["capacity", "a<->c", 15.0, 10.0]
    ]


@pytest.mark.parametrize(("direction", "load"), [("undirected", 9.0), ("bidirected", 6.0)])
def test_directions_share_or_have_the_capacity(direction: str, load: float) -> None:
    item = ring([("a", "c", 10.0)], [("a", "c", 6.0), ("c", "a", 3.0)])
    problem = adjust(item, direction=direction)  # type: ignore[arg-type]
    run = planner.solve(problem, design="greedy")
    assert evaluate(problem, run.plan).load.max() == pytest.approx(load)
    assert run.metrics["max_utilization"] == pytest.approx(load / 10)


@pytest.mark.parametrize(("installed_mbps", "missing_mbps"), [(0.0, 10.0), (4.0, 6.0), (10.0, 0.0)])
def test_a_small_demand_that_does_not_fit_is_found_beside_a_large_one(
    installed_mbps: float, missing_mbps: float
) -> None:
    modules = pd.DataFrame({"module": ["m"], "capacity_mbps": [2.5e8], "cost": [1.0]})
    demands = [("a", "b", 1e9), ("b", "c", 10.0)]
    problem = problem_of([("a", "b", 0.0), ("b", "c", installed_mbps)], demands, modules=modules)
    plan = plan_of(problem, ("a<->b", "m", 4))
    result = check(problem, plan).frame
    assert result["amount"].tolist() == ([pytest.approx(missing_mbps, rel=1e-3)] if missing_mbps else [])
    assert measure(problem, plan, None)["unserved_mbps"] == pytest.approx(missing_mbps, rel=1e-3)
    assert plan.unserved["rate_mbps"].sum() == pytest.approx(missing_mbps, rel=1e-3)


def test_a_failure_that_cuts_off_a_small_demand_is_not_survived() -> None:
    modules = pd.DataFrame({"module": ["m"], "capacity_mbps": [2.5e8], "cost": [1.0]})
    links = [("a", "b", 1e9), ("a", "b", 1e9), ("b", "c", 10.0), ("b", "c", 0.0)]
    problem = problem_of(links, [("a", "b", 1e9), ("b", "c", 10.0)], modules=modules)
    metrics = measure(adjust(problem, failures="links"), plan_of(problem), None)
    assert (metrics["survived_failures"], metrics["failures"]) == (3.0, 4.0)
    assert metrics["unserved_mbps"] == 10.0
