"""The optimum: no rates of the same replicas have a larger least share."""

from __future__ import annotations

import pytest

from planner.contract.proof import Status
from planner_models.fairshare.designs import mechanisms, optimum
from planner_models.fairshare.designs.placement import complete
from planner_models.fairshare.plan.fair_shares import fair_share_kops
from planner_models.fairshare.plan.max_min import share_max_min
from planner_models.fairshare.plan.metrics import least_share
from planner_models.fairshare.problem import generators
from planner_models.fairshare.problem.problem import SharedStore
from tests.models.fairshare.stores import make


def test_a_tenant_that_wants_little_costs_no_other_its_fair_share() -> None:
    """Of 12, A wants 2 and B 10, which are their fair shares; node n1 serves both with 6, n2 only B with 4.

    Max-min rates over weights serve A in full, and 8 of 10 for B; both may have 5/6 of their shares.
    """
    problem = make(
        {"n1": 6.0, "n2": 4.0, "n3": 2.0},
        {
            "A": (1.0, "elastic", {"a": (2.0, "n1")}),
            "B": (1.0, "elastic", {"b": (6.0, "n1"), "c": (4.0, "n2")}),
        },
    )
    replicas = complete(problem, optimum.fair_load_kops(problem))
    plain = share_max_min(problem, replicas).rate
    assert plain.tolist() == pytest.approx([2.0, 8.0])
    decision = optimum.share(problem, placement="keep")
    assert decision.plan is not None
    assert decision.plan.rates["kops"].tolist() == pytest.approx([10 / 6, 50 / 6])
    assert decision.proof.status is Status.OPTIMAL
    assert decision.proof.objective == pytest.approx(5 / 6)
    (level,) = optimum.share_fairly(problem, replicas).levels
    assert level.level == pytest.approx(5 / 6)  # of both, in place of 1 and 8/10
    assert level.tenants.tolist() == [0, 1]


def test_levels_of_weights_are_over_those_of_one_pool() -> None:
    """Of 12 in all, weights 1 and 2 are due 4 and 8; the second only reaches 6."""
    problem = make(
        {"n1": 6.0, "n2": 6.0},
        {"A": (1.0, "elastic", {"a": (20.0, "n1")}), "B": (2.0, "elastic", {"b": (20.0, "n2")})},
    )
    found = optimum.share_fairly(problem, complete(problem, optimum.fair_load_kops(problem)))
    assert [one.level for one in found.levels] == pytest.approx([6 / 8, 6 / 4])


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("mix", ["fixed", "elastic"])
def test_given_replicas_have_a_proven_least_share(seed: int, mix: str) -> None:
    problem: SharedStore = generators.zipf(
        tenants=6, partitions=4, nodes=4, replicas=1 + seed % 2, mix=mix, seed=seed
    )
    best = optimum.share(problem, placement="keep")
    assert best.proof.status is Status.OPTIMAL
    assert best.plan is not None
    fair = fair_share_kops(problem)
    assert least_share(best.plan.rates["kops"].to_numpy(), fair) == pytest.approx(best.proof.bound)
    for design in (mechanisms.queue_fairly, mechanisms.queue_by_weight, mechanisms.serve_first_come):
        plan = design(problem).plan
        assert plan is not None
        every = optimum.share(problem).proof.bound
        assert every is not None
        assert least_share(plan.rates["kops"].to_numpy(), fair) <= every * (1 + 1e-9)
