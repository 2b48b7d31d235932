"""Queues of sites that erase data once table `retention` does not let them keep it any longer.

Data of an interval waits at its site in turn: all of an interval before that of the next one, and cubes of
one interval mixed. What is older than a site may keep is erased at once, so that later data does not wait
for it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from planner.arrays import Bools, Floats, read_only
from planner.compiled import kernel, run_small_in_python
from planner_models.analytics.problem.problem import Analytics


class Chunks(NamedTuple):
    """Bytes of each interval, site and cube, (K, S, C): that sites send, and these after merging."""

    sent: Floats
    before_pop: Floats


class Erasure(NamedTuple):
    """Bytes that queues of sites send and erase, and their times.

    finish_s   (K, S) time at which the last data of an interval that is not erased has left its site
    waiting    (K, S) bytes in the queue at the end of each interval
    sent       (K, S) bytes that leave in each interval
    arrived    (K, S) bytes of these on the uplink of the point of presence
    is_erased  (K, S, C) whether some data of an interval and cube is erased
    lost       (2, S) bytes erased in all, and what is left of these after merging
    """

    finish_s: Floats
    waiting: Floats
    sent: Floats
    arrived: Floats
    is_erased: Bools
    lost: Floats


def erases(problem: Analytics) -> bool:
    """Return whether some site may keep data only for a time."""
    return bool(np.isfinite(problem.kept_s).any())


def replay_erasure(problem: Analytics, chunks: Chunks) -> Erasure:
    """Return the bytes that sites send and erase where each uplink sends data in turn."""
    kept_s = np.full((len(problem.site_names), chunks.sent.shape[2]), np.inf)
    kept_s[:, problem.cube_of] = problem.kept_s
    sites = len(problem.site_names)
    rate = problem.capacity_bytes[:, :sites] / problem.length_s[:, None]
    ends = problem.start_s + problem.length_s
    finish = np.repeat(ends[:, None], sites, axis=1)
    sent, arrived, erased = (np.zeros_like(rate) for _ in range(3))
    lost = np.zeros((2, sites))
    is_erased = np.zeros(chunks.sent.shape, dtype=np.bool_)
    drain_sites(
        read_only(chunks.sent), read_only(chunks.before_pop), read_only(rate), read_only(problem.start_s),
        read_only(ends), read_only(kept_s), finish, sent, arrived, erased, lost, is_erased,
    )  # fmt: skip
    came = chunks.sent.sum(axis=2).cumsum(axis=0)
    gone = (sent + erased).cumsum(axis=0)
    waiting = np.where(came - gone <= 1e-9 * came, 0.0, came - gone)
    return Erasure(finish, waiting, sent, arrived, is_erased, lost)


@run_small_in_python(max_elements=2_000)
@kernel
def drain_sites(  # noqa: C901 - one compiled loop
    size: Floats,
    behind: Floats,
    rate: Floats,
    starts: Floats,
    ends: Floats,
    kept_s: Floats,
    finish: Floats,
    sent: Floats,
    arrived: Floats,
    erased: Floats,
    lost: Floats,
    is_erased: Bools,
) -> None:
    """Write the bytes that leave each site or are erased, and their times, as in `Erasure`.

    size, behind  (K, S, C) bytes, and these after merging
    rate          (K, S) bytes a second; after the last interval, the last one
    kept_s        (S, C) age up to which data is kept
    erased        (K, S) bytes that are erased in each interval; none after the last one
    lost          (2, S) bytes that are erased at any time, and these after merging
    """
    intervals, sites, cubes = size.shape
    remaining = np.empty(cubes)
    for site in range(sites):
        now, current = starts[0], 0  # time up to which the uplink is used, and its interval
        for k in range(intervals):
            remaining[:] = size[k, site]
            now = max(now, starts[k])
            while True:
                total, event = 0.0, np.inf
                for cube in range(cubes):
                    limit = ends[k] + kept_s[site, cube]
                    if remaining[cube] > 0 and limit <= now:
                        is_erased[k, site, cube] = True
                        row = 0
                        while row < intervals and ends[row] < limit:
                            row += 1
                        if row < intervals:
                            erased[row, site] += remaining[cube]
                        lost[0, site] += remaining[cube]
                        lost[1, site] += remaining[cube] * behind[k, site, cube] / size[k, site, cube]
                        remaining[cube] = 0.0
                    if remaining[cube] > 0:
                        total += remaining[cube]
                        event = min(event, limit)
                while current < intervals - 1 and ends[current] <= now:
                    current += 1
                if total <= 0:
                    break
                if now == np.inf:
                    finish[k, site] = np.inf
                    break
                is_last = now >= ends[intervals - 1]
                until = event if is_last else min(event, ends[current])
                speed = rate[current, site]
                if speed <= 0 and until == np.inf:
                    now = np.inf  # what has a limit is erased, the rest never comes
                    continue
                carried = speed * (until - now) if speed > 0 else 0.0
                # data of an interval arrives until its end: it is not sent before
                if carried >= total * (1 - 1e-9):
                    fraction, stop = 1.0, max(now + total / speed, min(ends[k], until))
                else:
                    fraction, stop = carried / total, until
                for cube in range(cubes):
                    if remaining[cube] <= 0:
                        continue
                    amount = remaining[cube] * fraction
                    if not is_last:
                        sent[current, site] += amount
                        arrived[current, site] += amount * behind[k, site, cube] / size[k, site, cube]
                    remaining[cube] = 0.0 if fraction >= 1 else remaining[cube] - amount
                now = stop
                if fraction >= 1:
                    finish[k, site] = stop
