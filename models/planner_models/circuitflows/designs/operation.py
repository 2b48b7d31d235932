"""Designs that run the network: their decisions on circuits, observations, queues and TCP.

Every run simulates the flows with a scheduler in the loop, which gets only its observation at the start
of each week. The plan is the record of what was done; it is measured by replaying it from its tables.
Flows that may go to any rack go to racks drawn at random where a design does not choose.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Final, Literal

import numpy as np
import pandas as pd
from pydantic import Field

from planner.contract.design import Decision
from planner.contract.proof import Status
from planner.errors import InputError
from planner.options import Options
from planner.search.deadline import Deadline
from planner.search.judged import judged
from planner.search.tolerances import ROUNDING
from planner_models.circuitflows.designs import block_placement, execution, upper_bound
from planner_models.circuitflows.designs.execution import Observation, QueueResizing
from planner_models.circuitflows.designs.weekly_schedule import Scheduler, plan_week
from planner_models.circuitflows.plan.metrics import Replay, measure_run
from planner_models.circuitflows.plan.plan import HostSettings, Operation, settings_table, simulated_us
from planner_models.circuitflows.problem.problem import FlowsInTime
from planner_models.circuits.plan.plan import Day
from planner_models.circuits.problem.network import spread
from planner_models.circuits.problem.problem import Circuits

LEAST_TIME_S: Final = 1e-3
PLACEMENT_SHARE: Final = 0.5
"""Share of the time limit for the program of the placement; the rest is for the run."""
TIME_LIMITS: Final = frozenset({"night", "shortest_day", "horizon"})
"""The limits that a run with another packet switch than there is keeps."""

Alpha = Annotated[
    float, Field(ge=1, description="factor of TCP's window when a circuit comes up (reTCP); 1: plain TCP")
]
Beta = Annotated[
    float, Field(gt=0, le=1, description="factor of TCP's window when it goes down (reTCP); 1: plain TCP")
]
QueuePackets = Annotated[
    int, Field(ge=1, le=4096, description="packets that the queue of a pair of racks holds")
]
Control = Annotated[
    Literal["reno", "cubic", "dctcp", "bbr", "tdtcp"],
    Field(
        description="congestion control of the hosts: Reno, CUBIC (RFC 9438), DCTCP (RFC 8257), BBR "
        "version 1, or TDTCP (SIGCOMM 2022)"
    ),
]
MarkPackets = Annotated[
    Annotated[int, Field(ge=1, le=4096)] | None,
    Field(
        description="packets in a queue from which on it marks those that come, for DCTCP; default: half of "
        "queue_packets"
    ),
]
RttWindowUs = Annotated[
    float,
    Field(
        gt=0,
        description="time for which BBR keeps the least round trip, us; after it, BBR sends little for a "
        "fiftieth of this time",
    ),
]
Demand = Literal["queues", "data_units"]
PlacementSeed = Annotated[int, Field(ge=0, description="seed of the racks drawn")]


@dataclass(frozen=True, kw_only=True)
class QueueSettings:
    """Settings of queues and TCP."""

    queue_packets: QueuePackets = 16
    large_packets: Annotated[
        Annotated[int, Field(ge=1, le=4096)] | None,
        Field(
            description="packets that it holds from early_us before its circuit to its end; default: no more"
        ),
    ] = None
    early_us: Annotated[
        float, Field(ge=0, description="time before a circuit at which its queue is enlarged, us")
    ] = 1_000.0
    alpha: Alpha = 1.0
    beta: Beta = 1.0
    control: Control = "reno"
    mark_packets: MarkPackets = None
    rtt_window_us: RttWindowUs = 1e7

    def table(self) -> pd.DataFrame:
        """Return the table `settings`; InputError where they contradict each other."""
        if self.control != "reno" and (self.alpha != 1 or self.beta != 1):
            raise InputError(
                f"alpha and beta are for reTCP, which is Reno: control is '{self.control}', must be 'reno'"
            )
        if self.control != "dctcp" and self.mark_packets is not None:
            raise InputError(f"mark_packets is for DCTCP: control is '{self.control}', must be 'dctcp'")
        marks = self.mark_packets or max(self.queue_packets // 2, 1)
        hosts = HostSettings(
            alpha=self.alpha,
            beta=self.beta,
            control=self.control,
            mark_packets=marks if self.control == "dctcp" else None,
            rtt_window_us=self.rtt_window_us if self.control == "bbr" else math.inf,
        )
        return settings_table(queue_packets=self.queue_packets, hosts=hosts)

    def resizing(self) -> QueueResizing | None:
        """Return the times at which queues are enlarged; None without resizing."""
        small, large = self.queue_packets, self.large_packets
        if large is None:
            return None
        if large < small:
            raise InputError(f"large_packets is {large}, must be at least queue_packets, {small}")
        return QueueResizing(small=small, large=large, early_us=self.early_us)


@dataclass(frozen=True, kw_only=True)
class Planner(QueueSettings):
    """Settings of the scheduler of each week, of queues and of TCP."""

    scheduler: Annotated[Scheduler, Field(description="the algorithm that plans each week")] = "solstice"
    fill_share: Annotated[
        float,
        Field(
            ge=0,
            le=1,
            description="share of the week that the busiest rack's demand is scaled up to where it is less",
        ),
    ] = 0.5
    least_bytes: Annotated[
        float,
        Field(
            ge=0,
            description="pairs of racks with less demand than this, bytes, are left to the packet switch "
            "where any pair has as much",
        ),
    ] = 1e6

    def run(
        self,
        problem: FlowsInTime,
        *,
        placement: pd.DataFrame | None = None,
        demand: Demand = "queues",
        computing_us: float = 0.0,
        options: Options = Options(),
    ) -> Decision[Operation]:
        """Run weeks that are scheduled on the demand; flows to any rack go to racks drawn by default."""
        week = problem.week

        def decide(observation: Observation) -> Sequence[Day]:
            return self.plan(week, observation, demand=demand)

        return _run(problem, placement, decide, self.table(), self.resizing(), options, computing_us)

    def plan(self, week: Circuits, observation: Observation, *, demand: Demand) -> list[Day]:
        """Return the days of the next week."""
        bits = observation.queued_bits if demand == "queues" else observation.pending_bits
        is_large = bits >= 8 * self.least_bytes
        if is_large.any():
            bits = np.where(is_large, bits, 0.0)
        return plan_week(week, bits, scheduler=self.scheduler, fill_share=self.fill_share)


@dataclass(frozen=True, kw_only=True)
class PlacementPlanner(Planner):
    """The same, where it is to be chosen which demand the scheduler observes."""

    demand: Annotated[
        Demand,
        Field(
            description="what the scheduler observes: lengths of racks' queues, or what applications report"
        ),
    ] = "queues"


ComputingUs = Annotated[
    float, Field(ge=0, description="time that planning a week takes, by which it is late, us")
]


@spread(planner=Planner())
def run_on_queue_lengths(
    problem: FlowsInTime,
    *,
    planner: Planner,
    computing_us: ComputingUs = 0.0,
    options: Options = Options(),
) -> Decision[Operation]:
    """Run weeks that are scheduled on the lengths of the racks' queues.

    source  Mukerjee 2018, 2.5.1
    """
    return planner.run(problem, computing_us=computing_us, options=options)


@spread(planner=Planner())
def run_on_application_data(
    problem: FlowsInTime,
    *,
    planner: Planner,
    computing_us: ComputingUs = 0.0,
    options: Options = Options(),
) -> Decision[Operation]:
    """Run weeks that are scheduled on the data that applications have handed to their hosts (data units).

    source  Mukerjee 2018, 2.5.2; `least_bytes` as the published emulator has it
    """
    return planner.run(
        problem,
        demand="data_units",
        computing_us=computing_us,
        options=options,
    )


@spread(queues=QueueSettings())
def run_fixed_schedule(
    problem: FlowsInTime,
    *,
    shifts: Annotated[
        tuple[int, ...],
        Field(min_length=1, description="rack i is connected to rack i + shift, one shift a day"),
    ] = (1,),
    queues: QueueSettings,
    options: Options = Options(),
) -> Decision[Operation]:
    """Run the same week repeatedly: given rings of racks, in days of one length.

    source  Mukerjee 2018, 2.5.3 and Figure 2.5
    """
    days = ring_days(problem, shifts)
    week = lambda observation: days  # noqa: ARG005, E731
    return _run(problem, None, week, queues.table(), queues.resizing(), options)


def run_packet_switch_only(
    problem: FlowsInTime,
    *,
    queue_packets: QueuePackets = 128,
    packet_mbps: Annotated[
        Annotated[float, Field(gt=0)] | None,
        Field(description="rate of each rack's link to the packet switch, Mbit/s; default: as it is"),
    ] = None,
    options: Options = Options(),
) -> Decision[Operation]:
    """Run the packet switch alone, as it is or a faster one in its place.

    source  Mukerjee 2018, 2.5.4; its queues of 128 packets from the published emulator
    """
    settings = settings_table(queue_packets=queue_packets, packet_mbps=packet_mbps)
    decision = _run(problem, None, None, settings, None, options)
    if packet_mbps is None or decision.plan is None:
        return decision
    upper = upper_bound.max_delivered_gb(problem, packet_mbps=packet_mbps)
    within = f"a packet switch of {packet_mbps:g} Mbit/s"
    proof = replace(decision.proof, status=Status.FEASIBLE, bound=upper, bound_scope=within)
    return replace(decision, proof=proof, guarantees=TIME_LIMITS)


@spread(planner=PlacementPlanner())
def run_random_placement(
    problem: FlowsInTime,
    *,
    planner: PlacementPlanner,
    seed: PlacementSeed = 0,
    options: Options = Options(),
) -> Decision[Operation]:
    """Run with blocks in racks drawn at random; weeks are scheduled on demand.

    source  Mukerjee 2018, 2.6.1
    """
    where = block_placement.place_randomly(problem, seed=seed)
    return planner.run(problem, placement=where, demand=planner.demand, options=options)


@spread(planner=PlacementPlanner())
def run_shifted_placement(
    problem: FlowsInTime,
    *,
    shift: Annotated[int, Field(ge=1, description="blocks of rack i go to rack i + shift")] = 1,
    planner: PlacementPlanner,
    options: Options = Options(),
) -> Decision[Operation]:
    """Run with blocks of rack i in rack i + shift, which takes one configuration.

    source  Mukerjee 2018, 2.6.1 (reHDFS)
    """
    where = block_placement.place_in_ring(problem, shift=shift)
    return planner.run(problem, placement=where, demand=planner.demand, options=options)


@spread(planner=PlacementPlanner())
def run_optimal_placement(
    problem: FlowsInTime,
    *,
    racks_each: block_placement.RacksEach = 1,
    balance: block_placement.Balance = 0.0,
    churn: block_placement.Churn = 1.0,
    planner: PlacementPlanner,
    options: Options = Options(),
    previous: Decision[Operation] | None = None,
) -> Decision[Operation]:
    """Run with blocks where they need the fewest circuit configurations, within limits.

    source  generalises Mukerjee 2018, 2.6.1; see `placement`
    """
    last, deadline = previous.plan if previous else None, Deadline.of(options)
    made = block_placement.optimize_placement(
        problem,
        racks_each=racks_each,
        balance=balance,
        churn=churn,
        used=None if last is None else block_placement.used_pairs(problem, last.placement),
        options=options.share_time(PLACEMENT_SHARE),
    )
    if made.placement is None:
        return Decision(plan=None, proof=made.proof)
    remaining_options = deadline.options(Options(), minimum_s=LEAST_TIME_S)
    decision = planner.run(
        problem, placement=made.placement, demand=planner.demand, options=remaining_options
    )
    return replace(decision, proof=replace(made.proof, is_cut=decision.proof.is_cut))


# --- parts --------------------------------------------------------------------------------


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


def _run(
    problem: FlowsInTime,
    placement: pd.DataFrame | None,
    week: Callable[[Observation], Sequence[Day]] | None,
    settings: pd.DataFrame,
    resizing: QueueResizing | None,
    options: Options,
    computing_us: float = 0.0,
) -> Decision[Operation]:
    """Run the network and return its record as a decision, with the bound on delivered data.

    placement  None: flows that may go to any rack go to racks drawn at random, as in HDFS
    """
    # check and metrics replay the record, and again where designs observe other reports than the true ones
    share = 1 / (2 if problem.reports.are_exact else 3)
    plan, network = execution.run(
        problem,
        placement=block_placement.place_randomly(problem, seed=0) if placement is None else placement,
        week=week,
        settings=settings,
        resizing=resizing,
        computing_us=computing_us,
        limit_s=options.share_time(share).time_limit_s,
    )
    figures = measure_run(problem, plan, Replay.of(network))
    delivered, offered = figures["delivered_gb"], figures["offered_gb"]
    assert delivered is not None  # of every run
    assert offered is not None
    upper = upper_bound.max_delivered_gb(problem)
    until, horizon = simulated_us(problem, plan), problem.of("horizon_us")
    is_cut = until < horizon
    proof = replace(judged("max", delivered, upper, gap=ROUNDING, metric="delivered_gb"), is_cut=is_cut)
    is_all = delivered >= offered * (1 - ROUNDING) and not is_cut
    if options.service == "best" or is_all:
        return Decision(plan=plan, proof=proof)
    is_proven = upper < offered * (1 - ROUNDING)
    extreme = (
        f"any plan delivers at most {upper:,.4g}" if is_proven else f"this run delivers {delivered:,.4g}"
    )
    reach = f"the {until / 1e3:,.4g} ms that the time limit left" if proof.is_cut else "the run"
    proof = replace(
        proof,
        status=Status.INFEASIBLE if is_proven else Status.UNDECIDED,
        objective=None,
        reasons=(f"{extreme} of {offered:,.4g} GB within {reach}",),
    )
    return Decision(plan=None, proof=proof)
