"""Entries of given masks that serve all headers, by a greedy set cover, and masks merged into few."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from planner.arrays import Floats, Ints, Ints32
from planner.compiled import inner, kernel, run_small_in_python
from planner_models.flowtables.plan.bit_index import BLOCK, keeps_action
from planner_models.flowtables.problem.fields import Words
from planner_models.flowtables.problem.problem import FlowTables


class Headers(NamedTuple):
    """Headers that differ in a bit that rules match, with the connections that have each.

    words   (n, words) the matched bits of the header
    weight  (n,) connections
    """

    words: Words
    weight: Floats


def group_headers(problem: FlowTables) -> Headers:
    """Return the headers that rules can tell apart, in order of their first connection."""
    masked = problem.headers & problem.used_mask
    unique, first, count = np.unique(masked, axis=0, return_index=True, return_counts=True)
    order = np.argsort(first, kind="stable")
    return Headers(words=np.ascontiguousarray(unique[order]), weight=count[order].astype(float))


@inner
def make_slots(count: Any) -> Any:
    """Return scratch of a hash table for some headers: slots, and a stamp of each."""
    size = 8
    while size < 2 * count:
        size *= 2
    return np.zeros(size, np.int64), np.full(size, -1, np.int64)


@inner
def number_entries(
    words: Any, rows: Any, mask: Any, slots: Any, stamp: Any, generation: Any, number: Any
) -> Any:
    """Return the number of different headers of some rows under a mask; `number` (rows,) names each one's.

    slots, stamp  scratch of a hash table, at least twice as long as the rows; `generation` must be new
    """
    last = np.int64(len(slots) - 1)
    count = 0
    for k in range(len(rows)):
        h = rows[k]
        key = np.uint64(0x9E3779B97F4A7C15)
        for w in range(words.shape[1]):
            key = (key ^ (words[h, w] & mask[w])) * np.uint64(0xBF58476D1CE4E5B9)
            key ^= key >> np.uint64(29)
        slot = np.int64(key >> np.uint64(7)) & last
        while True:
            if stamp[slot] != generation:
                stamp[slot] = generation
                slots[slot] = k
                number[k] = count
                count += 1
                break
            other = rows[slots[slot]]
            same = True
            for w in range(words.shape[1]):
                if (words[h, w] ^ words[other, w]) & mask[w]:
                    same = False
                    break
            if same:
                number[k] = number[slots[slot]]
                break
            slot = (slot + 1) & last
    return count


class Members(NamedTuple):
    """Headers that the entries of one mask may serve, entry by entry.

    rows   (k,) headers whose action the mask keeps
    start  (e + 1,) first of them of each entry
    """

    rows: Ints32
    start: Ints32


@run_small_in_python(max_elements=1_000)
@kernel
def find_members(words: Any, mask: Any, verdicts: Any, rules: Any, index: Any) -> Any:
    """Return the headers (n, words) with an action that a mask keeps, by entry, and the first of each entry.

    Headers that agree on the mask have the same verdict, so that one of them is tested.

    verdicts  (n,) 1 where the mask is known to keep a header's action, 0 where it does not, -1 for unknown
    """
    count = len(words)
    slots, stamp = make_slots(count)
    number = np.zeros(count, np.int64)
    made = number_entries(words, np.arange(count), mask, slots, stamp, 0, number)
    scratch = np.zeros(BLOCK, np.uint64)
    verdict = np.full(made, -1, np.int64)
    size = np.zeros(made, np.int32)
    for h in range(count):
        size[number[h]] += 1
        if verdicts[h] >= 0:
            verdict[number[h]] = verdicts[h]
    for h in range(count):
        if verdict[number[h]] < 0:
            verdict[number[h]] = np.int64(keeps_action(words[h], mask, index, rules, scratch))
    next_slot = np.zeros(made, np.int32)
    start = np.zeros(made + 1, np.int32)
    entries, total = 0, 0
    for e in range(made):
        if verdict[e] > 0:
            next_slot[e] = total
            total += size[e]
            entries += 1
            start[entries] = total
    members = np.zeros(total, np.int32)
    for h in range(count):
        e = number[h]
        if verdict[e] > 0:
            members[next_slot[e]] = h
            next_slot[e] += 1
    return members, start[: entries + 1].copy()


@run_small_in_python(max_elements=5_000)
@kernel
def cover(rows: Any, start: Any, mask_of: Any, weight: Any, sets: Any) -> Any:
    """Return a mask for each header, (n,), so that few entries serve all; -1 where no mask is valid.

    Greedy set cover: the entry with the most headers not yet served is next. Entries wait in lists by their
    headers; one whose headers were served by others since moves to its list.

    rows, start  headers of all entries, and the first of each entry; see `Members`
    mask_of      (entries,) mask of each; `sets` is the number of masks
    weight       (n,) of the headers
    returns      also the entries and the weight of the headers of each mask, (sets,)
    """
    entries = len(mask_of)
    largest = 0
    for e in range(entries):
        largest = max(largest, start[e + 1] - start[e])
    first, following = np.full(largest + 1, -1, np.int64), np.full(entries, -1, np.int64)
    for e in range(entries - 1, -1, -1):
        following[e] = first[start[e + 1] - start[e]]
        first[start[e + 1] - start[e]] = e
    mask_of_header = np.full(len(weight), -1, np.int64)
    hits, taken = np.zeros(sets), np.zeros(sets, np.int64)
    for level in range(largest, 0, -1):
        while first[level] >= 0:
            e = first[level]
            first[level] = following[e]
            uncovered = 0
            for k in range(start[e], start[e + 1]):
                uncovered += mask_of_header[rows[k]] < 0
            if uncovered < level:
                following[e] = first[uncovered]
                first[uncovered] = e
                continue
            taken[mask_of[e]] += 1
            for k in range(start[e], start[e + 1]):
                if mask_of_header[rows[k]] < 0:
                    mask_of_header[rows[k]] = mask_of[e]
                    hits[mask_of[e]] += weight[rows[k]]
    return mask_of_header, taken, hits


@inner
def count_differing(mask: Any, other: Any) -> Any:
    """Return the number of bits in which two masks differ."""
    apart = 0
    for w in range(len(mask)):
        x = mask[w] ^ other[w]
        while x:
            x &= x - np.uint64(1)
            apart += 1
    return apart


@run_small_in_python(max_elements=1_000)
@kernel
def merge_masks(words: Any, masks: Any, mask_of: Any, most_tried: Any) -> Any:  # noqa: C901
    """Merge masks two by two into their unions, down to one; return the two of each step and its entries.

    A union is valid wherever one of its parts is. The mask with the fewest headers is merged into the one
    with which the entries grow least, among the `most_tried` that are nearest in bits.

    returns  merged, into (m - 1,) masks by number, entries (m,) after each step, from none on
    """
    slots, stamp = make_slots(len(words))
    number, generation = np.zeros(len(words), np.int64), 0
    sets = len(masks)
    union, mask_of = masks.copy(), mask_of.copy()
    headers, sizes = np.zeros(sets, np.int64), np.zeros(sets, np.int64)
    for m in range(sets):
        rows = np.flatnonzero(mask_of == m)
        headers[m] = len(rows)
        sizes[m] = number_entries(words, rows, union[m], slots, stamp, generation, number)
        generation += 1
    is_there = np.ones(sets, np.bool_)
    merged, into = np.zeros(sets - 1, np.int64), np.zeros(sets - 1, np.int64)
    entries = np.zeros(sets, np.int64)
    entries[0] = sizes.sum()
    distance = np.zeros(sets)
    both = np.zeros(words.shape[1], np.uint64)
    for step in range(sets - 1):
        smallest = -1
        for m in range(sets):
            if is_there[m] and (smallest < 0 or headers[m] < headers[smallest]):
                smallest = m
        for m in range(sets):
            distance[m] = np.inf
            if is_there[m] and m != smallest:
                distance[m] = count_differing(union[m], union[smallest])
        best, growth, best_count = -1, np.inf, 0
        for m in np.argsort(distance, kind="mergesort")[:most_tried]:  # stable, also compiled
            if not np.isfinite(distance[m]):
                break
            for w in range(words.shape[1]):
                both[w] = union[m, w] | union[smallest, w]
            rows = np.flatnonzero((mask_of == m) | (mask_of == smallest))
            made = number_entries(words, rows, both, slots, stamp, generation, number)
            generation += 1
            if made - sizes[m] - sizes[smallest] < growth:
                best, growth, best_count = m, made - sizes[m] - sizes[smallest], made
        for h in range(len(words)):
            if mask_of[h] == smallest:
                mask_of[h] = best
        for w in range(words.shape[1]):
            union[best, w] |= union[smallest, w]
        headers[best] += headers[smallest]
        sizes[best] = best_count
        is_there[smallest] = False
        merged[step], into[step] = smallest, best
        entries[step + 1] = entries[step] + np.int64(growth)
    return merged, into, entries


def use_masks(masks: Words, mask_of: Ints) -> tuple[Words, Ints32]:
    """Return the masks that headers use, and the place of each header's mask among them."""
    used, inverse = np.unique(mask_of, return_inverse=True)
    return masks[used], inverse.reshape(-1).astype(np.int32)
