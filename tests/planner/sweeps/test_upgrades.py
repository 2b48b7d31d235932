"""Best upgrades, against brute force over all subsets of upgrades on tiny networks."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import planner
from planner.errors import InputError
from planner.runs.trials import Trials
from planner.scenarios.arguments import as_scenario
from planner.scenarios.catalogue import find_system, system_names
from planner.sweeps.upgrade_list import Point, Upgrades, pareto_points
from planner.sweeps.upgrades import _Candidate
from planner_models.traffic import Traffic
from tests import commands
from tests.planner.sweeps.test_failures import ODD, TRAFFIC, network

DOUBLED = "capacity_factors"


def ring(seed: int, *, has_costs: bool) -> Traffic:
    """Return one-way links from a to d by three ways, and two demands that do not fit."""
    random = np.random.default_rng(seed)
    ends = [("a", "b"), ("b", "d"), ("a", "c"), ("c", "d"), ("a", "d")]
    links = [(tail, head, float(random.integers(1, 6))) for tail, head in ends]
    costs = {"upgrade_cost": [float(random.integers(1, 9)) for _ in ends]} if has_costs else {}
    return network(links, [("a", "d", 14.0), ("b", "d", 5.0)], **costs)


def delivered_by_set(problem: Traffic) -> dict[frozenset[str], float]:
    """Return the delivered traffic with each set of doubled links."""
    trials = Trials.of(as_scenario(problem), "optimum")
    (kind,) = [element for element in TRAFFIC.problem.elements if element.with_role("upgrade")]
    names = kind.names(problem)
    result = {}
    for count in range(len(names) + 1):
        for selected in itertools.combinations(names, count):
            outcome = trials.outcome({DOUBLED: dict.fromkeys(selected, 2.0)} if selected else {})
            result[frozenset(selected)] = float(outcome.metrics["delivered_mbps"] or 0.0)
    return result


def costs_of(problem: Traffic) -> Mapping[str, float]:
    labels = [f"{tail}->{head}" for tail, head in problem.links[["tail", "head"]].to_numpy()]
    return dict(zip(labels, problem.links["upgrade_cost"], strict=True))


@pytest.mark.parametrize("seed", [0, 1, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("has_costs", [False, True])
def test_each_step_is_the_best_single_one_and_no_point_beats_brute_force(seed: int, has_costs: bool) -> None:
    problem = ring(seed, has_costs=has_costs)
    values = delivered_by_set(problem)
    names = sorted(set().union(*values))
    cost = costs_of(problem) if has_costs else dict.fromkeys(names, 1.0)
    result = planner.upgrades(problem, design="optimum")
    assert result.has_costs == has_costs
    have: frozenset[str] = frozenset()
    if not result.dropped:
        for step in result.steps:
            gains = {name: (values[have | {name}] - values[have]) / cost[name] for name in set(names) - have}
            assert step.is_proven
            assert step.gain / step.cost == pytest.approx(max(gains.values()), rel=1e-5, abs=1e-6)
            have |= {step.element}
            assert step.metrics["delivered_mbps"] == pytest.approx(values[have], rel=1e-6)
    have = frozenset(step.element for step in result.steps)
    assert result.cost == pytest.approx(sum(cost[name] for name in have))
    remainder = {name: values[have | {name}] - values[have] for name in set(names) - have}
    assert not [name for name, gain in remainder.items() if gain > 1e-4], "more can be gained"
    for point in result.points:
        assert point.value == pytest.approx(values[frozenset(point.elements)], rel=1e-6)
        assert point.cost == pytest.approx(sum(cost[name] for name in point.elements))
        allowed = [value for value in values if sum(cost[name] for name in value) <= point.cost + 1e-9]
        best = max(values[item] for item in allowed)
        assert point.value <= best * (1 + 1e-6)
    reached = [point.value for point in result.points]
    assert reached == sorted(reached)


def test_a_step_that_later_ones_make_needless_is_dropped() -> None:
    links = [("a", "d", 2.0), ("a", "b", 8.0), ("b", "d", 30.0)]
    problem = network(links, [("a", "d", 18.0)], upgrade_cost=[1.0, 10.0, 50.0])
    result = planner.upgrades(problem, design="optimum")
    assert [step.element for step in result.steps] == ["a->b"]
    assert result.dropped == ("a->d",)
    assert result.cost == 10.0
    assert result.metrics["delivered_mbps"] == pytest.approx(18.0)
    assert [point.cost for point in result.points] == [0.0, 1.0, 10.0]
    assert result.within(9.99) == result.points[1]


def test_gains_are_counted_from_the_step_before_also_where_one_was_dropped() -> None:
    links = [("a", "d", 2.0), ("a", "b", 8.0), ("b", "d", 30.0), ("c", "d", 4.0)]
    demands = [("a", "d", 18.0), ("c", "d", 9.0)]
    problem = network(links, demands, upgrade_cost=[1.0, 10.0, 50.0, 4.0])
    result = planner.upgrades(problem, design="optimum")
    assert result.dropped == ("a->d",)
    values = [result.first, *(step.metrics for step in result.steps)]
    delivered = [float(metrics["delivered_mbps"] or 0.0) for metrics in values]
    gains = [after - before for before, after in itertools.pairwise(delivered)]
    assert [step.gain for step in result.steps] == pytest.approx(gains, rel=1e-6)


def test_an_upgrade_says_what_it_does_where_its_element_has_several() -> None:
    kinds = [kind for name in system_names() for kind in find_system(name).problem.elements]
    for kind in kinds:
        actions = kind.with_role("upgrade")
        titles = [_Candidate(kind=kind, action=action, name="x", cost=1.0).title for action in actions]
        assert len(set(titles)) == len(titles)
        assert len(titles) != 1 or titles == ["x"]


@pytest.mark.parametrize(
    ("budget", "bought"), [(0.3, ["b->d", "c->d"]), (0.29, ["c->d"]), (0.1, ["b->d"]), (0.09, []), (0, [])]
)
def test_a_budget_holds_to_the_cent(budget: float, bought: list[str]) -> None:
    links = [("b", "d", 1.0), ("c", "d", 4.0)]
    demands = [("b", "d", 9.0), ("c", "d", 9.0)]
    problem = network(links, demands, upgrade_cost=[0.1, 0.2])
    result = planner.upgrades(problem, design="optimum", budget=budget)
    assert sorted(step.element for step in result.steps) == bought
    spent = sum((Fraction(str(step.cost)) for step in result.steps), Fraction(0))
    assert spent <= Fraction(str(budget))
    assert result.cost == float(spent)
    if not bought:
        assert "no upgrade is bought: the budget does not reach for another upgrade." in result.verdict


def test_without_costs_a_budget_counts_upgrades() -> None:
    result = planner.upgrades(ring(0, has_costs=False), design="optimum", budget=2)
    assert len(result.steps) == 2
    assert list(result.curve.columns) == ["upgrades", "delivered_mbps", "elements"]


def test_where_nothing_is_lost_demand_can_grow() -> None:
    problem = network([("a", "b", 4.0), ("b", "c", 2.0)], [("a", "c", 1.0)])
    result = planner.upgrades(problem, design="optimum", steps=2)
    assert result.metric.name == "concurrent_flow"
    assert [step.element for step in result.steps] == ["b->c"]  # then one alone gains nothing
    assert result.steps[0].metrics["concurrent_flow"] == pytest.approx(4.0)
    assert result.shares() == pytest.approx([2.0, 4.0])
    assert "all demand can grow to 4 times" in result.verdict


def test_a_ladder_ends_when_all_is_served() -> None:
    problem = network([("a", "b", 4.0), ("b", "c", 9.0)], [("a", "c", 7.0)])
    result = planner.upgrades(problem, design="optimum")
    assert [step.element for step in result.steps] == ["a->b"]
    assert result.ending == "all that was asked for is served"
    assert result.shares() == pytest.approx([4 / 7, 8 / 7])
    assert result.adjustments == {DOUBLED: {"a->b": 2.0}}
    again = planner.solve(problem, design="optimum", changes={"problem.capacity_factors": {"a->b": 2.0}})
    assert again.metrics["delivered_mbps"] == pytest.approx(result.metrics["delivered_mbps"])


def test_a_design_without_bounds_tries_all() -> None:
    problem = ring(1, has_costs=False)
    result = planner.upgrades(problem, design="ecmp", steps=1)
    (step,) = result.steps
    assert step.is_proven
    assert step.tried == step.candidates == 5
    limited = planner.upgrades(problem, design="ecmp", steps=1, candidates=2)
    assert limited.steps[0].tried == 2
    assert not limited.steps[0].is_proven
    assert "of those tried" in limited.caveat


def test_bounds_save_solving() -> None:
    result = planner.upgrades(ring(2, has_costs=False), design="optimum", steps=1)
    assert result.steps[0].is_proven
    assert result.steps[0].tried < 5


def test_odd_names_are_bought_by_themselves() -> None:
    links = [(ODD[i], ODD[i + 1], 5.0) for i in range(len(ODD) - 1)]
    problem = network(links, [(ODD[0], ODD[1], 9.0), (ODD[3], ODD[4], 8.0)])
    result = planner.upgrades(problem, design="optimum")
    assert [step.element for step in result.steps] == [f"{ODD[0]}->{ODD[1]}", f"{ODD[3]}->{ODD[4]}"]
    assert result.metrics["delivered_mbps"] == pytest.approx(17.0)
    json.dumps(result.to_dict(), allow_nan=False)


def interrupt_after(count: int) -> Callable[[int, int, int], None]:
    calls = itertools.count(1)

    def advance(finished: int, failed: int, total: int) -> None:
        if next(calls) == count:
            raise KeyboardInterrupt

    return advance


def test_an_interruption_keeps_the_steps_found() -> None:
    upgrades = planner.upgrades(ring(0, has_costs=False), design="ecmp")
    result = planner.upgrades(ring(0, has_costs=False), design="ecmp", advance=interrupt_after(7))
    assert result.is_interrupted
    assert result.exit_code == 130
    assert [step.element for step in result.steps] == [upgrades.steps[0].element]
    assert result.points


def test_each_step_is_shown_when_it_is_found() -> None:
    seen: list[Upgrades] = []
    result = planner.upgrades(ring(0, has_costs=False), design="optimum", found=seen.append)
    assert [len(item.steps) for item in seen][:2] == [1, 2]
    assert seen[-1].steps == result.steps


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"kinds": "node"}, "kinds: traffic has no 'node' that can be upgraded; valid: link"),
        ({"steps": -1}, "steps is -1, must be at least 0"),
        ({"budget": -5.0}, "budget is -5.0, must be a finite number of at least 0"),
        ({"budget": float("nan")}, "budget is nan, must be a finite number"),
        ({"candidates": 0}, "candidates is 0, must be at least 1"),
    ],
)
def test_bad_arguments_are_named(given: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError) as error:
        planner.upgrades(ring(0, has_costs=False), **given)
    assert says in str(error.value)


def test_pareto_points_cost_less_or_reach_more() -> None:
    points = [
        Point(cost=cost, value=value, elements=())
        for cost, value in [(0.0, 1.0), (2.0, 5.0), (1.0, 3.0), (2.0, 4.0), (3.0, 5.0), (4.0, 2.0)]
    ]
    result = pareto_points(points, TRAFFIC.metric("delivered_mbps"))
    assert [(item.cost, item.value) for item in result] == [(0.0, 1.0), (1.0, 3.0), (2.0, 5.0)]


def test_the_command_prints_what_applies_the_list() -> None:
    words = ["traffic/abilene", "--set", "problem.scale=2", "--design", "ecmp", "--budget", "1"]
    result = commands.planner("upgrades", *words)
    assert result.code == 0, result.err
    assert "planner solve traffic/abilene --design ecmp --set problem.scale=2 --set" in result.out
    assert max(len(line) for line in result.out.splitlines() if "each way" in line) <= 80
    results = json.loads(commands.planner("upgrades", *words, "--json").out)
    (step,) = results["steps"]
    assert f'"{step["element"]}" = 2.0' in result.out
    assert results["adjustments"] == {"scale": 2, **step["adjustments"]}
