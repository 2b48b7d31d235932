"""Forward fault correction: plans that any k failures of lines leave without overload and without loss."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import planner
from planner import Options
from planner.contract.proof import Status
from planner_models.flows import path_flow_program
from planner_models.traffic import Traffic, check, measure
from planner_models.traffic.designs.failure_robust import ffc
from planner_models.traffic.designs.optimum import optimum
from tests.models.traffic.failure_replay import has_path, list_failures, replay_split
from tests.models.traffic.networks import both_ways, class_problems, network, problems

SQUARE = both_ways([("a", "b", 10.0), ("b", "d", 10.0), ("a", "c", 10.0), ("c", "d", 10.0)])


def admitted(problem: Traffic, **parameters: object) -> float:
    decision = ffc.route(problem, failures="links", **parameters)  # type: ignore[arg-type]
    assert decision.proof.objective is not None
    return decision.proof.objective


def test_a_square_carries_what_one_path_holds() -> None:
    problem = network(SQUARE, [("a", "d", 18.0)])
    decision = ffc.route(problem)
    assert decision.proof.objective == pytest.approx(10.0)
    assert decision.proof.bound == pytest.approx(10.0)
    plan = decision.plan
    assert plan is not None
    assert plan.guarantees is not None
    assert plan.guarantees.to_dict("records") == [
        {
            "source": "a",
            "target": "d",
            "rate_mbps": pytest.approx(10.0),
            "failures": "links",
            "at_once": 1.0,
            "restoration": "split",
        }
    ]
    assert plan.routes is not None
    assert plan.routes["reserved_mbps"].tolist() == pytest.approx([10.0, 10.0])
    assert plan.routes["rate_mbps"].tolist() == pytest.approx([5.0, 5.0])
    assert not len(check(problem, plan))


def test_what_fits_takes_the_least_of_the_busiest_link() -> None:
    decision = ffc.route(network(SQUARE, [("a", "d", 4.0)]))
    assert decision.plan is not None
    assert decision.plan.routes is not None
    assert decision.plan.routes["reserved_mbps"].tolist() == pytest.approx([4.0, 4.0])
    assert decision.plan.shed is None
    assert decision.proof.status is Status.OPTIMAL


def test_a_demand_that_may_lose_all_paths_has_no_guarantee() -> None:
    problem = network(SQUARE, [("a", "d", 18.0)])
    one_path = ffc.route(problem, paths=1)
    assert one_path.proof.objective == pytest.approx(10.0)
    assert one_path.plan is not None
    assert one_path.plan.guarantees is not None
    assert one_path.plan.guarantees.empty  # the line may fail, while there is another path
    bridge = network(both_ways([("a", "b", 10.0)]), [("a", "b", 4.0)])
    plan = ffc.route(bridge).plan
    assert plan is not None
    assert plan.guarantees is not None
    assert plan.guarantees["rate_mbps"].tolist() == [4.0]  # without the line there is no path
    assert not len(check(bridge, plan))


@pytest.mark.parametrize("design", ["ffc", "robust"])
def test_a_verdict_gives_what_is_guaranteed_before_what_is_sent(design: str) -> None:
    base = network(SQUARE, [("a", "d", 8.0), ("b", "c", 2.0)])
    tunnels = pd.DataFrame(
        {
            "source": ["a", "a", "b"],
            "target": ["d", "d", "c"],
            "path": ["a > b > d", "a > c > d", "b > a > c"],  # b->c could also take b > d > c
        }
    )
    problem = replace(base, tunnels=tunnels)
    run = planner.solve(problem, design=design, failures="links", paths="tunnels")
    plan = run.plan
    safe = dict.fromkeys([("a", "d"), ("b", "c")], np.inf)
    for down in list_failures(problem, 1):
        arrives, _ = replay_split(problem, plan, down) if design == "ffc" else ({("a", "d"): 8.0}, 0.0)
        for pair in safe:
            if has_path(problem, down, pair):
                safe[pair] = min(safe[pair], arrives.get(pair, 0.0))
    assert safe == pytest.approx({("a", "d"): 8.0, ("b", "c"): 0.0})
    assert run.metrics["guaranteed_mbps"] == pytest.approx(8.0)
    assert run.verdict.startswith(
        f"{design} guarantees 8 of 10 Mbit/s (80.0%) in every planned failure that leaves a demand a path in "
        f"the network. Without failures, {design} delivers 10 of 10 Mbit/s"
    )
    assert (
        "Demand b->c is sent without a guarantee: a failure takes all permitted paths, while the network has "
        "another." in run.verdict
    )


def test_higher_classes_are_admitted_first() -> None:
    base = network(SQUARE, [("a", "d", 8.0)])
    demands = pd.DataFrame(
        {"source": "a", "target": "d", "rate_mbps": [8.0, 8.0], "class": ["gold", "bronze"]}
    )
    classes = pd.DataFrame({"class": ["gold", "bronze"], "priority": [1.0, 2.0]})
    problem = Traffic.from_tables({"links": base.links, "demands": demands, "classes": classes})
    decision = ffc.route(problem)
    assert [(level.name, round(level.objective, 6)) for level in decision.proof.levels] == [
        ("gold", 8.0),
        ("bronze", 2.0),
    ]
    assert decision.plan is not None
    assert decision.plan.guarantees is not None
    assert decision.plan.guarantees.set_index("class")["rate_mbps"].round(6).to_dict() == {
        "gold": 8.0,
        "bronze": 2.0,
    }
    assert not len(check(problem, decision.plan))


def test_service_all_is_refused_with_what_survives() -> None:
    problem = network(SQUARE, [("a", "d", 18.0)])
    decision = ffc.route(problem, options=Options(service="all"))
    assert decision.plan is None
    assert decision.proof.status is Status.INFEASIBLE
    assert decision.proof.reasons == (
        "at most 55.5556% of all traffic survives any failure over these paths",
    )


@settings(max_examples=8)
@given(
    problems(parallel=False), st.integers(0, 3), st.sampled_from(["shortest", "disjoint", "most_disjoint"])
)
def test_no_failures_overload_a_link_or_stop_what_is_guaranteed(
    problem: Traffic, k: int, choice: str
) -> None:
    decision = ffc.route(problem, k=k, paths=3, path_choice=choice)  # type: ignore[arg-type]
    plan = decision.plan
    assert plan is not None
    assert plan.guarantees is not None
    assert not len(check(problem, plan))
    assert measure(problem, plan, None)["delivered_mbps"] == pytest.approx(decision.proof.objective)
    assert decision.proof.bound is not None
    assert decision.proof.objective is not None
    assert decision.proof.objective <= decision.proof.bound * (1 + 1e-9)
    for down in list_failures(problem, k):
        arrives, utilization = replay_split(problem, plan, down)
        assert utilization <= 1 + 1e-9
        for row in plan.guarantees.itertuples():
            pair = (row.source, row.target)
            if has_path(problem, down, pair):
                assert arrives[pair] >= row.rate_mbps * (1 - 1e-7)


@pytest.mark.slow
@settings(max_examples=15)
@given(problems(parallel=False))
def test_more_failures_never_admit_more(problem: Traffic) -> None:
    totals = [admitted(problem, k=k, paths=3) for k in range(4)]
    assert all(after <= before * (1 + 1e-7) for before, after in itertools.pairwise(totals))
    plain = optimum.route(problem, paths=3, path_choice="most_disjoint", objective="total")
    assert totals[0] == pytest.approx(plain.proof.objective, rel=1e-6)


@settings(max_examples=15)
@given(problems(parallel=False), st.integers(1, 2))
def test_the_program_is_that_of_all_failures(problem: Traffic, k: int) -> None:
    assert admitted(problem, k=k, paths=3, path_choice="shortest") == pytest.approx(
        solve_over_all_failures(problem, k), rel=1e-6
    )


def solve_over_all_failures(problem: Traffic, k: int) -> float:
    """Return the largest admitted traffic, by one row for each demand and set of failures."""
    paths = path_flow_program.find_paths(problem, count=3)
    count, demands = len(paths.demand), len(problem.demands)
    rows = [
        np.r_[np.asarray(paths.uses.toarray())[:, link], np.zeros(demands)] for link in range(paths.width)
    ]
    limits = problem.capacity_mbps.tolist()
    ends = [frozenset(pair) for pair in zip(problem.links["tail"], problem.links["head"], strict=True)]
    for down in list_failures(problem, k):
        for demand in range(demands):
            row = np.zeros(count + demands)
            remaining = [
                path
                for path in range(count)
                if paths.demand[path] == demand and not any(ends[link] in down for link in paths.links[path])
            ]
            if remaining:
                row[remaining], row[count + demand] = -1.0, 1.0
                rows.append(row)
                limits.append(0.0)
    solved = linprog(
        np.r_[np.zeros(count), -np.ones(demands)],
        A_ub=np.array(rows),
        b_ub=np.array(limits),
        bounds=[(0, None)] * count + [(0, rate) for rate in problem.rate_mbps],
    )
    return -float(solved.fun)


@pytest.mark.slow
@settings(max_examples=15)
@given(class_problems())
def test_classes_keep_their_guarantees(problem: Traffic) -> None:
    decision = ffc.route(problem, failures="links")
    assert decision.plan is not None
    assert not len(check(problem, decision.plan))
    assert decision.proof.status is Status.OPTIMAL


def test_a_broken_claim_is_found() -> None:
    problem = network(SQUARE, [("a", "d", 10.0)])
    plan = ffc.route(problem).plan
    assert plan is not None
    assert plan.guarantees is not None
    twice = replace(plan, guarantees=plan.guarantees.assign(at_once=2.0))
    assert not len(check(problem, twice))  # two failures that take both paths leave no other
    assert plan.routes is not None
    less = replace(plan, routes=plan.routes.assign(reserved_mbps=[4.0, 9.0]))
    (sentence,) = check(problem, less).sentences()
    assert sentence.startswith("guarantees: violated 1 time, worst a->d: a<->")
    assert sentence.endswith(" 4 against 10 Mbit/s")
