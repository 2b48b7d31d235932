"""Flows of least convex cost: programs with dense tangents as oracle, bounds, capacities of sources."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from planner.arrays import Floats
from planner.options import Options
from planner.search.deadline import NEVER, Deadline
from planner_models.flows import conjugate_flow, convex_flow
from planner_models.flows.conjugate_flow import solve_by_conjugate_directions
from planner_models.flows.convex_flow import solve_convex_flow
from planner_models.flows.convex_flow_problem import ConvexFlow, ConvexFlowProblem
from planner_models.flows.link_cost import CongestionCost, DelayCost, LinkCost
from planner_models.flows.source_choice import SourceChoice, cheapest_sources
from planner_models.graphs.shortest_path_trees import Graph

NODES = 5


def make_problem(seed: int, *, is_delay: bool, is_exact: bool = False) -> ConvexFlowProblem:
    """Return a ring with chords, fixed traffic to two targets, and two groups with three sources."""
    random = np.random.default_rng(seed)
    ring = [(v, (v + 1) % NODES) for v in range(NODES)]
    chords = [(0, 2), (1, 3)]
    ends = np.array([*ring, *chords])
    tail, head = np.concatenate([ends, ends[:, ::-1]]).T
    links = len(tail)
    capacity = random.uniform(5.0, 15.0, links)
    targets = np.array([2, 4])
    fixed = random.uniform(0.0, 3.0, (2, NODES))
    fixed[[0, 1], targets] = 0.0
    amount = random.uniform(2.0, 6.0, 2)
    sources = sp.csr_array(np.array([[1.0, 0, 0, 0, 0], [0, 0.5, 0, 0.5, 0], [0, 0, 0, 1.0, 0]]))
    room = amount.sum() * np.array([0.25, 0.25, 0.5]) if is_exact else np.full(3, 0.5 * amount.sum())
    choice = SourceChoice(
        amount=amount,
        allowed=np.array([[True, True, True], [True, False, True]]),
        source_share=sources,
        target_share=sp.csr_array(np.array([[1.0, 0.0], [0.3, 0.7]])),
        capacity=room,
        is_exact=is_exact,
    )
    cost: LinkCost = CongestionCost(capacity=capacity, price=random.uniform(0.5, 2.0, links))
    if is_delay:
        latency = random.uniform(1.0, 3.0, links)
        cost = DelayCost(capacity=capacity, latency=latency, queueing=1.0, other=np.zeros(links))
    return ConvexFlowProblem(
        graph=Graph.of(NODES, tail, head), targets=targets, fixed=fixed, choice=choice, cost=cost
    )


def solve_with_tangents(problem: ConvexFlowProblem, points: Floats) -> float:
    """Return the least cost by one linear program over flows of links, with tangents at all points."""
    tail, head, choice = problem.graph.tail, problem.graph.head, problem.choice
    links, targets = len(tail), len(problem.targets)
    pairs = np.argwhere(choice.allowed)
    starts, ends = choice.source_share.toarray(), choice.target_share.toarray()
    flows, options = links * targets, len(pairs)
    width = flows + options + links  # flow, assigned, cost
    equal, right = [], []
    for t, target in enumerate(problem.targets):
        for v in range(problem.graph.nodes):
            if v == target:
                continue
            row = np.zeros(width)
            row[t * links + np.flatnonzero(tail == v)] += 1
            row[t * links + np.flatnonzero(head == v)] -= 1
            for j, (g, s) in enumerate(pairs):
                row[flows + j] -= starts[s, v] * ends[g, t]
            equal.append(row)
            right.append(problem.fixed[t, v])
    for g in range(len(choice.amount)):
        row = np.zeros(width)
        row[flows + np.flatnonzero(pairs[:, 0] == g)] = 1
        equal.append(row)
        right.append(choice.amount[g])
    upper, limit = [], []
    for s in range(len(choice.capacity)):
        row = np.zeros(width)
        row[flows + np.flatnonzero(pairs[:, 1] == s)] = 1
        (equal if choice.is_exact else upper).append(row)
        (right if choice.is_exact else limit).append(choice.capacity[s])
    for point in points:
        load = point * problem.cost.capacity
        value, slope = problem.cost.value(load), problem.cost.slope(load)
        for e in range(links):
            row = np.zeros(width)
            row[e + links * np.arange(targets)] = slope[e]
            row[flows + options + e] = -1
            upper.append(row)
            limit.append(slope[e] * load[e] - value[e])
    cost = np.concatenate([np.zeros(flows + options), np.ones(links)])
    free = [(0, None)] * (flows + options) + [(None, None)] * links
    result = linprog(cost, np.array(upper), limit, np.array(equal), right, bounds=free, method="highs")
    assert result.status == 0
    return float(result.fun)


@pytest.mark.parametrize("is_exact", [False, True])
@given(seed=st.integers(0, 10_000))
@settings(max_examples=5)
def test_congestion_is_that_of_one_linear_program(is_exact: bool, seed: int) -> None:
    problem = make_problem(seed, is_delay=False, is_exact=is_exact)
    solved = solve_convex_flow(problem, gap=1e-7)
    exact = solve_with_tangents(problem, problem.cost.points)
    assert solved.objective == pytest.approx(exact, rel=1e-5)
    assert solved.bound <= exact * (1 + 1e-7)


@given(seed=st.integers(0, 10_000))
@settings(max_examples=5)
def test_delay_is_between_dense_tangents_and_its_bound(seed: int) -> None:
    problem = make_problem(seed, is_delay=True)
    solved = solve_convex_flow(problem, gap=1e-4)
    below = solve_with_tangents(problem, np.linspace(0.0, 2.0, 100))
    assert solved.objective >= below * (1 - 1e-9)
    assert solved.objective - solved.bound <= 1e-4 * solved.objective
    assert solved.bound <= solved.objective


def solve_large(problem: ConvexFlowProblem, gap: float, deadline: Deadline = NEVER) -> ConvexFlow:
    """Return the flow of conjugate directions alone."""
    return solve_by_conjugate_directions(problem, options=Options(), gap=gap, deadline=deadline)


@pytest.mark.parametrize("is_exact", [False, True])
@given(seed=st.integers(0, 10_000))
@settings(max_examples=5)
def test_conjugate_directions_come_to_the_same_optimum(is_exact: bool, seed: int) -> None:
    problem = make_problem(seed, is_delay=True, is_exact=is_exact)
    solved = solve_large(problem, 1e-2)
    below = solve_with_tangents(problem, np.linspace(0.0, 2.0, 100))
    assert solved.objective >= below * (1 - 1e-9)
    assert solved.objective - solved.bound <= 1e-2 * solved.objective
    assert solved.bound <= solve_convex_flow(problem, gap=1e-6).objective * (1 + 1e-9)


def test_large_problems_reach_gaps_that_conjugate_directions_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = make_problem(2, is_delay=False)
    exact = solve_convex_flow(problem, gap=1e-7)
    monkeypatch.setattr(convex_flow, "LARGE", 0)
    monkeypatch.setattr(conjugate_flow, "MAX_STEPS", 5)
    assert solve_large(problem, 1e-7).objective > exact.objective * (1 + 1e-6)
    assert solve_convex_flow(problem, gap=1e-7).objective == pytest.approx(exact.objective, rel=1e-6)


def test_a_deadline_ends_conjugate_directions_with_the_incumbent() -> None:
    problem = make_problem(1, is_delay=True)
    solved = solve_large(problem, 0.0, Deadline.of(Options(time_limit_s=1e-9)))
    assert solved.is_cut
    assert solved.bound < solved.objective


@pytest.mark.parametrize("solve", [solve_convex_flow, solve_large])
def test_flow_keeps_conservation_and_capacities(solve: Callable[..., ConvexFlow]) -> None:
    problem = make_problem(1, is_delay=True)
    solved = solve(problem, gap=1e-2)
    choice, graph = problem.choice, problem.graph
    assert solved.assigned.sum(axis=1) == pytest.approx(choice.amount)
    assert (solved.assigned.sum(axis=0) <= choice.capacity + 1e-6).all()
    assert not solved.assigned[~choice.allowed].any()
    traffic = (choice.target_share.T @ solved.assigned) @ choice.source_share.toarray() + problem.fixed
    flow = solved.flow.toarray()
    for t, target in enumerate(problem.targets):
        surplus = np.bincount(graph.tail, flow[t], NODES) - np.bincount(graph.head, flow[t], NODES)
        others = np.arange(NODES) != target
        assert surplus[others] == pytest.approx(traffic[t][others], abs=1e-6)


def test_a_start_from_trees_has_the_same_optimum() -> None:
    problem = make_problem(2, is_delay=False)
    first = solve_convex_flow(problem, gap=1e-7)
    again = solve_convex_flow(problem, gap=1e-7, start=first.trees)
    assert again.objective == pytest.approx(first.objective, rel=1e-6)


def test_cheapest_sources_have_dual_prices_where_capacity_is_short() -> None:
    choice = make_problem(3, is_delay=True).choice
    cost = np.array([[1.0, 5.0, 9.0], [1.0, 2.0, 4.0]])
    solved = cheapest_sources(choice, cost)
    assert solved is not None
    assigned, price = solved
    assert assigned.sum(axis=1) == pytest.approx(choice.amount)
    assert price[0] > 0
    assert not assigned[1, 1]  # not allowed, though cheap


def test_sources_with_too_little_capacity_have_no_assignment() -> None:
    choice = make_problem(3, is_delay=True).choice
    short = SourceChoice(
        amount=choice.amount,
        allowed=choice.allowed,
        source_share=choice.source_share,
        target_share=choice.target_share,
        capacity=np.full(3, 0.1),
    )
    assert cheapest_sources(short, np.ones((2, 3))) is None
