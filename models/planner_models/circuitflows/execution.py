"""The data plane in time, week by week, under a scheduler on the control loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from planner import loop
from planner.loop import Controller, Round
from planner_models.circuitflows import packets, plan
from planner_models.circuitflows.packets import Network
from planner_models.circuitflows.plan import Operation
from planner_models.circuitflows.problem import FlowsInTime
from planner_models.circuits.schedule import IDLE, Day

S: Final = 1e-6
"""Seconds in a microsecond."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Seen:
    """What can be known of demand at an instant.

    queued_bits   (n, n) what the racks' queues hold
    pending_bits  (n, n) what applications have handed over and is not yet acknowledged
    """

    queued_bits: NDArray[np.float64]
    pending_bits: NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Resizing:
    """Queues hold `small` packets, and `large` ones from `early_us` before their circuit to its end.

    source  Mukerjee 2018, 2.4.2: resize(s, b, tau)
    """

    small: int
    large: int
    early_us: float


class Datacenter:
    """A network of flows whose circuits are set a week at a time; an execution of `planner.loop`.

    A week begins when it is applied. Its days follow one another, each after a night. A queue is
    enlarged as if the week were repeated, which is all that is known when it begins. What is observed
    is what has been reported by then: racks and hosts report so that it is there when a week begins.
    """

    def __init__(self, problem: FlowsInTime, network: Network, resizing: Resizing | None) -> None:
        self.problem, self.network, self.resizing = problem, network, resizing
        self.rng = np.random.default_rng(problem.reports.seed)
        self.reports: list[tuple[float, Seen]] = []
        self.weeks_told = 0
        self.days: list[tuple[float, Day]] = []
        self.resizes: list[tuple[float, int, int]] = []
        self.is_large = np.zeros(len(problem.racks) ** 2, dtype=bool)

    def advance(self, until_s: float) -> None:
        age, week, until = self.problem.reports.age_us, self.problem.of("week_us"), until_s / S
        while age > 0 and (leaves := _instant(self.weeks_told * week - age)) < until:
            if leaves >= 0:
                self.network.advance(leaves)
                self.reports.append((leaves, self._state()))
            self.weeks_told += 1
        self.network.advance(until)

    def apply(self, decision: Sequence[Day]) -> None:
        now, end = self.network.now_us, self.network.now_us
        begun: list[tuple[float, Day]] = []
        for day in decision:
            start = end + self.problem.of("night_us")
            end = start + day.duration_us
            if start < self.problem.of("horizon_us"):
                begun.append((start, day))
        resizes = [] if self.resizing is None else self._resizes(self.resizing, now, begun)
        self.days += begun
        self.resizes += resizes
        tables = changes_of(self.problem, begun, resizes)
        self.network = self.network.with_changes(*tables)

    def observe(self) -> Seen:
        age, n = self.problem.reports.age_us, len(self.problem.racks)
        if age == 0:
            return self._as_told(self._state())
        there = [report for report in self.reports if report[0] + age <= self.network.now_us * (1 + 1e-12)]
        if not there:
            return Seen(queued_bits=np.zeros((n, n)), pending_bits=np.zeros((n, n)))
        self.reports = self.reports[len(there) - 1 :]
        return self._as_told(there[-1][1])

    def _as_told(self, seen: Seen) -> Seen:
        """The amounts as reports put them: measured badly, and in whole steps."""
        reports, amounts = self.problem.reports, [seen.queued_bits, seen.pending_bits]
        if reports.noise > 0:
            amounts = [bits * self.rng.lognormal(0.0, reports.noise, bits.shape) for bits in amounts]
        if reports.grain_bytes > 0:
            step = 8 * reports.grain_bytes
            amounts = [np.ceil(bits / step - 1e-9) * step for bits in amounts]
        return Seen(queued_bits=amounts[0], pending_bits=amounts[1])

    def _state(self) -> Seen:
        n, bits = len(self.problem.racks), self.problem.of("packet_bytes") * 8
        of = self.network.of
        queued = of("queue_data").reshape(n, n) * bits
        there = np.isnan(of("end_us")) & (of("start_us") <= self.network.now_us)
        there &= (self.problem.before < 0) | (of("next_number") > 0)
        left = np.where(there, of("size") - of("delivered"), 0.0) * bits
        pair = of("source") * n + of("target")
        pending = np.bincount(pair, weights=left, minlength=n * n).astype(float).reshape(n, n)
        return Seen(queued_bits=queued, pending_bits=pending)

    def record(self) -> Mapping[str, pd.DataFrame]:
        names = self.problem.names
        return {
            "configurations": configurations(self.problem, self.days),
            "queues": pd.DataFrame(
                [
                    (at, names[pair // len(names)], names[pair % len(names)], float(size))
                    for at, pair, size in self.resizes
                ],
                columns=["at_us", "source_rack", "target_rack", "packets"],
            ),
        }

    def _resizes(
        self, resizing: Resizing, now: float, begun: Sequence[tuple[float, Day]]
    ) -> list[tuple[float, int, int]]:
        week, n = self.problem.of("week_us"), len(self.problem.racks)
        spans: dict[int, list[tuple[float, float]]] = {}
        for start, day in begun:
            for source in np.flatnonzero(day.target != IDLE).tolist():
                pair = source * n + int(day.target[source])
                for shift in (0.0, week):
                    span = (start + shift - resizing.early_us, start + shift + day.duration_us)
                    spans.setdefault(pair, []).append(span)
        found: list[tuple[float, int, int]] = []
        for pair in sorted({*spans, *np.flatnonzero(self.is_large).tolist()}):
            large = bool(self.is_large[pair])
            for at, grow in _edges(spans.get(pair, []), now, now + week):
                if grow != large:
                    found.append((at, pair, resizing.large if grow else resizing.small))
                    large = grow
            self.is_large[pair] = large
        return found


def _instant(us: float) -> float:
    """The time as the control loop hands it over, in whole nanoseconds of which it makes seconds."""
    return round(us * 1e3) / loop.TICKS_PER_S / S


def _edges(spans: Sequence[tuple[float, float]], start: float, end: float) -> list[tuple[float, bool]]:
    """When the union of the spans begins and ends in [start, end), with how it is at `start`."""
    joined: list[list[float]] = []
    for first, last in sorted(spans):
        if joined and first <= joined[-1][1]:
            joined[-1][1] = max(joined[-1][1], last)
        else:
            joined.append([first, last])
    edges = [(start, any(first <= start < last for first, last in joined))]
    for first, last in joined:
        edges += [(at, grows) for at, grows in ((first, True), (last, False)) if start < at < end]
    return edges


def configurations(problem: FlowsInTime, days: Sequence[tuple[float, Day]]) -> pd.DataFrame:
    """The table of the days with their starts."""
    rows = [np.flatnonzero(day.target != IDLE) for _, day in days]
    counts = [len(row) for row in rows]
    source = np.concatenate([*rows, np.zeros(0, np.int64)]).astype(np.int64)
    parts = [day.target[row] for (_, day), row in zip(days, rows, strict=True)]
    target = np.concatenate([*parts, np.zeros(0, np.int64)]).astype(np.int64)
    return pd.DataFrame(
        {
            "day": np.repeat(np.arange(1.0, len(days) + 1), counts),
            "start_us": np.repeat(np.array([start for start, _ in days], float), counts),
            "duration_us": np.repeat(np.array([day.duration_us for _, day in days], float), counts),
            "source_rack": problem.names[source],
            "target_rack": problem.names[target],
        }
    )


def changes_of(
    problem: FlowsInTime,
    begun: Sequence[tuple[float, Day]],
    resizes: Sequence[tuple[float, int, int]],
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """The same as `plan.changes` of the tables of these days and sizes, without making tables."""
    n, night = len(problem.racks), problem.of("night_us")
    rows: list[tuple[float, int, int, float]] = []
    for start, day in begun:
        end = start + day.duration_us
        source = np.flatnonzero(day.target != IDLE)
        for pair in (source * n + day.target[source]).tolist():
            rows += [
                (start - night, packets.HOLD, pair, 0.0),
                (start, packets.UP, pair, end),
                (end, packets.DOWN, pair, 0.0),
            ]
    rows += [(at, packets.RESIZE, pair, float(size)) for at, pair, size in resizes]
    us, kind, pair_, value = (
        (np.array(column) for column in zip(*rows, strict=True)) if rows else [np.zeros(0)] * 4
    )
    return us.astype(float), kind.astype(np.int64), pair_.astype(np.int64), value.astype(float)


def run(
    problem: FlowsInTime,
    *,
    placement: pd.DataFrame,
    week: Callable[[Seen], Sequence[Day] | None] | None,
    settings: pd.DataFrame,
    resizing: Resizing | None = None,
    computing_us: float = 0.0,
    name: str = "scheduler",
) -> tuple[Operation, Network]:
    """What a scheduler does in a run, and the network at its end.

    week  the days of the next week from what is seen when it begins; None: no circuits
    """
    row = settings.iloc[0]
    small = int(row["queue_packets"])
    network = plan.empty(
        problem,
        target=plan.placed(problem, placement),
        queue_packets=small,
        largest=small if resizing is None else max(small, resizing.large),
        alpha=float(row["alpha"]),
        beta=float(row["beta"]),
        packet_mbps=float(row["packet_mbps"]) or None,
    )
    datacenter = Datacenter(problem, network, resizing)
    controllers: list[Controller[Sequence[Day]]] = []
    if week is not None:

        def decide(seen: Seen, last: Round[Sequence[Day]] | None) -> Sequence[Day] | None:  # noqa: ARG001
            return week(seen)

        controllers.append(
            Controller(
                name=name, decide=decide, period_s=problem.of("week_us") * S, computing_s=computing_us * S
            )
        )
    loop.run(datacenter, controllers, until_s=problem.of("horizon_us") * S)
    tables = datacenter.record()
    made = Operation(
        configurations=tables["configurations"],
        queues=tables["queues"],
        settings=settings,
        placement=placement,
    )
    return made, datacenter.network
