r"""Fair shares: where do partitions lie, and what share of each node does each tenant of a store get?

Tenants share a store of many nodes. Each has partitions, on as many nodes as it wants replicas; a router
sends requests to replicas, and nodes share their rate among tenants. Every tenant is due its weight's part of
the whole store, wherever its partitions are.

Formulation, for tenants $t$ with weights $w_t$ and rates $x_t$, partitions $p$ with demand $f_{tp}$, nodes
$n$ with rates $c_n$, and requests $y_{tpn}$ that replicas serve:

$$\operatorname{lex\,max\,min}_t\; \frac{x_t}{w_t} \quad\text{s.t.}\quad
x_t = \sum_{p,n} y_{tpn},\quad \sum_n y_{tpn} \le f_{tp},\quad \sum_{t,p} y_{tpn} \le c_n,\quad
y_{tpn} > 0 \text{ only for replicas}$$

This is a tenant of *elastic* mix: each partition is served up to its own demand. Its fair rates also have the
largest throughput. Requests of a tenant of *fixed* mix keep their proportions: $\sum_n y_{tpn} = s_{tp} x_t$
with $s_{tp} = f_{tp} / \sum_p f_{tp}$; the slowest partition holds back the others, and fairness may cost
throughput. `formulation` is the model in Pyomo, with placement.

A tenant's fair share is what it would get if the store were one pool of each resource. Levels rise together
until a resource of the pool is full, which holds the tenants that use it; those of the others rise on. A plan
has its least share as objective value: the least rate of a tenant over its fair share, at most 1.

Tenants may be in groups (table `groups`), and groups in groups: a group is due its weight's part of what the
group above it has, and shares that among its members. A tenant may have a reserved rate $b_t$ and a limit
$l_t$, as in mClock: side by side, tenants of a group are due $\min(l_t, \max(b_t, \lambda w_t))$ of the pool,
up to their demand, where $\lambda$ fills what the group has. Reserved rates come before the least share;
where replicas cannot keep all of them, rates are max-min fair over reserved ones first. Limits always hold.

`optimum` optimises over every placement within the rules and every split of requests over replicas (with
`splits = "even"` over even splits, with `placement = "keep"` over the placed replicas): the largest least
share first, then the least data that is copied, then the requests that are served. Its bound is on the least
share. Pins to nodes that have failed are set aside.

For given replicas, `optimum` is exact: maximum flows at the levels of ever smaller regions of the store,
which minimum cuts find, name the nodes that hold tenants back. Placement is by greedy insertion and
local search, and its bound is that of a store in one piece; a small problem is solved by an integer
program. Where table `resources` is given, a tenant's dominant resource counts, and levels are linear
programs. Reads and writes apart: with a tenant's `write_share`, nodes limit each by `read_kops` and
`write_kops`, and `write_cost` says how many requests of a node's rate a write counts as; these are
resources too, which every design shares. `rebalance` moves the least data for a load of nodes,
`least_moves` for the least share of `optimum`, both with a bound.
The other designs are the mechanisms of Pisces, one after the other: `fq` (fair queuing), `pp` (partition
placement), `wa` (weight allocation), `rs` (replica selection). Their rates are those of the steady state.
`planner simulate` runs the requests themselves: closed-loop tenants, queues of nodes (first come, first
served, or deficit round robin), and the controllers of a design, each at its own period.

Tables: `nodes(node, rate_kops, memory_gb, domain?, read_kops?, write_kops?, failed?)`, `tenants(tenant,
weight, mix, replicas?, most_nodes?, group?, reserved_kops?, limit_kops?, write_share?, write_cost?,
outstanding?)`, `partitions(tenant, partition, demand_kops, size_gb)` and optionally `groups(group,
parent?, weight)`, `resources(node, resource, capacity)`, `uses(tenant, resource, per_op)`,
`placed(tenant, partition, node)`, `pinned` and `forbidden` with the same columns, `events(at_s, tenant,
partition, demand_kops)` in time.
A plan is `placement(tenant, partition, replica, node)`, `serving(tenant, partition, node, kops, split)`,
`shares(tenant, node, kops, weight)`, `rates(tenant, kops, fair_share_kops, level)` and `service(queueing,
replica_choice)`.

>>> import pandas as pd
>>> from planner_models import fairshare
>>> problem = fairshare.SharedStore.from_tables({
...     "nodes": pd.DataFrame({"node": ["n1", "n2"], "rate_kops": 10.0, "memory_gb": 1.0}),
...     "tenants": pd.DataFrame({"tenant": ["A", "B"], "weight": 1.0, "mix": "fixed"}),
...     "partitions": pd.DataFrame({
...         "tenant": ["A", "B", "B"], "partition": ["a", "b1", "b2"], "demand_kops": [20.0, 10.0, 10.0],
...         "size_gb": 0.1,
...     }),
...     "placed": pd.DataFrame({
...         "tenant": ["A", "B", "B"], "partition": ["a", "b1", "b2"], "node": ["n1", "n1", "n2"],
...     }),
... })
>>> decision = fairshare.SYSTEM.design("optimum").run(problem, parameters={"placement": "keep"})
>>> decision.plan.rates["kops"].round(3).tolist()
[6.667, 6.667]
"""

from __future__ import annotations

from planner.contract.degradation import Degradation
from planner.contract.studies import Coordination
from planner.contract.system import PlanType, ProblemType, Studies, System
from planner_models.fairshare import designs, information, plan, problem
from planner_models.fairshare.designs import DESIGNS
from planner_models.fairshare.designs.formulation import formulation
from planner_models.fairshare.designs.what_if import explain
from planner_models.fairshare.information import realize
from planner_models.fairshare.plan.check import check
from planner_models.fairshare.plan.metrics import HEADLINE, LIMITS, METRICS, measure
from planner_models.fairshare.plan.plan import PLAN_TABLES, Sharing, from_tables
from planner_models.fairshare.plan.presentation import ELEMENTS, draw, draw_demand
from planner_models.fairshare.problem.adjustments import adjust
from planner_models.fairshare.problem.generators import PRESETS, sample
from planner_models.fairshare.problem.problem import SharedStore
from planner_models.fairshare.problem.schema import OPTIONAL_TABLES, TABLES
from planner_models.fairshare.published import TARGETS
from planner_models.fairshare.simulation.study import SIMULATION

COORDINATION = Coordination(
    scenario="fairshare/coordination",
    performance="min_share",
    instances=({"problem.tenants": 50}, {"problem.nodes": 10}),
    degradations=(
        Degradation(
            kind="age",
            parameter="age_s",
            values=(0.0, 60.0, 300.0, 600.0),
            unit="s",
            about="age of the demand reports; a partition's demand keeps half its deviation for 420 s",
            seeds=3,
        ),
        Degradation(
            kind="noise",
            parameter="noise",
            values=(0.0, 0.1, 0.2, 0.4, 0.8),
            about="standard deviation of the logarithm of each partition's demand as reported",
            seeds=3,
        ),
        Degradation(
            kind="granularity",
            parameter="granularity_partitions",
            values=(0, 2, 5, 10, 20),
            unit="partitions",
            about="partitions of a tenant that are reported together, as their mean",
        ),
    ),
)
SYSTEM = System(
    name="fairshare",
    title="Shared storage",
    area="storage and switches",
    question="Where do partitions lie, and what share of each node does each tenant of a store get?",
    source="Shue, Freedman, Shaikh 2013 (Pisces); Ghodsi et al. 2011 (dominant-resource fairness); "
    "Gulati, Merchant, Varman 2010 (mClock)",
    problem=ProblemType(
        type=SharedStore,
        tables=TABLES,
        optional_tables=OPTIONAL_TABLES,
        from_tables=SharedStore.from_tables,
        presets=PRESETS,
        adjust=adjust,
        draw=draw_demand,
        elements=ELEMENTS,
        sample=sample,
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
    best=("optimum", "least_moves", "rebalance", "pisces", "fq_pp_wa_flow"),
    formulation=formulation,
    studies=Studies(
        what_if=explain,
        practice="unmodified",
        practice_name="an unmodified store",
        trade_off=("moved_gb", "min_share"),
        coordination=COORDINATION,
        simulation=SIMULATION,
        targets=TARGETS,
    ),
)

__all__ = [
    "SYSTEM",
    "SharedStore",
    "Sharing",
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
