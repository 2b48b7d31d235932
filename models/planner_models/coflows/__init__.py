r"""Coflows: when is each group of flows of a datacenter complete?

A *coflow* is a group of flows of one application, such as the shuffle of a MapReduce job; it is complete when
its last flow is. Coflows arrive in time. Racks are connected by circuit switches, over which a port of a rack
has one circuit at a time and is dark for $\delta$ while one is set up, and by a packet switch, which shares
links at any rates. Which circuits, or which rates, complete coflows soonest in the mean?

$$\min \frac{1}{|C|} \sum_{c \in C} \left(\max_{f \in c} e_f - r_c\right)$$

for the arrival $r_c$ of coflow c and the time $e_f$ at which flow f is complete. Circuits are *asynchronous*:
each is set up and torn down alone, and other circuits go on meanwhile. Two ports that were connected to each
other last stay connected, and need no set-up. System `circuits` schedules one window in which all circuits
change together; its schedulers run here window after window (`solstice`, `eclipse`, `most_served`), fed by
coflows, with what is left over carried on. `hybrid` divides each coflow between circuits and the packet
switch. `lower_bounds` proves bounds that no plan beats.

For circuits a and b that share a port, with start $s$, length $l$, and $y_{ab} = 1$ where a is before b:

$$s_b \ge s_a + l_a + \delta (1 - g_{ab}) - M (1 - y_{ab}),\quad
\sum_{a \in f} l_a = b_f / u_f,\quad s_a \ge \max(r_c, \delta)$$

where $g_{ab} = 1$ if both have the same two ports and no other circuit is between them. `formulation` is this
ordering program in Pyomo, `optimum` solves it where there are few flows; where there are many, local search
over the order of coflows gives a plan and its bound. Where `hybrid` or `sebf` completes coflows sooner with
the packet switch, `optimum` takes their plan, with the bound on all plans. Reports of coflows may be late,
noisy or coarse (`information`); the packet switch then carries what circuits leave.

Means are by `weight`, where coflows have weights. Coflows may have a deadline. `admission` admits a coflow
that can meet it beside those admitted before, and keeps rates for these, as Varys does; `edf` sends the
earliest deadline first; `most_deadlines` searches for the plan that meets most, by weights, and bounds what
the packet switch can meet:

$$\max \sum_c w_c z_c \quad\text{s.t.}\quad \sum_{c:\, r_c \ge a,\, d_c \le b} t_{cp} z_c \le b - a
\quad\forall p, a < b,\qquad z_c \in \{0, 1\}$$

for deadlines $d_c$ and times $t_{cp}$ of coflow c on link p: a necessary condition on each link alone.

Tables: `racks(rack, circuit_mbps, packet_mbps, failed?)`, `coflows(coflow, arrival_ms, weight?,
deadline_ms?)`, `flows(coflow, source_rack, target_rack, bytes)` and `switch(setup_ms, circuit_switches?)` in
one row. A plan is `circuits(coflow, source_rack, target_rack, start_ms, end_ms, switch?)`, and for the packet
switch `priorities(at_ms, coflow, priority, due_ms?)` and `settings(sharing, interval_ms)`, by which it shares
its links. The packet switch carries what circuits leave of each flow.

Source: Huang, Sun, Ng 2016 (Sunflow).

>>> from planner_models import coflows
>>> problem = coflows.problem.generators.mapreduce(racks=4, coflows=6, seed=1)
>>> decision = coflows.designs.sunflow.schedule(problem)
>>> round(decision.proof.objective), round(decision.proof.bound)
(639, 586)
"""

from __future__ import annotations

from planner.contract.degradation import Degradation
from planner.contract.metrics import Headline
from planner.contract.studies import Coordination
from planner.contract.system import PlanType, ProblemType, Studies, System
from planner_models.coflows import designs, information, plan, problem
from planner_models.coflows.designs import DESIGNS
from planner_models.coflows.designs.formulation import formulation
from planner_models.coflows.designs.what_if import explain
from planner_models.coflows.information import realize
from planner_models.coflows.plan.check import check
from planner_models.coflows.plan.metrics import METRICS, measure
from planner_models.coflows.plan.plan import PLAN_TABLES, Service, from_tables
from planner_models.coflows.plan.presentation import ELEMENTS, draw
from planner_models.coflows.problem import flow_records, generators, readers
from planner_models.coflows.problem.adjustments import adjust
from planner_models.coflows.problem.drawing import draw_flows
from planner_models.coflows.problem.problem import TABLES, CoflowsInTime
from planner_models.flowrecords.recognition import recognized_by

COORDINATION = Coordination(
    scenario="coflows/coordination",
    performance="mean_completion_ms",
    cost="setups",
    instances=({"problem.racks": 8}, {"problem.coflows": 20}),
    degradations=(
        Degradation(
            kind="age",
            parameter="age_ms",
            values=(0.0, 10.0, 50.0, 200.0, 1_000.0),
            unit="ms",
            about="time from the arrival of a coflow until it is known; one arrives every 0.1 s in the mean",
        ),
        Degradation(
            kind="noise",
            parameter="noise",
            values=(0.0, 0.1, 0.3, 1.0, 2.0),
            about="standard deviation of the logarithm of each flow's size as reported",
            seeds=3,
        ),
        Degradation(
            kind="granularity",
            parameter="granularity_bytes",
            values=(0.0, 1e5, 1e6, 1e7, 1e8),
            unit="bytes",
            about="sizes of flows are reported in whole steps of this, rounded up",
        ),
    ),
)
SYSTEM = System(
    name="coflows",
    title="Coflow scheduling",
    area="datacenter",
    question="When is each group of flows of a datacenter complete?",
    source="Huang, Sun, Ng 2016 (Sunflow)",
    problem=ProblemType(
        type=CoflowsInTime,
        tables=TABLES,
        from_tables=CoflowsInTime.from_tables,
        sources={
            "trace": readers.read_trace,
            "htsim": readers.read_htsim,
            "flow_records": recognized_by(flow_records.read_records, needs_network=False),
        },
        presets={"mapreduce": generators.mapreduce},
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
        realize=realize,
        draw=draw,
        headline=Headline(
            metric="mean_completion_ms",
            verb="completes coflows in {} in the mean",
            losses={
                "incomplete_coflows": "leaves {} incomplete",
                "missed_deadlines": "misses the deadlines of",
            },
            worst=("incomplete_coflows",),
            table=(
                "mean_completion_ms",
                "p95_completion_ms",
                "median_completion_ms",
                "mean_slowdown",
                "deadlines_met",
                "missed_deadlines",
                "incomplete_coflows",
                "circuit_gb",
                "packet_gb",
                "setups",
            ),
        ),
        limits={
            "ports": "circuits on busy ports",
            "setup": "circuits too early",
            "arrival": "circuits before their coflow",
            "coverage": "incomplete coflows",
        },
    ),
    designs=DESIGNS,
    best=("optimum", "hybrid", "sunflow"),
    formulation=formulation,
    closed="its program orders the circuits of a dozen flows; larger problems have searches "
    "and bounds in its place",
    studies=Studies(what_if=explain, coordination=COORDINATION),
)

__all__ = [
    "SYSTEM",
    "CoflowsInTime",
    "Service",
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
