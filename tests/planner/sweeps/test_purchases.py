"""The cheapest set of upgrades that serves all, against brute force over all sets, and beside the list."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest

import planner
from planner.errors import InputError
from planner.scenarios.catalogue import find_system
from planner.sweeps.purchases import _common_divisor
from planner.sweeps.upgrade_list import Upgrades, exact_cost
from planner_models.capacity.problem.generators import backbone
from planner_models.traffic import Traffic
from tests import commands
from tests.planner.sweeps.test_failures import network
from tests.planner.sweeps.test_upgrades import costs_of, delivered_by_set


def two_ways(seed: int) -> Traffic:
    """Return duplex links from a to d by two ways and directly, of which some must be upgraded."""
    random = np.random.default_rng(seed)
    ends = [("a", "b"), ("b", "d"), ("a", "c"), ("c", "d"), ("a", "d")]
    links, cost = [], []
    for tail, head in ends:
        capacity, price = float(random.integers(2, 7)), float(random.integers(1, 9))
        links += [(tail, head, capacity), (head, tail, capacity)]
        cost += [price, price]
    return network(links, [("a", "d", 10.0), ("d", "b", 4.0)], upgrade_cost=cost)


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_no_set_that_serves_all_costs_less(seed: int) -> None:
    problem = two_ways(seed)
    values = delivered_by_set(problem)
    links = costs_of(problem)
    cost = {name: 2 * links[name.replace("<->", "->")] for name in set().union(*values)}
    most = max(values.values())
    least = min(
        sum(cost[name] for name in names) for names, value in values.items() if value >= most * (1 - 1e-7)
    )
    result = planner.upgrades(problem, design="optimum", exact=True)
    cheapest = result.cheapest
    assert cheapest is not None, result.no_cheapest
    assert cheapest.cost == pytest.approx(least)
    assert cheapest.is_proven
    assert cheapest.serves_all == (most >= 14.0 * (1 - 1e-7))
    assert cheapest.metrics["delivered_mbps"] == pytest.approx(most)
    if cheapest.serves_all:
        assert result.cost >= cheapest.cost
        says = " ".join(result.cheapest_words)
        assert ("as cheap" in says) == (exact_cost(result.cost) == exact_cost(cheapest.cost))


def test_the_list_costs_more_than_the_cheapest_set() -> None:
    links = [("a", "b", 8.0), ("b", "d", 10.0), ("a", "d", 4.0), ("a", "c", 1.0), ("c", "d", 1.0)]
    problem = network(links, [("a", "d", 16.0)], upgrade_cost=[10.0, 1.0, 4.0, 1.0, 1.0])
    result = planner.upgrades(problem, design="optimum", exact=True)
    cheapest = result.cheapest
    assert cheapest is not None, result.no_cheapest
    assert cheapest.is_proven
    assert not cheapest.lost
    assert result.cost >= cheapest.cost
    data = json.loads(json.dumps(result.to_dict()))
    assert data["cheapest"]["elements"] == list(cheapest.elements)
    again = planner.solve(
        problem,
        design="optimum",
        changes={f"problem.{key}": value for key, value in cheapest.adjustments.items()},
    )
    assert again.metrics["delivered_mbps"] == pytest.approx(16.0)


def test_another_routing_may_need_no_upgrade() -> None:
    links = [("a", "b", 4.0), ("b", "d", 4.0), ("a", "d", 4.0)]
    result = planner.upgrades(network(links, [("a", "d", 7.0)]), design="ecmp", exact=True, steps=1)
    assert result.cheapest is not None
    assert result.cheapest.elements == ()
    assert result.cheapest_words == ("No upgrade is needed: other routes serve all.",)


def test_without_losses_there_is_no_cheapest_set() -> None:
    result = planner.upgrades(
        network([("a", "b", 4.0)], [("a", "b", 1.0)]), design="optimum", steps=0, exact=True
    )
    assert result.cheapest is None
    assert result.cheapest_words == ("No cheapest set: all that was asked for is served without an upgrade.",)


@pytest.mark.parametrize(
    ("links", "message"),
    [
        ([("a", "b", 4.0), ("b", "a", 5.0)], "a<->b: has another capacity in each direction"),
        ([("a", "b", 4.0), ("b", "a", 4.0), ("b", "c", 1.0)], "links: some have an opposite one"),
    ],
)
def test_a_problem_that_it_cannot_express_is_said(links: list[tuple[str, str, float]], message: str) -> None:
    result = planner.upgrades(network(links, [("a", "b", 9.0)]), design="optimum", steps=0, exact=True)
    assert result.cheapest is None
    assert message in result.no_cheapest


def test_a_system_whose_plans_are_purchases_refuses_the_question() -> None:
    with pytest.raises(InputError, match=r"exact: plans of capacity choose all purchases together"):
        planner.upgrades("capacity/own_data", exact=True)
    assert find_system("traffic").studies.purchases is not None


def test_sums_of_costs_are_multiples_of_their_common_divisor() -> None:
    assert float(_common_divisor([exact_cost(cost) for cost in (0.3, 0.45, 6.0)])) == pytest.approx(0.15)
    assert _common_divisor([exact_cost(1.0)] * 3) == 1
    assert _common_divisor([]) == 0


def test_the_command_prints_the_set_beside_the_list() -> None:
    result = commands.planner(
        "upgrades", "traffic/abilene", "--design", "optimum", "--set", "problem.scale=3", "--exact"
    )
    assert result.code == 0
    assert "The cheapest set" in result.out


PROBLEM = backbone(cities=6, classes=True, tunnels=1)
CHANGES = {"problem.scale": 1.5, "problem.failures": "links"}


@pytest.fixture(scope="module")
def found() -> Upgrades:
    return planner.upgrades(PROBLEM, changes=CHANGES)


@pytest.mark.slow
def test_the_list_is_the_plan(found: Upgrades) -> None:
    plan = found.run.plan
    assert found.cost == pytest.approx(found.run.metrics["purchase_cost"])
    assert {step.element for step in found.steps} == set(plan.purchases["link"])
    for step in found.steps:
        current = plan.purchases[plan.purchases["link"] == step.element]
        assert step.cost == pytest.approx(current["cost"].sum() + current["setup_cost"].sum())
    assert found.metrics == found.run.metrics


@pytest.mark.slow
def test_each_step_reaches_as_much_and_the_last_one_all(found: Upgrades) -> None:
    reached = [found.first["delivered_mbps"], *(step.metrics["delivered_mbps"] for step in found.steps)]
    assert all(after >= before for before, after in itertools.pairwise(reached))  # type: ignore[operator]
    assert reached[-1] == pytest.approx(found.run.metrics["delivered_mbps"])
    assert found.shares()[-1] == pytest.approx(1.0)
    assert found.steps[0].losses or len(found.steps) == 1


def test_no_budget_reaches_more_than_its_bound(found: Upgrades) -> None:
    assert len(found.points) > 1
    values = [point.value for point in found.points]
    assert values == sorted(values)
    for point in found.points:
        assert point.bound is not None
        assert point.value <= point.bound * (1 + 1e-9)


def test_the_proof_is_said_and_the_result_is_plain_data(found: Upgrades) -> None:
    assert "costs less than" in found.caveat
    plain = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert len(plain["steps"]) == len(found.steps)
    assert plain["curve"]["points"][0]["bound"] is not None
    assert len(found.to_frame()) == len(found.steps)


def test_a_budget_limits_the_list() -> None:
    result = planner.upgrades(PROBLEM, changes=CHANGES, budget=5.0, steps=1)
    assert result.cost <= 5.0
    assert len(result.steps) == 1
    assert result.adjustments == {"budget": 5.0}


def test_a_plan_that_buys_nothing_says_so() -> None:
    result = planner.upgrades(PROBLEM, budget=0.0)
    assert not result.steps
    assert "no upgrade is bought: its plan buys nothing" in result.verdict


def test_settings_of_single_upgrades_are_refused() -> None:
    with pytest.raises(InputError) as caught:
        planner.upgrades(PROBLEM, kinds="link", candidates=3)
    why = "plans of capacity choose all purchases together, without a search among single ones"
    assert list(caught.value.faults) == [f"kinds: {why}", f"candidates: {why}"]
