"""A placement in a run of outages: live members, leaders, and the time without one or with two."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from planner.arrays import Bools, Floats, Ints
from planner_models.membership.plan.plan import KILL_RULE, REACTION_RULE, Placement
from planner_models.membership.simulation.outages import Outages

Spans = tuple[Floats, Floats]
"""Start and end of intervals, s."""


@dataclass(frozen=True, kw_only=True)
class Timing:
    """Times of a service: seconds from a failure to its suspicion, and from there until the next serves."""

    detect: Callable[[], float]
    failover_s: float


def unserved_intervals(
    placement: Placement,
    down: tuple[Outages, Outages],
    cut: Outages,
    served: Bools,
    horizon_s: float,
) -> Spans:
    """Return start and end of each time in which no quorum is up.

    down    outages of members, and of managers, by their numbers
    cut     outages of members that cut them off
    served  (N + 1, G + 1) whether the service is up with so many live members and live managers
    """
    members, managers = served.shape[0] - 1, served.shape[1] - 1
    time, change = _changes([*down, cut])
    count = np.cumsum(change, axis=0)
    is_up = served[members - count[:, 0], managers - count[:, 1]]
    if placement.rule == KILL_RULE:
        is_up = is_up & (count[:, 2] == 0)
    until = np.append(time[1:], horizon_s)
    rows = np.flatnonzero(~is_up & (until > time))
    return _join(time[rows], until[rows])


def _changes(parts: Sequence[Outages]) -> tuple[Floats, Ints]:
    """Return the times of changes, ascending, and the changes of the outages of each part, (E, parts)."""
    times, changes = [np.zeros(1)], [np.zeros((1, len(parts)), dtype=np.int64)]
    for column, outages in enumerate(parts):
        for moment, step in ((outages.start, 1), (outages.end, -1)):
            change = np.zeros((len(outages), len(parts)), dtype=np.int64)
            change[:, column] = step
            times.append(moment)
            changes.append(change)
    time, change = np.concatenate(times), np.concatenate(changes)
    order = np.argsort(time, kind="stable")
    return time[order], change[order]


def _join(start: Floats, end: Floats) -> Spans:
    """Return intervals in order with those that touch joined."""
    if not len(start):
        return start, end
    is_first = np.ones(len(start), dtype=bool)
    is_first[1:] = start[1:] > end[:-1]
    first = np.flatnonzero(is_first)
    return start[first], end[np.append(first[1:] - 1, len(end) - 1)]


def follow_leaders(
    order: Sequence[int],
    leader: int,
    down: Outages,
    cut: Outages,
    timing: Timing,
    placement: Placement,
) -> tuple[Spans, Spans]:
    """Return the failovers of a run, and the times in which a leader that is cut off leads beside the next.

    order   members in the order in which they take over
    leader  number of the first leader
    """
    starts = [down.start[down.owner == member].tolist() for member in range(len(order))]
    ends = [down.end[down.owner == member].tolist() for member in range(len(order))]
    is_cut = [set(cut.start[cut.owner == member].tolist()) for member in range(len(order))]
    failovers: list[tuple[float, float]] = []
    both: list[tuple[float, float]] = []
    now = 0.0
    while True:
        row = _current_outage(starts[leader], ends[leader], now)
        if row >= len(starts[leader]):
            return as_spans(failovers), as_spans(both)
        failed, repaired = max(starts[leader][row], now), ends[leader][row]
        suspected = failed + timing.detect()
        if suspected >= repaired:
            failovers.append((failed, repaired))
            now = repaired
            continue
        following = _next_leader(order, suspected, starts, ends)
        if following is None:
            now = max(suspected, repaired)
            continue
        until = suspected + timing.failover_s
        failovers.append((failed, min(until, repaired)))
        if placement.rule == REACTION_RULE and starts[leader][row] in is_cut[leader] and repaired > until:
            both.append((until, repaired))
        leader, now = following, until


def _current_outage(starts: Sequence[float], ends: Sequence[float], now: float) -> int:
    """Return the outage that lasts at a time, or else the next one; their number for none."""
    row = bisect_right(starts, now)
    return row - 1 if row > 0 and ends[row - 1] > now else row


def _next_leader(
    order: Sequence[int], now: float, starts: Sequence[Sequence[float]], ends: Sequence[Sequence[float]]
) -> int | None:
    """Return the first member in an order that is up; None where none is."""
    for member in order:
        row = bisect_right(starts[member], now)
        if row == 0 or ends[member][row - 1] <= now:
            return member
    return None


def as_spans(intervals: Sequence[tuple[float, float]]) -> Spans:
    """Return intervals as arrays of their starts and ends."""
    table = np.array(intervals, dtype=float).reshape(-1, 2)
    return table[:, 0], table[:, 1]


def union_s(*spans: Spans) -> float:
    """Return the seconds in at least one of some intervals."""
    start, end = (np.concatenate([span[side] for span in spans]) for side in (0, 1))
    order = np.argsort(start)
    latest = np.maximum.accumulate(np.concatenate([[0.0], end[order]]))
    return float(np.maximum(end[order] - np.maximum(start[order], latest[:-1]), 0.0).sum())
