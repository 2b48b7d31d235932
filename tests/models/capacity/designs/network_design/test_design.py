"""Network design against the plain program on another solver, brute force, and an independent check."""

from __future__ import annotations

import itertools
import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.contract.proof import Status
from planner.options import Options
from planner_models.capacity.designs.network_design.design import solve
from planner_models.capacity.designs.network_design.instance import Instance, Solution
from planner_models.capacity.designs.network_design.master import Master, Search
from tests.models.capacity.designs.network_design.instances import can_route, instances, solve_extended


def ring(rates: dict[tuple[int, int], float], **changes: object) -> Instance:
    """Four nodes in a ring and one chord; modules of 10 at cost 7 on each link."""
    tail, head = np.array([0, 1, 2, 3, 0]), np.array([1, 2, 3, 0, 2])
    data = Instance(
        nodes=4,
        tail=tail,
        head=head,
        direction="undirected",
        installed=np.zeros(5),
        setup_cost=np.zeros(5),
        routing_cost=np.zeros(5),
        module_edge=np.arange(5),
        module_size=np.full(5, 10.0),
        module_cost=np.full(5, 7.0),
        module_limit=np.full(5, np.inf),
        explicit=False,
        source=np.array([a for a, _ in rates]),
        target=np.array([b for _, b in rates]),
        rate=np.array(list(rates.values())),
        failures=np.zeros((0, 5), dtype=bool),
    )
    return replace(data, **changes)


def cost_of(instance: Instance, solution: Solution) -> float:
    """The cost of a plan from its modules and flows, without the design's code."""
    assert solution.counts is not None
    assert solution.flows is not None
    total = 0.0
    for m, number in enumerate(solution.counts):
        total += number * instance.module_cost[m]
    for e in range(instance.edges):
        if solution.counts[instance.module_edge == e].sum() > 0:
            total += instance.setup_cost[e]
    flows = solution.flows.toarray()
    both = flows[:, : instance.edges] + flows[:, instance.edges :]
    return float(total + (both.sum(axis=0) * instance.routing_cost).sum())


def check_plan(instance: Instance, solution: Solution) -> None:
    """Check limits, routing in each state, flows of the normal state and the cost of a plan."""
    assert solution.counts is not None
    assert solution.delivered is not None
    assert solution.flows is not None
    assert (solution.counts == np.round(solution.counts)).all()
    assert (solution.counts >= 0).all()
    assert (solution.counts <= instance.module_limit).all()
    if instance.explicit:
        assert (np.bincount(instance.module_edge, weights=solution.counts) <= 1).all()
    assert can_route(instance, solution.counts, solution.delivered)
    flows = solution.flows.toarray()
    assert (flows >= -1e-7).all()
    along, against = flows[:, : instance.edges], flows[:, instance.edges :]
    capacity = instance.capacity(solution.counts)
    if instance.direction == "undirected":
        assert ((along + against).sum(axis=0) <= capacity + 1e-5).all()
    else:
        assert (along.sum(axis=0) <= capacity + 1e-5).all()
        assert (against.sum(axis=0) <= (capacity if instance.direction == "bidirected" else 0.0) + 1e-5).all()
    for d, (source, target) in enumerate(zip(instance.source, instance.target, strict=True)):
        net = np.zeros(instance.nodes)
        np.add.at(net, instance.tail, along[d] - against[d])
        np.add.at(net, instance.head, against[d] - along[d])
        expected = np.zeros(instance.nodes)
        expected[source] += solution.delivered[d]
        expected[target] -= solution.delivered[d]
        assert net == pytest.approx(expected, abs=1e-4)
    assert solution.cost == pytest.approx(cost_of(instance, solution), rel=1e-6, abs=1e-3)


@pytest.mark.slow
@settings(max_examples=8, deadline=None)
@given(instances())
def test_least_cost_is_that_of_the_plain_program(instance: Instance) -> None:
    solution, plain = solve(instance), solve_extended(instance)
    if plain.status is Status.INFEASIBLE:
        assert solution.status is Status.INFEASIBLE
        return
    assert solution.status is Status.OPTIMAL
    assert solution.cost == pytest.approx(plain.objective, rel=1e-5, abs=1e-4)
    assert solution.bound == pytest.approx(solution.cost, rel=1e-6, abs=1e-4)
    check_plan(instance, solution)


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(instances(max_nodes=4))
def test_most_traffic_within_a_budget_is_that_of_the_plain_program(instance: Instance) -> None:
    for budget in (0.0, 15.0, 40.0):
        solution, plain = solve(instance, budget=budget), solve_extended(instance, budget)
        assert plain.objective is not None
        assert solution.status is Status.OPTIMAL
        assert solution.objective == pytest.approx(-plain.objective, rel=1e-5, abs=1e-4)
        assert solution.cost is not None
        assert solution.cost <= budget + 1e-6
        assert solution.delivered is not None
        assert solution.delivered.sum() == pytest.approx(solution.objective, abs=1e-4)
        check_plan(instance, solution)


@pytest.mark.slow
def test_brute_force_finds_no_cheaper_plan() -> None:
    instance = ring({(0, 2): 12.0, (1, 3): 6.0}, failures=np.eye(5, dtype=bool))
    cheapest = min(
        7.0 * sum(counts)
        for counts in itertools.product(range(3), repeat=5)
        if can_route(instance, np.array(counts, dtype=float), instance.rate)
    )
    solution = solve(instance)
    assert solution.status is Status.OPTIMAL
    assert solution.cost == cheapest
    check_plan(instance, solution)


@pytest.mark.slow
def test_failures_to_survive_never_lower_the_cost() -> None:
    costs = []
    for survived in range(6):
        instance = ring({(0, 2): 12.0, (1, 3): 6.0, (0, 1): 3.0})
        instance = replace(instance, failures=np.eye(5, dtype=bool)[:survived])
        costs.append(solve(instance).cost)
    assert costs == sorted(costs, key=float)


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(instances(max_nodes=4), st.data())
def test_fewer_failures_to_survive_never_cost_more(instance: Instance, data: st.DataObject) -> None:
    drawings = data.draw(
        st.lists(st.booleans(), min_size=len(instance.failures), max_size=len(instance.failures))
    )
    fewer = replace(instance, failures=instance.failures[np.array(drawings, dtype=bool)])
    all_survived, fewer_survived = solve(instance), solve(fewer)
    if all_survived.status is Status.INFEASIBLE:
        return
    assert fewer_survived.cost is not None
    assert all_survived.cost is not None
    assert fewer_survived.cost <= all_survived.cost * (1 + 1e-5) + 1e-4
    assert fewer_survived.bound is not None
    assert fewer_survived.bound <= cost_of(instance, all_survived) * (1 + 1e-5) + 1e-4
    check_plan(fewer, fewer_survived)


@pytest.mark.slow
def test_a_small_network_is_searched_to_its_end_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second search with flow would begin again at its root."""
    limits: list[int | None] = []
    search = Master.search

    def recorded(master: Master, **given: Any) -> Search:
        if given.get("free") is None:
            limits.append(given["nodes"])
        return search(master, **given)

    monkeypatch.setattr(Master, "search", recorded)
    instance = dense(5)
    solution = solve(instance)
    assert limits == [20, None]
    assert solution.status is Status.OPTIMAL
    assert solution.cost == pytest.approx(solve_extended(instance).objective)
    check_plan(instance, solution)


def test_a_cut_says_why_no_plan_exists() -> None:
    instance = ring({(0, 2): 25.0}, module_limit=np.full(5, 1.0), failures=np.eye(5, dtype=bool))
    solution = solve(instance)
    assert solution.status is Status.INFEASIBLE
    assert solution.reason is not None
    assert solution.reason.demand == pytest.approx(25.0)
    assert solution.reason.capacity == pytest.approx(20.0)
    assert solution.reason.failure is not None


def test_excused_demands_need_no_route_in_a_failure() -> None:
    """With node 1 down nobody asks for its traffic, so that one route to it is enough."""
    down = np.array([[True, True, False, False, False]])
    instance = ring({(0, 1): 5.0}, failures=down)
    assert solve(instance).status is Status.INFEASIBLE
    solution = solve(replace(instance, required=np.array([[0.0]])))
    assert solution.cost == 7.0


def test_tiny_demands_have_a_path() -> None:
    """A demand far below the tolerances of solvers needs a module all the same."""
    instance = ring({(0, 1): 10.0, (1, 2): 8.0, (2, 3): 1e-9})
    solution = solve(instance)
    assert solution.status is Status.OPTIMAL
    assert solution.cost == solution.bound == 21.0


def test_same_question_same_answer() -> None:
    instance = ring({(0, 2): 12.0, (1, 3): 16.0, (0, 1): 3.0}, failures=np.eye(5, dtype=bool))
    first, second = solve(instance, Options(seed=3)), solve(instance, Options(seed=3))
    assert first.counts is not None
    assert second.counts is not None
    assert first.counts.tolist() == second.counts.tolist()


def test_time_limit_is_kept_with_a_plan_and_a_bound() -> None:
    instance = grid(5)
    started = time.perf_counter()
    reports: list[tuple[float | None, float]] = []
    solution = solve(
        instance, Options(time_limit_s=1.0), report=lambda best, bound: reports.append((best, bound))
    )
    assert time.perf_counter() - started < 1.0 + 1.5
    assert solution.cost is not None
    assert solution.bound is not None
    assert solution.bound <= solution.cost
    assert can_route(instance, solution.counts, instance.rate)
    assert reports
    assert reports[-1] == pytest.approx((solution.cost, solution.bound))


def dense(nodes: int) -> Instance:
    """A link and a demand between all nodes, modules of two sizes, seed 0."""
    rng = np.random.default_rng(0)
    pairs = np.array(list(itertools.combinations(range(nodes), 2)))
    edges = len(pairs)
    price = rng.integers(7, 20, edges).astype(float)
    return Instance(
        nodes=nodes,
        tail=pairs[:, 0],
        head=pairs[:, 1],
        direction="undirected",
        installed=np.zeros(edges),
        setup_cost=np.zeros(edges),
        routing_cost=np.zeros(edges),
        module_edge=np.repeat(np.arange(edges), 2),
        module_size=np.tile([15.0, 60.0], edges),
        module_cost=np.repeat(price, 2) * np.tile([1.0, 2.0], edges),
        module_limit=np.full(2 * edges, np.inf),
        explicit=False,
        source=pairs[:, 0],
        target=pairs[:, 1],
        rate=rng.integers(1, 9, edges).astype(float),
        failures=np.zeros((0, edges), dtype=bool),
    )


def grid(side: int) -> Instance:
    """A grid of nodes with random demands, seed 0."""
    rng = np.random.default_rng(0)
    index = np.arange(side * side).reshape(side, side)
    tail = np.r_[index[:, :-1].ravel(), index[:-1].ravel()]
    head = np.r_[index[:, 1:].ravel(), index[1:].ravel()]
    edges, demands = len(tail), 30
    ends = np.array([rng.choice(side * side, 2, replace=False) for _ in range(demands)])
    return Instance(
        nodes=side * side,
        tail=tail,
        head=head,
        direction="undirected",
        installed=np.zeros(edges),
        setup_cost=np.zeros(edges),
        routing_cost=np.zeros(edges),
        module_edge=np.repeat(np.arange(edges), 2),
        module_size=np.tile([10.0, 40.0], edges),
        module_cost=np.repeat(rng.integers(5, 20, edges), 2) * np.tile([1.0, 2.5], edges),
        module_limit=np.full(2 * edges, np.inf),
        explicit=False,
        source=ends[:, 0],
        target=ends[:, 1],
        rate=rng.integers(1, 12, demands).astype(float),
        failures=np.zeros((0, edges), dtype=bool),
    )
