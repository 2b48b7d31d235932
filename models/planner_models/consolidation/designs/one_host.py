"""Machines on one host, exactly: vCPUs and nodes for the largest lowest throughput, or the largest sum.

Machines of a shape are alike, so the program counts how many of them are in each possible way in the nodes.
The lowest throughput is maximized first, then the number of machines at it is minimized, then at the next
one, and so on (lexicographic max-min); the sum breaks ties.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from planner.arrays import Floats, Ints
from planner.backends import solve
from planner.backends.program_builder import Expression, ProgramBuilder, Variables
from planner.contract.design import Decision
from planner.contract.proof import Status
from planner.options import Options
from planner.search.deadline import Deadline
from planner.search.judged import feasible, judged
from planner_models.consolidation.designs.decision import decide, refuse_shortage
from planner_models.consolidation.plan.metrics import measure
from planner_models.consolidation.plan.plan import ConsolidationPlan
from planner_models.consolidation.problem.packing import (
    HostGroup,
    Packer,
    copy_of,
    decreasing,
    empty_group,
    pack_all,
)
from planner_models.consolidation.problem.problem import Consolidation
from planner_models.consolidation.problem.shapes import Amounts, Placing, make_placing

MAX_WAYS: Final = 6_000
"""Ways of a shape in the nodes up to which all are listed."""
MAX_LEVELS: Final = 60
SOLVER_S: Final = 20.0


@dataclass(frozen=True, kw_only=True, eq=False)
class Ways:
    """Ways of machines in the nodes of one host.

    shape     (W,) row of each way's shape
    placings  (W) amounts
    weighted, throughput  (W,) throughput of a machine, over its weight and as it is
    is_complete  whether all ways are listed
    """

    shape: Ints
    placings: list[Placing]
    weighted: Floats
    throughput: Floats
    is_complete: bool


def list_ways(problem: Consolidation, host_type: int, shapes: Sequence[int]) -> Ways:
    """Return the ways of shapes with any of their numbers of vCPUs in an empty host of a type."""
    host = problem.host_shapes[host_type]
    free = host.node.tolist(), host.whole.tolist()
    rows: list[int] = []
    placings: list[Placing] = []
    is_complete = True
    for shape in shapes:
        for number, vcpus in enumerate(_vcpus_of_nodes(problem, shape, len(host.node))):
            if number >= MAX_WAYS:
                is_complete = False
                break
            first = next((index for index, amount in enumerate(vcpus) if amount > 0), 0)
            placing = make_placing(problem, host_type, shape, vcpus, first)
            if placing.fits(*free):
                rows.append(shape)
                placings.append(placing)
    shape_of = np.array(rows, dtype=np.int64)
    span = np.array([placing.span for placing in placings], dtype=float)
    total = np.array([sum(placing.vcpus) for placing in placings], dtype=float)
    loss = np.maximum(1 - problem.span_loss[host_type] * (span - 1), 0.0)
    throughput = np.power(total, problem.scaling[host_type]) * loss
    weight = problem.weight[shape_of] if len(rows) else np.ones(0)
    return Ways(
        shape=shape_of,
        placings=placings,
        weighted=throughput / weight,
        throughput=throughput,
        is_complete=is_complete,
    )


def _vcpus_of_nodes(problem: Consolidation, shape: int, nodes: int) -> Iterator[Amounts]:
    """Yield vCPUs of a machine in each node, the largest numbers of vCPUs and fewest nodes first."""
    client, smallest = float(problem.client[shape]), float(problem.vcpus[shape])
    largest = float(problem.vcpus_max[shape])
    sizes = [smallest]
    while sizes[-1] + client <= largest + 1e-9:
        sizes.append(sizes[-1] + client)
    split = problem.split[shape]
    spans = range(1, nodes + 1) if split != "never" else range(1, 2)
    for total, span in itertools.product(reversed(sizes), spans):
        shares = list(_shares(total, round(total / client), client, span, split))
        for selected, amounts in itertools.product(itertools.combinations(range(nodes), span), shares):
            vcpus = dict(zip(selected, amounts, strict=True))
            yield tuple(vcpus.get(node, 0.0) for node in range(nodes))


def _shares(total: float, count: int, client: float, span: int, split: str) -> Iterator[Amounts]:
    """Yield vCPUs in each of some nodes: all in one, equal ones, or any number of clients."""
    if span == 1:
        yield (total,)
    elif split == "even":
        if count % span == 0:
            yield (total / span,) * span
    elif count >= span:
        for cuts in itertools.combinations(range(1, count), span - 1):
            ends = (0, *cuts, count)
            yield tuple((after - before) * client for before, after in itertools.pairwise(ends))


class HostProgram:
    """Integer program of the machines on one host: the number in each way."""

    def __init__(self, problem: Consolidation, host_type: int, count: Ints, options: Options) -> None:
        """Begin with machines of each shape, (M,).

        options  of each solve
        """
        self.problem, self.host_type = problem, host_type
        self.shapes = np.flatnonzero(count > 0)
        self.count = count[self.shapes].astype(float)
        self.ways = list_ways(problem, host_type, self.shapes.tolist())
        self._options = options
        self._limits: list[tuple[Floats, float]] = []
        self.is_proven, self.backend = True, ""

    def _build(self, sense: str) -> tuple[ProgramBuilder, Variables, Variables]:
        ways, host = self.ways, self.problem.host_shapes[self.host_type]
        m = ProgramBuilder(sense="minimize" if sense == "min" else "maximize", name="machines on one host")
        position = {int(shape): row for row, shape in enumerate(self.shapes)}
        group = np.array([position[int(shape)] for shape in ways.shape], dtype=np.int64)
        z = m.variables("machines", len(ways.placings), integer=True, cost=self._cost)
        refused = m.variables(
            "refused", len(self.shapes), upper=self.count, integer=True, cost=self._refused_cost
        )
        m.constrain("placed", z.sum_by(group, len(self.shapes)) + refused, equal=self.count)
        for column in range(self.problem.dimensions):
            for node in (*range(len(host.node)), None):
                limit = host.whole[column] if node is None else host.node[node, column]
                amount = np.array(
                    [way.whole[column] if node is None else way.node[node][column] for way in ways.placings]
                )
                if np.isfinite(limit) and amount.any():
                    m.constrain(f"capacity {column} {node}", (z * amount).sum(), upper=float(limit))
        self._order_nodes(m, z)
        self._separate(m, z.sum_by(group, len(self.shapes)))
        for row, (coefficients, upper) in enumerate(self._limits):
            total: Expression = (z * coefficients[: len(ways.placings)]).sum()
            total = total + (refused * coefficients[len(ways.placings) :]).sum()
            m.constrain(f"level {row}", total, upper=upper)
        return m, z, refused

    def _separate(self, m: ProgramBuilder, placed: Expression) -> None:
        """Place machines of only one of two shapes that must not be on the same host."""
        conflicts = self.problem.host_conflicts[np.ix_(self.shapes, self.shapes)]
        for first, second in np.argwhere(np.triu(conflicts, 1)).tolist():
            is_second = m.variables(f"apart {first} {second}", 1, upper=1.0, integer=True)
            limits = (self.count[first], self.count[second])
            m.constrain(
                f"first of {first} {second}", placed[[first]] + is_second * limits[0], upper=limits[0]
            )
            m.constrain(f"second of {first} {second}", placed[[second]] - is_second * limits[1], upper=0.0)

    def _order_nodes(self, m: ProgramBuilder, z: Variables) -> None:
        """Order nodes that are alike by the vCPUs in them, so that each solution occurs once."""
        host = self.problem.host_shapes[self.host_type]
        vcpus = np.array([way.vcpus for way in self.ways.placings]).reshape(-1, len(host.node))
        for node in range(1, len(host.node)):
            if len(vcpus) and np.array_equal(host.node[node], host.node[node - 1]):
                difference = vcpus[:, node - 1] - vcpus[:, node]
                m.constrain(f"order {node}", (z * difference).sum(), lower=0.0)

    def _solve(self, coefficients: Floats, sense: str = "min") -> tuple[float, Floats] | None:
        """Return the best sum of coefficients of ways and of refused machines, and the solution."""
        ways = len(self.ways.placings)
        self._cost, self._refused_cost = coefficients[:ways], coefficients[ways:]
        m, z, refused = self._build(sense)
        solution = solve(m.build(), self._options)
        self.backend = solution.backend
        if solution.x is None:
            self.is_proven = False
            return None
        self.is_proven &= solution.status is Status.OPTIMAL
        x = np.rint(np.concatenate([z.values(solution.x), refused.values(solution.x)]))
        return float(coefficients @ x), x

    def _of_ways(self, values: Floats) -> Floats:
        return np.concatenate([values, np.zeros(len(self.shapes))])

    def fewest_refused(self) -> Floats | None:
        """Limit refused machines to the least that they count; return a solution, None without one."""
        ways = len(self.ways.placings)
        price = np.concatenate([np.zeros(ways), self.problem.own_price[self.shapes] + 1e-6])
        solved = self._solve(price)
        if solved is not None:
            self._limits.append((price, solved[0] * (1 + 1e-9) + 1e-9))
        return None if solved is None else solved[1]

    def solve_max_sum(self) -> Floats | None:
        """Return the numbers of machines in each way with the largest sum of throughputs."""
        x = self.fewest_refused()
        solved = self._solve(self._of_ways(self.ways.throughput), "max")
        return x if solved is None else solved[1]

    def solve_max_min(self, deadline: Deadline) -> Floats | None:
        """Return the numbers of machines in each way with the lexicographically largest throughputs."""
        x = self.fewest_refused()
        if x is None:
            return None
        values = self.ways.weighted
        levels = np.unique(np.round(values, 12))
        for level in levels[:MAX_LEVELS].tolist():
            is_low = values <= level * (1 + 1e-9)
            solved = None if deadline.is_over else self._solve(self._of_ways(is_low.astype(float)))
            if solved is None:
                self.is_proven = False
                return x
            x = solved[1]
            self._limits.append((self._of_ways(is_low.astype(float)), solved[0] + 0.5))
            if solved[0] > 0.5 and solved[0] >= x[: len(values)].sum() - 0.5:
                break
        solved = self._solve(self._of_ways(self.ways.throughput), "max")
        return x if solved is None else solved[1]

    def fill(self, group: HostGroup, x: Floats) -> dict[int, int]:
        """Put machines into the hosts of an empty group; return the refused ones by shape."""
        for row in np.flatnonzero(x[: len(self.ways.placings)] > 0.5).tolist():
            way = self.ways.placings[row]
            group.add(copy_of(int(self.ways.shape[row]), way), way, int(x[row]))
        refused = x[len(self.ways.placings) :]
        return {
            int(shape): int(number)
            for shape, number in zip(self.shapes, refused, strict=True)
            if number > 0.5
        }


def _is_single_host(problem: Consolidation) -> bool:
    return sum(min(supply.count, 2.0) for supply in problem.supplies) == 1


def _plan(problem: Consolidation, goal: str, options: Options) -> Decision[ConsolidationPlan]:
    """Return hosts by best fit, each solved exactly; a single host is solved with all machines."""
    solver = _HostSolver(problem, goal, options)
    is_single = _is_single_host(problem) and not problem.rules_of_areas
    groups, refused = _begin_single(problem) if is_single else _begin_fleet(problem)
    result = []
    for group, count in groups:
        if not is_single and not _gains(problem, group):
            result.append(group)
            continue
        filled, more = solver.solve(group, count, may_refuse=is_single)
        refused = {shape: refused.get(shape, 0) + more.get(shape, 0) for shape in {*refused, *more}}
        result.append(filled)
    decision = decide(problem, result, refused, may_grow=False)
    assert decision.plan is not None
    value = measure(problem, decision.plan, None)[goal]
    if value is None or not is_single or refused:
        return decision
    if solver.is_proven:
        proof = judged("max", value, value, metric=goal, backend=solver.backend)
    else:
        proof = feasible(value, metric=goal, backend=solver.backend)
    return replace(decision, proof=proof)


Counted = list[tuple[HostGroup, Ints]]
"""Groups of hosts, and the machines of each shape on each host."""


def _begin_single(problem: Consolidation) -> tuple[Counted, dict[int, int]]:
    """Return the only host with all machines that may be there, and the refused ones."""
    row = next(row for row, supply in enumerate(problem.supplies) if supply.count == 1)
    allowed = np.where(problem.is_supplied[:, row], problem.count, 0)
    refused = {int(shape): int(problem.count[shape]) for shape in np.flatnonzero(problem.count > allowed)}
    return [(empty_group(problem, row, 1), allowed)], refused


def _begin_fleet(problem: Consolidation) -> tuple[Counted, dict[int, int]]:
    """Return hosts with machines by best fit, and the refused ones."""
    packer = pack_all(problem, Packer(problem), decreasing(problem))
    groups = [(group, count_of(problem, group)) for group in packer.groups if group.content]
    return groups, dict(packer.refused)


class _HostSolver:
    """Solves hosts one by one.

    is_proven  whether all that were solved are optimal
    backend    of the last one
    """

    def __init__(self, problem: Consolidation, goal: str, options: Options) -> None:
        self.problem, self.goal = problem, goal
        self.is_proven, self.backend = True, ""
        self._deadline = Deadline.of(options)
        limit = min(max(self._deadline.left_s, 0.1), SOLVER_S)
        self._options = replace(options, gap=0.0, time_limit_s=limit)

    def solve(self, group: HostGroup, count: Ints, *, may_refuse: bool) -> tuple[HostGroup, dict[int, int]]:
        """Return hosts with their machines in the best nodes, and the refused ones by shape."""
        program = HostProgram(
            self.problem, self.problem.supplies[group.supply].host_type, count, self._options
        )
        x = program.solve_max_min(self._deadline) if self.goal == "score" else program.solve_max_sum()
        self.is_proven &= program.is_proven and program.ways.is_complete
        self.backend = program.backend
        if x is None or (not may_refuse and x[len(program.ways.placings) :].any()):
            self.is_proven = False
            return group, {}
        filled = empty_group(self.problem, group.supply, group.hosts)
        filled.name = group.name
        return filled, program.fill(filled, x)


def count_of(problem: Consolidation, group: HostGroup) -> Ints:
    """Return the machines of each shape on each host of a group, (M,)."""
    count = np.zeros(len(problem.machines), dtype=np.int64)
    for (shape, _, _), times in group.content.items():
        count[shape] += times
    return count


def _gains(problem: Consolidation, group: HostGroup) -> bool:
    """Return whether other vCPUs or nodes may raise the throughput of machines on a host."""
    host_type = problem.supplies[group.supply].host_type
    shapes = sorted({shape for shape, _, _ in group.content})
    can_grow = bool((problem.vcpus_max[shapes] > problem.vcpus[shapes]).any())
    is_split = any(sum(amount > 0 for amount in vcpus) > 1 for _, vcpus, _ in group.content)
    is_bundled = any(domain == "node" for domain, _ in problem.bundles)
    return not is_bundled and (can_grow or (is_split and problem.span_loss[host_type] > 0))


@refuse_shortage
def plan_max_min(problem: Consolidation, *, options: Options = Options()) -> Decision[ConsolidationPlan]:
    """Find vCPUs and nodes of all machines on a host for the largest lowest throughput, then the next lowest.

    Several hosts are filled by best fit, then each is solved exactly.

    source  Deehr et al. 2014, 1.1 (the score is the lowest throughput), 3.1 and 3.2
    """
    return _plan(problem, "score", options)


@refuse_shortage
def plan_max_sum(problem: Consolidation, *, options: Options = Options()) -> Decision[ConsolidationPlan]:
    """Find vCPUs and nodes of all machines on a host for the largest sum of throughputs.

    source  Deehr et al. 2014, 2.1.3 (the sum, the informal measure of tuning)
    """
    return _plan(problem, "throughput", options)
