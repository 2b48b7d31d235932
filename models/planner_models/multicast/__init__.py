"""Multicast: which groups can a fabric hold, and at what cost?

Switches of a fat tree hold few multicast entries. The address space is cut into n partitions, each
held by rc cores and by ra aggregation switches of each pod (Algorithm 1); at edge switches whose
tables overflow, groups share an entry that goes to all ports of any of them (equation (6), linear
cost). Groups without entries go by unicast. The objective is the traffic of all hosts.

Tables: `fabric` (one row), `hosts(host, pod, edge, port)` (may be absent: hosts are h0, h1, ...),
`groups(group, rate_mbps)`, `members(group, host)`. A plan is `partitions(group, partition, copies)`,
`meta_groups(switch, meta_group, group)` and `entries(switch, layer, entries)`.

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
"""

from __future__ import annotations

from planner.system import System
from planner_models.multicast import addresses, channels, designs, equations, generate, select
from planner_models.multicast.check import check
from planner_models.multicast.designs import DESIGNS
from planner_models.multicast.formulation import formulation
from planner_models.multicast.measure import METRICS, measure
from planner_models.multicast.plan import PLAN_TABLES, Channels, from_tables
from planner_models.multicast.problem import TABLES, Multicast

SYSTEM = System(
    name="multicast",
    question="Which multicast groups can a fabric hold?",
    source="Scaling IP Multicast on Datacenter Topologies",
    tables=TABLES,
    optional_tables=("hosts",),
    plan_tables=PLAN_TABLES,
    from_tables=Multicast.from_tables,
    presets={"datacenter": generate.datacenter},
    designs=DESIGNS,
    metrics=METRICS,
    check=check,
    measure=measure,
    plan_from_tables=from_tables,
    formulation=formulation,
)

__all__ = [
    "SYSTEM",
    "Channels",
    "Multicast",
    "addresses",
    "channels",
    "check",
    "designs",
    "equations",
    "formulation",
    "generate",
    "measure",
    "select",
]
