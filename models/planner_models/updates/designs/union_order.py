"""Topological order of the union of a class's old and new rules, while rules are added round by round.

Next hops come first in the order. A new next hop that comes before its switch closes no cycle; one that comes
after it needs a search among the switches between the two, which then change places. Rules that end leave the
order as it is.

source  Marchetti-Spaccamela, Nanni and Rohnert 1996, "Maintaining a topological order under edge insertions"
"""

from __future__ import annotations

from typing import NamedTuple

from planner.arrays import Bools, Ints
from planner.compiled import inner
from planner_models.updates.plan.replay import Network


class Order(NamedTuple):
    """An order of the switches of one class, and memory for its changes, all of shape (S,).

    switch        (S,) switches in order; those of the class come first in the array
    rank          (S,) place of each switch in it; -1 for switches that hold no rule of the class
    is_found      (S,) False for all between searches
    stack, after  (S,) for searches
    """

    switch: Ints
    rank: Ints
    is_found: Bools
    stack: Ints
    after: Ints


@inner
def start_order(net: Network, item: int, slot_at: Ints, order: Order) -> None:
    """Fill the order of a class under its old rules; all its switches must have rank -1."""
    egress, count = net.egress[item], 0
    for slot in range(net.start[item], net.start[item + 1]):
        if order.rank[net.switch[slot]] != -1 or net.old_start[slot] == net.old_start[slot + 1]:
            continue
        order.stack[0], order.after[0], depth = net.switch[slot], net.old_start[slot], 1
        order.rank[net.switch[slot]] = -2
        while depth > 0:
            node = order.stack[depth - 1]
            entry = order.after[depth - 1]
            if entry == net.old_start[slot_at[node] + 1]:
                order.switch[count], order.rank[node] = node, count
                count += 1
                depth -= 1
                continue
            order.after[depth - 1] += 1
            hop = net.old_hop[entry]
            if hop != egress and order.rank[hop] == -1:
                order.rank[hop] = -2
                order.stack[depth], order.after[depth] = hop, net.old_start[slot_at[hop]]
                depth += 1
    for slot in range(net.start[item], net.start[item + 1]):  # no rule leads to switches without an old rule
        node = net.switch[slot]
        if order.rank[node] == -1:
            order.switch[count], order.rank[node] = node, count
            count += 1


@inner
def clear_order(net: Network, class_id: int, order: Order) -> None:
    """Give the switches of a class rank -1 again."""
    for slot in range(net.start[class_id], net.start[class_id + 1]):
        order.rank[net.switch[slot]] = -1


@inner
def has_old(net: Network, slot: int, result: Ints) -> bool:
    """Return whether the union of a round has the old rule of a slot."""
    return bool(result[slot] <= 0 and net.old_start[slot + 1] > net.old_start[slot])


@inner
def has_new(net: Network, slot: int, result: Ints) -> bool:
    """Return whether the union of a round has the new rule of a slot."""
    return bool(result[slot] != 0 and net.new_start[slot + 1] > net.new_start[slot])


@inner
def admit(net: Network, one: int, slot: int, slot_at: Ints, done: Ints, order: Order) -> bool:  # noqa: C901
    """Add the new next hops of a slot to the order; return False, without a change, where they close a cycle.

    done  (N,) round in which each slot has changed, negative in the present round, 0 for later ones
    """
    start_node, egress = net.switch[slot], net.egress[one]
    low, top = order.rank[start_node], order.rank[start_node]
    size, position = 0, 0
    for entry in range(net.new_start[slot], net.new_start[slot + 1]):
        hop = net.new_hop[entry]
        if hop != egress and order.rank[hop] > low and not order.is_found[hop]:
            order.is_found[hop] = True
            order.stack[size] = hop
            size += 1
            top = max(top, order.rank[hop])
    if size == 0:
        return True
    # `stack` keeps all that are found: those below `position` have been searched
    is_cycle = False
    while position < size and not is_cycle:
        here = slot_at[order.stack[position]]
        position += 1
        for rule in range(2):
            if not (has_old(net, here, done) if rule == 0 else has_new(net, here, done)):
                continue
            first = net.old_start[here] if rule == 0 else net.new_start[here]
            last = net.old_start[here + 1] if rule == 0 else net.new_start[here + 1]
            for entry in range(first, last):
                hop = net.old_hop[entry] if rule == 0 else net.new_hop[entry]
                if hop == start_node:
                    is_cycle = True
                elif hop != egress and order.rank[hop] > low and not order.is_found[hop]:
                    order.is_found[hop] = True
                    order.stack[size] = hop
                    size += 1
    if not is_cycle:
        _move_down(order, low, top)
    for index in range(size):
        order.is_found[order.stack[index]] = False
    return not is_cycle


@inner
def _move_down(order: Order, low: int, top: int) -> None:
    """Move the switches that were found before all others between two ranks."""
    free, count = top, 0
    for rank in range(top, low - 1, -1):
        node = order.switch[rank]
        if order.is_found[node]:
            order.after[count] = node
            count += 1
        else:
            order.switch[free], order.rank[node] = node, free
            free -= 1
    for index in range(count):
        node = order.after[index]
        order.switch[free], order.rank[node] = node, free
        free -= 1
