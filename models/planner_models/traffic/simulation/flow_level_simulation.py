"""Flow-level discrete-event simulation with max-min fair rates, under the control of a design.

Between two events (a flow starts, a flow ends, a decision takes effect) every flow sends at its
max-min fair rate over the links of its route. A new flow starts on a hashed or scattered route; at
every interval a scheduler measures the rates of the active flows and gives them to a design, and
these flows take its split ratios from then on.

source  Sen et al. 2013 (LocalFlow): the scheduling loop of section 3.2, the flow dynamics of
        sections 7.2.2 and 7.5; fluid, where the paper simulates packets
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final, Literal

import numpy as np
import pandas as pd
from pydantic import Field

from planner.contract import control_loop
from planner.contract.frames import FrameRecorder
from planner.contract.metrics import Headline, Metric
from planner.contract.parameters import spread
from planner.contract.simulation import Simulation, SimulationResult
from planner_models.traffic.problem.problem import Traffic
from planner_models.traffic.simulation.flow_arrivals import (
    ClosedLoop,
    Lognormal,
    Poisson,
)
from planner_models.traffic.simulation.flow_network import FlowDynamics, FlowNetwork, FlowSettings, LinkFrames
from planner_models.traffic.simulation.flow_scheduler import ControlTiming, Scheduler, flow_controller

METRICS: Final = (
    Metric(name="throughput_mbps", unit="Mbit/s", better="more", about="mean traffic of all flows together"),
    Metric(name="mean_completion_s", unit="s", better="less", about="mean completion time of ended flows"),
    Metric(
        name="worst_completion_s", unit="s", better="less", about="largest completion time of ended flows"
    ),
    Metric(name="ended_flows", unit="flows", better="more", about="flows that ended"),
    Metric(name="active_flows", unit="flows", better="less", about="flows that are active at the end"),
)


@dataclass(frozen=True, kw_only=True)
class Period:
    """The simulated time, and that of the metrics."""

    until_s: Annotated[float, Field(gt=0, allow_inf_nan=False, description="simulated time, s")] = 1.0
    warm_up_s: Annotated[
        float, Field(ge=0, description="flows and traffic before this time are in no metric, s")
    ] = 0.0


@dataclass(frozen=True, kw_only=True)
class OfferedFlows:
    """Arrivals and sizes of flows."""

    arrivals: Annotated[
        Literal["closed_loop", "poisson"],
        Field(description="closed_loop: each source starts a flow when one ends; poisson: random arrivals"),
    ] = "closed_loop"
    flows_per_source: Annotated[int, Field(gt=0, description="closed loop: active flows per source")] = 1
    load: Annotated[
        float, Field(gt=0, allow_inf_nan=False, description="poisson: offered traffic over the demands")
    ] = 1.0
    median_bytes: Annotated[
        float, Field(gt=0, allow_inf_nan=False, description="median of lognormal flow sizes, bytes")
    ] = 100_000.0
    sigma: Annotated[
        float, Field(ge=0, allow_inf_nan=False, description="standard deviation of the logarithm of sizes")
    ] = 2.0

    def dynamics(self, settings: FlowSettings) -> FlowDynamics:
        """Return the flows with their sizes and arrivals."""
        poisson, loop = Poisson(load=self.load), ClosedLoop(flows_per_source=self.flows_per_source)
        return FlowDynamics(
            sizes=Lognormal(median_bytes=self.median_bytes, sigma=self.sigma),
            arrivals=poisson if self.arrivals == "poisson" else loop,
            **vars(settings),
        )


@spread(
    scheduler=Scheduler(),
    period=Period(),
    offered=OfferedFlows(),
    timing=ControlTiming(),
    settings=FlowSettings(),
)
def run(
    problem: Traffic,
    *,
    scheduler: Scheduler,
    frames: bool = False,
    period: Period,
    offered: OfferedFlows,
    timing: ControlTiming,
    settings: FlowSettings,
) -> SimulationResult:
    """Simulate flows over the network under the control of a design (see `simulate`).

    returns  metrics `METRICS`, and the tables `flow_network.FLOWS` and `flow_network.PROGRESS`
    """
    until_s, warm_up_s = period.until_s, period.warm_up_s
    recorder = FrameRecorder(until_s, is_on=frames)
    record = simulate(
        problem,
        until_s=until_s,
        frames=LinkFrames(problem, recorder) if frames else None,
        **vars(offered.dynamics(settings)),
        **vars(scheduler),
        **vars(timing),
    )
    completion_s = record.completion_s(warm_up_s)
    return SimulationResult(
        metrics={
            "throughput_mbps": record.throughput_mbps(warm_up_s) if warm_up_s < until_s else None,
            "mean_completion_s": float(completion_s.mean()) if len(completion_s) else None,
            "worst_completion_s": float(completion_s.max()) if len(completion_s) else None,
            "ended_flows": float(len(completion_s)),
            "active_flows": float(record.flows["end_s"].isna().sum()),
        },
        tables={"flows": record.flows, "progress": record.progress},
        rounds=record.rounds,
        frames=tuple(recorder.frames),
    )


SIMULATION: Final = Simulation(
    run=run,
    metrics=METRICS,
    headline=Headline(
        metric="throughput_mbps",
        verb="delivers {} in the mean",
        then="mean_completion_s",
        then_words="with a mean completion time of",
    ),
)


@dataclass(frozen=True, kw_only=True, eq=False)
class FlowRecord:
    """The record of a simulation.

    flows     table `flow_network.FLOWS`; end_s is NaN for flows that are still active
    rounds    the scheduler's rounds, see `planner.contract.control_loop.Outcome`
    progress  table `flow_network.PROGRESS`
    until_s   end of the run
    """

    flows: pd.DataFrame
    rounds: pd.DataFrame
    progress: pd.DataFrame
    until_s: float

    def throughput_mbps(self, since_s: float = 0.0) -> float:
        """Return the mean throughput from `since_s` to the end, Mbit/s."""
        time_s, sent = (self.progress[name].to_numpy() for name in ("at_s", "sent_mbit"))
        return float((sent[-1] - np.interp(since_s, time_s, sent)) / (self.until_s - since_s))

    def completion_s(self, since_s: float = 0.0) -> pd.Series:
        """Return the completion times of flows that started at `since_s` or later and have ended.

        Flows that are active at the end are left out: large ones more often than small ones.
        """
        flows = self.flows[(self.flows["start_s"] >= since_s) & self.flows["end_s"].notna()]
        return flows["end_s"] - flows["start_s"]


@spread(flows=FlowDynamics, scheduler=Scheduler(), timing=ControlTiming())
def simulate(
    problem: Traffic,
    *,
    flows: FlowDynamics,
    until_s: float,
    scheduler: Scheduler,
    timing: ControlTiming,
    frames: LinkFrames | None = None,
) -> FlowRecord:
    """Simulate flows over a network for `until_s` seconds, scheduled by a design at every interval.

    problem        its demands determine the ends of flows, and their number (see `arrivals`)
    design         reroutes the measured flows, see `flow_controller`; None: routes stay as at the start
    frames         draw what links carry; None: nothing is drawn

    raises  InputError for invalid times, or a problem without demands
    source  Sen et al. 2013, sections 3.2, 7.2.2 and 7.5
    """
    network = FlowNetwork(problem, flows, frames)
    controllers = []
    if scheduler.design is not None:
        controllers.append(flow_controller(problem, **vars(scheduler), **vars(timing)))
    outcome = control_loop.run(network, controllers, until_s=until_s)
    if frames is not None:
        frames.finish()
    return FlowRecord(
        flows=outcome.tables["flows"],
        rounds=outcome.rounds,
        progress=outcome.tables["progress"],
        until_s=until_s,
    )
