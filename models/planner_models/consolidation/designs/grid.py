"""Grids of pricing: sizes of machines and capacities as whole steps of a common measure in each dimension."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, Literal

import numpy as np

from planner.arrays import Floats, Ints
from planner_models.consolidation.problem.problem import Consolidation
from planner_models.consolidation.problem.shapes import Placing

GRID: Final = 1e6
"""Amounts are multiples of one over this; finer ones have no common measure."""
ROUNDED: Final = 1e-9
"""Parts of a step that are rounding."""
MAX_PARTS: Final = 64
"""Parts of the smallest amount that are tried as a common measure."""
MAX_STATES: Final = 6_000_000
"""States of a table up to which dynamic programming is used."""
MAX_SHARED: Final = 4_000
"""States of the resources of the whole host, over which nodes are joined."""
COARSE_STATES: Final = 300_000
COARSE_SHARED: Final = 200
"""States of tables whose sizes are rounded, likewise."""
Rounding = Literal["nearest", "down", "up"]
"""Sizes are whole steps; or rounded down, so that values are bounds, or up, so that contents fit."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Grid:
    """Integer sizes in the dimensions of a table: those of a node, then those of the whole host.

    unit      (dimensions,) amount of one step
    columns   dimension of the problem that each is
    of_node   number of dimensions of a node
    limits    (dimensions,) largest size
    rounding  of sizes to whole steps
    """

    unit: Floats
    columns: list[int]
    of_node: int
    limits: Ints
    rounding: Rounding = "nearest"

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of a table."""
        return tuple(int(limit) + 1 for limit in self.limits)

    @property
    def states(self) -> int:
        """Number of states of a table."""
        return math.prod(self.shape)

    @property
    def shared(self) -> int:
        """Number of states of the dimensions of the whole host."""
        return math.prod(self.shape[self.of_node :])

    @cached_property
    def strides(self) -> Ints:
        """(dimensions,) states between neighbours in a table."""
        return np.array(
            [math.prod(self.shape[axis + 1 :]) for axis in range(len(self.shape))], dtype=np.int64
        )

    def steps(self, amount: float, position: int) -> int:
        """Return the whole steps within a capacity, up to the limit."""
        limit = int(self.limits[position])
        return limit if not np.isfinite(amount) else min(limit, int(amount / self.unit[position] + 1e-9))

    def size_of(self, way: Placing) -> Ints:
        """Return the steps that a machine takes of the node that it takes most of, and of the host."""
        node = max(range(len(way.node)), key=lambda index: way.node[index])
        amounts = [
            (way.node[node] if position < self.of_node else way.whole)[column]
            for position, column in enumerate(self.columns)
        ]
        steps = np.array(amounts) / self.unit
        whole = {
            "nearest": np.rint(steps),
            "down": np.floor(steps + ROUNDED),
            "up": np.ceil(steps - ROUNDED),
        }
        return whole[self.rounding].astype(np.int64)

    def coarsen(self, position: int) -> Grid:
        """Return the grid with twice the unit of a dimension."""
        unit, limits = self.unit.copy(), self.limits.copy()
        unit[position] *= 2
        limits[position] //= 2
        return replace(self, unit=unit, limits=limits)


def make_grid(problem: Consolidation, rounding: Rounding = "nearest") -> Grid:
    """Return the grid of a problem; raises ValueError where exact tables are too large."""
    node = np.array([shape.node.max(axis=0) for shape in problem.host_shapes])
    whole = np.array([shape.whole for shape in problem.host_shapes])
    whole[:, 0] = np.inf  # threads of helpers are tried in each way over the nodes
    of_node = np.flatnonzero(np.isfinite(node).any(axis=0)).tolist()
    of_host = np.flatnonzero(np.isfinite(whole).any(axis=0)).tolist()
    units, limits = [], []
    for position, column in enumerate((*of_node, *of_host)):
        is_node = position < len(of_node)
        unit = common_measure(_amounts(problem, column, is_node=is_node))
        capacity = (node if is_node else whole)[:, column]
        largest = float(capacity[np.isfinite(capacity)].max(initial=0.0))
        total = float(np.dot(problem.needs[:, column], problem.count))
        units.append(unit)
        limits.append(min(int(largest / unit + 1e-9), math.ceil(total / unit)))
    grid = Grid(
        unit=np.array(units),
        columns=[*of_node, *of_host],
        of_node=len(of_node),
        limits=np.array(limits, dtype=np.int64),
        rounding=rounding,
    )
    if rounding != "nearest":
        return _coarsen(grid)
    if grid.states > MAX_STATES or grid.shared > MAX_SHARED:
        raise TooLargeError("the table is too large")
    return grid


def _coarsen(grid: Grid) -> Grid:
    """Return a grid with larger units, so that its tables are small."""
    while grid.shared > COARSE_SHARED:
        grid = grid.coarsen(grid.of_node + int(grid.limits[grid.of_node :].argmax()))
    while grid.states > COARSE_STATES:
        grid = grid.coarsen(int(grid.limits.argmax()))
    return grid


class TooLargeError(ValueError):
    """Tables of exact sizes are too large."""


def _amounts(problem: Consolidation, column: int, *, is_node: bool) -> Floats:
    """Return the amounts that machines take in a dimension, whole and split."""
    amounts = [
        (way.node[index] if is_node else way.whole)[column]
        for host_type in range(len(problem.hosts))
        for row in range(len(problem.machines))
        if problem.count[row] > 0
        for way in problem.placings[host_type][row]
        if way.span <= 2
        for index in range(len(way.node))
    ]
    return np.unique(np.array([amount for amount in amounts if amount > 0]))


def common_measure(amounts: Floats) -> float:
    """Return an amount of which all are multiples, to a millionth; 1 where there are none.

    That is a fraction of the smallest one where there is such, as for memory in GiB that is given in GB.
    """
    if not len(amounts):
        return 1.0
    smallest = float(amounts.min())
    for parts in range(1, MAX_PARTS + 1):
        ratio = amounts / (smallest / parts)
        if (np.abs(ratio - np.rint(ratio)) <= 1e-7 * ratio).all():
            return smallest / parts
    steps = np.rint(amounts * GRID).astype(np.int64)
    return max(int(np.gcd.reduce(steps)), 1) / GRID
