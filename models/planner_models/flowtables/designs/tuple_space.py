"""Bits that a tuple space search consults, with priority sorting, staged lookup and prefix tracking.

Pfaff et al. 2015, sections 3.2 and 5.2 to 5.4: an entry of the cache must match each bit that was looked at.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from planner.arrays import Ints, Ints32
from planner.compiled import inner, kernel
from planner_models.flowtables.designs.bits import count_leading_zeros
from planner_models.flowtables.problem.fields import STAGES, Words
from planner_models.flowtables.problem.problem import FlowTables


class TupleSpace(NamedTuple):
    """Entries grouped by their masks, within each flow table by falling highest priority.

    entry         (N,) entries in this order
    start         (K + 1,) first of them of each tuple
    mask          (K, words)
    highest       (K,) highest priority
    table         (T + 1,) first tuple of each flow table
    length        (K, P) prefix length of each field with a trie; 0: not matched
    trie_entry    (Q,) an entry with each prefix, by flow table and field
    trie_length   (Q,)
    trie_start    (T, P + 1) first prefix of each flow table and field
    word, offset, bits, stage  (P,) of the fields with a trie
    stage_mask    (4, words) bits of all fields up to each stage
    """

    entry: Ints32
    start: Ints
    mask: Words
    highest: Ints
    table: Ints
    length: Ints
    trie_entry: Ints32
    trie_length: Ints
    trie_start: Ints
    word: Ints
    offset: Ints
    bits: Ints
    stage: Ints
    stage_mask: Words


def make_tuple_space(problem: FlowTables, *, is_staged: bool) -> TupleSpace:
    """Return the tuples of all flow tables; without stages, all fields are looked up at once."""
    rules, layout = problem.entries, problem.layout
    table = np.searchsorted(rules.start, np.arange(len(rules.action)), side="right") - 1
    keys = np.column_stack([table.astype(np.uint64), rules.mask])
    unique, group = np.unique(keys, axis=0, return_inverse=True)
    group = group.reshape(-1)
    highest = np.full(len(unique), -1, dtype=np.int64)
    np.maximum.at(highest, group, rules.priority)
    by_priority = np.lexsort((-highest, unique[:, 0]))
    place = np.empty(len(unique), dtype=np.int64)
    place[by_priority] = np.arange(len(unique))
    entry = np.argsort(place[group], kind="stable")
    fields = [field for field in layout.fields if field.prefix]
    mask = np.ascontiguousarray(unique[by_priority, 1:])
    numbers = layout.to_numbers(mask)
    length = np.array(
        [
            [
                ((number & layout.full_mask([field.name])) >> layout.shift[field.name]).bit_count()
                for field in fields
            ]
            for number in numbers
        ],
        dtype=np.int64,
    ).reshape(len(mask), len(fields))
    own_length = length[place[group]]
    entries, lengths, starts = [], [], np.zeros((len(rules.start) - 1, len(fields) + 1), dtype=np.int64)
    total = 0
    for row in range(len(rules.start) - 1):
        first, last = int(rules.start[row]), int(rules.start[row + 1])
        for column, field in enumerate(fields):
            starts[row, column] = total
            own = layout.to_words([layout.full_mask([field.name])])[0]
            prefixes = np.column_stack(
                [rules.value[first:last] & own, own_length[first:last, column].astype(np.uint64)]
            )
            _, at = np.unique(prefixes, axis=0, return_index=True)
            at = at[own_length[first:last, column][at] > 0] + first
            entries.append(at)
            lengths.append(own_length[at, column])
            total += len(at)
        starts[row, -1] = total
    stages = [
        layout.to_words([layout.full_mask([one.name for one in layout.fields if one.stage <= stage])])[0]
        for stage in range(len(STAGES))
    ]
    none = np.zeros(0, dtype=np.int64)
    return TupleSpace(
        entry=entry.astype(np.int32),
        start=np.searchsorted(place[group][entry], np.arange(len(unique) + 1)).astype(np.int64),
        mask=mask,
        highest=highest[by_priority],
        table=np.searchsorted(unique[by_priority, 0].astype(np.int64), np.arange(len(rules.start))).astype(
            np.int64
        ),
        length=length,
        trie_entry=np.concatenate([none, *entries]).astype(np.int32),
        trie_length=np.concatenate([none, *lengths]).astype(np.int64),
        trie_start=starts,
        word=np.array([field.word for field in fields], dtype=np.int64),
        offset=np.array([field.offset for field in fields], dtype=np.int64),
        bits=np.array([field.bits for field in fields], dtype=np.int64),
        stage=np.array([field.stage if is_staged else 0 for field in fields], dtype=np.int64),
        stage_mask=np.array(stages if is_staged else [problem.full_mask] * len(STAGES), dtype=np.uint64),
    )


@inner
def find_common_length(header: Any, value: Any, word: Any, offset: Any, bits: Any) -> Any:
    """Return the number of equal bits of a field before the first that differs."""
    differing = (header[word] ^ value[word]) << np.uint64(offset)
    common = np.int64(count_leading_zeros(differing))
    if common == 64 and bits > 64:
        common += np.int64(count_leading_zeros(header[word + 1] ^ value[word + 1]))
    return min(common, bits)


@inner
def add_prefix(mask: Any, length: Any, word: Any, offset: Any) -> Any:
    """Add the first `length` bits of a field to a mask."""
    full = ~np.uint64(0)
    if length >= 64:
        mask[word] |= full >> np.uint64(offset)
        if length > 64:
            mask[word + 1] |= full if length == 128 else ~(full >> np.uint64(length - 64))
    elif length > 0:
        mask[word] |= ~(full >> np.uint64(length)) >> np.uint64(offset)


@inner
def look_up_prefixes(header: Any, rules: Any, space: Any, table: Any, needed: Any, is_possible: Any) -> Any:
    """Find, for each field with a trie, the bits to match and the lengths of prefixes that match.

    needed       (P,) bits of the field that settle which prefixes match (Pfaff et al. 2015, Figure 3)
    is_possible  (P, 129) whether a prefix of that length matches
    """
    for p in range(len(space.word)):
        needed[p] = 0
        is_possible[p, :] = False
        for q in range(space.trie_start[table, p], space.trie_start[table, p + 1]):
            length = space.trie_length[q]
            value = rules.value[space.trie_entry[q]]
            common = find_common_length(header, value, space.word[p], space.offset[p], space.bits[p])
            needed[p] = max(needed[p], min(common + 1, length))
            if common >= length:
                is_possible[p, length] = True


@inner
def count_stages(header: Any, rules: Any, space: Any, k: Any) -> Any:
    """Return how many stages of tuple k match before the first one without a match, and its first match."""
    passed, best = 0, -1
    for e in range(space.start[k], space.start[k + 1]):
        i = space.entry[e]
        stage = 0
        while stage < len(space.stage_mask):
            differs = False
            for w in range(len(header)):
                if (header[w] ^ rules.value[i, w]) & rules.mask[i, w] & space.stage_mask[stage, w]:
                    differs = True
                    break
            if differs:
                break
            stage += 1
        if stage > passed:
            passed = stage
        if stage == len(space.stage_mask):
            best = i
            break
    return passed, best


@kernel
def consult(headers: Any, rules: Any, space: Any, by_priority: Any, by_prefix: Any) -> Any:  # noqa: C901
    """Return the bits that the search for each header (n, words) looks at, (n, words).

    by_priority  whether tuples are searched by falling priority until none can hold a better match (5.2)
    by_prefix    whether tries tell which tuples cannot match (5.4)
    """
    count, words = headers.shape
    masks = np.zeros((count, words), np.uint64)
    stages = len(space.stage_mask)
    needed = np.zeros(len(space.word), np.int64)
    is_possible = np.zeros((len(space.word), 129), np.bool_)
    for h in range(count):
        header, mask, table = headers[h], masks[h], 0
        while table >= 0:
            if by_prefix:
                look_up_prefixes(header, rules, space, table, needed, is_possible)
            best = -1
            for k in range(space.table[table], space.table[table + 1]):
                if by_priority and best >= 0 and rules.priority[best] >= space.highest[k]:
                    break
                passed, found = count_stages(header, rules, space, k)
                last = min(passed, stages - 1)
                skipped = -1
                if by_prefix:
                    for p in range(len(space.word)):
                        length = space.length[k, p]
                        is_ruled_out = length > 0 and not is_possible[p, length]
                        is_first = skipped < 0 or space.stage[p] < space.stage[skipped]
                        if is_ruled_out and space.stage[p] <= last and is_first:
                            skipped = p
                if skipped >= 0:
                    add_prefix(mask, needed[skipped], space.word[skipped], space.offset[skipped])
                    last = space.stage[skipped] - 1
                if last >= 0:
                    for w in range(words):
                        mask[w] |= space.mask[k, w] & space.stage_mask[last, w]
                if found >= 0 and (best < 0 or found < best):
                    best = found
            table = rules.next[best] if best >= 0 else -1
    return masks
