"""Fair shares of pools with several resources, against linear programs level by level."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog

import planner
from planner_models.fairshare import SharedStore
from planner_models.fairshare.plan.fair_shares import entitlement, fair_share_kops


def pool(
    weights: list[float], uses: list[list[float]], capacity: list[float], demand: list[float]
) -> SharedStore:
    """Return a store of one node, with a tenant for each weight and its uses of resources r0, r1, ..."""
    names = [f"t{row}" for row in range(len(weights))]
    return SharedStore.from_tables(
        {
            "nodes": pd.DataFrame({"node": ["n"], "rate_kops": [1000.0], "memory_gb": [100.0]}),
            "tenants": pd.DataFrame({"tenant": names, "weight": weights, "mix": "elastic"}),
            "partitions": pd.DataFrame(
                {"tenant": names, "partition": "p", "demand_kops": demand, "size_gb": 1.0}
            ),
            "resources": pd.DataFrame(
                [("n", f"r{r}", item) for r, item in enumerate(capacity)],
                columns=["node", "resource", "capacity"],
            ),
            "uses": pd.DataFrame(
                [
                    (name, f"r{r}", item)
                    for name, row in zip(names, uses, strict=True)
                    for r, item in enumerate(row)
                ],
                columns=["tenant", "resource", "per_op"],
            ),
        }
    )


def max_min_by_programs(problem: SharedStore) -> np.ndarray:
    """Return the lexicographic max-min rates over entitlements, (T,), by raising one tenant at a time."""
    due, demand = entitlement(problem), problem.demand_of_tenant
    use, total = problem.per_op.T, problem.capacity.sum(axis=0)
    held = np.full(len(due), np.nan)
    while np.isnan(held).any():
        free = np.flatnonzero(np.isnan(held))
        bounds = [(0, None)] + [
            (0, item) if np.isnan(h) else (h, h) for item, h in zip(demand, held, strict=True)
        ]
        rows = np.zeros((len(free), 1 + len(due)))
        rows[:, 0] = 1.0
        rows[np.arange(len(free)), 1 + free] = -1 / due[free]
        capacity = np.hstack([np.zeros((len(total), 1)), use])
        upper = np.vstack([rows, capacity])
        right = np.concatenate([np.zeros(len(free)), total])
        solution = linprog(
            np.concatenate([[-1.0], np.zeros(len(due))]), A_ub=upper, b_ub=right, bounds=bounds
        )
        level = solution.x[0]
        lowest = [
            (max(level * due[t] * (1 - 1e-9), 0.0), demand[t]) if np.isnan(held[t]) else (held[t], held[t])
            for t in range(len(due))
        ]
        newly = []
        for t in free:
            cost = np.zeros(len(due))
            cost[t] = -1.0
            largest = -linprog(cost, A_ub=use, b_ub=total * (1 + 1e-9), bounds=lowest).fun
            if largest <= level * due[t] * (1 + 1e-6) + 1e-9 or (
                largest >= demand[t] * (1 - 1e-9) and level * due[t] >= demand[t]
            ):
                newly.append(t)
        assert newly
        for t in newly:
            held[t] = min(level * due[t], demand[t])
    return held


@pytest.mark.parametrize("seed", range(12))
def test_fair_shares_fill_one_resource_after_the_other(seed: int) -> None:
    rng = np.random.default_rng(seed)
    tenants, resources = int(rng.integers(2, 5)), int(rng.integers(1, 4))
    uses = rng.integers(0, 4, (tenants, resources)).astype(float)
    problem = pool(
        rng.integers(1, 5, tenants).astype(float).tolist(),
        uses.tolist(),
        rng.integers(5, 30, resources).astype(float).tolist(),
        rng.choice([3.0, 8.0, 500.0], tenants).tolist(),
    )
    assert fair_share_kops(problem) == pytest.approx(max_min_by_programs(problem), rel=1e-5)


def test_a_tenant_of_another_resource_is_due_what_the_full_one_leaves_untouched() -> None:
    problem = pool([50.0, 25.0, 25.0], [[0.0, 1.0], [1.0, 0.0], [0.0, 1.0]], [10.0, 10.0], [1000.0] * 3)
    assert fair_share_kops(problem) == pytest.approx([20 / 3, 10.0, 10 / 3])
    run = planner.solve(problem, design="optimum")
    assert run.metrics["min_share"] == pytest.approx(1.0)


def test_a_share_that_one_node_limits_is_proven_at_its_resource() -> None:
    nodes = ["n", "m"]
    tables = {
        "nodes": pd.DataFrame({"node": nodes, "rate_kops": 1000.0, "memory_gb": 100.0}),
        "tenants": pd.DataFrame({"tenant": ["video", "web"], "weight": [3.0, 1.0], "mix": "elastic"}),
        "partitions": pd.DataFrame(
            {
                "tenant": ["video", "video", "web"],
                "partition": ["v1", "v2", "w1"],
                "demand_kops": 1000.0,
                "size_gb": 1.0,
            }
        ),
        "resources": pd.DataFrame(
            [(node, name, 5.0) for node in nodes for name in ("cpu", "gpu")],
            columns=["node", "resource", "capacity"],
        ),
        "uses": pd.DataFrame(
            [("video", "gpu", 1.0), ("web", "cpu", 1.0)], columns=["tenant", "resource", "per_op"]
        ),
    }
    run = planner.solve(SharedStore.from_tables(tables), design="optimum")
    rates = run.plan.rates.set_index("tenant")
    assert rates.loc["web", "fair_share_kops"] == pytest.approx(10.0)
    assert rates.loc["web", "level"] == pytest.approx(0.5)
    assert run.proof.bound == pytest.approx(0.5)
