"""The schedule of one week from the observed demand: its preparation, and days stretched to the week.

source  Mukerjee 2018, 2.3.2: Solstice with its objective changed to the largest demand within a
        window. The thesis does not spell out how; `prepare_demand` and `stretch_days` do what its published
        emulator (github.com/mukerjee/etalon) does
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from planner.contract.design import Decision
from planner_models.circuits.designs import birkhoff_decomposition, eclipse, equal_days, solstice
from planner_models.circuits.plan.plan import IDLE, Day, Schedule, read_days
from planner_models.circuits.problem.problem import Circuits

Scheduler = Literal["solstice", "eclipse", "bvn", "tms", "hotspot", "islip"]
DAYS: Final[Mapping[str, Callable[[Circuits], list[Day]]]] = {
    "solstice": solstice.days,
    "eclipse": eclipse.days,
}
SCHEDULES: Final[Mapping[str, Callable[[Circuits], Decision[Schedule]]]] = {
    "bvn": birkhoff_decomposition.schedule_bvn,
    "tms": birkhoff_decomposition.schedule_tms,
    "hotspot": equal_days.schedule_hotspots,
    "islip": equal_days.schedule_islip,
}


def plan_week(
    week: Circuits, bits: NDArray[np.float64], *, scheduler: Scheduler, fill_share: float
) -> list[Day]:
    """Return the days of a week for the observed demand; none where no day serves anything.

    week  the network's week; its own demand does not count
    bits  (n, n) observed demand
    """
    demand = prepare_demand(week, bits, fill_share=fill_share)
    if not demand.any():
        return []
    observed = week.with_matrix(demand)
    days = DAYS[scheduler](observed) if scheduler in DAYS else _schedule_days(observed, scheduler)
    split_days = [day.without_loops() for day in days]
    return stretch_days(week, [day for day in split_days if (day.target != IDLE).any()])


def _schedule_days(week: Circuits, scheduler: str) -> list[Day]:
    """Return the days of a scheduler's plan; none where it has no plan."""
    plan = SCHEDULES[scheduler](week).plan
    return [] if plan is None else read_days(week, plan.configurations)


def prepare_demand(week: Circuits, bits: NDArray[np.float64], *, fill_share: float) -> NDArray[np.float64]:
    """Return (n, n) the demand that a scheduler is given.

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


def max_min_shares(demand: NDArray[np.float64], budget: float) -> NDArray[np.float64]:
    """Return (n, n) the max-min fair part of `demand` with every row and column sum at most `budget`."""
    granted = np.zeros_like(demand)
    open_ = demand > 0
    rows, columns = np.full(len(demand), budget), np.full(len(demand), budget)
    while open_.any():
        each_row, each_column = open_.sum(axis=1), open_.sum(axis=0)
        steps = [rows[each_row > 0] / each_row[each_row > 0]]
        steps += [columns[each_column > 0] / each_column[each_column > 0], (demand - granted)[open_]]
        step = float(min(ratios.min() for ratios in steps))
        granted[open_] += step
        rows -= step * each_row
        columns -= step * each_column
        tight = 1e-12 * budget
        open_ &= (demand - granted > tight) & (rows > tight)[:, None] & (columns > tight)[None, :]
    return granted


def stretch_days(week: Circuits, days: Sequence[Day]) -> list[Day]:
    """Return the days lengthened equally to fill the week; the shortest are left out if there are many."""
    window, night = week.window_us, week.night_us
    assert window is not None  # as above
    fitting = sorted(days, key=lambda day: -day.duration_us)
    while fitting and len(fitting) * (night + week.shortest_day_us) > window * (1 + 1e-12):
        fitting.pop()
    if not fitting:
        return []
    each = (window - sum(night + day.duration_us for day in fitting)) / len(fitting)
    stretched = (replace(day, duration_us=day.duration_us + each) for day in fitting)
    return [day for day in stretched if day.duration_us > 0]
