"""Ways to run the network: who decides the circuits, on what, and how queues and TCP help.

Every run is made by playing the flows with a scheduler in the loop, which is handed only what its
observation shows at the start of each week. The plan is what was done; it is measured by playing it
again from its tables. Flows that may go to any rack go to racks drawn at random where a design does not
choose.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Annotated, Final, Literal

import numpy as np
import pandas as pd
from pydantic import Field

from planner.errors import InputError
from planner.options import Options
from planner.proof import Proof, Status
from planner.system import Decision
from planner_models.circuitflows import bound, execution, placement
from planner_models.circuitflows.execution import Resizing, Seen
from planner_models.circuitflows.measure import Played, metrics
from planner_models.circuitflows.plan import Operation, settings
from planner_models.circuitflows.problem import FlowsInTime
from planner_models.circuitflows.weeks import Scheduler, plan_week
from planner_models.circuits.schedule import Day

ROUNDING: Final = 1e-9
TIMES: Final = frozenset({"night", "shortest_day", "horizon"})
"""The limits that a run with another packet switch than there is keeps."""

QueuePackets = Annotated[
    int, Field(ge=1, le=4096, description="packets that the queue of a pair of racks holds")
]
LargePackets = Annotated[
    Annotated[int, Field(ge=1, le=4096)] | None,
    Field(description="... and from early_us before its circuit to its end; default: no more"),
]
EarlyUs = Annotated[float, Field(ge=0, description="how early queues are enlarged before a circuit, us")]
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
        description="pairs of racks of which applications tell less than this, bytes, are left to the "
        "packet switch",
    ),
]
ComputingUs = Annotated[
    float, Field(ge=0, description="time that planning a week takes, by which it is late, us")
]
Demand = Literal["queues", "told"]
DemandOf = Annotated[
    Demand,
    Field(description="what the scheduler sees: lengths of racks' queues, or what applications tell"),
]
PlacementSeed = Annotated[int, Field(ge=0, description="where racks are drawn")]


def operate_queues(
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
    options: Options = Options(),  # noqa: ARG001
    previous: Decision[Operation] | None = None,  # noqa: ARG001
) -> Decision[Operation]:
    """Weeks planned on the lengths of the racks' queues.

    source  Mukerjee 2018, 2.5.1
    """
    return _operated(
        problem,
        drawn(problem),
        _weekly(problem, "queues", scheduler, fill_share),
        settings(queue_packets=queue_packets, alpha=alpha, beta=beta),
        _resizing(queue_packets, large_packets, early_us),
        computing_us,
    )


def operate_told(
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
    options: Options = Options(),  # noqa: ARG001
    previous: Decision[Operation] | None = None,  # noqa: ARG001
) -> Decision[Operation]:
    """Weeks planned on what applications have handed to their hosts (application data units).

    source  Mukerjee 2018, 2.5.2; `least_bytes` as the published emulator has it
    """
    return _operated(
        problem,
        drawn(problem),
        _weekly(problem, "told", scheduler, fill_share, least_bytes),
        settings(queue_packets=queue_packets, alpha=alpha, beta=beta),
        _resizing(queue_packets, large_packets, early_us),
        computing_us,
    )


def operate_fixed(
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
    options: Options = Options(),  # noqa: ARG001
    previous: Decision[Operation] | None = None,  # noqa: ARG001
) -> Decision[Operation]:
    """The same week over and over: rings of racks, set by hand, in days of one length.

    source  Mukerjee 2018, 2.5.3 and Figure 2.5
    """
    days = ring_days(problem, shifts)
    return _operated(
        problem,
        drawn(problem),
        lambda seen: days,  # noqa: ARG005
        settings(queue_packets=queue_packets, alpha=alpha, beta=beta),
        _resizing(queue_packets, large_packets, early_us),
        0.0,
    )


def operate_packet_only(
    problem: FlowsInTime,
    *,
    queue_packets: QueuePackets = 128,
    packet_mbps: Annotated[
        Annotated[float, Field(gt=0)] | None,
        Field(description="rate of each rack's link to the packet switch, Mbit/s; default: as it is"),
    ] = None,
    options: Options = Options(),  # noqa: ARG001
    previous: Decision[Operation] | None = None,  # noqa: ARG001
) -> Decision[Operation]:
    """The packet switch alone, as it is or a faster one in its place.

    source  Mukerjee 2018, 2.5.4; its queues of 128 packets from the published emulator
    """
    decision = _operated(
        problem,
        drawn(problem),
        None,
        settings(queue_packets=queue_packets, packet_mbps=packet_mbps),
        None,
        0.0,
    )
    if packet_mbps is None:
        return decision
    most = bound.delivered_gb(problem, packet_mbps=packet_mbps)
    within = f"a packet switch of {packet_mbps:g} Mbit/s"
    proof = replace(decision.proof, status=Status.FEASIBLE, bound=most, within=within)
    return replace(decision, proof=proof, keeps=TIMES)


def operate_hdfs_random(
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
    options: Options = Options(),  # noqa: ARG001
    previous: Decision[Operation] | None = None,  # noqa: ARG001
) -> Decision[Operation]:
    """Blocks in racks drawn at random, whatever the network; weeks planned on demand.

    source  Mukerjee 2018, 2.6.1
    """
    return _operated(
        problem,
        placement.random(problem, seed=seed),
        _weekly(problem, demand, scheduler, fill_share),
        settings(queue_packets=queue_packets, alpha=alpha, beta=beta),
        _resizing(queue_packets, large_packets, early_us),
        0.0,
    )


def operate_rehdfs(
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
    options: Options = Options(),  # noqa: ARG001
    previous: Decision[Operation] | None = None,  # noqa: ARG001
) -> Decision[Operation]:
    """Blocks of rack i in rack i + shift, which takes one configuration; weeks planned on demand.

    source  Mukerjee 2018, 2.6.1 (reHDFS)
    """
    return _operated(
        problem,
        placement.ring(problem, shift=shift),
        _weekly(problem, demand, scheduler, fill_share),
        settings(queue_packets=queue_packets, alpha=alpha, beta=beta),
        _resizing(queue_packets, large_packets, early_us),
        0.0,
    )


def operate_placement(
    problem: FlowsInTime,
    *,
    racks_each: placement.RacksEach = 1,
    balance: placement.Balance = 0.0,
    churn: placement.Churn = 1.0,
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
    """Blocks where they need the fewest circuit configurations, within limits; weeks planned on demand.

    source  generalises Mukerjee 2018, 2.6.1; see `placement`
    """
    last = previous.plan if previous else None
    made = placement.optimum(
        problem,
        racks_each=racks_each,
        balance=balance,
        churn=churn,
        used=None if last is None else placement.pairs_used(problem, last.placement),
        options=options,
    )
    if made.placement is None:
        return Decision(plan=None, proof=made.proof)
    decision = _operated(
        problem,
        made.placement,
        _weekly(problem, demand, scheduler, fill_share),
        settings(queue_packets=queue_packets, alpha=alpha, beta=beta),
        _resizing(queue_packets, large_packets, early_us),
        0.0,
    )
    return replace(decision, proof=made.proof)


# --- parts --------------------------------------------------------------------------------


def drawn(problem: FlowsInTime) -> pd.DataFrame:
    """Racks for flows that may go to any, where a design does not choose: at random, as HDFS does."""
    return placement.random(problem, seed=0)


def ring_days(problem: FlowsInTime, shifts: Sequence[int]) -> list[Day]:
    """A week of rings, in days of one length; InputError where they do not fit."""
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


def _weekly(
    problem: FlowsInTime,
    demand: Demand,
    scheduler: Scheduler,
    fill_share: float,
    least_bytes: float = 0.0,
) -> Callable[[Seen], Sequence[Day]]:
    week = problem.week

    def decide(seen: Seen) -> Sequence[Day]:
        told = np.where(seen.pending_bits >= 8 * least_bytes, seen.pending_bits, 0.0)
        bits = seen.queued_bits if demand == "queues" else told
        return plan_week(week, bits, scheduler=scheduler, fill_share=fill_share)

    return decide


def _resizing(queue_packets: int, large_packets: int | None, early_us: float) -> Resizing | None:
    if large_packets is None:
        return None
    if large_packets < queue_packets:
        raise InputError(f"large_packets is {large_packets}, must be at least queue_packets, {queue_packets}")
    return Resizing(small=queue_packets, large=large_packets, early_us=early_us)


def _operated(
    problem: FlowsInTime,
    where: pd.DataFrame,
    week: Callable[[Seen], Sequence[Day]] | None,
    how: pd.DataFrame,
    resizing: Resizing | None,
    computing_us: float,
) -> Decision[Operation]:
    plan, network = execution.run(
        problem,
        placement=where,
        week=week,
        settings=how,
        resizing=resizing,
        computing_us=computing_us,
    )
    taken = network.of("end_us") - network.of("start_us")
    run = Played(taken_us=taken, latency=network.of("latency"), network=network)
    delivered = metrics(problem, plan, run)["delivered_gb"]
    assert delivered is not None  # of every run
    most = bound.delivered_gb(problem)
    proof = Proof(
        status=Status.OPTIMAL if delivered >= most * (1 - ROUNDING) else Status.FEASIBLE,
        objective=delivered,
        bound=most,
        metric="delivered_gb",
    )
    return Decision(plan=plan, proof=proof)
