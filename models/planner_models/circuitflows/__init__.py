r"""Circuit flows: how do flows fare in a reconfigurable datacenter, week after week?

System `circuits` plans one week for a demand. Here the weeks are run: TCP flows come and go, packets
wait in the racks' queues, and a scheduler plans each week from what it sees of them: the lengths of
shallow queues (reaction) or what applications tell (transparency). Queues that grow before a circuit
and senders that are told of it (reTCP) help to use it. Flows to `any` rack are placed by the plan, as
a distributed file system places replicas: `placement` has that formulation.

Tables: `racks(rack, hosts, circuit_mbps, packet_mbps)`, `flows(flow, source_rack, target_rack, host,
start_us, bytes, after)` and `network(...)` in one row; 1 Mbit/s is 1 bit/us. A plan is what was done:
`configurations(day, start_us, duration_us, source_rack, target_rack)`, `queues(at_us, source_rack,
target_rack, packets)`, `settings(queue_packets, alpha, beta, packet_mbps)` and `placement(flow,
target_rack)`. Packets are followed one by one (`packets`), not as a fluid. `bound` has what no plan can
deliver more of. Reports to the scheduler may be late, badly measured or coarse (`sees`).

Source: Mukerjee 2018, chapter 2 (Etalon).

>>> from planner_models import circuitflows
>>> problem = circuitflows.generate.mixed(racks=4, rings=1, horizon_us=20_000.0)
>>> decision = circuitflows.operate.operate_fixed(problem, shifts=(1,))
>>> figures = circuitflows.measure(problem, decision.plan, None)
>>> figures["duty_cycle"]
0.99
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from planner.system import Blur, Coordination, System
from planner_models.circuitflows import (
    bound,
    execution,
    explain,
    generate,
    operate,
    packets,
    placement,
    tune,
    weeks,
)
from planner_models.circuitflows.check import check
from planner_models.circuitflows.designs import DESIGNS
from planner_models.circuitflows.draw import draw
from planner_models.circuitflows.measure import METRICS, measure
from planner_models.circuitflows.plan import PLAN_TABLES, Operation, from_tables
from planner_models.circuitflows.problem import TABLES, FlowsInTime
from planner_models.circuits.racks import require_fit


def adjust(
    problem: FlowsInTime,
    *,
    scale: Annotated[float, Field(gt=0, description="every flow's bytes are multiplied by this")] = 1.0,
    night_us: Annotated[
        Annotated[float, Field(ge=0, allow_inf_nan=False)] | None,
        Field(description="time to change circuits, us; none: as given"),
    ] = None,
    circuit_scale: Annotated[
        float, Field(gt=0, allow_inf_nan=False, description="every circuit's rate is multiplied by this")
    ] = 1.0,
    packet_scale: Annotated[
        float,
        Field(
            ge=0,
            allow_inf_nan=False,
            description="the packet switch's rates are multiplied by this; 0: it has failed",
        ),
    ] = 1.0,
) -> FlowsInTime:
    """The problem with its flows scaled, over other switches.

    Without a packet switch, replies need circuits back, unless they go around (`reply_bytes` 0).

    raises  InputError for a night that, with the shortest day, does not fit the week
    """
    if night_us is not None:
        require_fit(
            night_us=night_us,
            shortest_day_us=problem.of("shortest_day_us"),
            week="week_us",
            week_us=problem.of("week_us"),
        )
    faster = problem.scaled(scale).with_rates(circuit=circuit_scale, packet=packet_scale)
    return faster.with_night(night_us)


COORDINATION = Coordination(
    scenario="circuitflows/coordination",
    performance="delivered_gb",
    cost="small_p99_ms",
    responsiveness="small_median_ms",
    blurs=(
        Blur(
            kind="age",
            parameter="age_us",
            values=(0.0, 1_000.0, 5_000.0, 10_000.0, 20_000.0, 50_000.0),
            unit="us",
            about="how long reports take to get to the scheduler, which plans weeks of 2 ms; big flows keep "
            "their pairs of racks, so that most that is lost is the time before the first report",
        ),
        Blur(
            kind="noise",
            parameter="noise",
            values=(0.0, 0.3, 1.0, 2.0, 3.0),
            about="standard deviation of the logarithm of each amount reported",
            seeds=2,
        ),
        Blur(
            kind="grain",
            parameter="grain_bytes",
            values=(0.0, 100_000.0, 500_000.0, 1e6, 2e6, 1e7),
            unit="bytes",
            about="amounts are reported in whole steps of this, rounded up",
        ),
    ),
)
SYSTEM = System(
    name="circuitflows",
    question="How do flows fare in a reconfigurable datacenter, week after week?",
    source="Mukerjee 2018, chapter 2 (Etalon)",
    tables=TABLES,
    plan_tables=PLAN_TABLES,
    from_tables=FlowsInTime.from_tables,
    presets={"mixed": generate.mixed, "strobe": generate.strobe, "dfsio": generate.dfsio},
    adjust=adjust,
    designs=DESIGNS,
    metrics=METRICS,
    check=check,
    measure=measure,
    plan_from_tables=from_tables,
    formulation=placement.formulation,
    explain=explain.explain,
    draw=draw,
    trade_off=("latency_p99_us", "circuit_utilization"),
    coordination=COORDINATION,
)

__all__ = [
    "SYSTEM",
    "FlowsInTime",
    "Operation",
    "bound",
    "check",
    "execution",
    "explain",
    "generate",
    "measure",
    "operate",
    "packets",
    "placement",
    "tune",
    "weeks",
]
