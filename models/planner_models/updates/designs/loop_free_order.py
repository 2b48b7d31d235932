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
    scratch = np.full((4, net.switches), 0)
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
        first = _order_one(net, class_id, slot_at, round_of, scratch, order, may_lose[class_id], True, 0)
        upper[class_id] = first
        rounds[low:high] = round_of[low:high]
        if prove:
            # where packets may be lost, the first round takes all switches if that closes no cycle
            bound = 2 if may_lose[class_id] else _bound_one(net, class_id, slot_at, round_of, scratch)
            lower[class_id] = min(bound, first)
            for number in range(1, tries):
                if upper[class_id] <= lower[class_id]:
                    break
                count = _order_one(
                    net,
                    class_id,
                    slot_at,
                    round_of,
                    scratch,
                    order,
                    may_lose[class_id],
                    number % 2 == 1,
                    number,
                )
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
    net: Network,
    class_id: int,
    slot_at: Ints,
    round_of: Ints,
    scratch: Ints,
    order: Order,
    may_lose: bool,
    from_egress: bool,
    seed: int,
) -> int:
    """Fill `round_of` with the round of each slot of a class, and return the number of rounds.

    may_lose     whether its packets may be lost meanwhile
    from_egress  whether switches near the egress come first, else those far from it
    """
    low, high = net.start[class_id], net.start[class_id + 1]
    if net.ingress[class_id] >= 0 and not may_lose and not forwards_both(net, class_id, slot_at):
        return _open_or_close(net, class_id, slot_at, round_of)
    _depths(net, class_id, slot_at, scratch[0])
    count_left = 0
    waiting = np.empty(high - low, dtype=np.int64)
    for slot in range(low, high):
        round_of[slot] = 0
        if not net.same[slot]:
            waiting[count_left] = slot
            count_left += 1
    key = np.empty(count_left, dtype=np.float64)
    if seed > 1:
        np.random.seed(seed)  # noqa: NPY002
    for index in range(count_left):
        depth = scratch[0][net.switch[waiting[index]]]
        key[index] = depth if from_egress else -depth
        if seed > 1:
            key[index] += np.random.random() * (1 + abs(depth))  # noqa: NPY002
    waiting[:count_left] = waiting[:count_left][np.argsort(key, kind="mergesort")]
    single = net.ingress[class_id] >= 0
    if not single:
        start_order(net, class_id, slot_at, order)
    visit = scratch[1]
    visit[:] = 0
    mark = 0
    number = 0
    while count_left > 0:
        number += 1
        next_count = 0
        for index in range(count_left):
            slot = waiting[index]
            round_of[slot] = -number  # in this round
            if single:
                mark += 2
                fits = is_safe_from(
                    net, class_id, slot_at, round_of, may_lose, visit, mark, scratch[2], scratch[3]
                )
            else:
                fits = (may_lose or has_rules(net, class_id, slot, slot_at, round_of)) and admit(
                    net, class_id, slot, slot_at, round_of, order
                )
            if not fits:
                round_of[slot] = 0
                waiting[next_count] = slot
                next_count += 1
        for slot in range(low, high):
            if round_of[slot] == -number:
                round_of[slot] = number
        if next_count == count_left:  # no switch can change: there is no order
            number = 1 << 30
            break
        count_left = next_count
    if not single:
        clear_order(net, class_id, order)
    return number


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
def is_safe_at(
    net: Network,
    class_id: int,
    slot: int,
    slot_at: Ints,
    round_of: Ints,
    may_lose: bool,
    visit: Ints,
    mark: int,
    stack: Ints,
) -> bool:
    """Return whether a switch may change in the round, where packets enter at every switch with a rule.

    Needs no order of the union, which `admit` keeps: for states that do not follow one another.
    """
    if not may_lose and not has_rules(net, class_id, slot, slot_at, round_of):
        return False
    start_node, egress = net.switch[slot], net.egress[class_id]
    size = 0
    for entry in range(net.new_start[slot], net.new_start[slot + 1]):
        hop = net.new_hop[entry]
        if hop != egress and visit[hop] != mark:
            visit[hop] = mark
            stack[size] = hop
            size += 1
    while size > 0:
        size -= 1
        node = stack[size]
        if node == start_node:
            return False
        here = slot_at[node]
        for rule in range(2):
            if not (has_old(net, here, round_of) if rule == 0 else has_new(net, here, round_of)):
                continue
            first = net.old_start[here] if rule == 0 else net.new_start[here]
            last = net.old_start[here + 1] if rule == 0 else net.new_start[here + 1]
            for entry in range(first, last):
                hop = net.old_hop[entry] if rule == 0 else net.new_hop[entry]
                if hop != egress and visit[hop] != mark and slot_at[hop] >= 0:
                    visit[hop] = mark
                    stack[size] = hop
                    size += 1
    return True


@inner
def is_safe_from(
    net: Network,
    class_id: int,
    slot_at: Ints,
    round_of: Ints,
    may_lose: bool,
    visit: Ints,
    mark: int,
    stack: Ints,
    edge: Ints,
) -> bool:
    """Return whether packets from a class's only ingress neither loop nor are lost in the union of the round.

    may_lose  whether they may be lost
    Marks `mark` on the way and `mark + 1` when done.
    """
    egress, depth = net.egress[class_id], 1
    root = net.ingress[class_id]
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
def _bound_one(net: Network, class_id: int, slot_at: Ints, round_of: Ints, scratch: Ints) -> int:
    """Return a number of rounds that no order of a class is below."""
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
        scratch[1][:] = 0
        fits = is_safe_from(net, class_id, slot_at, round_of, False, scratch[1], 1, scratch[2], scratch[3])
        return 1 if fits else 2
    earliest = np.zeros(high - low, dtype=np.int64)
    latest = np.zeros(high - low, dtype=np.int64)
    _wait_forward(net, class_id, slot_at, earliest, False)
    _wait_forward(net, class_id, slot_at, latest, True)
    lower = 1
    for index in range(high - low):
        if not net.same[low + index]:
            lower = max(lower, earliest[index] + latest[index] - 1)
    return lower


@inner
def _wait_forward(net: Network, class_id: int, slot_at: Ints, earliest: Ints, backward: bool) -> None:  # noqa: C901
    """Fill the earliest round of each changed slot by its forced waits; `backward`: of the update back.

    A switch waits for one switch that changes on the old way from its new next hop back to itself (along
    first next hops), for the rules of switches that it newly sends to, and, where its rule ends, for all
    that send to it."""
    low, high = net.start[class_id], net.start[class_id + 1]
    old_start, old_hop = (net.new_start, net.new_hop) if backward else (net.old_start, net.old_hop)
    new_start, new_hop = (net.old_start, net.old_hop) if backward else (net.new_start, net.new_hop)
    egress = net.egress[class_id]
    level, open_ = 0, 0
    for index in range(high - low):
        earliest[index] = 0
        open_ += not net.same[low + index]
    while open_ > 0:
        level += 1
        settled = 0
        for index in range(high - low):
            slot = low + index
            if net.same[slot] or earliest[index] > 0:
                continue
            ready = True
            start_node = net.switch[slot]
            has_old, has_new = old_start[slot + 1] > old_start[slot], new_start[slot + 1] > new_start[slot]
            if has_old and has_new:
                for way in range(new_start[slot], new_start[slot + 1]):
                    hop = new_hop[way]
                    if hop == egress:
                        continue
                    here = slot_at[hop]
                    if old_start[here + 1] == old_start[here]:  # its rule begins
                        ready &= 0 < earliest[here - low] < level
                        continue
                    broken, node, steps = False, hop, 0
                    while node != egress and node != start_node and steps <= high - low:
                        here = slot_at[node]
                        if here < 0 or old_start[here + 1] == old_start[here]:
                            break
                        if not net.same[here] and 0 < earliest[here - low] < level:
                            broken = True
                            break
                        node = old_hop[old_start[here]]
                        steps += 1
                    if node == start_node and not broken:
                        ready = False
                        break
            elif has_new:  # its rule begins; packets that enter here need the next one
                for way in range(new_start[slot], new_start[slot + 1]):
                    hop = new_hop[way]
                    if net.entering[slot] and hop != egress and not net.same[slot_at[hop]]:
                        ready &= 0 < earliest[slot_at[hop] - low] < level
            elif has_old:  # its rule ends
                for other in range(low, high):
                    if net.same[other] or new_start[other + 1] == new_start[other]:
                        continue
                    for way in range(old_start[other], old_start[other + 1]):
                        if old_hop[way] == start_node and not (0 < earliest[other - low] < level):
                            ready = False
            if ready:
                earliest[index] = level
                settled += 1
        open_ -= settled
        if settled == 0:
            return


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
def order_by_neighbours(net: Network, classes: Ints) -> Ints:  # noqa: C901
    """Return rounds, (N,), in which a switch changes once its new next hops are ready, as they tell it.

    A switch is ready when its rule is the next one and its next hops are ready. Rules end last, each after
    those of the switches that send to it have changed.
    """
    rounds = np.zeros(len(net.switch), dtype=np.int64)
    slot_at = np.full(net.switches, -1)
    for class_id in classes:
        low, high = net.start[class_id], net.start[class_id + 1]
        ready = np.zeros(high - low, dtype=np.int64)  # the round after which it is ready, plus 1
        for slot in range(low, high):
            slot_at[net.switch[slot]] = slot
        moved, last = True, 0
        while moved:
            moved = False
            for slot in range(low, high):
                if ready[slot - low] > 0 or net.new_start[slot + 1] == net.new_start[slot]:
                    continue
                after = 0
                for entry in range(net.new_start[slot], net.new_start[slot + 1]):
                    hop = net.new_hop[entry]
                    if hop == net.egress[class_id]:
                        continue
                    when = ready[slot_at[hop] - low]
                    if when == 0:
                        after = -1
                        break
                    after = max(after, when - 1)
                if after < 0:
                    continue
                round_number = after if net.same[slot] else after + 1
                rounds[slot] = 0 if net.same[slot] else round_number
                last = max(last, round_number)
                ready[slot - low] = round_number + 1
                moved = True
        moved = True
        while moved:  # old rules make no cycle, so that this ends
            moved = False
            for slot in range(low, high):
                if net.old_start[slot] == net.old_start[slot + 1]:
                    continue
                if net.new_start[slot] == net.new_start[slot + 1] and rounds[slot] == 0:
                    rounds[slot] = last + 1
                    moved = True
                for entry in range(net.old_start[slot], net.old_start[slot + 1]):
                    below = slot_at[net.old_hop[entry]] if net.old_hop[entry] != net.egress[class_id] else -1
                    if below < 0 or net.new_start[below] < net.new_start[below + 1]:
                        continue
                    if rounds[below] <= rounds[slot]:
                        rounds[below] = rounds[slot] + 1
                        moved = True
        for slot in range(low, high):
            slot_at[net.switch[slot]] = -1
    return rounds
