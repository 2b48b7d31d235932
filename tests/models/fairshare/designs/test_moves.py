"""Least moves and their bound against integer programs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import Bounds, LinearConstraint, milp

import planner
from planner_models.fairshare import SYSTEM, SharedStore
from planner_models.fairshare.designs.fair_rates import fair_load_kops
from planner_models.fairshare.designs.moves import move_least
from planner_models.fairshare.plan.metrics import count_moves, measure
from planner_models.fairshare.problem import generators
from planner_models.fairshare.problem.adjustments import adjust
from tests.models.fairshare.stores import make


def least_moved_gb(problem: SharedStore, load_kops: np.ndarray, limit: float) -> float | None:
    """Return the least data that moves to a placement within a limit, by HiGHS; None for none."""
    partitions, nodes = len(problem.partitions), len(problem.nodes)
    p, n = (share.ravel() for share in np.indices((partitions, nodes)))
    position = np.arange(partitions * nodes)

    def rows(index: np.ndarray, value: np.ndarray, height: int) -> sp.csr_array:
        return sp.csr_array((value, (index, position)), shape=(height, len(position)))

    home = np.zeros((partitions, nodes), dtype=bool)
    home[problem.placed_replicas] = True
    item, requested = np.ones(len(position)), problem.wanted_replicas
    solution = milp(
        np.where(home, 0.0, problem.size_gb[:, None]).ravel(),
        constraints=[
            LinearConstraint(rows(p, item, partitions), requested, requested),
            LinearConstraint(rows(n, load_kops[p], nodes), ub=problem.rate_kops * limit * (1 + 1e-9)),
            LinearConstraint(rows(n, problem.size_gb[p], nodes), ub=problem.memory_gb),
        ],
        bounds=Bounds(0, np.broadcast_to(problem.rate_kops > 0, home.shape).ravel().astype(float)),
        integrality=item,
    )
    return None if solution.x is None else float(solution.fun)


def draw_store(seed: int) -> SharedStore:
    """Draw a small store with replicas of many sizes, some on too many nodes or on one that has failed."""
    random = np.random.default_rng(seed)
    store = generators.zipf(
        tenants=3, partitions=4, nodes=4, replicas=int(random.integers(1, 3)), weights="equal", memory=2.0,
        placed=str(random.choice(["random", "balanced"])), shift=1.0, load=1.5, seed=seed,
    )  # fmt: skip
    sizes = random.uniform(0.005, 0.03, size=12) if seed % 2 else store.size_gb
    store = replace(store, partitions=store.partitions.assign(size_gb=sizes))
    if seed % 3 == 0:
        store = store.with_tenants(replicas=1.0)
    if seed % 5 == 0:
        store = store.with_nodes(failed=[1.0, 0.0, 0.0, 0.0])
    if seed % 7 == 0 and store.placed is not None:
        store = store.with_placed(pd.DataFrame(store.placed.iloc[2:]))
    return store


@pytest.mark.slow
@settings(max_examples=4)
@given(st.integers(0, 10_000), st.sampled_from([0.05, 0.2, 0.5]))
def test_the_bound_is_below_the_least_data_that_moves(seed: int, slack: float) -> None:
    problem = draw_store(seed)
    load = fair_load_kops(problem)
    moved = move_least(problem, load, slack=slack)
    lower = least_moved_gb(problem, load, moved.limit)
    if lower is None:
        assert not moved.is_within
        return
    assert moved.bound_gb <= lower + 1e-7
    if moved.is_within:
        counted = count_moves(problem, moved.replicas)
        assert counted is not None
        assert counted[1] >= lower - 1e-7


@pytest.mark.slow
def test_moves_are_near_the_bound() -> None:
    problem = generators.zipf(
        tenants=120, partitions=40, nodes=24, replicas=1, placed="balanced", shift=0.3, seed=1
    )
    moved = move_least(problem, fair_load_kops(problem), slack=0.02)
    counted = count_moves(problem, moved.replicas)
    assert moved.is_within
    assert counted is not None
    assert moved.bound_gb <= counted[1] * (1 + 1e-9)
    assert counted[1] <= 1.15 * moved.bound_gb
    assert moved.bound_gb / problem.size_gb[0] == pytest.approx(round(moved.bound_gb / problem.size_gb[0]))


@pytest.mark.parametrize("name", ["rebalance", "optimum", "fq"])
def test_replicas_of_the_decision_in_place_stay(name: str) -> None:
    problem, design = generators.sample(), SYSTEM.design(name)
    lost = adjust(problem, fail_nodes=(str(problem.node_names[0]),))
    moved = []
    previous = design.run(problem)
    for _ in range(2):
        decision = design.run(lost, previous=previous)
        assert previous.plan is not None
        assert decision.plan is not None
        moved.append(measure(lost, decision.plan, previous.plan)["moved_partitions"])
        previous = decision
    on_lost = measure(problem, previous.plan, design.run(problem).plan)["moved_partitions"]
    assert moved[0] is not None
    assert moved[0] > 0
    assert on_lost == moved[0]
    assert moved[1] == 0


def test_a_replica_that_fits_nowhere_takes_the_place_of_small_ones() -> None:
    large, small = (12.0, "n0"), (2.0, "n1")
    own_values = {"x": large, "y": (10.0, "n0"), **{f"s{k}": small for k in range(6)}, "z": (12.0, "n2")}
    problem = make({"n0": 20.0, "n1": 20.0, "n2": 20.0}, {"A": (1.0, "elastic", own_values)})
    load = np.array([demand for demand, _ in own_values.values()])
    moved = move_least(problem, load, slack=0.1)
    counted = count_moves(problem, moved.replicas)
    assert counted is not None
    limit = moved.limit * 20.0
    assert moved.is_within
    assert np.bincount(moved.replicas.node, weights=load[moved.replicas.partition]).max() <= limit * (
        1 + 1e-9
    )
    assert counted[1] == pytest.approx(least_moved_gb(problem, load, moved.limit))


@pytest.mark.parametrize("design", ["rebalance", "fq_pp", "pisces", "optimum"])
def test_a_pinned_replica_above_the_limit_of_its_node_stays(design: str) -> None:
    pins = pd.DataFrame([("A", "p", "n0")], columns=["tenant", "partition", "node"])
    problem = make({"n0": 3.0, "n1": 4.0}, {"A": (1.0, "elastic", {"p": (2.0, "n0")})}, pinned=pins)
    run = planner.solve(problem, design=design)
    assert run.error is None
    assert run.metrics["min_share"] == pytest.approx(1.0)
    assert run.metrics["moved_gb"] == 0.0
