"""Designs that run the network: how circuits are decided, on which observation, with which queues and TCP.

Every run simulates the flows with a scheduler in the loop, which gets only its observation at the start
of each week. The plan is the record of what was done; it is measured by replaying it from its tables.
Flows that may go to any rack go to racks drawn at random where a design does not choose.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Annotated, Final, Literal

import numpy as np
import pandas as pd
from pydantic import Field

from planner.contract.design import Decision
from planner.contract.proof import Proof, Status
from planner.errors import InputError
from planner.options import Options
from planner_models.circuitflows.designs import block_placement, execution, upper_bound
from planner_models.circuitflows.designs.execution import Observation, QueueResizing
from planner_models.circuitflows.designs.weekly_schedule import Scheduler, plan_week
from planner_models.circuitflows.plan.metrics import Replay, measure_run
from planner_models.circuitflows.plan.plan import Operation, settings_table
from planner_models.circuitflows.problem.problem import FlowsInTime
from planner_models.circuits.plan.plan import Day

ROUNDING: Final = 1e-9
TIME_LIMITS: Final = frozenset({"night", "shortest_day", "horizon"})
"""The limits that a run with another packet switch than there is keeps."""

QueuePackets = Annotated[
    int, Field(ge=1, le=4096, description="packets that the queue of a pair of racks holds")
]
LargePackets = Annotated[
    Annotated[int, Field(ge=1, le=4096)] | None,
    Field(description="packets that it holds from early_us before its circuit to its end; default: no more"),
]
EarlyUs = Annotated[
    float, Field(ge=0, description="time before a circuit at which its queue is enlarged, us")
]
Alpha = Annotated[
    float, Field(ge=1, description="factor of TCP's window when a circuit comes up (reTCP); 1: plain TCP")
]
Beta = Annotated[
    float, Field(gt=0, le=1, description="factor of TCP's window when it goes down (reTCP); 1: plain TCP")
]
Which = Annotated[Scheduler, Field(description="the algorithm that plans each week")]
FillShare = Annotated[
    float,
    Field(
        ge=0,
        le=1,
        description="share of the week that the busiest rack's demand is scaled up to where it is less",
    ),
]
LeastBytes = Annotated[
    float,
    Field(
        ge=0,
        description="pairs of racks of which applications report less than this, bytes, are left to the "
        "packet switch",
    ),
]
ComputingUs = Annotated[
    float, Field(ge=0, description="time that planning a week takes, by which it is late, us")
]
Demand = Literal["queues", "told"]
DemandOf = Annotated[
    Demand,
    Field(description="what the scheduler observes: lengths of racks' queues, or what applications report"),
]
PlacementSeed = Annotated[int, Field(ge=0, description="seed of the racks drawn")]


def run_on_queue_lengths(
    problem: FlowsInTime,
    *,
    scheduler: Which = "solstice",
    queue_packets: QueuePackets = 16,
    large_packets: LargePackets = None,
    early_us: EarlyUs = 1_000.0,
    alpha: Alpha = 1.0,
    beta: Beta = 1.0,
    fill_share: FillShare = 0.5,
    computing_us: ComputingUs = 0.0,
) -> Decision[Operation]:
    """Run weeks that are scheduled on the lengths of the racks' queues.

    source  Mukerjee 2018, 2.5.1
    """
    return _run(
        problem,
        place_at_random(problem),
        _make_planner(problem, "queues", scheduler, fill_share),
        settings_table(queue_packets=queue_packets, alpha=alpha, beta=beta),
        _make_resizing(queue_packets, large_packets, early_us),
        computing_us,
    )


def run_on_application_data(
    problem: FlowsInTime,
    *,
    scheduler: Which = "solstice",
    queue_packets: QueuePackets = 16,
    large_packets: LargePackets = None,
    early_us: EarlyUs = 1_000.0,
    alpha: Alpha = 1.0,
    beta: Beta = 1.0,
    fill_share: FillShare = 0.5,
    least_bytes: LeastBytes = 1e6,
    computing_us: ComputingUs = 0.0,
) -> Decision[Operation]:
    """Run weeks that are scheduled on what applications have handed to their hosts (data units).

    source  Mukerjee 2018, 2.5.2; `least_bytes` as the published emulator has it
    """
    return _run(
        problem,
        place_at_random(problem),
        _make_planner(problem, "told", scheduler, fill_share, least_bytes),
        settings_table(queue_packets=queue_packets, alpha=alpha, beta=beta),
        _make_resizing(queue_packets, large_packets, early_us),
        computing_us,
    )


def run_fixed_schedule(
    problem: FlowsInTime,
    *,
    shifts: Annotated[
        tuple[int, ...],
        Field(min_length=1, description="rack i is connected to rack i + shift, one shift a day"),
    ] = (1,),
    queue_packets: QueuePackets = 16,
    large_packets: LargePackets = None,
    early_us: EarlyUs = 1_000.0,
    alpha: Alpha = 1.0,
    beta: Beta = 1.0,
) -> Decision[Operation]:
    """Run the same week repeatedly: given rings of racks, in days of one length.

    source  Mukerjee 2018, 2.5.3 and Figure 2.5
    """
    days = ring_days(problem, shifts)
    return _run(
        problem,
        place_at_random(problem),
        lambda observation: days,  # noqa: ARG005
        settings_table(queue_packets=queue_packets, alpha=alpha, beta=beta),
        _make_resizing(queue_packets, large_packets, early_us),
        0.0,
    )


def run_packet_switch_only(
    problem: FlowsInTime,
    *,
    queue_packets: QueuePackets = 128,
    packet_mbps: Annotated[
        Annotated[float, Field(gt=0)] | None,
        Field(description="rate of each rack's link to the packet switch, Mbit/s; default: as it is"),
    ] = None,
) -> Decision[Operation]:
    """Run the packet switch alone, as it is or a faster one in its place.

    source  Mukerjee 2018, 2.5.4; its queues of 128 packets from the published emulator
    """
    decision = _run(
        problem,
        place_at_random(problem),
        None,
        settings_table(queue_packets=queue_packets, packet_mbps=packet_mbps),
        None,
        0.0,
    )
    if packet_mbps is None:
        return decision
    most = upper_bound.max_delivered_gb(problem, packet_mbps=packet_mbps)
    within = f"a packet switch of {packet_mbps:g} Mbit/s"
    proof = replace(decision.proof, status=Status.FEASIBLE, bound=most, bound_scope=within)
    return replace(decision, proof=proof, guarantees=TIME_LIMITS)


def run_random_placement(
    problem: FlowsInTime,
    *,
    seed: PlacementSeed = 0,
    demand: DemandOf = "queues",
    scheduler: Which = "solstice",
    queue_packets: QueuePackets = 16,
    large_packets: LargePackets = None,
    early_us: EarlyUs = 1_000.0,
    alpha: Alpha = 1.0,
    beta: Beta = 1.0,
    fill_share: FillShare = 0.5,
) -> Decision[Operation]:
    """Run with blocks in racks drawn at random; weeks are scheduled on demand.

    source  Mukerjee 2018, 2.6.1
    """
    return _run(
        problem,
        block_placement.place_randomly(problem, seed=seed),
        _make_planner(problem, demand, scheduler, fill_share),
        settings_table(queue_packets=queue_packets, alpha=alpha, beta=beta),
        _make_resizing(queue_packets, large_packets, early_us),
        0.0,
    )


def run_shifted_placement(
    problem: FlowsInTime,
    *,
    shift: Annotated[int, Field(ge=1, description="blocks of rack i go to rack i + shift")] = 1,
    demand: DemandOf = "queues",
    scheduler: Which = "solstice",
    queue_packets: QueuePackets = 16,
    large_packets: LargePackets = None,
    early_us: EarlyUs = 1_000.0,
    alpha: Alpha = 1.0,
    beta: Beta = 1.0,
    fill_share: FillShare = 0.5,
) -> Decision[Operation]:
    """Run with blocks of rack i in rack i + shift, which takes one configuration.

    source  Mukerjee 2018, 2.6.1 (reHDFS)
    """
    return _run(
        problem,
        block_placement.place_in_ring(problem, shift=shift),
        _make_planner(problem, demand, scheduler, fill_share),
        settings_table(queue_packets=queue_packets, alpha=alpha, beta=beta),
        _make_resizing(queue_packets, large_packets, early_us),
        0.0,
    )


def run_optimal_placement(
    problem: FlowsInTime,
    *,
    racks_each: block_placement.RacksEach = 1,
    balance: block_placement.Balance = 0.0,
    churn: block_placement.Churn = 1.0,
    demand: DemandOf = "queues",
    scheduler: Which = "solstice",
    queue_packets: QueuePackets = 16,
    large_packets: LargePackets = None,
    early_us: EarlyUs = 1_000.0,
    alpha: Alpha = 1.0,
    beta: Beta = 1.0,
    fill_share: FillShare = 0.5,
    options: Options = Options(),
    previous: Decision[Operation] | None = None,
) -> Decision[Operation]:
    """Run with blocks where they need the fewest circuit configurations, within limits.

    source  generalises Mukerjee 2018, 2.6.1; see `placement`
    """
    last = previous.plan if previous else None
    made = block_placement.optimize_placement(
        problem,
        racks_each=racks_each,
        balance=balance,
        churn=churn,
        used=None if last is None else block_placement.used_pairs(problem, last.placement),
        options=options,
    )
    if made.placement is None:
        return Decision(plan=None, proof=made.proof)
    decision = _run(
        problem,
        made.placement,
        _make_planner(problem, demand, scheduler, fill_share),
        settings_table(queue_packets=queue_packets, alpha=alpha, beta=beta),
        _make_resizing(queue_packets, large_packets, early_us),
        0.0,
    )
    return replace(decision, proof=made.proof)


# --- parts --------------------------------------------------------------------------------


def place_at_random(problem: FlowsInTime) -> pd.DataFrame:
    """Return racks, drawn at random as HDFS does, for the flows that may go to any."""
    return block_placement.place_randomly(problem, seed=0)


def ring_days(problem: FlowsInTime, shifts: Sequence[int]) -> list[Day]:
    """Return a week of rings, in days of one length; raises InputError where they do not fit."""
    n, night, week = len(problem.racks), problem.of("night_us"), problem.of("week_us")
    faults = [f"shifts: {shift}, must be from 1 to {n - 1}" for shift in shifts if not 1 <= shift < n]
    length = week / len(shifts) - night
    if length <= 0 or length < problem.of("shortest_day_us") * (1 - 1e-9):
        faults.append(
            f"shifts: {len(shifts)} days in a week of {week:g} us leave {length:g} us each, must be at "
            f"least {problem.of('shortest_day_us'):g}"
        )
    if faults:
        raise InputError(*faults)
    return [Day(duration_us=length, target=(np.arange(n) + shift) % n) for shift in shifts]


def _make_planner(
    problem: FlowsInTime,
    demand: Demand,
    scheduler: Scheduler,
    fill_share: float,
    least_bytes: float = 0.0,
) -> Callable[[Observation], Sequence[Day]]:
    """Return the function that schedules a week from an observation."""
    week = problem.week

    def decide(observation: Observation) -> Sequence[Day]:
        reported = np.where(observation.pending_bits >= 8 * least_bytes, observation.pending_bits, 0.0)
        bits = observation.queued_bits if demand == "queues" else reported
        return plan_week(week, bits, scheduler=scheduler, fill_share=fill_share)

    return decide


def _make_resizing(queue_packets: int, large_packets: int | None, early_us: float) -> QueueResizing | None:
    """Return when queues are enlarged; None where they are not."""
    if large_packets is None:
        return None
    if large_packets < queue_packets:
        raise InputError(f"large_packets is {large_packets}, must be at least queue_packets, {queue_packets}")
    return QueueResizing(small=queue_packets, large=large_packets, early_us=early_us)


def _run(
    problem: FlowsInTime,
    where: pd.DataFrame,
    week: Callable[[Observation], Sequence[Day]] | None,
    how: pd.DataFrame,
    resizing: QueueResizing | None,
    computing_us: float,
) -> Decision[Operation]:
    """Run the network and return its record as a decision, with the bound on delivered data."""
    plan, network = execution.run(
        problem,
        placement=where,
        week=week,
        settings=how,
        resizing=resizing,
        computing_us=computing_us,
    )
    taken = network.of("end_us") - network.of("start_us")
    run = Replay(taken_us=taken, latency=network.of("latency"), network=network)
    delivered = measure_run(problem, plan, run)["delivered_gb"]
    assert delivered is not None  # of every run
    most = upper_bound.max_delivered_gb(problem)
    proof = Proof(
        status=Status.OPTIMAL if delivered >= most * (1 - ROUNDING) else Status.FEASIBLE,
        objective=delivered,
        bound=most,
        metric="delivered_gb",
    )
    return Decision(plan=plan, proof=proof)
