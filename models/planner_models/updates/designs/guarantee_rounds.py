"""Fewest rounds in place that keep a class's waypoints, or paths without rules of both, by search over sets.

A class passes from one set of changed switches to a larger one in a round where the replay of that round
finds no mixture that the class's guarantee rules out. All sets of a small class are tried.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from planner.arrays import Ints
from planner.search.deadline import NEVER, Deadline
from planner_models.updates.designs.loop_free_order import Rounds
from planner_models.updates.plan.check import ASKS
from planner_models.updates.plan.plan import as_network
from planner_models.updates.plan.replay import ADD, REMOVE, SWAP, Network, Operations, State, replay
from planner_models.updates.problem.problem import Update
from planner_models.updates.problem.schema import GUARANTEES, PER_PACKET, WAYPOINT

MAX_CHANGES: Final = 7
"""Switches of a class that change, for a search over all sets of them."""
MAX_CLASSES: Final = 50
"""Classes that are searched."""


def improve(problem: Update, rounds: Rounds, deadline: Deadline = NEVER) -> tuple[Rounds, bool]:
    """Return rounds that keep the guarantee of small classes with waypoints, or that may mix no rules.

    Classes of which no rounds do stay as they are. Also returns whether the deadline
    came before the last class.
    """
    net = as_network(problem)
    levels = [GUARANTEES.index(name) for name in (WAYPOINT, PER_PACKET)]
    slots = problem.slots
    changed = np.bincount(slots.owner[~slots.same], minlength=len(problem.classes))
    small = np.flatnonzero(np.isin(problem.guarantee, levels) & (changed > 0) & (changed <= MAX_CHANGES))
    of_slot, upper, lower = (array.copy() for array in rounds)
    for class_id in small[:MAX_CLASSES].tolist():
        if deadline.is_over:
            return Rounds(of_slot, upper, lower), True
        slots_of = np.arange(slots.start[class_id], slots.start[class_id + 1])
        turning = slots_of[~slots.same[slots_of]]
        name = GUARANTEES[problem.guarantee[class_id]]
        forbidden = sum(bit for bit, names in ASKS.items() if name in names)
        best = _search_sets(take_class(net, class_id), turning - slots.start[class_id], forbidden, deadline)
        if best is not None:
            of_slot[turning] = best
            upper[class_id] = lower[class_id] = int(best.max())
    return Rounds(of_slot, upper, lower), False


def take_class(net: Network, class_id: int) -> Network:
    """Return the rules of one class alone."""
    first, end = int(net.start[class_id]), int(net.start[class_id + 1])
    before, after = (
        slice(net.old_start[first], net.old_start[end]),
        slice(net.new_start[first], net.new_start[end]),
    )
    ways = slice(net.way_start[class_id], net.way_start[class_id + 1])
    return Network(
        start=np.array([0, end - first]),
        owner=np.zeros(end - first, dtype=np.int64),
        switch=net.switch[first:end],
        same=net.same[first:end],
        old_start=net.old_start[first : end + 1] - net.old_start[first],
        old_hop=net.old_hop[before],
        old_link=net.old_link[before],
        new_start=net.new_start[first : end + 1] - net.new_start[first],
        new_hop=net.new_hop[after],
        new_link=net.new_link[after],
        entering=net.entering[first:end],
        ingress=net.ingress[[class_id]],
        egress=net.egress[[class_id]],
        ways=net.ways[ways],
        way_start=net.way_start[class_id : class_id + 2] - net.way_start[class_id],
        switches=net.switches,
    )


def _search_sets(net: Network, turning: Ints, forbidden: int, deadline: Deadline) -> Ints | None:
    """Return the round of each changed slot of a class in the fewest rounds; None where none are right.

    net        of the class alone
    forbidden  sum of what packets may not meet
    deadline   at which the search ends without an answer
    """
    count = len(turning)
    every = (1 << count) - 1
    fewest = {0: 0}
    before: dict[int, int] = {}
    for now in range(every):
        if now not in fewest:
            continue
        if deadline.is_over:
            return None
        remaining = every & ~now
        turn = remaining
        while turn:
            after = now | turn
            if fewest[now] + 1 < fewest.get(after, count + 1) and _is_kept(
                net, turning, now, turn, forbidden
            ):
                fewest[after], before[after] = fewest[now] + 1, now
            turn = (turn - 1) & remaining
    if every not in fewest:
        return None
    rounds = np.zeros(count, dtype=np.int64)
    subset = every
    while subset:
        bits = np.array([(subset & ~before[subset]) >> bit & 1 for bit in range(count)], dtype=bool)
        rounds[bits] = fewest[subset]
        subset = before[subset]
    return rounds


def _is_kept(net: Network, turning: Ints, now: int, turn: int, forbidden: int) -> bool:
    """Return whether packets meet nothing forbidden while some switches change, others having changed before.

    now, turn  sets of places in `turning`
    """
    has_now, has_next = np.diff(net.old_start) > 0, np.diff(net.new_start) > 0
    bits = np.arange(len(turning))
    moved, moves = turning[(now >> bits & 1) > 0], turning[(turn >> bits & 1) > 0]
    state = State.before(has_now)
    state.old[moved] = False
    state.new[moved] = has_next[moved]
    action = np.where(has_now & has_next, SWAP, np.where(has_next, ADD, REMOVE))[moves].astype(np.int64)
    zeros, ones = np.zeros(len(moves), dtype=np.int64), np.ones(len(moves), dtype=np.int64)
    links = int(max(net.old_link.max(initial=-1), net.new_link.max(initial=-1))) + 1
    outcome = replay(
        net,
        state,
        Operations(zeros, moves, action, ones),
        np.array([0, len(moves)]),
        np.zeros(1, dtype=bool),
        links,
    )
    return not int(outcome.bits[0]) & forbidden
