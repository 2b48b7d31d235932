"""Groups of next hops with whole weights, as switches store them: one entry for each unit of weight.

A switch splits traffic over a group by a hash into its entries, so that shares are multiples of one over the
number of entries, and the table has few. A reduced group sends some next hop more than its ideal share: the
largest factor of all next hops is the group's oversubscription.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from planner.search.tolerances import ROUNDING

MAX_GROUP_SIZE: Final = 4096


class ReducedGroup(NamedTuple):
    """Entries of each next hop, and the oversubscription: 1 where shares are ideal."""

    entries: tuple[int, ...]
    oversubscription: float

    @property
    def size(self) -> int:
        """Entries that a switch needs; a single next hop is no group and needs none."""
        total = sum(self.entries)
        return total if max(self.entries) < total else 0


class Group(NamedTuple):
    """Next hops of a switch, by the rows of their links, and the ideal share of each; shares add up to 1."""

    links: tuple[int, ...]
    shares: tuple[float, ...]


@lru_cache(maxsize=65_536)
def list_reductions(shares: tuple[float, ...], max_size: int) -> tuple[ReducedGroup, ...]:
    """Return the reductions of a group that are better than all with fewer entries, the smallest first.

    For a number of entries, the largest factor entries_i / (size * share_i) is least where each entry in turn
    goes to the next hop that has the smallest factor with it (the rule of D'Hondt): one more entry changes
    none of those before. So one pass finds the best group of each size.

    shares    of the next hops, above 0, adding up to 1
    max_size  largest number of entries, from 1
    """
    entries = [0] * len(shares)
    waiting = [(1 / share, index) for index, share in enumerate(shares)]
    heapq.heapify(waiting)
    reductions: list[ReducedGroup] = []
    largest = 0.0
    for size in range(1, max_size + 1):
        factor, index = heapq.heappop(waiting)
        entries[index] += 1
        heapq.heappush(waiting, ((entries[index] + 1) / shares[index], index))
        largest = max(largest, factor)
        oversubscription = max(1.0, largest / size)
        if not reductions or oversubscription < reductions[-1].oversubscription * (1 - ROUNDING):
            reductions.append(ReducedGroup(tuple(entries), oversubscription))
        if oversubscription <= 1 + ROUNDING:
            break
    return tuple(reductions)


def fit_groups(
    groups: Sequence[Group], *, max_size: int, table_entries: int | None = None
) -> list[ReducedGroup]:
    """Return the reduction of each group of a switch with the least largest oversubscription.

    The group with the largest one gets its next better reduction while the table has entries left. Where it
    has none, no other choice is better, but for groups that become equal, which a switch stores once. The
    others get what is left in the same way.

    max_size       largest number of entries of a group
    table_entries  largest number of entries of all groups together; None for no limit
    """
    reductions = [list_reductions(group.shares, max_size) for group in groups]
    if table_entries is None:
        return [options[-1] for options in reductions]
    level = [0] * len(groups)
    stored = Counter(
        (group.links, options[0].entries) for group, options in zip(groups, reductions, strict=True)
    )
    used = 0
    waiting = [(-options[0].oversubscription, row) for row, options in enumerate(reductions)]
    heapq.heapify(waiting)
    while waiting:
        _, row = heapq.heappop(waiting)
        options, links = reductions[row], groups[row].links
        if level[row] + 1 == len(options):
            continue
        present, better = options[level[row]], options[level[row] + 1]
        old_key, new_key = (links, present.entries), (links, better.entries)
        freed = present.size if stored[old_key] == 1 else 0
        added = better.size if stored[new_key] == 0 else 0
        if used - freed + added > table_entries:
            continue
        used += added - freed
        stored[old_key] -= 1
        stored[new_key] += 1
        level[row] += 1
        heapq.heappush(waiting, (-better.oversubscription, row))
    return [options[chosen_level] for options, chosen_level in zip(reductions, level, strict=True)]


def count_entries(groups: Sequence[tuple[tuple[int, ...], tuple[int, ...]]]) -> int:
    """Return the entries that a switch needs for groups, given the links and entries of each.

    Equal groups are stored once; single next hops are no groups.
    """
    return sum(ReducedGroup(entries, 1.0).size for _, entries in set(groups))
