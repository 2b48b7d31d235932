"""The formal model as printed against the fast one."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.backends import pyomo
from planner.backends.export import write_model
from planner.contract.proof import Status
from planner.options import Options
from planner_models.flows.link_flow_program import Objective
from planner_models.traffic import Traffic, formulation
from planner_models.traffic.designs.formulation import Commodity
from planner_models.traffic.designs.optimum import optimum
from tests.models.traffic.networks import network, problems

REFERENCE = Options(backend="pyomo:highs")


@pytest.mark.parametrize("goal", ["concurrent", "utilization", "total", "cost"])
@pytest.mark.parametrize("commodity", ["target", "pair"])
@settings(max_examples=10)
@given(problem=problems(costs=True))
def test_one_meaning_in_two_expressions(commodity: Commodity, goal: Objective, problem: Traffic) -> None:
    reference = pyomo.solve_model(formulation(problem, objective=goal, commodity=commodity), REFERENCE)
    strict = Options(service="all" if goal == "cost" else "best")
    fast = optimum.route(problem, objective=goal, options=strict).proof
    assert reference.status is fast.status
    if fast.status is Status.OPTIMAL:
        assert reference.objective == pytest.approx(fast.objective, rel=1e-6, abs=1e-7)


@pytest.mark.slow
@settings(max_examples=20)
@given(problem=problems(costs=True), factor=st.sampled_from([1.0, 5.0]))
def test_the_cheapest_plan_that_delivers_the_most_in_two_expressions(problem: Traffic, factor: float) -> None:
    problem = problem.scale_demands(factor)
    upper = optimum.route(problem).proof.objective
    assert upper is not None
    model = formulation(problem, objective="cost", least_mbps=upper * (1 - optimum.LEAST_TOLERANCE))
    fast = optimum.route(problem, objective="cost").proof
    assert pyomo.solve_model(model, REFERENCE).objective == pytest.approx(fast.objective, rel=1e-5, abs=1e-5)


def test_the_fast_model_stands_still(tmp_path: Path) -> None:
    """A golden file shows every change of the model."""
    problem = network(
        [("a", "b", 10.0), ("b", "c", 5.0), ("a", "c", 2.0)], [("a", "c", 4.0), ("b", "c", 1.0)]
    )
    write_model(optimum.model(problem, objective="concurrent"), tmp_path / "model.lp")
    golden = Path(__file__).with_name("golden") / "concurrent.lp"
    assert (tmp_path / "model.lp").read_text() == golden.read_text()
