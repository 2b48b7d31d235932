"""Eclipse: greedily the day, its matching and length, that serves the most for the time it takes."""

from __future__ import annotations

from typing import Annotated, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from planner.compiled import inner, kernel, run_small_in_python
from planner.contract.design import Decision
from planner.options import Options
from planner.search.deadline import NEVER, Deadline
from planner.search.tolerances import ROUNDING, SUM_ROUNDING
from planner_models.circuits.designs import kept_circuits, upper_bound
from planner_models.circuits.designs.partial_schedule import (
    Days,
    Demand,
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
from planner_models.graphs.max_weight_matching import FREE, Pairs, State, update_matching

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
MIN_GAIN: Final = SUM_ROUNDING
DAYS_AT_ONCE: Final = 64
PAIRS_AT_ONCE: Final = 20_000  # pairs times days of one call of compiled code, between looks at the clock

Starts = Annotated[
    int,
    Field(
        ge=0,
        le=64,
        description="lengths of day from which each search starts, from the longest of use down evenly in "
        "logarithm, besides that of the last day; 0: every length that could be best is tried",
    ),
]


@takes_matrix
def schedule(
    problem: Circuits,
    *,
    starts: Starts = 1,
    prove: Annotated[bool, Field(description="also find a bound on all schedules")] = False,
    options: Options = Options(),
) -> Decision[Schedule]:
    """Schedule greedily the day of the most demand served for its length and its night.

    For a length of day the best matching is a linear assignment; for a matching the best length is
    that of one of its entries. Both alternate until neither gains: far fewer assignments than trying
    every length.

    A day is never longer than the rest of the week, so that the last one fills it. The first days, while
    none is cut short so, serve by circuits at least 1 - exp(-C / W) of what any schedule could, where C is
    the time that they take with their nights, if every length is tried (`starts = 0`): the greedy
    maximisation, per unit of time, of a submodular function. Where only circuits that change are dark, a
    local search (`kept_circuits`) then uses those that stay up.

    Without a window, several circuit switches share the demand of a pair: no day is longer than the time of
    the busiest rack over the number of switches, and the schedule is the best of those over all switches and
    over fewer.

    source  Venkatakrishnan et al. 2016 (Eclipse), greedy over durations and matchings
    """
    proven = upper_bound.bound_schedules(problem, options=options).proof.bound if prove else None
    improved = kept_circuits.improve(problem, days(problem, starts=starts))
    return schedules.make_decision(problem, improved, bound=proven, options=options)


def days(problem: Circuits, *, starts: int = 1, deadline: Deadline = NEVER) -> list[Day]:
    """Return the days of Eclipse alone, compiled: without the packet switch's share or a plan's tables.

    deadline  when no more days are added
    """
    if problem.window_us is not None:
        return _schedule_days(problem, problem.switches, starts, deadline)
    every = range(1, problem.switches + 1)
    return choose_switches(problem, (_schedule_days(problem, few, starts, deadline) for few in every))


class _Trial(NamedTuple):
    """Matched pairs with demand, of a matching that is tried.

    pair     (n,) of each source, or FREE
    entries  (3, n) length, us, bits and rate of each, the shortest first
    """

    pair: Ints
    entries: Floats


class _Search(NamedTuple):
    """State of the greedy search between its days; arrays without a meaning of their own are scratch space.

    longest_us  time of a day, at most
    starts      lengths from which each day is searched; 0: all that could be best
    trial       scratch space of a matching
    weight      (m,) bits that a day of a length could serve of each pair
    lengths     (1, at least m) lengths that are tried
    best        (n,) pair of each source in the best day so far, or FREE
    last_us     (1,) length of the last day, -1 before the first
    """

    demand: Demand
    limits: Limits
    longest_us: float
    starts: int
    remaining: Remaining
    matching: State
    trial: _Trial
    weight: Floats
    lengths: Floats
    best: Ints
    last_us: Floats


def _schedule_days(problem: Circuits, switches: int, starts: int, deadline: Deadline) -> list[Day]:
    """Return the days of the first `switches` circuit switches."""
    n, bits = len(problem.racks), problem.pair_bits
    if not len(bits):
        return []
    search = _Search(
        demand=Demand.of(problem),
        limits=Limits.of(problem),
        longest_us=longest_day_us(problem, switches),
        starts=starts,
        remaining=Remaining.of(problem, switches),
        matching=State.of(n),
        trial=_Trial(np.empty(n, np.int64), np.empty((3, n))),
        weight=np.empty_like(bits),
        lengths=np.empty((1, max(starts + 1, len(bits)))),
        best=np.empty(n, np.int64),
        last_us=np.full(1, -1.0),
    )
    made: list[Day] = []
    at_once = DAYS_AT_ONCE if deadline.is_never else max(1, min(DAYS_AT_ONCE, PAIRS_AT_ONCE // len(bits)))
    while True:
        days = Days.reserve(at_once, n)
        count = _schedule_greedily(search, days)
        made += days.made(count)
        if count < at_once or deadline.is_over:
            return made


@run_small_in_python(max_elements=2_000)
@kernel
def _schedule_greedily(search: _Search, days: Days) -> int:
    """Fill `days` and return their number; fewer than its rows if the schedule is complete."""
    limits, remaining, count = search.limits, search.remaining, 0
    while count < len(days.switch) and not is_complete(
        limits, remaining.used_us, remaining.out, remaining.into
    ):
        switch = find_first_free(remaining.used_us)
        low, high = _limit_length(search, switch)
        if low < 0:
            break
        length = _search_day(search, low, high)
        search.last_us[0] = length
        remaining.used_us[switch] += limits.night_us + length
        days.duration_us[count], days.switch[count] = length, switch
        _serve_day(search, days.target[count], length)
        count += 1
    return count


@inner
def _limit_length(search: _Search, switch: int) -> tuple[float, float]:
    """Return the shortest and the longest day of use on a switch, us; -1 where no demand remains."""
    remaining, mbps, limits = search.remaining.bits, search.demand.mbps, search.limits
    longest, shortest = 0.0, np.inf
    for k in range(len(remaining)):
        if remaining[k] > 0:
            longest = max(longest, remaining[k] / mbps[k])
            shortest = min(shortest, remaining[k] / mbps[k])
    if longest <= 0:
        return -1.0, -1.0
    free_us = limits.window_us - search.remaining.used_us[switch] - limits.night_us
    high = min(longest, search.longest_us, free_us)
    high = max(limits.shortest_us, high)
    return min(high, max(limits.shortest_us, shortest)), high


@inner
def _search_day(search: _Search, low: float, high: float) -> float:
    """Return the length of the best day, us; its pairs are written to `best`."""
    starts, lengths, weight, trial = search.starts, search.lengths, search.weight, search.trial
    demand, remaining, matching = search.demand, search.remaining.bits, search.matching
    mbps, pairs, mate, night_us = demand.mbps, demand.pairs, matching.mate, search.limits.night_us
    entries = trial.entries
    best, length = -1.0, high
    for index in range(_list_lengths(search, low, high)):
        if starts == 0 and index > 0 and lengths[0, index] == lengths[0, index - 1]:
            continue
        now, previous = lengths[0, index], -1.0
        while True:
            for k in range(len(weight)):
                weight[k] = min(remaining[k], mbps[k] * now)
            update_matching(pairs, weight, matching)
            count, total_mbps = _list_entries(pairs, mbps, remaining, mate, trial)
            rate, longer = _find_best_length(entries, count, total_mbps, night_us, low, high)
            if rate > best:
                best, length = rate, longer
                search.best[:] = trial.pair
            if starts == 0 or rate <= previous * (1 + MIN_GAIN) or longer == now:
                break
            now, previous = longer, rate
    return length


@inner
def _serve_day(search: _Search, target: Ints, length: float) -> None:
    """Serve demand by a day of the best pairs; write the target of each source, or IDLE."""
    bits, mbps, target_of = search.demand.bits, search.demand.mbps, search.demand.pairs.target
    remaining, remaining_bits, best = search.remaining, search.remaining.bits, search.best
    for i in range(len(target)):
        k = best[i]
        target[i] = IDLE
        if k != FREE:
            j = target_of[k]
            target[i] = j
            carry(remaining, k, i, j, length * mbps[k])
            if remaining_bits[k] <= ROUNDING * bits[k]:
                remaining_bits[k] = 0.0


@inner
def _list_lengths(search: _Search, low: float, high: float) -> int:
    """Write the lengths from which to search for the best day to `lengths`; return their number."""
    remaining, mbps, lengths = search.remaining.bits, search.demand.mbps, search.lengths
    starts, last, count = search.starts, search.last_us[0], 0
    for k in range(len(remaining) if starts == 0 else 0):
        if remaining[k] > 0:
            lengths[0, count] = min(high, max(low, remaining[k] / mbps[k]))
            count += 1
    _sort_columns(lengths, count)
    for index in range(starts):
        lengths[0, count] = high * (low / high) ** (index / max(1, starts - 1))
        count += 1
    if starts > 0 and last > 0:
        lengths[0, count] = min(high, max(low, last))
        count += 1
    return count


@inner
def _sort_columns(values: Floats, count: int) -> None:
    """Sort the first `count` columns of a matrix by its first row, as D. L. Shell does."""
    gap = 1
    while 3 * gap < count:
        gap = 3 * gap + 1
    while gap > 0:
        for start in range(gap, count):
            position = start
            while position >= gap and values[0, position - gap] > values[0, position]:
                for row in range(len(values)):
                    values[row, position], values[row, position - gap] = (
                        values[row, position - gap],
                        values[row, position],
                    )
                position -= gap
        gap //= 3


@inner
def _find_best_length(
    entries: Floats, count: int, total_mbps: float, night_us: float, low: float, high: float
) -> tuple[float, float]:
    """Return the most bits served per time of a day of a matching with its night, and that day's length.

    Between two entries the bits that are served are linear in the length, so that the ratio has no maximum
    inside: only the entries' own lengths and the limits `low` and `high`, us, count.
    """
    _sort_columns(entries, count)
    total, running, best, length = 0.0, total_mbps, -1.0, high
    index = 0
    tried = low
    while True:
        while index < count and entries[0, index] <= tried:
            total += entries[1, index]
            running -= entries[2, index]
            index += 1
        served = total + max(0.0, running) * tried
        if tried > 0 and served > best * (tried + night_us):
            best, length = served / (tried + night_us), tried
        if tried >= high:
            return best, length
        tried = min(high, entries[0, index]) if index < count else high


@inner
def _list_entries(
    pairs: Pairs, mbps: Floats, remaining: Floats, mate: Ints, trial: _Trial
) -> tuple[int, float]:
    """Write the matched pairs with demand to `trial`; return their number and total rate."""
    first, target = pairs.first, pairs.target
    pair, entries = trial.pair, trial.entries
    count, total_mbps = 0, 0.0
    for i in range(len(mate)):
        pair[i] = FREE
        if mate[i] == FREE:
            continue
        for k in range(first[i], first[i + 1]):
            if target[k] == mate[i] and remaining[k] > 0:
                pair[i] = k
                entries[0, count] = remaining[k] / mbps[k]
                entries[1, count] = remaining[k]
                entries[2, count] = mbps[k]
                total_mbps += mbps[k]
                count += 1
                break
    return count, total_mbps
