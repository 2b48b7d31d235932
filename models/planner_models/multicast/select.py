"""Which groups get table entries: by arrival, or by what they save, with a proven bound."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numba import njit
from numpy.typing import NDArray

from planner.backends.linear import Columns, LinearProgram, Rows
from planner_models.multicast.addresses import Distribution
from planner_models.multicast.fabric import Wiring
from planner_models.multicast.problem import LAYERS, Multicast
from planner_models.multicast.workloads import Spread


@dataclass(frozen=True, kw_only=True, eq=False)
class Room:
    """What groups take: `takes` (switches, groups), of room `free` (switches,).

    Switches that hold the same partitions hold the same groups and are one row.
    """

    takes: sp.csr_array
    free: NDArray[np.int64]


def in_turn(problem: Multicast, copies: int) -> NDArray[np.int64]:
    """(G,) the partition of each group: one after the other, in the order of the groups."""
    return np.arange(len(problem.groups)) % problem.distribution(copies).partitions


def room(
    problem: Multicast, partition: NDArray[np.int64], copies: int, *, layers: Sequence[str] = LAYERS
) -> Room:
    """What each group takes of the switches of `layers`, with `copies` of each partition in a pod."""
    found = takes(
        problem.below,
        problem.spread.by_edge()[:2] if "edge" in layers else None,
        problem.wiring,
        problem.distribution(copies),
        partition,
        layers,
    )
    free = []
    for layer, (rows, row_of) in found.items():
        least = np.full(rows.shape[0], np.iinfo(np.int64).max)
        np.minimum.at(least, row_of, problem.free(layer))
        free.append(least)
    return Room(
        takes=sp.csr_array(sp.vstack([rows for rows, _ in found.values()])), free=np.concatenate(free)
    )


def takes(
    below: Spread,
    by_edge: tuple[NDArray[np.int64], NDArray[np.int32]] | None,
    wires: Wiring,
    held: Distribution,
    partition: NDArray[np.int64],
    layers: Sequence[str] = LAYERS,
) -> dict[str, tuple[sp.csr_array, NDArray[np.int64]]]:
    """By layer, (rows, groups) the entries that groups take, and the row of each of its switches.

    Switches that hold the same partitions hold the same groups and are one row.
    """
    pods_of = np.diff(below.start)
    group = np.repeat(np.arange(below.groups), pods_of)
    stored = (np.bitwise_count(below.ports) > 1) | (pods_of[group] > 1)
    at_core = np.flatnonzero(pods_of > 1)
    every: dict[str, tuple[NDArray[np.bool_], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]]
    every = {
        "core": (held.core, np.zeros(len(wires.cores), dtype=np.int64), at_core, np.zeros_like(at_core)),
        "aggregation": (
            held.aggregation,
            wires.aggregation_pod,
            group[stored],
            below.edge[stored].astype(np.int64),
        ),
    }
    found: dict[str, tuple[sp.csr_array, NDArray[np.int64]]] = {}
    for layer, (of_layer, place, who, where) in every.items():
        if layer not in layers:
            continue
        # switches of a place (a pod, or all cores) with the same partitions are one row
        alike, row = np.unique(np.column_stack([place, of_layer]), axis=0, return_inverse=True)
        holder, part = np.nonzero(alike[:, 1:])
        places = (int(place.max()) + 1) * held.partitions
        holds = sp.csr_array(
            (np.ones(len(holder)), (holder, alike[holder, 0] * held.partitions + part)),
            shape=(len(alike), places),
        )
        stores = sp.csr_array(
            (np.ones(len(who)), (where * held.partitions + partition[who], who)), shape=(places, below.groups)
        )
        found[layer] = sp.csr_array(holds @ stores), row.ravel()
    if "edge" in layers and by_edge is not None:
        start, at = by_edge
        rows = sp.csr_array((np.ones(len(at)), at, start), shape=(len(start) - 1, below.groups))
        found["edge"] = rows, np.arange(len(start) - 1)
    return found


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


def fit(found: Room) -> bool:
    """Whether every group fits everywhere."""
    return bool((np.diff(found.takes.indptr) <= found.free).all())


def model(problem: Multicast, found: Room) -> LinearProgram:
    """The least host traffic over choices of groups, as a program: variable `hardware` by group."""
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
