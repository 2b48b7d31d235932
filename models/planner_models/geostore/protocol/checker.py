"""Checker of histories: it sees the reads of clients, and the time of visibility of writes, no more.

1. Each read-only transaction returns the values of one logical time (section 4.1), and no empty value.
2. No client goes back: it reads at least what it has read or written before, and all that this depends on.
3. Causal order in each datacenter: a write becomes visible no earlier than all that it depends on.
4. Each write becomes visible in each datacenter with a replica, so that replicas converge.

The causal past of an operation is worked out from the history: the newest stamp of each key, of a counter
for each datacenter where adds originate. The dependencies that clients attached are not read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from planner.arrays import Bools, Ints
from planner.compiled import kernel, run_small_in_python
from planner_models.geostore.protocol.cluster import Cluster
from planner_models.geostore.protocol.history import History
from planner_models.geostore.protocol.state import EMPTY, NONE, READ, TRANSACTION, step

RULES: Final = (
    "a read returns an empty value",
    "a read equals no logical time",
    "a client goes back",
    "a read misses what another of its values depends on",
    "a datacenter shows a write before one that it depends on",
    "a write never becomes visible in a datacenter with a replica",
)
IS_EMPTY, NO_TIME, GOES_BACK, NOT_CAUSAL, OUT_OF_ORDER, NOT_VISIBLE = range(len(RULES))
FOREVER: Final = np.iinfo(np.int64).max


@dataclass(frozen=True, kw_only=True)
class Findings:
    """Breaches of the rules in a history.

    count  (RULES,) operations that breach each rule
    first  (RULES,) the first such operation in time; -1: none
    """

    count: Ints
    first: Ints

    @property
    def is_valid(self) -> bool:
        """Whether no rule is breached."""
        return not self.count.any()

    def describe(self) -> list[str]:
        """Return a line for each rule that is breached."""
        return [
            f"{RULES[rule]}: {self.count[rule]} operations, first {self.first[rule]}"
            for rule in np.flatnonzero(self.count)
        ]


class Case(NamedTuple):
    """Arrays of a history, and the causal past of each client.

    client, kind, first  of operations; first has O + 1 items
    key, amount, value, stamp, origin  of items; origin is the datacenter of the client
    evt         (D, I) logical time at which a write became visible; 0: never
    home        (D, K) datacenter that serves a key; present: (D, K) replicas
    is_counter  (K,)
    datacenter  (C,) of clients
    by_key, start  written items by key, and where each key's begin
    context     (C, K, D) newest stamp of a key that a client follows, of a counter by datacenter of origin
    past        (I, K, D) the same of a written item, itself included
    largest     (C, K) sum of a counter that a client has read
    tally       (2, RULES) operations that breach a rule, and the first
    """

    client: Ints
    kind: Ints
    first: Ints
    key: Ints
    amount: Ints
    value: Ints
    stamp: Ints
    origin: Ints
    evt: Ints
    home: Ints
    present: Bools
    is_counter: Bools
    datacenter: Ints
    by_key: Ints
    start: Ints
    context: Ints
    past: Ints
    largest: Ints
    tally: Ints


def check_history(cluster: Cluster, history: History) -> Findings:
    """Return the breaches of causal consistency in a history."""
    operations = history.operations
    is_read = operations.kind == READ
    event_ms = np.where(is_read, history.spans_ms[:, 1], history.spans_ms[:, 0])
    (datacenters, keys), clients = cluster.present.shape, len(operations.datacenter)
    row = np.repeat(np.arange(len(operations.kind)), np.diff(operations.first))
    by_key = np.argsort(operations.key, kind="stable")
    by_key = by_key[~is_read[row[by_key]]]
    case = Case(
        client=operations.client,
        kind=operations.kind,
        first=operations.first,
        key=operations.key,
        amount=operations.amount,
        value=history.value,
        stamp=history.stamp,
        origin=operations.datacenter[operations.client[row]],
        evt=history.evt,
        home=cluster.home,
        present=cluster.present,
        is_counter=cluster.is_counter,
        datacenter=operations.datacenter,
        by_key=by_key,
        start=np.searchsorted(operations.key[by_key], np.arange(keys + 1)),
        context=np.zeros((clients, keys, datacenters), dtype=np.int64),
        past=np.zeros((len(row), keys, datacenters), dtype=np.int64),
        largest=np.zeros((clients, keys), dtype=np.int64),
        tally=np.repeat([[0], [NONE]], len(RULES), axis=1),
    )
    judge(case, np.argsort(event_ms, kind="stable"))
    return Findings(count=case.tally[0], first=case.tally[1])


@run_small_in_python(max_elements=100_000)
@kernel
def judge(c: Case, order: Ints) -> None:
    """Count the operations that breach each rule, in order of time: reads by their end, writes by start."""
    for operation in order:
        if c.kind[operation] == READ:
            start = judge_read(c, operation)
            for item in range(c.first[operation], c.first[operation + 1]):
                follow_value(c, c.client[operation], item, start)
            continue
        remember_write(c, operation)
        is_visible, is_ordered = True, True
        for item in range(c.first[operation], c.first[operation + 1]):
            for datacenter in range(len(c.home)):
                if c.present[datacenter, c.key[item]]:
                    is_visible &= c.evt[datacenter, item] > 0
                    is_ordered &= follows(c, datacenter, item)
        note(c, NOT_VISIBLE, operation, not is_visible)
        note(c, OUT_OF_ORDER, operation, not is_ordered)


@step
def note(c: Case, rule: int, operation: int, is_breached: bool) -> None:
    """Count a breach of a rule."""
    if is_breached:
        if c.tally[0, rule] == 0:
            c.tally[1, rule] = operation
        c.tally[0, rule] += 1


@step
def column_of(c: Case, item: int) -> int:
    """Return the column of a written item's stamp: of a counter its datacenter of origin, else 0."""
    return c.origin[item] if c.is_counter[c.key[item]] else 0


@step
def remember_write(c: Case, operation: int) -> None:
    """Store the causal past of a write, and add the write to its client's.

    Rows of a batch do not follow each other; those of a transaction are one write.
    """
    person = c.client[operation]
    span = range(c.first[operation], c.first[operation + 1])
    for item in span:
        for k in range(c.past.shape[1]):
            for column in range(c.past.shape[2]):
                c.past[item, k, column] = c.context[person, k, column]
    for item in span:
        k, column = c.key[item], column_of(c, item)
        for other in span:
            if other == item or c.kind[operation] == TRANSACTION:
                c.past[other, k, column] = max(c.past[other, k, column], c.stamp[item])
        c.context[person, k, column] = max(c.context[person, k, column], c.stamp[item])


@step
def follows(c: Case, datacenter: int, item: int) -> bool:
    """Return whether a write is visible in a datacenter no earlier than all that it follows."""
    for k in range(c.past.shape[1]):
        for column in range(c.past.shape[2]):
            stamp = c.past[item, k, column]
            if stamp > 0 and not is_shown(c, c.home[datacenter, k], k, stamp, c.evt[datacenter, item]):
                return False
    return True


@step
def is_shown(c: Case, home: int, k: int, stamp: int, time: int) -> bool:
    """Return whether a stamp of a key, or a newer one that replaces it, is visible at a logical time."""
    for row in range(c.start[k], c.start[k + 1]):
        other = c.by_key[row]
        is_visible = 0 < c.evt[home, other] <= time
        is_newer = c.stamp[other] > stamp and not c.is_counter[k]
        if is_visible and (is_newer or c.stamp[other] == stamp):
            return True
    return False


@step
def interval(c: Case, home: int, item: int) -> tuple[int, int]:
    """Return the logical times at which a datacenter shows an item's value: from, and up to before."""
    k, version = c.key[item], c.value[item]
    if c.is_counter[k]:
        return counter_interval(c, home, k, version)
    stamp, start, end = 0, 0, FOREVER
    if version != NONE:
        stamp, start = c.stamp[version], c.evt[home, version]
        if start == 0 or c.key[version] != k:
            return FOREVER, 0
    for row in range(c.start[k], c.start[k + 1]):
        other = c.by_key[row]
        if c.stamp[other] > stamp and c.evt[home, other] > 0:
            end = min(end, c.evt[home, other])
    return start, end


@step
def counter_interval(c: Case, home: int, k: int, total: int) -> tuple[int, int]:
    """Return the logical times at which the adds of a counter up to then make a sum; amounts are above 0."""
    start = 0
    while True:
        following, amount = FOREVER, 0
        for row in range(c.start[k], c.start[k + 1]):
            other = c.by_key[row]
            if start < c.evt[home, other] < following:
                following, amount = c.evt[home, other], c.amount[other]
        if total == 0:
            return start, following
        if following == FOREVER or amount > total:
            return FOREVER, 0
        start, total = following, total - amount


@step
def judge_read(c: Case, operation: int) -> int:
    """Judge a read by all rules; return the first logical time that it equals."""
    person = c.client[operation]
    start, end, is_empty, goes_back, is_causal = 0, FOREVER, False, False, True
    for item in range(c.first[operation], c.first[operation + 1]):
        k = c.key[item]
        if c.value[item] == EMPTY:
            is_empty = True
            continue
        span = interval(c, c.home[c.datacenter[person], k], item)
        start, end = max(start, span[0]), min(end, span[1])
        if c.is_counter[k]:
            goes_back |= c.value[item] < c.largest[person, k]
            c.largest[person, k] = max(c.largest[person, k], c.value[item])
        else:
            shown = 0 if c.value[item] == NONE else c.stamp[c.value[item]]
            goes_back |= shown < c.context[person, k, 0]
            is_causal &= shown >= newest_needed(c, operation, k)
    note(c, IS_EMPTY, operation, is_empty)
    note(c, NO_TIME, operation, start >= end)
    note(c, GOES_BACK, operation, goes_back)
    note(c, NOT_CAUSAL, operation, not is_causal)
    return start


@step
def newest_needed(c: Case, operation: int, k: int) -> int:
    """Return the newest stamp of a key that the values of a read follow."""
    newest = 0
    for item in range(c.first[operation], c.first[operation + 1]):
        if c.value[item] >= 0 and not c.is_counter[c.key[item]]:
            newest = max(newest, c.past[c.value[item], k, 0])
    return newest


@step
def follow_value(c: Case, person: int, item: int, time: int) -> None:
    """Let a client follow the write of a value that it has read; of a counter all adds up to a time."""
    k = c.key[item]
    home = c.home[c.datacenter[person], k]
    for row in range(c.start[k], c.start[k + 1]):
        other = c.by_key[row]
        is_added = c.is_counter[k] and 0 < c.evt[home, other] <= time
        if not is_added and (c.is_counter[k] or other != c.value[item]):
            continue
        for dependency in range(c.past.shape[1]):
            for column in range(c.past.shape[2]):
                newest = max(c.context[person, dependency, column], c.past[other, dependency, column])
                c.context[person, dependency, column] = newest
