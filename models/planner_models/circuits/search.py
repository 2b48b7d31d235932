"""Better schedules by local search: fewer days, other lengths, and each day's best matching in turn."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Final

import numba as nb
import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from planner.options import Options
from planner.system import Decision
from planner_models.circuits import bound, eclipse, solstice
from planner_models.circuits import schedule as schedules
from planner_models.circuits.assignment import FREE, Pairs, State, settle
from planner_models.circuits.problem import Circuits
from planner_models.circuits.schedule import Day, Schedule

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
FEWER: Final = 2  # days than Eclipse takes, at most, that are tried
AGAIN: Final = (1, 2, 3)  # seeds of the searches with the best number of days
SHORT: Final = 10  # share of the steps that find the number of days
WARMTH: Final = 1e-5  # of the demand: how much worse a step may be at first
STEP: Final = 0.05  # of the mean day: how far lengths are moved, on average

Steps = Annotated[
    int,
    Field(
        ge=0,
        description="steps of each of three searches with the best number of days; each number first takes "
        "a tenth of them",
    ),
]


def schedule(
    problem: Circuits,
    *,
    steps: Steps = 20_000,
    prove: Annotated[bool, Field(description="also find what no schedule can beat")] = False,
    options: Options = Options(),
    previous: Decision[Schedule] | None = None,  # noqa: ARG001
) -> Decision[Schedule]:
    """Local search from Eclipse's days: one or two days fewer, time moved between days, matchings anew.

    Eclipse buys each day by its worth for its time and so buys small days to the end; fewer nights
    serve more. A step moves time from one day to another and finds the best matching of both, and
    sometimes of a third, for what the others leave; a worse one is kept at first (annealing). The
    answer is the best of all and of Eclipse's and Solstice's own. Without a window it is the better
    of these two.
    """
    proven = bound.limit(problem, options=options).proof.bound if prove else None
    return schedules.decided(problem, days(problem, steps=steps, seed=options.seed or 0), bound=proven)


def days(problem: Circuits, *, steps: int = 20_000, seed: int = 0) -> list[Day]:
    """The days of the search alone."""
    greedy = eclipse.days(problem)
    found = [greedy, solstice.days(problem)]
    window = problem.window_us
    if window is not None and len(greedy) > 1 and steps:
        pairs = Pairs.of(problem.bits > 0)
        tried = [
            _searched(problem, pairs, start, -(-steps // SHORT), seed)
            for fewer in range(-1, FEWER + 1)
            if (start := _of_count(problem, greedy, len(greedy) - fewer)) is not None
        ]
        if tried:
            best = max(tried, key=lambda one: _served(problem, one))
            found += [*tried, *(_searched(problem, pairs, best, steps, seed + again) for again in AGAIN)]
    return _best(problem, found)


def _best(problem: Circuits, found: list[list[Day]]) -> list[Day]:
    if problem.window_us is not None:
        return max(found, key=lambda one: _served(problem, one))
    return min(found, key=lambda one: schedules.planned(problem, one)[2])


def _served(problem: Circuits, tried: list[Day]) -> float:
    return schedules.planned(problem, tried)[1]


def _of_count(problem: Circuits, greedy: list[Day], count: int) -> list[Day] | None:
    """The first `count` days of the greedy schedule, with more of the same where it has fewer, that
    fill the week; None where it has no room for so many.
    """
    window = problem.window_us
    assert window is not None
    if count < 1:
        return None
    kept = [replace(greedy[place % len(greedy)], switch=place % problem.switches) for place in range(count)]
    filled = []
    for switch in range(problem.switches):
        own = [day for day in kept if day.switch == switch]
        room = window - len(own) * problem.night_us
        # every day gets its least, and what is left goes by the lengths there were
        spare = room - len(own) * problem.shortest_day_us
        if own and spare <= 0:
            return None
        total = sum(day.duration_us for day in own)
        filled += [
            replace(day, duration_us=problem.shortest_day_us + spare * day.duration_us / total) for day in own
        ]
    return filled


def _searched(problem: Circuits, pairs: Pairs, start: list[Day], steps: int, seed: int) -> list[Day]:
    lengths, targets = _anneal(
        pairs,
        problem.pair_bits,
        problem.pair_mbps,
        np.array([day.duration_us for day in start]),
        np.array([day.target for day in start]),
        np.array([day.switch for day in start]),
        problem.shortest_day_us,
        steps,
        np.random.default_rng(seed),
    )
    return [
        replace(day, duration_us=float(length), target=target)
        for day, length, target in zip(start, lengths, targets, strict=True)
    ]


@nb.njit(cache=True)
def _anneal(
    pairs: Pairs,
    bits: Floats,
    mbps: Floats,
    lengths: Floats,
    targets: Ints,
    switches: Ints,
    shortest_us: float,
    steps: int,
    rng: np.random.Generator,
) -> tuple[Floats, Ints]:
    """(K,) lengths and (K, n) targets of K days that circuits serve more in; per switch the sum stays."""
    count, n = targets.shape
    lengths, targets = lengths.copy(), targets.copy()
    up, weight = np.zeros(len(bits)), np.empty(len(bits))
    state = State(
        np.zeros(n),
        np.zeros(n),
        np.full(n, FREE),
        np.full(n, FREE),
        np.full(n, np.inf),
        np.zeros(n, np.int64),
        np.zeros(n, np.int64),
        np.zeros(n, np.int64),
    )
    for day in range(count):
        _raise(pairs, up, targets[day], lengths[day])
    for _ in range(3):
        for day in range(count):
            _rematch(pairs, bits, mbps, up, targets[day], lengths[day], weight, state)
    now = _carried(bits, mbps, up)
    best, best_lengths, best_targets = now, lengths.copy(), targets.copy()
    kept_lengths, kept_targets = lengths.copy(), targets.copy()
    mean = lengths.mean()
    warmth = WARMTH * bits.sum()
    for step in range(steps if count > 1 else 0):
        more = rng.integers(0, count)
        less = rng.integers(0, count - 1)
        less += less >= more
        moved = min(rng.exponential() * STEP * mean, 0.9 * (lengths[less] - shortest_us))
        if switches[more] == switches[less] and moved > 0:
            _raise(pairs, up, targets[more], moved)
            _raise(pairs, up, targets[less], -moved)
            lengths[more] += moved
            lengths[less] -= moved
        _rematch(pairs, bits, mbps, up, targets[more], lengths[more], weight, state)
        _rematch(pairs, bits, mbps, up, targets[less], lengths[less], weight, state)
        if rng.integers(0, 3) == 0:
            third = rng.integers(0, count)
            _rematch(pairs, bits, mbps, up, targets[third], lengths[third], weight, state)
            _rematch(pairs, bits, mbps, up, targets[more], lengths[more], weight, state)
        new = _carried(bits, mbps, up)
        if new >= now - warmth * (1 - step / steps) * rng.exponential():
            now = new
            kept_lengths[:], kept_targets[:] = lengths, targets
            if now > best:
                best = now
                best_lengths[:], best_targets[:] = lengths, targets
        else:
            lengths[:], targets[:] = kept_lengths, kept_targets
            up[:] = 0.0
            for day in range(count):
                _raise(pairs, up, targets[day], lengths[day])
    return best_lengths, best_targets


@nb.njit(cache=True)
def _rematch(
    pairs: Pairs,
    bits: Floats,
    mbps: Floats,
    up: Floats,
    target: Ints,
    length: float,
    weight: Floats,
    state: State,
) -> None:
    """The best matching of one day for what the others leave."""
    _raise(pairs, up, target, -length)
    for k in range(len(bits)):
        weight[k] = min(max(0.0, bits[k] - mbps[k] * up[k]), mbps[k] * length)
    settle(pairs, weight, state)
    target[:] = state.mate
    _raise(pairs, up, target, length)


@nb.njit(cache=True)
def _raise(pairs: Pairs, up: Floats, target: Ints, time: float) -> None:
    for i in range(len(target)):
        if target[i] != FREE:
            for k in range(pairs.first[i], pairs.first[i + 1]):
                if pairs.target[k] == target[i]:
                    up[k] += time
                    break


@nb.njit(cache=True)
def _carried(bits: Floats, mbps: Floats, up: Floats) -> float:
    total = 0.0
    for k in range(len(bits)):
        total += min(bits[k], mbps[k] * up[k])
    return total
