"""The placement of one component as an integer program of sparse arrays.

The same program as the reference model, with its copies summed over users: it needs a solver of integer
programs, whose presolve and cuts close what Lagrangian bounds leave where many groups depend on each other.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from planner import backends
from planner.arrays import Bools, Floats, Ints
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

    Replicas, (G * N,), attachments of users where they may be, and what copies cost above their lowest price.
    A copy to a replica has the lowest price of all attachments, and each higher price is paid where the user
    is attached at none of the regions below it (Cornuejols et al. 1980, for facilities by distance). Regions
    with the same price are one set, so that the program is small, and its linear program has the bound of one
    with a copy from each attachment to each replica.
    """
    groups, regions = data.opening.shape
    user, entry = np.nonzero(np.isfinite(data.attachment))
    copies = _Copies(data, user, entry)
    m = ProgramBuilder(name="component")
    fixed = data.state.ravel()
    opened = m.variables(
        "replica",
        groups * regions,
        integer=True,
        cost=data.opening.ravel() + copies.replica_usd,
        lower=np.where(fixed == 1, 1.0, 0.0),
        upper=np.where(fixed == 0, 0.0, 1.0),
    )
    usd = data.attachment[user, entry] + copies.attached_usd
    attached = m.variables("attached", len(user), upper=1.0, cost=usd)
    m.constrain("one", attached.sum_by(user, len(data.attachment)), equal=1.0)
    row, group = np.nonzero(data.uses.T[user])  # attachment, group that its user uses
    m.constrain("held", attached[row] - opened[group * regions + entry[row]], upper=0.0)
    copies.constrain(m, opened, attached)
    _add_rules(m, opened, data)
    return m.build()


class _Copies:
    """Costs and constraints of copies, by sets of a user's attachments that send at up to a price.

    replica_usd   (G * N,) cost of the copies to a replica at their lowest prices
    attached_usd  (attachments,) below 0: an attachment at a replica itself needs no copy there
    sets          attachments of each set
    dearer        cost, replica and set of copies that cost more where the user is attached outside the set
    needed        replica and set: other attachments are too far for copies in time
    """

    def __init__(self, data: Component, user: Ints, entry: Ints) -> None:
        self.replica_usd = np.zeros(data.opening.size)
        self.attached_usd = np.zeros(len(user))
        self.sets: list[Ints] = []
        self.dearer: list[tuple[float, int, int]] = []
        self.needed: list[tuple[int, int]] = []
        self._entry, self._numbers = entry, dict[tuple[int, bytes], int]()
        ends = np.searchsorted(user, np.arange(len(data.attachment) + 1))
        prices = [price.tobytes() for price in data.price]
        for writer in np.flatnonzero((data.uses & (data.volume > 0)).any(axis=0)).tolist():
            rows = np.arange(ends[writer], ends[writer + 1])
            used = np.flatnonzero(data.uses[:, writer] & (data.volume[:, writer] > 0)).tolist()
            for price in dict.fromkeys(prices[group] for group in used):
                alike = np.array([group for group in used if prices[group] == price])
                self._add_writer(data, writer, rows, alike)

    def _add_writer(self, data: Component, writer: int, rows: Ints, groups: Ints) -> None:
        """Add the copies of a user's writes of groups that have the same prices.

        rows  attachments of the user
        """
        volume = data.volume[groups, writer]
        price = data.price[groups[0]][self._entry[rows]]
        for j in np.flatnonzero((data.state[groups] != 0).any(axis=0)).tolist():
            replica = groups * data.opening.shape[1] + j
            levels = np.unique(price[:, j])
            finite = levels[np.isfinite(levels)]
            if len(finite):
                self.replica_usd[replica] += volume * finite[0]
            for level, step in zip(finite[:-1].tolist(), np.diff(finite).tolist(), strict=True):
                self._add_step(rows[price[:, j] <= level], j, replica, volume * step)
            if len(finite) < len(levels):
                number = self._number(rows[np.isfinite(price[:, j])])
                self.needed += [(row, number) for row in replica.tolist()]

    def _add_step(self, rows: Ints, region: int, replica: Ints, usd: Floats) -> None:
        """Add what copies to replicas of a region cost more where the user is attached outside of a set."""
        if len(rows) == 1 and self._entry[rows[0]] == region:  # the attachment has a replica
            self.replica_usd[replica] += usd
            self.attached_usd[rows[0]] -= usd.sum()
            return
        number = self._number(rows)
        self.dearer += [(cost, row, number) for cost, row in zip(usd.tolist(), replica.tolist(), strict=True)]

    def _number(self, rows: Ints) -> int:
        """Return the number of a set of attachments."""
        number = self._numbers.setdefault((len(rows), rows.tobytes()), len(self.sets))
        if number == len(self.sets):
            self.sets.append(rows)
        return number

    def constrain(self, m: ProgramBuilder, opened: Variables, attached: Variables) -> None:
        """Add the variables of sets and of dearer copies, with their constraints."""
        if not self.sets:
            return
        inside = m.variables("inside", len(self.sets), upper=1.0)
        owner = np.repeat(np.arange(len(self.sets)), [len(rows) for rows in self.sets])
        total = attached[np.concatenate(self.sets)].sum_by(owner, len(self.sets))
        m.constrain("set", total - inside, equal=0.0)
        if self.dearer:
            usd, replica, number = (np.array(column) for column in zip(*self.dearer, strict=True))
            dearer = m.variables("dearer", len(usd), upper=1.0, cost=usd)
            m.constrain("copied", dearer + inside[number] - opened[replica], lower=0.0)
        if self.needed:
            replica, number = (np.array(column) for column in zip(*self.needed, strict=True))
            m.constrain("in_time", inside[number] - opened[replica], lower=0.0)


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
