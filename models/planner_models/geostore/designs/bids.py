"""Bids: each region announces its price and time for a group, and the owner picks the best ones."""

from __future__ import annotations

import numpy as np

from planner.arrays import Bools
from planner.contract.design import Decision
from planner.options import Options
from planner_models.geostore.designs.assembly import decide, refuse_unreachable, weak_plan
from planner_models.geostore.designs.component import allowed_attachments
from planner_models.geostore.designs.near_users import place_group
from planner_models.geostore.designs.spanstore import AloneSearch, kind_alone
from planner_models.geostore.plan.plan import StorePlan
from planner_models.geostore.problem.problem import Geostore


@refuse_unreachable
def place(problem: Geostore, *, options: Options = Options()) -> Decision[StorePlan]:
    """Let each user pick the cheapest bid for each group within its limits; further replicas are the next.

    A region's bid for a user is the price of the user's operations there, and of a replica divided by the
    group's users. Owners do not compare sets of regions. Strongly consistent groups have their leader where
    most writes are.
    """
    search = AloneSearch.of(problem, options)
    allowed = allowed_attachments(problem)
    groups = []
    for group in range(len(problem.groups)):
        if problem.is_strong[group]:
            groups.append(place_group(problem, group))
            continue
        users = problem.users_of[group]
        costs = search.costs_of(group)
        bid = costs.attachment[users] + costs.opening[group] / len(users)
        bid = np.where(allowed[users], bid, np.inf)
        opened: Bools = np.array(problem.is_pinned[group])
        opened[bid.argmin(axis=1)] = True
        total = np.where(
            problem.is_forbidden[group] | opened,
            np.inf,
            costs.opening[group] + costs.attachment[users].sum(axis=0),
        )
        missing = int(problem.failures[group]) + 1 - int(opened.sum())
        opened[np.argsort(total, kind="stable")[: max(missing, 0)]] = True
        attached = np.where(opened, bid, np.inf).argmin(axis=1)
        groups.append(weak_plan(problem, group, opened, attached, kind=kind_alone(problem, group)))
    return decide(problem, groups)
