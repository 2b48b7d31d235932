"""Random operations for the simulation, and clusters of the paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from planner.arrays import Bools, Floats, Ints
from planner_models.geostore.protocol.cluster import CLOSURE, Cluster, Operations
from planner_models.geostore.protocol.state import ADD, BATCH, READ, TRANSACTION

VICCI: Final = ("princeton", "stanford", "uw")
VICCI_RTT_MS: Final = ((0.0, 88.0, 84.0), (88.0, 0.0, 20.0), (84.0, 20.0, 0.0))
"""Round trips between the sites of Eiger's runs (section 7.3)."""


@dataclass(frozen=True, kw_only=True)
class Mix:
    """Shares of the kinds of operations, and keys of each; reads are the others.

    keys    of each read and write, at most
    skew    exponent of Zipf's law over keys
    """

    batches: float = 0.15
    transactions: float = 0.25
    adds: float = 0.1
    keys: int = 3
    skew: float = 0.8


DEFAULT_MIX: Final = Mix()


def full_cluster(
    *,
    rtt_ms: Floats | None = None,
    servers: int = 3,
    keys: int = 8,
    counters: int = 1,
    seed: int = 0,
) -> Cluster:
    """Return a cluster with full replicas; the keys' servers differ between datacenters (section 3.3).

    rtt_ms    default: the three sites of Eiger's runs
    counters  the last keys are counters
    """
    rtt = np.array(VICCI_RTT_MS) if rtt_ms is None else rtt_ms
    random = np.random.default_rng(seed)
    return Cluster(
        rtt_ms=rtt,
        present=np.ones((len(rtt), keys), dtype=bool),
        owner=random.integers(0, servers, (len(rtt), keys)),
        servers=servers,
        is_counter=np.arange(keys) >= keys - counters,
        checks=CLOSURE,
    )


@dataclass(frozen=True, kw_only=True)
class KeyGroups:
    """Groups of keys: a client writes keys of one group.

    of_key    (K,) group of each key; None: one group of all
    readable  groups that a client of a group reads besides its own
    """

    of_key: Ints | None = None
    readable: Mapping[int, Sequence[int]] = field(default_factory=dict)

    def numbers(self, keys: int) -> Ints:
        """Return the group of each of so many keys."""
        return np.zeros(keys, dtype=np.int64) if self.of_key is None else self.of_key


def draw_operations(
    cluster: Cluster,
    *,
    histories: int = 1,
    clients: int = 6,
    operations: int = 20,
    mix: Mix = DEFAULT_MIX,
    groups: KeyGroups = KeyGroups(),
    seed: int = 0,
) -> list[Operations]:
    """Draw the operations of some histories; each client is in a datacenter with the keys it writes.

    operations  of each client
    """
    random = np.random.default_rng(seed)
    keys = cluster.present.shape[1]
    group_of = groups.numbers(keys)
    each, people = clients * operations, histories * clients
    count = histories * each
    client = random.permuted(np.tile(np.repeat(np.arange(clients), operations), (histories, 1)), axis=1)
    group = random.integers(0, group_of.max() + 1, people)
    datacenter = _draw_datacenters(cluster, group_of, group, random)
    shares = np.array([0.0, mix.batches, mix.transactions, mix.adds])
    shares[READ] = 1 - shares.sum()
    kind = np.searchsorted(np.cumsum(shares)[:-1], random.random(count), side="right")
    mask = _accessible(cluster, group_of, groups.readable)
    person = (client + clients * np.arange(histories)[:, None]).ravel()
    kind = np.where(mask[group[person], kind].any(axis=1), kind, READ)
    allowed = mask[group[person], kind]
    score = random.gumbel(size=(count, keys)) - mix.skew * np.log(np.arange(1, keys + 1))
    order = np.argsort(np.where(allowed, -score, np.inf), axis=1)
    size = np.where(kind == ADD, 1, random.integers(1, mix.keys + 1, count))
    size = np.minimum(size, allowed.sum(axis=1))
    key = order[np.arange(keys) < size[:, None]]
    drawn = Operations(
        datacenter=datacenter,
        client=client.ravel(),
        kind=kind,
        first=np.concatenate([[0], np.cumsum(size)]),
        key=key,
        amount=random.integers(1, 5, len(key)),
        coordinator=random.integers(0, size),
    )
    return [_take_history(drawn, number, clients, each) for number in range(histories)]


def _take_history(drawn: Operations, number: int, clients: int, each: int) -> Operations:
    """Return one of several histories that were drawn together, each of so many clients and operations.

    drawn  whose coordinators count from the first item of their operation
    """
    rows = slice(number * each, (number + 1) * each)
    bounds = drawn.first[rows.start : rows.stop + 1]
    items = slice(int(bounds[0]), int(bounds[-1]))
    bounds = bounds - bounds[0]
    return Operations(
        datacenter=drawn.datacenter[number * clients : (number + 1) * clients],
        client=drawn.client[rows],
        kind=drawn.kind[rows],
        first=bounds,
        key=drawn.key[items],
        amount=drawn.amount[items],
        coordinator=bounds[:-1] + drawn.coordinator[rows],
    )


def _draw_datacenters(cluster: Cluster, group_of: Ints, group: Ints, random: np.random.Generator) -> Ints:
    """Draw a datacenter of each client among those with all keys of the client's group."""
    has = np.array([cluster.present[:, group_of == g].all(axis=1) for g in range(group_of.max() + 1)])
    score = np.where(has[group], random.random((len(group), has.shape[1])), -1.0)
    datacenter: Ints = np.argmax(score, axis=1)
    return datacenter


def _accessible(cluster: Cluster, group_of: Ints, readable: Mapping[int, Sequence[int]]) -> Bools:
    """Return the keys that a client of a group may access by a kind of operation, shape (G, 4, K)."""
    groups = int(group_of.max()) + 1
    mask = np.empty((groups, 4, len(group_of)), dtype=bool)
    for group in range(groups):
        mask[group, :] = group_of == group
        mask[group, READ] = np.isin(group_of, (group, *readable.get(group, ())))
        mask[group, ADD] &= cluster.is_counter
        mask[group, [BATCH, TRANSACTION]] &= ~cluster.is_counter
    return mask
