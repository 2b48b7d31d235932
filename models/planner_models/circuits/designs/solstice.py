"""Solstice: few, long days for demand that is skewed and sparse."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

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
    Remaining,
    carry,
    choose_switches,
    find_first_free,
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


class _Entries(NamedTuple):
    """Entries of the stuffed demand by source.

    first   (n + 1,) where those of each source start
    column  target of each
    time    us of each, which slices reduce
    origin  pair of each, -1 for those that stuffing added
    """

    first: Ints
    column: Ints
    time: Floats
    origin: Ints


class _Matching(NamedTuple):
    """A matching of sources and targets that grows by augmenting paths.

    above   (n, words) targets of entries of at least the threshold, of each source, as bits
    free    (words,) targets that are not matched; unseen (words,) those that a search has not met
    mate    (n,) the target of each source, and back (n,) the source of each target, or IDLE
    path    (2, n + 1) sources of a path, and the targets between them
    """

    above: Words
    free: Words
    unseen: Words
    mate: Ints
    back: Ints
    path: Ints

    @classmethod
    def of(cls, n: int) -> _Matching:
        """Return a matching of n racks without any pair."""
        words = (n + 63) >> 6
        free = np.packbits(np.arange(64 * words) < n, bitorder="little").view(np.uint64)
        mate, path = np.full(n, IDLE), np.empty((2, n + 1), np.int64)
        return cls(
            np.zeros((n, words), np.uint64),
            free,
            np.zeros(words, np.uint64),
            mate,
            mate.copy(),
            path,
        )


class _Slicing(NamedTuple):
    """State of the slicing of stuffed demand between its days.

    mbps         (m,) rate of a circuit of each pair
    longest_us   time of a day, at most
    smallest_us  threshold at which slicing ends
    threshold    (2,) the threshold, and that up to which `matching.above` is made
    entry_of     (n,) matched entry of each source
    """

    entries: _Entries
    matching: _Matching
    mbps: Floats
    limits: Limits
    longest_us: float
    smallest_us: float
    remaining: Remaining
    threshold: Floats
    entry_of: Ints


def _schedule_days(problem: Circuits, switches: int) -> list[Day]:
    """Return the days of the first `switches` circuit switches, compiled."""
    source, target = problem.pairs
    bits, mbps, n = problem.pair_bits, problem.pair_mbps, len(problem.racks)
    if not len(bits):
        return []
    entries, largest = _stuff_demand(source, target, bits / mbps, n)
    slicing = _Slicing(
        entries=entries,
        matching=_Matching.of(n),
        mbps=mbps,
        limits=Limits.of(problem),
        longest_us=longest_day_us(problem, switches),
        smallest_us=SMALLEST * largest,
        remaining=Remaining.of(problem, switches),
        threshold=np.array([2.0 ** np.floor(np.log2(entries.time.max())), 0.0]),
        entry_of=np.empty(n, np.int64),
    )
    made = list[Day]()
    while True:
        days = Days.reserve(DAYS_AT_ONCE, n)
        count = _slice_demand(slicing, days)
        made += days.made(count)
        if count < DAYS_AT_ONCE:
            return made


@run_small_in_python(max_elements=20_000)
@kernel
def _slice_demand(slicing: _Slicing, days: Days) -> int:
    """Fill `days` and return their number; fewer than its rows if the schedule is complete."""
    matching, limits, threshold, smallest_us = (
        slicing.matching,
        slicing.limits,
        slicing.threshold,
        slicing.smallest_us,
    )
    used_us, out, into = slicing.remaining.used_us, slicing.remaining.out, slicing.remaining.into
    count = 0
    while threshold[0] > smallest_us and not is_complete(limits, used_us, out, into):
        if threshold[1] != threshold[0]:
            _mark_entries(slicing)
        if not _match_all(matching):
            threshold[0] /= 2
            continue
        if count == len(days.switch):
            return count
        _take_slice(slicing, days, count)
        count += 1
    return count


@inner
def _mark_entries(slicing: _Slicing) -> None:
    """Add the entries of at least the threshold to those that the matching may use."""
    first, column, time = slicing.entries.first, slicing.entries.column, slicing.entries.time
    above, threshold = slicing.matching.above, slicing.threshold
    for i in range(len(first) - 1):
        for k in range(first[i], first[i + 1]):
            if time[k] >= threshold[0]:
                add(above[i], column[k])
    threshold[1] = threshold[0]


@inner
def _match_all(matching: _Matching) -> bool:
    """Match all sources; return False where there is no perfect matching."""
    above, free, unseen = matching.above, matching.free, matching.unseen
    mate, back, path = matching.mate, matching.back, matching.path
    for i in range(len(mate)):
        if mate[i] == IDLE and not _augment(i, above, free, unseen, mate, back, path):
            return False
    return True


@inner
def _take_slice(slicing: _Slicing, days: Days, count: int) -> None:
    """Write the day of the matching to `days`, and take its time off the matched entries."""
    entries, matching, limits, remaining = (
        slicing.entries,
        slicing.matching,
        slicing.limits,
        slicing.remaining,
    )
    mate, back, above, free = matching.mate, matching.back, matching.above, matching.free
    first, column, time, origin = entries.first, entries.column, entries.time, entries.origin
    entry_of, mbps, threshold = slicing.entry_of, slicing.mbps, slicing.threshold[0]
    slice_us = np.inf
    for i in range(len(mate)):
        for k in range(first[i], first[i + 1]):
            if column[k] == mate[i]:
                entry_of[i] = k
                slice_us = min(slice_us, time[k])
                break
    switch = find_first_free(remaining.used_us)
    length = max(min(slice_us, slicing.longest_us), limits.shortest_us)
    length = min(length, limits.window_us - remaining.used_us[switch] - limits.night_us)
    slice_us = min(slice_us, length)  # the rest stays, for another switch
    remaining.used_us[switch] += limits.night_us + length
    days.duration_us[count], days.switch[count] = length, switch
    for i in range(len(mate)):
        k, j = entry_of[i], mate[i]
        days.target[count, i] = j
        time[k] -= slice_us
        if time[k] < threshold:
            drop(above[i], j)
            mate[i], back[j] = IDLE, IDLE
            add(free, j)
        pair = origin[k]
        if pair >= 0:
            carry(remaining, pair, i, j, length * mbps[pair])


def _stuff_demand(source: Ints, target: Ints, time: Floats, n: int) -> tuple[_Entries, float]:
    """Add to the demand (m,) until all sums over sources and targets are the largest of them.

    Present entries grow first, so that few entries stay few; the missing time is filled in new ones.

    returns  the entries, and the sum of each source and each target
    """
    out, into = (sum_ends(end, time, n) for end in (source, target))
    largest = float(max(out.max(), into.max()))
    enlarged, added = time.copy(), _Added(np.empty((2, 2 * n), np.int64), np.empty(2 * n))
    count = _fill_up(source, target, enlarged, out, into, largest, added)
    rows = np.concatenate([source, added.ends[0, :count]])
    order = np.argsort(rows, kind="stable")
    entries = _Entries(
        first=index_first(rows, n),
        column=np.concatenate([target, added.ends[1, :count]])[order],
        time=np.concatenate([enlarged, added.time[:count]])[order],
        origin=np.concatenate([np.arange(len(time)), np.full(count, -1)])[order],
    )
    return entries, largest


class _Added(NamedTuple):
    """New entries: source and target of each, (2, 2n), and its time, us, (2n,)."""

    ends: Ints
    time: Floats


@run_small_in_python(max_elements=20_000)
@kernel
def _fill_up(
    source: Ints,
    target: Ints,
    time: Floats,
    out: Floats,
    into: Floats,
    largest: float,
    new: _Added,
) -> int:
    """Enlarge the entries (m,) `time`, write new ones to `new`; return their number."""
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
            new.ends[0, added], new.ends[1, added], new.time[added] = i, j, size
            out[i] += size
            into[j] += size
            added += 1
    return added


@inner
def _augment(
    start: int, above: Words, free: Words, unseen: Words, mate: Ints, back: Ints, path: Ints
) -> bool:
    """Match row `start` by an augmenting path to a free column; return False where there is none."""
    for w in range(len(unseen)):
        unseen[w] = ~np.uint64(0)
    depth = 0
    path[0, 0] = start
    while depth >= 0:
        i = path[0, depth]
        j = lowest_common(above[i], free)
        if j >= 0:
            drop(free, j)
            while True:
                i = path[0, depth]
                mate[i], back[j] = j, i
                if depth == 0:
                    return True
                j = path[1, depth]
                depth -= 1
        j = lowest_common(above[i], unseen)
        if j < 0:
            depth -= 1
            continue
        drop(unseen, j)
        depth += 1
        path[0, depth], path[1, depth] = back[j], j
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
