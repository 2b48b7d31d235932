"""Weighted ECMP: groups against all groups of their size, tables that are too small, and flows by weights."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.errors import PlanRejected
from planner_models.flows.multipath_groups import (
    Group,
    ReducedGroup,
    count_entries,
    fit_groups,
    list_reductions,
)
from planner_models.traffic import Traffic, check, measure
from planner_models.traffic.designs import ecmp, weighted_ecmp
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.problem import generators
from tests.models.traffic.networks import network, problems

SHARES = st.lists(st.integers(1, 20), min_size=2, max_size=4)


def normalized(weights: list[int]) -> tuple[float, ...]:
    return tuple(weight / sum(weights) for weight in weights)


def least_oversubscription(shares: tuple[float, ...], size: int) -> float:
    """Return the least of all groups with at most `size` entries."""
    factors = []
    for entries in itertools.product(range(size + 1), repeat=len(shares)):
        if 1 <= sum(entries) <= size:
            total = sum(entries)
            factors.append(max(count / total / share for count, share in zip(entries, shares, strict=True)))
    return min(factors)


@settings(max_examples=60)
@given(SHARES, st.integers(1, 8))
def test_no_group_of_as_many_entries_is_nearer_to_the_shares(weights: list[int], size: int) -> None:
    shares = normalized(weights)
    best = list_reductions(shares, size)[-1]
    assert 1 <= sum(best.entries) <= size
    total = sum(best.entries)
    factor = max(count / total / share for count, share in zip(best.entries, shares, strict=True))
    assert best.oversubscription == pytest.approx(factor, rel=1e-9)
    assert best.oversubscription == pytest.approx(least_oversubscription(shares, size), rel=1e-9)


@settings(max_examples=40)
@given(st.lists(SHARES, min_size=1, max_size=3), st.integers(0, 14))
def test_a_small_table_has_the_least_oversubscription_of_all_choices(
    several: list[list[int]], entries: int
) -> None:
    """Of groups with links of their own, which never become equal."""
    groups = [
        Group((row, row + 10, row + 20, row + 30)[: len(weights)], normalized(weights))
        for row, weights in enumerate(several)
    ]
    options = [list_reductions(group.shares, 6) for group in groups]
    result = fit_groups(groups, max_size=6, table_entries=entries)
    assert sum(group.size for group in result) <= entries
    fitting = [
        max(group.oversubscription for group in choice)
        for choice in itertools.product(*options)
        if sum(group.size for group in choice) <= entries
    ]
    assert max(group.oversubscription for group in result) == pytest.approx(min(fitting))


def test_equal_groups_are_stored_once_and_single_next_hops_need_no_entry() -> None:
    same = ((1, 2), (3, 1))
    assert count_entries([same, same, ((1, 2), (1, 0)), ((4, 5), (1, 1))]) == 6
    assert ReducedGroup((1, 0), 2.0).size == 0
    groups = [Group((1, 2), (0.75, 0.25))] * 5
    assert {group.entries for group in fit_groups(groups, max_size=8, table_entries=4)} == {(3, 1)}
    assert {group.entries for group in fit_groups(groups, max_size=8, table_entries=1)} == {(1, 0)}


# --- routing ------------------------------------------------------------------------------

LINKS = [("a", "b", 30.0), ("b", "d", 30.0), ("a", "c", 10.0), ("c", "d", 10.0)]


def decide(problem: Traffic, **parameters: Any) -> Routing:
    plan = weighted_ecmp.route(problem, **parameters).plan
    assert plan is not None
    assert check(problem, plan).of_limits({"demand"}).frame.empty
    return plan


def loads(plan: Routing) -> dict[tuple[str, str], float]:
    return dict(
        zip(zip(plan.links["tail"], plan.links["head"], strict=True), plan.links["load_mbps"], strict=True)
    )


def test_traffic_splits_by_the_capacity_of_links() -> None:
    problem = network(LINKS, [("a", "d", 20.0)])
    plan = decide(problem)
    assert loads(plan)["a", "b"] == pytest.approx(15.0)
    assert loads(plan)["a", "c"] == pytest.approx(5.0)
    assert plan.groups is not None
    assert plan.groups["entries"].tolist() == [3, 1]
    metrics = measure(problem, plan, None)
    assert (metrics["group_entries"], metrics["oversubscription"]) == (4, 1)


def test_a_narrow_link_behind_the_next_hop_counts_for_paths_only() -> None:
    links = [("a", "b", 30.0), ("b", "d", 5.0), ("a", "c", 10.0), ("c", "d", 10.0)]
    problem = network(links, [("a", "d", 12.0)])
    assert loads(decide(problem))["a", "b"] == pytest.approx(9.0)
    assert loads(decide(problem, weights="path"))["a", "b"] == pytest.approx(4.0)


def test_given_weights_are_a_column_of_links_whose_blanks_are_one() -> None:
    problem = network(LINKS, [("a", "d", 20.0)])
    weighted = replace(problem, links=problem.links.assign(split_weight=[np.nan, 1.0, 4.0, 1.0]))
    assert loads(decide(weighted, weights="given"))["a", "c"] == pytest.approx(16.0)
    assert loads(decide(problem, weights="given"))["a", "c"] == pytest.approx(10.0)


@pytest.mark.parametrize(
    ("size", "entries", "share"), [(3, None, 2 / 3), (64, 3, 2 / 3), (64, 0, 1.0), (1, None, 1.0)]
)
def test_small_groups_and_tables_send_the_widest_link_more(
    size: int, entries: int | None, share: float
) -> None:
    links = [("a", "b", 7.0), ("b", "d", 9.0), ("a", "c", 4.0), ("c", "d", 9.0)]
    problem = network(links, [("a", "d", 1.0)])
    plan = decide(problem, group_size=size, table_entries=entries)
    assert loads(plan)["a", "b"] == pytest.approx(share)
    assert measure(problem, plan, None)["oversubscription"] == pytest.approx(
        max(share / (7 / 11), (1 - share) / (4 / 11))
    )
    assert measure(problem, plan, None)["group_entries"] <= (size if entries is None else entries)


@settings(max_examples=30)
@given(problems(max_nodes=5))
def test_flows_are_those_of_a_walk_over_the_weights(problem: Traffic) -> None:
    plan = decide(problem, group_size=4096)
    expected = np.zeros(len(problem.links))
    graph = nx.MultiDiGraph()
    graph.add_nodes_from(range(len(problem.nodes)))
    ends = list(zip(problem.tail.tolist(), problem.head.tolist(), strict=True))
    for link, (tail, head) in enumerate(ends):
        graph.add_edge(head, tail, key=link, weight=float(problem.weight[link]))
    for source, target, rate in zip(problem.source, problem.target, problem.rate_mbps, strict=True):
        distance = nx.single_source_dijkstra_path_length(graph, int(target))
        amount = {int(source): float(rate)} if int(source) in distance else {}
        while amount:
            node = max(amount, key=lambda item: distance[item])
            arrived = amount.pop(node)
            if node == int(target):
                continue
            hops = [
                link
                for link, (tail, head) in enumerate(ends)
                if tail == node
                and head in distance
                and distance[head] + problem.weight[link] <= distance[node] * (1 + 1e-9)
            ]
            total = sum(float(problem.capacity_mbps[link]) for link in hops)
            for link in hops:
                part = arrived * float(problem.capacity_mbps[link]) / total
                expected[link] += part
                amount[ends[link][1]] = amount.get(ends[link][1], 0.0) + part
    # groups of 4,096 entries are within a few thousandths of ideal shares
    np.testing.assert_allclose(
        plan.links["load_mbps"], expected, rtol=0.02, atol=1e-3 * problem.rate_mbps.max()
    )


@settings(max_examples=20)
@given(problems(max_nodes=5))
def test_equal_weights_are_plain_ecmp(problem: Traffic) -> None:
    plain = ecmp.route(problem).plan
    assert plain is not None
    plan = decide(problem, weights="given")
    np.testing.assert_allclose(plan.links["load_mbps"], plain.links["load_mbps"], rtol=1e-9, atol=1e-9)


def test_a_plan_whose_groups_make_other_flows_is_rejected() -> None:
    problem = network(LINKS, [("a", "d", 20.0)])
    plan = decide(problem)
    assert plan.groups is not None
    with pytest.raises(PlanRejected, match="groups"):
        check(problem, replace(plan, groups=plan.groups.assign(entries=[1, 1])))
    with pytest.raises(PlanRejected, match="from a to d, there is no entry"):
        check(problem, replace(plan, groups=plan.groups.assign(entries=[0, 0])))
    with pytest.raises(PlanRejected, match="must add up to 1"):
        check(problem, replace(plan, groups=plan.groups.assign(ideal_share=0.4)))
    with pytest.raises(PlanRejected, match="row 1: 'b' is the target of no demand"):
        check(problem, replace(plan, groups=plan.groups.assign(target="b")))


def test_demands_with_classes_follow_the_groups_of_their_pair() -> None:
    problem = network(LINKS, [("a", "d", 20.0)])
    demands = problem.demands.loc[[0, 0]].assign(rate_mbps=[4.0, 16.0], **{"class": ["gold", "best"]})
    several = Traffic.from_tables({"links": problem.links, "demands": demands.reset_index(drop=True)})
    assert loads(decide(several))["a", "b"] == pytest.approx(15.0)


@pytest.mark.slow
def test_a_fat_tree_needs_few_entries_where_all_links_are_alike() -> None:
    problem = generators.fat_tree(k=8, seed=1)
    plan = decide(problem)
    metrics = measure(problem, plan, None)
    assert metrics["oversubscription"] == 1
    assert metrics["group_entries"] == 4, "one group of all next hops upwards"


def test_groups_need_the_flows_of_each_demand() -> None:
    problem = network(LINKS, [("a", "d", 20.0)])
    plan = decide(problem)
    with pytest.raises(PlanRejected, match="groups: need flows with the column 'source'"):
        check(problem, replace(plan, flows=plan.flows.drop(columns="source")))
