"""Designs that change rules in place, round by round: no switch holds two rules of a class.

The fewest rounds of a small class come from a search over the sets of switches that have changed. A class
passes from one set of changed switches to a larger one in a round where the replay of that round finds no
mixture that the class's guarantee rules out. All sets of a small class are tried.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final

import numpy as np

from planner.arrays import Bools, Ints
from planner.compiled import inner, kernel, run_small_in_python
from planner.contract.design import Decision
from planner.options import Options
from planner.search.deadline import NEVER, Deadline
from planner_models.updates.designs.decision import Evidence, decide
from planner_models.updates.designs.loop_free_order import (
    MOST_TRIES,
    Member,
    Rounds,
    Visits,
    find_rounds,
    is_safe_at,
    is_safe_from,
    order_by_neighbours,
)
from planner_models.updates.designs.two_phase import drain_time_s
from planner_models.updates.plan.check import ASKS
from planner_models.updates.plan.plan import Step, UpdatePlan, as_network
from planner_models.updates.plan.replay import ADD, REMOVE, SWAP, Changes, Network, Operations, State, replay
from planner_models.updates.problem.problem import Update
from planner_models.updates.problem.schema import GUARANTEES, NO_GUARANTEE, NO_LOOP, PER_PACKET, WAYPOINT

LOOP_FREE: Final = ("loop", "black_hole")
SCOPE: Final = "changes in place"
MOST_CHANGES: Final = 11  # switches of a class that change, for a search over all sets of them
MAX_GUARANTEED_CHANGES: Final = 7
"""Switches of a class that change, for a search over all sets of them."""
MAX_GUARANTEED_CLASSES: Final = 50
"""Classes that are searched."""


def update_in_order(problem: Update, *, options: Options = Options()) -> Decision[UpdatePlan]:
    """Change rules in place in greedy rounds, so that no mixture within a round breaks a class's guarantee.

    Classes without a guarantee change in the first round, those that may lose packets keep free of loops, and
    the others lose none. Waypoints and paths without rules of both are kept only by chance. The bound counts
    waits that are forced for one class; it holds for changes in place. Once a time limit is over, other
    classes change as in `update_by_neighbours`, and their waits do not count.
    """
    deadline = Deadline.of(options)
    rounds = find_rounds(
        as_network(problem), _ordered(problem), may_lose=_may_lose(problem), deadline=deadline
    )
    is_cut = deadline.is_over
    return _decide(problem, _order(problem, rounds), options, is_cut=is_cut)


def update_in_few_rounds(problem: Update, *, options: Options = Options()) -> Decision[UpdatePlan]:
    """Change rules in place in the fewest rounds: greedily in several orders, and by search where small.

    The search of small classes also keeps waypoints and paths without rules of both, where rounds exist that
    do. Once a time limit is over, other classes keep their greedy rounds.
    """
    net, may_lose, deadline = as_network(problem), _may_lose(problem), Deadline.of(options)
    greedy = find_rounds(net, _ordered(problem), may_lose=may_lose, tries=MOST_TRIES, deadline=deadline)
    improved, is_cut = improve(net, greedy, may_lose, deadline)
    rounds, is_late = improve_guaranteed(problem, _order(problem, improved), deadline)
    return _decide(problem, rounds, options, is_cut=is_cut or is_late)


def update_by_neighbours(problem: Update, *, options: Options = Options()) -> Decision[UpdatePlan]:
    """Change each switch once its new next hops say that they are ready: no control plane decides for all.

    A rule that ends does so once no switch sends to it any more.
    """
    rounds = order_by_neighbours(as_network(problem), np.flatnonzero(problem.slots.changes))
    evidence = Evidence(metric="rounds")
    return decide(
        problem, steps_of_rounds(problem, rounds), claims=LOOP_FREE, options=options, evidence=evidence
    )


def _is_free(problem: Update) -> Bools:
    """Return the (C,) classes without a guarantee, with rules that may change at any time."""
    free: Bools = problem.guarantee == GUARANTEES.index(NO_GUARANTEE)
    return free


def _ordered(problem: Update) -> Bools:
    """Return the (C,) classes with changes that need an order."""
    return problem.slots.changes & ~_is_free(problem)


def _may_lose(problem: Update) -> Bools:
    """Return the (C,) classes with packets that may be lost during the update, but not loop."""
    may_lose: Bools = problem.guarantee == GUARANTEES.index(NO_LOOP)
    return may_lose


def _order(problem: Update, rounds: Rounds) -> Rounds:
    """Return the rounds of all classes, those without a guarantee in the first round."""
    slots = problem.slots
    free = _is_free(problem) & slots.changes
    return Rounds(
        np.where(free[slots.owner] & ~slots.same, 1, rounds.of_slot),
        np.where(free, 1, rounds.most),
        np.where(free, 1, rounds.least),
    )


def steps_of_rounds(problem: Update, rounds: Ints) -> list[Step]:
    """Return the steps of (N,) rounds, 0 for slots that stay."""
    slots = problem.slots
    has_now, has_next = slots.now.has_rule(), slots.next.has_rule()
    action = np.where(has_now & has_next, SWAP, np.where(has_next, ADD, REMOVE))
    wait_s = drain_time_s(problem, slots.changes)
    steps = []
    order = np.argsort(rounds, kind="stable")
    edges = np.searchsorted(rounds[order], np.arange(1, int(rounds.max(initial=0)) + 2))
    for first, last in pairwise(edges.tolist()):
        slots_of = order[first:last]
        actions = action[slots_of]
        kind = "swap" if (actions == SWAP).any() else "install" if (actions == ADD).all() else "delete"
        steps.append(Step(kind, slots_of, actions, 0.0 if (actions == ADD).all() else wait_s))
    return steps


def _decide(
    problem: Update, rounds: Rounds, options: Options, *, is_cut: bool = False
) -> Decision[UpdatePlan]:
    return decide(
        problem,
        steps_of_rounds(problem, rounds.of_slot),
        claims=LOOP_FREE,
        options=options,
        evidence=Evidence(
            metric="rounds", bound=float(rounds.least.max(initial=0)), scope=SCOPE, is_cut=is_cut
        ),
    )


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
def _search_sets(net: Network, class_id: int, changed: Ints, may_lose: bool) -> Ints:
    """Return a round for each changed slot of a class with the fewest rounds.

    A subset of switches that may change in a round may too, so that each set is reached from its subsets.
    """
    count = len(changed)
    every = 1 << count
    fewest = np.full(every, 1 << 20)
    before = np.full(every, -1)
    fewest[0] = 0
    slot_at = np.full(net.switches, -1)
    for slot in range(net.start[class_id], net.start[class_id + 1]):
        slot_at[net.switch[slot]] = slot
    member = Member(class_id, slot_at, np.zeros(len(net.switch), dtype=np.int64), may_lose)
    visits = Visits(
        np.zeros(net.switches, dtype=np.int64),
        np.zeros(net.switches + 1, dtype=np.int64),
        np.zeros(net.switches + 1, dtype=np.int64),
    )
    mark = 0
    for now in range(every):
        if fewest[now] >= 1 << 20:
            continue
        remaining = (every - 1) & ~now
        turn = remaining
        while turn > 0:
            if fewest[now] + 1 < fewest[now | turn]:
                mark += count + 2
                if _may_turn(net, member, changed, now, turn, visits, mark):
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


@inner
def _may_turn(
    net: Network, member: Member, changed: Ints, now: int, turn: int, visits: Visits, mark: int
) -> bool:
    """Return whether some switches may change in a round, others having changed before.

    now, turn  sets of places in `changed`
    mark       of the first search; later ones take the next marks
    """
    for index in range(len(changed)):
        bit = 1 << index
        member.round_of[changed[index]] = 1 if now & bit else (-2 if turn & bit else 0)
    if net.ingress[member.class_id] >= 0:
        return is_safe_from(net, member, visits, mark)
    for index in range(len(changed)):
        if turn & (1 << index) and not is_safe_at(net, member, changed[index], visits, mark + index):
            return False
    return True


def improve_guaranteed(problem: Update, rounds: Rounds, deadline: Deadline = NEVER) -> tuple[Rounds, bool]:
    """Return rounds that keep the guarantee of small classes with waypoints, or that may mix no rules.

    Classes of which no rounds do stay as they are. Also returns whether the deadline
    came before the last class.
    """
    net = as_network(problem)
    levels = [GUARANTEES.index(name) for name in (WAYPOINT, PER_PACKET)]
    slots = problem.slots
    changed = np.bincount(slots.owner[~slots.same], minlength=len(problem.classes))
    small = np.flatnonzero(
        np.isin(problem.guarantee, levels) & (changed > 0) & (changed <= MAX_GUARANTEED_CHANGES)
    )
    of_slot, upper, lower = (array.copy() for array in rounds)
    for class_id in small[:MAX_GUARANTEED_CLASSES].tolist():
        if deadline.is_over:
            return Rounds(of_slot, upper, lower), True
        slots_of = np.arange(slots.start[class_id], slots.start[class_id + 1])
        turning = slots_of[~slots.same[slots_of]]
        name = GUARANTEES[problem.guarantee[class_id]]
        forbidden = sum(bit for bit, names in ASKS.items() if name in names)
        best = _search_guaranteed_sets(
            take_class(net, class_id), turning - slots.start[class_id], forbidden, deadline
        )
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


def _search_guaranteed_sets(net: Network, turning: Ints, forbidden: int, deadline: Deadline) -> Ints | None:
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
        Changes(Operations(zeros, moves, action, ones), np.array([0, len(moves)]), np.zeros(1, dtype=bool)),
        links,
    )
    return not int(outcome.bits[0]) & forbidden
