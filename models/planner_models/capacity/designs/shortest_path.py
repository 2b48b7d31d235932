"""Planning by hand: each demand takes its shortest path in each state, and links get enough capacity."""

from __future__ import annotations

from typing import Final

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import dijkstra

from planner.arrays import Bools, Floats
from planner.contract.design import Decision
from planner.options import Options
from planner_models.capacity.designs.decision import decide
from planner_models.capacity.designs.rounding import cheapest_modules
from planner_models.capacity.plan.plan import Purchases
from planner_models.capacity.problem.problem import CapacityPlanning
from planner_models.capacity.routing import Arcs, capacity_by_year, down_links, required_rate

KEPT: Final = frozenset({"limits", "capacity"})
NO_NODE: Final = -9999  # of scipy's predecessors


def plan(problem: CapacityPlanning, *, options: Options = Options()) -> Decision[Purchases]:
    """Route each demand on its shortest path in each state, and buy capacity for the busiest state of a link.

    Paths are shortest in kilometres where all lengths are known, else in links; of several one is taken. A
    demand with tunnels takes the shortest of them that is up.
    """
    counts = np.zeros((len(problem.year_numbers), len(problem.options.link)))
    arcs = Arcs.of(problem)
    for year in range(len(counts)):
        bought = capacity_by_year(problem, counts)[year]
        needed = np.zeros(len(problem.lines))
        for state in range(1 + len(problem.states.names)):
            up = problem.is_usable & ~down_links(problem, state)
            rate = required_rate(problem, year, state)
            load = _shortest_path_load(problem, arcs, up, rate) + _tunnel_load(problem, arcs, up, rate)
            np.maximum.at(needed, arcs.row_line, load / problem.utilization_limit[state])
        for line in np.flatnonzero(needed > bought * (1 + 1e-9)).tolist():
            gap_mbps = float(needed[line] - bought[line])
            counts[year] += cheapest_modules(problem, line, gap_mbps, counts, year)
    return decide(problem, counts, options=options, guarantees=KEPT)


def _lengths(problem: CapacityPlanning) -> Floats:
    """Return the length of each link, (L,): in kilometres where all are known, else 1."""
    length = problem.length_km
    if np.isnan(length).any():
        length = np.ones(len(length))
    return np.maximum(length, 1e-6 * max(float(length.max(initial=0.0)), 1.0))


def _tunnel_load(problem: CapacityPlanning, arcs: Arcs, up: Bools, rate: Floats) -> Floats:
    """Return the load of each capacity when demands with tunnels take the shortest one that is up, (C,)."""
    paths = problem.tunnel_paths
    if paths is None:
        return np.zeros(len(arcs.row_line))
    along = np.where(paths.work(up), paths.uses @ _lengths(problem), np.inf)
    load = np.zeros(len(arcs.line))
    for pair in range(paths.pairs):
        tunnel_rows = np.flatnonzero(paths.pair == pair)
        best = tunnel_rows[np.argmin(along[tunnel_rows])] if len(tunnel_rows) else -1
        if best >= 0 and np.isfinite(along[best]):
            load += float(rate[paths.pair_of == pair].sum()) * paths.arcs[[best]].toarray()[0]
    return np.asarray(arcs.shares @ load)


def _shortest_path_load(problem: CapacityPlanning, arcs: Arcs, up: Bools, rate: Floats) -> Floats:
    """Return the load of each capacity when free demands take their shortest paths, (C,), Mbit/s."""
    nodes = len(problem.nodes)
    length = _lengths(problem)
    usable = np.flatnonzero(up[arcs.line])
    # of parallel links the shortest: sorted so that the last of equal ends is kept
    order = usable[np.lexsort((-usable, -length[arcs.line[usable]]))]
    arc_of = np.full((nodes, nodes), -1, dtype=np.int64)
    arc_of[arcs.start[order], arcs.end[order]] = order
    start, end = np.nonzero(arc_of >= 0)
    weight = length[arcs.line[arc_of[start, end]]]
    graph = sp.csr_array((weight, (start, end)), shape=(nodes, nodes))
    load = np.zeros(len(arcs.line))
    if problem.tunnel_paths is not None:
        rate = np.where(problem.tunnel_paths.pair_of < 0, rate, 0.0)
    active = np.flatnonzero(rate > 0)
    sources, row = np.unique(problem.source[active], return_inverse=True)
    if not len(sources):
        return np.asarray(arcs.shares @ load)
    before = dijkstra(graph, indices=sources, return_predecessors=True)[1]
    for demand, row_number in zip(active.tolist(), row.tolist(), strict=True):
        node = int(problem.target[demand])
        while (last := int(before[row_number, node])) != NO_NODE:
            load[arc_of[last, node]] += rate[demand]
            node = last
    return np.asarray(arcs.shares @ load)
