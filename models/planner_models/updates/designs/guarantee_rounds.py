"""Fewest rounds in place that keep a class's waypoints, or paths without rules of both, by search over sets.

A class passes from one set of changed switches to a larger one in a round where the replay of that round
finds no mixture that the class's guarantee rules out. All sets of a small class are tried.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from planner.arrays import Ints
from planner_models.updates.designs.loop_free_order import Rounds
from planner_models.updates.plan.check import ASKS
from planner_models.updates.plan.plan import as_network
from planner_models.updates.plan.replay import ADD, REMOVE, SWAP, Operations, State, replay
from planner_models.updates.problem.problem import Update
from planner_models.updates.problem.schema import GUARANTEES, PER_PACKET, WAYPOINT

MAX_CHANGES: Final = 7
"""Switches of a class that change, for a search over all sets of them."""
MAX_CLASSES: Final = 50
"""Classes that are searched."""


def improve(problem: Update, rounds: Rounds) -> Rounds:
    """Return rounds that keep the guarantee of small classes with waypoints, or that may mix no rules.

    Classes of which no rounds do stay as they are.
    """
    levels = [GUARANTEES.index(name) for name in (WAYPOINT, PER_PACKET)]
    slots = problem.slots
    changed = np.bincount(slots.owner[~slots.same], minlength=len(problem.classes))
    small = np.flatnonzero(np.isin(problem.guarantee, levels) & (changed > 0) & (changed <= MAX_CHANGES))
    of_slot, most, least = (part.copy() for part in rounds)
    for one in small[:MAX_CLASSES].tolist():
        mine = np.arange(slots.start[one], slots.start[one + 1])
        turning = mine[~slots.same[mine]]
        best = _search_sets(problem, one, turning)
        if best is not None:
            of_slot[turning] = best
            most[one] = least[one] = int(best.max())
    return Rounds(of_slot, most, least)


def _search_sets(problem: Update, one: int, turning: Ints) -> Ints | None:
    """Return the round of each changed slot of a class in the fewest rounds; None where none are right."""
    count = len(turning)
    every = (1 << count) - 1
    fewest = {0: 0}
    before: dict[int, int] = {}
    for now in range(every):
        if now not in fewest:
            continue
        rest = every & ~now
        turn = rest
        while turn:
            after = now | turn
            if fewest[now] + 1 < fewest.get(after, count + 1) and _is_kept(problem, one, turning, now, turn):
                fewest[after], before[after] = fewest[now] + 1, now
            turn = (turn - 1) & rest
    if every not in fewest:
        return None
    rounds = np.zeros(count, dtype=np.int64)
    at = every
    while at:
        bits = np.array([(at & ~before[at]) >> place & 1 for place in range(count)], dtype=bool)
        rounds[bits] = fewest[at]
        at = before[at]
    return rounds


def _is_kept(problem: Update, one: int, turning: Ints, now: int, turn: int) -> bool:
    """Return whether a class's guarantee holds while some switches change, others having changed before.

    now, turn  sets of places in `turning`
    """
    slots = problem.slots
    has_now, has_next = slots.now.has_rule(), slots.next.has_rule()
    places = np.arange(len(turning))
    done, moves = turning[(now >> places & 1) > 0], turning[(turn >> places & 1) > 0]
    state = State.before(has_now)
    state.old[done] = False
    state.new[done] = has_next[done]
    action = np.where(has_now & has_next, SWAP, np.where(has_next, ADD, REMOVE))[moves].astype(np.int64)
    zeros, ones = np.zeros(len(moves), dtype=np.int64), np.ones(len(moves), dtype=np.int64)
    outcome = replay(
        as_network(problem),
        state,
        Operations(zeros, moves, action, ones),
        np.array([0, len(moves)]),
        np.zeros(len(problem.classes), dtype=bool),
        len(problem.links),
    )
    name = GUARANTEES[problem.guarantee[one]]
    forbidden = sum(bit for bit, names in ASKS.items() if name in names)
    return not int(outcome.bits[0]) & forbidden
