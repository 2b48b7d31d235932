"""Simulated annealing over schedules of a fixed number of days: lengths move, matchings follow."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Final

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from planner.compiled import inner, kernel, run_small_in_python
from planner.contract.design import Decision
from planner.options import Options
from planner.search.deadline import NEVER, Deadline, Stopwatch
from planner_models.circuits.designs import eclipse, solstice, upper_bound
from planner_models.circuits.plan import plan as schedules
from planner_models.circuits.plan.plan import Day, Schedule
from planner_models.circuits.problem.problem import Circuits, takes_matrix
from planner_models.graphs.max_weight_matching import FREE, Pairs, State, update_matching

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
BOUND_SHARE: Final = 0.5  # of the time limit, for the bound
MAX_FEWER_DAYS: Final = 2  # days fewer than Eclipse has that are tried
RESTART_SEEDS: Final = (1, 2, 3)  # seeds of the searches with the best number of days
FIRST_ROUND_DIVISOR: Final = 10  # the search for the number of days has one of so many steps
INITIAL_TEMPERATURE: Final = 1e-5  # share of the demand by which a move may be worse at first
FIRST_STEPS_PER_CALL: Final = 16  # of compiled code, between looks at the clock
FIRST_PAIRS: Final = 1_000_000  # steps times days times pairs of the first call, at most
CALL_S: Final = 0.05  # calls of compiled code take twice as many steps while they take less time
MEAN_MOVE: Final = 0.05  # share of the mean day by which a move changes a length, on average

Steps = Annotated[
    int,
    Field(
        ge=0,
        description="steps of each of three searches with the best number of days; each number first takes "
        "a tenth of them",
    ),
]


@takes_matrix
def schedule(
    problem: Circuits,
    *,
    steps: Steps = 20_000,
    prove: Annotated[bool, Field(description="also find a bound on all schedules")] = False,
    options: Options = Options(),
) -> Decision[Schedule]:
    """Schedule by simulated annealing from Eclipse's days: fewer days, other lengths, new matchings.

    Eclipse chooses each day by the demand served for its time and so adds small days to the end; fewer
    nights serve more. A move takes time from one day for another and finds the best matching of both, and
    sometimes of a third, for the demand that the others leave; a worse schedule is accepted at first. The
    result is the best found, or Eclipse's or Solstice's own. Without a window it is the better of these two.
    A time limit ends the search; the bound, where it is wanted, takes half of it.
    """
    deadline, proven = Deadline.of(options), None
    if prove:
        proven = upper_bound.bound_schedules(
            problem, options=deadline.share(BOUND_SHARE).options(options)
        ).proof.bound
    improved = days(problem, steps=steps, seed=options.seed or 0, deadline=deadline)
    return schedules.make_decision(problem, improved, bound=proven, options=options)


def days(
    problem: Circuits,
    *,
    steps: int = 20_000,
    seed: int = 0,
    deadline: Deadline = NEVER,
    enough_bits: float = math.inf,
    report: Callable[[list[Day]], None] | None = None,
) -> list[Day]:
    """Return the days of the search alone, which ends at a deadline.

    enough_bits  bits that are served, at which the search ends
    report       is called with the best days after each round
    """
    candidates = [solstice.days(problem)]
    window = problem.window_us

    def is_over() -> bool:
        return deadline.is_over or _is_enough(problem, candidates, enough_bits)

    greedy: list[Day] = []
    if not is_over():
        greedy = eclipse.days(problem, deadline=deadline)
        candidates.insert(0, greedy)

    def anneal(start: list[Day], steps: int, seed: int) -> list[Day]:
        tried = _run_annealing(problem, pairs, start, steps, seed, deadline)
        candidates.append(tried)
        if report is not None:
            report(_choose_best(problem, candidates))
        return tried

    if window is not None and len(greedy) > 1 and steps and not is_over():
        pairs = Pairs.of(problem.bits > 0)
        tried = [
            anneal(start, -(-steps // FIRST_ROUND_DIVISOR), seed)
            for fewer in range(-1, MAX_FEWER_DAYS + 1)
            if not is_over() and (start := _resize_schedule(problem, greedy, len(greedy) - fewer)) is not None
        ]
        if tried:
            best = _choose_best(problem, tried)
            for again in RESTART_SEEDS:
                if not is_over():
                    anneal(best, steps, seed + again)
    return _choose_best(problem, candidates)


def _is_enough(problem: Circuits, candidates: list[list[Day]], enough_bits: float) -> bool:
    """Return whether one of some schedules serves so many bits in the week."""
    if problem.window_us is None or enough_bits == math.inf:
        return False
    return schedules.find_rate(problem, _choose_best(problem, candidates)) * problem.window_us >= enough_bits


def _choose_best(problem: Circuits, candidates: list[list[Day]]) -> list[Day]:
    """Return the best of some schedules."""
    return max(candidates, key=lambda candidate: schedules.find_rate(problem, candidate))


def _resize_schedule(problem: Circuits, greedy: list[Day], count: int) -> list[Day] | None:
    """Return the first `count` days of the greedy schedule, repeated where it has fewer, filling the week.

    None where the week has no time for so many.
    """
    window = problem.window_us
    assert window is not None
    if count < 1:
        return None
    selected = [
        replace(greedy[index % len(greedy)], switch=index % problem.switches) for index in range(count)
    ]
    filled = []
    for switch in range(problem.switches):
        days_of = [day for day in selected if day.switch == switch]
        time_us = window - len(days_of) * problem.night_us
        # every day gets the shortest length, and a share of the rest in proportion to its own
        rest_us = time_us - len(days_of) * problem.shortest_day_us
        if days_of and rest_us <= 0:
            return None
        total = sum(day.duration_us for day in days_of)
        filled += [
            replace(day, duration_us=problem.shortest_day_us + rest_us * day.duration_us / total)
            for day in days_of
        ]
    return filled


def _run_annealing(
    problem: Circuits, pairs: Pairs, start: list[Day], steps: int, seed: int, deadline: Deadline
) -> list[Day]:
    """Return the days after annealing from `start`, for so many steps or until the deadline."""
    lengths = np.array([day.duration_us for day in start])
    targets = np.array([day.target for day in start])
    best_lengths, best_targets = lengths.copy(), targets.copy()
    rng, count = np.random.default_rng(seed), len(start)
    draws = rng.integers(0, [[count], [max(count - 1, 1)], [3], [count]], (4, steps))
    arguments = (
        pairs,
        problem.pair_bits,
        problem.pair_mbps,
        lengths,
        targets,
        lengths.copy(),
        targets.copy(),
        best_lengths,
        best_targets,
        np.array([day.switch for day in start]),
        problem.shortest_day_us,
        INITIAL_TEMPERATURE * problem.pair_bits.sum(),
        draws,
        rng.exponential(size=(2, steps)),
        np.zeros((2, len(problem.pair_bits))),
        np.zeros(3),
        State.of(len(problem.racks)),
    )
    step, size = 0, max(1, min(FIRST_STEPS_PER_CALL, FIRST_PAIRS // (count * len(problem.pair_bits))))
    while step < steps and not deadline.is_over:
        watch = Stopwatch()
        _anneal(*arguments, step, min(step + size, steps))
        step += size
        size *= 2 if watch.seconds < CALL_S else 1
    return [
        replace(day, duration_us=float(length), target=target)
        for day, length, target in zip(start, best_lengths, best_targets, strict=True)
    ]


@run_small_in_python(max_elements=200_000)
@kernel
def _anneal(  # noqa: C901
    pairs: Pairs,
    bits: Floats,
    mbps: Floats,
    lengths: Floats,
    targets: Ints,
    accepted_lengths: Floats,
    accepted_targets: Ints,
    best_lengths: Floats,
    best_targets: Ints,
    switches: Ints,
    shortest_us: float,
    temperature: float,
    draws: Ints,
    drawn: Floats,
    scratch: Floats,
    value: Floats,
    state: State,
    first_step: int,
    last_step: int,
) -> None:
    """Find K days that serve more, by their lengths (K,) and targets (K, n); each switch's total time stays.

    Take the steps from `first_step` to before `last_step`.

    draws  (4, steps) for each move its days and whether there is a third; drawn (2, steps) its random size
            and tolerance
    scratch (2, m), 0 at first; value (3,), 0 at first, bits of the present schedule and of the best, and
            the mean length: the state between calls, with the lengths and targets
    """
    count, steps = len(lengths), draws.shape[1] if len(lengths) > 1 else 0
    up, weight = scratch[0], scratch[1]
    if first_step == 0:
        for day in range(count):
            value[2] += lengths[day] / count
            _add_time(pairs, up, targets[day], lengths[day])
        for _ in range(3):
            for day in range(count):
                _rematch(pairs, bits, mbps, up, targets[day], lengths[day], weight, state)
        value[:2] = _circuit_bits(bits, mbps, up)
        _copy_days(best_lengths, best_targets, lengths, targets)
        _copy_days(accepted_lengths, accepted_targets, lengths, targets)
    now, best, mean = value
    for step in range(first_step, min(last_step, steps)):
        more, less = draws[0, step], draws[1, step]
        if less >= more:
            less += 1
        moved = min(drawn[0, step] * MEAN_MOVE * mean, 0.9 * (lengths[less] - shortest_us))
        if switches[more] == switches[less] and moved > 0:
            _add_time(pairs, up, targets[more], moved)
            _add_time(pairs, up, targets[less], -moved)
            lengths[more] += moved
            lengths[less] -= moved
        third = draws[3, step]
        for turn in range(4 if draws[2, step] == 0 else 2):
            day = less if turn == 1 else third if turn == 2 else more
            _rematch(pairs, bits, mbps, up, targets[day], lengths[day], weight, state)
        new = _circuit_bits(bits, mbps, up)
        if new >= now - temperature * (1 - step / steps) * drawn[1, step]:
            now = new
            _copy_days(accepted_lengths, accepted_targets, lengths, targets)
            if now > best:
                best = now
                _copy_days(best_lengths, best_targets, lengths, targets)
        else:
            _copy_days(lengths, targets, accepted_lengths, accepted_targets)
            for k in range(len(up)):
                up[k] = 0.0
            for day in range(count):
                _add_time(pairs, up, targets[day], lengths[day])
    value[0], value[1] = now, best


@inner
def _copy_days(lengths: Floats, targets: Ints, from_lengths: Floats, from_targets: Ints) -> None:
    """Copy the days of one schedule to another."""
    for day in range(len(lengths)):
        lengths[day] = from_lengths[day]
        for i in range(targets.shape[1]):
            targets[day, i] = from_targets[day, i]


@inner
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
    """Find the best matching of one day for the demand that the others leave."""
    _add_time(pairs, up, target, -length)
    for k in range(len(bits)):
        weight[k] = min(max(0.0, bits[k] - mbps[k] * up[k]), mbps[k] * length)
    update_matching(pairs, weight, state)
    for i in range(len(target)):
        target[i] = state.mate[i]
    _add_time(pairs, up, target, length)


@inner
def _add_time(pairs: Pairs, up: Floats, target: Ints, time: float) -> None:
    """Add time to every circuit of a matching."""
    for i in range(len(target)):
        if target[i] != FREE:
            for k in range(pairs.first[i], pairs.first[i + 1]):
                if pairs.target[k] == target[i]:
                    up[k] += time
                    break


@inner
def _circuit_bits(bits: Floats, mbps: Floats, up: Floats) -> float:
    """Return the bits that circuits carry."""
    total = 0.0
    for k in range(len(bits)):
        total += min(bits[k], mbps[k] * up[k])
    return total
