"""Compiled classification of headers by rules, and the test whether a mask keeps a header's action.

Kernels take headers and rules in words; see `planner_models.flowtables.problem.problem.Rules`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from planner.compiled import inner, kernel, run_small_in_python


@inner
def find_first(header: Any, value: Any, mask: Any, start: Any, end: Any) -> Any:
    """Return the first entry from `start` to `end` that matches a header (words,); -1 for none."""
    words = len(header)
    for i in range(start, end):
        if words == 2:
            if (((header[0] ^ value[i, 0]) & mask[i, 0]) | ((header[1] ^ value[i, 1]) & mask[i, 1])) == 0:
                return i
            continue
        matches = True
        for w in range(words):
            if (header[w] ^ value[i, w]) & mask[i, w]:
                matches = False
                break
        if matches:
            return i
    return -1


@run_small_in_python(max_elements=1_000)
@kernel
def classify(headers: Any, rules: Any) -> Any:
    """Return the final action of each header (n, words), shape (n,)."""
    actions = np.zeros(len(headers), np.int32)
    for h in range(len(headers)):
        table = 0
        while table >= 0:
            i = find_first(headers[h], rules.value, rules.mask, rules.start[table], rules.start[table + 1])
            if i < 0:
                actions[h] = 0
                break
            actions[h] = rules.action[i]
            table = rules.next[i]
    return actions


@inner
def find_kind(header: Any, rules: Any) -> Any:
    """Return the index of the first kind of packets that a header is of, in `rules.always`; -1 for none."""
    for k in range(len(rules.always)):
        is_kind = True
        for w in range(len(header)):
            if (header[w] ^ rules.kind_value[k, w]) & rules.kind_mask[k, w]:
                is_kind = False
                break
        if is_kind:
            return k
    return -1


@inner
def has_needed(header: Any, mask: Any, action: Any, rules: Any) -> Any:
    """Return whether a mask has all bits that an entry for a header with its final action must match."""
    for w in range(len(mask)):
        if rules.needs[action, w] & ~mask[w]:
            return False
    k = find_kind(header, rules)
    if k >= 0:
        for w in range(len(mask)):
            if rules.always[k, w] & ~mask[w]:
                return False
    return True


@inner
def add_needed(header: Any, mask: Any, action: Any, rules: Any) -> None:
    """Add the bits to a mask that an entry for a header with its final action must match."""
    for w in range(len(mask)):
        mask[w] |= rules.needs[action, w]
    k = find_kind(header, rules)
    if k >= 0:
        for w in range(len(mask)):
            mask[w] |= rules.always[k, w]


@run_small_in_python(max_elements=1_000)
@kernel
def find_needed(headers: Any, actions: Any, rules: Any) -> Any:
    """Return the bits that an entry for each header (n, words) with its final action (n,) must match."""
    needed = np.zeros_like(headers)
    for h in range(len(headers)):
        add_needed(headers[h], needed[h], actions[h], rules)
    return needed


@inner
def is_valid(header: Any, mask: Any, rules: Any) -> Any:
    """Return whether an entry with a mask may serve a header: all that it holds get the same action.

    In each table that the header visits, an entry that holds all these headers, or no entry at all, ends the
    search; entries before it that meet some of them have the same action. This suffices; it is not necessary
    where several entries hold the headers only together. The mask must have the bits that the action needs.
    """
    words = len(header)
    table = 0
    final = np.int32(0)
    while table >= 0:
        winner = -1
        following = -1
        action = np.int32(-1)  # of entries that meet the cube so far
        for i in range(rules.start[table], rules.start[table + 1]):
            meets, holds = True, True
            for w in range(words):
                rule_mask = rules.mask[i, w]
                if (header[w] ^ rules.value[i, w]) & rule_mask & mask[w]:
                    meets = False
                    break
                if rule_mask & ~mask[w]:
                    holds = False
            if not meets:
                continue
            if action >= 0 and rules.action[i] != action:
                return False
            action = rules.action[i]
            following = rules.next[i]
            if holds:
                winner = i
                break
        if winner < 0 and action > 0:  # some headers match no entry, and are dropped
            return False
        final = action if action >= 0 else np.int32(0)
        table = following if action >= 0 else -1
    return has_needed(header, mask, final, rules)


@kernel
def find_valid(headers: Any, masks: Any, rules: Any) -> Any:
    """Return the mask of the masks (k, words) that keep the action of headers (n, words), shape (k, n)."""
    valid = np.zeros((len(masks), len(headers)), np.bool_)
    for m in range(len(masks)):
        for h in range(len(headers)):
            valid[m, h] = is_valid(headers[h], masks[m], rules)
    return valid


@kernel
def find_right(value: Any, mask_of: Any, masks: Any, action: Any, now: Any, rules: Any) -> Any:
    """Return the mask (n,) of entries with their current action by the rules, all headers alike.

    value, now  (n, words) value of each entry, and the action that the rules give this header now
    """
    right = np.zeros(len(value), np.bool_)
    for e in range(len(value)):
        right[e] = now[e] == action[e] and is_valid(value[e], masks[mask_of[e]], rules)
    return right
