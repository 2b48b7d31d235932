"""State of a network of several hops: rows of links, senders and flows in two arrays.

All numbers of a link lie beside each other, and so do those of a sender: with thousands of flows an array
for each number takes four times as long, as every number is then in another cache line. The index of a
link, a sender or a flow is the offset of its row, the same in the array of integers and in that of reals.

A packet is one integer: the links of its source route that it has taken, its sender, the generation of the
sender's flow, its number, and bits. The number of a reply is that of the next packet that the receiver
expects.
"""

from __future__ import annotations

from typing import Annotated, Final

from planner_models.packets import state as shared
from planner_models.packets.state import (
    SHARED_INTS,
    SHARED_REALS,
    Extent,
    Field,
    FlowInts,
    SenderInts,
    SenderReals,
)

# single integers, after those of `packets.state`
(
    STATUS,
    LINK_BITS,  # of an event, for the link that it happens on
    RANDOM,  # state of the generator of random numbers
    SEED,  # of the run
    DUPLICATE_ACKS,  # repeated replies after which a packet counts as lost
    LARGEST_WINDOW,  # packets
    FLOWLET_PACKETS,  # that take one link before the next one is taken, or drawn at random
    REPLIES_HASHED,  # 1: replies take one path; 0: they are forwarded as data is
    IS_COUPLED,  # whether subflows share their growth (LIA)
    SUBFLOWS,  # of each flow
    FREE_FLOWS,  # rows of flows that no flow uses
    QUEUE_RULE,
    UNROUTED,  # packets lost at nodes without a path to their end
) = range(SHARED_INTS, SHARED_INTS + 13)
LAST_INT: Final = UNROUTED

# single reals, after those of `packets.state`
(
    FIRST_WINDOW,  # packets
    RED_LOWER,  # packets in the mean, above which RED drops some
    RED_UPPER,  # packets in the mean, from which on RED drops all
    RED_SHARE,  # largest share that it drops between them
    CODEL_TARGET_TICKS,
    CODEL_INTERVAL_TICKS,
) = range(SHARED_REALS, SHARED_REALS + 6)
LAST_REAL: Final = CODEL_INTERVAL_TICKS

RUNNING, OUT_OF_FLOWS, OUT_OF_ROWS, OUT_OF_RING = range(4)
"""Values of `STATUS`: why a run stopped before its time."""
TAIL_DROP, RED, CODEL = range(3)
"""Values of `QUEUE_RULE`."""

REPLY, MARKED = 1, 2
"""Bits of a packet: it is a reply; a queue has marked it, or the packet that it replies to."""
NUMBER_BITS: Final = 24
GENERATION_BITS: Final = 8
SENDER_BITS: Final = 20
NUMBER_SHIFT: Final = 2
GENERATION_SHIFT: Final = NUMBER_SHIFT + NUMBER_BITS
SENDER_SHIFT: Final = GENERATION_SHIFT + GENERATION_BITS
HOP_BITS: Final = 9
HOP_SHIFT: Final = SENDER_SHIFT + SENDER_BITS
MAX_HOPS: Final = 1 << HOP_BITS
"""Links of a source route, and one more."""
SENDER_MASK: Final = (1 << SENDER_BITS) - 1
NUMBER_MASK: Final = (1 << NUMBER_BITS) - 1
GENERATION_MASK: Final = (1 << GENERATION_BITS) - 1

LinkInts = Annotated[int, Field(True, ("links",))]
LinkReals = Annotated[int, Field(False, ("links",))]
RingInts = Annotated[int, Field(True, ("ring",))]


class Layout(shared.SenderLayout):
    """Strides of rows, then the position in `ints` or `reals` at which each field begins."""

    links_stride: Extent
    senders_stride: Extent
    flows_stride: Extent
    senders_first_int: Extent  # position of the row of sender 0
    senders_first_real: Extent
    words: Extent  # of a receiver's bits, a power of two
    records_each: Extent  # of transmissions of a sender (BBR)

    # links
    head: LinkInts
    ring_first: LinkInts
    ring_mask: LinkInts
    accepted: LinkInts  # packets so far
    arrived: LinkInts
    departed: LinkInts  # of those that were looked at since
    free_ticks: LinkInts  # when the last packet has departed
    data_ticks: LinkInts
    reply_ticks: LinkInts
    delay_ticks: LinkInts
    queue_limit: LinkInts  # packets
    mark_limit: LinkInts  # packets in the queue from which on it marks those that come
    dropped: LinkInts
    marked: LinkInts
    longest: LinkInts  # packets in the queue at once
    replies: LinkInts  # accepted
    down_ticks: LinkInts  # when it was cut; what departs later is lost
    cut: LinkInts  # packets lost so
    red_mean: LinkReals  # packets
    codel_first_ticks: LinkReals  # since when the wait is above the target, and an interval; 0: it is not
    codel_next_ticks: LinkReals  # when it drops the next packet; 0: it drops none
    codel_count: LinkReals  # packets dropped in a row
    codel_before: LinkReals  # when it dropped the last one

    # rings of packets on links, and of the times at which they depart
    ring_packet: RingInts
    ring_ticks: RingInts
    heap_event: Annotated[int, Field(True, ("heap",))]

    # senders; the first fields are those that each hop reads
    source_row: SenderInts  # of its source in the table of next hops
    target_row: SenderInts
    source_node: SenderInts
    target_node: SenderInts
    seed: SenderInts  # of hashing
    route: SenderInts  # row of split tables, or position of the first link of a source route; -1: neither
    mode: SenderInts  # of forwarding, see `forwarding`
    generation: SenderInts
    flow: SenderInts  # offset of its flow's row
    delivered: SenderInts
    to_retransmit: SenderInts
    first_link: SenderInts
    assigned: SenderInts  # packets of the flow's data that this sender has taken
    duplicates: SenderInts
    counted: SenderInts  # packets beyond the expected one that repeated replies have counted as delivered
    is_recovering: SenderInts
    has_partial: SenderInts  # whether a partial reply has set the timer in this recovery
    backoff: SenderInts
    timed_number: SenderInts
    timer_place: SenderInts
    timed_ticks: SenderReals
    rtt_deviation_ticks: SenderReals
    deadline_ticks: SenderReals
    timer_ticks: SenderReals
    interval_ticks: SenderReals  # between packets of UDP
    bbr_rates: Annotated[int, Field(False, ("senders", "bbr_rounds"))]
    timer_heap: Annotated[int, Field(True, ("timers",))]

    # receivers
    expected: SenderInts
    held: SenderInts  # packets beyond the expected one
    reply_link: SenderInts
    received: Annotated[int, Field(True, ("received",))]  # their bits, `words` of each sender

    # flows
    record: FlowInts
    unassigned: FlowInts  # packets that no sender has taken
    remaining: FlowInts  # packets whose replies have not arrived
    flow_held: FlowInts
    longest_held: FlowInts
    sent_again: FlowInts
    timeouts: FlowInts
    lost: FlowInts  # packets of UDP
    free_flows: Annotated[int, Field(True, ("flow_rows",))]  # offsets of rows that no flow uses
