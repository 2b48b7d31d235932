"""Plans of every design, with the parameter values that change its search, against the bounds of optimum."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import planner
from planner.testing.bounds import check_bounds, check_optimum
from planner.testing.searches import check_searches
from planner_models.fairshare import SYSTEM, SharedStore


def hard_store(seed: int) -> SharedStore:
    """Return a random store with a failed node and rules of places; every other one has two resources."""
    rng = np.random.default_rng(seed)
    nodes = ["n0", "n1", "n2"]
    parts = [(t, f"p{row}") for t in ("A", "B") for row in range(2)]
    tables = {
        "nodes": pd.DataFrame(
            {"node": nodes, "rate_kops": rng.integers(1, 9, 3), "memory_gb": 100.0, "failed": [0.0, 0.0, 1.0]}
        ).astype({"rate_kops": float}),
        "tenants": pd.DataFrame(
            {"tenant": ["A", "B"], "weight": [1.0, 2.0], "mix": rng.choice(["elastic", "fixed"], 2)}
        ),
        "partitions": pd.DataFrame(parts, columns=["tenant", "partition"]).assign(
            demand_kops=[2.0, *rng.choice([0.0, 1.0, 4.0, 8.0], 3)],
            size_gb=rng.integers(0, 3, 4).astype(float),
        ),
        "placed": pd.DataFrame(
            [(*share, str(rng.choice(nodes))) for share in parts], columns=["tenant", "partition", "node"]
        ),
        "pinned": pd.DataFrame(
            [("A", "p0", str(rng.choice(nodes)))], columns=["tenant", "partition", "node"]
        ),
        "forbidden": pd.DataFrame([("B", "p1", "n0")], columns=["tenant", "partition", "node"]),
    }
    if seed % 2:
        tables["resources"] = pd.DataFrame(
            {"node": ["n0", "n1"], "resource": "cpu", "capacity": rng.integers(1, 9, 2).astype(float)}
        )
        tables["uses"] = pd.DataFrame({"tenant": ["A"], "resource": "cpu", "per_op": 2.0})
    return SharedStore.from_tables(tables)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_no_design_beats_the_bound_and_every_plan_is_valid(seed: int) -> None:
    problem = hard_store(seed)
    runs = [planner.solve(problem, design=design.name) for design in SYSTEM.designs]
    assert not any(len(run.violations) for run in runs)
    check_bounds(runs)
    check_optimum(runs)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.exhaustive) for seed in (1, 2))])
def test_no_value_of_a_parameter_beats_the_bound(seed: int) -> None:
    check_searches(SYSTEM, hard_store(seed))
