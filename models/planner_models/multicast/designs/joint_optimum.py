"""Exact choice between unicast, own and shared entries: selection of groups and a p-median at edge switches.

Each edge switch whose table overflows opens unions of port sets, at most as many as it has free entries. A
group with entries is assigned to one open union at each of them that covers its ports there, at the traffic
of its ports without members; other tables limit the groups with entries.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from planner import backends
from planner.arrays import Ints
from planner.backends.linear_program import LinearProgram
from planner.backends.program_builder import ProgramBuilder
from planner.contract.proof import Proof, Status
from planner.errors import InputError
from planner.options import Options
from planner_models.multicast.designs.channelization.p_median import list_unions
from planner_models.multicast.designs.partitioned import METRIC, saved_mbps, traffic_mbps
from planner_models.multicast.designs.unicast_exchange import NO_ENTRY, EdgeTables
from planner_models.multicast.plan.meta_groups import Masks
from planner_models.multicast.plan.table_limits import TableLimits
from planner_models.multicast.problem.problem import Multicast

MAX_UNIONS: Final = 1024  # of one switch
MAX_ASSIGNMENTS: Final = 60_000  # variables of pairs and unions


class Assignments(NamedTuple):
    """Possible assignments of pairs of edge switch and group to unions of the switch.

    unions  (unions,) port sets, switch by switch
    switch  (unions,) switch of each
    pair    row of `problem.at_edge` of each assignment
    union   its union
    """

    unions: Masks
    switch: Ints
    pair: Ints
    union: Ints


def list_assignments(problem: Multicast) -> Assignments | None:
    """Return the assignments at all edge switches that overflow; None where there are too many."""
    edge, _, ports = problem.at_edge
    start = np.searchsorted(edge, np.arange(problem.edge_count + 1)).tolist()
    unions: list[tuple[int, Masks]] = []
    for switch, ((a, b), size) in enumerate(zip(pairwise(start), problem.free("edge").tolist(), strict=True)):
        if b - a <= size:
            continue
        try:
            every = list_unions(ports[a:b].tolist(), MAX_UNIONS)
        except InputError:
            return None
        unions.append((switch, np.array(every, dtype=np.uint64)))
    return assign_unions(problem, unions)


def assign_unions(problem: Multicast, unions: list[tuple[int, Masks]]) -> Assignments | None:
    """Return the assignments to these unions of edge switches; None where there are too many."""
    edge, _, ports = problem.at_edge
    start = np.searchsorted(edge, np.arange(problem.edge_count + 1)).tolist()
    nothing = np.zeros(0, dtype=np.int64)
    parts = [(np.zeros(0, dtype=np.uint64), nothing, nothing, nothing)]
    opened = assigned = 0
    for switch, some in unions:
        a, b = start[switch : switch + 2]
        pair, union = np.nonzero((ports[a:b, None] & ~some[None, :]) == 0)
        parts.append((some, np.full(len(some), switch), a + pair, opened + union))
        opened, assigned = opened + len(some), assigned + len(pair)
        if assigned > MAX_ASSIGNMENTS:
            return None
    return Assignments(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def joint_model(problem: Multicast, limits: TableLimits, assignments: Assignments) -> LinearProgram:
    """Return the integer program of least host traffic."""
    _, group, ports = problem.at_edge
    groups = len(problem.groups)
    of_group = group[assignments.pair]
    extra = problem.rate_mbps[of_group] * np.bitwise_count(
        assignments.unions[assignments.union] & ~ports[assignments.pair]
    )
    pairs, row = np.unique(assignments.pair, return_inverse=True)
    switches, of_union = np.unique(assignments.switch, return_inverse=True)

    m = ProgramBuilder(
        name="groups in hardware with shared entries",
        offset=traffic_mbps(problem, np.zeros(groups, dtype=bool)),
    )
    names = problem.groups["group"].tolist
    hardware = m.variables(
        "hardware", groups, upper=1.0, cost=-saved_mbps(problem), integer=True, labels=names
    )
    union = m.variables("union", len(assignments.unions), upper=1.0, integer=True)
    assign = m.variables("assign", len(assignments.pair), upper=1.0, cost=extra)
    m.constrain("table", limits.uses @ hardware, upper=limits.free)
    m.constrain("served", assign.sum_by(row, len(pairs)) - hardware[group[pairs]], equal=0.0)
    m.constrain("open", assign - union[assignments.union], upper=0.0)
    m.constrain("edge_table", union.sum_by(of_union, len(switches)), upper=problem.free("edge")[switches])
    return m.build()


def solve(
    problem: Multicast, limits: TableLimits, options: Options, *, found: Assignments | None = None
) -> tuple[EdgeTables, Proof] | None:
    """Return the entries of edge switches and the groups that have some, with the proof.

    None where edge switches have too many unions of port sets, or the solver ends without a plan.

    limits  of all tables but those of edge switches with a free entry
    found   assignments to unions; default: to all unions of port sets
    """
    found = list_assignments(problem) if found is None else found
    if found is None:
        return None
    model = joint_model(problem, limits, found)
    solution = backends.solve(model, options)
    if solution.x is None:
        return None
    selected = model.values("hardware", solution.x) > 0.5
    is_open = model.values("union", solution.x) > 0.5
    edge, group, ports = problem.at_edge
    start = np.searchsorted(edge, np.arange(problem.edge_count))
    entry = np.where(selected[group], np.arange(len(edge)) - start[edge], NO_ENTRY)  # own entries
    usable = is_open[found.union]
    pair, union = found.pair[usable], found.union[usable]
    extra = np.bitwise_count(found.unions[union] & ~ports[pair])
    order = np.lexsort((extra, pair))
    pair, first = np.unique(pair[order], return_index=True)
    entry[pair] = np.where(selected[group[pair]], union[order][first], NO_ENTRY)
    tables = EdgeTables(problem=problem, limits=limits, kept=selected, entry=entry)
    proof = Proof(
        status=solution.status if solution.status is Status.OPTIMAL else Status.FEASIBLE,
        objective=tables.total_mbps,
        bound=solution.bound,
        metric=METRIC,
        backend=solution.backend,
    )
    return tables, proof
