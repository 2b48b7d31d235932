"""Column generation from the trees of the decision before."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner import Status
from planner.contract.design import Decision
from planner_models.traffic import Traffic, check
from planner_models.traffic.designs.column_generation import column_generation
from planner_models.traffic.designs.column_generation.previous_trees import TreeDecision, find_trees
from planner_models.traffic.designs.column_generation.reduced_problem import ReducedProblem
from planner_models.traffic.problem.adjustments import adjust
from planner_models.traffic.problem.readers import topohub
from tests.models.traffic.networks import problems


@pytest.fixture(autouse=True)
def search_by_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(column_generation, "PAIRS_PER_ROOT_LIMIT", 0)


@settings(deadline=None, max_examples=25)
@given(problems(max_nodes=7, max_demands=6), st.integers(0, 2**16))
def test_the_start_does_not_change_the_optimum(problem: Traffic, seed: int) -> None:
    random = np.random.default_rng(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(column_generation, "PAIRS_PER_ROOT_LIMIT", 0)
        before = column_generation.route(problem)
        changed = problem.with_rates(problem.rate_mbps * random.uniform(0.2, 5.0, len(problem.demands)))
        down = random.random(len(problem.links)) < 0.2
        for other in (changed, changed.without_links(down) if not down.all() else changed):
            cold, warm = column_generation.route(other), column_generation.route(other, previous=before)
            assert (warm.plan is None) == (cold.plan is None)
            if cold.plan is not None and cold.proof.objective is not None:
                assert warm.proof.gap <= 1e-5
                assert warm.proof.objective == pytest.approx(cold.proof.objective, rel=1e-5)
                assert check(other, warm.plan).frame.empty


def test_trees_save_iterations_after_other_demands_and_a_failed_link() -> None:
    problem = Traffic.from_tables(topohub.read("sndlib/germany50", seed=1))
    before = column_generation.route(problem)
    assert isinstance(before, TreeDecision)
    random = np.random.default_rng(1)
    other = problem.with_rates(problem.rate_mbps * random.lognormal(0, 0.05, len(problem.demands)))
    for changed in (other, adjust(problem, fail_random_links=1, failure_seed=1, lost_demands="drop")):
        reduced = ReducedProblem.of(changed)
        trees = find_trees(reduced, before)
        assert trees is not None
        cold = column_generation.search(reduced)
        warm = column_generation.search(reduced, start=trees)
        assert len(warm.trace) < len(cold.trace)
        assert warm.utilization == pytest.approx(cold.utilization, rel=1e-5)


def test_a_plan_of_another_network_or_without_trees_is_no_start() -> None:
    problem = Traffic.from_tables(topohub.read("sndlib/abilene", seed=1))
    other = ReducedProblem.of(Traffic.from_tables(topohub.read("sndlib/polska", seed=1)))
    before = column_generation.route(problem)
    assert find_trees(ReducedProblem.of(problem), before) is not None
    assert find_trees(other, before) is None
    bare = Decision(plan=before.plan, proof=before.proof)
    assert find_trees(ReducedProblem.of(problem), bare) is None
    assert column_generation.route(problem, previous=bare).proof.status is Status.OPTIMAL
