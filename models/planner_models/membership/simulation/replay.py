"""A placement in a run of outages: live members, leaders, and the time without one or with two."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from planner.arrays import Bools, Floats, Ints
from planner.compiled import inner_without_allocation, kernel_without_allocation, run_small_in_python
from planner_models.membership.plan.plan import KILL_RULE, RULES_WITH_TWO_LEADERS, Placement
from planner_models.membership.simulation.outages import Outages

Spans = tuple[Floats, Floats]
"""Start and end of intervals, s."""


@dataclass(frozen=True, kw_only=True)
class Timing:
    """Times of a service: seconds from failures until members know, and from there until the next serves.

    detect  (I + 1,) of as many failures as there are outages, and one more
    """

    detect: Floats
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
    blocks = cut if placement.rule == KILL_RULE else Outages.none()
    time, (away, silent, blocked) = _count_down([*down, blocks])
    is_up = served[members - away, managers - silent] & (blocked == 0)
    until = np.append(time[1:], horizon_s)
    rows = np.flatnonzero(~is_up & (until > time))
    return _join(time[rows], until[rows])


def _count_down(parts: Sequence[Outages]) -> tuple[Floats, list[Ints]]:
    """Return the times of changes, ascending from 0, and the outages of each part that last from each on."""
    moments = [np.sort(side) for outages in parts for side in (outages.start, outages.end)]
    time = np.concatenate([np.zeros(1), *moments])
    order = np.argsort(time, kind="stable")  # of sorted pieces, which it merges
    steps = np.zeros(len(time), dtype=np.int64)
    counts, first = [], 1
    for outages in parts:
        if not len(outages):
            counts.append(np.zeros(len(time), dtype=np.int64))
            continue
        steps[:] = 0
        steps[first : first + len(outages)] = 1
        steps[first + len(outages) : first + 2 * len(outages)] = -1
        counts.append(np.cumsum(steps[order]))
        first += 2 * len(outages)
    return time[order], counts


def _join(start: Floats, end: Floats) -> Spans:
    """Return intervals in order with those that touch joined."""
    if not len(start):
        return start, end
    is_first = np.ones(len(start), dtype=bool)
    is_first[1:] = start[1:] > end[:-1]
    first = np.flatnonzero(is_first)
    return start[first], end[np.append(first[1:] - 1, len(end) - 1)]


class Outline(NamedTuple):
    """Outages of members as arrays of a kernel.

    first       (N + 1,) first outage of each member, and their number
    start, end  (I,) seconds, ascending within each member
    is_cut      (I,) whether an outage cuts its member off
    """

    first: Ints
    start: Floats
    end: Floats
    is_cut: Bools


def follow_leaders(
    order: Sequence[int],
    leader: int,
    down: Outages,
    cut: Outages,
    timing: Timing,
    placement: Placement,
) -> tuple[Spans, Spans]:
    """Return the failovers of a run, and the times in which a leader that is cut off leads beside the next.

    order   members that may lead, in the order in which they take over
    leader  number of the first leader
    """
    outline = Outline(
        first=np.searchsorted(down.owner, np.arange(placement.size + 1)).astype(np.int64),
        start=down.start,
        end=down.end,
        is_cut=_matches_cuts(down, cut),
    )
    rows = np.full((len(down), 2), -1.0)
    both = np.full((len(down), 2), -1.0)
    may_stay = placement.rule in RULES_WITH_TWO_LEADERS
    counts = np.array([leader, 0, 0], dtype=np.int64)
    _follow(np.array(order, dtype=np.int64), outline, timing.detect, timing.failover_s, counts, rows, both)
    failovers, both = rows[: counts[1]], both[: counts[2]] if may_stay else both[:0]
    return (failovers[:, 0], failovers[:, 1]), (both[:, 0], both[:, 1])


def _matches_cuts(down: Outages, cut: Outages) -> Bools:
    """Return whether each outage begins with one that cuts its member off, (I,)."""
    if not len(cut):
        return np.zeros(len(down), dtype=bool)
    keys, starts = (
        outages.owner + 1j * outages.start for outages in (down, cut)
    )  # ordered by owner, then start
    row = np.minimum(np.searchsorted(starts, keys), len(starts) - 1)
    return np.asarray(starts[row] == keys)


@run_small_in_python(max_elements=20_000, max_s=0.3)
@kernel_without_allocation
def _follow(
    order: Ints,
    outages: Outline,
    detect_s: Floats,
    failover_s: float,
    counts: Ints,
    failovers: Floats,
    both: Floats,
) -> None:
    """Follow the leaders of a run; see `follow_leaders`.

    detect_s  (I + 1,) seconds from each failure of a leader until members know
    counts    (3,) the first leader; then the numbers of rows that `failovers` and `both` get
    """
    leader, now, step = counts[0], 0.0, 0
    while True:
        last = outages.first[leader + 1]
        row = _outage_at(outages, leader, now)
        if row >= last:
            return
        failed, repaired = max(outages.start[row], now), outages.end[row]
        suspected = failed + detect_s[step]
        step += 1
        following = -1
        if suspected < repaired:
            following = _first_up(order, outages, suspected)
            if following < 0:
                now = repaired
                continue
        until = suspected + failover_s if following >= 0 else repaired
        failovers[counts[1], 0] = failed
        failovers[counts[1], 1] = min(until, repaired)
        counts[1] += 1
        if following >= 0 and outages.is_cut[row] and repaired > until:
            both[counts[2], 0] = until
            both[counts[2], 1] = repaired
            counts[2] += 1
        leader = following if following >= 0 else leader
        now = until


@inner_without_allocation
def _first_up(order: Ints, outages: Outline, now: float) -> int:
    """Return the first member in an order that is up at a time; -1 for none."""
    for member in order:
        row = _outage_at(outages, member, now)
        if row >= outages.first[member + 1] or outages.start[row] > now:
            return int(member)
    return -1


@inner_without_allocation
def _outage_at(outages: Outline, member: int, now: float) -> int:
    """Return the outage of a member that lasts at a time, or its next one; one past the last for none."""
    low, high = int(outages.first[member]), int(outages.first[member + 1])
    while low < high:
        middle = (low + high) // 2
        if outages.end[middle] > now:
            high = middle
        else:
            low = middle + 1
    return low


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
