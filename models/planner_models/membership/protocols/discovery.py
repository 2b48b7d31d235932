"""Resource discovery: all members of a directed graph learn of each other (Haeupler and Malkhi 2015).

A message carries every address that its sender knows. `flood` sends to all that are known, `name_dropper` to
a random one of them; `rendezvous_rounds` is for a tree of seeds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

MAX_ROUNDS = 10_000


@dataclass(frozen=True, kw_only=True)
class Discovery:
    """Outcome of a protocol: its rounds, and the messages of each."""

    rounds: int
    messages: tuple[int, ...]


def flood(edges: np.ndarray) -> Discovery:
    """Return the rounds until all know all, where each sends all it knows to all it knows.

    edges   (n, n) whether a member knows another one
    raises  ValueError where some can never be known: the graph is not weakly connected
    """
    return _spread(edges, None)


def name_dropper(edges: np.ndarray, rng: np.random.Generator) -> Discovery:
    """Return the same where each sends all it knows to one random known member (Harchol-Balter 1999)."""
    return _spread(edges, rng)


def _spread(edges: np.ndarray, rng: np.random.Generator | None) -> Discovery:
    """Run flooding, or NameDropper where random numbers are given; a receiver learns its sender too."""
    size = len(edges)
    known = edges.astype(bool) | np.eye(size, dtype=bool)
    _require_connected(known)
    messages: list[int] = []
    while not known.all():
        sends = known & ~np.eye(size, dtype=bool)
        if rng is not None:
            sends = _select_one(sends, rng)
        messages.append(int(sends.sum()))
        heard = (sends.T.astype(np.float32) @ known.astype(np.float32)) > 0
        known = known | heard
        if len(messages) > MAX_ROUNDS:
            raise ValueError(f"not complete after {MAX_ROUNDS:,} rounds")
    return Discovery(rounds=len(messages), messages=tuple(messages))


def _select_one(sends: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return one random receiver of each sender that has any, (n, n)."""
    draw = np.where(sends, rng.random(sends.shape), -1.0)
    selected = np.zeros_like(sends)
    rows = np.flatnonzero(sends.any(axis=1))
    selected[rows, draw[rows].argmax(axis=1)] = True
    return selected


def _require_connected(known: np.ndarray) -> None:
    """Raise ValueError for a graph of several components."""
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import connected_components

    count, _ = connected_components(csr_matrix(known), directed=True, connection="weak")
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
