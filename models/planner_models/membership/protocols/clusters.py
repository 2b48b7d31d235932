"""Resource discovery by growing clusters (Haeupler and Malkhi 2015, Algorithms 1 to 5), process by process.

Clusters merge at random (`initialize`), then discover neighbouring clusters, inflate lists that are too
short, and merge into sampled centres until few are left, which learn of all others. A step between clusters
takes three rounds: members push to their centre, the step itself, members pull from their centre.

The printed Algorithm 2 contradicts the text. Its line 4 lets clusters with several requests become joiners,
the text joinees; line 9 awaits a joiner signal where line 5 sends joinee signals. The text is followed here,
and `reading="printed"` runs line 4 as it is printed. Algorithm 1 begins with clusters of log^(2/eps) n
processes, the proof with log^2 n: `first_size` is free.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

import numpy as np

from planner_models.membership.protocols.discovery import Discovery, strong_diameter

Reading = Literal["text", "printed"]
ROUNDS_OF_STEP: Final = 3
CENTRES: Final = 1.0
"""The constant c of the probability c log n / d to become a centre."""
MAX_ITERATIONS: Final = 64


@dataclass(frozen=True, kw_only=True)
class Setting:
    """Free constants of the algorithm.

    epsilon       a cluster of size s discovers s^(1 - epsilon) others
    first_size    exponent of log n that the main loop begins with; None: 2 / epsilon
    initial       iterations of the initialization for each log log n
    """

    epsilon: float = 0.5
    first_size: float | None = None
    initial: float = 2.0


@dataclass(eq=False)
class Clusters:
    """Clusters of a run.

    knows     addresses that each process knows at first
    centre    (n,) centre of each process
    members   processes by centre
    """

    knows: Mapping[int, frozenset[int]]
    centre: np.ndarray
    members: dict[int, list[int]]
    rng: np.random.Generator
    messages: list[int] = field(default_factory=list)
    busiest: int = 0

    @classmethod
    def single(cls, edges: np.ndarray, rng: np.random.Generator) -> Clusters:
        """Return clusters of one process each."""
        count = len(edges)
        knows = {u: frozenset(np.flatnonzero(edges[u]).tolist()) - {u} for u in range(count)}
        return cls(knows=knows, centre=np.arange(count), members={u: [u] for u in range(count)}, rng=rng)

    def step(self, sent: Mapping[int, int]) -> None:
        """Count one step: messages that each cluster sends, and those within clusters before and after."""
        inside = len(self.centre) - len(self.members)
        largest = max((len(members) for members in self.members.values()), default=1)
        self.messages += [inside, sum(sent.values()), inside]
        self.busiest = max(self.busiest, largest - 1, *sent.values(), 0)

    def neighbours(self, centre: int) -> set[int]:
        """Return the processes outside a cluster that its members know."""
        members = self.members[centre]
        return set().union(*(self.knows[u] for u in members)).difference(members)

    def merge(self, joins: Mapping[int, int]) -> None:
        """Merge clusters into those that accepted them; of a circle the smallest centre stays."""
        for centre in joins:
            root, seen = centre, {centre}
            while root in joins and joins[root] not in seen:
                root = joins[root]
                seen.add(root)
            root = min(seen) if root in joins else root
            for u in self.members[centre] if root != centre else ():
                self.centre[u] = root
        self.members = {}
        for u, centre in enumerate(self.centre.tolist()):
            self.members.setdefault(centre, []).append(u)

    def split(self, size: float) -> None:
        """Split clusters that are larger than a size into equal ones below it."""
        for centre, members in list(self.members.items()):
            parts = math.ceil(len(members) / max(size, 1.0))
            if parts > 1:
                del self.members[centre]
                for piece in np.array_split(np.array(members), parts):
                    self.members[int(piece[0])] = piece.tolist()
                    self.centre[piece] = int(piece[0])


def discover(
    edges: np.ndarray, rng: np.random.Generator, setting: Setting | None = None
) -> tuple[Discovery, bool]:
    """Return the rounds and messages until all know all, and whether the last list was as long as printed.

    edges   (n, n) whether a process knows another one
    raises  ValueError for a graph that is not strongly connected
    """
    setting = setting or Setting()
    diameter = strong_diameter(edges)
    run, count = Clusters.single(edges, rng), len(edges)
    log_n = math.log2(max(count, 2))
    for _ in range(math.ceil(setting.initial * math.log2(max(log_n, 2.0)))):
        initialize(run, "text")
    exponent = 2 / setting.epsilon if setting.first_size is None else setting.first_size
    size = log_n**exponent
    run.split(size)
    for _ in range(MAX_ITERATIONS):
        lists = discover_neighbours(run, size, 2 / setting.epsilon)
        target_degree = size ** (1 - setting.epsilon)
        lists = inflate(run, lists, target_degree, diameter)
        sample_and_merge(run, lists, target_degree, log_n)
        before, size = size, next_size(size, setting.epsilon, log_n)
        run.split(size)
        if size >= math.sqrt(count) * log_n or size <= before * (1 + 1e-9):
            break
    is_printed = _inform_all(run, diameter)
    return Discovery(rounds=len(run.messages), messages=tuple(run.messages), busiest=run.busiest), is_printed


def next_size(size: float, epsilon: float, log_n: float) -> float:
    """Return the size of clusters after an iteration of the main loop (Algorithm 1, line 10).

    From log^2 n, where the proof begins, it does not grow with an epsilon of 1/2: s d / log n is s.
    """
    return float(size * size ** (1 - epsilon) / log_n)


def initialize(run: Clusters, reading: Reading) -> None:
    """Merge clusters once at random (Algorithm 2, one iteration).

    A cluster with several requests retracts its own and accepts the others; any other one retracts its own
    by half a chance, and accepts the request that it has unless its own was accepted.
    """
    requests = _request(run)
    incoming: dict[int, list[int]] = {}
    for centre, target in requests.items():
        incoming.setdefault(target, []).append(centre)
    popular = {centre for centre, others in incoming.items() if len(others) > 1}
    joins = _join_popular(requests, popular, reading)
    for centre, target in requests.items():
        is_open = centre not in joins and centre not in popular and target not in popular
        if is_open and target not in joins and run.rng.random() < 0.5:
            joins[centre] = target
    run.step(dict.fromkeys(run.members, 1))
    run.step(dict.fromkeys(run.members, 1))
    run.merge(joins)


def _join_popular(requests: Mapping[int, int], popular: set[int], reading: Reading) -> dict[int, int]:
    """Return the clusters that join at once: those with several requests accept, or join as printed."""
    accepting = reading == "text"
    return {
        centre: target
        for centre, target in requests.items()
        if (target in popular) is accepting and (centre in popular) is not accepting
    }


def _request(run: Clusters) -> dict[int, int]:
    """Return the cluster of one random neighbour of each cluster."""
    requests = {}
    for centre in run.members:
        near = sorted(run.neighbours(centre))
        if near:
            requests[centre] = int(run.centre[near[int(run.rng.integers(len(near)))]])
    return requests


def discover_neighbours(run: Clusters, size: float, repetitions: float) -> dict[int, set[int]]:
    """Return clusters that each one finds beside it (Algorithm 3): 2r times it asks up to s^(1 - 1/r)."""
    lists: dict[int, set[int]] = {centre: set() for centre in run.members}
    remaining = {centre: run.neighbours(centre) for centre in run.members}
    asked = max(int(size ** (1 - 1 / repetitions)), 1)
    for _ in range(2 * math.ceil(repetitions)):
        if not any(remaining.values()):
            break
        sent = {}
        for centre, open_ones in remaining.items():
            pool = sorted(open_ones)
            if len(pool) > asked:
                pool = run.rng.choice(pool, asked, replace=False).tolist()
            sent[centre] = len(pool)
            for other in {int(run.centre[u]) for u in pool}:
                lists[centre].add(other)
                open_ones.difference_update(run.members[other])
        run.step(sent)
    return lists


def inflate(
    run: Clusters, lists: dict[int, set[int]], target_degree: float, diameter: int
) -> dict[int, set[int]]:
    """Return longer lists (Algorithm 4): log D times clusters with short ones pull those of neighbours."""
    for _ in range(max(math.ceil(math.log2(max(diameter, 2))), 1)):
        lean = [centre for centre, others in lists.items() if len(others) < target_degree]
        pulled = {
            centre: set().union(lists[centre], *(lists[other] for other in lists[centre])) - {centre}
            for centre in lean
        }
        run.step({centre: len(lists[centre]) for centre in lean} or {next(iter(lists)): 0})
        lists = {**lists, **pulled}
    return lists


def sample_and_merge(
    run: Clusters, lists: Mapping[int, set[int]], target_degree: float, log_n: float
) -> None:
    """Merge clusters into sampled centres (Algorithm 5): a cluster is one by a chance of c log n / d."""
    chance = min(CENTRES * log_n / target_degree, 1.0)
    centres = {centre for centre in run.members if run.rng.random() < chance}
    joins, sent = {}, {}
    for centre in run.members:
        if centre not in centres:
            contacted = sorted(lists[centre])[: max(math.ceil(target_degree), 1)]
            sent[centre] = len(contacted)
            near = [other for other in contacted if other in centres]
            if near:
                joins[centre] = near[int(run.rng.integers(len(near)))]
    run.step(sent or {next(iter(run.members)): 0})
    run.merge(joins)


def _inform_all(run: Clusters, diameter: int) -> bool:
    """Let all clusters learn of all, and tell their members; return whether sqrt(n) was long enough a list.

    Where more clusters are left, those with a list of sqrt(n) go on until it has all.
    """
    count = len(run.centre)
    lists = discover_neighbours(run, float(count), 4.0)
    lists = inflate(run, lists, math.sqrt(count), diameter)
    is_printed = _knows_all(run, lists)
    while not _knows_all(run, lists):
        lists = inflate(run, lists, float(count), diameter)
    run.messages += [count - len(run.members)]
    return is_printed


def _knows_all(run: Clusters, lists: Mapping[int, Iterable[int]]) -> bool:
    return all(len(set(others) | {centre}) == len(run.members) for centre, others in lists.items())
