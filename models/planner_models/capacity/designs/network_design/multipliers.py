"""Raising the bound by Lagrangian multipliers, whose rows tighten the linear relaxation."""

from __future__ import annotations

import numpy as np

from planner_models.capacity.designs.network_design.lagrangian_bound import LagrangianBound
from planner_models.capacity.designs.network_design.network import Floats
from planner_models.capacity.designs.network_design.relaxation import Relaxation

LAGRANGIAN_ASCENTS = ((500, 1.0), (700, 0.3), (700, 0.3), (700, 0.2), (700, 0.2), (700, 0.1))
"""Iterations and pace of the ascents of Lagrangian multipliers, with new rows after each; of the first to see
whether it raises the bound."""

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

NEARLY_TIGHT = 1e-6
"""Slack, in modules, up to which a row of the linear relaxation gets a multiplier."""


class MultiplierSearch:
    """Searches multipliers of demands at nodes and of rows of the linear relaxation, in turn with rows."""

    def __init__(self, relaxation: Relaxation) -> None:
        self.relaxation, self.incumbent = relaxation, relaxation.incumbent
        self.instance, self.master = relaxation.instance, relaxation.master

    def raise_bound(self, relaxed: Floats) -> Floats:
        """Raise the bound by Lagrangian multipliers, and add their row; return the relaxation's new point."""
        instance, master = self.instance, self.master
        size = len(instance.rate) * instance.nodes
        if master.budget is not None or len(self.relaxation.feasibility.states) > 1 or size > MAX_MULTIPLIERS:
            return relaxed
        if self.incumbent.left_s() < LAGRANGIAN_LEAST_LEFT_S:
            return relaxed
        program = LagrangianBound(instance)
        potentials: dict[int, tuple[float, Floats]] = {}  # by row of the pool, with the scale of the row
        for iterations, pace in LAGRANGIAN_ASCENTS:
            before = self.incumbent.bound
            matrix, limits = master.pool
            duals = master.relaxation_duals()
            modules = matrix[:, : master.modules].tocsr()
            is_plain = np.diff(matrix.indptr) == np.diff(modules.indptr)  # no column of a setup
            start = program.zero()
            for at, (scale, potential) in potentials.items():
                is_plain[at] = False
                start += duals[at] / scale * potential
            slack = matrix @ relaxed[: master.pooled] - limits
            kept = np.flatnonzero(is_plain & ((slack <= NEARLY_TIGHT) | (duals > 0)))
            found = program.ascend(
                start,
                modules[kept],
                limits[kept],
                duals[kept],
                pace=pace,
                iterations=iterations,
                time_limit_s=LAGRANGIAN_SHARE * self.incumbent.left_s(),
            )
            if found is None:
                return relaxed
            self.incumbent.raise_bound(found.bound)
            is_raised = self.incumbent.bound > before + LAGRANGIAN_GAIN * abs(before)
            if self.incumbent.is_done() or not is_raised or master.has_flow or not found.gain.any():
                return relaxed  # the row of potentials has no routing costs
            scale = float(found.gain.max())
            row = np.zeros(master.pooled)
            row[: master.modules] = found.gain / scale
            if master.add_row(row, found.limit / scale * (1 - 1e-9)):
                potentials[len(master.pool[1]) - 1] = scale, found.potential
            tightened = self.relaxation.tighten(rounds=LAGRANGIAN_ROUNDS)
            relaxed = relaxed if tightened is None else tightened
        return relaxed
