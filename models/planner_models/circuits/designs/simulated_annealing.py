"""Simulated annealing over schedules of a fixed number of days: lengths move, matchings follow."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from planner.compiled import inner, kernel, run_small_in_python
from planner.contract.design import Decision
from planner.options import Options
from planner.search.deadline import NEVER, Deadline, Stopwatch
from planner_models.circuits.designs import eclipse, solstice, upper_bound
from planner_models.circuits.designs.partial_schedule import Demand
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
        tried = _run_annealing(problem, demand, start, steps, seed, deadline)
        candidates.append(tried)
        if report is not None:
            report(_choose_best(problem, candidates))
        return tried

    if window is not None and len(greedy) > 1 and steps and not is_over():
        demand = Demand.of(problem)
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


class _DayArrays(NamedTuple):
    """Days of a schedule: their lengths, us, (K,), and the target of each rack in each, (K, n)."""

    lengths: Floats
    targets: Ints


class _Moves(NamedTuple):
    """Random draws of all steps.

    drawn      (4, steps) the day that gets time, the one that loses it (counted without the first), 0 where
               a third day is matched again, and that day
    size       (steps,) of the time that is moved, in mean moves
    tolerance  (steps,) loss that is accepted, in units of the temperature
    """

    drawn: Ints
    size: Floats
    tolerance: Floats


class _Circuits(NamedTuple):
    """Circuits of the schedule under change, for m pairs of racks with demand.

    bits    (m,) demand of each pair
    mbps    (m,) rate of its circuits
    up_us   (m,) time of its circuits
    weight  (m,) scratch space
    """

    pairs: Pairs
    bits: Floats
    mbps: Floats
    up_us: Floats
    weight: Floats
    matching: State


class _Annealing(NamedTuple):
    """State of a search between calls of compiled code.

    switches     (K,) of each day; the total time of each switch stays
    temperature  bits by which a schedule may be worse at first
    current, accepted, best  schedules: under change, last accepted, and best of all
    value        (3,) bits of the accepted schedule and of the best one, and the mean length, us
    """

    circuits: _Circuits
    switches: Ints
    shortest_us: float
    temperature: float
    moves: _Moves
    current: _DayArrays
    accepted: _DayArrays
    best: _DayArrays
    value: Floats


def _run_annealing(
    problem: Circuits, demand: Demand, start: list[Day], steps: int, seed: int, deadline: Deadline
) -> list[Day]:
    """Return the days after annealing from `start`, for so many steps or until the deadline."""
    days = _DayArrays(np.array([day.duration_us for day in start]), np.array([day.target for day in start]))
    rng, count = np.random.default_rng(seed), len(start)
    drawn_days = rng.integers(0, [[count], [max(count - 1, 1)], [3], [count]], (4, steps))
    move_size, tolerance = rng.exponential(size=(2, steps))
    search = _Annealing(
        circuits=_Circuits(
            *demand,
            up_us=np.zeros(len(problem.pair_bits)),
            weight=np.zeros(len(problem.pair_bits)),
            matching=State.of(len(problem.racks)),
        ),
        switches=np.array([day.switch for day in start]),
        shortest_us=problem.shortest_day_us,
        temperature=INITIAL_TEMPERATURE * problem.pair_bits.sum(),
        moves=_Moves(drawn_days, move_size, tolerance),
        current=days,
        accepted=_DayArrays(days.lengths.copy(), days.targets.copy()),
        best=_DayArrays(days.lengths.copy(), days.targets.copy()),
        value=np.zeros(3),
    )
    step = 0
    size = max(1, min(FIRST_STEPS_PER_CALL, FIRST_PAIRS // (count * len(problem.pair_bits))))
    while step < steps and not deadline.is_over:
        watch = Stopwatch()
        _anneal(search, step, min(step + size, steps))
        step += size
        size *= 2 if watch.seconds < CALL_S else 1
    return [
        replace(day, duration_us=float(length), target=target)
        for day, length, target in zip(start, search.best.lengths, search.best.targets, strict=True)
    ]


@run_small_in_python(max_elements=200_000)
@kernel
def _anneal(search: _Annealing, first_step: int, last_step: int) -> None:
    """Find K days that serve more, in the steps from `first_step` to before `last_step`."""
    current, value, tolerance = search.current, search.value, search.moves.tolerance
    circuits, moves, switches, shortest_us = (
        search.circuits,
        search.moves,
        search.switches,
        search.shortest_us,
    )
    pairs, up_us = circuits.pairs, circuits.up_us
    accepted, best, temperature = search.accepted, search.best, search.temperature
    lengths, targets = current.lengths, current.targets
    steps = len(tolerance) if len(lengths) > 1 else 0
    if first_step == 0:
        _start(search)
    for step in range(first_step, min(last_step, steps)):
        _move(circuits, current, moves, switches, shortest_us, value[2], step)
        new = _count_bits(circuits)
        if new >= value[0] - temperature * (1 - step / steps) * tolerance[step]:
            value[0] = new
            _copy_days(accepted, current)
            if new > value[1]:
                value[1] = new
                _copy_days(best, current)
        else:
            _copy_days(current, accepted)
            for k in range(len(up_us)):
                up_us[k] = 0.0
            for day in range(len(lengths)):
                _add_time(pairs, up_us, targets[day], lengths[day])


@inner
def _start(search: _Annealing) -> None:
    """Match each day of the first schedule again, and take it as accepted and best."""
    circuits, current, value = search.circuits, search.current, search.value
    count = len(current.lengths)
    for day in range(count):
        value[2] += current.lengths[day] / count
        _add_time(circuits.pairs, circuits.up_us, current.targets[day], current.lengths[day])
    for _ in range(3):
        for day in range(count):
            _rematch(circuits, current.targets[day], current.lengths[day])
    value[:2] = _count_bits(circuits)
    _copy_days(search.best, current)
    _copy_days(search.accepted, current)


@inner
def _move(
    circuits: _Circuits,
    days: _DayArrays,
    moves: _Moves,
    switches: Ints,
    shortest_us: float,
    mean_us: float,
    step: int,
) -> None:
    """Move time from a day to another one of its switch; match both, and perhaps a third, again."""
    lengths, targets, drawn = days.lengths, days.targets, moves.drawn
    more, less, third = drawn[0, step], drawn[1, step], drawn[3, step]
    if less >= more:
        less += 1
    moved = min(moves.size[step] * MEAN_MOVE * mean_us, 0.9 * (lengths[less] - shortest_us))
    if switches[more] == switches[less] and moved > 0:
        pairs, up_us = circuits.pairs, circuits.up_us
        _add_time(pairs, up_us, targets[more], moved)
        _add_time(pairs, up_us, targets[less], -moved)
        lengths[more] += moved
        lengths[less] -= moved
    for turn in range(4 if drawn[2, step] == 0 else 2):
        day = less if turn == 1 else third if turn == 2 else more
        _rematch(circuits, targets[day], lengths[day])


@inner
def _copy_days(copy: _DayArrays, days: _DayArrays) -> None:
    """Write the days of a schedule to another one."""
    lengths, targets, to_lengths, to_targets = days.lengths, days.targets, copy.lengths, copy.targets
    for day in range(len(lengths)):
        to_lengths[day] = lengths[day]
        for i in range(targets.shape[1]):
            to_targets[day, i] = targets[day, i]


@inner
def _rematch(circuits: _Circuits, target: Ints, length: float) -> None:
    """Find the best matching of one day for the demand that the others leave."""
    pairs, bits, mbps = circuits.pairs, circuits.bits, circuits.mbps
    up_us, weight, matching = circuits.up_us, circuits.weight, circuits.matching
    _add_time(pairs, up_us, target, -length)
    for k in range(len(bits)):
        weight[k] = min(max(0.0, bits[k] - mbps[k] * up_us[k]), mbps[k] * length)
    update_matching(pairs, weight, matching)
    mate = matching.mate
    for i in range(len(target)):
        target[i] = mate[i]
    _add_time(pairs, up_us, target, length)


@inner
def _add_time(pairs: Pairs, up_us: Floats, target: Ints, time_us: float) -> None:
    """Add time to every circuit of a matching."""
    for i in range(len(target)):
        if target[i] != FREE:
            for k in range(pairs.first[i], pairs.first[i + 1]):
                if pairs.target[k] == target[i]:
                    up_us[k] += time_us
                    break


@inner
def _count_bits(circuits: _Circuits) -> float:
    """Return the bits that circuits carry."""
    bits, mbps, up_us, total = circuits.bits, circuits.mbps, circuits.up_us, 0.0
    for k in range(len(up_us)):
        total += min(bits[k], mbps[k] * up_us[k])
    return total
