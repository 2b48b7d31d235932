r"""Circuits: when should a reconfigurable datacenter connect which racks?

A packet switch connects all n racks at a low rate. A circuit switch connects pairs of racks at a
high rate, one circuit a rack each way: a matching. In the thesis' words, a *day* is one such configuration
of circuits, a *night* is the reconfiguration before it, in which all circuits are dark, and a *week* is the
window that a schedule of days fills. Which matchings, for how long, serve the most demand within a week
$W$, or all of it soonest? This system schedules one week; system `circuitflows` runs many.

Formulation, after Venkatakrishnan et al. 2016 (Eclipse), for demand $D$, circuit rates $u$, packet
rates $p$, night $\delta$, and days of length $t_M$ for matchings $M$ that are used ($z_M = 1$):

$$\max \sum_{ij} X_{ij} + Y_{ij} \quad\text{s.t.}\quad
X_{ij} \le u_{ij} \sum_{M \ni ij} t_M,\quad X + Y \le D,\quad
\sum_M t_M + \delta z_M \le W,\quad t_M \le W z_M,\quad
\sum_j Y_{ij} \le p_i W,\; \sum_i Y_{ij} \le p_j W$$

`formulation` is that model in Pyomo; `optimum.schedule` solves it by column generation where all
maximal matchings of the demand can be listed (`column_generation`), else by simulated annealing with a
proven bound (`upper_bound`). Where there are several circuit switches, or only circuits that change are dark,
an integer program over days in succession proves small cases (`day_program`). The bound holds
for the packet switch as a fluid that works by day and by
night. An observation of the demand may be limited by queues, old, noisy or coarse (`information`); the
circuits that are scheduled on it serve the true demand.

With `circuit_targets` of 2 and more, a sender's circuit may go to so many racks at once, as optical
splitters make it; racks still receive over one circuit each. Such a circuit carries data of multicasts
alone, at the rate of its slowest link, and all its racks receive what is sent. The plan says which bits
(`transmissions`); a rack that has them already gains nothing. Designs `multicast` and `optimum` make such
circuits (`multicast_program`, `multicast_formulation`); all others serve each copy as a demand of its own,
and so does the packet switch.

Tables: `racks(rack, circuit_mbps, packet_mbps, failed?)`, `demands(source_rack, target_rack, bits)`,
`switch(night_us, window_us?, shortest_day_us?, circuit_switches?, dark?, circuit_targets?)` and optionally
`coflows(coflow, source_rack, target_rack, bits)` or
`multicasts(multicast, source_rack, target_rack, bits)`, a row a target; 1 Mbit/s is 1 bit/us. A plan is
`configurations(day, start_us, duration_us, source_rack, target_rack)` (with `switch` where there are
several), `packet(source_rack, target_rack, bits)` and, for the switches, the port map
`ports(switch, start_us, end_us, input_port, output_port)` and
`transmissions(day, multicast, first_bit, bits)`.

>>> from planner_models import circuits
>>> problem = circuits.problem.generators.rings(racks=8, count=2)
>>> decision = circuits.designs.solstice.schedule(problem)
>>> decision.plan.configurations.groupby("day")["duration_us"].first().round().tolist()
[1000.0, 960.0]
>>> decision.proof.metric, round(float(decision.proof.objective * problem.window_us / problem.bits.sum()), 6)
('served_mbps', 1.0)
"""

from __future__ import annotations

from planner.contract.degradation import Degradation
from planner.contract.metrics import Headline
from planner.contract.studies import Coordination
from planner.contract.system import PlanType, ProblemType, Studies, System
from planner_models.circuits import designs, information, plan, problem
from planner_models.circuits.designs import DESIGNS
from planner_models.circuits.designs.formulation import formulation
from planner_models.circuits.designs.what_if import explain
from planner_models.circuits.information import realize
from planner_models.circuits.plan.check import check
from planner_models.circuits.plan.metrics import METRICS, measure
from planner_models.circuits.plan.plan import PLAN_TABLES, Schedule, from_tables
from planner_models.circuits.plan.presentation import ELEMENTS, draw
from planner_models.circuits.problem import flow_records, generators, readers
from planner_models.circuits.problem.adjustments import adjust
from planner_models.circuits.problem.drawing import draw_demand
from planner_models.circuits.problem.problem import OPTIONAL_TABLES, TABLES, Circuits
from planner_models.flowrecords.recognition import recognized_by

COORDINATION = Coordination(
    scenario="circuits/coordination",
    performance="served_mbps",
    cost="configurations",
    instances=({"problem.racks": 32}, {"problem.load": 0.6}),
    degradations=(
        Degradation(
            kind="age",
            parameter="age_us",
            values=(0.0, 500.0, 2_000.0, 5_000.0, 15_000.0, 50_000.0),
            unit="us",
            about="the demand is observed as it was so long ago; a demand lasts 15 ms in the mean",
            seeds=3,
        ),
        Degradation(
            kind="noise",
            parameter="noise",
            values=(0.0, 0.1, 0.3, 1.0, 2.0),
            about="standard deviation of the logarithm of each amount observed",
            seeds=3,
        ),
        Degradation(
            kind="granularity",
            parameter="granularity_bytes",
            values=(0.0, 100_000.0, 500_000.0, 1e6, 2e6, 5e6),
            unit="bytes",
            about="amounts are observed in whole steps of this, rounded up",
        ),
    ),
)
SYSTEM = System(
    name="circuits",
    title="Circuit scheduling",
    area="datacenter",
    question="When should a reconfigurable datacenter connect which racks?",
    source="Mukerjee 2018, chapter 2 (Etalon)",
    problem=ProblemType(
        type=Circuits,
        tables=TABLES,
        optional_tables=OPTIONAL_TABLES,
        from_tables=Circuits.from_tables,
        sources={
            "matrix": readers.read_matrix,
            "edges": readers.read_pairs,
            "flows": readers.read_flows,
            "coflow": readers.read_coflows,
            "flow_records": recognized_by(flow_records.read_records, needs_network=False),
        },
        series={
            "coflow_windows": readers.read_coflow_windows,
            "flow_windows": readers.read_flow_windows,
            "flow_record_windows": flow_records.read_record_windows,
        },
        presets={make.__name__: make for make in generators.PRESETS},
        adjust=adjust,
        draw=draw_demand,
        elements=ELEMENTS,
        sample=generators.sample,
    ),
    plan=PlanType(
        tables=PLAN_TABLES,
        from_tables=from_tables,
        check=check,
        metrics=METRICS,
        measure=measure,
        realize=realize,
        draw=draw,
        headline=Headline(
            metric="served_mbps",
            verb="serves",
            total="offered_mbps",
            losses={"unserved_bits": "leaves {} unserved at the end of the week"},
            table=(
                "served_mbps",
                "served_share",
                "unserved_bits",
                "circuit_share",
                "done_us",
                "configurations",
                "duty_cycle",
                "coflow_mean_us",
            ),
        ),
        limits={
            "night": "days too early",
            "shortest_day": "days too short",
            "window": "days after the week",
            "packet": "overloaded links",
            "demand": "pairs served twice",
            "coverage": "pairs not served",
            "unserved": "pairs listed with false unserved demand",
            "transmission": "circuits that are to send too much",
        },
    ),
    designs=DESIGNS,
    best=("optimum", "search", "eclipse", "solstice"),
    formulation=formulation,
    closed="its program has a variable for each matching that a search found, and none for "
    "those that a constraint may need",
    studies=Studies(what_if=explain, coordination=COORDINATION),
)

__all__ = [
    "SYSTEM",
    "Circuits",
    "Schedule",
    "check",
    "designs",
    "formulation",
    "information",
    "measure",
    "plan",
    "problem",
]


def __dir__() -> list[str]:
    return __all__
