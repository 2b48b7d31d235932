"""Designs that run the network: their decisions on circuits, observations, queues and TCP.

Every run simulates the flows with a scheduler in the loop, which gets only its observation at the start
of each week. The plan is the record of what was done; it is measured by replaying it from its tables.
Flows that may go to any rack go to racks drawn at random where a design does not choose.

The schedule of one week from the observed demand: its preparation, and days stretched to the week.

source  Mukerjee 2018, 2.3.2: Solstice with its objective changed to the largest demand within a
        window. The thesis does not spell out how; `prepare_demand` and `stretch_days` do what its published
        emulator (github.com/mukerjee/etalon) does
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Final, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import Field

from planner.contract.design import Decision
from planner.contract.parameters import spread
from planner.contract.proof import Status
from planner.errors import InputError
from planner.options import Options
from planner.search.deadline import Deadline
from planner.search.judged import judged
from planner.search.tolerances import ROUNDING
from planner_models.circuitflows.designs import block_placement, execution, upper_bound
from planner_models.circuitflows.designs.execution import Observation, QueueResizing
from planner_models.circuitflows.plan.metrics import Replay, measure_run
from planner_models.circuitflows.plan.plan import HostSettings, Operation, settings_table, simulated_us
from planner_models.circuitflows.problem.problem import FlowsInTime
from planner_models.circuits.designs import birkhoff_decomposition, eclipse, equal_days, solstice
from planner_models.circuits.plan.plan import IDLE, Day, Schedule, read_days
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
Scheduler = Literal["solstice", "eclipse", "bvn", "tms", "hotspot", "islip"]
DAYS: Final[Mapping[str, Callable[[Circuits], list[Day]]]] = {
    "solstice": solstice.days,
    "eclipse": eclipse.days,
}
SCHEDULES: Final[Mapping[str, Callable[[Circuits], Decision[Schedule]]]] = {
    "bvn": birkhoff_decomposition.schedule_bvn,
    "tms": birkhoff_decomposition.schedule_tms,
    "hotspot": equal_days.schedule_hotspots,
    "islip": equal_days.schedule_islip,
}


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


def plan_week(
    week: Circuits, bits: NDArray[np.float64], *, scheduler: Scheduler, fill_share: float
) -> list[Day]:
    """Return the days of a week for the observed demand; none where no day serves anything.

    week  the network's week; its own demand does not count
    bits  (n, n) observed demand
    """
    demand = prepare_demand(week, bits, fill_share=fill_share)
    if not demand.any():
        return []
    observed = week.with_matrix(demand)
    days = DAYS[scheduler](observed) if scheduler in DAYS else _schedule_days(observed, scheduler)
    split_days = [day.without_loops() for day in days]
    return stretch_days(week, [day for day in split_days if (day.target != IDLE).any()])


def _schedule_days(week: Circuits, scheduler: str) -> list[Day]:
    """Return the days of a scheduler's plan; none where it has no plan."""
    plan = SCHEDULES[scheduler](week).plan
    return [] if plan is None else read_days(week, plan.configurations)


def prepare_demand(week: Circuits, bits: NDArray[np.float64], *, fill_share: float) -> NDArray[np.float64]:
    """Return (n, n) the demand that a scheduler is given.

    Demand less than the busiest rack's circuit carries in `fill_share` of the week is scaled up to
    it, so that shallow queues are scheduled at all. Demand beyond the week is shared out max-min
    fairly, so that every large pair gets a part of it. Pairs below a shortest day are left to the
    packet switch.
    """
    window = week.window_us
    assert window is not None  # the week of a network always has one
    time = bits / week.circuit_mbps
    busiest = float(max(time.sum(axis=1).max(initial=0.0), time.sum(axis=0).max(initial=0.0)))
    if busiest <= 0:
        return np.zeros_like(bits)
    if busiest < fill_share * window:
        time = time * (fill_share * window / busiest)
    time = max_min_shares(time, window)
    time[time < week.shortest_day_us] = 0.0
    return time * week.circuit_mbps


def max_min_shares(demand: NDArray[np.float64], budget: float) -> NDArray[np.float64]:
    """Return (n, n) the max-min fair part of `demand` with every row and column sum at most `budget`."""
    granted = np.zeros_like(demand)
    open_ = demand > 0
    rows, columns = np.full(len(demand), budget), np.full(len(demand), budget)
    while open_.any():
        each_row, each_column = open_.sum(axis=1), open_.sum(axis=0)
        steps = [rows[each_row > 0] / each_row[each_row > 0]]
        steps += [columns[each_column > 0] / each_column[each_column > 0], (demand - granted)[open_]]
        step = float(min(ratios.min() for ratios in steps))
        granted[open_] += step
        rows -= step * each_row
        columns -= step * each_column
        tight = 1e-12 * budget
        open_ &= (demand - granted > tight) & (rows > tight)[:, None] & (columns > tight)[None, :]
    return granted


def stretch_days(week: Circuits, days: Sequence[Day]) -> list[Day]:
    """Return the days lengthened equally to fill the week; the shortest are left out if there are many."""
    window, night = week.window_us, week.night_us
    assert window is not None  # as above
    fitting = sorted(days, key=lambda day: -day.duration_us)
    while fitting and len(fitting) * (night + week.shortest_day_us) > window * (1 + 1e-12):
        fitting.pop()
    if not fitting:
        return []
    each = (window - sum(night + day.duration_us for day in fitting)) / len(fitting)
    stretched = (replace(day, duration_us=day.duration_us + each) for day in fitting)
    return [day for day in stretched if day.duration_us > 0]
