"""Execution of a network of flows in time, week by week, under a scheduler in the control loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd

from planner.contract import control_loop
from planner.contract.control_loop import Controller, Round
from planner.contract.degradation import add_noise, round_up
from planner.search.deadline import NEVER, Deadline
from planner_models.circuitflows.packets import Network
from planner_models.circuitflows.plan import plan
from planner_models.circuitflows.plan.plan import Operation
from planner_models.circuitflows.problem.problem import FlowsInTime
from planner_models.circuits.plan.plan import IDLE, Day
from planner_models.circuits.problem.racks import ENDS
from planner_models.packets.state import Floats, Ints

SECONDS_PER_US: Final = 1e-6
"""Seconds in a microsecond."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Observation:
    """Demand at an instant.

    queued_bits   (n, n) amounts in the racks' queues, replies included
    pending_bits  (n, n) amounts that applications have handed over and racks' queues have not yet sent on
    """

    queued_bits: Floats
    pending_bits: Floats


@dataclass(frozen=True, kw_only=True)
class QueueResizing:
    """Queues of `small` packets, and of `large` ones from `early_us` before their circuit to its end.

    source  Mukerjee 2018, 2.4.2: resize(s, b, tau)
    """

    small: int
    large: int
    early_us: float


class OutOfTime(Exception):
    """The time limit came before the end of the run."""


class Datacenter:
    """A network of flows with circuits that are set a week at a time; an `Execution`.

    A week begins when its schedule is applied. Its days follow one another, each after a night. Queues are
    enlarged as if the week were repeated, which is all that is known when it begins. Observations are the
    reports that have arrived by then: racks and hosts report so that a report arrives when a week begins.
    `deadline` ends the run early: `advance` raises OutOfTime.
    """

    def __init__(
        self,
        problem: FlowsInTime,
        network: Network,
        resizing: QueueResizing | None,
        deadline: Deadline = NEVER,
    ) -> None:
        self.problem, self.network, self.resizing, self.deadline = problem, network, resizing, deadline
        self.end_us = problem.of("horizon_us") * (1 - 1e-12)  # the loop passes times in seconds
        self.rng = np.random.default_rng(problem.reports.seed)
        self.reports: list[tuple[float, Observation]] = []
        self.reports_sent = 0
        self.days: list[tuple[float, Day]] = []
        self.resizes: list[tuple[float, int, int]] = []
        self.is_large = np.zeros(len(problem.racks) ** 2, dtype=bool)

    def advance(self, until_s: float) -> None:
        age, week, until = self.problem.reports.age_us, self.problem.of("week_us"), until_s / SECONDS_PER_US
        while age > 0 and (leaves := _loop_instant_us(self.reports_sent * week - age)) < until:
            if leaves >= 0:
                self._advance(leaves)
                self.reports.append((leaves, self._state()))
            self.reports_sent += 1
        self._advance(until)

    def _advance(self, until_us: float) -> None:
        self.network.advance(until_us, deadline=self.deadline)
        if self.deadline.is_over and self.network.now_us < self.end_us:
            raise OutOfTime

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
        _, starts, durations, source, target = days_as_arrays(begun)
        times_us, pair, size = np.array(resizes, dtype=float).reshape(-1, 3).T
        pairs = source * len(self.problem.racks) + target
        changes = plan.list_changes(
            self.problem, starts, durations, pairs, times_us, pair.astype(np.int64), size
        )
        self.network = self.network.with_changes(*changes)

    def observe(self) -> Observation:
        age, n = self.problem.reports.age_us, len(self.problem.racks)
        if age == 0:
            return self._degrade(self._state())
        there = [report for report in self.reports if report[0] + age <= self.network.now_us * (1 + 1e-12)]
        if not there:
            return Observation(queued_bits=np.zeros((n, n)), pending_bits=np.zeros((n, n)))
        self.reports = self.reports[len(there) - 1 :]
        return self._degrade(there[-1][1])

    def _degrade(self, exact: Observation) -> Observation:
        """Return the amounts as reports give them: with noise, and in whole steps."""
        reports = self.problem.reports
        queued, pending = (
            round_up(add_noise(bits, reports.noise, self.rng), 8 * reports.granularity_bytes)
            for bits in (exact.queued_bits, exact.pending_bits)
        )
        return Observation(queued_bits=queued, pending_bits=pending)

    def _state(self) -> Observation:
        n, bits = len(self.problem.racks), self.problem.of("packet_bytes") * 8
        of = self.network.of
        replies = of("queue_length") - of("queue_data")
        queued = (of("queue_data") * bits + replies * self.problem.of("reply_bytes") * 8).reshape(n, n)
        there = np.isnan(of("end_ticks")) & (self.network.us("start") <= self.network.now_us)
        there &= (self.problem.before < 0) | (self.network.by_flow("next_number") > 0)
        there &= of("source") != of("target")
        remaining = np.where(there, np.maximum(of("handed") - of("seen"), 0), 0.0) * bits
        pair = of("source") * n + of("target")
        pending = np.bincount(pair, weights=remaining, minlength=n * n).astype(float).reshape(n, n)
        return Observation(queued_bits=queued, pending_bits=pending)

    def record(self) -> Mapping[str, pd.DataFrame]:
        day, start, duration, source, target = days_as_arrays(self.days)
        days = {"day": day.astype(float), "start_us": start, "duration_us": duration}
        times_us, pair, size = np.array(self.resizes, dtype=float).reshape(-1, 3).T
        ends = np.divmod(pair.astype(np.int64), len(self.problem.racks))
        # where a week begins, the one before may have resized a queue at the same time
        queues = pd.DataFrame({"at_us": times_us, **self.problem.name_pairs(*ends), "packets": size})
        return {
            "configurations": pd.DataFrame({**days, **self.problem.name_pairs(source, target)}),
            "queues": queues.drop_duplicates(["at_us", *ENDS], keep="last", ignore_index=True),
        }

    def _resizes(
        self, resizing: QueueResizing, now: float, begun: Sequence[tuple[float, Day]]
    ) -> list[tuple[float, int, int]]:
        week, n = self.problem.of("week_us"), len(self.problem.racks)
        spans: dict[int, list[tuple[float, float]]] = {}
        for start, day in begun:
            for source in np.flatnonzero(day.target != IDLE).tolist():
                pair = source * n + int(day.target[source])
                for shift in (0.0, week):
                    span = (start + shift - resizing.early_us, start + shift + day.duration_us)
                    spans.setdefault(pair, []).append(span)
        resizes: list[tuple[float, int, int]] = []
        for pair in sorted({*spans, *np.flatnonzero(self.is_large).tolist()}):
            large = bool(self.is_large[pair])
            for time_us, grow in _edges(spans.get(pair, []), now, now + week):
                if grow != large:
                    resizes.append((time_us, pair, resizing.large if grow else resizing.small))
                    large = grow
            self.is_large[pair] = large
        return resizes


def _loop_instant_us(us: float) -> float:
    """Return the time as the control loop passes it, in seconds made of whole nanoseconds."""
    return round(us * 1e3) / control_loop.TICKS_PER_S / SECONDS_PER_US


def _edges(spans: Sequence[tuple[float, float]], start: float, end: float) -> list[tuple[float, bool]]:
    """Return the begins and ends of the union of the spans in [start, end), and its state at `start`."""
    joined: list[list[float]] = []
    for first, last in sorted(spans):
        if joined and first <= joined[-1][1]:
            joined[-1][1] = max(joined[-1][1], last)
        else:
            joined.append([first, last])
    edges = [(start, any(first <= start < last for first, last in joined))]
    for first, last in joined:
        edges += [
            (time_us, grows) for time_us, grows in ((first, True), (last, False)) if start < time_us < end
        ]
    return edges


def days_as_arrays(days: Sequence[tuple[float, Day]]) -> tuple[Ints, Floats, Floats, Ints, Ints]:
    """Return the day, from 1, the start, the duration, the source and the target of each circuit."""
    rows = [np.flatnonzero(day.target != IDLE) for _, day in days]
    index = np.repeat(np.arange(len(days)), [len(row) for row in rows])
    source = np.concatenate([*rows, np.zeros(0, np.int64)]).astype(np.int64)
    targets = np.array([day.target for _, day in days], dtype=np.int64)
    starts, durations = np.array([(start, day.duration_us) for start, day in days]).reshape(-1, 2).T
    return index + 1, starts[index], durations[index], source, targets[index, source] if days else source


def run(
    problem: FlowsInTime,
    *,
    placement: pd.DataFrame,
    week: Callable[[Observation], Sequence[Day] | None] | None,
    settings: pd.DataFrame,
    resizing: QueueResizing | None = None,
    computing_us: float = 0.0,
    name: str = "scheduler",
    limit_s: float | None = None,
) -> tuple[Operation, Network]:
    """Run the network under a scheduler; return the record of the run, and the network at its end.

    week     returns the days of the next week from an observation at its start; None: no circuits
    limit_s  wall time after which the run is cut; the record's `simulated_us` says how far it came
    """
    deadline = Deadline.after(limit_s)
    row = settings.iloc[0]
    small = int(row["queue_packets"])
    network = plan.build_idle_network(
        problem,
        target=plan.target_racks(problem, placement),
        queue_packets=small,
        largest=small if resizing is None else max(small, resizing.large),
        hosts=plan.host_settings(settings),
        packet_mbps=float(row["packet_mbps"]) or None,
    )
    datacenter = Datacenter(problem, network, resizing, deadline)
    controllers: list[Controller[Sequence[Day]]] = []
    if week is not None:

        def decide(observation: Observation, last: Round[Sequence[Day]] | None) -> Sequence[Day] | None:  # noqa: ARG001
            return week(observation)

        controllers.append(
            Controller(
                name=name,
                decide=decide,
                period_s=problem.of("week_us") * SECONDS_PER_US,
                computing_s=computing_us * SECONDS_PER_US,
            )
        )
    try:
        control_loop.run(datacenter, controllers, until_s=problem.of("horizon_us") * SECONDS_PER_US)
    except OutOfTime:
        settings = settings.assign(simulated_us=datacenter.network.now_us)
    tables = datacenter.record()
    made = Operation(
        configurations=tables["configurations"],
        queues=tables["queues"],
        settings=settings,
        placement=placement,
    )
    return made, datacenter.network
