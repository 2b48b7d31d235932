"""The smallest utilization of the busiest link: the reference model with another objective, and scaling."""

from __future__ import annotations

import pyomo.environ as pyo
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.backends.pyomo import solve_model
from planner.errors import InputError
from planner.options import Options
from planner_models.cdnrouting import Delivery, formulation
from planner_models.cdnrouting.designs import joint
from planner_models.cdnrouting.plan.check import evaluate
from planner_models.cdnrouting.problem import generators
from planner_models.cdnrouting.problem.utilization import smallest_utilization
from tests.models.cdnrouting.deliveries import network, with_capacity


def utilization_of_reference(problem: Delivery) -> float:
    """Return the smallest utilization by the formulation in Pyomo with that objective."""
    model = formulation(problem, tangents=4)
    capacity = problem.network.capacity
    model.busiest = pyo.Var(domain=pyo.NonNegativeReals)
    model.limit = pyo.Constraint(model.E, rule=lambda m, e: m.l[e] <= m.busiest * float(capacity[e]))
    model.goal.deactivate()
    model.least = pyo.Objective(expr=model.busiest, sense=pyo.minimize)
    solution = solve_model(model, Options(threads=1))
    assert solution.objective is not None
    return solution.objective


@given(seed=st.integers(0, 1_000))
@settings(max_examples=3)
def test_the_smallest_utilization_is_that_of_the_reference_model(seed: int) -> None:
    problem = network(seed, nodes=5, clusters=2)
    assert smallest_utilization(problem) == pytest.approx(utilization_of_reference(problem), rel=1e-6)


def test_places_behind_two_nodes_and_missing_content_count() -> None:
    problem = generators.small()
    assert smallest_utilization(problem) == pytest.approx(utilization_of_reference(problem), rel=1e-6)


def test_scaled_traffic_has_the_utilization() -> None:
    problem = generators.scale_to_utilization(network(3), 0.7)
    assert smallest_utilization(problem) == pytest.approx(0.7)
    plan = joint.plan(problem, objective="isp_cost").plan
    assert plan is not None
    (state,) = evaluate(problem, plan)
    assert state.max_utilization >= 0.7 * (1 - 1e-6)


def test_traffic_that_does_not_fit_has_none() -> None:
    with pytest.raises(InputError, match="clusters or paths are too few for all traffic"):
        smallest_utilization(with_capacity(generators.small(), 0.3))
