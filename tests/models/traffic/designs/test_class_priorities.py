"""Plans by class: against an independent sequence of linear programs, and what must hold for any network."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.optimize
from hypothesis import given, settings
from hypothesis import strategies as st

from planner import Options, Status, load
from planner.contract.design import Decision
from planner.runs.evaluation import evaluate
from planner.scenarios.scenario import Entry
from planner_models.traffic import SYSTEM, Traffic, check
from planner_models.traffic.designs.optimum import optimum
from planner_models.traffic.plan import flow_decision
from planner_models.traffic.plan.delivery import delivered_rates
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.plan.verified_flow import verify_flow
from tests.models.traffic.networks import class_problems

GOLD_FIRST = {"gold": 1, "silver": 2, "bulk": 3}


def example(**classes: Any) -> Traffic:
    links = [("a", "b", 10.0), ("b", "d", 10.0), ("a", "c", 5.0), ("c", "d", 5.0)]
    demands = [
        ("a", "d", 6.0, "gold"),
        ("a", "d", 9.0, "bulk"),
        ("b", "d", 3.0, "bulk"),
        ("b", "d", 2.0, "silver"),
    ]
    table = pd.DataFrame({"class": list(GOLD_FIRST), "priority": list(GOLD_FIRST.values())}).assign(**classes)
    return Traffic.from_tables(
        {
            "links": pd.DataFrame(links, columns=["tail", "head", "capacity_mbps"]),
            "demands": pd.DataFrame(demands, columns=["source", "target", "rate_mbps", "class"]),
            "classes": table,
        }
    )


def served(problem: Traffic, decision: Decision[Routing]) -> np.ndarray:
    assert decision.plan is not None
    check(problem, decision.plan)
    return verify_flow(problem, decision.plan).served_mbps


def solve_levels(problem: Traffic, order: str) -> list[float]:
    """Return the value of each level by linear programs over the flow of each demand on each link.

    They share no code with the design: a commodity is a demand, and scipy solves them.
    """
    table = problem.class_table
    weight = table["weight"].to_numpy()[problem.class_of]
    rank = table["priority"].to_numpy()[problem.class_of] if order == "strict" else np.zeros(len(weight))
    demands, links = len(problem.demands), len(problem.links)
    width = demands * links + demands
    balance, supply = [], []
    for k in range(demands):
        for node in range(len(problem.nodes)):
            if node == problem.target[k]:
                continue
            row = np.zeros(width)
            row[k * links : (k + 1) * links] = (problem.tail == node).astype(float) - (problem.head == node)
            row[demands * links + k] = -float(node == problem.source[k])
            balance.append(row)
            supply.append(0.0)
    limits = np.hstack([np.tile(np.eye(links), demands), np.zeros((links, demands))])
    rows, right = list(limits), problem.capacity_mbps.tolist()
    bounds = [(0, None)] * (demands * links) + [(0, rate) for rate in problem.rate_mbps]
    values = []
    for level in np.unique(rank):
        worth = np.where(rank == level, weight, 0.0)
        worth /= table["weight"][[(level == bound) or order != "strict" for bound in table["priority"]]].max()
        cost = np.r_[np.zeros(demands * links), -worth]
        solution = scipy.optimize.linprog(
            cost, A_ub=np.array(rows), b_ub=right, A_eq=np.array(balance), b_eq=supply, bounds=bounds
        )
        assert solution.status == 0
        values.append(-solution.fun)
        rows.append(cost)
        right.append(solution.fun + 1e-9 * max(1.0, -solution.fun))
    return values


@pytest.mark.slow
@pytest.mark.parametrize("order", ["strict", "weighted"])
@given(problem=class_problems(max_nodes=4, max_demands=3))
@settings(max_examples=15)
def test_every_level_agrees_with_an_independent_program(order: str, problem: Traffic) -> None:
    decision = optimum.route(problem, classes=order)  # type: ignore[arg-type]
    served(problem, decision)
    expected = solve_levels(problem, order)
    result = [level.objective for level in decision.proof.levels]
    assert result == pytest.approx(expected, rel=1e-6, abs=1e-6)
    assert [level.bound for level in decision.proof.levels] == pytest.approx(expected, rel=1e-6, abs=1e-6)
    assert decision.proof.status is Status.OPTIMAL


@given(class_problems(max_nodes=5, max_demands=4))
@settings(max_examples=12)
def test_columns_never_beat_the_program_and_keep_their_bounds(problem: Traffic) -> None:
    exact, search = (optimum.route(problem, method=method) for method in ("lp", "columns"))  # type: ignore[arg-type]
    served(problem, search)
    for best, level in zip(exact.proof.levels, search.proof.levels, strict=True):
        assert level.objective <= level.bound * (1 + 1e-9)
        if abs(level.objective - best.objective) > 1e-5 * best.objective:
            assert level.objective < best.objective  # what follows depends on it
            break
        assert level.bound >= best.objective * (1 - 1e-5)


@given(class_problems(), st.floats(1.0, 3.0))
@settings(max_examples=12)
def test_more_capacity_never_hurts_the_highest_class(problem: Traffic, factor: float) -> None:
    values = [
        optimum.route(item).proof.levels[0].objective for item in (problem, problem.scale_capacity(factor))
    ]
    assert values[1] >= values[0] * (1 - 1e-6)


@pytest.mark.slow
@given(class_problems())
@settings(max_examples=12)
def test_lower_classes_take_nothing_from_the_highest(problem: Traffic) -> None:
    rank = problem.class_table["priority"].to_numpy()[problem.class_of]
    highest = rank == rank.min()
    alone = replace(problem, demands=problem.demands[highest])
    with_others, without = (optimum.route(item).proof.levels[0].objective for item in (problem, alone))
    assert with_others == pytest.approx(without, rel=1e-6)


@given(class_problems())
@settings(max_examples=12)
def test_classes_that_are_ignored_give_the_plan_of_all_together(problem: Traffic) -> None:
    decision = optimum.route(problem, classes="ignored")
    assert not decision.proof.levels
    merged = optimum.route(problem.merged)
    assert decision.proof.objective == pytest.approx(merged.proof.objective)
    by_pair = np.bincount(problem.merged_row, weights=served(problem, decision))
    assert by_pair == pytest.approx(served(problem.merged, merged), abs=1e-6)
    # no order of classes delivers more in all
    assert optimum.route(problem).proof.objective <= merged.proof.objective * (1 + 1e-6)  # type: ignore[operator]


@given(class_problems(), st.integers(1, 3))
@settings(max_examples=12)
def test_given_paths_never_beat_all_routes(problem: Traffic, paths: int) -> None:
    few, free = optimum.route(problem, paths=paths), optimum.route(problem)
    served(problem, few)
    first, best = few.proof.levels[0], free.proof.levels[0]
    assert first.objective <= best.objective * (1 + 1e-6)
    assert few.plan is not None
    assert few.plan.routes is not None
    assert few.plan.routes.columns[2] == "class"


@pytest.mark.slow
def test_the_search_finds_the_levels_of_the_program() -> None:
    problem = load("traffic/abilene_classes").make_problem()
    weighted = problem.classes.assign(priority=[1.0, 2.0, 2.0], weight=[1.0, 4.0, 1.0])  # type: ignore[union-attr]
    for item in (problem, replace(problem, classes=weighted), problem.scale_demands(3.0)):
        exact, search = (optimum.route(item, method=method) for method in ("lp", "columns"))  # type: ignore[arg-type]
        served(item, search)
        for best, result in zip(exact.proof.levels, search.proof.levels, strict=True):
            assert result.objective == pytest.approx(best.objective, rel=1e-4)
            assert best.objective * (1 - 1e-6) <= result.bound <= best.objective * (1 + 1e-3)


def test_plans_of_the_search_with_flows_per_target(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = example()
    by_demand = optimum.route(problem, method="columns")
    monkeypatch.setattr(flow_decision, "MAX_PAIR_ROWS", 0)
    by_target = optimum.route(problem, method="columns")
    assert by_target.plan is not None
    assert "source" not in by_target.plan.flows
    assert served(problem, by_target) == pytest.approx(served(problem, by_demand), abs=1e-6)


def test_what_strict_priority_sheds_is_all_of_the_lowest_class() -> None:
    problem = example()
    decision = optimum.route(problem)
    assert [(level.name, round(level.objective, 6)) for level in decision.proof.levels] == [
        ("gold", 6.0),
        ("silver", 2.0),
        ("bulk", 7.0),
    ]
    assert decision.plan is not None
    assert decision.plan.shed is not None
    assert set(decision.plan.shed["class"]) == {"bulk"}
    assert decision.proof.bound_scope == "plans that deliver the most of higher priorities"
    strict = replace(problem, overload="priority")
    assert delivered_rates(strict, verify_flow(strict, decision.plan)).sum() == pytest.approx(15.0)


def test_weights_decide_within_a_priority_and_alone() -> None:
    problem = example(priority=[1, 2, 2], weight=[1.0, 1.0, 4.0])
    strict, weighted = (optimum.route(problem, classes=order) for order in ("strict", "weighted"))  # type: ignore[arg-type]
    assert [level.name for level in strict.proof.levels] == ["gold", "silver, bulk (by weight)"]
    assert served(problem, strict)[[0, 3]] == pytest.approx([6.0, 0.0], abs=1e-6)
    assert served(problem, weighted)[[1, 2]].sum() == pytest.approx(12.0)  # bulk first
    assert len(weighted.proof.levels) == 1


def test_where_all_fits_each_level_is_proven() -> None:
    problem = example().scale_demands(0.5)
    for parameters in ({}, {"objective": "total"}, {"method": "columns"}, {"paths": 3}):
        decision = optimum.route(problem, **parameters)  # type: ignore[arg-type]
        assert decision.plan is not None
        assert decision.plan.shed is None
        assert [level.objective for level in decision.proof.levels] == pytest.approx([3.0, 1.0, 6.0])
        assert decision.proof.gap == pytest.approx(0.0, abs=1e-6)


def test_the_cheapest_of_the_plans_by_class() -> None:
    problem = example()
    priced = replace(problem, links=problem.links.assign(cost=[1.0, 1.0, 5.0, 5.0]))
    decision = optimum.route(priced, objective="cost")
    assert [level.objective for level in decision.proof.levels] == pytest.approx([6.0, 2.0, 7.0], rel=1e-5)
    # bulk may come from b on the cheap link only, and takes the dear way no more than it must
    load = decision.plan.links["load_mbps"].to_numpy() if decision.plan else np.zeros(0)
    other = optimum.route(priced).plan
    assert other is not None
    cost = priced.links["cost"].to_numpy()
    assert float(cost @ load) <= float(cost @ other.links["load_mbps"].to_numpy()) * (1 + 1e-6)


def test_strict_service_and_demands_without_a_path() -> None:
    problem = example()
    refused = optimum.route(problem, options=Options(service="all"))
    assert refused.proof.status is Status.INFEASIBLE
    cut = replace(problem, links=problem.links.iloc[[0, 2, 3]])
    decision = optimum.route(cut)
    assert served(cut, decision).sum() == pytest.approx(5.0)
    assert decision.plan is not None
    assert decision.plan.shed is not None
    assert decision.plan.shed["rate_mbps"].sum() == pytest.approx(15.0)


@pytest.mark.parametrize("parameters", [{}, {"method": "columns"}, {"classes": "weighted"}, {"paths": 2}])
def test_the_engine_accepts_the_plans(parameters: dict[str, Any]) -> None:
    design = next(item for item in SYSTEM.designs if item.name == "optimum")
    run = evaluate(SYSTEM, example(), Entry(label="optimum", design=design, parameters=parameters))
    assert run.error is None
    assert run.constraints.met
    assert run.metrics["delivered_mbps"] == pytest.approx(15.0)
    assert len(run.to_dict()["levels"]) == len(run.proof.levels)
