"""Plans of every design, with the parameter values that change its search, against the bounds of optimum."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import planner
from planner_models.fairshare import SYSTEM, SharedStore

SEARCHES: dict[str, list[dict[str, Any]]] = {
    "optimum": [{"placement": "keep"}, {"placement": "search"}, {"placement": "exact"}, {"splits": "even"}],
    "rebalance": [{"slack": 0.0}, {"slack": 1.0}],
    "fq_pp": [{"placement": "search"}, {"placement": "keep"}],
    "pisces": [{"exchange": "swap"}, {"placement": "search"}],
}
EVERY = [(one.name, {}) for one in SYSTEM.designs] + [
    (name, one) for name in SEARCHES for one in SEARCHES[name]
]


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
            [(*part, str(rng.choice(nodes))) for part in parts], columns=["tenant", "partition", "node"]
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


@pytest.mark.parametrize("seed", range(3))
def test_no_design_beats_the_bound_and_every_plan_is_valid(seed: int) -> None:
    problem = hard_store(seed)
    best = planner.solve(problem, design="optimum")
    bound = best.proof.bound
    assert bound is not None
    for name, parameters in EVERY:
        run = planner.solve(problem, design=name, **parameters)
        assert run.error is None
        assert not len(run.violations.frame), (name, parameters)
        assert (run.metrics["min_share"] or 0.0) <= bound + 1e-6, (name, parameters)
        assert (run.metrics["min_share"] or 0.0) <= (best.metrics["min_share"] or 0.0) + 1e-6
