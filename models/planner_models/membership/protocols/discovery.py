"""Resource discovery: all members of a directed graph learn of each other (Haeupler and Malkhi 2015).

A message carries every address that its sender knows. `flood` sends to all that are known, `name_dropper` to
a random one of them; `rendezvous_rounds` is for a tree of seeds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

MAX_ROUNDS = 10_000
WORDS = 4_000_000
"""Words of 64 bits of sets that are united at once."""


@dataclass(frozen=True, kw_only=True)
class Discovery:
    """Outcome of a protocol: its rounds, the messages of each, and the most of one member in a round."""

    rounds: int
    messages: tuple[int, ...]
    busiest: int = 0


def pack_rows(is_in: np.ndarray) -> np.ndarray:
    """Return rows of booleans as words of 64 bits, in the order of bytes of `numpy.packbits`."""
    size = is_in.shape[1]
    padded = np.pad(is_in, ((0, 0), (0, -size % 64)))
    return np.packbits(padded, axis=1).view(np.uint64)


def flood(edges: np.ndarray) -> Discovery:
    """Return the rounds until all know all, where each sends all it knows to all it knows.

    A receiver learns its sender too, so that after the first round members know each other both ways, and
    each further round doubles the distance at which they do: only distances are computed.

    edges   (n, n) whether a member knows another one
    raises  ValueError where some can never be known: the graph is not weakly connected
    """
    knows = edges.astype(bool) | np.eye(len(edges), dtype=bool)
    _require_connected(knows)
    if knows.all():
        return Discovery(rounds=0, messages=())
    degree = knows.sum(axis=1) - 1
    messages, busiest = [int(degree.sum())], int((degree + knows.sum(axis=0) - 1).max())
    near = _share_once(knows)
    balls = _grow_balls(near)
    radius = 1
    while radius < len(balls):
        sizes = balls[radius - 1]
        messages.append(int(sizes.sum()))
        busiest = max(busiest, int(2 * sizes.max()))
        radius *= 2
    return Discovery(rounds=len(messages), messages=tuple(messages), busiest=busiest)


def _share_once(knows: np.ndarray) -> list[np.ndarray]:
    """Return the neighbours of each member after one round, in which each sends its list to those on it."""
    neighbours: list[set[int]] = [set(np.flatnonzero(row).tolist()) for row in knows]
    for row in knows:
        listed = np.flatnonzero(row).tolist()
        for receiver in listed:
            neighbours[receiver].update(listed)
    return [np.array(sorted(others - {member})) for member, others in enumerate(neighbours)]


def _grow_balls(near: list[np.ndarray]) -> list[np.ndarray]:
    """Return the others within each distance of each member, (n,) for distances 1, 2, ... until all are.

    Sets are rows of bits, and each step unites those of neighbours.
    """
    size = len(near)
    lists = [np.append(others, member) for member, others in enumerate(near)]
    first = np.concatenate([[0], np.cumsum([len(others) for others in lists])])
    flat = np.concatenate(lists)
    reached = pack_rows(np.eye(size, dtype=bool))
    rows = max(1, WORDS * size // (max(len(flat), 1) * reached.shape[1]))
    sizes: list[np.ndarray] = []
    while not sizes or (sizes[-1] < size - 1).any():
        parts = []
        for start in range(0, size, rows):
            end = min(start + rows, size)
            lists_of = flat[first[start] : first[end]]
            parts.append(np.bitwise_or.reduceat(reached[lists_of], first[start:end] - first[start], axis=0))
        reached = np.concatenate(parts)
        sizes.append(np.bitwise_count(reached).sum(axis=1, dtype=np.int64) - 1)
    return sizes


def name_dropper(edges: np.ndarray, rng: np.random.Generator) -> Discovery:
    """Return the same where each sends all it knows to one random known member (Harchol-Balter 1999)."""
    knows = edges.astype(bool) | np.eye(len(edges), dtype=bool)
    _require_connected(knows)
    size = len(knows)
    bits, itself = pack_rows(knows), pack_rows(np.eye(size, dtype=bool))
    messages: list[int] = []
    busiest = 0
    while (np.bitwise_count(bits).sum(axis=1, dtype=np.int64) < size).any():
        senders, receivers = _select_contacts((bits & ~itself).view(np.uint8), rng)
        messages.append(len(senders))
        order = np.argsort(receivers, kind="stable")
        hearers, first = np.unique(receivers[order], return_index=True)
        heard = np.bitwise_or.reduceat(bits[senders[order]], first, axis=0)
        bits[hearers] |= heard
        busiest = max(busiest, int(np.bincount(receivers, minlength=size).max()) + 1)
        if len(messages) > MAX_ROUNDS:
            raise ValueError(f"not complete after {MAX_ROUNDS:,} rounds")
    return Discovery(rounds=len(messages), messages=tuple(messages), busiest=busiest)


def _select_contacts(bits: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return one random set bit of each row that has any: rows, and columns.

    The byte that holds it is found among running counts, then the bit among eight.
    """
    counts = np.cumsum(np.bitwise_count(bits), axis=1, dtype=np.int32)
    rows = np.flatnonzero(counts[:, -1] > 0)
    target = rng.integers(counts[rows, -1])
    byte = (counts[rows] > target[:, None]).argmax(axis=1)
    before = counts[rows, byte] - np.bitwise_count(bits[rows, byte])
    cells = np.unpackbits(bits[rows, byte][:, None], axis=1)
    inside = (np.cumsum(cells, axis=1) > (target - before)[:, None]).argmax(axis=1)
    return rows, 8 * byte + inside


def start_graph(members: int, start: str, rng: np.random.Generator) -> np.ndarray:
    """Return whom each member knows at first, (n, n): three random others, or neighbours on a grid or ring.

    A grid is as square as its number allows; a ring is one way.
    """
    edges = np.zeros((members, members), dtype=bool)
    row = np.arange(members)
    if start == "ring":
        edges[row, (row + 1) % members] = True
    elif start == "grid":
        width = math.ceil(math.sqrt(members))
        right = row[(row % width < width - 1) & (row + 1 < members)]
        below = row[row + width < members]
        edges[right, right + 1] = edges[right + 1, right] = True
        edges[below, below + width] = edges[below + width, below] = True
    else:
        others = rng.integers(0, members - 1, (members, min(3, members - 1)))
        others += others >= row[:, None]
        edges[row[:, None], others] = True
        edges[row, (row + 1) % members] = True  # so that a way leads from each to each
    return edges


def strong_diameter(edges: np.ndarray) -> int:
    """Return the longest of the shortest directed paths; raises ValueError where there is none for a pair."""
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import connected_components

    count, _ = connected_components(csr_matrix(edges), directed=True, connection="strong")
    if count > 1:
        raise ValueError(
            f"edges: {count} groups of members cannot reach each other, the graph must be strongly connected"
        )
    near = [np.flatnonzero(row & (np.arange(len(edges)) != u)) for u, row in enumerate(edges)]
    return len(_grow_balls(near)) if len(edges) > 1 else 0


def _require_connected(knows: np.ndarray) -> None:
    """Raise ValueError for a graph of several components."""
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import connected_components

    count, _ = connected_components(csr_matrix(knows), directed=True, connection="weak")
    if count > 1:
        raise ValueError(f"edges: {count} groups of members do not know each other, must be one")


def weak_diameter(edges: np.ndarray) -> int:
    """Return the longest of the shortest paths where directions are ignored."""
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import shortest_path

    return int(shortest_path(csr_matrix(edges), directed=False, unweighted=True).max())


def inform_star(members: int, sends: int) -> int:
    """Return the rounds until all of a star know its centre's list, with `sends` messages a member and round.

    Those that know send: one round multiplies them by `sends + 1`.
    """
    know, rounds = 1, 0
    while know < members:
        know += min(know * sends, members - know)
        rounds += 1
    return rounds


def rendezvous_rounds(members: int, degree: int) -> int:
    """Return the rounds of a tree of seeds: addresses go up to its root, and the list comes down."""
    if members <= 1:
        return 0
    return 2 * math.ceil(round(math.log(members) / math.log(degree), 9))
