r"""Consolidation: which hosts, which NUMA nodes, how many vCPUs?

Virtual machines or pods need hosts. Which hosts hold them all at the lowest price, in which of their NUMA
nodes is each machine, how many vCPUs has it, and does everything restart after the loss of a host, a rack or
a zone? Schedulers place one machine at a time and know no bound.

Formulation, for patterns $p$ of machines in the nodes of a host of type $h(p)$ with price $c_{h(p)}$, of
which $z_p$ hosts are used, and $d_t$ machines of shape $t$, of which a pattern has $n_{tp}$:

$$\min \sum_p c_{h(p)} z_p \quad\text{s.t.}\quad \sum_{p \notin L} n_{tp} z_p \ge d_t
\text{ for each shape } t \text{ and each set } L \text{ of domains lost together},\quad z_p \in
\mathbb{Z}_+$$

where a pattern keeps the threads, memory and other resources of each node and of the whole host. Units of a
shape beyond $d_t$ are slots, in which machines of a lost domain restart. On one host, machine $v$ with $k_v$
vCPUs in $s_v$ nodes has the throughput $k_v^a (1 - g (s_v - 1))$, and the lowest one over its weight is the
score. `formulation` is the direct integer program of single hosts in Pyomo; column generation solves the
fleet, and the dual prices of each round bound the price of all plans.

Designs: `spread`, `first_fit` and `best_fit` place one machine at a time; `percentage` keeps a share of all
capacity free; `karpenter` narrows types as pods join, and lets nodes go; `topology_manager` schedules by
size, and hosts admit or refuse; `per_host` plans sizes first, then the nodes of each host; `big_first` plans
large machines first; `patterns` finds the cheapest hosts with a bound, with slots for losses; `repack`
empties hosts of today, or of the plan before, within a budget of moves; `omniscient` knows the events to come
and moves nothing; `max_min` and `max_sum` find vCPUs and nodes on each host exactly.

Sources: `kubectl` reads nodes, pods and disruption budgets, `prometheus` the metrics of a cluster, `virsh`,
`openstack` and `vsphere` hypervisors; the series `arrivals` is a day of machines that come and go.

Tables: `hosts(host_type, price_per_h, most?, helper_share?, threads_per_core?, threads?, memory_gb?)`,
`nodes(host_type, node, threads, memory_gb)`, `machines(machine, count?, vcpus_min, vcpus_max?, memory_gb,
split?, client?, weight?, group?, at_once?, dirty_gbps?, whole_cores?)`, and optionally
`capacities(host_type, node, resource, amount)`, `uses(machine, resource, amount)`, `rules(kind, group,
domain, most?, target?)`, `zones(zone, racks?, most?)`, `present(host, host_type, rack?, zone?, drain?)`,
`now(machine, host, node?, vcpus?, machines?)`, `survive(domain, losses?, group?)`, `links(host, gbps,
moves_at_once?)`, `effects(host_type, span_loss?, scaling?, fitted_from?)` and `events(at_s, machine, what,
machines?, into?)`. A plan is `purchases(host_type, zone, hosts, price_per_h)`, `fleet(host, host_type, zone,
rack, hosts)`, `placement(machine, host, copy, node, vcpus, memory_gb, machines)`, and `slots`,
`helpers(host, node, threads)`, `refused(machine, machines)` and `moves` where there are some. A large fleet
is stored as hosts with the same content.

>>> from planner_models import consolidation
>>> problem = consolidation.problem.generators.tpcvms_intel()
>>> decision = consolidation.designs.one_host.plan_max_min(problem)
>>> decision.proof.status, round(decision.proof.objective, 2)
(<Status.OPTIMAL: 'optimal'>, 14.29)
"""

from __future__ import annotations

from planner.contract.degradation import Degradation
from planner.contract.studies import Coordination
from planner.contract.system import PlanType, ProblemType, Studies, System
from planner_models.consolidation import designs, plan, problem
from planner_models.consolidation.designs import DESIGNS
from planner_models.consolidation.designs.formulation import formulation
from planner_models.consolidation.designs.what_if import explain
from planner_models.consolidation.information import realize
from planner_models.consolidation.plan.check import check
from planner_models.consolidation.plan.metrics import HEADLINE, LIMITS, METRICS, measure
from planner_models.consolidation.plan.plan import PLAN_TABLES, ConsolidationPlan, from_tables
from planner_models.consolidation.plan.presentation import ELEMENTS, draw
from planner_models.consolidation.problem.adjustments import adjust
from planner_models.consolidation.problem.arrivals import arrivals
from planner_models.consolidation.problem.drawing import draw as draw_problem
from planner_models.consolidation.problem.generators import PRESETS, small
from planner_models.consolidation.problem.problem import Consolidation
from planner_models.consolidation.problem.readers.sources import SOURCES
from planner_models.consolidation.problem.schema import OPTIONAL_TABLES, TABLES
from planner_models.consolidation.published import TARGETS

SYSTEM = System(
    name="consolidation",
    title="Consolidation",
    area="datacenter",
    question="Which hosts, which NUMA nodes, how many vCPUs?",
    source="Deehr et al. 2014",
    problem=ProblemType(
        type=Consolidation,
        tables=TABLES,
        optional_tables=OPTIONAL_TABLES,
        from_tables=Consolidation.from_tables,
        sources=SOURCES,
        series={"arrivals": arrivals},
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
    best=("patterns", "max_min"),
    formulation=formulation,
    closed="its patterns are made as the search needs them",
    studies=Studies(
        what_if=explain,
        trade_off=("moved_gb", "price_per_h"),
        coordination=Coordination(
            scenario="consolidation/coordination",
            performance="price_per_h",
            instances=({"problem.machines": 1_500}, {"problem.shapes": 12, "problem.zones": 2}),
            degradations=(
                Degradation(
                    kind="age",
                    parameter="age_s",
                    values=(0.0, 3600.0, 21600.0, 86400.0),
                    unit="s",
                    about="age of the numbers of machines",
                    seeds=5,
                ),
                Degradation(
                    kind="noise",
                    parameter="noise",
                    values=(0.0, 0.1, 0.2, 0.5),
                    about="largest share by which each observed request is wrong",
                    seeds=5,
                ),
                Degradation(
                    kind="granularity",
                    parameter="coarse",
                    values=(0.0, 1.0, 2.0),
                    about="sizes of machines: exact, powers of two, the number of vCPUs only",
                ),
            ),
        ),
        targets=TARGETS,
        practice="best_fit",
        practice_name="best fit",
    ),
)

__all__ = [
    "SYSTEM",
    "Consolidation",
    "ConsolidationPlan",
    "check",
    "designs",
    "formulation",
    "measure",
    "plan",
    "problem",
]


def __dir__() -> list[str]:
    return __all__
