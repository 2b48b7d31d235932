"""Output queues of links: one event a hop, as a packet's departure is known when it enters.

A packet departs its bits over the rate after the packet before it, and arrives a delay later. It counts
against the queue until it has departed; those that have are removed when the next packet comes. So a full
queue, a mark by the number of packets, RED and CoDel are decided on entry: what CoDel drops at the head of
its queue depends on earlier packets alone.

source  RED: Floyd and Jacobson 1993; CoDel: RFC 8289, by sojourn times that are known on entry
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from planner.compiled import inner_without_allocation
from planner_models.packets.hops.layout import (
    CODEL,
    CODEL_INTERVAL_TICKS,
    CODEL_TARGET_TICKS,
    LINK_BITS,
    MARKED,
    OUT_OF_RING,
    QUEUE_RULE,
    RANDOM,
    RED,
    RED_LOWER,
    RED_SHARE,
    RED_UPPER,
    REPLY,
    STATUS,
    TAIL_DROP,
    Layout,
)
from planner_models.packets.state import EVENT_COUNT, HEAP_SIZE, Floats, Ints

RED_WEIGHT: Final = 0.002  # of a packet's queue in the mean (Floyd and Jacobson 1993, 6)
RANDOM_FACTOR: Final = 48_271
RANDOM_MODULUS: Final = 2_147_483_647


@inner_without_allocation
def draw_random(ints: Ints) -> int:
    """Return the next random integer from 1 to 2^31 - 2 (Park and Miller 1993)."""
    ints[RANDOM] = ints[RANDOM] * RANDOM_FACTOR % RANDOM_MODULUS
    return int(ints[RANDOM])


@inner_without_allocation
def push_event(ints: Ints, layout: Layout, event: int) -> None:
    """Put the arrival of a link's first packet into the heap."""
    slot = ints[HEAP_SIZE]
    ints[HEAP_SIZE] = slot + 1
    while slot > 0:
        above = (slot - 1) >> 1
        other = ints[layout.heap_event + above]
        if other < event:
            break
        ints[layout.heap_event + slot] = other
        slot = above
    ints[layout.heap_event + slot] = event


@inner_without_allocation
def replace_first(ints: Ints, layout: Layout, event: int) -> None:
    """Replace the first event of the heap by another."""
    slot, size = 0, ints[HEAP_SIZE]
    while True:
        below = 2 * slot + 1
        if below >= size:
            break
        other = ints[layout.heap_event + below]
        if below + 1 < size and ints[layout.heap_event + below + 1] < other:
            below += 1
            other = ints[layout.heap_event + below]
        if event < other:
            break
        ints[layout.heap_event + slot] = other
        slot = below
    ints[layout.heap_event + slot] = event


@inner_without_allocation
def queue_length(ints: Ints, layout: Layout, link: int, now: int) -> int:
    """Return the packets of a link that have not departed, and remove those that have."""
    departed, accepted = ints[layout.departed + link], ints[layout.accepted + link]
    first, mask = ints[layout.ring_first + link], ints[layout.ring_mask + link]
    while departed < accepted and ints[layout.ring_ticks + first + (departed & mask)] <= now:
        departed += 1
    ints[layout.departed + link] = departed
    return int(accepted - departed)


@inner_without_allocation
def send_packet(ints: Ints, reals: Floats, layout: Layout, link: int, packet: int, now: int) -> bool:
    """Put a packet into the queue of a link; return whether it is lost, as it may be where it is full."""
    length = queue_length(ints, layout, link, now)
    takes = ints[layout.reply_ticks + link] if packet & REPLY else ints[layout.data_ticks + link]
    begins = max(now, ints[layout.free_ticks + link])
    if length >= ints[layout.queue_limit + link] or (
        ints[QUEUE_RULE] != TAIL_DROP
        and is_dropped_early(ints, reals, layout, link, length, float(now), float(begins))
    ):
        ints[layout.dropped + link] += 1
        return True
    if length >= ints[layout.mark_limit + link] and not packet & REPLY:
        packet |= MARKED
        ints[layout.marked + link] += 1
    accepted, mask = ints[layout.accepted + link], ints[layout.ring_mask + link]
    if accepted - ints[layout.arrived + link] > mask:
        ints[STATUS] = OUT_OF_RING
        return True
    slot = ints[layout.ring_first + link] + (accepted & mask)
    ints[layout.ring_packet + slot] = packet
    departs = begins + takes
    ints[layout.ring_ticks + slot] = departs
    ints[layout.free_ticks + link] = departs
    ints[layout.accepted + link] = accepted + 1
    ints[layout.replies + link] += packet & REPLY
    ints[layout.longest + link] = max(ints[layout.longest + link], length + 1)
    ints[EVENT_COUNT] += 1
    if accepted == ints[layout.arrived + link]:
        arrives = departs + ints[layout.delay_ticks + link]
        push_event(ints, layout, (arrives << ints[LINK_BITS]) | (link // layout.links_stride))
    return False


@inner_without_allocation
def is_dropped_early(
    ints: Ints, reals: Floats, layout: Layout, link: int, length: int, now: float, begins: float
) -> bool:
    """Return whether active queue management drops a packet that enters now and is sent from `begins` on."""
    if ints[QUEUE_RULE] == RED:
        mean = reals[layout.red_mean + link] + RED_WEIGHT * (length - reals[layout.red_mean + link])
        idle = now - ints[layout.free_ticks + link]
        if length == 0 and idle > 0:  # as if so many packets had found it empty (section 4)
            mean *= math.pow(1 - RED_WEIGHT, idle / ints[layout.data_ticks + link])
        reals[layout.red_mean + link] = mean
        if mean < reals[RED_LOWER]:
            return False
        if mean >= reals[RED_UPPER]:
            return True
        share = reals[RED_SHARE] * (mean - reals[RED_LOWER]) / (reals[RED_UPPER] - reals[RED_LOWER])
        return bool(draw_random(ints) < share * RANDOM_MODULUS)
    return ints[QUEUE_RULE] == CODEL and is_dropped_by_delay(
        reals, layout, link, length, begins - now, begins
    )


@inner_without_allocation
def is_dropped_by_delay(
    reals: Floats, layout: Layout, link: int, length: int, waits: float, begins: float
) -> bool:
    """Return whether CoDel drops a packet that has waited when it could be sent (RFC 8289, 5.5 and 5.6)."""
    interval = reals[CODEL_INTERVAL_TICKS]
    if waits < reals[CODEL_TARGET_TICKS] or length == 0:
        reals[layout.codel_first_ticks + link] = reals[layout.codel_next_ticks + link] = 0.0
        return False
    if reals[layout.codel_first_ticks + link] == 0:
        reals[layout.codel_first_ticks + link] = begins + interval
        return False
    if begins < reals[layout.codel_first_ticks + link]:
        return False
    next_ticks, count = reals[layout.codel_next_ticks + link], reals[layout.codel_count + link]
    if next_ticks == 0:
        is_soon = begins - reals[layout.codel_before + link] < 16 * interval
        count = max(count - 2, 1.0) if is_soon and count > 2 else 1.0
    elif begins >= next_ticks:
        count += 1
    else:
        return False
    reals[layout.codel_count + link] = count
    reals[layout.codel_before + link] = begins
    reals[layout.codel_next_ticks + link] = np.floor(
        (begins if next_ticks == 0 else next_ticks) + interval / np.sqrt(count)
    )
    return True
