"""One week's circuits from what is seen of demand: what is shown to a scheduler, and its days made a week.

source  Mukerjee 2018, 2.3.2: Solstice with its objective changed to the largest demand within a
        window. The thesis does not spell out how; `shown` and `stretched` do what its published
        emulator (github.com/mukerjee/etalon) does
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from planner.system import Decision
from planner_models.circuits import eclipse, simple, solstice
from planner_models.circuits.problem import Circuits
from planner_models.circuits.schedule import IDLE, Day, Schedule

Scheduler = Literal["solstice", "eclipse", "bvn", "tms", "hotspot", "islip"]
DAYS: Final[Mapping[str, Callable[[Circuits], list[Day]]]] = {
    "solstice": solstice.days,
    "eclipse": eclipse.days,
}
SCHEDULES: Final[Mapping[str, Callable[[Circuits], Decision[Schedule]]]] = {
    "bvn": simple.schedule_bvn,
    "tms": simple.schedule_tms,
    "hotspot": simple.schedule_hotspot,
    "islip": simple.schedule_islip,
}


def plan_week(
    week: Circuits, bits: NDArray[np.float64], *, scheduler: Scheduler, fill_share: float
) -> list[Day]:
    """The days of a week for demand as seen; none where nothing is worth a day.

    week  the network's week; its own demand does not count
    bits  (n, n) demand that is seen
    """
    wanted = shown(week, bits, fill_share=fill_share)
    if not wanted.any():
        return []
    believed = copy.copy(week)
    # a week in ten thousand: the table of demands is neither made nor checked again
    believed.__dict__["bits"] = wanted
    days = DAYS[scheduler](believed) if scheduler in DAYS else _days(believed, SCHEDULES[scheduler](believed))
    rows = np.arange(len(wanted))
    own = [
        Day(duration_us=day.duration_us, target=np.where(day.target == rows, IDLE, day.target))
        for day in days
    ]
    return stretched(week, [day for day in own if (day.target != IDLE).any()])


def _days(week: Circuits, decision: Decision[Schedule]) -> list[Day]:
    if decision.plan is None:
        return []
    days = []
    for _, rows in decision.plan.configurations.groupby("day", sort=True):
        target = np.full(len(week.racks), IDLE, dtype=np.int64)
        source = week.places.get_indexer(pd.Index(rows["source_rack"]))
        target[source] = week.places.get_indexer(pd.Index(rows["target_rack"]))
        days.append(Day(duration_us=float(rows["duration_us"].iloc[0]), target=target))
    return days


def shown(week: Circuits, bits: NDArray[np.float64], *, fill_share: float) -> NDArray[np.float64]:
    """(n, n) the demand that a scheduler is shown.

    Demand less than the busiest rack's circuit carries in `fill_share` of the week is scaled up to
    it, so that shallow queues are scheduled at all. Demand beyond the week is shared out max-min
    fairly, so that every large pair gets a part of it. Pairs below a shortest day are left to the
    packet switch.
    """
    window = week.window_us
    assert window is not None  # the week of a network always has one
    time = bits / week.circuit_mbps
    busiest = float(max(time.sum(axis=1).max(initial=0.0), time.sum(axis=0).max(initial=0.0)))
    if busiest <= 0:
        return np.zeros_like(bits)
    if busiest < fill_share * window:
        time = time * (fill_share * window / busiest)
    time = max_min_shares(time, window)
    time[time < week.shortest_day_us] = 0.0
    return time * week.circuit_mbps


def max_min_shares(wanted: NDArray[np.float64], budget: float) -> NDArray[np.float64]:
    """(n, n) max-min fair part of `wanted` (n, n) with every row and column sum at most `budget`."""
    given = np.zeros_like(wanted)
    open_ = wanted > 0
    rows, columns = np.full(len(wanted), budget), np.full(len(wanted), budget)
    while open_.any():
        each_row, each_column = open_.sum(axis=1), open_.sum(axis=0)
        steps = [rows[each_row > 0] / each_row[each_row > 0]]
        steps += [columns[each_column > 0] / each_column[each_column > 0], (wanted - given)[open_]]
        step = float(min(part.min() for part in steps))
        given[open_] += step
        rows -= step * each_row
        columns -= step * each_column
        tight = 1e-12 * budget
        open_ &= (wanted - given > tight) & (rows > tight)[:, None] & (columns > tight)[None, :]
    return given


def stretched(week: Circuits, days: Sequence[Day]) -> list[Day]:
    """The days made as long as the week: each longer by as much; the shortest left out if too many."""
    window, night = week.window_us, week.night_us
    assert window is not None  # as above
    kept = sorted(days, key=lambda day: -day.duration_us)
    while kept and len(kept) * (night + week.shortest_day_us) > window * (1 + 1e-12):
        kept.pop()
    if not kept:
        return []
    each = (window - sum(night + day.duration_us for day in kept)) / len(kept)
    return [
        Day(duration_us=day.duration_us + each, target=day.target)
        for day in kept
        if day.duration_us + each > 0
    ]
