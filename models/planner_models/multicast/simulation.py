"""Simulation of churn: hosts join and leave, switches adapt at once, and a controller decides again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final

import numpy as np
import pandas as pd
from pydantic import Field

from planner.contract import control_loop
from planner.contract.design import Decision, Design
from planner.contract.drawing import Curve
from planner.contract.frames import FrameRecorder, no_frames
from planner.contract.metrics import Headline, Metric
from planner.contract.parameters import spread
from planner.contract.simulation import Simulation, SimulationResult
from planner.options import Options
from planner_models.multicast.information import realize
from planner_models.multicast.plan.forwarding import compare_plans
from planner_models.multicast.plan.metrics import measure
from planner_models.multicast.plan.plan import Channels, build_plan
from planner_models.multicast.plan.presentation import draw_tables
from planner_models.multicast.problem.churn import apply_churn
from planner_models.multicast.problem.problem import Multicast

Observed = tuple[Multicast, Decision[Channels]]

METRICS: Final = (
    Metric(name="host_traffic_mbps", unit="Mbit/s", better="less", about="mean over time"),
    Metric(name="groups_by_unicast", unit="groups", better="less", about="mean over time"),
    Metric(
        name="adaptation_rules",
        unit="rules",
        better="less",
        about="entries added and removed by switches as hosts join and leave",
    ),
    Metric(
        name="decision_rules",
        unit="rules",
        better="less",
        about="entries added and removed as the controller's decisions take effect",
    ),
)


class ChurnExecution:
    """The switches of a fabric in time: `events` joins and leaves at the end of each step of `step_s`.

    `frames` show the fill of their tables.

    It starts without a plan: all groups go by unicast.
    """

    def __init__(
        self,
        problem: Multicast,
        *,
        events: int,
        step_s: float,
        seed: int,
        frames: FrameRecorder | None = None,
    ) -> None:
        self.problem, self._frames = problem, frames or no_frames()
        self.plan = build_plan(problem, np.zeros(len(problem.groups), dtype=bool), problem.aggregation_copies)
        self._events, self._step_s, self._rng = events, step_s, np.random.default_rng(seed)
        self._now_s, self._steps = 0.0, 0
        self._intervals: list[tuple[float, ...]] = []
        self._changes: list[tuple[float, str, int, int, float]] = []

    def advance(self, until_s: float) -> None:
        """Let time pass until `until_s`; joins and leaves come at the end of each step on the way."""
        while (end_s := (self._steps + 1) * self._step_s) <= until_s:
            self._pass_time(end_s)
            self._steps += 1
            before = self.problem
            self.problem = apply_churn(before, events=self._events, rng=self._rng)
            self._change_plan("churn", realize(self.problem, before, self.plan), before)
        self._pass_time(until_s)

    def apply(self, decision: Observed) -> None:
        """Install the plan of a decision, as it plays out among the present members."""
        observed, decided = decision
        assert decided.plan is not None
        self._change_plan("decision", realize(self.problem, observed, decided.plan), self.problem)

    def observe(self) -> Multicast:
        """Return the problem as it is now."""
        return self.problem

    def record(self) -> Mapping[str, pd.DataFrame]:
        """Return host traffic and unicast groups by interval, and rules by change of the plan."""
        intervals = ["start_s", "seconds", "host_traffic_mbps", "groups_by_unicast"]
        changes = ["time_s", "cause", "added", "removed", "entries"]
        return {
            "intervals": pd.DataFrame(self._intervals, columns=intervals),
            "changes": pd.DataFrame(self._changes, columns=changes),
        }

    def _pass_time(self, until_s: float) -> None:
        if until_s > self._now_s:
            metrics = measure(self.problem, self.plan, None)
            traffic, unicast = (
                float(metrics[name] or 0.0) for name in ("host_traffic_mbps", "groups_by_unicast")
            )
            self._intervals.append((self._now_s, until_s - self._now_s, traffic, unicast))
            self._take_frames(until_s, traffic)
            self._now_s = until_s

    def take_last_frame(self) -> None:
        """Draw the state at the end, where frames were asked for."""
        for time_s in self._frames.due():
            traffic = measure(self.problem, self.plan, None)["host_traffic_mbps"]
            self._frames.take(time_s, draw_tables(self.problem, self.plan), traffic)

    def _take_frames(self, until_s: float, host_traffic_mbps: float | None) -> None:
        drawing = None
        for time_s in self._frames.due(until_s):
            drawing = drawing or draw_tables(self.problem, self.plan)
            self._frames.take(time_s, drawing, host_traffic_mbps)

    def _change_plan(self, cause: str, plan: Channels, before: Multicast) -> None:
        rules = compare_plans(self.problem, plan, self.plan, before=before)[["add", "remove"]].sum()
        self.plan = plan
        entries = float(plan.entries["entries"].sum())
        self._changes.append((self._now_s, cause, int(rules["add"]), int(rules["remove"]), entries))


@dataclass(frozen=True, kw_only=True)
class ChurnSettings:
    """Joins and leaves in time, and the times of the controller."""

    duration_s: Annotated[float, Field(gt=0, description="time that is simulated, s")] = 60.0
    step_s: Annotated[float, Field(gt=0, description="time between batches of joins and leaves, s")] = 5.0
    events: Annotated[int, Field(ge=1, description="joins and leaves of a batch")] = 50
    period_s: Annotated[float, Field(gt=0, description="time from one decision to the next, s")] = 20.0
    computing_s: Annotated[float, Field(ge=0, description="time that a decision takes, s")] = 0.0
    link_s: Annotated[float, Field(ge=0, description="one-way delay between switches and controller, s")] = (
        0.0
    )
    churn_seed: Annotated[int, Field(ge=0, description="seed of the joins and leaves")] = 0


@spread(churn=ChurnSettings())
def simulate_churn(
    problem: Multicast,
    *,
    design: Design[Multicast, Channels],
    information: Mapping[str, Any],
    decision_parameters: Mapping[str, Any],
    options: Options,
    frames: bool = False,
    churn: ChurnSettings,
) -> SimulationResult:
    """Simulate a fabric with hosts that join and leave groups, with a controller that decides periodically.

    Between decisions switches adapt at once: see `information.realize`.

    raises  InputError for a problem without the hosts of each group's tenant
    """
    recorder = FrameRecorder(churn.duration_s, is_on=frames)
    execution = ChurnExecution(
        problem, events=churn.events, step_s=churn.step_s, seed=churn.churn_seed, frames=recorder
    )

    def decide(observed: Multicast, last: control_loop.Round[Observed] | None) -> Observed | None:
        previous = last.decision[1] if last is not None and last.decision is not None else None
        decision = design.run(observed, options=options, previous=previous, parameters=decision_parameters)
        return None if decision.plan is None else (observed, decision)

    controller = control_loop.Controller[Observed](
        name=design.name,
        decide=decide,
        observe=lambda truth: design.observe(truth, **information),
        period_s=churn.period_s,
        computing_s=churn.computing_s,
        link_s=churn.link_s,
    )
    outcome = control_loop.run(execution, [controller], until_s=churn.duration_s)
    execution.take_last_frame()
    intervals, changes = outcome.tables["intervals"], outcome.tables["changes"]
    rules = (changes["added"] + changes["removed"]).groupby(changes["cause"]).sum()
    share = (intervals["seconds"] / intervals["seconds"].sum()).to_numpy()
    curve = intervals[["start_s", "host_traffic_mbps"]]
    return SimulationResult(
        metrics={
            "host_traffic_mbps": float(intervals["host_traffic_mbps"].to_numpy() @ share),
            "groups_by_unicast": float(intervals["groups_by_unicast"].to_numpy() @ share),
            "adaptation_rules": float(rules.get("churn", 0)),
            "decision_rules": float(rules.get("decision", 0)),
        },
        tables=outcome.tables,
        rounds=outcome.rounds,
        drawings=(
            Curve(title="Host traffic", frame=curve, units={"start_s": "s", "host_traffic_mbps": "Mbit/s"}),
        ),
        frames=tuple(recorder.frames),
    )


SIMULATION: Final = Simulation(
    run=simulate_churn,
    metrics=METRICS,
    headline=Headline(
        metric="host_traffic_mbps",
        verb="needs {} of host traffic in the mean",
        fallbacks={"groups_by_unicast": "uses unicast for"},
    ),
    designs=("partitioned_aggregated", "partitioned", "per_switch", "chosen_copies"),
)
