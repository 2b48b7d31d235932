"""Admitted traffic that survives every failure by rerouting."""

from __future__ import annotations

import itertools
import json
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
from planner_models.traffic import Routing, Traffic, check, measure
from planner_models.traffic.designs.failure_robust import ffc, robust
from planner_models.traffic.problem.failure_sets import build_failure_set
from tests.models.traffic.failure_replay import Line, list_failures, list_lines
from tests.models.traffic.networks import both_ways, class_problems, network, problems
from tests.models.traffic.restricted_networks import Paths, draw_network, find_paths, is_legal, path_names

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
    full = robust.route(replace(base, failures=pd.DataFrame({"failure": ["f"], "member": ["a<->c"]}))).plan
    assert full is not None
    assert full.guarantees is not None
    claims = replace(full, guarantees=full.guarantees.assign(failures="links"))
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
    full = robust.route(network(SQUARE, [("a", "d", 5.0)]), options=Options(service="all"))
    assert full.proof.status is Status.OPTIMAL
    assert full.plan is not None
    assert full.plan.shed is None


def test_segments_are_refused() -> None:
    base = network([*SQUARE, *both_ways([("b", "c", 5.0)])], [("a", "d", 20.0)])
    tunnels = pd.DataFrame({"path": ["a > c > d"], "kind": ["segments"]})
    with pytest.raises(InputError, match="robust: tunnels are lists of segments"):
        robust.route(Traffic.from_tables({**base.to_tables(), "tunnels": tunnels}), paths="tunnels")


def test_a_pinned_demand_has_no_guarantee_where_its_pin_fails() -> None:
    base = network(SQUARE, [("a", "d", 20.0)])
    rules = pd.DataFrame({"rule": ["use"], "tail": ["a"], "head": ["b"]})
    problem = Traffic.from_tables({**base.to_tables(), "rules": rules})
    decision = robust.route(problem)
    assert decision.proof.objective == pytest.approx(10.0)
    assert decision.plan is not None
    assert decision.plan.guarantees is not None
    assert not len(decision.plan.guarantees), "a failure of a<->b leaves no route that uses it"
    assert decision.plan.routes is not None
    assert decision.plan.routes["path"].tolist() == ['["a", "b", "d"]']


@pytest.mark.slow
@settings(max_examples=20)
@given(problems(max_nodes=5, max_demands=4, parallel=False))
def test_the_optimum_is_that_of_one_program_over_all_failures(problem: Traffic) -> None:
    decision = robust.route(problem, failures="links")
    value, bound = decision.proof.objective, decision.proof.bound
    assert value is not None
    assert bound is not None
    upper = solve_over_all_failures(problem, list(list_failures(problem, 1)))
    assert value <= upper * (1 + 1e-7)
    assert upper <= bound * (1 + 1e-7)
    assert value == pytest.approx(upper, rel=1e-5)
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
    upper = solve_over_all_failures(problem, list(list_failures(problem, 1)), alike=True)
    assert decision.proof.objective == pytest.approx(upper, rel=1e-5)
    assert decision.plan is not None
    assert not len(check(problem, decision.plan))


@pytest.mark.slow
@settings(max_examples=8)
@given(problems(max_nodes=5, parallel=False), st.data())
def test_fewer_failures_never_admit_less(problem: Traffic, data: st.DataObject) -> None:
    names = ["<->".join(sorted(line)) for line in list_lines(problem)]
    some = data.draw(st.lists(st.sampled_from(names), unique=True, max_size=len(names)))
    totals = []
    for selected in (names, some, []):
        table = pd.DataFrame({"failure": selected, "member": selected}, dtype=str)
        with_table = replace(problem, failures=table)
        totals.append(robust.route(with_table).proof.objective or 0.0)
    assert totals[0] <= totals[1] * (1 + 1e-5)
    assert totals[1] <= totals[2] * (1 + 1e-5)


@pytest.mark.slow
@settings(max_examples=6)
@given(class_problems())
def test_classes_keep_their_guarantees(problem: Traffic) -> None:
    decision = robust.route(problem, failures="links")
    assert decision.plan is not None
    assert decision.plan.guarantees is not None
    assert not len(check(problem, decision.plan))
    assert float(decision.plan.guarantees["rate_mbps"].sum()) == pytest.approx(decision.proof.objective)
    assert decision.proof.status is Status.OPTIMAL


def test_a_level_that_needs_a_later_class_to_give_way_is_proven() -> None:
    """Classes that have no value in a level are asked for in least amounts, which are no loss of it."""
    links = [("n0", "n1", 3.0), ("n1", "n2", 17.0), ("n2", "n0", 6.0), ("n2", "n1", 15.0)]
    rows = [("n2", "n0", 3, "c2"), ("n2", "n0", 2, "c0"), ("n0", "n2", 3, "c1"), ("n0", "n2", 4, "c0")]
    rows += [("n0", "n2", 4, "c2"), ("n1", "n0", 2, "c1"), ("n1", "n0", 8, "c2"), ("n1", "n0", 10, "c0")]
    rows += [("n2", "n1", 6, "c0"), ("n2", "n1", 9, "c2")]
    problem = Traffic.from_tables(
        {
            "links": pd.DataFrame(links, columns=["tail", "head", "capacity_mbps"]),
            "demands": pd.DataFrame(rows, columns=["source", "target", "rate_mbps", "class"]),
            "classes": pd.DataFrame(
                {"class": ["c0", "c1", "c2"], "priority": [2, 2, 1], "weight": [4.0, 2.0, 2.0]}
            ),
        }
    )
    decision = robust.route(problem)
    assert decision.proof.status is Status.OPTIMAL
    assert [level.objective for level in decision.proof.levels] == pytest.approx([12.0, 0.0], abs=1e-4)


def solve_over_paths(problem: Traffic, paths: Paths, levels: list[np.ndarray]) -> list[float]:
    """Return the largest values of levels one after the other, by one program of all failures and paths."""
    downs = [np.zeros(len(problem.links), dtype=bool), *build_failure_set(problem, "links").link_down]
    count = len(problem.demands)
    columns = [
        (number, k, path)
        for number, down in enumerate(downs)
        for k, several in enumerate(paths)
        for path in several
        if not down[path].any()
    ]
    width = count + len(columns)
    links = len(problem.links)
    load, send = np.zeros((len(downs) * links, width)), np.zeros((len(downs) * count, width))
    for index, (number, k, path) in enumerate(columns):
        np.add.at(load[:, count + index], number * links + np.array(path), 1.0)
        send[number * count + k, count + index] = -1.0
        send[number * count + k, k] = 1.0
    has_path = np.array([bool(several) for several in paths])
    bounds = [(0, rate * names) for rate, names in zip(problem.rate_mbps, has_path, strict=True)]
    upper, limit = [load, send], [np.tile(problem.capacity_mbps, len(downs)), np.zeros(len(send))]
    values = []
    for weight in levels:
        cost = np.r_[-weight, np.zeros(len(columns))]
        solved = linprog(
            cost,
            A_ub=np.vstack(upper),
            b_ub=np.concatenate(limit),
            bounds=[*bounds, *[(0, None)] * len(columns)],
        )
        values.append(-float(solved.fun))
        upper.append(cost[None])
        limit.append(np.array([solved.fun * (1 - 1e-9)]))
    return values


def assert_that_routes_carry_what_is_claimed(problem: Traffic, plan: Routing) -> None:
    """Assert by linear programs over the plan's routes that all admitted rates fit in each failure."""
    assert plan.routes is not None
    assert plan.guarantees is not None
    node = {name: index for index, name in enumerate(problem.nodes["node"])}
    link = {(int(a), int(b)): e for e, (a, b) in enumerate(zip(problem.tail, problem.head, strict=True))}
    demand = problem.find_demands(plan.routes)
    routes: Paths = [[] for _ in problem.demands.index]
    for k, text in zip(demand.tolist(), plan.routes["path"], strict=True):
        positions = [node[name] for name in json.loads(text)]
        routes[k].append([link[pair] for pair in itertools.pairwise(positions)])
        assert is_legal(problem, k, routes[k][-1])
    shed = np.zeros(len(problem.demands))
    if plan.shed is not None:
        shed[problem.find_demands(plan.shed)] = plan.shed["rate_mbps"]
    admitted = problem.with_rates(np.maximum(problem.rate_mbps - shed, 0.0))
    (upper,) = solve_over_paths(admitted, routes, [np.ones(len(problem.demands))])
    assert upper == pytest.approx(float(admitted.rate_mbps.sum()), rel=1e-6, abs=1e-9)
    claimed = np.zeros(len(problem.demands))
    claimed[problem.find_demands(plan.guarantees)] = plan.guarantees["rate_mbps"]
    assert (claimed <= admitted.rate_mbps * (1 + 1e-6) + 1e-9).all()
    for down in build_failure_set(problem, "links").link_down:
        is_lost = np.array([bool(r) and all(down[path].any() for path in r) for r in routes])
        assert not (is_lost & (claimed > 1e-6) & ~problem.disconnected_demands(~down)).any()


@settings(max_examples=12)
@given(st.integers(0, 10_000))
def test_within_limits_the_optimum_is_that_over_all_legal_paths(seed: int) -> None:
    problem = draw_network(seed)
    decision = robust.route(problem, failures="links")
    (upper,) = solve_over_paths(problem, find_paths(problem), [np.ones(len(problem.demands))])
    assert decision.proof.objective == pytest.approx(upper, rel=1e-5, abs=1e-9)
    assert decision.proof.bound == pytest.approx(upper, rel=1e-5, abs=1e-9)
    assert decision.plan is not None
    assert not len(check(problem, decision.plan))
    if decision.plan.routes is not None:  # else no limit and no rule was drawn
        assert_that_routes_carry_what_is_claimed(problem, decision.plan)


@settings(max_examples=8)
@given(st.integers(0, 10_000))
def test_over_tunnels_the_optimum_is_that_over_these_paths(seed: int) -> None:
    drawn = draw_network(seed, tunnels=True)
    assert drawn.tunnels is not None
    selected = (
        drawn.tunnels[drawn.tunnels["kind"] != "segments"] if "kind" in drawn.tunnels else drawn.tunnels
    )
    if not len(selected):
        return
    problem = Traffic.from_tables({**drawn.to_tables(), "tunnels": selected})
    names = {tuple(path.split(" > ")) for path in selected["path"]}
    paths = [
        [path for path in several if tuple(path_names(problem, path)) in names]
        for several in find_paths(problem)
    ]
    decision = robust.route(problem, failures="links", paths="tunnels")
    (upper,) = solve_over_paths(problem, paths, [np.ones(len(problem.demands))])
    assert decision.proof.objective == pytest.approx(upper, rel=1e-5, abs=1e-9)
    assert decision.plan is not None
    assert not len(check(problem, decision.plan))
    assert_that_routes_carry_what_is_claimed(problem, decision.plan)


@settings(max_examples=8)
@given(st.integers(0, 10_000))
def test_higher_classes_are_admitted_first(seed: int) -> None:
    drawn = draw_network(seed)
    ranks = np.arange(len(drawn.demands)) % 2
    tables = drawn.to_tables()
    tables["demands"] = tables["demands"].assign(**{"class": np.where(ranks == 0, "gold", "bulk")})
    tables["classes"] = pd.DataFrame({"class": ["gold", "bulk"], "priority": [1, 2]})
    problem = Traffic.from_tables(tables)
    rank = np.where(problem.demands["class"].astype(str) == "gold", 0, 1)
    values = [(rank == item).astype(float) for item in np.unique(rank)]
    decision = robust.route(problem, failures="links")
    expected = solve_over_paths(problem, find_paths(problem), values)
    levels = decision.proof.levels or [decision.proof]  # one class alone is no order
    assert [level.objective for level in levels] == pytest.approx(expected, rel=1e-4, abs=1e-6)
    for upper, level in zip(expected, levels, strict=True):
        assert level.bound is not None
        assert upper <= level.bound * (1 + 1e-6) + 1e-9
    assert decision.plan is not None
    assert not len(check(problem, decision.plan))


@settings(max_examples=6)
@given(st.integers(0, 10_000))
def test_within_limits_the_common_share_is_the_largest(seed: int) -> None:
    problem = draw_network(seed)
    decision = robust.route(problem, failures="links", objective="concurrent")
    paths = find_paths(problem)
    requested = np.array([rate * bool(p) for rate, p in zip(problem.rate_mbps, paths, strict=True)])
    value = decision.proof.objective
    assert value is not None
    share = value / max(float(requested.sum()), 1e-9)
    if not requested.any():
        return
    fits, above = (
        solve_over_paths(problem.with_rates(requested * fraction), paths, [np.ones(len(requested))])[0]
        for fraction in (share, min(share * 1.01, 1.0))
    )
    assert fits == pytest.approx(share * requested.sum(), rel=1e-6)
    if share < 1 - 1e-6:
        assert above < min(share * 1.01, 1.0) * requested.sum() * (1 - 1e-9)
