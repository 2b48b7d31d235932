r"""Lower bounds on completion times, which no schedule beats.

Alone: coflow c is complete no sooner after its arrival than its busiest port needs for it. On k circuit
switches a rack with $m$ peers sets up at least $m - k$ circuits while the coflow is there, each with
$\delta$; with a packet switch beside them it sets up none.

Mean: on each port p, coflows with port times $t_{cp}$ and arrivals $r_c$ are jobs of one machine. With
weights $w_{cp} \ge 0$ that sum to 1, or to the coflow's own weight (place 0: the bound alone, $a_c$),

$$\sum_c C_c \ge \sum_c w_{c0} (r_c + a_c) + \sum_p \min \sum_c w_{cp} \left(M_{cp} + t_{cp} / 2\right)$$

for the mean busy times $M_{cp}$, whose minimum the preemptive schedule by $w_{cp} / t_{cp}$ has. Set-up times
do not count on ports, since coflows may share a circuit. Any weights prove a bound; multiplicative updates
along supergradients improve them. Of few coflows all orders are tried, with set-up times (`order_bound`).

source  Goemans et al. 2002 (single machine scheduling with release dates), the mean busy time relaxation;
        Qiu, Stein, Zhong 2015 (coflows as jobs of all ports)

A lower bound on the sum of completion times by the order in which few coflows are complete.

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

import heapq
from typing import Final, Literal

import numpy as np

from planner.compiled import kernel, run_small_in_python
from planner_models.coflows.problem.problem import BITS_PER_MS, CoflowsInTime, Floats, Ints

Fabric = Literal["circuits", "packets", "all"]
PASSES: Final = 150
"""Updates of the weights."""
STEP: Final = 4.0
"""First step of the updates, relative to the values that they compare."""
MOST_COFLOWS: Final = 12
"""Coflows up to which all sets are tried."""
MOST_PEERS: Final = 63
"""Peers of a port that are counted, one for each bit of a word."""


def port_times_ms(problem: CoflowsInTime, fabric: Fabric) -> tuple[Ints, Ints, Floats, Floats]:
    """Return the coflow, the port, the time and the set-up time of each pair of a coflow and a port, ms.

    Ports are racks that send, then racks that receive. Times are infinite where a rack has no link.
    """
    rows = np.flatnonzero(problem.can_complete[problem.coflow])
    n = len(problem.racks)
    coflow = np.tile(problem.coflow[rows], 2)
    port = np.concatenate([problem.source[rows], problem.target[rows] + n])
    if fabric == "circuits":
        amount = np.tile(problem.bits[rows] / problem.circuit_rate[rows] / problem.switches, 2)
    else:
        rate = np.tile(problem.packet_rate, 2)
        if fabric == "all":
            rack_rate = problem.racks["circuit_mbps"].to_numpy(float) * BITS_PER_MS
            rate = rate + problem.switches * np.tile(rack_rate, 2)
        with np.errstate(divide="ignore"):
            amount = np.tile(problem.bits[rows], 2) / rate[port]
    key, group, peers = np.unique(coflow * 2 * n + port, return_inverse=True, return_counts=True)
    time = np.bincount(group, weights=amount, minlength=len(key))
    setups = np.zeros(len(key))
    if fabric == "circuits":
        setups = problem.setup_ms * np.maximum(peers - problem.switches, 0) / problem.switches
    key = np.asarray(key, dtype=np.int64)
    return key // (2 * n), key % (2 * n), np.asarray(time, dtype=float), setups


def _relevant(problem: CoflowsInTime, fabric: Fabric) -> Fabric:
    """Return the fabric itself; circuits where there is no packet switch beside them."""
    return "circuits" if fabric == "all" and not problem.has_packet_switch else fabric


def alone_ms(problem: CoflowsInTime, fabric: Fabric = "all") -> Floats:
    """Return (C,) the least completion time of each coflow, ms; NaN where a rack of it has failed."""
    coflow, _, time, setups = port_times_ms(problem, _relevant(problem, fabric))
    shortest_ms = np.where(problem.can_complete, 0.0, np.nan)
    np.maximum.at(shortest_ms, coflow, time + setups)
    return shortest_ms


def mean_completion_bound_ms(problem: CoflowsInTime, fabric: Fabric = "all") -> float | None:
    """Return a lower bound on the mean completion time, by weights, of coflows with working racks, ms.

    None where there is none, or where a rack has no link that it needs.
    """
    relevant = _relevant(problem, fabric)
    coflow, port, time, setups = port_times_ms(problem, relevant)
    count = int(problem.can_complete.sum())
    if not count or not np.isfinite(time).all():
        return None
    lower = np.zeros(len(problem.coflows))
    np.maximum.at(lower, coflow, time + setups)
    arrival, value_of = problem.arrival_ms, problem.relative_weight
    by_order = 0.0
    if count <= MOST_COFLOWS:
        by_order = _bound_by_order(problem, relevant, (coflow, port, time), lower)
    order = np.lexsort((arrival[coflow], port))
    coflow, port, time = coflow[order], port[order], time[order]
    first = np.concatenate([[0], np.flatnonzero(np.diff(port)) + 1, [len(port)]])
    works = problem.can_complete
    weight_alone = 0.5 * value_of
    weight = (0.5 * value_of / np.maximum(np.bincount(coflow, minlength=len(lower)), 1))[coflow]
    alone = arrival + lower
    best = 0.0
    for number in range(PASSES):
        reached = mean_busy_times(first, arrival[coflow], time, weight) + time / 2
        value = float((weight_alone * alone)[works].sum() + (weight * reached).sum())
        best = max(best, value - float((value_of * arrival)[works].sum()))
        latest = alone.copy()
        np.maximum.at(latest, coflow, reached)
        scale = np.maximum(latest - arrival, 1e-12)
        step = STEP / np.sqrt(number + 1.0)
        weight_alone = weight_alone * np.exp(step * (alone - latest) / scale)
        weight = weight * np.exp(step * (reached - latest[coflow]) / scale[coflow])
        total = weight_alone + np.bincount(coflow, weights=weight, minlength=len(weight_alone))
        share = value_of / total
        weight_alone, weight = weight_alone * share, weight * share[coflow]
    return max(best, by_order, float((value_of * lower)[works].sum())) / count


def _bound_by_order(
    problem: CoflowsInTime, fabric: Fabric, of_port: tuple[Ints, Ints, Floats], lower: Floats
) -> float:
    """Return a lower bound on the sum of completion times, by weights, over all orders of coflows, ms.

    of_port  coflow, port and time as `port_times_ms` returns them; least  (C,) times alone
    """
    coflow, port, time = of_port
    works = np.flatnonzero(problem.can_complete)
    index_of = np.full(len(lower), -1)
    index_of[works] = np.arange(len(works))
    n = len(problem.racks)
    row = np.full(2 * n, -1)
    used = np.unique(port)
    row[used] = np.arange(len(used))
    times = np.zeros((len(used), len(works)))
    times[row[port], index_of[coflow]] = time
    peers = np.zeros(times.shape, dtype=np.int64)
    if fabric == "circuits":
        rows = np.flatnonzero(problem.can_complete[problem.coflow])
        ends = problem.source[rows], problem.target[rows]
        of = index_of[problem.coflow[rows]]
        for end, peer in ((ends[0], ends[1]), (ends[1] + n, ends[0])):
            key, number = np.unique(end * n + peer, return_inverse=True)
            first = np.searchsorted(key, (key // n) * n)
            bit = (np.arange(len(key)) - first)[number]
            seen = bit < MOST_PEERS
            np.bitwise_or.at(peers, (row[end[seen]], of[seen]), np.left_shift(1, bit[seen]))
    arrival = problem.arrival_ms[works]
    total = least_sum_ms(
        arrival,
        arrival + lower[works],
        times,
        peers,
        float(problem.setup_ms),
        problem.switches,
        problem.relative_weight[works],
    )
    return float(total - (problem.relative_weight[works] * arrival).sum())


@run_small_in_python(max_elements=1_000)
@kernel
def mean_busy_times(first: Ints, arrival: Floats, time: Floats, weight: Floats) -> Floats:
    """Return (jobs,) the mean time at which a machine works on each job, highest weight for its time first.

    first  (machines + 1,) where the jobs of each machine begin; they are in order of arrival
    """
    busy_ms = np.zeros(len(time))
    for machine in range(len(first) - 1):
        heap = [(0.0, 0)]
        heap.pop()
        now, job = 0.0, first[machine]
        remaining = time[first[machine] : first[machine + 1]].copy()
        while job < first[machine + 1] or len(heap) > 0:
            if len(heap) == 0:
                now = max(now, arrival[job])
            while job < first[machine + 1] and arrival[job] <= now:
                heapq.heappush(heap, (-weight[job] / time[job], job))
                job += 1
            _, index = heap[0]
            works = remaining[index - first[machine]]
            until = now + works
            if job < first[machine + 1] and arrival[job] < until:
                until = arrival[job]
                works = until - now
                remaining[index - first[machine]] -= works
            else:
                heapq.heappop(heap)
            busy_ms[index] += (now + works / 2) * works / time[index]
            now = until
    return busy_ms


@run_small_in_python(max_elements=300)
@kernel
def least_sum_ms(  # noqa: C901
    arrival: Floats,
    alone: Floats,
    time: Floats,
    peers: Ints,
    setup_ms: float,
    switches: int,
    weight: Floats,
) -> float:
    """Return a lower bound on the sum, by weights, of the times at which all coflows are complete, ms.

    arrival, alone  (C,) of each coflow, and the earliest time at which it can be complete
    time            (ports, C) time of each port for each coflow, over all switches
    peers           (ports, C) sets of peers, as bits
    weight          (C,) of each coflow
    """
    count, ports = len(arrival), len(time)
    sets = 1 << count
    end = np.zeros(sets)
    work, met = np.zeros(sets), np.zeros(sets, np.int64)
    for subset in range(1, sets):
        lowest = 0
        while not (subset >> lowest) & 1:
            lowest += 1
        end[subset] = max(end[subset & (subset - 1)], alone[lowest])
    starts = np.unique(np.append(arrival, 0.0))
    for port in range(ports):
        for start in starts:
            for subset in range(1, sets):
                lowest = 0
                while not (subset >> lowest) & 1:
                    lowest += 1
                others = subset & (subset - 1)
                work[subset], met[subset] = work[others], met[others]
                if arrival[lowest] >= start:
                    work[subset] += time[port, lowest]
                    met[subset] |= peers[port, lowest]
                if work[subset] <= 0:
                    continue
                setups, remaining = 0, met[subset]
                while remaining:
                    remaining &= remaining - 1
                    setups += 1
                if start > 0:
                    setups = max(0, setups - switches)
                end[subset] = max(end[subset], start + work[subset] + setup_ms * setups / switches)
    sums = np.zeros(sets)
    for subset in range(1, sets):
        best = np.inf
        for coflow in range(count):
            if (subset >> coflow) & 1:
                best = min(best, sums[subset ^ (1 << coflow)] + weight[coflow] * end[subset])
        sums[subset] = best
    return float(sums[sets - 1])
