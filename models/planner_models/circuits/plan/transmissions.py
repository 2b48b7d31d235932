"""Transmissions over circuits to several racks: the table `transmissions` of a plan, checked and added up."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from planner.contract.plan import Violations
from planner.contract.tolerances import exceeds
from planner.errors import PlanRejected
from planner_models.circuits.problem.problem import Circuits

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Transmitted:
    """Data of multicasts that circuits to several racks send.

    is_shared      (rows,) whether each row of `configurations` is a circuit to several racks
    received_bits  (n, n) what each rack receives of each source's multicasts, nothing twice
    days, racks    (circuits,) day and sender of each circuit to several racks
    sent_bits      (circuits,) what it is to send
    upper_bits     (circuits,) what it can send in its day, at the rate of its slowest link
    """

    is_shared: NDArray[np.bool_]
    received_bits: Floats
    days: Floats
    racks: NDArray[np.object_]
    sent_bits: Floats
    upper_bits: Floats

    def report_violations(self) -> Violations:
        """Return the circuits that are to send more than they can."""
        over = np.flatnonzero(exceeds(self.sent_bits, self.upper_bits))
        return Violations.of(
            "transmission",
            where=[f"day {self.days[i]:g} from {self.racks[i]}" for i in over],
            amount=self.sent_bits[over],
            allowed=self.upper_bits[over],
            unit="bits",
        )


def derive_transmitted(
    problem: Circuits, frame: pd.DataFrame | None, day: Floats, source: Ints, target: Ints, lit_us: Floats
) -> Transmitted | None:
    """Return the bits over circuits to several racks; None without such circuits and transmissions.

    Of transmissions that a day is too short for, the last ones of the table are cut. Data that a rack has
    received already counts once.

    frame   the table `transmissions`, or None
    day, source, target, lit_us  (rows,) of `configurations`: day, rows of `racks`, time that circuits work
    raises  PlanRejected for transmissions of an unknown multicast or of no data in it, and over a circuit
            that does not exist or goes to one rack, which carries whatever its pair still needs
    """
    has_rows = frame is not None and len(frame) > 0
    circuits: dict[tuple[float, int], list[int]] = {}
    for row, key in enumerate(zip(day.tolist(), source.tolist(), strict=True)):
        circuits.setdefault(key, []).append(row)
    shared = {key: rows for key, rows in circuits.items() if len(rows) > 1}
    if not shared and not has_rows:
        return None
    is_shared = np.zeros(len(day), dtype=bool)
    upper: dict[tuple[float, int], float] = {}
    for key, rows in shared.items():
        is_shared[rows] = True
        slowest = float(problem.circuit_mbps[source[rows], target[rows]].min())
        upper[key] = float(lit_us[rows].min()) * slowest
    sent = dict.fromkeys(shared, 0.0)
    intervals: dict[tuple[int, int], list[tuple[float, float]]] = {}
    multicasts = problem.multicast_demands
    for number, key, first, bits in _read_rows(problem, frame, shared):
        fitting = min(bits, max(upper[key] - sent[key], 0.0))
        sent[key] += bits
        for row in shared[key]:
            if multicasts.is_target[number, target[row]]:
                intervals.setdefault((number, int(target[row])), []).append((first, first + fitting))
    received = np.zeros_like(problem.bits)
    for (number, rack), parts in intervals.items():
        received[multicasts.source[number], rack] += measure_union(parts)
    return Transmitted(
        is_shared=is_shared,
        received_bits=received,
        days=np.array([key[0] for key in shared]),
        racks=np.array([problem.names[key[1]] for key in shared], dtype=object),
        sent_bits=np.array(list(sent.values())),
        upper_bits=np.array(list(upper.values())),
    )


def _read_rows(
    problem: Circuits, frame: pd.DataFrame | None, shared: dict[tuple[float, int], list[int]]
) -> list[tuple[int, tuple[float, int], float, float]]:
    """Return multicast, day with sender, first bit and amount of each row; raise PlanRejected where wrong."""
    if frame is None:
        return []
    multicasts = problem.multicast_demands
    numbers = {name: index for index, name in enumerate(multicasts.names.tolist())}
    columns = (frame[name].tolist() for name in ("day", "multicast", "first_bit", "bits"))
    read = []
    for row, (day, name, first, bits) in enumerate(zip(*columns, strict=True)):
        where = f"transmissions row {row + 1}"
        number = numbers.get(name)
        if number is None:
            raise PlanRejected(f"{where}: '{name}' is no multicast between racks that work")
        if not (np.isfinite(first) and np.isfinite(bits) and first >= 0 and bits >= 0):
            raise PlanRejected(f"{where}: first_bit and bits must be finite and at least 0")
        if exceeds(first + bits, multicasts.bits[number]):
            raise PlanRejected(
                f"{where}: ends at bit {first + bits:.10g}, multicast '{name}' has "
                f"{multicasts.bits[number]:.10g}"
            )
        key = (float(day), int(multicasts.source[number]))
        if key not in shared:
            rack = problem.names[key[1]]
            raise PlanRejected(f"{where}: rack '{rack}' has no circuit to several racks in day {day:g}")
        read.append((number, key, float(first), float(bits)))
    return read


def measure_union(intervals: list[tuple[float, float]]) -> float:
    """Return the length of the union of intervals."""
    total, end = 0.0, -np.inf
    for first, last in sorted(intervals):
        total += max(0.0, last - max(first, end))
        end = max(end, last)
    return total
