"""Local search over a schedule where only circuits that change are dark: days are matched again and divided.

A circuit that the next day keeps works through the night between them. For a day of length t between its
neighbours, a matching M serves the sum over its pairs of

    min(demand that the other days leave, rate * (t + night * (neighbours that have the pair)))

so that the best matching of one day, all others given, is a linear assignment. A day is divided where this
serves more: the circuits that both parts keep lose nothing. Each move is made only where circuits serve more,
so that the result never serves less than what is given.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from planner.search.deadline import NEVER, Deadline
from planner.search.tolerances import IMPROVEMENT
from planner_models.circuits.plan.plan import IDLE, Day, order_days
from planner_models.circuits.problem.problem import Circuits
from planner_models.graphs.max_weight_matching import FREE, Pairs, State, update_matching

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
NONE: Final = -1
MIN_GAIN: Final = IMPROVEMENT  # share of the demand by which a move must serve more
MAX_ROUNDS: Final = 4  # times that all days are matched again in succession
CUTS: Final = (0.25, 0.5, 0.75)  # quantiles of the times at which pairs of a day are served, where it is cut
WORK: Final = 20_000_000  # pairs weighed in all matchings of a search


def improve(problem: Circuits, days: Sequence[Day], *, deadline: Deadline = NEVER) -> list[Day]:
    """Return days with circuits that serve at least as much; the days themselves if all circuits are dark.

    deadline  when the search ends; it has a limit of its own, too
    """
    if problem.dark == "all" or problem.night_us <= 0 or problem.window_us is None or not days:
        return list(days)
    if not len(problem.pair_bits):
        return list(days)
    search = _Search.of(problem, order_days(problem, days), deadline)
    search.rematch_all()
    search.divide_days()
    search.merge_days()
    return search.days()


@dataclass(kw_only=True)
class _Sequence:
    """Days in order, of all switches.

    pair    (K, n) number of the pair that each rack sends, or NONE
    length  (K,) us
    switch  (K,)
    up      (m,) time that each pair's circuits work, us
    """

    pair: Ints
    length: Floats
    switch: Ints
    up: Floats

    def copy(self) -> _Sequence:
        return _Sequence(
            pair=self.pair.copy(), length=self.length.copy(), switch=self.switch.copy(), up=self.up.copy()
        )

    def neighbours(self, day: int) -> Iterator[int]:
        """Yield the days of the same switch before and after a day."""
        days_of = np.flatnonzero(self.switch == self.switch[day])
        position = int(np.searchsorted(days_of, day))
        if position > 0:
            yield int(days_of[position - 1])
        if position + 1 < len(days_of):
            yield int(days_of[position + 1])


@dataclass(kw_only=True, eq=False)
class _Search:
    """A schedule under improvement, and the limits of the search."""

    problem: Circuits
    now: _Sequence
    pairs: Pairs
    state: State
    deadline: Deadline
    matchings: int

    @classmethod
    def of(cls, problem: Circuits, days: Sequence[Day], deadline: Deadline) -> _Search:
        n = len(problem.racks)
        targets = np.array([day.target for day in days]).reshape(-1, n)
        rows = np.broadcast_to(np.arange(n), targets.shape)
        pair = problem.find_pairs(rows.ravel(), np.where(targets == IDLE, 0, targets).ravel())
        pair = np.where(targets == IDLE, NONE, pair.reshape(targets.shape))
        now = _Sequence(
            pair=pair,
            length=np.array([day.duration_us for day in days]),
            switch=np.array([day.switch for day in days]),
            up=np.zeros(len(problem.pair_bits)),
        )
        search = cls(
            problem=problem,
            now=now,
            pairs=Pairs.of(problem.bits > 0),
            state=State.of(n),
            deadline=deadline,
            matchings=max(2 * len(days), WORK // (len(problem.pair_bits) + n)),
        )
        search.now.up = search.time_up(now)
        return search

    def time_up(self, days: _Sequence) -> Floats:
        """Return (m,) the time that circuits of each pair work, nights included, us."""
        up = np.zeros(len(self.problem.pair_bits))
        for day, length in enumerate(days.length):
            _add(up, days.pair[day], float(length))
            for other in days.neighbours(day):
                if other > day:
                    _add(up, _common(days.pair[day], days.pair[other]), self.problem.night_us)
        return up

    def served_bits(self, days: _Sequence) -> float:
        """Return the bits that circuits serve."""
        return float(np.minimum(self.problem.pair_bits, self.problem.pair_mbps * days.up).sum())

    @property
    def is_over(self) -> bool:
        """True where the search has used its limits."""
        return self.matchings <= 0 or self.deadline.is_over

    def rematch(self, days: _Sequence, day: int) -> None:
        """Give a day the best matching for the demand that the others leave."""
        problem, length = self.problem, float(days.length[day])
        others = list(days.neighbours(day))
        time_us = np.full(len(days.up), length)
        _add(days.up, days.pair[day], -length)
        for other in others:
            _add(days.up, _common(days.pair[day], days.pair[other]), -problem.night_us)
            _add(time_us, days.pair[other], problem.night_us)
        remaining = np.maximum(0.0, problem.pair_bits - problem.pair_mbps * np.maximum(days.up, 0.0))
        weight = np.minimum(remaining, problem.pair_mbps * time_us)
        update_matching(self.pairs, weight, self.state)
        mate = self.state.mate
        matched = np.flatnonzero(mate != FREE)
        pair = np.full(len(mate), NONE)
        pair[matched] = problem.find_pairs(matched, mate[matched])
        pair[matched[weight[pair[matched]] <= 0]] = NONE
        days.pair[day] = pair
        _add(days.up, pair, length)
        for other in others:
            _add(days.up, _common(pair, days.pair[other]), problem.night_us)
        self.matchings -= 1

    def rematch_all(self) -> None:
        """Match all days again, in turn, while circuits then serve more."""
        min_gain = MIN_GAIN * float(self.problem.pair_bits.sum())
        for _ in range(MAX_ROUNDS):
            tried, before = self.now.copy(), self.served_bits(self.now)
            for day in range(len(tried.length)):
                if self.is_over:
                    return
                self.rematch(tried, day)
            if self.served_bits(tried) <= before + min_gain:
                return
            self.now = tried

    def divide_days(self) -> None:
        """Divide days, the longest first, where circuits then serve more."""
        min_gain = MIN_GAIN * float(self.problem.pair_bits.sum())
        day = 0
        while day < len(self.now.length) and not self.is_over:
            best, before = None, self.served_bits(self.now) + min_gain
            for cut_us in self._list_cuts(day):
                if self.is_over:
                    break
                tried = self._divide(day, cut_us)
                if (served := self.served_bits(tried)) > before:
                    best, before = tried, served
            if best is None:
                day += 1
            else:
                self.now = best

    def _list_cuts(self, day: int) -> list[float]:
        """Return lengths at which a day could end: when some of its pairs are served, and its middle."""
        problem, days = self.problem, self.now
        length = float(days.length[day])
        shortest = max(problem.shortest_day_us, 1e-6 * length)
        high = length - problem.night_us - shortest
        if high < shortest:
            return []
        pairs = days.pair[day][days.pair[day] != NONE]
        remaining = problem.pair_bits[pairs] - problem.pair_mbps[pairs] * (days.up[pairs] - length)
        ends = np.maximum(remaining, 0.0) / problem.pair_mbps[pairs]
        ends = ends[ends < length]
        tried = np.append(np.quantile(ends, CUTS) if len(ends) else [], (length - problem.night_us) / 2)
        return sorted(set(np.clip(tried, shortest, high).tolist()))

    def _divide(self, day: int, cut_us: float) -> _Sequence:
        """Return the days where one ends at a time, and another takes the rest after a night."""
        days = self.now
        length = np.insert(days.length, day, cut_us)
        length[day + 1] = days.length[day] - cut_us - self.problem.night_us
        tried = _Sequence(
            pair=np.insert(days.pair, day, days.pair[day], axis=0),
            length=length,
            switch=np.insert(days.switch, day, days.switch[day]),
            up=days.up.copy(),  # a day in two parts of the same circuits works as long as before
        )
        for index in (day + 1, day, day + 1):
            self.rematch(tried, index)
        return tried

    def merge_days(self) -> None:
        """Make one day of two in succession where one has all circuits of the other, which then work on."""
        days, day = self.now, 0
        while day < len(days.length):
            after = next((other for other in days.neighbours(day) if other > day), None)
            if after is None:
                day += 1
                continue
            common = int((_common(days.pair[day], days.pair[after]) != NONE).sum())
            counts = [int((days.pair[index] != NONE).sum()) for index in (day, after)]
            if common < min(counts):
                day += 1
                continue
            if counts[1] > counts[0]:
                days.pair[day] = days.pair[after]
            days.length[day] += self.problem.night_us + days.length[after]
            days.pair = np.delete(days.pair, after, axis=0)
            days.length, days.switch = np.delete(days.length, after), np.delete(days.switch, after)
        days.up = self.time_up(days)

    def days(self) -> list[Day]:
        """Return the days found."""
        target = np.append(self.problem.pairs[1], IDLE)  # NONE is the last place
        return [
            Day(duration_us=float(length), target=target[pair], switch=int(switch))
            for length, pair, switch in zip(self.now.length, self.now.pair, self.now.switch, strict=True)
        ]


def _common(pair: Ints, other: Ints) -> Ints:
    """Return (n,) the pairs that two days have in common, or NONE."""
    return np.where(pair == other, pair, NONE)


def _add(time_us: Floats, pair: Ints, more_us: float) -> None:
    """Add time to the pairs of a matching, each of which it has once."""
    time_us[pair[pair != NONE]] += more_us
