"""Receivers: the number of the expected packet, and the packets that wait for it."""

from __future__ import annotations

from planner.compiled import inner
from planner_models.packets.hops.layout import (
    GENERATION_SHIFT,
    MARKED,
    NUMBER_SHIFT,
    REPLY,
    SENDER_SHIFT,
    Layout,
)
from planner_models.packets.state import Ints


@inner
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
