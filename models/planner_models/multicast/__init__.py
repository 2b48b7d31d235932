"""Multicast: which groups can a fabric hold, and at what cost?

Switches of a fat tree hold few multicast entries. The address space is cut into n partitions, each
held by rc cores and by ra aggregation switches of each pod (Algorithm 1); at edge or aggregation
switches whose tables overflow, groups share an entry that goes to all ports of any of them (equation
(6)): by Algorithm 2, also with convex congestion, by merging (`agglomerate`), with a proven bound
(`exact`) or as groups change (`incremental`). Groups without entries go by unicast: those that save the
least. The objective is the traffic of all hosts. `capacity` says how many groups fit before a table
overflows, for any table size; `planner explain` is a capacity report.

Tables: `fabric` (one row), `groups(group, rate_mbps, tenant)`, `members(group, host)`; and, where they
are known, `hosts(host, pod, edge, port)` (else hosts are h0, h1, ... port by port),
`switches(switch, entries, occupied)` with tables of their own, `background(upper, lower, mbps)`,
`failed(switch)`, `tenants(tenant, host)`, `holds(switch, partition)`. Fat trees are AB, standard or PortLand;
kind `tree` is any multi-rooted tree, as `switches(switch, layer, pod)` and `links(lower, upper)` say,
whose address parts constraint programming gives out. A plan is `partitions(group, partition, copies)`,
`meta_groups(switch, meta_group, group)` and `entries(switch, layer, entries)`; `rules.changed` tells two
plans apart switch by switch, and `forwarding.walk` sends a packet through a plan's compiled tables.

A controller's choice may be made on memberships of a while ago and rates measured badly or in sums
(`sees`); switches then carry the plan on among the members that there are (`adapt`). `exchange` counts
what hosts, switches and controllers tell each other.

Failures are rerouted around locally (`failures`) until trees are rebuilt (`repair`); plans are made without
knowing of them. `dynamics` counts what joins and leaves change.

Source: "Scaling IP Multicast on Datacenter Topologies", sections 2 to 4.

>>> from planner_models import multicast
>>> multicast.equations.core_capacity(k=48, table_size=1000, core_copies=9)
64000.0
>>> problem = multicast.generate.datacenter(k=4, aggregation_copies=1, tenants=3, groups=40, table_size=12)
>>> decision = multicast.designs.partitioned_aggregated(problem)
>>> len(multicast.check(problem, decision.plan))
0
>>> metrics = multicast.measure(problem, decision.plan, None)
>>> round(metrics["host_traffic_mbps"] / decision.proof.objective, 9)
1.0
>>> state = multicast.failures.alive(problem.wiring, switches=["aggregation-0-0"])
>>> reached = multicast.failures.rerouted(problem, decision.plan, state)
>>> bool((reached.unreachable > 0).any())
True
>>> tenant = multicast.dynamics.Tenant(pods=8, edges=24, hosts=24, aggregation_copies=3, core_copies=9)
>>> round(multicast.dynamics.burst(tenant, 300, batched=True).total, 2)  # Fig. 7
0.62
"""

from __future__ import annotations

from planner.system import Blur, Coordination, System
from planner_models.multicast import (
    adapt,
    addresses,
    agglomerate,
    algorithm2,
    allocation,
    capacity,
    channels,
    designs,
    dynamics,
    equations,
    exact,
    fabric,
    failures,
    forwarding,
    generate,
    incremental,
    layout,
    repair,
    rules,
    select,
    series,
    workloads,
)
from planner_models.multicast.adapt import enact
from planner_models.multicast.adjust import adjust
from planner_models.multicast.check import check
from planner_models.multicast.designs import DESIGNS
from planner_models.multicast.draw import draw
from planner_models.multicast.explain import explain
from planner_models.multicast.formulation import formulation
from planner_models.multicast.measure import METRICS, measure
from planner_models.multicast.plan import PLAN_TABLES, Channels, from_tables
from planner_models.multicast.problem import OPTIONAL_TABLES, TABLES, Multicast
from planner_models.multicast.published import TARGETS

SYSTEM = System(
    name="multicast",
    question="Which multicast groups can a fabric hold?",
    source="Scaling IP Multicast on Datacenter Topologies",
    tables=TABLES,
    optional_tables=OPTIONAL_TABLES,
    plan_tables=PLAN_TABLES,
    from_tables=Multicast.from_tables,
    presets={"datacenter": generate.datacenter},
    series={"churn": series.churn, "churn_of_tables": series.churn_of_tables},
    adjust=adjust,
    designs=(*DESIGNS, *layout.DESIGNS),
    metrics=METRICS,
    check=check,
    measure=measure,
    plan_from_tables=from_tables,
    enact=enact,
    formulation=formulation,
    explain=explain,
    coordination=Coordination(
        scenario="multicast/coordination",
        performance="host_traffic_mbps",
        cost="overhead_mbps",
        blurs=(
            Blur(
                kind="age",
                parameter="age_s",
                values=(0.0, 1.0, 10.0, 60.0, 300.0),
                unit="s",
                about="how old the memberships are that the controller decides on",
                seeds=2,
            ),
            Blur(
                kind="noise",
                parameter="noise",
                values=(0.0, 0.1, 0.3, 1.0, 3.0),
                about="standard deviation of the logarithm of each group's measured rate",
                seeds=2,
            ),
            Blur(
                kind="grain",
                parameter="grain_groups",
                values=(0.0, 2.0, 5.0, 20.0, 100.0),
                unit="groups",
                about="groups of a tenant whose rates are told in one sum",
            ),
        ),
    ),
    targets=TARGETS,
    draw=draw,
)

__all__ = [
    "SYSTEM",
    "Channels",
    "Multicast",
    "adapt",
    "addresses",
    "agglomerate",
    "algorithm2",
    "allocation",
    "capacity",
    "channels",
    "check",
    "designs",
    "dynamics",
    "equations",
    "exact",
    "explain",
    "fabric",
    "failures",
    "formulation",
    "forwarding",
    "generate",
    "incremental",
    "layout",
    "measure",
    "repair",
    "rules",
    "select",
    "series",
    "workloads",
]
