"""Symmetry of networks: known fabrics and backbones, and a definition by brute force."""

from __future__ import annotations

import itertools

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner import check
from planner.scenarios.scenario import load
from planner_models.traffic.problem import generators
from planner_models.traffic.problem.problem import Traffic
from planner_models.traffic.problem.symmetry import describe_asymmetry, find_asymmetry


def between_all(problem: Traffic, prefix: str = "") -> Traffic:
    """Return the network with a demand between all nodes whose names begin so."""
    names = [name for name in problem.nodes["node"] if name.startswith(prefix)]
    pairs = [(source, target, 1.0) for source, target in itertools.permutations(names, 2)]
    demands = pd.DataFrame(pairs, columns=["source", "target", "rate_mbps"])
    return Traffic(nodes=problem.nodes, links=problem.links, demands=demands)


def without(problem: Traffic, *names: str) -> Traffic:
    """Return the network without some links."""
    return problem.without_links(np.isin(problem.link_labels, names))


FABRIC = between_all(generators.fat_tree(k=4, seed=1), "host")


def test_a_fat_tree_is_symmetric_and_without_an_uplink_for_most_pairs_only() -> None:
    assert find_asymmetry(FABRIC) is None
    assert describe_asymmetry(FABRIC) == ""
    lost = without(FABRIC, "aggregation-0-0->core-0-0")
    asymmetry = find_asymmetry(lost)
    assert asymmetry is not None
    assert (asymmetry.demands, asymmetry.ratio) == (48, 0.5)
    assert describe_asymmetry(lost) == (
        "the network is not symmetric for 48 of 240 demands (Sen et al. 2013, Definition 1), so that its "
        "plan may be worse than the optimum; the first is host-0-0-0->host-1-0-0: towards its target "
        "aggregation-0-0 has 0.5 times the capacity of aggregation-0-1, which is as far from its source"
    )


def test_a_failed_switch_leaves_a_fat_tree_symmetric() -> None:
    """Sen et al. 2013, 4.3: it removes all shortest paths through it."""
    names = [name for name in FABRIC.link_labels if "aggregation-0-0" in name.split("->")]
    assert find_asymmetry(without(FABRIC, *names)) is None


@pytest.mark.parametrize(("name", "broken"), [("abilene", 8), ("germany50", 1012)])
def test_backbones_are_not_symmetric(name: str, broken: int) -> None:
    asymmetry = find_asymmetry(between_all(load(f"traffic/{name}").make_problem()))
    assert asymmetry is not None
    assert asymmetry.demands == broken


@st.composite
def networks(draw: st.DrawFn) -> Traffic:
    """A few nodes with links of one, two or three times a capacity and a weight."""
    count = draw(st.integers(3, 6))
    pairs = draw(
        st.lists(
            st.sampled_from(list(itertools.permutations(range(count), 2))),
            min_size=3,
            max_size=14,
            unique=True,
        )
    )
    rows = [
        (str(tail), str(head), float(draw(st.integers(1, 3))), float(draw(st.integers(1, 2))))
        for tail, head in pairs
    ]
    links = pd.DataFrame(rows, columns=["tail", "head", "capacity_mbps", "weight"])
    demands = pd.DataFrame([(rows[0][0], rows[0][1], 1.0)], columns=["source", "target", "rate_mbps"])
    return between_all(Traffic.from_tables({"links": links, "demands": demands}))


@given(networks())
def test_as_by_the_definition(problem: Traffic) -> None:
    """Nodes of all shortest paths of a pair, grouped by distance, and their capacity on such paths."""
    graph = nx.DiGraph()
    for tail, head, weight in zip(problem.tail, problem.head, problem.weight, strict=True):
        graph.add_edge(int(tail), int(head), weight=float(weight))
    broken = []
    for source, target in zip(problem.source.tolist(), problem.target.tolist(), strict=True):
        if not nx.has_path(graph, source, target):
            broken.append(False)
            continue
        distance = nx.single_source_dijkstra_path_length(graph, source)
        capacity: dict[int, set[int]] = {}
        for path in nx.all_shortest_paths(graph, source, target, weight="weight"):
            for tail, head in itertools.pairwise(path):
                links = np.flatnonzero((problem.tail == tail) & (problem.head == head))
                capacity.setdefault(tail, set()).update(links.tolist())
        totals: dict[float, set[float]] = {}
        for node, links in capacity.items():
            totals.setdefault(distance[node], set()).add(float(problem.capacity_mbps[sorted(links)].sum()))
        broken.append(any(len(total) > 1 for total in totals.values()))
    asymmetry = find_asymmetry(problem)
    assert (0 if asymmetry is None else asymmetry.demands) == sum(broken)
    if asymmetry is not None:
        assert asymmetry.first == int(np.argmax(broken))
        assert asymmetry.ratio < 1


def test_the_check_of_a_scenario_says_it_where_a_design_needs_it() -> None:
    failed = {"problem.fail_links": ["aggregation-0-0->core-0-0"]}
    assert check("traffic/packets_16").doubts == ()
    doubts = check("traffic/packets_16", changes=failed).doubts
    assert [doubt.split(":")[0] for doubt in doubts] == ["packet_scatter", "localflow"]
    assert "the first is host-" in doubts[0]
    assert check("traffic/germany50").doubts == ()
