"""Steps of a change: they lead to the plan, and the links that stay carry the demand."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings

import planner
from planner_models.topology import Fabric
from planner_models.topology.designs.fixed_rules import approach, match_demand
from planner_models.topology.plan.check import evaluate
from planner_models.topology.plan.steps import order_steps
from planner_models.topology.problem import generators
from tests.models.topology.fabrics import fabric, fabrics, scale_by_oracle


@settings(max_examples=12, deadline=None)
@given(problem=fabrics(with_links=True))
def test_steps_lead_to_the_plan_within_ports_and_limits(problem: Fabric) -> None:
    goal, present = approach(problem, match_demand(problem)), problem.present
    assert present is not None
    now = present.copy()
    for change in order_steps(problem, goal):
        assert max(np.maximum(change, 0).sum(), np.maximum(-change, 0).sum()) / 2 <= (
            problem.step_limit or 99
        )
        now = now + change
        assert (now >= 0).all()
        assert (now.sum(axis=1) <= problem.ports).all()
    assert (now == goal).all()


def test_the_links_in_service_carry_the_demand_in_every_step() -> None:
    run = planner.solve("topology/own_data", design="optimum")
    problem = run.problem
    evaluation = evaluate(problem, run.plan)
    assert evaluation.changes
    now = problem.present.copy()
    for change in evaluation.changes:
        assert scale_by_oracle_of(problem, now + np.minimum(change, 0)) >= 1 - 1e-6
        now = now + change
    assert run.metrics["drain_scale"] == 1.0


def scale_by_oracle_of(problem: Fabric, links: np.ndarray) -> float:
    """Return the demand scale of links between named blocks."""
    rank = {name: index for index, name in enumerate(problem.names)}
    demand = np.zeros((len(rank), len(rank)))
    for a, b, rate in problem.demands.itertuples(index=False):
        demand[rank[a], rank[b]] = rate
    assert (demand == problem.demand_mbps).all()
    return scale_by_oracle(problem, links)


def test_what_has_free_ports_is_made_first() -> None:
    problem = fabric([[0, 9, 9], [0, 0, 9], [0, 0, 0]], links=[(0, 1, 1)], step_limit=5)
    goal = generators.mesh(problem.ports)
    steps = order_steps(problem, goal)
    assert (sum(steps) == goal - problem.present).all()
    assert len(steps) == 1
