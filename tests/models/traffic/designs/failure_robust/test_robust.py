"""Admitted traffic that survives every failure by rerouting."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from planner import Options
from planner.contract.proof import Status
from planner.errors import InputError
from planner_models.traffic import Traffic, check, measure
from planner_models.traffic.designs.failure_robust import ffc, robust
from tests.models.traffic.failure_replay import Line, list_failures, list_lines
from tests.models.traffic.networks import both_ways, class_problems, network, problems

SQUARE = both_ways([("a", "b", 10.0), ("b", "d", 10.0), ("a", "c", 6.0), ("c", "d", 6.0)])


def solve_over_all_failures(  # noqa: C901 - one row after the other
    problem: Traffic, failures: list[set[Line]], *, alike: bool = False
) -> float:
    """Return the largest admitted traffic, by one linear program of all failures and all links."""
    nodes = problem.nodes["node"].tolist()
    ends = list(zip(problem.links["tail"], problem.links["head"], strict=True))
    demands = list(zip(problem.demands["source"], problem.demands["target"], strict=True))
    links, count = len(ends), len(demands)
    width = count + 1 + len(failures) * count * links
    equal: list[np.ndarray] = []
    upper: list[tuple[np.ndarray, float]] = []
    for number, down in enumerate(failures):
        first = count + 1 + number * count * links
        is_up = [frozenset(pair) not in down for pair in ends]
        for link in range(links):
            row = np.zeros(width)
            row[first + np.arange(count) * links + link] = 1.0
            upper.append((row, problem.capacity_mbps[link] if is_up[link] else 0.0))
        reached = {k for k in range(count) if reaches(demands[k], ends, is_up)}
        for k, (source, target) in enumerate(demands):
            if k not in reached:
                continue
            for node in nodes:
                if node == target:
                    continue
                row = np.zeros(width)
                for link, (tail, head) in enumerate(ends):
                    row[first + k * links + link] = (tail == node) - float(head == node)
                if node == source:
                    row[k] = -1.0
                equal.append(row)
    if alike:
        for k, rate in enumerate(problem.rate_mbps):
            row = np.zeros(width)
            row[k], row[count] = 1.0, -rate
            equal.append(row)
    limits = [(0, rate) for rate in problem.rate_mbps] + [(0, 1)] + [(0, None)] * (width - count - 1)
    solved = linprog(
        np.r_[-np.ones(count), np.zeros(width - count)],
        A_ub=np.array([row for row, _ in upper]),
        b_ub=[limit for _, limit in upper],
        A_eq=np.array(equal) if equal else None,
        b_eq=np.zeros(len(equal)) if equal else None,
        bounds=limits,
    )
    return -float(solved.fun)


def reaches(pair: tuple[str, str], ends: list[tuple[str, str]], is_up: list[bool]) -> bool:
    seen = {pair[0]}
    for _ in ends:
        seen |= {head for (tail, head), up in zip(ends, is_up, strict=True) if up and tail in seen}
    return pair[1] in seen


def test_a_square_carries_what_its_smaller_path_holds() -> None:
    problem = network(SQUARE, [("a", "d", 20.0)])
    decision = robust.route(problem)
    assert decision.proof.status is Status.OPTIMAL
    assert decision.proof.objective == pytest.approx(6.0)
    assert decision.proof.bound == pytest.approx(6.0)
    plan = decision.plan
    assert plan is not None
    assert plan.guarantees is not None
    assert plan.guarantees["rate_mbps"].tolist() == pytest.approx([6.0])
    assert plan.guarantees["restoration"].tolist() == ["reroute"]
    assert plan.shed is not None
    assert plan.shed["rate_mbps"].tolist() == pytest.approx([14.0])
    assert not len(check(problem, plan))


def test_more_than_survives_is_no_guarantee() -> None:
    problem = network(SQUARE, [("a", "d", 20.0)])
    plan = robust.route(problem.with_rates(np.array([8.0])), failures="links").plan
    assert plan is not None
    assert plan.guarantees is not None
    more = replace(plan, guarantees=plan.guarantees.assign(rate_mbps=6.0))
    assert not len(check(problem.with_rates(np.array([8.0])), more))
    base = network(SQUARE, [("a", "d", 8.0)])
    whole = robust.route(replace(base, failures=pd.DataFrame({"failure": ["f"], "member": ["a<->c"]}))).plan
    assert whole is not None
    assert whole.guarantees is not None
    claims = replace(whole, guarantees=whole.guarantees.assign(failures="links"))
    (sentence,) = check(base, claims).sentences()
    assert sentence.startswith("guarantees: violated 1 time, worst a->d: ")
    assert sentence.endswith(" 6 against 8 Mbit/s")


def test_a_node_counts_with_its_links_and_a_bridge_not_at_all() -> None:
    problem = network([*SQUARE, *both_ways([("d", "e", 5.0)])], [("a", "d", 20.0), ("a", "e", 4.0)])
    assert robust.route(problem).proof.objective == pytest.approx(6.0)
    decision = robust.route(problem, failures="nodes")
    assert decision.proof.objective == pytest.approx(6.0)
    assert decision.plan is not None
    assert not len(check(problem, decision.plan))


def test_what_does_not_survive_is_refused_where_all_must_be_served() -> None:
    decision = robust.route(network(SQUARE, [("a", "d", 20.0)]), options=Options(service="all"))
    assert decision.plan is None
    assert decision.proof.reasons == ("at most 30.0000% of all traffic survives every failure of the set",)
    whole = robust.route(network(SQUARE, [("a", "d", 5.0)]), options=Options(service="all"))
    assert whole.proof.status is Status.OPTIMAL
    assert whole.plan is not None
    assert whole.plan.shed is None


def test_latency_limits_are_refused() -> None:
    links = network(SQUARE, [("a", "d", 20.0)], latency_ms=[1.0] * 8).links
    demands = pd.DataFrame({"source": ["a"], "target": ["d"], "rate_mbps": [1.0], "max_latency_ms": [9.0]})
    with pytest.raises(InputError, match="robust: demands have latency limits or rules"):
        robust.route(Traffic.from_tables({"links": links, "demands": demands}))


@settings(max_examples=20)
@given(problems(max_nodes=5, max_demands=4, parallel=False))
def test_the_optimum_is_that_of_one_program_over_all_failures(problem: Traffic) -> None:
    decision = robust.route(problem, failures="links")
    value, bound = decision.proof.objective, decision.proof.bound
    assert value is not None
    assert bound is not None
    most = solve_over_all_failures(problem, list(list_failures(problem, 1)))
    assert value <= most * (1 + 1e-7)
    assert most <= bound * (1 + 1e-7)
    assert value == pytest.approx(most, rel=1e-5)
    assert decision.plan is not None
    assert not len(check(problem, decision.plan))
    assert measure(problem, decision.plan, None)["worst_delivered_mbps"] is not None
    local = ffc.route(problem, failures="links")
    guaranteed = 0.0 if local.plan is None or local.plan.guarantees is None else local.plan.guarantees
    assert float(np.sum(guaranteed["rate_mbps"])) <= bound * (1 + 1e-6)  # type: ignore[index,call-overload]


@settings(max_examples=6)
@given(problems(max_nodes=5, max_demands=3, parallel=False))
def test_the_same_share_of_all_is_that_of_one_program(problem: Traffic) -> None:
    decision = robust.route(problem, failures="links", objective="concurrent")
    most = solve_over_all_failures(problem, list(list_failures(problem, 1)), alike=True)
    assert decision.proof.objective == pytest.approx(most, rel=1e-5)
    assert decision.plan is not None
    assert not len(check(problem, decision.plan))


@settings(max_examples=8)
@given(problems(max_nodes=5, parallel=False), st.data())
def test_fewer_failures_never_admit_less(problem: Traffic, data: st.DataObject) -> None:
    names = ["<->".join(sorted(line)) for line in list_lines(problem)]
    some = data.draw(st.lists(st.sampled_from(names), unique=True, max_size=len(names)))
    totals = []
    for chosen in (names, some, []):
        table = pd.DataFrame({"failure": chosen, "member": chosen}, dtype=str)
        with_table = replace(problem, failures=table)
        totals.append(robust.route(with_table).proof.objective or 0.0)
    assert totals[0] <= totals[1] * (1 + 1e-5)
    assert totals[1] <= totals[2] * (1 + 1e-5)


@settings(max_examples=6)
@given(class_problems())
def test_classes_keep_their_guarantees(problem: Traffic) -> None:
    decision = robust.route(problem, failures="links")
    assert decision.plan is not None
    assert decision.plan.guarantees is not None
    assert not len(check(problem, decision.plan))
    assert float(decision.plan.guarantees["rate_mbps"].sum()) == pytest.approx(decision.proof.objective)
