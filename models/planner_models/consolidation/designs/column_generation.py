"""Column generation: the fewest or cheapest hosts for all machines, with a bound for all plans.

Patterns are priced exactly, by dynamic programming where it applies and as integer programs else, so that the
dual prices of each round give a bound: at a time limit the best one holds. A plan is the rounded-down
solution of the linear program, with the remaining machines placed by an integer program over the patterns
that were found.

Reference: Gilmore and Gomory 1961; Farley 1990 (bound); Wentges 1997 (smoothing of dual prices).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from planner.arrays import Floats, Ints
from planner.contract.progress import report
from planner.options import Options
from planner.search.deadline import Deadline
from planner_models.consolidation.designs.master import Master
from planner_models.consolidation.designs.pattern import Pattern, Priced, make_pattern
from planner_models.consolidation.designs.pattern_program import price_by_program
from planner_models.consolidation.designs.pricing import NodePricer, Tables
from planner_models.consolidation.problem.packing import HostGroup, Packer, decreasing, pack_all, regroup
from planner_models.consolidation.problem.problem import Consolidation

LP_GAP: Final = 1e-6
"""Gap of the linear program at which no more patterns are priced."""
SMOOTHING: Final = 0.5
ROUNDS: Final = 3_000
LP_SHARE: Final = 0.7
"""Share of the time limit for the linear program."""
ROUNDING_S: Final = 8.0
PRICING_S: Final = 20.0
WHOLE: Final = 1e-6


@dataclass(frozen=True, kw_only=True, eq=False)
class Generated:
    """Result of column generation.

    groups   hosts with their content
    refused  machines without a host, by shape
    bound    price that no plan is below
    is_cut   whether a time limit ended the search
    """

    groups: list[HostGroup]
    refused: dict[int, int]
    bound: float
    is_cut: bool
    backend: str
    prices: Floats
    """(M,) dual price of a machine of each shape."""


class Search:
    """One run of column generation."""

    def __init__(self, problem: Consolidation, start: list[HostGroup], options: Options) -> None:
        """Begin with the patterns of a plan."""
        self.problem, self.options = problem, options
        self.master = Master(problem)
        self._deadline = Deadline.of(options)
        self.bound, self.is_cut, self.backend = 0.0, False, ""
        self.prices = np.zeros(len(problem.machines))
        try:
            self._pricer: NodePricer | None = NodePricer(problem)
        except ValueError:
            self._pricer = None
        for group in start:
            self._add_everywhere(
                make_pattern(problem, problem.supplies[group.supply].host_type, group.content)
            )
        self._add_single_shapes()

    def _add_everywhere(self, pattern: Pattern) -> None:
        for row, area in enumerate(self.master.areas):
            allowed = self.master.allowed[row]
            if area.host_type == pattern.host_type and not (pattern.units[~allowed] > 0).any():
                self.master.add(pattern, row)

    def _add_single_shapes(self) -> None:
        problem = self.problem
        packer = Packer(problem)
        for row, area in enumerate(self.master.areas):
            for shape in np.flatnonzero(self.master.allowed[row] & (problem.count > 0)).tolist():
                group = regroup(problem, area.supplies[0], 1, {})
                packer._fill_host(group, shape, int(problem.count[shape]))
                self.master.add(make_pattern(problem, area.host_type, group.content), row)

    # --- linear program -------------------------------------------------------------------

    def solve_linear(self) -> Floats:
        """Solve the linear program; return the hosts of each column."""
        master = self.master
        deadline = self._deadline.share(LP_SHARE)
        stable: Floats | None = None
        hosts = np.zeros(len(master.columns))
        for _ in range(ROUNDS):
            solved = master.solve(master.demand, master.limits, replace(self.options, time_limit_s=None))
            self.backend = solved.solution.backend
            if solved.hosts is None or solved.cover is None:
                break
            hosts, value = solved.hosts, float(solved.solution.objective or 0.0)
            if value - self.bound <= LP_GAP * max(value, 1e-9):
                break
            if deadline.is_over:
                self.is_cut = True
                break
            candidate = (
                solved.cover if stable is None else SMOOTHING * stable + (1 - SMOOTHING) * solved.cover
            )
            is_new, bound = self._price(candidate, solved.cover, deadline)
            if bound > self.bound or stable is None:
                stable = candidate
                self.bound = max(self.bound, bound)
                self._note_prices(candidate)
            if not is_new:
                is_new, bound = self._price(solved.cover, solved.cover, deadline)
                if bound > self.bound:
                    self.bound, stable = bound, solved.cover
                    self._note_prices(stable)
                if not is_new:
                    break
            report("price_per_h", None, self.bound)
        return np.append(hosts, np.zeros(len(master.columns) - len(hosts)))

    def _note_prices(self, cover: Floats) -> None:
        row = [shape for shape, _ in self.master.rows]
        self.prices = np.bincount(row, cover, minlength=len(self.problem.machines)).astype(float)

    def _price(self, cover: Floats, of_program: Floats, deadline: Deadline) -> tuple[bool, float]:
        """Add the best pattern of each area; return whether one improves the program, and the bound."""
        master = self.master
        values = np.zeros(len(master.areas))
        is_new = False
        tables: dict[bytes, Tables] = {}
        results: dict[tuple[int, bytes], Priced] = {}
        for row, area in enumerate(master.areas):
            value = master.values(cover, row)
            key = value.tobytes()
            if (area.host_type, key) not in results:
                if self._pricer is None:
                    limit = min(max(deadline.left_s, 0.05), PRICING_S)
                    limited = replace(self.options, time_limit_s=limit, gap=None)
                    results[area.host_type, key] = price_by_program(
                        self.problem, area.host_type, value, master.allowed[row], limited
                    )
                else:
                    if key not in tables:
                        tables[key] = self._pricer.tables(value, master.allowed[row])
                    results[area.host_type, key] = self._pricer.price(area.host_type, tables[key])
            priced = results[area.host_type, key]
            values[row] = priced.bound
            if priced.pattern is not None:
                reduced = float(self.problem.price[area.host_type]) - float(
                    master.values(of_program, row) @ priced.pattern.units
                )
                if master.add(priced.pattern, row) and reduced < -1e-9:
                    is_new = True
        return is_new, master.bound(cover, values)

    # --- whole numbers of hosts -----------------------------------------------------------

    def round(self, hosts: Floats) -> tuple[Ints, bool]:
        """Return whole numbers of hosts of each column, and whether an integer program found them."""
        master = self.master
        fixed = np.floor(hosts + WHOLE).astype(np.int64)
        for keep in (1.0, 0.0):
            base = np.floor(fixed * keep).astype(np.int64) if keep < 1 else np.maximum(fixed - 1, 0)
            if keep < 1 and fixed.sum() > 2_000:
                continue
            covered = master.coverage(master.columns) @ base
            demand = np.maximum(master.demand - covered, 0.0)
            limits = master.limits - self._used(base)
            limit = min(ROUNDING_S, max(self._deadline.left_s, 0.2))
            gap = 0.5 * float(self.problem.price.min(initial=1.0)) / max(self.bound, 1.0)
            options = replace(self.options, time_limit_s=limit, gap=min(max(gap, 1e-9), 0.5))
            solved = master.solve(demand, limits, options, integer=True)
            if solved.hosts is not None:
                return base + np.rint(solved.hosts).astype(np.int64), True
        return fixed, False

    def _used(self, hosts: Ints) -> Floats:
        """Return the hosts of columns by area, type and zone."""
        master, problem = self.master, self.problem
        area = np.array([row for _, row in master.columns])
        host_type = np.array([pattern.host_type for pattern, _ in master.columns])
        zone = np.array([master.areas[row].zone for row in area])
        return np.concatenate(
            [
                np.bincount(area, hosts, minlength=len(master.areas)),
                np.bincount(host_type, hosts, minlength=len(problem.hosts)),
                np.bincount(zone, hosts, minlength=len(problem.zone_names)),
            ]
        )

    def make_groups(self, hosts: Ints) -> list[HostGroup]:
        """Return groups of hosts of columns: placed in supplies, without more machines than there are."""
        problem, master = self.problem, self.master
        free = {row: supply.count for row, supply in enumerate(problem.supplies)}
        groups = []
        for (pattern, area), count in zip(master.columns, hosts.tolist(), strict=True):
            remaining = int(count)
            for supply in master.areas[area].supplies:
                shapes = np.flatnonzero(pattern.units > 0)
                if remaining == 0 or not problem.is_supplied[shapes, supply].all():
                    continue
                taken = int(min(remaining, free[supply]))
                if taken > 0:
                    free[supply] -= taken
                    remaining -= taken
                    groups.append(regroup(problem, supply, taken, dict(pattern.copies)))
        return groups


def trim(problem: Consolidation, groups: list[HostGroup], surplus: Ints) -> list[HostGroup]:
    """Return the groups without some machines of each shape, which leave the hosts that are least full."""
    remaining = surplus.copy()
    result = list(groups)
    for shape in np.flatnonzero(remaining > 0).tolist():
        for row in range(len(result) - 1, -1, -1):
            group = result[row]
            while remaining[shape] > 0 and group.hosts and (copies := group.members(shape)):
                hosts = min(group.hosts, int(remaining[shape]) // copies) or 1
                times = copies if copies <= remaining[shape] else int(remaining[shape])
                changed = group.split_off(hosts)
                result.append(_without(problem, changed, shape, times))
                remaining[shape] -= times * hosts
            if remaining[shape] <= 0:
                break
    return [group for group in result if group.hosts > 0 and group.content]


def _without(problem: Consolidation, group: HostGroup, shape: int, times: int) -> HostGroup:
    """Return hosts without some machines of a shape."""
    content = dict(group.content)
    for copy in [copy for copy in content if copy[0] == shape]:
        taken = min(times, content[copy])
        times -= taken
        content[copy] -= taken
        if not content[copy]:
            del content[copy]
    return regroup(problem, group.supply, group.hosts, content)


def placed_machines(problem: Consolidation, groups: list[HostGroup]) -> Ints:
    """Return the machines of each shape in groups, slots included, (M,)."""
    total = np.zeros(len(problem.machines), dtype=np.int64)
    for group in groups:
        for content in (group.content, group.slots):
            for (shape, _, _), times in content.items():
                total[shape] += times * group.hosts
    return total


def generate(problem: Consolidation, options: Options) -> tuple[Generated, Search, Ints]:
    """Return the hosts of the best patterns that were found, the search, and the hosts of each column.

    Groups hold no more machines than there are, except for those that zones must survive, which hold slots
    too.
    """
    start = pack_all(problem, Packer(problem), decreasing(problem))
    search = Search(problem, start.groups, options)
    if not search.master.rows or not search.master.areas:
        generated = Generated(
            groups=start.groups,
            refused=start.refused,
            bound=0.0 if not search.master.rows else float(problem.own_price @ problem.count),
            is_cut=False,
            backend="",
            prices=np.zeros(len(problem.machines)),
        )
        return generated, search, np.zeros(0, dtype=np.int64)
    hosts = search.solve_linear()
    selected, _ = search.round(hosts)
    generated = Generated(
        groups=search.make_groups(selected),
        refused={},
        bound=search.bound,
        is_cut=search.is_cut,
        backend=search.backend,
        prices=search.prices,
    )
    return generated, search, selected
