"""Rounds in which the rules of a class are changed in place, without a loop or a lost packet in any mixture.

A switch can change in a round if, in the union of old and new rules of all that change in it, no packet can
loop, and none reaches a switch without a rule. Rounds are filled greedily, with searches in that union. The
bound counts forced waits: a switch whose new next hop leads back to it by old rules must wait for one of the
switches on that way, and so on (earliest rounds by AND/OR precedence); the update backwards gives latest
rounds.

source  Foerster, Schmid and Vissicchio 2019, "Survey of consistent software-defined network updates"
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from planner.arrays import Bools, Ints
from planner.compiled import inner, kernel, run_small_in_python
from planner.search.deadline import NEVER, Deadline
from planner_models.updates.designs.union_order import (
    Order,
    admit,
    clear_order,
    has_new,
    has_old,
    start_order,
)
from planner_models.updates.plan.replay import Network

MOST_TRIES: Final = 6
"""Orders of switches that are tried where the first one needs more rounds than the bound."""


AT_ONCE: Final = 500
"""Classes between looks at the clock."""


class Rounds(NamedTuple):
    """Round of every slot, 0 where nothing changes; and for each class its rounds and a bound on them."""

    of_slot: Ints
    most: Ints
    least: Ints


class Member(NamedTuple):
    """One class in a round.

    slot_at   (S,) its slot at each switch; -1 for none
    round_of  (N,) round of each slot: negative in this round, 0 for later ones
    may_lose  whether its packets may be lost meanwhile, but not loop
    """

    class_id: int
    slot_at: Ints
    round_of: Ints
    may_lose: bool


class Visits(NamedTuple):
    """Memory of searches among switches.

    visit        (S,) mark of the last search that came to each switch
    stack, edge  (S,) switches on the way, and the rule that each follows next
    """

    visit: Ints
    stack: Ints
    edge: Ints


@run_small_in_python(max_elements=5_000)
@kernel
def order_all(
    net: Network, classes: Ints, may_lose: Bools, tries: int, prove: bool
) -> tuple[Ints, Ints, Ints]:
    """Return the rounds of all slots, (N,), the rounds of each class, and the bound on them, (C,).

    may_lose  (C,) whether packets of a class may be lost meanwhile, but not loop
    """
    rounds = np.zeros(len(net.switch), dtype=np.int64)
    upper, lower = np.zeros(len(net.start) - 1, dtype=np.int64), np.zeros(len(net.start) - 1, dtype=np.int64)
    depth = np.zeros(net.switches, dtype=np.int64)
    visits = Visits(
        np.zeros(net.switches, dtype=np.int64),
        np.zeros(net.switches, dtype=np.int64),
        np.zeros(net.switches, dtype=np.int64),
    )
    slot_at = np.full(net.switches, -1)
    round_of = np.zeros(len(net.switch), dtype=np.int64)
    order = Order(
        np.full(net.switches, -1),
        np.full(net.switches, -1),
        np.zeros(net.switches, dtype=np.bool_),
        np.full(net.switches, 0),
        np.full(net.switches, 0),
    )
    for class_id in classes:
        low, high = net.start[class_id], net.start[class_id + 1]
        for slot in range(low, high):
            slot_at[net.switch[slot]] = slot
        member = Member(class_id, slot_at, round_of, may_lose[class_id])
        first = _order_one(net, member, order, depth, visits, True, 0)
        upper[class_id] = first
        rounds[low:high] = round_of[low:high]
        if prove:
            # where packets may be lost, the first round takes all switches if that closes no cycle
            bound = 2 if may_lose[class_id] else _bound_one(net, member, visits)
            lower[class_id] = min(bound, first)
            for number in range(1, tries):
                if upper[class_id] <= lower[class_id]:
                    break
                count = _order_one(net, member, order, depth, visits, number % 2 == 1, number)
                if count < upper[class_id]:
                    upper[class_id] = count
                    rounds[low:high] = round_of[low:high]
        for slot in range(low, high):
            slot_at[net.switch[slot]] = -1
            round_of[slot] = 0
    return rounds, upper, lower


@inner
def _depths(net: Network, class_id: int, slot_at: Ints, depth: Ints) -> None:
    """Fill the number of next rules from each switch to the egress, for the order of a round."""
    low, high = net.start[class_id], net.start[class_id + 1]
    for slot in range(low, high):
        depth[net.switch[slot]] = -1
    stack = np.empty(high - low + 1, dtype=np.int64)
    for slot in range(low, high):
        size = 0
        node = net.switch[slot]
        # along first next hops; enough for an order
        while node != net.egress[class_id] and slot_at[node] >= 0 and depth[node] < 0:
            here = slot_at[node]
            if net.new_start[here] == net.new_start[here + 1] or size >= high - low:
                break
            stack[size] = node
            size += 1
            depth[node] = 0
            node = net.new_hop[net.new_start[here]]
        below = 0 if node == net.egress[class_id] or slot_at[node] < 0 else max(depth[node], 0)
        while size > 0:
            size -= 1
            below += 1
            depth[stack[size]] = below


@inner
def _order_one(  # noqa: C901
    net: Network, member: Member, order: Order, depth: Ints, visits: Visits, from_egress: bool, seed: int
) -> int:
    """Fill the round of each slot of a class, and return the number of rounds.

    from_egress  whether switches near the egress come first, else those far from it
    """
    class_id, slot_at, round_of = member.class_id, member.slot_at, member.round_of
    low, high = net.start[class_id], net.start[class_id + 1]
    is_single = net.ingress[class_id] >= 0
    if is_single and not member.may_lose and not forwards_both(net, class_id, slot_at):
        return _open_or_close(net, class_id, slot_at, round_of)
    _depths(net, class_id, slot_at, depth)
    round_of[low:high] = 0
    waiting = _sort_changed(net, class_id, depth, from_egress, seed)
    count = len(waiting)
    if not is_single:
        start_order(net, class_id, slot_at, order)
    visits.visit[:] = 0
    mark, number = 0, 0
    while count > 0:
        number += 1
        next_count = 0
        for index in range(count):
            slot = waiting[index]
            round_of[slot] = -number  # in this round
            mark += 2
            if is_single:
                fits = is_safe_from(net, member, visits, mark)
            else:
                fits = member.may_lose or has_rules(net, class_id, slot, slot_at, round_of)
                fits = fits and admit(net, class_id, slot, slot_at, round_of, order)
            if not fits:
                round_of[slot] = 0
                waiting[next_count] = slot
                next_count += 1
        for slot in range(low, high):
            if round_of[slot] == -number:
                round_of[slot] = number
        if next_count == count:  # no switch can change: there is no order
            number = 1 << 30
            break
        count = next_count
    if not is_single:
        clear_order(net, class_id, order)
    return number


@inner
def _sort_changed(net: Network, class_id: int, depth: Ints, from_egress: bool, seed: int) -> Ints:
    """Return the slots of a class that change, in the order in which they are tried."""
    low, high = net.start[class_id], net.start[class_id + 1]
    count = 0
    waiting = np.empty(high - low, dtype=np.int64)
    for slot in range(low, high):
        if not net.same[slot]:
            waiting[count] = slot
            count += 1
    key = np.empty(count, dtype=np.float64)
    if seed > 1:
        np.random.seed(seed)  # noqa: NPY002
    for index in range(count):
        hops = depth[net.switch[waiting[index]]]
        key[index] = hops if from_egress else -hops
        if seed > 1:
            key[index] += np.random.random() * (1 + abs(hops))  # noqa: NPY002
    return waiting[:count][np.argsort(key, kind="mergesort")]


@inner
def forwards_both(net: Network, class_id: int, slot_at: Ints) -> bool:
    """Return whether a class's only ingress has a rule both before and after."""
    door = slot_at[net.ingress[class_id]]
    if door < 0:
        return False
    has_old = net.old_start[door + 1] > net.old_start[door]
    return bool(has_old and net.new_start[door + 1] > net.new_start[door])


@inner
def _open_or_close(net: Network, class_id: int, slot_at: Ints, round_of: Ints) -> int:
    """Fill the rounds of a class that begins, with its ingress last, or that ends, with its ingress first."""
    door = slot_at[net.ingress[class_id]]
    begins = net.new_start[door + 1] > net.new_start[door]
    inner = net.start[class_id + 1] - net.start[class_id] - 1
    for slot in range(net.start[class_id], net.start[class_id + 1]):
        is_first = (slot == door) != begins
        round_of[slot] = 1 if is_first or inner == 0 else 2
    return 1 if inner == 0 else 2


@inner
def _lacks_rule(net: Network, slot: int, round_of: Ints) -> bool:
    """Return whether a switch has no rule at some time of the round."""
    if slot < 0:
        return True
    has_old = net.old_start[slot + 1] > net.old_start[slot]
    has_new = net.new_start[slot + 1] > net.new_start[slot]
    if round_of[slot] == 0:
        return not has_old
    if round_of[slot] > 0:
        return not has_new
    return not (has_old and has_new)


@inner
def _is_next_hop(net: Network, class_id: int, slot: int, round_of: Ints) -> bool:
    """Return whether another switch may send packets of the class to that of a slot in the round."""
    node = net.switch[slot]
    for other in range(net.start[class_id], net.start[class_id + 1]):
        if other == slot:
            continue
        if has_old(net, other, round_of) and _leads_to(
            net.old_hop, net.old_start[other], net.old_start[other + 1], node
        ):
            return True
        if has_new(net, other, round_of) and _leads_to(
            net.new_hop, net.new_start[other], net.new_start[other + 1], node
        ):
            return True
    return False


@inner
def _leads_to(hops: Ints, first: int, last: int, node: int) -> bool:
    is_found = False
    for entry in range(first, last):
        is_found |= hops[entry] == node
    return is_found


@inner
def has_rules(net: Network, class_id: int, slot: int, slot_at: Ints, round_of: Ints) -> bool:
    """Return whether no packet meets a missing rule at a switch, or at its new next hops, if it changes now.

    Packets enter at every switch with a rule.
    """
    has_next = net.new_start[slot + 1] > net.new_start[slot]
    begins = net.old_start[slot + 1] == net.old_start[slot]
    if (begins or not has_next) and _is_next_hop(net, class_id, slot, round_of):
        return False
    for entry in range(net.new_start[slot], net.new_start[slot + 1]):
        hop = net.new_hop[entry]
        if hop == net.egress[class_id] or not _lacks_rule(net, slot_at[hop], round_of):
            continue
        # where no packet comes before the next round, next hops may get their rule in this one
        if not begins or net.entering[slot] or round_of[slot_at[hop]] == 0:
            return False
    return True


@inner
def is_safe_at(net: Network, member: Member, slot: int, visits: Visits, mark: int) -> bool:
    """Return whether a switch may change in the round, where packets enter at every switch with a rule.

    Needs no order of the union, which `admit` keeps: for states that do not follow one another.
    """
    slot_at, round_of = member.slot_at, member.round_of
    if not member.may_lose and not has_rules(net, member.class_id, slot, slot_at, round_of):
        return False
    start_node, egress = net.switch[slot], net.egress[member.class_id]
    size = _visit_hops(net.new_hop[net.new_start[slot] : net.new_start[slot + 1]], egress, visits, mark, 0)
    while size > 0:
        size -= 1
        node = visits.stack[size]
        if node == start_node:
            return False
        here = slot_at[node]
        if here < 0:
            continue
        if has_old(net, here, round_of):
            hops = net.old_hop[net.old_start[here] : net.old_start[here + 1]]
            size = _visit_hops(hops, egress, visits, mark, size)
        if has_new(net, here, round_of):
            hops = net.new_hop[net.new_start[here] : net.new_start[here + 1]]
            size = _visit_hops(hops, egress, visits, mark, size)
    return True


@inner
def _visit_hops(hops: Ints, egress: int, visits: Visits, mark: int, size: int) -> int:
    """Put next hops on the stack that the search has not come to yet; return the stack's size."""
    for hop in hops:
        if hop != egress and visits.visit[hop] != mark:
            visits.visit[hop] = mark
            visits.stack[size] = hop
            size += 1
    return size


@inner
def is_safe_from(net: Network, member: Member, visits: Visits, mark: int) -> bool:
    """Return whether packets from a class's only ingress neither loop nor are lost in the union of the round.

    Marks `mark` on the way and `mark + 1` when done.
    """
    slot_at, round_of, may_lose = member.slot_at, member.round_of, member.may_lose
    visit, stack, edge = visits.visit, visits.stack, visits.edge
    egress, depth = net.egress[member.class_id], 1
    root = net.ingress[member.class_id]
    if not may_lose and _lacks_rule(net, slot_at[root], round_of):
        return False
    stack[0], edge[0] = root, 0
    visit[root] = mark
    while depth > 0:
        node = stack[depth - 1]
        here = slot_at[node]
        olds = net.old_start[here + 1] - net.old_start[here] if has_old(net, here, round_of) else 0
        news = net.new_start[here + 1] - net.new_start[here] if has_new(net, here, round_of) else 0
        if edge[depth - 1] >= olds + news:
            visit[node] = mark + 1
            depth -= 1
            continue
        offset = edge[depth - 1]
        edge[depth - 1] += 1
        hop = (
            net.old_hop[net.old_start[here] + offset]
            if offset < olds
            else net.new_hop[net.new_start[here] + offset - olds]
        )
        if hop == egress or visit[hop] == mark + 1:
            continue
        if visit[hop] == mark or (not may_lose and _lacks_rule(net, slot_at[hop], round_of)):
            return False
        if slot_at[hop] < 0:
            continue
        visit[hop] = mark
        stack[depth], edge[depth] = hop, 0
        depth += 1
    return True


@inner
def _bound_one(net: Network, member: Member, visits: Visits) -> int:
    """Return a number of rounds that no order of a class, of which no packet may be lost, is below."""
    class_id, slot_at, round_of = member.class_id, member.slot_at, member.round_of
    low, high = net.start[class_id], net.start[class_id + 1]
    any_change = False
    for slot in range(low, high):
        any_change |= not net.same[slot]
    if not any_change:
        return 0
    if net.ingress[class_id] >= 0 and not forwards_both(net, class_id, slot_at):
        return 1 if high - low == 1 else 2
    if net.ingress[class_id] >= 0:
        for slot in range(low, high):
            round_of[slot] = 0 if net.same[slot] else -1
        visits.visit[:] = 0
        fits = is_safe_from(net, member, visits, 1)
        return 1 if fits else 2
    earliest = np.zeros(high - low, dtype=np.int64)
    latest = np.zeros(high - low, dtype=np.int64)
    now, after = Hops(net.old_start, net.old_hop), Hops(net.new_start, net.new_hop)
    _wait_forward(net, Waits(class_id, low, slot_at, now, after, earliest))
    _wait_forward(net, Waits(class_id, low, slot_at, after, now, latest))
    lower = 1
    for slot in range(low, high):
        if not net.same[slot]:
            lower = max(lower, earliest[slot - low] + latest[slot - low] - 1)
    return lower


class Hops(NamedTuple):
    """Next hops of slots in one configuration: (N + 1,) starts, and (H,) switches."""

    start: Ints
    switch: Ints


class Waits(NamedTuple):
    """Forced waits of one class in the update from old to new rules.

    first     its first slot
    slot_at   (S,) its slot at each switch; -1 for none
    earliest  earliest round of each of its slots; 0 where it is not known yet
    """

    class_id: int
    first: int
    slot_at: Ints
    old: Hops
    new: Hops
    earliest: Ints


@inner
def _wait_forward(net: Network, waits: Waits) -> None:
    """Fill the earliest round of each changed slot of a class by its forced waits.

    A switch waits for one switch that changes on the old way from its new next hop back to itself (along
    first next hops), for the rules of switches that it newly sends to, and, where its rule ends, for all
    that send to it."""
    low, high = net.start[waits.class_id], net.start[waits.class_id + 1]
    level, open_ = 0, 0
    for slot in range(low, high):
        waits.earliest[slot - low] = 0
        open_ += not net.same[slot]
    while open_ > 0:
        level += 1
        settled = 0
        for slot in range(low, high):
            if net.same[slot] or waits.earliest[slot - low] > 0:
                continue
            if _may_change_by(net, waits, slot, level):
                waits.earliest[slot - low] = level
                settled += 1
        open_ -= settled
        if settled == 0:
            return


@inner
def _may_change_by(net: Network, waits: Waits, slot: int, level: int) -> bool:
    """Return whether a switch may change in a round, as far as its forced waits say."""
    old, new = waits.old, waits.new
    has_old, has_new = old.start[slot + 1] > old.start[slot], new.start[slot + 1] > new.start[slot]
    if has_old and has_new:
        return _may_move(net, waits, slot, level)
    if has_new:
        return _may_begin(net, waits, slot, level)
    return not has_old or _may_end(net, waits, slot, level)


@inner
def _is_changed(waits: Waits, slot: int, level: int) -> bool:
    """Return whether a switch may have changed before a round."""
    return bool(0 < waits.earliest[slot - waits.first] < level)


@inner
def _may_move(net: Network, waits: Waits, slot: int, level: int) -> bool:
    """Return whether no new next hop of a switch has yet to get its rule or leads back by old rules."""
    old, new = waits.old, waits.new
    for hop in new.switch[new.start[slot] : new.start[slot + 1]]:
        if hop == net.egress[waits.class_id]:
            continue
        below = waits.slot_at[hop]
        if old.start[below + 1] == old.start[below]:  # its rule begins
            if not _is_changed(waits, below, level):
                return False
        elif _leads_back(net, waits, hop, net.switch[slot], level):
            return False
    return True


@inner
def _leads_back(net: Network, waits: Waits, hop: int, start_node: int, level: int) -> bool:
    """Return whether the old way from a next hop comes back to a switch without passing a changed one."""
    old, steps = waits.old, 0
    size = net.start[waits.class_id + 1] - net.start[waits.class_id]
    node = hop
    while node != net.egress[waits.class_id] and node != start_node and steps <= size:
        here = waits.slot_at[node]
        if here < 0 or old.start[here + 1] == old.start[here]:
            return False
        if not net.same[here] and _is_changed(waits, here, level):
            return False
        node = old.switch[old.start[here]]
        steps += 1
    return node == start_node


@inner
def _may_begin(net: Network, waits: Waits, slot: int, level: int) -> bool:
    """Return whether a switch's rule may begin: packets that enter here need the rules of its next hops."""
    new = waits.new
    for hop in new.switch[new.start[slot] : new.start[slot + 1]]:
        if not net.entering[slot] or hop == net.egress[waits.class_id] or net.same[waits.slot_at[hop]]:
            continue
        if not _is_changed(waits, waits.slot_at[hop], level):
            return False
    return True


@inner
def _may_end(net: Network, waits: Waits, slot: int, level: int) -> bool:
    """Return whether a switch's rule may end: none that gets a new rule still sends to it."""
    old, new = waits.old, waits.new
    for other in range(net.start[waits.class_id], net.start[waits.class_id + 1]):
        if net.same[other] or new.start[other + 1] == new.start[other] or _is_changed(waits, other, level):
            continue
        if _leads_to(old.switch, old.start[other], old.start[other + 1], net.switch[slot]):
            return False
    return True


def find_rounds(
    net: Network,
    changes: Bools,
    *,
    may_lose: Bools | None = None,
    tries: int = 1,
    prove: bool = True,
    deadline: Deadline = NEVER,
) -> Rounds:
    """Return rounds for the classes that change.

    may_lose  (C,) whether packets of a class may be lost meanwhile; by default none may
    tries     orders of switches to try for a class, while its rounds are above its bound
    prove     whether to find bounds; without, they are 0
    deadline  after which classes change as by `order_by_neighbours`, in more rounds and
              with a bound of 1
    """
    may_lose = np.zeros(len(changes), dtype=bool) if may_lose is None else may_lose
    classes = np.flatnonzero(changes)
    if deadline.is_never:
        return Rounds(*order_all(net, classes, may_lose, tries, prove))
    rounds = Rounds(*order_all(net, classes[:0], may_lose, tries, prove))
    for first in range(0, len(classes), AT_ONCE):
        here = classes[first : first + AT_ONCE]
        if deadline.is_over:
            remaining = classes[first:]
            later = order_by_neighbours(net, remaining)
            np.maximum.at(rounds.most, net.owner, later)
            rounds.least[remaining] = int(prove)
            return rounds._replace(of_slot=rounds.of_slot + later)
        for total, array in zip(rounds, order_all(net, here, may_lose, tries, prove), strict=True):
            total += array
    return rounds


@kernel
def order_by_neighbours(net: Network, classes: Ints) -> Ints:
    """Return rounds, (N,), in which a switch changes once its new next hops are ready, as they tell it.

    A switch is ready when its rule is the next one and its next hops are ready. Rules end last, each after
    those of the switches that send to it have changed.
    """
    rounds = np.zeros(len(net.switch), dtype=np.int64)
    ready = np.zeros(len(net.switch), dtype=np.int64)  # the round after which it is ready, plus 1
    slot_at = np.full(net.switches, -1)
    for class_id in classes:
        low, high = net.start[class_id], net.start[class_id + 1]
        for slot in range(low, high):
            slot_at[net.switch[slot]] = slot
        is_moved = True
        while is_moved:
            is_moved = False
            for slot in range(low, high):
                if ready[slot] == 0 and net.new_start[slot + 1] > net.new_start[slot]:
                    is_moved |= _make_ready(net, class_id, slot, slot_at, ready, rounds)
        last = rounds[low:high].max()
        is_moved = True
        while is_moved:  # old rules make no cycle, so that this ends
            is_moved = False
            for slot in range(low, high):
                if net.old_start[slot + 1] > net.old_start[slot]:
                    is_moved |= _end_rules(net, class_id, slot, slot_at, last, rounds)
        for slot in range(low, high):
            slot_at[net.switch[slot]] = -1
    return rounds


@inner
def _make_ready(net: Network, class_id: int, slot: int, slot_at: Ints, ready: Ints, rounds: Ints) -> bool:
    """Change a switch in the round after its new next hops; return False where one of them is not ready."""
    after = 0
    for hop in net.new_hop[net.new_start[slot] : net.new_start[slot + 1]]:
        if hop == net.egress[class_id]:
            continue
        if ready[slot_at[hop]] == 0:
            return False
        after = max(after, ready[slot_at[hop]] - 1)
    if not net.same[slot]:
        after += 1
        rounds[slot] = after
    ready[slot] = after + 1
    return True


@inner
def _end_rules(net: Network, class_id: int, slot: int, slot_at: Ints, last: int, rounds: Ints) -> bool:
    """End a switch's rule after `last`, and old next hops' after it; return whether rounds have changed."""
    is_moved = False
    if net.new_start[slot] == net.new_start[slot + 1] and rounds[slot] == 0:
        rounds[slot] = last + 1
        is_moved = True
    for hop in net.old_hop[net.old_start[slot] : net.old_start[slot + 1]]:
        below = slot_at[hop] if hop != net.egress[class_id] else -1
        if below < 0 or net.new_start[below] < net.new_start[below + 1]:
            continue
        if rounds[below] <= rounds[slot]:
            rounds[below] = rounds[slot] + 1
            is_moved = True
    return is_moved
