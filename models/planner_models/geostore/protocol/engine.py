"""Loop over the messages of a run: the receiver's clock advances, then it acts."""

from __future__ import annotations

from planner.compiled import kernel, run_small_in_python
from planner_models.geostore.protocol.clients import end_operation, issue, schedule
from planner_models.geostore.protocol.commits import (
    acknowledge,
    count_acknowledgement,
    count_vote,
    notify,
    prepare,
    receive_part,
)
from planner_models.geostore.protocol.dependencies import wait_for
from planner_models.geostore.protocol.messages import datacenter_of, draw, free_slot, pop, send, tick
from planner_models.geostore.protocol.plain_writes import accept_write, apply_replica, receive_replica
from planner_models.geostore.protocol.reads import (
    end_first,
    serve_check,
    serve_first,
    serve_second,
    take_check,
)
from planner_models.geostore.protocol.state import (
    ACK,
    CHECK_REPLY,
    COMMIT,
    COMMIT_CHECK,
    DEP_CHECK,
    DEP_REPLY,
    EVT,
    HEAP_SIZE,
    HOPS,
    IS_FULL,
    ISSUE,
    KIND,
    M_ARGUMENT,
    M_HOPS,
    M_ITEM,
    M_KIND,
    M_OPERATION,
    M_SOURCE,
    M_STAMP,
    M_TARGET,
    NEXT,
    NONE,
    NOTIFY,
    OPEN,
    PREPARE,
    READ_AT,
    READ_AT_REPLY,
    READ_FIRST,
    READ_REPLY,
    REPLICATE,
    REPLICATE_PART,
    SUBREQUEST,
    TRANSACTION,
    VOTE,
    WAITING,
    WRITE,
    WRITE_REPLY,
    State,
    step,
)
from planner_models.geostore.protocol.versions import copy_of


@run_small_in_python(max_elements=300_000)
@kernel
def run_messages(s: State, think_ms: float) -> bool:
    """Run all clients to their ends, and all copies of their writes; return whether the tables sufficed."""
    first_client = s.datacenters * s.servers
    for person in range(s.client_count):
        if s.table[s.clients + person, NEXT] != NONE:
            schedule(s, s.table[s.clients + person, NEXT], first_client + person, think_ms * draw(s))
    while s.table[0, HEAP_SIZE] > 0 and not s.table[0, IS_FULL]:
        slot = pop(s)
        tick(s, s.table[s.messages + slot, M_TARGET], s.table[s.messages + slot, M_STAMP])
        kind = s.table[s.messages + slot, M_KIND]
        if kind == DEP_CHECK:
            serve_dependency(s, slot)
            continue
        if kind in (ISSUE, READ_REPLY, READ_AT_REPLY, WRITE_REPLY):
            act_as_client(s, slot, kind, think_ms)
        elif kind in (READ_FIRST, READ_AT, COMMIT_CHECK, CHECK_REPLY):
            act_as_reader(s, slot, kind)
        elif kind in (WRITE, REPLICATE, REPLICATE_PART, DEP_REPLY):
            act_as_writer(s, slot, kind)
        else:
            act_as_participant(s, slot, kind)
        free_slot(s, slot)
    return not s.table[0, IS_FULL]


@step
def act_as_client(s: State, slot: int, kind: int, think_ms: float) -> None:
    """Issue an operation, or take a reply; the last reply of a round ends it."""
    operation = s.table[s.messages + slot, M_OPERATION]
    if kind == ISSUE:
        issue(s, operation, s.table[s.messages + slot, M_TARGET])
        return
    s.table[s.operations + operation, WAITING] -= 1
    s.table[s.operations + operation, HOPS] = max(
        s.table[s.operations + operation, HOPS], s.table[s.messages + slot, M_HOPS]
    )
    if s.table[s.operations + operation, WAITING] > 0:
        return
    if kind != READ_REPLY or end_first(s, operation):
        end_operation(s, operation, think_ms * draw(s))


@step
def act_as_reader(s: State, slot: int, kind: int) -> None:
    """Serve a read, or a check of one."""
    operation, node = s.table[s.messages + slot, M_OPERATION], s.table[s.messages + slot, M_TARGET]
    item, source = s.table[s.messages + slot, M_ITEM], s.table[s.messages + slot, M_SOURCE]
    value = (s.table[s.messages + slot, M_ARGUMENT], s.table[s.messages + slot, M_HOPS])
    if kind == READ_FIRST:
        serve_first(s, operation, node, source)
    elif kind == READ_AT:
        serve_second(s, item, node, value[0], value[1])
    elif kind == COMMIT_CHECK:
        serve_check(s, operation, (node, source), item, value)
    else:
        take_check(s, operation, node, item, value)


@step
def act_as_writer(s: State, slot: int, kind: int) -> None:
    """Accept a write, take a copy of one, or the answer to a check of its dependencies."""
    operation, node = s.table[s.messages + slot, M_OPERATION], s.table[s.messages + slot, M_TARGET]
    item, datacenter = s.table[s.messages + slot, M_ITEM], datacenter_of(s, node)
    if kind == WRITE:
        accept_write(s, datacenter, operation, node, s.table[s.messages + slot, M_SOURCE])
    elif kind == REPLICATE:
        receive_replica(s, datacenter, item, node, operation)
    elif kind == REPLICATE_PART:
        receive_part(s, datacenter, item, node, operation)
    else:
        copy = copy_of(s, datacenter, item)
        s.table[s.copies + copy, OPEN] -= 1
        if s.table[s.copies + copy, OPEN] == 0 and s.table[s.operations + operation, KIND] == TRANSACTION:
            notify(s, datacenter, operation, 0)
        elif s.table[s.copies + copy, OPEN] == 0:
            apply_replica(s, datacenter, item, node, operation)


@step
def act_as_participant(s: State, slot: int, kind: int) -> None:
    """Take a message of two-phase commit."""
    operation, node = s.table[s.messages + slot, M_OPERATION], s.table[s.messages + slot, M_TARGET]
    datacenter, hops = datacenter_of(s, node), s.table[s.messages + slot, M_HOPS]
    if kind in (SUBREQUEST, PREPARE):
        prepare(s, datacenter, operation, node, hops)
    elif kind == VOTE:
        count_vote(s, datacenter, operation, hops)
    elif kind == COMMIT:
        acknowledge(s, datacenter, operation, node, (s.table[s.messages + slot, M_ARGUMENT], hops))
    elif kind == ACK:
        count_acknowledgement(s, datacenter, operation, hops)
    elif kind == NOTIFY:
        notify(s, datacenter, operation, s.table[s.messages + slot, M_ARGUMENT])


@step
def serve_dependency(s: State, slot: int) -> None:
    """Answer a dependency check where the write is applied; else hold it until then."""
    node, locator = s.table[s.messages + slot, M_TARGET], s.table[s.messages + slot, M_ARGUMENT]
    datacenter = datacenter_of(s, node)
    if s.table[s.copies + copy_of(s, datacenter, locator), EVT] == 0:
        wait_for(s, datacenter, locator, slot)
        return
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
