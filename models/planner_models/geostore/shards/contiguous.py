"""Contiguous runs: the least largest load of runs of ranges, given to servers in order, exactly.

Whether runs exist within a limit L is decided greedily: each server takes the longest run within L times its
capacity. The least such L is found by binary search; it is exact, for servers in the order given, because
the search ends only where no run exists below the largest load of the runs found.
"""

from __future__ import annotations

import numpy as np

from planner.arrays import Floats, Ints
from planner.compiled import kernel, run_small_in_python
from planner_models.geostore.shards.keyspace import Keyspace

TOLERANCE = 1e-12
"""Relative width at which the search begins to step from one load that occurs to the next."""


@run_small_in_python(max_elements=20_000)
@kernel
def fill_runs(total: Floats, capacity: Floats, limit: float, ends: Ints) -> bool:
    """Give each server the longest run of ranges with a load over capacity of `limit` at most.

    total     (R + 1,) load of the ranges before each one
    capacity  (S,) of servers
    ends      (S,) end of each server's run, written
    returns   whether all ranges have a server
    """
    start, count = 0, len(total) - 1
    for server in range(len(capacity)):
        low, high = start, count
        while low < high:  # the last end whose run is within the limit
            middle = (low + high + 1) // 2
            if (total[middle] - total[start]) / capacity[server] <= limit:
                low = middle
            else:
                high = middle - 1
        ends[server] = low
        start = low
    return bool(start == count)


def best_runs(keyspace: Keyspace) -> tuple[Ints, float]:
    """Return the server of each range, in runs with the least largest load over capacity, and that load."""
    total = np.concatenate([[0.0], np.cumsum(keyspace.kops)])
    capacity = np.ascontiguousarray(keyspace.server_kops, dtype=np.float64)
    ends, trial = np.zeros((2, len(capacity)), dtype=np.int64)
    low, high = 0.0, float(total[-1] / capacity.min())
    fill_runs(total, capacity, high, ends)
    high = largest_load(total, capacity, ends)
    while high > 0:
        middle = (low + high) / 2 if high - low > TOLERANCE * high else float(np.nextafter(high, 0.0))
        if fill_runs(total, capacity, middle, trial):
            ends[:] = trial
            high = largest_load(total, capacity, ends)
        elif high - low > TOLERANCE * high:
            low = middle
        else:
            break
    return servers_of(ends), high


def largest_load(total: Floats, capacity: Floats, ends: Ints) -> float:
    """Return the largest load over capacity of runs by their ends; `total` as in `fill_runs`."""
    bounds = total[np.concatenate([[0], ends])]
    return float((np.diff(bounds) / capacity).max())


def servers_of(ends: Ints) -> Ints:
    """Return the server of each range of runs with these ends."""
    return np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0))
