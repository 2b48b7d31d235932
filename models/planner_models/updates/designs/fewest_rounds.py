"""Fewest rounds of small classes, by search over the sets of switches that have changed."""

from __future__ import annotations

from typing import Final

import numpy as np

from planner.arrays import Bools, Ints
from planner.compiled import kernel, run_small_in_python
from planner.search.deadline import NEVER, Deadline
from planner_models.updates.designs.loop_free_order import Rounds, is_safe_at, is_safe_from
from planner_models.updates.plan.replay import Network

MOST_CHANGES: Final = 11  # switches of a class that change, for a search over all sets of them


def improve(net: Network, result: Rounds, may_lose: Bools, deadline: Deadline = NEVER) -> tuple[Rounds, bool]:
    """Return rounds with the fewest ones for classes that are small and not proven yet, and their bounds.

    Also returns whether the deadline came before the last class.

    may_lose  (C,) whether packets of a class may be lost meanwhile
    deadline  when the others keep their rounds
    """
    rounds, upper, lower = (array.copy() for array in result)
    for class_id in np.flatnonzero(result.most > result.least).tolist():
        if deadline.is_over:
            return Rounds(rounds, upper, lower), True
        slots = slice(net.start[class_id], net.start[class_id + 1])
        changed = np.flatnonzero(~net.same[slots]) + slots.start
        if len(changed) > MOST_CHANGES:
            continue
        best = _search_sets(net, class_id, changed, bool(may_lose[class_id]))
        rounds[changed] = best
        upper[class_id] = lower[class_id] = int(best.max())
    return Rounds(rounds, upper, lower), False


@run_small_in_python(max_elements=1_000)
@kernel
def _search_sets(net: Network, class_id: int, changed: Ints, may_lose: bool) -> Ints:  # noqa: C901
    """Return a round for each changed slot of a class with the fewest rounds.

    A subset of switches that may change in a round may too, so that each set is reached from its subsets.
    """
    count = len(changed)
    every = 1 << count
    fewest = np.full(every, 1 << 20)
    before = np.full(every, -1)
    fewest[0] = 0
    state = np.zeros(len(net.switch), dtype=np.int64)
    slot_at = np.full(net.switches, -1)
    visit = np.zeros(net.switches, dtype=np.int64)
    stack, edge = np.zeros(net.switches + 1, dtype=np.int64), np.zeros(net.switches + 1, dtype=np.int64)
    for slot in range(net.start[class_id], net.start[class_id + 1]):
        slot_at[net.switch[slot]] = slot
    mark = 0
    single = net.ingress[class_id] >= 0
    for now in range(every):
        if fewest[now] >= 1 << 20:
            continue
        remaining = (every - 1) & ~now
        turn = remaining
        while turn > 0:
            if fewest[now] + 1 < fewest[now | turn]:
                for index in range(count):
                    bit = 1 << index
                    state[changed[index]] = 1 if now & bit else (-2 if turn & bit else 0)
                fits = True
                if single:
                    mark += 2
                    fits = is_safe_from(net, class_id, slot_at, state, may_lose, visit, mark, stack, edge)
                else:
                    for index in range(count):
                        if turn & (1 << index):
                            mark += 1
                            if not is_safe_at(
                                net, class_id, changed[index], slot_at, state, may_lose, visit, mark, stack
                            ):
                                fits = False
                                break
                if fits:
                    fewest[now | turn] = fewest[now] + 1
                    before[now | turn] = now
            turn = (turn - 1) & remaining
    rounds = np.zeros(count, dtype=np.int64)
    subset = every - 1
    while subset > 0:
        last = before[subset]
        for index in range(count):
            if subset & ~last & (1 << index):
                rounds[index] = fewest[subset]
        subset = last
    return rounds
