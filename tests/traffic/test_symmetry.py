"""The reduced network has the same optimum, and its plans are plans of the network."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from planner_models.traffic import SYSTEM, Traffic, columns, generate, optimum
from planner_models.traffic.rooted import Rooted
from planner_models.traffic.symmetry import Reduced, reduce
from tests.traffic.networks import both_ways, network, problems


def reduced(problem: Traffic, *, symmetry: bool = True) -> Reduced:
    return Rooted.of(problem, symmetry=symmetry).reduced


def without_cables(problem: Traffic, share: float, seed: int) -> Traffic:
    """The fat tree after some of the cables between its switches failed, both ways."""
    ends = [tuple(sorted(pair)) for pair in zip(problem.links["tail"], problem.links["head"], strict=True)]
    between = sorted({pair for pair in ends if not any(name.startswith("host") for name in pair)})
    random = np.random.default_rng(seed)
    dead = {between[i] for i in random.choice(len(between), round(share * len(between)), replace=False)}
    keep = [pair not in dead for pair in ends]
    return Traffic(
        nodes=problem.nodes, links=problem.links[keep].reset_index(drop=True), demands=problem.demands
    )


def agreed(problem: Traffic) -> float:
    """The largest concurrent flow by the plain linear program and on the reduced network; plans checked."""
    plain = optimum.route(problem, method="lp").proof.objective
    decision = columns.route(problem)
    assert plain is not None
    assert decision.proof.objective == pytest.approx(plain, rel=2e-6)
    SYSTEM.check(problem, decision.plan)  # PlanRejected where it is no flow
    assert decision.plan is not None
    worth = SYSTEM.measure(problem, decision.plan, None)["concurrent_flow"]
    assert worth == pytest.approx(decision.proof.objective, rel=1e-9)
    return plain


@given(problems(max_nodes=7, max_demands=4))
@settings(max_examples=60, deadline=None)
def test_small_networks_keep_their_optimum(problem: Traffic) -> None:
    agreed(problem)


@pytest.mark.parametrize(("share", "seed"), [(0.0, 0), (0.05, 1), (0.1, 2), (0.2, 3)])
def test_a_fat_tree_with_failures_keeps_its_optimum(share: float, seed: int) -> None:
    problem = without_cables(generate.fat_tree(k=4, seed=seed), share, seed)
    with_, without = reduced(problem), reduced(problem, symmetry=False)
    assert with_.graph.nodes <= without.graph.nodes
    agreed(problem)


def test_a_healthy_fat_tree_leaves_nothing_to_decide() -> None:
    rooted = Rooted.of(generate.fat_tree(k=8))
    assert (rooted.graph.nodes, len(rooted.roots), rooted.forced) == (1, 0, 1.0)


def test_failures_keep_only_the_switches_that_they_touch_apart() -> None:
    whole = generate.fat_tree(k=8)
    small = reduced(without_cables(whole, 0.01, 1))
    assert small.graph.nodes < len(whole.nodes) / 2


def test_parallel_and_alike_nodes_divide_traffic_by_capacity() -> None:
    links = both_ways([("s", "a", 1.0), ("s", "a", 2.0), ("a", "t", 3.0), ("s", "b", 3.0), ("b", "t", 3.0)])
    problem = network(links, [("s", "t", 6.0)])
    small = reduced(problem)
    assert small.graph.nodes == 1  # parallel, chains, one arc: a dead end, forced
    plan = columns.route(problem).plan
    assert plan is not None
    assert plan.links["utilization"].iloc[:5].tolist() == pytest.approx([1.0] * 5)


def test_classes_that_meet_classes_lose_no_arc() -> None:
    # two layers of switches that are alike, fully meshed: both layers join at once
    links = [(f"h{i}", f"x{j}", 10.0) for i in range(3) for j in range(2)]
    links += [(f"x{j}", f"y{k}", 1.0) for j in range(2) for k in range(3)]
    links += [(f"y{k}", "x2", 2.0) for k in range(3)] + [("x2", f"h{i}", 10.0) for i in range(3)]
    links += [(f"y{k}", f"z{m}", 0.5) for k in range(3) for m in range(2)]
    links += [(f"z{m}", f"h{i}", 1.0) for m in range(2) for i in range(3)]
    demands = [("h0", "h1", 1.0), ("h1", "h2", 2.0), ("h2", "h0", 1.5), ("h0", "h2", 0.5)]
    problem = network(links, demands)
    assert reduced(problem).graph.nodes < reduced(problem, symmetry=False).graph.nodes
    agreed(problem)


def test_nearly_alike_is_not_alike() -> None:
    arcs = [("s", "a"), ("s", "b"), ("a", "t"), ("b", "t"), ("a", "u"), ("b", "u"), ("t", "s"), ("u", "s")]
    demands = [("s", "t", 1.0), ("s", "u", 1.0)]
    same = network([(u, v, 1.0) for u, v in arcs], demands)
    other = network([(u, v, 1.0 + 1e-9 * (u == "a" and v == "t")) for u, v in arcs], demands)
    assert reduced(same).graph.nodes < reduced(other).graph.nodes
    agreed(same)


@given(problems(max_nodes=6, max_demands=4))
@settings(max_examples=40, deadline=None)
def test_shares_of_an_arc_leave_its_tail_and_reach_its_head(problem: Traffic) -> None:
    demanding = np.zeros(len(problem.nodes), dtype=bool)
    demanding[problem.source] = demanding[problem.target] = True
    small = reduce(
        nodes=len(problem.nodes),
        tail=problem.tail,
        head=problem.head,
        capacity_mbps=problem.capacity_mbps,
        demanding=demanding,
        symmetry=False,
    )
    surplus = problem.balance @ small.spread  # what one Mbit/s on each arc puts into each node
    assert np.abs(surplus.sum(axis=0)).max(initial=0.0) < 1e-12
    assert np.abs(surplus.toarray()).sum(axis=0) == pytest.approx(np.full(len(small.capacity_mbps), 2.0))
    # a full arc fills no link beyond its capacity
    filled = small.spread @ np.diag(small.capacity_mbps)
    assert (filled <= problem.capacity_mbps[:, None] * (1 + 1e-12)).all()


def test_dead_ends_carry_what_their_demands_settle() -> None:
    links = both_ways([("a", "b", 4.0), ("b", "c", 8.0), ("c", "d", 2.0), ("b", "e", 5.0)])
    demands = [("a", "d", 1.0), ("e", "a", 2.0), ("d", "c", 1.0), ("a", "b", 1.0)]
    problem = network(links, demands)
    rooted = Rooted.of(problem)
    assert len(rooted.roots) == 0
    decision = columns.route(problem)
    assert decision.plan is not None
    load = decision.plan.links.set_index(["tail", "head"])["load_mbps"]
    wanted = {("a", "b"): 2, ("b", "c"): 1, ("c", "d"): 1, ("e", "b"): 2, ("b", "a"): 2, ("d", "c"): 1}
    assert {ends: rate for ends, rate in load.items() if rate} == pytest.approx(wanted)
    assert decision.proof.objective == pytest.approx(2.0)  # a-b, b-a and c-d at half
