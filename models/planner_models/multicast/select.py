"""Which groups get table entries: by arrival, or by what they save, with a proven bound."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numba import njit
from numpy.typing import NDArray

from planner.backends.linear import Columns, LinearProgram, Rows
from planner_models.multicast.problem import Multicast


@dataclass(frozen=True, kw_only=True, eq=False)
class Room:
    """What groups take: `takes` (switches, groups), of room `free` (switches,).

    Switches that hold the same partitions hold the same groups and are one row.
    """

    takes: sp.csr_array
    free: NDArray[np.int64]


def in_turn(problem: Multicast, copies: int) -> NDArray[np.int64]:
    """(G,) the partition of each group: one after the other, in the order of the groups."""
    return np.arange(len(problem.groups)) % (problem.half // copies) ** 2


def room(problem: Multicast, partition: NDArray[np.int64], copies: int, *, edges: bool) -> Room:
    """What each group takes with `copies` of each partition in a pod; without edges, of upper layers only."""
    blocks = problem.half // copies
    spread = problem.edges_in_pod
    many = (spread > 0).sum(axis=1) > 1
    at_core = np.flatnonzero(many)
    stored = (spread > 1) | ((spread > 0) & many[:, None])
    group, pod = np.nonzero(stored)
    across = (pod % 2 == 1) & (problem.kind == "ab")
    block = np.where(across, partition[group] % blocks, partition[group] // blocks)
    parts = [(partition[at_core], at_core, blocks**2), (pod * blocks + block, group, problem.k * blocks)]
    free = [
        np.full(blocks**2, problem.table_size("core")),
        np.full(problem.k * blocks, problem.table_size("aggregation")),
    ]
    if edges:
        edge, at, _ = problem.at_edge
        parts.append((edge, at, problem.k * problem.half))
        free.append(np.full(problem.k * problem.half, problem.table_size("edge")))
    matrices = [
        sp.csr_array((np.ones(len(row)), (row, column)), shape=(count, len(problem.groups)))
        for row, column, count in parts
    ]
    return Room(takes=sp.csr_array(sp.vstack(matrices)), free=np.concatenate(free).astype(np.int64))


def by_arrival(found: Room) -> NDArray[np.bool_]:
    """(G,) the groups that get entries when each takes them as it comes, wherever all have room."""
    takes = found.takes.tocsc()
    return np.asarray(_admit(takes.indptr, takes.indices, found.free.copy()), dtype=bool)


@njit(cache=True)
def _admit(start: NDArray[np.int32], switch: NDArray[np.int32], free: NDArray[np.int64]) -> NDArray[np.bool_]:
    kept = np.ones(len(start) - 1, dtype=np.bool_)
    for g in range(len(kept)):
        for i in range(start[g], start[g + 1]):
            if free[switch[i]] < 1:
                kept[g] = False
        if kept[g]:
            for i in range(start[g], start[g + 1]):
                free[switch[i]] -= 1
    return kept


def first_overflow(found: Room) -> int | None:
    """How many groups, in order, fit before a switch has one too many; None where all fit. Exact."""
    takes = found.takes
    counts = np.diff(takes.indptr)
    over = np.flatnonzero(counts > found.free)
    if not len(over):
        return None
    sorted_ = takes.sorted_indices()
    return int(min(sorted_.indices[sorted_.indptr[row] + found.free[row]] for row in over))


def unicast_mbps(problem: Multicast) -> float:
    """Host traffic where every group goes by unicast: each copy is sent and received."""
    return float(2 * problem.rate_mbps @ problem.member_counts)


def saved_mbps(problem: Multicast) -> NDArray[np.float64]:
    """(G,) host traffic that entries of a group save: its source sends one copy, not one a member."""
    return problem.rate_mbps * (problem.member_counts - 1)


def model(problem: Multicast, partition: NDArray[np.int64], copies: int, *, edges: bool) -> LinearProgram:
    """The least host traffic over choices of groups, as a program: variable `hardware` by group."""
    found = room(problem, partition, copies, edges=edges)
    names = problem.groups["group"].tolist
    return LinearProgram.build(
        cost=-saved_mbps(problem),
        offset=unicast_mbps(problem),
        rows=[Rows("table", found.takes, upper=found.free.astype(float))],
        columns=[Columns("hardware", len(problem.groups), labels=names)],
        upper=1.0,
        integer=True,
        name="groups in hardware",
    )
