"""Raising the bound by Lagrangian multipliers; their rows tighten the linear relaxation."""

from __future__ import annotations

import numpy as np

from planner.search.tolerances import FEASIBILITY
from planner_models.capacity.designs.network_design.lagrangian_bound import LagrangianBound
from planner_models.capacity.designs.network_design.network import Bools, Floats
from planner_models.capacity.designs.network_design.relaxation import Relaxation

LAGRANGIAN_ASCENTS = (
    (150, 1.0),
    (500, 1.0),
    (700, 0.3),
    (700, 0.3),
    (700, 0.2),
    (700, 0.2),
    (700, 0.1),
)
"""Iterations and pace of the ascents of Lagrangian multipliers, with new rows after each. The first is short:
with the row of its potentials the next ones begin better."""

LAGRANGIAN_GAIN = 1e-3
"""Relative gain of an ascent with which the next one follows."""

LAGRANGIAN_ROUNDS = 20
"""Rounds of rows at the linear relaxation after each ascent."""

LAGRANGIAN_SHARE = 0.1
"""Share of the time that is left that one ascent may take."""

LAGRANGIAN_LEAST_LEFT_S = 20.0
"""Time that is left from which multipliers are searched: their first use compiles for some seconds."""

MAX_MULTIPLIERS = 5_000_000
"""Potentials of demands at nodes up to which flow conservation is relaxed; memory is a few times as much."""

NEARLY_TIGHT = FEASIBILITY
"""Slack, in modules, up to which a row of the linear relaxation gets a multiplier."""


class MultiplierSearch:
    """Searches multipliers of demands at nodes and of rows of the linear relaxation, in turn with rows."""

    def __init__(self, relaxation: Relaxation) -> None:
        self.relaxation, self.incumbent = relaxation, relaxation.incumbent
        self.instance, self.master = relaxation.instance, relaxation.master

    def raise_bound(self, relaxed: Floats) -> Floats:
        """Raise the bound by Lagrangian multipliers, and add their row; return the relaxation's new point."""
        if not self._is_possible():
            return relaxed
        master, program = self.master, LagrangianBound(self.instance)
        potentials: dict[int, tuple[float, Floats]] = {}  # by row of the pool, with the scale of the row
        for number, (iterations, pace) in enumerate(LAGRANGIAN_ASCENTS):
            before = self.incumbent.bound
            (matrix, limits), duals = master.pool, master.relaxation_duals()
            start, near = program.zero(), self._rows_near(relaxed)
            for position, (scale, potential) in potentials.items():
                near[position] = False
                start += duals[position] / scale * potential
            ascent = program.ascend(
                start,
                matrix[near][:, : master.modules],
                limits[near],
                duals[near],
                pace=pace,
                iterations=iterations,
                deadline=self.incumbent.deadline.share_left(LAGRANGIAN_SHARE),
            )
            if ascent is None:
                return relaxed
            self.incumbent.raise_bound(ascent.bound)
            if self.incumbent.is_done() or master.has_flow or not ascent.gain.any():
                return relaxed  # the row of potentials has no routing costs
            if self.incumbent.bound <= before:
                if number:
                    return relaxed
                continue  # the first is short
            scale = float(ascent.gain.max())
            row = np.zeros(master.pooled)
            row[: master.modules] = ascent.gain / scale
            if master.add_row(row, ascent.limit / scale * (1 - 1e-9)):
                potentials[len(master.pool[1]) - 1] = scale, ascent.potential
            tightened = self.relaxation.tighten(rounds=LAGRANGIAN_ROUNDS)
            relaxed = relaxed if tightened is None else tightened
            if number and self.incumbent.bound <= before + LAGRANGIAN_GAIN * abs(before):
                break
        return relaxed

    def _is_possible(self) -> bool:
        """Return whether multipliers bound the program, are not too many and have the time."""
        size = len(self.instance.rate) * self.instance.nodes
        is_plain = self.master.budget is None and len(self.relaxation.feasibility.states) == 1
        return is_plain and size <= MAX_MULTIPLIERS and self.incumbent.left_s() >= LAGRANGIAN_LEAST_LEFT_S

    def _rows_near(self, relaxed: Floats) -> Bools:
        """Return the rows of the pool without setups that have dual values or that the relaxation is near."""
        master = self.master
        matrix, limits = master.pool
        modules = matrix[:, : master.modules]
        is_plain = np.diff(matrix.indptr) == np.diff(modules.tocsr().indptr)  # no column of a setup
        slack = matrix @ relaxed[: master.pooled] - limits
        near: Bools = is_plain & ((slack <= NEARLY_TIGHT) | (master.relaxation_duals() > 0))
        return near
