r"""Live video: which links should carry which channel, so that the most is watched at the least cost?

A content delivery network carries live channels, each at several bitrates, from sources over
reflectors and edge clusters to groups of clients. A channel at one bitrate is an *object*. The links
that carry an object form a tree, and each link carries it once for all clients below.

Formulation, Mukerjee 2018, Fig. 4.8, for links $L$, the groups' own links $L_{AS}$ and objects $O$:

$$\max\; w_s \sum_{l \in L_{AS}, o} \mathrm{Priority}_o \mathrm{Request}_{l,o} \mathrm{Serves}_{l,o}
- w_c \sum_{l, o} \mathrm{Cost}(l) \mathrm{Bitrate}(o) \mathrm{Serves}_{l,o}$$
$$\text{s.t.}\quad \sum_o \mathrm{Bitrate}(o) \mathrm{Serves}_{l,o} \le \mathrm{Capacity}(l),\quad
\sum_{l' \in \mathrm{InLinks}(l)} \mathrm{Serves}_{l',o} \ge \mathrm{Serves}_{l,o},\quad
\mathrm{Serves}_{l,o} \in \{0, 1\}$$

`formulation` states the additions to the printed program: sources, duplicate deliveries, dummy links,
multiplicity and units (Mbit/s, cost per Mbit/s; weights 1 and 1e-4 unless `settings` says otherwise).
There may be any number of tiers from 2 on; the links give their order. Source `any_topology` reads links that
form no cycle but are no chain of tiers: those over several levels pass relays.

Designs, by the information of each control plane:

| design | trees | source |
|---|---|---|
| `vdn` | all objects together, by decomposition or, if few, by their integer program; the default | 4.5 |
| `optimum` | the integer program; with a time limit never below `vdn`, which it starts from | Fig. 4.8 |
| `everything_everywhere` | every object to every edge while links have capacity | 4.7.1 |
| `overlay_multicast` | the best trees of each channel alone, on residual capacities | 4.7.1 |
| `cdn`, `cdn_1s` | DNS: the widest path link by link; answers are cached for 30 s, or 1 s | 4.7.1 |
| `distributed` | Algorithm 1 alone: the fewest hops with capacity, as clusters announce | 4.4.2 |
| `centralized` | as `vdn`, on requests of `age_s` ago | 4.7.2 |
| `hybrid` | as `centralized`, with Algorithm 1 for later and refused requests | 4.4 |

The information of all designs but `everything_everywhere` can be degraded: `information.age_s`,
`information.noise` and `information.granularity_km` set age of information, measurement noise and the
size of regions. Plans are then realized on the true links.

A channel's objects are a ladder of bitrates, all made at its sources. Where `lowest_kbps` says that clients
accept lower bitrates than they request, each is served at one of them, whose priority counts: `vdn` and
`optimum` choose bitrates and trees together, with one bound. The other designs serve what is requested, and
lower bitrates with `lower_bitrates`: denied clients request the next lower bitrate. `clients_at_bitrate`
counts the bitrate of the first request, `clients_served` any request; Tables 4.3 to 4.5 print the clients
whose last request is served.

Links into groups carry an object once for all of its viewers, unless `last_hop` of `settings` (or
`problem.last_hop`) is `unicast`: then each viewer takes a stream of its own over them, groups may be served
in part and by several edges, and the plan table `viewers` says which edge serves how many. All designs do
so; lower bitrates and `most_moved` are for a multicast last hop only. `planner simulate` then counts viewers,
who come and go where `watch_s` is given.

Links may be on a bill together (column `bill`), such as that of a transit provider: a percentile of the
month's samples, at a price per Mbit/s, with a cap on its traffic. With the month's other samples (table
`samples`), the load of the window decides what is added to the bill: nothing up to the level that is billed
anyway, then the price, and nothing where the window is among those that are not billed. What is added counts
as cost. `vdn` and `optimum` plan with it, and their bound holds; the others know the links' costs alone, and
remove streams beyond a cap.

Every design sets up pinned streams first, on the cheapest trees for them alone; a design that cannot
carry them returns no plan, with the reason. `planner simulate` runs the last three designs in time:
agents with versions, evidence and shadow tables, lost updates, partitions, failures of the controller,
of clusters and of links; with `lowest_kbps` clients request the bitrates that they accept, from the
highest down, and the controller chooses among these. With `switch_s` they switch in the middle of their
sessions too, by what they receive. With `by_chunks` they fetch chunk by chunk, over connections that are
set up and queues of servers and links.

Tables: `clusters(cluster, tier, latitude?, longitude?)`, `links(tail, head, capacity_mbps, cost?,
latency_ms?, bill?)`, `objects(channel, bitrate_kbps, priority?)`, `requests(group, channel,
bitrate_kbps, clients?, lowest_kbps?, arrival_s?)`; optional `holders(channel, source)`, `pinned` and
`forbidden(channel, bitrate_kbps, tail, head)` with * for all, `bills(bill, price_per_mbps?, percentile?,
windows?, commitment_mbps?, cap_mbps?)`, `samples(bill, window, load_mbps)`, and
`settings(service_weight, cost_weight, chunk_s?, last_hop?)`. A plan is `trees(channel, bitrate_kbps,
tail, head)`, one row a link that carries an object, and where clients waited for a decision
`waits(group, channel, bitrate_kbps, waited_s)`; `unserved(group, channel, bitrate_kbps, clients)` lists
the clients that no tree reaches, which scarce capacity leaves without service; `viewers(group, channel,
bitrate_kbps, edge, clients)` lists those of each edge by a unicast last hop.
`service = "all"` serves everyone or proves that no plan can. A trace `sessions(start_s, duration_s, group,
channel, bitrate_kbps)` in place of `requests` is cut into windows: source `sessions` for `planner roll`,
`window` for one of them.

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
>>> decision = livevideo.designs.decomposition.decomposition.distribute(problem)
>>> decision.proof.status, round(decision.proof.objective, 6)
(<Status.OPTIMAL: 'optimal'>, 1.99968)
>>> [f"{row.tail}->{row.head}" for row in decision.plan.trees.itertuples()]
['S->X', 'S->Y', 'X->A', 'Y->B']
"""

from __future__ import annotations

from planner.contract.degradation import Degradation
from planner.contract.studies import Coordination
from planner.contract.system import PlanType, ProblemType, Studies, System
from planner_models.livevideo import designs, information, plan, problem, published, simulation
from planner_models.livevideo.designs import DESIGNS
from planner_models.livevideo.designs.formulation import formulation
from planner_models.livevideo.designs.what_if import explain
from planner_models.livevideo.plan.check import check
from planner_models.livevideo.plan.metrics import HEADLINE, LIMITS, METRICS, measure
from planner_models.livevideo.plan.plan import PLAN_TABLES, Trees, from_tables
from planner_models.livevideo.plan.presentation import ELEMENTS, add_load, draw
from planner_models.livevideo.problem import generators
from planner_models.livevideo.problem.adjustments import adjust
from planner_models.livevideo.problem.drawing import draw as draw_problem
from planner_models.livevideo.problem.problem import LiveVideo
from planner_models.livevideo.problem.relays import read_any_topology
from planner_models.livevideo.problem.schema import OPTIONAL_TABLES, TABLES
from planner_models.livevideo.problem.series import read_window, read_windows
from planner_models.livevideo.published import TARGETS
from planner_models.livevideo.simulation.control import SIMULATION

SYSTEM = System(
    name="livevideo",
    title="Live video delivery",
    area="delivery",
    question="Which links should carry which channel, so that the most is watched at the least cost?",
    source="Mukerjee 2018, chapter 4 (VDN)",
    problem=ProblemType(
        type=LiveVideo,
        tables=TABLES,
        optional_tables=OPTIONAL_TABLES,
        from_tables=LiveVideo.from_tables,
        sources={"window": read_window, "any_topology": read_any_topology},
        series={"sessions": read_windows},
        presets={
            "heavy_tail": generators.heavy_tail,
            "heavy_tail_active": generators.heavy_tail_active,
            "average_day": generators.average_day,
            "large_event": generators.large_event,
            "testbed": generators.ec2_testbed,
        },
        adjust=adjust,
        draw=draw_problem,
        elements=ELEMENTS,
        sample=generators.create_sample,
    ),
    plan=PlanType(
        tables=PLAN_TABLES,
        from_tables=from_tables,
        check=check,
        metrics=METRICS,
        measure=measure,
        realize=information.realize,
        draw=draw,
        to_networkx=add_load,
        headline=HEADLINE,
        limits=LIMITS,
    ),
    designs=DESIGNS,
    # vdn bounds every plan within 0.1% at any size; optimum has no end on large problems without a time limit
    best=("vdn", "optimum", "centralized", "hybrid"),
    formulation=formulation,
    studies=Studies(
        what_if=explain,
        practice="cdn",
        practice_name="a CDN with DNS answers of 30 s",
        trade_off=("cost_per_satisfied", "average_bitrate_kbps"),
        coordination=Coordination(
            scenario="livevideo/coordination",
            performance="service_minus_cost",
            cost="cost_per_satisfied",
            responsiveness="join_s",
            instances=(
                {"problem.videos": 3_000},
                {"problem.videos": 3_000, "problem.requests_per_video": 0.8},
            ),
            degradations=(
                Degradation(
                    kind="age",
                    parameter="age_s",
                    values=(0, 5, 10, 20, 40, 60),
                    unit="s",
                    about="age of the controller's requests; for clusters the time between announcements",
                ),
                Degradation(
                    kind="noise",
                    parameter="noise",
                    values=(0, 0.05, 0.1, 0.2, 0.4),
                    about="standard deviation of the logarithm of each link's measured capacity",
                    seeds=2,
                ),
                Degradation(
                    kind="granularity",
                    parameter="granularity_km",
                    values=(0, 50, 100, 200, 500, 1000),
                    unit="km",
                    about="side of the regions by which requests are reported",
                ),
            ),
        ),
        simulation=SIMULATION,
        targets=TARGETS,
    ),
)

__all__ = [
    "SYSTEM",
    "LiveVideo",
    "Trees",
    "check",
    "designs",
    "formulation",
    "information",
    "measure",
    "plan",
    "problem",
    "published",
    "simulation",
]


def __dir__() -> list[str]:
    return __all__
