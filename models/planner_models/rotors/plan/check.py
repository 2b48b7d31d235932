"""Check that tables are a plan, and find the limits that it violates, without the method that made it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from planner.arrays import Floats, Ints
from planner.contract.plan import Violations
from planner.contract.tolerances import allowance, exceeds, falls_short
from planner.errors import PlanRejected
from planner_models.circuits.problem.racks import ENDS
from planner_models.rotors.plan.expander import ExpanderLoad, load_expander
from planner_models.rotors.plan.plan import Paths, Routing
from planner_models.rotors.plan.timetable import ROTATION, SAME_TIME, Timetable, rotate
from planner_models.rotors.problem.problem import RotorNetwork


@dataclass(frozen=True, kw_only=True, eq=False)
class Evaluation:
    """The content of a plan's tables, re-derived row by row.

    timetable  circuits of the period
    paths      traffic that waits for circuits
    at_once    (n, n) traffic that does not wait, Mbit/s
    unserved   (n, n) traffic that the plan lists as not delivered, Mbit/s
    """

    problem: RotorNetwork
    timetable: Timetable
    paths: Paths
    at_once: Floats
    unserved: Floats

    @cached_property
    def delivered(self) -> Floats:
        """(n, n) traffic that arrives, Mbit/s."""
        return self.paths.delivered(len(self.problem.racks)) + self.at_once

    @cached_property
    def capacity(self) -> Floats:
        """(n, n) mean capacity of circuits from row to column, Mbit/s."""
        return self.timetable.up_share * self.problem.link_mbps

    @cached_property
    def expander(self) -> ExpanderLoad:
        """Load of circuits by the traffic that does not wait."""
        return load_expander(self.timetable, self.at_once, self.problem.link_mbps)

    @cached_property
    def load(self) -> Floats:
        """(n, n) mean load of circuits from row to column, Mbit/s."""
        load = self.paths.load(len(self.problem.racks))
        return load + self.expander.mean_mbps if self.at_once.any() else load

    @cached_property
    def waits(self) -> tuple[Floats, Floats]:
        """Mean and longest wait of each path, (P,) us; inf without a circuit."""
        return self.timetable.wait_us(self.paths.source, self.paths.via, self.paths.target)

    @cached_property
    def mean_wait(self) -> Floats:
        """(n, n) mean wait of traffic that waits for circuits, us; nan where there is none."""
        racks = len(self.problem.racks)
        total, rate = np.zeros((racks, racks)), self.paths.delivered(racks)
        np.add.at(total, (self.paths.source, self.paths.target), self.paths.rate * self.waits[0])
        mean: Floats = np.divide(total, rate, out=np.full_like(total, np.nan), where=rate > 0)
        return mean


def evaluate(problem: RotorNetwork, plan: Routing) -> Evaluation:
    """Return the arrays of the plan; raises PlanRejected if it is none.

    That is where a table names a rack that is none, has an amount or a time that cannot be, or where a plan
    for rotor switches has other circuits than their rotation.
    """
    timetable = read_timetable(problem, plan)
    if timetable.kind == ROTATION:
        _require_rotation(problem, timetable)
    source, target = _require_pairs(problem, plan.routes, "routes")
    names = plan.routes["via"].fillna("").astype(str)
    blank = names.to_numpy() == ""
    via = np.where(blank, source, problem.places.get_indexer(pd.Index(names)))
    wrong = ~blank & ((via < 0) | (via == source) | (via == target))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise PlanRejected(f"routes row {row + 1}: via '{names.iloc[row]}' is no other rack of the network")
    paths = Paths(source, via.astype(np.int64), target, _require_rates(plan.routes, "routes"))
    return Evaluation(
        problem=problem,
        timetable=timetable,
        paths=paths,
        at_once=_read_matrix(problem, plan.expander, "expander"),
        unserved=_read_matrix(problem, plan.unserved, "unserved"),
    )


def read_timetable(problem: RotorNetwork, plan: Routing) -> Timetable:
    """Return the circuits of a plan; raises PlanRejected for racks or times that cannot be."""
    if len(plan.period) != 1:
        raise PlanRejected(f"period: has {len(plan.period)} rows, must have one")
    period = float(plan.period["period_us"].iloc[0])
    frame = plan.circuits
    source, target = _require_pairs(problem, frame, "circuits")
    start, end = (frame[name].to_numpy(float) for name in ("start_us", "end_us"))
    bad = ~(np.isfinite(start) & np.isfinite(end) & (start >= 0) & (start < end)) | (exceeds(end, period))
    if bad.any():
        row = int(np.argmax(bad))
        raise PlanRejected(
            f"circuits row {row + 1}: is from {start[row]:g} to {end[row]:g} us, must lie within the period "
            f"of {period:g}"
        )
    number = frame["switch"].to_numpy(float)
    odd = (number < 1) | (number > problem.count) | (number != np.round(number))
    if odd.any():
        row = int(np.argmax(odd))
        raise PlanRejected(
            f"circuits row {row + 1}: switch is {number[row]:g}, must be from 1 to {problem.count}"
        )
    return Timetable(
        kind=str(plan.period["kind"].iloc[0]),
        period_us=period,
        racks=len(problem.racks),
        switch=number.astype(np.int64) - 1,
        start=start,
        end=np.minimum(end, period),
        source=source,
        target=target,
    )


def _require_rotation(problem: RotorNetwork, timetable: Timetable) -> None:
    """Raise PlanRejected unless the circuits are those of the rotor switches' rotation."""
    expected = rotate(problem)
    close = float(allowance(expected.period_us))

    def rows(table: Timetable) -> Floats:
        columns = np.stack([table.switch, table.source, table.target, table.start, table.end]).astype(float)
        lasting = columns[:, table.end - table.start > close]
        order = np.lexsort((lasting[3], lasting[2], lasting[1], lasting[0]))
        ordered: Floats = lasting[:, order]
        return ordered

    stated, theirs = rows(timetable), rows(expected)
    if (
        abs(timetable.period_us - expected.period_us) > close
        or stated.shape != theirs.shape
        or (stated[:3] != theirs[:3]).any()
        or (np.abs(stated[3:] - theirs[3:]) > close).any()
    ):
        raise PlanRejected("circuits: are not those of the rotor switches' rotation")


def _require_pairs(problem: RotorNetwork, frame: pd.DataFrame, table: str) -> tuple[Ints, Ints]:
    """Return the rows of racks that a table names as ends; raise PlanRejected for invalid pairs."""
    rows = problem.rows_of(frame)
    for name, rack_rows in zip(ENDS, rows, strict=True):
        if (rack_rows < 0).any():
            row = int(np.argmax(rack_rows < 0))
            raise PlanRejected(f"{table} row {row + 1}: {name} '{frame[name].iloc[row]}' is no rack")
    if (same := rows[0] == rows[1]).any():
        row = int(np.argmax(same))
        raise PlanRejected(
            f"{table} row {row + 1}: {ENDS[0]} and {ENDS[1]} are both '{frame[ENDS[0]].iloc[row]}', must "
            "differ"
        )
    return rows


def _require_rates(frame: pd.DataFrame, table: str) -> Floats:
    """Return the rates of a table, Mbit/s; raise PlanRejected for one that is no amount."""
    rate = frame["rate_mbps"].to_numpy(float)
    if not (np.isfinite(rate) & (rate > 0)).all():
        raise PlanRejected(f"{table}: rate_mbps must be finite and greater than 0")
    return rate


def _read_matrix(problem: RotorNetwork, frame: pd.DataFrame, table: str) -> Floats:
    """Return the (n, n) rates of a table, Mbit/s."""
    matrix: Floats = np.zeros((len(problem.racks), len(problem.racks)))
    np.add.at(matrix, _require_pairs(problem, frame, table), _require_rates(frame, table))
    return matrix


def check(problem: RotorNetwork, plan: Routing) -> Violations:
    """Return the constraint violations of the plan, by name.

    failed     a rack that has failed has a circuit
    ports      a switch connects a port to two others at once
    night      a switch has less time than a night between two of its configurations
    capacity   circuits between two racks carry more than they have time for
    instant    traffic that does not wait is more than a circuit carries in some interval, or has no path
    demand     more is delivered than there is demand
    urgent     more does not wait than is urgent
    unserved   what is listed as not delivered is not what is left

    PlanRejected where it is no plan: see `evaluate`.
    """
    evaluation = evaluate(problem, plan)
    violations = _check_circuits(problem, evaluation.timetable)
    limits = (
        ("capacity", evaluation.load, evaluation.capacity),
        ("demand", evaluation.delivered, problem.demand_mbps),
        ("urgent", evaluation.at_once, problem.urgent_mbps),
    )
    for name, amount, allowed in limits:
        violations += _of_pairs(problem, name, exceeds(amount, allowed, amount), amount, allowed)
    remaining = problem.offered_mbps - evaluation.delivered
    # what is left is a difference, exact relative to the demand
    wrong = np.abs(evaluation.unserved - remaining) > allowance(problem.offered_mbps, evaluation.delivered)
    violations += _of_pairs(problem, "unserved", wrong, evaluation.unserved, remaining)
    if evaluation.at_once.any():
        lost = (evaluation.at_once > 0) & ~evaluation.expander.is_connected
        violations += _of_pairs(problem, "instant", lost, evaluation.at_once, np.zeros_like(remaining))
        if exceeds(evaluation.expander.peak_share, 1.0) and evaluation.expander.peak_pair is not None:
            violations += Violations.of(
                "instant",
                where=[problem.name_ends(*(np.array([row]) for row in evaluation.expander.peak_pair))[0]],
                amount=[evaluation.expander.peak_share],
                allowed=1.0,
                unit="of its rate in an interval",
            )
    return violations


def _of_pairs(
    problem: RotorNetwork, name: str, wrong: np.ndarray, amount: Floats, allowed: Floats
) -> Violations:
    source, target = np.nonzero(wrong)
    return Violations.of(
        name,
        where=problem.name_ends(source, target),
        amount=amount[source, target],
        allowed=allowed[source, target],
        unit="Mbit/s",
    )


def _check_circuits(problem: RotorNetwork, timetable: Timetable) -> Violations:
    """Return circuits of failed racks, of ports in use, and after too short a night.

    Those of one switch that start and end together are a configuration. Configurations must lie a night
    apart, also the last of a period and the first of the next, unless they are the same.
    """
    failed = (problem.works[timetable.source, timetable.target] == 0).nonzero()[0]
    violations = Violations.of(
        "failed",
        where=problem.name_ends(timetable.source[failed], timetable.target[failed]),
        amount=np.ones(len(failed)),
        allowed=0.0,
        unit="circuits",
    )
    night = problem.night_us if timetable.kind == ROTATION else problem.schedule_night_us
    for switch in np.unique(timetable.switch).tolist():
        rows = np.flatnonzero(timetable.switch == switch)
        days = _group_days(timetable, rows)
        starts = np.array([start for start, _, _ in days])
        ends = np.maximum.accumulate([end for _, end, _ in days])
        for index, (start, _, pairs) in enumerate(days):
            for ports in zip(*pairs, strict=True):
                if len(set(ports)) < len(ports):
                    violations += Violations.of(
                        "ports",
                        where=[f"switch {switch + 1} at {start:g} us"],
                        amount=[len(ports)],
                        allowed=len(set(ports)),
                        unit="circuits",
                    )
                    break
            before = index - 1
            gap = starts[index] - ends[before] + (timetable.period_us if index == 0 else 0.0)
            if set(pairs) != set(days[before][2]) and falls_short(gap, night, timetable.period_us):
                violations += Violations.of(
                    "night",
                    where=[f"switch {switch + 1} before {start:g} us"],
                    amount=[gap],
                    allowed=night,
                    unit="us",
                )
    return violations


def _group_days(timetable: Timetable, rows: Ints) -> list[tuple[float, float, list[tuple[int, int]]]]:
    """Return the start, end and pairs of each configuration of a switch, in order of time.

    Times are the same that differ by rounding alone: days may be much shorter than the tolerance of limits.
    """
    same = SAME_TIME * timetable.period_us
    order = rows[np.lexsort((timetable.end[rows], timetable.start[rows]))]
    days: list[tuple[float, float, list[tuple[int, int]]]] = []
    for row in order.tolist():
        start, end = float(timetable.start[row]), float(timetable.end[row])
        pair = int(timetable.source[row]), int(timetable.target[row])
        if days and abs(start - days[-1][0]) <= same and abs(end - days[-1][1]) <= same:
            days[-1][2].append(pair)
        else:
            days.append((start, end, [pair]))
    return days
