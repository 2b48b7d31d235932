"""Least-cost purchases with classes and tunnels, against an integer program over all paths."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import planner
from planner.options import Options
from planner_models import capacity
from planner_models.capacity.designs.cutting_planes import Master
from planner_models.capacity.plan.check import least_shed
from planner_models.capacity.plan.plan import tabulate_purchases
from planner_models.capacity.plan.reading import from_tables
from planner_models.capacity.problem.adjustments import adjust
from tests.models.capacity.networks import least_cost_on_paths, limit_latency, restricted_problem, ring

seeds = st.integers(0, 100_000)


@pytest.mark.slow
@settings(max_examples=6)
@given(seed=seeds, routing=st.booleans())
def test_the_least_cost_is_that_of_a_program_over_all_paths(seed: int, routing: bool) -> None:
    problem = restricted_problem(seed, routing=routing)
    right = least_cost_on_paths(problem)
    run = planner.solve(problem, design="optimum")
    assert run.metrics["total_cost"] == pytest.approx(right, rel=2e-4, abs=1e-6)
    assert run.decision.proof.bound <= right * (1 + 1e-6) + 1e-6
    assert not len(run.violations)


@pytest.mark.slow
@settings(max_examples=4)
@given(seed=seeds, routing=st.booleans())
def test_cuts_over_all_states_find_the_same(seed: int, routing: bool) -> None:
    problem = restricted_problem(seed, routing=routing)
    found = Master(problem, Options(gap=1e-6)).iterate(allowed=least_shed(problem))
    assert found is not None
    assert found.objective == pytest.approx(least_cost_on_paths(problem), rel=1e-4, abs=1e-5)


@pytest.mark.slow
@settings(max_examples=3)
@given(seed=seeds)
def test_no_design_is_cheaper_and_each_plan_is_checked(seed: int) -> None:
    problem = restricted_problem(seed)
    right = least_cost_on_paths(problem)
    for run in planner.compare(problem, designs=("rounding", "greedy", "shortest_path")):
        assert run.metrics["total_cost"] >= right * (1 - 1e-6) - 1e-6, run.label
        assert run.metrics["unserved_mbps"] == pytest.approx(0, abs=1e-6), run.label
        assert not len(run.violations), run.label
        bought = run.plan.purchases[["link", "module", "count"]]
        assert capacity.measure(problem, from_tables(problem, {"purchases": bought}), None)[
            "purchase_cost"
        ] == pytest.approx(run.metrics["purchase_cost"])


@pytest.mark.slow
def test_less_protection_and_more_tunnels_never_cost_more() -> None:
    for seed in (1, 2):
        problem = restricted_problem(seed)
        assert problem.classes is not None
        looser = replace(problem, classes=problem.classes.assign(protected_share=0.0))
        assert least_cost(looser) <= least_cost(problem) * (1 + 1e-4) + 1e-9
        normal = replace(problem, failures=None)  # a failure may cut tunnels off, whose demands need not fit
        assert least_cost(replace(normal, tunnels=None)) <= least_cost(normal) * (1 + 1e-4) + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "years"), [(2, 1), (4, 2), (7, 2)])
def test_budgets_with_tunnels_limits_and_years_reach_what_the_formal_model_does(
    seed: int, years: int
) -> None:
    pyo = pytest.importorskip("pyomo.environ")
    problem = limit_latency(restricted_problem(seed, years=years), seed)
    cost = planner.solve(problem, design="optimum").metrics["purchase_cost"] or 0.0
    delivered = []
    for share in (0.0, 0.4, 0.8, 1.0):
        within = adjust(problem, budget=share * cost)
        model = capacity.formulation(within)
        pyo.SolverFactory("appsi_highs").solve(model)
        run = planner.solve(within, design="optimum")
        delivered.append(run.metrics["delivered_mbps"] or 0.0)
        assert delivered[-1] == pytest.approx(pyo.value(model.proof_objective), rel=1e-4, abs=1e-4)
        assert run.metrics["over_budget"] == pytest.approx(0.0, abs=1e-6)
        assert not len(run.violations)
    assert delivered == pytest.approx(sorted(delivered))  # a larger budget never delivers less


def least_cost(problem: capacity.CapacityPlanning) -> float:
    cost = planner.solve(problem, design="optimum").metrics["total_cost"]
    assert cost is not None
    return cost


def test_a_class_that_need_not_survive_costs_nothing_in_a_failure() -> None:
    demands = pd.DataFrame(
        [("a", "c", 5.0, "gold"), ("a", "c", 10.0, "bulk")],
        columns=["source", "target", "rate_mbps", "class"],
    )
    classes = pd.DataFrame([("gold", 1.0), ("bulk", 2.0)], columns=["class", "priority"])
    problem = adjust(ring(demands=demands), failures="links")
    assert least_cost(problem) == pytest.approx(16.0)  # 15 Mbit/s on both ways round
    assert least_cost(replace(problem, classes=classes)) == pytest.approx(16.0)
    shares = classes.assign(protected_share=[1.0, 0.5])
    assert least_cost(replace(problem, classes=shares)) == pytest.approx(4.0)  # 10 on both ways round
    shares = classes.assign(protected_share=[1.0, 0.0])
    assert least_cost(replace(problem, classes=shares)) == pytest.approx(4.0)


def test_demands_take_their_tunnels_only() -> None:
    problem = ring(tunnels=pd.DataFrame({"path": ["a > b > c"]}))
    run = planner.solve(problem, design="optimum")
    assert run.metrics["total_cost"] == pytest.approx(8.0)  # 15 Mbit/s on two links of 10
    assert run.plan.tunnel_flows.to_numpy().tolist() == [["a > b > c", 15.0]]
    assert not len(run.plan.flows)
    both = ring(tunnels=pd.DataFrame({"path": ["a > b > c", "c > a"], "name": ["long", "short"]}))
    run = planner.solve(both, design="optimum")
    assert run.metrics["total_cost"] == pytest.approx(4.0)
    assert set(run.plan.tunnel_flows["tunnel"]) <= {"long", "short"}


def test_a_failure_of_all_tunnels_cuts_a_demand_off() -> None:
    problem = adjust(ring(tunnels=pd.DataFrame({"path": ["a > b > c"]})), failures="links")
    assert problem.cut_off[:, 0].tolist() == [False, True, True, False]
    assert planner.solve(problem, design="optimum").metrics["cut_off_mbps"] == 15.0


def test_growth_of_each_demand_counts_from_the_first_year() -> None:
    demands = pd.DataFrame(
        [("a", "c", 10.0, 0.5), ("a", "b", 1.0, None)], columns=["source", "target", "rate_mbps", "growth"]
    )
    years = pd.DataFrame([(2027, 1.0), (2029, 2.0)], columns=["year", "demand_factor"])
    problem = ring(demands=demands, years=years)
    assert problem.rate_mbps.tolist() == [[10.0, 1.0], [45.0, 2.0]]


def test_purchases_of_a_plan_are_those_of_its_counts() -> None:
    problem = restricted_problem(1)
    decision = capacity.designs.optimum.plan(problem)
    again = from_tables(problem, decision.plan.to_tables())
    counts = capacity.plan.check.read_counts(problem, again)
    assert tabulate_purchases(problem, counts).equals(decision.plan.purchases)
