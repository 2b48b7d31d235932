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
otherwise). Any number of tiers from 2 on; the links tell their order.

Designs, by what each control plane knows:

| design | trees | source |
|---|---|---|
| `vdn` | all objects together, by decomposition, with a proven bound; the default | 4.5 |
| `optimum` | the integer program as it is, where it is small | Fig. 4.8 |
| `everything_everywhere` | every object to every edge, while there is room | 4.7.1 |
| `overlay_multicast` | each channel its own best trees, on what those before it left | 4.7.1 |
| `cdn`, `cdn_1s` | DNS: the widest way link by link; answers are kept for 30 s, or 1 s | 4.7.1 |
| `distributed` | Algorithm 1 alone: the fewest hops with room, as announced from above | 4.4.2 |
| `centralized` | as `vdn`, on requests as they were `age_s` ago | 4.7.2 |
| `hybrid` | as `centralized`, and Algorithm 1 for those that came since | 4.4 |

All but `everything_everywhere` can be told worse: `sees.age_s`, `sees.noise` and `sees.grain_km` say how
late, how badly measured and by which regions (`sees`). Plans then play out on the links that there are.

What is pinned is set up first by every design, on the trees that are cheapest for the pinned streams
alone; a design that cannot carry them has no plan, and says why. `control.simulate` runs the last
three in time, on the engine's control loop: agents with versions, evidence and shadow tables (`rib`),
lost updates, partitions, a controller that falls silent, links that fluctuate.

Tables: `clusters(cluster, tier, latitude?, longitude?)`, `links(tail, head, capacity_mbps, cost?,
latency_ms?)`, `objects(channel, bitrate_kbps, priority?)`, `requests(group, channel, bitrate_kbps,
clients?, arrival_s?)`; if wanted `holders(channel, source)`, `pinned` and `forbidden(channel,
bitrate_kbps, tail, head)` with * for all, and `settings(service_weight, cost_weight, chunk_s?)`. A
plan is `trees(channel, bitrate_kbps, tail, head)`, one row a link that carries an object, and where clients
had to wait for a decision `waits(group, channel, bitrate_kbps, waited_s)`. A trace
`sessions(start_s, duration_s, group, channel, bitrate_kbps)` in place of `requests` is cut into windows:
source `sessions` for `planner roll`, `window` for one of them.

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

from planner.system import Blur, Coordination, System
from planner_models.livevideo import admission, columns, generate, optimum, sees
from planner_models.livevideo.adjust import adjust
from planner_models.livevideo.check import check
from planner_models.livevideo.designs import DESIGNS
from planner_models.livevideo.draw import draw
from planner_models.livevideo.explain import explain
from planner_models.livevideo.formulation import formulation
from planner_models.livevideo.measure import METRICS, measure
from planner_models.livevideo.problem import LiveVideo
from planner_models.livevideo.published import TARGETS
from planner_models.livevideo.schema import OPTIONAL_TABLES, TABLES
from planner_models.livevideo.trees import PLAN_TABLES, Trees, diff, from_tables
from planner_models.livevideo.windows import series, window

SYSTEM = System(
    name="livevideo",
    question="Which links should carry which channel, so that the most is watched at the least cost?",
    source="Mukerjee 2018, chapter 4 (VDN)",
    tables=TABLES,
    optional_tables=OPTIONAL_TABLES,
    plan_tables=PLAN_TABLES,
    from_tables=LiveVideo.from_tables,
    sources={"window": window},
    series={"sessions": series},
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
    enact=admission.enact,
    formulation=formulation,
    explain=explain,
    targets=TARGETS,
    draw=draw,
    coordination=Coordination(
        scenario="livevideo/coordination",
        performance="service_minus_cost",
        cost="cost_per_satisfied",
        responsiveness="join_s",
        blurs=(
            Blur(
                kind="age",
                parameter="age_s",
                values=(0, 5, 10, 20, 40, 60),
                unit="s",
                about="age of what the controller knows of requests; of clusters, time between announcements",
            ),
            Blur(
                kind="noise",
                parameter="noise",
                values=(0, 0.05, 0.1, 0.2, 0.4),
                about="standard deviation of the logarithm of each link's measured capacity",
                seeds=2,
            ),
            Blur(
                kind="grain",
                parameter="grain_km",
                values=(0, 50, 100, 200, 500, 1000),
                unit="km",
                about="side of the regions that requests are told by",
            ),
        ),
    ),
    trade_off=("cost_per_satisfied", "average_bitrate_kbps"),
)

__all__ = [
    "SYSTEM",
    "LiveVideo",
    "Trees",
    "admission",
    "check",
    "columns",
    "diff",
    "formulation",
    "generate",
    "measure",
    "optimum",
    "sees",
]
