"""Steps from the replicas in place to those of a plan: copies before drops, closure in each.

Copies come first, of a group after those that it depends on; then users move to the plan's replicas; then the
others are dropped, of a group before those that it depends on. So a replica never lacks one of a group that
it depends on, if that holds before and after, and no group has fewer replicas than before or after. Groups
that depend on each other in a circle are copied in one step.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from planner.arrays import Bools, Ints
from planner_models.geostore.problem.problem import Geostore

COPY = "copy"
DROP = "drop"


@dataclass(frozen=True, kw_only=True)
class Change:
    """A replica that is copied or dropped; changes of the same step may be made at once.

    source  region that it is copied from, by row; -1 where no replica is in place, and for drops
    """

    step: int
    change: str
    group: int
    region: int
    source: int
    gb: float


def dependency_levels(problem: Geostore) -> Ints:
    """Return the largest number of groups that each group depends on, one after another, (G,).

    Groups of a circle have the same level.
    """
    child, parent = problem.causal_edges
    count = len(problem.groups)
    graph = sp.csr_array((np.ones(len(child)), (child, parent)), shape=(count, count))
    number, circle = connected_components(graph, directed=True, connection="strong")
    child, parent = circle[child], circle[parent]
    is_outer = child != parent
    child, parent = child[is_outer], parent[is_outer]
    level = np.zeros(number, dtype=np.int64)
    while (level[child] <= level[parent]).any():
        np.maximum.at(level, child, level[parent] + 1)
    return np.asarray(level[circle])


def order_changes(problem: Geostore, before: Bools, after: Bools) -> list[Change]:
    """Return the changes from some replicas, (G, N), to others, in the order of their steps, from 1.

    A copy comes from the replica before that sends it at the least price, the nearest of several.
    """
    level = dependency_levels(problem)
    gb = problem.groups["size_gb"].to_numpy(float)
    rank = np.unique(level[np.nonzero(after & ~before)[0]])
    changes = []
    for group, region in np.argwhere(after & ~before).tolist():
        step = int(np.searchsorted(rank, level[group])) + 1
        source = _cheapest_source(problem, before[group], region)
        changes.append(
            Change(step=step, change=COPY, group=group, region=region, source=source, gb=float(gb[group]))
        )
    dropped = np.unique(level[np.nonzero(before & ~after)[0]])[::-1]
    for group, region in np.argwhere(before & ~after).tolist():
        step = len(rank) + int(np.flatnonzero(dropped == level[group])[0]) + 1
        changes.append(
            Change(step=step, change=DROP, group=group, region=region, source=-1, gb=float(gb[group]))
        )
    return sorted(changes, key=lambda item: item.step)


def _cheapest_source(problem: Geostore, held: Bools, region: int) -> int:
    """Return the replica that sends a copy at the least price; -1 without one."""
    rows = np.flatnonzero(held)
    if not len(rows):
        return -1
    order = np.lexsort((problem.rtt_ms[rows, region], problem.usd_per_gb[rows, region]))
    return int(rows[order[0]])


def peak_gb(problem: Geostore, before: Bools, after: Bools) -> float:
    """Return the data that regions hold at most during the change, GB: all replicas of before and after."""
    return float(problem.groups["size_gb"].to_numpy(float) @ (before | after).sum(axis=1))
