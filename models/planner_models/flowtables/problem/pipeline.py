"""Entries of a pipeline of tables that every packet passes, and which tables to merge into one.

Each table adds its own action to a packet's, as with `resubmit` of Open vSwitch and modules of Frenetic in
parallel. One table in place of several has an entry for each joint cube of their entries that is not empty.
Cubes that meet in pairs meet all together, so the joint cubes are the cliques of compatible entries, one of
each table; they are counted without being listed (`count_joint_cubes`).

Pfaff et al. 2015, 3.3 (the cross-product problem); Foster et al. 2013, III.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from planner.arrays import Ints
from planner_models.flowtables.problem.fields import Words

CHUNK: Final = 2_000_000  # pairs of cubes compared at once


class Stage(NamedTuple):
    """The entries of one table, with the entry of packets that no rule matches.

    value  (N, words) value, 0 outside of the mask
    mask   (N, words)
    """

    value: Words
    mask: Words


@dataclass(frozen=True, kw_only=True)
class Merging:
    """Tables of a pipeline merged into groups of neighbours.

    groups   first and last table of each group
    entries  of each group
    """

    groups: tuple[tuple[int, int], ...]
    entries: tuple[int, ...]

    @property
    def lookups(self) -> int:
        """The tables that each packet is looked up in."""
        return len(self.groups)


def make_stage(value: Words, mask: Words) -> Stage:
    """Return the table of some entries (N, words), with one for all other packets where there is none."""
    if len(mask) and not mask.any(axis=1).all():
        return Stage(value, mask)
    catch_all = np.zeros((1, mask.shape[1]), dtype=np.uint64)
    return Stage(np.concatenate([value, catch_all]), np.concatenate([mask, catch_all]))


def count_joint_cubes(stages: Sequence[Stage], *, limit: int | None = None) -> int | None:
    """Return the entries of one table in place of some; None where there are more than `limit`.

    Partial joint cubes that agree on the bits of later tables are counted together: tables on different
    fields cost the sum of their entries, not the product.
    """
    words = stages[0].mask.shape[1]
    value, mask = np.zeros((1, words), dtype=np.uint64), np.zeros((1, words), dtype=np.uint64)
    times: Ints = np.ones(1, dtype=np.int64)
    for index, stage in enumerate(stages):
        later = np.zeros(words, dtype=np.uint64)
        for following in stages[index + 1 :]:
            later |= np.bitwise_or.reduce(following.mask, axis=0)
        value, mask, times = _join(value, mask, times, stage, later)
        # each table has an entry that meets every cube, so that later tables lower no count
        if limit is not None and int(times.sum()) > limit:
            return None
    return int(times.sum())


def _join(value: Words, mask: Words, times: Ints, stage: Stage, later: Words) -> tuple[Words, Words, Ints]:
    """Return the joint cubes with one table more, on the bits `later` (words,), and the number of each."""
    words = mask.shape[1]
    added = np.concatenate([stage.value & later, stage.mask & later], axis=1)
    blocks = []
    rows = max(1, CHUNK // len(stage.mask))
    for start in range(0, len(mask), rows):
        rows_of = slice(start, start + rows)
        differs = np.zeros((len(mask[rows_of]), len(stage.mask)), dtype=bool)
        for w in range(words):
            either = mask[rows_of, None, w] & stage.mask[None, :, w]
            differs |= ((value[rows_of, None, w] ^ stage.value[None, :, w]) & either) != 0
        first, second = np.nonzero(~differs)
        carried_bits = np.concatenate([value[rows_of] & later, mask[rows_of] & later], axis=1)
        joint = carried_bits[first] | added[second]
        blocks.append(_collapse(joint, times[rows_of][first]))
    joint, counts = _collapse(*(np.concatenate(column) for column in zip(*blocks, strict=True)))
    return joint[:, :words], joint[:, words:], counts


def _collapse(cubes: Words, times: Ints) -> tuple[Words, Ints]:
    """Return the different rows (k, 2 words) of cubes, and the sum of their counts."""
    different, inverse = np.unique(cubes, axis=0, return_inverse=True)
    totals = np.zeros(len(different), dtype=np.int64)
    np.add.at(totals, inverse.reshape(-1), times)
    return different, totals


def merge_tables(stages: Sequence[Stage], *, memory: int | None = None) -> list[Merging]:
    """Return for each number of lookups of a packet the groups of neighbours with the fewest entries.

    The fewest lookups come first. Numbers of lookups whose entries together exceed `memory` are left out.
    """

    def count_entries(first: int, last: int) -> int | None:
        return count_joint_cubes(stages[first : last + 1], limit=memory)

    return choose_groups(len(stages), count_entries, memory=memory)


def _count_entries_of_groups(
    count: int, count_entries: Callable[[int, int], int | None]
) -> dict[tuple[int, int], int]:
    """Return the entries of each group of neighbours that has not too many, by its first and last table."""
    size: dict[tuple[int, int], int] = {}
    for first in range(count):
        for last in range(first, count):
            entries = count_entries(first, last)
            if entries is None:
                break
            size[first, last] = entries
    return size


def choose_groups(
    count: int, count_entries: Callable[[int, int], int | None], *, memory: int | None = None
) -> list[Merging]:
    """Return for each number of groups the groups of neighbours among `count` tables with the fewest entries.

    A dynamic program over the end of the last group.

    count_entries  returns the entries of the tables from a first to a last one in one table; None: too many
    """
    size = _count_entries_of_groups(count, count_entries)
    best: dict[int, Merging] = {0: Merging(groups=(), entries=())}  # by the end of the last group
    groups = []
    for _ in range(count):
        following: dict[int, Merging] = {}
        for end, merging in best.items():
            for last in range(end, count):
                if (end, last) not in size:
                    break
                sizes = (*merging.entries, size[end, last])
                if last + 1 not in following or sum(sizes) < sum(following[last + 1].entries):
                    following[last + 1] = Merging(groups=(*merging.groups, (end, last)), entries=sizes)
        best = following
        if count in best and (memory is None or sum(best[count].entries) <= memory):
            groups.append(best[count])
    return groups
