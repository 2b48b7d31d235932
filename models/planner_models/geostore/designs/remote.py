"""Groups that depend on each other, with checks of order at the nearest replica.

Each group is placed alone. Where checks elsewhere leave a dependency open, the region gets a replica of the
group that was checked elsewhere, whose order is then checked locally. That ends: with replicas of all that a
group depends on no check is elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from planner.arrays import Bools, Ints
from planner_models.geostore.designs.assembly import weak_plan
from planner_models.geostore.designs.component import Costs
from planner_models.geostore.plan.plan import GroupPlan
from planner_models.geostore.plan.remote_checks import find_checks, find_open_gaps
from planner_models.geostore.problem.problem import Geostore


def close_gaps(problem: Geostore, members: Ints, plans: Sequence[GroupPlan]) -> list[GroupPlan]:
    """Return the plans of a component with replicas added until remote checks leave no dependency open.

    A group that may not be where it would have to be is taken from the region of those that depend on it.
    """
    held = _held(problem, plans)
    opened = held.copy()
    while gaps := find_open_gaps(problem, opened, members):
        before = opened.copy()
        for gap in gaps:
            opened[gap.group, gap.datacenter] |= not problem.is_forbidden[gap.group, gap.datacenter]
        if (opened == before).all():
            break  # where it is forbidden, the plan leaves the gap, and its check tells it
    kinds = {plan.group: plan for plan in plans}
    return [
        replace(
            kinds[group]
            if (opened[group] == held[group]).all()
            else weak_plan(problem, group, opened[group], np.argmax(kinds[group].reads, axis=1)),
            checks="remote",
        )
        for group in members.tolist()
    ]


def keeps_order(problem: Geostore, members: Ints, plans: Sequence[GroupPlan]) -> bool:
    """Return whether checks leave no dependency of a component open, and writes are visible in time."""
    held = _held(problem, plans)
    if find_open_gaps(problem, held, members):
        return False
    is_remote = np.zeros(len(held), dtype=bool)
    is_remote[members] = True
    wait = find_checks(problem, held, is_remote).delay_ms(problem)
    limit = problem.limit_ms("stale_ms")
    return all(
        problem.copy_ms[source, target] + wait[plan.group, target] <= limit[plan.group]
        for plan in plans
        for _, source, target in plan.edges
    )


def _held(problem: Geostore, plans: Sequence[GroupPlan]) -> Bools:
    """Return the regions with replicas in plans, (G, N)."""
    held = np.zeros((len(problem.groups), len(problem.regions)), dtype=bool)
    for plan in plans:
        held[plan.group] = plan.copies > 0
    return held


def weak_cost(problem: Geostore, plan: GroupPlan, costs: Costs) -> float:
    """Return the cost of an eventual or causal group with copies from the attachments of its users."""
    users = problem.users_of[plan.group]
    opened = plan.copies > 0
    entry = np.argmax(plan.reads, axis=1)
    copies = problem.usd_per_gb[entry][:, opened].sum(axis=1)
    return float(
        costs.opening[plan.group][opened].sum()
        + costs.attachment[users, entry].sum()
        + costs.volume[users] @ copies
    )


def check_cost(problem: Geostore, plans: Sequence[GroupPlan]) -> float:
    """Return the price of the checks of a component at other datacenters, USD a month."""
    is_remote = np.zeros(len(problem.groups), dtype=bool)
    is_remote[[plan.group for plan in plans]] = True
    return find_checks(problem, _held(problem, plans), is_remote).usd(problem)
