"""Dependency checks: a write waits in a datacenter until the writes that it depends on are applied there.

A check goes to the server that owns the locator (section 3.1): of a transaction the coordinator's key. Where
a datacenter has no replica of that key, it goes to the datacenter that serves the key to it.
"""

from __future__ import annotations

from planner_models.geostore.protocol.messages import free_slot, send, take_slot
from planner_models.geostore.protocol.state import (
    DEP_CHECK,
    DEP_REPLY,
    DEPENDS_FIRST,
    DEPENDS_LAST,
    EVT,
    M_HOPS,
    M_ITEM,
    M_NEXT,
    M_OPERATION,
    M_SOURCE,
    NONE,
    OPEN,
    OPERATION,
    PREVIOUS_ADD,
    WAITERS,
    State,
    step,
)
from planner_models.geostore.protocol.versions import copy_of, home_of, owner_of


@step
def check_dependencies(s: State, datacenter: int, item: int, node: int, hops: int) -> bool:
    """Send the checks of a write, kept by its item; return whether it needs to wait for none."""
    operation = s.table[s.items + item, OPERATION]
    for row in range(
        s.table[s.operations + operation, DEPENDS_FIRST], s.table[s.operations + operation, DEPENDS_LAST]
    ):
        check(s, datacenter, item, node, (s.depends[row], hops))
    if s.table[s.items + item, PREVIOUS_ADD] != NONE:
        check(s, datacenter, item, node, (s.table[s.items + item, PREVIOUS_ADD], hops))
    return bool(s.table[s.copies + copy_of(s, datacenter, item), OPEN] == 0)


@step
def check(s: State, datacenter: int, item: int, node: int, dependency: tuple[int, int]) -> None:
    """Check a dependency of a write: at once where this node owns the locator, else by a message."""
    locator, hops = dependency
    home = home_of(s, datacenter, locator)
    owner = owner_of(s, home, locator)
    copy = copy_of(s, datacenter, item)
    operation = s.table[s.items + item, OPERATION]
    if owner != node:
        s.table[s.copies + copy, OPEN] += 1
        send(s, DEP_CHECK, operation, (node, owner), item, (locator, hops + 1))
    elif s.table[s.copies + copy_of(s, home, locator), EVT] == 0:
        s.table[s.copies + copy, OPEN] += 1
        slot = take_slot(s)
        if slot != NONE:
            s.table[s.messages + slot, M_OPERATION], s.table[s.messages + slot, M_ITEM] = operation, item
            s.table[s.messages + slot, M_SOURCE], s.table[s.messages + slot, M_HOPS] = node, hops
            wait_for(s, home, locator, slot)


@step
def wait_for(s: State, datacenter: int, item: int, slot: int) -> None:
    """Hold a check until an item is applied in a datacenter."""
    copy = copy_of(s, datacenter, item)
    s.table[s.messages + slot, M_NEXT] = s.table[s.copies + copy, WAITERS]
    s.table[s.copies + copy, WAITERS] = slot


@step
def answer_waiters(s: State, datacenter: int, item: int, node: int) -> None:
    """Answer the checks that waited for an item, which is applied now."""
    copy = copy_of(s, datacenter, item)
    slot = s.table[s.copies + copy, WAITERS]
    s.table[s.copies + copy, WAITERS] = NONE
    while slot != NONE:
        following = s.table[s.messages + slot, M_NEXT]
        route = (node, s.table[s.messages + slot, M_SOURCE])
        value = (0, s.table[s.messages + slot, M_HOPS] + 1)
        send(
            s,
            DEP_REPLY,
            s.table[s.messages + slot, M_OPERATION],
            route,
            s.table[s.messages + slot, M_ITEM],
            value,
        )
        free_slot(s, slot)
        slot = following
