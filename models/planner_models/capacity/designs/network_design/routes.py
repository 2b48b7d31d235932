"""Flow of each demand from the flow of commodities, each of which has one root."""

from __future__ import annotations

from collections import deque

import numpy as np
import scipy.sparse as sp

from planner.search.tolerances import NEGLIGIBLE
from planner_models.capacity.designs.network_design.network import Floats, Network
from planner_models.capacity.designs.network_design.reduction import Reduction


def demand_flows(reduction: Reduction, network: Network, flows: Floats, delivered: Floats) -> sp.csr_array:
    """Return the flow of each original demand, shape (D, 2 E): along the links, then against them.

    flows      (K, A) of each commodity on each arc, in reduced units
    delivered  (D',) traffic of each reduced demand
    """
    original, edges = reduction.original, network.instance.edges
    split = np.zeros((len(delivered), 2 * edges))
    for commodity, root in enumerate(network.roots):
        remaining = flows[commodity].copy()
        for demand in np.flatnonzero(network.commodity == commodity):
            used = _strip(
                network, remaining, int(root), int(network.target[demand]), float(delivered[demand])
            )
            along = np.bincount(
                network.arc_edge, weights=used * (np.arange(network.arcs) < edges), minlength=edges
            )
            against = np.bincount(network.arc_edge, weights=used, minlength=edges) - along
            split[demand] = np.r_[along, against]
    real = reduction.pair >= 0
    pair = reduction.pair[real]
    total = network.instance.rate[pair] * reduction.unit
    own = sp.csr_array(split[pair] * (original.rate[real] / total * reduction.unit)[:, None])
    rows = np.flatnonzero(real)
    place = sp.csr_array(
        (np.ones(len(rows)), (rows, np.arange(len(rows)))), shape=(len(original.rate), len(rows))
    )
    routed = sp.csr_array(place @ own)
    turned = np.zeros(len(original.rate), dtype=bool)
    turned[rows] = original.source[rows] != network.source[pair]
    swap = sp.csr_array(sp.hstack([routed[:, edges:], routed[:, :edges]]))
    keep = sp.diags_array((~turned).astype(float))
    return sp.csr_array(keep @ routed + sp.diags_array(turned.astype(float)) @ swap)


def _strip(network: Network, remaining: Floats, root: int, target: int, rate: float) -> Floats:
    """Take paths of `rate` from a root to a target out of `remaining` (A,); return their flow (A,)."""
    used = np.zeros(network.arcs)
    least = NEGLIGIBLE * max(1.0, rate)
    while rate > least:
        path = _path(network, remaining > least, root, target)
        if path is None:
            break
        amount = min(rate, float(remaining[path].min()))
        remaining[path] -= amount
        used[path] += amount
        rate -= amount
    return used


def _path(network: Network, usable: np.ndarray, root: int, target: int) -> np.ndarray | None:
    """Return the arcs of a path with fewest arcs among usable ones; None where there is none."""
    arcs = np.flatnonzero(usable)
    leaving: dict[int, list[int]] = {}
    for arc in arcs.tolist():
        leaving.setdefault(int(network.arc_tail[arc]), []).append(arc)
    reached_by = {root: -1}
    waiting = deque([root])
    while waiting and target not in reached_by:
        for arc in leaving.get(waiting.popleft(), []):
            head = int(network.arc_head[arc])
            if head not in reached_by:
                reached_by[head] = arc
                waiting.append(head)
    if target not in reached_by:
        return None
    path = []
    node = target
    while node != root:
        path.append(reached_by[node])
        node = int(network.arc_tail[path[-1]])
    return np.array(path[::-1])
