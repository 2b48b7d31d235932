"""Master problem of column generation: patterns of hosts that cover all machines, at the least price.

Rows are the machines of each shape, also after each loss of zones that must be survived, and the hosts that
can be had. A dual price of each row gives the value of a machine in each zone, which patterns are priced
with.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from typing import Final

import numpy as np
import scipy.sparse as sp

from planner.arrays import Bools, Floats, Ints
from planner.backends import Solution, solve
from planner.backends.program_builder import ProgramBuilder
from planner.options import Options
from planner_models.consolidation.designs.pattern import Pattern
from planner_models.consolidation.problem.problem import Consolidation
from planner_models.consolidation.problem.rows import rows_of

MAX_LOST_SETS: Final = 200
"""Sets of zones that are lost together, up to which each has rows of its own."""


@dataclass(frozen=True, kw_only=True)
class Area:
    """Hosts of a type in a zone.

    count     hosts there; inf for as many as needed
    supplies  rows of the supplies
    """

    host_type: int
    zone: int
    count: float
    supplies: tuple[int, ...]


@dataclass(eq=False)
class Master:
    """Columns, and the program of them.

    columns  patterns with the rows of their areas
    """

    problem: Consolidation
    columns: list[tuple[Pattern, int]] = field(default_factory=list)
    _known: set[tuple[int, tuple[int, bytes]]] = field(default_factory=set)

    @cached_property
    def areas(self) -> list[Area]:
        """Hosts by type and zone."""
        rows: dict[tuple[int, int], list[int]] = {}
        zones = self.problem.zone_names
        for row, supply in enumerate(self.problem.supplies):
            zone = zones.index(supply.zone) if supply.zone in zones else 0
            rows.setdefault((supply.host_type, zone), []).append(row)
        return [
            Area(
                host_type=host_type,
                zone=zone,
                count=min(
                    sum(self.problem.supplies[row].count for row in supplies),
                    float(self.problem.most[host_type]),
                    float(self.problem.zone_most[zone]),
                ),
                supplies=tuple(supplies),
            )
            for (host_type, zone), supplies in rows.items()
        ]

    @cached_property
    def allowed(self) -> Bools:
        """(areas, M) whether a machine may be on hosts of an area."""
        supplied = self.problem.is_supplied
        return np.array([supplied[:, list(area.supplies)].any(axis=1) for area in self.areas])

    @cached_property
    def survives(self) -> Ints:
        """(M,) zones lost together that all machines of a shape survive; 0 for none."""
        losses = np.zeros(len(self.problem.machines), dtype=np.int64)
        if self.problem.survive is None:
            return losses
        for row in rows_of(self.problem.survive):
            if row.domain == "zone":
                members = self.problem.members(str(getattr(row, "group", "") or ""))
                losses = np.maximum(losses, np.where(members, int(row.losses), 0))
        return losses

    @cached_property
    def rows(self) -> list[tuple[int, frozenset[int]]]:
        """Shape and lost zones of each row of machines."""
        zones = len(self.problem.zone_names)
        result = []
        for shape in np.flatnonzero(self.problem.count > 0).tolist():
            losses = int(self.survives[shape])
            if math.comb(zones, min(losses, zones)) > MAX_LOST_SETS:
                losses = 0
            result += [
                (shape, frozenset(lost)) for lost in combinations(range(zones), min(losses, zones - 1))
            ]
        return result

    @cached_property
    def demand(self) -> Floats:
        """(rows,) machines that each row needs."""
        return self.problem.count[[shape for shape, _ in self.rows]].astype(float)

    @cached_property
    def row_of_area(self) -> Bools:
        """(areas, rows) whether hosts of an area count in a row: their zone is not lost there."""
        return np.array(
            [[area.zone not in lost for _, lost in self.rows] for area in self.areas], dtype=bool
        ).reshape(len(self.areas), len(self.rows))

    def add(self, pattern: Pattern, area: int) -> bool:
        """Add a column; return whether it is new."""
        key = (area, pattern.key)
        if key in self._known:
            return False
        self._known.add(key)
        self.columns.append((pattern, area))
        return True

    def values(self, cover: Floats, area: int) -> Floats:
        """Return the value of a machine of each shape in an area, (M,)."""
        value = np.zeros(len(self.problem.machines))
        row = [shape for shape, _ in self.rows]
        np.add.at(value, row, np.where(self.row_of_area[area], cover, 0.0))
        return np.where(self.allowed[area], value, 0.0)

    def coverage(self, columns: Iterable[tuple[Pattern, int]]) -> sp.csc_array:
        """Return the machines of each column in each row, (rows, columns)."""
        shapes = np.array([shape for shape, _ in self.rows])
        stacked = np.array(
            [np.where(self.row_of_area[area], pattern.units[shapes], 0) for pattern, area in columns]
        )
        return sp.csc_array(stacked.reshape(-1, len(self.rows)).T.astype(float))

    def solve(self, demand: Floats, limits: Floats, options: Options, *, integer: bool = False) -> Solved:
        """Solve the program for some demand of the rows.

        limits   (areas + types + zones,) hosts that can be had; inf for as many as needed
        integer  whether numbers of hosts are whole
        """
        problem = self.problem
        m = ProgramBuilder(name="patterns of hosts")
        host_type = np.array([pattern.host_type for pattern, _ in self.columns])
        area = np.array([row for _, row in self.columns])
        zone = np.array([self.areas[row].zone for row in area])
        z = m.variables("hosts", len(self.columns), cost=problem.price[host_type], integer=integer)
        used = np.flatnonzero(problem.count > 0)
        position = {int(shape): row for row, shape in enumerate(used)}
        shed = m.variables("refused", len(used), cost=problem.own_price[used], integer=integer)
        row_shape = np.array([position[shape] for shape, _ in self.rows], dtype=np.int64)
        covered = self.coverage(self.columns) @ z + shed[row_shape]
        cover = m.constrain("machines", covered, lower=demand)
        groups = ((area, len(self.areas)), (host_type, len(problem.hosts)), (zone, len(problem.zone_names)))
        first = 0
        for name, (group, count) in zip(("areas", "types", "zones"), groups, strict=True):
            limit = limits[first : first + count]
            first += count
            if np.isfinite(limit).any():
                rows = np.flatnonzero(np.isfinite(limit))
                m.constrain(name, z.sum_by(group, count)[rows], upper=limit[rows])
        if self._spread_rows:
            for number, (members, its_zone, upper) in enumerate(self._spread_rows):
                amount = np.array(
                    [
                        float(pattern.units[members].sum()) if self.areas[row].zone == its_zone else 0.0
                        for pattern, row in self.columns
                    ]
                )
                m.constrain(f"spread {number}", (z * amount).sum(), upper=upper)
        solution = solve(m.build(), options)
        if solution.x is None:
            return Solved(solution=solution, hosts=None, cover=None)
        duals = None
        if solution.row_duals is not None:
            duals = np.maximum(cover.values(solution.row_duals), 0.0)
        return Solved(solution=solution, hosts=z.values(solution.x), cover=duals)

    @cached_property
    def _spread_rows(self) -> list[tuple[Bools, int, float]]:
        """Members, zone and largest number of each limit of a group in a zone, where no zone is lost."""
        if self.survives.any():
            return []
        return [
            (limit.machines, zone, limit.most)
            for limit in self.problem.domain_limits
            if limit.domain == "zone"
            for zone in range(len(self.problem.zone_names))
        ]

    @cached_property
    def limits(self) -> Floats:
        """(areas + types + zones,) hosts that can be had."""
        problem = self.problem
        return np.concatenate([[area.count for area in self.areas], problem.most, problem.zone_most]).astype(
            float
        )

    def bound(self, cover: Floats, values: Floats) -> float:
        """Return a bound on the price from dual prices of rows and the largest value of each area's patterns.

        Duals are scaled until no pattern of an area without a limit is more valuable than its host, and no
        machine more than a host of its own; hosts with a limit count by their reduced price.
        """
        problem = self.problem
        price = problem.price[[area.host_type for area in self.areas]]
        count = np.array([area.count for area in self.areas])
        is_free = ~np.isfinite(count)
        scale = 1.0
        over = is_free & (values > price)
        if over.any():
            scale = float((price[over] / values[over]).min())
        by_shape = np.bincount([shape for shape, _ in self.rows], cover, minlength=len(problem.machines))
        high = by_shape > problem.own_price
        if high.any():
            scale = min(scale, float((problem.own_price[high] / by_shape[high]).min()))
        reduced = np.minimum(price - scale * values, 0.0)[~is_free]
        return scale * float(cover @ self.demand) + float(reduced @ count[~is_free])


@dataclass(frozen=True, kw_only=True, eq=False)
class Solved:
    """Solution of the master problem: (columns,) hosts, and (rows,) dual prices; None for none."""

    solution: Solution
    hosts: Floats | None
    cover: Floats | None
