"""Eclipse: greedily the day, its matching and length, that serves the most for the time it takes."""

from __future__ import annotations

from typing import Annotated, Final

import numba as nb
import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from planner.contract.design import Decision
from planner.options import Options
from planner_models.circuits.designs import upper_bound
from planner_models.circuits.designs.max_weight_matching import FREE, Pairs, new_state, update_matching
from planner_models.circuits.designs.partial_schedule import Limits, is_complete
from planner_models.circuits.plan import plan as schedules
from planner_models.circuits.plan.plan import IDLE, Day, Schedule
from planner_models.circuits.problem.problem import Circuits

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
MIN_GAIN: Final = 1e-12
ROUNDING: Final = 1e-9

Starts = Annotated[
    int,
    Field(
        ge=0,
        le=64,
        description="lengths of day from which each search starts, from the longest of use down evenly in "
        "logarithm, besides that of the last day; 0: every length that could be best is tried",
    ),
]


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
    maximisation, per unit of time, of a submodular function.

    source  Venkatakrishnan et al. 2016 (Eclipse), greedy over durations and matchings
    """
    proven = upper_bound.bound_schedules(problem, options=options).proof.bound if prove else None
    return schedules.make_decision(problem, days(problem, starts=starts), bound=proven)


def days(problem: Circuits, *, starts: int = 1) -> list[Day]:
    """Return the days of Eclipse alone, compiled: without the packet switch's share or a plan's tables."""
    if not len(problem.pair_bits):
        return []
    lengths, targets, switches = _schedule_greedily(
        Pairs.of(problem.bits > 0), problem.pair_bits, problem.pair_mbps, Limits.of(problem), starts
    )
    return [
        Day(duration_us=float(length), target=to, switch=int(switch))
        for length, to, switch in zip(lengths, targets, switches, strict=True)
    ]


@nb.njit(cache=True)
def _schedule_greedily(  # noqa: C901
    pairs: Pairs, bits: Floats, mbps: Floats, limits: Limits, starts: int
) -> tuple[Floats, Ints, Ints]:
    """Return (K,) lengths, (K, n) targets and (K,) switches of the days for m pairs."""
    n, m = len(limits.packet_mbps), len(bits)
    left, weight = bits.copy(), np.empty(m)
    out, into = np.zeros(n), np.zeros(n)
    for i in range(n):
        for k in range(pairs.first[i], pairs.first[i + 1]):
            out[i] += bits[k]
            into[pairs.target[k]] += bits[k]
    state = new_state(n)
    chosen, picked = np.full(n, FREE), np.empty(n, np.int64)
    needs, amounts, rates = np.empty(n), np.empty(n), np.empty(n)
    used = np.zeros(limits.switches)
    lengths, switches = np.empty(16), np.empty(16, np.int64)
    targets = np.empty((16, n), np.int64)
    count, last = 0, -1.0
    while not is_complete(limits, used, out, into):
        switch = used.argmin()
        longest, least = 0.0, np.inf
        for k in range(m):
            if left[k] > 0:
                longest = max(longest, left[k] / mbps[k])
                least = min(least, left[k] / mbps[k])
        if longest <= 0:
            break
        high = max(limits.shortest_us, min(longest, limits.window_us - used[switch] - limits.night_us))
        low = min(high, max(limits.shortest_us, least))
        if starts == 0:
            tries = np.unique(np.minimum(high, np.maximum(low, left[left > 0] / mbps[left > 0])))
        else:
            tries = high * (low / high) ** (np.arange(starts) / max(1, starts - 1))
            if last > 0:
                tries = np.append(tries, min(high, max(low, last)))
        best, length = -1.0, high
        for start in tries:
            now, previous = start, -1.0
            while True:
                for k in range(m):
                    weight[k] = min(left[k], mbps[k] * now)
                update_matching(pairs, weight, state)
                found, longer = _best_length(
                    pairs, left, mbps, state.mate, limits, low, high, needs, amounts, rates
                )
                if found > best:
                    best, length = found, longer
                    chosen[:] = state.mate
                if starts == 0 or found <= previous * (1 + MIN_GAIN) or longer == now:
                    break
                now, previous = longer, found
        last = length
        if count == len(lengths):
            lengths, switches = np.append(lengths, lengths), np.append(switches, switches)
            targets = np.concatenate((targets, targets))
        used[switch] += limits.night_us + length
        picked[:] = IDLE
        for i in range(n):
            for k in range(pairs.first[i], pairs.first[i + 1]):
                if pairs.target[k] == chosen[i] and left[k] > 0:
                    picked[i] = chosen[i]
                    carried = min(left[k], length * mbps[k])
                    left[k] -= carried
                    if left[k] <= ROUNDING * bits[k]:
                        left[k] = 0.0
                    out[i] = max(0.0, out[i] - carried)
                    into[chosen[i]] = max(0.0, into[chosen[i]] - carried)
        lengths[count], switches[count], targets[count] = length, switch, picked
        count += 1
    return lengths[:count], targets[:count], switches[:count]


@nb.njit(cache=True)
def _best_length(
    pairs: Pairs,
    left: Floats,
    mbps: Floats,
    mate: Ints,
    limits: Limits,
    low: float,
    high: float,
    needs: Floats,
    amounts: Floats,
    rates: Floats,
) -> tuple[float, float]:
    """Return the most bits served per time of a day of a matching with its night, and that day's length.

    Between two entries what is served is linear in the length, so that the ratio has no maximum
    inside: only the entries' own lengths and the limits `low` and `high`, us, count.
    """
    count, running = 0, 0.0
    for i in range(len(mate)):
        if mate[i] == FREE:
            continue
        for k in range(pairs.first[i], pairs.first[i + 1]):
            if pairs.target[k] == mate[i] and left[k] > 0:
                needs[count], amounts[count], rates[count] = left[k] / mbps[k], left[k], mbps[k]
                running += mbps[k]
                count += 1
                break
    order = np.argsort(needs[:count])
    whole, best, length = 0.0, -1.0, high
    at = 0
    tried = low
    while True:
        while at < count and needs[order[at]] <= tried:
            whole += amounts[order[at]]
            running -= rates[order[at]]
            at += 1
        served = whole + max(0.0, running) * tried
        if tried > 0 and served > best * (tried + limits.night_us):
            best, length = served / (tried + limits.night_us), tried
        if tried >= high:
            return best, length
        tried = min(high, needs[order[at]]) if at < count else high
