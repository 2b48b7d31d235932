"""Min-cost flow of divisible clients, and its dual prices."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from planner_models.brokering import Brokering
from planner_models.brokering.plan import min_cost_flow
from planner_models.brokering.plan.transportation import (
    TransportationProblem,
    cheapest_arcs,
    transportation_problem,
)
from tests.models.brokering.markets import heavy_tailed, heavy_tailed_markets
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
