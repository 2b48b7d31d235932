"""A plain, slow twin of a network of several hops: objects, and a search for each next event."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

US = 100_000  # ticks
RENO, CUBIC, DCTCP, BBR, UDP = 0, 1, 2, 3, 5
HASH, SCATTER, SCATTER_RANDOM, SPLIT, SPLIT_RANDOM, SOURCE = range(6)
NEVER = math.inf


def mixed(number: int) -> int:
    """Return a hash of 31 bits."""
    number = number % 2**31 * 0x9E3779B1 % 2**31
    number = (number ^ (number >> 15)) * 0x85EBCA77 % 2**31
    return number ^ (number >> 13)


@dataclass
class Packet:
    """A packet of data, or a reply, whose number is that of the expected packet."""

    sender: Sender
    number: int
    is_reply: bool = False
    is_marked: bool = False
    hop: int = 0


class Queue:
    """A rule by which a queue that is not full drops a packet."""

    def drops(self, length: int, now: int, begins: int, free: int, takes: int) -> bool:
        """Return whether it drops a packet that enters now and would be sent from `begins` on.

        length  packets before it; the last of them departs at `free`, and sending one takes `takes`
        """
        raise NotImplementedError


@dataclass
class Red(Queue):
    """Random early detection (Floyd and Jacobson 1993), without their count since the last drop."""

    lower: float
    upper: float
    draw: Callable[[], int]
    mean: float = 0.0

    def drops(self, length: int, now: int, begins: int, free: int, takes: int) -> bool:  # noqa: ARG002
        self.mean += 0.002 * (length - self.mean)
        if length == 0 and now > free:
            self.mean *= math.pow(0.998, (now - free) / takes)
        if self.mean < self.lower:
            return False
        if self.mean >= self.upper:
            return True
        return self.draw() < 0.1 * (self.mean - self.lower) / (self.upper - self.lower) * 2_147_483_647


@dataclass
class CoDel(Queue):
    """Controlled delay (RFC 8289), whose waits are known on entry."""

    target: float
    interval: float
    above_until: float | None = None
    next: float | None = None
    count: float = 0.0
    last: float = 0.0

    def drops(self, length: int, now: int, begins: int, free: int, takes: int) -> bool:  # noqa: ARG002
        if begins - now < self.target or length == 0:
            self.above_until = self.next = None
            return False
        if self.above_until is None:
            self.above_until = begins + self.interval
            return False
        if begins < self.above_until:
            return False
        if self.next is None:
            is_soon = begins - self.last < 16 * self.interval
            self.count = self.count - 2 if is_soon and self.count > 2 else 1.0
            self.count = max(self.count, 1.0)
            self.next = begins
        elif begins >= self.next:
            self.count += 1
        else:
            return False
        self.last = begins
        self.next = math.floor(self.next + self.interval / math.sqrt(self.count))
        return True


@dataclass
class Cubic:
    """State of CUBIC (RFC 9438), windows in packets and times in seconds."""

    largest: float = 0.0
    before: float = 0.0
    reno: float = 0.0
    epoch: float | None = None
    k: float = 0.0

    def cut(self, window: float) -> float:
        """Return the window after a loss."""
        self.largest = window * 1.7 / 2 if window < self.largest else window
        self.before, self.epoch = window, None
        return max(window * 0.7, 2.0)

    def grow(self, window: float, now: int, trip: float, newly: int) -> float:
        """Return the window after packets have arrived in congestion avoidance."""
        if self.epoch is None:
            self.epoch, self.reno = now, window
            self.largest = max(self.largest, window)
            self.k = math.pow((self.largest - window) / 0.4, 1 / 3)
        self.reno += (3 * (1 - 0.7) / (1 + 0.7) if self.reno < self.before else 1.0) * newly / window
        seconds = (now - self.epoch) / (US * 1e6)
        if self.at(seconds) < self.reno:
            return max(window, self.reno)
        target = self.at(seconds + max(trip, 0.0) / (US * 1e6))
        target = min(max(target, window), 1.5 * window)
        return window + newly * (target - window) / window

    def at(self, seconds: float) -> float:
        """Return the cubic function."""
        offset = seconds - self.k
        return 0.4 * offset * offset * offset + self.largest


@dataclass
class Link:
    """A link with the packets on it, and the times at which they depart."""

    index: int
    head: int
    data: int
    reply: int
    delay: int
    limit: int
    marks: float
    packets: deque[tuple[int, Packet]] = field(default_factory=deque)
    free: int = 0
    down: float = NEVER
    cut: int = 0
    queue: Queue | None = None
    accepted: int = 0
    arrived: int = 0
    dropped: int = 0
    marked: int = 0
    longest: int = 0

    def send(self, packet: Packet, now: int) -> bool:
        """Return whether the packet is lost."""
        length = sum(1 for departs, _ in self.packets if departs > now)
        begins = max(now, self.free)
        if length >= self.limit or (
            self.queue is not None and self.queue.drops(length, now, begins, self.free, self.data)
        ):
            self.dropped += 1
            return True
        if length >= self.marks and not packet.is_reply:
            packet.is_marked = True
            self.marked += 1
        self.free = max(now, self.free) + (self.reply if packet.is_reply else self.data)
        self.packets.append((self.free, packet))
        self.accepted += 1
        self.longest = max(self.longest, length + 1)
        return False

    @property
    def next_arrival(self) -> float:
        """Time of the next packet at its end."""
        return self.packets[0][0] + self.delay if self.packets else NEVER


@dataclass
class Flow:
    """A flow, its data and its figures."""

    index: int
    source: int
    target: int
    size: int
    control: int
    mode: int
    interval: float
    list_of: int
    start: float
    unassigned: int = 0
    remaining: int = 0
    end: int = -1
    again: int = 0
    timeouts: int = 0
    lost: int = 0
    held: int = 0
    longest_held: int = 0
    senders: list[Sender] = field(default_factory=list)


@dataclass
class Sender:
    """A sender with its receiver."""

    flow: Flow
    index: int
    order: int
    route: int = -1
    window: float = 2.0
    threshold: float = math.inf
    next: int = 0
    expected: int = 0
    outstanding: int = 0
    assigned: int = 0
    duplicates: int = 0
    counted: int = 0
    recovers: bool = False
    partial: bool = False
    recovery: int = 0
    backoff: int = 0
    timed: int = -1
    timed_at: float = 0.0
    trip: float = -1.0
    deviation: float = 0.0
    deadline: float = NEVER
    timer: float | None = None
    alpha: float = 1.0
    acknowledged: int = 0
    marks: int = 0
    window_end: int = 0
    cut: int = 0
    awaited: int = 0
    waiting: set[int] = field(default_factory=set)
    cubic: Cubic = field(default_factory=Cubic)

    def cut_window(self) -> None:
        """Reduce window and threshold after a loss."""
        if self.flow.control == CUBIC:
            self.window = self.threshold = self.cubic.cut(self.window)
        else:
            self.window = self.threshold = max(self.window / 2, 2.0)


class Twin:
    """The network; `step` runs one event."""

    def __init__(
        self, links: list[dict[str, Any]], flows: list[Flow], rows: int, how: dict[str, Any]
    ) -> None:
        self.links = [Link(**row) for row in links]
        self.flows, self.how = flows, how
        for link in self.links:
            if how["rule"] == "red":
                link.queue = Red(how["queue"] / 4, how["queue"] * 3 / 4, self.draw)
            elif how["rule"] == "codel":
                link.queue = CoDel(*how["codel"])
        self.now = self.events = self.sent = 0
        self.starts = deque(sorted((flow for flow in flows if flow.list_of < 0), key=lambda flow: flow.start))
        self.lists = [deque(flow for flow in flows if flow.list_of == index) for index in range(how["lists"])]
        self.free = list(range(rows))[::-1]
        self.row_of: dict[int, int] = {}
        self.active: dict[int, Sender] = {}
        self.turns: dict[tuple[int, int], int] = {}
        self.taken: dict[tuple[int, int], int] = {}
        self.random = how["seed"] + 1
        self.is_out_of_flows = False
        for members in self.lists:
            for _ in range(how["listed"]):
                self.begin(members.popleft())

    # --- events

    def step(self, until: float) -> bool:
        """Run the next event before a time; return whether there is one."""
        start = self.starts[0].start if self.starts else NEVER
        timers = [(sender.timer, sender.index) for sender in self.active.values() if sender.timer is not None]
        timer, number = min(timers, default=(NEVER, -1))
        arrival, index = min((link.next_arrival, link.index) for link in self.links)
        now = min(start, timer, arrival)
        if now >= until:
            return False
        self.now = int(now)
        if start == now:
            self.begin(self.starts.popleft())
        elif timer == now:
            self.expire(self.active[number])
        else:
            self.arrive(self.links[index])
        return True

    def arrive(self, link: Link) -> None:
        departed, packet = link.packets.popleft()
        link.arrived += 1
        link.cut += departed > link.down
        sender = packet.sender
        flow = sender.flow
        if flow.end >= 0:
            return
        if departed > link.down:
            if flow.control == UDP:
                flow.lost += 1
                self.count_down(flow, 1)
            return
        if link.head != (flow.source if packet.is_reply else flow.target):
            lost = self.links[self.forward(link.head, packet)].send(packet, self.now)
            if lost and flow.control == UDP:
                flow.lost += 1
                self.count_down(flow, 1)
        else:
            self.arrive_at_end(packet)

    def arrive_at_end(self, packet: Packet) -> None:
        sender, flow = packet.sender, packet.sender.flow
        if packet.is_reply:
            newly = self.take_reply(sender, packet)
            if newly:
                self.count_down(flow, newly)
            if flow.end < 0:
                self.send_allowed(sender)
        elif flow.control == UDP:
            self.count_down(flow, 1)
        else:
            before = len(sender.waiting)
            if packet.number >= sender.awaited:
                sender.waiting.add(packet.number)
            while sender.awaited in sender.waiting:
                sender.waiting.remove(sender.awaited)
                sender.awaited += 1
            flow.held += len(sender.waiting) - before
            flow.longest_held = max(flow.longest_held, flow.held)
            reply = Packet(sender, sender.awaited, is_reply=True, is_marked=packet.is_marked)
            self.links[self.how["access"][flow.target]].send(reply, self.now)

    def count_down(self, flow: Flow, packets: int) -> None:
        flow.remaining -= packets
        if flow.remaining == 0:
            self.end(flow)

    def begin(self, flow: Flow) -> None:
        row = self.free.pop()
        self.row_of[flow.index] = row
        flow.start, flow.unassigned, flow.remaining = self.now, flow.size, flow.size
        for order in range(self.how["subflows"]):
            index = row * self.how["subflows"] + order
            route = self.how["route"].get(flow.index, -1)
            sender = Sender(flow=flow, index=index, order=order, window=self.how["first_window"], route=route)
            flow.senders.append(sender)
            self.active[index] = sender
        for sender in flow.senders:
            if flow.control == UDP:
                self.send_constant(sender)
            else:
                self.send_allowed(sender)

    def end(self, flow: Flow) -> None:
        flow.end = self.now
        for sender in flow.senders:
            del self.active[sender.index]
        self.free.append(self.row_of[flow.index])
        if flow.list_of >= 0:
            members = self.lists[flow.list_of]
            if members:
                self.begin(members.popleft())
            else:
                self.is_out_of_flows = True

    # --- forwarding

    def draw(self) -> int:
        self.random = self.random * 48_271 % 2_147_483_647
        return self.random

    def draw_flowlet(self, seed: int, number: int) -> int:
        flowlet = self.how["flowlet"]
        if flowlet > 1:
            return mixed(mixed(seed + self.how["seed"] + 1) + number // flowlet)
        return self.draw()

    def forward(self, node: int, packet: Packet) -> int:
        sender, how = packet.sender, self.how
        flow = sender.flow
        mode, target, route = flow.mode, flow.target, sender.route
        seed = mixed(mixed(flow.index + 1) + sender.order)
        if mode == SOURCE and not packet.is_reply:
            walk = how["walks"].get(flow.index, [[]] * (sender.order + 1))[sender.order]
            if packet.hop < len(walk) and walk[packet.hop][0] == node:
                packet.hop += 1
                return int(walk[packet.hop - 1][1])
        if mode == SOURCE:
            mode, route = HASH, -1
        if packet.is_reply:
            scattered = {SPLIT: SCATTER, SPLIT_RANDOM: SCATTER_RANDOM} if route >= 0 else {}
            mode = HASH if how["acks"] == "hashed" else scattered.get(mode, mode)
            target, route, seed = flow.source, -1, seed + 1
        slots = how["tables"].get((route, node))
        choices = slots if slots is not None else how["hops"][node, target]
        key, turns = ((route, node), self.taken) if slots is not None else ((node, target), self.turns)
        if len(choices) == 1:
            return int(choices[0])
        # a flow that no plan schedules is not split
        mode = HASH if slots is None and mode in (SPLIT, SPLIT_RANDOM) else mode
        if mode == HASH:
            return int(choices[mixed(seed + node) % len(choices)])
        if mode in (SCATTER_RANDOM, SPLIT_RANDOM):
            return int(choices[self.draw_flowlet(seed + node, packet.number) % len(choices)])
        turn = turns.get(key, 0)
        turns[key] = turn + 1
        return int(choices[turn // how["flowlet"] % len(choices)])

    # --- senders

    def transmit(self, sender: Sender, number: int) -> bool:
        flow = sender.flow
        if number >= sender.assigned:
            sender.assigned += 1
            flow.unassigned -= 1
            if sender.timed < 0:
                sender.timed, sender.timed_at = number, self.now
        else:
            flow.again += 1
            if number <= sender.timed:
                sender.timed = -1
        self.sent += 1
        return self.links[self.how["access"][flow.source]].send(Packet(sender, number), self.now)

    def set_timer(self, sender: Sender, ticks: float) -> None:
        if sender.timer is None or ticks < sender.timer:
            sender.timer = ticks

    def set_deadline(self, sender: Sender) -> None:
        timeout = self.how["timeout"]
        if sender.trip >= 0:
            timeout = max(timeout, sender.trip + 4 * sender.deviation)
        sender.deadline = self.now + math.floor(timeout * 2.0 ** min(sender.backoff, 10))
        self.set_timer(sender, sender.deadline)

    def send_allowed(self, sender: Sender) -> None:
        flow, limit = sender.flow, self.how["largest"]
        while sender.next < sender.assigned or flow.unassigned > 0:
            if sender.next - sender.expected >= min(int(sender.window), limit):
                break
            if sender.next == sender.expected:
                self.set_deadline(sender)
            self.transmit(sender, sender.next)
            sender.next += 1

    def send_constant(self, sender: Sender) -> None:
        flow = sender.flow
        if flow.unassigned == 0:
            return
        sender.next += 1
        if flow.unassigned > 1:
            self.set_timer(sender, self.now + flow.interval)
        if self.transmit(sender, sender.next - 1):
            flow.lost += 1
            flow.remaining -= 1
            if flow.remaining == 0:
                self.set_timer(sender, self.now)

    def expire(self, sender: Sender) -> None:
        due, sender.timer = sender.deadline <= self.now, None
        if due:
            if sender.recovers:
                sender.window = min(sender.threshold, sender.next - sender.expected + 1.0)
            sender.cut_window()
            sender.window, sender.cubic.largest = 1.0, 0.0
            sender.recovery, sender.next = sender.assigned, sender.expected
            sender.duplicates, sender.recovers, sender.timed = 0, False, -1
            sender.backoff += 1
            sender.flow.timeouts += 1
        if sender.flow.control == UDP:
            self.send_constant(sender)
            if sender.flow.remaining == 0:
                self.end(sender.flow)
            return
        self.send_allowed(sender)
        if sender.deadline < NEVER:
            self.set_timer(sender, sender.deadline)

    def take_reply(self, sender: Sender, packet: Packet) -> int:
        newly = packet.number - sender.expected
        if newly > 0:
            fresh = newly - min(newly - 1, sender.counted)
            sender.expected = packet.number
            sender.next = max(sender.next, packet.number)
            sender.counted = max(sender.counted - newly + 1, 0) if sender.next > packet.number else 0
            sender.backoff = 0
            if 0 <= sender.timed < packet.number:
                self.time(sender, self.now - sender.timed_at)
            self.follow_mark(sender, packet, fresh)
            self.advance(sender, newly)
            return newly
        if newly == 0 and sender.next > sender.expected:
            self.follow_mark(sender, packet, 1)
            sender.duplicates += 1
            sender.counted += 1
            if sender.recovers:
                sender.window += 1
            elif sender.duplicates == self.how["duplicates"] and sender.expected >= sender.recovery:
                sender.cut_window()
                sender.window = sender.threshold + self.how["duplicates"]
                sender.recovery, sender.recovers, sender.partial = sender.next, True, False
                self.transmit(sender, sender.expected)
                self.set_deadline(sender)
        return 0

    def time(self, sender: Sender, trip: float) -> None:
        sender.timed = -1
        if sender.trip < 0:
            sender.trip, sender.deviation = trip, trip / 2
        else:
            sender.deviation += (abs(trip - sender.trip) - sender.deviation) / 4
            sender.trip += (trip - sender.trip) / 8

    def follow_mark(self, sender: Sender, packet: Packet, newly: int) -> None:
        if sender.flow.control != DCTCP:
            return
        sender.acknowledged += newly
        if packet.is_marked:
            sender.marks += newly
        if packet.number >= sender.window_end:
            sender.alpha += (sender.marks / sender.acknowledged - sender.alpha) / 16
            sender.window_end = sender.next
            sender.acknowledged = sender.marks = 0
        if packet.is_marked and packet.number >= sender.recovery and packet.number >= sender.cut:
            sender.window = sender.threshold = max(sender.window * (1 - sender.alpha / 2), 2.0)
            sender.cut = sender.next

    def advance(self, sender: Sender, newly: int) -> None:
        sets = True
        if not sender.recovers:
            sender.duplicates = 0
            self.grow(sender, newly)
        elif sender.expected >= sender.recovery:
            sender.duplicates, sender.recovers = 0, False
            sender.window = sender.threshold
        else:
            sets = not sender.partial
            sender.partial = True
            sender.duplicates = max(sender.duplicates - newly + 1, 0)
            sender.window = max(sender.window - newly + 1, 1.0)
            self.transmit(sender, sender.expected)
        if sender.next == sender.expected:
            sender.deadline = NEVER
        elif sets:
            self.set_deadline(sender)

    def grow(self, sender: Sender, newly: int) -> None:
        if sender.flow.control == DCTCP and sender.expected < sender.cut:
            return
        if sender.window < sender.threshold:
            sender.window += newly
        elif self.how["coupled"]:
            timed = [other for other in sender.flow.senders if other.trip > 0]
            rates = sum(other.window / other.trip for other in timed)
            most = max((other.window / (other.trip * other.trip) for other in timed), default=0.0)
            alone = newly / sender.window
            sender.window += min(most / (rates * rates) * newly, alone) if rates else alone
        elif sender.flow.control == CUBIC:
            sender.window = sender.cubic.grow(sender.window, self.now, sender.trip, newly)
        else:
            sender.window += newly / sender.window
        sender.window = min(sender.window, float(self.how["largest"]))
