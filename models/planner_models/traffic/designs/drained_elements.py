"""Links and nodes to take out of use, by their names, and the network without them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from planner.arrays import Bools, Ints
from planner.errors import InputError
from planner_models.traffic.problem.element_names import ElementNames
from planner_models.traffic.problem.problem import Traffic


@dataclass(frozen=True, kw_only=True, eq=False)
class Drained:
    """Links (E,) and nodes (N,) to take out of use."""

    links: Bools
    nodes: Bools

    def forbidden(self, problem: Traffic, demand: Ints, link: Ints) -> Bools:
        """Return whether each demand must not use each link, (P,)."""
        tail, head = problem.tail[link], problem.head[link]
        leaves = self.nodes[tail] & (tail != problem.source[demand])
        enters = self.nodes[head] & (head != problem.target[demand])
        returns = self.nodes[head] & (head == problem.source[demand])
        ends = self.nodes[tail] & (tail == problem.target[demand])
        return np.asarray(self.links[link] | leaves | enters | returns | ends)


def find_elements(problem: Traffic, links: tuple[str, ...], nodes: tuple[str, ...]) -> dict[str, Drained]:
    """Return the links and the nodes of each name."""
    names = ElementNames(problem)
    elements: dict[str, Drained] = {}
    for name in links:
        rows = names.match_links(name, "links")
        is_link = np.zeros(len(problem.links), dtype=bool)
        is_link[rows] = True
        elements[name] = Drained(links=is_link, nodes=np.zeros(len(problem.nodes), dtype=bool))
    for name in nodes:
        for node in names.match_nodes(name, "nodes").tolist():
            is_node = np.zeros(len(problem.nodes), dtype=bool)
            is_node[node] = True
            label = str(problem.nodes["node"].iloc[node])
            elements[label] = Drained(links=np.zeros(len(problem.links), dtype=bool), nodes=is_node)
    if names.faults:
        raise InputError(*names.faults)
    return elements


def join(problem: Traffic, elements: dict[str, Drained]) -> Drained:
    """Return all elements as one."""
    is_link = np.zeros(len(problem.links), dtype=bool)
    is_node = np.zeros(len(problem.nodes), dtype=bool)
    for element in elements.values():
        is_link |= element.links
        is_node |= element.nodes
    return Drained(links=is_link, nodes=is_node)


def remove(problem: Traffic, drained: Drained) -> Traffic:
    """Return the problem without drained links, in which a drained node is two: one sends, one receives.

    Nothing can pass them then, and all else stays as it is.
    """
    names = problem.nodes["node"].astype(str).to_numpy(dtype=object)
    receiver = names.copy()
    for node in np.flatnonzero(drained.nodes).tolist():
        name = f"{names[node]} (receives)"
        while name in set(names):
            name += "'"
        receiver[node] = name
    up = ~drained.links
    links = problem.links[up].assign(head=receiver[problem.head[up]], tail=names[problem.tail[up]])
    demands = problem.demands[["source", "target", "rate_mbps"]].assign(
        source=names[problem.source], target=receiver[problem.target]
    )
    every = np.r_[names, receiver[drained.nodes]]
    return Traffic(nodes=pd.DataFrame({"node": every}), links=links, demands=demands)
