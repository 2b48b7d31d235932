"""The plan of system `circuits`: days of circuits, and what the packet switch carries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from planner.errors import PlanRejected
from planner.proof import Proof, Status
from planner.system import Decision
from planner.tables import Table, label, number, validate
from planner_models.circuits import packet
from planner_models.circuits.problem import Circuits

CONFIGURATIONS: Final = Table(
    name="configurations",
    about="a circuit in a day; the circuits of a day are a matching",
    columns={
        "day": number("number of the day, from 1", at_least=1),
        "start_us": number("when the day starts, us", at_least=0),
        "duration_us": number("how long it lasts, us", more_than=0),
        "source_rack": label("rack that sends"),
        "target_rack": label("rack that receives"),
    },
    may_be_empty=True,
)
PACKET: Final = Table(
    name="packet",
    about="bits of a pair that the packet switch carries",
    columns={
        "source_rack": label("rack that sends"),
        "target_rack": label("rack that receives"),
        "bits": number("how much, bits", at_least=0),
    },
    key=("source_rack", "target_rack"),
    may_be_empty=True,
)
PLAN_TABLES: Final = (CONFIGURATIONS, PACKET)
IDLE: Final = -1


@dataclass(frozen=True, kw_only=True, eq=False)
class Schedule:
    """Days of circuits, and what the packet switch carries.

    configurations  day, start_us, duration_us, source_rack, target_rack
    packet          source_rack, target_rack, bits
    """

    configurations: pd.DataFrame
    packet: pd.DataFrame

    def to_tables(self) -> dict[str, pd.DataFrame]:
        """configurations and packet."""
        return {"configurations": self.configurations, "packet": self.packet}


@dataclass(frozen=True, kw_only=True, eq=False)
class Day:
    """Circuits that stay up for a while.

    duration_us  how long
    target       (n,) rack that each rack sends to, or IDLE
    """

    duration_us: float
    target: NDArray[np.int64]


def from_tables(problem: Circuits, tables: Mapping[str, pd.DataFrame]) -> Schedule:  # noqa: ARG001
    """The plan in the tables `configurations` and `packet`, made here or elsewhere."""
    for table in PLAN_TABLES:
        if table.name not in tables:
            raise PlanRejected(f"plan: has no table '{table.name}'")
    frames = [validate(table, tables[table.name], where=f"plan: {table.name}") for table in PLAN_TABLES]
    return Schedule(configurations=frames[0], packet=frames[1])


def circuit_bits(problem: Circuits, days: Sequence[Day]) -> NDArray[np.float64]:
    """(n, n) what the circuits can carry of each pair, bits."""
    up_us = np.zeros_like(problem.bits)
    for day in days:
        source = np.flatnonzero(day.target != IDLE)
        up_us[source, day.target[source]] += day.duration_us
    return up_us * problem.circuit_mbps


def planned(problem: Circuits, days: Sequence[Day]) -> tuple[Schedule, float, float]:
    """The plan of these days one after another, with the most that the packet switch can add.

    Each day follows a night. Without a window the packet switch carries all that circuits leave.

    returns  the plan, the bits that it serves, and when it is done, us
    """
    n = len(problem.racks)
    days = [day for day in (_without_loops(day, n) for day in days) if (day.target != IDLE).any()]
    left = np.clip(problem.bits - circuit_bits(problem, days), 0.0, None)
    left[left <= 1e-9 * problem.bits] = 0.0  # rounding
    window = problem.window_us
    extra = left if window is None else packet.fill(left, problem.packet_mbps * window)
    end = sum(problem.night_us + day.duration_us for day in days)
    done = max(end, packet.needed_us(extra, problem.packet_mbps))
    rows = [np.flatnonzero(day.target != IDLE) for day in days]
    counts = [len(row) for row in rows]
    lengths = np.array([day.duration_us for day in days])
    starts = np.cumsum(lengths + problem.night_us) - lengths
    source = np.concatenate(rows) if rows else np.zeros(0, dtype=np.int64)
    target = np.concatenate([d.target[r] for d, r in zip(days, rows, strict=True)]) if rows else source
    configurations = pd.DataFrame(
        {
            "day": np.repeat(np.arange(1, len(days) + 1), counts),
            "start_us": np.repeat(starts, counts),
            "duration_us": np.repeat(lengths, counts),
            "source_rack": problem.names[source],
            "target_rack": problem.names[target],
        }
    )
    plan = Schedule(configurations=configurations, packet=packet_table(problem, extra))
    return plan, float((problem.bits - left + extra).sum()), float(done)


def packet_table(problem: Circuits, bits: NDArray[np.float64]) -> pd.DataFrame:
    """The table `packet` of an (n, n) matrix of bits."""
    source, target = np.nonzero(bits)
    return pd.DataFrame(
        {
            "source_rack": problem.names[source],
            "target_rack": problem.names[target],
            "bits": bits[source, target],
        }
    )


def decided(
    problem: Circuits,
    days: Sequence[Day],
    *,
    bound: float | None = None,
    backend: str | None = None,
    gap: float = 1e-6,
) -> Decision[Schedule]:
    """The decision for these days: served bits in a window, else the time until all is served."""
    plan, served, done = planned(problem, days)
    most = problem.window_us is not None
    objective = served if most else done
    if not np.isfinite(objective):
        reason = "demand is left over that no packet switch takes, and without a window all must be served"
        return Decision(plan=None, proof=Proof(status=Status.UNDECIDED, bound=bound, reasons=(reason,)))
    optimal = bound is not None and abs(bound - objective) <= gap * max(abs(bound), abs(objective), 1e-9)
    proof = Proof(
        status=Status.OPTIMAL if optimal else Status.FEASIBLE,
        objective=objective,
        bound=bound,
        metric="served_bits" if most else "done_us",
        backend=backend,
    )
    return Decision(plan=plan, proof=proof)


def _without_loops(day: Day, n: int) -> Day:
    """The day without circuits from a rack to itself, which carry nothing."""
    return Day(duration_us=day.duration_us, target=np.where(day.target == np.arange(n), IDLE, day.target))
