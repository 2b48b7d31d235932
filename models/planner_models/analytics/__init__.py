r"""Analytics: how coarse should each site send its data, so that answers have most value within bandwidth?

Sites generate records, which are aggregated in cells of data cubes. Standing queries combine the data of
all sites in a datacenter. Each query has levels of detail: longer intervals, fewer buckets, samples, shorter
lists. A level has bytes, an error and a part of the query's value. Uplinks of sites and of points of presence
limit the bytes of each interval.

Formulation, in each interval, for sites $s$, queries $q$, levels $l$, answers $z$, bytes $b_{sql}$ and
capacities $B_s$ of sites and $C_g$ of points of presence, where merging leaves the part $m_{gql}$:

$$\max \sum_q v_q \sum_z u_{qz} a_{qz} + \sum_{qs} v_{qs} \sum_l u_{ql} x_{sql}
\quad\text{s.t.}\quad x_{sql} \le \sum_{z:\, l \to z} a_{qz},\quad
\sum_{ql} b_{sql} x_{sql} \le B_s,\quad \sum_{s \in g,\, ql} m_{gql} b_{sql} x_{sql} \le C_g$$

with one level for each site and query, and one answer for each query. An answer is as coarse as its coarsest
site (`combine` is `coarsest`; $l \to z$ where data of level l can be made into answer z), has the error of
its worst site (`worst`), or is a sum to which each site adds a value of its own (`sum`). Intervals and
buckets only become coarser in whole multiples. `formulation` is the model in Pyomo.

`optimum` optimises over every level of every site and query in each interval within all uplinks and rules,
and over one answer for each query; data is sent in its own interval. Later data (`backfill`) is a search of
another design. `method` changes how it searches, not over what. A query has no level where it is not asked.

`optimum` prices the uplinks by Lagrangian relaxation, whose dual function bounds the value of every plan,
repairs the levels that are best at these prices, and searches; where an interval is small, an integer program
proves the optimum. Intervals do not depend on each other. `priced` is a protocol: rounds of prices, then
proposals of answers, no more than a fixed number. `backhaul_all`, `static_policy` and `fixed_top_k` do not
adapt; `adaptive_policy` steps each site down a list of levels by its own bandwidth; `local_values` lets each
site choose by value; `coarsest` also tells it the coarsest level that other sites would send.

Data beyond an uplink's capacity waits in its queue; answers that come after their deadline have no value.
Errors of levels are given in the tables; the presets compute them from generated records. What a datacenter
can prove from the data that it gets may be far more (`proven_error`); `explain` shows both.

Tables: `sites(site, pop, uplink_mbps, weight?, usd_per_gb?, storage_gb?, region?)`,
`pops(pop, uplink_mbps, merges, usd_per_gb?, region?)`, `intervals(interval, start_s, length_s)`,
`cubes(cube, aggregate, stored_bytes_per_record?, stored_bytes_per_cell?)`,
`volume(site, cube, interval, records, cells)`,
`queries(query, cube, value_usd, combine, deadline_s, error_at_most?)`,
`levels(query, level, operator, parameter?, bytes_per_record, bytes_per_cell, error, value_share,
proven_error?, filter_column?, keeps?, filter_value?)`, and optionally `passing(query, level, site,
record_share, cell_share)`, `bandwidth(link, interval, mbps)`, `merging(pop, query, level, merged_share)`,
`policies(query, step, level, until?)`, `backfill(query, window_s, half_life_s)`,
`ad_hoc(query, interval, since?)`, `shares(query, uses)`, `pinned(site, query, level)`,
`forbidden(site, query, level)`, `central(region)`, `laws(region, cube, query, to, finest)`,
`retention(region, cube, at_most_h?, at_least_h?)`,
`stores(place, usd_per_gb_month, capacity_gb?, link_mbps?)` and
`archives(query, keep_days, bytes_per_record, bytes_per_cell, reads_per_month, read_level, value_usd)`.
A plan is `levels(interval, query, level, site)`,
`answers(interval, query, level, error, value_usd)`, `prices(link, price_usd)` of the last interval,
`backfill(interval, sent, query, level, site)`, `merged(interval, query, pop, at)` where the data of a query
is merged, `kept(interval, query, site, gb)` for later, and `archived(query, site, at, gb, usd_per_month)`.

Where table `backfill` has a query, finer data may be sent later: an answer improves, by a value that halves
in each half-life. Design `backfill` sends it in the capacity that new data leaves, or in competition with new
data by value (`order`), or by prices of all intervals, with a bound. The data is kept at the site until
then (`storage_gb`).

A query of table `ad_hoc` is asked once, over data that sites have stored since some interval. A query of
table `shares` is answered from the data of another one, which is sent once; its level follows.

Rules of a region (table `laws`) say the finest level of a query that may leave it, or that nothing
may; table `retention` how long its sites may and must keep data. All designs obey them. Answers that rules
leave impossible are denied, with the rule (`denied_loss`).

A level may have a filter: records pass whose `filter_column` is `at_least`, `at_most`, `equal` or
`not_equal` (`keeps`) to `filter_value`. Table `passing` has the shares of records and cells that pass at each
site; source `records` computes them, and the errors of answers, from the user's records. Data of a level can
be made into a later one whose filter lets fewer of its records pass.

Data of queries in table `archives` is stored for later queries: at its site, at the point of presence or in
the datacenter (table `stores`). Design `storage` chooses the place of each query and site at least cost of
storing, copying, reading and discarding data, with a bound, within storage, rates of uplinks that are set
aside, and rules of regions; `archive_formulation` is its model in Pyomo. Other designs store nothing.

Source `regions` reads regions of clouds, with measured throughput and prices of traffic, as sites.

`roll` plans a day window by window (sources `windows`, `diurnal_windows`), from the prices of the window
before. `simulate` lets sites generate and queue data, and designs decide again in each period on what was
measured, or once by forecast.

>>> from planner_models import analytics
>>> problem = analytics.problem.generators.small()
>>> decision = analytics.SYSTEM.design("optimum").run(problem)
>>> decision.proof.status
<Status.OPTIMAL: 'optimal'>
"""

from __future__ import annotations

from planner.contract.degradation import Degradation
from planner.contract.studies import Coordination
from planner.contract.system import PlanType, ProblemType, Studies, System
from planner_models.analytics import designs, information, plan, problem
from planner_models.analytics.designs import DESIGNS
from planner_models.analytics.designs.archive_formulation import archive_formulation
from planner_models.analytics.designs.formulation import formulation
from planner_models.analytics.designs.what_if import explain
from planner_models.analytics.plan.check import check
from planner_models.analytics.plan.metrics import HEADLINE, LIMITS, METRICS, measure
from planner_models.analytics.plan.plan import PLAN_TABLES, Levels
from planner_models.analytics.plan.presentation import ELEMENTS, draw, draw_demand
from planner_models.analytics.plan.reading import from_tables
from planner_models.analytics.problem.adjustments import adjust
from planner_models.analytics.problem.generated_queries import PRESETS
from planner_models.analytics.problem.generators import small
from planner_models.analytics.problem.problem import Analytics
from planner_models.analytics.problem.readers import read_regions
from planner_models.analytics.problem.records import read_records
from planner_models.analytics.problem.schema import OPTIONAL_TABLES, TABLES
from planner_models.analytics.problem.windows import generate_windows, read_windows
from planner_models.analytics.published import TARGETS
from planner_models.analytics.simulation import SIMULATION

COORDINATION = Coordination(
    scenario="analytics/coordination",
    performance="value",
    cost="sent_gb",
    responsiveness="freshness_p99_s",
    instances=({"problem.bandwidth": 0.25}, {"problem.sites": 40}),
    degradations=(
        Degradation(
            kind="age",
            parameter="age_s",
            values=(0.0, 60.0, 120.0, 300.0, 900.0),
            unit="s",
            about="age of the bandwidth that is known of uplinks",
        ),
        Degradation(
            kind="noise",
            parameter="noise",
            values=(0.0, 0.1, 0.2, 0.4, 0.8),
            about="standard deviation of the logarithm of each uplink's bandwidth as measured",
            seeds=3,
        ),
        Degradation(
            kind="granularity",
            parameter="granularity_links",
            values=(0.0, 2.0, 5.0, 10.0, 50.0),
            unit="links",
            about="uplinks of so many sites are observed as one",
        ),
    ),
)
SYSTEM = System(
    name="analytics",
    title="Wide-area analytics",
    area="delivery",
    question="How coarse should each site send its data for answers of most value within bandwidth?",
    source="Rabkin, Arye, Sen, Pai, Freedman 2013",
    problem=ProblemType(
        type=Analytics,
        tables=TABLES,
        optional_tables=OPTIONAL_TABLES,
        from_tables=Analytics.from_tables,
        sources={"regions": read_regions, "records": read_records},
        presets=PRESETS,
        series={"windows": read_windows, "diurnal_windows": generate_windows},
        adjust=adjust,
        elements=ELEMENTS,
        draw=draw_demand,
        sample=small,
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
    best=("optimum", "priced", "backfill", "local_values", "coarsest", "adaptive_policy"),
    formulation=formulation,
    studies=Studies(
        what_if=explain,
        practice="adaptive_policy",
        practice_name="adaptation of each site by itself",
        trade_off=("sent_gb", "value"),
        coordination=COORDINATION,
        simulation=SIMULATION,
        targets=TARGETS,
    ),
)

__all__ = [
    "SYSTEM",
    "Analytics",
    "Levels",
    "archive_formulation",
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
