"""Simulation of a traffic problem in time, by a scenario's [simulation]: fluid flows, or packets."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import Field

from planner.contract.frames import FrameRecorder
from planner.contract.metrics import Headline, Metric
from planner.contract.parameters import spread
from planner.contract.simulation import Simulation, SimulationResult
from planner.errors import InputError
from planner_models.packets.hops.network import PacketSettings
from planner_models.traffic.problem.problem import Traffic
from planner_models.traffic.simulation.flow_arrivals import (
    Arrivals,
    ClosedLoop,
    Lognormal,
    Poisson,
    SizeDistribution,
    read_recorded,
)
from planner_models.traffic.simulation.flow_arrivals import read as read_sizes
from planner_models.traffic.simulation.flow_level_simulation import simulate
from planner_models.traffic.simulation.flow_network import FlowDynamics, FlowSettings, LinkFrames
from planner_models.traffic.simulation.flow_scheduler import ControlTiming, Scheduler
from planner_models.traffic.simulation.listed_flows import read_flows
from planner_models.traffic.simulation.packet_level_simulation import (
    PACKET_METRICS,
    Model,
    PacketRun,
    simulate_packets,
)
from planner_models.traffic.simulation.packet_network import LinkFailure, PacketFlows
from planner_models.traffic.simulation.staged_update import UpdateTiming

METRICS: Final = (
    Metric(name="throughput_mbps", unit="Mbit/s", better="more", about="mean traffic of all flows together"),
    Metric(name="mean_completion_s", unit="s", better="less", about="mean completion time of ended flows"),
    Metric(
        name="worst_completion_s", unit="s", better="less", about="largest completion time of ended flows"
    ),
    Metric(name="ended_flows", unit="flows", better="more", about="flows that ended"),
    Metric(name="active_flows", unit="flows", better="less", about="flows that are active at the end"),
    *PACKET_METRICS,
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
    sizes: Annotated[
        Path | None,
        Field(description="file of sizes in place of lognormal ones: bytes and probability in each line"),
    ] = None
    size_records: Annotated[
        Path | None,
        Field(description="flow records, unsampled, whose flows have the sizes, in place of lognormal ones"),
    ] = None
    flows: Annotated[
        Path | None,
        Field(
            description="table source, target, class?, start_s, size_bytes, control?, rate_mbps?, may_split? "
            "of flows, in place of random ones"
        ),
    ] = None
    size_steps: Annotated[
        Literal["linear", "log"],
        Field(description="sizes: what is linear between two lines, the size or its logarithm"),
    ] = "linear"

    def dynamics(
        self, settings: FlowSettings, problem: Traffic, until_s: float, *, by_packets: bool = False
    ) -> FlowDynamics:
        """Return the flows with their sizes and arrivals; InputError where two are given."""
        sizes = self.read_sizes()
        arrivals: Arrivals = ClosedLoop(flows_per_source=self.flows_per_source)
        if self.arrivals == "poisson":
            arrivals = Poisson(load=self.load)
        if self.flows is not None:
            of_random = [
                name
                for name, value in vars(OfferedFlows()).items()
                if name != "flows" and getattr(self, name) != value
            ]
            if of_random:
                raise InputError(f"flows is a file, which excludes {', '.join(of_random)}")
            arrivals = read_flows(self.flows, problem, until_s, by_packets=by_packets)
        return FlowDynamics(sizes=sizes, arrivals=arrivals, **vars(settings))

    def read_sizes(self) -> SizeDistribution:
        """Return the distribution of sizes; InputError where two are given."""
        is_lognormal = (self.median_bytes, self.sigma) != (OfferedFlows.median_bytes, OfferedFlows.sigma)
        name = "sizes" if self.sizes is not None else "size_records"
        if is_lognormal and (self.sizes is not None or self.size_records is not None):
            raise InputError(f"{name} is a file, which excludes median_bytes and sigma")
        if self.sizes is not None and self.size_records is not None:
            raise InputError("sizes is a file, which excludes size_records")
        if self.sizes is not None:
            return read_sizes(self.sizes, is_log=self.size_steps == "log")
        if self.size_records is not None:
            return read_recorded(self.size_records)
        return Lognormal(median_bytes=self.median_bytes, sigma=self.sigma)


@spread(
    scheduler=Scheduler(),
    period=Period(),
    offered=OfferedFlows(),
    timing=ControlTiming(),
    settings=FlowSettings(),
    model=Model(),
    senders=PacketFlows(),
    failure=LinkFailure(),
    update=UpdateTiming(),
    packets=PacketSettings(),
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
    model: Model,
    senders: PacketFlows,
    failure: LinkFailure,
    update: UpdateTiming,
    packets: PacketSettings,
) -> SimulationResult:
    """Simulate flows over the network under the control of a design (see `simulate`, `simulate_packets`).

    returns  metrics `METRICS`, and the tables `flow_network.FLOWS` and `flow_network.PROGRESS`, or by packets
             those of `packet_network`
    """
    until_s, warm_up_s = period.until_s, period.warm_up_s
    if model.model == "packets":
        by_packets = PacketRun(
            model=model,
            settings=packets,
            senders=senders,
            failure=failure,
            timing=timing,
            update=update,
            until_s=until_s,
            warm_up_s=warm_up_s,
            frames=frames,
        )
        dynamics = offered.dynamics(settings, problem, until_s, by_packets=True)
        return simulate_packets(problem, by_packets, scheduler=scheduler, dynamics=dynamics)
    recorder = FrameRecorder(until_s, is_on=frames)
    record = simulate(
        problem,
        until_s=until_s,
        frames=LinkFrames(problem, recorder) if frames else None,
        **vars(offered.dynamics(settings, problem, until_s)),
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
            **dict.fromkeys(metric.name for metric in PACKET_METRICS),
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
