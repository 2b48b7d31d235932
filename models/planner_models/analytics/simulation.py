"""Simulation of designs that decide again as bandwidth and volumes are measured, or once, by forecast.

Sites that generate data and send it over queues, in time, at the levels that a controller sets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, Literal, NamedTuple

import numpy as np
import pandas as pd
from pydantic import Field

from planner.arrays import Ints
from planner.contract import control_loop
from planner.contract.design import Decision, Design, Mechanism
from planner.contract.drawing import Curve
from planner.contract.parameters import spread
from planner.contract.simulation import Simulation, SimulationResult
from planner.options import Options
from planner_models.analytics.designs.rules import list_steps
from planner_models.analytics.plan.answers import find_answers, find_loads, replay_queues
from planner_models.analytics.plan.erasure import erases
from planner_models.analytics.plan.metrics import HEADLINE, METRICS, find_timely_value, measure_levels
from planner_models.analytics.plan.plan import Levels, read_levels
from planner_models.analytics.problem.generators import draw_variation
from planner_models.analytics.problem.problem import Analytics
from planner_models.analytics.problem.windows import take_intervals

Decides = Annotated[
    Literal["again", "once"],
    Field(
        description="again: in each period, on what was measured; once: at the start, on the forecast. "
        "Designs without coordination decide once"
    ),
]
Period = Annotated[
    float, Field(ge=0, description="time from one decision to the next, s; 0: the length of an interval")
]
MOST_DRAINED: Final = 0.5
"""Part of an uplink's capacity that a controller sets aside for data that waits."""


@dataclass(frozen=True, kw_only=True)
class Decisions:
    """Times at which controllers decide, and the duration of a decision."""

    decides: Decides = "again"
    period_s: Period = 0.0
    computing_s: Annotated[float, Field(ge=0, description="time that a decision takes, s")] = 0.0
    link_s: Annotated[
        float, Field(ge=0, description="one-way delay between sites and their controller, s")
    ] = 0.0


@dataclass(frozen=True, kw_only=True)
class Deviation:
    """Difference of the truth from the forecast, and the margin of controllers."""

    bandwidth_variation: Annotated[
        float,
        Field(ge=0, le=2, description="standard deviation of the logarithm of bandwidth about its forecast"),
    ] = 0.2
    volume_variation: Annotated[
        float,
        Field(ge=0, le=2, description="standard deviation of the logarithm of volumes about their forecast"),
    ] = 0.1
    headroom: Annotated[
        float, Field(gt=0, le=1, description="part of the measured bandwidth that controllers plan with")
    ] = 1.0
    variation_seed: Annotated[int, Field(ge=0, description="seed of bandwidth and volumes")] = 0


@spread(decisions=Decisions(), deviation=Deviation())
def simulate_sites(
    problem: Analytics,
    *,
    design: Design[Analytics, Levels],
    information: Mapping[str, Any],
    decision_parameters: Mapping[str, Any],
    options: Options,
    decisions: Decisions,
    deviation: Deviation,
) -> SimulationResult:
    """Simulate sites, queues and the controllers of a design; the problem is the forecast.

    Bandwidth and volumes are the forecast times factors with memory, of mean 1. A controller measures the
    last interval that is complete, and how much data waits in queues; it expects the next one to be like it.
    Before its first decision, sites send the coarsest data.
    """
    rng = np.random.default_rng(deviation.variation_seed)
    truth = vary(
        problem,
        bandwidth_variation=deviation.bandwidth_variation,
        volume_variation=deviation.volume_variation,
        rng=rng,
    )
    steps = list_steps(problem)
    execution = QueueExecution(truth, problem, steps[:, :, -1], headroom=deviation.headroom)
    is_once = decisions.decides == "once" or design.mechanism is Mechanism.NONE
    rounds = 0

    def observe(measured: Analytics) -> Analytics:
        nonlocal rounds
        rounds += 1
        observed = problem if is_once else measured
        parameters = dict(information)
        if "seed" in parameters:
            parameters["seed"] = int(parameters["seed"]) + rounds  # each measurement has errors of its own
        return design.observe(observed, **parameters) if parameters else design.observe(observed)

    def decide(observed: Analytics, last: control_loop.Round[Applied] | None) -> Applied | None:
        previous = last.decision.decision if last is not None and last.decision is not None else None
        decision = design.run(observed, options=options, previous=previous, parameters=decision_parameters)
        if decision.plan is None:
            return None
        levels = read_levels(observed, decision.plan)
        return Applied(levels if is_once else levels[-1], decision)

    end_s = float(truth.length_s.sum())
    controller = control_loop.Controller[Applied](
        name=design.name,
        decide=decide,
        observe=observe,
        period_s=2 * end_s + decisions.link_s if is_once else decisions.period_s or float(truth.length_s[0]),
        computing_s=decisions.computing_s,
        link_s=decisions.link_s,
    )
    outcome = control_loop.run(execution, [controller], until_s=end_s)
    answers = find_answers(truth, execution.chosen)
    delays = replay_queues(truth, find_loads(truth, execution.chosen))
    value, wait_s = find_timely_value(truth, execution.chosen, answers, delays)
    intervals = outcome.tables["queues"].assign(
        value_usd=value.sum(axis=1),
        freshness_s=pd.DataFrame(wait_s).replace(np.inf, np.nan).max(axis=1).to_numpy(),
    )
    curves = [
        Curve(
            title=title,
            frame=intervals[["start_s", column]],
            units={"start_s": "s", column: unit},
        )
        for title, column, unit in (
            ("Value of answers in time", "value_usd", "USD"),
            ("Data that waits at uplinks", "backlog_gb", "GB"),
        )
    ]
    return SimulationResult(
        metrics=measure_levels(truth, execution.chosen),
        tables={"intervals": intervals},
        rounds=outcome.rounds,
        drawings=tuple(curves),
    )


SIMULATION: Final = Simulation(run=simulate_sites, metrics=METRICS, headline=HEADLINE)


class Applied(NamedTuple):
    """Levels that take effect, and the decision that they are of.

    levels  (S, Q), or (K, S, Q) for each interval
    """

    levels: Ints
    decision: Decision[Levels]


def vary(
    problem: Analytics, *, bandwidth_variation: float, volume_variation: float, rng: np.random.Generator
) -> Analytics:
    """Return the problem as it turns out: bandwidth and volumes times factors of mean 1."""
    truth = problem
    if bandwidth_variation > 0:
        links = len(problem.link_names)
        factor = draw_variation(rng, problem.length_s, links, bandwidth_variation)
        truth = truth.with_capacity(truth.capacity_mbps * factor)
    if volume_variation > 0:
        factor = draw_variation(rng, problem.length_s, len(problem.site_names), volume_variation)
        interval, site, _ = problem.volume_places
        site_factor = factor[interval, site]
        volume = problem.volume
        volume = volume.assign(records=volume["records"] * site_factor, cells=volume["cells"] * site_factor)
        # what must be stored takes storage, which nothing here uses: more of it is no error
        retention = truth.retention
        if retention is not None and "at_least_h" in retention:
            retention = retention.assign(at_least_h=np.nan)
        truth = replace(truth, volume=volume, retention=retention)
    return truth


class QueueExecution:
    """Sites and uplinks from time 0, the start of the first interval.

    An interval has the levels that are in force when it starts, after all events of that instant.
    """

    def __init__(self, truth: Analytics, forecast: Analytics, first: Ints, *, headroom: float = 1.0) -> None:
        """Start with levels `first`, (S, Q), and empty queues.

        forecast  what is known of the time before any measurement
        headroom  part of the measured capacity that controllers know of
        """
        self._headroom = headroom
        self.truth, self._forecast = truth, forecast
        self._levels = first.copy()
        self._ahead: Ints | None = None
        self.chosen = np.empty((len(truth.length_s), *first.shape), dtype=np.int64)
        self._starts = truth.start_s - truth.start_s[0]
        self._ends = self._starts + truth.length_s
        self._begun = self._completed = 0
        self._waiting = np.zeros(len(truth.link_names))
        self._rows: list[tuple[float, ...]] = []

    def advance(self, until_s: float) -> None:
        """Let intervals begin and end until `until_s`."""
        while self._begun < len(self._starts) and self._starts[self._begun] < until_s - 1e-9:
            k = self._begun
            if self._ahead is not None:
                self._levels = self._ahead[k]
            self.chosen[k] = self._levels
            self._begun += 1
        while self._completed < self._begun and self._ends[self._completed] <= until_s + 1e-9:
            self._send(self._completed)
            self._completed += 1

    def apply(self, decision: Applied) -> None:
        """Set levels from now on."""
        if decision.levels.ndim == 3:
            self._ahead = decision.levels
        else:
            self._levels = decision.levels

    def observe(self) -> Analytics:
        """Return the last two intervals as measured, less the capacity to drain the backlog in the last one.

        In the first interval, it is the forecast.
        """
        if self._completed == 0:
            return take_intervals(self._forecast, np.zeros(1, dtype=np.int64))
        rows = np.arange(max(self._completed - 2, 0), self._completed)
        measured = take_intervals(self.truth, rows)
        capacity = measured.capacity_bytes
        drained = np.minimum(self._waiting, MOST_DRAINED * capacity[-1])
        if not drained.any() and self._headroom == 1:
            return measured
        remaining = capacity * self._headroom
        remaining[-1] -= drained
        rate = np.divide(remaining, capacity, out=np.zeros_like(remaining), where=capacity > 0)
        return measured.with_capacity(measured.capacity_mbps * rate, is_valid=True)

    def record(self) -> Mapping[str, pd.DataFrame]:
        """Return the sent and the waiting bytes, by interval."""
        columns = ["interval", "start_s", "generated_gb", "sent_gb", "backlog_gb"]
        return {"queues": pd.DataFrame(self._rows, columns=columns)}

    def _send(self, k: int) -> None:
        """Send the data that the queues of sites, then of points of presence, carry in interval k."""
        if erases(self.truth):
            self._send_or_erase(k)
            return
        sites = len(self.truth.site_names)
        window = take_intervals(self.truth, np.array([k]))
        loads = find_loads(window, self.chosen[k][None])
        capacity = window.capacity_bytes[0]
        waiting = self._waiting
        before = waiting[:sites] + loads.site[0]
        sent = np.minimum(before, capacity[:sites])
        arrived = waiting[sites:] + np.bincount(
            self.truth.pop_of, weights=sent * loads.shrunk[0], minlength=len(capacity) - sites
        )
        self._waiting = np.concatenate([before - sent, np.maximum(arrived - capacity[sites:], 0.0)])
        self._note(k, float(loads.site.sum()), float(sent.sum()))

    def _send_or_erase(self, k: int) -> None:
        """Do as `_send`, where sites keep data only for a time, by a replay of all intervals up to k."""
        past = take_intervals(self.truth, np.arange(k + 1))
        loads = find_loads(past, self.chosen[: k + 1])
        delays = replay_queues(past, loads)
        assert delays.erasure is not None
        self._waiting = np.concatenate([delays.erasure.waiting[k], delays.pop_waiting])
        self._note(k, float(loads.site[k].sum()), float(delays.erasure.sent[k].sum()))

    def _note(self, k: int, generated: float, sent: float) -> None:
        """Add the row of interval k, of bytes generated and sent, and of those that wait."""
        self._rows.append(
            (
                float(self.truth.interval_numbers[k]),
                float(self._starts[k]),
                generated / 1e9,
                sent / 1e9,
                float(self._waiting.sum()) / 1e9,
            )
        )
