"""Comparison of plans with bounds: with and without a scope, and where all must be served."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest

from planner.contract.design import Decision
from planner.contract.proof import Proof, Status
from planner.options import Options
from planner.runs.evaluation import evaluate
from planner.runs.run import Run
from planner.scenarios.scenario import Entry
from planner.testing.bounds import check_bounds, check_optimum, describe
from tests.planner.runs.toy_system import Admitted, Link, toy

PROBLEM = Link(offered_mbps=4.0, capacity_mbps=3.0)


def run_of(
    sent_mbps: float,
    bound: float | None,
    *,
    scope: str | None = None,
    status: Status = Status.FEASIBLE,
    problem: Link = PROBLEM,
) -> Run:
    """Return a run that sends so much, with a bound that need not be true."""

    def own(problem: Link) -> Decision[Any]:
        return Decision(plan=Admitted(sent_mbps), proof=Proof(status=Status.FEASIBLE), guarantees=frozenset())

    system = toy(decide=own)
    run = evaluate(system, problem, Entry(label="own", design=system.design("own")))
    proof = Proof(
        status=status,
        objective=min(sent_mbps, 3.0),
        bound=bound,
        bound_scope=scope,
        metric="delivered_mbps",
    )
    assert run.decision is not None
    return replace(run, decision=replace(run.decision, proof=proof))


@pytest.mark.parametrize(
    ("bound", "scope", "of_plan", "is_beaten"),
    [
        (3.0, None, None, False),
        (2.0, None, None, True),
        (2.0, None, "given paths", True),
        (2.0, "given paths", None, False),
        (2.0, "given paths", "given paths", True),
        (2.0, "given paths", "given trees", False),
    ],
)
def test_a_bound_covers_the_plans_of_its_scope(
    bound: float, scope: str | None, of_plan: str | None, is_beaten: bool
) -> None:
    runs = [run_of(1.0, bound, scope=scope), run_of(3.0, None if of_plan is None else 3.0, scope=of_plan)]
    with pytest.raises(AssertionError, match="beats the bound") if is_beaten else nullcontext():
        check_bounds(runs)


def test_a_bound_where_all_is_served_covers_plans_that_serve_all() -> None:
    strict = replace(run_of(1.0, 2.0), options=Options(service="all"))
    check_bounds([strict, run_of(3.0, None)])  # which sheds
    full = run_of(3.0, None, problem=Link(offered_mbps=3.0, capacity_mbps=3.0))
    with pytest.raises(AssertionError, match=r"beats the bound delivered_mbps 2\.0 of own\(service=all\)"):
        check_bounds([strict, full])


def test_a_plan_better_than_a_proven_optimum_is_found_whatever_the_design() -> None:
    optimum = run_of(2.0, 2.0, status=Status.OPTIMAL)
    check_optimum([optimum, run_of(1.0, None)])
    with pytest.raises(AssertionError, match="beats the optimum"):
        check_optimum([optimum, run_of(3.0, None)])
    check_optimum([run_of(2.0, 2.0, status=Status.OPTIMAL, scope="given paths"), run_of(3.0, None)])


def test_a_run_is_named_with_what_was_asked() -> None:
    run = run_of(1.0, None)
    inputs = replace(run, entry=replace(run.entry, parameters={"paths": 4}), options=Options(service="all"))
    assert (describe(run), describe(inputs)) == ("own", "own(paths=4, service=all)")


@pytest.mark.parametrize(("sent_mbps", "is_beaten"), [(1.0, False), (3.0, True)])
def test_a_bound_of_another_metric_covers_plans_that_reach_as_much(sent_mbps: float, is_beaten: bool) -> None:
    """A plan that sends less loses less, which beats no bound on the loss of plans that deliver as much."""
    full = run_of(4.0, 4.0)
    assert full.decision is not None
    proof = replace(full.proof, metric="lost_mbps", objective=1.0, bound=1.0)
    bounding = replace(full, decision=replace(full.decision, proof=proof))
    with pytest.raises(AssertionError, match="lost_mbps") if is_beaten else nullcontext():
        check_bounds([bounding, run_of(sent_mbps, None)])
