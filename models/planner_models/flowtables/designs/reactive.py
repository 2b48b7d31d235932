"""Caches filled by misses, as in Open vSwitch: userspace makes an entry from each packet that misses.

Masks that keep the action of one packet with the least weight of bits: a minimum weight hitting set.

For an entry that matches the packet with its action, the anchor, a mask must hold the anchor's bits, and a
bit in which the packet differs from each entry before the anchor of another action. Rules are indexed by the
bits in which they differ from a packet, see `planner_models.flowtables.plan.bit_index`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, Final

import numpy as np
from pydantic import Field

from planner.bits import count_bits
from planner.compiled import inner, kernel, run_small_in_python
from planner.contract.design import Decision
from planner.errors import InputError
from planner.options import Options
from planner_models.flowtables.designs.decision import decide
from planner_models.flowtables.designs.tuple_space import make_tuple_space, search
from planner_models.flowtables.plan.bit_index import find_meeting, has_bit, make_bit_index, weigh_bits
from planner_models.flowtables.plan.classification import classify, find_needed
from planner_models.flowtables.plan.installed import list_installed
from planner_models.flowtables.plan.lookup import Table, fill_table, find_all, install_all, make_table
from planner_models.flowtables.plan.plan import Cache
from planner_models.flowtables.problem.fields import Words
from planner_models.flowtables.problem.problem import FlowTables

CHUNK: Final = 512  # connections whose misses get their masks together

ByEntropy = Annotated[
    bool,
    Field(
        description="whether a mask prefers bits that are the same in most connections; else it has few bits"
    ),
]
MOST_ANCHORS = 4
KEPT_ACTIONS = 16  # whose entries of other actions are kept


def install_microflows(problem: FlowTables, *, options: Options = Options()) -> Decision[Cache]:
    """Install an entry for each header, which matches all bits."""
    return decide(problem, fill_by_misses(problem, match_all_bits(problem)), options=options)


def search_tuples(problem: FlowTables, *, options: Options = Options()) -> Decision[Cache]:
    """Match all bits that tuple space search looks at, in every tuple."""
    return _search(problem, "tuple_search", options)


def sort_by_priority(problem: FlowTables, *, options: Options = Options()) -> Decision[Cache]:
    """Search tuples by falling priority, and stop where no better match can follow."""
    return _search(problem, "priority", options)


def look_up_in_stages(problem: FlowTables, *, options: Options = Options()) -> Decision[Cache]:
    """Look tuples up layer by layer, and stop at the first layer without a match."""
    return _search(problem, "staged", options)


def track_prefixes(problem: FlowTables, *, options: Options = Options()) -> Decision[Cache]:
    """Skip tuples with a prefix that cannot match, by a trie for each field."""
    return _search(problem, "prefix", options)


def combine_all(problem: FlowTables, *, options: Options = Options()) -> Decision[Cache]:
    """Combine priorities, stages and tries, as Open vSwitch does."""
    return _search(problem, "all", options)


def match_least(
    problem: FlowTables, *, by_entropy: ByEntropy = True, options: Options = Options()
) -> Decision[Cache]:
    """Match as little as keeps the packet's action: a minimum weight hitting set for each miss, greedily."""
    return decide(problem, fill_by_misses(problem, make_least_masks(problem, by_entropy)), options=options)


def serve_from_pool(
    problem: FlowTables, *, by_entropy: ByEntropy = True, options: Options = Options()
) -> Decision[Cache]:
    """Take a mask in use where it keeps the packet's action, the lightest first; else the least specific."""
    masks = make_least_masks(problem, by_entropy)
    return decide(problem, fill_by_misses(problem, masks, reuse=True), options=options)


def match_all_bits(problem: FlowTables) -> Callable[[Words], Words]:
    """Return the function that matches all bits of each of some headers (n, words)."""
    return lambda headers: np.broadcast_to(problem.full_mask, headers.shape).copy()


def make_least_masks(problem: FlowTables, by_entropy: bool) -> Callable[[Words], Words]:
    """Return the function that finds a mask of little weight for each of some headers (n, words)."""
    index = make_bit_index(problem, by_entropy=by_entropy)
    return lambda headers: np.asarray(
        find_least_masks(headers, find_needed_bits(problem, headers), problem.entries, index)
    )


def find_needed_bits(problem: FlowTables, headers: Words) -> Words:
    """Return the bits that an entry for each header (n, words) must match: of its type and its action."""
    return np.asarray(find_needed(headers, classify(headers, problem.entries), problem.entries))


def make_searched_masks(
    problem: FlowTables, *, by_priority: bool = False, is_staged: bool = False, by_prefix: bool = False
) -> Callable[[Words], Words]:
    """Return the function that finds the bits that a search looks at for each of some headers (n, words).

    raises  InputError for a search without all optimizations where rules are entries evaluated with all
    """
    if problem.is_evaluated and not (by_priority and is_staged and by_prefix):
        raise InputError(
            "rules are entries that the tables of the switch make with all optimizations; searches with "
            "fewer need the tables themselves, so that of these designs only 'all' is there"
        )
    if problem.is_evaluated:
        return partial(_match_installed, problem)
    space = make_tuple_space(problem, is_staged=is_staged)
    return lambda headers: (
        search(problem, headers, space, by_priority=by_priority, by_prefix=by_prefix)
        | find_needed_bits(problem, headers)
    )


def _match_installed(problem: FlowTables, headers: Words) -> Words:
    """Return the mask of the installed entry that holds each of some headers (n, words)."""
    value, mask_of, masks = list_installed(problem)
    entry, _ = find_all(fill_table(value, mask_of, masks), headers)
    return np.ascontiguousarray(masks[mask_of[entry]])


MASKS_OF_MISSES: Final[dict[str, Callable[[FlowTables], Callable[[Words], Words]]]] = {
    "microflows": match_all_bits,
    "tuple_search": make_searched_masks,
    "priority": partial(make_searched_masks, by_priority=True),
    "staged": partial(make_searched_masks, is_staged=True),
    "prefix": partial(make_searched_masks, by_prefix=True),
    "all": partial(make_searched_masks, by_priority=True, is_staged=True, by_prefix=True),
    "least_specific": partial(make_least_masks, by_entropy=True),
    "pool": partial(make_least_masks, by_entropy=True),
}
"""For each design that acts at each miss, what returns the masks of new entries."""


def fill_by_misses(
    problem: FlowTables,
    make_masks: Callable[[Words], Words],
    *,
    reuse: bool = False,
) -> Table:
    """Return the entries after all connections, in their order, from an empty cache.

    make_masks  returns the mask of the entry that a miss of each header (n, words) installs
    reuse       whether the lightest mask in use that keeps the action is taken before
    """
    headers = problem.headers
    table = make_table(headers.shape[1], len(headers), len(headers))
    index = make_bit_index(problem)
    weight = weigh_bits(problem, by_entropy=True) if reuse else np.zeros(64 * headers.shape[1])
    if reuse:
        start, none = 0, headers[:0]
        while True:  # masks are made only for headers for which no mask in use is valid
            start += int(install_all(table, headers[start:], none, problem.entries, index, weight, True))
            if start == len(headers):
                return table
            header = headers[start : start + 1]
            install_all(table, header, make_masks(header), problem.entries, index, weight, True)
            start += 1
    for start in range(0, len(headers), CHUNK):
        chunk = headers[start : start + CHUNK]
        entry, _ = find_all(table, chunk)
        missed = np.flatnonzero(entry < 0)
        masks = np.zeros_like(chunk)
        masks[missed] = make_masks(chunk[missed])
        install_all(table, chunk, masks, problem.entries, index, weight, False)
    return table


def _search(problem: FlowTables, name: str, options: Options) -> Decision[Cache]:
    """Return the decision by the bits that a tuple space search looks at."""
    return decide(problem, fill_by_misses(problem, MASKS_OF_MISSES[name](problem)), options=options)


@inner
def count_common(first: Any, second: Any, start: Any, end: Any) -> Any:
    """Return the ones that two rows of words have in common."""
    # from 0, as compiled loops are vectorised where no index can be negative
    first, second = first[start:end], second[start:end]
    total = np.uint64(0)
    for w in range(len(first)):
        total += count_bits(first[w] & second[w])
    return np.int64(total)


@inner
def clear(words: Any, row: Any, start: Any, end: Any) -> Any:
    """Clear the bits of a row in words."""
    words, row = words[start:end], row[start:end]
    for w in range(len(words)):
        words[w] &= ~row[w]


@inner
def hit_all(
    header: Any, mask: Any, index: Any, unhit: Any, start: Any, end: Any, selected: Any, bound: Any
) -> Any:
    """Choose bits that hit all entries of `unhit`, the most entries for the weight first, and clear `unhit`.

    Counts only fall as entries are hit, so that a bit is counted again only where it may be the next one.

    mask    (words,) bits that are matched already, and hit none of these entries
    selected  (B,) is set for the bits chosen
    returns the weight of the bits chosen
    """
    bits = len(index.bit)
    selected[:] = False
    remaining = np.int64(0)
    for w in range(start, end):
        remaining += np.int64(count_bits(unhit[w]))
    for b in range(bits):
        bound[b] = remaining
        if has_bit(mask, index.bit[b]):
            bound[b] = 0
    weight = 0.0
    is_exact = np.zeros(bits, np.bool_)
    while remaining > 0:
        best, ratio = -1, 0.0
        for b in range(bits):
            if bound[b] > 0 and bound[b] / index.weight[b] > ratio:
                best, ratio = b, bound[b] / index.weight[b]
        row = index.differs[best, has_bit(header, index.bit[best])]
        if not is_exact[best]:
            bound[best] = count_common(unhit, row, start, end)
            is_exact[best] = True
            continue
        clear(unhit, row, start, end)
        remaining -= bound[best]
        bound[best] = 0
        selected[best] = True
        weight += index.weight[best]
        is_exact[:] = False
    return weight


@inner
def find_twice(header: Any, index: Any, start: Any, end: Any, selected: Any, once: Any, twice: Any) -> Any:
    """Set the bits of entries that one chosen bit hits at least, and that two hit."""
    once, twice = once[start:end], twice[start:end]
    once[:] = 0
    twice[:] = 0
    for b in range(len(selected)):
        if selected[b]:
            row = index.differs[b, has_bit(header, index.bit[b])][start:end]
            for w in range(len(row)):
                twice[w] |= once[w] & row[w]
                once[w] |= row[w]


@inner
def drop_bits(
    header: Any, index: Any, all_rest: Any, start: Any, end: Any, selected: Any, once: Any, twice: Any
) -> Any:
    """Take back chosen bits that others make needless, the heaviest first; return their weight.

    A bit is needless where others hit all its entries of `all_rest`. Fewer bits make no bit needless, so that
    each is tried once.

    once, twice  scratch
    """
    saved = 0.0
    is_tried = np.zeros(len(selected), np.bool_)
    find_twice(header, index, start, end, selected, once, twice)
    while True:
        heaviest = -1
        for b in range(len(selected)):
            if selected[b] and not is_tried[b] and (heaviest < 0 or index.weight[b] > index.weight[heaviest]):
                heaviest = b
        if heaviest < 0:
            return saved
        is_tried[heaviest] = True
        row = index.differs[heaviest, has_bit(header, index.bit[heaviest])]
        needed = np.uint64(0)
        for w in range(start, end):
            needed |= all_rest[w] & row[w] & ~twice[w]
        if needed == 0:
            selected[heaviest] = False
            saved += index.weight[heaviest]
            find_twice(header, index, start, end, selected, once, twice)


@inner
def keep_range(words: Any, first: Any, last: Any) -> Any:
    """Clear the bits before `first`, and from `last` on, in the words that hold these two."""
    words[first >> 6] &= ~np.uint64(0) << np.uint64(first & 63)
    if last & 63:
        words[last >> 6] &= ~(~np.uint64(0) << np.uint64(last & 63))


@run_small_in_python(max_elements=1_000)
@kernel
def find_least_masks(headers: Any, needed: Any, rules: Any, index: Any) -> Any:  # noqa: C901
    """Return a mask of little weight that keeps the action of each header (n, words), (n, words).

    needed  (n, words) bits that the mask of each header must have
    """
    count, words = headers.shape
    masks = needed.copy()
    all_bits = np.full(words, ~np.uint64(0))
    size = index.differs.shape[2]
    unhit, all_rest = np.zeros(size, np.uint64), np.zeros(size, np.uint64)
    matches, twice = np.zeros(size, np.uint64), np.zeros(size, np.uint64)
    others, others_of = np.zeros((KEPT_ACTIONS, size), np.uint64), np.full(KEPT_ACTIONS, -1)
    bound = np.zeros(len(index.bit), np.int64)
    selected, best_bits = np.zeros(len(index.bit), np.bool_), np.zeros(len(index.bit), np.bool_)
    start_mask, best_mask = np.zeros(words, np.uint64), np.zeros(words, np.uint64)
    for h in range(count):
        header, table = headers[h], 0
        while table >= 0:
            first, last = rules.start[table], rules.start[table + 1]
            action = np.int32(-1)
            following = -1
            smallest = np.inf
            anchors = 0
            low, high = first >> 6, (last + 63) >> 6
            if last > first:
                find_meeting(header, all_bits, index, low, high, matches[low:])
                keep_range(matches, first, last)
            word, is_last = low, False
            while not is_last:
                while word < high and matches[word] == 0:
                    word += 1
                i = last
                if last > first and word < high:
                    lowest = matches[word] & (~matches[word] + np.uint64(1))
                    matches[word] ^= lowest
                    i = np.int64(word) * 64 + np.int64(count_bits(lowest - np.uint64(1)))
                is_last = i == last
                if not is_last:
                    if action < 0:
                        action, following = rules.action[i], rules.next[i]
                    elif rules.action[i] != action:
                        break
                    if anchors == MOST_ANCHORS:
                        continue
                elif action > 0:  # the last anchor is that no entry matches, which drops
                    break
                else:
                    action = np.int32(0)
                anchors += 1
                weight = 0.0
                for w in range(words):
                    start_mask[w] = masks[h, w]
                    if i < last:
                        start_mask[w] |= rules.mask[i, w]
                for b in range(len(index.bit)):
                    if has_bit(start_mask, index.bit[b]) and not has_bit(masks[h], index.bit[b]):
                        weight += index.weight[b]
                if weight >= smallest:
                    continue
                end = (i + 63) >> 6
                slot = action % KEPT_ACTIONS
                if others_of[slot] != action:
                    others_of[slot] = action
                    others[slot, :] = 0
                    for j in range(len(rules.action)):
                        if rules.action[j] != action:
                            others[slot, j >> 6] |= np.uint64(1) << np.uint64(j & 63)
                for w in range(low, end):
                    unhit[w] = others[slot, w]
                if end > low:
                    keep_range(unhit, first, i)
                for b in range(len(index.bit)):
                    if has_bit(start_mask, index.bit[b]):
                        clear(unhit, index.differs[b, has_bit(header, index.bit[b])], low, end)
                for w in range(low, end):
                    all_rest[w] = unhit[w]
                weight += hit_all(header, start_mask, index, unhit, low, end, selected, bound)
                weight -= drop_bits(header, index, all_rest, low, end, selected, unhit, twice)
                if weight < smallest:
                    smallest = weight
                    best_mask[:] = start_mask
                    best_bits[:] = selected
            masks[h] = best_mask
            for b in range(len(index.bit)):
                if best_bits[b]:
                    bit_index = index.bit[b]
                    masks[h, bit_index >> 6] |= np.uint64(1) << np.uint64(63 - (bit_index & 63))
            table = following
    return masks
