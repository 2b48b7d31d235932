"""The least conditional value at risk of the share that is lost."""

from __future__ import annotations

from dataclasses import replace

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from planner_models.flows import path_flow_program
from planner_models.traffic import Traffic, check, measure
from planner_models.traffic.designs.failure_robust import ffc, teavar
from tests.models.traffic.failure_replay import has_path, list_lines, replay_split
from tests.models.traffic.networks import both_ways, network, problems

SQUARE = both_ways([("a", "b", 10.0), ("b", "d", 10.0), ("a", "c", 10.0), ("c", "d", 10.0)])


def with_failures(problem: Traffic, rows: dict[str, float]) -> Traffic:
    frame = pd.DataFrame({"failure": list(rows), "member": list(rows), "probability": list(rows.values())})
    return replace(problem, failures=frame)


@st.composite
def risky(draw: st.DrawFn) -> Traffic:
    """Draw a network each of whose lines fails for some of the time."""
    problem = draw(problems(max_nodes=5, max_demands=4, parallel=False))
    names = ["<->".join(sorted(line)) for line in list_lines(problem)]
    parts = draw(st.lists(st.integers(1, 5), min_size=len(names), max_size=len(names)))
    return with_failures(
        problem, {name: share / (6 * len(names)) for name, share in zip(names, parts, strict=True)}
    )


def test_a_likely_failure_takes_the_reservation() -> None:
    problem = with_failures(network(SQUARE, [("a", "d", 10.0)]), {"a<->b": 0.1, "a<->c": 0.001})
    decision = teavar.route(problem, availability=0.9)
    assert decision.proof.objective == pytest.approx(0.0, abs=1e-9)
    plan = decision.plan
    assert plan is not None
    assert plan.guarantees is not None
    assert plan.guarantees[["rate_mbps", "availability"]].to_numpy().tolist() == [[pytest.approx(10.0), 0.9]]
    assert not len(check(problem, plan))
    more = measure(problem, plan, None)
    assert more["demand_risk"] == pytest.approx(0.0, abs=1e-9)
    assert more["availability"] == pytest.approx(1.0)


def test_one_of_two_paths_is_given_up_where_time_allows() -> None:
    problem = with_failures(network(SQUARE, [("a", "d", 20.0)]), {"a<->b": 0.1, "a<->c": 0.001})
    plan = teavar.route(problem, availability=0.85).plan
    assert plan is not None
    assert plan.guarantees is not None
    assert plan.guarantees["rate_mbps"].tolist() == pytest.approx([20.0])
    figures = measure(problem, plan, None)
    assert figures["availability"] == pytest.approx(0.899)
    assert figures["demand_risk"] == pytest.approx(0.101 * 0.5 / 0.15)
    assert figures["worst_delivered_mbps"] == pytest.approx(10.0)
    assert figures["guaranteed_mbps"] is None  # it says what arrives for most of the time only


def test_failures_without_probabilities_are_all_as_likely() -> None:
    problem = network(SQUARE, [("a", "d", 20.0)])
    decision = teavar.route(problem, failure_share=0.04, availability=0.9)
    assert decision.proof.objective == pytest.approx(0.04 * 0.5 / 0.1)
    plan = decision.plan
    assert plan is not None
    assert plan.guarantees is not None
    assert plan.guarantees["probability"].tolist() == [0.01]  # of four lines
    assert not len(check(problem, plan))
    assert measure(problem, plan, None)["demand_risk"] == pytest.approx(decision.proof.objective)


def test_a_false_availability_is_found() -> None:
    problem = with_failures(network(SQUARE, [("a", "d", 20.0)]), {"a<->b": 0.1, "a<->c": 0.001})
    plan = teavar.route(problem, availability=0.85).plan
    assert plan is not None
    assert plan.guarantees is not None
    false = replace(plan, guarantees=plan.guarantees.assign(availability=0.95))
    (sentence,) = check(problem, false).sentences()
    assert sentence.startswith("guarantees: violated 1 time, worst a->d: ")
    assert sentence.endswith(" 10 against 20 Mbit/s")


def solve_all_scenarios(problem: Traffic, availability: float, *, is_total: bool) -> float:
    """Return the least risk over three shortest paths, by a row for each demand and scenario."""
    assert problem.failures is not None
    paths = path_flow_program.find_paths(problem, count=3)
    lines = [frozenset(name.split("<->")) for name in problem.failures["member"]]
    chances = [*problem.failures["probability"], 1 - problem.failures["probability"].sum()]
    ends = [frozenset(pair) for pair in zip(problem.links["tail"], problem.links["head"], strict=True)]
    demands = list(zip(problem.demands["source"], problem.demands["target"], strict=True))
    count, scenarios = len(paths.demand), len(chances)
    lost = count + scenarios + 1
    width = lost + scenarios * len(demands)
    rows = [np.r_[paths.uses.toarray()[:, link], np.zeros(width - count)] for link in range(paths.width)]
    limits = problem.capacity_mbps.tolist()
    for q in range(scenarios):
        down = {lines[q]} if q < len(lines) else set()
        total = np.zeros(width)
        total[count + q] = total[count + scenarios] = -1.0
        for k, pair in enumerate(demands):
            if not has_path(problem, down, pair):
                continue
            row, position = np.zeros(width), lost + q * len(demands) + k
            for path in np.flatnonzero(paths.demand == k):
                if not any(ends[link] in down for link in paths.links[path]):
                    row[path] = -1 / problem.rate_mbps[k]
            row[position] = -1.0
            rows.append(row)
            limits.append(-1.0)
            single = np.zeros(width)
            single[position], single[count + q], single[count + scenarios] = 1.0, -1.0, -1.0
            if not is_total:
                rows.append(single)
                limits.append(0.0)
            total[position] = problem.rate_mbps[k] / problem.rate_mbps.sum()
        rows.append(total if is_total else np.zeros(width))
        limits.append(0.0)
    cost = np.zeros(width)
    cost[count : count + scenarios] = np.array(chances) / (1 - availability)
    cost[count + scenarios] = 1.0
    solved = linprog(cost, A_ub=np.array(rows), b_ub=limits, bounds=[(0, None)] * width)
    return float(solved.fun)


@pytest.mark.slow
@settings(max_examples=20)
@given(risky(), st.sampled_from([0.0, 0.5, 0.9]), st.sampled_from(["largest", "total"]))
def test_the_risk_is_that_of_all_scenarios(problem: Traffic, availability: float, loss: str) -> None:
    decision = teavar.route(
        problem,
        availability=availability,
        loss=loss,  # type: ignore[arg-type]
        paths=3,
        path_choice="shortest",
    )
    lower = solve_all_scenarios(problem, availability, is_total=loss == "total")
    assert decision.proof.objective == pytest.approx(lower, rel=1e-5, abs=1e-6)
    assert decision.proof.bound is not None
    assert decision.proof.bound <= lower + 1e-6
    plan = decision.plan
    assert plan is not None
    assert not len(check(problem, plan))
    metric = "demand_risk" if loss == "largest" else "traffic_risk"
    assert measure(problem, plan, None)[metric] == pytest.approx(decision.proof.objective, abs=1e-6)


@pytest.mark.slow
@settings(max_examples=15)
@given(risky(), st.sampled_from([0.5, 0.9]))
def test_what_is_guaranteed_arrives_for_that_part_of_the_time(problem: Traffic, availability: float) -> None:
    plan = teavar.route(problem, availability=availability).plan
    assert plan is not None
    assert plan.guarantees is not None
    assert problem.failures is not None
    for row in plan.guarantees.itertuples():
        missed = 0.0
        for failure in problem.failures.itertuples():
            down = {frozenset(failure.member.split("<->"))}
            arrives, utilization = replay_split(problem, plan, down)
            assert utilization <= 1 + 1e-9
            pair = (row.source, row.target)
            if arrives[pair] < row.rate_mbps * (1 - 1e-6) and has_path(problem, down, pair):
                missed += failure.probability
        assert missed <= 1 - availability + 1e-9


@settings(max_examples=10)
@given(risky())
def test_no_plan_over_the_paths_has_less_risk(problem: Traffic) -> None:
    bound = teavar.route(problem, availability=0.99).proof.bound
    assert bound is not None
    other = ffc.route(problem)
    assert other.plan is not None
    risk = measure(problem, other.plan, None)["demand_risk"]
    assert risk is not None
    assert risk >= bound - 1e-6


@pytest.mark.slow
@given(risky(), st.sampled_from([0.5, 0.9]), st.sampled_from(["largest", "total"]), st.integers(1, 4))
def test_demands_without_a_tunnel_lose_everything(
    problem: Traffic, availability: float, loss: str, served: int
) -> None:
    """The risk that the design claims is that of all demands."""
    graph = nx.DiGraph(list(zip(problem.links["tail"], problem.links["head"], strict=True)))
    pairs = zip(problem.demands["source"], problem.demands["target"], strict=True)
    with_path = [pair for pair in pairs if nx.has_path(graph, *pair)][:served]
    tunnels = pd.DataFrame({"path": [" > ".join(nx.shortest_path(graph, *pair)) for pair in with_path]})
    if not with_path:
        return
    problem = replace(problem, tunnels=tunnels.drop_duplicates(ignore_index=True))
    decision = teavar.route(problem, availability=availability, loss=loss)  # type: ignore[arg-type]
    plan, proof = decision.plan, decision.proof
    assert plan is not None
    assert proof.objective is not None
    assert proof.bound is not None
    assert proof.bound <= proof.objective + 1e-9
    assert proof.objective == pytest.approx(proof.bound, abs=1e-6)
    assert not len(check(problem, plan))
    if plan.guarantees is not None and len(plan.guarantees):  # it names the availability
        risk = measure(problem, plan, None)["demand_risk" if loss == "largest" else "traffic_risk"]
        assert risk == pytest.approx(proof.objective, abs=1e-6)
