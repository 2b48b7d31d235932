"""The relaxation by classes of groups: the same optimum as the flow of all groups."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.arrays import Bools
from planner.search.deadline import Deadline
from planner_models.brokering import Brokering
from planner_models.brokering.plan import min_cost_flow
from planner_models.brokering.plan.aggregation import solve_by_classes
from planner_models.brokering.plan.transportation import TransportationProblem, transportation_problem
from tests.models.brokering.markets import heavy_tailed, heavy_tailed_markets, markets


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
