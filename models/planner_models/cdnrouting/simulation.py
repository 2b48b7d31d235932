"""CDN and ISP in time: each observes and moves at its own period, and traffic follows both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final

import numpy as np
import pandas as pd
from pydantic import Field

from planner.arrays import Floats
from planner.contract import control_loop
from planner.contract.design import Design
from planner.contract.drawing import Curve
from planner.contract.frames import FrameRecorder, no_frames
from planner.contract.metrics import Headline, less
from planner.contract.parameters import spread
from planner.contract.simulation import Simulation, SimulationResult
from planner.options import Options
from planner_models.cdnrouting.designs.moves import (
    Situation,
    begin,
    cheapest_assignment,
    measured_latency,
    route,
    select_informed,
)
from planner_models.cdnrouting.plan.flow_problem import Kinds, congestion_cost, delay_cost
from planner_models.cdnrouting.problem.drawing import draw_network
from planner_models.cdnrouting.problem.problem import Delivery

COLUMNS: Final = (
    *("time_s", "mover", "moved_mbps", "isp_cost", "cdn_delay_ms", "mean_delay_ms"),
    "max_utilization",
)
RUN_METRICS: Final = (
    less("mean_delay_ms", "ms", "mean delay of all traffic over time"),
    less("cdn_delay_ms", "ms", "mean delay of the CDN's traffic over time", title="CDN delay"),
    less("isp_cost", "points", "mean cost of the network over time", title="ISP cost"),
    less("worst_delay_ms", "ms", "largest mean delay of all traffic at a time"),
    less("swing", "times", "largest mean delay over the smallest one, in the second half of the time"),
    less("moved_share", "", "share of clients' traffic that a move of the CDN moves, in the mean"),
)


class NetworkInTime:
    """An `Execution` of the control loop: an assignment and routes in force, with their delays.

    A decision of the CDN is an assignment, (K, S) traffic; one of the ISP is a situation with new routes. The
    record has `moves`, one row for each decision, with what it leads to.
    """

    def __init__(self, kinds: Kinds, start: Situation, frames: FrameRecorder | None = None) -> None:
        self._kinds, self._situation = kinds, start
        self._frames = frames or no_frames()
        self._now_s = 0.0
        self._rows: list[tuple[Any, ...]] = [self._measure("start", 0.0)]

    def advance(self, until_s: float) -> None:
        """Let time pass."""
        for time_s in self._frames.due(until_s):
            drawing = draw_network(self._kinds.problem, "Links by utilization", self._situation.load)
            self._frames.take(time_s, drawing, float(self._rows[-1][5]), f"{time_s / 60:.4g} min")
        self._now_s = until_s

    def apply(self, decision: Floats | Situation) -> None:
        """Apply an assignment or routes from now on."""
        before = self._situation
        if isinstance(decision, Situation):
            self._situation = Situation(
                assigned=before.assigned,
                ratios=decision.ratios,
                usage=decision.usage,
                trees=decision.trees,
            )
            self._rows.append(self._measure("isp", 0.0))
            return
        self._situation = before.with_assigned(decision)
        self._rows.append(self._measure("cdn", float(np.abs(decision - before.assigned).sum()) / 2))

    def observe(self) -> Situation:
        """Return the present situation."""
        return self._situation

    def record(self) -> Mapping[str, pd.DataFrame]:
        """Return the moves so far."""
        return {"moves": pd.DataFrame(self._rows, columns=list(COLUMNS))}

    def _measure(self, mover: str, moved: float) -> tuple[Any, ...]:
        problem, present = self._kinds.problem, self._situation
        load, cdn_load = present.load, present.cdn_load
        served = max(float(present.assigned.sum()), 1e-300)
        delayed = float(delay_cost(problem).value(load).sum())
        cdn_delayed = float(delay_cost(problem, other=load - cdn_load).value(cdn_load).sum())
        return (
            self._now_s,
            mover,
            moved,
            float(congestion_cost(problem).value(load).sum()),
            cdn_delayed / served,
            delayed / max(served + float(problem.background.sum()), 1e-300),
            float((load / problem.network.capacity).max(initial=0.0)),
        )


@dataclass(frozen=True, kw_only=True)
class Pace:
    """Pace of both control planes."""

    duration_s: Annotated[float, Field(gt=0, le=1e7, description="simulated time, s")] = 7200.0
    cdn_period_s: Annotated[
        float, Field(ge=1, le=1e6, description="time between two moves of the CDN, s")
    ] = 60.0
    isp_period_s: Annotated[
        float, Field(ge=1, le=1e6, description="time between two moves of the ISP, s")
    ] = 900.0
    delay_s: Annotated[
        float, Field(ge=0, le=1e6, description="age of the CDN's measurements when it moves, s")
    ] = 0.0


@spread(pace=Pace())
def run(
    problem: Delivery,
    *,
    design: Design,
    information: Mapping[str, Any],
    decision_parameters: Mapping[str, Any],  # noqa: ARG001 - the signature of a simulation's run
    options: Options,
    frames: bool = False,
    pace: Pace,
) -> SimulationResult:
    """Simulate CDN and ISP that react to each other, each at its own period.

    The CDN of design `react_informed` knows links, routes and background traffic; that of `react_blind` takes
    the latencies that it measures. A move takes the share `step` of clients to where the CDN wants them.

    returns  metrics over time; table `moves`, one row for each move
    """
    kinds = Kinds.of(design.observe(problem, **information))
    is_informed = design.name == "react_informed"

    def select(situation: Situation, _: Any) -> Floats:
        if is_informed:
            target = select_informed(kinds, situation, options)
        else:
            target = cheapest_assignment(kinds, measured_latency(kinds, situation), options)
        step = kinds.problem.step
        return np.asarray(situation.assigned + step * (target - situation.assigned))

    cdn = control_loop.Controller[Any](
        name="cdn",
        decide=select,
        period_s=pace.cdn_period_s,
        link_s=pace.delay_s / 2,
        first_s=max(pace.cdn_period_s, pace.delay_s / 2),
    )
    isp = control_loop.Controller[Any](
        name="isp",
        decide=lambda situation, _: route(kinds, situation, options),
        period_s=pace.isp_period_s,
        first_s=pace.isp_period_s,
    )
    recorder = FrameRecorder(pace.duration_s, is_on=frames)
    start = route(kinds, begin(kinds, options), options)
    outcome = control_loop.run(NetworkInTime(kinds, start, recorder), [isp, cdn], until_s=pace.duration_s)
    moves = outcome.tables["moves"]
    drawn = moves[["time_s", "mean_delay_ms", "cdn_delay_ms"]]
    units = {"time_s": "s", "mean_delay_ms": "ms", "cdn_delay_ms": "ms"}
    return SimulationResult(
        metrics=summarize(kinds, moves, pace.duration_s),
        tables=outcome.tables,
        rounds=outcome.rounds,
        drawings=(Curve(title="Mean delay over time", frame=drawn, units=units),),
        frames=tuple(recorder.frames),
    )


def summarize(kinds: Kinds, moves: pd.DataFrame, duration_s: float) -> dict[str, float | None]:
    """Return the metrics of a run: means over time, each state for as long as it lasts."""
    time = moves["time_s"].to_numpy(float)
    lasts = np.diff(np.append(time, duration_s))
    delay = moves["mean_delay_ms"].to_numpy(float)
    late = delay[(time >= duration_s / 2) & (lasts > 0)]
    late = late if len(late) else delay[-1:]
    moved = moves["moved_mbps"].to_numpy(float)[moves["mover"].to_numpy() == "cdn"]
    total = max(float(kinds.amount.sum()), 1e-300)

    def mean(name: str) -> float:
        return float(lasts @ moves[name].to_numpy(float)) / duration_s

    return {
        "mean_delay_ms": mean("mean_delay_ms"),
        "cdn_delay_ms": mean("cdn_delay_ms"),
        "isp_cost": mean("isp_cost"),
        "worst_delay_ms": float(delay.max()),
        "swing": float(late.max() / late.min()) if late.min() > 0 else None,
        "moved_share": float(moved.mean()) / total if len(moved) else None,
    }


SIMULATION: Final = Simulation(
    run=run,
    metrics=RUN_METRICS,
    headline=Headline(
        metric="mean_delay_ms",
        verb="delays traffic by {} in the mean over time",
        then="worst_delay_ms",
        then_words="at worst by",
    ),
    designs=("react_blind", "react_informed"),
)
