r"""Flow tables: which entries should a virtual switch cache, and in which order should it search their masks?

A switch caches the decisions of its flow tables. An entry, a megaflow, has a value and a mask; a packet is
looked up in one hash table for each mask, until it is found. A packet without an entry goes to userspace,
which installs one. Few masks make few lookups; specific masks make many entries, and so many misses.

Formulation, for headers $h$ of $w_h$ connections, masks $m$ and the values $v = h \wedge m$: an entry
$y_{mv}$ is installed, mask $z_m$ is used at position $\pi_m$ of the search, and $x_{hm}$ serves a header:

$$\min \sum_h w_h \sum_m p\, \pi_m x_{hm} + \Bigl(u + p \sum_m z_m\Bigr) \sum_{mv} y_{mv}
\quad\text{s.t.}\quad \sum_m x_{hm} = 1,\quad x_{hm} \le y_{m, h \wedge m} \le z_m,\quad
x_{hm} = 0 \text{ where } m \text{ is not valid for } h$$

$p$ is the time of a lookup, $u$ that of an upcall (Pfaff et al. 2015, 7.2 and Table 1). A mask is valid for
a header where all headers that agree with it on the mask have the same action. The paper looks for masks of
few bits and knows no efficient algorithm for optimal ones (5.1): the least mask of one packet is a minimum
weight hitting set over rules of other actions. `least_specific` finds it greedily for each miss; but many
masks cost more lookups than the misses that they save, as with the paper's `priority`, `staged`, `prefix` and
`all`. `merged` finds a *pool* of few masks for a trace, and `pool` takes masks in use again without knowing
what comes.

`formulation` is this model in Pyomo, for few bits. The bound of `merged` holds for every correct cache:
headers of which any two have a header of another action in the smallest cube around them need an entry each,
and prices of headers couple misses with the number of masks and their lookups (`designs/mask_bound.py`).

Tables: `rules(priority, match, action, table?)`, `flows(header, packets?, start_s?)` and optionally
`fields(field, bits, stage, prefix?, role?)`, else the five-tuple, and `costs(probe_ns?, upcall_us?,
revalidate_us?, revalidate_s?, flow_limit?, table_limit?, nic_entries?, nic_masks?, nic_inserts_per_s?,
microflow_entries?, idle_s?)`, `installed(match, origin, packets?)` and `statistics(hits, missed, lost?,
mask_hits?, masks?)` of the cache as it is. In place of rules,
`modules(module, priority, match, action)` and `policies(policy, operator, first, second)` are compiled to
rules (Foster et al. 2013, Frenetic). `simulate` also reads `changes(time_s, change, priority, match, action,
table?)` of rules. Matches are text, such as `ip_src=10.0.0.0/8 tcp_dst=80:443`; a range becomes prefixes.
Actions are steps, which may write headers and registers and look packets up again. A plan is
`megaflows(match, action, connections)`, `masks(position, mask, megaflows, connections)` and
`layout(first_table, last_table, entries)`: which flow tables are merged, within `table_limit` entries, and
`offload(match, lookups, inserts)` with a network card.

Tables with connection tracking, groups, conjunctions or learned rules are evaluated packet by packet
(`problem/evaluation`): the entries that Open vSwitch makes are then the rules.

>>> import pandas as pd
>>> from planner_models import flowtables
>>> problem = flowtables.FlowTables.from_tables({
...     "rules": pd.DataFrame(
...         [(2, "tcp_dst=22", "drop"), (1, "ip_dst=10.0.0.0/8", "out:1")],
...         columns=["priority", "match", "action"],
...     ),
...     "flows": pd.DataFrame(
...         {"header": [f"tcp ip_dst=10.0.0.1 tp_src={port} tp_dst=80" for port in range(2000, 2100)]}
...     ),
... })
>>> for name in ("microflows", "all", "merged"):
...     plan = flowtables.SYSTEM.design(name).run(problem).plan
...     print(name, len(plan.megaflows), plan.megaflows["match"][0])
microflows 100 ip_src=0.0.0.0 ip_dst=10.0.0.1 ip_proto=6 tp_src=2000 tp_dst=80
all 1 ip_dst=10.0.0.0/8 ip_proto=6 tp_dst=64/10
merged 1 ip_dst=10.0.0.0/8 tp_dst=64/0x40
"""

from __future__ import annotations

from planner.contract.degradation import Degradation
from planner.contract.studies import Coordination
from planner.contract.system import PlanType, ProblemType, Studies, System
from planner_models.flowtables import designs, information, plan, problem
from planner_models.flowtables.designs import DESIGNS
from planner_models.flowtables.designs.formulation import formulation
from planner_models.flowtables.designs.what_if import explain
from planner_models.flowtables.information import realize
from planner_models.flowtables.plan.check import check
from planner_models.flowtables.plan.metrics import HEADLINE, LIMITS, METRICS, measure
from planner_models.flowtables.plan.plan import PLAN_TABLES, Cache, from_tables
from planner_models.flowtables.plan.presentation import draw
from planner_models.flowtables.problem import flow_records
from planner_models.flowtables.problem.adjustments import adjust
from planner_models.flowtables.problem.generators import PRESETS, small
from planner_models.flowtables.problem.logical_networks import pipeline
from planner_models.flowtables.problem.problem import FlowTables
from planner_models.flowtables.problem.readers import SOURCES
from planner_models.flowtables.problem.schema import OPTIONAL_TABLES, TABLES
from planner_models.flowtables.problem.series import day
from planner_models.flowtables.published import TARGETS
from planner_models.flowtables.simulation import SIMULATION

SYSTEM = System(
    name="flowtables",
    title="Flow tables",
    area="storage and switches",
    question="Which entries should a virtual switch cache, and in which order should it search their masks?",
    source="Pfaff et al. 2015 (Open vSwitch); Foster et al. 2013 (Frenetic)",
    problem=ProblemType(
        type=FlowTables,
        tables=TABLES,
        optional_tables=OPTIONAL_TABLES,
        from_tables=FlowTables.from_tables,
        presets={**PRESETS, "pipeline": pipeline},
        sources={**SOURCES, "flow_records": flow_records.read_records},
        series={"day": day},
        adjust=adjust,
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
    best=("merged", "pool", "replanned", "least_specific", "fewest_misses", "all"),
    formulation=formulation,
    closed="its designs fill a cache in time, and none of them solves a program",
    studies=Studies(
        simulation=SIMULATION,
        what_if=explain,
        practice="all",
        practice_name="all optimizations of Open vSwitch",
        trade_off=("probes_per_connection", "misses"),
        targets=TARGETS,
        coordination=Coordination(
            scenario="flowtables/coordination",
            performance="cpu_per_connection_us",
            cost="signalling_bytes",
            instances=({"problem.rules": 150}, {"problem.connections": 1_500}),
            degradations=(
                Degradation(
                    kind="age",
                    parameter="age_s",
                    values=(0.0, 60.0, 600.0, 6_000.0),
                    unit="s",
                    about="age of the trace that masks are planned for",
                    seeds=2,
                ),
                Degradation(
                    kind="noise",
                    parameter="sampling",
                    values=(0.0, 10.0, 100.0, 1_000.0),
                    about="one in so many connections is sampled; 0: all",
                    seeds=2,
                ),
                Degradation(
                    kind="granularity",
                    parameter="least_packets",
                    values=(0.0, 4.0, 16.0, 64.0),
                    unit="packets",
                    about="connections of fewer packets are not known",
                ),
            ),
        ),
    ),
)

__all__ = [
    "SYSTEM",
    "Cache",
    "FlowTables",
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
