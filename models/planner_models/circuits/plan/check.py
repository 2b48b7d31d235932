"""Check that tables are a schedule, and find the limits that it violates, without the method that made it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from planner.contract.plan import Violations
from planner.contract.tolerances import EXACT, allowance, differs, exceeds, falls_short
from planner.errors import PlanRejected
from planner_models.circuits.plan.plan import Schedule, fill_links, port_map
from planner_models.circuits.plan.transmissions import Transmitted, derive_transmitted
from planner_models.circuits.problem.problem import Circuits
from planner_models.circuits.problem.racks import ENDS, Racks

LEFT: Final = 10 * EXACT
"""Share of what is wanted by which the amount that is left may differ: plans leave rests below EXACT out."""
PORT_KEY: Final = ("output_port", "start_us", "input_port", "switch")


@dataclass(frozen=True, kw_only=True, eq=False)
class Carried:
    """Demand that a schedule carries, re-derived from its tables.

    circuit_bits  (n, n) what the circuits carry, never more than is wanted: in the week, and not before the
                  night after the last day of their switch is over, whatever the plan says
    packet_bits   (n, n) what the packet switch is to carry
    start_us, end_us, switch  (days,) by switch, from 0, and in order of time
    multicasts    what circuits to several racks send; None where there are none
    """

    circuit_bits: NDArray[np.float64]
    packet_bits: NDArray[np.float64]
    start_us: NDArray[np.float64]
    end_us: NDArray[np.float64]
    switch: NDArray[np.int64]
    multicasts: Transmitted | None = None

    def served_bits(self, problem: Circuits) -> NDArray[np.float64]:
        """Return (n, n) the service of both switches within the limits of links, never above demand."""
        packets = self.packet_bits
        if problem.window_us is None:
            packets = np.where(np.outer(problem.packet_mbps > 0, problem.packet_mbps > 0), packets, 0.0)
        else:
            budget = problem.packet_mbps * problem.window_us
            if any(exceeds(packets.sum(axis=axis), budget).any() for axis in (0, 1)):
                source, target = np.nonzero(packets)
                fitting = fill_links(source, target, packets[source, target], budget)
                packets = np.zeros_like(packets)
                packets[source, target] = fitting
        served: NDArray[np.float64] = np.minimum(problem.bits, self.circuit_bits + packets)
        return served

    @property
    def dark_us(self) -> NDArray[np.float64]:
        """(days,) time since the last day of the same switch, or since the start."""
        first = np.diff(self.switch, prepend=-1) != 0
        before = np.concatenate([[0.0], self.end_us[:-1]])[: len(self.start_us)]
        return self.start_us - np.where(first, 0.0, before)


def derive_carried(problem: Circuits, plan: Schedule) -> Carried:
    """Return the traffic that the plan carries; raises PlanRejected if it is no schedule."""
    frame = plan.configurations
    frame = frame if "switch" in frame else frame.assign(switch=1.0)
    source, target = require_matchings(problem, frame, targets=problem.circuit_targets)
    for column in ("start_us", "duration_us"):
        values = frame[column].to_numpy(float)
        if not (np.isfinite(values) & (values >= 0)).all():
            raise PlanRejected(f"configurations: {column} must be finite and at least 0")
    _, first, day = np.unique(frame["day"].to_numpy(float), return_index=True, return_inverse=True)
    numbers = frame["switch"].to_numpy(float)
    if (strange := ~np.isin(numbers, np.arange(1, problem.switches + 1))).any():
        row = int(np.argmax(strange))
        raise PlanRejected(
            f"configurations row {row + 1}: switch {numbers[row]:g}, must be from 1 to {problem.switches}"
        )
    if plan.ports is not None:
        _require_port_map(problem, plan.ports, plan.configurations)
    packet = _sum_pairs(problem, plan.packet, "packet")
    start, switch = frame["start_us"].to_numpy(float)[first], numbers[first].astype(np.int64) - 1
    order = np.lexsort((start, switch))
    end = start + frame["duration_us"].to_numpy(float)[first]
    rank = np.empty_like(order)  # of each day
    rank[order] = np.arange(len(order))
    lit_us = _lit_us(problem, start[order], end[order], switch[order])[rank[day]]
    multicasts = derive_transmitted(
        problem, plan.transmissions, frame["day"].to_numpy(float), source, target, lit_us
    )
    if multicasts is not None:  # circuits to several racks carry multicasts alone
        lit_us = np.where(multicasts.is_shared, 0.0, lit_us)
    up = np.zeros_like(problem.bits)
    np.add.at(up, (source, target), lit_us)
    if problem.dark == "changed":
        np.add.at(
            up,
            (source, target),
            _night_work_us(problem, rank[day], source, target, start[order], end[order], switch[order]),
        )
    carried_bits = up * problem.circuit_mbps
    if multicasts is not None:
        carried_bits += multicasts.received_bits
    return Carried(
        circuit_bits=np.minimum(problem.bits, carried_bits),
        multicasts=multicasts,
        packet_bits=packet,
        start_us=start[order],
        end_us=end[order],
        switch=switch[order],
    )


def _require_port_map(problem: Circuits, ports: pd.DataFrame, configurations: pd.DataFrame) -> None:
    """Raise PlanRejected unless the port map connects the circuits of the configurations, and no others."""
    expected = port_map(problem, configurations)
    if len(ports) != len(expected):
        raise PlanRejected(
            f"ports: has {len(ports):,} rows, must have one for each of {len(expected):,} circuits"
        )
    columns = list(expected.columns)
    order, wanted_order = (np.lexsort([frame[key] for key in PORT_KEY]) for frame in (ports, expected))
    stated = ports[columns].to_numpy(float)[order]
    derived = expected.to_numpy(float)[wanted_order]
    wrong = differs(stated, derived)
    if wrong.any():
        row_number, column = (int(index[0]) for index in np.nonzero(wrong))
        row = int(order[row_number])
        raise PlanRejected(
            f"ports row {row + 1}: {columns[column]} is {stated[row_number, column]:g}, "
            f"configurations say {derived[row_number, column]:g}"
        )


def _lit_us(
    problem: Circuits, start_us: NDArray[np.float64], end_us: NDArray[np.float64], switch: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return (days,) the time that circuits work in the week after their night; days by switch and time."""
    week = np.inf if problem.window_us is None else problem.window_us
    # a day begins when all earlier days of its switch, and a night after them, are over
    before = np.zeros_like(end_us)
    for number in np.unique(switch):
        rows = np.flatnonzero(switch == number)
        before[rows[1:]] = np.maximum.accumulate(end_us[rows])[:-1]
    begin = np.maximum(start_us, before + problem.night_us)
    lit: NDArray[np.float64] = np.maximum(np.minimum(end_us, week) - begin, 0.0)
    return lit


def _night_work_us(
    problem: Circuits,
    day: NDArray[np.int64],
    source: NDArray[np.int64],
    target: NDArray[np.int64],
    start_us: NDArray[np.float64],
    end_us: NDArray[np.float64],
    switch: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Return (rows,) the time that each circuit works on through the night, as the next day keeps it.

    day  (rows,) places of the rows' days in the arrays of days, which are by switch and in order of time
    """
    n = len(problem.racks)
    keys = (day * n + source) * n + target
    after = ((day + 1) * n + source) * n + target
    nights = np.concatenate([start_us[1:] - end_us[:-1], [0.0]])
    nights[:-1][switch[1:] != switch[:-1]] = 0.0
    saved_us: NDArray[np.float64] = np.where(np.isin(after, keys), np.maximum(nights, 0.0)[day], 0.0)
    return saved_us


def require_matchings(
    racks: Racks, frame: pd.DataFrame, *, targets: int = 1
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows of `racks` of each circuit's ends, which make a matching of each day.

    targets  number of racks that a sender may have circuits to in a day
    raises  PlanRejected for an unknown rack, a rack to itself or with two circuits of a day, and circuits
            of a day that do not start and end together, on one switch
    """
    source, target = require_racks(racks, frame, "configurations")
    if (source == target).any():
        row = int(np.argmax(source == target))
        raise PlanRejected(f"configurations row {row + 1}: a rack has a circuit to itself")
    _, first, day = np.unique(frame["day"].to_numpy(float), return_index=True, return_inverse=True)
    for column in ("start_us", "duration_us", "switch"):
        values = frame[column].to_numpy(float) if column in frame else np.zeros(len(frame))
        if (values != values[first][day]).any():
            raise PlanRejected(
                "configurations: the circuits of a day must start and end together, on one switch"
            )
    for column, verb, rack, limit in zip(
        ENDS, ("sends", "receives"), (source, target), (targets, 1), strict=True
    ):
        surplus = number_within(day * len(racks.racks) + rack) >= limit
        if surplus.any():
            row = int(np.argmax(surplus))
            count = "two" if limit == 1 else f"{limit + 1}"
            rule = "must be a matching" if targets == 1 else f"must be at most {limit}"
            raise PlanRejected(
                f"configurations row {row + 1}: rack '{frame[column].iloc[row]}' {verb} over {count} "
                f"circuits in day {frame['day'].iloc[row]:g}, {rule}"
            )
    return source, target


def number_within(groups: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return (rows,) the number of earlier rows of the same group."""
    order = np.argsort(groups, kind="stable")
    ordered = groups[order]
    begins = np.flatnonzero(np.diff(ordered, prepend=-1) != 0)
    lengths = np.diff(np.append(begins, len(groups)))
    earlier = np.empty(len(groups), dtype=np.int64)
    earlier[order] = np.arange(len(groups)) - np.repeat(begins, lengths)
    return earlier


def require_racks(
    racks: Racks, frame: pd.DataFrame, table: str
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows of `racks` that a table names; raises PlanRejected for an unknown rack."""
    rows = racks.rows_of(frame)
    for column, rack_rows in zip(ENDS, rows, strict=True):
        if (rack_rows < 0).any():
            row = int(np.argmax(rack_rows < 0))
            name = frame[column].iloc[row]
            raise PlanRejected(f"{table} row {row + 1}: {column} '{name}' is no rack of the network")
    return rows


def check(problem: Circuits, plan: Schedule) -> Violations:
    """Return the constraint violations of the schedule, by name.

    night         a day starts before the night after its switch's last one is over; the first has one too
    shortest_day  a day is too short
    window        a day ends after the week
    packet        a rack sends or receives more over the packet switch than its link carries in the week
    demand        a pair is served twice: more over both switches than is wanted
    coverage      without a week: demand that is neither served nor listed as unserved
    unserved      demand that is listed as unserved, where a plan lists it, is not what is left
    transmission  a circuit to several racks is to send more than it carries in a day

    PlanRejected where it is no schedule: an unknown rack, circuits of a day that are no matching.
    """
    carried = derive_carried(problem, plan)
    window = problem.window_us
    gap, lasts = carried.dark_us, carried.end_us - carried.start_us
    violations = report_days(
        "night", gap, falls_short(gap, problem.night_us, carried.start_us), problem.night_us
    )
    short = falls_short(lasts, problem.shortest_day_us, carried.end_us)
    violations += report_days("shortest_day", lasts, short, problem.shortest_day_us)
    demand, served = problem.bits, carried.circuit_bits + carried.packet_bits
    if window is not None:
        violations += report_days("window", carried.end_us, exceeds(carried.end_us, window), window)
        budget = problem.packet_mbps * window
        for axis, way in ((1, "from"), (0, "to")):
            load = carried.packet_bits.sum(axis=axis)
            over = np.flatnonzero(exceeds(load, budget))
            violations += Violations.of(
                "packet",
                where=[f"{way} {problem.names[i]}" for i in over],
                amount=load[over],
                allowed=budget[over],
                unit="bits",
            )
    violations += _pairs(problem, "demand", exceeds(served, demand), served)
    listed = None if plan.unserved is None else _sum_pairs(problem, plan.unserved, "unserved")
    if window is None:
        accounted = served if listed is None else served + listed
        violations += _pairs(problem, "coverage", falls_short(accounted, demand), served)
    if carried.multicasts is not None:
        violations += carried.multicasts.report_violations()
    if listed is not None:
        remaining = np.maximum(demand - served, 0.0) + problem.unreachable_bits
        # what is left is the difference of what is wanted and served, exact relative to these
        wrong = np.abs(listed - remaining) > allowance(demand + problem.unreachable_bits, relative=LEFT)
        violations += _pairs(problem, "unserved", wrong, listed, remaining)
    return violations


def _sum_pairs(problem: Circuits, frame: pd.DataFrame, table: str) -> NDArray[np.float64]:
    """Return (n, n) the bits of a table of pairs; raises PlanRejected for amounts that cannot be."""
    amount = frame["bits"].to_numpy(float)
    if not (np.isfinite(amount) & (amount >= 0)).all():
        raise PlanRejected(f"{table}: bits must be finite and at least 0")
    bits = np.zeros_like(problem.bits)
    np.add.at(bits, require_racks(problem, frame, table), amount)
    return bits


def report_days(
    limit: str,
    amount: NDArray[np.float64],
    broken: NDArray[np.bool_],
    allowed: float,
    days: NDArray[Any] | None = None,
) -> Violations:
    """Return the violations of a limit by days; their numbers count from 1 unless `days` has them."""
    numbers = (np.arange(len(broken)) + 1 if days is None else days)[broken]
    where = [f"day {day:g}" for day in numbers]
    return Violations.of(limit, where=where, amount=amount[broken], allowed=allowed, unit="us")


def _pairs(
    problem: Circuits,
    limit: str,
    broken: NDArray[np.bool_],
    amount: NDArray[np.float64],
    allowed: NDArray[np.float64] | None = None,
) -> Violations:
    """Return the violations of a limit by pairs of racks; the allowed amount is by default the demand."""
    source, target = np.nonzero(broken)
    return Violations.of(
        limit,
        where=problem.name_ends(source, target),
        amount=amount[source, target],
        allowed=(problem.bits if allowed is None else allowed)[source, target],
        unit="bits",
    )
