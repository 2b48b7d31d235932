"""TCP receivers."""

from __future__ import annotations

from typing import Final

from planner.compiled import inner_without_allocation
from planner_models.packets.senders import owner
from planner_models.packets.state import REPLY_EVERY, Ints, Layout

MARK_BITS: Final = 3
WAITS, COMPLETES, MARKED = 1, 2, 4
"""Marks of a packet: its sender can send no other after it; it is the last of those that are sent again; it
has found a long queue."""
ECHO: Final = 1 << 31
"""Bit of a reply: the packet that it is for was marked."""


@inner_without_allocation
def acknowledge(ints: Ints, layout: Layout, sender: int, mark: int) -> int:
    """Return the receiver's reply to a transmission, or -1 where it sends none.

    A reply is the count of transmissions that have arrived, times 2^32, plus the latest number, and the echo
    of the mark that a queue put on this one.

    mark  number of the transmission, and whether the sender can send no other after it, and whether it is
          the last one to be sent again
    """
    flow = owner(layout, sender)
    number, ends = mark >> MARK_BITS, ints[layout.is_incomplete + flow] and mark & COMPLETES
    in_order = number == ints[layout.latest_number + sender] + 1
    ints[layout.latest_number + sender] = max(ints[layout.latest_number + sender], number)
    ints[layout.arrived + sender] += 1
    if not in_order:
        ints[layout.is_incomplete + flow] = 1
    at_once = ints[layout.is_incomplete + flow] or mark & WAITS
    if in_order and ends:
        ints[layout.is_incomplete + flow] = 0
    if not at_once and ints[layout.arrived + sender] % ints[REPLY_EVERY]:
        return -1
    echo = ECHO if mark & MARKED else 0
    return int(ints[layout.arrived + sender] << 32 | echo | ints[layout.latest_number + sender])
