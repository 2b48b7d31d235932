"""Pricing of patterns: the most valuable content of a host, by dynamic programming or as an integer program.

The value f(threads, memory, host resources) of one node is an unbounded knapsack, computed once for all types
of hosts. Nodes are joined over what the whole host has; machines that are split evenly over two nodes have a
table of their own, and threads of helpers are tried in each way over the two nodes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, Final

import numpy as np

from planner.arrays import Bools, Floats, Ints
from planner.backends import solve
from planner.backends.program_builder import ProgramBuilder
from planner.options import Options
from planner_models.consolidation.problem.packing import Copy, copy_of
from planner_models.consolidation.problem.problem import Consolidation
from planner_models.consolidation.problem.shapes import Placing

MAX_STATES: Final = 6_000_000
"""States of a table up to which dynamic programming is used."""
MAX_SHARED: Final = 4_000
"""States of the resources of the whole host, over which nodes are joined."""
GRID: Final = 1e6
"""Amounts are multiples of one over this; finer ones have no common measure."""
MAX_PARTS: Final = 64
"""Parts of the smallest amount that are tried as a common measure."""
SMALLEST: Final = 1e-9


@dataclass(frozen=True, kw_only=True, eq=False)
class Pattern:
    """Content of a host of a type.

    copies  machines by the way in which they are in it
    units   (M,) machines of each shape
    """

    host_type: int
    copies: tuple[tuple[Copy, int], ...]
    units: Ints

    @property
    def key(self) -> tuple[int, bytes]:
        """Identity of patterns with the same type and number of machines."""
        return self.host_type, self.units.tobytes()


@dataclass(frozen=True, kw_only=True, eq=False)
class Priced:
    """The most valuable pattern that was found, and a value that no pattern of the type exceeds."""

    pattern: Pattern | None
    value: float
    bound: float


def make_pattern(problem: Consolidation, host_type: int, copies: dict[Copy, int]) -> Pattern:
    """Return the pattern of some machines."""
    units = np.zeros(len(problem.machines), dtype=np.int64)
    for (shape, _, _), times in copies.items():
        units[shape] += times
    return Pattern(host_type=host_type, copies=tuple(sorted(copies.items())), units=units)


# --- integer program ----------------------------------------------------------------------


class _PatternProgram:
    """Integer program of the content of one host.

    Machines that can be split in any way are clients in nodes, which some machines make together.
    """

    def __init__(self, problem: Consolidation, host_type: int, values: Floats, allowed: Bools) -> None:
        self.problem, self.host_type, self.values = problem, host_type, values
        self.selected = np.flatnonzero((values > SMALLEST) & allowed)
        nodes = len(problem.host_shapes[host_type].node)
        self.ways = [
            (row, way)
            for row in self.selected.tolist()
            for way in problem.placings[host_type][row]
            if not (problem.split[row] == "any" and way.span > 1)
        ]
        self.free = [int(row) for row in self.selected if problem.split[row] == "any" and nodes > 1]
        self.size = np.rint(problem.vcpus[self.free] / problem.client[self.free])
        self.m = ProgramBuilder(sense="maximize", name="pattern of a host")
        upper = problem.count.astype(float)
        rows = np.array([row for row, _ in self.ways], dtype=np.int64)
        self.z = self.m.variables("machines", len(rows), upper=upper[rows], cost=values[rows], integer=True)
        self.count = self.m.variables(
            "split", len(self.free), upper=upper[self.free], cost=values[self.free], integer=True
        )
        self.clients = self.m.variables("clients", (len(self.free), nodes), integer=True)
        if self.free:
            total = self.clients.sum(axis=1) - self.count * self.size
            self.m.constrain("whole machines", total, equal=0.0)
        for column in range(problem.dimensions):
            for node in (*range(nodes), None):
                self._limit(column, node)

    def _limit(self, column: int, node: int | None) -> None:
        """Add the capacity of a node, or of the whole host for None, in one dimension."""
        problem = self.problem
        shape = problem.host_shapes[self.host_type]
        limit = float(shape.whole[column] if node is None else shape.node[node, column])
        if not np.isfinite(limit):
            return
        amount = [way.whole[column] if node is None else way.node[node][column] for _, way in self.ways]
        needs = problem.needs[self.free, column]
        total = (self.z * np.array(amount)).sum()
        if node is None:
            total = total + (self.count * needs).sum()
        else:
            total = total + (self.clients[:, node] * (needs / np.maximum(self.size, 1))).sum()
        self.m.constrain(f"capacity {column} {node}", total, upper=limit)

    def solve(self, options: Options) -> Priced:
        """Return the most valuable pattern within a time limit, and its bound."""
        problem = self.problem
        solution = solve(self.m.build(), options)
        bound = solution.bound
        if bound is None:
            bound = float(self.values[self.selected] @ problem.count[self.selected])
        if solution.x is None:
            return Priced(pattern=None, value=0.0, bound=bound)
        copies: dict[Copy, int] = {}
        times = np.rint(self.z.values(solution.x)).astype(int)
        for (row, way), number in zip(self.ways, times.tolist(), strict=True):
            if number > 0:
                copies[copy_of(row, way)] = copies.get(copy_of(row, way), 0) + number
        _add_split(problem, copies, self.free, np.rint(self.clients.values(solution.x)))
        pattern = make_pattern(problem, self.host_type, copies)
        value = float(self.values @ pattern.units)
        return Priced(pattern=pattern, value=value, bound=max(bound, value))


def price_by_program(
    problem: Consolidation, host_type: int, values: Floats, allowed: Bools, options: Options
) -> Priced:
    """Return the most valuable pattern of a type by an integer program, for any nodes and splits."""
    program = _PatternProgram(problem, host_type, values, allowed)
    if not len(program.selected):
        return Priced(pattern=None, value=0.0, bound=0.0)
    return program.solve(options)


def _add_split(problem: Consolidation, copies: dict[Copy, int], free: list[int], clients: Floats) -> None:
    """Add machines that clients in nodes make up, one node after the other."""
    for row, by_node in zip(free, clients, strict=True):
        remaining, size = by_node.copy(), round(float(problem.vcpus[row] / problem.client[row]))
        while remaining.sum() > 0.5:
            vcpus, missing = [0.0] * len(remaining), float(size)
            for node in np.argsort(-remaining, kind="stable").tolist():
                taken = min(missing, float(remaining[node]))
                vcpus[node] = taken * float(problem.client[row])
                remaining[node] -= taken
                missing -= taken
            first = next(node for node, amount in enumerate(vcpus) if amount > 0)
            copy = (row, tuple(vcpus), first)
            copies[copy] = copies.get(copy, 0) + 1


# --- dynamic programming ------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class Grid:
    """Integer sizes of machines in the dimensions of a table: those of a node, then those of the whole host.

    unit      (dimensions,) amount of one step
    columns   dimension of the problem that each is
    of_node   number of dimensions of a node
    limits    (dimensions,) largest size
    """

    unit: Floats
    columns: list[int]
    of_node: int
    limits: Ints

    @property
    def states(self) -> int:
        """Number of states of a table."""
        return math.prod(int(limit) + 1 for limit in self.limits)

    @property
    def shared(self) -> int:
        """Number of states of the dimensions of the whole host."""
        return math.prod(int(limit) + 1 for limit in self.limits[self.of_node :])


class NodePricer:
    """Prices patterns of hosts with one node, with two, or with several if no machine is split.

    raises  ValueError for problems that it cannot price exactly
    """

    def __init__(self, problem: Consolidation) -> None:
        self.problem = problem
        self._even = [
            row
            for row, split in enumerate(problem.split)
            if split == "even" and problem.count[row] > 0 and problem.vcpus[row] > 0
        ]
        self._check()
        self.grid = self._make_grid()
        if self.grid.states > MAX_STATES or self.grid.shared > MAX_SHARED:
            raise ValueError("the table is too large")

    def _check(self) -> None:
        """Raise ValueError for nodes, splits and helpers that the tables cannot express."""
        problem = self.problem
        used = problem.count > 0
        if any(problem.split[row] == "any" for row in np.flatnonzero(used)):
            raise ValueError("machines can be split in any way")
        nodes = [len(shape.node) for shape in problem.host_shapes]
        if max(nodes) > 2 and (self._even or bool((problem.helpers > 0).any())):
            raise ValueError("machines or helpers are in more than two nodes")
        if bool(problem.has_whole_cores[used].any()) and len(set(problem.threads_per_core)) > 1:
            raise ValueError("threads of whole cores differ between types")
        if self._even and any(domain == "node" for _, _, domain in problem.host_rules):
            raise ValueError("rules limit nodes of machines that are split")
        if any(domain in ("host", "node") for domain, _ in problem.bundles):
            raise ValueError("machines are together")
        finite = np.array([np.isfinite(shape.node).all(axis=0) for shape in problem.host_shapes])
        if (finite.any(axis=0) != finite.all(axis=0)).any():
            raise ValueError("a resource is of nodes in one type and of the whole host in another")

    def _make_grid(self) -> Grid:
        problem = self.problem
        node = np.array([shape.node.max(axis=0) for shape in problem.host_shapes])
        host_capacity = np.array([shape.whole for shape in problem.host_shapes])
        host_capacity[:, 0] = np.inf  # threads of helpers are tried in each way over the nodes
        of_node = [column for column in range(problem.dimensions) if np.isfinite(node[:, column]).any()]
        of_host = [
            column for column in range(problem.dimensions) if np.isfinite(host_capacity[:, column]).any()
        ]
        units, limits = [], []
        for position, column in enumerate((*of_node, *of_host)):
            is_node = position < len(of_node)
            amounts = self._amounts(column, is_node=is_node)
            unit = common_measure(amounts)
            capacity = (node if is_node else host_capacity)[:, column]
            largest = float(capacity[np.isfinite(capacity)].max(initial=0.0))
            total = float(np.dot(problem.needs[:, column], problem.count))
            units.append(unit)
            limits.append(min(int(largest / unit + 1e-9), math.ceil(total / unit)))
        return Grid(
            unit=np.array(units),
            columns=[*of_node, *of_host],
            of_node=len(of_node),
            limits=np.array(limits, dtype=np.int64),
        )

    def _amounts(self, column: int, *, is_node: bool) -> Floats:
        """Return the amounts that machines take in a dimension, whole and split."""
        problem = self.problem
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

    @cached_property
    def _items(self) -> dict[tuple[int, int], Ints]:
        """Size of each shape in one node, and in each of two: by row and number of nodes."""
        problem, grid = self.problem, self.grid
        items: dict[tuple[int, int], Floats] = {}
        for host_type in range(len(problem.hosts)):
            for row in np.flatnonzero(problem.count > 0).tolist():
                for way in problem.placings[host_type][row]:
                    if way.span > 2 or (way.span == 2 and row not in self._even):
                        continue
                    size = self._size_of(way)
                    previous = items.get((row, way.span))
                    items[row, way.span] = size if previous is None else np.maximum(size, previous)
        return {key: np.rint(size).astype(np.int64) for key, size in items.items() if len(grid.limits)}

    def _size_of(self, way: Placing) -> Floats:
        node = max(range(len(way.node)), key=lambda index: way.node[index])
        amounts = [
            (way.node[node] if position < self.grid.of_node else way.whole)[column]
            for position, column in enumerate(self.grid.columns)
        ]
        return np.array(amounts) / self.grid.unit

    def tables(self, values: Floats, allowed: Bools) -> tuple[Floats, Floats]:
        """Return the value of a node, and that of machines that are split over two, by size."""
        shape = tuple(int(limit) + 1 for limit in self.grid.limits)
        node, split = np.zeros(shape), np.zeros(shape)
        for (row, span), size in self._items.items():
            if values[row] > SMALLEST and allowed[row] and size.any():
                _fill(node if span == 1 else split, size, float(values[row]))
        return node, split

    def price(self, host_type: int, values: Floats, tables: tuple[Floats, Floats]) -> Priced:
        """Return the most valuable pattern of a type."""
        best: tuple[float, list[tuple[int, tuple[int, ...]]]] = (0.0, [])
        has_split = any(span == 2 and values[row] > SMALLEST for (row, span) in self._items)
        for capacities in self._capacities(host_type):
            value, parts = self._join(capacities, tables, has_split)
            if value > best[0] + 1e-12:
                best = (value, parts)
        copies: dict[Copy, int] = {}
        for node, state in best[1]:
            table, span = (tables[1], 2) if node < 0 else (tables[0], 1)
            for row, times in self._trace(table, state, values, span):
                way = self._way(host_type, row, span, node)
                copy = copy_of(row, way)
                copies[copy] = copies.get(copy, 0) + times
        pattern = make_pattern(self.problem, host_type, copies)
        value = float(values @ pattern.units)
        return Priced(pattern=pattern if copies else None, value=value, bound=max(best[0], value))

    def _way(self, host_type: int, row: int, span: int, node: int) -> Placing:
        return next(
            way
            for way in self.problem.placings[host_type][row]
            if way.span == span
            and (span == 2 or way.is_in(node) or not any(map(any, way.node)))
            and (span == 2 or way.vcpus[node] > 0 or self.problem.vcpus[row] == 0)
        )

    def _capacities(self, host_type: int) -> Iterator[tuple[list[Ints], Ints]]:
        """Yield sizes of the nodes, and of the whole host, for each way to place helpers."""
        problem, grid = self.problem, self.grid
        shape = problem.host_shapes[host_type]
        helpers = int(problem.helpers[host_type])
        nodes = len(shape.node)
        host_steps = np.array(
            [
                self._steps(shape.whole[column], position)
                for position, column in enumerate(grid.columns)
                if position >= grid.of_node
            ],
            dtype=np.int64,
        )
        for first in range(helpers + 1) if nodes == 2 else [helpers]:
            threads = shape.node[:, 0].copy()
            threads[0] -= first
            if nodes == 2:
                threads[1] -= helpers - first
            if (threads < 0).any():
                continue
            sizes = [
                np.array(
                    [
                        self._steps(threads[node] if column == 0 else shape.node[node, column], position)
                        for position, column in enumerate(grid.columns[: grid.of_node])
                    ],
                    dtype=np.int64,
                )
                for node in range(nodes)
            ]
            yield sizes, host_steps

    def _steps(self, amount: float, position: int) -> int:
        limit = int(self.grid.limits[position])
        if not np.isfinite(amount):
            return limit
        return min(limit, int(amount / self.grid.unit[position] + 1e-9))

    def _join(
        self, capacities: tuple[list[Ints], Ints], tables: tuple[Floats, Floats], has_split: bool
    ) -> tuple[float, list[tuple[int, tuple[int, ...]]]]:
        """Return the largest value of a host, and the state of each node, -1 for split machines."""
        sizes, host_steps = capacities
        if len(sizes) == 2 and has_split:
            return self._join_split(sizes, host_steps, tables)
        inner = tuple(slice(0, int(limit) + 1) for limit in host_steps)
        parts = [tables[0][tuple(int(size) for size in node)][inner] for node in sizes]
        if not len(host_steps):
            value = float(sum(float(np.asarray(value)) for value in parts))
            return value, [(node, tuple(map(int, size))) for node, size in enumerate(sizes)]
        total, choices = parts[0], []
        for node_table in parts[1:]:
            total, choice = _convolve(total, node_table)
            choices.append(choice)
        state = tuple(int(limit) for limit in host_steps)
        value = float(total[state])
        result = []
        for node in range(len(parts) - 1, 0, -1):
            used = tuple(int(index) for index in choices[node - 1][state])
            result.append((node, (*map(int, sizes[node]), *used)))
            state = tuple(before - right for before, right in zip(state, used, strict=True))
        result.append((0, (*map(int, sizes[0]), *state)))
        return value, result

    def _join_split(
        self, sizes: list[Ints], host_steps: Ints, tables: tuple[Floats, Floats]
    ) -> tuple[float, list[tuple[int, tuple[int, ...]]]]:
        """Return the largest value of a host with two nodes and machines that are split over them."""
        common = np.minimum(sizes[0], sizes[1])
        outer = tuple(slice(0, int(limit) + 1) for limit in common)
        inner = tuple(slice(0, int(limit) + 1) for limit in host_steps)
        remaining = [
            tables[0][
                tuple(
                    slice(int(top), int(top) - int(limit) - 1 if top > limit else None, -1)
                    for top, limit in zip(size, common, strict=True)
                )
                + inner
            ]
            for size in sizes
        ]
        split = tables[1][outer + inner]
        lead = len(common)
        best = -1.0
        states: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]] = ((), (), ())
        steps = [range(int(limit) + 1) for limit in host_steps]
        # a node takes no more of the host than it gains by; of nodes that are alike, the first takes less
        gainful = {state for state in product(*steps) if _is_new(remaining[0], state, lead)}
        is_same = np.array_equal(sizes[0], sizes[1])
        for used in product(*steps):
            # split machines use `used` of the host; the nodes share the rest
            unused = tuple(int(limit) - amount for limit, amount in zip(host_steps, used, strict=True))
            gain = split[_last(used)]
            if used and not _is_new(split, used, lead):
                continue
            for first in product(*(range(limit + 1) for limit in unused)):
                second = tuple(limit - amount for limit, amount in zip(unused, first, strict=True))
                if first not in gainful or (is_same and first > second):
                    continue
                total = gain + remaining[0][_last(first)] + remaining[1][_last(second)]
                index = int(total.argmax())
                value = float(total.reshape(-1)[index])
                if value > best:
                    position = np.unravel_index(index, total.shape) if lead else ()
                    best, states = value, (tuple(map(int, position)), used, first)
        outer_state, used, first = states
        second = tuple(
            int(limit) - amount - other for limit, amount, other in zip(host_steps, used, first, strict=True)
        )
        nodes = [
            tuple(int(top) - amount for top, amount in zip(size, outer_state, strict=True)) for size in sizes
        ]
        return best, [
            (-1, (*outer_state, *used)),
            (0, (*nodes[0], *first)),
            (1, (*nodes[1], *second)),
        ]

    def _trace(
        self, table: Floats, state: tuple[int, ...], values: Floats, span: int
    ) -> Iterator[tuple[int, int]]:
        """Yield the shapes that make the value of a state, with their numbers."""
        items = [
            (row, size, float(values[row]))
            for (row, nodes), size in self._items.items()
            if nodes == span and values[row] > SMALLEST
        ]
        position = np.array(state, dtype=np.int64)
        while True:
            value = float(table[tuple(position)])
            if value <= 1e-12:
                return
            for row, size, gain in items:
                after = position - size
                if (
                    (after >= 0).all()
                    and size.any()
                    and (float(table[tuple(after)]) + gain >= value - 1e-9 * max(1.0, abs(value)))
                ):
                    position = after
                    yield row, 1
                    break
            else:
                raise AssertionError("no machine explains the value of a state")


def _last(state: tuple[int, ...]) -> Any:
    """Return the index of one state of the last axes, and of all states of the others."""
    return (..., *state)


def _is_new(split: Floats, used: tuple[int, ...], lead: int) -> bool:
    """Return whether split machines gain anything by the last step of the host's resources that they use."""
    current = split[_last(used)]
    for axis, amount in enumerate(used):
        if amount > 0:
            before = (*used[:axis], amount - 1, *used[axis + 1 :])
            if np.array_equal(current, split[_last(before)]):
                return False
    return lead >= 0


def _fill(table: Floats, size: Ints, value: float) -> None:
    """Update a table of an unbounded knapsack by a machine, in place."""
    if any(amount >= length for amount, length in zip(size.tolist(), table.shape, strict=True)):
        return
    axis = int(np.argmax(size > 0))
    moved = np.moveaxis(table, axis, 0)
    others = [amount for index, amount in enumerate(size.tolist()) if index != axis]
    target = tuple(slice(amount, None) for amount in others)
    source = tuple(slice(0, length - amount) for length, amount in zip(moved.shape[1:], others, strict=True))
    step = int(size[axis])
    for index in range(step, moved.shape[0]):
        view = moved[index][target]
        np.maximum(view, moved[index - step][source] + value, out=view)


def _convolve(first: Floats, second: Floats) -> tuple[Floats, Ints]:
    """Return the largest sums of two tables over a shared resource, and the share of the second in each."""
    result = np.full(first.shape, -np.inf)
    choice = np.zeros((*first.shape, first.ndim), dtype=np.int64)
    for used in product(*map(range, second.shape)):
        target = tuple(slice(amount, None) for amount in used)
        source = tuple(slice(0, length - amount) for length, amount in zip(first.shape, used, strict=True))
        sums = first[source] + second[used]
        view = result[target]
        better = sums > view
        view[better] = sums[better]
        choice[target][better] = used
    return result, choice


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
