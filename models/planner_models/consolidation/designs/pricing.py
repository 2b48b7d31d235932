"""Pricing of patterns: the most valuable content of a host, by dynamic programming.

The value f(threads, memory, host resources) of one node is an unbounded knapsack, computed once for all types
of hosts. Nodes are joined over what the whole host has; machines that are split evenly over two nodes have a
table of their own, and threads of helpers are tried in each way over the two nodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Final

import numpy as np

from planner.arrays import Bools, Floats, Ints
from planner_models.consolidation.designs.grid import Grid, Rounding, TooLargeError, make_grid
from planner_models.consolidation.designs.knapsack import fill_table, join_nodes, trace_items
from planner_models.consolidation.designs.pattern import SMALLEST, Pattern, Priced, make_pattern
from planner_models.consolidation.problem.packing import Copy, copy_of
from planner_models.consolidation.problem.problem import Consolidation
from planner_models.consolidation.problem.shapes import Placing, make_placing

SAME: Final = 1e-12
"""Values that differ by less are equal."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Items:
    """Machines that fill a table.

    rows     (I,) their shapes
    sizes    (I, dimensions) steps in each dimension
    offsets  (I,) states of the table between with and without one
    """

    rows: Ints
    sizes: Ints
    offsets: Ints

    def select(self, is_selected: Bools) -> Items:
        """Return some of them."""
        return Items(
            rows=self.rows[is_selected], sizes=self.sizes[is_selected], offsets=self.offsets[is_selected]
        )


Part = tuple[int, int]
"""Node, -1 for machines that are split over both, and the state of its table."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Tables:
    """Largest values by state, (states of a node, states of the host), and what fills them.

    node, split  of machines in one node, and of those that are split over two; None for none of these
    values       (M,) of each shape
    """

    node: Floats
    split: Floats | None
    items: tuple[Items, Items]
    values: Floats


class NodePricer:
    """Prices patterns of hosts with one node, with two, or with several if no machine is split.

    raises  ValueError for problems that it cannot price exactly
    """

    def __init__(self, problem: Consolidation, rounding: Rounding = "nearest") -> None:
        """Make the grid of a problem; raises TooLargeError where exact sizes need a large one."""
        self.problem = problem
        self._even = [
            row
            for row, split in enumerate(problem.split)
            if split == "even" and problem.count[row] > 0 and problem.vcpus[row] > 0
        ]
        self._require_nodes()
        self._require_rules()
        self.grid: Grid = make_grid(problem, rounding)

    def _require_nodes(self) -> None:
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
        finite = np.array([np.isfinite(shape.node).all(axis=0) for shape in problem.host_shapes])
        if (finite.any(axis=0) != finite.all(axis=0)).any():
            raise ValueError("a resource is of nodes in one type and of the whole host in another")

    def _require_rules(self) -> None:
        """Raise ValueError for rules that the tables cannot express."""
        problem = self.problem
        if self._even and any(domain == "node" for _, _, domain in problem.host_rules):
            raise ValueError("rules limit nodes of machines that are split")
        if any(domain in ("host", "node") for domain, _ in problem.bundles):
            raise ValueError("machines are together")

    @cached_property
    def _items(self) -> tuple[Items, Items]:
        """Machines in one node, and those that are split over two."""
        return self._make_items(1), self._make_items(2)

    def _make_items(self, span: int) -> Items:
        grid, sizes = self.grid, self._sizes(span)
        if span == 1:
            self._free = np.array([row for row, size in sizes.items() if not size.any()], dtype=np.int64)
        rows = np.array([row for row, size in sizes.items() if size.any()], dtype=np.int64)
        table = np.array([sizes[row] for row in rows.tolist()], dtype=np.int64)
        table = table.reshape(len(rows), len(grid.limits))
        return Items(rows=rows, sizes=table, offsets=table @ grid.strides)

    def _sizes(self, span: int) -> dict[int, Ints]:
        """Return the largest steps that a machine of each shape takes, in some number of nodes."""
        sizes: dict[int, Ints] = {}
        rows = self._even if span == 2 else np.flatnonzero(self.problem.count > 0).tolist()
        for ways, row in product(self.problem.placings, rows):
            for way in ways[row]:
                if way.span == span:
                    size = self.grid.size_of(way)
                    sizes[row] = np.maximum(size, sizes.get(row, size))
        return sizes

    def tables(self, values: Floats, allowed: Bools) -> Tables:
        """Return the values of a node, and of machines that are split over two, by size."""
        useful = (values > SMALLEST) & allowed
        single, split = (items.select(useful[items.rows]) for items in self._items)
        return Tables(
            node=self._fill(single, values),
            split=self._fill(split, values) if len(split.rows) else None,
            items=(single, split),
            values=values,
        )

    def _fill(self, items: Items, values: Floats) -> Floats:
        table = np.zeros(self.grid.states)
        fill_table(table, np.array(self.grid.shape, dtype=np.int64), items.sizes, values[items.rows])
        return table.reshape(-1, self.grid.shared)

    def price(self, host_type: int, tables: Tables) -> Priced:
        """Return the most valuable pattern of a type."""
        best: tuple[float, list[Part]] = (0.0, [])
        for sizes, host_steps in self._capacities(host_type):
            join = self._join_two if len(sizes) == 2 else self._join_chain
            value, parts = join(sizes, host_steps, tables)
            if value > best[0] + SAME:
                best = (value, parts)
        copies = self._copies(host_type, tables, best[1])
        pattern = make_pattern(self.problem, host_type, copies)
        value = float(tables.values @ pattern.units)
        free = float(tables.values[self._free] @ self.problem.count[self._free])  # these take no step
        return Priced(pattern=pattern if copies else None, value=value, bound=max(best[0] + free, value))

    def _copies(self, host_type: int, tables: Tables, parts: list[Part]) -> dict[Copy, int]:
        """Return the machines of the states of some parts."""
        copies: dict[Copy, int] = {}
        for node, state in parts:
            span = 2 if node < 0 else 1
            for row, times in self._trace(tables, state, span):
                copy = copy_of(row, self._way(host_type, row, span, node))
                copies[copy] = copies.get(copy, 0) + times
        return copies

    def price_more(self, host_type: int, tables: Tables, number: int) -> Iterator[Pattern]:
        """Yield the best patterns with a machine of some shape in the first node, of different shapes.

        number  of shapes, those of the most valuable patterns
        """
        sizes, host_steps = next(self._capacities(host_type), ([], np.zeros(0, dtype=np.int64)))
        items = tables.items[0]
        if not 1 <= len(sizes) <= 2 or not len(items.rows):
            return
        states, digits = self._states(host_steps, self.grid.strides[self.grid.of_node :])
        bases = [int(size @ self._node_strides) for size in sizes]
        options = []
        for item, row in enumerate(items.rows.tolist()):
            node, host = np.split(items.sizes[item], [self.grid.of_node])
            rest = states[(digits >= host).all(axis=1)]
            if (node > sizes[0]).any() or not len(rest):
                continue
            used = rest if len(sizes) == 2 else states[-1:]
            first = int(bases[0] - node @ self._node_strides)
            taken = int(host @ self.grid.strides[self.grid.of_node :])
            value = tables.node[first, used - taken]
            if len(sizes) == 2:
                value = value + tables.node[bases[1], states[-1] - used]
            best = int(value.argmax())
            parts = [(0, first * self.grid.shared + int(used[best]) - taken)]
            if len(sizes) == 2:
                parts.append((1, bases[1] * self.grid.shared + int(states[-1] - used[best])))
            options.append((float(value[best] + tables.values[row]), row, parts))
        for _, row, parts in sorted(options, key=lambda option: -option[0])[:number]:
            copies = self._copies(host_type, tables, parts)
            copy = copy_of(row, self._way(host_type, row, 1, 0))
            copies[copy] = copies.get(copy, 0) + 1
            yield make_pattern(self.problem, host_type, copies)

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
        host_steps = np.array(
            [
                grid.steps(shape.whole[column], position)
                for position, column in enumerate(grid.columns)
                if position >= grid.of_node
            ],
            dtype=np.int64,
        )
        is_double = len(shape.node) == 2
        for first in range(helpers + 1) if is_double else [helpers]:
            threads = shape.node[:, 0].copy()
            threads[0] -= first
            if is_double:
                threads[1] -= helpers - first
            if (threads >= 0).all():
                yield [self._node_steps(host_type, node, threads) for node in range(len(threads))], host_steps

    def _node_steps(self, host_type: int, node: int, threads: Floats) -> Ints:
        """Return the size of a node with some threads."""
        amounts = self.problem.host_shapes[host_type].node[node]
        return np.array(
            [
                self.grid.steps(threads[node] if column == 0 else amounts[column], position)
                for position, column in enumerate(self.grid.columns[: self.grid.of_node])
            ],
            dtype=np.int64,
        )

    @cached_property
    def _node_strides(self) -> Ints:
        """(dimensions of a node,) rows of a table between neighbours."""
        return np.asarray(self.grid.strides[: self.grid.of_node] // self.grid.shared)

    def _states(self, limit: Ints, strides: Ints) -> tuple[Ints, Ints]:
        """Return the states up to a limit in the order of C, and their digits."""
        digits = np.array(list(product(*(range(int(top) + 1) for top in limit))), dtype=np.int64)
        digits = digits.reshape(int(np.prod(limit + 1)), len(limit))
        return digits @ strides, digits

    def _join_two(self, sizes: list[Ints], host_steps: Ints, tables: Tables) -> tuple[float, list[Part]]:
        """Return the largest value of a host with two nodes, and the state of each part."""
        shared = self._states(host_steps, self.grid.strides[self.grid.of_node :])
        last = int(shared[0][-1])
        bases = np.array([int(size @ self._node_strides) for size in sizes], dtype=np.int64)
        node, split = tables.node, tables.split
        outer = np.zeros(1, dtype=np.int64)
        if split is None:
            split = np.zeros((1, node.shape[1]))
        else:
            outer, _ = self._states(np.minimum(sizes[0], sizes[1]), self._node_strides)
        most = split[outer, last] + node[bases[0] - outer, last] + node[bases[1] - outer, last]
        order = np.argsort(-most, kind="stable")
        value, taken, used, first = join_nodes((node, split), outer, bases, order, (*shared, host_steps))
        width = self.grid.shared
        parts = [
            (0, int((bases[0] - taken) * width + first)),
            (1, int((bases[1] - taken) * width + last - used - first)),
        ]
        if tables.split is not None:
            parts.append((-1, int(taken * width + used)))
        return value, parts

    def _join_chain(self, sizes: list[Ints], host_steps: Ints, tables: Tables) -> tuple[float, list[Part]]:
        """Return the largest value of a host with one node, or several without split machines."""
        inner = tuple(slice(0, int(limit) + 1) for limit in host_steps)
        lengths = self.grid.shape[self.grid.of_node :]
        bases = [int(size @ self._node_strides) for size in sizes]
        parts = [tables.node[base].reshape(lengths)[inner] for base in bases]
        total, choices = parts[0], []
        for node_table in parts[1:]:
            total, choice = _convolve(total, node_table)
            choices.append(choice)
        state = tuple(int(limit) for limit in host_steps)
        value = float(total[state])
        strides = self.grid.strides[self.grid.of_node :]
        result = []
        for node in range(len(parts) - 1, 0, -1):
            used = choices[node - 1][state]
            result.append((node, int(bases[node] * self.grid.shared + used @ strides)))
            state = tuple(int(before - right) for before, right in zip(state, used, strict=True))
        result.append((0, int(bases[0] * self.grid.shared + np.array(state, dtype=np.int64) @ strides)))
        return value, result

    def _trace(self, tables: Tables, state: int, span: int) -> Iterator[tuple[int, int]]:
        """Yield the shapes that make the value of a state, with their numbers."""
        table, items = (tables.node if span == 1 else tables.split), tables.items[span - 1]
        assert table is not None
        digits = np.array(np.unravel_index(state, self.grid.shape), dtype=np.int64)
        steps = np.concatenate([items.sizes, digits[None]])
        number = trace_items(table.reshape(-1), state, items.offsets, steps, tables.values[items.rows])
        assert (number >= 0).all(), "no machine explains the value of a state"
        yield from ((int(row), int(times)) for row, times in zip(items.rows, number, strict=True) if times)


class RoundedPricer:
    """Prices patterns by two coarse tables, where amounts have no common measure.

    Sizes that are rounded down bound the value, and their pattern is the best one where it fits; else that of
    sizes that are rounded up is taken.
    """

    def __init__(self, problem: Consolidation) -> None:
        """Make both grids; raises ValueError for problems that tables cannot express."""
        self.problem = problem
        self._below, self._above = NodePricer(problem, "down"), NodePricer(problem, "up")

    def tables(self, values: Floats, allowed: Bools) -> tuple[Tables, Tables]:
        """Return the tables of sizes rounded down and up."""
        return self._below.tables(values, allowed), self._above.tables(values, allowed)

    def price(self, host_type: int, tables: tuple[Tables, Tables]) -> Priced:
        """Return a pattern of a type that fits, and a bound on the value of all."""
        below = self._below.price(host_type, tables[0])
        if below.pattern is None or fits(self.problem, below.pattern):
            return below
        return replace(self._above.price(host_type, tables[1]), bound=below.bound)


def fits(problem: Consolidation, pattern: Pattern) -> bool:
    """Return whether an empty host of its type holds a pattern with the threads of helpers."""
    shape = problem.host_shapes[pattern.host_type]
    free_node, free_whole = shape.node.tolist(), shape.whole.tolist()
    for copy, times in pattern.copies:
        for _ in range(times):
            placing = make_placing(problem, pattern.host_type, *copy)
            if not placing.fits(free_node, free_whole):
                return False
            placing.take(free_node, free_whole)
    return True


def make_pricer(problem: Consolidation) -> NodePricer | RoundedPricer | None:
    """Return the pricer by tables; None for problems that these cannot express."""
    try:
        return NodePricer(problem)
    except TooLargeError:
        return RoundedPricer(problem)
    except ValueError:
        return None


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
