"""The open model of network design: constraints of users beside the formal model in Pyomo with the same."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import planner
from planner.backends import pyomo
from planner.errors import InputError
from planner.options import Options
from planner_models.capacity import CapacityPlanning, formulation
from tests.models.capacity.networks import random_problem, ring

REFERENCE = Options(backend="pyomo:highs", gap=1e-6)


def solve_reference(problem: CapacityPlanning, rule: Any = None, goal: Any = None) -> float | None:
    """Return the optimum of the formal model in Pyomo with a rule, and perhaps another goal to minimize.

    returns  None where there is no solution
    """
    import pyomo.environ as pyo

    reference = formulation(problem)
    if rule is not None:
        reference.user = pyo.Constraint(expr=rule(reference))
    if goal is not None:
        reference.goal.deactivate()
        reference.other = pyo.Objective(expr=goal(reference), sense=pyo.minimize)
    return pyomo.solve_model(reference, REFERENCE).objective


@settings(max_examples=6)
@given(seed=st.integers(0, 10_000), modules=st.integers(1, 2), years=st.integers(1, 2))
def test_without_changes_it_is_the_optimum(seed: int, modules: int, years: int) -> None:
    problem = random_problem(seed, modules=modules, years=years)
    run = planner.model(problem).solve(gap=1e-6)
    assert run.metrics["total_cost"] == pytest.approx(solve_reference(problem), rel=1e-5, abs=1e-6)
    assert run.bound == pytest.approx(run.objective, rel=1e-5, abs=1e-6)
    assert run.proof.metric == "cost_of_all"


@settings(max_examples=6)
@given(seed=st.integers(0, 10_000), most=st.integers(0, 1))
def test_few_modules_on_a_link_in_two_expressions(seed: int, most: int) -> None:
    problem = random_problem(seed, modules=2)
    model = planner.model(problem)
    link = problem.names[-1]
    model.add_constraint("few", model.variables["modules"].where(link=link).sum(), upper=most)
    run = model.solve(gap=1e-6)
    columns = [i for i, line in enumerate(problem.options.link) if line == len(problem.names) - 1]
    expected = solve_reference(problem, lambda m: sum(m.n[i, 0] for i in columns) <= most)
    if expected is None:
        assert run.plan is None
        return
    assert run.metrics["total_cost"] == pytest.approx(expected, rel=1e-5, abs=1e-6)
    bought = run.plan.purchases
    assert bought.loc[bought["link"] == link, "count"].sum() <= most


def test_a_link_that_traffic_avoids_without_failures() -> None:
    problem = ring()
    model = planner.model(problem)
    direct = problem.names[2]
    flow = model.variables["flow"].where(state="no failure", link=direct)
    assert set(flow.members["tail"]) == {"a", "c"}
    model.add_constraint("avoid", flow.sum(), equal=0)
    run = model.solve()
    assert run.metrics["purchase_cost"] == pytest.approx(8.0)  # a module on each link of the way over b
    assert planner.model(problem).solve().metrics["purchase_cost"] == pytest.approx(4.0)
    assert direct not in set(run.plan.flows["link"])
    assert run.proof.bound_scope == "plans of the changed model"


def test_every_failure_has_its_flows() -> None:
    failures = pd.DataFrame({"failure": ["cut"], "member": ["a-b"]})
    problem = ring(demands=[("a", "c", 8.0)])
    failures["member"] = problem.names[0]
    problem = ring(demands=[("a", "c", 8.0)], failures=failures)
    model = planner.model(problem)
    run = model.solve()
    assert run.metrics["survived_failures"] == 1.0
    assert run.metrics["total_cost"] == pytest.approx(solve_reference(problem))
    flow = model.variables["flow"].where(state="cut", link=problem.names[0])
    index = flow.columns
    assert run.solution.x[index].sum() == pytest.approx(0.0)


def test_aims_upgrade_few_links_and_spare_one() -> None:
    problem = random_problem(7, modules=2)
    result = planner.alternatives(
        problem,
        within=0.5,
        goals=["fewest_links", "fewest_modules", f"least_on={problem.names[0]}", "least_traffic"],
        gap=1e-6,
    )
    links, modules, least, _ = result.alternatives
    optimum = result.optimum.objective
    assert optimum is not None
    expected = solve_reference(
        problem, lambda m: m.goal.expr <= 1.5 * optimum, lambda m: sum(m.n[i, t] for i in m.M for t in m.T)
    )
    assert modules.amount == pytest.approx(expected)
    assert links.amount == links.run.metrics["upgraded_links"]
    assert links.amount <= links.at_optimum
    assert least.amount <= least.at_optimum + 1e-6


def test_infeasible_changes_are_named() -> None:
    model = planner.model(ring())
    model.add_constraint("nothing", model.variables["modules"].sum(), upper=0)
    run = model.solve()
    assert run.plan is None
    assert any("nothing" in reason for reason in run.proof.reasons)


def test_what_is_unknown_or_cannot_be_modelled_is_said() -> None:
    with pytest.raises(InputError, match="least_on: 'x' is no link"):
        planner.alternatives(ring(), goals="least_on=x")
    with pytest.raises(InputError, match="no variables 'module'; did you mean 'modules'"):
        planner.model(ring()).variables["module"]
    budget = pd.DataFrame({"budget": [5.0]})
    with pytest.raises(InputError, match="network: budget is set"):
        planner.model(ring(network=budget))
