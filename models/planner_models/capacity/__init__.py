r"""Capacity: which capacity must be bought, and where, so that all demands fit?

A network has demands between its nodes, links with the capacity of today, links that could be built, and a
price list of modules. A plan says which modules to buy for which link, so that all demands fit at once, also
under every failure of a set, at the least cost. Under a failure all demands may take other routes.

Formulation, after Orlowski et al. 2010 (SNDlib), for links $l$ with installed capacity $C_l$, modules $m$ of
size $a_m$ and cost $c_m$, setup costs $s_l$, routing costs $r_l$, and states $\sigma$: the one without
failures, $\sigma = 0$, and one for each failure:

$$\min \sum_{l,m} c_{lm} n_{lm} + \sum_l s_l z_l + \sum_l r_l \sum_k f^k_{l0} \quad\text{s.t.}\quad
\sum_k f^k_{l\sigma} \le C_l + \sum_m a_m n_{lm} \;\forall \sigma,\, l \notin \sigma,\quad
n_{lm} \le \bar n_{lm} z_l,\quad n \text{ whole}$$

where $f^k_{\cdot\sigma}$ routes all demands to target $k$ along any routes. A link is for both directions,
which share its capacity (`direction = "undirected"`, where nothing else is said) or have it each
("bidirected"), or "directed". Tables in which every row of links has its opposite must say which. Of the
modules of a link there may be any number or one. In several years, demands grow and prices change; what is
bought stays, and what is leased is paid in each year that it is there. Links may have a largest utilization
$u_\sigma$, one without failures and one after them, which multiplies the capacity in that state. With a
budget, the plan delivers the most demand in the worst state, then at the least cost.

Demands may have classes: in a failure only the protected share of each demand of a class must fit. Where
capacity is short, the lowest priority is left out first. Demands with tunnels take these paths only, in
every state, and demands with a latency limit the paths within it; where a failure takes all of them, the
demand is cut off.

`optimum` optimises over all whole numbers of modules within their limits, in every year, with any routes
(any split over tunnels, where demands have some) in every state. Without a budget, it is the least cost of
the plans that leave no more unserved in each state than buying everything would; within a budget, the most
demand in the worst state, then the least cost. What a failure cuts off whatever is bought is said first and
counts as no loss of a plan.

`formulation` is that model in Pyomo; `optimum` solves it over the purchases alone, by cuts from the linear
programs of what does not fit in a state. The check solves those programs again for every failure. Source
`sndlib` reads files of SNDlib.

Tables: `nodes(node, latitude?, longitude?, x?, y?)`, `links(tail, head, capacity_mbps, link?,
installed_cost?, setup_cost?, setup_cost_per_km?, routing_cost?, length_km?, latency_ms?)`, `candidates(tail,
head, setup_cost, setup_cost_per_km?, routing_cost?, length_km?, latency_ms?, link?)`, `modules(module,
capacity_mbps, cost, cost_per_km?, max_count?, link?, tenure?)`, `demands(source, target, rate_mbps, growth?,
max_latency_ms?, class?, year?)`, `classes(class, priority, protected_share?, growth?)`, `tunnels(path,
source?, target?, parallel?, name?)`, `failures(failure, member, probability?)`, `years(year, demand_factor,
price_factor?)` and `network(direction?, modules_per_link?, budget?, max_utilization?,
max_utilization_failed?)`. A plan is `purchases(link, module, count, added_mbps, cost, setup_cost, year?)`,
`flows(target, link, tail, rate_mbps, year?)` without failures, `tunnel_flows(tunnel, rate_mbps, year?)` of
demands with tunnels or latency limits and, where demand is left out, `unserved(source, target, class?,
rate_mbps, year?)`.

>>> import pandas as pd
>>> from planner_models import capacity
>>> problem = capacity.CapacityPlanning.from_tables({
...     "links": pd.DataFrame(
...         [("a", "b", 10.0), ("b", "c", 10.0), ("a", "c", 0.0)], columns=["tail", "head", "capacity_mbps"]
...     ),
...     "modules": pd.DataFrame([("10M", 10.0, 4.0)], columns=["module", "capacity_mbps", "cost"]),
...     "demands": pd.DataFrame([("a", "c", 15.0)], columns=["source", "target", "rate_mbps"]),
... })
>>> decision = capacity.designs.optimum.plan(problem)
>>> decision.plan.purchases[["link", "count", "cost"]].to_numpy().tolist()
[['a<->c', 1.0, 4.0]]
>>> decision.proof.status, decision.proof.bound
(<Status.OPTIMAL: 'optimal'>, 4.0)
"""

from __future__ import annotations

from planner.contract.plausibility import Proportion
from planner.contract.system import PlanType, ProblemType, Studies, System
from planner_models.capacity import designs, plan, problem
from planner_models.capacity.designs import DESIGNS
from planner_models.capacity.designs.formulation import formulation
from planner_models.capacity.designs.what_if import explain
from planner_models.capacity.plan.check import check
from planner_models.capacity.plan.metrics import HEADLINE, LIMITS, METRICS, break_down, measure
from planner_models.capacity.plan.plan import Purchases
from planner_models.capacity.plan.presentation import ELEMENTS, draw
from planner_models.capacity.plan.reading import from_tables
from planner_models.capacity.problem.adjustments import adjust
from planner_models.capacity.problem.directions import ask_direction
from planner_models.capacity.problem.drawing import draw as draw_problem
from planner_models.capacity.problem.generators import PRESETS, sample
from planner_models.capacity.problem.problem import CapacityPlanning
from planner_models.capacity.problem.readers import read_sndlib
from planner_models.capacity.problem.schema import OPTIONAL_TABLES, PLAN_TABLES, TABLES

SYSTEM = System(
    name="capacity",
    title="Capacity planning",
    area="wide area",
    question="Which capacity must be bought, and where, so that all demands fit?",
    source="Orlowski, Wessäly, Pióro and Tomaszewski 2010 (SNDlib)",
    problem=ProblemType(
        type=CapacityPlanning,
        tables=TABLES,
        optional_tables=OPTIONAL_TABLES,
        from_tables=CapacityPlanning.from_tables,
        proportions=(Proportion(column="demands.rate_mbps", to="modules.capacity_mbps", at_most=1e6),),
        sources={"sndlib": read_sndlib},
        presets=PRESETS,
        adjust=adjust,
        draw=draw_problem,
        elements=ELEMENTS,
        questions=ask_direction,
        sample=sample,
    ),
    plan=PlanType(
        tables=PLAN_TABLES,
        from_tables=from_tables,
        check=check,
        metrics=METRICS,
        measure=measure,
        breakdown=break_down,
        draw=draw,
        headline=HEADLINE,
        limits=LIMITS,
    ),
    designs=DESIGNS,
    formulation=formulation,
    studies=Studies(
        what_if=explain,
        practice="shortest_path",
        practice_name="modules along shortest paths",
        trade_off=("total_cost", "delivered_mbps"),
        instead={
            "simulate": "its plans are for years: give the table years, or --set problem.years=5",
        },
        budget="budget",
    ),
)

__all__ = [
    "SYSTEM",
    "CapacityPlanning",
    "Purchases",
    "check",
    "designs",
    "formulation",
    "measure",
    "plan",
    "problem",
]


def __dir__() -> list[str]:
    return __all__
