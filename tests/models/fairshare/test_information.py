"""Observations and their realization."""

from __future__ import annotations

import numpy as np
import pytest

from planner_models.fairshare import SYSTEM, check
from planner_models.fairshare.information import observe_demand, realize
from planner_models.fairshare.problem import generators


def test_groups_of_partitions_are_reported_as_their_mean() -> None:
    problem = generators.zipf(tenants=2, partitions=4, nodes=3, replicas=1)
    seen = observe_demand(problem, granularity_partitions=2)
    true = problem.demand_kops.reshape(2, 2, 2)
    assert seen.demand_kops.reshape(2, 2, 2) == pytest.approx(
        np.repeat(true.mean(axis=2), 2).reshape(2, 2, 2)
    )


def test_exact_information_is_the_problem() -> None:
    problem = generators.small()
    assert observe_demand(problem) is problem


@pytest.mark.parametrize("name", [design.name for design in SYSTEM.designs])
def test_realized_plans_keep_true_limits(name: str) -> None:
    problem = generators.zipf(tenants=12, partitions=6, nodes=5, replicas=2, seed=4)
    seen = observe_demand(problem, age_s=300.0, noise=0.4, seed=1)
    decision = SYSTEM.design(name).run(seen)
    assert decision.plan is not None
    assert not len(check(problem, realize(problem, seen, decision.plan)))


def test_the_optimum_comes_out_as_planned() -> None:
    problem = generators.zipf(tenants=12, partitions=6, nodes=5, replicas=2, seed=4)
    decision = SYSTEM.design("optimum").run(problem)
    assert decision.plan is not None
    again = realize(problem, observe_demand(problem, noise=0.1), decision.plan)
    assert again.rates["kops"].to_numpy() == pytest.approx(decision.plan.rates["kops"].to_numpy(), rel=1e-4)
