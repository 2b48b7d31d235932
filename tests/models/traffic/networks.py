"""Small networks for tests: drawn by hypothesis, or built from short lists."""

from __future__ import annotations

import networkx as nx
import pandas as pd
from hypothesis import strategies as st

from planner_models.traffic import Traffic

Link = tuple[str, str, float]


def network(links: list[Link], demands: list[Link], **columns: list[float]) -> Traffic:
    """Build a problem of (tail, head, capacity) links and (source, target, rate) demands."""
    frame = pd.DataFrame(links, columns=["tail", "head", "capacity_mbps"]).assign(**columns)
    requested_table = pd.DataFrame(demands, columns=["source", "target", "rate_mbps"])
    return Traffic.from_tables({"links": frame, "demands": requested_table})


def both_ways(links: list[Link]) -> list[Link]:
    """Return each link, and an equal one in the opposite direction."""
    return [*links, *((head, tail, capacity) for tail, head, capacity in links)]


@st.composite
def problems(
    draw: st.DrawFn, max_nodes: int = 6, max_demands: int = 5, parallel: bool = True, costs: bool = False
) -> Traffic:
    """Draw a strongly connected network (a ring with chords) with a few demands."""
    count = draw(st.integers(2, max_nodes))
    names = [f"n{i}" for i in range(count)]
    pairs = [(i, (i + 1) % count) for i in range(count)]
    chords = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)).filter(lambda p: p[0] != p[1])
    pairs += draw(st.lists(chords, max_size=2 * count, unique=not parallel))
    if not parallel:
        pairs = list(dict.fromkeys(pairs))
    size = len(pairs)
    capacity = draw(st.lists(st.integers(1, 20), min_size=size, max_size=size))
    weight = draw(st.lists(st.integers(1, 4), min_size=size, max_size=size))
    frame = pd.DataFrame(
        {
            "tail": [names[i] for i, _ in pairs],
            "head": [names[j] for _, j in pairs],
            "capacity_mbps": [float(c) for c in capacity],
            "weight": [float(w) for w in weight],
        }
    )
    if costs:
        frame["cost"] = [float(c) for c in draw(st.lists(st.integers(0, 5), min_size=size, max_size=size))]
    ends = draw(st.lists(chords, min_size=1, max_size=max_demands, unique=True))
    rates = draw(st.lists(st.integers(1, 10), min_size=len(ends), max_size=len(ends)))
    demands = pd.DataFrame(
        {
            "source": [names[i] for i, _ in ends],
            "target": [names[j] for _, j in ends],
            "rate_mbps": [float(rate) for rate in rates],
        }
    )
    return Traffic.from_tables({"nodes": pd.DataFrame({"node": names}), "links": frame, "demands": demands})


def as_graph(problem: Traffic) -> nx.MultiDiGraph:
    """Return the network as a networkx graph, with one edge for each link, keyed by its row."""
    graph = nx.MultiDiGraph()
    graph.add_nodes_from(problem.nodes["node"])
    for row, link in problem.links.iterrows():
        graph.add_edge(
            link["tail"], link["head"], key=row, capacity=link["capacity_mbps"], weight=link["weight"]
        )
    return graph


@st.composite
def class_problems(draw: st.DrawFn, max_nodes: int = 5, max_demands: int = 4) -> Traffic:
    """Draw a network whose demands have up to three classes, some with a table of priorities and weights."""
    plain = draw(problems(max_nodes=max_nodes, max_demands=max_demands))
    names = [f"c{i}" for i in range(draw(st.integers(1, 3)))]
    parts = []
    for row in range(len(plain.demands)):
        for name in draw(st.lists(st.sampled_from(names), min_size=1, unique=True)):
            rate = float(draw(st.integers(1, 10)))
            parts.append((*plain.demands.iloc[row][["source", "target"]], rate, name))
    demands = pd.DataFrame(parts, columns=["source", "target", "rate_mbps", "class"])
    tables = {"nodes": plain.nodes, "links": plain.links, "demands": demands}
    if draw(st.booleans()):
        priority = draw(st.lists(st.integers(1, 2), min_size=len(names), max_size=len(names)))
        weight = [float(draw(st.integers(1, 4))) for _ in names]
        tables["classes"] = pd.DataFrame({"class": names, "priority": priority, "weight": weight})
    return Traffic.from_tables(tables)
