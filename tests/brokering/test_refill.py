"""Filling clusters again: never worse, always a plan, and compiled as in plain Python."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings

from planner.options import Options
from planner_models.brokering import Brokering, flow, knapsack, market, refill, repair
from planner_models.brokering.generate import world
from tests.brokering.markets import markets


def improved(problem: Brokering, seed: int = 0) -> tuple[float, float, flow.Transport, np.ndarray] | None:
    transport = market.transport_of(problem)
    relaxed = flow.relax(transport)
    if relaxed.bound is None:
        return None
    sent = repair.whole(transport, relaxed, gap=1.0, until=math.inf)
    if sent is None:
        return None
    before = repair.result(transport, sent)[1]
    saved = refill.improve(transport, relaxed.price, sent, enough=-math.inf, until=math.inf, seed=seed)
    return before, saved, transport, sent


@settings(max_examples=25)
@given(markets(max_clients=6))
def test_what_is_saved_is_true_and_the_plan_still_one(problem: Brokering) -> None:
    made = improved(problem)
    if made is None:
        return
    before, saved, transport, sent = made
    assert saved >= 0
    assert repair.result(transport, sent)[1] == pytest.approx(before - saved, rel=1e-9, abs=1e-9)
    assert (sent >= 0).all()
    assert (sent.sum(axis=1) == transport.count).all()
    assert (transport.weight @ sent <= transport.room * (1 + 1e-8) + 1e-8).all()
    assert np.isfinite(transport.cost[sent > 0]).all()


def test_a_tight_market_gets_better_and_its_bound_too() -> None:
    whole = world(clients=2000, places=60, seed=3)
    problem = whole.with_clusters(capacity_mbps=whole.background_mbps + 0.5 * whole.free_mbps)
    transport = market.transport_of(problem)
    relaxed = flow.relax(transport)
    assert relaxed.bound is not None
    sent = repair.whole(transport, relaxed, gap=0.0, until=math.inf)
    assert sent is not None
    traded = repair.result(transport, sent)[1]
    assert refill.improve(transport, relaxed.price, sent, enough=-math.inf, until=math.inf) > 0
    value = repair.result(transport, sent)[1]
    bound = knapsack.tighten(transport, relaxed.price, relaxed.bound, traded, gap=0.0, until=math.inf)
    assert relaxed.bound < bound <= value
    # the gap that trading and the flow leave, at least halved
    assert value - bound < 0.5 * (traded - relaxed.bound)


def test_a_seed_makes_the_same_plan_again() -> None:
    whole = world(clients=500, places=30, seed=3)
    problem = whole.with_clusters(capacity_mbps=whole.background_mbps + 0.3 * whole.free_mbps)
    options = Options(gap=1e-9, seed=7)
    one, other = (market.assign(problem, method="flow", options=options) for _ in range(2))
    assert one.plan is not None
    assert other.plan is not None
    assert one.plan.assignments.equals(other.plan.assignments)


def test_compiled_and_plain_python_do_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(3)
    count, clusters = 12, 5
    cost = random.uniform(1, 10, (count, clusters))
    unit = random.choice([1, 2, 3], count)
    weight = unit * 0.5
    left = random.integers(1, 4, count)
    room = np.full(clusters, float(weight @ left) * 0.3)
    outcomes = []
    for plain in (False, True):
        if plain:
            for name in ("_chain", "_fill", "_suitors", "_next", "_noted", "_seen"):
                monkeypatch.setattr(refill, name, getattr(refill, name).py_func)
        sent, free = np.zeros((count, clusters), dtype=np.int32), room.copy()
        assert repair.place(cost, weight, sent, free, left.copy(), np.zeros(clusters))
        sweep = refill.sweep.py_func if plain else refill.sweep
        best = sent.copy()
        told = sweep(
            cost,
            weight,
            unit,
            0.5,
            np.full((3, clusters), 0.7),
            sent,
            free,
            np.array([np.arange(clusters)] * 3),
            np.arange(clusters),
            np.zeros(clusters, dtype=bool),
            np.arange(clusters + 1) * count,
            np.tile(np.arange(count), clusters),
            np.full(3, 1e-9),
            best,
            0.0,
        )
        outcomes.append((told, sent.tolist(), best.tolist()))
    assert outcomes[0] == outcomes[1]
    assert outcomes[0][0][0] > 0


def test_all_knapsacks_together_are_each_alone_compiled_or_not() -> None:
    random = np.random.default_rng(6)
    unit, count = random.integers(1, 4, 15), random.integers(1, 4, 15)
    there, worth = random.uniform(1, 5, (4, 15)), random.uniform(2, 6, 15)
    room = np.array([3, 7, 12, 400])
    told = []
    for packed in (knapsack.packed, knapsack.packed.py_func):
        taken = np.empty(15)
        told.append((packed(worth, there, unit, count, room, 100, taken), taken))
    (one, taken), (other, again) = told
    assert one == pytest.approx(other)
    assert taken == pytest.approx(again)
    alone = 0.0
    for cluster in range(3):
        items = np.flatnonzero(there[cluster] < worth)
        reduced = (there[cluster] - worth)[items]
        alone += knapsack.pack(reduced, unit[items], count[items], int(room[cluster]))[0]
    gain = np.minimum(there[3] - worth, 0.0)  # room for all, so left divisible at no loss
    assert one == pytest.approx(alone + gain @ count)
