"""Whole numbers of links: rounding that keeps ports and the limit on moves, and changes towards a goal."""

from __future__ import annotations

from typing import Final

import numpy as np

from planner.arrays import Floats, Ints
from planner.search.tolerances import ROUNDING
from planner_models.topology.plan.link_moves import LinkMoves
from planner_models.topology.problem.problem import Fabric

SCALING_ROUNDS: Final = 300
WHOLE: Final = ROUNDING


def fill_ports(problem: Fabric, fractional: Floats) -> Floats:
    """Return (n, n) fractional links in the proportions of symmetric `fractional` that use the blocks' ports.

    source  Sinkhorn and Knopp 1967, for a symmetric matrix; blocks that cannot use all ports keep the rest
    """
    weight = np.maximum(fractional, 0.0)
    factor = np.ones(len(weight))
    for _ in range(SCALING_ROUNDS):
        line = weight @ factor
        full = np.divide(problem.ports, line, out=np.zeros(len(line)), where=line > 0)
        factor = np.sqrt(factor * full)
    links: Floats = weight * np.outer(factor, factor)
    over = links.sum(axis=1) / np.maximum(problem.ports, 1)
    # where the proportions cannot be kept, no block may exceed its ports
    fitting: Floats = links / np.maximum(1.0, np.maximum.outer(over, over))
    return fitting


def round_links(problem: Fabric, links: Floats) -> Ints:
    """Return whole (n, n) links near fractional ones, within ports and the limit on moves.

    Links are rounded down; then single links go where the largest part was cut off, and those whose ports
    are left over go where there are fewest for what was wanted.
    """
    moves = LinkMoves(problem, np.floor(links + WHOLE).astype(np.int64))
    want = links[moves.one, moves.other]
    present = None if problem.present is None else problem.present[moves.one, moves.other]
    limit = np.inf if problem.move_limit is None else problem.move_limit
    left = limit - count_made(problem, moves.to_matrix())

    def give(pair: int) -> bool:
        nonlocal left
        is_made = present is None or bool(moves.links[pair] >= present[pair])
        if moves.free[moves.one[pair]] <= 0 or moves.free[moves.other[pair]] <= 0 or (is_made and left <= 0):
            return False
        moves.change(pair, 1)
        left -= is_made
        return True

    for pair in np.argsort(moves.links - want, kind="stable").tolist():
        if want[pair] - moves.links[pair] > WHOLE:
            give(pair)
    while True:
        is_open = (moves.free[moves.one] > 0) & (moves.free[moves.other] > 0)
        ratio = (moves.links + 1) / np.maximum(want, 1e-12)
        added = 0
        for pair in np.argsort(ratio, kind="stable").tolist():
            added += int(is_open[pair] and give(pair))
        if not added:
            return moves.to_matrix()


def approach(problem: Fabric, goal: Ints) -> Ints:
    """Return the links that come nearest to (n, n) `goal` from those of today, within the limit on moves.

    Links that the goal lacks most are made first; those that give way are where the goal has fewest for what
    there is.
    """
    present, limit = problem.present, problem.move_limit
    if present is None or limit is None:
        return goal
    moves = LinkMoves(problem, present)
    want = goal[moves.one, moves.other]
    for _ in range(limit):
        missing = want - moves.links
        rank = -missing / np.maximum(moves.links, 1)
        for pair in np.argsort(-missing / np.maximum(want, 1), kind="stable").tolist():
            removals = moves.find_removals(pair, missing < 0, rank) if missing[pair] > 0 else None
            if removals is not None:
                for other_pair in removals:
                    moves.change(other_pair, -1)
                moves.change(pair, 1)
                break
        else:
            break
    return moves.to_matrix()


def count_made(problem: Fabric, links: Ints) -> int:
    """Return the number of (n, n) new links; 0 without links of today."""
    return 0 if problem.present is None else int(np.maximum(links - problem.present, 0).sum()) // 2
