"""The broker's decision: against brute force, the printed model, other backends, and itself."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner import clock
from planner.contract.proof import Status
from planner.errors import InputError
from planner.options import Options
from planner.runs.evaluation import evaluate
from planner.scenarios.scenario import Entry
from planner.search.deadline import Deadline
from planner_models.brokering import SYSTEM, Brokering, information
from planner_models.brokering.designs.broker import assignment, knapsack_bound, knapsack_search, rounding
from planner_models.brokering.plan import min_cost_flow
from planner_models.brokering.plan.transportation import transportation_problem
from planner_models.brokering.problem.adjustments import adjust
from planner_models.brokering.problem.generators import world
from tests.models.brokering.markets import heavy_tailed, heavy_tailed_markets, markets
from tests.models.brokering.markets import market as make

TIGHT = Options(gap=1e-9, time_limit_s=600)  # kernels may compile within the limit
STRICT = Options(gap=1e-9, time_limit_s=600, service="all")


def brute_force(problem: Brokering, sheds: bool = False) -> float:
    """The least objective over all assignments of whole clients; inf where none fits."""
    transport = transportation_problem(problem)
    residual = problem.residual_mbps
    if sheds:
        transport = transport.with_shedding(transport.unserved_cost)
        residual = np.append(residual, np.inf)
    kinds = [(g, c) for g, count in enumerate(transport.count.tolist()) for c in [count]]
    clusters = range(transport.cost.shape[1])

    def spreads(count: int, remaining: int) -> list[tuple[int, ...]]:
        if remaining == 1:
            return [(count,)]
        return [(k, *remainder) for k in range(count + 1) for remainder in spreads(count - k, remaining - 1)]

    best = {tuple([0.0] * len(clusters)): 0.0}
    for g, count in kinds:
        after: dict[tuple[float, ...], float] = {}
        for (load, value), spread in itertools.product(best.items(), spreads(count, len(clusters))):
            new = tuple(
                round(x + k * transport.bitrate_mbps[g], 9) for x, k in zip(load, spread, strict=True)
            )
            if any(x > free + 1e-9 for x, free in zip(new, residual, strict=True)):
                continue
            cost = value + sum(transport.cost[g, c] * k for c, k in enumerate(spread) if k)
            if cost < after.get(new, math.inf):
                after[new] = cost
        best = after
    return min(best.values(), default=math.inf)


@pytest.mark.slow
@settings(max_examples=12)
@given(markets(max_clients=2))
def test_no_assignment_is_better(problem: Brokering) -> None:
    optimum = brute_force(problem)
    decision = assignment.assign(problem, options=STRICT)
    if math.isinf(optimum):
        assert decision.proof.status is Status.INFEASIBLE
        assert decision.proof.reasons
    else:
        assert decision.proof.objective == pytest.approx(optimum, rel=1e-7)


@pytest.mark.slow
@settings(max_examples=25)
@given(markets(max_clients=2), st.sampled_from([0.3, 0.6]))
def test_no_assignment_sheds_fewer_or_costs_less(problem: Brokering, scale: float) -> None:
    """An overloaded problem has a plan that serves the most clients, at the least cost then."""
    problem = adjust(problem, capacity_scale=scale)
    decision = assignment.assign(problem, options=TIGHT)
    assert decision.plan is not None
    optimum = brute_force(problem, sheds=True)
    transport = transportation_problem(problem)
    shed, cost = divmod(decision.proof.objective, transport.unserved_cost)
    least_shed, least_cost = divmod(optimum, transport.unserved_cost)
    assert shed == least_shed
    assert cost == pytest.approx(least_cost, rel=1e-6, abs=1e-6 * transport.unserved_cost)
    assert decision.proof.bound <= optimum * (1 + 1e-9)
    listed = 0 if decision.plan.shed is None else decision.plan.shed["clients"].sum()
    assert listed == shed
    assert not len(SYSTEM.plan.check(problem, decision.plan))


@pytest.mark.slow
@settings(max_examples=12)
@given(markets(max_clients=2), st.sampled_from([0.2, 0.5]))
def test_the_printed_model_sheds_the_same(problem: Brokering, scale: float) -> None:
    problem = adjust(problem, capacity_scale=scale)
    reference = assignment.assign(problem, options=Options(backend="pyomo:highs"))
    fast = assignment.assign(problem, options=TIGHT)
    assert reference.proof.objective == pytest.approx(fast.proof.objective, rel=1e-6)


@pytest.mark.slow
@settings(max_examples=6)
@given(markets(max_clients=4), st.sampled_from([0.2, 0.6, 1.0]))
def test_no_design_beats_the_optimum_or_its_bound(problem: Brokering, scale: float) -> None:
    problem = adjust(problem, capacity_scale=scale)
    optimum = evaluate(SYSTEM, problem, Entry(label="o", design=SYSTEM.design("omniscient")), options=TIGHT)
    for design in SYSTEM.designs:
        run = evaluate(SYSTEM, problem, Entry(label=design.name, design=design))
        assert run.plan is not None
        headline = run.metrics["objective"]
        assert headline >= optimum.proof.bound * (1 - 1e-9) - 1e-9
        assert headline >= optimum.metrics["objective"] * (1 - 1e-6) - 1e-9
        assert run.metrics["unserved"] >= optimum.metrics["unserved"]


def test_more_clients_without_service_never_look_cheaper() -> None:
    problem = make(
        [("Lyon", 1000.0, 10), ("Lyon", 3000.0, 4)],
        [("a", "x", "Lyon", 9.0, 0.1), ("b", "y", "Oslo", 4.0, 0.9)],
        scores=[("Lyon", "a", 1.0), ("Lyon", "b", 90.0), ("Oslo", "a", 1.0), ("Oslo", "b", 1.0)],
    )
    best = assignment.assign(problem).plan
    assert best is not None
    assert best.shed is not None
    assert best.shed[["bitrate_kbps", "clients"]].to_numpy().tolist() == [[3000.0, 3.0]]
    worse = replace(best, assignments=best.assignments[best.assignments["cluster"] == "a"])
    lower, more = (SYSTEM.plan.measure(problem, plan, None) for plan in (best, worse))
    assert lower["unserved"] == 3
    assert more["objective"] >= lower["objective"]


@pytest.mark.slow
@settings(max_examples=25)
@given(markets(max_clients=6))
def test_the_bound_of_the_flow_holds(problem: Brokering) -> None:
    exact = assignment.assign(problem, method="exact", options=TIGHT)
    quick = assignment.assign(problem, method="flow", options=TIGHT)
    if exact.plan is None:
        assert quick.plan is None
    elif quick.proof.bound is not None:
        assert exact.proof.objective is not None
        assert quick.proof.bound <= exact.proof.objective * (1 + 1e-7) + 1e-9
        if quick.proof.objective is not None:
            assert quick.proof.objective >= exact.proof.objective * (1 - 1e-7) - 1e-9


@pytest.mark.slow
@settings(max_examples=12)
@given(markets(max_clients=2))
def test_fig_3_10_as_printed_has_the_same_optimum(problem: Brokering) -> None:
    reference = assignment.assign(problem, options=Options(backend="pyomo:highs"))
    fast = assignment.assign(problem, options=TIGHT)
    if fast.plan is None:
        assert reference.plan is None
    else:
        assert reference.proof.objective == pytest.approx(fast.proof.objective, rel=1e-4)


@pytest.mark.parametrize("backend", ["ortools:cp-sat", "ortools:scip"])
@settings(max_examples=8)
@given(problem=markets(max_clients=4))
def test_every_backend_has_the_same_optimum(backend: str, problem: Brokering) -> None:
    other = assignment.assign(problem, options=Options(backend=backend, gap=1e-7))
    fast = assignment.assign(problem, options=TIGHT)
    assert (other.plan is None) == (fast.plan is None)
    if fast.plan is not None:
        assert other.proof.objective == pytest.approx(fast.proof.objective, rel=1e-5)


@pytest.mark.slow
@settings(max_examples=3)
@given(markets(max_clients=5))
def test_every_design_survives_the_engines_checks(problem: Brokering) -> None:
    for design in SYSTEM.designs:
        run = evaluate(SYSTEM, problem, Entry(label=design.name, design=design))
        assert run.plan is not None
        strict = evaluate(SYSTEM, problem, Entry(label=design.name, design=design), options=STRICT)
        if strict.plan is not None:
            assert strict.metrics["shed"] == 0


@pytest.mark.slow
@settings(max_examples=30)
@given(markets(max_clients=5, tight=False))
def test_more_information_never_hurts(problem: Brokering) -> None:
    values = {}
    for name, observed in {
        "omniscient": problem,
        "market": information.marketplace(problem),
        "three": information.marketplace(problem, bids=3),
        "one": information.marketplace(problem, bids=1),
    }.items():
        proof = assignment.assign(observed, options=TIGHT).proof
        values[name] = math.inf if proof.objective is None else proof.objective
    assert values["omniscient"] <= values["market"] * (1 + 1e-6) + 1e-9
    assert values["market"] <= values["three"] * (1 + 1e-6) + 1e-9
    assert values["three"] <= values["one"] * (1 + 1e-6) + 1e-9


@pytest.mark.slow
@settings(max_examples=12)
@given(markets(max_clients=5))
def test_the_marketplace_never_congests(problem: Brokering) -> None:
    run = evaluate(SYSTEM, problem, Entry(label="m", design=SYSTEM.design("marketplace")))
    if run.plan is not None:
        assert run.metrics["congested"] == 0
        assert not len(run.violations)


def test_a_large_market_is_solved_with_a_small_gap() -> None:
    problem = information.marketplace(world(clients=3000, places=100, seed=3))
    decision = assignment.assign(problem, options=Options(gap=1e-3))
    assert decision.proof.gap is not None
    assert decision.proof.gap <= 1e-3
    assert SYSTEM.plan.measure(problem, decision.plan, None)["objective"] == pytest.approx(
        decision.proof.objective, rel=1e-9
    )


def test_a_shortage_of_capacity_is_explained() -> None:
    problem = make(
        [("Lyon", 1000.0, 100), ("Oslo", 1000.0, 10)],
        [("a", "x", "Lyon", 60.0, 0.1), ("b", "y", "Oslo", 500.0, 0.1)],
        bids=[("Lyon", "a"), ("Oslo", "b")],
    )
    proof = assignment.assign(problem, options=STRICT).proof
    assert proof.status is Status.INFEASIBLE
    assert proof.reasons == (
        (
            "clients in Lyon demand 100 Mbit/s; the residual capacity on offer to them, in 1 cluster, "
            "is 60 Mbit/s"
        ),
    )


def test_an_unused_algorithm_is_refused() -> None:
    problem = make([("Lyon", 1000.0, 1)], [("a", "x", "Lyon", 60.0, 0.1)])
    with pytest.raises(InputError, match="algorithm is 'simplex'"):
        assignment.assign(problem, options=Options(algorithm="simplex"))


def test_a_problem_without_clients_costs_nothing() -> None:
    problem = make([("Lyon", 1000.0, 0)], [("a", "x", "Lyon", 60.0, 0.1)])
    for design in SYSTEM.designs:
        run = evaluate(SYSTEM, problem, Entry(label=design.name, design=design))
        assert run.plan is not None
        assert run.metrics["objective"] == 0
        assert run.metrics["median_cost"] is None


def test_a_region_without_a_contract_is_explained() -> None:
    problem = make([("Recife", 1000.0, 3)], [("a", "x", "Lyon", 60.0, 0.1)], contracts=[("x", "EU", 0.1)])
    proof = assignment.assign(information.brokered(problem), options=STRICT).proof
    assert proof.status is Status.INFEASIBLE
    assert proof.reasons == (
        (
            "clients in Recife demand 3 Mbit/s; the residual capacity on offer to them, in 0 clusters, "
            "is 0 Mbit/s"
        ),
    )


@pytest.mark.slow
@settings(max_examples=10)
@given(markets(max_clients=4, tight=False))
def test_performance_alone_has_no_lower_objective_and_proves_no_bound(problem: Brokering) -> None:
    best = assignment.assign(problem, options=TIGHT)
    alone = assignment.assign_by_performance(problem, options=TIGHT)
    if best.plan is None or alone.plan is None:
        return
    assert alone.proof.bound is None
    with_cost, without = (SYSTEM.plan.measure(problem, item.plan, None) for item in (best, alone))
    assert without["objective"] == alone.proof.objective
    assert without["objective"] >= with_cost["objective"] * (1 - 1e-7) - 1e-9


@pytest.mark.slow
@settings(max_examples=6)
@given(heavy_tailed_markets())
def test_bitrates_of_any_size_keep_the_bound_and_the_capacities(problem: Brokering) -> None:
    """Against an integer program of another search; bitrates are no multiples of a unit."""
    quick = assignment.assign(problem, method="flow", options=Options(gap=1e-6, time_limit_s=1.0))
    exact = assignment.assign(problem, method="exact", options=Options(gap=1e-6, time_limit_s=1.0))
    assert quick.plan is not None
    assert not len(SYSTEM.plan.check(problem, quick.plan))
    assert quick.proof.objective is not None
    assert quick.proof.bound is not None
    assert quick.proof.bound <= quick.proof.objective * (1 + 1e-9)
    if exact.proof.objective is not None:
        assert quick.proof.bound <= exact.proof.objective * (1 + 1e-7)
    if exact.proof.bound is not None:
        assert quick.proof.objective >= exact.proof.bound * (1 - 1e-7)


@pytest.mark.parametrize("per", ["bit", "client"])
def test_a_heavy_tail_of_bitrates_is_solved_within_a_small_gap(per: str) -> None:
    problem = heavy_tailed(rows=4000, clusters=60, seed=2, clients=75, free=2.8, per=per)
    assert len(np.unique(problem.bitrate_mbps)) > 3500
    decision = assignment.assign(problem, method="flow", options=Options(gap=1e-3, time_limit_s=20.0))
    assert decision.proof.gap is not None
    assert decision.proof.gap <= 1e-3


class Clock:
    """A clock that one search looks at; it advances by a second at each look."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def read(self) -> float:
        """Return the time, and advance."""
        self.now_s += 1.0
        return self.now_s


@pytest.mark.slow
def test_no_kernel_is_called_when_time_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounding, bound and search look at the clock between calls of compiled code."""
    full = world(clients=2000, places=60, seed=3)
    problem = full.with_clusters(capacity_mbps=full.background_mbps + 0.5 * full.residual_mbps)
    transport = transportation_problem(problem)
    relaxation = min_cost_flow.solve_relaxation(transport)
    assert relaxation.bound is not None
    assigned = rounding.round_to_whole_clients(transport, relaxation)
    assert assigned is not None
    value = rounding.total_cost(transport, assigned)
    calls: list[str] = []
    for module, name in (
        (rounding, "insert_clients"),
        (knapsack_bound, "pack_clusters"),
        (knapsack_search, "run_round"),
    ):
        kernel = getattr(module, name)

        def count(*arguments: object, kernel: Any = kernel, name: str = name) -> object:
            calls.append(name)
            return kernel(*arguments)

        monkeypatch.setattr(module, name, count)
    monkeypatch.setattr(clock, "now", Clock().read)
    assert rounding.round_to_whole_clients(transport, relaxation, deadline=Deadline(0.0, 3.0)) is None
    price = relaxation.dual_price
    knapsack_bound.tighten_bound(
        transport, price, relaxation.bound, value, gap=0.0, deadline=Deadline(0.0, 10.0)
    )
    knapsack_search.improve(transport, price, assigned, enough=0.0, scale=value, deadline=Deadline(0.0, 20.0))
    assert 0 < calls.count("insert_clients") <= 3
    assert 0 < calls.count("pack_clusters") <= 10
    assert 0 < calls.count("run_round") <= 20
