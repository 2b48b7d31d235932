"""The greedy schedule with circuits to several racks: limits, and values between Eclipse and the bound."""

from __future__ import annotations

import pytest

from planner.contract.design import Design
from planner.runs.evaluation import evaluate
from planner.scenarios.scenario import Entry
from planner_models.circuits import SYSTEM
from planner_models.circuits.designs import eclipse, upper_bound
from planner_models.circuits.designs.multicast_chunks import RemainingDemand
from planner_models.circuits.designs.multicast_circuits import find_groups, schedule
from planner_models.circuits.problem import generators
from tests.models.circuits.multicast_cases import draw_problem, make_problem


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("window_us", [None, 20.0])
def test_it_serves_no_less_than_eclipse_and_no_more_than_the_bound(
    seed: int, window_us: float | None
) -> None:
    more = {} if window_us is None else {"window_us": window_us}
    problem = draw_problem(
        seed,
        racks=4 + seed % 3,
        circuit_targets=2 + seed % 2,
        circuit_switches=1 + seed % 2,
        shortest_day_us=float(seed % 3),
        **more,
    )
    run = evaluate(SYSTEM, problem, Entry(label="it", design=SYSTEM.design("multicast"), parameters={}))
    assert run.plan is not None
    assert not len(run.violations)
    served = run.metrics["served_mbps"]
    bound = upper_bound.bound_schedules(problem).proof.bound
    alone = eclipse.schedule(problem.as_unicast()).proof.objective
    assert served is not None
    assert bound is not None
    assert alone is not None
    assert alone * (1 - 1e-9) <= served <= bound * (1 + 1e-6)


@pytest.mark.parametrize("design", SYSTEM.designs, ids=lambda design: design.name)
def test_every_design_takes_multicasts(design: Design) -> None:
    """Designs without circuits to several racks serve each copy as a demand of its own."""
    problem = draw_problem(3, window_us=20.0)
    entry = Entry(label="it", design=design, parameters={})
    run = evaluate(SYSTEM, problem, entry)
    assert run.plan is None or not len(run.violations)
    if run.plan is not None and design.name not in ("multicast", "optimum"):
        assert run.plan.transmissions is None


def test_it_sends_replicas_once() -> None:
    decisions = [
        schedule(generators.replicas(racks=6, blocks=6, copies=2, circuit_targets=targets))
        for targets in (1, 2)
    ]
    alone, shared = (decision.proof.objective for decision in decisions)
    assert alone is not None
    assert shared is not None
    assert shared > 1.25 * alone


def test_groups_are_matched_pairs_where_nothing_is_shared() -> None:
    problem = make_problem(4, [(0, [1], 10.0)], demands=[(2, 3, 10.0), (3, 1, 5.0)])
    groups = find_groups(RemainingDemand.of(problem), 10.0, 2)
    assert groups == {0: frozenset({1}), 2: frozenset({3})}
