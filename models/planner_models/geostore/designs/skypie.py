"""SkyPIE: each write goes straight from its user's region to every replica (Bang et al. 2024)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from planner.arrays import Bools, Ints
from planner.contract.design import Decision
from planner.options import Options
from planner_models.geostore.designs.assembly import decide, nearest_attachment, refuse_unreachable
from planner_models.geostore.designs.component import single
from planner_models.geostore.designs.spanstore import AloneSearch, kind_alone
from planner_models.geostore.plan.plan import GroupPlan, StorePlan
from planner_models.geostore.problem.problem import Geostore


@refuse_unreachable
def place(problem: Geostore, *, options: Options = Options()) -> Decision[StorePlan]:
    """Place each group alone at the least cost, where front ends write straight to every replica.

    Only reads have a limit. Strongly consistent groups get the cheapest quorums.
    """
    search = AloneSearch.of(problem, options)
    latency = np.where(problem.is_forbidden[problem.user_group], np.inf, problem.latency_ms)
    limit = problem.limit_ms("read_ms")[problem.user_group]
    allowed = latency <= np.maximum(limit, latency.min(axis=1))[:, None]
    groups = [
        search.strong(group) if problem.is_strong[group] else _place_group(search, group, allowed)
        for group in range(len(problem.groups))
    ]
    return decide(problem, groups)


def _place_group(search: AloneSearch, group: int, allowed: Bools) -> GroupPlan:
    problem = search.problem
    component = single(problem, group, search.costs_of(group), allowed)
    users = problem.users_of[group]
    sent = component.volume[0] @ problem.usd_per_gb[problem.user_region[users]]
    direct = replace(
        component,
        opening=component.opening + sent[None],
        volume=np.zeros_like(component.volume),
        price=np.zeros_like(component.price),
    )
    solved = search.solve(direct)
    assert solved.opened is not None, "each cover has enough regions"
    return direct_plan(problem, group, solved.opened[0], nearest_attachment(direct, solved.opened))


def direct_plan(problem: Geostore, group: int, opened: Bools, attached: Ints) -> GroupPlan:
    """Return the plan of a group: users read at one replica, and write from their own region to all."""
    users = problem.users_of[group]
    regions = problem.user_region[users]
    rows = np.arange(len(users))
    reads, writes = (np.zeros((len(users), len(opened)), dtype=bool) for _ in range(2))
    reads[rows, attached] = True
    writes[rows, regions] = True
    writing = problem.use("writes_per_s")[users] > 0
    edges = [
        (origin, origin, target)
        for origin in np.unique(regions[writing]).tolist()
        for target in np.flatnonzero(opened).tolist()
        if target != origin
    ]
    kind = kind_alone(problem, group)
    return GroupPlan(
        group=group,
        copies=opened.astype(np.int64),
        reads=reads,
        writes=writes,
        edges=edges,
        kind=kind,
        checks="local" if kind == "causal" else "none",
    )
