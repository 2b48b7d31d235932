"""What holds of every schedule: it keeps its limits, and none beats the proven bound."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from scipy.optimize import linprog

from planner import Options, PlanRejected, Status
from planner.run import evaluate
from planner.scenario import Entry
from planner.system import Design
from planner_models import circuits
from planner_models.circuits import (
    SYSTEM,
    Circuits,
    bound,
    check,
    eclipse,
    formulation,
    generate,
    matchings,
    measure,
    optimum,
    packet,
    solstice,
)
from planner_models.circuits.schedule import Schedule, from_tables
from tests.circuits.demands import problems

PLANNING = [design for design in SYSTEM.designs if design.name != "bound"]


def ran(problem: Circuits, design: Design, **parameters: Any) -> Any:
    return evaluate(SYSTEM, problem, Entry(label=design.name, design=design, parameters=parameters))


@pytest.mark.parametrize("design", PLANNING, ids=lambda design: design.name)
@settings(max_examples=8, deadline=None)
@given(problem=problems())
def test_no_schedule_beats_the_bound_or_breaks_a_limit(problem: Circuits, design: Design) -> None:
    """`evaluate` rejects a plan that breaks a limit it claims to keep, or is worth less than claimed."""
    limit = bound.limit(problem).proof.bound
    assert limit is not None
    run = ran(problem, design)
    assert run.plan is not None
    if problem.window_us is not None:
        assert not len(run.violations)
        assert run.metrics["served_bits"] <= limit * (1 + 1e-6) + 1e-6
    elif run.metrics["done_us"] is not None:
        assert run.metrics["done_us"] >= limit * (1 - 1e-6) - 1e-6


@settings(max_examples=12, deadline=None)
@given(problem=problems(bounded=False))
def test_without_a_week_solstice_and_eclipse_serve_everything(problem: Circuits) -> None:
    for decision in (solstice.schedule(problem), eclipse.schedule(problem)):
        assert decision.plan is not None
        assert not len(check(problem, decision.plan))


@settings(max_examples=10, deadline=None)
@given(problem=problems())
def test_the_optimum_is_that_of_the_formal_model(problem: Circuits) -> None:
    """Over all permutations, by another path: Pyomo, no dropped matchings, no change of units."""
    from planner.backends import pyomo

    exact = optimum.schedule(problem).proof
    if not problem.bits.any():
        assert exact.objective == 0
        return
    reference = pyomo.solve_model(formulation(problem), Options(backend="pyomo:highs", gap=1e-7))
    assert exact.objective == pytest.approx(reference.objective, rel=1e-4, abs=1e-3)
    assert exact.status is Status.OPTIMAL
    limit = bound.limit(problem).proof.bound
    assert limit is not None
    for heuristic in (solstice.schedule(problem), eclipse.schedule(problem)):
        worth = heuristic.proof.objective
        assert worth is not None
        assert exact.objective is not None
        if problem.window_us is not None:
            assert worth <= exact.objective * (1 + 1e-6) <= limit * (1 + 1e-5) + 1e-6
        else:
            assert worth >= exact.objective * (1 - 1e-6) >= limit * (1 - 1e-5) - 1e-6


@pytest.mark.parametrize("count", [1, 2, 3])
def test_each_ring_takes_one_day(count: int) -> None:
    """The least there can be: a rack sends to `count` others, and the packet switch takes no ring."""
    problem = generate.rings(racks=8, count=count)
    for decision in (solstice.schedule(problem), eclipse.schedule(problem, prove=True)):
        assert decision.plan is not None
        metrics = measure(problem, decision.plan, None)
        assert metrics["configurations"] == count
        assert metrics["served_share"] == pytest.approx(1.0)
    assert decision.proof.status is Status.OPTIMAL


def test_shallow_queues_hide_the_demand() -> None:
    """The same scheduler is worth more when applications tell it: reaction against transparency."""
    problem = generate.skewed(racks=16, large=2, small=4, seed=3)
    seen = ran(problem, SYSTEM.design("solstice")).metrics["served_share"]
    guessed = ran(problem, SYSTEM.design("solstice_queues")).metrics["served_share"]
    assert guessed < 0.5 < 0.9 < seen


@pytest.mark.parametrize("name", ["solstice", "eclipse"])
def test_most_of_what_is_possible_is_served(name: str) -> None:
    problem = generate.skewed(racks=32, seed=2)
    limit = bound.limit(problem).proof.bound
    assert limit is not None
    served = ran(problem, SYSTEM.design(name)).metrics["served_bits"]
    assert served >= 0.95 * limit


def test_beyond_few_matchings_the_optimum_is_no_worse_than_either_heuristic() -> None:
    problem = generate.skewed(racks=16, large=2, small=4, seed=1)
    decision = optimum.schedule(problem, most_matchings=50)
    assert decision.proof.objective is not None
    assert decision.proof.bound is not None
    for heuristic in (solstice.schedule(problem), eclipse.schedule(problem)):
        assert heuristic.proof.objective is not None
        assert decision.proof.objective >= heuristic.proof.objective * (1 - 1e-6)
    assert decision.proof.objective <= decision.proof.bound * (1 + 1e-6)


@settings(max_examples=20, deadline=None)
@given(problem=problems(max_racks=5))
def test_the_packet_switch_is_filled_as_a_linear_program_would(problem: Circuits) -> None:
    bits, budget = problem.bits, problem.packet_mbps * 40.0
    ours = packet.fill(bits, budget)
    n = len(bits)
    rows, columns = np.kron(np.eye(n), np.ones(n)), np.kron(np.ones(n), np.eye(n))
    best = linprog(
        -np.ones(n * n),
        A_ub=np.vstack([rows, columns]),
        b_ub=np.tile(budget, 2),
        bounds=[(0, amount) for amount in bits.ravel()],
    )
    assert ours.sum() == pytest.approx(-best.fun, rel=1e-6, abs=1e-6)
    assert (ours.sum(axis=0) <= budget * (1 + 1e-12)).all()
    assert (ours.sum(axis=1) <= budget * (1 + 1e-12)).all()


@settings(max_examples=20, deadline=None)
@given(problem=problems(max_racks=5))
def test_stuffed_demand_has_equal_sums_and_decomposes(problem: Circuits) -> None:
    full = matchings.stuffed(problem.bits)
    most = max(problem.bits.sum(axis=0).max(), problem.bits.sum(axis=1).max())
    assert (full >= problem.bits).all()
    np.testing.assert_allclose(full.sum(axis=0), most)
    np.testing.assert_allclose(full.sum(axis=1), most)
    total = np.zeros_like(full)
    for weight, target in matchings.decomposed(full):
        total[np.arange(len(full)), target] += weight
    np.testing.assert_allclose(total, full, atol=1e-6 * max(most, 1))


def test_the_best_length_is_that_of_a_search_over_lengths() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        bits, rate = rng.uniform(1, 100, 5), rng.uniform(1, 3, 5)
        worth, length = eclipse.best_length(bits, rate, 4.0, 2.0, 60.0)
        lengths = np.linspace(2.0, 60.0, 20_001)
        tried = np.minimum(bits[:, None], rate[:, None] * lengths).sum(axis=0) / (lengths + 4.0)
        assert worth >= tried.max() * (1 - 1e-12)
        assert worth == pytest.approx(np.minimum(bits, rate * length).sum() / (length + 4.0))


def test_every_maximal_matching_is_found_once() -> None:
    """A complete bipartite graph of 4 and 4 has 4! of them; too many are no list at all."""
    allowed = np.ones((4, 4), dtype=bool)
    found = matchings.all_maximal(allowed, 100)
    assert found is not None
    assert len({tuple(target) for target in found}) == len(found) == 24
    assert matchings.all_maximal(allowed, 23) is None


# --- plans made elsewhere ---------------------------------------------------------------------


def told() -> tuple[Circuits, dict[str, Any]]:
    problem = generate.rings(racks=4, count=2)
    plan = solstice.schedule(problem).plan
    assert plan is not None
    return problem, {name: frame.copy() for name, frame in plan.to_tables().items()}


def test_a_plan_read_back_is_worth_the_same() -> None:
    problem, tables = told()
    plan = from_tables(problem, tables)
    original = solstice.schedule(problem).plan
    assert original is not None
    assert measure(problem, plan, None) == measure(problem, original, None)


def test_two_circuits_from_a_rack_are_no_matching() -> None:
    problem, tables = told()
    tables["configurations"].loc[1, "source_rack"] = tables["configurations"].loc[0, "source_rack"]
    with pytest.raises(PlanRejected, match="must be a matching"):
        check(problem, from_tables(problem, tables))


def test_an_unknown_rack_is_rejected() -> None:
    problem, tables = told()
    tables["configurations"].loc[0, "target_rack"] = "nowhere"
    with pytest.raises(PlanRejected, match="'nowhere' is no rack"):
        check(problem, from_tables(problem, tables))


@pytest.mark.parametrize(
    ("table", "column", "times", "more", "limit"),
    [
        ("configurations", "start_us", 1.0, -10.0, "night"),
        ("configurations", "start_us", 1.0, 50.0, "window"),
        ("configurations", "duration_us", 0.1, 0.0, "shortest_day"),
        ("packet", "bits", 1.0, 1e9, "packet"),
        ("packet", "bits", 1.0, 1e6, "demand"),
    ],
)
def test_each_limit_is_seen_when_broken(
    table: str, column: str, times: float, more: float, limit: str
) -> None:
    problem, tables = told()
    assert not len(check(problem, Schedule(**tables)))
    # a plan of two rings leaves nothing to the packet switch
    tables["packet"] = problem.to_tables()["demands"].assign(bits=0.0)
    tables[table][column] = tables[table][column] * times + more
    found = check(problem, Schedule(**tables))
    assert limit in set(found.frame["limit"])


def test_the_system_is_found_by_name() -> None:
    from planner.catalogue import system_names

    assert "circuits" in system_names()
    assert circuits.SYSTEM.name == "circuits"
