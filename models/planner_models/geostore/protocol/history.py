"""Histories of the protocol: operations as clients saw them, and when writes became visible."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
import pandas as pd

from planner.arrays import Floats, Ints
from planner_models.geostore.protocol import state as columns
from planner_models.geostore.protocol.cluster import Cluster, Operations, require_fit
from planner_models.geostore.protocol.engine import run_messages
from planner_models.geostore.protocol.state import MESSAGE_KINDS, MESSAGE_NAMES, NONE, State

DRAWS: Final = 1 << 14
"""Draws of a run's jitter; each run starts at another of them, and begins again after the last."""
OFFSETS: Final = (
    *("clock", "clients", "operations", "items", "copies", "locations", "commits", "messages", "sent"),
)
MESSAGES_PER_ITEM: Final = 4
"""Rows of the table of messages, for each item in each datacenter; it doubles where they do not suffice."""
MAX_MESSAGES: Final = 16_384
"""Rows to begin with."""


@dataclass(frozen=True, kw_only=True, eq=False)
class History:
    """A run as its clients and its datacenters' logs tell it.

    operations  issued
    spans_ms    (O, 2) start and end of each operation
    value       (I,) read: the item whose write was returned, -1 for none, -2 for an empty reply; of a counter
        the sum
    stamp       (I,) identifies a write in all datacenters; 0 of reads
    evt         (D, I) logical time from which a write was visible in a datacenter; 0: never
    visible_ms  (D, I) time at which it became so; nan: never
    depends_rows  (O, 2) first and last row of `depends_items`, which has the writes that each one depends on
    rounds      (O,) rounds of reads
    checks      (O,) 1 where a read waited for a commit check
    hops        (O,) messages in a row from the request to the last reply
    sent        (MESSAGE_KINDS, 2) messages within a datacenter, and between two
    """

    operations: Operations
    spans_ms: Floats
    value: Ints
    stamp: Ints
    evt: Ints
    visible_ms: Floats
    depends_rows: Ints
    depends_items: Ints
    rounds: Ints
    checks: Ints
    hops: Ints
    sent: Ints

    @property
    def latency_ms(self) -> Floats:
        """Latency of each operation, ms, shape (O,)."""
        return self.spans_ms[:, 1] - self.spans_ms[:, 0]

    def depends(self, operation: int) -> list[int]:
        """Return the items that a write depends on by its client's library (section 3.2)."""
        start, end = self.depends_rows[operation]
        return [int(item) for item in self.depends_items[start:end]]

    def messages(self) -> pd.DataFrame:
        """Return the messages of each kind, within a datacenter and between two."""
        frame = pd.DataFrame(self.sent, columns=["within", "between"])
        frame.insert(0, "message", MESSAGE_NAMES)
        return frame.loc[np.flatnonzero(self.sent.any(axis=1))].reset_index(drop=True)


def run(
    cluster: Cluster,
    operations: Operations,
    *,
    think_ms: float = 1.0,
    is_printed: bool = False,
    slow_path: int = 0,
    seed: int = 0,
) -> History:
    """Run operations on a cluster; return the history once all copies of all writes are applied.

    think_ms    mean time between the end of an operation and the client's next one
    is_printed  read-only transactions by Fig. 5 as printed
    slow_path   of reads, which all of them take
    raises      InputError where the operations do not fit the cluster's replicas
    """
    return run_many(
        cluster, [operations], think_ms=think_ms, is_printed=is_printed, slow_path=slow_path, seed=seed
    )[0]


def run_many(
    cluster: Cluster,
    batches: Sequence[Operations],
    *,
    think_ms: float = 1.0,
    is_printed: bool = False,
    slow_path: int = 0,
    seed: int = 0,
) -> list[History]:
    """Run several sets of operations on a cluster, each by itself; return their histories.

    raises  InputError where operations do not fit the cluster's replicas
    """
    count = len(cluster.present)
    inside = np.eye(count, dtype=bool)
    run = Run(
        home=cluster.home,
        node=np.arange(count)[:, None] * cluster.servers + cluster.owner,
        delays=np.stack(
            [
                np.where(inside, cluster.local_ms, cluster.rtt_ms / 2 + cluster.local_ms),
                np.where(inside, cluster.jitter_ms, cluster.wide_jitter_ms),
                np.full((count, count), cluster.request_jitter_ms),
            ]
        ),
        outages=np.array(cluster.outages, dtype=np.float64).reshape(-1, 3),
        draws=np.random.default_rng(seed).exponential(size=DRAWS),
        is_printed=is_printed,
        slow_path=slow_path,
        number=0,
    )
    histories = []
    for number, operations in enumerate(batches):
        require_fit(cluster, operations)
        factor = 1
        while True:
            state = _start(cluster, operations, run._replace(number=number), factor)
            if run_messages(state, think_ms):
                break
            factor *= 2
        histories.append(_read(state, operations))
    return histories


class Run(NamedTuple):
    """Arrays of a cluster that its runs share, and the number of a run."""

    home: Ints
    node: Ints
    delays: Floats
    outages: Floats
    draws: Floats
    is_printed: bool
    slow_path: int
    number: int


def _start(cluster: Cluster, operations: Operations, run: Run, factor: int) -> State:
    """Return the state before the first operation of a run; `factor` enlarges its tables."""
    datacenters, keys = cluster.present.shape
    count, items, clients = len(operations.kind), len(operations.key), len(operations.datacenter)
    rows = factor * min(MESSAGES_PER_ITEM * datacenters * items + 64, MAX_MESSAGES)
    nodes = datacenters * cluster.servers + clients
    sizes = (
        *(1, nodes, clients, count, items, datacenters * items, datacenters * keys),
        *(datacenters * count, rows, MESSAGE_KINDS),
    )
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    table = np.zeros((offsets[-1], max(columns.COLUMNS, columns.CONTAINED + datacenters)), dtype=np.int64)
    parts = [table[start:end] for start, end in pairwise(offsets)]
    _fill_inputs(parts[2], parts[3], parts[4], operations)
    parts[5][:, [columns.NEXT_VERSION, columns.NEXT_PENDING, columns.WAITERS]] = NONE
    parts[5][:, columns.CONTAINED :] = NONE
    parts[6][:, [columns.NEWEST, columns.FIRST_PENDING, columns.LAST_ADD]] = NONE
    parts[6][:, columns.HOME] = run.home.ravel()
    parts[6][:, columns.OWNER] = run.node.ravel()
    parts[6][:, columns.IS_COUNTER] = np.tile(cluster.is_counter, datacenters)
    parts[8][:, columns.M_NEXT] = np.arange(1, rows + 1)
    parts[8][-1, columns.M_NEXT] = NONE
    table[0, columns.DRAW] = (run.number * 7919) % len(run.draws)
    return State(
        table=table,
        **dict(zip(OFFSETS, offsets[1:-1].tolist(), strict=True)),
        datacenters=datacenters,
        servers=cluster.servers,
        keys=keys,
        client_count=clients,
        operation_count=count,
        item_count=items,
        is_printed=run.is_printed,
        slow_path=run.slow_path,
        context=np.zeros((clients, min(items, factor * 64) + 1), dtype=np.int64),
        depends=np.zeros(factor * 4 * items, dtype=np.int64),
        heap=np.zeros(rows, dtype=np.int64),
        tie=np.zeros(rows, dtype=np.int64),
        time_ms=np.zeros(rows),
        now_ms=np.zeros(1),
        spans_ms=np.zeros((count, 2)),
        visible_ms=np.full(datacenters * items, np.nan),
        delays=run.delays,
        outages=run.outages,
        draws=run.draws,
    )


def _fill_inputs(clients: Ints, table: Ints, items: Ints, operations: Operations) -> None:
    """Write the operations into their rows of the state."""
    count = len(operations.kind)
    clients[:, columns.DATACENTER] = operations.datacenter
    clients[:, columns.NEXT] = NONE
    is_write = operations.kind != columns.READ
    clients[:, columns.WRITES_LEFT] = np.bincount(operations.client[is_write], minlength=len(clients))
    clients[operations.client[::-1], columns.NEXT] = np.arange(count)[::-1]
    table[:, columns.CLIENT], table[:, columns.KIND] = operations.client, operations.kind
    table[:, columns.FIRST], table[:, columns.LAST] = operations.first[:-1], operations.first[1:]
    table[:, columns.COORDINATOR] = operations.coordinator
    table[:, columns.FOLLOWING] = _following(operations.client)
    items[:, columns.OPERATION] = np.repeat(np.arange(count), np.diff(operations.first))
    items[:, columns.KEY], items[:, columns.AMOUNT] = operations.key, operations.amount
    items[:, columns.NODE] = items[:, columns.PREVIOUS_ADD] = NONE


def _following(client: Ints) -> Ints:
    """Return each operation's next one of the same client; NONE of the last."""
    order = np.argsort(client, kind="stable")
    following = np.full(len(client), NONE)
    is_same = client[order[1:]] == client[order[:-1]]
    following[order[:-1][is_same]] = order[1:][is_same]
    return following


def _read(state: State, operations: Operations) -> History:
    """Return the history of a run that has ended."""
    count, items = state.operation_count, state.item_count
    copies = state.table[state.copies : state.copies + state.datacenters * items, columns.EVT]
    item_rows = state.table[state.items : state.items + items]
    rows = state.table[state.operations : state.operations + count]
    return History(
        operations=operations,
        spans_ms=state.spans_ms,
        value=item_rows[:, columns.VALUE].copy(),
        stamp=item_rows[:, columns.STAMP].copy(),
        evt=copies.reshape(-1, items).copy(),
        visible_ms=state.visible_ms.reshape(-1, items),
        depends_rows=rows[:, [columns.DEPENDS_FIRST, columns.DEPENDS_LAST]],
        depends_items=state.depends,
        rounds=rows[:, columns.ROUNDS].copy(),
        checks=rows[:, columns.CHECKS].copy(),
        hops=rows[:, columns.HOPS].copy(),
        sent=state.table[state.sent : state.sent + MESSAGE_KINDS, :2].copy(),
    )
