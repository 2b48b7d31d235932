"""Write-only transactions: two-phase commit with positive cohorts and indirection (section 5)."""

from __future__ import annotations

from planner_models.geostore.protocol.dependencies import check_dependencies
from planner_models.geostore.protocol.messages import send, stamp_of
from planner_models.geostore.protocol.plain_writes import apply_item, replicate
from planner_models.geostore.protocol.state import (
    ACK,
    ACKS,
    CLIENT,
    COMMIT,
    COMMIT_HOPS,
    COMMITTED,
    COORDINATOR,
    EVT,
    FIRST,
    IS_CHECKED,
    IS_PREPARED,
    LAST,
    NODE,
    NONE,
    NOTIFIED,
    NOTIFY,
    OPEN,
    PARTICIPANTS,
    PENDING_SINCE,
    PREPARE,
    STAMP,
    VOTE,
    VOTES,
    WRITE_REPLY,
    State,
    step,
)
from planner_models.geostore.protocol.versions import (
    clear_pending,
    copy_of,
    is_covered,
    is_of_part,
    mark_pending,
    origin_of,
    owner_of,
)


@step
def commit_of(s: State, datacenter: int, operation: int) -> int:
    """Return the row of `commits` of a transaction in a datacenter."""
    return datacenter * s.operation_count + operation


@step
def coordinator_of(s: State, datacenter: int, operation: int) -> int:
    """Return the server that coordinates a transaction in a datacenter: it owns the coordinator key."""
    return owner_of(s, datacenter, s.table[s.operations + operation, COORDINATOR])


@step
def count_participants(s: State, datacenter: int, operation: int) -> int:
    """Return the number of servers that a transaction touches in a datacenter, counted once."""
    row = commit_of(s, datacenter, operation)
    if s.table[s.commits + row, PARTICIPANTS] == 0:
        for item in range(s.table[s.operations + operation, FIRST], s.table[s.operations + operation, LAST]):
            if is_first_owner(s, datacenter, operation, item):
                s.table[s.commits + row, PARTICIPANTS] += 1
    return int(s.table[s.commits + row, PARTICIPANTS])


@step
def is_first_owner(s: State, datacenter: int, operation: int, item: int) -> bool:
    """Return whether no earlier item of an operation has the same owner in a datacenter."""
    node = owner_of(s, datacenter, item)
    for other in range(s.table[s.operations + operation, FIRST], item):
        if is_of_part(s, datacenter, other, node):
            return False
    return True


@step
def send_to_cohorts(s: State, kind: int, datacenter: int, operation: int, value: tuple[int, int]) -> None:
    """Send a message of the coordinator to each other participant."""
    coordinator = coordinator_of(s, datacenter, operation)
    for item in range(s.table[s.operations + operation, FIRST], s.table[s.operations + operation, LAST]):
        node = owner_of(s, datacenter, item)
        if node != coordinator and is_first_owner(s, datacenter, operation, item):
            send(s, kind, operation, (coordinator, node), NONE, value)


@step
def prepare(s: State, datacenter: int, operation: int, node: int, hops: int) -> None:
    """Mark a participant's items as pending, and vote yes.

    A copied item whose location has a newer value is never visible: it needs no pending value.
    """
    is_origin = datacenter == origin_of(s, operation)
    for item in range(s.table[s.operations + operation, FIRST], s.table[s.operations + operation, LAST]):
        if is_of_part(s, datacenter, item, node) and (is_origin or not is_covered(s, datacenter, item)):
            mark_pending(s, datacenter, item, stamp_of(s, node))
    coordinator = coordinator_of(s, datacenter, operation)
    if node == coordinator:
        count_vote(s, datacenter, operation, hops)
    else:
        send(s, VOTE, operation, (node, coordinator), NONE, (0, hops + 1))


@step
def count_vote(s: State, datacenter: int, operation: int, hops: int) -> None:
    """Count a vote at the coordinator, which commits with the last of them."""
    row = commit_of(s, datacenter, operation)
    s.table[s.commits + row, VOTES] += 1
    s.table[s.commits + row, COMMIT_HOPS] = max(s.table[s.commits + row, COMMIT_HOPS], hops)
    participants = count_participants(s, datacenter, operation)
    if s.table[s.commits + row, VOTES] < participants:
        return
    node = coordinator_of(s, datacenter, operation)
    time = stamp_of(s, node)
    s.table[s.commits + row, COMMITTED] = time
    if datacenter == origin_of(s, operation):
        for item in range(s.table[s.operations + operation, FIRST], s.table[s.operations + operation, LAST]):
            s.table[s.items + item, STAMP] = time
    apply_part(s, datacenter, operation, node, time)
    send_to_cohorts(s, COMMIT, datacenter, operation, (time, s.table[s.commits + row, COMMIT_HOPS] + 1))
    if participants == 1:
        answer_client(s, datacenter, operation, s.table[s.commits + row, COMMIT_HOPS])


@step
def apply_part(s: State, datacenter: int, operation: int, node: int, time: int) -> None:
    """Replace a participant's pending items by their values, valid from the commit; copy them once."""
    is_new = False
    for item in range(s.table[s.operations + operation, FIRST], s.table[s.operations + operation, LAST]):
        copy = copy_of(s, datacenter, item)
        if is_of_part(s, datacenter, item, node) and s.table[s.copies + copy, EVT] == 0:
            is_new = True
            if s.table[s.copies + copy, PENDING_SINCE] > 0:
                clear_pending(s, datacenter, item)
            apply_item(s, datacenter, item, node, time)
    if is_new and datacenter == origin_of(s, operation):
        replicate(s, datacenter, operation, node)


@step
def acknowledge(s: State, datacenter: int, operation: int, node: int, value: tuple[int, int]) -> None:
    """Commit at a cohort, and tell the coordinator."""
    apply_part(s, datacenter, operation, node, value[0])
    route = (node, coordinator_of(s, datacenter, operation))
    send(s, ACK, operation, route, NONE, (0, value[1] + 1))


@step
def count_acknowledgement(s: State, datacenter: int, operation: int, hops: int) -> None:
    """Count an acknowledgement at the coordinator; the last one completes the transaction."""
    row = commit_of(s, datacenter, operation)
    s.table[s.commits + row, ACKS] += 1
    s.table[s.commits + row, COMMIT_HOPS] = max(s.table[s.commits + row, COMMIT_HOPS], hops)
    if s.table[s.commits + row, ACKS] == count_participants(s, datacenter, operation) - 1:
        answer_client(s, datacenter, operation, s.table[s.commits + row, COMMIT_HOPS])


@step
def answer_client(s: State, datacenter: int, operation: int, hops: int) -> None:
    """Answer the client of a transaction, in the datacenter that accepted it."""
    if datacenter == origin_of(s, operation):
        client = s.datacenters * s.servers + s.table[s.operations + operation, CLIENT]
        route = (coordinator_of(s, datacenter, operation), client)
        send(s, WRITE_REPLY, operation, route, NONE, (0, hops + 1))


@step
def receive_part(s: State, datacenter: int, item: int, node: int, operation: int) -> None:
    """Take a copied sub-request: notify the coordinator of its keys, which checks the dependencies."""
    count, has_coordinator = 0, False
    for other in range(s.table[s.operations + operation, FIRST], s.table[s.operations + operation, LAST]):
        if s.table[s.items + other, NODE] == s.table[s.items + item, NODE] and is_of_part(
            s, datacenter, other, node
        ):
            count += 1
            has_coordinator |= other == s.table[s.operations + operation, COORDINATOR]
    coordinator = coordinator_of(s, datacenter, operation)
    if node != coordinator:
        send(s, NOTIFY, operation, (node, coordinator), NONE, (count, 0))
        return
    if has_coordinator:
        check_dependencies(s, datacenter, s.table[s.operations + operation, COORDINATOR], node, 0)
        s.table[s.commits + commit_of(s, datacenter, operation), IS_CHECKED] = 1
    notify(s, datacenter, operation, count)


@step
def notify(s: State, datacenter: int, operation: int, count: int) -> None:
    """Count keys that have arrived; with all of them, and all checks answered, the coordinator prepares."""
    row = commit_of(s, datacenter, operation)
    s.table[s.commits + row, NOTIFIED] += count
    expected = s.table[s.operations + operation, LAST] - s.table[s.operations + operation, FIRST]
    is_open = (
        s.table[s.copies + copy_of(s, datacenter, s.table[s.operations + operation, COORDINATOR]), OPEN] > 0
    )
    if s.table[s.commits + row, NOTIFIED] < expected or not s.table[s.commits + row, IS_CHECKED] or is_open:
        return
    if not s.table[s.commits + row, IS_PREPARED]:
        s.table[s.commits + row, IS_PREPARED] = 1
        send_to_cohorts(s, PREPARE, datacenter, operation, (0, 1))
        prepare(s, datacenter, operation, coordinator_of(s, datacenter, operation), 1)
