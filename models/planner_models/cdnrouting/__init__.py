r"""CDN and routing: which server serves which clients, over which routes?

A content delivery network (CDN) selects the cluster of servers for each client, and the operator of a
network (ISP) the routes of all traffic. Each has its own view and its own goal, and changes what the
other one sees. The system measures what is lost where both only react, and what each way to coordinate
wins back.

Formulation, for servers $s$ with capacity $K_s$, clients $i$ with traffic $d_i$, links $e$ of capacity
$c_e$ and latency $t_e$, and traffic $f_{et}$ to target $t$, with load $l_e = \sum_t f_{et}$ and
utilization $u_e = l_e / c_e$:

$$\min \sum_e l_e \bigl(t_e + q(u_e)\bigr) \quad\text{s.t.}\quad
\sum_s x_{si} = d_i,\quad \sum_i x_{si} \le K_s,\quad
\text{out} - \text{in} = B_{vt} + x_{vt} \text{ at each node } v \ne t$$

where $B$ is background traffic and $q(u) = q_1 u / (1 - u)$ is the delay of a queue, continued by its
tangent from 95% on. That is design `joint`. The CDN alone minimizes the delay of its own traffic, for
given routes; the ISP alone the congestion $\sum_e c_e \Phi(u_e)$ of Fortz and Thorup 2000, for given
traffic. `formulation` is the joint problem in Pyomo; it is solved by column generation with tangents,
whose bound is the reference of every plan.

Designs: `separate` does not coordinate; in `react_blind` and `react_informed` both parties move in turns;
in `isp_ranks` the ISP ranks clusters for each location (P4P, ALTO); in `cdn_options` the CDN offers its
first clusters and the ISP selects; in `hierarchical` the CDN fixes the totals of clusters; `bargain`
finds a plan that is better for both than their reaction; `joint` knows all. A reaction that does not come
to rest has a plan of several states, and its metrics are means over them.

Tables: `nodes(node)`, `links(tail, head, capacity_mbps, latency_ms, weight?, cost?)`, `demands(source,
target, rate_mbps)` of background traffic, `clients(location, content, bitrate_kbps, clients)`,
`clusters(cluster, location, capacity_mbps)`, `places(location, node, share?)`, and optionally
`holdings(cluster, content)`, `ranks(who, location, cluster, rank, price?)` and `terms(queueing_ms?,
performance_weight?, cdn_rounds?, step?)`. A plan is `assignments(location, content, cluster, mbps)`,
`routes(target, tail, head, parallel?, share)`, of a reaction `rounds(move, round, mover, moved_mbps,
isp_cost, cdn_delay_ms, mean_delay_ms, max_utilization)`, of a bargain `outcome(isp_cost, cdn_delay_ms)` of
the reaction and `front(weight, isp_cost, cdn_delay_ms)`, and where capacity is short `shed(location, content,
mbps)`.

>>> from planner_models import cdnrouting
>>> problem = cdnrouting.problem.generators.small()
>>> decision = cdnrouting.designs.joint.plan(problem)
>>> decision.proof.status, round(decision.proof.objective, 2)
(<Status.OPTIMAL: 'optimal'>, 4.27)
"""

from __future__ import annotations

from planner.contract.degradation import Degradation
from planner.contract.plausibility import Proportion
from planner.contract.studies import Coordination
from planner.contract.system import PlanType, ProblemType, Studies, System
from planner_models.cdnrouting import designs, plan, problem
from planner_models.cdnrouting.designs import DESIGNS
from planner_models.cdnrouting.designs.formulation import formulation
from planner_models.cdnrouting.designs.what_if import explain
from planner_models.cdnrouting.information import realize
from planner_models.cdnrouting.plan.check import check
from planner_models.cdnrouting.plan.metrics import HEADLINE, LIMITS, METRICS, measure
from planner_models.cdnrouting.plan.plan import PLAN_TABLES, DeliveryPlan, from_tables
from planner_models.cdnrouting.plan.presentation import ELEMENTS, draw
from planner_models.cdnrouting.problem.adjustments import adjust
from planner_models.cdnrouting.problem.drawing import draw as draw_problem
from planner_models.cdnrouting.problem.generators import PRESETS, small
from planner_models.cdnrouting.problem.problem import Delivery
from planner_models.cdnrouting.problem.schema import OPTIONAL_TABLES, TABLES
from planner_models.cdnrouting.problem.sources import SOURCES
from planner_models.cdnrouting.simulation import SIMULATION

SYSTEM = System(
    name="cdnrouting",
    title="CDN and routing",
    area="delivery",
    question="Which server serves which clients, over which routes?",
    source="Mukerjee 2018, 1.1 and Table 1.1; Jiang et al. 2009",
    problem=ProblemType(
        type=Delivery,
        tables=TABLES,
        optional_tables=OPTIONAL_TABLES,
        from_tables=Delivery.from_tables,
        sources=SOURCES,
        proportions=(Proportion(column="demands.rate_mbps", to="links.capacity_mbps", at_most=1e4),),
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
        realize=realize,
        draw=draw,
        headline=HEADLINE,
        limits=LIMITS,
    ),
    designs=DESIGNS,
    best=("joint",),
    formulation=formulation,
    closed="its delays are not linear, and its search adds their tangents as it needs them",
    studies=Studies(
        what_if=explain,
        practice="react_blind",
        practice_name="CDN and ISP that only react",
        simulation=SIMULATION,
        trade_off=("isp_cost", "cdn_delay_ms"),
        coordination=Coordination(
            scenario="cdnrouting/coordination",
            performance="mean_delay_ms",
            cost="isp_cost",
            instances=({"problem.link_mbps": 10_000}, {"problem.clusters": 6, "problem.cdn_share": 0.7}),
            degradations=(
                Degradation(
                    kind="age",
                    parameter="age_s",
                    values=(0.0, 300.0, 900.0, 3600.0, 14400.0),
                    unit="s",
                    about="age of the reported rates of traffic",
                    seeds=10,
                ),
                Degradation(
                    kind="noise",
                    parameter="noise",
                    values=(0.0, 0.1, 0.2, 0.4),
                    about="standard deviation of the logarithm of each reported rate",
                    seeds=10,
                ),
            ),
        ),
    ),
)

__all__ = [
    "SYSTEM",
    "Delivery",
    "DeliveryPlan",
    "check",
    "designs",
    "formulation",
    "measure",
    "plan",
    "problem",
]


def __dir__() -> list[str]:
    return __all__
