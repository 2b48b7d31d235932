"""Local search by knapsacks: never worse, always a plan, and compiled as in plain Python."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings

from planner.options import Options
from planner.search.deadline import NEVER
from planner_models.brokering import Brokering
from planner_models.brokering.designs.broker import assignment, knapsack_bound, knapsack_search, rounding
from planner_models.brokering.plan import min_cost_flow
from planner_models.brokering.plan.transportation import TransportationProblem, transportation_problem
from planner_models.brokering.problem.generators import world
from tests.models.brokering.markets import markets

KERNELS = (
    "_run_chain",
    "_reoptimize",
    "_candidate_moves",
    "_cheapest_other",
    "_record_move",
    "_list_cluster",
)


def improve_plan(
    problem: Brokering, seed: int = 0
) -> tuple[float, float, TransportationProblem, np.ndarray] | None:
    transport = transportation_problem(problem)
    relaxation = min_cost_flow.solve_relaxation(transport)
    if relaxation.bound is None:
        return None
    assigned = rounding.round_to_whole_clients(transport, relaxation)
    if assigned is None:
        return None
    before = rounding.total_cost(transport, assigned)
    saved = knapsack_search.improve(
        transport,
        relaxation.dual_price,
        assigned,
        enough=-math.inf,
        scale=before,
        deadline=NEVER,
        seed=seed,
    )
    return before, saved, transport, assigned


@settings(max_examples=25)
@given(markets(max_clients=6))
def test_the_saving_is_true_and_the_plan_stays_valid(problem: Brokering) -> None:
    outcome = improve_plan(problem)
    if outcome is None:
        return
    before, saved, transport, assigned = outcome
    assert saved >= 0
    assert rounding.total_cost(transport, assigned) == pytest.approx(before - saved, rel=1e-9, abs=1e-9)
    assert (assigned >= 0).all()
    assert (assigned.sum(axis=1) == transport.count).all()
    assert (transport.bitrate_mbps @ assigned <= transport.capacity_mbps * (1 + 1e-8) + 1e-8).all()
    assert np.isfinite(transport.cost[assigned > 0]).all()


@pytest.mark.slow
def test_a_tight_market_gets_better_and_its_bound_too() -> None:
    full = world(clients=2000, places=60, seed=3).with_terms(performance_per="bit")
    problem = full.with_clusters(capacity_mbps=full.background_mbps + 0.5 * full.residual_mbps)
    transport = transportation_problem(problem)
    relaxation = min_cost_flow.solve_relaxation(transport)
    assert relaxation.bound is not None
    assigned = rounding.round_to_whole_clients(transport, relaxation)
    assert assigned is not None
    rounded = rounding.total_cost(transport, assigned)
    saved = knapsack_search.improve(
        transport, relaxation.dual_price, assigned, enough=-math.inf, scale=rounded, deadline=NEVER
    )
    assert saved > 0
    value = rounding.total_cost(transport, assigned)
    bound = knapsack_bound.tighten_bound(
        transport, relaxation.dual_price, relaxation.bound, rounded, gap=0.0, deadline=NEVER
    )
    assert relaxation.bound < bound <= value
    # the gap that rounding and the flow leave, at least halved
    assert value - bound < 0.5 * (rounded - relaxation.bound)


@pytest.mark.slow
def test_a_seed_makes_the_same_plan_again() -> None:
    full = world(clients=500, places=30, seed=3)
    problem = full.with_clusters(capacity_mbps=full.background_mbps + 0.3 * full.residual_mbps)
    options = Options(gap=1e-9, seed=7, time_limit_s=600)
    item, other = (assignment.assign(problem, method="flow", options=options) for _ in range(2))
    assert item.plan is not None
    assert other.plan is not None
    assert item.plan.assignments.equals(other.plan.assignments)


def test_compiled_and_plain_python_do_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(3)
    count, clusters = 12, 5
    cost = random.uniform(1, 10, (count, clusters))
    unit = random.choice([1, 2, 3], count)
    bitrate = unit * 0.5
    waiting = random.integers(1, 4, count)
    capacity = np.full(clusters, float(bitrate @ waiting) * 0.3)
    neighbourhood = knapsack_search.Neighbourhood(
        units=unit,
        unit_mbps=0.5,
        first=np.arange(clusters + 1) * count,
        candidate=np.tile(np.arange(count), clusters),
    )
    price, every = np.full(clusters, 0.7), np.arange(clusters)
    outcomes = []
    for plain in (False, True):
        if plain:
            for name in KERNELS:
                monkeypatch.setattr(knapsack_search, name, getattr(knapsack_search, name).py_func)
        assigned = np.zeros((count, clusters), dtype=np.int32)
        state = rounding.State(cost, bitrate, assigned, capacity.copy())
        assert rounding.insert_clients(state, waiting.copy(), np.zeros(clusters), np.argsort(-bitrate))
        run_round = knapsack_search.run_round.py_func if plain else knapsack_search.run_round
        saved = [
            run_round(state, neighbourhood, knapsack_search.list_clusters(state), price, every, every, 1e-9)
            for _ in range(3)
        ]
        outcomes.append((saved, assigned.tolist()))
    assert outcomes[0] == outcomes[1]
    assert sum(outcomes[0][0]) > 0
