"""Min-cost flow of divisible clients, and its dual prices."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from planner.arrays import Bools
from planner.search.deadline import Deadline
from planner_models.brokering import Brokering
from planner_models.brokering.plan import min_cost_flow
from planner_models.brokering.plan.min_cost_flow import solve_by_classes
from planner_models.brokering.plan.transportation import (
    TransportationProblem,
    cheapest_arcs,
    transportation_problem,
)
from tests.models.brokering.markets import heavy_tailed, heavy_tailed_markets, markets
from tests.models.brokering.markets import market as make


def test_dual_prices_are_the_saving_of_one_more_mbps() -> None:
    problem = make(
        [("Lyon", 1000.0, 100)],
        [("near", "x", "Lyon", 60.0, 0.1), ("far", "y", "Oslo", 500.0, 0.1)],
        scores=[("Lyon", "near", 10.0), ("Lyon", "far", 35.0), ("Oslo", "near", 1.0), ("Oslo", "far", 1.0)],
    )
    relaxation = min_cost_flow.solve_relaxation(transportation_problem(problem))
    assert relaxation.dual_price.tolist() == pytest.approx([25.0, 0.0])
    assert relaxation.bound == pytest.approx(60 * 10 + 40 * 35 + 100 * 0.1 * 0.45)


def relaxed_cost(problem: TransportationProblem) -> float:
    """Return the least cost of divisible clients, by another library's linear program over all arcs."""
    groups, clusters = problem.cost.shape
    group, cluster = np.nonzero(np.isfinite(problem.cost))
    arcs = np.arange(len(group))
    mbps = problem.bitrate_mbps[group]
    solution = linprog(
        problem.cost[group, cluster] / mbps,
        A_eq=sp.csr_array((np.ones(len(arcs)), (group, arcs)), shape=(groups, len(arcs))),
        b_eq=problem.bitrate_mbps * problem.count,
        A_ub=sp.csr_array((np.ones(len(arcs)), (cluster, arcs)), shape=(clusters, len(arcs))),
        b_ub=problem.capacity_mbps,
        method="highs",
    )
    return float(solution.fun) if solution.status == 0 else np.inf


@settings(max_examples=40)
@given(heavy_tailed_markets(), st.sampled_from([1, 2, 16]))
def test_the_bound_is_the_cost_of_the_linear_program(problem: Brokering, arcs: int) -> None:
    """With bitrates of any size, and with few arcs to begin with, as where clusters are many."""
    transport = transportation_problem(problem)
    first = cheapest_arcs(transport.cost, np.isfinite(transport.cost), arcs)
    relaxation = min_cost_flow.solve_relaxation(transport, first)
    lower = relaxed_cost(transport)
    if relaxation.bound is None:
        assert np.isinf(lower)
        return
    assert relaxation.assigned is not None
    assert relaxation.bound <= lower * (1 + 1e-7)
    assert relaxation.bound >= lower * (1 - 1e-5)
    cost = (np.where(np.isfinite(transport.cost), transport.cost, 0.0) * relaxation.assigned.toarray()).sum()
    assert cost == pytest.approx(lower, rel=1e-4)


@pytest.mark.slow
@settings(max_examples=20)
@given(heavy_tailed_markets())
def test_the_linear_program_has_the_same_bound(problem: Brokering) -> None:
    transport = transportation_problem(problem)
    flow = min_cost_flow.solve_relaxation(transport)
    program = min_cost_flow.solve_linear_program(transport, np.isfinite(transport.cost))
    if flow.bound is not None:
        assert program is not None
        assert program.bound == pytest.approx(flow.bound, rel=1e-5)


def test_prices_that_contradict_the_cost_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the flow's prices are, the bound is that of the linear program."""
    problem = transportation_problem(heavy_tailed(rows=40, clusters=6, seed=1))
    lower = relaxed_cost(problem)
    wrong = np.full(6, 1e6)
    monkeypatch.setattr(min_cost_flow, "_dual_prices", lambda *_: wrong)
    assert problem.lagrangian_bound(wrong) < 0 < lower
    assert min_cost_flow.solve_relaxation(problem).bound == pytest.approx(lower, rel=1e-6)
    monkeypatch.setattr(min_cost_flow, "MAX_PROGRAM_ARCS", 0)
    no_price = problem.lagrangian_bound(np.zeros(6))
    assert min_cost_flow.solve_relaxation(problem).bound == no_price


@settings(max_examples=40)
@given(st.one_of(heavy_tailed_markets(), markets(max_clients=5)))
def test_classes_have_the_optimum_of_all_groups(problem: Brokering) -> None:
    transport = transportation_problem(problem)
    flow = min_cost_flow.solve_relaxation(transport)
    relaxation = solve_by_classes(transport, min_cost_flow.solve_relaxation)
    if flow.bound is None or relaxation.bound is None:
        assert flow.bound is None
        assert relaxation.bound is None
        return
    assert relaxation.bound == pytest.approx(flow.bound, rel=1e-4)
    assert relaxation.bound <= flow.bound * (1 + 1e-6) + 1e-6
    assert relaxation.assigned is not None
    clients = relaxation.assigned.toarray()
    assert clients.min() >= 0
    assert clients.sum(axis=1) == pytest.approx(transport.count)
    load = transport.bitrate_mbps @ clients
    assert (load <= transport.capacity_mbps + 1e-6 * transport.capacity_mbps.sum()).all()
    cost = (np.where(np.isfinite(transport.cost), transport.cost, 0.0) * clients).sum()
    assert relaxation.bound * (1 - 1e-9) <= cost * (1 + 1e-6)
    assert cost == pytest.approx(relaxation.bound, rel=1e-3)


@settings(max_examples=15)
@given(heavy_tailed_markets())
def test_many_groups_shed_as_few_as_the_flow_of_all(problem: Brokering) -> None:
    transport = transportation_problem(problem)
    few = min_cost_flow.solve_with_shedding(transport)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(min_cost_flow, "MAX_GROUPS", 5)
        many = min_cost_flow.solve_with_shedding(transport)
    assert many.shed <= few.shed
    assert many.shed >= few.shed * (1 - 1e-3) - 1


def test_a_cost_by_the_bit_needs_one_class_for_each_place() -> None:
    transport = transportation_problem(heavy_tailed(rows=300, clusters=12, seed=4))
    solved = []

    def solve(problem: TransportationProblem, active: Bools | None) -> min_cost_flow.Relaxation:
        solved.append(len(problem.count))
        return min_cost_flow.solve_relaxation(problem, active)

    relaxation = solve_by_classes(transport, solve)
    assert solved == [4]
    assert relaxation.bound == pytest.approx(min_cost_flow.solve_relaxation(transport).bound, rel=1e-6)


def test_no_class_is_divided_when_time_is_up() -> None:
    transport = transportation_problem(heavy_tailed(rows=300, clusters=12, seed=4, per="client"))
    calls = []

    def solve(problem: TransportationProblem, active: Bools | None) -> min_cost_flow.Relaxation:
        calls.append(problem)
        return min_cost_flow.solve_relaxation(problem, active)

    late = solve_by_classes(transport, solve, deadline=Deadline.after(-1.0))
    assert len(calls) == 1
    full = solve_by_classes(transport, solve)
    assert len(calls) > 2
    assert late.bound is not None
    assert full.bound is not None
    assert late.bound <= full.bound * (1 + 1e-9)
