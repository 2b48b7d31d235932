"""Multicast: the groups that a fabric can hold in its tables, and the cost of the others.

Switches of a fat tree hold few multicast entries. The address space is cut into n partitions, each held by rc
cores and by ra aggregation switches of each pod (Algorithm 1); at edge or aggregation switches whose tables
overflow, groups share an entry that goes to all ports of any of them (equation (6)): by Algorithm 2, also
with convex congestion, by agglomerative clustering, with a proven bound (`p_median`) or as groups change
(`algorithm2`). Other groups go by unicast: those that save the least, and those whose shared entries cost
more. Design `joint` makes that choice of unicast, own and shared entries for all groups together, with a
bound by Lagrangian relaxation (`designs.formulation.joint_formulation` is its formal model);
`designs.partitioned` bounds every plan with table entries. Where a table is full, designs `flooding` and
`slow_path` keep all groups in multicast (`plan.overflow`): switches without an entry flood the group to the
hosts of its tenant, or their processors forward it, up to `processor_mbps` of `fabric`. Designs `elmo` and
`bier` put trees into the headers of packets (`plan.headers`); `link_traffic_mbps` counts all links, headers
included. The objective, and headline, is the traffic that hosts send and receive. `group_capacity` gives the
number of groups that fit before a table overflows, for any table size; `planner explain` is a capacity
report.

Tables: `fabric` (one row), `groups(group, rate_mbps, tenant)`, `members(group, host)`; and, where they are
known, `hosts(host, pod, edge, port)` (else hosts are h0, h1, ... port by port), `switches(switch, entries,
occupied)` for tables that differ, `background(upper, lower, mbps)`, `failed(switch)`, `failed_links(lower,
upper)`, `tenants(tenant, host)`, `holds(switch, partition)`. Fat trees are AB, standard or PortLand; kind
`tree` is any multi-rooted tree, described by `switches(switch, layer, pod)` and `links(lower, upper)`, whose
address partitions constraint programming distributes. A plan is `partitions(group, partition, copies)`,
`meta_groups(switch, meta_group, group)` and `entries(switch, layer, entries)`, with headers also `headers`
and `header_rules`, with groups that lack entries also `overflow(switch, group, handling)`;
`forwarding.compare_plans` lists the differences of two plans switch by switch, and `forwarding.send_packet`
sends a packet through a plan's compiled tables.

A controller may decide on an observation: memberships of a while ago and rates measured with noise or in
sums (`information`); switches then carry the plan on among the true members. `information` counts the
messages between hosts, switches and controllers.

Failures are rerouted around locally (`rerouting`) until trees are rebuilt (`repair_trees`); plans are made
without knowledge of failures, unless `partitioned_aggregated` plans around them (`around_failures`).
`switch_groups` counts the table updates of joins and leaves; `planner simulate` runs a fabric in time, with
joins and leaves, under a controller.

Source: "Scaling IP Multicast on Datacenter Topologies", sections 2 to 4.

>>> from planner_models import multicast
>>> multicast.problem.equations.core_capacity(k=48, table_size=1000, core_copies=9)
64000.0
>>> problem = multicast.problem.generators.datacenter(
...     k=4, aggregation_copies=1, tenants=3, groups=40, table_size=12
... )
>>> decision = multicast.designs.partitioned_aggregated.partition_and_share(problem)
>>> len(multicast.check(problem, decision.plan))
0
>>> metrics = multicast.measure(problem, decision.plan, None)
>>> round(metrics["host_traffic_mbps"] / decision.proof.objective, 9)
1.0
>>> state = multicast.problem.failures.find_working_links(problem.wiring, switches=["aggregation-0-0"])
>>> rerouting = multicast.plan.rerouting.reroute_groups(problem, decision.plan, state)
>>> bool((rerouting.unreachable > 0).any())
True
>>> tenant = multicast.problem.equations.Tenant(
...     pods=8, edges=24, hosts=24, aggregation_copies=3, core_copies=9
... )
>>> round(multicast.problem.equations.burst_updates(tenant, 300, batched=True).total, 2)  # Fig. 7
0.62
"""

from __future__ import annotations

from planner.contract.degradation import Degradation
from planner.contract.metrics import Headline
from planner.contract.studies import Coordination
from planner.contract.system import PlanType, ProblemType, Studies, System
from planner_models.multicast import designs, information, plan, problem, published, simulation
from planner_models.multicast.designs import DESIGNS
from planner_models.multicast.designs.formulation import formulation
from planner_models.multicast.designs.partitioned import WITHOUT_HEADERS
from planner_models.multicast.designs.what_if import explain
from planner_models.multicast.information import realize
from planner_models.multicast.plan.check import check
from planner_models.multicast.plan.metrics import METRICS, measure
from planner_models.multicast.plan.openflow_groups import write_files
from planner_models.multicast.plan.plan import PLAN_TABLES, Channels, from_tables
from planner_models.multicast.plan.presentation import ELEMENTS, draw
from planner_models.multicast.problem import churn, generators
from planner_models.multicast.problem.adjustments import adjust
from planner_models.multicast.problem.drawing import draw_fabric
from planner_models.multicast.problem.problem import OPTIONAL_TABLES, TABLES, Multicast
from planner_models.multicast.problem.sets import from_sets
from planner_models.multicast.published import TARGETS
from planner_models.multicast.simulation import SIMULATION

SYSTEM = System(
    name="multicast",
    title="Datacenter multicast",
    area="datacenter",
    question="Which multicast groups can a fabric hold?",
    source="Scaling IP Multicast on Datacenter Topologies",
    problem=ProblemType(
        type=Multicast,
        tables=TABLES,
        optional_tables=OPTIONAL_TABLES,
        from_tables=Multicast.from_tables,
        series={"churn": churn.generate_churn, "churn_of_tables": churn.read_churn},
        presets={"datacenter": generators.datacenter},
        adjust=adjust,
        draw=draw_fabric,
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
        write_rules=write_files,
        draw=draw,
        headline=Headline(
            metric="host_traffic_mbps",
            verb="needs {} of host traffic",
            losses={"lost_mbps": "loses"},
            worst=("lost_mbps",),
            fallbacks={
                "groups_by_unicast": "uses unicast for",
                "groups_flooded": "floods",
                "groups_by_processor": "forwards by processors of switches",
            },
            table=(
                "host_traffic_mbps",
                "lost_mbps",
                "link_traffic_mbps",
                "groups_by_unicast",
                "overhead_mbps",
                "core_entries_max",
                "aggregation_entries_max",
                "edge_entries_max",
            ),
        ),
        limits={"table": "overfull switches"},
    ),
    designs=DESIGNS,
    best=("partitioned_aggregated", "elmo", "joint", "partitioned"),
    formulation=formulation,
    closed="its designs choose groups by prices and by searches over the entries of each "
    "switch, and no one program has a whole plan",
    studies=Studies(
        what_if=explain,
        simulation=SIMULATION,
        coordination=Coordination(
            scenario="multicast/coordination",
            performance="host_traffic_mbps",
            cost="overhead_mbps",
            bound_scope=WITHOUT_HEADERS,
            instances=({"problem.tenants": 40}, {"problem.groups": 500}),
            degradations=(
                Degradation(
                    kind="age",
                    parameter="age_s",
                    values=(0.0, 1.0, 10.0, 60.0, 300.0),
                    unit="s",
                    about="age of the memberships that the controller observes",
                    seeds=2,
                ),
                Degradation(
                    kind="noise",
                    parameter="noise",
                    values=(0.0, 0.1, 0.3, 1.0, 3.0),
                    about="standard deviation of the logarithm of each group's measured rate",
                    seeds=2,
                ),
                Degradation(
                    kind="granularity",
                    parameter="granularity_groups",
                    values=(0.0, 2.0, 5.0, 20.0, 100.0),
                    unit="groups",
                    about="groups of a tenant whose rates are observed in one sum",
                ),
            ),
        ),
        targets=TARGETS,
    ),
)

__all__ = [
    "SYSTEM",
    "Channels",
    "Multicast",
    "check",
    "designs",
    "formulation",
    "from_sets",
    "information",
    "measure",
    "plan",
    "problem",
    "published",
    "simulation",
]


def __dir__() -> list[str]:
    return __all__
