"""The linear program of a component, in which higher prices of copies enter where they matter.

A program has a row and a variable for each price of each user's copies to each replica, and few replicas are
used. Without a row its copies are too cheap, so the bound stays right: rows are added that the last solution
violates, until it violates none (cutting planes; Dantzig, Fulkerson and Johnson 1954).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import scipy.sparse as sp

from planner.arrays import Bools, Floats, Ints
from planner.backends.linear_program import LinearProgram
from planner.backends.program_builder import ProgramBuilder
from planner.contract.proof import Status
from planner.options import Options
from planner.search.deadline import Deadline
from planner_models.geostore.designs.component import Component
from planner_models.geostore.designs.component_rules import (
    add_attachments,
    add_replicas,
    add_rules,
    last_groups,
    reachable,
)
from planner_models.geostore.designs.copies import Copies, Steps

if TYPE_CHECKING:
    from highspy import Highs

VIOLATION: Final = 1e-7


@dataclass(frozen=True, kw_only=True, eq=False)
class Relaxed:
    """Solution of the linear program of G groups and N regions.

    bound     no placement costs less, USD a month
    replicas  (G, N) from 0 to 1
    raised    (G, N) what a replica raises the bound by, USD a month, by its reduced cost and those of the
              replicas that closure needs with it; 0 for those set or excluded
    """

    bound: float
    replicas: Floats
    raised: Floats


class _Program:
    """The program with the rows so far, in a solver that goes on from its last basis."""

    def __init__(self, data: Component, deadline: Deadline) -> None:
        from planner.backends import highs

        self.user, self.entry = np.nonzero(np.isfinite(data.attachment))
        self.copies = Copies(data, self.user, self.entry)
        self.base = _build(data, self.copies)
        self.replicas = data.opening.size
        self.cost, self.rows = self.base.cost, [sp.csr_array(self.base.matrix)]
        options = deadline.options(Options(threads=1))
        self.solver: Highs = highs.load(self.base, options)
        self.solver.setOptionValue("presolve", "off")

    def solve(self) -> Floats | None:
        """Return the values of replicas and attachments; None where there is no optimum in time."""
        from planner.backends import highs

        if highs.run(self.solver, highs.NAME) is not Status.OPTIMAL:
            return None
        return np.array(self.solver.getSolution().col_value)[: self.base.shape[1]]

    def add(self, steps: Steps, sets: sp.csr_array) -> None:
        """Add rows of copies, with a variable for each that may be paid."""
        rows, before = len(steps.usd), len(self.cost)
        paid = np.flatnonzero(np.isfinite(steps.usd))
        order = np.arange(rows)
        replica = sp.csr_array((-np.ones(rows), (order, steps.replica)), shape=(rows, self.replicas))
        dearer = sp.csr_array((np.ones(len(paid)), (paid, np.arange(len(paid)))), shape=(rows, len(paid)))
        earlier = sp.csr_array((rows, before - self.base.shape[1]))
        matrix = sp.csr_array(sp.hstack([replica, sets[steps.number], earlier, dearer]))
        self.cost = np.concatenate([self.cost, steps.usd[paid]])
        self.rows.append(matrix)
        zeros, none, empty = np.zeros(len(paid)), np.zeros(0), np.zeros(0, dtype=np.int32)
        starts = np.zeros(len(paid), dtype=np.int32)
        self.solver.addCols(len(paid), steps.usd[paid], zeros, zeros + 1, 0, starts, empty, none)
        self.solver.addRows(
            rows,
            np.zeros(rows),
            np.full(rows, np.inf),
            matrix.nnz,
            matrix.indptr[:-1].astype(np.int32),
            matrix.indices.astype(np.int32),
            matrix.data,
        )

    def bound(self) -> tuple[float, Floats]:
        """Return the bound of the last dual values, whatever their errors, and reduced costs, (columns,).

        All variables have limits: the cheapest ones under the dual values of rows are a bound (weak duality).
        """
        columns, first = len(self.cost), self.rows[0].shape[0]
        added = sum(block.shape[0] for block in self.rows[1:])
        for block in self.rows:
            block.resize((block.shape[0], columns))
        matrix = sp.vstack(self.rows).tocsr()
        dual = np.array(self.solver.getSolution().row_dual)
        dual[first:] = np.maximum(dual[first:], 0.0)
        low = np.concatenate([self.base.row_lower, np.zeros(added)])
        high = np.concatenate([self.base.row_upper, np.full(added, np.inf)])
        dual[((dual > 0) & np.isinf(low)) | ((dual < 0) & np.isinf(high))] = 0.0
        limit = np.where(dual > 0, low, np.where(dual < 0, high, 0.0))
        reduced = self.cost - matrix.T @ dual
        lower, upper = np.zeros(columns), np.ones(columns)
        lower[: self.base.shape[1]], upper[: self.base.shape[1]] = self.base.lower, self.base.upper
        value = dual @ limit + np.minimum(reduced * lower, reduced * upper).sum()
        return float(value), reduced


def _build(data: Component, copies: Copies) -> LinearProgram:
    """Return the linear program without the higher prices of copies; replicas are its first variables."""
    m = ProgramBuilder(name="component")
    opened = add_replicas(m, data, copies.replica_usd)
    add_attachments(m, opened, data, last_groups(data), copies.attached_usd)
    add_rules(m, opened, data)
    return m.build()


def relax(data: Component, deadline: Deadline) -> Relaxed | None:
    """Return the solution of the linear program; None without an optimum, or before a time limit."""
    program = _Program(data, deadline)
    shape = data.opening.shape
    known = _Steps(program.copies, shape[1])
    while True:
        x = program.solve()
        if x is None:
            return None
        violated = known.take(x[: program.replicas], x[program.replicas :])
        if not len(violated.usd):
            break
        program.add(violated, program.copies.sets())
    bound, reduced = program.bound()
    alone = np.where(data.state == 1, 0.0, np.maximum(reduced[: program.replicas].reshape(shape), 0.0))
    raised = np.where(data.state == -1, reachable(data).astype(float) @ alone, 0.0)
    return Relaxed(bound=bound, replicas=x[: program.replicas].reshape(shape), raised=raised)


class _Steps:
    """The higher prices of copies to regions that some replica is in, and which the program has."""

    def __init__(self, copies: Copies, regions: int) -> None:
        self.copies, self.regions = copies, regions
        self.steps = Steps(np.zeros(0), np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
        self.is_taken: Bools = np.zeros(0, dtype=bool)
        self.is_known: Bools = np.zeros(regions, dtype=bool)

    def take(self, replicas: Floats, attached: Floats) -> Steps:
        """Return the prices that a solution violates and the program does not have yet."""
        used = (replicas.reshape(-1, self.regions) > VIOLATION).any(axis=0)
        self._learn(np.flatnonzero(used & ~self.is_known))
        inside = self.copies.sets() @ attached
        usd, replica, number = self.steps
        chosen = ~self.is_taken & (replicas[replica] - inside[number] > VIOLATION)
        self.is_taken |= chosen
        return Steps(usd[chosen], replica[chosen], number[chosen])

    def _learn(self, regions: Ints) -> None:
        """Find the prices of copies to replicas of regions."""
        self.is_known[regions] = True
        found = [self.copies.steps_at(region) for region in regions.tolist()]
        self.steps = Steps(*(np.concatenate(part) for part in zip(self.steps, *found, strict=True)))
        self.is_taken = np.concatenate(
            [self.is_taken, np.zeros(len(self.steps.usd) - len(self.is_taken), bool)]
        )
