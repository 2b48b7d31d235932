"""Solstice: few, long days for demand that is skewed and sparse."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from planner.compiled import inner, kernel, run_small_in_python
from planner.contract.design import Decision
from planner.options import Options
from planner.search.tolerances import NEGLIGIBLE, SUM_ROUNDING
from planner_models.circuits.designs import kept_circuits
from planner_models.circuits.designs.partial_schedule import (
    Days,
    Limits,
    choose_switches,
    is_complete,
    longest_day_us,
)
from planner_models.circuits.plan import plan as schedules
from planner_models.circuits.plan.plan import IDLE, Day, Schedule
from planner_models.circuits.problem.problem import Circuits, takes_matrix
from planner_models.graphs.max_weight_matching import index_first, sum_ends

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Words = NDArray[np.uint64]
SMALLEST: Final = NEGLIGIBLE
ROUNDING: Final = SUM_ROUNDING
DAYS_AT_ONCE: Final = 64


@takes_matrix
def schedule(
    problem: Circuits,
    *,
    options: Options = Options(),
) -> Decision[Schedule]:
    """Schedule by stuffing demand to equal sums (QuickStuff) and slicing it by perfect matchings (BigSlice).

    A threshold halves whenever no perfect matching of entries above it is left; each matching found
    is a day as long as its smallest entry. It ends when the packet switch can carry what remains: in
    the time used so far without a window, as Solstice is published, or in the week with one, as
    Etalon changed it (Mukerjee 2018, 2.3.2), where it ends with the week too. Where only circuits that
    change are dark, a local search (`kept_circuits`) then uses those that stay up.

    Where there are several circuit switches, a day is one of the switch that is free first. What the week of
    this switch has no time for stays in the demand, and the next switch has the same circuits for the rest,
    so that a pair has circuits of several switches at once where it needs them. Without a window no day is
    longer than the time of the busiest rack over the number of switches. The schedule is the best of those
    over all switches and over fewer, so that more switches never serve less.

    source  Liu et al. 2015 (Solstice); wrapping over switches after McNaughton 1959
    """
    tried = (kept_circuits.improve(problem, item) for item in _list_schedules(problem))
    return schedules.make_decision(problem, choose_switches(problem, tried), options=options)


def days(problem: Circuits) -> list[Day]:
    """Return the days of Solstice alone: without the packet switch's share or a plan's tables."""
    return choose_switches(problem, _list_schedules(problem))


def _list_schedules(problem: Circuits) -> Iterator[list[Day]]:
    """Yield the schedule over one circuit switch, over two, and so on up to all of them."""
    for switches in range(1, problem.switches + 1):
        yield _schedule_days(problem, switches)


def _schedule_days(problem: Circuits, switches: int) -> list[Day]:
    """Return the days of the first `switches` circuit switches, compiled."""
    source, target = problem.pairs
    bits, mbps, n = problem.pair_bits, problem.pair_mbps, len(problem.racks)
    if not len(bits):
        return []
    longest = longest_day_us(problem, switches)
    first, column, full, origin, largest = _stuff_demand(source, target, bits / mbps, n)
    remaining, used = bits.copy(), np.zeros(switches)
    out, into = (sum_ends(end, bits, n) for end in (source, target))
    words = (n + 63) >> 6
    above, free_words = np.zeros((n, words), np.uint64), np.zeros((2, words), np.uint64)
    free_words[0] = np.packbits(np.arange(64 * words) < n, bitorder="little").view(np.uint64)  # all are free
    mates, paths = np.full((2, n), IDLE), np.empty((3, n + 1), np.int64)
    threshold = np.array([2.0 ** np.floor(np.log2(full.max())), 0.0])
    limits, made = Limits.of(problem), list[Day]()
    while True:
        days = Days.reserve(DAYS_AT_ONCE, n)
        count = _slice_demand(
            first,
            column,
            full,
            origin,
            SMALLEST * largest,
            mbps,
            limits,
            longest,
            remaining,
            used,
            out,
            into,
            above,
            free_words,
            mates,
            paths,
            threshold,
            days,
        )
        made += days.made(count)
        if count < DAYS_AT_ONCE:
            return made


@run_small_in_python(max_elements=20_000)
@kernel
def _slice_demand(  # noqa: C901
    first: Ints,
    column: Ints,
    full: Floats,
    origin: Ints,
    smallest: float,
    mbps: Floats,
    limits: Limits,
    longest: float,
    remaining: Floats,
    used: Floats,
    out: Floats,
    into: Floats,
    above: Words,
    free_words: Words,
    mates: Ints,
    paths: Ints,
    threshold: Floats,
    days: Days,
) -> int:
    """Fill `days` and return their number; fewer than its rows if the schedule is complete.

    first, column, full, origin  entries of the stuffed demand by source, as `_stuff_demand` returns them
    longest     time of a day, at most, us
    left, used, out, into  what is left of pairs (m,), used of switches, left from and to racks (n,)
    above       (n, words) the columns of entries of at least the threshold
    free_words        (2, words) the columns that are free, and scratch
    mates       (2, n) the column of each row, and the row of each column
    threshold   (2,) the threshold, and that up to which `above` is made
    """
    n, count = len(out), 0
    free, unseen, mate, back, entry_of = free_words[0], free_words[1], mates[0], mates[1], paths[2]
    while threshold[0] > smallest and not is_complete(limits, used, out, into):
        if threshold[1] != threshold[0]:
            for i in range(n):
                for k in range(first[i], first[i + 1]):
                    if full[k] >= threshold[0]:
                        add(above[i], column[k])
            threshold[1] = threshold[0]
        is_perfect = True
        for i in range(n):
            if mate[i] == IDLE and not _augment(i, above, free, unseen, mate, back, paths[0], paths[1]):
                is_perfect = False
                break
        if not is_perfect:
            threshold[0] /= 2
            continue
        if count == len(days.switch):
            return count
        slice_us, switch = np.inf, 0
        for i in range(n):
            for k in range(first[i], first[i + 1]):
                if column[k] == mate[i]:
                    entry_of[i] = k
                    slice_us = min(slice_us, full[k])
                    break
        for other in range(len(used)):
            if used[other] < used[switch]:
                switch = other
        length = max(min(slice_us, longest), limits.shortest_us)
        length = min(length, limits.window_us - used[switch] - limits.night_us)
        slice_us = min(slice_us, length)  # the rest stays, for another switch
        used[switch] += limits.night_us + length
        days.duration_us[count], days.switch[count] = length, switch
        for i in range(n):
            k, j = entry_of[i], mate[i]
            days.target[count, i] = j
            full[k] -= slice_us
            if full[k] < threshold[0]:
                drop(above[i], j)
                mate[i], back[j] = IDLE, IDLE
                add(free, j)
            pair = origin[k]
            if pair >= 0:
                carried = min(remaining[pair], length * mbps[pair])
                remaining[pair] -= carried
                out[i] = max(0.0, out[i] - carried)
                into[j] = max(0.0, into[j] - carried)
        count += 1
    return count


def _stuff_demand(source: Ints, target: Ints, time: Floats, n: int) -> tuple[Ints, Ints, Floats, Ints, float]:
    """Add to the demand (m,) until all sums over sources and targets are the largest of them.

    What is there grows first, so that few entries stay few; what is then short is filled in new ones.

    returns  where each source's entries start (n + 1,), their targets, sizes and pairs (-1 for new
             ones), and what all sums are
    """
    out, into = (sum_ends(end, time, n) for end in (source, target))
    largest = float(max(out.max(), into.max()))
    enlarged, sizes, ends = time.copy(), np.empty(2 * n), np.empty((2, 2 * n), np.int64)
    added = _fill_up(source, target, enlarged, out, into, largest, ends, sizes)
    rows = np.concatenate([source, ends[0, :added]])
    order = np.argsort(rows, kind="stable")
    column = np.concatenate([target, ends[1, :added]])[order]
    full = np.concatenate([enlarged, sizes[:added]])[order]
    origin = np.concatenate([np.arange(len(time)), np.full(added, -1)])[order]
    return index_first(rows, n), column, full, origin, largest


@run_small_in_python(max_elements=20_000)
@kernel
def _fill_up(
    source: Ints,
    target: Ints,
    time: Floats,
    out: Floats,
    into: Floats,
    largest: float,
    ends: Ints,
    sizes: Floats,
) -> int:
    """Enlarge the entries (m,) `time`, write new ones to `ends` (2, 2n) and `sizes`; return their number."""
    n = len(out)
    for k in range(len(time)):
        more = min(largest - out[source[k]], largest - into[target[k]])
        if more > 0:
            time[k] += more
            out[source[k]] += more
            into[target[k]] += more
    added, i, j = 0, 0, 0
    while i < n and j < n:
        short_out, short_in = largest - out[i], largest - into[j]
        if short_out <= ROUNDING * largest:
            i += 1
        elif short_in <= ROUNDING * largest:
            j += 1
        else:
            size = min(short_out, short_in)
            ends[0, added], ends[1, added], sizes[added] = i, j, size
            out[i] += size
            into[j] += size
            added += 1
    return added


@inner
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


@inner
def add(words: Words, number: int) -> None:
    """Add a number to the set."""
    words[number >> 6] |= np.uint64(1) << np.uint64(number & 63)


@inner
def drop(words: Words, number: int) -> None:
    """Take a number out of the set."""
    words[number >> 6] &= ~(np.uint64(1) << np.uint64(number & 63))


@inner
def lowest_common(words: Words, others: Words) -> int:
    """Return the smallest number that is in both sets; -1 where there is none."""
    for w in range(len(words)):
        both = words[w] & others[w]
        if both != 0:
            single = both & (~both + np.uint64(1))
            index: int = w * 64 + PLACES[(single * np.uint64(SEQUENCE)) >> np.uint64(58)]
            return index
    return -1
