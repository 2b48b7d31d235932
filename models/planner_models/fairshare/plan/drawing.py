"""Drawings of a problem and of a plan: demand and fair shares, rates of tenants, load of nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pandas as pd

from planner.contract.drawing import Curve, Drawing
from planner_models.fairshare.plan.fair_shares import fair_share_kops
from planner_models.fairshare.plan.plan import Sharing, read_plan
from planner_models.fairshare.problem.problem import SharedStore
from planner_models.fairshare.problem.tables import add_up

MOST_BARS: Final = 40


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
