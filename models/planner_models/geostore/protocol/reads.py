"""Read-only transactions: an optimistic round, a second round by time, and commit checks (Fig. 5, 5.4)."""

from __future__ import annotations

from planner.arrays import Ints
from planner_models.geostore.protocol.commits import apply_part, commit_of, coordinator_of
from planner_models.geostore.protocol.messages import Pair, datacenter_of, send, stamp_of
from planner_models.geostore.protocol.state import (
    CHECK_REPLY,
    CHECKS,
    CHECKS_OPEN,
    CLIENT,
    COMMIT_CHECK,
    COMMIT_CHECKED,
    COMMITTED,
    EARLIEST,
    EFFECTIVE,
    EMPTY,
    EVT,
    FIRST,
    FIRST_PENDING,
    HOPS,
    LAST,
    LATEST,
    NEWEST,
    NEXT_PENDING,
    NODE,
    NONE,
    OPERATION,
    PENDING_SINCE,
    READ_AT,
    READ_AT_REPLY,
    READ_HOPS,
    READ_REPLY,
    ROUNDS,
    SECOND,
    SUM,
    VALUE,
    VERSION,
    WAITING,
    State,
    step,
)
from planner_models.geostore.protocol.versions import (
    copy_of,
    is_counter,
    is_first_at_node,
    is_of_part,
    location_of,
    version_at,
)


@step
def take_version(s: State, datacenter: int, item: int, version: int) -> None:
    """Store the version that a read returns: its value is its number, of a counter the sum."""
    s.table[s.items + item, VERSION], s.table[s.items + item, EARLIEST] = version, 0
    s.table[s.items + item, VALUE] = version
    if version != NONE:
        s.table[s.items + item, EARLIEST] = s.table[s.copies + copy_of(s, datacenter, version), EVT]
    if is_counter(s, item):
        s.table[s.items + item, VALUE] = (
            0 if version == NONE else s.table[s.copies + copy_of(s, datacenter, version), SUM]
        )


@step
def serve_first(s: State, operation: int, node: int, client: int) -> None:
    """Answer a first round: visible values with EVT and LVT, empty where a transaction is pending."""
    datacenter = datacenter_of(s, node)
    for item in range(s.table[s.operations + operation, FIRST], s.table[s.operations + operation, LAST]):
        if s.table[s.items + item, NODE] != node:
            continue
        location = location_of(s, datacenter, item)
        s.table[s.items + item, LATEST] = stamp_of(s, node)
        if s.table[s.locations + location, FIRST_PENDING] == NONE:
            take_version(s, datacenter, item, s.table[s.locations + location, NEWEST])
        else:
            (
                s.table[s.items + item, VALUE],
                s.table[s.items + item, VERSION],
                s.table[s.items + item, EARLIEST],
            ) = EMPTY, NONE, 0
    send(s, READ_REPLY, operation, (node, client), NONE, (0, 2))


@step
def effective_time(earliest: Ints, latest: Ints) -> int:
    """Return the effective time of a read-only transaction: the least LVT up from the largest EVT (4.1).

    earliest, latest  EVT and LVT of each value; an empty reply has EVT 0
    """
    newest, effective = 0, -1
    for time in earliest:
        newest = max(newest, time)
    for time in latest:
        if time >= newest and (effective < 0 or time < effective):
            effective = time
    return int(effective)


@step
def end_first(s: State, operation: int) -> bool:
    """Choose the effective time, and ask again for values not valid then; return whether all are.

    As printed, Fig. 5 asks again only where LVT < EffT. An empty reply has an LVT as well, and it may be
    the latest of all: then the printed condition returns it as a value.
    """
    first, last = s.table[s.operations + operation, FIRST], s.table[s.operations + operation, LAST]
    start, end = s.items + first, s.items + last
    effective = effective_time(s.table[start:end, EARLIEST], s.table[start:end, LATEST])
    s.table[s.operations + operation, EFFECTIVE] = effective
    is_valid, is_forced = True, s.slow_path > 0
    for item in range(first, last):
        is_empty = s.table[s.items + item, VALUE] == EMPTY and not s.is_printed
        is_late = s.table[s.items + item, LATEST] < effective
        s.table[s.items + item, SECOND] = int(is_empty or is_late or is_forced)
        is_valid &= s.table[s.items + item, SECOND] == 0
    if not is_valid:
        ask_again(s, operation, first, last, effective)
    return is_valid


@step
def ask_again(s: State, operation: int, first: int, last: int, effective: int) -> None:
    """Send the second round: a read at the effective time to each server with such an item."""
    client = s.datacenters * s.servers + s.table[s.operations + operation, CLIENT]
    s.table[s.operations + operation, ROUNDS] = 2
    for item in range(first, last):
        if s.table[s.items + item, SECOND] and is_first_second(s, operation, item):
            s.table[s.operations + operation, WAITING] += 1
            send(s, READ_AT, operation, (client, s.table[s.items + item, NODE]), item, (effective, 3))


@step
def is_first_second(s: State, operation: int, item: int) -> bool:
    """Return whether no earlier item of the second round is at the same server."""
    for other in range(s.table[s.operations + operation, FIRST], item):
        if (
            s.table[s.items + other, SECOND]
            and s.table[s.items + other, NODE] == s.table[s.items + item, NODE]
        ):
            return False
    return True


@step
def serve_second(s: State, first: int, node: int, time: int, hops: int) -> None:
    """Answer a read by time, once the coordinators of transactions that may have committed before are asked.

    first  the first item of the request, which counts the checks
    """
    operation, datacenter = s.table[s.items + first, OPERATION], datacenter_of(s, node)
    s.table[s.items + first, READ_HOPS] = hops
    for item in range(first, s.table[s.operations + operation, LAST]):
        if s.table[s.items + item, NODE] != node or not s.table[s.items + item, SECOND]:
            continue
        pending = s.table[s.locations + location_of(s, datacenter, item), FIRST_PENDING]
        while pending != NONE:
            copy = copy_of(s, datacenter, pending)
            if s.table[s.copies + copy, PENDING_SINCE] < time:
                ask_coordinator(s, pending, first, node, time)
            pending = s.table[s.copies + copy, NEXT_PENDING]
    if s.slow_path == COMMIT_CHECKED:
        other = datacenter * s.servers + (node + 1) % s.servers
        s.table[s.items + first, CHECKS_OPEN] += 1
        s.table[s.operations + operation, CHECKS] = 1
        send(s, COMMIT_CHECK, operation, (node, other), first, (time, hops + 1))
    if s.table[s.items + first, CHECKS_OPEN] == 0:
        answer_second(s, first, node)


@step
def ask_coordinator(s: State, pending: int, first: int, node: int, time: int) -> None:
    """Ask whether a pending item was committed by a time; a coordinator knows that its own were not."""
    transaction, datacenter = s.table[s.items + pending, OPERATION], datacenter_of(s, node)
    coordinator = coordinator_of(s, datacenter, transaction)
    if coordinator == node:
        s.table[s.copies + copy_of(s, datacenter, pending), PENDING_SINCE] = time
        return
    s.table[s.items + first, CHECKS_OPEN] += 1
    s.table[s.operations + s.table[s.items + first, OPERATION], CHECKS] = 1
    value = (time, s.table[s.items + first, READ_HOPS] + 1)
    send(s, COMMIT_CHECK, transaction, (node, coordinator), first, value)


@step
def serve_check(s: State, transaction: int, route: Pair, first: int, value: Pair) -> None:
    """Answer a commit check at the coordinator: the commit's time, or the time asked for, negative.

    The request has advanced the coordinator's clock: a commit that is still to come is later.
    """
    committed = s.table[s.commits + commit_of(s, datacenter_of(s, route[0]), transaction), COMMITTED]
    answer = committed if 0 < committed <= value[0] else -value[0]
    send(s, CHECK_REPLY, transaction, route, first, (answer, value[1] + 1))


@step
def take_check(s: State, transaction: int, node: int, first: int, value: tuple[int, int]) -> None:
    """Use the answer to a commit check: apply the transaction, or know that it commits later."""
    datacenter = datacenter_of(s, node)
    if value[0] > 0:
        apply_part(s, datacenter, transaction, node, value[0])
    else:
        for item in range(
            s.table[s.operations + transaction, FIRST], s.table[s.operations + transaction, LAST]
        ):
            copy = copy_of(s, datacenter, item)
            is_pending = 0 < s.table[s.copies + copy, PENDING_SINCE] < -value[0]
            if is_pending and is_of_part(s, datacenter, item, node):
                s.table[s.copies + copy, PENDING_SINCE] = -value[0]
    s.table[s.items + first, CHECKS_OPEN] -= 1
    s.table[s.items + first, READ_HOPS] = max(s.table[s.items + first, READ_HOPS], value[1])
    if s.table[s.items + first, CHECKS_OPEN] == 0:
        answer_second(s, first, node)


@step
def answer_second(s: State, first: int, node: int) -> None:
    """Answer a read by time with the versions that are valid then."""
    operation, datacenter = s.table[s.items + first, OPERATION], datacenter_of(s, node)
    time = s.table[s.operations + operation, EFFECTIVE]
    for item in range(first, s.table[s.operations + operation, LAST]):
        if s.table[s.items + item, NODE] == node and s.table[s.items + item, SECOND]:
            take_version(s, datacenter, item, version_at(s, datacenter, item, time))
    client = s.datacenters * s.servers + s.table[s.operations + operation, CLIENT]
    hops = s.table[s.items + first, READ_HOPS] + 1
    s.table[s.operations + operation, HOPS] = max(s.table[s.operations + operation, HOPS], hops)
    send(s, READ_AT_REPLY, operation, (node, client), NONE, (0, hops))


@step
def send_first(s: State, operation: int, client: int, kind: int) -> None:
    """Send one request to each server with an item of the operation."""
    for item in range(s.table[s.operations + operation, FIRST], s.table[s.operations + operation, LAST]):
        if is_first_at_node(s, operation, item):
            s.table[s.operations + operation, WAITING] += 1
            send(s, kind, operation, (client, s.table[s.items + item, NODE]), NONE, (0, 1))
