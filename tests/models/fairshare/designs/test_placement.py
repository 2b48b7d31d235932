"""Placements against rules, bounds and brute force; least moves against their bound."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from planner.contract.notes import observe_notes
from planner.contract.proof import Status
from planner.options import Options
from planner_models.fairshare import SharedStore, check
from planner_models.fairshare.designs import fair_rates, mechanisms, moves, optimum
from planner_models.fairshare.designs.placement import (
    bound_utilization,
    complete,
    place_by_load,
    place_uniformly,
)
from planner_models.fairshare.plan.plan import Replicas
from planner_models.fairshare.problem import generators
from tests.models.fairshare.stores import make


def utilization(problem: SharedStore, replicas: Replicas, load: np.ndarray) -> float:
    used = np.bincount(replicas.node, weights=load[replicas.partition], minlength=len(problem.nodes))
    return float((used / problem.rate_kops).max())


def least_by_brute_force(problem: SharedStore, load: np.ndarray) -> float:
    nodes = len(problem.nodes)
    best = np.inf
    for selected in itertools.product(range(nodes), repeat=len(load)):
        used = np.bincount(selected, weights=load, minlength=nodes)
        memory = np.bincount(selected, weights=problem.size_gb, minlength=nodes)
        if (memory <= problem.memory_gb + 1e-9).all():
            best = min(best, float((used / problem.rate_kops).max()))
    return best


@pytest.mark.slow
def test_small_placements_are_near_the_best() -> None:
    for seed in range(12):
        problem = generators.small(seed=seed)
        load = fair_rates.fair_load_kops(problem)
        result = utilization(problem, place_by_load(problem, load), load)
        best = least_by_brute_force(problem, load)
        assert bound_utilization(problem, load) <= best * (1 + 1e-9)
        assert best <= result * (1 + 1e-9)
        assert result <= 1.1 * best


@pytest.mark.parametrize("rules", [{}, {"domains": 4}, {"most_nodes": 5}, {"domains": 4, "most_nodes": 5}])
def test_placements_keep_the_rules(rules: dict[str, int]) -> None:
    problem = generators.zipf(tenants=30, partitions=12, nodes=12, replicas=3, memory=1.2, seed=1, **rules)
    for design in (optimum.share, mechanisms.queue_fairly):
        decision = design(problem)
        assert decision.plan is not None
        assert not len(check(problem, decision.plan))
        assert decision.guarantees is None  # all replicas are placed


def test_search_ends_near_the_bound() -> None:
    problem = generators.zipf(tenants=100, partitions=20, nodes=20, replicas=1, memory=1.15, seed=2)
    load = fair_rates.fair_load_kops(problem)
    greedy = utilization(problem, place_by_load(problem, load, search=False), load)
    result = utilization(problem, place_by_load(problem, load), load)
    assert result <= greedy
    assert result <= 1.001 * bound_utilization(problem, load)


@pytest.mark.parametrize(("replicas", "most_nodes", "gap"), [(1, 4, 1e-4), (3, 6, 1e-4), (3, 3, 0.02)])
def test_search_balances_tenants_that_may_be_on_few_nodes(replicas: int, most_nodes: int, gap: float) -> None:
    """With as many nodes as replicas, all replicas of a tenant on a node can only move together."""
    problem = generators.zipf(
        tenants=100, partitions=20, nodes=20, replicas=replicas, memory=1.15, most_nodes=most_nodes,
        weights="equal", seed=2,
    )  # fmt: skip
    load = fair_rates.fair_load_kops(problem)
    greedy = utilization(problem, place_by_load(problem, load, search=False), load)
    replicas_found = place_by_load(problem, load)
    nodes_of = pd.DataFrame({"tenant": problem.tenant[replicas_found.partition], "node": replicas_found.node})
    assert nodes_of.groupby("tenant")["node"].nunique().max() <= most_nodes
    result, bound = utilization(problem, replicas_found, load), bound_utilization(problem, load)
    assert bound * (1 - 1e-9) <= result <= min(greedy, bound * (1 + gap))


def test_uniform_placement_has_as_many_replicas_on_each_node() -> None:
    problem = generators.zipf(tenants=20, partitions=12, nodes=6, replicas=2, seed=1)
    count = np.bincount(place_uniformly(problem).node)
    assert count.max() - count.min() <= 1


def test_pinned_and_forbidden_replicas() -> None:
    problem = make(
        {"n1": 10.0, "n2": 10.0, "n3": 10.0},
        {"A": (1.0, "fixed", {"a": (5.0, ""), "b": (5.0, "")}), "B": (1.0, "elastic", {"c": (9.0, "")})},
        pinned=pd.DataFrame([("A", "a", "n3")], columns=["tenant", "partition", "node"]),
        forbidden=pd.DataFrame([("B", "*", "n3"), ("*", "c", "n1")], columns=["tenant", "partition", "node"]),
    )
    decision = optimum.share(problem)
    assert decision.plan is not None
    where = {(row.tenant, row.partition): row.node for row in decision.plan.placement.itertuples()}
    assert where["A", "a"] == "n3"
    assert where["B", "c"] == "n2"


def test_replicas_that_do_not_fit_make_room_by_ejection() -> None:
    problem = make(
        {"n1": 10.0, "n2": 10.0},
        {"A": (1.0, "fixed", {"a": (3.0, ""), "b": (2.0, ""), "c": (1.0, "")})},
        memory_gb=2.0,
    )
    partitions = problem.partitions.assign(size_gb=[1.0, 1.0, 2.0])
    tight = SharedStore(nodes=problem.nodes, tenants=problem.tenants, partitions=partitions)
    assert len(place_by_load(tight, fair_rates.fair_load_kops(tight)).node) == 3


def test_replicas_without_a_place_are_counted() -> None:
    problem = make({"n1": 10.0}, {"A": (1.0, "elastic", {"a": (3.0, ""), "b": (2.0, "")})}, memory_gb=1.0)
    decision = optimum.share(problem)
    assert decision.plan is not None
    assert set(check(problem, decision.plan).frame["limit"]) == {"placed"}
    assert decision.plan.rates["kops"].tolist() == [3.0]


def test_too_little_memory_is_proven_with_the_nodes() -> None:
    own_values = {"a": (1.0, "n1 n2"), "b": (1.0, "n1 n2")}
    notes: list[str] = []
    with observe_notes(notes.append):
        problem = make(
            {"n1": 9.0, "n2": 9.0}, {"A": (1.0, "elastic", own_values)}, memory_gb=0.9, size_gb=0.8
        )
    (note,) = notes
    assert note.startswith("warning: all replicas take 3.2 GB; all 2 nodes that work (n1, n2) have 1.8 GB")
    decision = optimum.share(problem, options=Options(service="all"))
    assert decision.plan is None
    assert decision.proof.status == Status.INFEASIBLE
    assert "all 2 nodes that work (n1, n2) have 1.8 GB of memory" in " ".join(decision.proof.reasons)


def test_where_memory_is_short_each_partition_has_a_replica_before_others_have_two() -> None:
    """Four partitions want two replicas, and nodes have memory for six: by load alone, one has none."""
    parts = {name: (load, "n1 n2") for name, load in (("a", 4.0), ("b", 3.0), ("c", 2.0), ("d", 1.0))}
    problem = make({"n1": 9.0, "n2": 9.0}, {"A": (1.0, "fixed", parts)}, memory_gb=3.0)
    placement = place_by_load(problem, fair_rates.fair_load_kops(problem))
    assert len(placement.node) == 6
    assert set(placement.partition.tolist()) == {0, 1, 2, 3}
    decision = optimum.share(problem)
    assert decision.plan is not None
    assert decision.plan.rates["kops"].tolist() == pytest.approx(
        [10.0]
    )  # though the replicas in place have 0


def test_where_memory_is_short_replicas_of_most_value_stay() -> None:
    """Memory for two of five partitions: those of the tenant of fixed mix have most value together."""
    tenants = {
        "A": (1.0, "elastic", {"a": (1.0, "n1"), "b": (2.0, "n1"), "c": (2.5, "n1")}),
        "B": (5.0, "fixed", {"d": (5.0, "n1"), "e": (1.0, "n1")}),
    }
    problem = make({"n1": 10.0}, tenants, memory_gb=2.0)
    load = fair_rates.fair_load_kops(problem)
    for result in (
        place_by_load(problem, load),
        complete(problem, load),
        moves.move_least(problem, load, slack=0.1)[0],
    ):
        assert problem.partition_names[result.partition].tolist() == ["d", "e"]
    assert problem.placed is not None
    empty = replace(problem, placed=problem.placed.iloc[:2])  # of A, which leave
    assert moves.move_least(empty, load, slack=0.1).replicas.partition.tolist() == [3, 4]


@pytest.mark.slow
def test_moves_are_within_their_limit_and_their_bound() -> None:
    for seed in range(4):
        problem = generators.zipf(
            tenants=60, partitions=20, nodes=12, replicas=1, placed="balanced", shift=0.5, seed=seed
        )
        load = fair_rates.fair_load_kops(problem)
        result = moves.move_least(problem, load, slack=0.02)
        assert result.is_within
        assert utilization(problem, result.replicas, load) <= result.limit * (1 + 1e-6)
        decision = moves.rebalance(problem)
        assert decision.plan is not None
        assert not len(check(problem, decision.plan))
        moved, bound = decision.proof.objective, decision.proof.bound
        assert moved is not None
        assert bound is not None
        assert bound <= moved <= 3 * bound
        afresh = optimum.share(problem, placement="search")
        assert afresh.plan is not None
        assert len(afresh.plan.placement) > 10 * len(problem.partitions) * moved / problem.size_gb.sum()


def test_least_moves_by_brute_force() -> None:
    random = np.random.default_rng(3)
    for _ in range(10):
        own_values = {f"p{p}": (float(random.integers(1, 9)), f"n{random.integers(3)}") for p in range(6)}
        problem = make({"n0": 10.0, "n1": 10.0, "n2": 10.0}, {"A": (1.0, "fixed", own_values)})
        load = fair_rates.fair_load_kops(problem)
        moved = moves.move_least(problem, load, slack=0.3)
        _, node = problem.placed_replicas
        fewest = np.inf
        for selected in itertools.product(range(3), repeat=6):
            used = np.bincount(selected, weights=load, minlength=3)
            if (used <= problem.rate_kops * moved.limit * (1 + 1e-9)).all():
                fewest = min(fewest, int((np.array(selected) != node).sum()))
        if np.isinf(fewest):
            continue
        assert moved.bound_gb <= fewest + 1e-9
        if moved.is_within:
            assert fewest <= int((moved.replicas.node != node).sum()) <= fewest + 1
