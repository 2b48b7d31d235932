"""The optimum: no rates of the same replicas have a larger least share."""

from __future__ import annotations

import numpy as np
import pytest

from planner.contract.proof import Status
from planner.errors import InputError
from planner_models.fairshare import check
from planner_models.fairshare.designs import fair_rates, mechanisms, optimum
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
    replicas = complete(problem, fair_rates.fair_load_kops(problem))
    plain = share_max_min(problem, replicas).rate
    assert plain.tolist() == pytest.approx([2.0, 8.0])
    decision = optimum.share(problem, placement="keep")
    assert decision.plan is not None
    assert decision.plan.rates["kops"].tolist() == pytest.approx([10 / 6, 50 / 6])
    assert decision.proof.status is Status.OPTIMAL
    assert decision.proof.objective == pytest.approx(5 / 6)
    (level,) = fair_rates.share_fairly(problem, replicas).levels
    assert level.level == pytest.approx(5 / 6)  # of both, in place of 1 and 8/10
    assert level.tenants.tolist() == [0, 1]


def test_levels_of_weights_are_over_those_of_one_pool() -> None:
    """Of 12 in all, weights 1 and 2 are due 4 and 8; the second only reaches 6."""
    problem = make(
        {"n1": 6.0, "n2": 6.0},
        {"A": (1.0, "elastic", {"a": (20.0, "n1")}), "B": (2.0, "elastic", {"b": (20.0, "n2")})},
    )
    shares = fair_rates.share_fairly(problem, complete(problem, fair_rates.fair_load_kops(problem)))
    assert [level.level for level in shares.levels] == pytest.approx([6 / 8, 6 / 4])


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


@pytest.mark.parametrize("seed", range(4))
def test_even_splits_are_fair_and_cost_what_choosing_replicas_gains(seed: int) -> None:
    """Requests of fixed mix rise together until the first node is full, found here by bisection."""
    problem = generators.zipf(tenants=8, partitions=16, nodes=8, replicas=3, placed="random", seed=seed)
    even = optimum.share(problem, placement="keep", splits="even")
    best = optimum.share(problem, placement="keep")
    assert even.plan is not None
    assert best.proof.objective is not None
    assert not len(check(problem, even.plan))
    serving = even.plan.serving
    assert (
        serving.groupby(["tenant", "partition"])["kops"].agg(lambda kops: kops.max() - kops.min()).max()
        < 1e-9
    )
    partition, node = problem.placed_replicas
    fair = fair_share_kops(problem)

    def is_within(level: float) -> bool:
        kops = (level * fair)[problem.tenant] * problem.share_of_tenant
        load = np.bincount(node, weights=kops[partition] / 3, minlength=len(problem.nodes))
        return bool((load <= problem.rate_kops).all())

    low, high = 0.0, 1.0
    for _ in range(50):
        low, high = ((low + high) / 2, high) if is_within((low + high) / 2) else (low, (low + high) / 2)
    assert even.proof.objective == pytest.approx(low, rel=1e-6)
    assert even.proof.status is Status.OPTIMAL
    assert even.proof.objective < best.proof.objective


def test_an_exact_placement_is_for_the_best_splits() -> None:
    with pytest.raises(InputError, match="'exact' is for the best splits"):
        optimum.share(generators.small(), placement="exact", splits="even")
