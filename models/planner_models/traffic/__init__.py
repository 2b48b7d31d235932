r"""Traffic: how should these demands be routed?

A network of directed links with capacities must carry demands between its nodes. Which routes, with
which splits, carry the most, load links the least, or cost the least?

Formulation, Sen et al. 2013 ("Scalable, optimal flow routing in datacenters via local link
balancing"), equation (1), for the links $E$ with capacities $c_{uv}$ and commodities $(s, d)$:

$$\max \sum_i U_i(x_i) \quad\text{s.t.}\quad
\sum_{u:(u,v) \in E} f^{s,d}_{u,v} = \sum_{w:(v,w) \in E} f^{s,d}_{v,w} \;\forall v \neq s, d,\quad
\sum_{v:(s,v) \in E} f^{s,d}_{s,v} = \sum_{i: s \to d} x_i,\quad
\sum_{s,d} f^{s,d}_{u,v} \le c_{uv}$$

Objectives of `optimum`: `concurrent` (the largest $\lambda$ such that $\lambda$ times every demand
fits), `utilization` (the smallest largest load over capacity), `total` (the most traffic) and
`cost` (the cheapest); design `utility` takes concave $U_i$. `formulation` is that model in Pyomo;
`optimum.route` solves it as sparse arrays, with one commodity for each target, or over given paths.

Tables: `nodes(node, latitude?, longitude?)`, `links(tail, head, capacity_mbps, weight?, cost?,
latency_ms?)`, `demands(source, target, rate_mbps)`; parallel links are rows with the same ends. A
plan is `flows(source, target, tail, head, parallel, rate_mbps)`, `links(tail, head, parallel,
load_mbps, utilization)` and, over given paths, `routes(source, target, path, rate_mbps)`.

>>> import pandas as pd
>>> from planner_models import traffic
>>> problem = traffic.Traffic.from_tables({
...     "links": pd.DataFrame(
...         [("a", "b", 10.0), ("b", "d", 10.0), ("a", "c", 5.0), ("c", "d", 5.0)],
...         columns=["tail", "head", "capacity_mbps"],
...     ),
...     "demands": pd.DataFrame([("a", "d", 12.0)], columns=["source", "target", "rate_mbps"]),
... })
>>> decision = traffic.optimum.route(problem, objective="concurrent")
>>> decision.proof.status, round(decision.proof.objective, 6)
(<Status.OPTIMAL: 'optimal'>, 1.25)
>>> decision.plan.links["utilization"].round(3).tolist()
[0.8, 0.8, 0.8, 0.8]
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any

from pydantic import Field

from planner.system import Blur, Coordination, System
from planner_models.traffic import (
    columns,
    deploy,
    ecmp,
    execution,
    explain,
    failures,
    flow_sizes,
    forwarding,
    fptas,
    generate,
    hedera,
    localflow,
    mptcp,
    optimum,
    published,
    rates,
    series,
    topologies,
    utility,
    valiant,
    weights,
    workloads,
)
from planner_models.traffic.check import check
from planner_models.traffic.designs import DESIGNS
from planner_models.traffic.draw import draw
from planner_models.traffic.formulation import formulation
from planner_models.traffic.measure import METRICS, measure
from planner_models.traffic.problem import TABLES, Traffic
from planner_models.traffic.readers import graphml, repetita, sndlib, topohub
from planner_models.traffic.routing import PLAN_TABLES, Routing, from_tables
from planner_models.traffic.sees import enact


def adjust(
    problem: Traffic,
    *,
    scale: Annotated[float, Field(ge=0, description="every demand's rate is multiplied by this")] = 1.0,
    capacity_scale: Annotated[
        float, Field(gt=0, allow_inf_nan=False, description="every link's capacity is multiplied by this")
    ] = 1.0,
    fail_links: failures.FailLinks = (),
    fail_nodes: failures.FailNodes = (),
    fail_groups: failures.FailGroups = (),
    risk_groups: failures.RiskGroups = None,
    down_rate: failures.DownRate = {},  # noqa: B006 - never changed
    fail_random_links: failures.RandomLinks = 0,
    fail_random_nodes: failures.RandomNodes = 0,
    fail_random_groups: failures.RandomGroups = 0,
    failure_seed: failures.FailureSeed = 0,
    lost_demands: failures.LostDemands = "error",
) -> Traffic:
    """The problem with its demands and capacities scaled, then without what fails.

    Shares in `down_rate` are of scaled capacities.
    """
    return failures.fail(
        problem.scaled(scale).with_capacity(capacity_scale),
        fail_links=fail_links,
        fail_nodes=fail_nodes,
        fail_groups=fail_groups,
        risk_groups=risk_groups,
        down_rate=down_rate,
        fail_random_links=fail_random_links,
        fail_random_nodes=fail_random_nodes,
        fail_random_groups=fail_random_groups,
        failure_seed=failure_seed,
        lost_demands=lost_demands,
    )


def _problem_of(read: Callable[..., Any]) -> Callable[..., Traffic]:
    """The reader, with its parameters, as a source of problems."""

    @functools.wraps(read)
    def source(**parameters: Any) -> Traffic:
        # the first argument of a reader is positional: what to read
        first = next(iter(inspect.signature(read).parameters))
        return Traffic.from_tables(read(parameters.pop(first), **parameters))

    return source


SYSTEM = System(
    name="traffic",
    question="How should these demands be routed?",
    source="Sen, Shue, Ihm and Freedman 2013 (LocalFlow)",
    tables=TABLES,
    optional_tables=("nodes",),
    plan_tables=(*PLAN_TABLES, weights.WEIGHTS),
    from_tables=Traffic.from_tables,
    sources={
        "topohub": _problem_of(topohub.read),
        "graphml": _problem_of(graphml.read),
        "sndlib": _problem_of(sndlib.read),
        "repetita": _problem_of(repetita.read),
    },
    series={"matrices": series.matrices},
    presets={
        "abilene": generate.abilene,
        "germany50": generate.germany50,
        "fat_tree": generate.fat_tree,
        "oversubscribed_fat_tree": generate.oversubscribed_fat_tree,
        "vl2": generate.vl2,
    },
    adjust=adjust,
    designs=DESIGNS,
    metrics=METRICS,
    check=check,
    measure=measure,
    plan_from_tables=from_tables,
    enact=enact,
    formulation=formulation,
    explain=explain.explain,
    coordination=Coordination(
        scenario="traffic/coordination",
        performance="concurrent_flow",
        blurs=(
            Blur(
                kind="age",
                parameter="age_s",
                values=(0, 60, 300, 900, 3600, 14400),
                unit="s",
                about="rates are told so late; meanwhile each moves on its own, forgotten in an hour",
                seeds=3,
            ),
            Blur(
                kind="noise",
                parameter="noise",
                values=(0, 0.1, 0.2, 0.5, 1, 2),
                about="standard deviation of the logarithm of each rate that is measured or told",
                seeds=3,
            ),
            Blur(
                kind="grain",
                parameter="grain",
                values=(0, 2, 5, 10, 25, 50),
                unit="nodes",
                about="rates are told between regions of so many nodes, and spread by gravity",
            ),
        ),
    ),
    draw=draw,
    trade_off=("mean_path_stretch", "max_utilization"),
    targets=published.TARGETS,
)

__all__ = [
    "SYSTEM",
    "Routing",
    "Traffic",
    "check",
    "columns",
    "deploy",
    "ecmp",
    "execution",
    "explain",
    "failures",
    "flow_sizes",
    "formulation",
    "forwarding",
    "fptas",
    "generate",
    "hedera",
    "localflow",
    "measure",
    "mptcp",
    "optimum",
    "published",
    "rates",
    "series",
    "topologies",
    "utility",
    "valiant",
    "weights",
    "workloads",
]
