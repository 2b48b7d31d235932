"""Entries that groups need in the tables of switches, against the free entries there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from planner.arrays import Bools, Ints
from planner.compiled import njit, run_small_in_python
from planner_models.multicast.plan.plan import round_robin_partitions
from planner_models.multicast.problem.problem import LAYERS, Multicast
from planner_models.multicast.problem.topology import Distribution, Wiring
from planner_models.multicast.problem.workloads import Spread


@dataclass(frozen=True, kw_only=True, eq=False)
class TableLimits:
    """The table constraints: groups with an entry at a switch, at most its free entries.

    uses  (rows, groups) 1 where the group needs an entry
    free  (rows,) free entries
    name  (rows,) the switch with the fewest free entries

    Switches that hold the same partitions hold the same groups and are one row.
    """

    uses: sp.csr_array
    free: Ints
    name: pd.Index

    def describe_overflows(self, count: int = 5) -> list[str]:
        """Return the switches that cannot hold all groups, with the numbers, one line each."""
        needed = np.diff(self.uses.indptr)
        over = np.flatnonzero(needed > self.free)[:count]
        return [f"{self.name[i]} needs {needed[i]:,} entries, {self.free[i]:,} are free" for i in over]

    def without_free_entries(self) -> TableLimits:
        """Return the limits of switches without a free entry alone: entries cannot be shared there either."""
        rows = np.flatnonzero(self.free < 1)
        return TableLimits(uses=sp.csr_array(self.uses[rows]), free=self.free[rows], name=self.name[rows])

    def of_groups(self, groups: Bools) -> TableLimits:
        """Return the limits for these groups, (G,), alone."""
        return replace(self, uses=self.uses[:, np.flatnonzero(groups)])

    @property
    def can_hold_all(self) -> bool:
        """Return whether every table holds every group that needs an entry there."""
        return bool((np.diff(self.uses.indptr) <= self.free).all())


def build_limits(
    problem: Multicast, copies: int, *, partition: Ints | None = None, layers: Sequence[str] = LAYERS
) -> TableLimits:
    """Return the table constraints of the switches of `layers`, with `copies` of each partition in a pod.

    partition  (G,) partition of each group; default: in turn
    """
    by_layer = entries_by_layer(
        problem.below,
        problem.spread.by_edge()[:2] if "edge" in layers else None,
        problem.wiring,
        problem.distribution(copies),
        round_robin_partitions(problem, copies) if partition is None else partition,
        layers,
    )
    if not by_layer:
        nothing = np.zeros(0, dtype=np.int64)
        return TableLimits(
            uses=sp.csr_array((0, len(problem.groups))), free=nothing, name=problem.wiring.switches[nothing]
        )
    free, names = [], []
    for layer, (_, row_of) in by_layer.items():
        order = np.lexsort((problem.free(layer), row_of))
        smallest = order[np.unique(row_of[order], return_index=True)[1]]
        free.append(problem.free(layer)[smallest])
        names.append(problem.wiring.switches[problem.wiring.layers == layer][smallest])
    uses = sp.csr_array(sp.vstack([rows for rows, _ in by_layer.values()]))
    return TableLimits(uses=uses, free=np.concatenate(free), name=names[0].append(names[1:]))


def join_limits(first: TableLimits, second: TableLimits) -> TableLimits:
    """Return both limits."""
    return TableLimits(
        uses=sp.csr_array(sp.vstack([first.uses, second.uses])),
        free=np.concatenate([first.free, second.free]),
        name=first.name.append(second.name),
    )


def entries_by_layer(
    below: Spread,
    by_edge: tuple[Ints, NDArray[np.int32]] | None,
    wires: Wiring,
    held: Distribution,
    partition: Ints,
    layers: Sequence[str] = LAYERS,
) -> dict[str, tuple[sp.csr_array, Ints]]:
    """Return by layer the entries that groups need, (rows, groups), and the row of each of its switches.

    below      pods of each group
    by_edge    first group of each edge switch, and the groups; None without the edge layer
    partition  (groups,) partition of each group
    """
    pods_of = np.diff(below.start)
    group = np.repeat(np.arange(below.groups), pods_of)
    stored = (np.bitwise_count(below.ports) > 1) | (pods_of[group] > 1)
    at_core = np.flatnonzero(pods_of > 1)
    # partitions of each switch, its place (a pod, or all cores as one), and groups with their places
    upper: dict[str, tuple[Bools, Ints, Ints, Ints]] = {
        "core": (held.core, np.zeros(len(wires.cores), dtype=np.int64), at_core, np.zeros_like(at_core)),
        "aggregation": (
            held.aggregation,
            wires.aggregation_pod,
            group[stored],
            below.edge[stored].astype(np.int64),
        ),
    }
    by_layer: dict[str, tuple[sp.csr_array, Ints]] = {}
    for layer, (of_layer, position_key, groups, group_place) in upper.items():
        if layer not in layers or not len(position_key):  # two tiers have no cores
            continue
        distinct, row = np.unique(np.column_stack([position_key, of_layer]), axis=0, return_inverse=True)
        holder, held_partition = np.nonzero(distinct[:, 1:])
        width = (int(position_key.max()) + 1) * held.partitions
        holds = sp.csr_array(
            (np.ones(len(holder)), (holder, distinct[holder, 0] * held.partitions + held_partition)),
            shape=(len(distinct), width),
        )
        stores = sp.csr_array(
            (np.ones(len(groups)), (group_place * held.partitions + partition[groups], groups)),
            shape=(width, below.groups),
        )
        by_layer[layer] = sp.csr_array(holds @ stores), row.ravel()
    if "edge" in layers and by_edge is not None:
        start, entries_start = by_edge
        rows = sp.csr_array(
            (np.ones(len(entries_start)), entries_start, start), shape=(len(start) - 1, below.groups)
        )
        by_layer["edge"] = rows, np.arange(len(start) - 1)
    return by_layer


def admit_in_order(limits: TableLimits, *, order: Ints | None = None) -> Bools:
    """Return whether each group gets its entries, (G,): where all its switches have one free.

    order  the groups, first come, first served; default: as they are
    """
    uses = limits.uses.tocsc()
    order = np.arange(uses.shape[1]) if order is None else order
    return np.asarray(_admit(uses.indptr, uses.indices, limits.free.copy(), order), dtype=bool)


@run_small_in_python(max_elements=20_000)
@njit(cache=True)
def _admit(start: NDArray[np.int32], switch: NDArray[np.int32], free: Ints, order: Ints) -> Bools:
    """Admit group after group, and lower the free entries of its switches."""
    admitted = np.ones(len(start) - 1, dtype=np.bool_)
    for g in order:
        for i in range(start[g], start[g + 1]):
            if free[switch[i]] < 1:
                admitted[g] = False
        if admitted[g]:
            for i in range(start[g], start[g + 1]):
                free[switch[i]] -= 1
    return admitted


def first_overflow(limits: TableLimits) -> int | None:
    """Return the number of groups, in order, that fit before a table overflows; None where all fit. Exact."""
    over = np.flatnonzero(np.diff(limits.uses.indptr) > limits.free)
    if not len(over):
        return None
    rows = limits.uses.sorted_indices()
    return int(min(rows.indices[rows.indptr[row] + limits.free[row]] for row in over))
