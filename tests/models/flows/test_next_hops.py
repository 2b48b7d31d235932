"""Next hops against networkx, and shares that follow them against the general splits."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner_models.flows import next_hops, split_ratios
from planner_models.traffic import Traffic
from tests.models.traffic.networks import as_graph, both_ways, network, problems


@given(problems())
def test_next_hops_lie_on_shortest_paths_and_none_is_missing(problem: Traffic) -> None:
    hops = next_hops.find_next_hops(problem)
    graph = as_graph(problem)
    names = problem.nodes["node"].tolist()
    for d, target in enumerate(problem.targets.tolist()):
        far = nx.single_source_dijkstra_path_length(graph.reverse(), names[target], weight="weight")
        result = {
            (int(hops.node[i]), int(link))
            for i in range(hops.first_node[d], hops.first_node[d + 1])
            for link in hops.link[hops.first_link[i] : hops.first_link[i + 1]]
        }
        met = set(problem.source[hops.demand[hops.first_demand[d] : hops.first_demand[d + 1]]].tolist())
        requested: set[tuple[int, int]] = set()
        while met:
            node = met.pop()
            for link in np.flatnonzero(problem.tail == node).tolist():
                head = int(problem.head[link])
                if (
                    far[names[head]] + problem.weight[link] == far[names[node]]
                    and (node, link) not in requested
                ):
                    requested.add((node, link))
                    met |= {head} - {target}
        assert result == requested
        order = [far[names[node]] for node in hops.node[hops.first_node[d] : hops.first_node[d + 1]]]
        assert order == sorted(order, reverse=True)


@given(problems())
def test_even_shares_are_those_of_following_even_splits(problem: Traffic) -> None:
    share = next_hops.even_shares(next_hops.find_next_hops(problem))
    ratios = split_ratios.split_evenly(problem, split_ratios.shortest_path_links(problem))
    slow = split_ratios.apply_ratios(problem, ratios, (problem.rate_mbps > 0).astype(float))
    assert share.toarray() == pytest.approx(slow.toarray(), abs=1e-12)


@given(problems(), st.integers(0, 1000))
def test_random_paths_are_shortest_paths(problem: Traffic, seed: int) -> None:
    paths = next_hops.draw_paths(next_hops.find_next_hops(problem), np.random.default_rng(seed), copies=3)
    row = np.searchsorted(problem.targets, problem.target)
    for path in range(3 * len(problem.demands)):
        links = paths[[path]].indices
        demand = path // 3
        ends = np.zeros(len(problem.nodes))
        np.add.at(ends, problem.tail[links], 1)
        np.add.at(ends, problem.head[links], -1)
        assert ends[problem.source[demand]] == 1
        assert ends[problem.target[demand]] == -1
        assert np.abs(ends).sum() == 2
        assert problem.weight[links].sum() == problem.distance[row[demand], problem.source[demand]]


@given(problems(), st.integers(0, 1000), st.data())
def test_stable_paths_stay_as_other_demands_end(problem: Traffic, seed: int, data: st.DataObject) -> None:
    count = len(problem.demands)
    has_rate = np.array(data.draw(st.lists(st.booleans(), min_size=count, max_size=count)))
    before = next_hops.draw_stable_paths(problem, np.random.default_rng(seed), copies=2)
    fewer = problem.with_rates(np.where(has_rate, problem.rate_mbps, 0.0))
    after = next_hops.draw_stable_paths(fewer, np.random.default_rng(seed), copies=2)
    remaining = np.repeat(has_rate & (problem.rate_mbps > 0), 2)
    assert (after.toarray() == before.toarray() * remaining[:, None]).all()


def test_every_next_hop_is_as_likely_as_the_others() -> None:
    middle = [f"m{i}" for i in range(4)]
    links = [("s", m, 1.0) for m in middle] + [(m, "t", 1.0) for m in middle]
    problem = network(both_ways(links), [("s", "t", 1.0)])
    paths = next_hops.draw_paths(next_hops.find_next_hops(problem), np.random.default_rng(0), copies=4000)
    used = np.asarray(paths.sum(axis=0)).ravel()[:4]
    assert used.sum() == 4000
    assert (np.abs(used - 1000) < 150).all()  # over 5 standard deviations


def test_a_demand_without_a_rate_has_no_path() -> None:
    problem = network(both_ways([("a", "b", 1.0)]), [("a", "b", 1.0), ("b", "a", 0.0)])
    hops = next_hops.find_next_hops(problem)
    paths = next_hops.draw_paths(hops, np.random.default_rng(0))
    assert np.diff(paths.indptr).tolist() == [1, 0]
    assert np.diff(next_hops.even_shares(hops).indptr).tolist() == [1, 0]
