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
"""Sets of zones or racks that are lost together, up to which each has rows of its own."""
AREAS: Final = ("zone", "rack")


@dataclass(frozen=True, kw_only=True)
class Area:
    """Hosts of a type in a zone, or in a rack of one where rules or losses name racks.

    count     hosts there; inf for as many as needed
    supplies  rows of the supplies
    """

    host_type: int
    zone: int
    rack: str
    count: float
    supplies: tuple[int, ...]


Lost = frozenset[tuple[str, str]]
"""Domains, "zone" or "rack" with their names, that are lost together."""


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
        """Hosts by type and zone, and by rack where racks are named."""
        problem = self.problem
        has_racks = bool(self._losses("rack").any()) or any(
            limit.domain == "rack" for limit in problem.domain_limits
        )
        rows: dict[tuple[int, int, str], list[int]] = {}
        zones = problem.zone_names
        for row, supply in enumerate(problem.supplies):
            zone = zones.index(supply.zone) if supply.zone in zones else 0
            rows.setdefault((supply.host_type, zone, supply.rack if has_racks else ""), []).append(row)
        return [
            Area(
                host_type=host_type,
                zone=zone,
                rack=rack,
                count=min(
                    sum(problem.supplies[row].count for row in supplies),
                    float(problem.most[host_type]),
                    float(problem.zone_most[zone]),
                ),
                supplies=tuple(supplies),
            )
            for (host_type, zone, rack), supplies in rows.items()
        ]

    def domain_of(self, area: Area, domain: str) -> str:
        """Return the name of the zone or rack of an area."""
        return self.problem.zone_names[area.zone] if domain == "zone" else area.rack

    @cached_property
    def allowed(self) -> Bools:
        """(areas, M) whether a machine may be on hosts of an area."""
        supplied = self.problem.is_supplied
        return np.array([supplied[:, list(area.supplies)].any(axis=1) for area in self.areas])

    def _losses(self, domain: str) -> Ints:
        """Return the domains lost together that all machines of a shape survive, (M,); 0 for none."""
        losses = np.zeros(len(self.problem.machines), dtype=np.int64)
        if self.problem.survive is None:
            return losses
        for row in rows_of(self.problem.survive):
            if row.domain == domain:
                members = self.problem.members(str(getattr(row, "group", "") or ""))
                losses = np.maximum(losses, np.where(members, int(row.losses), 0))
        return losses

    @cached_property
    def host_losses(self) -> Ints:
        """(M,) hosts lost together that all machines of a shape survive; 0 for none."""
        return self._losses("host")

    @cached_property
    def survives(self) -> Bools:
        """(M,) whether machines of a shape survive any loss."""
        losses = self.host_losses + sum(self._losses(domain) for domain in AREAS)
        return np.asarray(losses > 0)

    def _lost_sets(self, shape: int) -> list[Lost]:
        """Return the sets of areas whose loss the machines of a shape survive; the empty one for none."""
        result: list[Lost] = []
        for domain in AREAS:
            names = list(dict.fromkeys(self.domain_of(area, domain) for area in self.areas))
            losses = min(int(self._losses(domain)[shape]), len(names) - 1)
            if losses > 0 and math.comb(len(names), losses) <= MAX_LOST_SETS:
                sets = combinations([(domain, name) for name in names], losses)
                result += [frozenset(lost) for lost in sets]
        return result or [frozenset()]

    @cached_property
    def rows(self) -> list[tuple[int, Lost]]:
        """Shape and lost areas of each row of machines."""
        used = np.flatnonzero(self.problem.count > 0).tolist()
        return [(shape, lost) for shape in used for lost in self._lost_sets(shape)]

    @cached_property
    def row_shapes(self) -> Ints:
        """(rows,) shape of each row of machines."""
        return np.array([shape for shape, _ in self.rows], dtype=np.int64)

    @cached_property
    def machines(self) -> Floats:
        """(rows,) machines that each row needs, without losses of hosts."""
        return self.problem.count[self.row_shapes].astype(float)

    @cached_property
    def demand(self) -> Floats:
        """(rows,) units that each row needs: each host that is lost has at least one of them.

        Units outside of the k hosts with most of them are as many as all machines, so that more than k hosts
        have some.
        """
        return self.machines + self.host_losses[self.row_shapes]

    @cached_property
    def units_of_refused(self) -> Floats:
        """(rows,) units that a refused machine counts: without any machine, none is needed for lost hosts."""
        return np.asarray(self.demand / np.maximum(self.machines, 1.0))

    @cached_property
    def row_of_area(self) -> Bools:
        """(areas, rows) whether hosts of an area count in a row: they are not lost there."""
        is_kept = [
            [all(self.domain_of(area, domain) != name for domain, name in lost) for _, lost in self.rows]
            for area in self.areas
        ]
        return np.array(is_kept, dtype=bool).reshape(len(self.areas), len(self.rows))

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
        weights = np.where(self.row_of_area[area], cover, 0.0)
        value = np.bincount(self.row_shapes, weights, minlength=len(self.problem.machines))
        return np.where(self.allowed[area], value, 0.0)

    def coverage(self, columns: Iterable[tuple[Pattern, int]]) -> sp.csc_array:
        """Return the machines of each column in each row, (rows, columns)."""
        stacked = np.array(
            [np.where(self.row_of_area[area], pattern.units[self.row_shapes], 0) for pattern, area in columns]
        )
        return sp.csc_array(stacked.reshape(-1, len(self.rows)).T.astype(float))

    def solve(
        self,
        demand: Floats,
        limits: Floats,
        options: Options,
        *,
        selected: Ints | None = None,
        fixed: Ints | None = None,
        integer: bool = False,
    ) -> Solved:
        """Solve the program for some demand of the rows.

        limits    (areas + types + zones,) hosts that can be had; inf for as many as needed
        selected  rows of the columns that it has; all by default
        fixed     (M,) most units of each shape on a host that is used anyway; none by default
        integer   whether numbers of hosts are whole
        """
        rows = np.arange(len(self.columns)) if selected is None else selected
        program = _Program(self, [self.columns[row] for row in rows.tolist()], integer=integer)
        program.add_machines(demand)
        program.add_supplies(limits)
        program.add_limits_of_areas()
        if integer:
            program.add_lost_hosts(np.ones(len(self.problem.machines)) if fixed is None else fixed)
        solution = solve(program.m.build(), options)
        if solution.x is None:
            return Solved(solution=solution, hosts=None, cover=None)
        hosts = np.zeros(len(self.columns))
        hosts[rows] = program.z.values(solution.x)
        duals = None
        if solution.row_duals is not None:
            duals = np.maximum(program.cover.values(solution.row_duals), 0.0)
        return Solved(solution=solution, hosts=hosts, cover=duals)

    @cached_property
    def limits_of_areas(self) -> list[tuple[Bools, str, str, float]]:
        """Members, domain, its name and largest number of each limit of a group, where no area is lost."""
        if any(self._losses(domain).any() for domain in AREAS):
            return []
        return [
            (limit.machines, limit.domain, name, limit.most)
            for limit in self.problem.domain_limits
            for name in dict.fromkeys(self.domain_of(area, limit.domain) for area in self.areas)
        ]

    @cached_property
    def limits(self) -> Floats:
        """(areas + types + zones,) hosts that can be had."""
        problem = self.problem
        return np.concatenate([[area.count for area in self.areas], problem.most, problem.zone_most]).astype(
            float
        )

    def used(self, hosts: Ints) -> Floats:
        """Return the hosts of columns by area, type and zone."""
        problem = self.problem
        area = np.array([row for _, row in self.columns], dtype=np.int64)
        host_type = np.array([pattern.host_type for pattern, _ in self.columns], dtype=np.int64)
        zone = np.array([self.areas[row].zone for row in area.tolist()], dtype=np.int64)
        return np.concatenate(
            [
                np.bincount(area, hosts, minlength=len(self.areas)),
                np.bincount(host_type, hosts, minlength=len(problem.hosts)),
                np.bincount(zone, hosts, minlength=len(problem.zone_names)),
            ]
        )

    def bound(self, cover: Floats, values: Floats) -> float:
        """Return a bound on the price from dual prices of rows and the largest value of each area's patterns.

        Duals are scaled until no pattern of an area without a limit is more valuable than its host, and no
        machine more than a host of its own; hosts with a limit count by their reduced price. Hosts that may
        be lost count as one unit of each shape on each, or as the cheapest hosts beside those for all.
        """
        problem = self.problem
        price = problem.price[[area.host_type for area in self.areas]]
        count = np.array([area.count for area in self.areas])
        is_free = ~np.isfinite(count)
        scale = 1.0
        over = is_free & (values > price)
        if over.any():
            scale = float((price[over] / values[over]).min())
        weighted = cover * self.units_of_refused
        by_shape = np.bincount(self.row_shapes, weighted, minlength=len(problem.machines))
        high = by_shape > problem.own_price
        if high.any():
            scale = min(scale, float((problem.own_price[high] / by_shape[high]).min()))
        reduced = float(np.minimum(price - scale * values, 0.0)[~is_free] @ count[~is_free])
        all_machines = scale * float(cover @ self.machines) + reduced
        return max(
            scale * float(cover @ self.demand) + reduced,
            all_machines + self._price_of_lost_hosts() if all_machines > 0 else 0.0,
        )

    def _price_of_lost_hosts(self) -> float:
        """Return the least price of the hosts of any loss, where all machines must survive it."""
        losses = int(self.host_losses[self.problem.count > 0].min(initial=1 << 30))
        price = self.problem.price[self.problem.most > 0]
        if not len(price) or not self.problem.count.sum():
            return 0.0
        return min(losses * float(price.min()), float(self.problem.own_price[self.problem.count > 0].min()))


class _Program:
    """Program of some columns: hosts of each, and refused machines."""

    def __init__(self, master: Master, columns: list[tuple[Pattern, int]], *, integer: bool) -> None:
        problem = master.problem
        self.master, self.columns = master, columns
        self.m = ProgramBuilder(name="patterns of hosts")
        self._area = np.array([row for _, row in columns], dtype=np.int64)
        self._type = np.array([pattern.host_type for pattern, _ in columns], dtype=np.int64)
        self.z = self.m.variables("hosts", len(columns), cost=problem.price[self._type], integer=integer)
        self._used = np.flatnonzero(problem.count > 0)
        self._shed = self.m.variables(
            "refused", len(self._used), cost=problem.own_price[self._used], integer=integer
        )

    def add_machines(self, demand: Floats) -> None:
        """Cover the units of each row."""
        position = np.searchsorted(self._used, self.master.row_shapes)
        self._demand = demand
        refused = self._shed[position] * self.master.units_of_refused
        self._covered = self.master.coverage(self.columns) @ self.z + refused
        self.cover = self.m.constrain("machines", self._covered, lower=demand)

    def add_supplies(self, limits: Floats) -> None:
        """Limit hosts of areas, types and zones."""
        problem, areas = self.master.problem, self.master.areas
        zone = np.array([areas[row].zone for row in self._area.tolist()], dtype=np.int64)
        groups = (
            ("areas", self._area, len(areas)),
            ("types", self._type, len(problem.hosts)),
            ("zones", zone, len(problem.zone_names)),
        )
        first = 0
        for name, group, count in groups:
            limit = limits[first : first + count]
            first += count
            rows = np.flatnonzero(np.isfinite(limit))
            if len(rows):
                self.m.constrain(name, self.z.sum_by(group, count)[rows], upper=limit[rows])

    def add_limits_of_areas(self) -> None:
        """Limit members of groups in each zone or rack."""
        for number, (members, domain, name, upper) in enumerate(self.master.limits_of_areas):
            amount = np.array(
                [
                    float(pattern.units[members].sum())
                    if self.master.domain_of(self.master.areas[row], domain) == name
                    else 0.0
                    for pattern, row in self.columns
                ]
            )
            self.m.constrain(f"spread {number}", (self.z * amount).sum(), upper=upper)

    def add_lost_hosts(self, fixed: Floats | Ints) -> None:
        """Cover what the hosts with most units of a shape have, for each host that is lost.

        The demand has one unit of each lost host already.

        fixed  (M,) most units of each shape on hosts that are used anyway
        """
        losses = self.master.host_losses
        shapes = np.flatnonzero((losses > 0) & (self.master.problem.count > 0))
        if not len(shapes) or not self.columns:
            return
        units = np.array([pattern.units[shapes] for pattern, _ in self.columns], dtype=float)
        lower = np.maximum(np.asarray(fixed, dtype=float)[shapes], 1.0)
        largest = self.m.variables(
            "most on a host", len(shapes), lower=lower, upper=np.maximum(units.max(axis=0), lower)
        )
        is_used = self.m.variables("is used", len(self.columns), upper=1.0, integer=True)
        limit = float(self.master.problem.count.sum() + losses.sum() + 1)
        self.m.constrain("used", self.z - is_used * limit, upper=0.0)
        for row, shape in enumerate(shapes.tolist()):
            inside = np.flatnonzero(units[:, row] > lower[row])
            if len(inside):
                over = is_used[inside] * units[inside, row] - largest[np.full(len(inside), row)]
                self.m.constrain(f"most of {shape}", over, upper=0.0)
            rows = np.flatnonzero(self.master.row_shapes == shape)
            spare = self._covered[rows] - largest[np.full(len(rows), row)] * float(losses[shape])
            self.m.constrain(f"lost of {shape}", spare, lower=self._demand[rows] - float(losses[shape]))


@dataclass(frozen=True, kw_only=True, eq=False)
class Solved:
    """Solution of the master problem: (columns,) hosts, and (rows,) dual prices; None for none."""

    solution: Solution
    hosts: Floats | None
    cover: Floats | None
