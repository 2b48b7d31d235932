"""The unsplit optimum: against all combinations of paths, and its bound and plan on larger problems."""

from __future__ import annotations

import itertools
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.contract.proof import Proof, Status
from planner.options import Options
from planner_models.traffic import Traffic, check, measure
from planner_models.traffic.designs import cspf, unsplit
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.problem import generators
from tests.models.traffic.designs.test_cspf import paths_of, reservations
from tests.models.traffic.networks import as_graph, network, problems

TOLERANCE = 1e-6


def decide(problem: Traffic, **parameters: Any) -> tuple[Routing, Proof]:
    decision = unsplit.route(problem, **parameters)
    assert decision.plan is not None
    assert check(problem, decision.plan).of_limits({"capacity"}).frame.empty
    return decision.plan, decision.proof


def admitted_by_priority(problem: Traffic, admitted: list[int]) -> tuple[float, ...]:
    amount = np.bincount(problem.setup_priority[admitted], problem.rate_mbps[admitted], 8)
    return tuple(amount.tolist())


def every_plan(problem: Traffic) -> list[list[int]]:
    """Return the demands that each combination of paths admits within the capacities."""
    graph = as_graph(problem)
    choices: list[list[list[int] | None]] = []
    for demand in problem.demands.itertuples():
        paths = nx.all_simple_edge_paths(graph, demand.source, demand.target)
        choices.append([None, *([key for _, _, key in path] for path in paths)])
    plans = []
    for combination in itertools.product(*choices):
        load = np.zeros(len(problem.links))
        for demand, path in enumerate(combination):
            if path is not None:
                load[path] += problem.rate_mbps[demand]
        if (load <= problem.capacity_mbps + 1e-9).all():
            plans.append([demand for demand, path in enumerate(combination) if path is not None])
    return plans


@settings(max_examples=40)
@given(problems(max_nodes=4, max_demands=3))
def test_small_problems_are_solved_as_all_combinations_of_paths_are(problem: Traffic) -> None:
    plan, proof = decide(problem)
    best = max(float(problem.rate_mbps[admitted].sum()) for admitted in every_plan(problem))
    assert proof.status is Status.OPTIMAL
    assert proof.objective == pytest.approx(best)
    assert measure(problem, plan, None)["delivered_mbps"] == pytest.approx(best)
    paths_of(problem, plan)  # whole, on one path each


@settings(max_examples=40)
@given(reservations().filter(lambda problem: len(problem.demands) <= 3 and len(problem.nodes) <= 4))
def test_stronger_priorities_come_first(problem: Traffic) -> None:
    plan, proof = decide(problem)
    best = max(admitted_by_priority(problem, admitted) for admitted in every_plan(problem))
    assert admitted_by_priority(problem, list(paths_of(problem, plan))) == pytest.approx(best)
    assert proof.status is Status.OPTIMAL


@given(problems(), st.booleans())
def test_reservations_made_in_turn_admit_no_more(problem: Traffic, is_cut: bool) -> None:
    options = Options(time_limit_s=1e-9) if is_cut else Options()
    _, proof = decide(problem, options=options)
    turn = cspf.route(problem).plan
    assert turn is not None
    delivered = measure(problem, turn, None)["delivered_mbps"]
    assert proof.bound is not None
    assert delivered is not None
    assert delivered <= proof.bound * (1 + TOLERANCE)
    if not is_cut:
        assert proof.objective is not None
        assert delivered <= proof.objective * (1 + TOLERANCE)


def test_exchanges_improve_and_the_bound_holds_where_the_exact_model_is_too_large(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem = generators.fat_tree(k=4, seed=3)
    _, exact = decide(problem)
    monkeypatch.setattr(unsplit, "MAX_EXACT", 0)
    plan, proof = decide(problem)
    assert exact.objective is not None
    assert proof.bound is not None
    assert proof.objective is not None
    assert proof.objective <= exact.objective * (1 + TOLERANCE) <= proof.bound * (1 + 2 * TOLERANCE)
    paths_of(problem, plan)


def test_what_no_path_can_carry_is_proven_to_be_shed() -> None:
    problem = network([("r1", "r2", 100.0), ("r2", "r3", 100.0)], [("r1", "r2", 200.0), ("r1", "r3", 60.0)])
    plan, proof = decide(problem)
    assert (proof.status, proof.objective, proof.bound) == (Status.OPTIMAL, 60.0, 60.0)
    assert plan.shed is not None
    assert plan.shed["rate_mbps"].tolist() == [200.0]
    refused = unsplit.route(problem, options=Options(service="all"))
    assert refused.plan is None
    assert refused.proof.status is Status.INFEASIBLE
    assert refused.proof.reasons == ("demand r1->r2 is larger than each path to its target",)


def test_two_that_fit_only_in_turn_are_refused_where_all_must_be_served() -> None:
    problem = network([("a", "b", 10.0), ("b", "c", 10.0)], [("a", "b", 6.0), ("a", "c", 6.0)])
    refused = unsplit.route(problem, options=Options(service="all"))
    assert refused.plan is None
    assert refused.proof.status is Status.INFEASIBLE
    assert refused.proof.reasons == ("at most 6 of 12 Mbit/s fit whole on one path each",)
