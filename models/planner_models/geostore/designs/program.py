"""The placement of one component as an integer program of sparse arrays.

The same program as the reference model, with its copies summed over users: it needs a solver of integer
programs, whose presolve and cuts close what Lagrangian bounds leave where many groups depend on each other.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from planner import backends
from planner.arrays import Bools, Ints
from planner.backends.linear_program import LinearProgram
from planner.backends.program_builder import ProgramBuilder, Variables
from planner.contract.proof import Status
from planner.options import Options
from planner.search.deadline import NEVER, Deadline
from planner_models.geostore.designs.component import Component
from planner_models.geostore.designs.local_search import placement_cost
from planner_models.geostore.designs.placement import (
    Placement,
    arrays_of,
    solve_component,
)


def build_program(data: Component) -> LinearProgram:
    """Return the program of a component whose users read one replica; replicas are its first variables.

    Replicas, (G * N,), attachments of users where they may be, and copies of writing users from an attachment
    to a replica of each group that they use.
    """
    groups, regions = data.opening.shape
    user, entry = np.nonzero(np.isfinite(data.attachment))
    m = ProgramBuilder(name="component")
    fixed = data.state.ravel()
    opened = m.variables(
        "replica",
        groups * regions,
        integer=True,
        cost=data.opening.ravel(),
        lower=np.where(fixed == 1, 1.0, 0.0),
        upper=np.where(fixed == 0, 0.0, 1.0),
    )
    attached = m.variables("attached", len(user), upper=1.0, cost=data.attachment[user, entry])
    m.constrain("one", attached.sum_by(user, len(data.attachment)), equal=1.0)
    row, group = np.nonzero(data.uses.T[user])  # attachment, group that its user uses
    m.constrain("held", attached[row] - opened[group * regions + entry[row]], upper=0.0)
    owner, writer = np.nonzero(data.uses & (data.volume > 0))
    if len(owner):
        _add_copies(m, opened, attached, data, (owner, writer, user, entry))
    _add_rules(m, opened, data)
    return m.build()


def _add_copies(
    m: ProgramBuilder,
    opened: Variables,
    attached: Variables,
    data: Component,
    rows: tuple[Ints, Ints, Ints, Ints],
) -> None:
    """Add the copies of each pair of a group and a user who writes it, from an attachment to each replica.

    rows  group and user of each pair; user and region of each attachment
    """
    owner, writer, user, entry = rows
    regions = data.opening.shape[1]
    pair, row = np.nonzero(writer[:, None] == user[None, :])
    pair, row, to = np.repeat(pair, regions), np.repeat(row, regions), np.tile(np.arange(regions), len(pair))
    price = data.price[owner[pair], entry[row], to]
    may = np.isfinite(price)
    pair, row, to = pair[may], row[may], to[may]
    usd = data.volume[owner[pair], writer[pair]] * price[may]
    copied = m.variables("copied", len(usd), upper=1.0, cost=usd)
    m.constrain("sent", copied - attached[row], upper=0.0)
    replica = (owner[:, None] * regions + np.arange(regions)).ravel()
    received = copied.sum_by(pair * regions + to, len(replica))
    m.constrain("received", received - opened[replica], equal=0.0)


def _add_rules(m: ProgramBuilder, opened: Variables, data: Component) -> None:
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


def solve_program(data: Component, *, gap: float, deadline: Deadline = NEVER) -> Placement:
    """Return the placement of the integer program, or of the search where a time limit leaves none.

    gap  relative gap of the program
    """
    options = deadline.options(Options(gap=gap, threads=1))
    solution = backends.solve(build_program(data), options)
    if solution.status is Status.INFEASIBLE:
        return Placement(opened=None, cost=np.inf, bound=np.inf)
    groups, regions = data.opening.shape
    bound = -np.inf if solution.bound is None else float(solution.bound)
    if solution.x is not None:
        opened: Bools = (solution.x[: groups * regions] > 0.5).reshape(groups, regions)
        violated, cost = placement_cost(arrays_of(data), opened)
        if violated == 0:
            is_cut = solution.status is not Status.OPTIMAL
            return Placement(opened=opened, cost=cost, bound=min(bound, cost), is_cut=is_cut)
    searched = solve_component(data, gap=gap, max_nodes=0, deadline=deadline)
    return replace(searched, bound=max(searched.bound, min(bound, searched.cost)), is_cut=True)
