"""Packets of TCP flows through a packet switch and a circuit switch: the compiled core.

Every packet is followed from its host to the reply that its sender gets; nothing is fluid. What
happens at one instant happens in the order in which it was brought about.

The network, after Mukerjee 2018, 2.2.1 and 2.3:

- A host sends at its link's rate, its flows in turn, a packet at a time.
- A rack has a virtual output queue for each other rack. A packet that finds it full is lost.
- The rack's link to the packet switch takes from its queues in turn. Inside the packet switch each
  pair of racks has a few places; while they are taken the packet waits in the rack's queue
  (back-pressure). Its links to racks take from these places in turn.
- A circuit drains its pair's queue; a packet is begun only if it is through before the day ends.
  From the night before the day until its end the pair is kept off the packet switch.
- What has left the switches arrives in that order within a pair of racks. Every few packets of a flow
  (`reply_every`) there is a reply, and where one is missing or the sender waits for it. It goes back as
  data does: it takes a place in its queue, waits its turn, and may be lost. Or replies go around the
  switches, with the delay of the data's way, and none is lost (`reply_share` 0).

TCP is Reno with selective acknowledgements: slow start, one packet more a round trip afterwards,
half the window after a loss (noticed by three later packets), one packet after a timeout. A window
that its sender does not fill does not grow. With `alpha` and `beta` the window is multiplied by
alpha where replies begin to tell of a circuit, and by beta where they cease to (reTCP, 2.4.4).

All state lies in two arrays, one of whole numbers and one of reals, and a third tells where each
field begins: compiled functions that pass dozens of arrays spend their time on passing them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numba
import numpy as np
from numpy.typing import NDArray

from planner.errors import InputError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FIRST_WINDOW: Final = 10.0  # packets (RFC 6928)
LEAST_WINDOW: Final = 2.0  # packets, after a loss (RFC 5681)
DUPLICATES: Final = 3  # later packets that tell of a loss (RFC 5681)
MOST_BACKOFF: Final = 10  # doublings of the timeout
BIN_US: Final = 0.5  # of the histogram of latencies
BINS: Final = 65_536

# what a change of the network's state is
UP, DOWN, HOLD, RESIZE = range(4)
# what an event in the heap is
_HOST, _UPLINK, _DOWNLINK, _CIRCUIT, _REPLY, _START, _TIMEOUT = range(7)
KIND_BITS, INDEX_BITS = 3, 24  # 36 bits are left for the order of events: 68 thousand million
KIND_MASK, INDEX_MASK = (1 << KIND_BITS) - 1, (1 << INDEX_BITS) - 1

# single numbers, at the beginning of the reals and of the whole numbers
NOW, HOST_US, PACKET_DELAY_US, CIRCUIT_DELAY_US, LEAST_TIMEOUT_US, ALPHA, BETA, REPLY_SHARE = range(8)
(
    EVENTS,
    SEQUENCE,
    NEXT_FLOW,
    NEXT_CHANGE,
    CHANGES,
    PLACES,
    SENT,
    LOST,
    CIRCUIT_PACKETS,
    PACKET_PACKETS,
    REPLIES_LOST,
    REPLY_EVERY,
    FAULT,
) = range(13)

# numbers that stay, at the beginning of the places: racks, flows that wait for none, lengths of rings
RACKS, FREE, RING, REPLIES = range(4)

# fields, and where the places of each stand among the places
(
    SOURCE,
    TARGET,
    HOST,
    SIZE,
    AFTER,
    SIBLING,
    ORDER,
    OUTSTANDING,
    UNSENT,
    AGAIN,
    DELIVERED,
    NEXT_NUMBER,
    EXPECTED,
    MISSING,
    LATER,
    RECOVERY,
    RENEWED,
    COPIES,
    BACKOFF,
    TIMER,
    TOLD,
    CAME,
    LATEST,
    KNOWN,
    TIMED,
    READY_HEAD,
    READY_TAIL,
    READY_NEXT,
    IN_READY,
    HOST_BUSY,
    HOST_FLOW,
    HOST_NUMBER,
    QUEUE_FLOW,
    QUEUE_NUMBER,
    QUEUE_FIRST,
    QUEUE_LENGTH,
    QUEUE_DATA,
    CAPACITY,
    HELD,
    CIRCUIT_TO,
    UPLINK_BUSY,
    UPLINK_TURN,
    UPLINK_PAIR,
    UPLINK_PACKET,
    DOWNLINK_BUSY,
    DOWNLINK_TURN,
    DOWNLINK_PACKET,
    DOWNLINK_PAIR,
    CIRCUIT_BUSY,
    CIRCUIT_PAIR,
    CIRCUIT_PACKET,
    INSIDE_FLOW,
    INSIDE_NUMBER,
    INSIDE_FIRST,
    INSIDE_LENGTH,
    INSIDE_TAKEN,
    REPLY_FLOW,
    REPLY_NUMBER,
    REPLY_CIRCUIT,
    REPLY_FIRST,
    REPLY_LENGTH,
    HEAP_EVENT,
    LATENCY,
    CARRIED,
    PACKET_US,
    CIRCUIT_US,
    START_US,
    END_US,
    WINDOW,
    THRESHOLD,
    SMOOTH_US,
    SPREAD_US,
    DEADLINE_US,
    TIMED_US,
    QUEUE_SINCE,
    UP_UNTIL_US,
    UPLINK_SINCE,
    DOWNLINK_SINCE,
    CIRCUIT_SINCE,
    INSIDE_SINCE,
    REPLY_US,
    HEAP_US,
) = range(4, 86)

FIELDS: Final = (
    "source",
    "target",
    "host",
    "size",
    "after",
    "sibling",
    "order",
    "outstanding",
    "unsent",
    "again",
    "delivered",
    "next_number",
    "expected",
    "missing",
    "later",
    "recovery",
    "renewed",
    "copies",
    "backoff",
    "timer",
    "told",
    "came",
    "latest",
    "known",
    "timed",
    "ready_head",
    "ready_tail",
    "ready_next",
    "in_ready",
    "host_busy",
    "host_flow",
    "host_number",
    "queue_flow",
    "queue_number",
    "queue_first",
    "queue_length",
    "queue_data",
    "capacity",
    "held",
    "circuit_to",
    "uplink_busy",
    "uplink_turn",
    "uplink_pair",
    "uplink_packet",
    "downlink_busy",
    "downlink_turn",
    "downlink_packet",
    "downlink_pair",
    "circuit_busy",
    "circuit_pair",
    "circuit_packet",
    "inside_flow",
    "inside_number",
    "inside_first",
    "inside_length",
    "inside_taken",
    "reply_flow",
    "reply_number",
    "reply_circuit",
    "reply_first",
    "reply_length",
    "heap_event",
    "latency",
    "carried",
    "packet_us",
    "circuit_us",
    "start_us",
    "end_us",
    "window",
    "threshold",
    "smooth_us",
    "spread_us",
    "deadline_us",
    "timed_us",
    "queue_since",
    "up_until_us",
    "uplink_since",
    "downlink_since",
    "circuit_since",
    "inside_since",
    "reply_us",
    "heap_us",
)
REALS: Final = frozenset(FIELDS[FIELDS.index("packet_us") :])
_OF_FLOWS: Final = (
    "source",
    "target",
    "host",
    "size",
    "after",
    "sibling",
    "outstanding",
    "unsent",
    "again",
    "delivered",
    "next_number",
    "expected",
    "missing",
    "later",
    "recovery",
    "renewed",
    "copies",
    "backoff",
    "timer",
    "told",
    "came",
    "latest",
    "known",
    "timed",
    "ready_next",
    "in_ready",
    "start_us",
    "end_us",
    "window",
    "threshold",
    "smooth_us",
    "spread_us",
    "deadline_us",
    "timed_us",
)
_OF_HOSTS: Final = (
    "ready_head",
    "ready_tail",
    "host_busy",
    "host_flow",
    "host_number",
)
_OF_RACKS: Final = (
    "circuit_to",
    "uplink_busy",
    "uplink_turn",
    "uplink_pair",
    "downlink_busy",
    "downlink_turn",
    "downlink_pair",
    "circuit_busy",
    "circuit_pair",
    "packet_us",
    "uplink_since",
    "downlink_since",
    "circuit_since",
)
_OF_PAIRS: Final = (
    "queue_first",
    "queue_length",
    "queue_data",
    "capacity",
    "held",
    "inside_first",
    "inside_length",
    "inside_taken",
    "reply_first",
    "reply_length",
    "up_until_us",
)
_OF_REPLIES: Final = (
    "reply_flow",
    "reply_number",
    "reply_circuit",
    "reply_us",
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Network:
    """The state of a network with flows in it.

    whole, real  all numbers; `places` tells where each field begins, after the numbers that stay
    fields       name -> (of whole numbers?, its place, its shape), for `of`
    changes      when, what, which pair, how much: what will be changed from outside
    """

    whole: Ints
    real: Floats
    places: Ints
    fields: Mapping[str, tuple[bool, int, tuple[int, ...]]]
    changes: tuple[Floats, Ints, Ints, Floats]

    def of(self, name: str) -> NDArray[Any]:
        """A field as a view, in its own shape."""
        is_whole, place, shape = self.fields[name]
        flat = self.whole if is_whole else self.real
        return flat[place : place + int(np.prod(shape))].reshape(shape)

    @property
    def now_us(self) -> float:
        return float(self.real[NOW])

    def with_changes(self, us: Floats, kind: Ints, pair: Ints, value: Floats) -> Network:
        """The same network, and the same state, with these changes to come beside those that are left.

        They happen in the order of their times; at one instant days end before others begin.
        """
        left = slice(int(self.whole[NEXT_CHANGE]), int(self.whole[CHANGES]))
        olds = self.changes
        us = np.concatenate([olds[0][left], us.astype(float)])
        kind = np.concatenate([olds[1][left], kind.astype(np.int64)])
        pair = np.concatenate([olds[2][left], pair.astype(np.int64)])
        value = np.concatenate([olds[3][left], value.astype(float)])
        rank = np.choose(kind, [2, 0, 1, 3])  # DOWN, HOLD, UP, RESIZE
        order = np.lexsort((rank, us))
        self.whole[NEXT_CHANGE], self.whole[CHANGES] = 0, len(us)
        return Network(
            whole=self.whole,
            real=self.real,
            places=self.places,
            fields=self.fields,
            changes=(us[order], kind[order], pair[order], value[order]),
        )

    def advance(self, until_us: float) -> None:
        """Lets time pass until `until_us`; what happens at that instant itself waits for the next call."""
        # numbers of their own, which the compiler knows no write to change
        places = tuple(self.places.tolist())
        if _advance(self.whole, self.real, places, *self.changes, until_us):
            raise RuntimeError("more replies are on their way than the network has room for")


def network(
    *,
    racks: int,
    hosts: int,
    flows: Mapping[str, NDArray[Any]],
    packet_bits: float,
    host_mbps: float | None,
    packet_mbps: Floats,
    circuit_mbps: Floats,
    packet_delay_us: float,
    circuit_delay_us: float,
    inside: int,
    capacity: int,
    largest: int,
    least_timeout_us: float,
    reply_share: float = 0.0,
    reply_every: int = 1,
    alpha: float = 1.0,
    beta: float = 1.0,
) -> Network:
    """A network at rest at time 0.

    hosts         in all racks together
    flows         source, target, host, size in packets, start_us, and before: the flow that must end
                  first, or -1; each (F,)
    host_mbps     None: hosts send at once all that they may
    packet_mbps   (n,) of each rack's links to the packet switch; 0 where there is none
    circuit_mbps  (n, n)
    inside        packets of a pair of racks that the packet switch holds
    reply_share   size of a reply, in packets; 0: replies go around the switches and none is lost
    reply_every   packets of a flow that one reply is for
    capacity      packets that each queue holds at first; `largest` is the most that it ever will
    """
    n, count = racks, len(flows["size"])
    before = flows["before"].astype(np.int64)
    after, sibling = np.full(count, -1, np.int64), np.full(count, -1, np.int64)
    for flow in np.flatnonzero(before >= 0)[::-1]:
        sibling[flow], after[before[flow]] = after[before[flow]], flow
    start = flows["start_us"].astype(float)
    free = np.flatnonzero(before < 0)
    order = free[np.argsort(start[free], kind="stable")]
    with np.errstate(divide="ignore"):
        packet_us = packet_bits / packet_mbps
    circuit_us = packet_bits / circuit_mbps
    # on their way: what either switch sends within the longest delay there and back, and a queue of replies
    longest = 2 * max(circuit_delay_us, 2 * packet_delay_us)
    rates = 1 / circuit_us.min(initial=np.inf) + 1 / packet_us.min(initial=np.inf)
    replies = int(4 * longest * rates) + 2 * largest + 16
    ring, pairs = largest + 1, n * n
    if max(count, pairs, hosts) > INDEX_MASK:
        raise InputError(f"the network has more than {INDEX_MASK:,} flows, hosts or pairs of racks")
    heap = hosts + 3 * n + pairs + 2 * count + 16
    shapes: dict[str, tuple[int, ...]] = {
        **dict.fromkeys(_OF_FLOWS, (count,)),
        **dict.fromkeys(_OF_HOSTS, (hosts,)),
        **dict.fromkeys(_OF_RACKS, (n,)),
        **dict.fromkeys(_OF_PAIRS, (pairs,)),
        **dict.fromkeys(("queue_flow", "queue_number", "queue_since"), (pairs, ring)),
        **dict.fromkeys(("inside_flow", "inside_number", "inside_since"), (pairs, inside)),
        **dict.fromkeys(_OF_REPLIES, (pairs, replies)),
        **dict.fromkeys(("heap_us", "heap_event"), (heap,)),
        **dict.fromkeys(("uplink_packet", "downlink_packet", "circuit_packet"), (n, 2)),
        "order": (len(order),),
        "circuit_us": (n, n),
        "latency": (2, BINS),
        "carried": (2, pairs),
    }
    fields: dict[str, tuple[bool, int, tuple[int, ...]]] = {}
    places = np.zeros(4 + len(FIELDS), np.int64)
    places[RACKS], places[FREE], places[RING], places[REPLIES] = n, len(order), ring, replies
    ends = {True: FAULT + 1, False: REPLY_SHARE + 1}
    for place, name in enumerate(FIELDS):
        is_whole, shape = name not in REALS, shapes[name]
        fields[name] = is_whole, ends[is_whole], shape
        places[4 + place] = ends[is_whole]
        ends[is_whole] += int(np.prod(shape))
    nothing = (np.zeros(0), np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))
    made = Network(
        whole=np.zeros(ends[True], np.int64),
        real=np.zeros(ends[False]),
        places=places,
        fields=fields,
        changes=nothing,
    )
    made.real[HOST_US] = 0.0 if host_mbps is None else packet_bits / host_mbps
    made.real[PACKET_DELAY_US], made.real[CIRCUIT_DELAY_US] = packet_delay_us, circuit_delay_us
    made.real[LEAST_TIMEOUT_US], made.real[ALPHA], made.real[BETA] = least_timeout_us, alpha, beta
    made.real[REPLY_SHARE], made.whole[REPLY_EVERY] = reply_share, reply_every
    made.whole[PLACES] = inside
    given = {"after": after, "sibling": sibling, "order": order, "start_us": start, "capacity": capacity}
    given |= {name: flows[name] for name in ("source", "target", "host", "size")}
    given |= {"unsent": flows["size"], "packet_us": packet_us, "circuit_us": circuit_us, "end_us": np.nan}
    given |= {"window": FIRST_WINDOW, "threshold": np.inf, "smooth_us": -1.0, "deadline_us": np.inf}
    given |= {"up_until_us": -np.inf, "reply_us": -np.inf, "circuit_to": -1}
    given |= {"latest": -1, "timed": -1, "ready_head": -1, "ready_tail": -1, "ready_next": -1}
    for name, value in given.items():
        made.of(name)[...] = value
    return made


# --- the heap of events: by time, then in the order in which they were put there -----------
# an event is one number: when it was put there, what it is for, and what it is, so that order is `<`


@numba.njit(cache=True)
def _push(W, X, P, us, kind, index):  # type: ignore[no-untyped-def]
    at = W[EVENTS]
    sequence = W[SEQUENCE]
    W[EVENTS] = at + 1
    W[SEQUENCE] = sequence + 1
    while at > 0:
        above = (at - 1) >> 1
        if X[P[HEAP_US] + above] <= us:  # what was there before at the same time stays before
            break
        X[P[HEAP_US] + at] = X[P[HEAP_US] + above]
        W[P[HEAP_EVENT] + at] = W[P[HEAP_EVENT] + above]
        at = above
    X[P[HEAP_US] + at] = us
    W[P[HEAP_EVENT] + at] = (sequence << (INDEX_BITS + KIND_BITS)) | (index << KIND_BITS) | kind


@numba.njit(cache=True)
def _pop(W, X, P):  # type: ignore[no-untyped-def]
    """Takes the first event away."""
    W[EVENTS] -= 1
    last = W[EVENTS]
    us, event = X[P[HEAP_US] + last], W[P[HEAP_EVENT] + last]
    at = 0
    while True:
        below = 2 * at + 1
        if below >= last:
            break
        first, other = X[P[HEAP_US] + below], X[P[HEAP_US] + below + 1]
        if below + 1 < last and (
            other < first or (other == first and W[P[HEAP_EVENT] + below + 1] < W[P[HEAP_EVENT] + below])
        ):
            below += 1
            first = other
        if first > us or (first == us and W[P[HEAP_EVENT] + below] > event):
            break
        X[P[HEAP_US] + at] = first
        W[P[HEAP_EVENT] + at] = W[P[HEAP_EVENT] + below]
        at = below
    X[P[HEAP_US] + at] = us
    W[P[HEAP_EVENT] + at] = event


# --- switches -----------------------------------------------------------------------------


@numba.njit(cache=True)
def _in(place, ring):  # type: ignore[no-untyped-def]
    """A place in a ring, from one that is beyond its end by less than its length: faster than a division."""
    return place - ring if place >= ring else place


@numba.njit(cache=True)
def _share(X, flow):  # type: ignore[no-untyped-def]
    """Time that it takes, in that of a packet with data. Replies have their flow's number, less than 0."""
    return 1.0 if flow >= 0 else X[REPLY_SHARE]


@numba.njit(cache=True)
def _take(W, X, P, pair):  # type: ignore[no-untyped-def]
    """The first packet of a queue leaves it: its flow, its number and when it came."""
    first = W[P[QUEUE_FIRST] + pair]
    W[P[QUEUE_FIRST] + pair] = _in(first + 1, P[RING])
    W[P[QUEUE_LENGTH] + pair] -= 1
    flow = W[P[QUEUE_FLOW] + pair * P[RING] + first]
    if flow >= 0:
        W[P[QUEUE_DATA] + pair] -= 1
    return (
        flow,
        W[P[QUEUE_NUMBER] + pair * P[RING] + first],
        X[P[QUEUE_SINCE] + pair * P[RING] + first],
    )


@numba.njit(cache=True)
def _uplink(W, X, P, rack):  # type: ignore[no-untyped-def]
    """The rack's link to the packet switch takes the next packet whose pair may go."""
    n = P[RACKS]
    found = -1
    if not W[P[UPLINK_BUSY] + rack] and np.isfinite(X[P[PACKET_US] + rack]):
        turn = W[P[UPLINK_TURN] + rack]
        for step in range(n):
            target = turn + step if turn + step < n else turn + step - n
            pair = rack * n + target
            may = W[P[QUEUE_LENGTH] + pair] and not W[P[HELD] + pair]
            if may and W[P[INSIDE_TAKEN] + pair] < W[PLACES] and np.isfinite(X[P[PACKET_US] + target]):
                found = target
                break
    if found >= 0:
        pair = rack * n + found
        flow, number, since = _take(W, X, P, pair)
        W[P[INSIDE_TAKEN] + pair] += 1
        W[P[UPLINK_BUSY] + rack] = 1
        W[P[UPLINK_PAIR] + rack] = pair
        W[P[UPLINK_PACKET] + rack * 2] = flow
        W[P[UPLINK_PACKET] + rack * 2 + 1] = number
        X[P[UPLINK_SINCE] + rack] = since
        W[P[UPLINK_TURN] + rack] = _in(found + 1, n)
        _push(W, X, P, X[NOW] + X[P[PACKET_US] + rack] * _share(X, flow), _UPLINK, rack)


@numba.njit(cache=True)
def _downlink(W, X, P, rack):  # type: ignore[no-untyped-def]
    """The packet switch's link to the rack takes the next packet that waits inside; from which rack."""
    n = P[RACKS]
    found = -1
    if not W[P[DOWNLINK_BUSY] + rack]:
        turn = W[P[DOWNLINK_TURN] + rack]
        for step in range(n):
            source = turn + step if turn + step < n else turn + step - n
            if W[P[INSIDE_LENGTH] + source * n + rack]:
                found = source
                break
    if found >= 0:
        pair = found * n + rack
        first = W[P[INSIDE_FIRST] + pair]
        W[P[INSIDE_FIRST] + pair] = _in(first + 1, W[PLACES])
        W[P[INSIDE_LENGTH] + pair] -= 1
        W[P[INSIDE_TAKEN] + pair] -= 1
        W[P[DOWNLINK_BUSY] + rack] = 1
        W[P[DOWNLINK_PAIR] + rack] = pair
        W[P[DOWNLINK_PACKET] + rack * 2] = W[P[INSIDE_FLOW] + pair * W[PLACES] + first]
        W[P[DOWNLINK_PACKET] + rack * 2 + 1] = W[P[INSIDE_NUMBER] + pair * W[PLACES] + first]
        X[P[DOWNLINK_SINCE] + rack] = X[P[INSIDE_SINCE] + pair * W[PLACES] + first]
        W[P[DOWNLINK_TURN] + rack] = _in(found + 1, n)
        share = _share(X, W[P[DOWNLINK_PACKET] + rack * 2])
        _push(W, X, P, X[NOW] + X[P[PACKET_US] + rack] * share, _DOWNLINK, rack)
    return found


@numba.njit(cache=True)
def _circuit(W, X, P, rack):  # type: ignore[no-untyped-def]
    """The rack's circuit takes the next packet of its pair, if it will be through in time."""
    target = W[P[CIRCUIT_TO] + rack]
    if not W[P[CIRCUIT_BUSY] + rack] and target >= 0:
        pair = rack * P[RACKS] + target
        flow = W[P[QUEUE_FLOW] + pair * P[RING] + W[P[QUEUE_FIRST] + pair]]
        done = X[NOW] + X[P[CIRCUIT_US] + rack * P[RACKS] + target] * _share(X, flow)
        # the slack: a day as long as so many packets takes so many
        if W[P[QUEUE_LENGTH] + pair] and done <= X[P[UP_UNTIL_US] + pair] + 1e-9 * max(done, 1.0):
            flow, number, since = _take(W, X, P, pair)
            W[P[CIRCUIT_BUSY] + rack] = 1
            W[P[CIRCUIT_PAIR] + rack] = pair
            W[P[CIRCUIT_PACKET] + rack * 2] = flow
            W[P[CIRCUIT_PACKET] + rack * 2 + 1] = number
            X[P[CIRCUIT_SINCE] + rack] = since
            _push(W, X, P, done, _CIRCUIT, rack)


@numba.njit(cache=True)
def _arrive(W, X, P, pair, flow, number):  # type: ignore[no-untyped-def]
    """A packet comes to its rack's switch; it is lost where the queue is full."""
    if W[P[QUEUE_LENGTH] + pair] >= W[P[CAPACITY] + pair]:
        W[LOST if flow >= 0 else REPLIES_LOST] += 1
    else:
        if flow >= 0:
            W[P[QUEUE_DATA] + pair] += 1
        at = _in(W[P[QUEUE_FIRST] + pair] + W[P[QUEUE_LENGTH] + pair], P[RING])
        W[P[QUEUE_FLOW] + pair * P[RING] + at] = flow
        W[P[QUEUE_NUMBER] + pair * P[RING] + at] = number
        X[P[QUEUE_SINCE] + pair * P[RING] + at] = X[NOW]
        W[P[QUEUE_LENGTH] + pair] += 1


@numba.njit(cache=True)
def _deliver(W, X, P, pair, flow, number, since, circuit):  # type: ignore[no-untyped-def]
    """A packet or a reply has left a switch and will be with the other rack.

    Where replies go around the switches, what is on its way from here is the packet and its reply.
    """
    now = X[NOW]
    delay = X[CIRCUIT_DELAY_US] if circuit else 2 * X[PACKET_DELAY_US]
    to = pair
    if flow >= 0:
        latency = now + delay - since
        W[P[LATENCY] + circuit * BINS + min(int(latency / BIN_US), BINS - 1)] += 1
        W[P[CARRIED] + circuit * P[RACKS] * P[RACKS] + pair] += 1
        W[CIRCUIT_PACKETS if circuit else PACKET_PACKETS] += 1
        if X[REPLY_SHARE] == 0:
            number = _came(W, P, flow, number)
            flow, delay = -1 - flow, 2 * delay
    else:
        to = pair % P[RACKS] * P[RACKS] + pair // P[RACKS]  # it tells of the data's circuit
    ring = P[REPLIES]
    length = W[P[REPLY_LENGTH] + pair]
    if number < 0:
        return
    if length >= ring:
        W[FAULT] = 1
        return
    at = _in(W[P[REPLY_FIRST] + pair] + length, ring)
    last = X[P[REPLY_US] + pair * ring + (at if at > 0 else ring) - 1]
    there = max(now + delay, last)  # nothing overtakes
    W[P[REPLY_FLOW] + pair * ring + at] = flow
    W[P[REPLY_NUMBER] + pair * ring + at] = number
    X[P[REPLY_US] + pair * ring + at] = there
    W[P[REPLY_CIRCUIT] + pair * ring + at] = 1 if X[P[UP_UNTIL_US] + to] > now else 0
    W[P[REPLY_LENGTH] + pair] = length + 1
    if length == 0:
        _push(W, X, P, there, _REPLY, pair)


@numba.njit(cache=True)
def _came(W, P, flow, mark):  # type: ignore[no-untyped-def]
    """What the receiver replies to a transmission, or -1: how many have come, and the number of the last.

    It replies to every so many, where one is missing, and where the sender waits for it.

    mark  twice the number of the transmission, and 1 more where the sender can send no other after it
    """
    number, waits = mark >> 1, mark & 1
    in_order = number == W[P[LATEST] + flow] + 1
    W[P[LATEST] + flow] = max(W[P[LATEST] + flow], number)
    W[P[CAME] + flow] += 1
    if in_order and not waits and W[P[CAME] + flow] % W[REPLY_EVERY]:
        return -1
    return W[P[CAME] + flow] << 32 | W[P[LATEST] + flow]


# --- senders ------------------------------------------------------------------------------


@numba.njit(cache=True)
def _offer(W, X, P, flow):  # type: ignore[no-untyped-def]
    """Puts a flow among those that its host may send of, if it may."""
    if (
        not W[P[IN_READY] + flow]
        and W[P[UNSENT] + flow] + W[P[AGAIN] + flow] > 0
        and W[P[OUTSTANDING] + flow] < int(X[P[WINDOW] + flow])
    ):
        host = W[P[HOST] + flow]
        W[P[IN_READY] + flow] = 1
        W[P[READY_NEXT] + flow] = -1
        if W[P[READY_TAIL] + host] < 0:
            W[P[READY_HEAD] + host] = flow
        else:
            W[P[READY_NEXT] + W[P[READY_TAIL] + host]] = flow
        W[P[READY_TAIL] + host] = flow


@numba.njit(cache=True)
def _host(W, X, P, host):  # type: ignore[no-untyped-def]
    """The host begins to send a packet of its next flow that may send."""
    found = -1
    while not W[P[HOST_BUSY] + host] and W[P[READY_HEAD] + host] >= 0 and found < 0:
        flow = W[P[READY_HEAD] + host]
        W[P[READY_HEAD] + host] = W[P[READY_NEXT] + flow]
        if W[P[READY_HEAD] + host] < 0:
            W[P[READY_TAIL] + host] = -1
        W[P[IN_READY] + flow] = 0
        if W[P[UNSENT] + flow] + W[P[AGAIN] + flow] > 0 and W[P[OUTSTANDING] + flow] < int(
            X[P[WINDOW] + flow]
        ):
            found = flow
    if found >= 0:
        if W[P[AGAIN] + found] > 0:
            W[P[AGAIN] + found] -= 1
        else:
            W[P[UNSENT] + found] -= 1
        if W[P[OUTSTANDING] + found] == 0:
            _rearm(W, X, P, found)
        W[P[OUTSTANDING] + found] += 1
        W[P[HOST_BUSY] + host] = 1
        W[P[HOST_FLOW] + host] = found
        waits = W[P[UNSENT] + found] + W[P[AGAIN] + found] == 0
        waits = waits or W[P[OUTSTANDING] + found] >= int(X[P[WINDOW] + found])
        W[P[HOST_NUMBER] + host] = 2 * W[P[NEXT_NUMBER] + found] + (1 if waits else 0)
        if W[P[TIMED] + found] < 0:
            W[P[TIMED] + found] = W[P[NEXT_NUMBER] + found]
            X[P[TIMED_US] + found] = X[NOW]
        W[P[NEXT_NUMBER] + found] += 1
        W[SENT] += 1
        _push(W, X, P, X[NOW] + X[HOST_US], _HOST, host)


@numba.njit(cache=True)
def _timeout_us(W, X, P, flow):  # type: ignore[no-untyped-def]
    least = X[LEAST_TIMEOUT_US]
    if X[P[SMOOTH_US] + flow] >= 0:
        least = max(least, X[P[SMOOTH_US] + flow] + 4 * X[P[SPREAD_US] + flow])
    return least * 2.0 ** min(W[P[BACKOFF] + flow], MOST_BACKOFF)


@numba.njit(cache=True)
def _rearm(W, X, P, flow):  # type: ignore[no-untyped-def]
    """The timeout starts anew; one event a flow waits for it, and is put off where it is early."""
    X[P[DEADLINE_US] + flow] = X[NOW] + _timeout_us(W, X, P, flow)
    if not W[P[TIMER] + flow]:
        W[P[TIMER] + flow] = 1
        _push(W, X, P, X[P[DEADLINE_US] + flow], _TIMEOUT, flow)


@numba.njit(cache=True)
def _timeout(W, X, P, flow):  # type: ignore[no-untyped-def]
    """No reply for too long: all that is outstanding counts as lost, and one packet goes."""
    W[P[TIMER] + flow] = 0
    if np.isnan(X[P[END_US] + flow]) and W[P[OUTSTANDING] + flow] > 0:
        if X[P[DEADLINE_US] + flow] > X[NOW]:
            W[P[TIMER] + flow] = 1
            _push(W, X, P, X[P[DEADLINE_US] + flow], _TIMEOUT, flow)
        else:
            X[P[THRESHOLD] + flow] = max(X[P[WINDOW] + flow] / 2, LEAST_WINDOW)
            X[P[WINDOW] + flow] = 1.0
            W[P[AGAIN] + flow] += W[P[OUTSTANDING] + flow] - W[P[COPIES] + flow]
            W[P[OUTSTANDING] + flow] = 0
            W[P[COPIES] + flow] = 0
            W[P[MISSING] + flow] = 0
            W[P[LATER] + flow] = 0
            W[P[RENEWED] + flow] = W[P[NEXT_NUMBER] + flow]
            W[P[EXPECTED] + flow] = W[P[NEXT_NUMBER] + flow]
            W[P[RECOVERY] + flow] = W[P[NEXT_NUMBER] + flow]
            W[P[BACKOFF] + flow] += 1
            W[P[TIMED] + flow] = -1


@numba.njit(cache=True)
def _time(W, X, P, flow, number):  # type: ignore[no-untyped-def]
    """The sender's notion of the round trip, by one transmission at a time (RFC 6298)."""
    W[P[BACKOFF] + flow] = 0
    if 0 <= W[P[TIMED] + flow] <= number:
        trip = X[NOW] - X[P[TIMED_US] + flow]
        W[P[TIMED] + flow] = -1
        if X[P[SMOOTH_US] + flow] < 0:
            X[P[SMOOTH_US] + flow] = trip
            X[P[SPREAD_US] + flow] = trip / 2
        else:
            X[P[SPREAD_US] + flow] += (abs(trip - X[P[SMOOTH_US] + flow]) - X[P[SPREAD_US] + flow]) / 4
            X[P[SMOOTH_US] + flow] += (trip - X[P[SMOOTH_US] + flow]) / 8


@numba.njit(cache=True)
def _window(W, X, P, flow, number, filled, fresh):  # type: ignore[no-untyped-def]
    """Losses that are believed by now halve the window, once a round trip; without any it grows."""
    if W[P[MISSING] + flow] > 0:
        W[P[LATER] + flow] += fresh
        if W[P[LATER] + flow] >= DUPLICATES:
            W[P[OUTSTANDING] + flow] -= W[P[MISSING] + flow]
            needless = min(W[P[COPIES] + flow], W[P[MISSING] + flow])
            W[P[COPIES] + flow] -= needless
            W[P[AGAIN] + flow] += W[P[MISSING] + flow] - needless
            W[P[MISSING] + flow] = 0
            if number >= W[P[RECOVERY] + flow]:
                X[P[THRESHOLD] + flow] = max(X[P[WINDOW] + flow] / 2, LEAST_WINDOW)
                X[P[WINDOW] + flow] = X[P[THRESHOLD] + flow]
                W[P[RECOVERY] + flow] = W[P[NEXT_NUMBER] + flow]
    elif number >= W[P[RECOVERY] + flow]:
        if X[P[WINDOW] + flow] < X[P[THRESHOLD] + flow]:
            if X[P[WINDOW] + flow] < 2 * filled:
                X[P[WINDOW] + flow] += fresh
        elif filled >= int(X[P[WINDOW] + flow]):
            X[P[WINDOW] + flow] += fresh / X[P[WINDOW] + flow]


@numba.njit(cache=True)
def _received(W, X, P, flow, number, newly):  # type: ignore[no-untyped-def]
    """A reply tells of transmission `number`, and that `newly` more have come than were known of.

    Numbers that came neither now nor before are lost (`missing`), which is believed when `later` ones
    have come; they are then sent `again`. One that was only overtaken, by a circuit, is missing no more.
    Losses of transmissions before `recovery` halve the window no more. Transmissions before `renewed`
    were given up at a timeout; `copies` counts packets outstanding that are not needed because such a
    transmission arrived after all.
    """
    fresh = 0
    if number >= W[P[RENEWED] + flow]:
        fresh = max(0, min(newly, number + 1 - W[P[EXPECTED] + flow]))
    late = newly - fresh
    if late > 0:
        W[P[DELIVERED] + flow] += late
        overtaken = min(W[P[MISSING] + flow], late)
        W[P[MISSING] + flow] -= overtaken
        W[P[OUTSTANDING] + flow] -= overtaken
        late -= overtaken
        spared = min(W[P[AGAIN] + flow], late)
        W[P[AGAIN] + flow] -= spared
        W[P[COPIES] + flow] += min(late - spared, W[P[OUTSTANDING] + flow] - W[P[COPIES] + flow])
    if fresh > 0:
        filled = W[P[OUTSTANDING] + flow]
        gap = number + 1 - W[P[EXPECTED] + flow] - fresh
        W[P[EXPECTED] + flow] = number + 1
        if gap > 0:
            if W[P[MISSING] + flow] == 0:
                W[P[LATER] + flow] = 0
            W[P[MISSING] + flow] += gap
        W[P[OUTSTANDING] + flow] -= fresh
        needless = min(W[P[COPIES] + flow], fresh)
        W[P[COPIES] + flow] -= needless
        W[P[DELIVERED] + flow] += fresh - needless
        _time(W, X, P, flow, number)
        _window(W, X, P, flow, number, filled, fresh)


@numba.njit(cache=True)
def _reply(W, X, P, flow, code, circuit):  # type: ignore[no-untyped-def]
    """A reply is with the sender, whose flow may end by it, and let others start."""
    if np.isnan(X[P[END_US] + flow]):
        came, number = code >> 32, code & 0xFFFFFFFF
        newly = came - W[P[KNOWN] + flow]
        if newly > 0:  # else the reply was overtaken and says nothing new
            W[P[KNOWN] + flow] = came
            _received(W, X, P, flow, number, newly)
        if circuit != W[P[TOLD] + flow]:
            factor = X[ALPHA] if circuit else X[BETA]
            X[P[WINDOW] + flow] = max(X[P[WINDOW] + flow] * factor, 1.0)
            W[P[TOLD] + flow] = circuit
        if W[P[DELIVERED] + flow] >= W[P[SIZE] + flow]:
            X[P[END_US] + flow] = X[NOW]
            W[P[AGAIN] + flow] = 0
            W[P[UNSENT] + flow] = 0
            waiting = W[P[AFTER] + flow]
            while waiting >= 0:
                _push(W, X, P, max(X[NOW], X[P[START_US] + waiting]), _START, waiting)
                waiting = W[P[SIBLING] + waiting]
        elif W[P[OUTSTANDING] + flow] > 0:
            _rearm(W, X, P, flow)


# --- time ---------------------------------------------------------------------------------


@numba.njit(cache=True)
def _change(W, X, P, kind, pair, value):  # type: ignore[no-untyped-def]
    """What was decided happens; returns the rack that it concerns."""
    n = P[RACKS]
    rack, target = pair // n, pair % n
    if kind == UP:
        W[P[CIRCUIT_TO] + rack] = target
        X[P[UP_UNTIL_US] + pair] = value
        W[P[HELD] + pair] = 1
    elif kind == DOWN:
        if W[P[CIRCUIT_TO] + rack] == target:
            W[P[CIRCUIT_TO] + rack] = -1
        X[P[UP_UNTIL_US] + pair] = -np.inf
        W[P[HELD] + pair] = 0
    elif kind == HOLD:
        W[P[HELD] + pair] = 1
    else:
        W[P[CAPACITY] + pair] = int(value)
    return rack


@numba.njit(cache=True)
def _enter(W, X, P, rack):  # type: ignore[no-untyped-def]
    """A packet has come up to the packet switch and waits inside; returns where it goes."""
    pair = W[P[UPLINK_PAIR] + rack]
    at = _in(W[P[INSIDE_FIRST] + pair] + W[P[INSIDE_LENGTH] + pair], W[PLACES])
    W[P[INSIDE_FLOW] + pair * W[PLACES] + at] = W[P[UPLINK_PACKET] + rack * 2]
    W[P[INSIDE_NUMBER] + pair * W[PLACES] + at] = W[P[UPLINK_PACKET] + rack * 2 + 1]
    X[P[INSIDE_SINCE] + pair * W[PLACES] + at] = X[P[UPLINK_SINCE] + rack]
    W[P[INSIDE_LENGTH] + pair] += 1
    W[P[UPLINK_BUSY] + rack] = 0
    return pair % P[RACKS]


@numba.njit(cache=True)
def _advance(W, X, P, change_us, change_kind, change_pair, change_value, until_us):  # type: ignore[no-untyped-def]  # noqa: C901
    """Lets time pass until `until_us`; what happens at that instant itself waits for the next call.

    One thing happens a turn of the loop, and then all that may follow from it at once: a flow offers
    its host a packet, the host sends, switches take packets from queues. Returns 0, or 1 where
    replies were more than there is room for.
    """
    n = P[RACKS]
    while W[FAULT] == 0:
        event = X[P[HEAP_US]] if W[EVENTS] > 0 else np.inf
        change = change_us[W[NEXT_CHANGE]] if W[NEXT_CHANGE] < W[CHANGES] else np.inf
        start = X[P[START_US] + W[P[ORDER] + W[NEXT_FLOW]]] if W[NEXT_FLOW] < P[FREE] else np.inf
        now = min(event, change, start)
        if now >= until_us:
            break
        X[NOW] = now
        flow = host = down = circuit = up = also_up = left = -1
        if change <= now:
            at = W[NEXT_CHANGE]
            circuit = up = _change(W, X, P, change_kind[at], change_pair[at], change_value[at])
            W[NEXT_CHANGE] += 1
        elif start <= now:
            flow = W[P[ORDER] + W[NEXT_FLOW]]
            W[NEXT_FLOW] += 1
        else:
            happens = W[P[HEAP_EVENT]]
            kind, index = happens & KIND_MASK, (happens >> KIND_BITS) & INDEX_MASK
            _pop(W, X, P)
            if kind == _HOST:
                W[P[HOST_BUSY] + index] = 0
                flow, host = W[P[HOST_FLOW] + index], index
                circuit = up = W[P[SOURCE] + flow]
                _arrive(W, X, P, up * n + W[P[TARGET] + flow], flow, W[P[HOST_NUMBER] + index])
            elif kind == _UPLINK:
                down, up = _enter(W, X, P, index), index
            elif kind == _DOWNLINK:
                W[P[DOWNLINK_BUSY] + index] = 0
                down = index
                pair, since, left = W[P[DOWNLINK_PAIR] + index], X[P[DOWNLINK_SINCE] + index], 0
                packet_flow, number = W[P[DOWNLINK_PACKET] + index * 2], W[P[DOWNLINK_PACKET] + index * 2 + 1]
            elif kind == _CIRCUIT:
                W[P[CIRCUIT_BUSY] + index] = 0
                circuit = index
                pair, since, left = W[P[CIRCUIT_PAIR] + index], X[P[CIRCUIT_SINCE] + index], 1
                packet_flow, number = W[P[CIRCUIT_PACKET] + index * 2], W[P[CIRCUIT_PACKET] + index * 2 + 1]
            elif kind == _REPLY:
                ring = P[REPLIES]
                first = index * ring + W[P[REPLY_FIRST] + index]
                flow, code = W[P[REPLY_FLOW] + first], W[P[REPLY_NUMBER] + first]
                W[P[REPLY_FIRST] + index] = _in(W[P[REPLY_FIRST] + index] + 1, ring)
                W[P[REPLY_LENGTH] + index] -= 1
                if W[P[REPLY_LENGTH] + index] > 0:
                    following = X[P[REPLY_US] + index * ring + W[P[REPLY_FIRST] + index]]
                    _push(W, X, P, following, _REPLY, index)
                if flow >= 0:
                    code = _came(W, P, flow, code)
                    if code >= 0:
                        circuit = up = index % n
                        _arrive(W, X, P, up * n + index // n, -1 - flow, code)
                    flow = -1
                else:
                    flow = -1 - flow
                    _reply(W, X, P, flow, code, W[P[REPLY_CIRCUIT] + first])
            elif kind == _START:
                flow = index
                X[P[START_US] + flow] = now
            else:
                flow = index
                _timeout(W, X, P, flow)
            if left >= 0:
                _deliver(W, X, P, pair, packet_flow, number, since, left)
        if flow >= 0:
            _offer(W, X, P, flow)
            host = W[P[HOST] + flow]
        if host >= 0:
            _host(W, X, P, host)
        if circuit >= 0:
            _circuit(W, X, P, circuit)
        if down >= 0:
            also_up = _downlink(W, X, P, down)
        if up >= 0:
            _uplink(W, X, P, up)
        if also_up >= 0 and also_up != up:
            _uplink(W, X, P, also_up)
    if W[FAULT] == 0:
        X[NOW] = max(X[NOW], until_us)
    return W[FAULT]
