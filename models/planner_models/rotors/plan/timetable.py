"""Circuits of one period as arrays: their capacity, their times, and the time until a circuit is up."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import pandas as pd

from planner.arrays import Floats, Ints
from planner.compiled import inner, kernel, run_small_in_python
from planner.search.tolerances import ROUNDING
from planner_models.circuits.problem.racks import ENDS
from planner_models.rotors.problem.problem import DARK, RotorNetwork

ROTATION: Final = "rotation"
SCHEDULE: Final = "schedule"
SAME_TIME: Final = ROUNDING
"""Share of the period below which two times are the same."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Timetable:
    """Circuits of one period, which repeats; one that is up at its end goes on at its start as another row.

    kind            "rotation" or "schedule"
    period_us       time after which all repeats
    racks           number of racks, n
    switch          (C,) circuit switch of each circuit, from 0
    start, end      (C,) time within the period, us
    source, target  (C,) rows of racks
    """

    kind: str
    period_us: float
    racks: int
    switch: Ints
    start: Floats
    end: Floats
    source: Ints
    target: Ints

    def to_table(self, names: np.ndarray) -> pd.DataFrame:
        """Return the table `circuits`, by switch and time; `names` are those of the racks."""
        order = np.lexsort((self.source, self.start, self.switch))
        ends = zip(ENDS, (self.source, self.target), strict=True)
        return pd.DataFrame(
            {
                "switch": self.switch[order] + 1.0,
                "start_us": self.start[order],
                "end_us": self.end[order],
                **{name: pd.array(names[rows[order]], dtype="str") for name, rows in ends},
            }
        )

    @cached_property
    def up_share(self) -> Floats:
        """(n, n) time that circuits from row to column are up, of all switches, over the period."""
        share: Floats = np.zeros((self.racks, self.racks))
        np.add.at(share, (self.source, self.target), (self.end - self.start) / self.period_us)
        return share

    @cached_property
    def duty_cycle(self) -> float:
        """Share of the time in which a switch that has circuits is not dark, over all of them."""
        if not len(self.switch):
            return 0.0
        days = np.unique(np.stack([self.switch.astype(float), self.start, self.end], axis=1), axis=0)
        return float((days[:, 2] - days[:, 1]).sum() / (len(np.unique(days[:, 0])) * self.period_us))

    @cached_property
    def intervals(self) -> tuple[Floats, Ints]:
        """(T,) length of each interval without a change, us; (T, u, n) rack sent to in it, or DARK."""
        times = np.unique(np.concatenate([[0.0, self.period_us], self.start, self.end]))
        keep = np.diff(times, prepend=-np.inf) > SAME_TIME * self.period_us
        times = times[keep]
        switches = int(self.switch.max(initial=0)) + 1
        up: Ints = np.full((len(times) - 1, switches, self.racks), DARK, dtype=np.int64)
        slack = SAME_TIME * self.period_us
        first = np.searchsorted(times, self.start - slack)
        last = np.searchsorted(times, self.end - slack)
        for row in range(len(self.switch)):
            up[first[row] : last[row], self.switch[row], self.source[row]] = self.target[row]
        return np.diff(times), up

    @cached_property
    def _up_times(self) -> tuple[Ints, Floats, Floats]:
        """First place of each pair's (n * n + 1,) stretches of time with a circuit, their starts and ends."""
        pair = self.source * self.racks + self.target
        order = np.lexsort((self.start, pair))
        return _join_stretches(
            pair[order],
            self.start[order],
            self.end[order],
            self.racks * self.racks,
            SAME_TIME * self.period_us,
        )

    def wait_us(self, source: Ints, via: Ints, target: Ints) -> tuple[Floats, Floats]:
        """Return the (P,) mean and longest wait for circuits of paths, us; inf for a path without a circuit.

        Data comes at any time of the period alike, and leaves at once when a circuit is up: queues are not
        counted. `via` is the source for a direct path.
        """
        direct = via == source
        first = np.where(direct, source * self.racks + target, source * self.racks + via)
        second = np.where(direct, -1, via * self.racks + target)
        return _waits(*self._up_times, self.period_us, first, second)


def rotate(problem: RotorNetwork) -> Timetable:
    """Return the timetable of the rotor switches; racks that have failed have no circuits."""
    rotation = problem.rotation
    switch, position, source = np.nonzero(rotation.target != DARK)
    target = rotation.target[switch, position, source]
    works = problem.works[source, target] > 0
    switch, position, source, target = (column[works] for column in (switch, position, source, target))
    start = rotation.starts_us[switch, position]
    end = start + rotation.day_us
    over = np.flatnonzero(end > rotation.cycle_us * (1 + SAME_TIME))
    rows = np.concatenate([np.arange(len(start)), over])
    starts = np.concatenate([start, np.zeros(len(over))])
    ends = np.concatenate([np.minimum(end, rotation.cycle_us), end[over] - rotation.cycle_us])
    return Timetable(
        kind=ROTATION,
        period_us=rotation.cycle_us,
        racks=len(problem.racks),
        switch=switch[rows],
        start=starts,
        end=ends,
        source=source[rows],
        target=target[rows],
    )


@run_small_in_python(max_elements=2_000)
@kernel
def _join_stretches(
    pair: Ints, start: Floats, end: Floats, pairs: int, slack: float
) -> tuple[Ints, Floats, Floats]:
    """Return the stretches of time with a circuit of each pair; the input is by pair and start."""
    first = np.zeros(pairs + 1, np.int64)
    starts, ends = np.empty(len(pair)), np.empty(len(pair))
    count = 0
    for row in range(len(pair)):
        if row > 0 and pair[row] == pair[row - 1] and start[row] <= ends[count - 1] + slack:
            ends[count - 1] = max(ends[count - 1], end[row])
            continue
        starts[count], ends[count] = start[row], end[row]
        first[pair[row] + 1] += 1
        count += 1
    for number in range(pairs):
        first[number + 1] += first[number]
    return first, starts[:count], ends[:count]


@run_small_in_python(max_elements=2_000)
@kernel
def _waits(
    first: Ints, start: Floats, end: Floats, period: float, first_leg: Ints, two: Ints
) -> tuple[Floats, Floats]:
    """Return the mean and longest wait of paths over pair `first_leg`, then pair `two` unless it is -1."""
    mean, worst = np.zeros(len(first_leg)), np.zeros(len(first_leg))
    for path in range(len(first_leg)):
        low, high = first[first_leg[path]], first[first_leg[path] + 1]
        low2, high2 = 0, 0
        if two[path] >= 0:
            low2, high2 = first[two[path]], first[two[path] + 1]
        if low == high or (two[path] >= 0 and low2 == high2):
            mean[path] = worst[path] = np.inf
            continue
        for index in range(low, high):
            begin, finish = start[index], end[index]
            before = end[index - 1] if index > low else end[high - 1] - period
            gap = max(begin - before, 0.0)
            mean[path] += 0.5 * gap * gap
            worst[path] = max(worst[path], gap)
            # the second wait: of data that comes in the gap, from the begin; of other data, from any time
            for second in range(low2, high2):
                before2 = end[second - 1] if second > low2 else end[high2 - 1] - period
                gap2 = before2, start[second]
                for turn in range(
                    2
                ):  # the gap before the first stretch lies on both sides of the period's end
                    stretch = begin, finish, gap
                    mean[path], worst[path] = _add_wait(mean[path], worst[path], stretch, gap2, turn * period)
        mean[path] /= period
    return mean, worst


@inner
def _add_wait(
    mean: float, worst: float, stretch: tuple[float, float, float], gap: tuple[float, float], shift: float
) -> tuple[float, float]:
    """Return the sum and the longest of waits, with those in a gap of the second pair after the first.

    stretch  begin and end of a stretch of the first pair, and the gap before it
    gap      begin and end of a gap of the second pair, which `shift` is added to
    """
    begin, finish, before = stretch
    from2, to2 = gap[0] + shift, gap[1] + shift
    if from2 <= begin < to2:
        mean += before * (to2 - begin)
        worst = max(worst, before + to2 - begin)
    overlap_start, right = max(from2, begin), min(to2, finish)
    if right > overlap_start:
        mean += 0.5 * ((to2 - overlap_start) ** 2 - (to2 - right) ** 2)
        worst = max(worst, to2 - overlap_start)
    return mean, worst
