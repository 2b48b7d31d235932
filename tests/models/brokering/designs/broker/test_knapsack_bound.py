"""Knapsacks of single clusters, and the Lagrangian bound that they give."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings

from planner.options import Options
from planner.search.deadline import NEVER
from planner_models.brokering import Brokering
from planner_models.brokering.designs.broker import assignment, knapsack_bound
from planner_models.brokering.plan import min_cost_flow
from planner_models.brokering.plan.transportation import transportation_problem
from tests.models.brokering.markets import markets

TIGHT = Options(gap=1e-9, time_limit_s=600)


def test_the_knapsack_finds_what_brute_force_finds() -> None:
    random = np.random.default_rng(5)
    for pack in (knapsack_bound.solve_knapsack, knapsack_bound.solve_knapsack.py_func):
        for _ in range(150):
            count = int(random.integers(1, 5))
            unit = random.integers(1, 6, count)
            many = random.integers(1, 5, count)
            reduced = -np.round(random.uniform(0.1, 3, count), 2)
            room = int(random.integers(0, 14))
            plans = [
                np.array(x)
                for x in itertools.product(*(range(m + 1) for m in many))
                if np.dot(x, unit) <= room
            ]
            lower, taken = pack(reduced, unit, many, room)
            assert lower == pytest.approx(min(float(x @ reduced) for x in plans))
            assert taken @ reduced == pytest.approx(lower)
            assert (taken <= many).all()
            assert taken @ unit <= room


@pytest.mark.slow
@settings(max_examples=20)
@given(markets(max_clients=4))
def test_the_knapsacks_bound_holds_at_any_prices(problem: Brokering) -> None:
    exact = assignment.assign(problem, method="exact", options=TIGHT)
    transport = transportation_problem(problem)
    relaxation = min_cost_flow.solve_relaxation(transport)
    if exact.plan is None or relaxation.bound is None:
        return
    assert exact.proof.objective is not None
    value = exact.proof.objective * 1.5 + 1  # a poor plan, so that steps are long
    optimal = relaxation.dual_price
    for price in (optimal, optimal * 0.5, np.full(len(optimal), 3.0)):
        start = transport.lagrangian_bound(price)
        bound = knapsack_bound.tighten_bound(transport, price, start, value, gap=0.0, deadline=NEVER)
        assert start <= bound <= exact.proof.objective * (1 + 1e-7) + 1e-9


def test_all_knapsacks_together_are_each_alone_compiled_or_not() -> None:
    random = np.random.default_rng(6)
    units, count = random.integers(1, 4, 15), random.integers(1, 4, 15)
    cost, multiplier = random.uniform(1, 5, (4, 15)), random.uniform(2, 6, 15)
    capacity = np.array([3, 7, 12, 400])
    knapsacks = knapsack_bound.Knapsacks(cost=cost, units=units, clients=count, capacity=capacity)
    outcomes = []
    for pack in (knapsack_bound.pack_clusters, knapsack_bound.pack_clusters.py_func):
        taken = np.zeros(15)
        outcomes.append((pack(knapsacks, multiplier, 100, taken), taken))
    (compiled, taken), (plain, taken_plain) = outcomes
    assert compiled == pytest.approx(plain)
    assert taken == pytest.approx(taken_plain)
    alone = 0.0
    for cluster in range(3):
        items = np.flatnonzero(cost[cluster] < multiplier)
        reduced = (cost[cluster] - multiplier)[items]
        optimum, _ = knapsack_bound.solve_knapsack(
            reduced, units[items], count[items], int(capacity[cluster])
        )
        alone += optimum
    gain = np.minimum(cost[3] - multiplier, 0.0)  # all clients fit, so divisible ones lose nothing
    assert compiled == pytest.approx(alone + gain @ count)
