"""A plain, slow twin of the compiled network: queues are deques, packets objects, events closures."""

from __future__ import annotations

import heapq
import itertools
import math
from collections import deque
from dataclasses import dataclass, field
from typing import Any

FIRST, LEAST, DUPLICATES = 10.0, 2.0, 3


@dataclass
class Flow:
    """A TCP sender, and what its receiver knows."""

    source: int
    target: int
    host: int
    size: int
    start: float
    before: int
    end: float = math.nan
    window: float = FIRST
    threshold: float = math.inf
    sent: int = 0  # transmissions so far
    fresh_left: int = 0
    again: int = 0
    outstanding: int = 0
    delivered: int = 0
    expected: int = 0
    missing: int = 0
    later: int = 0
    recovery: int = 0
    renewed: int = 0
    copies: int = 0
    smooth: float | None = None
    spread: float = 0.0
    backoff: int = 0
    deadline: float = math.inf
    armed: bool = False
    told: bool = False
    sample: tuple[int, float] | None = None
    came: int = 0
    latest: int = -1
    known: int = 0

    def may_send(self) -> bool:
        return self.fresh_left + self.again > 0 and self.outstanding < int(self.window)


@dataclass
class Packet:
    flow: int
    number: int
    waits: bool = False  # the sender can send no other after it
    reply: tuple[int, int] | None = None  # how many came, number of the last
    since: float = 0.0


@dataclass
class Pair:
    capacity: int
    waiting: deque[Packet] = field(default_factory=deque)
    inside: deque[Packet] = field(default_factory=deque)
    taken: int = 0
    held: bool = False
    until: float = -math.inf
    last: float = -math.inf
    way: deque[tuple[float, Packet, bool]] = field(default_factory=deque)


class Twin:
    """The same network as `packets.build_network` returns, and the same changes to come."""

    def __init__(self, *, racks: int, flows: dict[str, Any], changes: Any, **how: Any) -> None:
        self.n, self.how = racks, how
        rows = zip(
            *(flows[k] for k in ("source", "target", "host", "size", "start_us", "before")), strict=True
        )
        self.flows = [Flow(int(s), int(t), int(h), int(z), float(u), int(b)) for s, t, h, z, u, b in rows]
        for flow in self.flows:
            flow.fresh_left = flow.size
        pairs = itertools.product(range(racks), repeat=2)
        self.pairs = {pair: Pair(capacity=how["capacity"]) for pair in pairs}
        self.now, self.order = 0.0, itertools.count()
        self.events: list[tuple[float, int, int, Any, tuple[Any, ...]]] = []
        self.ready: dict[int, deque[int]] = {}
        self.sending: set[int] = set()
        self.up_busy, self.down_busy, self.circuit_busy = set[int](), set[int](), set[int]()
        self.up_turn, self.down_turn = [0] * racks, [0] * racks
        self.circuit_to: dict[int, int] = {}
        self.lost = self.over_circuits = self.over_packets = 0
        for at, kind, pair, value in sorted(changes, key=lambda c: (c[0], (2, 0, 1, 3)[c[1]])):
            self._at(at, self._change, kind, divmod(pair, racks), value, rank=0)
        for index, flow in enumerate(self.flows):
            if flow.before < 0:
                self._at(flow.start, self._start, index, rank=1)

    def _at(self, time: float, what: Any, *arguments: Any, rank: int = 2) -> None:
        heapq.heappush(self.events, (time, rank, next(self.order), what, arguments))

    def run(self, until: float) -> None:
        while self.events and self.events[0][0] < until:
            self.now, _, _, what, arguments = heapq.heappop(self.events)
            what(*arguments)

    def _change(self, kind: int, pair: tuple[int, int], value: float) -> None:
        source, target = pair
        state = self.pairs[pair]
        if kind == 0:
            self.circuit_to[source], state.until, state.held = target, value, True
        elif kind == 1:
            if self.circuit_to.get(source) == target:
                del self.circuit_to[source]
            state.until, state.held = -math.inf, False
        elif kind == 2:
            state.held = True
        else:
            state.capacity = int(value)
        self._circuit(source)
        self._uplink(source)

    # --- hosts -------------------------------------------------------------------------

    def _start(self, index: int) -> None:
        self.flows[index].start = self.now
        self._offer(index)
        self._host(self.flows[index].host)

    def _offer(self, index: int) -> None:
        flow = self.flows[index]
        line = self.ready.setdefault(flow.host, deque())
        if flow.may_send() and index not in line:
            line.append(index)

    def _host(self, host: int) -> None:
        line = self.ready.get(host, deque())
        while host not in self.sending and line:
            index = line.popleft()
            flow = self.flows[index]
            if not flow.may_send():
                continue
            if flow.again:
                flow.again -= 1
            else:
                flow.fresh_left -= 1
            if not flow.outstanding:
                self._arm(index)
            flow.outstanding += 1
            if flow.sample is None:
                flow.sample = flow.sent, self.now
            packet = Packet(index, flow.sent, waits=not flow.may_send())
            flow.sent += 1
            self.sending.add(host)
            rate = self.how["host_mbps"]
            wait = 0.0 if rate is None else self.how["packet_bits"] / rate
            self._at(self.now + wait, self._out, host, packet)

    def _out(self, host: int, packet: Packet) -> None:
        self.sending.discard(host)
        flow = self.flows[packet.flow]
        self._queue((flow.source, flow.target), packet)
        self._offer(packet.flow)
        self._host(host)
        self._circuit(flow.source)
        self._uplink(flow.source)

    # --- switches ----------------------------------------------------------------------

    def _queue(self, pair: tuple[int, int], packet: Packet) -> None:
        state = self.pairs[pair]
        if len(state.waiting) < state.capacity:
            packet.since = self.now
            state.waiting.append(packet)
        elif packet.reply is None:
            self.lost += 1

    def _us(self, packet: Packet, mbps: float) -> float:
        share = self.how["reply_share"] if packet.reply else 1.0
        return float(self.how["packet_bits"] / mbps * share)

    def _uplink(self, rack: int) -> None:
        rate = self.how["packet_mbps"][rack]
        if rack in self.up_busy or rate <= 0:
            return
        for step in range(self.n):
            target = (self.up_turn[rack] + step) % self.n
            state = self.pairs[rack, target]
            there = self.how["packet_mbps"][target] > 0
            if state.waiting and not state.held and there and state.taken < self.how["inside"]:
                packet = state.waiting.popleft()
                state.taken += 1
                self.up_busy.add(rack)
                self.up_turn[rack] = (target + 1) % self.n
                self._at(self.now + self._us(packet, rate), self._inside, (rack, target), packet)
                return

    def _inside(self, pair: tuple[int, int], packet: Packet) -> None:
        self.up_busy.discard(pair[0])
        self.pairs[pair].inside.append(packet)
        freed = self._downlink(pair[1])
        self._uplink(pair[0])
        if freed is not None and freed != pair[0]:
            self._uplink(freed)

    def _downlink(self, rack: int) -> int | None:
        if rack in self.down_busy:
            return None
        for step in range(self.n):
            source = (self.down_turn[rack] + step) % self.n
            state = self.pairs[source, rack]
            if state.inside:
                packet = state.inside.popleft()
                state.taken -= 1
                self.down_busy.add(rack)
                self.down_turn[rack] = (source + 1) % self.n
                rate = self.how["packet_mbps"][rack]
                self._at(self.now + self._us(packet, rate), self._down, (source, rack), packet)
                return source
        return None

    def _down(self, pair: tuple[int, int], packet: Packet) -> None:
        self.down_busy.discard(pair[1])
        self._leave(pair, packet, 2 * self.how["packet_delay_us"])
        self.over_packets += packet.reply is None
        freed = self._downlink(pair[1])
        if freed is not None:
            self._uplink(freed)

    def _circuit(self, rack: int) -> None:
        target = self.circuit_to.get(rack)
        if rack in self.circuit_busy or target is None:
            return
        state = self.pairs[rack, target]
        if state.waiting:
            rate = self.how["circuit_mbps"][rack, target]
            done = self.now + self._us(state.waiting[0], rate)
            if done <= state.until + 1e-9 * max(done, 1.0):
                self.circuit_busy.add(rack)
                self._at(done, self._across, (rack, target), state.waiting.popleft())

    def _across(self, pair: tuple[int, int], packet: Packet) -> None:
        self.circuit_busy.discard(pair[0])
        self._leave(pair, packet, self.how["circuit_delay_us"])
        self.over_circuits += packet.reply is None
        self._circuit(pair[0])

    def _leave(self, pair: tuple[int, int], packet: Packet, delay: float) -> None:
        state, flow = self.pairs[pair], self.flows[packet.flow]
        circuit = self.pairs[flow.source, flow.target].until > self.now
        if packet.reply is None and self.how["reply_share"] == 0:
            answer = self._answer(packet)
            if answer is None:
                return
            packet = Packet(packet.flow, packet.number, reply=answer)
            delay *= 2
        state.last = max(self.now + delay, state.last)
        state.way.append((state.last, packet, circuit))
        if len(state.way) == 1:
            self._at(state.last, self._there, pair)

    def _there(self, pair: tuple[int, int]) -> None:
        way = self.pairs[pair].way
        _, packet, circuit = way.popleft()
        if way:
            self._at(way[0][0], self._there, pair)
        if packet.reply is None:
            answer = self._answer(packet)
            if answer is not None:
                self._queue(pair[::-1], Packet(packet.flow, 0, reply=answer))
                self._circuit(pair[1])
                self._uplink(pair[1])
        else:
            self._reply(packet.flow, *packet.reply, circuit)
            self._offer(packet.flow)
            self._host(self.flows[packet.flow].host)

    def _answer(self, packet: Packet) -> tuple[int, int] | None:
        flow = self.flows[packet.flow]
        in_order = packet.number == flow.latest + 1
        flow.latest = max(flow.latest, packet.number)
        flow.came += 1
        if in_order and not packet.waits and flow.came % self.how["reply_every"]:
            return None
        return flow.came, flow.latest

    # --- TCP ---------------------------------------------------------------------------

    def _arm(self, index: int) -> None:
        flow = self.flows[index]
        least = self.how["least_timeout_us"]
        if flow.smooth is not None:
            least = max(least, flow.smooth + 4 * flow.spread)
        flow.deadline = self.now + least * 2 ** min(flow.backoff, 10)
        if not flow.armed:
            flow.armed = True
            self._at(flow.deadline, self._timeout, index)

    def _timeout(self, index: int) -> None:
        flow = self.flows[index]
        flow.armed = False
        if not math.isnan(flow.end) or not flow.outstanding:
            pass
        elif flow.deadline > self.now:
            flow.armed = True
            self._at(flow.deadline, self._timeout, index)
        else:
            flow.threshold, flow.window = max(flow.window / 2, LEAST), 1.0
            flow.again += flow.outstanding - flow.copies
            flow.outstanding = flow.copies = flow.missing = flow.later = 0
            flow.renewed = flow.expected = flow.recovery = flow.sent
            flow.backoff += 1
            flow.sample = None
        self._offer(index)
        self._host(flow.host)

    def _reply(self, index: int, came: int, number: int, circuit: bool) -> None:
        flow = self.flows[index]
        if not math.isnan(flow.end):
            return
        newly = came - flow.known
        if newly > 0:
            flow.known = came
            self._received(flow, number, newly)
        if circuit != flow.told:
            flow.window = max(flow.window * self.how["alpha" if circuit else "beta"], 1.0)
            flow.told = circuit
        if flow.delivered >= flow.size:
            flow.end, flow.again, flow.fresh_left = self.now, 0, 0
            for other, waiting in enumerate(self.flows):
                if waiting.before == index:
                    self._at(max(self.now, waiting.start), self._start, other)
        elif flow.outstanding:
            self._arm(index)

    def _received(self, flow: Flow, number: int, newly: int) -> None:
        fresh = max(0, min(newly, number + 1 - flow.expected)) if number >= flow.renewed else 0
        late = newly - fresh
        flow.delivered += late
        overtaken = min(flow.missing, late)
        flow.missing -= overtaken
        flow.outstanding -= overtaken
        late -= overtaken
        spared = min(flow.again, late)
        flow.again -= spared
        flow.copies += min(late - spared, flow.outstanding - flow.copies)
        if fresh:
            self._acknowledged(flow, number, fresh)

    def _acknowledged(self, flow: Flow, number: int, fresh: int) -> None:
        filled = flow.outstanding
        gap, flow.expected = number + 1 - flow.expected - fresh, number + 1
        if gap and not flow.missing:
            flow.later = 0
        flow.missing += gap
        flow.outstanding -= fresh
        needless = min(flow.copies, fresh)
        flow.copies -= needless
        flow.delivered += fresh - needless
        flow.backoff = 0
        if flow.sample is not None and flow.sample[0] <= number:
            trip, flow.sample = self.now - flow.sample[1], None
            if flow.smooth is None:
                flow.smooth, flow.spread = trip, trip / 2
            else:
                flow.spread += (abs(trip - flow.smooth) - flow.spread) / 4
                flow.smooth += (trip - flow.smooth) / 8
        if flow.missing:
            flow.later += fresh
            if flow.later >= DUPLICATES:
                flow.outstanding -= flow.missing
                needless = min(flow.copies, flow.missing)
                flow.copies -= needless
                flow.again += flow.missing - needless
                flow.missing = 0
                if number >= flow.recovery:
                    flow.threshold = flow.window = max(flow.window / 2, LEAST)
                    flow.recovery = flow.sent
        elif number >= flow.recovery:
            if flow.window < flow.threshold:
                flow.window += fresh if flow.window < 2 * filled else 0
            elif filled >= int(flow.window):
                flow.window += fresh / flow.window
