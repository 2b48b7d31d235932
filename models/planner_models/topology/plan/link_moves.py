"""Single moves of links: one that is made takes the ports of others that are removed."""

from __future__ import annotations

import numpy as np

from planner.arrays import Bools, Floats, Ints
from planner_models.topology.problem.problem import Fabric, pairs_of


class LinkMoves:
    """Links between every two blocks while single ones are moved.

    links   (P,) links of each pair
    free    (n,) ports of each block without a link
    """

    def __init__(self, problem: Fabric, links: Ints) -> None:
        """Begin with (n, n) links."""
        self.one, self.other = pairs_of(problem)
        self.links: Ints = links[self.one, self.other].copy()
        self.free: Ints = problem.ports - links.sum(axis=1)
        count = len(problem.ports)
        self._pairs = [np.flatnonzero((self.one == row) | (self.other == row)) for row in range(count)]

    def find_removals(self, pair: int, may_go: Bools, rank: Floats) -> list[int] | None:
        """Return the pairs that must lose a link for one more of `pair`; None where that is impossible.

        may_go  (P,) whether a pair may lose a link
        rank    (P,) those of the largest rank go first
        """
        removed: list[int] = []
        for end in (int(self.one[pair]), int(self.other[pair])):
            if self.free[end] > 0:
                continue
            candidates = self._pairs[end]
            candidates = candidates[may_go[candidates] & (self.links[candidates] > 0) & (candidates != pair)]
            if not len(candidates):
                return None
            removed.append(int(candidates[np.argmax(rank[candidates])]))
        return removed

    def change(self, pair: int, links: int) -> None:
        """Make links of a pair, or remove some where `links` is negative."""
        self.links[pair] += links
        self.free[self.one[pair]] -= links
        self.free[self.other[pair]] -= links

    def to_matrix(self, links: Ints | None = None) -> Ints:
        """Return (n, n) links of all pairs: these, or other (P,) ones."""
        matrix: Ints = np.zeros((len(self.free), len(self.free)), dtype=np.int64)
        matrix[self.one, self.other] = matrix[self.other, self.one] = self.links if links is None else links
        return matrix
