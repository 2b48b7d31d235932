"""Designs that place machines one by one by a fit rule: best fit, first fit, and spreading."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from planner.contract.design import Decision
from planner.options import Options
from planner_models.consolidation.designs.bundles import place_remaining
from planner_models.consolidation.designs.decision import decide, refuse_shortage
from planner_models.consolidation.plan.plan import ConsolidationPlan
from planner_models.consolidation.problem.packing import Packer, Rule, decreasing, pack_all, regroup
from planner_models.consolidation.problem.problem import Consolidation

Order = Annotated[
    Literal["decreasing", "table"],
    Field(description="order of the machines: the largest first, or as in the table"),
]


def _order(problem: Consolidation, order: str) -> list[int]:
    rows = decreasing(problem)
    return rows if order == "decreasing" else sorted(rows)


def _plan(problem: Consolidation, rule: Rule, order: str) -> Decision[ConsolidationPlan]:
    packer = pack_all(problem, Packer(problem, rule=rule), _order(problem, order))
    return decide(problem, packer.groups, packer.refused)


@refuse_shortage
def plan_best_fit(
    problem: Consolidation,
    *,
    order: Order = "decreasing",
    options: Options = Options(),  # noqa: ARG001 - tells a strict service
) -> Decision[ConsolidationPlan]:
    """Place each machine on the host with the least free capacity that holds it.

    source  Johnson 1973 (best fit decreasing)
    """
    return _plan(problem, "best", order)


@refuse_shortage
def plan_first_fit(
    problem: Consolidation,
    *,
    order: Order = "decreasing",
    options: Options = Options(),  # noqa: ARG001 - tells a strict service
) -> Decision[ConsolidationPlan]:
    """Place each machine on the first host that holds it.

    source  Johnson 1973 (first fit decreasing)
    """
    return _plan(problem, "first", order)


@refuse_shortage
def plan_spread(
    problem: Consolidation,
    *,
    options: Options = Options(),  # noqa: ARG001 - tells a strict service
) -> Decision[ConsolidationPlan]:
    """Place each machine on the open host with the most free capacity, over as many of its nodes as it may.

    source  Deehr et al. 2014, Table 3 (first step: all machines split across the nodes)
    """
    return _plan(problem, "spread", "table")


@refuse_shortage
def plan_percentage(
    problem: Consolidation,
    *,
    share: Annotated[
        float, Field(ge=0, lt=1, description="share of the capacity of each host that is kept free")
    ] = 1 / 3,
    options: Options = Options(),  # noqa: ARG001 - tells a strict service
) -> Decision[ConsolidationPlan]:
    """Keep a share of all capacity free for losses, and spread machines over hosts by best fit.

    Machines that fit in no host within the other share take the whole host.

    source  VMware, vSphere Availability (admission control by a percentage of cluster resources)
    """
    packer = pack_all(problem, Packer(problem, reserve=share), decreasing(problem))
    groups = [regroup(problem, group.supply, group.hosts, group.content) for group in packer.groups]
    remaining = np.zeros(len(problem.machines), dtype=np.int64)
    for shape, count in packer.refused.items():
        remaining[shape] = count
    again = place_remaining(problem, groups, remaining)
    return decide(problem, again.groups, again.refused)
