r"""Contracts: how should a month's traffic be split among CDNs for the least bill?

A content provider pays each CDN for the mean, the 95th percentile or the peak of a month's windows, at
least a commitment, at prices that may change with volume. A plan says how much each CDN carries in each
window.

Formulation, for windows $w$ with traffic $D_w$ and contracts $c$, whose load $x_{wc}$ is at least its least
share of the traffic and at most its largest share and its capacity, $h_{wc}$:

$$\min \sum_c P_c\bigl(\max(V_c, \mathrm{commitment}_c)\bigr)
\quad\text{s.t.}\quad \sum_c x_{wc} = D_w,\quad
x_{wc} \le V_c + h_{wc}\, y_{wc},\quad \sum_w y_{wc} \le F,\quad y_{wc} \in \{0, 1\}$$

$P_c$ is the price of a billed volume, by steps. The volume $V_c$ leaves the $F$ busiest windows out where the
95th percentile is billed (5% of the windows, Mukerjee 2018, 3.2.1); $F = 0$ where the peak is billed, and
$V_c$ is the mean of $x_{wc}$ where that is. The choice of free windows is that of CASCARA (Singh et al., NSDI
2021) and of Entact's cost model (Zhang et al., NSDI 2010). `formulation` is the model in Pyomo. Regions whose
contracts are on one bill (column `bill`), or meter traffic in (column `metered`), are planned together,
others one by one. A region may limit the traffic that changes its CDN from a window to the next beyond what
demand changes: what contracts lose together is at most the fall of its traffic and a share of the lower
traffic of the two.

`optimum` solves a relaxation in which a contract's excess above its billed volume is limited by all of its
free windows together, with windows of similar traffic averaged: a bound on every plan's bill. For levels
from it, column generation finds which contracts are free in how many windows of a group, and a linear
program the loads; a coordinate search improves the levels. Where a gap is left, branching on boxes of
levels raises the bound where at most six contracts are not billed by the mean, on the sum of the levels
where more are, and where the month is small, an integer program proves the optimum. Where
switching is limited, simulated annealing chooses free windows and levels by what contracts can gain and
lose within the limit, and a linear program the loads. Traffic beyond all contracts is left unserved.
`by_peak` plans as if no window were free; `commitments_first`, `cheapest_first` and `fixed_shares` are
rules.

`planner explain` shows each contract's bill, committed traffic that is paid for and not sent, and which
term to renegotiate. Bills are computed from the plan's loads alone, in cents.

Where contracts are on one bill, or meter traffic in, $x_{wc}$ is replaced by what a bill's meter counts,
$\sum_c k_{wc} x_{wc}$ over its contracts, with $k$ the traffic that is metered of a Mbit/s out; several
meters of a bill cost what the larger volume does. A relaxation of the same kind gives the bound, a linear
program the loads for free windows that its dual prices improve, and an integer program the optimum where that
is small. Where a gap is left and at most six bills are not by the mean, branching on boxes of levels raises
the bound here too, and gives the free windows of better plans (`bill_boxes`).

`optimum` optimises over every split of each window's traffic in any fractions, within the limits of
contracts and of switching, that leaves no more unserved than contracts make it. Its bound on the objective is
on what bills compute to; that on the bill is in whole cents, as half a cent of each contract may round down.
Where the bill is so small that this decides, an integer program counts the cents. `method` changes how
it searches, not over what.

Tables: `traffic(window, region, traffic_mbps)`, `contracts(cdn, region, billing, price_per_mbps,
capacity_mbps, commitment_mbps?, min_share?, max_share?)` and optionally `tiers(cdn, region, above_mbps,
price_per_mbps)` and `switching(region, max_moved_percent)`. Prices are of a Mbit/s for all windows. Where the
mean is billed, `price_per_gb`, `commitment_gb` and `above_gb` may take their places, and `traffic_gb` that of
`traffic_mbps`; without times in `window`, all windows together are taken for 30 days. A window without rows
is left out. Optional terms of `contracts` are `burst_price_per_mbps`, the price above the commitment;
`credit`, which is taken off the bill; and `first_window` and `last_window`, between which the contract is in
force: a percentile or a peak is that of these windows, and its prices count for their share of all windows. A
plan is `loads(window, cdn, region, load_mbps)`.

>>> import pandas as pd
>>> from planner_models import contracts
>>> problem = contracts.Month.from_tables({
...     "traffic": pd.DataFrame(
...         {"window": range(1, 21), "region": "world", "traffic_mbps": [100.0] * 19 + [160.0]}
...     ),
...     "contracts": pd.DataFrame(
...         [
...             ("x", "world", "95th percentile", 1.0, 120.0, 40.0),
...             ("y", "world", "95th percentile", 2.0, 100.0, 0.0),
...         ],
...         columns=["cdn", "region", "billing", "price_per_mbps", "capacity_mbps", "commitment_mbps"],
...     ),
... })
>>> decision = contracts.SYSTEM.design("optimum").run(problem)
>>> decision.proof.status, decision.proof.ranks[1].objective
(<Status.OPTIMAL: 'optimal'>, 100.0)
"""

from __future__ import annotations

from planner.contract.system import PlanType, ProblemType, Studies, System
from planner_models.contracts import designs, plan, problem
from planner_models.contracts.designs import DESIGNS
from planner_models.contracts.designs.formulation import formulation
from planner_models.contracts.designs.what_if import explain
from planner_models.contracts.plan.check import check
from planner_models.contracts.plan.metrics import HEADLINE, LIMITS, METRICS, measure
from planner_models.contracts.plan.plan import PLAN_TABLES, Loads, bill, from_tables
from planner_models.contracts.plan.presentation import draw, draw_month
from planner_models.contracts.problem.adjustments import adjust
from planner_models.contracts.problem.generators import PRESETS, limited_day
from planner_models.contracts.problem.problem import OPTIONAL_TABLES, TABLES, Month

SYSTEM = System(
    name="contracts",
    title="CDN contracts",
    area="delivery",
    question="How should a month's traffic be split among CDNs for the least bill?",
    source="Singh et al. 2021 (CASCARA); Zhang et al. 2010 (Entact); Mukerjee 2018, 3.2.1",
    problem=ProblemType(
        type=Month,
        tables=TABLES,
        optional_tables=OPTIONAL_TABLES,
        from_tables=Month.from_tables,
        presets=PRESETS,
        adjust=adjust,
        draw=draw_month,
        sample=limited_day,
    ),
    plan=PlanType(
        tables=PLAN_TABLES,
        from_tables=from_tables,
        check=check,
        metrics=METRICS,
        measure=measure,
        draw=draw,
        headline=HEADLINE,
        limits=LIMITS,
    ),
    designs=DESIGNS,
    formulation=formulation,
    studies=Studies(
        what_if=explain,
        practice="commitments_first",
        practice_name="filling commitments first",
        trade_off=("moved_percent", "bill"),
    ),
)

__all__ = [
    "SYSTEM",
    "Loads",
    "Month",
    "bill",
    "check",
    "designs",
    "formulation",
    "measure",
    "plan",
    "problem",
]


def __dir__() -> list[str]:
    return __all__
