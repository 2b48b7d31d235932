"""Order of a change of links: steps in which the links that stay in service carry the demand.

Single moves of links: one that is made takes the ports of others that are removed.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from planner.arrays import Bools, Floats, Ints
from planner_models.topology.plan.balance import balance, capacity_of, loads_of
from planner_models.topology.problem.problem import Fabric, pairs_of

MOST_TRIED: Final = 12
"""Pairs of which a single link is tried, those with the most residual capacity first."""
SHORT_SHARE: Final = 0.99
"""Share of what the links of today and of the plan carry that a step must carry, where that is not all."""


def required_scale(problem: Fabric, *topologies: Ints) -> float:
    """Return the demand scale that steps should carry: 1, or nearly that of the (n, n) topologies."""
    scales = [carried_scale(problem, links) for links in topologies]
    return 1.0 if min(scales) >= 1 else SHORT_SHARE * min(scales)


def carried_scale(problem: Fabric, links: Ints, *, enough: float = 1.0) -> float:
    """Return the demand scale that (n, n) links carry when all demand is routed anew.

    enough  the search stops once it is reached
    """
    capacity = capacity_of(links, problem.link_mbps)
    return balance(problem.demand_mbps, capacity, enough=enough).scale


def order_steps(problem: Fabric, links: Ints) -> list[Ints]:
    """Return the (n, n) changes of links in each step from today's links to (n, n) `links`.

    Each step takes out of service as many links as the demand allows, those with the most residual capacity
    first, and makes those that the plan wants in their place. Where that fails even for one link, single
    links of some pairs are tried, and the one goes that leaves the most capacity.
    """
    present = problem.present
    assert present is not None
    goal = links.astype(np.int64)
    if (goal == present).all():
        return []
    limit = problem.step_limit or int(np.abs(goal - present).sum())
    need = required_scale(problem, present, goal)
    now, steps, size = present.copy(), [], limit
    while (now != goal).any():
        size = min(limit, 2 * size)
        rank = residual_links(problem, now)
        while True:
            change = _choose_change(problem, now, goal, rank, size)
            removed = int(np.maximum(-change, 0).sum()) // 2
            if removed == 0 or carried_scale(problem, now + np.minimum(change, 0), enough=need) >= need:
                break
            if removed == 1:
                change = _spare_one_link(problem, now, goal, rank, need)
                break
            size = min(size, removed) // 2
        steps.append(change)
        now = now + change
    return steps


def _spare_one_link(problem: Fabric, now: Ints, goal: Ints, rank: Floats, need: float) -> Ints:
    """Return the removal of one link that leaves the most capacity, or the first that leaves enough."""
    first, other = np.nonzero(np.triu(now > goal))
    order = np.argsort(-rank[first, other], kind="stable")[:MOST_TRIED]
    best, best_change = -1.0, np.zeros_like(now)
    for index in order.tolist():
        change = np.zeros_like(now)
        _add(change, int(first[index]), int(other[index]), -1)
        scale = carried_scale(problem, now + change, enough=need)
        if scale > best:
            best, best_change = scale, change
        if scale >= need:
            break
    return best_change


def _choose_change(problem: Fabric, now: Ints, goal: Ints, rank: Floats, size: int) -> Ints:
    """Return the (n, n) change of a step that removes at most `size` links, and makes at most as many.

    rank  (n, n) links of pairs with the largest go first
    """
    moves = LinkMoves(problem, now)
    start = moves.links.copy()
    target = goal[moves.one, moves.other]
    rank = rank[moves.one, moves.other]
    made = removed = 0
    for pair in _order_missing(start, target, size):
        removals = moves.find_removals(pair, moves.links > target, rank) if made < size else None
        # a link that is made in this step is not there to be removed
        if removals is None or removed + len(removals) > size:
            continue
        for other_pair in removals:
            moves.change(other_pair, -1)
            rank[other_pair] -= 1
        moves.change(pair, 1)
        made += 1
        removed += len(removals)
    if (moves.links >= target).all() or (moves.links == start).all():
        for other_pair in np.argsort(-rank, kind="stable").tolist():
            count = min(int(moves.links[other_pair] - target[other_pair]), size - removed)
            if count > 0:
                moves.change(other_pair, -count)
                removed += count
    # a plan with more links than ports has no order: its last step makes all of the rest
    return moves.to_matrix(moves.links - start) if (moves.links != start).any() else goal - now


def _order_missing(links: Ints, target: Ints, limit: int) -> list[int]:
    """Return a pair for each of the links that are missing, the largest part of its links first."""
    missing = np.clip(target - links, 0, limit)
    pair = np.repeat(np.arange(len(links)), missing)
    offset = np.concatenate([np.arange(count) for count in missing[missing > 0].tolist()] or [np.zeros(0)])
    fraction = (links[pair] + offset) / target[pair]
    order: list[int] = pair[np.argsort(fraction, kind="stable")].tolist()
    return order


def residual_links(problem: Fabric, links: Ints) -> Floats:
    """Return the (n, n) links between blocks beyond those that a balanced routing of all demand fills."""
    routing = balance(problem.demand_mbps, capacity_of(links, problem.link_mbps))
    load = loads_of(routing.shares * problem.demand_mbps[:, :, None])
    residual: Floats = links - np.maximum(load, load.T) / np.where(
        problem.link_mbps > 0, problem.link_mbps, 1.0
    )
    return residual


def _add(change: Ints, first: int, other: int, links: int) -> None:
    """Change the links of two blocks in place."""
    change[first, other] += links
    change[other, first] += links


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
