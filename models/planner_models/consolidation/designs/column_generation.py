"""Column generation: the fewest or cheapest hosts for all machines, with a bound for all plans.

Patterns are priced exactly, by dynamic programming where it applies and as integer programs else, so that the
dual prices of each round give a bound: at a time limit the best one holds. A plan is the rounded-down
solution of the linear program, with the remaining machines placed by an integer program over the patterns
that were found.

Reference: Gilmore and Gomory 1961; Farley 1990 (bound); Wentges 1997 (smoothing of dual prices).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from planner.arrays import Bools, Floats, Ints
from planner.contract.progress import report
from planner.options import Options
from planner.search.deadline import Deadline
from planner_models.consolidation.designs.grid import common_measure
from planner_models.consolidation.designs.master import Master
from planner_models.consolidation.designs.pattern import Pattern, Priced, make_pattern
from planner_models.consolidation.designs.pattern_program import price_by_program
from planner_models.consolidation.designs.pricing import NodePricer, make_pricer
from planner_models.consolidation.problem.packing import (
    Copy,
    HostGroup,
    Packer,
    decreasing,
    pack_all,
    regroup,
)
from planner_models.consolidation.problem.problem import Consolidation

LP_GAP: Final = 1e-6
"""Gap of the linear program at which no more patterns are priced."""
SMOOTHING: Final = 0.5
ROUNDS: Final = 3_000
LP_SHARE: Final = 0.7
"""Share of the time limit for the linear program."""
ROUNDING_S: Final = 3.0
DIVE_SHARE: Final = 0.7
"""Share of the remaining time for diving."""
MAX_STEPS: Final = 200
MORE: Final = 12
"""Patterns of an area beside the best one, each with a machine of another shape."""
PRICED: Final = 3
"""Programs of remaining machines that are solved before some hosts are fixed."""
MAX_FREE: Final = 60
"""Hosts up to which the integer program fixes none."""
PRICING_S: Final = 20.0
MAX_SELECTIONS: Final = 12
"""Largest sets of shapes without a conflict on a host up to which each is priced by tables."""
WHOLE: Final = 1e-6


@dataclass(frozen=True, kw_only=True, eq=False)
class Generated:
    """Result of column generation.

    plans    hosts with their content, in each of some ways, each found when it is asked for
    bound    price that no plan is below
    is_cut   whether a time limit ended the search
    prices   (M,) dual price of a machine of each shape
    """

    plans: Iterable[list[HostGroup]]
    bound: float
    is_cut: bool
    backend: str
    prices: Floats


class Search:
    """One run of column generation."""

    def __init__(self, problem: Consolidation, start: list[HostGroup], options: Options) -> None:
        """Begin with the patterns of a plan."""
        self.problem, self.options = problem, options
        self.master = Master(problem)
        self.deadline = Deadline.of(options)
        self.bound, self.is_cut, self.backend = 0.0, False, ""
        self.prices = np.zeros(len(problem.machines))
        self._pricer: Any = make_pricer(problem)
        self._is_exact = isinstance(self._pricer, NodePricer)
        self._selections = list_selections(problem)
        if not self._selections:
            self._pricer, self._selections = None, [np.ones(len(problem.machines), dtype=bool)]
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
        deadline = self.deadline.share(LP_SHARE)
        hosts, stable = np.zeros(0), None
        for _ in range(ROUNDS):
            solved = master.solve(master.demand, master.limits, replace(self.options, time_limit_s=None))
            self.backend = solved.solution.backend
            if solved.hosts is None or solved.cover is None:
                break
            hosts, value = solved.hosts, float(solved.solution.objective or 0.0)
            self.is_cut = deadline.is_over
            if self.is_cut or value - self.bound <= LP_GAP * max(value, 1e-9):
                break
            is_new, stable = self._improve(solved.cover, stable, deadline)
            report("price_per_h", None, self.bound)
            if not is_new and (self._is_exact or self._pricer is None):
                break
            if not is_new:  # rounded sizes find no more: integer programs do
                self._is_exact = True
        self._is_exact = False
        return np.append(hosts, np.zeros(len(master.columns) - len(hosts)))

    def _improve(self, cover: Floats, stable: Floats | None, deadline: Deadline) -> tuple[bool, Floats]:
        """Add patterns by smoothed dual prices, or by the program's; return whether any is new, and prices.

        stable  (rows,) dual prices of the best bound so far
        """
        candidate = cover if stable is None else SMOOTHING * stable + (1 - SMOOTHING) * cover
        is_new, bound = self.price(candidate, cover, deadline)
        if bound > self.bound or stable is None:
            self._note(candidate, bound)
            stable = candidate
        if is_new:
            return True, stable
        is_new, bound = self.price(cover, cover, deadline)
        if bound > self.bound:
            self._note(cover, bound)
            stable = cover
        return is_new, stable

    def _note(self, cover: Floats, bound: float) -> None:
        """Note a bound, and the dual prices of machines that it follows from."""
        self.bound = max(self.bound, bound)
        shapes = len(self.problem.machines)
        self.prices = np.bincount(self.master.row_shapes, cover, minlength=shapes).astype(float)

    def price(
        self, cover: Floats, of_program: Floats, deadline: Deadline, most: Ints | None = None
    ) -> tuple[bool, float]:
        """Add the best pattern of each area; return whether one improves the program, and the bound.

        cover, of_program  (rows,) dual prices that patterns are priced with, and those of the program
        most  (M,) machines beyond which a pattern is cut; none by default
        """
        master = self.master
        values = np.zeros(len(master.areas))
        is_new = False
        known: dict[tuple[int, bytes], Priced] = {}
        tables: dict[bytes, Any] = {}
        for row, area in enumerate(master.areas):
            for value in self._selected_values(master.values(cover, row)):
                key = (area.host_type, value.tobytes())
                if key not in known:
                    known[key] = self._price_area(row, value, tables, deadline)
                priced = known[key]
                values[row] = max(values[row], priced.bound)
                if priced.pattern is not None:
                    pattern = priced.pattern
                    pattern = pattern if most is None else cut_pattern(self.problem, pattern, most)
                    gain = float(master.values(of_program, row) @ pattern.units)
                    improves = gain > float(self.problem.price[area.host_type]) + 1e-9
                    is_new |= master.add(pattern, row) and improves
                if most is None:
                    self._add_more(row, of_program, tables.get(key[1]))
        return is_new, master.bound(cover, values)

    @property
    def _uses_program(self) -> bool:
        """Whether patterns are priced by integer programs, which separate shapes themselves."""
        return self._pricer is None or (self._is_exact and not isinstance(self._pricer, NodePricer))

    def _selected_values(self, value: Floats) -> Iterator[Floats]:
        """Yield the values of the shapes that a host can have together, 0 for the others."""
        if self._uses_program:
            yield value
            return
        for selection in self._selections:
            yield np.where(selection, value, 0.0)

    def _add_more(self, row: int, of_program: Floats, tables: Any) -> None:
        """Add more patterns of an area by the same tables, where they improve the program."""
        if not isinstance(self._pricer, NodePricer) or tables is None:
            return
        host_type = self.master.areas[row].host_type
        value, price = self.master.values(of_program, row), float(self.problem.price[host_type])
        for pattern in self._pricer.price_more(host_type, tables, MORE):
            if float(value @ pattern.units) > price + 1e-9:
                self.master.add(pattern, row)

    def _price_area(self, row: int, value: Floats, tables: dict[bytes, Any], deadline: Deadline) -> Priced:
        """Return the best pattern of an area; tables of values that are known are used again."""
        host_type, allowed = self.master.areas[row].host_type, self.master.allowed[row]
        if self._uses_program:
            limit = min(max(deadline.left_s, 0.05), PRICING_S)
            limited = replace(self.options, time_limit_s=limit, gap=None)
            return price_by_program(self.problem, host_type, value, allowed, limited)
        key = value.tobytes()
        if key not in tables:
            tables[key] = self._pricer.tables(value, allowed)
        priced: Priced = self._pricer.price(host_type, tables[key])
        return priced

    # --- whole numbers of hosts -----------------------------------------------------------

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


def list_selections(problem: Consolidation) -> list[Bools]:
    """Return the largest sets of shapes of which no two must not be on the same host; none of too many."""
    selections = [np.ones(len(problem.machines), dtype=bool)]
    for first, second in np.argwhere(np.triu(problem.host_conflicts, 1)).tolist():
        if not problem.count[first] or not problem.count[second]:
            continue
        separated = []
        for selection in selections:
            both = selection[first] and selection[second]
            for left_out in (first, second) if both else ():
                separated.append(selection.copy())
                separated[-1][left_out] = False
            separated += [] if both else [selection]
        selections = _without_subsets(separated)
        if len(selections) > MAX_SELECTIONS:
            return []
    return selections


def _without_subsets(selections: list[Bools]) -> list[Bools]:
    """Return the sets that are in no other one."""
    result: list[Bools] = []
    for selection in sorted(selections, key=lambda item: -int(item.sum())):
        if not any((selection <= other).all() for other in result):
            result.append(selection)
    return result


def cut_pattern(problem: Consolidation, pattern: Pattern, most: Ints) -> Pattern:
    """Return a pattern without the machines of each shape beyond some number."""
    remaining = most.copy()
    copies: dict[Copy, int] = {}
    for copy, times in pattern.copies:
        number = min(times, int(remaining[copy[0]]))
        if number > 0:
            copies[copy] = number
            remaining[copy[0]] -= number
    return make_pattern(problem, pattern.host_type, copies)


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


def generate(problem: Consolidation, options: Options) -> Generated:
    """Return the hosts of the best patterns that were found.

    Groups may hold more machines than there are, which are slots where losses are survived.
    """
    start = pack_all(problem, Packer(problem), decreasing(problem))
    search = Search(problem, start.groups, options)
    if not search.master.rows or not search.master.areas:
        return Generated(
            plans=[start.groups],
            bound=0.0 if not search.master.rows else float(problem.own_price @ problem.count),
            is_cut=False,
            backend="",
            prices=np.zeros(len(problem.machines)),
        )
    hosts = search.solve_linear()
    return Generated(
        plans=Rounding(search).list_plans(hosts) if search.master.columns else [start.groups],
        bound=search.bound,
        is_cut=search.is_cut,
        backend=search.backend,
        prices=search.prices,
    )


class Rounding:
    """Whole numbers of hosts from those of the linear program.

    Whole parts are kept. What remains is found by diving, which solves the program of the remaining machines
    again and keeps its whole parts, or its largest part, with patterns of its own; and by an integer program
    over all patterns that were found.
    """

    def __init__(self, search: Search) -> None:
        self.search, self.master, self.problem = search, search.master, search.problem
        self._shapes = len(self.problem.machines)

    def list_plans(self, hosts: Floats) -> Iterator[list[HostGroup]]:
        """Yield hosts with their content: whole parts, by diving, and by an integer program."""
        fixed = np.floor(hosts + WHOLE).astype(np.int64)
        yield self._groups(fixed)
        for find in (self._dive, self._solve_rest):
            selected = find(fixed)
            if selected is not None:
                yield self._groups(selected)

    def _groups(self, hosts: Ints) -> list[HostGroup]:
        return self.search.make_groups(self._pad(hosts))

    def _pad(self, hosts: Ints) -> Ints:
        """Return the hosts of all columns, none of those that were found later."""
        return np.append(hosts, np.zeros(len(self.master.columns) - len(hosts), dtype=np.int64))

    def _remaining(self, fixed: Ints) -> Floats:
        """Return the units of each row that fixed hosts do not cover."""
        master = self.master
        covered = master.coverage(master.columns) @ self._pad(fixed)
        return np.asarray(np.maximum(master.demand - covered, 0.0))

    def _dive(self, fixed: Ints) -> Ints | None:
        """Return the hosts after fixing those of programs of the remaining machines; None at a time limit."""
        deadline = self.search.deadline.share(DIVE_SHARE)
        for _ in range(MAX_STEPS):
            demand = self._remaining(fixed)
            if not demand.any():
                return fixed
            hosts = None if deadline.is_over else self._solve_remaining(demand, fixed)
            if hosts is None:
                return None
            whole = np.floor(hosts + WHOLE).astype(np.int64)
            if not whole.any():
                if hosts.max(initial=0.0) <= WHOLE:
                    return self._pad(fixed)  # the remaining machines are refused
                whole[hosts.argmax()] = 1
            fixed = self._pad(fixed) + whole
        return None

    def _solve_remaining(self, demand: Floats, fixed: Ints) -> Floats | None:
        """Return the hosts of the linear program of remaining machines, with patterns for these alone."""
        master, search = self.master, self.search
        most = np.zeros(self._shapes, dtype=np.int64)
        np.maximum.at(most, master.row_shapes, demand.astype(np.int64))
        self._cut_columns(most)
        hosts = np.zeros(0)
        for _ in range(PRICED):
            limits = master.limits - master.used(self._pad(fixed))
            selected = self._fitting(most)
            solved = master.solve(
                demand, limits, replace(search.options, time_limit_s=None), selected=selected
            )
            if solved.hosts is None or solved.cover is None:
                return None
            hosts = solved.hosts
            is_new, _ = search.price(solved.cover, solved.cover, search.deadline, most)
            if not is_new:
                break
        return np.append(hosts, np.zeros(len(master.columns) - len(hosts)))

    def _fitting(self, most: Ints) -> Ints:
        """Return the columns with no more machines than remain."""
        units = np.array([pattern.units for pattern, _ in self.master.columns])
        return np.flatnonzero((units <= most).all(axis=1) & (units > 0).any(axis=1))

    def _cut_columns(self, most: Ints) -> None:
        """Add the patterns of all columns without the machines beyond those that remain."""
        for pattern, area in list(self.master.columns):
            if (pattern.units > most).any():
                self.master.add(cut_pattern(self.problem, pattern, most), area)

    def _solve_rest(self, fixed: Ints) -> Ints | None:
        """Return the hosts by an integer program, with all but one of each fixed column; None without any."""
        master, search = self.master, self.search
        base = self._pad(np.maximum(fixed - 1, 0) if fixed.sum() > MAX_FREE else np.zeros_like(fixed))
        limits = master.limits - master.used(base)
        price = self.problem.price[self.problem.price > 0]
        gap = 0.5 * common_measure(price) / max(search.bound, 1.0)  # prices of plans are multiples
        options = replace(
            search.options,
            time_limit_s=min(ROUNDING_S, max(search.deadline.left_s, 0.2)),
            gap=min(max(gap, 1e-9), 0.5),
        )
        units = np.array([pattern.units for pattern, _ in master.columns])
        on_hosts = np.where(base[:, None] > 0, units, 0).max(axis=0, initial=0)
        solved = master.solve(self._remaining(base), limits, options, fixed=on_hosts, integer=True)
        return None if solved.hosts is None else base + np.rint(solved.hosts).astype(np.int64)
