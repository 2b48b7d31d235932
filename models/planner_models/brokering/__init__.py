r"""Brokering: which CDN's cluster should serve which clients?

A broker assigns the clients of a content provider to the clusters of several CDNs. Serving a
client from a cluster costs money by the bit, differs in performance by place, and clusters have
limited room. CDNs tell the broker more or less of this; what it then believes makes the design.

Formulation, Mukerjee 2018, Fig. 3.10, for clients $r$, the clusters $m$ on offer to each, and all
clusters $l$:

$$\max\; w_p \sum_{r,m} \mathrm{Performance}(m)\, U_{r,m}
- w_c \sum_{r,m} \mathrm{Cost}(m)\, \mathrm{Bitrate}(r)\, U_{r,m}
\quad\text{s.t.}\quad U_{r,m} \in \{0, 1\},\quad \sum_m U_{r,m} = 1,\quad
\sum_{r,m=l} \mathrm{Bitrate}(r)\, U_{r,m} \le \mathrm{Capacity}(l)$$

Performance is the negative score; the metric `objective` is the negative of the above. As printed,
performance counts once a client and cost by the bit; `performance_per = "bit"` weighs both alike.
`formulation` is that model in Pyomo. `market.assign` groups clients by location and bitrate, spreads
them by min-cost flow, whose prices of room prove a bound, and repairs what is left to whole clients; where
the gap asks for it, knapsacks of the full clusters tighten the bound and improve the plan.

Designs are choices of Share, Matching and Announce (Table 3.2): `brokered`, `multicluster`,
`dynamic_pricing`, `dynamic_multicluster`, `best_lookup`, `marketplace`, `omniscient`, and `protocol`,
which composes one; beyond the evaluation there, `several_brokers`, `transactions` and
`learning_bidders`, whose CDNs move prices and promises by what was accepted. `learning.play` runs the
same on the control loop. Series `day`, `day_of_tables` and `windows` are rolled through any design by
`planner roll`, with bills so far, by the bit and by the 95th percentile, as metrics.

What CDNs announce may be old, wrong or by squares of the map (`sees.told`: age_s, noise, grain_km of
every design that is told something); `exchange` counts what is told. The objective of a plan that
overbooks clusters counts clients where they find room (`relief`), so no plan is better than its bound.

Around a plan: `protocol` has the messages of a round, `profit` who earns, `billing` what a series of
`windows` costs, `explain` the money saved and what room and CDNs are worth, `published` the chapter's
tables and figures beside ours (`planner reproduce brokering`); `generate.world` says how near they come.

Tables: `clients(location, isp, content, bitrate_kbps, clients)`, `locations(location, country,
latitude, longitude)`, `clusters(cluster, cdn, location, capacity_mbps, bandwidth_cost,
colocation_cost, background_mbps?)`, and if wanted `scores(location, cluster, score)`,
`contracts(cdn, region, price, commitment_mbps?)`, `bids(location, cluster, score?, price?)`,
`pinned` and `forbidden(location, isp, content, cdn, cluster)` with `*` for any,
`terms(currency, cost_per, performance_weight, cost_weight, performance_per)`. A plan is
`assignments(location, isp, content, bitrate_kbps, cluster, clients)`.

>>> import pandas as pd
>>> from planner_models import brokering
>>> problem = brokering.Brokering.from_tables({
...     "clients": pd.DataFrame(
...         [("Lyon", "isp1", "news", 2000.0, 30), ("Turin", "isp1", "news", 2000.0, 20)],
...         columns=["location", "isp", "content", "bitrate_kbps", "clients"],
...     ),
...     "locations": pd.DataFrame(
...         [("Lyon", "FR", 45.76, 4.84), ("Turin", "IT", 45.07, 7.69)],
...         columns=["location", "country", "latitude", "longitude"],
...     ),
...     "clusters": pd.DataFrame(
...         [("x1", "x", "Lyon", 70.0, 0.02, 0.01), ("y1", "y", "Turin", 60.0, 0.02, 0.00)],
...         columns=["cluster", "cdn", "location", "capacity_mbps", "bandwidth_cost", "colocation_cost"],
...     ),
... })
>>> decision = brokering.market.assign(problem)
>>> decision.proof.status
<Status.OPTIMAL: 'optimal'>
>>> decision.plan.assignments[["location", "cluster", "clients"]].values.tolist()
[['Lyon', 'x1', 30.0], ['Turin', 'y1', 20.0]]
"""

from __future__ import annotations

from planner.system import Blur, Coordination, System
from planner_models.brokering import (
    billing,
    explain,
    figures,
    generate,
    learning,
    market,
    profit,
    protocol,
    sees,
    several,
    windows,
)
from planner_models.brokering.adjust import adjust
from planner_models.brokering.assignment import Assignment, from_tables
from planner_models.brokering.check import check
from planner_models.brokering.designs import DESIGNS
from planner_models.brokering.draw import draw
from planner_models.brokering.formulation import formulation
from planner_models.brokering.measure import METRICS, measure
from planner_models.brokering.problem import Brokering, Terms
from planner_models.brokering.published import TARGETS
from planner_models.brokering.tables import OPTIONAL, PLAN_TABLES, TABLES

SYSTEM = System(
    name="brokering",
    question="Which CDN's cluster should serve which clients?",
    source="Mukerjee 2018, chapter 3 (VDX)",
    tables=TABLES,
    optional_tables=OPTIONAL,
    plan_tables=PLAN_TABLES,
    from_tables=Brokering.from_tables,
    series={"day": windows.day, "day_of_tables": windows.day_of_tables, "windows": windows.of_tables},
    presets={"world": generate.world, "city_centric": generate.city_centric},
    adjust=adjust,
    designs=DESIGNS,
    metrics=METRICS,
    check=check,
    measure=measure,
    plan_from_tables=from_tables,
    formulation=formulation,
    explain=explain.explain,
    coordination=Coordination(
        scenario="brokering/coordination",
        performance="objective",
        cost="cost_per_hour",
        blurs=(
            Blur(
                kind="age",
                parameter="age_s",
                values=(0.0, 10.0, 60.0, 300.0, 1800.0),
                unit="s",
                about="how old what CDNs tell of performance and of other traffic is",
                seeds=2,
            ),
            Blur(
                kind="noise",
                parameter="noise",
                values=(0.0, 0.1, 0.2, 0.4, 0.8),
                about="standard deviation of the logarithm of performance and room as told",
                seeds=2,
            ),
            Blur(
                kind="grain",
                parameter="grain_km",
                values=(0.0, 100.0, 300.0, 1000.0, 3000.0),
                unit="km",
                about="side of the squares whose clients are told of as one",
            ),
        ),
    ),
    targets=TARGETS,
    draw=draw,
    trade_off=("median_cost", "median_distance_km"),
)

__all__ = [
    "SYSTEM",
    "Assignment",
    "Brokering",
    "Terms",
    "billing",
    "check",
    "explain",
    "figures",
    "formulation",
    "generate",
    "learning",
    "market",
    "measure",
    "profit",
    "protocol",
    "sees",
    "several",
    "windows",
]
