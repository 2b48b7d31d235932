"""Eclipse: greedily the day, its matching and length, that serves the most for the time it takes."""

from __future__ import annotations

from typing import Annotated, Final

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
    Limits,
    choose_switches,
    is_complete,
    longest_day_us,
)
from planner_models.circuits.plan import plan as schedules
from planner_models.circuits.plan.plan import IDLE, Day, Schedule
from planner_models.circuits.problem.problem import Circuits, takes_matrix
from planner_models.graphs.max_weight_matching import FREE, Pairs, State, sum_ends, update_matching

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


def _schedule_days(problem: Circuits, switches: int, starts: int, deadline: Deadline) -> list[Day]:
    """Return the days of the first `switches` circuit switches."""
    n, bits = len(problem.racks), problem.pair_bits
    if not len(bits):
        return []
    pairs, state, limits = Pairs.of(problem.bits > 0), State.of(n), Limits.of(problem)
    source, target = problem.pairs
    out, into = (sum_ends(end, bits, n) for end in (source, target))
    remaining, used, scratch = bits.copy(), np.zeros(switches), np.empty((3, n))
    tries, matched, last = (
        np.empty((1, max(starts + 1, len(bits)))),
        np.empty((2, n), np.int64),
        np.full(1, -1.0),
    )
    made: list[Day] = []
    at_once = DAYS_AT_ONCE if deadline.is_never else max(1, min(DAYS_AT_ONCE, PAIRS_AT_ONCE // len(bits)))
    while True:
        days = Days.reserve(at_once, n)
        count = _schedule_greedily(
            pairs,
            state,
            bits,
            problem.pair_mbps,
            limits,
            longest_day_us(problem, switches),
            starts,
            remaining,
            np.empty_like(bits),
            used,
            out,
            into,
            tries,
            scratch,
            matched,
            last,
            days,
        )
        made += days.made(count)
        if count < at_once or deadline.is_over:
            return made


@run_small_in_python(max_elements=2_000)
@kernel
def _schedule_greedily(  # noqa: C901
    pairs: Pairs,
    state: State,
    bits: Floats,
    mbps: Floats,
    limits: Limits,
    longest_us: float,
    starts: int,
    remaining: Floats,
    weight: Floats,
    used: Floats,
    out: Floats,
    into: Floats,
    tries: Floats,
    scratch: Floats,
    matched: Ints,
    last: Floats,
    days: Days,
) -> int:
    """Fill `days` and return their number; fewer than its rows if the schedule is complete.

    longest_us  time of a day, at most
    left, used, out, into, last  what is left of pairs (m,), used of switches, left from and to racks (n,),
                                 and the last length (1,): the state between calls
    tries (1, m), scratch (3, n), matched (2, n)  places for lengths that are tried, and matched pairs
    """
    n, m, count = len(out), len(bits), 0
    while count < len(days.switch) and not is_complete(limits, used, out, into):
        switch = 0
        for other in range(len(used)):
            if used[other] < used[switch]:
                switch = other
        longest, shortest = 0.0, np.inf
        for k in range(m):
            if remaining[k] > 0:
                longest = max(longest, remaining[k] / mbps[k])
                shortest = min(shortest, remaining[k] / mbps[k])
        if longest <= 0:
            break
        high = min(longest, longest_us, limits.window_us - used[switch] - limits.night_us)
        high = max(limits.shortest_us, high)
        low = min(high, max(limits.shortest_us, shortest))
        many = _list_lengths(tries, remaining, mbps, low, high, starts, last[0])
        best, length = -1.0, high
        for index in range(many):
            if starts == 0 and index > 0 and tries[0, index] == tries[0, index - 1]:
                continue
            now, previous = tries[0, index], -1.0
            while True:
                for k in range(m):
                    weight[k] = min(remaining[k], mbps[k] * now)
                update_matching(pairs, weight, state)
                rate, longer = _best_length(
                    pairs, remaining, mbps, limits.night_us, low, high, scratch, matched, state
                )
                if rate > best:
                    best, length = rate, longer
                    for i in range(n):
                        matched[1, i] = matched[0, i]
                if starts == 0 or rate <= previous * (1 + MIN_GAIN) or longer == now:
                    break
                now, previous = longer, rate
        last[0] = length
        used[switch] += limits.night_us + length
        for i in range(n):
            k = matched[1, i]
            days.target[count, i] = IDLE
            if k != FREE:
                j = pairs.target[k]
                days.target[count, i] = j
                carried = min(remaining[k], length * mbps[k])
                remaining[k] -= carried
                if remaining[k] <= ROUNDING * bits[k]:
                    remaining[k] = 0.0
                out[i] = max(0.0, out[i] - carried)
                into[j] = max(0.0, into[j] - carried)
        days.duration_us[count], days.switch[count] = length, switch
        count += 1
    return count


@inner
def _list_lengths(
    tries: Floats, remaining: Floats, mbps: Floats, low: float, high: float, starts: int, last: float
) -> int:
    """Write the lengths from which to search for the best day to `tries` (1, m); return their number."""
    count = 0
    for k in range(len(remaining) if starts == 0 else 0):
        if remaining[k] > 0:
            tries[0, count] = min(high, max(low, remaining[k] / mbps[k]))
            count += 1
    _sort_columns(tries, count)
    for index in range(starts):
        tries[0, count] = high * (low / high) ** (index / max(1, starts - 1))
        count += 1
    if starts > 0 and last > 0:
        tries[0, count] = min(high, max(low, last))
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
def _best_length(
    pairs: Pairs,
    remaining: Floats,
    mbps: Floats,
    night_us: float,
    low: float,
    high: float,
    scratch: Floats,
    matched: Ints,
    state: State,
) -> tuple[float, float]:
    """Return the most bits served per time of a day of a matching with its night, and that day's length.

    Between two entries what is served is linear in the length, so that the ratio has no maximum
    inside: only the entries' own lengths and the limits `low` and `high`, us, count.

    matched  (2, n) gets the matched pairs with demand left in its first row, or FREE
    """
    count, running, n = 0, 0.0, len(state.mate)
    for i in range(n):
        matched[0, i] = FREE
        if state.mate[i] == FREE:
            continue
        for k in range(pairs.first[i], pairs.first[i + 1]):
            if pairs.target[k] == state.mate[i] and remaining[k] > 0:
                matched[0, i] = k
                scratch[0, count], scratch[1, count], scratch[2, count] = (
                    remaining[k] / mbps[k],
                    remaining[k],
                    mbps[k],
                )
                running += mbps[k]
                count += 1
                break
    _sort_columns(scratch, count)
    total, best, length = 0.0, -1.0, high
    index = 0
    tried = low
    while True:
        while index < count and scratch[0, index] <= tried:
            total += scratch[1, index]
            running -= scratch[2, index]
            index += 1
        served = total + max(0.0, running) * tried
        if tried > 0 and served > best * (tried + night_us):
            best, length = served / (tried + night_us), tried
        if tried >= high:
            return best, length
        tried = min(high, scratch[0, index]) if index < count else high
