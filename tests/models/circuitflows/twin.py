"""A plain, slow twin of the compiled network: queues are deques, packets objects, events closures."""

from __future__ import annotations

import heapq
import itertools
import math
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from tests.models.circuitflows import twin_controls as controls

FIRST, DUPLICATES = 10.0, 3
RETURNED = 5
GOLDEN = 0.6180339887498949
TICKS = 100_000  # in a microsecond
CHANGE, START, CIRCUIT, UP, DOWN, ENTER, ARRIVAL, HOST, NEXT, LOOK, PACE, KILL, TIMER = range(13)
"""Order of what happens at one instant."""


def sending(bits: float, mbps: float) -> float:
    """Return the ticks that a link needs, rounded up where they are no whole number."""
    exact = bits / mbps * TICKS
    nearest = round(exact)
    return float(nearest if abs(exact - nearest) <= 1e-9 * exact else math.ceil(exact))


@dataclass
class Flow:
    """The data of a flow."""

    source: int
    target: int
    host: int
    size: int
    start: float
    before: int
    end: float = math.nan
    fresh_left: int = 0
    again: int = 0
    delivered: int = 0
    broken: bool = False  # the receiver misses a packet that later ones have overtaken


def data(name: str) -> Any:
    """Return a property of a sender that is one of its flow."""
    return property(
        lambda self: getattr(self.flow, name), lambda self, value: setattr(self.flow, name, value)
    )


@dataclass
class Sender:
    """A TCP sender, and what its receiver knows: of a flow, or of one path of it."""

    flow: Flow
    index: int  # of the flow
    path: int
    control: controls.Control
    window: float = FIRST
    threshold: float = math.inf
    sent: int = 0  # transmissions so far
    outstanding: int = 0
    expected: int = 0
    missing: int = 0
    later: int = 0
    hole: float = 0.0
    recovery: int = 0
    renewed: int = 0
    copies: int = 0
    smooth: float | None = None
    spread: float = 0.0
    backoff: int = 0
    timeout: float = math.inf
    timer: object = None
    probe: str | tuple[int, bool] | None = None  # "due", or its number and whether it is a copy
    undo: dict[str, Any] | None = None
    patience: int = DUPLICATES  # packets by which one may be overtaken before it counts as lost
    unproven: int = 0
    prior: tuple[float, float] = (0.0, 0.0)  # window and threshold of before the recovery
    told: bool = False
    sample: tuple[int, float] | None = None
    came: int = 0
    latest: int = -1
    known: int = 0

    source, target, host, size, end = (data(name) for name in ("source", "target", "host", "size", "end"))
    fresh_left, again, delivered, broken = (
        data(name) for name in ("fresh_left", "again", "delivered", "broken")
    )

    def may_send(self) -> bool:
        return self.probe == "due" or self.has_room()

    def is_open(self) -> bool:
        return self.missing == 0 and self.expected >= self.recovery

    def has_room(self) -> bool:
        return self.fresh_left + self.again > 0 and self.outstanding < int(self.window)


@dataclass
class Packet:
    sender: Sender
    number: int
    waits: bool = False  # the sender can send no other after it
    completes: bool = False  # the last one of those that are sent again
    marked: bool = False  # found a long queue
    reply: tuple[int, int, bool] | None = None  # how many came, number of the last, whether it was marked
    since: float = 0.0


@dataclass
class Pair:
    capacity: int
    waiting: deque[Packet] = field(default_factory=deque)
    inside: deque[Packet] = field(default_factory=deque)
    returned: deque[Packet] = field(default_factory=deque)
    held: bool = False
    until: float = -math.inf
    last: float = -math.inf
    way: deque[tuple[float, Packet, bool]] = field(default_factory=deque)


class Twin:
    """The same network as `packets.build_network` returns, and the same changes to come."""

    def __init__(self, *, racks: int, flows: dict[str, Any], changes: Any, **how: Any) -> None:
        times = (
            "packet_delay_us",
            "circuit_delay_us",
            "least_timeout_us",
            "life_us",
            "look_us",
            "rtt_window_us",
        )
        ticks = {name: how[name] * TICKS for name in times if name in how}
        exact = {name: value if math.isinf(value) else float(round(value)) for name, value in ticks.items()}
        self.n, self.how = racks, {**how, **exact}
        rows = zip(
            *(flows[k] for k in ("source", "target", "host", "size", "start_us", "before")), strict=True
        )
        self.flows = [
            Flow(int(s), int(t), int(h), int(z), float(round(u * TICKS)), int(b)) for s, t, h, z, u, b in rows
        ]
        for flow in self.flows:
            flow.fresh_left = flow.size
        name = how.get("control", "reno")
        self.paths = 2 if name == "tdtcp" else 1
        self.senders = [
            Sender(flow, index, path, controls.make(name, self.how, index))
            for path in range(self.paths)
            for index, flow in enumerate(self.flows)
        ]
        self.reply_every = 1 if name == "dctcp" else how["reply_every"]
        self.paced: set[int] = set()
        pairs = itertools.product(range(racks), repeat=2)
        self.pairs = {pair: Pair(capacity=how["capacity"]) for pair in pairs}
        self.now, self.order = 0.0, itertools.count()
        self.events: list[tuple[float, int, float, int, int, int, Any, tuple[Any, ...]]] = []
        self.ready: dict[int, deque[int]] = {}
        self.sending: set[int] = set()
        self.up_busy, self.down_busy, self.circuit_busy = set[int](), set[int](), set[int]()
        self.up_turn, self.down_turn = [0] * racks, [0] * racks
        self.circuit_to: dict[int, int] = {}
        self.pipes: dict[int, deque[tuple[float, tuple[int, int], Packet]]] = {}
        self.host_flows: dict[int, int] = {}
        self.lost = self.local = self.over_circuits = self.over_packets = 0
        for index, kind, pair, value in changes:
            arc = (2, 0, 1, 3)[kind] * racks * racks + pair
            end = float(round(value * TICKS)) if kind == 0 else value
            self._at((CHANGE, arc), round(index * TICKS), self._change, kind, divmod(pair, racks), end)
        for index, flow in enumerate(self.flows):
            if flow.before < 0:
                self._at((START, index), flow.start, self._start, index)

    def _at(self, position: tuple[int, int], time: float, what: Any, *arguments: Any) -> None:
        kind, index = position
        stage = 0 if kind == CHANGE else 1 if kind == START else 3 if kind == TIMER else 2
        caused = self.now if stage == 2 else 0.0
        key = float(time), stage, caused, kind, index, next(self.order)
        heapq.heappush(self.events, (*key, what, arguments))

    def run(self, until: float) -> None:
        while self.events and self.events[0][0] < until * TICKS:
            self.now, _, _, _, _, _, what, arguments = heapq.heappop(self.events)
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
        if self.paths == 2 and kind in (0, 1):
            for index, flow in enumerate(self.flows):
                has_begun = any(sender.sent for sender in self.senders[index :: len(self.flows)])
                if (flow.source, flow.target) == pair and has_begun and math.isnan(flow.end):
                    self._go(index)
        self._circuit(source)
        self._uplink(source)

    # --- hosts -------------------------------------------------------------------------

    def _start(self, index: int) -> None:
        flow = self.flows[index]
        flow.start = self.now
        self.host_flows[flow.host] = self.host_flows.get(flow.host, 0) + 1
        life, look = self.how.get("life_us", math.inf), self.how.get("look_us", 0.0)
        if life < math.inf:
            self._at((KILL, index), self.now + life, self._end, index)
        if look and self.host_flows[flow.host] == 1:
            phase = math.floor(flow.host * GOLDEN % 1.0 * look)
            next_look = max(self.now, phase + math.ceil((self.now - phase) / look) * look)
            self._at((LOOK, index), next_look, self._go, index)
        else:
            self._go(index)

    def _go(self, index: int) -> None:
        self._offer(index)
        self._host(self.flows[index].host)

    def _end(self, index: int) -> None:
        flow = self.flows[index]
        if math.isnan(flow.end):
            flow.end, flow.again, flow.fresh_left = self.now, 0, 0
            for sender in self.senders[index :: len(self.flows)]:
                sender.probe = None
            self.host_flows[flow.host] -= 1
            for other, waiting in enumerate(self.flows):
                if waiting.before == index:
                    self._at((NEXT, other), max(self.now, waiting.start), self._start, other)

    def _active(self, index: int) -> Sender:
        """The sender of a flow that sends now."""
        flow = self.flows[index]
        is_up = self.paths == 2 and self.pairs[flow.source, flow.target].until > self.now
        return self.senders[index + len(self.flows) * is_up]

    def _offer(self, index: int) -> None:
        flow, sender = self.flows[index], self._active(index)
        line = self.ready.setdefault(flow.host, deque())
        if index in line or not sender.may_send():
            return
        due = sender.control.due()
        if due <= self.now:
            line.append(index)
        elif index not in self.paced:
            self.paced.add(index)
            self._at((PACE, index), due, self._paced, index)

    def _paced(self, index: int) -> None:
        self.paced.discard(index)
        self._go(index)

    def _host(self, host: int) -> None:
        line = self.ready.get(host, deque())
        while host not in self.sending and line:
            sender = self._active(line.popleft())
            if not sender.may_send():
                continue
            count, completes = 1, False
            if sender.probe == "due":
                sender.probe = sender.sent, sender.fresh_left == 0
                sender.copies += sender.fresh_left == 0
                sender.fresh_left -= sender.fresh_left > 0
            elif sender.again:
                sender.again -= 1
                completes = sender.again == 0
            else:
                room = int(sender.window) - sender.outstanding
                count = min(self.how.get("batch", 1), sender.fresh_left, room)
                sender.fresh_left -= count
            sender.control.sends(sender, self.now, count)
            if not sender.outstanding:
                sender.timeout = self.now + self._timeout_ticks(sender)
            sender.outstanding += count
            if sender.sample is None:
                sender.sample = sender.sent, self.now
            batch = [Packet(sender, sender.sent + k, completes=completes) for k in range(count)]
            batch[-1].waits = not sender.may_send()
            sender.sent += count
            self.sending.add(host)
            self._arm(sender)
            rate = self.how["host_mbps"]
            wait = 0.0 if rate is None else sending(self.how["packet_bits"], rate)
            self._at((HOST, host), self.now + count * wait, self._out, host, batch)

    def _out(self, host: int, batch: list[Packet]) -> None:
        self.sending.discard(host)
        sender = batch[0].sender
        pair = sender.source, sender.target
        for packet in batch:
            if sender.source != sender.target:
                self._queue(pair, packet)
                continue
            self.local += 1
            answer = self._answer(packet)
            if answer is not None:
                self._fly(pair, Packet(sender, 0, reply=answer), self.now, circuit=False)
        self._offer(sender.index)
        self._host(host)
        if sender.source != sender.target:
            self._circuit(sender.source)
            self._uplink(sender.source)

    # --- switches ----------------------------------------------------------------------

    def _queue(self, pair: tuple[int, int], packet: Packet) -> None:
        state = self.pairs[pair]
        if len(state.waiting) < state.capacity:
            packet.since = self.now
            packet.marked = len(state.waiting) >= (self.how.get("mark_packets") or math.inf)
            state.waiting.append(packet)
        elif packet.reply is None:
            self.lost += 1

    def _ticks(self, packet: Packet, mbps: float) -> float:
        full = sending(self.how["packet_bits"], mbps)
        return float(math.floor(full * self.how["reply_share"] + 0.5)) if packet.reply else full

    def _take(self, state: Pair) -> Packet:
        return (state.returned or state.waiting).popleft()

    def _uplink(self, rack: int) -> None:
        rate = self.how["packet_mbps"][rack]
        if rack in self.up_busy or rate <= 0:
            return
        for step in range(self.n):
            target = (self.up_turn[rack] + step) % self.n
            state = self.pairs[rack, target]
            there = self.how["packet_mbps"][target] > 0
            if (state.returned or state.waiting) and not state.held and there:
                packet = self._take(state)
                self.up_busy.add(rack)
                self.up_turn[rack] = (target + 1) % self.n
                self._at((UP, rack), self.now + self._ticks(packet, rate), self._up, (rack, target), packet)
                return

    def _up(self, pair: tuple[int, int], packet: Packet) -> None:
        self.up_busy.discard(pair[0])
        pipe = self.pipes.setdefault(pair[0], deque())
        pipe.append((self.now + self.how["packet_delay_us"], pair, packet))
        if len(pipe) == 1:
            self._at((ENTER, pair[0]), pipe[0][0], self._inside, pair[0])
        self._uplink(pair[0])

    def _inside(self, rack: int) -> None:
        pipe = self.pipes[rack]
        _, pair, packet = pipe.popleft()
        if pipe:
            self._at((ENTER, rack), pipe[0][0], self._inside, rack)
        state = self.pairs[pair]
        if len(state.inside) < self.how["inside"]:
            state.inside.append(packet)
        elif len(state.returned) < RETURNED:
            state.returned.append(packet)
        else:
            self.lost += packet.reply is None
        self._circuit(rack)
        self._downlink(pair[1])
        self._uplink(rack)

    def _downlink(self, rack: int) -> None:
        if rack in self.down_busy:
            return
        for step in range(self.n):
            source = (self.down_turn[rack] + step) % self.n
            state = self.pairs[source, rack]
            if state.inside:
                packet = state.inside.popleft()
                self.down_busy.add(rack)
                self.down_turn[rack] = (source + 1) % self.n
                rate = self.how["packet_mbps"][rack]
                result = self.now + self._ticks(packet, rate)
                self._at((DOWN, rack), result, self._down, (source, rack), packet)
                return

    def _down(self, pair: tuple[int, int], packet: Packet) -> None:
        self.down_busy.discard(pair[1])
        delay = self.how["packet_delay_us"]
        self._leave(pair, packet, delay, 2 * delay)
        self.over_packets += packet.reply is None
        self._downlink(pair[1])

    def _circuit(self, rack: int) -> None:
        target = self.circuit_to.get(rack)
        if rack in self.circuit_busy or target is None:
            return
        state = self.pairs[rack, target]
        if state.returned or state.waiting:
            rate = self.how["circuit_mbps"][rack, target]
            result = self.now + self._ticks((state.returned or state.waiting)[0], rate)
            if result <= state.until + sending(self.how["packet_bits"], rate) / 100:
                self.circuit_busy.add(rack)
                self._at((CIRCUIT, rack), result, self._across, (rack, target), self._take(state))

    def _across(self, pair: tuple[int, int], packet: Packet) -> None:
        self.circuit_busy.discard(pair[0])
        delay = self.how["circuit_delay_us"]
        self._leave(pair, packet, delay, delay)
        self.over_circuits += packet.reply is None
        self._circuit(pair[0])

    def _leave(self, pair: tuple[int, int], packet: Packet, delay: float, back: float) -> None:
        ends = self.pairs[packet.sender.source, packet.sender.target]
        circuit = ends.until > self.now or ends.capacity > self.how["capacity"]
        if packet.reply is None and self.how["reply_share"] == 0:
            answer = self._answer(packet)
            if answer is None:
                return
            packet = Packet(packet.sender, packet.number, reply=answer)
            delay += back
        self._fly(pair, packet, self.now + delay, circuit=circuit)

    def _fly(self, pair: tuple[int, int], packet: Packet, index: float, *, circuit: bool) -> None:
        state = self.pairs[pair]
        state.last = max(index, state.last)
        state.way.append((state.last, packet, circuit))
        if len(state.way) == 1:
            self._at((ARRIVAL, pair[0] * self.n + pair[1]), state.last, self._there, pair)

    def _there(self, pair: tuple[int, int]) -> None:
        way = self.pairs[pair].way
        _, packet, circuit = way.popleft()
        if way:
            self._at((ARRIVAL, pair[0] * self.n + pair[1]), way[0][0], self._there, pair)
        if packet.reply is None:
            answer = self._answer(packet)
            if answer is not None:
                self._queue(pair[::-1], Packet(packet.sender, 0, reply=answer))
                self._circuit(pair[1])
                self._uplink(pair[1])
        else:
            self._reply(packet.sender, *packet.reply, circuit)
            self._go(packet.sender.index)

    def _answer(self, packet: Packet) -> tuple[int, int, bool] | None:
        flow = packet.sender
        was_broken, in_order = flow.broken, packet.number == flow.latest + 1
        flow.latest = max(flow.latest, packet.number)
        flow.came += 1
        flow.broken = not in_order or (was_broken and not packet.completes)
        if not was_broken and in_order and not packet.waits and flow.came % self.reply_every:
            return None
        return flow.came, flow.latest, packet.marked

    # --- TCP ---------------------------------------------------------------------------

    def _timeout_ticks(self, sender: Sender) -> float:
        lower = self.how["least_timeout_us"]
        for path in self.senders[sender.index :: len(self.flows)]:
            if path.smooth is not None:
                lower = max(lower, path.smooth + 4 * path.spread)
        return float(math.floor(lower * 2 ** min(sender.backoff, 10)))

    def _arm(self, flow: Sender) -> None:
        lower = self.how["least_timeout_us"]
        rtt = flow.smooth or 0.0
        index, what = flow.timeout, self._timeout
        is_active = flow is self._active(flow.index)
        if not is_active or not flow.may_send():
            if is_active and flow.probe is None and not flow.backoff and flow.is_open():
                wait = max(2 * rtt, lower / 20)
                if flow.outstanding == 1:
                    wait = max(wait, 1.5 * rtt + lower)
                index, what = min(index, math.floor(self.now + wait)), self._probe
            elif flow.missing and 0 < flow.later <= DUPLICATES - flow.outstanding and flow.patience == 3:
                index, what = min(index, math.floor(self.now + max(rtt / 4, lower / 100))), self._early
        self._set(flow, index, what)

    def _set(self, flow: Sender, index: float, what: Any) -> None:
        flow.timer = timer = object()
        position = flow.index + flow.path * len(self.flows)
        self._at((TIMER, position), index, self._expire, flow, timer, what)

    def _expire(self, flow: Sender, timer: object, what: Any) -> None:
        if flow.timer is timer:
            if math.isnan(flow.end) and flow.outstanding:
                what(flow)
            self._go(flow.index)

    def _probe(self, flow: Sender) -> None:
        if flow is not self._active(flow.index):
            self._set(flow, max(flow.timeout, self.now), self._timeout)
            return
        flow.probe = "due"
        if flow.timeout <= self.now:
            flow.timeout = self.now + self._timeout_ticks(flow)

    def _early(self, flow: Sender) -> None:
        self._lose(flow)
        self._arm(flow)

    def _timeout(self, flow: Sender) -> None:
        names = ("window", "threshold", "outstanding", "copies", "expected", "renewed")
        first = not flow.backoff and not flow.missing
        flow.undo = {name: getattr(flow, name) for name in names} if first else None
        flow.control.loses(flow)
        flow.control.times_out(flow)
        flow.again += flow.outstanding - flow.copies
        if flow.later >= DUPLICATES:
            flow.patience = DUPLICATES
        flow.outstanding = flow.copies = flow.missing = flow.later = 0
        flow.renewed = flow.expected = flow.recovery = flow.sent
        flow.backoff += 1
        flow.unproven = 0
        flow.sample, flow.probe = None, None

    def _reply(self, flow: Sender, came: int, number: int, marked: bool, circuit: bool) -> None:
        if not math.isnan(flow.end):
            return
        newly = came - flow.known
        if newly > 0:
            flow.known = came
            in_flight, delivered = flow.outstanding, flow.delivered
            flow.control.marks(flow, number, newly, marked)
            self._received(flow, number, newly)
            flow.control.replies(flow, self.now, number, in_flight, flow.delivered - delivered)
            if circuit != flow.told and flow.is_open() and self.how.get("control", "reno") == "reno":
                flow.window = max(flow.window * self.how["alpha" if circuit else "beta"], 1.0)
                flow.told = circuit
        if flow.delivered >= flow.size:
            self._end(flow.index)
        elif flow.outstanding:
            flow.timeout = self.now + self._timeout_ticks(flow)
            self._arm(flow)

    def _received(self, flow: Sender, number: int, newly: int) -> None:
        before, flow.undo = flow.undo, None
        if before is not None and number < flow.renewed:
            sent = flow.sent - flow.renewed
            unsent = before["outstanding"] - before["copies"] - sent
            if 0 <= unsent <= flow.again:
                for name, value in before.items():
                    setattr(flow, name, value)
                flow.control.undo()
                flow.again -= unsent
                flow.recovery = flow.expected
                flow.outstanding += sent
                flow.copies += sent
        fresh = max(0, min(newly, number + 1 - flow.expected)) if number >= flow.renewed else 0
        late = newly - fresh
        overtaken = min(flow.missing, late)
        flow.missing -= overtaken
        flow.outstanding -= overtaken
        spared = min(flow.again, late - overtaken)
        flow.again -= spared
        needless = min(late - overtaken - spared, flow.outstanding - flow.copies)
        flow.copies += needless
        flow.delivered += overtaken + spared + needless
        if late and number >= flow.renewed:
            self._reordered(flow, overtaken, spared + needless)
        if fresh:
            self._acknowledged(flow, number, fresh)

    def _halve(self, flow: Sender) -> None:
        flow.control.loses(flow)
        flow.recovery = flow.sent

    def _acknowledged(self, flow: Sender, number: int, fresh: int) -> None:  # noqa: C901
        filled = flow.outstanding
        gap, flow.expected = number + 1 - flow.expected - fresh, number + 1
        if isinstance(flow.probe, tuple) and number >= flow.probe[0]:
            if gap and flow.probe[1] and flow.copies:
                gap, flow.copies, flow.outstanding = gap - 1, flow.copies - 1, flow.outstanding - 1
                self._halve(flow)
            flow.probe = None
        if gap and not flow.missing:
            flow.later, flow.hole = 0, self.now
        flow.missing += gap
        flow.outstanding -= fresh
        needless = min(flow.copies, fresh)
        flow.copies -= needless
        flow.delivered += fresh - needless
        flow.backoff = 0
        if flow.sample is not None and flow.sample[0] <= number:
            trip, flow.sample = self.now - flow.sample[1], None
            if flow is not self._active(flow.index):
                pass
            elif flow.smooth is None:
                flow.smooth, flow.spread = trip, trip / 2
            else:
                flow.spread += (abs(trip - flow.smooth) - flow.spread) / 4
                flow.smooth += (trip - flow.smooth) / 8
        if flow.missing:
            flow.later += fresh
            passed = flow.later + (flow.missing - 1 if flow.patience == DUPLICATES else 0)
            late = self.now - flow.hole - self.how["least_timeout_us"] / 200
            if passed >= flow.patience or (flow.expected <= flow.recovery and late >= 0):
                self._lose(flow)
        elif number >= flow.recovery and flow.control.may_grow(number):
            if flow.window < flow.threshold:
                flow.window += fresh if flow.window < 2 * filled else 0
            elif filled >= int(flow.window):
                flow.control.grows(flow, self.now, fresh)

    def _lose(self, flow: Sender) -> None:
        flow.outstanding -= flow.missing
        needless = min(flow.copies, flow.missing)
        lost = flow.missing - needless
        flow.copies -= needless
        flow.again += lost
        flow.unproven += lost
        flow.control.lost += lost
        flow.missing = flow.later = 0
        if flow.expected > flow.recovery:
            flow.unproven, flow.prior = lost, (flow.window, flow.threshold)
            self._halve(flow)

    def _reordered(self, flow: Sender, overtaken: int, returned: int) -> None:
        if overtaken or returned:
            flow.patience = min(max(flow.patience + 1, flow.missing + overtaken + flow.later), 300)
        if returned and flow.unproven:
            flow.unproven = max(flow.unproven - returned, 0)
            if not flow.unproven:
                flow.control.undo()
                flow.window = max(flow.window, flow.prior[0])
                flow.threshold = max(flow.threshold, flow.prior[1])
                flow.recovery = flow.expected
