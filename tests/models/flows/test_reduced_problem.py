"""The reduced network has the same optimum, and its plans are plans of the network."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from planner_models.flows.reduced_problem import ReducedNetwork, ReducedProblem, reduce_network
from planner_models.traffic import SYSTEM, Traffic
from planner_models.traffic.designs import column_generation
from planner_models.traffic.designs.optimum import optimum
from planner_models.traffic.problem import generators
from tests.models.traffic.networks import both_ways, network, problems


def reduce_problem(problem: Traffic, *, symmetry: bool = True) -> ReducedNetwork:
    return ReducedProblem.of(problem, symmetry=symmetry).network


def without_cables(problem: Traffic, share: float, seed: int) -> Traffic:
    """Return the fat tree after failures of cables between its switches, both directions."""
    ends = [tuple(sorted(pair)) for pair in zip(problem.links["tail"], problem.links["head"], strict=True)]
    between = sorted({pair for pair in ends if not any(name.startswith("host") for name in pair)})
    random = np.random.default_rng(seed)
    dead = {between[i] for i in random.choice(len(between), round(share * len(between)), replace=False)}
    keep = [pair not in dead for pair in ends]
    return Traffic(
        nodes=problem.nodes, links=problem.links[keep].reset_index(drop=True), demands=problem.demands
    )


def check_optimum(problem: Traffic) -> None:
    """Check that the reduced network has the optimum of the linear program and gives a valid plan."""
    plain = optimum.route(problem, objective="concurrent", method="lp").proof.objective
    decision = column_generation.route(problem)
    assert plain is not None
    assert decision.proof.objective == pytest.approx(plain, rel=2e-6)
    SYSTEM.plan.check(problem, decision.plan)  # PlanRejected where it is no flow
    assert decision.plan is not None
    value = SYSTEM.plan.measure(problem, decision.plan, None)["concurrent_flow"]
    assert value == pytest.approx(decision.proof.objective, rel=1e-9)


@pytest.mark.slow
@given(problems(max_nodes=7, max_demands=4))
@settings(max_examples=60, deadline=None)
def test_small_networks_keep_their_optimum(problem: Traffic) -> None:
    check_optimum(problem)


@pytest.mark.parametrize(("share", "seed"), [(0.0, 0), (0.05, 1), (0.1, 2), (0.2, 3)])
def test_a_fat_tree_with_failures_keeps_its_optimum(share: float, seed: int) -> None:
    problem = without_cables(generators.fat_tree(k=4, seed=seed), share, seed)
    with_, without = reduce_problem(problem), reduce_problem(problem, symmetry=False)
    assert with_.graph.nodes <= without.graph.nodes
    check_optimum(problem)


def test_a_healthy_fat_tree_leaves_nothing_to_decide() -> None:
    small = ReducedProblem.of(generators.fat_tree(k=8))
    assert (small.graph.nodes, len(small.roots), small.fixed_utilization) == (1, 0, 1.0)


def test_only_switches_next_to_failures_are_not_merged() -> None:
    full = generators.fat_tree(k=8)
    small = reduce_problem(without_cables(full, 0.01, 1))
    assert small.graph.nodes < len(full.nodes) / 2


def test_parallel_links_and_equivalent_nodes_divide_traffic_by_capacity() -> None:
    links = both_ways([("s", "a", 1.0), ("s", "a", 2.0), ("a", "t", 3.0), ("s", "b", 3.0), ("b", "t", 3.0)])
    problem = network(links, [("s", "t", 6.0)])
    small = reduce_problem(problem)
    assert small.graph.nodes == 1  # parallel, chains, one arc: a dead end, of fixed load
    plan = column_generation.route(problem).plan
    assert plan is not None
    assert plan.links["utilization"].iloc[:5].tolist() == pytest.approx([1.0] * 5)


def test_arcs_between_two_merged_classes_are_kept() -> None:
    # two layers of equivalent switches, fully meshed: both layers are merged at once
    links = [(f"h{i}", f"x{j}", 10.0) for i in range(3) for j in range(2)]
    links += [(f"x{j}", f"y{k}", 1.0) for j in range(2) for k in range(3)]
    links += [(f"y{k}", "x2", 2.0) for k in range(3)] + [("x2", f"h{i}", 10.0) for i in range(3)]
    links += [(f"y{k}", f"z{m}", 0.5) for k in range(3) for m in range(2)]
    links += [(f"z{m}", f"h{i}", 1.0) for m in range(2) for i in range(3)]
    demands = [("h0", "h1", 1.0), ("h1", "h2", 2.0), ("h2", "h0", 1.5), ("h0", "h2", 0.5)]
    problem = network(links, demands)
    assert reduce_problem(problem).graph.nodes < reduce_problem(problem, symmetry=False).graph.nodes
    check_optimum(problem)


def test_nodes_of_slightly_different_capacity_are_not_merged() -> None:
    arcs = [("s", "a"), ("s", "b"), ("a", "t"), ("b", "t"), ("a", "u"), ("b", "u"), ("t", "s"), ("u", "s")]
    demands = [("s", "t", 1.0), ("s", "u", 1.0)]
    same = network([(u, v, 1.0) for u, v in arcs], demands)
    other = network([(u, v, 1.0 + 1e-9 * (u == "a" and v == "t")) for u, v in arcs], demands)
    assert reduce_problem(same).graph.nodes < reduce_problem(other).graph.nodes
    check_optimum(same)


@given(problems(max_nodes=6, max_demands=4))
@settings(max_examples=40, deadline=None)
def test_shares_of_an_arc_leave_its_tail_and_reach_its_head(problem: Traffic) -> None:
    demanding = np.zeros(len(problem.nodes), dtype=bool)
    demanding[problem.source] = demanding[problem.target] = True
    small = reduce_network(
        nodes=len(problem.nodes),
        tail=problem.tail,
        head=problem.head,
        capacity_mbps=problem.capacity_mbps,
        demanding=demanding,
        symmetry=False,
    )
    surplus = problem.incidence @ small.spread  # of each node, for one Mbit/s on each arc
    assert np.abs(surplus.sum(axis=0)).max(initial=0.0) < 1e-12
    assert np.abs(surplus.toarray()).sum(axis=0) == pytest.approx(np.full(len(small.capacity_mbps), 2.0))
    # a full arc fills no link beyond its capacity
    filled = small.spread @ np.diag(small.capacity_mbps)
    assert (filled <= problem.capacity_mbps[:, None] * (1 + 1e-12)).all()


def test_dead_ends_carry_exactly_their_demands() -> None:
    links = both_ways([("a", "b", 4.0), ("b", "c", 8.0), ("c", "d", 2.0), ("b", "e", 5.0)])
    demands = [("a", "d", 1.0), ("e", "a", 2.0), ("d", "c", 1.0), ("a", "b", 1.0)]
    problem = network(links, demands)
    small = ReducedProblem.of(problem)
    assert len(small.roots) == 0
    decision = column_generation.route(problem)
    assert decision.plan is not None
    load = decision.plan.links.set_index(["tail", "head"])["load_mbps"]
    requested = {("a", "b"): 2, ("b", "c"): 1, ("c", "d"): 1, ("e", "b"): 2, ("b", "a"): 2, ("d", "c"): 1}
    assert {ends: rate for ends, rate in load.items() if rate} == pytest.approx(requested)
    assert decision.proof.objective == pytest.approx(2.0)  # a-b, b-a and c-d at half
