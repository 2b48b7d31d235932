"""Constraints of one component's replicas and attachments, as rows of a program."""

from __future__ import annotations

import numpy as np

from planner.arrays import Bools, Floats
from planner.backends.program_builder import ProgramBuilder, Variables
from planner_models.geostore.designs.component import Component


def add_replicas(m: ProgramBuilder, data: Component, usd: Floats, *, integer: bool = False) -> Variables:
    """Add the replicas, (G * N,), from 0 to 1, as far as they are not set or excluded.

    usd  (G * N,) what each costs besides its opening
    """
    fixed = data.state.ravel()
    return m.variables(
        "replica",
        data.opening.size,
        integer=integer,
        cost=data.opening.ravel() + usd,
        lower=np.where(fixed == 1, 1.0, 0.0),
        upper=np.where(fixed == 0, 0.0, 1.0),
    )


def add_attachments(
    m: ProgramBuilder, opened: Variables, data: Component, uses: Bools, usd: Floats
) -> Variables:
    """Add the attachments of users where they may be, one for each user, at replicas of the groups it uses.

    opened  (G * N,) replicas
    uses    (G, I) groups that must be where a user is attached
    usd     (attachments,) what each costs besides its operations
    """
    user, entry = np.nonzero(np.isfinite(data.attachment))
    cost = data.attachment[user, entry] + usd
    attached = m.variables("attached", len(user), upper=1.0, cost=cost)
    m.constrain("one", attached.sum_by(user, len(data.attachment)), equal=1.0)
    row, group = np.nonzero(uses.T[user])  # attachment, group that its user uses
    m.constrain("held", attached[row] - opened[group * data.opening.shape[1] + entry[row]], upper=0.0)
    return attached


def last_groups(data: Component) -> Bools:
    """Return the groups of each user, (G, I), without those on which others of its groups depend.

    Closure puts these where the others are. Of groups that depend on each other, the first one is left.
    """
    reach, order = reachable(data), np.arange(len(data.uses))
    is_held = reach & (~reach.T | (order[:, None] < order))  # by row, of column
    return np.asarray(data.uses & ~(is_held.T.astype(int) @ data.uses.astype(int) > 0))


def reachable(data: Component) -> Bools:
    """Return on which groups, by column, each group depends, itself and through others too, (G, G)."""
    reach = np.eye(len(data.uses), dtype=bool)
    reach[data.child, data.parent] = True
    for middle in range(len(reach)):
        reach |= reach[:, middle, None] & reach[middle]
    return reach


def add_rules(m: ProgramBuilder, opened: Variables, data: Component) -> None:
    """Add numbers of replicas, covers, and closure."""
    groups, regions = data.opening.shape
    number = opened.sum_by(np.repeat(np.arange(groups), regions), groups)
    m.constrain("number", number, lower=data.least.astype(float), upper=data.most.astype(float))
    row, region = np.nonzero(data.cover)
    if len(data.need):
        held = opened[data.cover_group[row] * regions + region].sum_by(row, len(data.need))
        m.constrain("cover", held, lower=data.need.astype(float))
    if len(data.child):
        column = np.arange(regions)
        child = (data.child[:, None] * regions + column).ravel()
        parent = (data.parent[:, None] * regions + column).ravel()
        m.constrain("closure", opened[child] - opened[parent], upper=0.0)
