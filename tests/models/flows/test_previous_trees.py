"""Column generation from the trees of the decision before."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner import Status
from planner.contract.design import Decision
from planner_models.flows import tree_columns
from planner_models.flows.previous_trees import TreeDecision, find_trees
from planner_models.flows.reduced_problem import ReducedProblem
from planner_models.traffic import Traffic, check
from planner_models.traffic.designs import column_generation
from planner_models.traffic.plan.flow_decision import routing_of_flow
from planner_models.traffic.plan.plan import Routing, flow_by_target, routing_by_target, routing_from_tables
from planner_models.traffic.problem.adjustments import adjust
from planner_models.traffic.problem.readers import topohub
from tests.models.traffic.networks import problems


@pytest.fixture(autouse=True)
def search_by_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_columns, "PAIRS_PER_ROOT_LIMIT", 0)


def without_trees(problem: Traffic, decision: Decision[Routing]) -> Decision[Routing]:
    """Return the decision as it comes back from the tables of its plan."""
    assert decision.plan is not None
    return Decision(plan=routing_from_tables(problem, decision.plan.to_tables()), proof=decision.proof)


@pytest.mark.slow
@settings(deadline=None, max_examples=20)
@given(problems(max_nodes=7, max_demands=6), st.integers(0, 2**16))
def test_the_start_does_not_change_the_optimum(problem: Traffic, seed: int) -> None:
    random = np.random.default_rng(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tree_columns, "PAIRS_PER_ROOT_LIMIT", 0)
        before = column_generation.route(problem)
        changed = problem.with_rates(problem.rate_mbps * random.uniform(0.2, 5.0, len(problem.demands)))
        down = random.random(len(problem.links)) < 0.2
        for other in (changed, changed.without_links(down) if not down.all() else changed):
            cold = column_generation.route(other)
            for start in (before, without_trees(problem, before)):
                warm = column_generation.route(other, previous=start)
                assert (warm.plan is None) == (cold.plan is None)
                if cold.plan is not None and cold.proof.objective is not None:
                    assert warm.proof.gap <= 1e-5
                    assert warm.proof.objective == pytest.approx(cold.proof.objective, rel=1e-5)
                    assert check(other, warm.plan).frame.empty


@pytest.mark.slow
def test_trees_save_iterations_after_other_demands_and_a_failed_link() -> None:
    problem = Traffic.from_tables(topohub.read("sndlib/germany50", seed=1))
    before = column_generation.route(problem)
    assert isinstance(before, TreeDecision)
    random = np.random.default_rng(1)
    other = problem.with_rates(problem.rate_mbps * random.lognormal(0, 0.05, len(problem.demands)))
    for changed in (other, adjust(problem, fail_random_links=1, failure_seed=1, lost_demands="drop")):
        reduced = ReducedProblem.of(changed)
        cold = tree_columns.search(reduced)
        for start in (before, without_trees(problem, before)):
            trees = find_trees(reduced, start)
            assert trees is not None
            warm = tree_columns.search(reduced, start=trees)
            assert len(warm.trace) < len(cold.trace)
            assert warm.utilization == pytest.approx(cold.utilization, rel=1e-5)


@settings(deadline=None, max_examples=20)
@given(problems(max_nodes=7, max_demands=6), st.booleans())
def test_trees_of_a_plan_make_its_flows(problem: Traffic, by_target: bool) -> None:
    reduced = ReducedProblem.of(problem, symmetry=False)
    before = column_generation.route(problem)
    if before.plan is None or not len(reduced.roots):
        return
    if by_target and not problem.has_classes:
        flows = flow_by_target(problem, before.plan)
        before = Decision(plan=routing_by_target(problem, flows), proof=before.proof)
    trees = find_trees(reduced, Decision(plan=before.plan, proof=before.proof))
    assert trees is not None
    sums = np.bincount(trees.owner, weights=trees.weight, minlength=len(reduced.roots))
    assert sums == pytest.approx(np.ones(len(sums)))
    again = routing_of_flow(problem, reduced.find_flow(trees))
    # in the same proportions, so that the busiest link is about as busy
    assert float(again.links["utilization"].max()) <= 1.05 / (before.proof.objective or 1.0) + 1e-6


def test_a_plan_of_another_network_is_no_start() -> None:
    problem = Traffic.from_tables(topohub.read("sndlib/abilene", seed=1))
    other = ReducedProblem.of(Traffic.from_tables(topohub.read("sndlib/polska", seed=1)))
    before = column_generation.route(problem)
    assert find_trees(ReducedProblem.of(problem), before) is not None
    assert find_trees(other, before) is None
    bare = Decision(plan=before.plan, proof=before.proof)
    assert find_trees(other, bare) is None
    assert find_trees(ReducedProblem.of(problem), Decision(plan=None, proof=before.proof)) is None
    assert column_generation.route(problem, previous=bare).proof.status is Status.OPTIMAL
