r"""Topology: how many links between which blocks, and which paths, carry the most demand for hours?

The blocks of a datacenter fabric have ports to optical circuit switches, which link any two ports. A plan
says how many links each two blocks have, the share of each demand that goes direct or by one transit block,
and the steps by which the links of today are changed while the rest carries the traffic.

Formulation, after Poutievski et al. 2022 (Jupiter), for demand $D_{ij}$, whole numbers of links
$n_{ij} = n_{ji}$ of rate $r_{ij}$ each way, the slower port's, and traffic $x_{ij}$ direct and $y_{ikj}$ by
transit block $k$; $1/t$ is the largest utilization:

$$\max t \quad\text{s.t.}\quad
x_{ij} + \sum_k y_{ikj} = t D_{ij},\quad
x_{ij} + \sum_b (y_{ijb} + y_{bij}) \le r_{ij} n_{ij},\quad
\sum_j n_{ij} \le P_i,\quad
\sum_{i<j} \max(0, n_{ij} - n^0_{ij}) \le M$$

where $n^0$ are the links of today and at most $M$ are made anew. `formulation` is that model in Pyomo.
`optimum` decomposes it: the relaxation over fractional links by column generation over transit paths, whose
prices give a bound on all topologies (Lagrangian relaxation); rounding within ports and moves; coordinate
descent for the routing over whole links; exchanges of links. For few blocks an integer program proves the
optimum. A step takes links out of service before it makes others; those that stay must carry the demand.

Tables: `blocks(block, ports, port_mbps)`, `demands(source, target, rate_mbps)`, and optionally the links of
today, `links(block, other_block, links)`, with `fabric(move_limit?, step_limit?)`. A plan is
`topology(block, other_block, links)`, `routes(source, target, via?, share)` and, where there are links today,
`steps(step, block, other_block, links)`.

>>> import pandas as pd
>>> from planner_models import topology
>>> problem = topology.Fabric.from_tables({
...     "blocks": pd.DataFrame({"block": ["a", "b", "c"], "ports": 4.0, "port_mbps": 10.0}),
...     "demands": pd.DataFrame(
...         [("a", "b", 30.0), ("b", "c", 10.0)], columns=["source", "target", "rate_mbps"]
...     ),
... })
>>> decision = topology.designs.optimum.plan(problem)
>>> decision.plan.topology["links"].tolist()
[2.0, 2.0, 2.0]
>>> decision.proof.status, round(decision.proof.bound, 6)
(<Status.OPTIMAL: 'optimal'>, 1.333333)
"""

from __future__ import annotations

from planner.contract.plausibility import Proportion
from planner.contract.system import PlanType, ProblemType, Studies, System
from planner_models.topology import designs, plan, problem
from planner_models.topology.designs import DESIGNS
from planner_models.topology.designs.formulation import formulation
from planner_models.topology.designs.what_if import explain
from planner_models.topology.plan.check import check
from planner_models.topology.plan.metrics import HEADLINE, LIMITS, METRICS, measure
from planner_models.topology.plan.plan import PLAN_TABLES, Topology, from_tables
from planner_models.topology.plan.presentation import ELEMENTS, draw
from planner_models.topology.problem.adjustments import adjust
from planner_models.topology.problem.drawing import draw as draw_problem
from planner_models.topology.problem.generators import PRESETS, small
from planner_models.topology.problem.problem import OPTIONAL_TABLES, TABLES, Fabric

SYSTEM = System(
    name="topology",
    title="Datacenter topology",
    area="datacenter",
    question="How many links between which blocks, and which paths, carry the most demand for hours?",
    source="Poutievski et al. 2022 (Jupiter); Wang et al. 2023 (TopoOpt)",
    problem=ProblemType(
        type=Fabric,
        tables=TABLES,
        optional_tables=OPTIONAL_TABLES,
        from_tables=Fabric.from_tables,
        proportions=(Proportion(column="demands.rate_mbps", to="blocks.port_mbps", at_most=1e6),),
        presets=PRESETS,
        adjust=adjust,
        draw=draw_problem,
        elements=ELEMENTS,
        sample=small,
    ),
    plan=PlanType(
        tables=PLAN_TABLES,
        from_tables=from_tables,
        check=check,
        metrics=METRICS,
        measure=measure,
        draw=draw,
        headline=HEADLINE,
        limits=LIMITS,
    ),
    designs=DESIGNS,
    formulation=formulation,
    studies=Studies(
        what_if=explain,
        practice="uniform",
        practice_name="a uniform mesh",
        trade_off=("moved_links", "demand_scale"),
    ),
)

__all__ = [
    "SYSTEM",
    "Fabric",
    "Topology",
    "check",
    "designs",
    "formulation",
    "measure",
    "plan",
    "problem",
]


def __dir__() -> list[str]:
    return __all__
