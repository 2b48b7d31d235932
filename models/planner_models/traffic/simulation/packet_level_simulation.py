"""Packet-level simulation of routing: every packet is followed through the queues of its links.

A design's plan gives nodes split tables, or flows source routes: it decides once, on the problem's demands,
or at every interval on the measured rates of flows, as in the flow-level simulation. Flows that no plan
covers are hashed over shortest paths, and so are flows of UDP wherever a plan divides a demand. Links may
fail on the way.

source  Sen et al. 2013 (LocalFlow), sections 5 and 7
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Final, Literal

import numpy as np
import pandas as pd
import scipy.sparse as sp
from pydantic import Field

from planner.contract import control_loop
from planner.contract.control_loop import Controller, Round
from planner.contract.design import Decision, Design
from planner.contract.frames import FrameRecorder
from planner.contract.metrics import Metric
from planner.contract.notes import add_note
from planner.contract.simulation import SimulationResult
from planner.errors import InputError
from planner_models.graphs.distances import find_distances
from planner_models.packets.hops.network import BITS_PER_BYTE, PacketSettings
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.problem.problem import Traffic
from planner_models.traffic.simulation.flow_arrivals import MBIT_PER_BYTE, UDP_NAME
from planner_models.traffic.simulation.flow_network import FlowDynamics
from planner_models.traffic.simulation.flow_scheduler import (
    ControlTiming,
    FlowCounters,
    Scheduler,
    hashes_flows,
    measuring_controller,
)
from planner_models.traffic.simulation.packet_network import (
    MIXED,
    US_PER_MS,
    US_PER_S,
    LinkFailure,
    PacketExecution,
    PacketFlows,
    PacketRouteUpdate,
    draw_queues_over_time,
)
from planner_models.traffic.simulation.planned_routes import (
    PlannedRoutes,
    routes_of_plan,
    shortest_paths_by_hash,
)
from planner_models.traffic.simulation.staged_update import UpdateTiming

SETTLING_TRIPS: Final = 20
"""Round trips in which a window can grow from its first size to that of a link, and be cut a few times."""
SMALL_BYTES: Final = 125_000
"""Size below which a flow counts as small."""
SPLITTING: Final = {"packet_scatter": "scatter", "localflow": "split"}
"""Designs whose flows take the shares of a plan packet by packet; those of others by a hash of the flow."""

PACKET_METRICS: Final = (
    Metric(name="p99_completion_s", unit="s", better="less", about="99th percentile of completion times"),
    Metric(
        name="small_completion_s",
        unit="s",
        better="less",
        about="mean completion time of flows below 125 kB",
    ),
    Metric(name="lost_share", unit="", better="less", about="share of packets that queues or cut links lost"),
    Metric(
        name="udp_lost_share", unit="", better="less", about="share of the packets of ended UDP flows lost"
    ),
    *(
        Metric(
            name=f"{control}_mbps",
            unit="Mbit/s",
            better="more",
            about=f"mean traffic of a flow under {control.upper() if control != 'reno' else 'NewReno'} while "
            "it is active, where flows have several controls",
        )
        for control in MIXED
    ),
    Metric(name="timeouts", unit="timeouts", better="less", about="timeouts of all flows"),
    Metric(
        name="largest_queue",
        unit="packets",
        better="less",
        about="packets at once in a queue of a link that no host sends on",
    ),
    Metric(
        name="mean_queue",
        unit="packets",
        better="less",
        about="packets in the longest of these queues, in the mean over time",
    ),
    Metric(
        name="buffer_bytes",
        unit="B",
        better="less",
        about="largest amount at a target that waited for earlier packets",
    ),
)


@dataclass(frozen=True, kw_only=True)
class Model:
    """The model of a simulation, and what a design's plan means in the one by packets."""

    model: Annotated[
        Literal["fluid", "packets"],
        Field(description="fluid: max-min fair rates; packets: every packet through its queues"),
    ] = "fluid"
    forwarding: Annotated[
        Literal["design", "hash", "scatter", "scatter_random", "split", "split_random"],
        Field(
            description="packets: how flows take the shares of split tables or of shortest paths: by a hash "
            "of the flow, or packet by packet in turn or at random; design: in turn under packet_scatter and "
            "localflow, else by a hash"
        ),
    ] = "design"
    decides: Annotated[
        Literal["measured", "once"],
        Field(
            description="packets: a design decides on measured rates at intervals, or once on the demands, "
            "and again when a failure is known"
        ),
    ] = "measured"

    def mode_of(self, design: Design | None) -> str:
        """Return the forwarding of flows under a design, see `packets.hops.forwarding.MODES`."""
        if self.forwarding != "design":
            return self.forwarding
        return "hash" if design is None else SPLITTING.get(design.name, "hash")


@dataclass(frozen=True, kw_only=True, eq=False)
class PacketRun:
    """A run by packets: its model, settings of packets and senders, failures, and times.

    until_s    end of the run
    warm_up_s  flows and traffic before this time are in no metric
    frames     whether to draw queues
    """

    model: Model
    settings: PacketSettings
    senders: PacketFlows
    failure: LinkFailure
    timing: ControlTiming
    update: UpdateTiming
    until_s: float
    warm_up_s: float
    frames: bool


def simulate_packets(
    problem: Traffic, run: PacketRun, *, scheduler: Scheduler, dynamics: FlowDynamics
) -> SimulationResult:
    """Simulate packets over the network under the control of a design.

    returns  metrics of the flow-level simulation and `PACKET_METRICS`, and the tables of `packet_network`
    raises   InputError for a plan with a loop, and for links that fail and are none
    """
    recorder = FrameRecorder(run.until_s, is_on=run.frames)
    design = scheduler.design
    note_short_times(problem, run, is_measured=design is not None and run.model.decides == "measured")
    execution = PacketExecution(
        problem,
        dynamics,
        run.settings,
        senders=run.senders,
        failure=run.failure,
        mode=run.model.mode_of(design),
        until_s=run.until_s,
        recorder=recorder,
        update_s=run.update.update_s,
    )
    controllers: list[Controller[PacketRouteUpdate]] = []
    if design is not None and run.model.decides == "once":
        controllers = list(plan_controllers(execution, design, scheduler, run))
    elif design is not None:

        def update(
            counters: FlowCounters, _: Traffic, decision: Decision[Routing], plan: Routing
        ) -> PacketRouteUpdate:
            routes = find_routes(problem, design, plan)
            return PacketRouteUpdate(flow=counters.flow, routes=routes, decision=decision)

        controllers = [measuring_controller(execution.problem_at, design, scheduler, run.timing, update)]
    outcome = control_loop.run(execution, controllers, until_s=run.until_s)
    execution.finish()
    return SimulationResult(
        metrics={
            **measure_packets(outcome.tables, run.until_s, run.warm_up_s),
            "largest_queue": float(execution.longest_queue),
        },
        tables=outcome.tables,
        rounds=outcome.rounds,
        drawings=(draw_queues_over_time(outcome.tables["queues"]),),
        frames=tuple(recorder.frames),
    )


def find_routes(problem: Traffic, design: Design, plan: Routing) -> PlannedRoutes:
    """Return the routes of packets by a design's plan, or by a hash of each flow where the design does so."""
    return shortest_paths_by_hash(problem) if hashes_flows(design) else routes_of_plan(problem, plan)


def find_longest_trip_s(problem: Traffic, settings: PacketSettings) -> float:
    """Return the longest round trip of a packet between empty queues, of demands on fastest paths, s."""
    bits = settings.packet_bytes * BITS_PER_BYTE
    delay_us = np.full(len(problem.links), settings.hop_delay_us)
    if "latency_ms" in problem.links:
        delay_us = problem.links["latency_ms"].to_numpy(float) * US_PER_MS
    cost_us = delay_us + bits / problem.capacity_mbps
    order = np.lexsort((cost_us, problem.head, problem.tail))
    pair = problem.tail[order] * len(problem.nodes) + problem.head[order]
    fastest = order[np.r_[True, pair[1:] != pair[:-1]]]
    shape = (len(problem.nodes), len(problem.nodes))
    costs = sp.csr_array((cost_us[fastest], (problem.tail[fastest], problem.head[fastest])), shape=shape)
    distance = find_distances(costs, problem.targets)
    rows = problem.rate_mbps > 0
    of_demand = distance[problem.target_row[rows], problem.source[rows]]
    return 2 * float(of_demand[np.isfinite(of_demand)].max(initial=0.0)) / US_PER_S


def note_short_times(problem: Traffic, run: PacketRun, *, is_measured: bool) -> None:
    """Add warnings where an interval or the whole run is short beside the longest round trip."""
    trip_s = find_longest_trip_s(problem, run.settings)
    if is_measured and run.timing.interval_s < trip_s:
        add_note(
            f"warning: interval_s is {run.timing.interval_s:g}, less than the longest round trip, "
            f"{trip_s:.3g} s: rates are measured before replies are back"
        )
    passed_s = run.until_s - run.warm_up_s
    if 0 < passed_s < SETTLING_TRIPS * trip_s:
        add_note(
            f"warning: until_s leaves {passed_s:g} s to measure, less than {SETTLING_TRIPS} round trips of "
            f"{trip_s:.3g} s: windows may not have settled"
        )


def plan_controllers(
    execution: PacketExecution, design: Design, scheduler: Scheduler, run: PacketRun
) -> Iterator[Controller[PacketRouteUpdate]]:
    """Yield the controllers that plan the demands once: at the start, and again when a failure is known."""

    def decide(counters: FlowCounters, last: Round[PacketRouteUpdate] | None) -> PacketRouteUpdate:  # noqa: ARG001
        problem = execution.problem_at(counters.at_s)
        observed = design.observe(problem, **scheduler.information)
        result = design.run(observed, options=scheduler.options, parameters=scheduler.decision_parameters)
        if result.plan is None:
            raise InputError(
                f"design '{design.name}' has no plan for these demands: {result.proof.status.value}"
            )
        return PacketRouteUpdate(
            flow=None, routes=find_routes(execution.problem, design, result.plan), decision=result
        )

    once_s = 2 * run.until_s  # so that no second round starts
    yield Controller(name=design.name, decide=decide, period_s=once_s)
    if run.failure.known_s is not None:
        yield Controller(
            name=f"{design.name} after the failure",
            decide=decide,
            period_s=once_s,
            computing_s=run.timing.computing_s,
            first_s=run.failure.known_s,
        )


def measure_packets(
    tables: Mapping[str, pd.DataFrame], until_s: float, warm_up_s: float
) -> dict[str, float | None]:
    """Return metrics of a run from its tables; completion times are of flows that start after the warm-up."""
    flows, links, progress = tables["flows"], tables["links"], tables["progress"]
    ended = flows[flows["end_s"].notna()]
    counted = ended[ended["start_s"] >= warm_up_s]
    took_s = (counted["end_s"] - counted["start_s"]).to_numpy(float)
    small_s = took_s[counted["size_bytes"].to_numpy(float) < SMALL_BYTES]
    sent_mbit = progress["sent_mbit"].to_numpy(float)
    before_mbit = float(np.interp(warm_up_s, progress["at_s"].to_numpy(float), sent_mbit))
    late = tables["queues"][tables["queues"]["at_s"] > warm_up_s]
    lost = float(links["dropped"].sum() + links["cut"].sum())
    offered = float(links["sent"].sum() + links["dropped"].sum())
    udp = ended[ended["control"] == UDP_NAME]
    udp_bytes = float(udp["size_bytes"].sum())
    mean_mbps = None
    if warm_up_s < until_s:
        mean_mbps = (float(sent_mbit[-1]) - before_mbit) / (until_s - warm_up_s)
    return {
        "throughput_mbps": mean_mbps,
        "mean_completion_s": float(took_s.mean()) if len(took_s) else None,
        "worst_completion_s": float(took_s.max()) if len(took_s) else None,
        "ended_flows": float(len(counted)),
        "active_flows": float(flows["end_s"].isna().sum()),
        "p99_completion_s": float(np.percentile(took_s, 99)) if len(took_s) else None,
        "small_completion_s": float(small_s.mean()) if len(small_s) else None,
        "lost_share": lost / offered if offered > 0 else None,
        "udp_lost_share": 1 - float(udp["sent_bytes"].sum()) / udp_bytes if udp_bytes > 0 else None,
        **measure_controls(flows, until_s),
        "timeouts": float(flows["timeouts"].sum()),
        "mean_queue": float(late["longest"].mean()) if len(late) else None,
        "buffer_bytes": float(flows["buffer_bytes"].max()) if len(flows) else None,
    }


def measure_controls(flows: pd.DataFrame, until_s: float) -> dict[str, float | None]:
    """Return the mean rate of flows under each congestion control, Mbit/s, where there are several.

    The rate is what all flows of a control have sent over the time in which they were active.
    """
    control = flows["control"].to_numpy(str)
    active_s = flows["end_s"].fillna(until_s).to_numpy(float) - flows["start_s"].to_numpy(float)
    sent_mbit = flows["sent_bytes"].to_numpy(float) * MBIT_PER_BYTE
    has_several = len({*control.tolist()} - {UDP_NAME}) > 1
    rates: dict[str, float | None] = {}
    for name in MIXED:
        of_control = control == name
        passed_s = float(active_s[of_control].sum())
        is_known = has_several and passed_s > 0
        rates[f"{name}_mbps"] = float(sent_mbit[of_control].sum()) / passed_s if is_known else None
    return rates
