"""A network of flows in time: its state at rest, changes to come, and the loop over events."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from planner.compiled import inner_without_allocation, kernel_without_allocation, run_small_in_python
from planner.errors import InputError
from planner.search.deadline import NEVER, Deadline
from planner_models.circuitflows.packets.state import (
    CHANGES,
    CIRCUIT_DELAY_TICKS,
    INSIDE_CAPACITY,
    MARK_PACKETS,
    NEXT_CHANGE,
    OVERFLOW,
    PACKET_DELAY_TICKS,
    REPLY_SHARE,
    SMALL_CAPACITY,
    Layout,
    State,
    allocate,
)
from planner_models.circuitflows.packets.switches import (
    ARRIVAL,
    CIRCUIT_DONE,
    DOWNLINK_DONE,
    ENTER,
    UPLINK_DONE,
    deliver_inside,
    enqueue,
    enter_packet_switch,
    leave_switch,
    leave_uplink,
    send_circuit,
    send_downlink,
    send_uplink,
    wrap,
)
from planner_models.packets.controls import BBR, CONTROLS, DCTCP, TDTCP
from planner_models.packets.controls.dctcp import FIRST_ALPHA
from planner_models.packets.events import (
    FLOW_START,
    HOST_SENT,
    INDEX_BITS,
    INDEX_MASK,
    KIND_MASK,
    LOOK,
    PACE,
    pop,
    push,
)
from planner_models.packets.hosts import (
    begin_flow,
    end_flow,
    offer_flow,
    send_from_host,
)
from planner_models.packets.losses import DUPLICATES
from planner_models.packets.receivers import MARK_BITS, WAITS, acknowledge
from planner_models.packets.senders import NO_PROBE, owner
from planner_models.packets.state import (
    ALPHA,
    BATCH,
    BBR_ROUNDS,
    BETA,
    BUFFER_PACKETS,
    BUFFER_WINDOWS,
    HEAP_SIZE,
    HOST_PACKET_TICKS,
    LEAST_TIMEOUT_TICKS,
    LIFE_TICKS,
    LOOK_TICKS,
    NEXT_START,
    NOW,
    REPLY_EVERY,
    RTT_WINDOW_TICKS,
    TICKS_PER_NS,
    TICKS_PER_US,
    TIMERS,
    Floats,
    Ints,
)
from planner_models.packets.tcp import process_reply
from planner_models.packets.timers import expire_timer

MOST_PLACES = 100_000_000
"""Packets that the network has places for: about 4 GB."""

RETURNED: Final = 5
"""Packets of a pair of racks that wait at the rack after they found no place in the packet switch."""
FIRST_WINDOW: Final = 10.0  # packets (RFC 6928)
MOST_RECORDS: Final = 1024
"""Transmissions of a flow of which BBR's sender keeps records; of more in flight some give no sample."""
EVENTS_PER_CALL: Final = 100_000  # of compiled code, between looks at the clock: about 0.03 s

CIRCUIT_UP, CIRCUIT_DOWN, DETACH, RESIZE = range(4)
"""Kinds of changes: a circuit comes up or goes down, a pair leaves the packet switch, a queue is resized."""

Changes = tuple[Floats, Ints, Ints, Floats]
"""Time, kind, pair of racks and value of each change: until when a circuit is up, or packets of a queue."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Network:
    """A network with flows in it, and the changes to come."""

    state: State
    changes: Changes

    def of(self, name: str) -> NDArray[Any]:
        """Return a view of a field of the state, see `state.Layout`."""
        return self.state.of(name)

    def count(self, number: int) -> int:
        """Return a single whole number of the state, such as `state.SENT`."""
        return int(self.state.ints[number])

    @property
    def now_us(self) -> float:
        return float(self.state.reals[NOW]) / TICKS_PER_US

    def us(self, name: str) -> NDArray[np.float64]:
        """Return a field of times, us: `network.us("end")`; NaN where there is none yet."""
        return np.asarray(self.of(f"{name}_ticks") / TICKS_PER_US, dtype=np.float64)

    def by_flow(self, name: str) -> NDArray[Any]:
        """Return (F,) a field of senders, summed over the senders of each flow."""
        return np.asarray(self.of(name).reshape(-1, self.state.at.flows).sum(axis=0))

    def with_changes(self, us: Floats, kind: Ints, pair: Ints, value: Floats) -> Network:
        """Return the network, sharing its state, with these changes to come beside those not yet made.

        They are made in the order of their times; at one instant days end before others begin.
        """
        ints = self.state.ints
        pending = slice(int(ints[NEXT_CHANGE]), int(ints[CHANGES]))
        before = self.changes
        ticks = np.concatenate([before[0][pending], round_to_ticks(us.astype(float))])
        kinds = np.concatenate([before[1][pending], kind.astype(np.int64)])
        pair = np.concatenate([before[2][pending], pair.astype(np.int64)])
        value = np.where(kind == CIRCUIT_UP, round_to_ticks(value.astype(float)), value)
        value = np.concatenate([before[3][pending], value])
        rank = np.choose(kinds, [2, 0, 1, 3])  # CIRCUIT_DOWN, DETACH, CIRCUIT_UP, RESIZE
        order = np.lexsort((pair, rank, ticks))
        ints[NEXT_CHANGE], ints[CHANGES] = 0, len(ticks)
        return replace(self, changes=(ticks[order], kinds[order], pair[order], value[order]))

    def advance(self, until_us: float, *, deadline: Deadline = NEVER) -> None:
        """Advance time to `until_us`; events of that instant itself wait for the next call.

        deadline  time ends there at the end of an instant, to whole nanoseconds
                  where possible, some events after it at least
        """
        state, until = self.state, float(round_to_ticks(until_us))
        while advance(state.ints, state.reals, state.at, *self.changes, until, EVENTS_PER_CALL):
            if state.ints[OVERFLOW]:
                raise RuntimeError("more packets are in flight than the network has places for")
            if deadline.is_over:
                until, deadline = min(until, _next_instant(float(state.reals[NOW]))), NEVER


@dataclass(frozen=True, kw_only=True, eq=False)
class NetworkSettings:
    """Links, queues, hosts and congestion control of a network of n racks.

    hosts         in all racks together
    host_mbps     None: hosts send at once all that they may
    packet_mbps   (n,) of each rack's links to the packet switch; 0 where there is none
    circuit_mbps  (n, n)
    inside        packets of a pair of racks that the packet switch holds
    reply_share   size of a reply, in packets; 0: replies go around the switches and none is lost
    reply_every   packets of a flow that one reply is for
    capacity      packets that each queue holds at first; `largest` is the most that it ever will
    control       of congestion, one of `CONTROLS`
    mark_packets  packets in a queue from which on it marks those that come; None: none are marked
    rtt_window_us  for which BBR keeps the least round trip
    life_us       after which a flow that has not ended is killed
    batch         new packets of a flow that a host hands to its link at once
    look_us       time between looks of an idle host for flows that start; 0: it sees them at once
    buffer_windows  data that TCP takes from an application ahead, in the flow's largest window, and at
                  most `buffer_packets`
    """

    racks: int
    hosts: int
    packet_bits: float
    host_mbps: float | None
    packet_mbps: Floats
    circuit_mbps: Floats
    packet_delay_us: float
    circuit_delay_us: float
    inside: int
    capacity: int
    largest: int
    least_timeout_us: float
    reply_share: float = 0.0
    reply_every: int = 1
    alpha: float = 1.0
    beta: float = 1.0
    control: str = "reno"
    mark_packets: int | None = None
    rtt_window_us: float = math.inf
    life_us: float = math.inf
    batch: int = 1
    look_us: float = 0.0
    buffer_windows: float = math.inf
    buffer_packets: float = math.inf

    @property
    def pairs(self) -> int:
        """Number of pairs of racks."""
        return self.racks * self.racks

    @property
    def control_number(self) -> int:
        """Number of the congestion control in `CONTROLS`."""
        return CONTROLS.index(self.control)

    @cached_property
    def packet_ticks(self) -> Floats:
        """(n,) ticks of a packet on each rack's link to the packet switch."""
        return _sending_ticks(self.packet_bits, self.packet_mbps)

    @cached_property
    def circuit_ticks(self) -> Floats:
        """(n, n) ticks of a packet on each pair's circuit."""
        return _sending_ticks(self.packet_bits, self.circuit_mbps)


def build_network(flows: Mapping[str, NDArray[Any]], settings: NetworkSettings) -> Network:
    """Return a network at rest at time 0.

    flows  source, target, host, size in packets, start_us, and before: the flow that must end first, or -1;
           each (F,)
    raises  InputError where the network is too large for what events or arrays can number
    """
    count = len(flows["size"])
    if max(count, settings.pairs, settings.hosts) > INDEX_MASK:
        raise InputError(f"the network has more than {INDEX_MASK:,} flows, hosts or pairs of racks")
    number = settings.control_number
    senders = 2 * count if number == TDTCP else count
    records = np.minimum(2 * flows["size"].astype(np.int64) + 16, MOST_RECORDS if number == BBR else 0)
    before, start = flows["before"].astype(np.int64), flows["start_us"].astype(float)
    starters = np.flatnonzero(before < 0)
    start_order = starters[np.argsort(start[starters], kind="stable")]
    state = allocate(
        {
            "flows": count,
            "senders": senders,
            "records": int(records.sum()),
            "bbr_rounds": BBR_ROUNDS if number == BBR else 0,
            "bbr_step": senders,
            "starters": len(start_order),
            "heap": settings.hosts + 4 * settings.racks + settings.pairs + 4 * count + 16,
            **_size_switches(settings),
        }
    )
    _set_parameters(state, settings)
    for name, value in {
        **_initial_flows(flows, settings),
        **_initial_senders(records, senders),
        **_initial_switches(settings),
        "start_order": start_order,
        "control": number,
    }.items():
        state.of(name)[...] = value
    nothing = (np.zeros(0), np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))
    return Network(state=state, changes=nothing)


def _size_switches(settings: NetworkSettings) -> dict[str, int]:
    """Return the lengths of the arrays of racks, pairs and queues; InputError where they are too long."""
    pairs, inside, largest = settings.pairs, settings.inside, settings.largest
    packet_us, circuit_us = settings.packet_ticks / TICKS_PER_US, settings.circuit_ticks / TICKS_PER_US
    # in flight: what either switch sends within the longest delay there and back, and a queue of replies
    longest = 2 * max(settings.circuit_delay_us, 2 * settings.packet_delay_us)
    rates = 1 / circuit_us.min(initial=np.inf) + 1 / packet_us.min(initial=np.inf)
    flight = int(min(4 * longest * rates, MOST_PLACES)) + 2 * largest + 16
    # on the way into the packet switch: what a rack's link sends within its delay, replies at worst
    longest_us = settings.packet_delay_us / (packet_us.min(initial=np.inf) * (settings.reply_share or 1.0))
    pipe = int(min(longest_us, MOST_PLACES)) + 4
    if pairs * max(flight, largest, inside) + settings.racks * pipe > MOST_PLACES:
        raise InputError(
            f"up to {max(flight, largest, inside):,} packets are in flight or queued in each of {pairs:,} "
            f"pairs of racks, together at most {MOST_PLACES:,}: lower rates, delays, queues or racks"
        )
    return {
        "pair_ends": pairs + 1,
        "hosts": settings.hosts,
        "ends": settings.racks,
        "pairs": pairs,
        "inside": inside,
        "returned": RETURNED,
        "pipe_ring": pipe,
        "queue_ring": largest + 1,
        "flight_ring": flight,
    }


def _set_parameters(state: State, settings: NetworkSettings) -> None:
    """Write the settings that are single numbers to the state."""
    host_mbps, mark_packets = settings.host_mbps, settings.mark_packets
    number = settings.control_number
    state.reals[HOST_PACKET_TICKS] = (
        0.0 if host_mbps is None else float(_sending_ticks(settings.packet_bits, host_mbps))
    )
    for index, us in (
        (PACKET_DELAY_TICKS, settings.packet_delay_us),
        (CIRCUIT_DELAY_TICKS, settings.circuit_delay_us),
        (LEAST_TIMEOUT_TICKS, settings.least_timeout_us),
        (LIFE_TICKS, settings.life_us),
        (LOOK_TICKS, settings.look_us),
        (RTT_WINDOW_TICKS, settings.rtt_window_us),
    ):
        state.reals[index] = round_to_ticks(us)
    state.reals[REPLY_SHARE], state.ints[BATCH] = settings.reply_share, settings.batch
    state.reals[ALPHA], state.reals[BETA] = settings.alpha, settings.beta
    state.reals[BUFFER_WINDOWS] = settings.buffer_windows
    state.reals[BUFFER_PACKETS] = settings.buffer_packets
    state.ints[REPLY_EVERY] = 1 if number == DCTCP else settings.reply_every
    state.ints[INSIDE_CAPACITY] = settings.inside
    state.ints[MARK_PACKETS] = np.iinfo(np.int64).max if mark_packets is None else mark_packets
    state.ints[SMALL_CAPACITY] = settings.capacity


def _initial_flows(flows: Mapping[str, NDArray[Any]], settings: NetworkSettings) -> dict[str, Any]:
    """Return the initial values of arrays of flows."""
    before, size = flows["before"].astype(np.int64), flows["size"]
    first_successor, next_successor = np.full(len(size), -1, np.int64), np.full(len(size), -1, np.int64)
    for flow in np.flatnonzero(before >= 0)[::-1]:
        next_successor[flow], first_successor[before[flow]] = first_successor[before[flow]], flow
    flow_pair = flows["source"].astype(np.int64) * settings.racks + flows["target"].astype(np.int64)
    ahead = min(settings.buffer_windows * FIRST_WINDOW, settings.buffer_packets)
    return {
        **{name: flows[name] for name in ("source", "target", "host")},
        "flow_size": size,
        "pair_first": np.searchsorted(np.sort(flow_pair), np.arange(settings.pairs + 1)),
        "pair_flow": np.argsort(flow_pair, kind="stable"),
        "first_successor": first_successor,
        "next_successor": next_successor,
        "start_ticks": round_to_ticks(flows["start_us"].astype(float)),
        "end_ticks": np.nan,
        "unsent": size,
        "handed": np.minimum(size, ahead).astype(int),
    }


def _initial_senders(records: Ints, senders: int) -> dict[str, Any]:
    """Return the initial values of arrays of senders and of their congestion controls."""
    return {
        "cubic_epoch_ticks": np.nan,
        "cubic_undo_epoch_ticks": np.nan,
        "dctcp_alpha": FIRST_ALPHA,
        "bbr_rtt_ticks": np.inf,
        "record_first": np.resize(np.cumsum(records) - records, senders),
        "record_count": np.resize(np.maximum(records, 1), senders),
        "record_number": -1,
        "window": FIRST_WINDOW,
        "threshold": np.inf,
        "reordering": DUPLICATES,
        "smooth_rtt_ticks": -1.0,
        "deadline_ticks": np.inf,
        "timeout_ticks": np.inf,
        "probe_code": NO_PROBE,
        **dict.fromkeys(("latest_number", "timed_number", "timer_place"), -1),
        **dict.fromkeys(("ready_head", "ready_tail", "ready_next"), -1),
    }


def _initial_switches(settings: NetworkSettings) -> dict[str, Any]:
    """Return the initial values of arrays of racks and of pairs of racks."""
    return {
        "capacity": settings.capacity,
        "packet_ticks": settings.packet_ticks,
        "circuit_ticks": settings.circuit_ticks,
        "up_until_ticks": -np.inf,
        "flight_ticks": -np.inf,
        "circuit_to": -1,
    }


def round_to_ticks(us: Any) -> NDArray[np.float64]:
    """Return times or delays, us, in whole ticks."""
    return np.asarray(np.round(us * TICKS_PER_US), dtype=np.float64)


def _sending_ticks(bits: float, mbps: Any) -> NDArray[np.float64]:
    """Return the ticks that links need for so many bits, rounded up: none is faster than its rate."""
    with np.errstate(divide="ignore"):
        ticks = np.asarray(bits / np.asarray(mbps, dtype=float) * TICKS_PER_US)
    return np.ceil(ticks * (1 - 1e-9))  # a whole number stays one, whichever way it was computed


def _next_instant(ticks: float) -> float:
    """Return the next whole nanosecond after a time, both in ticks."""
    return (math.floor(ticks / TICKS_PER_NS) + 1.0) * TICKS_PER_NS


@inner_without_allocation
def apply_change(ints: Ints, reals: Floats, layout: Layout, kind: int, pair: int, value: float) -> int:
    """Apply a change from outside; return the rack that sends of its pair."""
    n = layout.ends
    rack, target = pair // n, pair % n
    if kind == CIRCUIT_UP:
        ints[layout.circuit_to + rack] = target
        reals[layout.up_until_ticks + pair] = value
        ints[layout.detached + pair] = 1
    elif kind == CIRCUIT_DOWN:
        if ints[layout.circuit_to + rack] == target:
            ints[layout.circuit_to + rack] = -1
        reals[layout.up_until_ticks + pair] = -np.inf
        ints[layout.detached + pair] = 0
    elif kind == DETACH:
        ints[layout.detached + pair] = 1
    else:
        ints[layout.capacity + pair] = int(value)
    return rack


@inner_without_allocation
def wake_pair(ints: Ints, reals: Floats, layout: Layout, pair: int) -> None:
    """Let the flows of a pair of racks send over the path that is there now (TDTCP)."""
    for index in range(ints[layout.pair_first + pair], ints[layout.pair_first + pair + 1]):
        flow = ints[layout.pair_flow + index]
        has_begun = ints[layout.next_number + flow] + ints[layout.next_number + flow + layout.flows] > 0
        if has_begun and np.isnan(reals[layout.end_ticks + flow]):
            offer_flow(ints, reals, layout, flow)
            send_from_host(ints, reals, layout, ints[layout.host + flow])


@run_small_in_python(max_elements=200_000, max_s=5.0)
@kernel_without_allocation
def advance(  # noqa: C901
    ints: Ints,
    reals: Floats,
    end_s: Layout,
    change_ticks: Floats,
    change_kind: Ints,
    change_pair: Ints,
    change_value: Floats,
    until_ticks: float,
    most_events: int,
) -> bool:
    """Advance time to `until_ticks` by at most so many events; those of that instant wait for the next call.

    A turn of the loop takes one event and does at once all that follows from it: a flow offers its host
    a packet, the host sends, switches take packets from queues. Return whether events before `until_ticks`
    are left: after so many, or where more packets are in flight than there are places for.
    """
    n = end_s.ends
    events = 0
    while ints[OVERFLOW] == 0:
        event = reals[end_s.heap_ticks] if ints[HEAP_SIZE] > 0 else np.inf
        change = change_ticks[ints[NEXT_CHANGE]] if ints[NEXT_CHANGE] < ints[CHANGES] else np.inf
        start = (
            reals[end_s.start_ticks + ints[end_s.start_order + ints[NEXT_START]]]
            if ints[NEXT_START] < end_s.starters
            else np.inf
        )
        timer = reals[end_s.timer_ticks + ints[end_s.timer_heap]] if ints[TIMERS] > 0 else np.inf
        now = min(min(event, change), min(start, timer))
        if now >= until_ticks:
            reals[NOW] = max(reals[NOW], until_ticks)
            return False
        if events == most_events:
            break
        events += 1
        reals[NOW] = now
        flow = host = down = circuit = up = circuit_used = -1
        if change <= now:
            slot = ints[NEXT_CHANGE]
            circuit = up = apply_change(
                ints, reals, end_s, change_kind[slot], change_pair[slot], change_value[slot]
            )
            ints[NEXT_CHANGE] += 1
            if end_s.senders > end_s.flows and change_kind[slot] in (CIRCUIT_UP, CIRCUIT_DOWN):
                wake_pair(ints, reals, end_s, change_pair[slot])
        elif start <= now:
            flow = ints[end_s.start_order + ints[NEXT_START]]
            ints[NEXT_START] += 1
            if not begin_flow(ints, reals, end_s, flow):
                flow = -1
        elif event > now:
            sender = ints[end_s.timer_heap]
            expire_timer(ints, reals, end_s, sender)
            flow = owner(end_s, sender)
        else:
            event_code = ints[end_s.heap_event]
            kind, index = event_code >> INDEX_BITS & KIND_MASK, event_code & INDEX_MASK
            pop(ints, reals, end_s)
            if kind == HOST_SENT:
                ints[end_s.host_busy + index] = 0
                sender, host = ints[end_s.host_sender + index], index
                flow = owner(end_s, sender)
                rack, target = ints[end_s.source + flow], ints[end_s.target + flow]
                number, last = ints[end_s.host_number + index], ints[end_s.host_count + index] - 1
                for packet in range(last + 1):
                    mark = number if packet == last else number & ~WAITS
                    number += 1 << MARK_BITS
                    if rack == target:
                        deliver_inside(ints, reals, end_s, rack * n + target, sender, mark)
                    else:
                        enqueue(ints, reals, end_s, rack * n + target, sender, mark)
                if rack != target:
                    circuit = up = rack
            elif kind == UPLINK_DONE:
                leave_uplink(ints, reals, end_s, index)
                up = index
            elif kind == ENTER:
                pair = enter_packet_switch(ints, reals, end_s, index)
                circuit = up = index
                down = pair % n
            elif kind == DOWNLINK_DONE:
                ints[end_s.downlink_busy + index] = 0
                down = index
                pair, since, circuit_used = (
                    ints[end_s.downlink_pair + index],
                    reals[end_s.downlink_since + index],
                    0,
                )
                packet_flow, number = (
                    ints[end_s.downlink_packet + index * 2],
                    ints[end_s.downlink_packet + index * 2 + 1],
                )
            elif kind == CIRCUIT_DONE:
                ints[end_s.circuit_busy + index] = 0
                circuit = index
                pair, since, circuit_used = (
                    ints[end_s.circuit_pair + index],
                    reals[end_s.circuit_since + index],
                    1,
                )
                packet_flow, number = (
                    ints[end_s.circuit_packet + index * 2],
                    ints[end_s.circuit_packet + index * 2 + 1],
                )
            elif kind == ARRIVAL:
                ring = end_s.flight_ring
                first = index * ring + ints[end_s.flight_first + index]
                sender, code = ints[end_s.flight_flow + first], ints[end_s.flight_number + first]
                ints[end_s.flight_first + index] = wrap(ints[end_s.flight_first + index] + 1, ring)
                ints[end_s.flight_length + index] -= 1
                if ints[end_s.flight_length + index] > 0:
                    following = reals[end_s.flight_ticks + index * ring + ints[end_s.flight_first + index]]
                    push(ints, reals, end_s, following, ARRIVAL, index)
                if sender >= 0:
                    code = acknowledge(ints, end_s, sender, code)
                    if code >= 0:
                        circuit = up = index % n
                        enqueue(ints, reals, end_s, up * n + index // n, -1 - sender, code)
                else:
                    sender = -1 - sender
                    process_reply(ints, reals, end_s, sender, code, ints[end_s.flight_circuit + first])
                    flow = owner(end_s, sender)
            elif kind == FLOW_START:
                if begin_flow(ints, reals, end_s, index):
                    flow = index
            elif kind == LOOK:
                flow = index
            elif kind == PACE:
                flow = index
                ints[end_s.bbr_waits + flow] = 0
            else:
                end_flow(ints, reals, end_s, index)
            if circuit_used >= 0:
                leave_switch(ints, reals, end_s, pair, packet_flow, number, since, circuit_used)
        if flow >= 0:
            offer_flow(ints, reals, end_s, flow)
            host = ints[end_s.host + flow]
        if host >= 0:
            send_from_host(ints, reals, end_s, host)
        if circuit >= 0:
            send_circuit(ints, reals, end_s, circuit)
        if down >= 0:
            send_downlink(ints, reals, end_s, down)
        if up >= 0:
            send_uplink(ints, reals, end_s, up)
    return True
