"""Topologies by simple rules: a uniform mesh, in proportion to demand, and link by link for most demand.

Whole numbers of links: rounding that keeps ports and the limit on moves, and changes towards a goal.
"""

from __future__ import annotations

import heapq
from typing import Final

import numpy as np

from planner.arrays import Floats, Ints
from planner.contract.design import Decision
from planner.options import Options
from planner.search.tolerances import ROUNDING
from planner_models.topology.designs.decision import decide, route_servable
from planner_models.topology.plan.plan import Topology
from planner_models.topology.plan.steps import LinkMoves
from planner_models.topology.problem.generators import mesh
from planner_models.topology.problem.problem import Fabric, pairs_of

SCALING_ROUNDS: Final = 300
WHOLE: Final = ROUNDING


@route_servable
def plan_mesh(problem: Fabric, *, options: Options = Options()) -> Decision[Topology]:
    """Link all blocks equally, whatever the demand; traffic is routed direct or by one transit block."""
    return decide(problem, approach(problem, mesh(problem.ports)), options=options)


@route_servable
def plan_proportional(problem: Fabric, *, options: Options = Options()) -> Decision[Topology]:
    """Link blocks in proportion to the demand between them, as far as ports allow."""
    return decide(problem, approach(problem, match_demand(problem)), options=options)


@route_servable
def plan_matching(problem: Fabric, *, options: Options = Options()) -> Decision[Topology]:
    """Give each link to the two blocks with the most demand that no link between them carries yet (greedy).

    Ports that are then left are linked in proportion to demand.
    """
    return decide(problem, approach(problem, match_heaviest(problem)), options=options)


def match_demand(problem: Fabric) -> Ints:
    """Return (n, n) links in proportion to demand, both directions added, over the rate of a link."""
    rate = np.where(problem.link_mbps > 0, problem.link_mbps, 1.0)
    return round_links(problem, fill_ports(problem, (problem.demand_mbps + problem.demand_mbps.T) / rate))


def match_heaviest(problem: Fabric) -> Ints:
    """Return (n, n) links, each for the two blocks with the most demand that is left.

    A link carries up to its rate each way. Without demand that is left, links go to the blocks with the most
    demand for each link.
    """
    first, other = pairs_of(problem)
    rate = problem.link_mbps[first, other]
    both = problem.demand_mbps[first, other], problem.demand_mbps[other, first]
    free = problem.ports.copy()
    links: Ints = np.zeros((len(free), len(free)), dtype=np.int64)
    total = both[0] + both[1]

    def gain(pair: int, count: int) -> tuple[float, float]:
        taken = count * rate[pair]
        carried = sum(float(min(max(way[pair] - taken, 0.0), rate[pair])) for way in both)
        return carried, float(total[pair]) / (count + 1)

    queue = [(-gain(p, 0)[0], -gain(p, 0)[1], p) for p in np.flatnonzero(total > 0).tolist()]
    heapq.heapify(queue)
    while queue:
        _, _, pair = heapq.heappop(queue)
        a, b = int(first[pair]), int(other[pair])
        if free[a] <= 0 or free[b] <= 0:
            continue
        links[a, b] += 1
        links[b, a] += 1
        free[a] -= 1
        free[b] -= 1
        carried, each = gain(pair, int(links[a, b]))
        heapq.heappush(queue, (-carried, -each, pair))
    return links


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
