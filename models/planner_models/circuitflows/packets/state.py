"""State of a network of racks: the shared fields of senders and hosts, and those of racks and switches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final

from planner_models.packets import state as shared
from planner_models.packets.state import (
    SHARED_INTS,
    SHARED_REALS,
    Extent,
    Field,
    Floats,
    FlowInts,
    Ints,
    fields_of,
)

__all__ = ["Floats", "Ints"]

BIN_US: Final = 0.5  # of the histogram of latencies
BINS: Final = 65_536

# single reals, after those of `packets.state`
(
    PACKET_DELAY_TICKS,
    CIRCUIT_DELAY_TICKS,
    REPLY_SHARE,  # size of a reply, in packets
) = range(SHARED_REALS, SHARED_REALS + 3)

# single integers, after those of `packets.state`
(
    NEXT_CHANGE,
    CHANGES,
    INSIDE_CAPACITY,  # packets of a pair of racks that the packet switch holds
    LOST,
    CIRCUIT_PACKETS,
    PACKET_PACKETS,
    REPLIES_LOST,
    OVERFLOW,  # 1 once more packets are in flight than `flight_ring` has places for
    SMALL_CAPACITY,  # packets that a queue holds that is not enlarged
    LOCAL,  # packets delivered within their rack
    MARK_PACKETS,  # packets in a queue from which on it marks those that come (DCTCP)
) = range(SHARED_INTS, SHARED_INTS + 11)

RackInts = Annotated[int, Field(True, ("ends",))]
RackReals = Annotated[int, Field(False, ("ends",))]
PairInts = Annotated[int, Field(True, ("pairs",))]
QueueInts = Annotated[int, Field(True, ("pairs", "queue_ring"))]
QueueReals = Annotated[int, Field(False, ("pairs", "queue_ring"))]
InsideInts = Annotated[int, Field(True, ("pairs", "inside"))]
InsideReals = Annotated[int, Field(False, ("pairs", "inside"))]
FlightInts = Annotated[int, Field(True, ("pairs", "flight_ring"))]
FlightReals = Annotated[int, Field(False, ("pairs", "flight_ring"))]
ReturnedInts = Annotated[int, Field(True, ("pairs", "returned"))]
ReturnedReals = Annotated[int, Field(False, ("pairs", "returned"))]
PipeInts = Annotated[int, Field(True, ("ends", "pipe_ring"))]
PipeReals = Annotated[int, Field(False, ("ends", "pipe_ring"))]
PacketInts = Annotated[int, Field(True, ("ends", "packet"))]


class Layout(shared.Layout):
    """Extents of the network, then the position in `ints` or `reals` at which each field begins.

    The ends of flows are racks; pairs of racks are numbered source * racks + target. A packet is the number
    of its sender (its flow, or with TDTCP a path of it, see `packets.senders`) and its own number; a reply is
    -1 less the number of its sender, and what `acknowledge` returns.
    """

    queue_ring: Extent
    flight_ring: Extent
    pipe_ring: Extent
    returned: Extent

    # flows
    pair_first: Annotated[int, Field(True, ("pair_ends",))]  # places of a pair's flows in `pair_flow`
    pair_flow: FlowInts

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
    circuit_ticks: Annotated[int, Field(False, ("ends", "ends"))]  # time for a packet
    circuit_to: RackInts  # or -1
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

    # counts for metrics; by switch: 0 the packet switch, 1 circuits
    latency: Annotated[int, Field(True, ("switches", "bins"))]
    carried: Annotated[int, Field(True, ("switches", "pairs"))]


FIELDS: Final[Mapping[str, Field]] = fields_of(Layout)

State = shared.State[Layout]


def allocate(extents: Mapping[str, int]) -> State:
    """Return a state of these extents in which all numbers are 0."""
    sizes = {"packet": 2, "switches": 2, "bins": BINS, **extents}
    return shared.allocate(Layout, sizes, first_int=MARK_PACKETS + 1, first_real=REPLY_SHARE + 1)
