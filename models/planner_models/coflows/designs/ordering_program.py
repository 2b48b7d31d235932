"""The ordering program of circuits as sparse arrays: `formulation` with fewer variables, and its plan.

Circuits of one flow are in order of their start. Where there is one switch, no circuit chooses it. A circuit
is before another or after it: one binary variable for both.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from planner.backends.linear_program import LinearProgram
from planner_models.circuits.designs.week_program import BlockProgram, split_columns
from planner_models.coflows.plan.flow_groups import FlowGroups, group_flows
from planner_models.coflows.plan.lower_bounds import alone_ms
from planner_models.coflows.problem.problem import CoflowsInTime, Floats, Ints

Terms = list[tuple[str, int, float]]
"""Coefficients of a row: name of the columns, place among them, and value."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Circuits:
    """Circuits that an ordering program places.

    flow    (A,) place of the flow in `groups`
    part    (A,) number of the circuit among those of its flow, from 0
    pairs   (B, 2) circuits that share a port, the lower number first
    """

    groups: FlowGroups
    flow: Ints
    part: Ints
    pairs: Ints

    @classmethod
    def of(cls, problem: CoflowsInTime, parts: int) -> Circuits:
        """Return the circuits of a problem, at most `parts` for each flow."""
        groups = group_flows(problem)
        flow = np.repeat(np.arange(len(groups.flow)), parts)
        source, target = groups.source[flow], groups.target[flow]
        pairs = [
            (a, b)
            for a, b in itertools.combinations(range(len(flow)), 2)
            if source[a] == source[b] or target[a] == target[b]
        ]
        return cls(
            groups=groups,
            flow=flow,
            part=np.tile(np.arange(parts), len(groups.flow)),
            pairs=np.array(pairs, dtype=np.int64).reshape(-1, 2),
        )

    def has_same_ports(self, a: int, b: int) -> bool:
        """Return whether two circuits have the same ports."""
        ends = (self.groups.source, self.groups.target)
        return all(end[self.flow[a]] == end[self.flow[b]] for end in ends)


class _Rows:
    """Rows of a program under construction, from their coefficients one by one."""

    def __init__(self, program: BlockProgram) -> None:
        self.program = program
        self.blocks: dict[str, list[tuple[Terms, float, float]]] = {}

    def add(self, name: str, terms: Terms, *, lower: float = -np.inf, upper: float = np.inf) -> None:
        """Add a row to the block of a name."""
        self.blocks.setdefault(name, []).append((terms, lower, upper))

    def finish(self) -> None:
        """Add all rows to the program."""
        for name, rows in self.blocks.items():
            entries: dict[str, tuple[list[float], list[int], list[int]]] = {}
            for row, (terms, _, _) in enumerate(rows):
                for block, column, value in terms:
                    values, row_list, columns = entries.setdefault(block, ([], [], []))
                    values.append(value)
                    row_list.append(row)
                    columns.append(column)
            shaped = {
                block: sp.csr_array(
                    (values, (rows_of, columns)), shape=(len(rows), self.program.widths[block])
                )
                for block, (values, rows_of, columns) in entries.items()
            }
            lower, upper = np.array([limits for _, *limits in rows]).T
            self.program.add(name, lower=lower, upper=upper, **shaped)


def build_program(
    problem: CoflowsInTime, circuits: Circuits, *, most_ms: float | None = None
) -> LinearProgram:
    """Return the program; it minimizes the mean completion time of coflows with working racks, ms.

    That is the mean time at which they are complete, less their mean arrival: a constant of the objective.

    most_ms  mean completion time of the incumbent: what is worse is cut off, and never the incumbent itself

    source  Manne 1960 (ordering of jobs on machines), with set-up times that a kept circuit saves
    """
    task = _Task(problem, circuits, most_ms)
    rows = _Rows(task.program)
    _add_times(task, rows)
    _add_order(task, rows)
    _add_kept(task, rows)
    if most_ms is not None:
        limit = most_ms * len(task.arrival) * (1 + 1e-9) + float((task.weight * task.arrival).sum())
        terms = [("end", c, float(weight)) for c, weight in enumerate(task.weight)]
        rows.add("incumbent", terms, upper=limit)
    rows.finish()
    binary = [name for name in ("before", "kept", "switch") if name in task.program.widths]
    flow = circuits.flow[circuits.pairs]
    return task.program.build(
        name="coflows on circuits",
        cost={"end": task.weight / len(task.arrival)},
        offset=-float((task.weight * task.arrival).mean()),
        lower={
            "start": np.maximum(task.arrival[task.coflow[circuits.flow]], problem.setup_ms),
            "end": task.least,
            "before": (flow[:, 0] == flow[:, 1]).astype(float),  # circuits of one flow are alike
        },
        upper={"start": task.horizon, "end": task.horizon + task.big} | dict.fromkeys(binary, 1.0),
        integer=binary,
    )


class _Task:
    """Coflows and circuits of a program, in places from 0, and its columns.

    coflow   (F,) of each flow in `groups`
    arrival, least, weight  (C,) of coflows whose racks work: arrival, the earliest end, ms, relative weight
    saved    place among `kept` of each pair of circuits with the same ports: the first kept for the second,
             then the second for the first
    """

    def __init__(self, problem: CoflowsInTime, circuits: Circuits, most_ms: float | None) -> None:
        self.circuits, self.setup, self.switches = circuits, problem.setup_ms, problem.switches
        groups, works = circuits.groups, np.flatnonzero(problem.can_complete)
        index_of = np.full(len(problem.coflows), -1)
        index_of[works] = np.arange(len(works))
        self.coflow = index_of[problem.coflow[groups.flow]]
        self.arrival, self.weight = problem.arrival_ms[works], problem.relative_weight[works]
        self.need = groups.bits / problem.circuit_rate[groups.flow]
        self.least = self.arrival + alone_ms(problem, "circuits")[works]
        count = len(circuits.flow)
        self.horizon = float(self.arrival.max() + self.need.sum() + (count + 1) * self.setup)
        if most_ms is not None:  # no coflow takes longer than the incumbent's sum leaves it
            spare = most_ms * len(works) - float((self.weight * (self.least - self.arrival)).sum())
            longest = max(spare, 0.0) / float(self.weight.min())
            self.horizon = min(self.horizon, float(self.least.max()) + longest + self.setup)
        self.big = self.horizon + self.setup
        pairs = circuits.pairs.tolist()
        self.number = {(a, b): rank for rank, (a, b) in enumerate(pairs)}
        same = [rank for rank, (a, b) in enumerate(pairs) if circuits.has_same_ports(a, b)]
        self.saved = {rank: 2 * index for index, rank in enumerate(same)}
        self.program = BlockProgram(
            start=count,
            length=count,
            end=len(works),
            before=len(pairs),
            kept=2 * len(same),
            switch=count * self.switches if self.switches > 1 else 0,
        )

    def share_port(self, a: int, b: int) -> bool:
        """Return whether two circuits share a port."""
        return (min(a, b), max(a, b)) in self.number

    def before(self, a: int, b: int, factor: float) -> tuple[Terms, float]:
        """Return `factor` times whether circuit a is before b, as terms and a constant."""
        if (a, b) in self.number:
            return [("before", self.number[a, b], factor)], 0.0
        return [("before", self.number[b, a], -factor)], factor

    def on_switch(self, a: int, switch: int, factor: float) -> tuple[str, int, float]:
        """Return `factor` times whether a circuit is on a switch."""
        return "switch", a * self.switches + switch, factor


def _add_times(task: _Task, rows: _Rows) -> None:
    """Add that flows are whole, coflows end after their circuits, and each circuit is on one switch."""
    flow = task.circuits.flow
    for a, f in enumerate(flow.tolist()):
        late = [("end", int(task.coflow[f]), 1.0), ("start", a, -1.0), ("length", a, -1.0)]
        rows.add("complete", late, lower=0.0)
        if task.switches > 1:
            rows.add(
                "placed", [task.on_switch(a, s, 1.0) for s in range(task.switches)], lower=1.0, upper=1.0
            )
    for f, time in enumerate(task.need.tolist()):
        terms = [("length", int(a), 1.0) for a in np.flatnonzero(flow == f)]
        rows.add("whole", terms, lower=time, upper=time)


def _add_order(task: _Task, rows: _Rows) -> None:
    """Add that of two circuits that share a port, one starts after the other and its set-up."""
    for (a, b), rank in task.number.items():
        for way, (first, other) in enumerate(((a, b), (b, a))):
            terms, constant = task.before(first, other, -task.big)
            terms += [("start", other, 1.0), ("start", first, -1.0), ("length", first, -1.0)]
            if rank in task.saved:
                terms.append(("kept", task.saved[rank] + way, task.setup))
            if task.switches == 1:
                rows.add("follows", terms, lower=task.setup - task.big - constant)
                continue
            for s in range(task.switches):
                placed = [task.on_switch(of, s, -task.big) for of in (first, other)]
                rows.add("follows", [*terms, *placed], lower=task.setup - 3 * task.big - constant)


def _add_kept(task: _Task, rows: _Rows) -> None:
    """Add that a circuit is kept for another of the same ports where none of other ports is between."""
    count = len(task.circuits.flow)
    for (a, b), rank in task.number.items():
        for way, (item, other) in enumerate(((a, b), (b, a)) if rank in task.saved else ()):
            variable = ("kept", task.saved[rank] + way, 1.0)
            terms, constant = task.before(item, other, -1.0)
            rows.add("kept in order", [variable, *terms], upper=constant * -1.0)
            for s in range(task.switches if task.switches > 1 else 0):
                for sign in (1.0, -1.0):
                    apart = [task.on_switch(item, s, sign), task.on_switch(other, s, -sign)]
                    rows.add("kept on one switch", [variable, *apart], upper=1.0)
            for c in range(count):
                if task.circuits.has_same_ports(item, c) or not task.share_port(item, c):
                    continue
                first, constant = task.before(c, item, -1.0)
                last, more = task.before(other, c, -1.0)
                rows.add("undisturbed", [variable, *first, *last], upper=-constant - more)


def read_solution(
    problem: CoflowsInTime, circuits: Circuits, program: LinearProgram, x: Floats
) -> tuple[Ints, Floats, Floats, Ints]:
    """Return flows, starts, ends and switches of the circuits of a solution, as rows of `flows`, ms.

    Starts are found again from the order of the solution, so that rounding breaks no limit.
    """
    values = split_columns(program, x)
    groups, count = circuits.groups, len(circuits.flow)
    need = groups.bits / problem.circuit_rate[groups.flow]
    length = np.maximum(values["length"], 0.0)
    switch = np.zeros(count, dtype=np.int64)
    if problem.switches > 1:
        switch = values["switch"].reshape(count, problem.switches).argmax(axis=1)
    total = np.bincount(circuits.flow, weights=length, minlength=len(need))
    length = length * (need / total)[circuits.flow]
    free: dict[tuple[int, int, int], tuple[float, int]] = {}
    start = np.zeros(count)
    used = [a for a in np.lexsort((circuits.part, values["start"])).tolist() if length[a] > 1e-9 * need.max()]
    for a in used:
        flow = circuits.flow[a]
        ports = ((0, groups.source[flow], switch[a]), (1, groups.target[flow], switch[a]))
        last = [free.get(port, (0.0, -1)) for port in ports]
        before = {circuit for _, circuit in last}
        is_up = len(before) == 1 and -1 not in before and circuits.has_same_ports(a, before.pop())
        ready = max(end_ms for end_ms, _ in last) + (0.0 if is_up else problem.setup_ms)
        start[a] = max(ready, problem.arrival_ms[problem.coflow[groups.flow[flow]]])
        for port in ports:
            free[port] = start[a] + length[a], a
    rows = np.array(used, dtype=np.int64)
    return groups.flow[circuits.flow[rows]], start[rows], (start + length)[rows], switch[rows]
