"""Relief of overloaded clusters."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner_models.brokering import Assignment, Brokering
from planner_models.brokering.plan import overload_relief
from planner_models.brokering.plan.check import read_assignment
from planner_models.brokering.plan.transportation import TransportationProblem, transportation_problem
from tests.models.brokering.markets import market as make
from tests.models.brokering.markets import markets


def test_clients_that_lose_least_by_the_bit_move_first() -> None:
    transport = TransportationProblem(
        cost=np.array([[1.0, 3.0], [1.0, 2.0], [1.0, 9.0]]),
        bitrate_mbps=np.array([2.0, 0.5, 0.5]),
        count=np.array([2, 2, 2]),
        capacity_mbps=np.array([3.0, 10.0]),
    )
    assigned = np.array([[2, 0], [2, 0], [2, 0]])  # 6 Mbit/s where 3 fit
    moved, unserved = overload_relief.relieve(transport, assigned)
    # the first loses 1 a Mbit/s, the second 2, the third 16
    assert moved.tolist() == [[0, 2], [2, 0], [2, 0]]
    assert unserved.tolist() == [0, 0, 0]
    assert assigned.sum() == 6


def test_clients_that_fit_nowhere_cost_more_than_all_others() -> None:
    problem = make(
        [("Lyon", 1000.0, 5)],
        [("a", "x", "Lyon", 2.0, 0.0), ("b", "y", "Turin", 1.0, 0.0)],
        scores=[("Lyon", "a", 3.0), ("Lyon", "b", 7.0), ("Turin", "a", 1.0), ("Turin", "b", 1.0)],
    )
    everyone = problem.clients.assign(cluster="a")
    nobody = everyone.assign(clients=0.0)
    for frame in (everyone, nobody):
        assignment = read_assignment(problem, Assignment(assignments=frame))
        assert overload_relief.is_needed(problem, assignment)
        relief = overload_relief.relieve_plan(problem, assignment)
        assert relief.unserved == 2
        assert relief.weighted_cost == pytest.approx(2 * 3 + 1 * 7)
        assert relief.penalty == pytest.approx(2 * (5 * 7 + 1))


def test_relief_of_a_plan_does_not_depend_on_the_plan_relieved_before() -> None:
    def market() -> Brokering:
        return make(
            [("Lyon", 1000.0, 5)],
            [("a", "x", "Lyon", 4.0, 0.0), ("b", "y", "Lyon", 4.0, 0.0)],
            scores=[("Lyon", "a", 3.0), ("Lyon", "b", 7.0)],
        )

    problem, costs = market(), []
    for count in ([0.0, 5.0], [3.0, 1.0], [0.0, 5.0]):
        frame = problem.clients.loc[[0, 0]].assign(cluster=["a", "b"], clients=count)
        frame = frame[frame["clients"] > 0].reset_index(drop=True)
        plan = Assignment(assignments=frame)
        fresh = market()
        expected = overload_relief.relieve_plan(fresh, read_assignment(fresh, plan))
        relief = overload_relief.relieve_plan(problem, read_assignment(problem, plan))
        assert relief == expected
        costs.append(relief.weighted_cost)
    assert costs[0] == costs[2] != costs[1]


@pytest.mark.slow
@given(markets(), st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_relief_loses_no_client_and_overloads_no_cluster(problem: Brokering, random: object) -> None:
    transport = transportation_problem(problem)
    assigned = np.zeros(transport.cost.shape, dtype=np.int64)
    for group, count in enumerate(transport.count.tolist()):
        for _ in range(count):
            assigned[group, random.randrange(assigned.shape[1])] += 1  # type: ignore[attr-defined]
    moved, unserved = overload_relief.relieve(transport, assigned)
    np.testing.assert_array_equal(moved.sum(axis=1) + unserved, transport.count)
    assert (transport.bitrate_mbps @ moved <= transport.capacity_mbps * (1 + 1e-6) + 1e-6).all()
