"""Traffic that does not wait: forwarded over the circuits that are up, in equal parts over shortest paths.

In each interval in which circuits stay as they are, a rack sends the traffic to a target in equal parts to
the next racks on shortest paths to it, as the forwarding tables of Opera do.

source  Mellette et al. 2020 (Opera)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.arrays import Bools, Floats, Ints
from planner_models.rotors.plan.timetable import Timetable
from planner_models.rotors.problem.problem import DARK


@dataclass(frozen=True, kw_only=True, eq=False)
class ExpanderLoad:
    """Load of circuits by traffic that does not wait.

    mean_mbps    (n, n) mean over the period of the load from row to column, Mbit/s
    peak_share   largest load of a circuit over its rate in any interval
    peak_pair    rows of the racks of that circuit; None without load
    hops         (n, n) mean over the period of the links of a shortest path; inf without one in some interval
    """

    mean_mbps: Floats
    peak_share: float
    peak_pair: tuple[int, int] | None
    hops: Floats

    @property
    def is_connected(self) -> Bools:
        """(n, n) whether there is a path in every interval."""
        connected: Bools = np.isfinite(self.hops)
        return connected


def load_expander(timetable: Timetable, rate: Floats, link_mbps: Floats) -> ExpanderLoad:
    """Return the load of (n, n) traffic that does not wait; pairs without a path in an interval load nothing.

    link_mbps  (n, n) rate of a circuit from row to column
    """
    racks = timetable.racks
    lengths, targets = timetable.intervals
    hops = np.zeros((racks, racks))
    hop_counts = [measure_hops(target) for target in targets]
    for length, distance in zip(lengths, hop_counts, strict=True):
        hops += length / timetable.period_us * distance
    sent = np.where(np.isfinite(hops), rate, 0.0)
    mean, peak, pair = np.zeros((racks, racks)), 0.0, None
    each = np.arange(racks)
    for length, target, distance in zip(lengths, targets, hop_counts, strict=True):
        load = spread_load(target, distance, sent)
        for switch, to in enumerate(target):
            up = each[to != DARK]
            mean[up, to[up]] += load[switch, up] * (length / timetable.period_us)
            share = np.divide(
                load[switch, up], link_mbps[up, to[up]], out=np.zeros(len(up)), where=load[switch, up] > 0
            )
            if len(up) and share.max() > peak:
                row = int(share.argmax())
                peak, pair = float(share[row]), (int(up[row]), int(to[up[row]]))
    return ExpanderLoad(mean_mbps=mean, peak_share=peak, peak_pair=pair, hops=hops)


def measure_hops(target: Ints) -> Floats:
    """Return the (n, n) links of a shortest path over (u, n) circuits that are up; inf without one."""
    racks = target.shape[1]
    linked = np.zeros((racks, racks))
    switch, source = np.nonzero(target != DARK)
    linked[source, target[switch, source]] = 1.0
    distance: Floats = np.full((racks, racks), np.inf)
    np.fill_diagonal(distance, 0.0)
    reached = np.eye(racks)
    for hops in range(1, racks):
        fresh = (linked @ reached > 0) & np.isinf(distance)
        if not fresh.any():
            break
        distance[fresh] = hops
        reached = fresh.astype(float)
    return distance


def spread_load(target: Ints, distance: Floats, rate: Floats) -> Floats:
    """Return the (u, n) load of circuits by (n, n) traffic over shortest paths, in its unit.

    target    (u, n) circuits that are up
    distance  (n, n) links of a shortest path
    """
    held = rate.copy()  # by rack that holds it and target
    load: Floats = np.zeros(target.shape)
    finite = distance[(rate > 0) & np.isfinite(distance)]
    up = [np.flatnonzero(to != DARK) for to in target]
    for level in range(int(finite.max(initial=0)), 0, -1):
        here = distance == level
        nearer = []
        for to, rows in zip(target, up, strict=True):
            is_nearer = np.zeros_like(here)
            is_nearer[rows] = here[rows] & (distance[to[rows]] == level - 1)
            nearer.append(is_nearer)
        ways = np.sum(nearer, axis=0)
        share_of = np.divide(held, ways, out=np.zeros_like(held), where=ways > 0)
        for switch, (to, rows) in enumerate(zip(target, up, strict=True)):
            sent = share_of[rows] * nearer[switch][rows]
            load[switch, rows] += sent.sum(axis=1)
            held[to[rows]] += sent
    return load
