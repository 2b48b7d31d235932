"""Shortcuts in the IGP: against first hops of all shortest paths, and rules one by one."""

from __future__ import annotations

import itertools
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import planner
from planner.search.deadline import NEVER
from planner_models.traffic import Traffic
from planner_models.traffic.designs.reserved_paths import PathSearch, Reservations, signal_all


def network(
    links: list[tuple[str, str, float, float]], demands: list[tuple[str, str, float, float]]
) -> Traffic:
    """Return a network of links (tail, head, Mbit/s, weight) and demands (ends, Mbit/s, priority)."""
    return Traffic.from_tables(
        {
            "links": pd.DataFrame(links, columns=["tail", "head", "capacity_mbps", "weight"]),
            "demands": pd.DataFrame(demands, columns=["source", "target", "rate_mbps", "setup_priority"]),
        }
    )


N = np.nan
LINE = [("a", "b", 10.0, 1.0), ("b", "c", 10.0, 1.0), ("c", "d", 10.0, 1.0)]
DETOUR = [("a", "x", 10.0, 3.0), ("x", "c", 10.0, 3.0)]


def loads(run: planner.Run) -> dict[str, float]:
    """Return the load of each link that has some."""
    frame = run.plan.links
    return {
        f"{a}{b}": float(load)
        for a, b, load in zip(frame["tail"], frame["head"], frame["load_mbps"], strict=True)
        if load > 0
    }


def test_traffic_takes_the_path_to_its_end_and_what_lies_behind() -> None:
    full = ("a", "b", 8.0, 0.0)
    tunnel = ("a", "c", 5.0, 4.0)  # does not fit beside the first, and so goes over x
    problem = network([*LINE, *DETOUR], [full, tunnel, ("a", "d", 2.0, N), ("b", "d", 1.0, N)])
    run = planner.solve(problem, design="igp_shortcuts")
    assert loads(run) == {"ab": 8.0, "ax": 7.0, "xc": 7.0, "bc": 1.0, "cd": 3.0}
    without = planner.solve(problem, design="ecmp")
    assert loads(without)["ab"] == 15.0


def test_a_refused_reservation_follows_the_igp() -> None:
    problem = network(LINE, [("a", "c", 20.0, 4.0)])
    run = planner.solve(problem, design="igp_shortcuts")
    assert loads(run) == {"ab": 20.0, "bc": 20.0}
    assert run.metrics["overloaded_links"] == 2


def test_without_reservations_it_is_equal_cost_multipath() -> None:
    links = [("a", "b", 10.0, 1.0), ("b", "d", 10.0, 1.0), ("a", "c", 10.0, 1.0), ("c", "d", 10.0, 1.0)]
    problem = network(links, [("a", "d", 4.0, N), ("b", "d", 1.0, N)])
    assert loads(planner.solve(problem, design="igp_shortcuts")) == loads(
        planner.solve(problem, design="ecmp")
    )


def first_hops(
    graph: nx.DiGraph, tunnels: dict[str, list[tuple[str, ...]]], node: str, target: str
) -> set[Any]:
    """Return the first hops of a router: of each shortest path, the tunnel to its last node that has one."""
    hops: set[Any] = set()
    for path in nx.all_shortest_paths(graph, node, target, weight="weight"):
        ends = [end for end in path[1:] if any(tunnel[-1] == end for tunnel in tunnels.get(node, []))]
        if ends:
            hops |= {tunnel for tunnel in tunnels[node] if tunnel[-1] == ends[-1]}
        else:
            hops.add((node, path[1]))
    return hops


@st.composite
def problems(draw: st.DrawFn) -> Traffic:
    """Draw a strongly connected network of six nodes with reservations and other demands."""
    nodes = "abcdef"
    ring = [(nodes[i], nodes[(i + 1) % 6]) for i in range(6)]
    pairs = list(itertools.permutations(nodes, 2))
    chosen = list(dict.fromkeys([*ring, *draw(st.lists(st.sampled_from(pairs), max_size=10))]))
    links = [(a, b, float(draw(st.integers(3, 9))), float(draw(st.integers(1, 3)))) for a, b in chosen]
    ends = draw(st.lists(st.sampled_from(pairs), min_size=2, max_size=8, unique=True))
    return network(
        links,
        [(a, b, float(draw(st.integers(1, 4))), draw(st.sampled_from([N, N, 3.0, 5.0]))) for a, b in ends],
    )


@settings(max_examples=40)
@given(problems())
def test_loads_are_those_of_all_shortest_paths(problem: Traffic) -> None:  # noqa: C901 - one walk
    run = planner.solve(problem, design="igp_shortcuts")
    names = problem.nodes["node"].tolist()
    is_reserved = problem.demands["setup_priority"].notna().to_numpy()
    reserved = problem.with_rates(np.where(is_reserved, problem.rate_mbps, 0.0))
    state = Reservations.of(reserved, problem.setup_priority, problem.hold_priority)
    signal_all(reserved, state, PathSearch(reserved), "priority", NEVER)
    graph = nx.DiGraph()
    for a, b, weight in zip(problem.links["tail"], problem.links["head"], problem.weight, strict=True):
        graph.add_edge(a, b, weight=weight)
    tunnels: dict[str, list[tuple[str, ...]]] = {}
    expected: dict[str, float] = {}

    def add(path: tuple[str, ...], amount: float) -> None:
        for edge in itertools.pairwise(path):
            expected["".join(edge)] = expected.get("".join(edge), 0.0) + amount

    for path in state.path:
        if path is not None:
            nodes = (names[problem.tail[path[0]]], *(names[problem.head[link]] for link in path))
            tunnels.setdefault(nodes[0], []).append(nodes)
    for row, (source, target, rate) in enumerate(
        zip(problem.demands["source"], problem.demands["target"], problem.rate_mbps, strict=True)
    ):
        own = state.path[row]
        if own is not None:
            add((names[problem.tail[own[0]]], *(names[problem.head[link]] for link in own)), float(rate))
            continue
        waiting = [(source, float(rate))]
        while waiting:
            node, amount = waiting.pop()
            if node == target:
                continue
            hops = first_hops(graph, tunnels, node, target)
            for hop in hops:
                add(hop, amount / len(hops))
                waiting.append((hop[-1], amount / len(hops)))
    assert loads(run) == pytest.approx(expected)
    assert run.metrics["shed_mbps"] == 0


def test_a_target_that_nothing_reaches_is_shed() -> None:
    problem = network(
        [*LINE, ("d", "z", 10.0, 1.0)], [("a", "d", 2.0, N), ("z", "a", 1.0, N), ("a", "b", 1.0, 3.0)]
    )
    run = planner.solve(problem, design="igp_shortcuts")
    assert run.metrics["shed_mbps"] == 1.0
    assert loads(run) == {"ab": 3.0, "bc": 2.0, "cd": 2.0}


def test_classes_of_a_pair_go_their_own_ways() -> None:
    tables = network([*LINE, *DETOUR], [("a", "b", 8.0, 0.0), ("a", "c", 5.0, 4.0)]).to_tables()
    more = pd.DataFrame({"source": ["a"], "target": ["c"], "rate_mbps": [2.0], "class": ["bulk"]})
    demands = pd.concat([tables["demands"].assign(**{"class": "gold"}), more], ignore_index=True)
    run = planner.solve(Traffic.from_tables(tables | {"demands": demands}), design="igp_shortcuts")
    assert loads(run) == {"ab": 8.0, "ax": 7.0, "xc": 7.0}
    assert run.metrics["delivered_mbps"] == 15.0
