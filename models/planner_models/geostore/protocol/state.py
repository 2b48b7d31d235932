"""State of a run of the protocol: a table of integers with rows for each kind of thing, and its columns.

Nodes are numbered: server s of datacenter d is node d * servers + s; clients follow. An item is one key of
one operation; a copy is an item in one datacenter, number datacenter * items + item.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeVar

from planner.arrays import Floats, Ints
from planner.compiled import njit

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])
OPTIONS: Final[dict[str, Any]] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "_nrt": False}

NONE: Final = -1
SECOND_ROUND, COMMIT_CHECKED = 1, 2
"""Paths of reads that a micro-benchmark forces (section 7.4): all with two rounds, and all checked."""
STAMP_BASE: Final = 1024
"""A stamp is clock * STAMP_BASE + node: its low-order bits make it distinct (section 3.3)."""

READ, BATCH, TRANSACTION, ADD = 0, 1, 2, 3
"""Kinds of operations: read-only transaction, batch_mutate, atomic_mutate, and an add to a counter."""
EMPTY: Final = -2
"""Value of an item whose first round met a pending transaction (section 5.4)."""

# columns of `clients`
DATACENTER, NEXT, CONTEXT_SIZE, WRITES_LEFT = 0, 1, 2, 3
# columns of `operations`
(CLIENT, KIND, FIRST, LAST, COORDINATOR, FOLLOWING, WAITING, ROUNDS, CHECKS, HOPS, EFFECTIVE) = range(11)
DEPENDS_FIRST, DEPENDS_LAST = 11, 12
# columns of `items`
(OPERATION, KEY, AMOUNT, NODE, VALUE, VERSION, EARLIEST, LATEST, SECOND, STAMP, PREVIOUS_ADD) = range(11)
CHECKS_OPEN, READ_HOPS = 11, 12
# columns of `copies`
(EVT, PENDING_SINCE, NEXT_VERSION, NEXT_PENDING, SUM, WAITERS, OPEN) = range(7)
CONTAINED: Final = 7
"""First of D columns: dependencies that a counter's version contains, by datacenter of origin."""
# columns of `locations`: a key in a datacenter, number datacenter * keys + key
NEWEST, FIRST_PENDING, LAST_ADD, HOME, OWNER, IS_COUNTER = range(6)
# columns of `commits`: an operation in a datacenter, number datacenter * operations + operation
(NOTIFIED, IS_CHECKED, IS_PREPARED, VOTES, ACKS, PARTICIPANTS, COMMITTED, COMMIT_HOPS) = range(8)
# columns of `messages`; TARGET is a node, ARGUMENT a time or a number
(M_KIND, M_OPERATION, M_TARGET, M_SOURCE, M_STAMP, M_ITEM, M_ARGUMENT, M_HOPS, M_NEXT) = range(9)
# columns of row 0
HEAP_SIZE, FREE, SEQUENCE, DRAW, DEPENDS_SIZE, IS_FULL = range(6)
CLOCK: Final = 0
"""Column of the rows of nodes."""
COLUMNS: Final = 13

# kinds of messages
(ISSUE, READ_FIRST, READ_REPLY, READ_AT, READ_AT_REPLY, WRITE, WRITE_REPLY, SUBREQUEST, VOTE) = range(9)
COMMIT, ACK, COMMIT_CHECK, CHECK_REPLY, REPLICATE, REPLICATE_PART, NOTIFY, PREPARE = range(9, 17)
DEP_CHECK, DEP_REPLY, MESSAGE_KINDS = 17, 18, 19
MESSAGE_NAMES: Final = (
    *("issue", "read", "read reply", "read by time", "read by time reply", "write", "write reply"),
    *("sub-request", "vote", "commit", "ack", "commit_check", "commit_check reply", "replicate"),
    *("replicate part", "notify", "prepare", "dep_check", "dep_check reply"),
)


class State(NamedTuple):
    """State of a run: a table of integers with these first rows of its parts, and other arrays.

    clock, clients, ...  first row of each kind of thing in the table; row 0 has the totals
    context    (C, X) items that the client's next write depends on
    depends    (Q,) dependencies of all writes, by DEPENDS_FIRST and DEPENDS_LAST of operations
    heap, tie  (M,) queue of messages by time, and their order among equals
    time_ms    (M,) arrival of each message
    now_ms     (1,)
    spans_ms   (O, 2) start and end of each operation
    visible_ms (D * I,) time at which a copy became visible
    delays     (3, D, D) delay between servers, mean of its exponential jitter, and the same of clients'
        requests, ms
    outages    (X, 3) datacenter, start and end, ms: its messages to others wait until the end
    draws      (X,) draws of an exponential with mean 1
    is_printed  second rounds by Fig. 5 as printed, without the empty replies of section 5.4
    slow_path   SECOND_ROUND or COMMIT_CHECKED: each read takes it, to measure its latency; 0: as needed
    """

    table: Ints
    clock: int
    clients: int
    operations: int
    items: int
    copies: int
    locations: int
    commits: int
    messages: int
    sent: int
    datacenters: int
    servers: int
    keys: int
    client_count: int
    operation_count: int
    item_count: int
    is_printed: bool
    slow_path: int
    context: Ints
    depends: Ints
    heap: Ints
    tie: Ints
    time_ms: Floats
    now_ms: Floats
    spans_ms: Floats
    visible_ms: Floats
    delays: Floats
    outages: Floats
    draws: Floats


def step(function: FunctionT) -> FunctionT:
    """Compile a function of the state that compiled code calls, without reference counts.

    They are for arrays that a function makes; with thirty arrays in the state they take most of compiling.
    """
    decorate: Callable[[FunctionT], FunctionT] = njit(error_model="numpy", **OPTIONS)
    return decorate(function)
