"""Bounds that hold for every cache with entries that keep the actions of their packets.

Two headers are incompatible where the smallest cube that holds both also holds a header of another action,
the witness: no correct entry serves both. Headers that are pairwise incompatible need an entry each.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from planner.arrays import Ints
from planner.compiled import inner, kernel, run_small_in_python
from planner.search.deadline import NEVER, Deadline
from planner_models.flowtables.designs.cover import Headers
from planner_models.flowtables.plan.classification import classify, find_first, find_needed
from planner_models.flowtables.problem.fields import WORD, Words
from planner_models.flowtables.problem.problem import FlowTables

MIXTURES = 8  # of two headers that are tried as witnesses
MIXTURES_OF_ENTRY = 4  # the same within an entry
MOST_ENTRIES_TRIED = 64
HEADERS_AT_A_TIME = 200


def find_incompatible(
    problem: FlowTables, headers: Headers, specific: Ints, deadline: Deadline = NEVER
) -> Ints:
    """Return rows of headers that are pairwise incompatible, greedily, the most specific ones first.

    specific  (n,) bits that an entry for each header must match, or an estimate
    deadline  at which the search ends, with the rows found so far
    """
    actions = classify(headers.words, problem.entries)
    order = np.argsort(-specific, kind="stable")
    selected, recent = np.zeros(len(order), np.int64), np.zeros(len(order), np.int64)
    forced = np.zeros_like(headers.words)
    used, rules = problem.used_mask, problem.entries
    count = 0
    for begin in range(0, len(order), HEADERS_AT_A_TIME):
        if begin and deadline.is_over:
            break
        chunk = order[begin : begin + HEADERS_AT_A_TIME]
        count = _add_incompatible(headers.words, actions, chunk, used, rules, selected, recent, forced, count)
    return selected[:count]


def find_witness(problem: FlowTables, first: Words, second: Words) -> Words | None:
    """Return a header (words,) of another action in the smallest cube with two headers; None: none found."""
    both = np.array([first, second])
    actions = classify(both, problem.entries)
    witness = np.zeros_like(first)
    rules = problem.entries
    forced = find_forced(both, actions, problem.used_mask, rules) & (first ^ second)
    for header, bits in zip(both, forced, strict=True):
        if actions[0] == actions[1] and bits.any():
            word = int(np.flatnonzero(bits)[0])
            witness[:] = header
            witness[word] ^= bits[word] & (~bits[word] + np.uint64(1))  # the last of these bits
            return witness
    near = np.zeros(len(rules.action) + 1, np.int64), np.zeros(len(rules.start), np.int64)
    is_found = is_incompatible(first, second, actions[0], actions[1], rules, witness, *near)
    return witness if is_found else None


@inner
def find_action(header: Any, rules: Any) -> Any:
    """Return the final action of a header (words,)."""
    table, action = 0, 0
    while table >= 0:
        i = find_first(header, rules.value, rules.mask, rules.start[table], rules.start[table + 1])
        if i < 0:
            return 0
        action, table = rules.action[i], rules.next[i]
    return action


@inner
def mix(header: Any, mask: Any, state: Any, witness: Any) -> Any:
    """Set a header with random bits outside of a mask; return the next state of the draw."""
    for w in range(len(header)):
        state ^= state << np.uint64(13)
        state ^= state >> np.uint64(7)
        state ^= state << np.uint64(17)
        witness[w] = header[w] ^ (state & ~mask[w])
    return state


@run_small_in_python(max_elements=1_000)
@kernel
def find_forced(headers: Any, actions: Any, used: Any, rules: Any) -> Any:
    """Return the bits that every mask for each header (n, words) has, among the used ones.

    They change its action where flipped, or an entry with this action must match them.
    """
    forced = find_needed(headers, actions, rules)
    flipped = np.zeros(headers.shape[1], np.uint64)
    for h in range(len(headers)):
        flipped[:] = headers[h]
        for w in range(headers.shape[1]):
            for b in range(WORD):
                bit = np.uint64(1) << np.uint64(b)
                if not used[w] & bit or forced[h, w] & bit:
                    continue
                flipped[w] = headers[h, w] ^ bit
                if find_action(flipped, rules) != actions[h]:
                    forced[h, w] |= bit
            flipped[w] = headers[h, w]
    return forced


@inner
def find_near(header: Any, mask: Any, rules: Any, near: Any, near_start: Any) -> None:
    """Set the entries that meet the cube of a header and a mask, in the order of the search.

    near        (entries,) these entries
    near_start  (tables + 1,) place of the first one of each table in `near`
    """
    words, count = len(header), 0
    for table in range(len(near_start) - 1):
        near_start[table] = count
        for i in range(rules.start[table], rules.start[table + 1]):
            differs = np.uint64(0)
            for w in range(words):
                differs |= (header[w] ^ rules.value[i, w]) & rules.mask[i, w] & mask[w]
            near[count] = i  # kept where the count rises
            count += differs == 0
    near_start[len(near_start) - 1] = count


@inner
def find_action_near(header: Any, rules: Any, near: Any, near_start: Any) -> Any:
    """Return the final action of a header (words,) in the cube of `find_near`."""
    table, action = 0, 0
    while table >= 0:
        index = -1
        for k in range(near_start[table], near_start[table + 1]):
            i = near[k]
            differs = np.uint64(0)
            for w in range(len(header)):
                differs |= (header[w] ^ rules.value[i, w]) & rules.mask[i, w]
            if differs == 0:
                index = i
                break
        if index < 0:
            return 0
        action, table = rules.action[index], rules.next[index]
    return action


@inner
def is_mixed(
    header: Any, mask: Any, action: Any, rules: Any, witness: Any, near: Any, near_start: Any
) -> Any:
    """Return whether a header of another action is found in the cube of a header and a mask; it is `witness`.

    Tried are headers of the cube at random, alone and within each entry of another action that meets it.
    """
    words = len(header)
    state = mix(header, mask, np.uint64(0x9E3779B97F4A7C15), witness)
    if find_action(witness, rules) != action:
        return True
    find_near(header, mask, rules, near, near_start)
    for _ in range(MIXTURES - 1):
        state = mix(header, mask, state, witness)
        if find_action_near(witness, rules, near, near_start) != action:
            return True
    tried = 0
    for k in range(near_start[len(near_start) - 1]):
        i = near[k]
        if rules.action[i] == action:
            continue
        for _ in range(MIXTURES_OF_ENTRY):
            state = mix(header, mask, state, witness)
            for w in range(words):
                own_mask = rules.mask[i, w]
                witness[w] = (rules.value[i, w] & own_mask) | (witness[w] & ~own_mask)
            if find_action_near(witness, rules, near, near_start) != action:
                return True
        tried += 1
        if tried == MOST_ENTRIES_TRIED:
            break
    return False


@kernel
def is_incompatible(
    first: Any, second: Any, action: Any, other: Any, rules: Any, witness: Any, near: Any, near_start: Any
) -> Any:
    """Return whether a header of another action is found in the smallest cube with two; it is `witness`.

    near, near_start  (entries,) and (tables + 1,) memory for the entries that meet the cube
    """
    witness[:] = second
    return action != other or is_mixed(first, ~(first ^ second), action, rules, witness, near, near_start)


@inner
def make_near(rules: Any) -> Any:
    """Return memory for the entries that meet a cube, (entries + 1,), and for their tables, (tables + 1,)."""
    return np.zeros(len(rules.action) + 1, np.int64), np.zeros(len(rules.start), np.int64)


@run_small_in_python(max_elements=2_000)
@kernel
def _add_incompatible(
    headers: Any,
    actions: Any,
    order: Any,
    used: Any,
    rules: Any,
    selected: Any,
    recent: Any,
    forced: Any,
    count: Any,
) -> Any:
    """Add rows of headers that are incompatible with all before; return their number then.

    selected  (n,) rows found, `count` of them; recent  (n,) the same, those that ruled others out first
    forced  (n, words) bits of these that change the action where flipped: a header that differs in one of
            them is incompatible, as the flipped header is in the smallest cube with it
    """
    witness = np.zeros(headers.shape[1], np.uint64)
    near, near_start = make_near(rules)
    for h in order:
        is_apart = True
        for k in range(count):
            s = recent[k]
            if actions[s] != actions[h]:
                continue
            flips = np.uint64(0)
            for w in range(headers.shape[1]):
                flips |= forced[s, w] & (headers[s, w] ^ headers[h, w])
            if flips == 0 and not is_incompatible(
                headers[h], headers[s], actions[h], actions[s], rules, witness, near, near_start
            ):
                is_apart = False
                while k > 0:
                    recent[k] = recent[k - 1]
                    k -= 1
                recent[0] = s
                break
        if is_apart:
            selected[count] = h
            recent[count] = h
            forced[h] = find_forced(headers[h : h + 1], actions[h : h + 1], used, rules)[0]
            count += 1
    return count
