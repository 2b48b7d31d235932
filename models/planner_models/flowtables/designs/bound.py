"""Bounds that hold for every cache whose entries keep the actions of their packets.

Two headers are incompatible where the smallest cube that holds both also holds a header of another action,
the witness: no correct entry serves both. Headers that are pairwise incompatible need an entry each.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from planner.arrays import Ints
from planner.compiled import inner, kernel
from planner_models.flowtables.designs.cover import Headers
from planner_models.flowtables.plan.classification import classify, find_first
from planner_models.flowtables.problem.fields import Words
from planner_models.flowtables.problem.problem import FlowTables

MIXTURES = 8  # of two headers that are tried as witnesses
MIXTURES_OF_ENTRY = 4  # the same within an entry
MOST_ENTRIES_TRIED = 64
HEADERS_AT_A_TIME = 200


def find_incompatible(
    problem: FlowTables, headers: Headers, specific: Ints, until: float | None = None
) -> Ints:
    """Return rows of headers that are pairwise incompatible, greedily, the most specific ones first.

    specific  (n,) bits that an entry for each header must match, or an estimate
    until     a time of time.perf_counter() at which the search ends, with the rows found so far
    """
    actions = classify(headers.words, problem.entries)
    order = np.argsort(-specific, kind="stable")
    chosen, recent = np.zeros(len(order), np.int64), np.zeros(len(order), np.int64)
    count = 0
    for begin in range(0, len(order), HEADERS_AT_A_TIME):
        if until is not None and begin and time.perf_counter() > until:
            break
        part = order[begin : begin + HEADERS_AT_A_TIME]
        count = _add_incompatible(headers.words, actions, part, problem.entries, chosen, recent, count)
    return chosen[:count]


def find_witness(problem: FlowTables, first: Words, second: Words) -> Words | None:
    """Return a header (words,) of another action in the smallest cube with two headers; None: none found."""
    both = np.array([first, second])
    actions = classify(both, problem.entries)
    witness = np.zeros_like(first)
    found = is_incompatible(first, second, actions[0], actions[1], problem.entries, witness)
    return witness if found else None


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
def mix(first: Any, second: Any, state: Any, witness: Any) -> Any:
    """Set a header to random bits of two; return the next state of the draw."""
    for w in range(len(first)):
        state ^= state << np.uint64(13)
        state ^= state >> np.uint64(7)
        state ^= state << np.uint64(17)
        witness[w] = (first[w] & ~state) | (second[w] & state)
    return state


@kernel
def is_incompatible(  # noqa: C901
    first: Any, second: Any, action: Any, other: Any, rules: Any, witness: Any
) -> Any:
    """Return whether a header of another action is found in the smallest cube with two; it is `witness`.

    Tried are mixtures of the two headers, alone and within each entry of another action that meets the cube.
    """
    words = len(first)
    witness[:] = second
    if action != other:
        return True
    state = np.uint64(0x9E3779B97F4A7C15)
    for _ in range(MIXTURES):
        state = mix(first, second, state, witness)
        if find_action(witness, rules) != action:
            return True
    tried = 0
    for i in range(len(rules.action)):
        meets = rules.action[i] != action
        for w in range(words):
            if (first[w] ^ rules.value[i, w]) & rules.mask[i, w] & ~(first[w] ^ second[w]):
                meets = False
                break
        if not meets:
            continue
        for _ in range(MIXTURES_OF_ENTRY):
            state = mix(first, second, state, witness)
            for w in range(words):
                mask = rules.mask[i, w]
                witness[w] = (rules.value[i, w] & mask) | (witness[w] & ~mask)
            if find_action(witness, rules) != action:
                return True
        tried += 1
        if tried == MOST_ENTRIES_TRIED:
            break
    return False


@kernel
def _add_incompatible(
    headers: Any, actions: Any, order: Any, rules: Any, chosen: Any, recent: Any, count: Any
) -> Any:
    """Add rows of headers that are incompatible with all before; return how many there are then.

    chosen  (n,) rows found, `count` of them; recent  (n,) the same, those that ruled others out first
    """
    witness = np.zeros(headers.shape[1], np.uint64)
    for h in order:
        is_apart = True
        for k in range(count):
            s = recent[k]
            if actions[s] == actions[h] and not is_incompatible(
                headers[h], headers[s], actions[h], actions[s], rules, witness
            ):
                is_apart = False
                while k > 0:
                    recent[k] = recent[k - 1]
                    k -= 1
                recent[0] = s
                break
        if is_apart:
            chosen[count] = h
            recent[count] = h
            count += 1
    return count
