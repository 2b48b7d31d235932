"""Raising the bound by Lagrangian multipliers; their rows tighten the linear relaxation.

Lagrangian bound: conservation of each demand's flow and separated rows are relaxed, links stay whole.

With a potential of each demand at each node and a multiplier of each row, what remains falls apart by links.
A link buys whole modules at reduced costs and fills them with the traffic that gains most potential on it, of
each demand at most its rate. That is stronger than the linear relaxation with one flow for all demands of a
root, where a link carries a small demand on a small part of a module.

Multipliers ascend along subgradients with a step size of each coordinate (Adam). The best ones also give a
row over capacities: modules gain at least the difference of potentials of all demands,

    sum over modules (most gain of one module x count)  >=  sum over demands (rate x potential difference)

as the gain of a link's modules together is at most the sum of their gains.

Reference: Crainic, Frangioni and Gendron, "Bundle-based relaxation methods for multicommodity capacitated
fixed charge network design", Discrete Applied Mathematics 112, 2001; Kingma and Ba, "Adam: a method for
stochastic optimization", 2015.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from planner.search.deadline import Deadline, Stopwatch
from planner.search.tolerances import FEASIBILITY, ROUNDING
from planner_models.capacity.designs.network_design.instance import Instance
from planner_models.capacity.designs.network_design.link_programs import (
    Links,
    Potentials,
    build_steps,
    solve_links,
    write_gains,
)
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
LEAST_ITERATIONS = 100
"""Iterations below which the limit of time does not allow a useful bound."""
STEP_SIZE = 0.06
"""First step of a potential, relative to the mean cost of a unit of capacity; steps decrease to 0."""
ROW_STEP_SIZE = 0.01
"""First step of the multiplier of a row, relative to the mean cost of a module."""
FIRST_DECAY, SECOND_DECAY = 0.9, 0.999
"""Shares of the past in the averages of subgradients and of their squares."""
SAFETY = ROUNDING
"""Rounding of the sums of a bound, relative to it."""


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


class Lagrangian(NamedTuple):
    """Bound of the best multipliers, their row `gain counts >= limit` over modules (M,), and potentials."""

    bound: float
    gain: Floats
    limit: float
    potential: Floats


class LagrangianBound:
    """Bounds the cost of an instance in its normal state."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        is_shared, has_both = instance.direction == "undirected", instance.direction == "bidirected"
        self.links = Links(instance.tail, instance.head, instance.routing_cost, is_shared, has_both)
        self.steps = build_steps(instance)

    def zero(self) -> Floats:
        """Return potentials (N, D) of 0."""
        return np.zeros((self.instance.nodes, len(self.instance.rate)))

    def ascend(
        self,
        potential: Floats,
        rows: sp.csr_array,
        limits: Floats,
        multipliers: Floats,
        *,
        pace: float,
        iterations: int,
        deadline: Deadline,
    ) -> Lagrangian | None:
        """Return the bound of the best multipliers found; None where the time does not suffice.

        potential     (N, D) to begin with
        rows, limits  (P, M), (P,) `rows counts >= limits` that all plans satisfy
        multipliers   (P,) of the rows to begin with, such as dual values of the linear relaxation
        pace          factor of step sizes, below 1 where multipliers begin near the best ones
        """
        instance = self.instance
        potential, dual = potential.copy(), multipliers.copy()
        self._solve(potential, rows, limits, dual)  # compiles
        watch, left_s = Stopwatch(), deadline.left_s
        value, missing, short = self._solve(potential, rows, limits, dual)
        each = 1.5 * max(watch.seconds, 1e-6)
        count = int(min(iterations, left_s / each))
        if count < LEAST_ITERATIONS:
            return None
        unit_price = float((instance.module_cost / instance.module_size).mean())
        ascent = _Adam(potential.shape, pace * STEP_SIZE * unit_price, 1e-5 * float(instance.rate.mean()))
        row_size = pace * ROW_STEP_SIZE * float(instance.module_cost.mean())
        row_ascent = _Adam(dual.shape, row_size, 1e-5)
        best, best_potential = value, potential.copy()
        for step in range(count):
            if deadline.is_over:
                break
            potential += ascent.step(missing, 1.0 - step / count)
            dual = np.maximum(0.0, dual + row_ascent.step(short, 1.0 - step / count))
            value, missing, short = self._solve(potential, rows, limits, dual)
            if value > best:
                best, best_potential = value, potential.copy()
        gain, limit = self._gain_row(best_potential)
        return Lagrangian(best - SAFETY * abs(best), gain, limit, best_potential)

    def _solve(
        self, potential: Floats, rows: sp.csr_array, limits: Floats, dual: Floats
    ) -> tuple[float, Floats, Floats]:
        """Return the bound of multipliers, and its subgradient: missing flow (N, D) and rows (P,)."""
        instance = self.instance
        missing, counts = np.empty_like(potential), np.empty(instance.modules)
        demands = Potentials(potential, instance.source, instance.target, instance.rate)
        reduced = instance.module_cost - rows.T @ dual
        value = solve_links(self.links, self.steps, demands, instance.setup_cost, reduced, missing, counts)
        return float(value + limits @ dual), missing, limits - rows @ counts

    def _gain_row(self, potential: Floats) -> tuple[Floats, float]:
        """Return the most gain of one module of each kind (M,), and the needs of demands beyond installed."""
        instance, gain = self.instance, np.empty(self.instance.modules)
        demands = Potentials(potential, instance.source, instance.target, instance.rate)
        there = write_gains(
            self.links,
            demands,
            instance.module_edge,
            instance.module_size,
            instance.installed,
            gain,
        )
        demand = np.arange(len(instance.rate))
        needed = potential[instance.source, demand] - potential[instance.target, demand]
        return gain, float(needed @ instance.rate - there)


class _Adam:
    """Steps along subgradients, of each coordinate by the averages of its own."""

    def __init__(self, shape: tuple[int, ...], size: float, min_spread: float) -> None:
        self.size, self.least, self.count = size, min_spread, 0
        self.first, self.second = np.zeros(shape), np.zeros(shape)

    def step(self, gradient: Floats, decay: float) -> Floats:
        """Return the next step, `decay` times as large as the first ones."""
        self.count += 1
        self.first += (1.0 - FIRST_DECAY) * (gradient - self.first)
        self.second += (1.0 - SECOND_DECAY) * (gradient * gradient - self.second)
        mean = self.first / (1.0 - FIRST_DECAY**self.count)
        spread = np.sqrt(self.second / (1.0 - SECOND_DECAY**self.count))
        step: Floats = self.size * decay * mean / (spread + self.least)
        return step
