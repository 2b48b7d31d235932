"""Requests in queues of nodes, event by event: closed-loop tenants, and nodes that serve in turns.

A source keeps a number of requests outstanding: a tenant of fixed mix is one source, and so is each partition
of an elastic one. A request that is served returns at once, and the source sends the next one as soon as its
demand allows it: to a partition drawn by demand, and to one of the replicas of this partition. A node serves
one request at a time: first come, first served, or by deficit weighted round robin over the queues of its
tenants (Shreedhar, Varghese 1996). All requests have size 1.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from planner.arrays import Bools, Floats, Ints
from planner.compiled import njit, run_small_in_python

BURST_S: Final = 0.05
"""Time for which demand that was not sent may be sent later."""
SMOOTHING: Final = 0.02
"""Weight of a new latency in its moving average."""
LEAST_LATENCY_S: Final = 1e-6
BINS: Final = 240
BINS_OF_FACTOR_10: Final = 30
"""Bins of the distribution of latency: 30 for each factor of ten, from `LEAST_LATENCY_S` on."""


class Store(NamedTuple):
    """Store as requests meet it; controllers and events change its arrays in place.

    rate       (N,) requests per second of each node
    tenant     (S,) tenant of each source
    pace       (S,) requests per second that each source wants
    first      (S + 1,) partitions of source s: first[s]:first[s + 1]
    popular    (P,) cumulated part of its source's requests, up to each partition
    at         (P + 1,) replicas of partition p: at[p]:at[p + 1]
    node       (K,) node of each replica
    chance     (K,) cumulated part of the partition's requests, up to each replica
    quantum    (T, N) requests that a tenant may send to the server of a node in a round
    is_fair    whether nodes share by deficit round robin, else first come, first served
    """

    rate: Floats
    tenant: Ints
    pace: Floats
    first: Ints
    popular: Floats
    at: Ints
    node: Ints
    chance: Floats
    quantum: Floats
    is_fair: bool


class Queues(NamedTuple):
    """State of the queues; R requests exist, each with its source.

    owner      (R,) source of each request; following (R,) the next request in its queue; sent_s (R,)
    head, tail (T + 1, N) of queues by tenant and node, the last row of all tenants; -1: empty
    ring       (N, T) active tenants of each node in the order of their turns, from `turn` on
    turn, active  (N,) place of the tenant whose turn it is, and number of active tenants
    is_new     (N,) whether the tenant whose turn it is has not got its quantum yet
    deficit    (T, N) requests that each tenant may still serve in this turn
    serving    (N,) request in service; -1: none
    idle       (S,) head of the source's requests that wait for its pace; -1: none
    next_s     (S,) time at which the source may send again
    heap, due_s, place  events: N services, then S sendings; (N + S,) heap order, times, places in the heap
    """

    owner: Ints
    following: Ints
    sent_s: Floats
    head: Ints
    tail: Ints
    ring: Ints
    turn: Ints
    active: Ints
    is_new: Bools
    deficit: Floats
    serving: Ints
    idle: Ints
    next_s: Floats
    heap: Ints
    due_s: Floats
    place: Ints


class Counts(NamedTuple):
    """Counts of the run: served (T, N), sent (P,), latency_s (T, N) smoothed, delays (BINS,)."""

    served: Ints
    sent: Ints
    latency_s: Floats
    delays: Ints


def start_queues(store: Store, outstanding: Ints) -> tuple[Queues, Counts]:
    """Return empty queues, all requests idle; outstanding (S,) of each source, at least 1."""
    sources, requests, nodes = len(outstanding), int(outstanding.sum()), len(store.rate)
    tenants = len(store.quantum)
    following = np.arange(1, requests + 1)
    last = np.cumsum(outstanding) - 1
    following[last] = -1
    events = nodes + sources
    queues = Queues(
        owner=np.repeat(np.arange(sources), outstanding),
        following=following,
        sent_s=np.zeros(requests),
        head=np.full((tenants + 1, nodes), -1),
        tail=np.full((tenants + 1, nodes), -1),
        ring=np.zeros((nodes, tenants), dtype=np.int64),
        turn=np.zeros(nodes, dtype=np.int64),
        active=np.zeros(nodes, dtype=np.int64),
        is_new=np.ones(nodes, dtype=bool),
        deficit=np.zeros((tenants, nodes)),
        serving=np.full(nodes, -1),
        idle=last - outstanding + 1,
        next_s=np.zeros(sources),
        heap=np.arange(events),
        due_s=np.full(events, np.inf),
        place=np.arange(events),
    )
    wake(store, queues, 0.0)
    return queues, Counts(
        served=np.zeros((tenants, nodes), dtype=np.int64),
        sent=np.zeros(len(store.popular), dtype=np.int64),
        latency_s=np.zeros((tenants, nodes)),
        delays=np.zeros(BINS, dtype=np.int64),
    )


@njit(cache=True, nogil=True)
def sink(queues: Queues, index: int) -> None:
    """Move the event at a place of the heap down to where it belongs."""
    heap, due, position_of = queues.heap, queues.due_s, queues.place
    event = heap[index]
    while True:
        child = 2 * index + 1
        if child >= len(heap):
            break
        if child + 1 < len(heap) and due[heap[child + 1]] < due[heap[child]]:
            child += 1
        if due[heap[child]] >= due[event]:
            break
        heap[index] = heap[child]
        position_of[heap[index]] = index
        index = child
    heap[index] = event
    position_of[event] = index


@njit(cache=True, nogil=True)
def set_due(queues: Queues, event: int, due_s: float) -> None:
    """Change the time of an event."""
    heap, due, position_of = queues.heap, queues.due_s, queues.place
    earlier = due_s < due[event]
    due[event] = due_s
    index = position_of[event]
    if not earlier:
        sink(queues, index)
        return
    while index > 0:
        above = (index - 1) // 2
        if due[heap[above]] <= due_s:
            break
        heap[index] = heap[above]
        position_of[heap[index]] = index
        index = above
    heap[index] = event
    position_of[event] = index


@run_small_in_python(max_elements=1_000)
@njit(cache=True, nogil=True)
def wake(store: Store, queues: Queues, now_s: float) -> None:
    """Let sources send at their present pace, which may have changed."""
    nodes = len(store.rate)
    for s in range(len(store.pace)):
        if store.pace[s] <= 0:
            set_due(queues, nodes + s, np.inf)
            continue
        queues.next_s[s] = min(queues.next_s[s], now_s + 1.0 / store.pace[s])
        if queues.idle[s] >= 0:
            set_due(queues, nodes + s, max(queues.next_s[s], now_s))


@njit(cache=True, nogil=True)
def start_service(store: Store, queues: Queues, n: int, now_s: float) -> None:
    """Start the next service of an idle node, if a request waits."""
    row = -1
    if not store.is_fair:
        row = len(store.quantum)
        if queues.head[row, n] < 0:
            row = -1
    else:
        while queues.active[n] > 0:
            tenants = queues.ring.shape[1]
            t = queues.ring[n, queues.turn[n]]
            if queues.is_new[n]:
                queues.deficit[t, n] += store.quantum[t, n]
                queues.is_new[n] = False
            is_empty = queues.head[t, n] < 0
            if not is_empty and queues.deficit[t, n] >= 1.0:
                queues.deficit[t, n] -= 1.0
                row = t
                break
            queues.is_new[n] = True
            queues.turn[n] = (queues.turn[n] + 1) % tenants
            if is_empty:
                queues.deficit[t, n] = 0.0
                queues.active[n] -= 1
            else:
                queues.ring[n, (queues.turn[n] + queues.active[n] - 1) % tenants] = t
    if row < 0:
        set_due(queues, n, np.inf)
        return
    r = queues.head[row, n]
    queues.head[row, n] = queues.following[r]
    if queues.head[row, n] < 0:
        queues.tail[row, n] = -1
    queues.serving[n] = r
    set_due(queues, n, now_s + 1.0 / store.rate[n])


@njit(cache=True, nogil=True)
def send(
    store: Store, queues: Queues, counts: Counts, r: int, now_s: float, random: np.random.Generator
) -> None:
    """Send a request to a partition of its source and a replica, drawn at random."""
    s = queues.owner[r]
    t = store.tenant[s]
    low, high = store.first[s], store.first[s + 1] - 1
    drawn = random.random()
    while low < high:
        middle = (low + high) // 2
        if store.popular[middle] > drawn:
            high = middle
        else:
            low = middle + 1
    counts.sent[low] += 1
    k, last = store.at[low], store.at[low + 1] - 1
    drawn = random.random()
    while k < last and store.chance[k] <= drawn:
        k += 1
    n = store.node[k]
    queues.sent_s[r] = now_s
    queues.following[r] = -1
    row = t if store.is_fair else len(store.quantum)
    if queues.tail[row, n] < 0:
        queues.head[row, n] = r
    else:
        queues.following[queues.tail[row, n]] = r
    is_first = queues.tail[row, n] < 0
    queues.tail[row, n] = r
    if store.is_fair and is_first:
        tenants = queues.ring.shape[1]
        is_active = False
        # the tenant whose turn it is stays active until its turn ends
        if queues.active[n] > 0 and queues.ring[n, queues.turn[n]] == t:
            is_active = True
        if not is_active:
            queues.ring[n, (queues.turn[n] + queues.active[n]) % tenants] = t
            queues.active[n] += 1
    if queues.serving[n] < 0:
        start_service(store, queues, n, now_s)


@run_small_in_python(max_elements=1_000)
@njit(cache=True, nogil=True)
def pass_time(
    store: Store, queues: Queues, counts: Counts, until_s: float, random: np.random.Generator
) -> int:
    """Serve all requests until a time; return their number."""
    nodes, number = len(store.rate), 0
    while True:
        event = queues.heap[0]
        now_s = queues.due_s[event]
        if now_s > until_s:
            return number
        if event >= nodes:  # a source may send
            s = event - nodes
            r = queues.idle[s]
            queues.idle[s] = queues.following[r]
            queues.next_s[s] = max(queues.next_s[s] + 1.0 / store.pace[s], now_s - BURST_S)
            set_due(queues, event, max(queues.next_s[s], now_s) if queues.idle[s] >= 0 else np.inf)
            send(store, queues, counts, r, now_s, random)
            continue
        n = event
        r = queues.serving[n]
        queues.serving[n] = -1
        s = queues.owner[r]
        t = store.tenant[s]
        number += 1
        counts.served[t, n] += 1
        delay = now_s - queues.sent_s[r]
        old = counts.latency_s[t, n]
        counts.latency_s[t, n] = delay if old == 0.0 else old + SMOOTHING * (delay - old)
        bin_of = int(BINS_OF_FACTOR_10 * np.log10(max(delay, LEAST_LATENCY_S) / LEAST_LATENCY_S))
        counts.delays[min(bin_of, len(counts.delays) - 1)] += 1
        if queues.idle[s] < 0 and queues.next_s[s] <= now_s and store.pace[s] > 0:
            queues.next_s[s] = max(queues.next_s[s] + 1.0 / store.pace[s], now_s - BURST_S)
            send(store, queues, counts, r, now_s, random)
        else:
            was_empty = queues.idle[s] < 0
            queues.following[r] = queues.idle[s]
            queues.idle[s] = r
            if was_empty and store.pace[s] > 0:
                set_due(queues, nodes + s, max(queues.next_s[s], now_s))
        if queues.serving[n] < 0:
            start_service(store, queues, n, now_s)
