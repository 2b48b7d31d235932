"""The broker's decision: against brute force, the printed model, other backends, and itself."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings

from planner.errors import InputError
from planner.options import Options
from planner.proof import Status
from planner.run import evaluate
from planner.scenario import Entry
from planner_models.brokering import SYSTEM, Brokering, flow, knapsack, market, repair, sees
from planner_models.brokering.generate import world
from tests.brokering.markets import market as make
from tests.brokering.markets import markets

TIGHT = Options(gap=1e-9)


def brute_force(problem: Brokering) -> float:
    """The least objective over all assignments of whole clients; inf where none fits."""
    transport = market.transport_of(problem)
    kinds = [(g, c) for g, count in enumerate(transport.count.tolist()) for c in [count]]
    clusters = range(transport.cost.shape[1])

    def spreads(count: int, left: int) -> list[tuple[int, ...]]:
        if left == 1:
            return [(count,)]
        return [(k, *rest) for k in range(count + 1) for rest in spreads(count - k, left - 1)]

    best = {tuple([0.0] * len(clusters)): 0.0}
    for g, count in kinds:
        after: dict[tuple[float, ...], float] = {}
        for (load, value), spread in itertools.product(best.items(), spreads(count, len(clusters))):
            new = tuple(round(x + k * transport.weight[g], 9) for x, k in zip(load, spread, strict=True))
            if any(x > free + 1e-9 for x, free in zip(new, problem.free_mbps, strict=True)):
                continue
            cost = value + sum(transport.cost[g, c] * k for c, k in enumerate(spread) if k)
            if cost < after.get(new, math.inf):
                after[new] = cost
        best = after
    return min(best.values(), default=math.inf)


@settings(max_examples=25)
@given(markets(max_clients=2))
def test_no_assignment_is_better(problem: Brokering) -> None:
    least = brute_force(problem)
    decision = market.assign(problem, options=TIGHT)
    if math.isinf(least):
        assert decision.proof.status is Status.INFEASIBLE
        assert decision.proof.reasons
    else:
        assert decision.proof.objective == pytest.approx(least, rel=1e-7)


@settings(max_examples=25)
@given(markets(max_clients=6))
def test_the_bound_of_the_flow_holds(problem: Brokering) -> None:
    exact = market.assign(problem, method="exact", options=TIGHT)
    quick = market.assign(problem, method="flow", options=TIGHT)
    if exact.plan is None:
        assert quick.plan is None
    elif quick.proof.bound is not None:
        assert exact.proof.objective is not None
        assert quick.proof.bound <= exact.proof.objective * (1 + 1e-7) + 1e-9
        if quick.proof.objective is not None:
            assert quick.proof.objective >= exact.proof.objective * (1 - 1e-7) - 1e-9


@settings(max_examples=12)
@given(markets(max_clients=2))
def test_fig_3_10_as_printed_has_the_same_optimum(problem: Brokering) -> None:
    reference = market.assign(problem, options=Options(backend="pyomo:highs"))
    fast = market.assign(problem, options=TIGHT)
    if fast.plan is None:
        assert reference.plan is None
    else:
        assert reference.proof.objective == pytest.approx(fast.proof.objective, rel=1e-4)


@pytest.mark.parametrize("backend", ["ortools:cp-sat", "ortools:scip"])
@settings(max_examples=8)
@given(problem=markets(max_clients=4))
def test_every_backend_has_the_same_optimum(backend: str, problem: Brokering) -> None:
    other = market.assign(problem, options=Options(backend=backend, gap=1e-7))
    fast = market.assign(problem, options=TIGHT)
    assert (other.plan is None) == (fast.plan is None)
    if fast.plan is not None:
        assert other.proof.objective == pytest.approx(fast.proof.objective, rel=1e-5)


@settings(max_examples=6)
@given(markets(max_clients=5))
def test_every_design_survives_the_engines_checks(problem: Brokering) -> None:
    for design in SYSTEM.designs:
        run = evaluate(SYSTEM, problem, Entry(label=design.name, design=design))
        if run.plan is not None:
            assert run.metrics["unserved"] == 0


@settings(max_examples=30)
@given(markets(max_clients=5, tight=False))
def test_knowing_more_never_hurts(problem: Brokering) -> None:
    values = {}
    for name, believed in {
        "omniscient": problem,
        "market": sees.marketplace(problem),
        "three": sees.marketplace(problem, bids=3),
        "one": sees.marketplace(problem, bids=1),
    }.items():
        proof = market.assign(believed, options=TIGHT).proof
        values[name] = math.inf if proof.objective is None else proof.objective
    assert values["omniscient"] <= values["market"] * (1 + 1e-6) + 1e-9
    assert values["market"] <= values["three"] * (1 + 1e-6) + 1e-9
    assert values["three"] <= values["one"] * (1 + 1e-6) + 1e-9


@settings(max_examples=12)
@given(markets(max_clients=5))
def test_the_marketplace_never_congests(problem: Brokering) -> None:
    run = evaluate(SYSTEM, problem, Entry(label="m", design=SYSTEM.design("marketplace")))
    if run.plan is not None:
        assert run.metrics["congested_percent"] == 0
        assert not len(run.violations)


def test_a_large_market_is_solved_with_a_small_gap() -> None:
    problem = sees.marketplace(world(clients=3000, places=100, seed=3))
    decision = market.assign(problem, options=Options(gap=1e-3))
    assert decision.proof.gap is not None
    assert decision.proof.gap <= 1e-3
    assert SYSTEM.measure(problem, decision.plan, None)["objective"] == pytest.approx(
        decision.proof.objective, rel=1e-9
    )


def test_prices_of_room_are_what_one_more_mbps_saves() -> None:
    problem = make(
        [("Lyon", 1000.0, 100)],
        [("near", "x", "Lyon", 60.0, 0.1), ("far", "y", "Oslo", 500.0, 0.1)],
        scores=[("Lyon", "near", 10.0), ("Lyon", "far", 35.0), ("Oslo", "near", 1.0), ("Oslo", "far", 1.0)],
    )
    relaxed = flow.relax(market.transport_of(problem))
    assert relaxed.price.tolist() == pytest.approx([25.0, 0.0])
    assert relaxed.bound == pytest.approx(60 * 10 + 40 * 35 + 100 * 0.1 * 0.45)


def test_too_little_room_is_explained() -> None:
    problem = make(
        [("Lyon", 1000.0, 100), ("Oslo", 1000.0, 10)],
        [("a", "x", "Lyon", 60.0, 0.1), ("b", "y", "Oslo", 500.0, 0.1)],
        bids=[("Lyon", "a"), ("Oslo", "b")],
    )
    proof = market.assign(problem).proof
    assert proof.status is Status.INFEASIBLE
    assert proof.reasons == (
        "clients in Lyon want 100 Mbit/s; the room on offer to them, in 1 cluster, is 60 Mbit/s",
    )


def test_the_knapsack_finds_what_brute_force_finds() -> None:
    random = np.random.default_rng(5)
    for pack in (knapsack.pack, knapsack.pack.py_func):
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
            least, taken = pack(reduced, unit, many, room)
            assert least == pytest.approx(min(float(x @ reduced) for x in plans))
            assert taken @ reduced == pytest.approx(least)
            assert (taken <= many).all()
            assert taken @ unit <= room


@settings(max_examples=20)
@given(markets(max_clients=4))
def test_the_knapsacks_bound_holds_at_any_prices(problem: Brokering) -> None:
    exact = market.assign(problem, method="exact", options=TIGHT)
    transport = market.transport_of(problem)
    relaxed = flow.relax(transport)
    if exact.plan is None or relaxed.bound is None:
        return
    assert exact.proof.objective is not None
    value = exact.proof.objective * 1.5 + 1  # a poor plan, so that steps are long
    for price in (relaxed.price, relaxed.price * 0.5, np.full(len(relaxed.price), 3.0)):
        start = transport.bound(price)
        bound = knapsack.tighten(transport, price, start, value, gap=0.0, until=math.inf)
        assert start <= bound <= exact.proof.objective * (1 + 1e-7) + 1e-9


def test_compiled_placing_and_trading_do_what_plain_python_does() -> None:
    random = np.random.default_rng(2)
    for _ in range(10):
        cost = random.uniform(1, 10, (6, 4))
        weight = random.choice([1.0, 2.0, 3.0], 6)
        left = random.integers(1, 4, 6)
        room = np.full(4, float(weight @ left) * 0.4)
        outcomes = []
        for place, trade in (
            (repair.place, repair.trade),
            (repair.place.py_func, repair.trade.py_func),
        ):
            sent, free = np.zeros((6, 4), dtype=np.int32), room.copy()
            levels, level = np.unique(weight, return_inverse=True)
            fits = place(cost, weight, sent, free, left.copy(), np.zeros(4))
            gained = trade(cost, weight, level, levels, sent, free, np.arange(4), 1e-9)
            assert (free >= -1e-9).all()
            assert free == pytest.approx(room - weight @ sent)
            outcomes.append((fits, gained, sent.tolist()))
        assert outcomes[0] == outcomes[1]


def test_an_algorithm_that_would_be_ignored_is_refused() -> None:
    problem = make([("Lyon", 1000.0, 1)], [("a", "x", "Lyon", 60.0, 0.1)])
    with pytest.raises(InputError, match="algorithm is 'simplex'"):
        market.assign(problem, options=Options(algorithm="simplex"))


def test_nobody_to_serve_costs_nothing() -> None:
    problem = make([("Lyon", 1000.0, 0)], [("a", "x", "Lyon", 60.0, 0.1)])
    for design in SYSTEM.designs:
        run = evaluate(SYSTEM, problem, Entry(label=design.name, design=design))
        assert run.plan is not None
        assert run.metrics["objective"] == 0
        assert run.metrics["median_cost"] is None


def test_a_region_without_a_contract_is_explained() -> None:
    problem = make([("Recife", 1000.0, 3)], [("a", "x", "Lyon", 60.0, 0.1)], contracts=[("x", "EU", 0.1)])
    proof = market.assign(sees.brokered(problem)).proof
    assert proof.status is Status.INFEASIBLE
    assert proof.reasons == (
        "clients in Recife want 3 Mbit/s; the room on offer to them, in 0 clusters, is 0 Mbit/s",
    )
