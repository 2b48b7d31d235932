"""Segment routing: against all assignments of lists, its bound, its limits, and what its plans say."""

from __future__ import annotations

import itertools
import json

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from planner import Options
from planner.errors import InputError, PlanRejected
from planner_models.traffic import SYSTEM, Routing, Traffic, check, measure
from planner_models.traffic.designs import ecmp, segment_routing
from planner_models.traffic.designs.optimum import optimum
from planner_models.traffic.plan.flow_decision import ALL_SERVED
from planner_models.traffic.plan.plan import routing_from_tables
from planner_models.traffic.problem import generators
from tests.models.traffic.networks import as_graph, both_ways, class_problems, network, problems

SMALL = problems(max_nodes=5, max_demands=3)
# the shortest way has little capacity, two ways around it have more
AROUND = network(
    both_ways([("a", "b", 1.0), ("a", "c", 3.0), ("c", "b", 3.0), ("a", "d", 3.0), ("d", "b", 3.0)]),
    [("a", "b", 4.0), ("a", "c", 1.0)],
)


def leg_shares(graph: nx.MultiDiGraph, source: str, target: str, links: int) -> np.ndarray:
    """Return the ECMP link shares from source to target, (E,), by recursion on distances."""
    share = np.zeros(links)
    if source == target:
        return share
    distance = nx.single_source_dijkstra_path_length(graph.reverse(), target)
    amount = {source: 1.0}
    for node in sorted(distance, key=lambda name: -distance[name]):
        if amount.get(node, 0.0) == 0.0 or node == target:
            continue
        hops = [
            (key, head)
            for _, head, key, data in graph.out_edges(node, keys=True, data=True)
            if head in distance and abs(distance[head] + data["weight"] - distance[node]) < 1e-9
        ]
        for key, head in hops:
            share[key] += amount[node] / len(hops)
            amount[head] = amount.get(head, 0.0) + amount[node] / len(hops)
    return share


def all_lists(problem: Traffic, max_segments: int) -> list[list[np.ndarray]]:
    """Return the utilization by each list of each demand, (E,): its shortest paths first."""
    graph, links = as_graph(problem), len(problem.links)
    names = list(graph)
    result = []
    for source, target, rate in problem.demands[["source", "target", "rate_mbps"]].itertuples(index=False):
        by_list = []
        for size in range(max_segments):
            for via in itertools.product(names, repeat=size):
                ends = [source, *via, target]
                if any(item == other for item, other in itertools.pairwise(ends)):
                    continue
                legs = [leg_shares(graph, item, other, links) for item, other in itertools.pairwise(ends)]
                by_list.append(rate * np.sum(legs, axis=0) / problem.capacity_mbps)
        result.append(by_list)
    return result


def least_split(lists: list[list[np.ndarray]], most_moved: int | None = None) -> float:
    """Return the least utilization over fractions of lists, by linear programming."""
    columns = [column for item in lists for column in item]
    count = len(columns)
    upper = np.c_[np.array(columns).T, -np.ones(len(columns[0]))]
    limit = np.zeros(len(columns[0]))
    if most_moved is not None:
        moved = np.concatenate([[0.0] + [1.0] * (len(item) - 1) for item in lists])
        upper, limit = np.vstack([upper, np.r_[moved, 0.0]]), np.r_[limit, most_moved]
    equal = np.zeros((len(lists), count + 1))
    position = 0
    for row, item in enumerate(lists):
        equal[row, position : position + len(item)] = 1.0
        position += len(item)
    return float(
        linprog(np.r_[np.zeros(count), 1.0], upper, limit, equal, np.ones(len(lists)), method="highs").fun
    )


def plan_of(problem: Traffic, **parameters: object) -> tuple[Routing, float, float]:
    decision = segment_routing.route(problem, **parameters)  # type: ignore[arg-type]
    assert decision.plan is not None
    assert decision.proof.objective is not None
    assert decision.proof.bound is not None
    assert check(problem, decision.plan).of_limits({"demand"}).frame.empty
    assert decision.proof.objective == pytest.approx(float(decision.plan.links["utilization"].max()))
    return decision.plan, decision.proof.objective, decision.proof.bound


@settings(max_examples=15)
@given(SMALL, st.sampled_from([1, 2, 3]))
def test_small_networks_are_solved_as_by_trying_everything(problem: Traffic, max_segments: int) -> None:
    lists = all_lists(problem, max_segments)
    best = min(float(np.sum(choice, axis=0).max()) for choice in itertools.product(*lists))
    _, value, bound = plan_of(problem, max_segments=max_segments, options=Options(gap=1e-6))
    assert bound <= best * (1 + 1e-6)
    assert value >= best * (1 - 1e-9)
    if max_segments < 3:  # the repair tries all lists of all demands together
        assert value == pytest.approx(best, rel=1e-6)


@pytest.mark.slow
@settings(max_examples=30)
@given(SMALL, st.sampled_from([2, 3]))
def test_the_splittable_plan_is_the_optimum_of_the_linear_program(problem: Traffic, segments: int) -> None:
    best = least_split(all_lists(problem, segments))
    _, value, bound = plan_of(problem, max_segments=segments, splittable=True, options=Options(gap=1e-5))
    assert value == pytest.approx(best, rel=2e-4)
    assert best * (1 - 2e-4) <= bound <= best * (1 + 1e-6)


@settings(max_examples=25)
@given(SMALL, st.integers(0, 2))
def test_the_limit_on_moved_demands_and_its_bound(problem: Traffic, most: int) -> None:
    lists = all_lists(problem, 2)
    best = min(
        float(np.sum([item[i] for item, i in zip(lists, choice, strict=True)], axis=0).max())
        for choice in itertools.product(*(range(len(item)) for item in lists))
        if sum(i > 0 for i in choice) <= most
    )
    plan, value, bound = plan_of(problem, most_moved_demands=most, options=Options(gap=1e-6))
    assert plan.segments is not None
    assert len(plan.segments) <= most
    assert value == pytest.approx(best, rel=1e-6)
    assert bound <= best * (1 + 1e-6)
    assert bound <= least_split(lists, most) * (1 + 1e-6)


@pytest.mark.slow
@settings(max_examples=15)
@given(problems(max_nodes=6))
def test_more_segments_never_hurt_the_bound_and_no_routing_beats_it(problem: Traffic) -> None:
    free = optimum.route(problem, objective="utilization").proof.bound
    assert free is not None
    before = np.inf
    for segments in (1, 2, 3, 4):
        _, value, bound = plan_of(problem, max_segments=segments, rounds=1)
        assert bound <= before * (1 + 2e-4)  # each is proven to 1e-4
        assert free * (1 - 1e-6) <= value
        assert bound <= value
        before = bound


@pytest.mark.slow
@given(problems())
def test_one_segment_is_equal_cost_multipath(problem: Traffic) -> None:
    plan, value, bound = plan_of(problem, max_segments=1)
    other = ecmp.route(problem).plan
    assert other is not None
    assert plan.links["load_mbps"].to_numpy() == pytest.approx(other.links["load_mbps"].to_numpy())
    assert bound == value
    assert plan.segments is not None
    assert plan.segments.empty


@pytest.mark.slow
@settings(max_examples=10)
@given(class_problems())
def test_all_classes_of_a_pair_take_its_list(problem: Traffic) -> None:
    plan, _, _ = plan_of(problem, rounds=2)
    assert plan.segments is not None
    assert not plan.segments.duplicated(problem.demand_key).any()
    again = routing_from_tables(problem, plan.to_tables())
    assert check(problem, again).of_limits({"demand"}).frame.empty


def test_a_demand_takes_the_way_around() -> None:
    plan, value, _ = plan_of(AROUND)
    assert value == pytest.approx(4 / 3)
    assert plan.segments is not None
    assert plan.segments.to_dict("records") == [
        {"source": "a", "target": "b", "segments": '["d", "b"]', "share": 1.0}
    ]
    metrics = measure(AROUND, plan, None)
    assert metrics["detoured_demands"] == 1
    assert metrics["mean_segments"] == pytest.approx(1.5)


def test_a_splittable_demand_takes_all_ways() -> None:
    plan, value, bound = plan_of(AROUND, splittable=True)
    assert value == pytest.approx(5 / 7, rel=1e-3)
    assert bound == pytest.approx(5 / 7, rel=1e-3)
    assert plan.segments is not None
    assert plan.segments.groupby(["source", "target"])["share"].sum().to_numpy() == pytest.approx(1.0)


@pytest.mark.slow
@pytest.mark.parametrize("splittable", [False, True])
def test_a_plan_is_read_back_and_started_from(splittable: bool) -> None:
    problem = generators.abilene()
    first = segment_routing.route(problem, splittable=splittable, rounds=2)
    assert first.plan is not None
    again = routing_from_tables(problem, first.plan.to_tables())
    assert measure(problem, again, None) == measure(problem, first.plan, None)
    _, value, _ = plan_of(problem, previous=first, rounds=0)
    if not splittable:
        assert first.proof.objective is not None
        assert value <= first.proof.objective * (1 + 1e-9)


@pytest.mark.slow
def test_only_the_given_nodes_are_intermediate() -> None:
    problem = generators.germany50()
    plan, _, bound = plan_of(problem, via=("Kassel", "F*"), rounds=2)
    assert plan.segments is not None
    used = {node for text in plan.segments["segments"] for node in json.loads(text)[:-1]}
    assert used <= {"Kassel", *(name for name in problem.nodes["node"] if name.startswith("F"))}
    free = segment_routing.route(problem, rounds=0).proof
    assert free.bound is not None
    assert bound >= free.bound * (1 - 2e-4)
    assert free.bound_scope == f"{ALL_SERVED}, over paths of at most 2 segments"
    plan, _, _ = plan_of(problem, most_intermediate_nodes=2, rounds=2)
    assert plan.segments is not None
    assert len({json.loads(text)[0] for text in plan.segments["segments"]}) <= 2


@pytest.mark.parametrize(
    ("limit", "scope"),
    [
        ({"most_intermediate_nodes": 0}, "through the selected intermediate nodes (at most 0)"),
        ({"most_moved_demands": 0}, "in plans that move at most 0 demands"),
    ],
)
def test_a_bound_under_limits_names_them(limit: dict[str, int], scope: str) -> None:
    """Without a detour, the narrow link of a ring carries 3 times its capacity; detours need 1 times."""
    assert SYSTEM.problem.sample is not None
    problem = SYSTEM.problem.sample()
    free, limited = segment_routing.route(problem).proof, segment_routing.route(problem, **limit).proof
    assert free.objective == pytest.approx(1.0)
    assert limited.objective == pytest.approx(3.0)
    assert limited.bound is not None
    assert limited.bound > 1.0
    assert limited.bound_scope == f"{ALL_SERVED}, over paths of at most 2 segments, {scope}"


@pytest.mark.slow
def test_a_plan_within_one_percent_of_its_bound() -> None:
    _, value, bound = plan_of(generators.germany50())
    assert value <= 1.01 * bound


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"via": ("Kasel",)}, "via: 'Kasel' matches no node; did you mean 'Kassel'?"),
        ({"splittable": True, "most_moved_demands": 3}, "most_moved_demands needs splittable = false"),
    ],
)
def test_bad_input(parameters: dict[str, object], message: str) -> None:
    with pytest.raises(InputError) as caught:
        segment_routing.route(generators.germany50(), **parameters)  # type: ignore[arg-type]
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("segments", "message"),
    [
        ('["c", "b"]', "segments: a->b has 4 Mbit/s on a->c, its flows say 0 Mbit/s"),
        ("[]", "segments row 1: segments is an empty list, must end at the target b"),
        ('["d"]', "segments row 1: segments end at d, must end at the target b"),
        ('["x", "b"]', "segments row 1: 'x' is no node of the network"),
        ('["a", "b"]', "segments row 1: a node follows itself in a, a, b"),
    ],
)
def test_lists_that_do_not_make_the_flows_are_refused(segments: str, message: str) -> None:
    tables = segment_routing.route(AROUND).plan.to_tables()  # type: ignore[union-attr]
    tables["segments"] = tables["segments"].assign(segments=segments)
    with pytest.raises(PlanRejected) as caught:
        check(AROUND, routing_from_tables(AROUND, tables))
    assert str(caught.value) == message


def test_shares_must_add_up_to_one() -> None:
    tables = segment_routing.route(AROUND).plan.to_tables()  # type: ignore[union-attr]
    tables["segments"] = tables["segments"].assign(share=0.5)
    with pytest.raises(PlanRejected, match=r"the shares of a->b add up to 0\.5, must be 1"):
        check(AROUND, routing_from_tables(AROUND, tables))
