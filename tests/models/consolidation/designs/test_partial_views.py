"""Designs that know a part of a problem: nodes are hidden from a scheduler, and large machines come first."""

from __future__ import annotations

import pytest

from planner_models.consolidation import check, measure
from planner_models.consolidation.designs import partial_views, patterns
from planner_models.consolidation.problem.generators import awkward
from tests.models.consolidation.fleets import machines, make


def test_a_host_refuses_what_its_nodes_cannot_hold() -> None:
    """Two machines of 5 leave 3 threads in each node: a third one is scheduled there, and refused."""
    problem = make(
        hosts={"host_type": ["h"], "price_per_h": [1.0], "most": [2.0]},
        machines=machines(vcpus_min=[5.0], count=[3.0]),
    )
    plan = partial_views.plan_topology_manager(problem).plan
    assert plan is not None
    assert not len(check(problem, plan))
    assert plan.refused is not None
    assert plan.refused["machines"].tolist() == [1.0]
    assert measure(problem, plan, None)["hosts"] == 1


def test_best_effort_splits_what_may_be_split() -> None:
    problem = make(machines=machines(vcpus_min=[6.0], count=[2.0], split=["even"]))
    more = make(machines=machines(vcpus_min=[6.0, 4.0], count=[2.0, 1.0], split=["even", "even"]))
    for policy, refused in (("best_effort", 0.0), ("single_numa_node", 1.0), ("restricted", 1.0)):
        plan = partial_views.plan_topology_manager(more, policy=policy).plan  # type: ignore[arg-type]
        assert plan is not None
        assert measure(more, plan, None)["refused"] == refused
    assert partial_views.plan_topology_manager(problem).plan is not None


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("plan", [partial_views.plan_per_host, partial_views.plan_big_first])
def test_plans_keep_all_limits_and_the_bound(plan: object, seed: int) -> None:
    problem = awkward(machines=80, shapes=6, seed=seed)
    made = plan(problem).plan  # type: ignore[operator]
    assert not len(check(problem, made))
    bound = patterns.plan(problem).proof.bound
    price = measure(problem, made, None)["price_per_h"]
    assert bound is not None
    assert price is not None
    assert price >= bound - 1e-6


def test_pooled_nodes_have_the_sum_of_their_capacities() -> None:
    pooled = partial_views.pool_nodes(awkward(machines=20, shapes=3))
    assert pooled.nodes["threads"].tolist() == [96.0]
    assert pooled.capacities is not None
    assert pooled.capacities["amount"].tolist() == [25.0]
