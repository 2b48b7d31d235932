"""Placements that copy the least data of those with the largest least share, against all placements."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog

import planner
from planner_models.fairshare import SharedStore
from planner_models.fairshare.designs import fewer_moves
from planner_models.fairshare.plan.fair_shares import fair_share_kops


def two_nodes() -> SharedStore:
    """Return three tenants with five partitions on two nodes that have little of different resources."""
    positions = [("A", "a1", "n"), ("A", "a2", "m"), ("B", "b1", "n"), ("B", "b2", "m"), ("C", "c1", "m")]
    uses = [("A", 1.0, 1.0), ("B", 4.0, 0.5), ("C", 0.5, 3.0)]
    return SharedStore.from_tables(
        {
            "nodes": pd.DataFrame({"node": ["n", "m"], "rate_kops": 1000.0, "memory_gb": 100.0}),
            "tenants": pd.DataFrame({"tenant": list("ABC"), "weight": [1.0, 1.0, 2.0], "mix": "elastic"}),
            "partitions": pd.DataFrame(
                [(t, p, 30.0 if p == "b2" else 1000.0, 1.0) for t, p, _ in positions],
                columns=["tenant", "partition", "demand_kops", "size_gb"],
            ),
            "resources": pd.DataFrame(
                [("n", "cpu", 10.0), ("n", "mem", 100.0), ("m", "cpu", 100.0), ("m", "mem", 10.0)],
                columns=["node", "resource", "capacity"],
            ),
            "uses": pd.DataFrame(
                [(t, name, item) for t, *row in uses for name, item in zip(("cpu", "mem"), row, strict=True)],
                columns=["tenant", "resource", "per_op"],
            ),
            "placed": pd.DataFrame(positions, columns=["tenant", "partition", "node"]),
        }
    )


def least_share_by_program(problem: SharedStore, node: tuple[int, ...]) -> float:
    """Return the largest least share, at most 1, with each partition on one node, by a linear program."""
    count, fair = len(node), fair_share_kops(problem)
    cost = np.concatenate([np.zeros(count), [-1.0]])
    rows, right = [], []
    for n, r in itertools.product(range(len(problem.nodes)), range(problem.capacity.shape[1])):
        use = [problem.per_op[problem.tenant[p], r] * (node[p] == n) for p in range(count)]
        rows.append([*use, 0.0])
        right.append(problem.capacity[n, r])
    for t in np.flatnonzero(fair > 0).tolist():
        rows.append([*(-(problem.tenant == t).astype(float)), fair[t]])
        right.append(0.0)
    bounds = [(0.0, demand_kop) for demand_kop in problem.demand_kops.tolist()] + [(0.0, 1.0)]
    return float(-linprog(cost, A_ub=rows, b_ub=right, bounds=bounds).fun)


@pytest.mark.slow
def test_the_same_share_needs_one_move_only() -> None:
    problem = two_nodes()
    home = problem.placed_replicas[1].tolist()
    result = []
    for node in itertools.product(range(2), repeat=5):
        moved = sum(float(problem.size_gb[p]) for p in range(5) if node[p] != home[p])
        result.append((round(least_share_by_program(problem, node), 7), -moved))
    best, moved = max(result)
    run = planner.solve(problem, design="optimum")
    assert run.metrics["min_share"] == pytest.approx(best, abs=1e-6)
    assert run.metrics["moved_gb"] == -moved == 1.0


@pytest.mark.parametrize("placement", ["auto", "exact"])
@pytest.mark.parametrize("seed", range(6))
def test_no_placement_that_is_as_fair_copies_less(seed: int, placement: str) -> None:
    rng = np.random.default_rng(seed)
    count, nodes = 5, 2
    owner = np.sort(rng.integers(0, 3, count))
    problem = SharedStore(
        nodes=pd.DataFrame({"node": ["n", "m"], "rate_kops": [6.0, 9.0], "memory_gb": 100.0}),
        tenants=pd.DataFrame({"tenant": list("ABC"), "weight": [1.0, 2.0, 1.0], "mix": "elastic"}),
        partitions=pd.DataFrame(
            {
                "tenant": [list("ABC")[t] for t in owner],
                "partition": [f"p{row}" for row in range(count)],
                "demand_kops": rng.integers(1, 9, count).astype(float),
                "size_gb": rng.integers(1, 4, count).astype(float),
            }
        ),
        placed=pd.DataFrame(
            {
                "tenant": [list("ABC")[t] for t in owner],
                "partition": [f"p{row}" for row in range(count)],
                "node": [["n", "m"][n] for n in rng.integers(0, nodes, count)],
            }
        ),
    )
    home = problem.placed_replicas[1].tolist()
    best = max(
        (
            round(least_share_by_program(problem, node), 7),
            -sum(float(problem.size_gb[p]) for p in range(count) if node[p] != home[p]),
        )
        for node in itertools.product(range(nodes), repeat=count)
    )
    run = planner.solve(problem, design="optimum", placement=placement)
    assert run.metrics["min_share"] == pytest.approx(best[0], abs=1e-6)
    assert run.metrics["moved_gb"] == -best[1]


def test_replicas_go_back_where_that_costs_no_share(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = two_nodes()
    run = planner.solve(problem, design="optimum", placement="search")
    searched = run.metrics["moved_gb"] or 0.0
    monkeypatch.setattr(fewer_moves, "MOST_EXACT", 0)
    from planner_models.fairshare.designs.fair_rates import solve_given
    from planner_models.fairshare.plan.plan import Replicas, read_plan

    replicas = read_plan(problem, run.plan).replicas
    served = solve_given(problem, replicas)
    back, again = fewer_moves.move_less(problem, Replicas(*replicas), served, run.options)
    fair = fair_share_kops(problem)
    before, after = (fewer_moves.rank(problem, *item, fair) for item in ((replicas, served), (back, again)))
    assert after >= before
    assert -after[1] <= searched
