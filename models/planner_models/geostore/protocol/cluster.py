"""Datacenters of a simulation: replicas of keys, servers, delays, outages; and the operations of clients."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from planner.arrays import Bools, Floats, Ints
from planner.errors import InputError
from planner_models.geostore.protocol.state import ADD, READ, STAMP_BASE, TRANSACTION
from planner_models.geostore.protocol.views import nearest_replicas

CLOSURE, REMOTE = "closure", "remote"


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """Datacenters, each with the same number of servers, and the replicas of keys in them.

    rtt_ms      (D, D) round trips between datacenters; the diagonal is not read
    present     (D, K) whether a datacenter has a replica of a key
    owner       (D, K) server of a key in each datacenter, 0 to servers - 1
    servers     of each datacenter
    is_counter  (K,) keys of counter columns
    local_ms    one-way delay of a message within a datacenter, without jitter
    jitter_ms   mean of the exponential jitter of a message within a datacenter
    wide_jitter_ms  the same between two datacenters
    request_jitter_ms  the same, added to requests of clients
    checks      where a datacenter without the key checks a dependency: nowhere (closure), or at the nearest
        replica (remote)
    outages     datacenter, start and end, ms: its messages to others wait until the end
    """

    rtt_ms: Floats
    present: Bools
    owner: Ints
    servers: int
    is_counter: Bools
    local_ms: float = 0.1
    jitter_ms: float = 0.1
    wide_jitter_ms: float = 2.0
    request_jitter_ms: float = 0.0
    checks: str = CLOSURE
    outages: tuple[tuple[int, float, float], ...] = field(default=())

    def __post_init__(self) -> None:
        count, keys = self.present.shape
        faults = []
        if self.rtt_ms.shape != (count, count) or self.owner.shape != (count, keys):
            faults.append("cluster: rtt_ms, present and owner must agree in datacenters and keys")
        elif not (self.rtt_ms[~np.eye(count, dtype=bool)] > 0).all():
            faults.append("cluster: rtt_ms must be above 0 between two datacenters")
        if self.is_counter.shape != (keys,):
            faults.append(f"cluster: is_counter has {len(self.is_counter)} keys, present {keys}")
        if self.owner.size and not (self.owner.min() >= 0 and self.owner.max() < self.servers):
            faults.append(f"cluster: owner must be 0 to {self.servers - 1}")
        if self.checks not in (CLOSURE, REMOTE):
            faults.append(f"cluster: checks is {self.checks!r}, must be {CLOSURE!r} or {REMOTE!r}")
        missing = np.flatnonzero(~self.present.any(axis=0))
        if len(missing):
            faults.append(f"cluster: key {missing[0]} has no replica")
        if count * self.servers >= STAMP_BASE:
            faults.append(f"cluster: {count * self.servers} servers, a stamp has place for {STAMP_BASE - 1}")
        if faults:
            raise InputError(*faults)

    @property
    def home(self) -> Ints:
        """Datacenter that serves each key to the clients of each datacenter, shape (D, K): the nearest."""
        return nearest_replicas(self.present, self.rtt_ms)


@dataclass(frozen=True, kw_only=True, eq=False)
class Operations:
    """Operations of clients, each of whom issues its own in order of rows.

    datacenter   (C,) of each client
    client       (O,) of each operation
    kind         (O,) READ, BATCH, TRANSACTION or ADD
    first        (O + 1,) first item of each operation
    key          (I,) of each item
    amount       (I,) added to a counter, above 0
    coordinator  (O,) item of the coordinator key
    """

    datacenter: Ints
    client: Ints
    kind: Ints
    first: Ints
    key: Ints
    amount: Ints
    coordinator: Ints


COUNTER_RULE: Final = "a counter changes by adds of one key, and nothing else does"


def require_fit(cluster: Cluster, operations: Operations) -> None:
    """Raise InputError where operations are not such as the protocol can run on these replicas.

    A client writes keys of its own datacenter. Keys of one write transaction have the same replicas, so that
    it is atomic wherever it appears. Under closure a datacenter with a key that a client writes has each key
    that the client accesses: there it checks the dependencies (sections 2.1 and 3.1).
    """
    row = np.repeat(np.arange(len(operations.kind)), np.diff(operations.first))
    faults = [*_find_shape_faults(cluster, operations, row), *_find_replica_faults(cluster, operations, row)]
    if faults:
        raise InputError(*faults)
    if cluster.checks == CLOSURE and not cluster.present.all():
        _require_closure(cluster, operations, row)


def _find_shape_faults(cluster: Cluster, operations: Operations, row: Ints) -> Iterator[str]:
    """Yield a line for operations that no replicas could serve; `row` is the operation of each item."""
    sizes = np.diff(operations.first)
    if (sizes < 1).any():
        yield f"operation {int(np.argmin(sizes))}: has no key"
    kind, is_counter = operations.kind[row], cluster.is_counter[operations.key]
    is_mixed = np.where(kind == ADD, ~is_counter, (kind != READ) & is_counter)
    if is_mixed.any() or (sizes[operations.kind == ADD] != 1).any():
        yield f"operations: {COUNTER_RULE}"
    if (operations.amount[kind == ADD] <= 0).any():
        yield "operations: an add's amount must be above 0"


def _find_replica_faults(cluster: Cluster, operations: Operations, row: Ints) -> Iterator[str]:
    """Yield a line for writes that their datacenter, or their atomicity, cannot serve."""
    kind, key = operations.kind[row], operations.key
    datacenter = operations.datacenter[operations.client[row]]
    for item in np.flatnonzero((kind != READ) & ~cluster.present[datacenter, key])[:1]:
        yield (
            f"operation {row[item]}: datacenter {datacenter[item]} has no replica of key {key[item]}, "
            "which it writes"
        )
    start = key[operations.first[:-1]][row]
    is_unlike = (cluster.present[:, key] != cluster.present[:, start]).any(axis=0)
    for item in np.flatnonzero((kind == TRANSACTION) & is_unlike)[:1]:
        yield (
            f"operation {row[item]}: keys {start[item]} and {key[item]} of a transaction have other replicas"
        )


def _require_closure(cluster: Cluster, operations: Operations, row: Ints) -> None:
    """Raise InputError with the keys and the datacenter where a dependency has no replica to check it."""
    clients, keys = len(operations.datacenter), cluster.present.shape[1]
    is_read, is_write = np.zeros((2, clients, keys), dtype=bool)
    person = operations.client[row]
    writes = operations.kind[row] != READ
    is_read[person, operations.key] = True
    is_write[person[writes], operations.key[writes]] = True
    for client in range(clients):
        written, used = np.flatnonzero(is_write[client]), np.flatnonzero(is_read[client])
        breach = cluster.present[:, written, None] & ~cluster.present[:, None, used]
        if breach.any():
            datacenter, first, second = np.argwhere(breach)[0]
            raise InputError(
                f"datacenter {datacenter} has key {written[first]} without key {used[second]}, on which "
                f"writes of client {client} depend: it cannot check them (closure)"
            )
