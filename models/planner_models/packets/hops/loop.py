"""The loop over events, and flows that begin and end.

Events of one instant happen in this order: flows start in the order of their table, timers expire in the
order of their senders, then packets arrive in the order of their links.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from planner.compiled import inner_without_allocation, kernel_without_allocation, run_small_in_python
from planner_models.packets.controls.dctcp import FIRST_ALPHA
from planner_models.packets.events import drop_timer
from planner_models.packets.hops.forwarding import NextHops, link_on_route, mix, next_link
from planner_models.packets.hops.layout import (
    FIRST_WINDOW,
    FREE_FLOWS,
    GENERATION_MASK,
    GENERATION_SHIFT,
    HOP_SHIFT,
    LINK_BITS,
    MARKED,
    NUMBER_MASK,
    NUMBER_SHIFT,
    OUT_OF_FLOWS,
    OUT_OF_ROWS,
    REPLY,
    RUNNING,
    SENDER_MASK,
    SENDER_SHIFT,
    STATUS,
    SUBFLOWS,
    UNROUTED,
    Layout,
)
from planner_models.packets.hops.links import replace_first, send_packet
from planner_models.packets.hops.senders import UDP, expire_timer, process_reply, send_allowed, send_constant
from planner_models.packets.state import HEAP_SIZE, NEXT_START, NOW, TIMERS, Floats, Ints

NEVER_TICKS: Final = np.iinfo(np.int64).max
NO_FLOW: Final = -1


class Flows(NamedTuple):
    """A row for each flow, and for each list of flows of which one follows another.

    start_ticks   (F,) of flows in `order`; of those that follow another, when they began, else -1
    end_ticks     (F,) -1 until then
    source_row, target_row  (F,) in the table of next hops
    packets       (F,)
    control, mode (F,) see `controls.CONTROLS` and `forwarding.MODES`
    route         (F, subflows) row of split tables, or position of a source route; or -1
    interval_ticks  (F,) between packets of UDP
    row           (F,) row of the state while the flow is active, else -1
    sent_again, timeouts, longest_held, lost  (F,) packets, of flows that have ended
    order         (S,) flows by start
    next_flow     (F,) the next one of a list, or -1
    list_of       (F,) or -1
    list_first    (L,) the next flow of each list to start, or -1
    list_waits    (L,) flows that would start if the list were longer
    node          (D,) nodes of rows of the table of next hops
    access        (D,) link by which each of these nodes sends; offsets of rows
    """

    start_ticks: Ints
    end_ticks: Ints
    source_row: Ints
    target_row: Ints
    packets: Ints
    control: Ints
    mode: Ints
    route: Ints
    interval_ticks: Floats
    row: Ints
    sent_again: Ints
    timeouts: Ints
    longest_held: Ints
    lost: Ints
    order: Ints
    next_flow: Ints
    list_of: Ints
    list_first: Ints
    list_waits: Ints
    node: Ints
    access: Ints


@inner_without_allocation
def begin_flow(ints: Ints, reals: Floats, layout: Layout, flows: Flows, flow: int) -> None:
    """Begin a flow: give it a row and senders, which send the packets of their first window."""
    if ints[FREE_FLOWS] == 0:
        ints[STATUS] = OUT_OF_ROWS
        return
    ints[FREE_FLOWS] -= 1
    row = ints[layout.free_flows + ints[FREE_FLOWS]]
    flows.row[flow] = row
    flows.start_ticks[flow] = int(reals[NOW])
    packets = flows.packets[flow]
    ints[layout.record + row] = flow
    ints[layout.unassigned + row] = ints[layout.remaining + row] = packets
    ints[layout.flow_held + row] = ints[layout.longest_held + row] = 0
    ints[layout.sent_again + row] = ints[layout.timeouts + row] = ints[layout.lost + row] = 0
    first = row // layout.flows_stride * ints[SUBFLOWS]
    for index in range(first, first + ints[SUBFLOWS]):
        begin_sender(ints, reals, layout, flows, flow, row, index)
    for index in range(first, first + ints[SUBFLOWS]):
        if flows.control[flow] == UDP:
            send_constant(ints, reals, layout, index * layout.senders_stride)
        else:
            send_allowed(ints, reals, layout, index * layout.senders_stride)


@inner_without_allocation
def begin_sender(
    ints: Ints, reals: Floats, layout: Layout, flows: Flows, flow: int, row: int, index: int
) -> None:
    """Set the state of a sender as a flow begins."""
    sender = index * layout.senders_stride
    timer = ints[layout.timer_place + sender]
    generation = (ints[layout.generation + sender] + 1) & GENERATION_MASK
    ints[sender + layout.senders_first_int : sender + layout.senders_first_int + layout.senders_stride] = 0
    reals[sender + layout.senders_first_real : sender + layout.senders_first_real + layout.senders_stride] = (
        0.0
    )
    ints[layout.timer_place + sender] = timer
    source, target = flows.source_row[flow], flows.target_row[flow]
    ints[layout.generation + sender] = generation
    ints[layout.source_row + sender], ints[layout.target_row + sender] = source, target
    ints[layout.source_node + sender], ints[layout.target_node + sender] = (
        flows.node[source],
        flows.node[target],
    )
    ints[layout.first_link + sender], ints[layout.reply_link + sender] = (
        flows.access[source],
        flows.access[target],
    )
    ints[layout.seed + sender] = mix(mix(flow + 1) + index % ints[SUBFLOWS])
    ints[layout.mode + sender] = flows.mode[flow]
    ints[layout.route + sender] = flows.route[flow, index % ints[SUBFLOWS]]
    ints[layout.control + sender], ints[layout.flow + sender] = flows.control[flow], row
    ints[layout.timed_number + sender] = -1
    reals[layout.window + sender] = reals[FIRST_WINDOW]
    reals[layout.threshold + sender] = reals[layout.deadline_ticks + sender] = np.inf
    reals[layout.smooth_rtt_ticks + sender] = -1.0
    reals[layout.interval_ticks + sender] = flows.interval_ticks[flow]
    reals[layout.cubic_epoch_ticks + sender] = reals[layout.cubic_undo_epoch_ticks + sender] = np.nan
    reals[layout.dctcp_alpha + sender] = FIRST_ALPHA
    reals[layout.bbr_rtt_ticks + sender] = np.inf
    records = layout.records_each
    ints[layout.record_first + sender], ints[layout.record_count + sender] = index * records, max(records, 1)
    ints[layout.record_number + index * records : layout.record_number + (index + 1) * records] = -1
    received = layout.received + index * layout.words
    ints[received : received + layout.words] = 0


@inner_without_allocation
def end_flow(ints: Ints, reals: Floats, layout: Layout, flows: Flows, row: int) -> None:
    """End a flow; the next one of its list starts."""
    flow = ints[layout.record + row]
    flows.end_ticks[flow] = int(reals[NOW])
    flows.row[flow] = NO_FLOW
    flows.sent_again[flow], flows.timeouts[flow] = ints[layout.sent_again + row], ints[layout.timeouts + row]
    flows.longest_held[flow], flows.lost[flow] = ints[layout.longest_held + row], ints[layout.lost + row]
    first = row // layout.flows_stride * ints[SUBFLOWS]
    for index in range(first, first + ints[SUBFLOWS]):
        sender = index * layout.senders_stride
        ints[layout.generation + sender] = (ints[layout.generation + sender] + 1) & GENERATION_MASK
        if ints[layout.timer_place + sender] >= 0:
            drop_timer(ints, reals, layout, sender)
    ints[layout.free_flows + ints[FREE_FLOWS]] = row
    ints[FREE_FLOWS] += 1
    if flows.list_of[flow] >= 0:
        flows.list_waits[flows.list_of[flow]] += 1
        begin_listed(ints, reals, layout, flows, flows.list_of[flow])


@inner_without_allocation
def begin_listed(ints: Ints, reals: Floats, layout: Layout, flows: Flows, number: int) -> None:
    """Begin as many flows of a list as wait, if it is long enough."""
    while flows.list_waits[number] > 0:
        flow = flows.list_first[number]
        if flow < 0:
            ints[STATUS] = OUT_OF_FLOWS
            return
        flows.list_first[number] = flows.next_flow[flow]
        flows.list_waits[number] -= 1
        begin_flow(ints, reals, layout, flows, flow)


@inner_without_allocation
def lose_constant(ints: Ints, reals: Floats, layout: Layout, flows: Flows, sender: int, lost: int) -> None:
    """Count a packet of UDP that has arrived or is lost; its flow ends with the last one."""
    row = ints[layout.flow + sender]
    ints[layout.lost + row] += lost
    ints[layout.remaining + row] -= 1
    if ints[layout.remaining + row] == 0:
        end_flow(ints, reals, layout, flows, row)


@inner_without_allocation
def arrive_at_end(
    ints: Ints, reals: Floats, layout: Layout, flows: Flows, sender: int, packet: int, now: int
) -> None:
    """Process a packet at its target, or a reply at its source."""
    number = packet >> NUMBER_SHIFT & NUMBER_MASK
    row = ints[layout.flow + sender]
    if packet & REPLY:
        newly = process_reply(ints, reals, layout, sender, number, packet & MARKED != 0)
        if newly > 0:
            ints[layout.remaining + row] -= newly
            if ints[layout.remaining + row] == 0:
                end_flow(ints, reals, layout, flows, row)
                return
        send_allowed(ints, reals, layout, sender)
    elif ints[layout.control + sender] == UDP:
        lose_constant(ints, reals, layout, flows, sender, 0)
    else:
        held = ints[layout.held + sender]
        reply = receive(ints, layout, sender, number, packet & MARKED)
        ints[layout.flow_held + row] += ints[layout.held + sender] - held
        ints[layout.longest_held + row] = max(ints[layout.longest_held + row], ints[layout.flow_held + row])
        send_packet(ints, reals, layout, ints[layout.reply_link + sender], reply, now)


@run_small_in_python(max_elements=200_000, max_s=15.0)
@kernel_without_allocation
def advance(  # noqa: C901
    ints: Ints,
    reals: Floats,
    layout: Layout,
    hops: NextHops,
    flows: Flows,
    until_ticks: int,
    max_events: int,
) -> bool:
    """Advance time to `until_ticks` by at most so many events; those of that instant wait for the next call.

    Return whether events before `until_ticks` remain: after so many, or where `STATUS` says why.
    """
    bits = ints[LINK_BITS]
    mask = (1 << bits) - 1
    for number in range(len(flows.list_first)):
        begin_listed(ints, reals, layout, flows, number)
    events = 0
    while ints[STATUS] == RUNNING:
        arrival = ints[layout.heap_event] >> bits if ints[HEAP_SIZE] > 0 else NEVER_TICKS
        timer = int(reals[layout.timer_ticks + ints[layout.timer_heap]]) if ints[TIMERS] > 0 else NEVER_TICKS
        start = NEVER_TICKS
        if ints[NEXT_START] < len(flows.order):
            start = flows.start_ticks[flows.order[ints[NEXT_START]]]
        now = min(arrival, min(timer, start))
        if now >= until_ticks:
            reals[NOW] = float(until_ticks)
            return False
        if events == max_events:
            break
        events += 1
        reals[NOW] = float(now)
        if start == now:
            begin_flow(ints, reals, layout, flows, flows.order[ints[NEXT_START]])
            ints[NEXT_START] += 1
            continue
        if timer == now:
            sender = ints[layout.timer_heap]
            row = ints[layout.flow + sender]
            expire_timer(ints, reals, layout, sender)
            if ints[layout.remaining + row] == 0:  # all that was left of a flow of UDP is lost
                end_flow(ints, reals, layout, flows, row)
            continue
        link = (ints[layout.heap_event] & mask) * layout.links_stride
        count, first = ints[layout.arrived + link], ints[layout.ring_first + link]
        packet = ints[layout.ring_packet + first + (count & ints[layout.ring_mask + link])]
        count += 1
        ints[layout.arrived + link] = count
        if count < ints[layout.accepted + link]:
            departs = ints[layout.ring_ticks + first + (count & ints[layout.ring_mask + link])]
            following = departs + ints[layout.delay_ticks + link]
            replace_first(ints, layout, following << bits | link // layout.links_stride)
        else:
            ints[HEAP_SIZE] -= 1
            if ints[HEAP_SIZE] > 0:
                replace_first(ints, layout, ints[layout.heap_event + ints[HEAP_SIZE]])
        is_cut = now - ints[layout.delay_ticks + link] > ints[layout.down_ticks + link]
        ints[layout.cut + link] += is_cut
        sender = (packet >> SENDER_SHIFT & SENDER_MASK) * layout.senders_stride
        if packet >> GENERATION_SHIFT & GENERATION_MASK != ints[layout.generation + sender]:
            continue  # of a flow that has ended
        if is_cut:
            if ints[layout.control + sender] == UDP:
                lose_constant(ints, reals, layout, flows, sender, 1)
            continue
        node, is_reply = ints[layout.head + link], packet & REPLY
        end = ints[layout.source_node + sender] if is_reply else ints[layout.target_node + sender]
        if node == end:
            arrive_at_end(ints, reals, layout, flows, sender, packet, now)
        else:
            leaves = -1 if is_reply else link_on_route(ints, layout, hops, node, sender, packet)
            if leaves < 0:
                leaves = next_link(ints, layout, hops, node, sender, packet)
            else:
                packet += 1 << HOP_SHIFT
            lost = True
            if leaves < 0:
                ints[UNROUTED] += 1
            else:
                lost = send_packet(ints, reals, layout, leaves, packet, now)
            if lost and ints[layout.control + sender] == UDP:
                lose_constant(ints, reals, layout, flows, sender, 1)
    return True


@inner_without_allocation
def receive(ints: Ints, layout: Layout, sender: int, number: int, marked: int) -> int:
    """Return the reply to a packet that has arrived, and note it.

    marked  `layout.MARKED` where a queue has marked it, else 0
    """
    expected = ints[layout.expected + sender]
    words = layout.words
    first = layout.received + sender // layout.senders_stride * words
    if number >= expected:
        slot, bit = first + ((number >> 5) & (words - 1)), 1 << (number & 31)
        if not ints[slot] & bit:
            ints[slot] |= bit
            ints[layout.held + sender] += 1
        while ints[slot] & bit and number == expected:
            ints[slot] &= ~bit
            ints[layout.held + sender] -= 1
            expected += 1
            number = expected
            slot, bit = first + ((number >> 5) & (words - 1)), 1 << (number & 31)
        ints[layout.expected + sender] = expected
    reply = (sender // layout.senders_stride) << SENDER_SHIFT | ints[
        layout.generation + sender
    ] << GENERATION_SHIFT
    return int(reply | expected << NUMBER_SHIFT | marked & MARKED | REPLY)
