"""Writes without a transaction: accepted at once, copied to the other datacenters, applied after checks.

Each row of a batch_mutate has its own stamp (section 3.3), also where one server owns several.
"""

from __future__ import annotations

from planner_models.geostore.protocol.dependencies import answer_waiters, check_dependencies
from planner_models.geostore.protocol.messages import send, tick
from planner_models.geostore.protocol.state import (
    EVT,
    FIRST,
    KIND,
    LAST,
    LAST_ADD,
    NODE,
    NONE,
    PREVIOUS_ADD,
    REPLICATE,
    REPLICATE_PART,
    STAMP,
    TRANSACTION,
    WRITE_REPLY,
    State,
    step,
)
from planner_models.geostore.protocol.versions import (
    add_version,
    copy_of,
    insert_version,
    is_counter,
    is_of_part,
    is_present,
    location_of,
    owner_of,
)


@step
def apply_item(s: State, datacenter: int, item: int, node: int, evt: int) -> None:
    """Make an item visible in a datacenter from its EVT on, and answer the checks that wait for it."""
    copy = copy_of(s, datacenter, item)
    s.table[s.copies + copy, EVT] = evt
    s.visible_ms[copy] = s.now_ms[0]
    if is_counter(s, item):
        add_version(s, datacenter, item)
    else:
        insert_version(s, datacenter, item)
    answer_waiters(s, datacenter, item, node)


@step
def accept_write(s: State, datacenter: int, operation: int, node: int, client: int) -> None:
    """Apply a client's write at its server: the logical time is stamp and EVT; then copy it and answer."""
    for item in range(s.table[s.operations + operation, FIRST], s.table[s.operations + operation, LAST]):
        if s.table[s.items + item, NODE] != node:
            continue
        stamp = tick(s, node, 0)
        s.table[s.items + item, STAMP] = stamp
        if is_counter(s, item):
            location = location_of(s, datacenter, item)
            s.table[s.items + item, PREVIOUS_ADD] = s.table[s.locations + location, LAST_ADD]
            s.table[s.locations + location, LAST_ADD] = item
        apply_item(s, datacenter, item, node, stamp)
    send(s, WRITE_REPLY, operation, (node, client), NONE, (0, 2))
    replicate(s, datacenter, operation, node)


@step
def replicate(s: State, origin: int, operation: int, node: int) -> None:
    """Send a server's items of an operation to the servers that own them in the other datacenters."""
    kind = REPLICATE_PART if s.table[s.operations + operation, KIND] == TRANSACTION else REPLICATE
    for datacenter in range(s.datacenters):
        if datacenter == origin:
            continue
        for item in range(s.table[s.operations + operation, FIRST], s.table[s.operations + operation, LAST]):
            if s.table[s.items + item, NODE] == node and is_present(s, datacenter, item):
                target = owner_of(s, datacenter, item)
                if is_first_of_part(s, datacenter, operation, item):
                    send(s, kind, operation, (node, target), item, (node, 1))


@step
def is_first_of_part(s: State, datacenter: int, operation: int, item: int) -> bool:
    """Return whether an item is the first with its node here and its owner in another datacenter."""
    target = owner_of(s, datacenter, item)
    for other in range(s.table[s.operations + operation, FIRST], item):
        is_there = is_present(s, datacenter, other)
        is_same = s.table[s.items + other, NODE] == s.table[s.items + item, NODE]
        if is_there and is_same and is_of_part(s, datacenter, other, target):
            return False
    return True


@step
def receive_replica(s: State, datacenter: int, item: int, node: int, operation: int) -> None:
    """Take a copied write: apply it once its dependencies are, which are checked for the whole message."""
    if check_dependencies(s, datacenter, item, node, 0):
        apply_replica(s, datacenter, item, node, operation)


@step
def apply_replica(s: State, datacenter: int, item: int, node: int, operation: int) -> None:
    """Apply the items of a copied write that came with this one: EVT is the local logical time."""
    source = s.table[s.items + item, NODE]
    for other in range(s.table[s.operations + operation, FIRST], s.table[s.operations + operation, LAST]):
        is_here = is_present(s, datacenter, other) and is_of_part(s, datacenter, other, node)
        if s.table[s.items + other, NODE] == source and is_here:
            apply_item(s, datacenter, other, node, tick(s, node, s.table[s.items + other, STAMP]))
