"""The open model of a fabric: constraints of users beside the formal model in Pyomo with the same ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import planner
from planner.backends import pyomo
from planner.errors import InputError
from planner.options import Options
from planner_models.topology import Fabric, formulation
from tests.models.topology.fabrics import fabric, fabrics

REFERENCE = Options(backend="pyomo:highs", gap=1e-6)
DEMAND = [[0, 30, 0], [0, 0, 10], [0, 0, 0]]


def solve_reference(problem: Fabric, rule: Any = None, goal: Any = None) -> float:
    """Return the optimum of the formal model in Pyomo with a rule, and perhaps another goal to minimize."""
    import pyomo.environ as pyo

    reference = formulation(problem)
    if rule is not None:
        reference.rule = pyo.Constraint(expr=rule(reference))
    if goal is not None:
        reference.goal.deactivate()
        reference.other = pyo.Objective(expr=goal(reference), sense=pyo.minimize)
    objective = pyomo.solve_model(reference, REFERENCE).objective
    assert objective is not None
    return objective


@settings(max_examples=6)
@given(problem=fabrics())
def test_without_changes_it_is_the_optimum(problem: Fabric) -> None:
    if problem.servable is None:
        return
    run = planner.model(problem).solve()
    expected = solve_reference(problem.servable)
    assert run.metrics["demand_scale"] == pytest.approx(expected, rel=1e-5)
    assert run.proof.bound == pytest.approx(expected, rel=1e-4)
    assert run.proof.metric == "demand_scale"
    assert run.proof.bound_scope is None


@settings(max_examples=6)
@given(problem=fabrics(), most=st.integers(0, 2))
def test_few_links_between_two_blocks_in_two_expressions(problem: Fabric, most: int) -> None:
    if problem.servable is None:
        return
    model = planner.model(problem)
    model.add_constraint("few", model.variables["links"].where(block="a", other_block="b").sum(), upper=most)
    run = model.solve()
    expected = solve_reference(problem.servable, lambda m: m.n[0, 1] <= most)
    assert run.objective == pytest.approx(expected, rel=1e-5, abs=1e-6)
    if expected > 1e-6:
        assert run.metrics["demand_scale"] == pytest.approx(expected, rel=1e-5)
    rows = run.plan.topology
    assert rows.loc[(rows["block"] == "a") & (rows["other_block"] == "b"), "links"].sum() <= most


def test_a_block_that_no_traffic_passes() -> None:
    problem = fabric([[0, 30, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]], ports=3)
    model = planner.model(problem)
    assert model.solve().metrics["demand_scale"] == pytest.approx(1.0)
    path = model.variables["path"]
    assert set(path.members["via"]) == {"c", "d"}
    model.add_constraint("not by c", path.where(via="c").sum(), equal=0)
    model.add_constraint("ends of a", (model.matrices["ends"] @ model.variables["links"])[0], upper=2)
    run = model.solve()
    assert run.metrics["demand_scale"] == pytest.approx(2 / 3)
    assert run.proof.bound_scope == "plans of the changed model"
    assert "c" not in set(run.plan.routes["via"])


def test_among_optima_the_transit_is_least() -> None:
    run = planner.model(fabric(DEMAND)).solve()
    design = planner.solve(fabric(DEMAND), design="optimum")
    assert run.metrics["demand_scale"] == pytest.approx(design.metrics["demand_scale"])
    assert run.metrics["stretch"] == pytest.approx(design.metrics["stretch"], rel=1e-5)


def test_aims_keep_links_of_today_and_avoid_a_block() -> None:
    problem = fabric(DEMAND, links=[(0, 1, 3), (1, 2, 1)], move_limit=4.0, step_limit=4.0)
    assert problem.present is not None
    result = planner.alternatives(
        problem, within=0.3, goals=["fewest_changes", "fewest_links", "least_transit", "least_through=c"]
    )
    changes, links, transit, through = result.alternatives
    optimum = result.optimum.objective
    assert optimum is not None
    expected = solve_reference(
        problem, lambda m: m.t >= 0.7 * optimum, lambda m: sum(m.m[i, j] for i, j in m.P)
    )
    assert changes.amount == pytest.approx(expected, abs=1e-5)
    assert changes.run.metrics["moved_links"] == pytest.approx(expected, abs=1e-5)
    expected = solve_reference(
        problem, lambda m: m.t >= 0.7 * optimum, lambda m: sum(m.n[i, j] for i, j in m.P)
    )
    assert links.amount == links.run.metrics["links"] == pytest.approx(expected)
    expected = solve_reference(
        problem, lambda m: m.t >= 0.7 * optimum, lambda m: sum(m.y[i, k, j] for i, k, j in m.T)
    )
    assert transit.amount == pytest.approx(expected, abs=1e-4)
    assert through.amount <= through.at_optimum + 1e-5
    assert np.all([item.run.metrics["demand_scale"] >= 0.7 * optimum - 1e-5 for item in result.alternatives])


def test_rows_on_the_scale_leave_no_metric() -> None:
    model = planner.model(fabric(DEMAND))
    model.add_constraint("small", model.variables["scale"].sum(), upper=0.5)
    run = model.solve()
    assert run.objective == pytest.approx(0.5)
    assert run.proof.metric is None


def test_infeasible_changes_are_named() -> None:
    model = planner.model(fabric(DEMAND))
    model.add_constraint("many", model.variables["links"].where(block="a").sum(), lower=5)
    run = model.solve()
    assert run.plan is None
    assert any("many" in reason for reason in run.proof.reasons)


def test_what_is_unknown_or_cannot_be_modelled_is_said() -> None:
    model = planner.model(fabric(DEMAND))
    with pytest.raises(InputError, match="no variables 'link'; did you mean 'links'"):
        model.variables["link"]
    with pytest.raises(InputError, match="least_through: 'x' is no block"):
        planner.alternatives(fabric(DEMAND), goals="least_through=x")
    with pytest.raises(InputError, match="demands: none has a path"):
        planner.model(fabric([[0, 1], [0, 0]], ports=[0.0, 1.0]))
    lacking = fabric(DEMAND, ports=[4.0, 4.0, 0.0])
    with pytest.raises(InputError, match=r"service is .all., but 1 demand has no path: b->c"):
        planner.model(lacking, service="all")
    assert planner.model(lacking).solve().metrics["demand_scale"] == pytest.approx(4 / 3)
