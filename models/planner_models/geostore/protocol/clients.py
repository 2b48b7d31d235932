"""Client library: issues operations one after the other, and attaches one-hop dependencies to writes.

A write depends on the client's previous write, and on all writes whose values it has read since (3.2).
"""

from __future__ import annotations

from planner_models.geostore.protocol.messages import push, take_slot
from planner_models.geostore.protocol.reads import send_first
from planner_models.geostore.protocol.state import (
    CLIENT,
    CONTAINED,
    CONTEXT_SIZE,
    COORDINATOR,
    DATACENTER,
    DEPENDS_FIRST,
    DEPENDS_LAST,
    DEPENDS_SIZE,
    EMPTY,
    FIRST,
    FOLLOWING,
    IS_FULL,
    ISSUE,
    KIND,
    LAST,
    M_KIND,
    M_OPERATION,
    M_SOURCE,
    M_STAMP,
    M_TARGET,
    NODE,
    NONE,
    OPERATION,
    READ,
    READ_FIRST,
    ROUNDS,
    SUBREQUEST,
    TRANSACTION,
    VALUE,
    VERSION,
    WAITING,
    WRITE,
    WRITES_LEFT,
    State,
    step,
)
from planner_models.geostore.protocol.versions import copy_of, home_of, is_counter, owner_of


@step
def schedule(s: State, operation: int, client: int, at_ms: float) -> None:
    """Let a client issue an operation at a time."""
    slot = take_slot(s)
    if slot != NONE:
        s.table[s.messages + slot, M_KIND], s.table[s.messages + slot, M_OPERATION] = ISSUE, operation
        s.table[s.messages + slot, M_SOURCE], s.table[s.messages + slot, M_TARGET] = client, client
        s.table[s.messages + slot, M_STAMP] = 0
        push(s, slot, at_ms)


@step
def issue(s: State, operation: int, client: int) -> None:
    """Send an operation's requests to the servers that own its keys."""
    s.spans_ms[operation, 0] = s.now_ms[0]
    s.table[s.operations + operation, ROUNDS] = 1
    datacenter = s.table[s.clients + s.table[s.operations + operation, CLIENT], DATACENTER]
    for item in range(s.table[s.operations + operation, FIRST], s.table[s.operations + operation, LAST]):
        s.table[s.items + item, NODE] = owner_of(s, home_of(s, datacenter, item), item)
    kind = s.table[s.operations + operation, KIND]
    if kind == READ:
        send_first(s, operation, client, READ_FIRST)
        return
    store_dependencies(s, operation)
    send_first(s, operation, client, SUBREQUEST if kind == TRANSACTION else WRITE)
    if kind == TRANSACTION:
        s.table[s.operations + operation, WAITING] = 1  # the coordinator alone answers


@step
def store_dependencies(s: State, operation: int) -> None:
    """Attach the client's context to a write."""
    person = s.table[s.operations + operation, CLIENT]
    size = s.table[0, DEPENDS_SIZE]
    s.table[s.operations + operation, DEPENDS_FIRST] = size
    for row in range(s.table[s.clients + person, CONTEXT_SIZE]):
        if size < len(s.depends):
            s.depends[size] = s.context[person, row]
            size += 1
        else:
            s.table[0, IS_FULL] = 1
    s.table[0, DEPENDS_SIZE] = size
    s.table[s.operations + operation, DEPENDS_LAST] = size


@step
def depend_on(s: State, person: int, item: int) -> None:
    """Add a write to the context of a client that still writes, by its locator: of a transaction the
    coordinator's key.
    """
    if s.table[s.clients + person, WRITES_LEFT] == 0:
        return
    operation = s.table[s.items + item, OPERATION]
    locator = (
        s.table[s.operations + operation, COORDINATOR]
        if s.table[s.operations + operation, KIND] == TRANSACTION
        else item
    )
    size = s.table[s.clients + person, CONTEXT_SIZE]
    for row in range(size):
        if s.context[person, row] == locator:
            return
    if size == s.context.shape[1]:
        s.table[0, IS_FULL] = 1
        return
    s.context[person, size] = locator
    s.table[s.clients + person, CONTEXT_SIZE] = size + 1


@step
def end_operation(s: State, operation: int, think_ms: float) -> None:
    """Update the client's context by an operation that has ended, and schedule its next one."""
    person = s.table[s.operations + operation, CLIENT]
    is_write = s.table[s.operations + operation, KIND] != READ
    if is_write:
        s.table[s.clients + person, CONTEXT_SIZE] = 0
        s.table[s.clients + person, WRITES_LEFT] -= 1
    datacenter = s.table[s.clients + person, DATACENTER]
    for item in range(s.table[s.operations + operation, FIRST], s.table[s.operations + operation, LAST]):
        if is_write:
            depend_on(s, person, item)
        elif s.table[s.items + item, VALUE] == EMPTY or s.table[s.items + item, VERSION] == NONE:
            continue
        elif is_counter(s, item):
            copy = copy_of(s, home_of(s, datacenter, item), s.table[s.items + item, VERSION])
            for origin in range(s.datacenters):
                if s.table[s.copies + copy, CONTAINED + origin] != NONE:
                    depend_on(s, person, s.table[s.copies + copy, CONTAINED + origin])
        else:
            depend_on(s, person, s.table[s.items + item, VERSION])
    s.spans_ms[operation, 1] = s.now_ms[0]
    following = s.table[s.operations + operation, FOLLOWING]
    if following != NONE:
        client = s.datacenters * s.servers + person
        schedule(s, following, client, s.now_ms[0] + think_ms)
