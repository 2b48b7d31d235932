"""Bits that a tuple space search consults, with priority sorting, staged lookup and prefix tracking.

Pfaff et al. 2015, sections 3.2 and 5.2 to 5.4: an entry of the cache must match each bit that was looked at.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from planner.arrays import Bools, Ints, Ints32
from planner.compiled import inner, kernel
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
    slots         (s,) an entry with each tuple, stage and value up to the stage: a hash table; -1 for none;
                  without stages in which the tuple matches no further bits
    slot_of       (s,) tuple and stage of each place: stages times the tuple, plus the stage
    root          (T, P) first node of the trie of each flow table and field
    child         (Q, 2) next node of a trie where the next bit is 0, is 1; -1 for none
    is_prefix     (Q,) whether an entry matches the bits up to a node
    word, offset, bits, stage  (P,) of the fields with a trie
    stage_mask    (S, words) bits of all fields up to each stage; one row without stages
    has_bits      (K, S) whether a tuple matches bits of a stage
    """

    entry: Ints32
    start: Ints
    mask: Words
    highest: Ints
    table: Ints
    length: Ints
    slots: Ints32
    slot_of: Ints32
    root: Ints
    child: Ints32
    is_prefix: Bools
    word: Ints
    offset: Ints
    bits: Ints
    stage: Ints
    stage_mask: Words
    has_bits: Bools


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
    word = np.array([field.word for field in fields], dtype=np.int64)
    offset = np.array([field.offset for field in fields], dtype=np.int64)
    root = np.zeros((len(rules.start) - 1, len(fields)), dtype=np.int64)
    values, lengths, tries = [np.zeros((0, layout.words), np.uint64)], [], []
    for row in range(len(rules.start) - 1):
        first, last = int(rules.start[row]), int(rules.start[row + 1])
        for column, field in enumerate(fields):
            root[row, column] = row * len(fields) + column
            own = layout.to_words([layout.full_mask([field.name])])[0]
            prefixes = np.column_stack(
                [rules.value[first:last] & own, own_length[first:last, column].astype(np.uint64)]
            )
            _, at = np.unique(prefixes, axis=0, return_index=True)
            at = at[own_length[first:last, column][at] > 0] + first
            values.append(rules.value[at])
            lengths.append(own_length[at, column])
            tries.append(np.full(len(at), root[row, column]))
    stages = [
        layout.to_words([layout.full_mask([one.name for one in layout.fields if one.stage <= stage])])[0]
        for stage in range(len(STAGES))
    ]
    stage_mask = np.array(stages if is_staged else [problem.full_mask], dtype=np.uint64)
    none = np.zeros(0, dtype=np.int64)
    child, is_prefix = make_tries(
        np.concatenate(values), np.concatenate([none, *lengths]), np.concatenate([none, *tries]), root.size,
        word, offset,
    )  # fmt: skip
    start = np.searchsorted(place[group][entry], np.arange(len(unique) + 1)).astype(np.int64)
    of_stage = stage_mask & ~np.vstack([np.zeros_like(stage_mask[:1]), stage_mask[:-1]])
    has_bits = (mask[:, None, :] & of_stage).any(axis=2)
    slots, slot_of = hash_stages(rules.value, mask, stage_mask, has_bits, entry, start)
    return TupleSpace(
        entry=entry.astype(np.int32),
        start=start,
        mask=mask,
        highest=highest[by_priority],
        table=np.searchsorted(unique[by_priority, 0].astype(np.int64), np.arange(len(rules.start))).astype(
            np.int64
        ),
        length=length,
        slots=slots,
        slot_of=slot_of,
        root=root,
        child=child,
        is_prefix=is_prefix,
        word=word,
        offset=offset,
        bits=np.array([field.bits for field in fields], dtype=np.int64),
        stage=np.array([field.stage if is_staged else 0 for field in fields], dtype=np.int64),
        stage_mask=stage_mask,
        has_bits=has_bits,
    )


@inner
def get_bit(header: Any, word: Any, bit: Any) -> Any:
    """Return a bit of a header, counted from the first bit of a word."""
    return np.int64((header[word + (bit >> 6)] >> np.uint64(63 - (bit & 63))) & np.uint64(1))


@kernel
def make_tries(value: Any, length: Any, trie: Any, count: Any, word: Any, offset: Any) -> Any:
    """Return the nodes of tries of prefixes, the roots first: `child` (Q, 2) and `is_prefix` (Q,).

    value, length, trie  (q, words), (q,), (q,) of each prefix: its bits, how many, and its trie's number,
                         which is that of its field modulo the number of fields
    """
    most = count + length.sum()
    child, is_prefix = np.full((most, 2), -1, np.int32), np.zeros(most, np.bool_)
    used = count
    for q in range(len(length)):
        node, p = trie[q], trie[q] % len(word)
        for depth in range(length[q]):
            bit = get_bit(value[q], word[p], offset[p] + depth)
            if child[node, bit] < 0:
                child[node, bit] = used
                used += 1
            node = np.int64(child[node, bit])
        is_prefix[node] = True
    return child[:used].copy(), is_prefix[:used].copy()


@inner
def find_stage(
    header: Any, value: Any, mask: Any, stage_mask: Any, slots: Any, slot_of: Any, k: Any, stage: Any
) -> Any:
    """Return the place in the hash table for a header's bits of a tuple up to a stage."""
    number = k * len(stage_mask) + stage
    key = np.uint64(number) * np.uint64(0x9E3779B97F4A7C15)
    for w in range(len(header)):
        key = (key ^ (header[w] & mask[k, w] & stage_mask[stage, w])) * np.uint64(0xBF58476D1CE4E5B9)
        key ^= key >> np.uint64(29)
    last = np.int64(len(slots) - 1)
    place = np.int64(key >> np.uint64(7)) & last
    while slots[place] >= 0:
        same = slot_of[place] == number
        if same:
            for w in range(len(header)):
                if (header[w] ^ value[slots[place], w]) & mask[k, w] & stage_mask[stage, w]:
                    same = False
                    break
        if same:
            break
        place = (place + 1) & last
    return place


@kernel
def hash_stages(value: Any, mask: Any, stage_mask: Any, has_bits: Any, entry: Any, start: Any) -> Any:
    """Return the hash table of all tuples and stages: the first entry with each value, and which tuple's."""
    size = 8
    while size < 2 * len(entry) * len(stage_mask):
        size *= 2
    slots, slot_of = np.full(size, -1, np.int32), np.zeros(size, np.int32)
    for k in range(len(mask)):
        for stage in range(len(stage_mask)):
            if not has_bits[k, stage]:
                continue
            for e in range(start[k], start[k + 1]):
                place = find_stage(value[entry[e]], value, mask, stage_mask, slots, slot_of, k, stage)
                if slots[place] < 0:
                    slots[place] = entry[e]
                    slot_of[place] = k * len(stage_mask) + stage
    return slots, slot_of


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
def look_up_prefixes(header: Any, space: Any, table: Any, needed: Any, is_possible: Any) -> Any:
    """Find, for each field with a trie, the bits to match and the lengths of prefixes that match.

    needed       (P,) bits of the field that settle which prefixes match (Pfaff et al. 2015, Figure 3)
    is_possible  (P, 129) whether a prefix of that length matches
    """
    for p in range(len(space.word)):
        needed[p] = 0
        is_possible[p, :] = False
        node, depth = space.root[table, p], 0
        while space.child[node, 0] >= 0 or space.child[node, 1] >= 0:
            needed[p] = depth + 1
            node = np.int64(space.child[node, get_bit(header, space.word[p], space.offset[p] + depth)])
            if node < 0:
                break
            depth += 1
            is_possible[p, depth] = space.is_prefix[node]


@inner
def count_stages(
    header: Any, value: Any, mask: Any, stage_mask: Any, has_bits: Any, slots: Any, slot_of: Any, k: Any,
    most: Any, first: Any,
) -> Any:  # fmt: skip
    """Return how many of `most` stages of tuple k match before one does not, and the first match of all.

    first  the first entry of the tuple, which matches where no stage has bits
    """
    found = first
    for stage in range(most):
        if not has_bits[k, stage]:
            continue
        place = find_stage(header, value, mask, stage_mask, slots, slot_of, k, stage)
        found = np.int64(slots[place])
        if found < 0:
            return stage, found
    return most, found


@inner
def find_ruled_out(length: Any, stage: Any, k: Any, is_possible: Any) -> Any:
    """Return the field of the first stage whose trie has no prefix for tuple k, -1 for none."""
    first = -1
    for p in range(len(stage)):
        is_ruled_out = length[k, p] > 0 and not is_possible[p, length[k, p]]
        if is_ruled_out and (first < 0 or stage[p] < stage[first]):
            first = p
    return first


@kernel
def consult(headers: Any, rules: Any, space: Any, by_priority: Any, by_prefix: Any) -> Any:  # noqa: C901
    """Return the bits that the search for each header (n, words) looks at, (n, words).

    by_priority  whether tuples are searched by falling priority until none can hold a better match (5.2)
    by_prefix    whether tries tell which tuples cannot match (5.4)
    """
    count, words = headers.shape
    masks = np.zeros((count, words), np.uint64)
    # plain arrays: a call with the whole space takes longer than a lookup
    value, own, stage_mask, has_bits = rules.value, space.mask, space.stage_mask, space.has_bits
    slots, slot_of, stage, length = space.slots, space.slot_of, space.stage, space.length
    word, offset, entry, start, highest = space.word, space.offset, space.entry, space.start, space.highest
    stages = len(stage_mask)
    needed = np.zeros(len(space.word), np.int64)
    is_possible = np.zeros((len(space.word), 129), np.bool_)
    for h in range(count):
        header, mask, table = headers[h], masks[h], 0
        while table >= 0:
            if by_prefix:
                look_up_prefixes(header, space, table, needed, is_possible)
            best = -1
            for k in range(space.table[table], space.table[table + 1]):
                if by_priority and best >= 0 and rules.priority[best] >= highest[k]:
                    break
                # a tuple that a trie rules out is looked up in the stages before the trie's field
                skipped = find_ruled_out(length, stage, k, is_possible) if by_prefix else -1
                most = stage[skipped] if skipped >= 0 else stages
                passed, found = count_stages(
                    header, value, own, stage_mask, has_bits, slots, slot_of, k, most,
                    np.int64(entry[start[k]]),
                )  # fmt: skip
                last = min(passed, stages - 1)
                if skipped >= 0:
                    found = np.int64(-1)
                if skipped >= 0 and passed == most:
                    add_prefix(mask, needed[skipped], word[skipped], offset[skipped])
                    last = most - 1
                if last >= 0:
                    for w in range(words):
                        mask[w] |= own[k, w] & stage_mask[last, w]
                if found >= 0 and (best < 0 or found < best):
                    best = found
            table = rules.next[best] if best >= 0 else -1
    return masks
