"""Failures: the links that still work when switches and links have failed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from planner.arrays import Bools, Ints
from planner.errors import InputError, did_you_mean
from planner_models.multicast.problem.problem import Multicast
from planner_models.multicast.problem.topology import Wiring


@dataclass(frozen=True, kw_only=True, eq=False)
class WorkingLinks:
    """Links with both ends working, and working edge switches.

    up    (aggregation switches, cores) bool
    down  (aggregation switches, edge switches) bool, links within pods
    edge  (edge switches,) bool; hosts of others neither send nor receive
    """

    up: Bools
    down: Bools
    edge: Bools

    @property
    def aggregation(self) -> Bools:
        """Return whether any link of each aggregation switch works, shape (aggregation switches,)."""
        return np.asarray(self.up.any(axis=1) | self.down.any(axis=1), dtype=bool)

    @cached_property
    def part_of_edge(self) -> Ints:
        """Number of the connected part of the fabric that each edge switch is in, shape (edge switches,)."""
        links = sp.csr_array(np.hstack([self.up, self.down]).astype(np.int8))
        graph = sp.block_array([[None, links], [links.T, None]])
        _, component = connected_components(graph, directed=False)
        return np.asarray(component[-self.down.shape[1] :], dtype=np.int64)

    @cached_property
    def joined(self) -> Ints:
        """1 where two aggregation switches are linked to one edge switch, by pair."""
        down = self.down.astype(np.float32)
        return (down @ down.T > 0).astype(np.int64)


def working_links(problem: Multicast) -> WorkingLinks:
    """Return the links of the problem's fabric that work."""
    return find_working_links(problem.wiring, switches=problem.failed_names, links=problem.failed_pairs)


def find_working_links(
    wiring: Wiring, *, switches: Iterable[str] = (), links: Iterable[tuple[str, str]] = ()
) -> WorkingLinks:
    """Return the links that work when these switches, and these links (lower, upper), have failed.

    raises  InputError for a switch or a link that the fabric does not have
    """
    down = wiring.aggregation_pod[:, None] == wiring.edge_pod[None, :]
    up, edge = wiring.up.copy(), np.ones(len(wiring.edges), dtype=bool)
    faults = []
    for name in switches:
        if name in wiring.cores:
            up[:, wiring.cores.get_loc(name)] = False
        elif name in wiring.aggregations:
            up[wiring.aggregations.get_loc(name)] = False
            down[wiring.aggregations.get_loc(name)] = False
        elif name in wiring.edges:
            down[:, wiring.edges.get_loc(name)] = edge[wiring.edges.get_loc(name)] = False
        else:
            faults.append(f"failed: '{name}' is no switch" + did_you_mean(name, wiring.switches))
    for lower, upper in links:
        if lower in wiring.aggregations and upper in wiring.cores:
            up[wiring.aggregations.get_loc(lower), wiring.cores.get_loc(upper)] = False
        elif lower in wiring.edges and upper in wiring.aggregations:
            down[wiring.aggregations.get_loc(upper), wiring.edges.get_loc(lower)] = False
        else:
            faults.append(f"failed: there is no link from '{lower}' up to '{upper}'")
    if faults:
        raise InputError(*faults)
    return WorkingLinks(up=up, down=down, edge=edge)


def draw_failures(wiring: Wiring, count: int, rng: np.random.Generator) -> list[str]:
    """Return `count` aggregation switches that fail, drawn uniformly; InputError for more than there are."""
    limit = len(wiring.aggregations)
    if not 0 <= count <= limit:
        raise InputError(f"failed_aggregations is {count}, must be from 0 to {limit}")
    return wiring.aggregations[np.sort(rng.choice(limit, size=count, replace=False))].tolist()
