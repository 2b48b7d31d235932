"""The most valuable content of a host as an integer program, for any nodes, resources and splits."""

from __future__ import annotations

from itertools import product

import numpy as np

from planner.arrays import Bools, Floats, Ints
from planner.backends import solve
from planner.backends.program_builder import Expression, ProgramBuilder
from planner.options import Options
from planner_models.consolidation.designs.pattern import SMALLEST, Priced, make_pattern
from planner_models.consolidation.problem.packing import Copy, copy_of
from planner_models.consolidation.problem.problem import Consolidation


class PatternProgram:
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
        self._add_limits(nodes)

    def _add_limits(self, nodes: int) -> None:
        """Add the capacities of the nodes and of the host, and the machines that are together."""
        for column, node in product(range(self.problem.dimensions), (*range(nodes), None)):
            self._limit(column, node)
        for number, (domain, shapes) in enumerate(self.problem.bundles):
            if domain in ("host", "node"):
                self._bundle(number, shapes, nodes if domain == "node" else 0)
        conflicts = np.triu(self.problem.host_conflicts[np.ix_(self.selected, self.selected)], 1)
        for first, second in np.argwhere(conflicts).tolist():
            self._separate(int(self.selected[first]), int(self.selected[second]))

    def _separate(self, first: int, second: int) -> None:
        """Put machines of only one of two shapes on the host."""
        is_second = self.m.variables(f"apart {first} {second}", 1, upper=1.0, integer=True)
        for shape, sign, upper in ((first, 1.0, 1.0), (second, -1.0, 0.0)):
            count = float(self.problem.count[shape])
            total = self._total(shape) + is_second[0] * (sign * count)
            self.m.constrain(f"apart {first} {second} {shape}", total, upper=upper * count)

    def _total(self, shape: int) -> Expression:
        """Return the machines of a shape on the host."""
        total: Expression = (self.z * np.array([float(row == shape) for row, _ in self.ways])).sum()
        return total + self.count[self.free.index(shape)] if shape in self.free else total

    def _bundle(self, number: int, shapes: Ints, nodes: int) -> None:
        """Put all machines of some shapes on the host, or none.

        nodes  in one of which they are; 0 for machines that may be in several
        """
        is_here = self.m.variables(f"bundle {number}", max(nodes, 1), upper=1.0, integer=True)
        if nodes:
            self.m.constrain(f"one node of bundle {number}", is_here.sum(), upper=1.0)
        for shape in sorted({int(shape) for shape in shapes}):
            count = float(self.problem.count[shape])
            for index in range(max(nodes, 1)):
                inside = [
                    float(row == shape and (not nodes or (way.span == 1 and way.is_in(index))))
                    for row, way in self.ways
                ]
                total = (self.z * np.array(inside)).sum()
                if not nodes and shape in self.free:
                    total = total + self.count[self.free.index(shape)]
                self.m.constrain(
                    f"bundle {number} {shape} {index}", total - is_here[index] * count, equal=0.0
                )
            if nodes:
                self._exclude_split(number, shape)

    def _exclude_split(self, number: int, shape: int) -> None:
        """Put no machine of a shape in several nodes."""
        split = np.array([float(row == shape and way.span > 1) for row, way in self.ways])
        total = (self.z * split).sum()
        if shape in self.free:
            total = total + self.count[self.free.index(shape)]
        self.m.constrain(f"whole {number} {shape}", total, upper=0.0)

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
    program = PatternProgram(problem, host_type, values, allowed)
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
