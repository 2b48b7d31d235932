"""Candidate paths against networkx."""

from __future__ import annotations

import itertools

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner_models.flows import path_flow_program
from planner_models.graphs.path_search import PathChoice
from planner_models.traffic import Traffic
from tests.models.traffic.networks import as_graph, network, problems


def weights(problem: Traffic, result: path_flow_program.CandidatePaths, demand: int) -> list[float]:
    current = [links for k, links in zip(result.demand, result.links, strict=True) if k == demand]
    return [float(problem.weight[list(links)].sum()) for links in current]


def all_weights(problem: Traffic, demand: int) -> list[float]:
    """Return the weights of all simple paths of a demand, parallel links separately, ascending."""
    row = problem.demands.iloc[demand]
    walks = nx.all_simple_edge_paths(as_graph(problem), row["source"], row["target"])
    return sorted(float(problem.weight[[key for _, _, key in walk]].sum()) for walk in walks)


@given(problem=problems(max_nodes=5), count=st.integers(1, 5))
def test_the_shortest_are_the_first_of_all(problem: Traffic, count: int) -> None:
    paths = path_flow_program.find_paths(problem, count=count)
    for demand in range(len(problem.demands)):
        assert weights(problem, paths, demand) == pytest.approx(all_weights(problem, demand)[:count])


@given(
    problem=problems(),
    count=st.integers(1, 4),
    choice=st.sampled_from(["shortest", "disjoint", "most_disjoint"]),
)
def test_every_path_is_a_path(problem: Traffic, count: int, choice: PathChoice) -> None:
    paths = path_flow_program.find_paths(problem, count=count, choice=choice)
    assert len(set(zip(paths.demand.tolist(), paths.links, strict=True))) == len(paths.links)
    for demand, links in zip(paths.demand, paths.links, strict=True):
        nodes = [problem.tail[links[0]], *problem.head[list(links)]]
        assert (nodes[0], nodes[-1]) == (problem.source[demand], problem.target[demand])
        assert all(problem.head[a] == problem.tail[b] for a, b in itertools.pairwise(links))
        assert len(set(nodes)) == len(nodes), "no node comes twice"


@given(problem=problems(), count=st.integers(2, 4))
def test_disjoint_paths_share_no_link(problem: Traffic, count: int) -> None:
    paths = path_flow_program.find_paths(problem, count=count, choice="disjoint")
    for demand in range(len(problem.demands)):
        used = [
            link for k, links in zip(paths.demand, paths.links, strict=True) if k == demand for link in links
        ]
        assert len(used) == len(set(used))
        assert weights(problem, paths, demand)[0] == pytest.approx(all_weights(problem, demand)[0])


@given(problem=problems(max_nodes=5), limit=st.integers(3, 5))
def test_a_hop_limit_is_kept_and_the_fewest_hops_are_found(problem: Traffic, limit: int) -> None:
    paths = path_flow_program.find_paths(problem, count=2, max_hops=limit + 1)
    hops = [len(links) for links in paths.links]
    assert max(hops) <= limit + 1
    assert set(paths.demand.tolist()) == set(range(len(problem.demands)))


@pytest.mark.slow
def test_a_short_path_is_found_behind_many_light_long_ones() -> None:
    rungs = [(f"{side}{i}", f"{other}{i + 1}", 1.0) for i in range(4) for side in "ab" for other in "ab"]
    ends = [("s", "a0", 1.0), ("s", "b0", 1.0), ("a4", "t", 1.0), ("b4", "t", 1.0), ("s", "t", 1.0)]
    problem = network([*rungs, *ends], [("s", "t", 1.0)], weight=[1.0] * (len(rungs) + 4) + [99.0])
    assert [len(p) for p in path_flow_program.find_paths(problem, count=2, max_hops=3).links] == [1]
