"""The optimum of circuits against enumeration, and its fast model against the formal one."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner import InputError, Options, Status, backends
from planner_models.coflows import SYSTEM, CoflowsInTime, formulation
from planner_models.coflows.designs import optimum, ordering_program, sunflow, windows
from planner_models.coflows.plan.check import check
from planner_models.coflows.plan.completion import replay
from planner_models.coflows.plan.lower_bounds import least_sum_ms, mean_completion_bound_ms
from tests.models.coflows.instances import best_by_enumeration, problem_of, problems


@pytest.mark.slow
@settings(max_examples=6, deadline=None)
@given(problems(most_flows=4))
def test_with_one_circuit_for_each_flow_it_is_the_best_of_all_orders(problem: CoflowsInTime) -> None:
    best, _ = best_by_enumeration(problem)
    decision = optimum.schedule(problem, parts=1, steps=20)
    proof = decision.proof
    assert decision.plan is not None
    assert not len(check(problem, decision.plan))
    assert proof.objective is not None
    assert proof.bound is not None
    assert proof.bound <= proof.objective <= best * (1 + 1e-6)
    if proof.bound_scope is not None and "one circuit" in proof.bound_scope:
        assert proof.objective == pytest.approx(best, rel=1e-6)
        assert proof.status is Status.OPTIMAL


@settings(max_examples=5, deadline=None)
@given(problems(most_flows=4))
def test_the_ordering_program_is_that_of_the_formal_model(problem: CoflowsInTime) -> None:
    """By another path: Pyomo, a variable for each order and each switch, no incumbent."""
    parts = 2 if len(problem.flows) <= 3 else 1
    from planner.backends import pyomo

    reference = pyomo.solve_model(formulation(problem, parts=parts), Options(backend="pyomo:highs", gap=1e-7))
    circuits = ordering_program.Circuits.of(problem, parts)
    solution = backends.solve(ordering_program.build_program(problem, circuits), Options(gap=1e-7))
    assert reference.objective is not None
    assert solution.objective is not None
    assert solution.objective == pytest.approx(reference.objective, rel=1e-4, abs=1e-3)


@pytest.mark.slow
def without_packets(problem: CoflowsInTime) -> CoflowsInTime:
    """Return the same problem over circuits alone."""
    return replace(problem, racks=problem.racks.assign(packet_mbps=0.0))


@pytest.mark.slow
@settings(max_examples=5, deadline=None)
@given(problems(most_flows=6))
def test_no_design_on_circuits_is_better_and_the_optimum_beats_no_bound(problem: CoflowsInTime) -> None:
    problem = without_packets(problem)
    decision = optimum.schedule(problem, steps=20)
    assert decision.plan is not None
    assert not len(check(problem, decision.plan))
    best, bound = decision.proof.objective, mean_completion_bound_ms(problem, "circuits")
    assert best is not None
    assert bound is not None
    assert best >= bound * (1 - 1e-9)
    for design in (sunflow.schedule, windows.schedule_solstice, windows.schedule_eclipse):
        other = design(problem).proof.objective
        assert other is not None
        assert best <= other * (1 + 1e-6)


@pytest.mark.slow
@settings(max_examples=4, deadline=None)
@given(problems(most_flows=4, switches=1))
def test_more_switches_and_shorter_setups_never_hurt(problem: CoflowsInTime) -> None:
    def best(item: CoflowsInTime) -> float:
        value = optimum.schedule(item, parts=1, steps=20).proof.objective
        assert value is not None
        return value

    problem = without_packets(problem)
    before = best(problem)
    assert best(problem.with_switch(circuit_switches=2)) <= before * (1 + 1e-6)
    assert best(problem.with_switch(setup_ms=problem.setup_ms / 2)) <= before * (1 + 1e-6)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 5), st.integers(1, 2), st.integers(0, 1_000))
def test_the_order_bound_is_the_least_over_all_orders(count: int, switches: int, seed: int) -> None:
    rng, ports = np.random.default_rng(seed), 3
    arrival = rng.choice([0.0, 3.0, 10.0], size=count)
    time = rng.integers(0, 9, size=(ports, count)).astype(float)
    peers = rng.integers(1, 8, size=(ports, count)) * (time > 0)
    alone, weight = arrival + time.max(axis=0), rng.choice([1.0, 3.0], size=count)

    def end(selected: tuple[int, ...]) -> float:
        ends = [alone[list(selected)].max()]
        for port, start in itertools.product(range(ports), {0.0, *arrival.tolist()}):
            own_values = [c for c in selected if arrival[c] >= start]
            work = sum(time[port, c] for c in own_values)
            met = {bit for c in own_values for bit in range(3) if peers[port, c] >> bit & 1}
            if work > 0:
                setups = len(met) if start == 0 else max(0, len(met) - switches)
                ends.append(start + work + 2.0 * setups / switches)
        return float(max(ends))

    lower = min(
        sum(weight[order[k]] * end(order[: k + 1]) for k in range(count))
        for order in itertools.permutations(range(count))
    )
    result = least_sum_ms(arrival, alone, time, peers.astype(np.int64), 2.0, switches, weight)
    assert result == pytest.approx(lower)


@pytest.mark.slow
def test_a_flow_is_interrupted_for_a_shorter_coflow_where_that_pays() -> None:
    """The long one needs 100 ms from 10 ms on; the short one, 5 ms, arrives at 50 ms."""
    flows = [("long", "a", "b", 100.0), ("short", "a", "c", 5.0)]
    problem = without_packets(problem_of({"long": 0.0, "short": 50.0}, flows))
    full = optimum.schedule(problem, parts=1).proof
    both = optimum.schedule(problem, parts=2)
    # Sunflow interrupts at the arrival, which is better than whole flows: 110, and 110 + 10 + 5 - 50 ms
    assert full.objective == pytest.approx((135 + 15) / 2)
    # all arrivals known: ports change in 40 to 50 ms, and in 55 to 65 ms
    assert both.plan is not None
    assert replay(problem, both.plan).coflow_ms == pytest.approx([135.0, 5.0])


def test_beyond_few_flows_there_is_a_bound_at_the_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = SYSTEM.problem.presets["mapreduce"](racks=8, coflows=20, seed=3)
    decision = optimum.schedule(problem, options=Options(time_limit_s=1.0))
    assert decision.plan is not None
    assert decision.proof.status is Status.FEASIBLE
    assert decision.proof.bound is not None
    assert not len(check(problem, decision.plan))
    assert optimum.build_model(problem).shape[1] > 0
    monkeypatch.setattr(optimum, "MOST_MODEL_FLOWS", 10)
    with pytest.raises(InputError, match="must be at most 10 for a model"):
        optimum.build_model(problem)
    with pytest.raises(InputError, match="must be at most 16"):
        formulation(problem)
