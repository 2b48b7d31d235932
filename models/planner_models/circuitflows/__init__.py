r"""Circuit flows: how do flows fare in a reconfigurable datacenter, week after week?

System `circuits` schedules one week for a demand. Here many weeks are simulated: TCP flows come and go,
packets wait in the racks' queues, and a scheduler plans each week from an observation of them: the lengths
of shallow queues (reaction) or reports of applications (transparency). In the thesis' words, a *week* is
the window that a schedule fills, a *day* one configuration of circuits, a *night* the reconfiguration
before it. Queues that are enlarged before a circuit, and senders to which circuits are signalled (reTCP),
use circuits better. Flows to `any` rack are placed by the plan, as a distributed file system places
replicas: `block_placement` has that formulation.

Hosts run one congestion control (`control`), each from its source, in `plan.packets.controls`:

- `reno` (RFC 5681), as Linux 4.4 has it; with `alpha` and `beta` it is reTCP (Mukerjee 2018, 2.4.4).
- `cubic` (RFC 9438): the window is a cubic function of the time since the last loss.
- `dctcp` (RFC 8257): queues mark packets from `mark_packets` on; the share of marks cuts the window.
- `bbr`, version 1 (Cardwell et al., 2017): packets are paced by a model of the path's rate and delay.
- `tdtcp` (Chen et al., SIGCOMM 2022): a window for each path, the packet switch and the circuit. Read from
  the paper's abstract and its authors' kernel, with Reno's rules on each path; hosts know of a circuit at
  once.

Scenario `circuitflows/controls` compares them on the week of Fig. 2.5, over queues of 16 packets.

Table 2.2 of the thesis, run in full: of 68 rows 48 are reproduced, 16 are in order, and 4 are not reproduced;
before the flows, hosts and packet switch of the published emulator were followed, 40 were not. The four are
the median of big flows under `adu`, its gain over `voq`, and two rows of `fixed` that are 16 to 18% away, but
10 to 13% under another order of the events of one instant, which the thesis does not name. How-to page
`congestion` has each reason in a line.

A flow may have a time to live (`life_us`), after which it is killed; its completion time is then that. The
preset `etalon` has the flows of the thesis' emulator one for one, and the rules of its hosts.

Tables: `racks(rack, hosts, circuit_mbps, packet_mbps, failed?)`, `flows(flow, source_rack, target_rack,
host, start_us, bytes, after)` and `network(...)` in one row; 1 Mbit/s is 1 bit/us. A plan is the record of
a run: `configurations(day, start_us, duration_us, source_rack, target_rack)`, `queues(at_us, source_rack,
target_rack, packets)`, `settings(queue_packets, alpha, beta, packet_mbps, control?, mark_packets?,
rtt_window_us?, simulated_us?)` and `placement(flow, target_rack)`. Packets are followed one by one
(`packets`), not as a fluid. `upper_bound` bounds the data that any plan can deliver. Reports to the
scheduler may be old, noisy or coarse (`information`).

Source: Mukerjee 2018, chapter 2 (Etalon).

>>> from planner_models import circuitflows
>>> problem = circuitflows.problem.generators.mixed(racks=4, rings=1, horizon_us=20_000.0)
>>> decision = circuitflows.designs.operation.run_fixed_schedule(problem, shifts=(1,))
>>> figures = circuitflows.measure(problem, decision.plan, None)
>>> figures["duty_cycle"]
0.99
"""

from __future__ import annotations

from planner.contract.degradation import Degradation
from planner.contract.metrics import Headline
from planner.contract.studies import Coordination
from planner.contract.system import PlanType, ProblemType, Studies, System
from planner_models.circuitflows import designs, information, plan, problem, published
from planner_models.circuitflows.designs import DESIGNS, block_placement, what_if
from planner_models.circuitflows.plan.check import check
from planner_models.circuitflows.plan.metrics import METRICS, measure
from planner_models.circuitflows.plan.plan import PLAN_TABLES, Operation, from_tables
from planner_models.circuitflows.plan.presentation import ELEMENTS, draw, draw_flows
from planner_models.circuitflows.problem import flow_records, generators
from planner_models.circuitflows.problem.adjustments import adjust
from planner_models.circuitflows.problem.generators import from_flows
from planner_models.circuitflows.problem.problem import TABLES, FlowsInTime
from planner_models.circuitflows.published import TARGETS
from planner_models.flowrecords.recognition import recognized_by

COORDINATION = Coordination(
    scenario="circuitflows/coordination",
    performance="delivered_gb",
    cost="small_p99_ms",
    responsiveness="small_median_ms",
    instances=({"problem.rings": 1}, {"problem.rings": 3}),
    degradations=(
        Degradation(
            kind="age",
            parameter="age_us",
            values=(0.0, 1_000.0, 5_000.0, 10_000.0, 20_000.0, 50_000.0),
            unit="us",
            about="time that reports take to the scheduler, which plans weeks of 2 ms; big flows keep their "
            "pairs of racks, so that most of the loss is the time before the first report",
        ),
        Degradation(
            kind="noise",
            parameter="noise",
            values=(0.0, 0.3, 1.0, 2.0, 3.0),
            about="standard deviation of the logarithm of each amount reported",
            seeds=2,
        ),
        Degradation(
            kind="granularity",
            parameter="granularity_bytes",
            values=(0.0, 100_000.0, 500_000.0, 1e6, 2e6, 1e7),
            unit="bytes",
            about="amounts are reported in whole steps of this, rounded up",
        ),
    ),
)
SYSTEM = System(
    name="circuitflows",
    title="Flows over circuits",
    area="datacenter",
    question="How do flows fare in a reconfigurable datacenter, week after week?",
    source="Mukerjee 2018, chapter 2 (Etalon)",
    problem=ProblemType(
        type=FlowsInTime,
        tables=TABLES,
        from_tables=FlowsInTime.from_tables,
        sources={"flow_records": recognized_by(flow_records.read_records, needs_network=False)},
        presets={
            "mixed": generators.mixed,
            "etalon": generators.etalon,
            "strobe": generators.strobe,
            "dfsio": generators.dfsio,
        },
        adjust=adjust,
        draw=draw_flows,
        elements=ELEMENTS,
        sample=generators.sample,
    ),
    plan=PlanType(
        tables=PLAN_TABLES,
        from_tables=from_tables,
        check=check,
        metrics=METRICS,
        measure=measure,
        draw=draw,
        headline=Headline(
            metric="delivered_gb",
            verb="delivers",
            total="offered_gb",
            losses={"undelivered_gb": "leaves {} undelivered at the end"},
            fallbacks={"unsimulated_ms": "leaves out the last"},
            table=(
                "delivered_gb",
                "undelivered_gb",
                "simulated_ms",
                "finished_share",
                "small_p99_ms",
                "big_p99_ms",
                "latency_p99_us",
                "circuit_utilization",
            ),
        ),
        limits={
            "night": "days too early",
            "shortest_day": "days too short",
            "horizon": "days after the end",
            "packet_rate": "links set too fast",
        },
    ),
    designs=DESIGNS,
    best=("placement_optimum", "resize_tuned", "data_units", "rehdfs", "queues"),
    formulation=block_placement.formulation,
    closed="its designs control rates of flows in time, and none of them solves a program",
    studies=Studies(
        what_if=what_if.explain,
        trade_off=("latency_p99_us", "circuit_utilization"),
        coordination=COORDINATION,
        targets=TARGETS,
    ),
)

__all__ = [
    "SYSTEM",
    "FlowsInTime",
    "Operation",
    "check",
    "designs",
    "from_flows",
    "information",
    "measure",
    "plan",
    "problem",
    "published",
]


def __dir__() -> list[str]:
    return __all__
