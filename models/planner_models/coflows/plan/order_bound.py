r"""A lower bound on the sum of completion times by the order in which few coflows are complete.

In any schedule coflows are complete in some order; let S be the first k of it. On k' circuit switches port p
works for at least

$$h_p(S, r) = r + \Big(\sum_{c \in S, r_c \ge r} t_{cp} + \delta\, m_p(S, r)\Big) / k'$$

before the last of S is complete, for each arrival r, where $m_p$ is the number of its peers in these coflows:
each needs a circuit that is set up, but for k' that may have been up at r > 0. So the last of S is complete
no sooner than $h(S)$, the largest of these and of the least times alone. Dynamic programming over sets finds
the least sum over all orders.

source  the subset recursion of Held and Karp 1962, with a machine for each port
"""

from __future__ import annotations

from typing import Final

import numpy as np

from planner.compiled import kernel, run_small_in_python
from planner_models.coflows.problem.problem import Floats, Ints

MOST_COFLOWS: Final = 12
"""Coflows up to which all sets are tried."""
MOST_PEERS: Final = 63
"""Peers of a port that are counted, one for each bit of a word."""


@run_small_in_python(max_elements=300)
@kernel
def least_sum_ms(  # noqa: C901
    arrival: Floats, alone: Floats, time: Floats, peers: Ints, setup_ms: float, switches: int
) -> float:
    """Return a lower bound on the sum of the times at which all coflows are complete, ms.

    arrival, alone  (C,) of each coflow, and the earliest time at which it can be complete
    time            (ports, C) time of each port for each coflow, over all switches
    peers           (ports, C) sets of peers, as bits
    """
    count, ports = len(arrival), len(time)
    sets = 1 << count
    end = np.zeros(sets)
    work, met = np.zeros(sets), np.zeros(sets, np.int64)
    for one in range(1, sets):
        lowest = 0
        while not (one >> lowest) & 1:
            lowest += 1
        end[one] = max(end[one & (one - 1)], alone[lowest])
    starts = np.unique(np.append(arrival, 0.0))
    for port in range(ports):
        for start in starts:
            for one in range(1, sets):
                lowest = 0
                while not (one >> lowest) & 1:
                    lowest += 1
                rest = one & (one - 1)
                work[one], met[one] = work[rest], met[rest]
                if arrival[lowest] >= start:
                    work[one] += time[port, lowest]
                    met[one] |= peers[port, lowest]
                if work[one] <= 0:
                    continue
                setups, left = 0, met[one]
                while left:
                    left &= left - 1
                    setups += 1
                if start > 0:
                    setups = max(0, setups - switches)
                end[one] = max(end[one], start + work[one] + setup_ms * setups / switches)
    least = np.zeros(sets)
    for one in range(1, sets):
        best = np.inf
        for coflow in range(count):
            if (one >> coflow) & 1:
                best = min(best, least[one ^ (1 << coflow)])
        least[one] = best + end[one]
    return float(least[sets - 1])
