"""Compiled lookup of headers in cache entries: one hash table for all masks, searched mask by mask."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from planner.arrays import Floats, Ints, Ints32
from planner.compiled import inner, kernel, run_small_in_python
from planner_models.flowtables.plan.bit_index import BLOCK, keeps_action
from planner_models.flowtables.problem.fields import Words

MOST_ROUNDS = 50  # of ordering masks by their hits


class Table(NamedTuple):
    """Entries of a cache, and their positions in a hash table; arrays may be longer than the used part.

    counts   (2,) number of entries and of masks
    value    (n, words) value of each entry, 0 outside of its mask
    mask_of  (n,) mask of each entry
    masks    (m, words)
    order    (m,) masks in the order of the search
    hits     (m,) headers that each mask served so far
    weight   (m,) of each mask; the least of those that keep a header's action is taken first
    slots    (s,) entry in each place, -1 for none; s is a power of two and at least 2 n
    """

    counts: Ints
    value: Words
    mask_of: Ints32
    masks: Words
    order: Ints32
    hits: Ints
    weight: Floats
    slots: Ints32


def make_table(words: int, most_entries: int, most_masks: int) -> Table:
    """Return an empty table."""
    size = 1 << max(3, int(2 * most_entries - 1).bit_length())
    return Table(
        counts=np.zeros(2, np.int64),
        value=np.zeros((most_entries, words), np.uint64),
        mask_of=np.zeros(most_entries, np.int32),
        masks=np.zeros((most_masks, words), np.uint64),
        order=np.arange(most_masks, dtype=np.int32),
        hits=np.zeros(most_masks, np.int64),
        weight=np.zeros(most_masks),
        slots=np.full(size, -1, np.int32),
    )


def fill_table(value: Words, mask_of: Ints32, masks: Words) -> Table:
    """Return a table of given entries, its masks searched in the order given."""
    table = make_table(masks.shape[1], max(len(value), 1), max(len(masks), 1))
    table.masks[: len(masks)] = masks
    table.counts[1] = len(masks)
    insert_all(table, np.ascontiguousarray(value), mask_of.astype(np.int32))
    return table


@inner
def find_place(table: Any, header: Any, mask: Any) -> Any:
    """Return the entry of a mask that holds a header, or -1 - the place in the hash table for it."""
    words = len(header)
    key = np.uint64(mask) * np.uint64(0x9E3779B97F4A7C15)
    for w in range(words):
        key = (key ^ (header[w] & table.masks[mask, w])) * np.uint64(0xBF58476D1CE4E5B9)
        key ^= key >> np.uint64(29)
    last = np.int64(len(table.slots) - 1)
    slot = np.int64(key >> np.uint64(7)) & last
    while True:
        entry = table.slots[slot]
        if entry < 0:
            return -1 - slot
        if table.mask_of[entry] == mask:
            same = True
            for w in range(words):
                if (header[w] & table.masks[mask, w]) != table.value[entry, w]:
                    same = False
                    break
            if same:
                return np.int64(entry)
        slot = (slot + 1) & last


@inner
def insert(table: Any, header: Any, mask: Any) -> Any:
    """Add the entry of a mask for a header, and return it."""
    slot = find_place(table, header, mask)
    if slot >= 0:
        return slot
    entry = table.counts[0]
    for w in range(len(header)):
        table.value[entry, w] = header[w] & table.masks[mask, w]
    table.mask_of[entry] = mask
    table.slots[-1 - slot] = entry
    table.counts[0] += 1
    return entry


@inner
def find_entry(table: Any, header: Any) -> Any:
    """Return the first entry that holds a header and the number of masks searched; -1 for no entry."""
    for position in range(table.counts[1]):
        entry = find_place(table, header, table.order[position])
        if entry >= 0:
            return entry, position + 1
    return np.int64(-1), table.counts[1]


@run_small_in_python(max_elements=1_000)
@kernel
def insert_all(table: Any, headers: Any, mask_of: Any) -> Any:
    """Add an entry for each header (n, words) and mask (n,)."""
    for h in range(len(headers)):
        insert(table, headers[h], mask_of[h])


@run_small_in_python(max_elements=5_000)
@kernel
def find_all(table: Any, headers: Any) -> Any:
    """Return the entry of each header, -1 for none, and the number of masks searched, each (n,)."""
    entry = np.zeros(len(headers), np.int64)
    searched = np.zeros(len(headers), np.int64)
    for h in range(len(headers)):
        entry[h], searched[h] = find_entry(table, headers[h])
    return entry, searched


@inner
def find_reusable(table: Any, header: Any, rules: Any, index: Any, buffer: Any) -> Any:
    """Return the place in the search of the lightest mask that keeps a header's action, -1 for none.

    buffer  (BLOCK,) scratch
    """
    weight, tried = -np.inf, np.int64(-1)  # of the last mask that was tried, and its place
    while True:
        best, smallest = np.int64(-1), np.inf
        for position in range(table.counts[1]):
            mask_weight = table.weight[table.order[position]]
            is_next = mask_weight > weight or (mask_weight == weight and position > tried)
            if is_next and (best < 0 or mask_weight < smallest):
                best, smallest = np.int64(position), mask_weight
        if best < 0 or keeps_action(header, table.masks[table.order[best]], index, rules, buffer):
            return best
        weight, tried = smallest, best


@inner
def add_mask(table: Any, mask: Any, bit_weight: Any) -> Any:
    """Return the place of a mask in the search; one that is not there becomes the last."""
    words = len(mask)
    for position in range(table.counts[1]):
        same = True
        for w in range(words):
            if table.masks[table.order[position], w] != mask[w]:
                same = False
                break
        if same:
            return position
    added = table.counts[1]
    table.weight[added] = 0.0
    for w in range(words):
        table.masks[added, w] = mask[w]
        for b in range(64):
            if (mask[w] >> np.uint64(63 - b)) & np.uint64(1):
                table.weight[added] += bit_weight[64 * w + b]
    table.order[added] = added
    table.counts[1] += 1
    return added


@inner
def count_hit(table: Any, position: Any) -> None:
    """Count a header that the mask at a place of the search serves; masks stay in the order of their hits."""
    mask = table.order[position]
    table.hits[mask] += 1
    while position > 0 and table.hits[table.order[position - 1]] < table.hits[mask]:
        table.order[position] = table.order[position - 1]
        table.order[position - 1] = mask
        position -= 1


@run_small_in_python(max_elements=5_000)
@kernel
def install_all(
    table: Any, headers: Any, masks: Any, rules: Any, index: Any, bit_weight: Any, reuse: Any
) -> Any:
    """Serve headers (n, words) in order; one without an entry gets one with its wanted mask (n, words).

    masks      (n, words), or (0, words): the first header that needs a mask of its own is the end
    index       of the rules, see `bit_index`
    bit_weight  (64 words,) of which the weight of a new mask is the sum
    reuse       whether the lightest mask in use that keeps the header's action is taken before the wanted one
    returns     how many headers are served
    """
    buffer = np.zeros(BLOCK, np.uint64)
    for h in range(len(headers)):
        entry, searched = find_entry(table, headers[h])
        position = searched - 1
        if entry < 0:
            position = find_reusable(table, headers[h], rules, index, buffer) if reuse else -1
            if position < 0 and len(masks) == 0:
                return h
            if position < 0:
                position = add_mask(table, masks[h], bit_weight)
            insert(table, headers[h], table.order[position])
        count_hit(table, position)
    return len(headers)


def order_masks(value: Words, mask_of: Ints32, masks: Words, headers: Words, weight: Floats) -> Ints:
    """Return the masks in an order of search by falling hits, (m,).

    A mask's hits depend on the masks before it where entries overlap: the order is found again until it
    stays. Each step lowers the lookups, as for given hits the order of falling hits has the fewest (Smith's
    rule with equal costs).
    """
    order = np.arange(len(masks), dtype=np.int64)
    best, fewest = order, np.inf
    for _ in range(MOST_ROUNDS):
        rank = np.empty(len(masks), dtype=np.int32)
        rank[order] = np.arange(len(masks), dtype=np.int32)
        table = fill_table(value, rank[mask_of], masks[order])
        entry, searched = find_all(table, headers)
        is_hit = entry >= 0
        lookups = float((searched * weight).sum())
        if lookups >= fewest:
            break
        best, fewest = order, lookups
        hits = np.bincount(searched[is_hit] - 1, weights=weight[is_hit], minlength=len(masks))
        order = order[np.argsort(-hits, kind="stable")]
    return best
