"""Least moves for a level against all placements, and their bound."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import planner
from planner_models.fairshare import SharedStore
from planner_models.fairshare.designs import least_moves
from planner_models.fairshare.plan.metrics import least_share
from planner_models.fairshare.problem import generators
from tests.models.fairshare.stores import make, rank_by_programs


def draw(seed: int) -> SharedStore:
    """Return three tenants with two partitions each on two nodes, where they are placed now."""
    rng = np.random.default_rng(seed)
    tenants = {
        name: (
            float(rng.integers(1, 3)),
            str(rng.choice(["elastic", "fixed"])),
            {p: (float(rng.integers(2, 12)), str(rng.choice(["n1", "n2"]))) for p in "pq"},
        )
        for name in "ABC"
    }
    problem = make({"n1": 9.0, "n2": 6.0}, tenants, memory_gb=5.0)
    sizes = rng.integers(1, 3, 6).astype(float)
    return SharedStore.from_tables(
        {**problem.to_tables(), "partitions": problem.partitions.assign(size_gb=sizes)}
    )


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("slack", [0.0, 0.1])
def test_no_placement_with_the_level_moves_less(seed: int, slack: float) -> None:
    problem = draw(seed)
    home = problem.placed_replicas[1]
    ranks = {}
    for nodes in itertools.product(range(2), repeat=6):
        used = np.bincount(nodes, weights=problem.size_gb, minlength=2)
        if (used <= problem.memory_gb).all():
            moved = float(problem.size_gb[np.array(nodes) != home].sum())
            ranks[nodes] = (rank_by_programs(problem, nodes)[1], moved)
    best = max(level for level, _ in ranks.values())
    lowest = min(moved for level, moved in ranks.values() if level >= best * (1 - slack) * (1 - 1e-6))
    run = planner.solve(problem, design="least_moves", slack=slack)
    assert not len(run.violations)
    assert run.metrics["min_share"] >= best * (1 - slack) * (1 - 1e-5)
    assert run.proof.objective == pytest.approx(run.metrics["moved_gb"])
    assert run.proof.objective == pytest.approx(lowest)
    assert run.proof.bound == pytest.approx(lowest, rel=1e-5)
    relaxed = least_moves.relax(problem, best * (1 - slack))
    assert relaxed is not None
    assert relaxed.bound_gb <= lowest * (1 + 1e-6) + 1e-9


def test_a_larger_store_keeps_the_level_with_a_hundredth_of_the_moves() -> None:
    problem = generators.zipf(
        tenants=20, partitions=8, nodes=6, replicas=2, placed="balanced", shift=0.6, seed=3, weights="equal"
    )
    plain = planner.solve(problem, design="optimum")
    run = planner.solve(problem, design="least_moves")
    assert not len(run.violations)
    assert run.metrics["min_share"] >= 0.99 * plain.metrics["min_share"] * (1 - 1e-6)
    assert run.metrics["moved_gb"] <= 0.1 * plain.metrics["moved_gb"]
    assert run.proof.bound <= run.proof.objective
    assert "least share of" in run.proof.bound_scope


def test_without_placed_replicas_it_is_the_optimum() -> None:
    problem = generators.small(mix="elastic")
    run = planner.solve(problem, design="least_moves")
    assert run.proof.metric == "min_share"
    assert least_share(run.plan.rates["kops"].to_numpy(), run.plan.rates["fair_share_kops"].to_numpy()) == (
        pytest.approx(run.proof.objective)
    )
