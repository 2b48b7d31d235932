"""Rules indexed by the bits in which they differ from a packet: a row of words for each value of a bit.

A word of a row stands for 64 entries: a mask is tested against all of them by a few instructions a bit.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from planner.arrays import Floats, Ints
from planner.bits import count_bits
from planner.compiled import in_python_by, inner
from planner_models.flowtables.plan.classification import has_needed
from planner_models.flowtables.problem.fields import Words
from planner_models.flowtables.problem.problem import FlowTables

LEAST_WEIGHT = 0.05  # of a bit that is the same in all headers
BLOCK = 32  # words of entries that are tested together


class BitIndex(NamedTuple):
    """Entries that differ from a packet in a bit, as rows of bits over entries.

    bit      (B,) the bits that rules match: number from the first bit of the first word
    differs  (B, 2, N / 64) entries that match the bit and have the other value than 0, than 1
    weight   (B,) of matching each bit
    """

    bit: Ints
    differs: Words
    weight: Floats


def make_bit_index(problem: FlowTables, *, by_entropy: bool = False) -> BitIndex:
    """Return the index of the rules, with bits weighed by their entropy in the connections or all alike."""
    rules = problem.entries
    bit = np.flatnonzero(_to_bits(problem.used_mask[None, :])[0])
    mask, value = _to_bits(rules.mask)[:, bit].T, _to_bits(rules.value)[:, bit].T
    rows = [_pack_rows(mask & value), _pack_rows(mask & ~value)]
    return BitIndex(
        bit=bit.astype(np.int64),
        differs=np.ascontiguousarray(np.stack(rows, axis=1)),
        weight=weigh_bits(problem, by_entropy=by_entropy)[bit],
    )


def weigh_bits(problem: FlowTables, *, by_entropy: bool) -> Floats:
    """Return the weight of matching each bit, (64 words,): its entropy in the connections, or 1."""
    if not by_entropy:
        return np.ones(64 * problem.layout.words)
    share = _to_bits(problem.headers).mean(axis=0).clip(1e-12, 1 - 1e-12)
    entropy = -share * np.log2(share) - (1 - share) * np.log2(1 - share)
    return np.asarray(LEAST_WEIGHT + entropy)


def _to_bits(words: Words) -> np.ndarray:
    """Return words (n, words) as booleans (n, 64 words)."""
    data = np.ascontiguousarray(words.astype(">u8")).view(np.uint8).reshape(len(words), 8 * words.shape[1])
    return np.unpackbits(data, axis=1).astype(bool)


def _pack_rows(rows: np.ndarray) -> Words:
    """Return booleans (B, N) as words (B, ceil(N / 64)), the first entry in the lowest bit."""
    padded = np.zeros((len(rows), max(-(-rows.shape[1] // 64), 1) * 64), dtype=np.uint8)
    padded[:, : rows.shape[1]] = rows
    packed = np.packbits(padded, axis=1, bitorder="little")
    return np.asarray(np.ascontiguousarray(packed).view("<u8").astype(np.uint64))


@inner
def has_bit(words: Any, bit: Any) -> Any:
    """Return 1 where a bit is set, else 0."""
    return np.int64((words[bit >> 6] >> np.uint64(63 - (bit & 63))) & np.uint64(1))


def _find_meeting_by_arrays(header: Any, mask: Any, index: Any, start: Any, end: Any, words: Any) -> None:
    """Do as `find_meeting`, by operations on arrays."""
    word, shift = index.bit >> 6, np.uint64(63) - (index.bit & 63).astype(np.uint64)
    bits = np.flatnonzero((mask[word] >> shift) & np.uint64(1))
    values = (header[word[bits]] >> shift[bits]) & np.uint64(1)
    differs = index.differs[bits, values.astype(np.int64), start:end]
    words[: end - start] = ~np.bitwise_or.reduce(differs, axis=0)


@in_python_by(_find_meeting_by_arrays)
@inner
def find_meeting(header: Any, mask: Any, index: Any, start: Any, end: Any, words: Any) -> Any:
    """Set the bits of entries that meet the cube of a header and a mask, from word `start` to `end`."""
    words = words[: end - start]
    words[:] = 0
    for b in range(len(index.bit)):
        if has_bit(mask, index.bit[b]):
            row = index.differs[b, has_bit(header, index.bit[b])][start:end]
            for w in range(len(row)):
                words[w] |= row[w]
    for w in range(len(words)):
        words[w] = ~words[w]


@inner
def is_within(needed: Any, mask: Any) -> Any:
    """Return whether a mask has all bits of another one."""
    is_held = True
    for k in range(len(mask)):
        is_held &= (needed[k] & ~mask[k]) == 0
    return is_held


@inner
def keeps_action(header: Any, mask: Any, index: Any, rules: Any, buffer: Any) -> Any:
    """Return whether an entry with a mask may serve a header: all that it holds get the same action.

    It is what `classification.is_valid` returns, by the index.

    buffer  (BLOCK,) scratch
    """
    table = 0
    final = np.int32(0)
    while table >= 0:
        first, last = rules.start[table], rules.start[table + 1]
        following = -1
        action = np.int32(-1)  # of entries that meet the cube so far
        is_held = False
        begin = first >> 6
        while begin << 6 < last and not is_held:
            end = min(begin + BLOCK, (last + 63) >> 6)
            find_meeting(header, mask, index, begin, end, buffer)
            for w in range(begin, end):
                remaining = buffer[w - begin]
                while remaining and not is_held:
                    lowest = remaining & (~remaining + np.uint64(1))
                    remaining ^= lowest
                    i = np.int64(w) * 64 + np.int64(count_bits(lowest - np.uint64(1)))
                    if i < first or i >= last:
                        continue
                    if action >= 0 and rules.action[i] != action:
                        return False
                    action, following = rules.action[i], rules.next[i]
                    is_held = is_within(rules.mask[i], mask)
                if is_held:
                    break
            begin = end
        if not is_held and action > 0:  # some headers match no entry, and are dropped
            return False
        final = action if action >= 0 else np.int32(0)
        table = following if action >= 0 else -1
    return has_needed(header, mask, final, rules)
