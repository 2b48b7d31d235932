"""A smaller network with the same optimum: symmetric switches, chains and dead ends are folded.

Four steps, repeated until none applies, none of which changes the largest concurrent flow:

- parallel links become one: traffic on it divides in proportion to their capacities;
- a node with one neighbour leaves: what its links carry is settled by the demands alone. Its own
  demands move to the neighbour;
- a node with two neighbours and no demand leaves: links through it join end to end;
- nodes without demand that are alike become one. Alike are the classes of the coarsest partition in
  which nodes of a class have the same capacity to, and from, every other class (colour
  refinement). Any flow can be averaged over a class: if F of a commodity goes from class C to class
  D in all, then a flow of F times the link's share of all capacity from C to D keeps the balance of
  every node and loads no link more than the average of those links before. So the network of
  classes carries exactly as much. On a fat tree, core switches that lost no link become one, and
  planes that lost none become one; hosts are dead ends.

source  Grohe, Kersting, Mladenov and Schweitzer, "Dimension reduction via colour refinement"
        (ESA 2014), here for flows, where classes are nodes and shares follow capacity
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numba
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from planner_models.traffic.trees import Floats, Graph

Shares = dict[int, float]
"""How much of an arc's traffic each link carries: by link, its share."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Reduced:
    """The small network, and the way back.

    graph          its A arcs between M nodes
    capacity_mbps  (A,)
    node           (N,) node of the small network that stands for each node, -1 where none carries demand
    spread         (E, A) share of each arc's traffic on each link of the network
    leaf, at       (L,) nodes with one neighbour, in the order in which they left, and that neighbour
    up, down       (E, L) share of the traffic that leaves, and enters, at each of them, on each link
    """

    graph: Graph
    capacity_mbps: Floats
    node: NDArray[np.int64]
    spread: sp.csr_array
    leaf: NDArray[np.int64]
    at: NDArray[np.int64]
    up: sp.csr_array
    down: sp.csr_array

    def leaf_ways(
        self, source: NDArray[np.int64], target: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
        """What (K,) pairs pass of leaves on any way: (which pair, leaf, whether up), a row for each."""
        order = np.full(len(self.node), len(self.leaf), dtype=np.int64)
        order[self.leaf] = np.arange(len(self.leaf))
        count = np.zeros(len(source) + 1, dtype=np.int64)
        nothing = np.zeros(0, dtype=np.int64)
        _leaf_ways(source, target, order, self.at, count, nothing, nothing > 0)
        start = np.cumsum(count) - count
        leaf = np.empty(int(start[-1]), dtype=np.int64)
        is_up = np.empty(len(leaf), dtype=np.bool_)
        _leaf_ways(source, target, order, self.at, start.copy(), leaf, is_up)
        return np.repeat(np.arange(len(source)), count[:-1]), leaf, is_up


def reduce(
    *,
    nodes: int,
    tail: NDArray[np.int64],
    head: NDArray[np.int64],
    capacity_mbps: Floats,
    demanding: NDArray[np.bool_],
    symmetry: bool = True,
) -> Reduced:
    """The smallest network that the four steps lead to.

    tail, head     (E,) the links
    capacity_mbps  (E,) positive
    demanding      (N,) whether a node sends or receives; such nodes are never joined with others
    symmetry       also join nodes that are alike
    """
    net = _Network(nodes, demanding)
    ends = zip(tail.tolist(), head.tolist(), capacity_mbps.tolist(), strict=True)
    for link, (u, v, capacity) in enumerate(ends):
        net.join(u, v, capacity, {link: 1.0})
    net.trim(range(nodes))
    while symmetry and (changed := net.quotient()):
        net.trim(changed)
    return net.finish(len(tail))


class _Network:
    def __init__(self, nodes: int, demanding: NDArray[np.bool_]) -> None:
        self.demanding = demanding.tolist()
        self.count = nodes
        self.out: list[dict[int, tuple[float, Shares]]] = [{} for _ in range(nodes)]  # head -> arc
        self.into: list[set[int]] = [set() for _ in range(nodes)]
        self.gone = [False] * nodes
        self.moved = list(range(nodes))  # where a node's demand went
        self.leaves: list[tuple[int, int, Shares, Shares]] = []

    def join(self, u: int, v: int, capacity: float, shares: Shares) -> None:
        """An arc from u to v; beside one that is there already, traffic divides by capacity."""
        if u == v:
            return
        if v in self.out[u]:
            before, others = self.out[u][v]
            both = before + capacity
            merged = {link: share * before / both for link, share in others.items()}
            for link, share in shares.items():
                merged[link] = merged.get(link, 0.0) + share * capacity / both
            self.out[u][v] = (both, merged)
        else:
            self.out[u][v] = (capacity, shares)
            self.into[v].add(u)

    def cut(self, u: int, v: int) -> tuple[float, Shares] | None:
        arc = self.out[u].pop(v, None)
        self.into[v].discard(u)
        return arc

    def trim(self, start: Iterable[int]) -> None:
        """Take out dead ends and chains until there are none."""
        waiting = list(start)
        while waiting:
            v = waiting.pop()
            if self.gone[v]:
                continue
            neighbours = self.into[v].union(self.out[v])
            if len(neighbours) == 1:
                waiting += self._leave(v, *neighbours)
            elif len(neighbours) == 2 and not self.demanding[v]:
                waiting += self._bridge(v, *sorted(neighbours))
            elif not neighbours and not self.demanding[v]:
                self.gone[v] = True

    def _leave(self, v: int, to: int) -> list[int]:
        up, down = self.cut(v, to), self.cut(to, v)
        self.gone[v] = True
        if self.demanding[v]:
            self.leaves.append((v, to, up[1] if up else {}, down[1] if down else {}))
            self.moved[v] = to
            self.demanding[to] = True
        return [to]

    def _bridge(self, v: int, one: int, other: int) -> list[int]:
        for u, w in ((one, other), (other, one)):
            if v in self.out[u] and w in self.out[v]:
                (before, first), (after, second) = self.out[u][v], self.out[v][w]
                shares = dict(first)
                for link, share in second.items():
                    shares[link] = shares.get(link, 0.0) + share
                self.join(u, w, min(before, after), shares)
        for u in (one, other):
            self.cut(u, v)
            self.cut(v, u)
        self.gone[v] = True
        return [one, other]

    def quotient(self) -> list[int]:
        """Join nodes that are alike; returns the nodes that now stand for several."""
        classes: dict[int, list[int]] = {}
        for v, colour in self._colours().items():
            classes.setdefault(colour, []).append(v)
        several = [members for members in classes.values() if len(members) > 1]
        stands = {v: members[0] for members in several for v in members}
        arcs = [
            (u, v, *arc)
            for u in range(self.count)
            for v, arc in self.out[u].items()
            if u in stands or v in stands
        ]
        for u, v, _, _ in arcs:  # all of them before any joins: names of old and new arcs overlap
            self.cut(u, v)
        for u, v, capacity, shares in arcs:
            self.join(stands.get(u, u), stands.get(v, v), capacity, shares)
        for members in several:
            for v in members[1:]:
                self.gone[v] = True
        # whom they join may have become a dead end or part of a chain
        return [v for v in range(self.count) if not self.gone[v]] if several else []

    def _colours(self) -> dict[int, int]:
        """The coarsest partition of nodes in which a class sees every class alike."""
        alive = [v for v in range(self.count) if not self.gone[v]]
        colour = {v: v + 1 if self.demanding[v] else 0 for v in alive}
        kinds = len(set(colour.values()))
        while True:
            seen: dict[object, int] = {}
            colour = {v: seen.setdefault((colour[v], self._view(v, colour)), len(seen)) for v in alive}
            if len(seen) == kinds:
                return colour
            kinds = len(seen)

    def _view(self, v: int, colour: dict[int, int]) -> tuple[object, ...]:
        if self.demanding[v]:  # on its own already
            return ()
        sends: dict[int, list[float]] = {}
        gets: dict[int, list[float]] = {}
        for w in self.out[v]:
            sends.setdefault(colour[w], []).append(self.out[v][w][0])
        for u in self.into[v]:
            gets.setdefault(colour[u], []).append(self.out[u][v][0])
        return tuple(
            tuple(sorted((kind, sum(sorted(capacities))) for kind, capacities in side.items()))
            for side in (sends, gets)
        )

    def finish(self, links: int) -> Reduced:
        alive = [v for v in range(self.count) if not self.gone[v]]
        place = {v: i for i, v in enumerate(alive)}
        node = np.full(self.count, -1, dtype=np.int64)
        for v in range(self.count):
            end = v
            while self.moved[end] != end:
                end = self.moved[end]
            if self.demanding[v]:
                node[v] = place[end]
        arcs = [(u, v, *arc) for u in alive for v, arc in self.out[u].items()]
        ends = np.array([(place[u], place[v]) for u, v, _, _ in arcs], dtype=np.int64).reshape(-1, 2)
        return Reduced(
            graph=Graph.of(len(alive), ends[:, 0], ends[:, 1]),
            capacity_mbps=np.array([capacity for _, _, capacity, _ in arcs], dtype=float),
            node=node,
            spread=_shares([shares for *_, shares in arcs], links),
            leaf=np.array([leaf[0] for leaf in self.leaves], dtype=np.int64),
            at=np.array([leaf[1] for leaf in self.leaves], dtype=np.int64),
            up=_shares([leaf[2] for leaf in self.leaves], links),
            down=_shares([leaf[3] for leaf in self.leaves], links),
        )


def _shares(columns: list[Shares], links: int) -> sp.csr_array:
    places = np.array([(link, j) for j, shares in enumerate(columns) for link in shares]).reshape(-1, 2)
    values = np.array([share for shares in columns for share in shares.values()], dtype=float)
    return sp.csr_array((values, (places[:, 0], places[:, 1])), shape=(links, len(columns)))


@numba.njit(cache=True)
def _leaf_ways(source, target, order, at, place, leaf, is_up):  # type: ignore[no-untyped-def]
    """Climb from both ends until they meet or neither is a leaf; without room for rows, count them."""
    for k in range(len(source)):
        s, t = source[k], target[k]
        while s != t:
            first = min(order[s], order[t])
            if first == len(at):
                break
            if len(leaf):
                leaf[place[k]] = first
                is_up[place[k]] = order[s] == first
            place[k] += 1
            if order[s] == first:
                s = at[first]
            else:
                t = at[first]
