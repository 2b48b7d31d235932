r"""Geo-replicated store: which regions hold each group of data, and who reads and writes where?

A store keeps groups of data in several regions of clouds. Replicas near users are fast, and each costs
storage and a copy of every write. Consistency decides how many replicas an operation waits for; causal
consistency, as in Eiger, waits for none elsewhere, but checks order at the local replica of what a write
depends on, which must be there. The system places groups at the least cost that keeps limits of time,
consistency, and what must be survived.

Formulation, for groups $g$, users $i$ and regions $a, j$, with replicas $y$, attachments $x$ and copies
$u$:

$$\min \sum_{gj} s_{gj} y_{gj} + \sum_{ia} c_{ia} x_{ia} + \sum_{giaj} w_{gi} e_{aj} u_{giaj}
\quad\text{s.t.}\quad
\sum_a x_{ia} = 1,\; x_{ia} \le y_{ga},\; \sum_a u_{giaj} = y_{gj},\; u_{giaj} \le x_{ia},\;
y_{Bj} \le y_{Aj}$$

where $x_{ia}$ is possible within the user's limits only, and the last row holds for each group $B$ that
depends on $A$. Each group has more replicas than regions that may fail, and enough of them near its users.
Prices of attachments and copies leave one term for each replica and each user: design `optimum` is branch
and bound with these Lagrangian bounds, and an integer program for groups that depend on each other. A
strongly consistent group has $n$ replicas, of which reads wait for $r$ and writes for $w$, with $r + w > n$
and $2 w > n$, or a leader whose writes wait for a majority. Where it is cheaper, a
group of class `coded` is cut into pieces of $1/k$ of each value (Coded Atomic Storage): an operation asks $q$
regions for the newest write, a read waits for $r$ pieces, and a write for $w$ and then for $n + 1 - q$
regions that know its end, with $q + r > n$ and $r + w \ge n + k$.

Designs: `everywhere` has full replicas, as Eiger; `near_users` a replica in each region with users;
`spanstore` and `skypie` place each group alone, with one more replica within the limit of each user than
may fail, and with writes straight to each replica; `optimum` places groups together that depend on each
other. In `merged` groups that depend on each other share their regions; `volley` moves groups to the centre
of their users; in `bids` users pick the cheapest region that is near enough. `single_leader`, `majority`,
`survive_zone` and `survive_region` have leaders and voters by rules of practice.

Where regions have few servers (`most_servers`), `optimum` generates columns: plans of one component each, at
prices of load by region, from which a master program picks; the bound is that of the prices. Load beyond the
servers is refused at a penalty. In `priced` regions announce such prices and groups choose alone. `hashed`,
`equal_ranges`, `best_ranges`, `split_hot` and `partitioned` place groups as `optimum`, and cut the ranges of
an ordered keyspace over servers in five ways. With `checks = remote` of the protocol (not the paper's) groups
that depend on each other are placed alone, and order is checked at the nearest replica; replicas are added
until these checks leave no dependency open.

Tables: `regions(region, storage_usd_gb_month, put_usd?, get_usd?, server_usd_month?, server_kops?,
least_servers?, most_servers?, zones?, provider?, latitude?, longitude?)`,
`links(source, target, rtt_ms, usd_per_gb?)`, which one region does not need,
`groups(group, size_gb, object_bytes, class?, invariant?, counter?, survive?, failures?, read_ms?, write_ms?,
failover_ms?, stale_ms?)`, `access(group, region, reads_per_s, writes_per_s, keys_per_op?, columns_per_key?,
write_transactions?, operations_per_page?)`, and optionally `depends(group, on, share?, per_write?)`,
`placed(group, region)`, `pinned(group, region)`, `forbidden(group, region)`, an ordered keyspace in one
datacenter, `ranges(range, kops, size_gb?, server?)`, `servers(server, kops)`, `scans(first, last, per_s)` and
`transactions(ranges, per_s)`, and one row of `protocol(frontends?, fill?, checks?, dependency_bytes?,
evt_bytes?, read_metadata_bytes?, overhead?, local_rtt_ms?, service_ms?, read_timeout_s?,
refused_usd_per_million?, replication_load?, message_weight?, move_weight?)`. A plan is
`replicas(group, region, role, copies)`, `routes(group, region, read_from, write_to, read_ms, write_ms)`,
`propagation(group, origin, source, target)`, `classes(group, class, n, r, w, k?, query?, checks)`, and where
there are some `attachments(region, component, datacenter)`, `servers(region, servers, refused_per_s?)` and
`shards(range, piece, server)`.

>>> from planner_models import geostore
>>> problem = geostore.problem.generators.vicci(limit_ms=50)
>>> decision = geostore.designs.optimum.place(problem)
>>> decision.proof.status, sorted(decision.plan.replicas["region"])
(<Status.OPTIMAL: 'optimal'>, ['Princeton', 'Stanford'])
"""

from __future__ import annotations

from planner.contract.degradation import Degradation
from planner.contract.studies import Coordination
from planner.contract.system import PlanType, ProblemType, Studies, System
from planner_models.geostore import designs, plan, problem
from planner_models.geostore.designs import DESIGNS
from planner_models.geostore.designs.formulation import formulation
from planner_models.geostore.designs.what_if import explain
from planner_models.geostore.information import realize
from planner_models.geostore.plan.check import check
from planner_models.geostore.plan.metrics import HEADLINE, LIMITS, METRICS, measure
from planner_models.geostore.plan.plan import PLAN_TABLES, StorePlan, from_tables
from planner_models.geostore.plan.presentation import ELEMENTS, draw
from planner_models.geostore.problem.adjustments import adjust
from planner_models.geostore.problem.drawing import draw as draw_problem
from planner_models.geostore.problem.generators import small
from planner_models.geostore.problem.presets import PRESETS
from planner_models.geostore.problem.problem import Geostore
from planner_models.geostore.problem.schema import OPTIONAL_TABLES, TABLES
from planner_models.geostore.problem.sources import SOURCES
from planner_models.geostore.published import TARGETS
from planner_models.geostore.simulation import SIMULATION

SYSTEM = System(
    name="geostore",
    title="Geo-replicated store",
    area="storage and switches",
    question="Which regions hold each group of data, and who reads and writes where?",
    source="Lloyd et al. 2013 (Eiger); Wu et al. 2013 (SPANStore)",
    problem=ProblemType(
        type=Geostore,
        tables=TABLES,
        optional_tables=OPTIONAL_TABLES,
        from_tables=Geostore.from_tables,
        sources=SOURCES,
        presets=PRESETS,
        adjust=adjust,
        draw=draw_problem,
        elements=ELEMENTS,
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
    best=("optimum",),
    usual=("optimum", "near_users", "everywhere", "spanstore", "merged", "bids"),
    formulation=formulation,
    closed="its search prices replicas and attachments, and has no program that a user could change",
    studies=Studies(
        what_if=explain,
        practice="near_users",
        practice_name="a replica in each region with users",
        trade_off=("usd_per_month", "read_ms"),
        targets=TARGETS,
        simulation=SIMULATION,
        coordination=Coordination(
            scenario="geostore/coordination",
            performance="usd_per_million_good",
            cost="missed_per_s",
            instances=({"problem.chain": 1}, {"problem.limit_ms": 120.0}),
            degradations=(
                Degradation(
                    kind="age",
                    parameter="age_s",
                    values=(0.0, 900.0, 3600.0, 14_400.0, 86_400.0),
                    unit="s",
                    about="age of the reported access and round-trip times",
                    seeds=5,
                ),
                Degradation(
                    kind="noise",
                    parameter="noise",
                    values=(0.0, 0.2, 0.4, 0.8),
                    about="standard deviation of the logarithm of each reported access rate",
                    seeds=5,
                ),
                Degradation(
                    kind="granularity",
                    parameter="granularity_km",
                    values=(0.0, 1_000.0, 5_000.0, 20_000.0),
                    unit="km",
                    about="side of the squares within which users are reported as one",
                ),
            ),
        ),
    ),
)

__all__ = [
    "SYSTEM",
    "Geostore",
    "StorePlan",
    "check",
    "designs",
    "formulation",
    "measure",
    "plan",
    "problem",
]


def __dir__() -> list[str]:
    return __all__
