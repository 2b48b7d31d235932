"""The best schedule with circuits to several racks: an integer program over all maximal configurations.

A configuration is the rack that each rack receives from; at most `circuit_targets` receive from the same one.
Data of a multicast k is divided into chunks, each sent by a family of groups of its targets without a common
rack, so that nothing is sent to a rack twice:

    maximize    sum of X + Y + the chunks' copies                       minimize T  (without a window)
    subject to  X_p <= rate_p * time of configurations with p as a circuit to one rack
                sum of f_kGR over k and G <= rate_R * time of those with circuit R to several racks
                sum of y_kF over families F with group G = sum of f_kGR over circuits R that reach G
                sum of y_kF over F <= bits of k
                X + Y + copies <= D, limits of the packet switch, and time and nights within the week
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from planner import backends
from planner.backends.linear_program import LinearProgram
from planner.options import Options
from planner.search.deadline import NEVER, Deadline
from planner.search.tolerances import SOLVED_SHARE, SOLVER
from planner_models.circuits.designs.week_program import BlockProgram, ScaledProblem, split_columns
from planner_models.circuits.plan.multicast_plan import MulticastDay
from planner_models.circuits.plan.plan import IDLE
from planner_models.circuits.problem.problem import Circuits

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Group = frozenset[int]
Family = tuple[Group, ...]
VISITS_PER_CONFIGURATION: Final = 50  # of the listing, which also visits configurations that are not maximal
MOST_FAMILIES: Final = 5_000  # of groups, in all
SMALLEST_DAY: Final = SOLVED_SHARE  # share of the longest day below which a day is rounding


def list_configurations(problem: Circuits, limit: int, deadline: Deadline = NEVER) -> Ints | None:
    """Return (K, n) the rack that each rack receives from, or IDLE, of all maximal configurations.

    Maximal is one to which no circuit can be added that takes nothing from the others. None where there
    are more than `limit`, or too many have to be visited.
    """
    return Listing(problem, limit, deadline).list_all()


class Listing:
    """The search for all maximal configurations, by receiving rack."""

    def __init__(self, problem: Circuits, limit: int, deadline: Deadline) -> None:
        self.problem, self.limit, self.deadline = problem, limit, deadline
        n = len(problem.racks)
        self.has_copies = problem.multicast_demands.copy_bits > 0
        self.senders = [np.flatnonzero(problem.bits[:, j] > 0).tolist() for j in range(n)]
        self.source, self.groups = [IDLE] * n, [list[int]() for _ in range(n)]
        self.listed = list[list[int]]()
        self.visits = 0

    def list_all(self) -> Ints | None:
        """Return (K, n) the configurations, or None where they are too many."""
        n = len(self.source)
        return np.array(self.listed, dtype=np.int64).reshape(-1, n) if self.visit(0) else None

    def may_join(self, i: int, j: int) -> bool:
        """Return whether rack j can receive from rack i besides those that do."""
        group = self.groups[i]
        if not group:
            return True
        fits = len(group) < self.problem.circuit_targets
        return fits and bool(self.has_copies[i, j]) and bool(self.has_copies[i, group[0]])

    def is_maximal(self) -> bool:
        """Return whether no circuit can be added."""
        return not any(
            self.takes_nothing(i, j)
            for j, source in enumerate(self.source)
            if source == IDLE
            for i in self.senders[j]
        )

    def takes_nothing(self, i: int, j: int) -> bool:
        """Return whether rack j can receive from rack i too, and those that do as much as before."""
        group, rate = self.groups[i], self.problem.circuit_mbps[i]
        if len(group) < 2:
            return not group
        return self.may_join(i, j) and bool(rate[j] >= rate[group].min())

    def is_too_long(self) -> bool:
        """Return whether too many configurations were visited, or the deadline is over."""
        self.visits += 1
        is_over = self.visits % 1_024 == 0 and self.deadline.is_over
        return is_over or self.visits > VISITS_PER_CONFIGURATION * self.limit

    def visit(self, j: int) -> bool:
        """List the configurations with these sources of the racks before j; return False for too many."""
        if self.is_too_long():
            return False
        if j == len(self.source):
            if self.is_maximal():
                self.listed.append(self.source.copy())
            return len(self.listed) <= self.limit
        for i in self.senders[j]:
            if self.may_join(i, j):
                self.source[j] = i
                self.groups[i].append(j)
                fits = self.visit(j + 1)
                self.groups[i].pop()
                self.source[j] = IDLE
                if not fits:
                    return False
        return self.visit(j + 1)


def list_families(targets: Group, limit: int) -> Iterator[Family]:
    """Yield the families of groups of at most `limit` targets without a common one; not the empty family."""
    for family in _divide(sorted(targets), limit):
        if family:
            yield family


def _divide(targets: Sequence[int], limit: int) -> Iterator[Family]:
    if not targets:
        yield ()
        return
    first, others = targets[0], targets[1:]
    yield from _divide(others, limit)  # the first target is in no group
    for size in range(limit):
        for more in itertools.combinations(others, size):
            remaining = [target for target in others if target not in more]
            for family in _divide(remaining, limit):
                yield (frozenset((first, *more)), *family)


@dataclass(frozen=True, kw_only=True, eq=False)
class ConfigurationProgram:
    """The integer program over (K, n) configurations."""

    problem: Circuits
    configurations: Ints

    @cached_property
    def task(self) -> ScaledProblem:
        return ScaledProblem(problem=self.problem)

    @cached_property
    def circuits(self) -> list[dict[int, Group]]:
        """Targets of each sender in each configuration."""
        listed = []
        for row in self.configurations.tolist():
            groups: dict[int, set[int]] = {}
            for target, source in enumerate(row):
                if source != IDLE:
                    groups.setdefault(source, set()).add(target)
            listed.append({source: frozenset(targets) for source, targets in groups.items()})
        return listed

    @cached_property
    def shared(self) -> list[tuple[int, Group]]:
        """Sender and targets of each circuit to several racks, no two the same."""
        every = {item for groups in self.circuits for item in groups.items() if len(item[1]) > 1}
        return sorted(every, key=lambda item: (item[0], sorted(item[1])))

    @cached_property
    def families(self) -> list[tuple[int, Family]]:
        """Multicast and groups of each kind of chunk, the groups such as circuits reach."""
        multicasts = self.problem.multicast_demands
        listed: list[tuple[int, Family]] = []
        for number, targets in enumerate(multicasts.targets):
            reached = [group for source, group in self.shared if source == multicasts.source[number]]
            listed += [
                (number, family)
                for family in list_families(targets, self.problem.circuit_targets)
                if all(any(subset <= group for group in reached) for subset in family)
            ]
        return listed

    @cached_property
    def groups(self) -> list[tuple[int, Group]]:
        """Multicast and targets of each group of a family, no two the same."""
        every = {(number, group) for number, family in self.families for group in family}
        return sorted(every, key=lambda item: (item[0], sorted(item[1])))

    @cached_property
    def flows(self) -> list[tuple[int, int]]:
        """Number of a group, and of a circuit to several racks that reaches it."""
        source = self.problem.multicast_demands.source
        return [
            (index, circuit)
            for index, (number, group) in enumerate(self.groups)
            for circuit, (sender, targets) in enumerate(self.shared)
            if sender == source[number] and group <= targets
        ]

    def build(self) -> LinearProgram:
        """Return the program, in `Units`."""
        task, problem = self.task, self.problem
        pairs, count, switches = len(task.wanted), len(self.configurations), problem.switches
        program = BlockProgram(
            circuit=pairs,
            packet=pairs,
            length=switches * count,
            used=switches * count,
            chunk=len(self.families),
            flow=len(self.flows),
            end=int(task.timeless),
        )
        longest = self._longest()
        each, repeat = sp.eye_array(switches * count), np.ones((1, switches))
        program.add(
            "circuits",
            upper=0.0,
            circuit=sp.eye_array(pairs),
            length=-sp.kron(repeat, self._single_rates()),
        )
        self._add_chunks(program, repeat)
        program.add("longest", upper=0.0, length=each, used=-longest * each)
        program.add("shortest", lower=0.0, length=each, used=-task.shortest * each)
        of_switch = sp.kron(sp.eye_array(switches), np.ones((1, count)))
        program.add(
            "week",
            upper=task.week,
            length=of_switch,
            used=task.night * of_switch,
            end=-np.ones((switches, 1)),
        )
        if switches > 1:
            order = sp.diags_array([1.0, -1.0], offsets=[0, 1], shape=(switches - 1, switches))
            program.add("busier first", lower=0.0, length=order @ of_switch)
        task.add_packet(program)
        copies = self._copies()
        task.add_demand(program, circuit=sp.eye_array(pairs), chunk=copies)
        served = {"circuit": 1.0, "packet": 1.0, "chunk": np.asarray(copies.sum(axis=0)).ravel()}
        return task.build(
            program,
            name="schedule with circuits to several racks",
            cost={"end": 1.0} if task.timeless else served,
            upper={"used": 1.0},
            integer=("used",),
        )

    def _longest(self) -> float:
        """Return the longest useful day: a rack sends and receives all its demand in it, within the week."""
        task = self.task
        high = max(task.shortest, float((task.loads @ (task.wanted / task.rate)).max()))
        return high if task.timeless else min(high, task.week - task.night)

    def _single_rates(self) -> sp.csr_array:
        """Return (pairs, K) the rate of each pair by a circuit to one rack in each configuration."""
        rows = [
            (source, next(iter(targets)), index)
            for index, groups in enumerate(self.circuits)
            for source, targets in groups.items()
            if len(targets) == 1
        ]
        source, target, index = np.array(rows, dtype=np.int64).reshape(-1, 3).T
        pair = self.problem.find_pairs(source, target)
        shape = (len(self.task.wanted), len(self.configurations))
        return sp.csr_array((self.task.rate[pair], (pair, index)), shape=shape)

    def _copies(self) -> sp.csr_array:
        """Return (pairs, families) whether a chunk of each kind is received by the target of a pair."""
        source = self.problem.multicast_demands.source
        rows = [
            (source[number], target, index)
            for index, (number, family) in enumerate(self.families)
            for group in family
            for target in group
        ]
        i, j, index = np.array(rows, dtype=np.int64).reshape(-1, 3).T
        shape = (len(self.task.wanted), len(self.families))
        return sp.csr_array((np.ones(len(rows)), (self.problem.find_pairs(i, j), index)), shape=shape)

    def _add_chunks(self, program: BlockProgram, repeat: Floats) -> None:
        """Add the rows of circuits to several racks, of their transmissions, and of multicasts' amounts."""
        if not self.families:
            return
        unit, numbers = self.task.unit, {circuit: index for index, circuit in enumerate(self.shared)}
        used = [
            (numbers[item], index)
            for index, groups in enumerate(self.circuits)
            for item in groups.items()
            if len(item[1]) > 1
        ]
        rates = [
            float(min(self.problem.circuit_mbps[source, target] for target in targets)) * unit.us / unit.bits
            for source, targets in self.shared
        ]
        circuit, index = np.array(used, dtype=np.int64).T
        by_time = sp.csr_array(
            (np.array(rates)[circuit], (circuit, index)), shape=(len(rates), len(self.configurations))
        )
        group, over = np.array(self.flows, dtype=np.int64).T
        each = np.arange(len(group))
        sent = sp.csr_array((np.ones(len(group)), (over, each)), shape=(len(rates), len(group)))
        program.add("to several", upper=0.0, flow=sent, length=-sp.kron(repeat, by_time))
        positions = {item: index for index, item in enumerate(self.groups)}
        parts = [
            (positions[number, subset], index)
            for index, (number, family) in enumerate(self.families)
            for subset in family
        ]
        row, column = np.array(parts, dtype=np.int64).T
        shape = (len(self.groups), len(self.families))
        needed = sp.csr_array((np.ones(len(row)), (row, column)), shape=shape)
        flowing = sp.csr_array((np.ones(len(group)), (group, each)), shape=(len(self.groups), len(group)))
        program.add("groups", upper=0.0, chunk=needed, flow=-flowing)
        multicasts = self.problem.multicast_demands
        number = np.array([number for number, _ in self.families], dtype=np.int64)
        of = sp.csr_array(
            (np.ones(len(number)), (number, np.arange(len(number)))), shape=(len(multicasts), len(number))
        )
        program.add("once", upper=multicasts.bits / unit.bits, chunk=of)

    def read_days(self, program: LinearProgram, x: Floats) -> list[MulticastDay]:
        """Return the days of a solution, of each switch in succession."""
        values, count, unit = split_columns(program, x), len(self.configurations), self.task.unit
        smallest = SMALLEST_DAY * self._longest()
        selected = self._fit_lengths(
            [
                (index // count, index % count, float(length) * unit.us)
                for index, (length, used) in enumerate(zip(values["length"], values["used"], strict=True))
                if used > 0.5 and length > smallest
            ]
        )
        sent = self._divide_chunks(values, selected) if self.families else [[] for _ in selected]
        return [
            MulticastDay(
                duration_us=length,
                source=self.configurations[configuration],
                transmissions=tuple(sent[day]),
                switch=switch,
            )
            for day, (switch, configuration, length) in enumerate(selected)
        ]

    def _fit_lengths(self, selected: list[tuple[int, int, float]]) -> list[tuple[int, int, float]]:
        """Return switch, configuration and length of days, so that rounding breaks no limit."""
        problem = self.problem
        lengths = [max(length, problem.shortest_day_us) for _, _, length in selected]
        factors = np.full(problem.switches, 1 + SOLVER)
        if problem.window_us is not None:
            for switch in range(problem.switches):
                of_switch = [
                    length for (s, _, _), length in zip(selected, lengths, strict=True) if s == switch
                ]
                time_us = problem.window_us - len(of_switch) * problem.night_us
                factors[switch] = min(1.0, time_us / max(sum(of_switch), SMALLEST_DAY))
        return [
            (switch, configuration, length * float(factors[switch]))
            for (switch, configuration, _), length in zip(selected, lengths, strict=True)
        ]

    def _divide_chunks(
        self, values: dict[str, Floats], selected: list[tuple[int, int, float]]
    ) -> list[list[tuple[int, float, float]]]:
        """Return multicast, first bit and amount of each transmission to several racks, by day."""
        bits, mbps = self.task.unit.bits, self.problem.circuit_mbps
        free: dict[tuple[int, Group], list[list[float]]] = {}  # day and free bits of each circuit
        for day, (_, configuration, length) in enumerate(selected):
            for source, targets in self.circuits[configuration].items():
                if len(targets) > 1:
                    rate = min(float(mbps[source, target]) for target in targets)
                    free.setdefault((source, targets), []).append([float(day), rate * length])
        over: dict[tuple[int, Group], list[list[float]]] = {}  # circuit and bits of each group
        for (reached, over_circuit), flow in zip(self.flows, values["flow"], strict=True):
            over.setdefault(self.groups[reached], []).append([float(over_circuit), float(flow) * bits])
        sent: list[list[tuple[int, float, float]]] = [[] for _ in selected]
        begins = np.zeros(len(self.problem.multicast_demands))
        for (number, family), amount in zip(self.families, values["chunk"], strict=True):
            chunk = min(float(amount) * bits, self.problem.multicast_demands.bits[number] - begins[number])
            if chunk <= SOLVER * bits:
                continue
            for group in family:
                first = float(begins[number])
                for circuit, portion in _take(over.get((number, group), []), chunk):
                    for sending_day, piece in _take(free.get(self.shared[int(circuit)], []), portion):
                        sent[int(sending_day)].append((number, first, piece))
                        first += piece
            begins[number] += chunk
        return sent


def _take(supply: list[list[float]], amount: float) -> Iterator[tuple[float, float]]:
    """Yield the amounts taken of supplies until a total is reached, and reduce the supplies."""
    for item in supply:
        taken = min(item[1], amount)
        if taken > 0:
            item[1] -= taken
            amount -= taken
            yield item[0], taken


def solve(
    problem: Circuits, configurations: Ints, options: Options
) -> tuple[list[MulticastDay] | None, float | None, str | None]:
    """Return the best schedule over these configurations, a bound on all such, and the backend.

    returns  no schedule where none is found; the bound is a rate, Mbit/s, None where none is proven
    """
    model = ConfigurationProgram(problem=problem, configurations=configurations)
    program = model.build()
    solution = backends.solve(program, replace(options, gap=options.gap or SOLVER, service="best"))
    sign = -1 if model.task.timeless else 1
    bound = None if solution.bound is None else model.task.objective(sign * solution.bound)
    if solution.x is None:
        return None, bound, solution.backend
    days = optimize_lengths(problem, model.read_days(program, solution.x), options)
    return days, bound, solution.backend


def can_list_families(problem: Circuits) -> bool:
    """Return whether the kinds of chunks of all multicasts are at most MOST_FAMILIES."""
    every = (
        family
        for targets in problem.multicast_demands.targets
        for family in list_families(targets, problem.circuit_targets)
    )
    return sum(1 for _ in itertools.islice(every, MOST_FAMILIES + 1)) <= MOST_FAMILIES


def optimize_lengths(problem: Circuits, days: Sequence[MulticastDay], options: Options) -> list[MulticastDay]:
    """Return days of the same circuits with the best lengths and transmissions, by linear programs.

    Each takes all days that are left; those without a length are left out of the next one.
    """
    best = list(days)
    while best:
        rows = np.array([day.source for day in best])
        configurations, number = np.unique(rows, axis=0, return_inverse=True)
        model = ConfigurationProgram(problem=problem, configurations=configurations)
        program = model.build()
        used = np.zeros((problem.switches, len(configurations)))
        used[[day.switch for day in best], number.ravel()] = 1.0
        block = next(block for block in program.columns if block.name == "used")
        lower, upper = program.lower.copy(), program.upper.copy()
        lower[block.start : block.stop] = upper[block.start : block.stop] = used.ravel()
        fixed = replace(program, lower=lower, upper=upper, integer=None)
        solution = backends.solve(fixed, replace(options, service="best"))
        if solution.x is None:
            return best
        optimized = model.read_days(fixed, solution.x)
        if len(optimized) >= int(used.sum()):
            return optimized
        best = optimized
    return best
