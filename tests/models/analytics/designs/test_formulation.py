"""The open model of analytics: constraints of users beside the formal model in Pyomo with the same ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import planner
from planner.backends import pyomo
from planner.errors import InputError
from planner.options import Options
from planner_models.analytics import Analytics, formulation
from tests.models.analytics.problems import make, problems

REFERENCE = Options(backend="pyomo:highs", gap=1e-9)


def solve_reference(problem: Analytics, rule: Any = None) -> float:
    """Return the most value of the formal model in Pyomo, perhaps with a rule."""
    import pyomo.environ as pyo

    reference = formulation(problem)
    if rule is not None:
        reference.rule = pyo.Constraint(expr=rule(reference))
    objective = pyomo.solve_model(reference, REFERENCE).objective
    assert objective is not None
    return objective


@settings(max_examples=6)
@given(problem=problems())
def test_without_changes_it_is_the_optimum(problem: Analytics) -> None:
    run = planner.model(problem).solve()
    expected = solve_reference(problem)
    assert run.objective == pytest.approx(expected, rel=1e-5, abs=1e-6)
    assert run.metrics["value"] == pytest.approx(expected, rel=1e-5, abs=1e-6)
    assert run.proof.bound == pytest.approx(expected, rel=1e-5, abs=1e-6)
    assert run.proof.bound_scope is None


@settings(max_examples=6)
@given(problem=problems())
def test_a_query_without_its_finest_level_in_two_expressions(problem: Analytics) -> None:
    model = planner.model(problem)
    name, blocks = problem.query_names[0], []
    for block in ("answer", "level"):
        members = model.variables[block].members
        rows = np.flatnonzero((members["query"] == name) & (members["level"] == problem.level_names[0][0]))
        blocks.append(model.variables[block][rows].sum())
    model.add_constraint("not the finest", blocks[0] + blocks[1], equal=0)
    run = model.solve()
    expected = solve_reference(
        problem,
        lambda m: (
            sum(m.x[i] for i in m.X if problem.is_sum[0] and i[2] == 0 and i[3] == 0)
            + sum(m.a[i] for i in m.A if i[1] == 0 and i[2] == 0)
            + 0 * sum(m.x[i] for i in m.X)
            <= 0
        ),
    )
    assert run.objective == pytest.approx(expected, rel=1e-5, abs=1e-6)
    assert run.metrics["value"] == pytest.approx(expected, rel=1e-5, abs=1e-6)
    assert run.proof.bound_scope == "plans of the changed model"


def test_a_cap_on_an_uplink_by_the_matrices_of_rates() -> None:
    problem = make(sites=2, intervals=2, combine=("coarsest", "sum"))
    model = planner.model(problem)
    answer, level = model.variables["answer"], model.variables["level"]
    assert list(answer.members.columns) == ["interval", "query", "level", "value_usd"]
    assert list(level.members.columns) == ["interval", "site", "query", "level", "value_usd"]
    matrices = model.matrices
    rate = matrices["answer_mbps"] @ answer + matrices["level_mbps"] @ level
    assert rate.shape == (2 * 3,)
    model.add_constraint("first site", rate[[0, 3]], upper=0.0)
    run = model.solve()
    rows = run.plan.levels
    assert run.metrics["value"] < planner.solve(problem, design="optimum").metrics["value"]
    assert set(rows.loc[rows["site"] == "s0", "level"].astype(str)) <= {"none"}


def test_aims_send_less() -> None:
    problem = make(sites=2, intervals=2, combine=("coarsest", "sum"))
    result = planner.alternatives(problem, within=0.3, goals=["least_traffic", "least_on=s1"])
    assert [item.amount < item.at_optimum for item in result.alternatives] == [True, True]
    assert all(
        item.run.metrics["value"] >= 0.7 * result.optimum.objective - 1e-6 for item in result.alternatives
    )


def test_infeasible_changes_and_unknown_names_are_named() -> None:
    problem = make()
    model = planner.model(problem)
    model.add_constraint("many", model.variables["answer"].sum(), lower=2)
    run = model.solve()
    assert run.plan is None
    assert any("many" in reason for reason in run.proof.reasons)
    with pytest.raises(InputError, match="least_on: 's9' is no uplink"):
        planner.alternatives(problem, goals="least_on=s9")


def test_answers_that_do_not_fit_are_left_out() -> None:
    problem = make(uplink_mbps=1e-6, none=False)
    run = planner.model(problem).solve()
    assert run.proof.bound_scope is not None
    assert "leave out the same answers" in run.proof.bound_scope
    with pytest.raises(InputError):
        planner.model(problem, service="all")
