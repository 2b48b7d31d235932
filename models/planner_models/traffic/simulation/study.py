"""Simulation of a scenario's designs in time, with its parameters as plain numbers and names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from planner.contract.design import Design
from planner.contract.frames import FrameRecorder
from planner.contract.metrics import Headline, Metric
from planner.contract.simulation import Simulation, SimulationResult
from planner.options import Options
from planner_models.traffic.problem.problem import Traffic
from planner_models.traffic.simulation.flow_arrivals import ClosedLoop, Lognormal, Poisson
from planner_models.traffic.simulation.flow_level_simulation import simulate
from planner_models.traffic.simulation.flow_network import LinkFrames, Start

METRICS: Final = (
    Metric(name="throughput_mbps", unit="Mbit/s", better="more", about="mean traffic of all flows together"),
    Metric(name="mean_completion_s", unit="s", better="less", about="mean completion time of ended flows"),
    Metric(
        name="worst_completion_s", unit="s", better="less", about="largest completion time of ended flows"
    ),
    Metric(name="ended_flows", unit="flows", better="more", about="flows that ended"),
    Metric(name="active_flows", unit="flows", better="less", about="flows that are active at the end"),
)


def run(
    problem: Traffic,
    *,
    design: Design,
    information: Mapping[str, Any],
    decision_parameters: Mapping[str, Any],
    options: Options,
    frames: bool = False,
    until_s: Annotated[float, Field(gt=0, allow_inf_nan=False, description="simulated time, s")] = 1.0,
    warm_up_s: Annotated[
        float, Field(ge=0, description="flows and traffic before this time are in no metric, s")
    ] = 0.0,
    arrivals: Annotated[
        Literal["closed_loop", "poisson"],
        Field(description="closed_loop: each source starts a flow when one ends; poisson: random arrivals"),
    ] = "closed_loop",
    flows_per_source: Annotated[int, Field(gt=0, description="closed loop: active flows per source")] = 1,
    load: Annotated[
        float, Field(gt=0, allow_inf_nan=False, description="poisson: offered traffic over the demands")
    ] = 1.0,
    median_bytes: Annotated[
        float, Field(gt=0, allow_inf_nan=False, description="median of lognormal flow sizes, bytes")
    ] = 100_000.0,
    sigma: Annotated[
        float, Field(ge=0, allow_inf_nan=False, description="standard deviation of the logarithm of sizes")
    ] = 2.0,
    interval_s: Annotated[float, Field(gt=0, description="scheduling interval of the design, s")] = 0.05,
    computing_s: Annotated[float, Field(ge=0, description="time that a decision takes, s")] = 0.0,
    link_s: Annotated[
        float, Field(ge=0, description="one-way delay of measurements and of decisions, s")
    ] = 0.0,
    start: Annotated[
        Start, Field(description="route of a new flow: hashed on one equal-cost path, or scattered over all")
    ] = "hashed",
    settle_s: Annotated[
        float, Field(ge=0, description="rates are computed only at multiples of this; 0: at every event, s")
    ] = 0.0,
    seed: Annotated[int, Field(ge=0, description="of flows and their first routes")] = 0,
) -> SimulationResult:
    """Simulate flows over the network under the control of a design (see `simulate`).

    returns  metrics `METRICS`, and the tables `flow_network.FLOWS` and `flow_network.PROGRESS`
    """
    recorder = FrameRecorder(until_s, is_on=frames)
    record = simulate(
        problem,
        sizes=Lognormal(median_bytes=median_bytes, sigma=sigma),
        arrivals=(
            Poisson(load=load) if arrivals == "poisson" else ClosedLoop(flows_per_source=flows_per_source)
        ),
        until_s=until_s,
        design=design,
        parameters=decision_parameters,
        information=information,
        interval_s=interval_s,
        computing_s=computing_s,
        link_s=link_s,
        start=start,
        settle_s=settle_s,
        seed=seed,
        options=options,
        frames=LinkFrames(problem, recorder) if frames else None,
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
