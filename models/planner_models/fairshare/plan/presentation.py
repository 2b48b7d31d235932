"""Presentation of plans of system `fairshare`: drawings of rates, and elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pandas as pd

from planner.contract.drawing import Curve, Drawing
from planner.contract.elements import Action, ElementKind, ElementReport, Fact, row_of
from planner.contract.studies import Decided, Section
from planner.options import Options
from planner_models.fairshare.plan.fair_shares import fair_share_kops
from planner_models.fairshare.plan.plan import Sharing, read_plan
from planner_models.fairshare.problem.problem import SharedStore
from planner_models.fairshare.problem.tables import add_up

MOST_BARS: Final = 40
NODE, TENANT = "node", "tenant"
MOST_ROWS: Final = 20
NODE_ACTIONS: Final = (
    Action(name="Fail", state="failed", parameter="fail_nodes", role="failure"),
    Action(
        name="Double its rate", state="at double rate", parameter="rate_factors", value=2.0, role="upgrade"
    ),
    Action(name="Double its memory", state="at double memory", parameter="memory_factors", value=2.0),
)
TENANT_ACTIONS: Final = (
    Action(name="Double its demand", state="at double demand", parameter="demand_factors", value=2.0),
    Action(name="Leave it out", state="left out", parameter="demand_factors", value=0.0),
    Action(
        name="Weigh it 10 times as much",
        state="at 10 times its weight",
        parameter="weight_factors",
        value=10.0,
    ),
)


def draw_demand(problem: SharedStore) -> Sequence[Drawing]:
    """Draw the demand of the largest tenants beside their fair shares."""
    demand, fair = problem.demand_of_tenant, fair_share_kops(problem)
    rows = np.argsort(-demand, kind="stable")[:MOST_BARS]
    frame = pd.DataFrame(
        {"tenant": problem.tenant_names[rows], "demand": demand[rows], "fair share": fair[rows]}
    )
    return [
        Curve(
            title="Demand of tenants",
            frame=frame,
            units={"demand": "kops", "fair share": "kops"},
            bars=True,
        )
    ]


def draw(problem: SharedStore, plan: Sharing) -> Sequence[Drawing]:
    """Draw the tenants' rates over their fair shares, the least first, and the load of the busiest nodes."""
    content = read_plan(problem, plan)
    owner = problem.tenant[content.replicas.partition]
    rate = add_up(owner, weights=content.kops, minlength=len(problem.tenants))
    fair = fair_share_kops(problem)
    level = np.divide(rate, fair, out=np.zeros_like(rate), where=fair > 0)
    demand_ratio = np.divide(problem.demand_of_tenant, fair, out=np.zeros_like(rate), where=fair > 0)
    rows = np.argsort(level, kind="stable")[:MOST_BARS]
    tenants = pd.DataFrame(
        {
            "tenant": problem.tenant_names[rows],
            "served": 100 * level[rows],
            "demanded": 100 * np.maximum(demand_ratio, level)[rows],
        }
    )
    load = add_up(content.replicas.node, weights=content.kops, minlength=len(problem.nodes))
    busiest = np.argsort(-load, kind="stable")[:MOST_BARS]
    nodes = pd.DataFrame(
        {
            "node": problem.node_names[busiest],
            "load": load[busiest],
            "capacity": problem.rate_kops[busiest],
        }
    )
    return [
        Curve(
            title="Rates of tenants, of their fair shares",
            frame=tenants,
            units={"served": "%", "demanded": "%"},
            bars=True,
        ),
        Curve(title="Load of nodes", frame=nodes, units={"load": "kops", "capacity": "kops"}, bars=True),
    ]


def list_nodes(problem: SharedStore) -> list[str]:
    """Return the names of all nodes."""
    return [str(name) for name in problem.node_names]


def list_tenants(problem: SharedStore) -> list[str]:
    """Return the names of all tenants."""
    return [str(name) for name in problem.tenant_names]


def describe_node(problem: SharedStore, decided: Decided, name: str, options: Options) -> ElementReport:  # noqa: ARG001
    """Describe the load and memory of a node, and the tenants that it serves."""
    n = row_of(list_nodes(problem), name, NODE)
    content = read_plan(problem, decided.plan)
    own_rows = np.flatnonzero(content.replicas.node == n)
    owner = problem.tenant[content.replicas.partition[own_rows]]
    kops = add_up(owner, weights=content.kops[own_rows], minlength=len(problem.tenants))
    used = float(problem.size_gb[content.replicas.partition[own_rows]].sum())
    rate = float(problem.rate_kops[n])
    facts = [
        Fact(label="Load", value=float(kops.sum()), unit="kops"),
        Fact(label="Capacity", value=rate, unit="kops"),
        Fact(label="Utilization", value=100 * float(kops.sum()) / rate if rate > 0 else None, unit="%"),
        Fact(label="Memory used", value=used, unit="GB"),
        Fact(label="Memory", value=float(problem.memory_gb[n]), unit="GB"),
        Fact(label="Replicas", value=float(len(own_rows))),
    ]
    if problem.is_failed[n]:
        facts.insert(0, Fact(label="State", value="failed"))
    rows = np.argsort(-kops, kind="stable")[:MOST_ROWS]
    rows = rows[kops[rows] > 0]
    frame = pd.DataFrame(
        {"tenant": problem.tenant_names[rows], "served": kops[rows], "weight": content.weight[rows, n]}
    )
    units = {"served": "kops", "weight": "kops"}
    sections = (Section(title="Tenants", frame=frame, units=units),) if len(frame) else ()
    return ElementReport(facts=tuple(facts), sections=sections)


def describe_tenant(problem: SharedStore, decided: Decided, name: str, options: Options) -> ElementReport:  # noqa: ARG001
    """Describe the rate of a tenant, its fair share, and the nodes that serve it."""
    t = row_of(list_tenants(problem), name, TENANT)
    content = read_plan(problem, decided.plan)
    own_rows = np.flatnonzero(problem.tenant[content.replicas.partition] == t)
    node = content.replicas.node[own_rows]
    by_node = add_up(node, weights=content.kops[own_rows], minlength=len(problem.nodes))
    load = add_up(content.replicas.node, weights=content.kops, minlength=len(problem.nodes))
    served, fair = float(by_node.sum()), float(fair_share_kops(problem)[t])
    facts = (
        Fact(label="Served", value=served, unit="kops"),
        Fact(label="Demand", value=float(problem.demand_of_tenant[t]), unit="kops"),
        Fact(label="Fair share", value=fair, unit="kops"),
        Fact(label="Over its fair share", value=served / fair if fair > 0 else None),
        Fact(label="Weight", value=float(problem.weight[t])),
        *_list_rules(problem, t),
        Fact(label="Mix", value="fixed" if problem.is_fixed[t] else "elastic"),
    )
    rows = np.unique(node)
    rows = rows[np.argsort(-by_node[rows], kind="stable")][:MOST_ROWS]
    rate = problem.rate_kops[rows]
    frame = pd.DataFrame(
        {
            "node": problem.node_names[rows],
            "served": by_node[rows],
            "weight": content.weight[t, rows],
            "load_of_node": 100 * np.divide(load[rows], rate, out=np.zeros_like(rate), where=rate > 0),
        }
    )
    units = {"served": "kops", "weight": "kops", "load_of_node": "%"}
    sections = (Section(title="Nodes", frame=frame, units=units),) if len(frame) else ()
    return ElementReport(facts=facts, sections=sections)


def _list_rules(problem: SharedStore, t: int) -> list[Fact]:
    """Return the group, the reserved rate and the limit of a tenant, as far as it has them."""
    group, reserved, limit = problem.group_of_tenant[t], problem.reserved_kops[t], problem.limit_kops[t]
    facts = [Fact(label="Group", value=str(problem.group_names[group]))] if group >= 0 else []
    if reserved > 0:
        facts.append(Fact(label="Reserved", value=float(reserved), unit="kops"))
    if np.isfinite(limit):
        facts.append(Fact(label="Limit", value=float(limit), unit="kops"))
    return facts


ELEMENTS: Final = (
    ElementKind(name=NODE, names=list_nodes, actions=NODE_ACTIONS, describe=describe_node),
    ElementKind(name=TENANT, names=list_tenants, actions=TENANT_ACTIONS, describe=describe_tenant),
)
