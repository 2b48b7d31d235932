"""State of the network: every field of it declared once, all of them in two arrays.

Compiled functions take the array of whole numbers `ints`, the array of reals `reals`, and the `Layout`
that says where each field begins in them: `reals[at.window + flow]`. That is 18 times as fast as a
tuple of as many arrays, which every call would copy. The layout is a record, which functions take as one
pointer: a tuple of 86 numbers took half as long again to run, and a third longer to compile.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, get_type_hints

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

TICKS_PER_NS: Final = 100
TICKS_PER_US: Final = 1_000 * TICKS_PER_NS
"""Times are whole numbers of ticks of 10 ps, so that their sums are exact in whatever order they are made;
reals contain whole numbers up to 2^53, 25 hours of ticks."""

BIN_US: Final = 0.5  # of the histogram of latencies
BINS: Final = 65_536
BBR_ROUNDS: Final = 10
"""Round trips of which BBR keeps the largest delivery rate (`controls.bbr`: 4.1.1.3 of its draft)."""

# single reals, at the beginning of `reals`
(
    NOW,
    HOST_PACKET_TICKS,  # time that a host's link takes for a packet
    PACKET_DELAY_TICKS,
    CIRCUIT_DELAY_TICKS,
    LEAST_TIMEOUT_TICKS,
    ALPHA,
    BETA,
    REPLY_SHARE,  # size of a reply, in packets
    LIFE_TICKS,  # after which a flow that has not ended is killed
    LOOK_TICKS,  # time between looks of an idle host for flows that start; 0: it sees them at once
    BUFFER_WINDOWS,  # data that TCP takes from an application ahead, in the flow's largest window
    BUFFER_PACKETS,  # at most that many packets
    RTT_WINDOW_TICKS,  # for which BBR keeps the least round trip
) = range(13)

# single whole numbers, at the beginning of `ints`
(
    HEAP_SIZE,
    EVENT_COUNT,  # events so far
    NEXT_START,  # first of `start_order` that has not started
    NEXT_CHANGE,
    CHANGES,
    INSIDE_CAPACITY,  # packets of a pair of racks that the packet switch holds
    SENT,
    LOST,
    CIRCUIT_PACKETS,
    PACKET_PACKETS,
    REPLIES_LOST,
    REPLY_EVERY,
    OVERFLOW,  # 1 once more packets are in flight than `flight_ring` has places for
    SMALL_CAPACITY,  # packets that a queue holds that is not enlarged
    BATCH,  # packets that a host hands to its link at once
    TIMERS,  # flows in the heap of timers
    LOCAL,  # packets delivered within their rack
    CONTROL,  # of congestion, see `controls`
    MARK_PACKETS,  # packets in a queue from which on it marks those that come (DCTCP)
) = range(19)


@dataclass(frozen=True)
class Field:
    """Shape and type of a field: `shape` names extents; a field without any is an extent itself."""

    is_whole: bool
    shape: tuple[str, ...]


Extent = Annotated[int, Field(True, ())]
FlowInts = Annotated[int, Field(True, ("flows",))]
FlowReals = Annotated[int, Field(False, ("flows",))]
SenderInts = Annotated[int, Field(True, ("senders",))]
SenderReals = Annotated[int, Field(False, ("senders",))]
RecordInts = Annotated[int, Field(True, ("records",))]
RecordReals = Annotated[int, Field(False, ("records",))]
HostInts = Annotated[int, Field(True, ("hosts",))]
RackInts = Annotated[int, Field(True, ("racks",))]
RackReals = Annotated[int, Field(False, ("racks",))]
PairInts = Annotated[int, Field(True, ("pairs",))]
PairReals = Annotated[int, Field(False, ("pairs",))]
QueueInts = Annotated[int, Field(True, ("pairs", "queue_ring"))]
QueueReals = Annotated[int, Field(False, ("pairs", "queue_ring"))]
InsideInts = Annotated[int, Field(True, ("pairs", "inside"))]
InsideReals = Annotated[int, Field(False, ("pairs", "inside"))]
FlightInts = Annotated[int, Field(True, ("pairs", "flight_ring"))]
FlightReals = Annotated[int, Field(False, ("pairs", "flight_ring"))]
ReturnedInts = Annotated[int, Field(True, ("pairs", "returned"))]
ReturnedReals = Annotated[int, Field(False, ("pairs", "returned"))]
PipeInts = Annotated[int, Field(True, ("racks", "pipe_ring"))]
PipeReals = Annotated[int, Field(False, ("racks", "pipe_ring"))]
PacketInts = Annotated[int, Field(True, ("racks", "packet"))]
HeapInts = Annotated[int, Field(True, ("heap",))]
HeapReals = Annotated[int, Field(False, ("heap",))]


class Layout:
    """Extents of the network, then the place in `ints` or `reals` at which each field begins.

    Pairs of racks are numbered source * racks + target. A packet is the number of its sender (its flow, or
    with TDTCP a path of it, see `senders`) and its own number; a reply is -1 less the number of its sender,
    and what `acknowledge` returns.
    """

    flows: Extent
    senders: Extent
    racks: Extent
    starters: Extent  # flows that wait for no other
    queue_ring: Extent
    flight_ring: Extent
    pipe_ring: Extent
    returned: Extent

    # flows
    source: FlowInts
    target: FlowInts
    host: FlowInts
    flow_size: FlowInts  # packets
    pair_first: Annotated[int, Field(True, ("pair_ends",))]  # places of a pair's flows in `pair_flow`
    pair_flow: FlowInts
    first_successor: FlowInts  # a flow that waits for this one, or -1
    next_successor: FlowInts  # the next flow that waits for the same one, or -1
    start_order: Annotated[int, Field(True, ("starters",))]
    start_ticks: FlowReals
    end_ticks: FlowReals  # NaN until then

    # data of flows
    unsent: FlowInts
    to_retransmit: FlowInts
    delivered: FlowInts
    seen: FlowInts  # packets that have left the rack's queue
    handed: FlowInts  # packets that the application has handed over
    widest: FlowReals  # largest window so far, packets
    is_incomplete: FlowInts  # whether a packet is missing that later ones have overtaken

    # TCP senders
    outstanding: SenderInts
    next_number: SenderInts  # of the next transmission
    expected_number: SenderInts  # of the next transmission to be acknowledged
    missing: SenderInts
    later_arrivals: SenderInts  # since one was missing
    hole_ticks: SenderReals  # since when
    recovery_number: SenderInts  # losses of earlier transmissions halve the window no more
    reordering: SenderInts  # packets by which one may be overtaken before it counts as lost
    unproven: SenderInts  # packets taken for lost in this recovery, each of which may still arrive
    loss_window: SenderReals  # of before this recovery
    loss_threshold: SenderReals
    restart_number: SenderInts  # earlier transmissions were given up at a timeout
    spurious: SenderInts  # packets outstanding that turned out not to be needed
    acknowledged: SenderInts  # transmissions
    circuit_signalled: SenderInts  # whether the last reply signalled a circuit
    window: SenderReals  # packets
    threshold: SenderReals  # of slow start, packets
    backoff: SenderInts  # doublings of the timeout
    timer: SenderInts  # what happens at `deadline_ticks`: a timeout, a probe, or an early retransmission
    deadline_ticks: SenderReals
    timeout_ticks: (
        SenderReals  # of the timeout, later than `deadline_ticks` where something else comes before
    )
    timer_place: SenderInts  # in `timer_heap`, or -1
    timer_ticks: SenderReals  # by which `timer_heap` is ordered, at most `deadline_ticks`
    probe_code: SenderInts  # of the tail loss probe that is due or out, see `tcp.NO_PROBE`
    undo_window: SenderReals  # of before the timeout, while it may turn out to be spurious; else 0
    undo_threshold: SenderReals
    undo_outstanding: SenderInts
    undo_spurious: SenderInts
    undo_expected: SenderInts
    undo_restart: SenderInts
    timed_number: SenderInts  # transmission of which the round trip is timed, or -1
    timed_ticks: SenderReals
    smooth_rtt_ticks: SenderReals  # -1 before the first measurement
    rtt_deviation_ticks: SenderReals

    # TCP receivers
    arrived: SenderInts
    latest_number: SenderInts

    # CUBIC
    cubic_most: SenderReals  # W_max, packets
    cubic_k_s: SenderReals
    cubic_epoch_ticks: SenderReals  # when congestion avoidance began; NaN before it
    cubic_reno: SenderReals  # W_est, packets
    cubic_before: SenderReals  # window before the last loss, packets
    cubic_undo_most: SenderReals
    cubic_undo_k_s: SenderReals
    cubic_undo_epoch_ticks: SenderReals
    cubic_undo_reno: SenderReals
    cubic_undo_before: SenderReals

    # DCTCP
    dctcp_alpha: SenderReals  # share of marked packets, smoothed
    dctcp_acknowledged: SenderInts  # packets of this window
    dctcp_marked: SenderInts
    dctcp_end: SenderInts  # number with which this window ends
    dctcp_cut_number: SenderInts  # marks of earlier transmissions cut the window no more

    # BBR
    bbr_mode: SenderInts
    bbr_rate: SenderReals  # packets a tick
    bbr_rates: Annotated[int, Field(False, ("senders", "bbr_rounds"))]
    bbr_round: SenderInts
    bbr_next_round: SenderInts  # packets delivered when it begins
    bbr_rtt_ticks: SenderReals
    bbr_rtt_since_ticks: SenderReals
    bbr_full_rate: SenderReals
    bbr_full_rounds: SenderInts
    bbr_is_full: SenderInts
    bbr_phase: SenderInts
    bbr_phase_ticks: SenderReals  # when it began
    bbr_before: SenderReals  # window before a recovery, or before the round trip is probed
    bbr_recovers: SenderInts
    bbr_conserves: SenderInts  # packets: one is sent for each that arrives
    bbr_lost: SenderInts  # packets, since the last reply
    bbr_probe_end_ticks: SenderReals
    bbr_probe_round: SenderInts
    bbr_pace: SenderReals  # packets a tick
    bbr_next_ticks: SenderReals  # when the next packet may be sent
    bbr_waits: SenderInts  # whether an event is due then
    bbr_first_sent_ticks: SenderReals  # when the last packet that was delivered was sent
    bbr_delivered_ticks: SenderReals  # when it was delivered
    record_first: SenderInts  # a ring of records of transmissions for each sender
    record_count: SenderInts
    record_number: RecordInts
    record_delivered: RecordInts
    record_delivered_ticks: RecordReals
    record_first_sent_ticks: RecordReals
    record_sent_ticks: RecordReals

    # hosts: a list of the flows that may send, and the packet on the host's link
    ready_next: FlowInts
    is_ready: FlowInts
    ready_head: HostInts
    ready_tail: HostInts
    host_flows: HostInts  # that have begun and not ended
    host_busy: HostInts
    host_sender: HostInts
    host_number: HostInts
    host_count: HostInts  # packets on it

    # racks' virtual output queues
    queue_flow: QueueInts
    queue_number: QueueInts
    queue_since: QueueReals
    queue_first: PairInts
    queue_length: PairInts
    queue_data: PairInts  # packets that are no replies
    capacity: PairInts
    detached: PairInts  # whether the pair is kept off the packet switch
    returned_flow: ReturnedInts  # packets that found no place inside the packet switch, which go first
    returned_number: ReturnedInts
    returned_since: ReturnedReals
    returned_first: PairInts
    returned_length: PairInts

    # the packet switch: links from racks, places inside, links to racks
    packet_ticks: RackReals  # time that a rack's link takes for a packet
    uplink_busy: RackInts
    uplink_turn: RackInts
    uplink_pair: RackInts
    uplink_packet: PacketInts
    uplink_since: RackReals
    inside_flow: InsideInts
    inside_number: InsideInts
    inside_since: InsideReals
    inside_first: PairInts
    inside_length: PairInts
    pipe_flow: PipeInts  # packets that have left a rack's uplink, and are on their way into the switch
    pipe_number: PipeInts
    pipe_pair: PipeInts
    pipe_since: PipeReals
    pipe_ticks: PipeReals
    pipe_first: RackInts
    pipe_length: RackInts
    downlink_busy: RackInts
    downlink_turn: RackInts
    downlink_pair: RackInts
    downlink_packet: PacketInts
    downlink_since: RackReals

    # circuits
    circuit_ticks: Annotated[int, Field(False, ("racks", "racks"))]  # time for a packet
    circuit_to: RackInts  # or -1
    up_until_ticks: PairReals
    circuit_busy: RackInts
    circuit_pair: RackInts
    circuit_packet: PacketInts
    circuit_since: RackReals

    # packets and replies that have left a switch, by pair and in order
    flight_flow: FlightInts
    flight_number: FlightInts
    flight_circuit: FlightInts  # whether a reply signals a circuit
    flight_ticks: FlightReals
    flight_first: PairInts
    flight_length: PairInts

    # events, and counts for metrics; by switch: 0 the packet switch, 1 circuits
    heap_event: HeapInts
    heap_ticks: HeapReals
    timer_heap: SenderInts
    latency: Annotated[int, Field(True, ("switches", "bins"))]
    carried: Annotated[int, Field(True, ("switches", "pairs"))]


FIELDS: Final[Mapping[str, Field]] = {
    name: hint.__metadata__[0] for name, hint in get_type_hints(Layout, include_extras=True).items()
}


@dataclass(frozen=True, kw_only=True, eq=False)
class State:
    """The arrays `ints` and `reals`, and `at`, where each field begins in them."""

    ints: Ints
    reals: Floats
    at: Layout
    shapes: Mapping[str, tuple[int, ...]]

    def of(self, name: str) -> NDArray[Any]:
        """Return a view of a field, in its own shape."""
        flat = self.ints if FIELDS[name].is_whole else self.reals
        shape = self.shapes[name]
        offset = int(self.at[name])  # type: ignore[index]  # a record, which has an attribute `size` too
        return flat[offset : offset + int(np.prod(shape))].reshape(shape)


def allocate(extents: Mapping[str, int]) -> State:
    """Return a state of these extents in which all numbers are 0."""
    sizes = {"packet": 2, "switches": 2, "bins": BINS, **extents}
    shapes = {name: tuple(sizes[extent] for extent in field.shape) for name, field in FIELDS.items()}
    ends = {True: MARK_PACKETS + 1, False: RTT_WINDOW_TICKS + 1}
    offsets: dict[str, int] = {}
    for name, field in FIELDS.items():
        if field.shape:
            offsets[name] = ends[field.is_whole]
            ends[field.is_whole] += int(np.prod(shapes[name]))
        else:
            offsets[name] = sizes[name]
    return State(
        ints=np.zeros(ends[True], np.int64),
        reals=np.zeros(ends[False]),
        at=np.rec.array(
            [tuple(offsets[name] for name in FIELDS)], dtype=[(name, np.int64) for name in FIELDS]
        )[0],
        shapes=shapes,
    )
