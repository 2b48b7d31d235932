"""Senders of packets over several hops: NewReno (RFC 6582, Impatient), its subflows (MPTCP), and UDP.

A reply says which packet the receiver expects. After `DUPLICATE_ACKS` repeated ones a packet counts as lost;
a timeout sends again from the first packet that is not acknowledged. How a window grows and is cut is a
rule of the sender's control: Reno, CUBIC, DCTCP or BBR, each from `packets.controls`. Subflows of a flow take
from the same data; coupled ones grow together no faster than one flow would (LIA, RFC 6356). UDP sends at a
constant rate, is not acknowledged, and sends nothing again.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from planner.compiled import inner_without_allocation
from planner_models.packets import controls
from planner_models.packets.controls import BBR, CONTROLS, DCTCP, bbr
from planner_models.packets.controls.dctcp import follow_mark
from planner_models.packets.events import drop_timer, set_timer
from planner_models.packets.hops.layout import (
    DUPLICATE_ACKS,
    GENERATION_SHIFT,
    IS_COUPLED,
    LARGEST_WINDOW,
    NUMBER_SHIFT,
    SENDER_SHIFT,
    SUBFLOWS,
    Layout,
)
from planner_models.packets.hops.links import send_packet
from planner_models.packets.state import LEAST_TIMEOUT_TICKS, NOW, SENT, Floats, Ints

UDP: Final = len(CONTROLS)
"""Number of the control of a sender that has none."""
MAX_BACKOFF: Final = 10  # doublings of the timeout


@inner_without_allocation
def transmit(ints: Ints, reals: Floats, layout: Layout, sender: int, number: int) -> bool:
    """Send a packet; return whether the host's queue loses it."""
    now = reals[NOW]
    if number >= ints[layout.assigned + sender]:
        ints[layout.assigned + sender] += 1
        ints[layout.unassigned + ints[layout.flow + sender]] -= 1
        if ints[layout.timed_number + sender] < 0:
            ints[layout.timed_number + sender] = number
            reals[layout.timed_ticks + sender] = now
    else:
        ints[layout.sent_again + ints[layout.flow + sender]] += 1
        if number <= ints[layout.timed_number + sender]:
            ints[layout.timed_number + sender] = -1
    ints[SENT] += 1
    code = (sender // layout.senders_stride) << SENDER_SHIFT
    code |= ints[layout.generation + sender] << GENERATION_SHIFT | number << NUMBER_SHIFT
    return send_packet(ints, reals, layout, ints[layout.first_link + sender], code, int(now))


@inner_without_allocation
def timeout_ticks(ints: Ints, reals: Floats, layout: Layout, sender: int) -> float:
    """Return the time without a reply after which a sender sends again (RFC 6298)."""
    timeout = reals[LEAST_TIMEOUT_TICKS]
    if reals[layout.smooth_rtt_ticks + sender] >= 0:
        timeout = max(
            timeout, reals[layout.smooth_rtt_ticks + sender] + 4 * reals[layout.rtt_deviation_ticks + sender]
        )
    return float(np.floor(timeout * 2.0 ** min(ints[layout.backoff + sender], MAX_BACKOFF)))


@inner_without_allocation
def can_send(ints: Ints, reals: Floats, layout: Layout, sender: int) -> bool:
    """Return whether a sender's window and its data allow another packet."""
    number = ints[layout.next_number + sender]
    window = min(int(reals[layout.window + sender]), ints[LARGEST_WINDOW])
    has_data = (
        number < ints[layout.assigned + sender] or ints[layout.unassigned + ints[layout.flow + sender]] > 0
    )
    in_flight = number - ints[layout.expected_number + sender]
    if ints[layout.control + sender] == BBR:  # whose window does not count what repeated replies are for
        return bool(
            has_data and ints[layout.outstanding + sender] < window and in_flight < ints[LARGEST_WINDOW]
        )
    return bool(has_data and in_flight < window)


@inner_without_allocation
def send_allowed(ints: Ints, reals: Floats, layout: Layout, sender: int) -> None:
    """Send the packets that window, data and pace allow, and set the timer."""
    is_paced = ints[layout.control + sender] == BBR
    while can_send(ints, reals, layout, sender):
        if is_paced:
            if reals[layout.bbr_next_ticks + sender] > reals[NOW]:
                set_timer(ints, reals, layout, sender, reals[layout.bbr_next_ticks + sender])
                break
            bbr.record_packets(ints, reals, layout, sender, ints[layout.next_number + sender], 1)
        if ints[layout.next_number + sender] == ints[layout.expected_number + sender]:
            set_deadline(ints, reals, layout, sender)
        transmit(ints, reals, layout, sender, ints[layout.next_number + sender])
        ints[layout.next_number + sender] += 1
        ints[layout.outstanding + sender] += 1


@inner_without_allocation
def set_deadline(ints: Ints, reals: Floats, layout: Layout, sender: int) -> None:
    """Set the timeout of a sender with packets on their way, from now on."""
    reals[layout.deadline_ticks + sender] = reals[NOW] + timeout_ticks(ints, reals, layout, sender)
    set_timer(ints, reals, layout, sender, reals[layout.deadline_ticks + sender])


@inner_without_allocation
def process_reply(
    ints: Ints, reals: Floats, layout: Layout, sender: int, expected: int, is_marked: bool
) -> int:
    """Process a reply; return the packets that it acknowledges for the first time.

    expected  number of the packet that the receiver expects
    """
    before = ints[layout.expected_number + sender]
    newly = expected - before
    if newly > 0:
        outstanding = ints[layout.outstanding + sender]
        fresh = newly - min(newly - 1, ints[layout.counted + sender])
        ints[layout.counted + sender] = max(ints[layout.counted + sender] - newly + 1, 0)
        ints[layout.expected_number + sender] = expected
        ints[layout.next_number + sender] = max(ints[layout.next_number + sender], expected)
        if ints[layout.next_number + sender] == expected:
            ints[layout.counted + sender] = 0
        update_rtt(ints, reals, layout, sender, expected)
        ints[layout.outstanding + sender] = max(
            min(outstanding - fresh, ints[layout.next_number + sender] - expected), 0
        )
        ints[layout.delivered + sender] += fresh
        if ints[layout.control + sender] == DCTCP:
            follow_mark(ints, reals, layout, sender, expected, fresh, is_marked)
        advance_window(ints, reals, layout, sender, newly)
        if ints[layout.control + sender] == BBR:
            bbr.follow_reply(ints, reals, layout, sender, expected - 1, outstanding, fresh)
    elif newly == 0 and ints[layout.next_number + sender] > before:
        outstanding = ints[layout.outstanding + sender]
        ints[layout.outstanding + sender] = max(outstanding - 1, 0)
        ints[layout.delivered + sender] += 1
        ints[layout.counted + sender] += 1
        if ints[layout.control + sender] == DCTCP:
            follow_mark(ints, reals, layout, sender, expected, 1, is_marked)
        notice_duplicate(ints, reals, layout, sender)
        if ints[layout.control + sender] == BBR:
            bbr.follow_reply(ints, reals, layout, sender, expected - 1, outstanding, 1)
    return max(int(newly), 0)


@inner_without_allocation
def advance_window(ints: Ints, reals: Floats, layout: Layout, sender: int, newly: int) -> None:
    """Change the window for packets that are acknowledged, and set the timer (RFC 6582, 3.2)."""
    sets_timer = True
    if not ints[layout.is_recovering + sender]:
        ints[layout.duplicates + sender] = 0
        grow_window(ints, reals, layout, sender, newly)
    elif ints[layout.expected_number + sender] >= ints[layout.recovery_number + sender]:
        ints[layout.duplicates + sender] = ints[layout.is_recovering + sender] = 0
        if ints[layout.control + sender] != BBR:
            reals[layout.window + sender] = reals[layout.threshold + sender]
    else:  # the next packet is lost too
        sets_timer = not ints[layout.has_partial + sender]
        ints[layout.has_partial + sender] = 1
        ints[layout.duplicates + sender] = max(ints[layout.duplicates + sender] - newly + 1, 0)
        if ints[layout.control + sender] != BBR:
            reals[layout.window + sender] = max(reals[layout.window + sender] - newly + 1, 1.0)
        transmit(ints, reals, layout, sender, ints[layout.expected_number + sender])
    if ints[layout.next_number + sender] == ints[layout.expected_number + sender]:
        reals[layout.deadline_ticks + sender] = np.inf
    elif sets_timer:
        set_deadline(ints, reals, layout, sender)


@inner_without_allocation
def notice_duplicate(ints: Ints, reals: Floats, layout: Layout, sender: int) -> None:
    """Count a repeated reply; after some of them send the first packet again (RFC 6582, 3.2)."""
    ints[layout.duplicates + sender] += 1
    if ints[layout.is_recovering + sender]:
        if ints[layout.control + sender] != BBR:
            reals[layout.window + sender] += 1.0  # a packet has left the network
    elif (
        ints[layout.duplicates + sender] == ints[DUPLICATE_ACKS]
        and ints[layout.expected_number + sender] >= ints[layout.recovery_number + sender]
    ):
        controls.cut_window(ints, reals, layout, sender)
        if ints[layout.control + sender] == BBR:
            ints[layout.bbr_lost + sender] += 1
        else:
            reals[layout.window + sender] = reals[layout.threshold + sender] + ints[DUPLICATE_ACKS]
        ints[layout.recovery_number + sender] = ints[layout.next_number + sender]
        ints[layout.is_recovering + sender] = 1
        ints[layout.has_partial + sender] = 0
        transmit(ints, reals, layout, sender, ints[layout.expected_number + sender])
        set_deadline(ints, reals, layout, sender)


@inner_without_allocation
def grow_window(ints: Ints, reals: Floats, layout: Layout, sender: int, newly: int) -> None:
    """Grow the window: by a packet for each in slow start, and else as the control does."""
    control = ints[layout.control + sender]
    if control == BBR or (
        control == DCTCP and ints[layout.expected_number + sender] < ints[layout.dctcp_cut_number + sender]
    ):
        return
    if reals[layout.window + sender] < reals[layout.threshold + sender]:
        reals[layout.window + sender] += newly
    elif ints[IS_COUPLED]:
        reals[layout.window + sender] += coupled_growth(ints, reals, layout, sender, newly)
    else:
        controls.grow_window(ints, reals, layout, sender, newly)
    reals[layout.window + sender] = min(reals[layout.window + sender], float(ints[LARGEST_WINDOW]))


@inner_without_allocation
def coupled_growth(ints: Ints, reals: Floats, layout: Layout, sender: int, newly: int) -> float:
    """Return the growth of a subflow's window, which is coupled to those of the others (RFC 6356, 3)."""
    subflows = ints[SUBFLOWS]
    first = sender // layout.senders_stride // subflows * subflows
    total = largest = rates = 0.0
    for index in range(first, first + subflows):
        other = index * layout.senders_stride
        trip, window = reals[layout.smooth_rtt_ticks + other], reals[layout.window + other]
        if trip > 0:
            total += window
            largest = max(largest, window / (trip * trip))
            rates += window / trip
    window = reals[layout.window + sender]
    if rates == 0:
        return newly / float(window)
    return float(min(largest / (rates * rates) * newly, newly / window))


@inner_without_allocation
def update_rtt(ints: Ints, reals: Floats, layout: Layout, sender: int, expected: int) -> None:
    """Update the estimate of the round trip, by one packet at a time (RFC 6298)."""
    ints[layout.backoff + sender] = 0
    if 0 <= ints[layout.timed_number + sender] < expected:
        trip = reals[NOW] - reals[layout.timed_ticks + sender]
        ints[layout.timed_number + sender] = -1
        if reals[layout.smooth_rtt_ticks + sender] < 0:
            reals[layout.smooth_rtt_ticks + sender] = trip
            reals[layout.rtt_deviation_ticks + sender] = trip / 2
        else:
            error = abs(trip - reals[layout.smooth_rtt_ticks + sender])
            reals[layout.rtt_deviation_ticks + sender] += (
                error - reals[layout.rtt_deviation_ticks + sender]
            ) / 4
            reals[layout.smooth_rtt_ticks + sender] += (trip - reals[layout.smooth_rtt_ticks + sender]) / 8


@inner_without_allocation
def send_constant(ints: Ints, reals: Floats, layout: Layout, sender: int) -> None:
    """Send the next packet of UDP, and set the timer to the one after it."""
    flow = ints[layout.flow + sender]
    if ints[layout.unassigned + flow] > 0:
        number = ints[layout.next_number + sender]
        ints[layout.next_number + sender] += 1
        if ints[layout.unassigned + flow] > 1:
            set_timer(ints, reals, layout, sender, reals[NOW] + reals[layout.interval_ticks + sender])
        if transmit(ints, reals, layout, sender, number):
            ints[layout.lost + flow] += 1
            ints[layout.remaining + flow] -= 1
            if ints[layout.remaining + flow] == 0:
                set_timer(ints, reals, layout, sender, reals[NOW])


@inner_without_allocation
def expire_timer(ints: Ints, reals: Floats, layout: Layout, sender: int) -> bool:
    """Run the due action of a sender, and set its timer to the next one; return whether it has timed out."""
    is_timeout = reals[layout.deadline_ticks + sender] <= reals[NOW]
    if is_timeout:
        if ints[layout.is_recovering + sender] and ints[layout.control + sender] != BBR:
            # what repeated replies added to the window stands for packets that have left the network
            in_flight = ints[layout.next_number + sender] - ints[layout.expected_number + sender]
            reals[layout.window + sender] = min(reals[layout.threshold + sender], in_flight + 1.0)
        controls.time_out(ints, reals, layout, sender)
        ints[layout.recovery_number + sender] = ints[layout.assigned + sender]
        ints[layout.next_number + sender] = ints[layout.expected_number + sender]
        ints[layout.outstanding + sender] = 0
        ints[layout.duplicates + sender] = ints[layout.is_recovering + sender] = 0
        ints[layout.timed_number + sender] = -1
        ints[layout.backoff + sender] += 1
        reals[layout.deadline_ticks + sender] = np.inf  # until the pace lets the first packet go again
        ints[layout.timeouts + ints[layout.flow + sender]] += 1
    drop_timer(ints, reals, layout, sender)
    if ints[layout.control + sender] == UDP:
        send_constant(ints, reals, layout, sender)
        return False
    send_allowed(ints, reals, layout, sender)
    if reals[layout.deadline_ticks + sender] < np.inf:
        set_timer(ints, reals, layout, sender, reals[layout.deadline_ticks + sender])
    return bool(is_timeout)
