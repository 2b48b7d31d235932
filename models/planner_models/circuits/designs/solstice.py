"""Solstice: few, long days for demand that is skewed and sparse."""

from __future__ import annotations

from typing import Final

import numba as nb
import numpy as np
from numpy.typing import NDArray

from planner.contract.design import Decision
from planner_models.circuits.designs.partial_schedule import Limits, is_complete
from planner_models.circuits.plan import plan as schedules
from planner_models.circuits.plan.plan import IDLE, Day, Schedule
from planner_models.circuits.problem.problem import Circuits

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Words = NDArray[np.uint64]
SMALLEST: Final = 1e-9
ROUNDING: Final = 1e-12


def schedule(
    problem: Circuits,
) -> Decision[Schedule]:
    """Schedule by stuffing demand to equal sums (QuickStuff) and slicing it by perfect matchings (BigSlice).

    A threshold halves whenever no perfect matching of entries above it is left; each matching found
    is a day as long as its smallest entry. It ends when the packet switch can carry what remains: in
    the time used so far without a window, as Solstice is published, or in the week with one, as
    Etalon changed it (Mukerjee 2018, 2.3.2), where it ends with the week too.

    source  Liu et al. 2015 (Solstice)
    """
    return schedules.make_decision(problem, days(problem))


def days(problem: Circuits) -> list[Day]:
    """Return the days of Solstice alone, compiled: without the packet switch's share or a plan's tables."""
    source, target = problem.pairs
    if not len(source):
        return []
    n = len(problem.racks)
    lengths, targets, switches = _slice_demand(
        source, target, problem.pair_bits, problem.pair_mbps, n, Limits.of(problem)
    )
    return [
        Day(duration_us=float(length), target=to, switch=int(switch))
        for length, to, switch in zip(lengths, targets, switches, strict=True)
    ]


@nb.njit(cache=True)
def _slice_demand(  # noqa: C901
    source: Ints, target: Ints, bits: Floats, mbps: Floats, n: int, limits: Limits
) -> tuple[Floats, Ints, Ints]:
    """Return (K,) lengths, (K, n) targets and (K,) switches of the days for m pairs."""
    left = bits.copy()
    out, into = np.zeros(n), np.zeros(n)
    for k in range(len(bits)):
        out[source[k]] += bits[k]
        into[target[k]] += bits[k]
    first, column, full, origin, most = _stuff_demand(source, target, bits / mbps, n)
    words = (n + 63) >> 6
    above = np.zeros((n, words), np.uint64)
    free, unseen = np.zeros(words, np.uint64), np.zeros(words, np.uint64)
    for j in range(n):
        add(free, j)
    mate, back = np.full(n, IDLE), np.full(n, IDLE)
    path, via = np.empty(n + 1, np.int64), np.empty(n + 1, np.int64)
    place = np.empty(n, np.int64)
    used = np.zeros(limits.switches)
    lengths, switches = np.empty(16), np.empty(16, np.int64)
    targets = np.empty((16, n), np.int64)
    count = 0
    threshold = 2.0 ** np.floor(np.log2(full.max()))
    lowered = True
    while threshold > SMALLEST * most and not is_complete(limits, used, out, into):
        if lowered:
            for i in range(n):
                for k in range(first[i], first[i + 1]):
                    if full[k] >= threshold:
                        add(above[i], column[k])
        lowered = False
        for i in range(n):
            if mate[i] == IDLE and not _augment(i, above, free, unseen, mate, back, path, via):
                lowered = True
                break
        if lowered:
            threshold /= 2
            continue
        slice_us = np.inf
        for i in range(n):
            for k in range(first[i], first[i + 1]):
                if column[k] == mate[i]:
                    place[i] = k
                    slice_us = min(slice_us, full[k])
                    break
        if count == len(lengths):
            lengths, switches = np.append(lengths, lengths), np.append(switches, switches)
            targets = np.concatenate((targets, targets))
        switch = used.argmin()
        length = min(max(slice_us, limits.shortest_us), limits.window_us - used[switch] - limits.night_us)
        used[switch] += limits.night_us + length
        lengths[count], switches[count], targets[count] = length, switch, mate
        count += 1
        for i in range(n):
            k, j = place[i], mate[i]
            full[k] -= slice_us
            if full[k] < threshold:
                drop(above[i], j)
                mate[i], back[j] = IDLE, IDLE
                add(free, j)
            pair = origin[k]
            if pair >= 0:
                carried = min(left[pair], length * mbps[pair])
                left[pair] -= carried
                out[i] = max(0.0, out[i] - carried)
                into[j] = max(0.0, into[j] - carried)
    return lengths[:count], targets[:count], switches[:count]


@nb.njit(cache=True)
def _stuff_demand(source: Ints, target: Ints, time: Floats, n: int) -> tuple[Ints, Ints, Floats, Ints, float]:
    """Add to the demand (m,) until all sums over sources and targets are the largest of them.

    What is there grows first, so that few entries stay few; what is then short is filled in new ones.

    returns  where each source's entries start (n + 1,), their targets, sizes and pairs (-1 for new
             ones), and what all sums are
    """
    out, into = np.zeros(n), np.zeros(n)
    for k in range(len(time)):
        out[source[k]] += time[k]
        into[target[k]] += time[k]
    most = max(out.max(), into.max())
    enlarged = time.copy()
    for k in range(len(time)):
        more = min(most - out[source[k]], most - into[target[k]])
        if more > 0:
            enlarged[k] += more
            out[source[k]] += more
            into[target[k]] += more
    new_source, new_target, new_size = np.empty(2 * n, np.int64), np.empty(2 * n, np.int64), np.empty(2 * n)
    added = 0
    i, j = 0, 0
    while i < n and j < n:
        short_out, short_in = most - out[i], most - into[j]
        if short_out <= ROUNDING * most:
            i += 1
        elif short_in <= ROUNDING * most:
            j += 1
        else:
            size = min(short_out, short_in)
            new_source[added], new_target[added], new_size[added] = i, j, size
            out[i] += size
            into[j] += size
            added += 1
    m = len(time) + added
    first, column = np.zeros(n + 1, np.int64), np.empty(m, np.int64)
    full, origin = np.empty(m), np.empty(m, np.int64)
    old, new, k = 0, 0, 0
    for i in range(n):
        while old < len(time) and source[old] == i:
            column[k], full[k], origin[k] = target[old], enlarged[old], old
            old, k = old + 1, k + 1
        while new < added and new_source[new] == i:
            column[k], full[k], origin[k] = new_target[new], new_size[new], -1
            new, k = new + 1, k + 1
        first[i + 1] = k
    return first, column, full, origin, most


@nb.njit(cache=True)
def _augment(
    start: int,
    above: Words,
    free: Words,
    unseen: Words,
    mate: Ints,
    back: Ints,
    path: Ints,
    via: Ints,
) -> bool:
    """Match row `start` by an augmenting path to a free column; return False where there is none.

    above  (n, words) bits of the columns that each row may have; free (words,) of those that none has
    """
    for w in range(len(unseen)):
        unseen[w] = ~np.uint64(0)
    depth = 0
    path[0] = start
    while depth >= 0:
        i = path[depth]
        j = lowest_common(above[i], free)
        if j >= 0:
            drop(free, j)
            while True:
                i = path[depth]
                mate[i], back[j] = j, i
                if depth == 0:
                    return True
                j = via[depth]
                depth -= 1
        j = lowest_common(above[i], unseen)
        if j < 0:
            depth -= 1
            continue
        drop(unseen, j)
        depth += 1
        path[depth], via[depth] = back[j], j
    return False


# --- sets of small numbers as bits of words --------------------------------------------

# a word with a single bit, times this, has its place in the highest six bits (de Bruijn's sequence)
SEQUENCE: Final = 0x03F79D71B4CB0A89
PLACES: Final = np.zeros(64, dtype=np.int64)
for _place in range(64):
    PLACES[((SEQUENCE << _place) & (2**64 - 1)) >> 58] = _place


@nb.njit(cache=True)
def add(words: Words, number: int) -> None:
    """Add a number to the set."""
    words[number >> 6] |= np.uint64(1) << np.uint64(number & 63)


@nb.njit(cache=True)
def drop(words: Words, number: int) -> None:
    """Take a number out of the set."""
    words[number >> 6] &= ~(np.uint64(1) << np.uint64(number & 63))


@nb.njit(cache=True)
def lowest_common(words: Words, others: Words) -> int:
    """Return the smallest number that is in both sets; -1 where there is none."""
    for w in range(len(words)):
        both = words[w] & others[w]
        if both != 0:
            single = both & (~both + np.uint64(1))
            place: int = w * 64 + PLACES[(single * np.uint64(SEQUENCE)) >> np.uint64(58)]
            return place
    return -1
