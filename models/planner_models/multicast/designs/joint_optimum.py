"""Exact choice between unicast, own and shared entries: selection of groups and a p-median at edge switches.

Each edge switch whose table overflows opens unions of port sets, at most as many as it has free entries. A
group with entries is assigned to one open union at each of them that covers its ports there, at the traffic
of its ports without members; other tables limit the groups with entries.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
import scipy.sparse as sp

from planner import backends
from planner.arrays import Ints
from planner.backends.linear_program import Columns, LinearProgram, Rows
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


def joint_model(problem: Multicast, limits: TableLimits, found: Assignments) -> LinearProgram:
    """Return the integer program of least host traffic."""
    _, group, ports = problem.at_edge
    groups, opened, assigned = len(problem.groups), len(found.unions), len(found.pair)
    size = groups + opened + assigned
    last = groups + opened + np.arange(assigned)
    of_group = group[found.pair]
    extra = problem.rate_mbps[of_group] * np.bitwise_count(found.unions[found.union] & ~ports[found.pair])
    ones = np.ones(assigned)
    pairs, row = np.unique(found.pair, return_inverse=True)
    served = sp.coo_array((ones, (row, last)), shape=(len(pairs), size))
    served -= sp.coo_array((np.ones(len(pairs)), (np.arange(len(pairs)), group[pairs])), shape=served.shape)
    each = np.arange(assigned)
    linked = sp.coo_array((ones, (each, last)), shape=(assigned, size))
    linked -= sp.coo_array((ones, (each, groups + found.union)), shape=linked.shape)
    switches, of_union = np.unique(found.switch, return_inverse=True)
    tables = sp.coo_array(
        (np.ones(opened), (of_union, groups + np.arange(opened))), shape=(len(switches), size)
    )
    others = sp.hstack([limits.uses, sp.coo_array((limits.uses.shape[0], opened + assigned))])
    names = problem.groups["group"].tolist
    return LinearProgram.build(
        cost=np.concatenate([-saved_mbps(problem), np.zeros(opened), extra]),
        offset=traffic_mbps(problem, np.zeros(groups, dtype=bool)),
        rows=[
            Rows("table", sp.csr_array(others), upper=limits.free.astype(float)),
            Rows("served", sp.csr_array(served), lower=0.0, upper=0.0),
            Rows("open", sp.csr_array(linked), upper=0.0),
            Rows("edge_table", tables, upper=problem.free("edge")[switches].astype(float)),
        ],
        columns=[
            Columns("hardware", groups, labels=names),
            Columns("union", opened),
            Columns("assign", assigned),
        ],
        upper=1.0,
        integer=np.arange(size) < groups + opened,
        name="groups in hardware with shared entries",
    )


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
    solution = backends.solve(joint_model(problem, limits, found), options)
    if solution.x is None:
        return None
    groups = len(problem.groups)
    kept = solution.x[:groups] > 0.5
    is_open = solution.x[groups : groups + len(found.unions)] > 0.5
    edge, group, ports = problem.at_edge
    start = np.searchsorted(edge, np.arange(problem.edge_count))
    entry = np.where(kept[group], np.arange(len(edge)) - start[edge], NO_ENTRY)  # own entries
    usable = is_open[found.union]
    pair, union = found.pair[usable], found.union[usable]
    extra = np.bitwise_count(found.unions[union] & ~ports[pair])
    order = np.lexsort((extra, pair))
    pair, first = np.unique(pair[order], return_index=True)
    entry[pair] = np.where(kept[group[pair]], union[order][first], NO_ENTRY)
    tables = EdgeTables(problem=problem, limits=limits, kept=kept, entry=entry)
    proof = Proof(
        status=solution.status if solution.status is Status.OPTIMAL else Status.FEASIBLE,
        objective=tables.total_mbps,
        bound=solution.bound,
        metric=METRIC,
        backend=solution.backend,
    )
    return tables, proof
