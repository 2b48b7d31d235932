"""Circuits of a period: waits against a walk through time, and intervals against the rows."""

from __future__ import annotations

import numpy as np
import pytest

from planner_models.rotors.designs import demand_aware
from planner_models.rotors.designs.demand_aware import read_week
from planner_models.rotors.plan import timetable as module
from planner_models.rotors.plan.timetable import Timetable, rotate
from planner_models.rotors.problem import generators

STEP = 1.0


def walk(item: Timetable, pair: tuple[int, int], moment: float) -> float:
    """Return when a circuit of a pair of racks is up at or after a moment, row by row."""
    rows = np.flatnonzero((item.source == pair[0]) & (item.target == pair[1]))
    later = []
    for turn in range(int(moment // item.period_us), int(moment // item.period_us) + 3):
        for row in rows:
            start, end = (value[row] + turn * item.period_us for value in (item.start, item.end))
            if moment < end - 1e-9:
                later.append(max(start, moment))
    return min(later)


def timetables() -> list[Timetable]:
    """Return a rotation of shifts, one of random matchings, and a week made for the demand."""
    small = generators.small()
    shifts = generators.skewed(racks=7, switches=2, day_us=40.0, night_us=10.0)
    week = read_week(small, demand_aware.eclipse.schedule(demand_aware.to_week(small)).plan)
    return [rotate(shifts), rotate(small), week]


@pytest.mark.parametrize("place", range(3))
def test_waits_are_those_of_a_walk_through_time(place: int) -> None:
    item = timetables()[place]
    linked = list(dict.fromkeys(zip(item.source.tolist(), item.target.tolist(), strict=True)))[:6]
    paths = [(i, i, j) for i, j in linked]
    paths += [(i, j, k) for i, j in linked for other, k in linked if other == j and k != i]
    mean, worst = item.wait_us(*(np.array(column) for column in zip(*paths, strict=True)))
    moments = (np.arange(round(item.period_us / STEP)) + 0.5) * STEP
    for row, (i, k, j) in enumerate(paths):
        waits = []
        for moment in moments:
            now = walk(item, (i, j if k == i else k), float(moment))
            if k != i:
                now = walk(item, (k, j), now)
            waits.append(now - moment)
        assert mean[row] == pytest.approx(np.mean(waits), abs=STEP)
        assert worst[row] == pytest.approx(np.max(waits), abs=2 * STEP)


def test_the_compiled_waits_are_those_in_python() -> None:
    item = timetables()[0]
    first, second = np.array([1, 2]), np.array([-1, 2 * item.racks + 3])
    compiled = module._waits(*item._up_times, item.period_us, first, second)
    arguments = (*item._up_times, item.period_us, first, second)
    plain = module._waits.call_in_python(arguments)  # type: ignore[attr-defined]
    assert np.allclose(compiled, plain)


@pytest.mark.parametrize("place", range(3))
def test_intervals_are_those_of_the_rows(place: int) -> None:
    item = timetables()[place]
    lengths, targets = item.intervals
    assert lengths.sum() == pytest.approx(item.period_us)
    middle = np.cumsum(lengths) - lengths / 2
    for moment, target in zip(middle, targets, strict=True):
        up = (item.start <= moment) & (moment < item.end)
        assert int((target >= 0).sum()) == int(up.sum())
        assert (target[item.switch[up], item.source[up]] == item.target[up]).all()


def test_a_path_without_a_circuit_waits_forever() -> None:
    item = timetables()[0]
    selected = (item.source != 0) | (item.target != 1)
    parts = {name: getattr(item, name)[selected] for name in ("switch", "start", "end", "source", "target")}
    without = Timetable(kind=item.kind, period_us=item.period_us, racks=item.racks, **parts)
    mean, worst = without.wait_us(np.array([0, 0]), np.array([0, 2]), np.array([1, 1]))
    assert np.isinf(mean[0])
    assert np.isfinite(mean[1])
    assert np.isinf(worst[0])
