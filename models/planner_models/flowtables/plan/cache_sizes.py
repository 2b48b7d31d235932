"""Misses of a cache that replaces the least recently used entry, for every size at once.

The stack distance of a reference is the number of different entries referenced since the last one to the same
entry, itself included. A cache of F entries holds the entry where its distance is at most F, so one pass over
the references gives the misses of all sizes (Mattson et al. 1970).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from planner.arrays import Floats, Ints
from planner.compiled import inner, kernel, run_small_in_python
from planner_models.flowtables.plan.metrics import find_punts
from planner_models.flowtables.plan.plan import Cache, read_plan
from planner_models.flowtables.problem.problem import FlowTables


class SizeCurve(NamedTuple):
    """Misses and CPU time of caches of 0 to E entries, each (E + 1,).

    misses         connections that go to userspace
    connection_us  CPU time of a connection for lookups and misses, mean
    revalidate_us  CPU time to check the entries again, for each connection
    """

    misses: Ints
    connection_us: Floats
    revalidate_us: Floats

    @property
    def best(self) -> int:
        """The size with the least CPU time, the smallest of several."""
        return int(np.argmin(self.connection_us + self.revalidate_us))


def find_size_curve(problem: FlowTables, plan: Cache, *, connections_per_s: float) -> SizeCurve:
    """Return misses and CPU time by the size of a cache with the entries of a plan.

    Each miss installs the plan's entry for the connection, in place of the least recently used one.
    Lookups take as many masks as in the plan at every size. Entries are checked again once in each period
    `costs.revalidate_s`.

    connections_per_s  rate of new connections, which share the time of these checks
    """
    content, service = read_plan(problem, plan)
    misses = count_misses(service.entry, len(content.value))
    is_hit = service.entry >= 0
    lookups_us = problem.probe_us * float(service.searched[is_hit].sum())
    punts_us = problem.cost("upcall_us") * float(find_punts(problem).sum())
    miss_us = problem.cost("upcall_us") + problem.probe_us * len(content.masks)
    sizes = np.arange(len(misses), dtype=np.float64)
    each_us = problem.cost("revalidate_us") / (problem.cost("revalidate_s") * connections_per_s)
    return SizeCurve(
        misses=misses,
        connection_us=(lookups_us + punts_us + misses * miss_us) / len(is_hit),
        revalidate_us=np.asarray(sizes * each_us, dtype=np.float64),
    )


def count_misses(entry: Ints, entries: int) -> Ints:
    """Return the misses of caches of 0 to `entries` entries, shape (entries + 1,).

    entry  (n,) entry of each reference, in order; -1 for none, which is a miss at every size
    """
    hits = np.asarray(count_distances(np.ascontiguousarray(entry, dtype=np.int64), entries))
    misses: Ints = len(entry) - np.cumsum(np.concatenate([[0], hits[1:]]))
    return misses


@run_small_in_python(max_elements=1_000)
@kernel
def count_distances(entry: Any, entries: Any) -> Any:
    """Return the number of references by stack distance, (entries + 1,); at 0 the first ones of entries.

    A Fenwick tree counts the entries by the place of their last reference; places are numbered again when
    they are used up, so that the tree is no longer than twice the entries.
    """
    tree = np.zeros(2 * entries + 2, np.int64)
    last = np.zeros(entries, np.int64)  # place of the last reference, from 1; 0 before the first
    hits = np.zeros(entries + 1, np.int64)
    time, live = 0, 0
    for r in range(len(entry)):
        e = entry[r]
        if e < 0:
            continue
        if time == len(tree) - 1:
            time = number_again(tree, last)
        time += 1
        if last[e] > 0:
            hits[live - count_before(tree, last[e])] += 1
            add(tree, last[e], -1)
        else:
            live += 1
            hits[0] += 1
        last[e] = time
        add(tree, time, 1)
    return hits


@inner
def add(tree: Any, place: Any, amount: Any) -> Any:
    """Add to the count at a place of a Fenwick tree."""
    while place < len(tree):
        tree[place] += amount
        place += place & -place


@inner
def count_before(tree: Any, position: Any) -> Any:
    """Return the count at all places before one."""
    count, i = 0, position - 1
    while i > 0:
        count += tree[i]
        i -= i & -i
    return count


@inner
def number_again(tree: Any, last: Any) -> Any:
    """Number the last references from 1 in their order, build the tree anew, and return their count."""
    owner = np.full(len(tree), -1, np.int64)
    for e in range(len(last)):
        if last[e] > 0:
            owner[last[e]] = e
    position = 0
    tree[:] = 0
    for i in range(1, len(tree)):
        if owner[i] >= 0:
            position += 1
            last[owner[i]] = position
            add(tree, position, 1)
    return position
