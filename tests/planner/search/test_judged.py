"""Judged proofs: statuses by the gap; bounds on the wrong side by rounding, with a note, or refused."""

from __future__ import annotations

import logging

import pytest

from planner.backends.solution import Solution
from planner.contract.proof import RankProof, Status
from planner.errors import PlanRejected
from planner.options import Options
from planner.search.judged import (
    Sense,
    clamp,
    feasible,
    gap_of,
    infeasible,
    judged,
    of_solution,
    optimal,
    undecided,
)


@pytest.mark.parametrize(
    ("objective", "bound", "gap", "status"),
    [
        (10.0, 10.0, 0.0, Status.OPTIMAL),
        (10.0, 9.9, 0.02, Status.OPTIMAL),
        (10.0, 9.9, 0.001, Status.FEASIBLE),
        (10.0, None, 0.5, Status.FEASIBLE),
        (None, None, 0.5, Status.FEASIBLE),
        (0.0, 0.0, 1e-6, Status.OPTIMAL),
    ],
)
def test_a_plan_is_optimal_within_the_gap(
    objective: float | None, bound: float | None, gap: float, status: Status
) -> None:
    proof = judged("min", objective, bound, gap=gap, metric="cost", is_cut=True)
    assert (proof.status, proof.objective, proof.bound, proof.notes) == (status, objective, bound, ())
    assert proof.is_cut == (status is not Status.OPTIMAL)
    assert judged("min", objective, bound, gap=gap, is_optimal=False).status is Status.FEASIBLE


@pytest.mark.parametrize(("sense", "sign"), [("min", 1.0), ("max", -1.0)])
def test_a_bound_on_the_wrong_side_is_moved_or_refused(
    sense: Sense, sign: float, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        assert clamp(sense, 10.0, 10.0 * (1 + sign * 1e-12)) == (10.0, ())
        assert not caplog.records
        proof = judged(sense, 10.0, 10.0 * (1 + sign * 1e-7), metric="cost")
    assert (proof.status, proof.bound) == (Status.OPTIMAL, 10.0)
    assert [record.message for record in caplog.records] == list(proof.notes)
    assert "the cost of the plan, 10, is better than the bound" in proof.notes[0]
    with pytest.raises(PlanRejected, match="the objective value of the plan, 10, is better than its bound"):
        clamp(sense, 10.0, 10.0 * (1 + sign * 1e-3))
    assert clamp(sense, 10.0, 10.0 * (1 + sign * 1e-3), consistency=0.01)[0] == 10.0
    assert clamp(sense, 10.0, 10.0 * (1 - sign * 0.5)) == (10.0 * (1 - sign * 0.5), ())


def test_other_proofs_of_optimality_count() -> None:
    assert judged("min", None, None, is_optimal=True).status is Status.OPTIMAL
    assert judged("min", 3.0, 1.0, is_optimal=True).status is Status.OPTIMAL


def test_each_rank_is_within_the_gap() -> None:
    for bill, status in ((99.0, Status.FEASIBLE), (100.0, Status.OPTIMAL)):
        ranks = (RankProof("delivered", 5.0, 5.0), RankProof("bill", 100.0, bill))
        assert judged("max", 5.0, 5.0, gap=1e-3, ranks=ranks).status is status


def test_the_gap_is_the_stated_one_but_no_smaller_than_a_search_reaches() -> None:
    assert gap_of(Options()) == gap_of(Options(gap=0.0)) == 1e-6
    assert gap_of(Options(), default=1e-4) == 1e-4
    assert gap_of(Options(gap=0.01), default=1e-4) == 0.01
    assert gap_of(Options(gap=0.0), minimum=0.0) == 0.0


def test_proofs_without_a_bound_or_a_plan() -> None:
    assert infeasible("a", "b", metric="cost").reasons == ("a", "b")
    assert infeasible().status is Status.INFEASIBLE
    assert undecided("why", bound=3.0).bound == 3.0
    assert undecided().status is Status.UNDECIDED
    assert (feasible(2.0).status, feasible(2.0).objective) == (Status.FEASIBLE, 2.0)


def test_proofs_of_optima_and_of_solutions() -> None:
    assert optimal().status is Status.OPTIMAL
    assert optimal(0.0, metric="cost").bound == 0.0
    solution = Solution(status=Status.FEASIBLE, backend="highs", x=None, objective=3.0, bound=2.0)
    proof = of_solution(solution, bound=solution.bound, metric="cost")
    assert (proof.status, proof.backend, proof.bound, proof.objective) == (
        Status.FEASIBLE,
        "highs",
        2.0,
        None,
    )
