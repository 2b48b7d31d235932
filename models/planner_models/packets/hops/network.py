"""A network of nodes, links and flows, of which every packet is followed over all its hops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from pydantic import Field as Parameter

from planner.arrays import Bools
from planner.errors import InputError
from planner_models.packets.controls import BBR, CUBIC, DCTCP
from planner_models.packets.hops import layout
from planner_models.packets.hops.forwarding import SOURCE, NextHops
from planner_models.packets.hops.layout import Layout
from planner_models.packets.hops.links import RANDOM_MODULUS
from planner_models.packets.hops.loop import NO_FLOW, Flows, advance
from planner_models.packets.hops.routes import (
    Links,
    build_tables,
    build_walks,
    find_next_hops,
    select_links,
    without_routes,
)
from planner_models.packets.hops.senders import UDP
from planner_models.packets.state import (
    BBR_ROUNDS,
    LEAST_TIMEOUT_TICKS,
    NOW,
    RTT_WINDOW_TICKS,
    TICKS_PER_US,
    Floats,
    Ints,
    SenderLayout,
    State,
    allocate,
    fields_of,
)

FIRST_EVENTS: Final = 2_000
"""Events of the first call of the loop, about a second where Python runs it; each call doubles them."""
MAX_EVENTS: Final = 1_000_000
"""Events of a call of compiled code: about 0.3 s."""
MAX_SENDERS: Final = 1 << layout.SENDER_BITS
MAX_PACKETS: Final = 1 << layout.NUMBER_BITS
MAX_RING_PACKETS: Final = 200_000_000
"""Packets that all links together have places for: 3.2 GB."""
RECORDS_EACH: Final = 1024  # of transmissions of a sender (BBR)
RTT_WINDOW_US: Final = 10e6  # for which BBR keeps the least round trip (4.1.2.3 of its draft)
BITS_PER_BYTE: Final = 8
RED_LARGEST_SHARE: Final = 0.1  # dropped between the thresholds (Floyd and Jacobson 1993, 4)


@dataclass(frozen=True, kw_only=True)
class PacketSettings:
    """Packets, queues and senders of a network.

    Defaults of the first three are those of Sen et al. 2013, 7.1; the others are not printed there. Those of
    CoDel are of RFC 8289, 4.3, for the internet: in a datacenter both are shorter.
    """

    packet_bytes: Annotated[int, Parameter(ge=41, description="size of a packet, bytes")] = 1000
    queue_packets: Annotated[
        int, Parameter(ge=1, description="packets that the queue of a link between switches holds")
    ] = 100
    hop_delay_us: Annotated[
        float, Parameter(ge=0, allow_inf_nan=False, description="delay of each link, us")
    ] = 100.0
    host_queue_packets: Annotated[
        int, Parameter(ge=1, description="packets that the queue of a host's link holds")
    ] = 1000
    largest_window: Annotated[int, Parameter(ge=1, le=1 << 16, description="packets of a window at most")] = (
        300
    )
    first_window: Annotated[int, Parameter(ge=1, description="packets that a flow begins with")] = 2
    least_timeout_ms: Annotated[float, Parameter(gt=0, description="shortest timeout, ms")] = 10.0
    ack_bytes: Annotated[int, Parameter(ge=1, description="size of a reply, bytes")] = 40
    duplicate_acks: Annotated[
        int, Parameter(ge=1, description="repeated replies after which a packet counts as lost")
    ] = 3
    subflows: Annotated[int, Parameter(ge=1, le=64, description="paths of each flow (MPTCP)")] = 1
    coupling: Annotated[
        Literal["lia", "none"], Parameter(description="how subflows grow: together (RFC 6356), or each alone")
    ] = "none"
    flowlet_packets: Annotated[
        int, Parameter(ge=1, description="packets of a split flow that go along one link before the next")
    ] = 1
    acks: Annotated[
        Literal["as_data", "hashed"], Parameter(description="forwarding of replies: as data, or one path")
    ] = "as_data"
    mark_packets: Annotated[
        int | None, Parameter(ge=1, description="packets in a queue from which on it marks those that come")
    ] = None
    queue_rule: Annotated[
        Literal["tail", "red", "codel"],
        Parameter(description="what queues drop: packets that find them full, or some before (RED, CoDel)"),
    ] = "tail"
    codel_target_us: Annotated[
        float, Parameter(gt=0, allow_inf_nan=False, description="CoDel: wait in a queue that it allows, us")
    ] = 5_000.0
    codel_interval_us: Annotated[
        float,
        Parameter(gt=0, allow_inf_nan=False, description="CoDel: time above it before it drops, us"),
    ] = 100_000.0

    def __post_init__(self) -> None:
        if self.first_window > self.largest_window:
            raise InputError(
                f"first_window is {self.first_window}, must be at most largest_window, {self.largest_window}"
            )
        if self.ack_bytes > self.packet_bytes:
            raise InputError(
                f"ack_bytes is {self.ack_bytes}, must be at most packet_bytes, {self.packet_bytes}"
            )


@dataclass(frozen=True, kw_only=True, eq=False)
class FlowList:
    """Flows to come, each (F,): those of `follows` start when another one of their list ends.

    start_us   of flows that follow no other
    source, target  nodes
    packets    at least 1
    control    numbers of `controls.CONTROLS`, or `senders.UDP`
    mode       numbers of `forwarding.MODES`
    list_of    list that a flow belongs to, or -1
    rate_mbps  of flows of UDP
    """

    start_us: Floats
    source: Ints
    target: Ints
    packets: Ints
    control: Ints
    mode: Ints
    list_of: Ints
    rate_mbps: Floats

    def join(self, other: FlowList) -> FlowList:
        """Return both lists, one after the other."""
        return FlowList(
            **{name: np.concatenate([getattr(self, name), getattr(other, name)]) for name in vars(self)}
        )


@dataclass(kw_only=True, eq=False)
class PacketNetwork:
    """A network with flows; `advance` moves its packets, in arrays that compiled code changes."""

    settings: PacketSettings
    links: Links
    state: State[Layout]
    hops: NextHops
    flows: Flows

    @property
    def now_us(self) -> float:
        """Present time, us."""
        return float(self.state.reals[NOW]) / TICKS_PER_US

    def of(self, name: str) -> NDArray[Any]:
        """Return a view of a field of the state, see `layout.Layout`."""
        return self.state.of(name)

    def advance(self, until_us: float) -> int:
        """Advance time to `until_us`; return `layout.OUT_OF_FLOWS` where lists must be longer first.

        raises  InputError where more flows are active, or packets are on a link, than there are places for
        """
        state, until, events = self.state, round(until_us * TICKS_PER_US), FIRST_EVENTS
        state.ints[layout.STATUS] = layout.RUNNING
        while advance(state.ints, state.reals, state.at, self.hops, self.flows, until, events):
            events = min(2 * events, MAX_EVENTS)
            status = int(state.ints[layout.STATUS])
            if status == layout.OUT_OF_ROWS:
                raise InputError(
                    f"{len(self.of('record')):,} flows are active at once, more than there are places for: "
                    "lower the load or the flows"
                )
            if status == layout.OUT_OF_RING:
                raise InputError("more packets are on a link than it has places for: lower its delay or rate")
            if status == layout.OUT_OF_FLOWS:
                return status
        return layout.RUNNING

    def set_routes(
        self, share: sp.csr_array, rows: Ints, flows: Ints, route: Ints, *, may_loop: bool = False
    ) -> None:
        """Set split tables by shares of demands on links, (K, E), and the demands that flows follow.

        rows   demands to make tables for
        flows  active flows, and `route` the demand of each, or -1 where it takes shortest paths
        raises  InputError where the shares of a demand have a loop, unless they may
        """
        key, table, slots = build_tables(
            self.links, share, rows, self.state.at.links_stride, may_loop=may_loop
        )
        taken = np.zeros(len(slots), np.int64)
        self.hops = self.hops._replace(key=key, table=table, slots=slots, taken=taken)
        self._take_routes(flows, np.repeat(route[:, None], self.settings.subflows, axis=1))

    def set_source_routes(self, walks: Sequence[Ints], flows: Ints, route: Ints) -> None:
        """Set source routes, and the one that each sender of some flows follows.

        walks  links of each, after the one by which its source sends
        flows  active or to come, and `route` (F, subflows) the walk of each sender, or -1 where it takes
               shortest paths by a hash
        raises  InputError for a walk with more links than a packet can count
        """
        first, walk, walk_node = build_walks(self.links, walks, self.state.at.links_stride)
        self.hops = self.hops._replace(walk=walk, walk_node=walk_node)
        self.flows.mode[flows] = SOURCE
        self._take_routes(flows, np.where(route >= 0, np.r_[first, -1][route], -1))

    def fail_links(self, links: Ints) -> None:
        """Cut links: what waits in their queues is lost, and what comes later; the rest still arrives."""
        self.of("down_ticks")[links] = round(float(self.state.reals[NOW]))
        self.of("queue_limit")[links] = 0

    def avoid_links(self, down: Bools) -> None:
        """Take shortest paths without some links, (E,), from now on."""
        up = np.flatnonzero(~down)
        first, link = find_next_hops(select_links(self.links, ~down), self.flows.node, 1)
        rows = (up[link] * self.state.at.links_stride).astype(np.int32)
        self.hops = self.hops._replace(first=first, link=rows)

    def _take_routes(self, flows: Ints, route: Ints) -> None:
        """Set the route of each sender of some flows, (F, subflows), and how active ones are forwarded."""
        self.flows.route[flows] = route
        first = self.flows.row[flows] // self.state.at.flows_stride * self.settings.subflows
        is_active = self.flows.row[flows] >= 0
        for index in range(self.settings.subflows):
            self.of("route")[first[is_active] + index] = route[is_active, index]
            self.of("mode")[first[is_active] + index] = self.flows.mode[flows[is_active]]

    def acknowledged(self) -> Ints:
        """Return (F,) the packets of each flow that its sender knows to have arrived; of UDP, all of them."""
        flows = self.flows
        sent = np.where(flows.end_ticks >= 0, flows.packets - flows.lost, 0)
        is_active = flows.row >= 0
        row = flows.row[is_active] // self.state.at.flows_stride
        sent[is_active] = flows.packets[is_active] - self.of("remaining")[row] - self.of("lost")[row]
        return sent


def build_network(
    links: Links,
    flows: FlowList,
    settings: PacketSettings,
    *,
    ends: Ints,
    lists: int = 0,
    listed: int = 0,
    active: int | None = None,
    seed: int = 0,
) -> PacketNetwork:
    """Return a network at time 0 with flows to come.

    ends    nodes between which flows go; each has one link to the network
    lists   of flows of which one follows another, and `listed` of each active at once
    active  flows of no list that are active at once at most; None: all of them
    seed    of random next hops, and of RED
    raises  InputError where a node has no link or several, a link has no rate, or it is all too large
    """
    require_rates(links)
    unlisted = int((flows.list_of < 0).sum())
    rows = lists * listed + (unlisted if active is None else min(active, unlisted))
    if rows * settings.subflows > MAX_SENDERS:
        raise InputError(
            f"{rows:,} flows of {settings.subflows} subflows are more senders than {MAX_SENDERS:,}"
        )
    if len(flows.packets) and int(flows.packets.max()) >= MAX_PACKETS:
        raise InputError(
            f"a flow has {int(flows.packets.max()):,} packets, must have fewer than {MAX_PACKETS:,}"
        )
    access = access_links(links, ends)
    state = allocate_state(links, flows, settings, ends, rows, seed)
    stride = state.at.links_stride
    columns: Any = {name: np.zeros(0, np.int64) for name in Flows._fields}
    nothing = Flows(**columns)._replace(
        route=np.zeros((0, settings.subflows), np.int64),
        interval_ticks=np.zeros(0),
        list_first=np.full(lists, NO_FLOW, np.int64),
        list_waits=np.full(lists, listed, np.int64),
        node=ends.astype(np.int64),
        access=access * stride,
    )
    network = PacketNetwork(
        settings=settings, links=links, state=state, hops=without_routes(links, ends, stride), flows=nothing
    )
    add_flows(network, flows)
    return network


def require_rates(links: Links) -> None:
    """Raise InputError where a link has no rate."""
    for link in np.flatnonzero(~(links.capacity_mbps > 0))[:1].tolist():
        raise InputError(
            f"link {link}: capacity is {links.capacity_mbps[link]:g} Mbit/s, must be greater than 0 "
            "where packets take it"
        )


def access_links(links: Links, ends: Ints) -> Ints:
    """Return the first link by which each end node sends; InputError where it has none."""
    by_tail = np.argsort(links.tail, kind="stable")
    position = np.searchsorted(links.tail[by_tail], ends)
    nearest = np.minimum(position, len(by_tail) - 1)
    is_missing = links.tail[by_tail[nearest]] != ends
    if is_missing.any():
        raise InputError(f"node {int(ends[np.argmax(is_missing)])} has no link to send on")
    return by_tail[nearest].astype(np.int64)


def add_flows(network: PacketNetwork, flows: FlowList) -> None:
    """Add flows to come to a network, and append those of lists to their lists."""
    old, count, ends = network.flows, len(flows.packets), network.flows.node
    row = np.full(network.links.nodes, -1, np.int64)
    row[ends] = np.arange(len(ends))
    bits = network.settings.packet_bytes * BITS_PER_BYTE
    with np.errstate(divide="ignore"):
        interval = np.where(flows.control == UDP, np.round(bits / flows.rate_mbps * TICKS_PER_US), 0.0)
    before = len(old.packets)
    is_listed = flows.list_of >= 0
    number = before + np.arange(count)
    next_flow, list_first = np.r_[old.next_flow, np.full(count, NO_FLOW)], old.list_first.copy()
    for index in np.unique(flows.list_of[is_listed]).tolist():
        members = number[flows.list_of == index]
        next_flow[members[:-1]] = members[1:]
        earlier = np.flatnonzero(old.list_of == index)
        if len(earlier):
            next_flow[earlier[-1]] = members[0]
        if list_first[index] == NO_FLOW:
            list_first[index] = members[0]
    starts = number[~is_listed]
    start_ticks = np.where(is_listed, -1, np.round(flows.start_us * TICKS_PER_US)).astype(np.int64)
    none, zero = np.full(count, -1, np.int64), np.zeros(count, np.int64)
    network.flows = Flows(
        start_ticks=np.r_[old.start_ticks, start_ticks],
        end_ticks=np.r_[old.end_ticks, none],
        source_row=np.r_[old.source_row, row[flows.source]],
        target_row=np.r_[old.target_row, row[flows.target]],
        packets=np.r_[old.packets, flows.packets.astype(np.int64)],
        control=np.r_[old.control, flows.control.astype(np.int64)],
        mode=np.r_[old.mode, flows.mode.astype(np.int64)],
        route=np.concatenate([old.route, np.full((count, network.settings.subflows), -1)]),
        interval_ticks=np.r_[old.interval_ticks, interval],
        row=np.r_[old.row, none],
        sent_again=np.r_[old.sent_again, zero],
        timeouts=np.r_[old.timeouts, zero],
        longest_held=np.r_[old.longest_held, zero],
        lost=np.r_[old.lost, zero],
        order=np.r_[old.order, starts[np.argsort(start_ticks[~is_listed], kind="stable")]],
        next_flow=next_flow,
        list_of=np.r_[old.list_of, flows.list_of.astype(np.int64)],
        list_first=list_first,
        list_waits=old.list_waits,
        node=old.node,
        access=old.access,
    )


def allocate_state(
    links: Links, flows: FlowList, settings: PacketSettings, ends: Ints, rows: int, seed: int
) -> State[Layout]:
    """Return the state of a network at rest, with rows for so many flows."""
    count, senders = len(links.tail), max(rows * settings.subflows, 1)
    controls = set(np.unique(flows.control).tolist())
    bits, reply_bits = settings.packet_bytes * BITS_PER_BYTE, settings.ack_bytes * BITS_PER_BYTE
    data_ticks, reply_ticks = (
        sending_ticks(bits, links.capacity_mbps),
        sending_ticks(reply_bits, links.capacity_mbps),
    )
    delay_us = np.full(count, settings.hop_delay_us) if links.delay_us is None else links.delay_us
    delay_ticks = np.round(delay_us * TICKS_PER_US).astype(np.int64)
    is_access = np.isin(links.tail, ends)
    limit = np.where(is_access, settings.host_queue_packets, settings.queue_packets)
    ring = _ring_sizes(limit + delay_ticks // np.maximum(reply_ticks, 1) + 2)
    words = 1 << max(2 * settings.largest_window // 32, 1).bit_length()
    records_each = RECORDS_EACH if BBR in controls else 0
    state = allocate(
        Layout,
        {
            "links": count,
            "senders": senders,
            "flows": max(rows, 1),
            "ring": int(ring.sum()),
            "heap": count + 1,
            "timers": senders + 1,
            "flow_rows": max(rows, 1),
            "received": senders * words,
            "words": words,
            "bbr_rounds": BBR_ROUNDS,
            "bbr_step": 1,
            "records": senders * records_each,
            "records_each": records_each,
        },
        first_int=layout.LAST_INT + 1,
        first_real=layout.LAST_REAL + 1,
        rows=("links", "senders", "flows"),
        omitted=_unused_fields(controls),
    )
    mark = np.iinfo(np.int64).max if settings.mark_packets is None else settings.mark_packets
    for name, value in {
        "head": links.head,
        "ring_first": np.r_[0, np.cumsum(ring)[:-1]],
        "ring_mask": ring - 1,
        "data_ticks": data_ticks,
        "reply_ticks": reply_ticks,
        "delay_ticks": delay_ticks,
        "queue_limit": limit,
        "mark_limit": mark,
        "down_ticks": np.iinfo(np.int64).max,
        "timer_place": -1,
        "free_flows": np.arange(max(rows, 1))[::-1] * state.at.flows_stride,
    }.items():
        state.of(name)[...] = value
    set_numbers(state, settings, count, rows, seed)
    return state


def _unused_fields(controls: set[int]) -> tuple[str, ...]:
    """Return the fields of senders that only other congestion controls use."""
    prefixes = {"cubic_": CUBIC, "dctcp_": DCTCP, "bbr_": BBR, "record_": BBR}
    unused = tuple(prefix for prefix, control in prefixes.items() if control not in controls)
    return tuple(name for name in shared_fields() if name.startswith(unused))


def _ring_sizes(needed: Ints) -> Ints:
    """Return the size of the ring of each link: a power of two that holds its packets."""
    ring: Ints = np.left_shift(1, np.ceil(np.log2(needed)).astype(np.int64))
    if int(ring.sum()) > MAX_RING_PACKETS:
        raise InputError(
            f"up to {int(ring.sum()):,} packets are on links, must be at most {MAX_RING_PACKETS:,}: lower "
            "queues, delays or rates"
        )
    return ring


def shared_fields() -> Sequence[str]:
    """Return the names of the fields of senders' congestion controls."""
    return tuple(name for name, field_ in fields_of(SenderLayout).items() if field_.shape)


def set_numbers(state: State[Layout], settings: PacketSettings, links: int, rows: int, seed: int) -> None:
    """Write the settings that are single numbers to the state."""
    ints, reals = state.ints, state.reals
    ints[layout.LINK_BITS] = max(links - 1, 1).bit_length()
    ints[layout.RANDOM] = ints[layout.SEED] = seed % (RANDOM_MODULUS - 2) + 1
    ints[layout.DUPLICATE_ACKS] = settings.duplicate_acks
    ints[layout.LARGEST_WINDOW] = settings.largest_window
    ints[layout.FLOWLET_PACKETS] = settings.flowlet_packets
    ints[layout.REPLIES_HASHED] = settings.acks == "hashed"
    ints[layout.IS_COUPLED] = settings.coupling == "lia" and settings.subflows > 1
    ints[layout.SUBFLOWS], ints[layout.FREE_FLOWS] = settings.subflows, rows
    ints[layout.QUEUE_RULE] = ("tail", "red", "codel").index(settings.queue_rule)
    reals[LEAST_TIMEOUT_TICKS] = round(settings.least_timeout_ms * 1000 * TICKS_PER_US)
    reals[RTT_WINDOW_TICKS] = RTT_WINDOW_US * TICKS_PER_US
    reals[layout.FIRST_WINDOW] = settings.first_window
    # a mean queue from a quarter to three quarters of its length
    reals[layout.RED_LOWER] = settings.queue_packets / 4
    reals[layout.RED_UPPER] = settings.queue_packets * 3 / 4
    reals[layout.RED_SHARE] = RED_LARGEST_SHARE
    reals[layout.CODEL_TARGET_TICKS] = settings.codel_target_us * TICKS_PER_US
    reals[layout.CODEL_INTERVAL_TICKS] = settings.codel_interval_us * TICKS_PER_US


def sending_ticks(bits: float, mbps: Floats) -> Ints:
    """Return the ticks that links need for so many bits, rounded up: none is faster than its rate."""
    ticks = bits / mbps * TICKS_PER_US
    return np.ceil(ticks * (1 - 1e-9)).astype(np.int64)
