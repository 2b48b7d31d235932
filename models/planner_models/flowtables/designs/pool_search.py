"""Search of pools of masks for the headers of a trace: costs, merging, and local search over pools."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from planner.arrays import Floats, Ints
from planner.search.deadline import NEVER, Deadline
from planner_models.flowtables.designs.cover import (
    Headers,
    Members,
    cover,
    find_members,
    merge_masks,
    use_masks,
)
from planner_models.flowtables.plan.bit_index import make_bit_index
from planner_models.flowtables.plan.lookup import Table, insert_all, make_table
from planner_models.flowtables.plan.plan import Cache, read_content
from planner_models.flowtables.problem.fields import Layout, Words
from planner_models.flowtables.problem.problem import FlowTables

MOVES: Final = ("drop", "union", "common", "wanted", "bit", "field")
MOVE_SHARES: Final = (0.18, 0.05, 0.12, 0.15, 0.1, 0.4)
TWO_FIELDS: Final = 0.3  # share of changes of a field that are followed by another one
NEAR: Final = 4  # bits that a prefix changes by at most, where by few
MOST_TRIED: Final = 12  # masks that one is tried to merge into
MOST_KEPT: Final = 8_000_000  # headers of masks that are kept


def count_bits(masks: Words) -> np.ndarray:
    """Return the ones of each mask (n, words), (n,)."""
    return np.asarray(np.bitwise_count(masks).sum(axis=1).astype(np.int64))


def _make_prefixes(layout: Layout, name: str, bits: int) -> Words:
    """Return the masks of the first 0, 1, ... bits of a field, (bits + 1, words)."""
    full = (1 << bits) - 1
    return layout.to_words([(full ^ (full >> length)) << layout.shift[name] for length in range(bits + 1)])


class Choice(NamedTuple):
    """Mask of each header, (n,), -1 for none; the entries and the connections of each mask, (m,)."""

    mask: Ints
    entries: Ints
    hits: Floats


class PoolSearch:
    """Costs of sets of masks for the headers of a problem."""

    def __init__(self, problem: FlowTables, headers: Headers, in_use: Words | None = None) -> None:
        """Keep a problem and its headers.

        in_use  (m, words) masks of which the cache has entries, which each miss looks into, too
        """
        self.problem, self.headers = problem, headers
        self._in_use = set() if in_use is None else {mask.tobytes() for mask in in_use}
        self._index = make_bit_index(problem)
        self._most_kept = max(MOST_KEPT // max(len(headers.words), 1), 1)
        layout = problem.layout
        self._prefixes = {
            field.name: _make_prefixes(layout, field.name, field.bits) for field in layout.fields
        }
        every = np.vstack([np.diff(prefixes, axis=0) for prefixes in self._prefixes.values()])
        self._bits = every[(every & problem.used_mask).any(axis=1)]
        self._members: dict[bytes, Members] = {}

    def list_tried(self) -> list[Words]:
        """Return the masks with stored headers, the last one that was tried last."""
        return [np.frombuffer(key, dtype=np.uint64) for key in self._members]

    def find_members(self, mask: Words) -> Members:
        """Return the headers with an action that a mask keeps, by entry; caches those of the last masks."""
        key = mask.tobytes()
        members = self._members.pop(key, None)
        if members is None:
            verdicts = self._find_known(mask)
            members = Members(
                *find_members(self.headers.words, mask, verdicts, self.problem.entries, self._index)
            )
            if len(self._members) >= self._most_kept:
                del self._members[next(iter(self._members))]
        self._members[key] = members
        return members

    def _find_known(self, mask: Words) -> np.ndarray:
        """Return whether a mask keeps each header's action, (n,), where others tell: 1 or 0; -1 for unknown.

        A mask keeps the action wherever one with fewer bits does.
        """
        verdicts = np.full(len(self.headers.words), -1, dtype=np.int8)
        if not self._members:
            return verdicts
        masks = np.frombuffer(b"".join(self._members), dtype=mask.dtype).reshape(-1, len(mask))
        is_over = np.asarray((masks & ~mask).any(axis=1))
        is_under = np.asarray((mask & ~masks).any(axis=1))
        for row, members in enumerate(self._members.values()):
            if not is_over[row]:
                verdicts[members.rows] = 1
            elif not is_under[row]:
                is_kept = np.zeros(len(verdicts), dtype=bool)
                is_kept[members.rows] = True
                verdicts[~is_kept] = 0
        return verdicts

    def choose(self, masks: Words) -> Choice:
        """Return a mask for each header, with few entries."""
        of_mask = [self.find_members(mask) for mask in masks]
        first = np.cumsum([0, *(len(members.rows) for members in of_mask)])
        start = [members.start[1:] + begin for members, begin in zip(of_mask, first, strict=False)]
        mask_of, entries, hits = cover(
            np.concatenate([members.rows for members in of_mask]),
            np.concatenate([[0], *start]).astype(np.int64),
            np.repeat(np.arange(len(masks)), [len(members.start) - 1 for members in of_mask]),
            self.headers.weight,
            len(masks),
        )
        return Choice(mask_of, entries, hits)

    def cost(self, masks: Words, choice: Choice) -> float:
        """Return the CPU time of all connections by the mask of each header, us; inf where one has none."""
        if (choice.mask < 0).any():
            return np.inf
        cost = self._add_up(int(choice.entries.sum()), choice.hits)
        if self._in_use:
            unused = self._in_use.difference(mask.tobytes() for mask in masks[choice.hits > 0])
            cost += self.problem.probe_us * len(unused) * int(choice.entries.sum())
        return cost

    def cost_of_masks(self, masks: Words) -> float:
        """Return the CPU time of all connections, each with its best mask, us; inf where one has none."""
        return self.cost(masks, self.choose(masks))

    def _add_up(self, entries: int, hits: np.ndarray) -> float:
        """Return the CPU time of some entries, with masks in the order of their hits, us."""
        hits = np.sort(hits[hits > 0])[::-1]
        probes = float((hits * np.arange(1, len(hits) + 1)).sum())
        miss_us = self.problem.cost("upcall_us") + self.problem.probe_us * len(hits)
        return self.problem.probe_us * probes + miss_us * entries

    def take_masks(self, plan: Cache) -> Words:
        """Return the masks of a plan on the bits that rules match now, and one of all these bits."""
        masks = read_content(self.problem, plan).masks & self.problem.used_mask
        return np.ascontiguousarray(np.unique(np.vstack([masks, self.problem.used_mask]), axis=0))

    def merge(self, minimal: Words) -> Words:
        """Return the masks at the cheapest step of merging; `minimal` has a mask for each header."""
        masks, mask_of = np.unique(minimal, axis=0, return_inverse=True)
        masks, mask_of = np.ascontiguousarray(masks), mask_of.reshape(-1).astype(np.int64)
        merged, into, entries = merge_masks(self.headers.words, masks, mask_of, MOST_TRIED)
        hits = np.bincount(mask_of, weights=self.headers.weight, minlength=len(masks))
        best, lowest = 0, self._add_up(int(entries[0]), hits)
        for step in range(len(merged)):
            hits[into[step]] += hits[merged[step]]
            hits[merged[step]] = 0
            cost = self._add_up(int(entries[step + 1]), hits)
            if cost < lowest:
                best, lowest = step + 1, cost
        union, is_there = masks.copy(), np.ones(len(masks), dtype=bool)
        for step in range(best):
            union[into[step]] |= union[merged[step]]
            is_there[merged[step]] = False
        return np.ascontiguousarray(np.unique(union[is_there], axis=0))

    def improve(
        self,
        masks: Words,
        minimal: Words,
        trials: int,
        random: np.random.Generator,
        deadline: Deadline = NEVER,
    ) -> Words:
        """Return masks of no more cost: masks dropped, changed or added.

        minimal  a mask for each header, of which some are added
        deadline  at which the search ends
        """
        cost, known = self.cost_of_masks(masks), {masks.tobytes()}
        for _ in range(trials):
            if deadline.is_over:
                break
            tried = self._change(masks, minimal, random)
            key = tried.tobytes()
            if key in known:  # it did not cost less than what has been found since
                continue
            known.add(key)
            choice = self.choose(tried)
            new = self.cost(tried, choice)
            if new < cost:
                masks, cost = np.ascontiguousarray(tried[choice.hits > 0]), new
        return masks

    def _change(self, masks: Words, minimal: Words, random: np.random.Generator) -> Words:
        """Return masks with one dropped, or one changed, in its place or beside it."""
        row, other = random.integers(len(masks), size=2).tolist()
        kind = random.choice(MOVES, p=MOVE_SHARES)
        if kind == "drop" and len(masks) > 1:
            return np.delete(masks, row, axis=0)
        if kind == "union":
            changed = masks[row] | masks[other]
        elif kind == "common":
            changed = masks[row] & masks[other]
        elif kind == "wanted":
            changed = minimal[int(random.integers(len(minimal)))]
        elif kind == "bit" and len(self._bits):
            changed = masks[row] ^ self._bits[int(random.integers(len(self._bits)))]
        else:
            changed = self._change_field(masks[row], random)
            if random.random() < TWO_FIELDS:
                changed = self._change_field(changed, random)
        others = np.delete(masks, row, axis=0) if random.random() < 0.5 else masks
        return np.ascontiguousarray(np.unique(np.vstack([others, changed[None, :]]), axis=0))

    def _change_field(self, mask: Words, random: np.random.Generator) -> Words:
        """Return a mask with another prefix in a field, half of the time of nearly as many bits."""
        field = self.problem.layout.fields[int(random.integers(len(self.problem.layout.fields)))]
        prefixes = self._prefixes[field.name]
        length = int(random.integers(field.bits + 1))
        if random.random() < 0.5:
            now = int(np.bitwise_count(mask & prefixes[-1]).sum())
            length = min(max(now + int(random.integers(-NEAR, NEAR + 1)), 0), field.bits)
        return np.asarray((mask & ~prefixes[-1]) | (prefixes[length] & self.problem.used_mask))

    def make_table(self, masks: Words) -> Table:
        """Return the entries of masks for all headers."""
        used, mask_of = use_masks(masks, self.choose(masks).mask)
        table = make_table(used.shape[1], len(mask_of), len(used))
        table.masks[: len(used)] = used
        table.counts[1] = len(used)
        insert_all(table, self.headers.words, mask_of)
        return table
