"""Topologies by simple rules: a uniform mesh, in proportion to demand, and link by link for most demand."""

from __future__ import annotations

import heapq

import numpy as np

from planner.arrays import Ints
from planner.contract.design import Decision
from planner.options import Options
from planner_models.topology.designs.decision import decide, route_servable
from planner_models.topology.designs.whole_links import approach, fill_ports, round_links
from planner_models.topology.plan.plan import Topology
from planner_models.topology.problem.generators import mesh
from planner_models.topology.problem.problem import Fabric, pairs_of


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
