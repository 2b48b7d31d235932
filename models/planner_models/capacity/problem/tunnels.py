"""Table `tunnels` of system `capacity`: the only paths that some demands may take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from planner.arrays import Bools, Floats, Ints
from planner_models.networks.node_lists import LinkNames
from planner_models.networks.tunnels import read_paths

if TYPE_CHECKING:
    from planner_models.capacity.problem.problem import CapacityPlanning


@dataclass(frozen=True, kw_only=True, eq=False)
class TunnelPaths:
    """Tunnels of demands: T of them, for P pairs of nodes whose demands may take nothing else.

    names    (T,) of the tunnels
    pair     (T,) pair of each tunnel
    arcs     (T, A) 1 where a tunnel takes an arc: a link from tail to head, or, where links have both
             directions, L + a link from head to tail
    uses     (T, L) 1 where a tunnel takes a link
    pair_of  (D,) pair of each demand, -1 for demands that may take any route
    """

    names: list[str]
    pair: Ints
    arcs: sp.csr_array
    uses: sp.csr_array
    pair_of: Ints

    @property
    def pairs(self) -> int:
        """Number of pairs of nodes that have tunnels."""
        return int(self.pair.max(initial=-1)) + 1

    def work(self, up: Bools) -> Bools:
        """Return whether each tunnel has all its links, (T,).

        up  (L,) links that can be used
        """
        missing: Floats = self.uses @ (~up).astype(float)
        return np.asarray(missing == 0)

    def are_up(self, up: Bools) -> Bools:
        """Return whether each pair has a tunnel with all its links, (P,)."""
        reached = np.zeros(self.pairs, dtype=bool)
        reached[self.pair[self.work(up)]] = True
        return reached


def read_tunnels(problem: CapacityPlanning) -> tuple[TunnelPaths | None, list[str]]:
    """Return the tunnels of a problem that has the table, and all faults; None where no demand has one.

    Tunnels between nodes without a demand are left out.
    """
    assert problem.tunnels is not None
    lines = len(problem.lines)
    found, faults = read_paths(problem.tunnels, problem.nodes["node"].tolist(), _find_arcs(problem))
    if faults:
        return None, faults
    tunnel_ends = _pair_keys(problem, found.source, found.target)
    demand_ends = _pair_keys(problem, problem.source, problem.target)
    wanted = np.flatnonzero(np.isin(tunnel_ends, demand_ends))
    if not len(wanted):
        return None, []
    known, pair = np.unique(tunnel_ends[wanted], return_inverse=True)
    place = np.minimum(np.searchsorted(known, demand_ends), len(known) - 1)
    steps = [found.links[tunnel] for tunnel in wanted.tolist()]
    row = np.repeat(np.arange(len(wanted)), [len(path) for path in steps])
    arc = np.array([one for path in steps for one in path], dtype=np.int64)
    count = lines if problem.direction == "directed" else 2 * lines
    ones = np.ones(len(arc))
    return (
        TunnelPaths(
            names=[found.name[tunnel] for tunnel in wanted.tolist()],
            pair=pair.astype(np.int64),
            arcs=sp.csr_array((ones, (row, arc)), shape=(len(wanted), count)),
            uses=sp.csr_array((ones, (row, arc % lines)), shape=(len(wanted), lines)),
            pair_of=np.where(known[place] == demand_ends, place, -1).astype(np.int64),
        ),
        [],
    )


def _find_arcs(problem: CapacityPlanning) -> LinkNames:
    """Return the arcs of links by their ends and numbers: from tail to head, then the other way."""
    numbers: dict[tuple[int, int], int] = {}
    ends: list[tuple[int, int, int]] = []
    is_directed = problem.direction == "directed"
    for tail, head in zip(problem.tail.tolist(), problem.head.tolist(), strict=True):
        key = (tail, head) if is_directed else (min(tail, head), max(tail, head))
        numbers[key] = numbers.get(key, 0) + 1
        ends.append((tail, head, numbers[key]))
    if not is_directed:
        ends += [(head, tail, nth) for tail, head, nth in ends]
    return LinkNames(ends)


def _pair_keys(problem: CapacityPlanning, source: Ints, target: Ints) -> Ints:
    """Return a number for each pair of nodes; the same for both directions where links are undirected."""
    if problem.direction == "undirected":
        source, target = np.minimum(source, target), np.maximum(source, target)
    return source * len(problem.nodes) + target
