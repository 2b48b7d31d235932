r"""Live video: which links should carry which channel, so that the most is watched at the least cost?

A content delivery network brings live channels, each at several bitrates, from sources over
reflectors and edge clusters to groups of clients. A channel at one bitrate is an *object*; what
carries it is a tree, and each link of the tree carries it once however many watch below.

Formulation, Mukerjee 2018, Fig. 4.8, for links $L$, the groups' own links $L_{AS}$ and objects $O$:

$$\max\; w_s \sum_{l \in L_{AS}, o} \mathrm{Priority}_o \mathrm{Request}_{l,o} \mathrm{Serves}_{l,o}
- w_c \sum_{l, o} \mathrm{Cost}(l) \mathrm{Bitrate}(o) \mathrm{Serves}_{l,o}$$
$$\text{s.t.}\quad \sum_o \mathrm{Bitrate}(o) \mathrm{Serves}_{l,o} \le \mathrm{Capacity}(l),\quad
\sum_{l' \in \mathrm{InLinks}(l)} \mathrm{Serves}_{l',o} \ge \mathrm{Serves}_{l,o},\quad
\mathrm{Serves}_{l,o} \in \{0, 1\}$$

`formulation` says what the printed program needs to hold: sources, duplicate deliveries, dummy
links, multiplicity and units (Mbit/s, cost per Mbit/s; weights 1 and 1e-4 unless `settings` says
otherwise). `optimum` solves it as it is; `vdn` takes it apart by object and proves a bound.

Tables: `clusters(cluster, tier, latitude?, longitude?)`, `links(tail, head, capacity_mbps, cost?,
latency_ms?)`, `objects(channel, bitrate_kbps, priority?)`, `requests(group, channel, bitrate_kbps,
clients?, arrival_s?)`; if wanted `holders(channel, source)`, `pinned` and `forbidden(channel,
bitrate_kbps, tail, head)` with * for all, and `settings(service_weight, cost_weight, chunk_s?)`. A
plan is `trees(channel, bitrate_kbps, tail, head)`, one row a link that carries an object.

>>> import pandas as pd
>>> from planner_models import livevideo
>>> problem = livevideo.LiveVideo.from_tables({
...     "clusters": pd.DataFrame(
...         [("S", "source"), ("X", "reflector"), ("Y", "reflector"), ("A", "group"), ("B", "group")],
...         columns=["cluster", "tier"],
...     ),
...     "links": pd.DataFrame(
...         [("S", "X", 2.0, 1.0), ("S", "Y", 2.0, 1.0), ("X", "A", 2.0, 1.0), ("Y", "A", 2.0, 10.0),
...          ("Y", "B", 2.0, 1.0)],
...         columns=["tail", "head", "capacity_mbps", "cost"],
...     ),
...     "objects": pd.DataFrame([("V1", 800.0)], columns=["channel", "bitrate_kbps"]),
...     "requests": pd.DataFrame(
...         [("A", "V1", 800.0), ("B", "V1", 800.0)], columns=["group", "channel", "bitrate_kbps"]
...     ),
... })
>>> decision = livevideo.columns.distribute(problem)
>>> decision.proof.status, round(decision.proof.objective, 6)
(<Status.OPTIMAL: 'optimal'>, 1.99968)
>>> [f"{row.tail}->{row.head}" for row in decision.plan.trees.itertuples()]
['S->X', 'S->Y', 'X->A', 'Y->B']
"""

from __future__ import annotations

from planner.system import System
from planner_models.livevideo import columns, generate, optimum
from planner_models.livevideo.adjust import adjust
from planner_models.livevideo.check import check
from planner_models.livevideo.designs import DESIGNS
from planner_models.livevideo.explain import explain
from planner_models.livevideo.formulation import formulation
from planner_models.livevideo.measure import METRICS, measure
from planner_models.livevideo.problem import OPTIONAL_TABLES, TABLES, LiveVideo
from planner_models.livevideo.trees import PLAN_TABLES, Trees, diff, from_tables
from planner_models.livevideo.windows import window

SYSTEM = System(
    name="livevideo",
    question="Which links should carry which channel, so that the most is watched at the least cost?",
    source="Mukerjee 2018, chapter 4 (VDN)",
    tables=TABLES,
    optional_tables=OPTIONAL_TABLES,
    plan_tables=PLAN_TABLES,
    from_tables=LiveVideo.from_tables,
    sources={"sessions": window},
    presets={
        "heavy_tail": generate.heavy_tail,
        "heavy_tail_active": generate.heavy_tail_active,
        "average_day": generate.average_day,
        "large_event": generate.large_event,
        "testbed": generate.ec2_testbed,
    },
    adjust=adjust,
    designs=DESIGNS,
    metrics=METRICS,
    check=check,
    measure=measure,
    plan_from_tables=from_tables,
    formulation=formulation,
    explain=explain,
)

__all__ = [
    "SYSTEM",
    "LiveVideo",
    "Trees",
    "check",
    "columns",
    "diff",
    "formulation",
    "generate",
    "measure",
    "optimum",
]
