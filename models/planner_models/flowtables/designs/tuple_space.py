"""Bits that a tuple space search consults, with priority sorting, staged lookup and prefix tracking.

Pfaff et al. 2015, sections 3.2 and 5.2 to 5.4: an entry of the cache must match each bit that was looked at.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np

from planner.arrays import Bools, Ints, Ints32
from planner.compiled import inner, kernel, run_small_in_python
from planner_models.flowtables.problem.entries import HIDDEN_BITS, Searched
from planner_models.flowtables.problem.fields import STAGES, Layout, Words
from planner_models.flowtables.problem.problem import FlowTables
from planner_models.flowtables.problem.values import IPV4, IPV6, Field, is_prefix

SAME_TRIE: Final = {"ip_src": "arp_spa", "ip_dst": "arp_tpa"}


class TupleSpace(NamedTuple):
    """Entries grouped by their masks, within each lookup by falling highest priority.

    Fields that rules match by prefixes have a trie for each lookup; those of the last layer, such as ports,
    have one trie together for each tuple, as in Open vSwitch.

    value, priority, next  of the entries, see `Searched`
    entry         (N,) entries in this order
    start         (K + 1,) first of them of each tuple
    mask          (K, words)
    highest       (K,) highest priority
    table         (T + 1,) first tuple of each lookup
    length        (K, P) prefix length of each field with a trie; 0: not matched
    slots         (s,) an entry with each tuple, stage and value up to the stage: a hash table; -1 for none;
                  without stages in which the tuple matches no further bits
    slot_of       (s,) tuple and stage of each place: stages times the tuple, plus the stage
    root          (T, P) first node of the trie of each lookup and field
    child         (Q, 2) next node of a trie where the next bit is 0, is 1; -1 for none
    is_prefix     (Q,) whether an entry matches the bits up to a node
    word, offset, stage  (P,) of the fields with a trie
    stage_mask    (K, S, words) bits of each tuple that are looked at up to each stage; one without stages
    has_bits      (K, S) whether a tuple matches bits of a stage
    port_bits     (B,) bits of the fields of the last layer, numbered from the first bit of the first word
    port_root     (K,) first node of the trie of a tuple's ports; -1 for none
    port_child    (R, 2) next node, as in `child`
    """

    value: Words
    priority: Ints
    next: Ints32
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
    stage: Ints
    stage_mask: Words
    has_bits: Bools
    port_bits: Ints
    port_root: Ints
    port_child: Ints32


def list_tracked(layout: Layout) -> list[Field]:
    """Return the fields with a trie for each lookup: matched by prefixes, and not of the last layer."""
    return [field for field in layout.fields if field.prefix and field.stage < len(STAGES) - 1]


class _Tuples(NamedTuple):
    """The distinct masks of all lookups, by lookup and falling highest priority.

    key      (K, 1 + 3 words) lookup, then mask, early and direct mask
    highest  (K,) highest priority of their entries
    number   (N,) tuple of each entry
    """

    key: Words
    highest: Ints
    number: Ints


def make_tuple_space(problem: FlowTables, *, is_staged: bool) -> TupleSpace:
    """Return the tuples of all lookups; without stages, all fields are looked up at once."""
    searched, layout = problem.searched, problem.layout
    words = searched.mask.shape[1]
    tuples = _find_tuples(searched)
    mask, early, direct = (
        np.ascontiguousarray(tuples.key[:, 1 + row * words : 1 + (row + 1) * words]) for row in range(3)
    )
    entry = np.argsort(tuples.number, kind="stable")
    start = np.searchsorted(tuples.number[entry], np.arange(len(mask) + 1)).astype(np.int64)
    fields = list_tracked(layout)
    word = np.array([field.word for field in fields], dtype=np.int64)
    offset = np.array([field.offset for field in fields], dtype=np.int64)
    length = _measure_prefixes(layout, fields, direct)
    value, prefix_length, trie = _list_prefixes(searched, layout, length[tuples.number])
    tries = (len(searched.start) - 1) * len(fields)
    child, is_prefix = make_tries(value, prefix_length, trie, tries, word, offset)
    stages = _make_stages(layout, words)[0 if is_staged else -1 :]
    stage_mask = mask[:, None, :] & (stages[None, :, :] | early[:, None, :])
    before = np.concatenate([np.zeros_like(stage_mask[:, :1]), stage_mask[:, :-1]], axis=1)
    has_bits = (stage_mask & ~before).any(axis=2)
    slots, slot_of = hash_stages(searched.value, stage_mask, has_bits, entry, start)
    ports = [field for field in layout.fields if field.prefix and field.stage == len(STAGES) - 1]
    port_bits = np.array(
        [64 * field.word + field.offset + bit for field in ports for bit in range(field.bits)], dtype=np.int64
    )
    port_root, port_child = make_port_tries(searched.value, direct, entry, start, port_bits)
    return TupleSpace(
        value=searched.value,
        priority=searched.priority,
        next=searched.next,
        entry=entry.astype(np.int32),
        start=start,
        mask=mask,
        highest=tuples.highest,
        table=np.searchsorted(tuples.key[:, 0].astype(np.int64), np.arange(len(searched.start))).astype(
            np.int64
        ),
        length=length,
        slots=slots,
        slot_of=slot_of,
        root=np.arange(tries, dtype=np.int64).reshape(len(searched.start) - 1, len(fields)),
        child=child,
        is_prefix=is_prefix,
        word=word,
        offset=offset,
        stage=np.array([field.stage if is_staged else 0 for field in fields], dtype=np.int64),
        stage_mask=stage_mask,
        has_bits=has_bits,
        port_bits=port_bits,
        port_root=port_root,
        port_child=port_child,
    )


def _find_tuples(searched: Searched) -> _Tuples:
    """Return the tuples of the entries of all lookups."""
    table = np.searchsorted(searched.start, np.arange(len(searched.mask)), side="right") - 1
    keys = np.column_stack([table.astype(np.uint64), searched.mask, searched.early, searched.direct])
    unique, group = np.unique(keys, axis=0, return_inverse=True)
    group = group.reshape(-1)
    highest = np.full(len(unique), -1, dtype=np.int64)
    np.maximum.at(highest, group, searched.priority)
    by_priority = np.lexsort((-highest, unique[:, 0]))
    rank = np.empty(len(unique), dtype=np.int64)
    rank[by_priority] = np.arange(len(unique))
    return _Tuples(unique[by_priority], highest[by_priority], rank[group])


def _measure_prefixes(layout: Layout, fields: list[Field], direct: Words) -> Ints:
    """Return the prefix length of each field in each tuple, shape (K, P); 0: not matched."""
    numbers = layout.to_numbers(np.ascontiguousarray(direct[:, : layout.words]))
    lengths = [
        [count_prefix(number >> layout.shift[field.name], field.bits) for field in fields]
        for number in numbers
    ]
    return np.array(lengths, dtype=np.int64).reshape(len(numbers), len(fields))


def _list_prefixes(searched: Searched, layout: Layout, length: Ints) -> tuple[Words, Ints, Ints]:
    """Return value, length and trie of the prefixes of each lookup and field.

    length  (N, P) of the prefix of each entry in each field with a trie
    """
    words = searched.mask.shape[1]
    fields = list_tracked(layout)
    values, lengths, tries = [np.zeros((0, words), np.uint64)], [], []
    for row, (first, last) in enumerate(pairwise(searched.start.tolist())):
        for column, field in enumerate(fields):
            field_mask = np.zeros(words, dtype=np.uint64)
            field_mask[: layout.words] = layout.to_words([layout.full_mask([field.name])])[0]
            own_length = length[first:last, column]
            prefixes = np.column_stack(
                [searched.value[first:last] & field_mask, own_length.astype(np.uint64)]
            )
            _, first_rows = np.unique(prefixes, axis=0, return_index=True)
            first_rows = first_rows[own_length[first_rows] > 0]
            alike = list_alike(searched, layout, field, first, last)
            values += [searched.value[first + first_rows], alike[0]]
            lengths += [own_length[first_rows], alike[1]]
            tries.append(np.full(len(first_rows) + len(alike[1]), row * len(fields) + column))
    none = np.zeros(0, dtype=np.int64)
    return np.concatenate(values), np.concatenate([none, *lengths]), np.concatenate([none, *tries])


def _make_stages(layout: Layout, words: int) -> Words:
    """Return the bits of headers that are looked at up to each stage, shape (S, words)."""
    stages = np.full((len(STAGES), words), ~np.uint64(0))
    for stage in range(len(STAGES)):
        names = [field.name for field in layout.fields if field.stage <= stage]
        stages[stage, : layout.words] = layout.to_words([layout.full_mask(names)])[0]
        stages[stage, layout.words :] = (1 << HIDDEN_BITS * (stage + 1)) - 1
    return stages


def list_alike(searched: Searched, layout: Layout, field: Field, first: int, last: int) -> tuple[Words, Ints]:
    """Return values and lengths of prefixes of ARP in the trie of an address of IP, which is one."""
    other = SAME_TRIE.get(field.name, "")
    if other not in layout.by_name:
        return np.zeros((0, searched.value.shape[1]), np.uint64), np.zeros(0, dtype=np.int64)
    shift = layout.shift[other]
    words = layout.words
    values = layout.to_numbers(np.ascontiguousarray(searched.value[first:last, :words]))
    masks = layout.to_numbers(np.ascontiguousarray(searched.direct[first:last, :words]))
    groups = {
        ((value >> shift) & ((1 << field.bits) - 1), count_prefix(mask >> shift, field.bits))
        for value, mask in zip(values, masks, strict=True)
    }
    prefixes = sorted(group for group in groups if group[1])
    made = np.zeros((len(prefixes), searched.value.shape[1]), np.uint64)
    if prefixes:
        made[:, :words] = layout.to_words([value << layout.shift[field.name] for value, _ in prefixes])
    return made, np.array([length for _, length in prefixes], dtype=np.int64)


def count_prefix(mask: int, bits: int) -> int:
    """Return the length of the prefix that a mask of a field is; 0 for another mask."""
    field_mask = mask & ((1 << bits) - 1)
    return field_mask.bit_count() if is_prefix(field_mask, bits) else 0


def search(
    problem: FlowTables, headers: Words, space: TupleSpace, *, by_priority: bool, by_prefix: bool
) -> Words:
    """Return the bits that the search for each header (n, words) looks at, (n, words)."""
    words = headers.shape[1]
    wide = np.zeros((len(headers), space.mask.shape[1]), dtype=np.uint64)
    wide[:, :words] = headers
    masks = consult(wide, space, find_relevant(problem.layout, headers), by_priority, by_prefix)
    return np.ascontiguousarray(np.asarray(masks)[:, :words])


def find_relevant(layout: Layout, headers: Words) -> Bools:
    """Return the fields with a trie in the packets of each header (n, words), a mask (n, P)."""
    fields = list_tracked(layout)
    relevant = np.ones((len(headers), len(fields)), dtype=bool)
    kind = layout.by_name.get("eth_type")
    if kind is not None:
        shift = np.uint64(64 - kind.offset - kind.bits)
        types = (headers[:, kind.word] >> shift) & np.uint64((1 << kind.bits) - 1)
        for column, field in enumerate(fields):
            if field.name in ("ip_src", "ip_dst"):
                relevant[:, column] = types == IPV4
            elif field.name in ("ipv6_src", "ipv6_dst"):
                relevant[:, column] = types == IPV6
    return relevant


@inner
def get_bit(header: Any, word: Any, bit: Any) -> Any:
    """Return a bit of a header, counted from the first bit of a word."""
    return np.int64((header[word + (bit >> 6)] >> np.uint64(63 - (bit & 63))) & np.uint64(1))


@run_small_in_python(max_elements=1_000)
@kernel
def make_tries(value: Any, length: Any, trie: Any, count: Any, word: Any, offset: Any) -> Any:
    """Return the nodes of tries of prefixes, the roots first: `child` (Q, 2) and `is_prefix` (Q,).

    value, length, trie  (q, words), (q,), (q,) of each prefix: its bits, how many, and its trie's number,
                         which is that of its field modulo the number of fields
    """
    node_limit = count + length.sum()
    child, is_prefix = np.full((node_limit, 2), -1, np.int32), np.zeros(node_limit, np.bool_)
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


@run_small_in_python(max_elements=1_000)
@kernel
def make_port_tries(value: Any, mask: Any, entry: Any, start: Any, port_bits: Any) -> Any:
    """Return the tries of the ports of each tuple: first node (K,), -1 for none, and next nodes (Q, 2).

    port_bits  (B,) bits of these fields; those that a tuple does not match are 0
    """
    tuples = len(mask)
    root, length = np.full(tuples, -1, np.int64), np.zeros(tuples, np.int64)
    node_limit = 1
    for k in range(tuples):
        for b in range(len(port_bits)):
            if get_bit(mask[k], port_bits[b] >> 6, port_bits[b] & 63):
                length[k] = b + 1
        if length[k]:
            node_limit += 1 + length[k] * (start[k + 1] - start[k])
    child = np.full((node_limit, 2), -1, np.int32)
    used = 0
    for k in range(tuples):
        if length[k] == 0:
            continue
        root[k] = used
        used += 1
        for e in range(start[k], start[k + 1]):
            node = root[k]
            for b in range(length[k]):
                word, offset = port_bits[b] >> 6, port_bits[b] & 63
                bit = get_bit(value[entry[e]], word, offset) & get_bit(mask[k], word, offset)
                if child[node, bit] < 0:
                    child[node, bit] = used
                    used += 1
                node = np.int64(child[node, bit])
    return root, child[: used + 1].copy()


@inner
def add_ports(header: Any, entry_mask: Any, root: Any, child: Any, port_bits: Any, mask: Any) -> Any:
    """Add the bits to a mask that tell a header's ports from those of all entries of a tuple.

    entry_mask      (words,) mask of the tuple
    returns  whether they do; else all its bits of ports are added
    """
    node = root
    for b in range(len(port_bits)):
        if child[node, 0] < 0 and child[node, 1] < 0:
            return False
        word, offset = port_bits[b] >> 6, port_bits[b] & 63
        is_matched = get_bit(entry_mask, word, offset)
        if is_matched:
            mask[word] |= np.uint64(1) << np.uint64(63 - offset)
        node = np.int64(child[node, get_bit(header, word, offset) & is_matched])
        if node < 0:
            return True
    return False


@inner
def find_stage(header: Any, value: Any, stage_mask: Any, slots: Any, slot_of: Any, k: Any, stage: Any) -> Any:
    """Return the place in the hash table for a header's bits of a tuple up to a stage."""
    number = k * stage_mask.shape[1] + stage
    key = np.uint64(number) * np.uint64(0x9E3779B97F4A7C15)
    for w in range(len(header)):
        key = (key ^ (header[w] & stage_mask[k, stage, w])) * np.uint64(0xBF58476D1CE4E5B9)
        key ^= key >> np.uint64(29)
    last = np.int64(len(slots) - 1)
    slot = np.int64(key >> np.uint64(7)) & last
    while slots[slot] >= 0:
        same = slot_of[slot] == number
        if same:
            for w in range(len(header)):
                if (header[w] ^ value[slots[slot], w]) & stage_mask[k, stage, w]:
                    same = False
                    break
        if same:
            break
        slot = (slot + 1) & last
    return slot


@run_small_in_python(max_elements=2_000)
@kernel
def hash_stages(value: Any, stage_mask: Any, has_bits: Any, entry: Any, start: Any) -> Any:
    """Return the hash table of all tuples and stages: the first entry with each value, and which tuple's."""
    size = 8
    while size < 2 * len(entry) * stage_mask.shape[1]:
        size *= 2
    slots, slot_of = np.full(size, -1, np.int32), np.zeros(size, np.int32)
    for k in range(len(stage_mask)):
        for stage in range(stage_mask.shape[1]):
            if not has_bits[k, stage]:
                continue
            for e in range(start[k], start[k + 1]):
                slot = find_stage(value[entry[e]], value, stage_mask, slots, slot_of, k, stage)
                if slots[slot] < 0:
                    slots[slot] = entry[e]
                    slot_of[slot] = k * stage_mask.shape[1] + stage
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
def look_up_prefixes(
    header: Any, space: Any, table: Any, is_relevant: Any, needed: Any, is_possible: Any
) -> None:
    """Find, for each field with a trie, the bits to match and the lengths of prefixes that match.

    is_relevant  (P,) whether the packet has the field; else every prefix is possible
    needed       (P,) bits of the field that settle which prefixes match (Pfaff et al. 2015, Figure 3)
    is_possible  (P, 129) whether a prefix of that length matches
    """
    for p in range(len(space.word)):
        needed[p] = 0
        is_possible[p, :] = not is_relevant[p]
        if not is_relevant[p]:
            continue
        node, depth = space.root[table, p], 0
        while space.child[node, 0] >= 0 or space.child[node, 1] >= 0:
            needed[p] = depth + 1
            node = np.int64(space.child[node, get_bit(header, space.word[p], space.offset[p] + depth)])
            if node < 0:
                break
            depth += 1
            is_possible[p, depth] = space.is_prefix[node]


@inner
def has_prefix(mask: Any, length: Any, word: Any, offset: Any) -> Any:
    """Return whether a mask has the first `length` bits of a field."""
    for b in range(length):  # noqa: SIM110
        if not get_bit(mask, word, offset + b):
            return False
    return True


@inner
def count_stages(
    header: Any, value: Any, stage_mask: Any, has_bits: Any, slots: Any, slot_of: Any, k: Any, limit: Any,
    first: Any,
) -> Any:  # fmt: skip
    """Return the number of `limit` stages of tuple k that match before one fails, and the first match.

    first  the first entry of the tuple, which matches where no stage has bits
    """
    entry_found = first
    for stage in range(limit):
        if not has_bits[k, stage]:
            continue
        slot = find_stage(header, value, stage_mask, slots, slot_of, k, stage)
        entry_found = np.int64(slots[slot])
        if entry_found < 0:
            return stage, entry_found
    return limit, entry_found


@inner
def find_ruled_out(space: Any, k: Any, is_possible: Any, needed: Any, mask: Any) -> Any:
    """Return the field of the first stage with a trie that rules tuple k out, -1 for none.

    It does so where no prefix is possible, and tells it by bits that the tuple matches, or that are in the
    mask already.
    """
    first = -1
    for p in range(len(space.stage) - 1, -1, -1):
        length = space.length[k, p]
        if length == 0 or is_possible[p, length] or (first >= 0 and space.stage[p] >= space.stage[first]):
            continue
        if needed[p] <= length or has_prefix(mask, needed[p], space.word[p], space.offset[p]):
            first = p
    return first


@run_small_in_python(max_elements=5_000)
@kernel
def consult(headers: Any, space: Any, relevant: Any, by_priority: Any, by_prefix: Any) -> Any:  # noqa: C901
    """Return the bits that the search for each header (n, words) looks at, (n, words).

    relevant     (n, P) whether a packet has each field with a trie
    by_priority  whether tuples are searched by falling priority until none can hold a better match (5.2)
    by_prefix    whether tries tell which tuples cannot match (5.4)
    """
    count, words = headers.shape
    masks = np.zeros((count, words), np.uint64)
    # plain arrays: a call with the whole space takes longer than a lookup
    value, entry_mask, stage_mask, has_bits = space.value, space.mask, space.stage_mask, space.has_bits
    slots, slot_of, stage = space.slots, space.slot_of, space.stage
    word, offset, entry, start, highest = space.word, space.offset, space.entry, space.start, space.highest
    port_root, port_child, port_bits = space.port_root, space.port_child, space.port_bits
    stages = stage_mask.shape[1]
    needed = np.zeros(len(space.word), np.int64)
    is_possible = np.zeros((len(space.word), 129), np.bool_)
    for h in range(count):
        header, mask, table = headers[h], masks[h], 0
        while table >= 0:
            if by_prefix:
                look_up_prefixes(header, space, table, relevant[h], needed, is_possible)
            best = -1
            for k in range(space.table[table], space.table[table + 1]):
                if by_priority and best >= 0 and space.priority[best] >= highest[k]:
                    break
                # a tuple that a trie rules out is looked up in the stages before the trie's field
                skipped = find_ruled_out(space, k, is_possible, needed, mask) if by_prefix else -1
                limit = stage[skipped] if skipped >= 0 else stages
                passed, entry_found = count_stages(
                    header, value, stage_mask, has_bits, slots, slot_of, k, limit,
                    np.int64(entry[start[k]]),
                )  # fmt: skip
                last = min(passed, stages - 1)
                if skipped >= 0:
                    entry_found = np.int64(-1)
                if skipped >= 0 and passed == limit:
                    add_prefix(mask, needed[skipped], word[skipped], offset[skipped])
                    last = limit - 1
                elif by_prefix and skipped < 0 and passed == stages - 1 and port_root[k] >= 0:
                    # ports are of the last stage, in which no entry matches
                    is_told = add_ports(header, entry_mask[k], port_root[k], port_child, port_bits, mask)
                    last = passed - 1 if is_told else passed
                if last >= 0:
                    for w in range(words):
                        mask[w] |= stage_mask[k, last, w]
                if entry_found >= 0 and (best < 0 or entry_found < best):
                    best = entry_found
            table = space.next[best] if best >= 0 else -1
    return masks
