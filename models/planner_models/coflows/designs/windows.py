"""Schedules of days for one window after another, fed by coflows; unserved demand is carried on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Final, NamedTuple

import numpy as np
import pandas as pd
from pydantic import Field

from planner.compiled import inner, kernel, run_small_in_python
from planner.contract.design import Decision
from planner.errors import InputError
from planner.options import Options
from planner.search.deadline import Deadline
from planner.search.tolerances import ROUNDING
from planner_models.circuits.designs import eclipse, optimum, solstice
from planner_models.circuits.plan.plan import IDLE, Day, read_days
from planner_models.circuits.problem.problem import Circuits
from planner_models.circuits.problem.racks import MOST_US
from planner_models.coflows.designs.decision import decide_on_circuits
from planner_models.coflows.designs.sunflow import NONE, busiest_port_ms, same_time_ms
from planner_models.coflows.plan.flow_groups import FlowGroups, group_flows
from planner_models.coflows.plan.lower_bounds import port_times_ms
from planner_models.coflows.plan.plan import Service, make_circuits
from planner_models.coflows.problem.problem import CoflowsInTime, Floats, Ints

Window = Annotated[
    Annotated[float, Field(gt=0, allow_inf_nan=False)] | None,
    Field(
        description="time from one schedule to the next, ms; none: 20 set-up times, 20 ms at least, longer "
        "where the busiest port has work for over 20,000 windows"
    ),
]
SETUPS_IN_WINDOW: Final = 20.0
LEAST_WINDOW_MS: Final = 20.0
MOST_WINDOWS: Final = 20_000
"""Windows, about, in which the busiest port has all its work, unless a length is given."""
MOST_SERVED_SHARE: Final = 0.8
"""Share of the time limit after which windows are scheduled by Solstice in place of circuits' optimum."""
WINDOW_SHARE: Final = 0.05
"""Share of the time that is left that the optimum of a window may take."""
ADMITTED: Final = ROUNDING
"""Share of what is left of a flow below which a window does not ask for it."""
US: Final = 1e3
"""Microseconds in a millisecond."""


def schedule_solstice(
    problem: CoflowsInTime, *, window_ms: Window = None, options: Options = Options()
) -> Decision[Service]:
    """Schedule each window by Solstice; unserved demand is carried on.

    The demand of a window is what its ports have time for, of the coflows that have the least left to do
    first. A circuit serves the coflows of its pair in that order, and stays up until its ports change.

    source  Liu et al. 2015 (Solstice), window by window
    """
    return _schedule(problem, window_ms, solstice.days, options)


def schedule_eclipse(
    problem: CoflowsInTime, *, window_ms: Window = None, options: Options = Options()
) -> Decision[Service]:
    """Schedule each window by Eclipse, fed as Solstice is; unserved demand is carried on.

    source  Venkatakrishnan et al. 2016 (Eclipse), window by window
    """
    return _schedule(problem, window_ms, eclipse.days, options)


def schedule_most_served(
    problem: CoflowsInTime, *, window_ms: Window = None, options: Options = Options()
) -> Decision[Service]:
    """Schedule each window so that it serves the most, by system circuits' optimum, fed as Solstice is.

    The most data in each window is not the least completion time. A window has a share of the time that a
    time limit leaves; once most of it is over, Solstice schedules the rest.

    source  Venkatakrishnan et al. 2016 (Eclipse), the problem itself, window by window
    """

    deadline = Deadline.of(options)

    def days(week: Circuits) -> list[Day]:
        if deadline.share(MOST_SERVED_SHARE).is_over:
            return solstice.days(week)
        remaining_options = deadline.options(options).share_time(WINDOW_SHARE)
        plan = optimum.solve(_as_table(week), options=remaining_options).plan
        return [] if plan is None else read_days(week, plan.configurations)

    return _schedule(problem, window_ms, days, options)


def _as_table(week: Circuits) -> Circuits:
    """Return the week with its demand as a table."""
    source, target = week.pairs
    frame = pd.DataFrame({**week.name_pairs(source, target), "bits": week.pair_bits})
    return Circuits(racks=week.racks, demands=frame, switch=week.switch)


def _schedule(
    problem: CoflowsInTime,
    window_ms: float | None,
    days: Callable[[Circuits], list[Day]],
    options: Options,
) -> Decision[Service]:
    """Return the decision of a schedule that is made anew at the start of each window."""
    if window_ms is None:
        _, port, time_ms, _ = port_times_ms(problem, "circuits")
        busiest_ms = float(np.bincount(port, weights=time_ms).max(initial=0.0))
        window_ms = max(SETUPS_IN_WINDOW * problem.setup_ms, LEAST_WINDOW_MS, busiest_ms / MOST_WINDOWS)
    # a window without time for a circuit would never serve anything
    window_ms = max(window_ms, 2 * problem.setup_ms)
    index, start, end = _run_windows(problem, group_flows(problem), window_ms, days)
    circuits = make_circuits(problem, index, start, end, np.zeros(len(index), dtype=np.int64))
    return decide_on_circuits(problem, Service(circuits=circuits), options)


def _run_windows(
    problem: CoflowsInTime, groups: FlowGroups, window_ms: float, days: Callable[[Circuits], list[Day]]
) -> tuple[Ints, Floats, Floats]:
    """Return the services: rows of `flows`, start and end in ms."""
    n = len(problem.racks)
    rate = problem.circuit_rate[groups.flow]
    need = groups.bits / rate
    pair = groups.source * n + groups.target
    by_pair = np.argsort(pair, kind="stable")
    first_of_pair = np.searchsorted(pair[by_pair], np.arange(n * n + 1))
    coflow = np.repeat(np.arange(len(problem.coflows)), np.diff(groups.first))
    per_ms = min(US, MOST_US / window_ms)  # long windows are in larger units: only ratios matter
    week = _week(problem, window_ms, per_ms)
    same_ms = same_time_ms(problem)
    peer = np.full((2, n), NONE)
    windows: list[tuple[Ints, Floats, Floats]] = []
    arrivals = np.unique(problem.arrival_ms[problem.can_complete])
    now, remaining = 0.0, problem.can_complete.copy()
    while remaining.any():
        active = np.flatnonzero(remaining & (problem.arrival_ms <= now))
        length = busiest_port_ms(active, groups.first, groups.source, groups.target, need, n)
        remaining[active[length <= 0]] = False
        active, length = active[length > 0], length[length > 0]
        if not len(active):
            later = arrivals[arrivals > now]
            if not len(later):
                break
            now = max(now + window_ms, np.ceil(float(later[0]) / window_ms) * window_ms)
            continue
        order = active[np.lexsort((active, length))]
        rank = np.full(len(remaining), NONE)
        rank[order] = np.arange(len(order))
        admitted = admit_demand(order, groups.first, groups.source, groups.target, need, n, window_ms)
        observed = week.with_matrix(admitted * week.circuit_mbps * per_ms)
        made = [day.without_loops() for day in days(observed)]
        made = [day for day in made if (day.target != IDLE).any()]
        targets = np.array([day.target for day in made], dtype=np.int64).reshape(-1, n)
        lasts = np.array([day.duration_us / per_ms for day in made])
        windows.append(
            _serve_window(
                _Window(now, now + window_ms, problem.setup_ms, same_ms, targets, lasts),
                _Flows(first_of_pair, by_pair, rank[coflow], need),
                peer,
            )
        )
        if not len(windows[-1][0]):
            raise InputError(f"window_ms is {window_ms:g}: no circuit fits into it, it must be longer")
        now += window_ms
    if not windows:
        return np.zeros(0, np.int64), np.zeros(0), np.zeros(0)
    index, start, end = (np.concatenate(column) for column in zip(*windows, strict=True))
    return groups.flow[index], start, end


def _week(problem: CoflowsInTime, window_ms: float, per_ms: float) -> Circuits:
    """Return a window of this network without demand.

    per_ms  units of time in a millisecond: 1,000, or fewer where no window may have so many us
    """
    return Circuits(
        racks=problem.racks[["rack", "circuit_mbps"]].assign(packet_mbps=0.0),
        demands=pd.DataFrame({"source_rack": [], "target_rack": [], "bits": []}),
        switch=pd.DataFrame({"night_us": [problem.setup_ms * per_ms], "window_us": [window_ms * per_ms]}),
    )


@run_small_in_python(max_elements=1_000)
@kernel
def admit_demand(
    order: Ints, first: Ints, source: Ints, target: Ints, need: Floats, racks: int, window_ms: float
) -> Floats:
    """Return (n, n) the time of circuits that a window is asked for, ms: by coflow, while ports have time."""
    out, into = np.full(racks, window_ms), np.full(racks, window_ms)
    demand = np.zeros((racks, racks))
    for coflow in order:
        for f in range(first[coflow], first[coflow + 1]):
            taken = min(need[f], out[source[f]], into[target[f]])
            if taken > ADMITTED * need[f]:
                demand[source[f], target[f]] += taken
                out[source[f]] -= taken
                into[target[f]] -= taken
    return demand


class _Window(NamedTuple):
    """A window and its days.

    now, end        ms
    same_ms         difference of two times that are the same
    targets, lasts  (days, n) target of each rack, and (days,) time of the days, ms
    """

    now: float
    end: float
    setup_ms: float
    same_ms: float
    targets: Ints
    lasts: Floats


class _Flows(NamedTuple):
    """Flows by pair of racks: those of pair p are by_pair[first_of_pair[p] : first_of_pair[p + 1]].

    rank  (F,) place of each flow's coflow in the order of service; `NONE` for those not there yet
    need  (F,) what is left of flows, ms; is reduced
    """

    first_of_pair: Ints
    by_pair: Ints
    rank: Ints
    need: Floats


@run_small_in_python(max_elements=1_000)
@kernel
def _serve_window(window: _Window, flows: _Flows, peer: Ints) -> tuple[Ints, Floats, Floats]:
    """Serve flows by the days of a window; return places of flows, start and end of each service, ms.

    Circuits that the next day keeps stay up in the night, and those of the last day until the end.

    peer  (2, n) the rack that each port is connected to, sending and receiving; is changed
    """
    n, need, same_ms = peer.shape[1], flows.need, window.same_ms
    flow, start, stop = [0], [0.0], [0.0]
    flow.pop()
    start.pop()
    stop.pop()
    begin, until = window.now, window.now
    days = len(window.lasts)
    for day in range(max(days, 1)):
        begin = until
        if days > 0:
            until = min(begin + window.setup_ms + window.lasts[day], window.end)
        if day >= days - 1:
            until = window.end
        for i in range(n):
            j = window.targets[day, i] if days > 0 else peer[0, i]
            if j == NONE:
                continue
            is_kept = peer[0, i] == j and peer[1, j] == i
            if days == 0 and not is_kept:
                continue
            t = begin if is_kept else begin + window.setup_ms
            while t < until - same_ms:
                best = _first_flow(flows, i * n + j)
                if best == NONE:
                    break
                remaining = need[best] - (until - t)
                takes = until - t if remaining > same_ms else need[best]
                flow.append(best)
                start.append(t)
                t = until if remaining >= 0 else t + takes
                stop.append(t)
                need[best] = remaining if remaining > same_ms else 0.0
        if days > 0:
            _connect(peer, window.targets[day])
    return np.array(flow), np.array(start), np.array(stop)


@inner
def _first_flow(flows: _Flows, pair: int) -> int:
    """Return the flow of a pair that is served first; NONE for none."""
    rank, best = flows.rank, NONE
    for k in range(flows.first_of_pair[pair], flows.first_of_pair[pair + 1]):
        f = flows.by_pair[k]
        if flows.need[f] > 0 and rank[f] != NONE and (best == NONE or rank[f] < rank[best]):
            best = f
    return best


@inner
def _connect(peer: Ints, target: Ints) -> None:
    """Connect the ports as a day does."""
    for j in range(len(target)):
        peer[1, j] = NONE
    for i in range(len(target)):
        peer[0, i] = target[i]
        if target[i] != NONE:
            peer[1, target[i]] = i
