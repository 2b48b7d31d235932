"""BBR, version 1: packets are paced by a model of the path, its rate and its round trip.

After Cardwell et al., BBR congestion control (draft-cardwell-iccrg-bbr-congestion-control-00, 2017), of
which the functions name sections, with delivery rates after draft-cheng-iccrg-delivery-rate-estimation-00.
Readings: what a host hands to its link at once (`batch`) is the send quantum; the phase in which a flow
begins to probe for bandwidth is drawn from its number; no sample counts as limited by its application.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from planner.compiled import inner_without_allocation
from planner_models.packets.state import (
    BATCH,
    BBR_ROUNDS,
    NOW,
    RTT_WINDOW_TICKS,
    TICKS_PER_US,
    Floats,
    Ints,
    SenderLayout,
)

STARTUP, DRAIN, PROBE_RATE, PROBE_RTT = range(4)
HIGH_GAIN: Final = 2 / np.log(2)  # of pacing and window in startup (4.3.2.1)
WINDOW_GAIN: Final = 2.0  # while it probes for bandwidth (4.3.4.2)
PHASES: Final = 8  # of gains 1.25, 0.75, and six times 1 (4.3.4.2)
LEAST_WINDOW: Final = 4.0  # packets (4.2.3.2)
FULL_GROWTH: Final = 1.25  # of the rate in a round, below which the pipe is full (4.3.2.2)
FULL_ROUNDS: Final = 3
PROBE_SHARE: Final = 1 / 50  # of the window of round trips: 200 ms of 10 s (4.3.5)
QUANTA: Final = 3  # beyond the product of rate and round trip (4.2.3.2)
FIRST_RTT_TICKS: Final = 1_000 * TICKS_PER_US  # taken for the round trip before the first one (4.2.1)


@inner_without_allocation
def record_place(ints: Ints, layout: SenderLayout, sender: int, number: int) -> int:
    """Return the place of the record of a transmission."""
    return int(ints[layout.record_first + sender] + number % ints[layout.record_count + sender])


@inner_without_allocation
def record_packets(
    ints: Ints, reals: Floats, layout: SenderLayout, flow: int, number: int, count: int
) -> None:
    """Record the sender's state as it sends packets, and put off the next ones to its pace (4.2.1)."""
    now = reals[NOW]
    if ints[layout.outstanding + flow] == 0:
        reals[layout.bbr_first_sent_ticks + flow] = reals[layout.bbr_delivered_ticks + flow] = now
    for packet in range(number, number + count):
        slot = record_place(ints, layout, flow, packet)
        if ints[layout.record_number + slot] >= ints[layout.expected_number + flow]:
            continue  # of a packet that is still on its way; this one will give no sample
        ints[layout.record_number + slot] = packet
        ints[layout.record_delivered + slot] = ints[layout.delivered + flow]
        reals[layout.record_delivered_ticks + slot] = reals[layout.bbr_delivered_ticks + flow]
        reals[layout.record_first_sent_ticks + slot] = reals[layout.bbr_first_sent_ticks + flow]
        reals[layout.record_sent_ticks + slot] = now
    if reals[layout.bbr_pace + flow] == 0:
        trip = reals[layout.smooth_rtt_ticks + flow]
        reals[layout.bbr_pace + flow] = (
            HIGH_GAIN * reals[layout.window + flow] / (trip if trip > 0 else FIRST_RTT_TICKS)
        )
    wait = np.floor(count / reals[layout.bbr_pace + flow])
    reals[layout.bbr_next_ticks + flow] = max(reals[layout.bbr_next_ticks + flow], now) + wait


@inner_without_allocation
def in_flight(ints: Ints, reals: Floats, layout: SenderLayout, flow: int, gain: float) -> float:
    """Return the packets in flight that a gain aims at (4.2.3.2: BBRInflight)."""
    product = reals[layout.bbr_rate + flow] * reals[layout.bbr_rtt_ticks + flow]
    if product == 0 or not np.isfinite(product):
        return 10.0  # the first window
    return float(gain * product + QUANTA * ints[BATCH])


@inner_without_allocation
def pacing_gain(ints: Ints, layout: SenderLayout, flow: int) -> float:
    """Return the gain of the pacing rate (4.3)."""
    mode = ints[layout.bbr_mode + flow]
    if mode == STARTUP:
        return float(HIGH_GAIN)
    if mode == DRAIN:
        return float(1 / HIGH_GAIN)
    phase = ints[layout.bbr_phase + flow]
    if mode == PROBE_RTT or phase > 1:
        return 1.0
    return 1.25 if phase == 0 else 0.75


@inner_without_allocation
def rate_position(layout: SenderLayout, flow: int, index: int) -> int:
    """Return the position of one of the largest rates of the last rounds of a sender."""
    return layout.bbr_rates + index * layout.bbr_step + flow


@inner_without_allocation
def update_rate(ints: Ints, reals: Floats, layout: SenderLayout, flow: int, slot: int) -> bool:
    """Update the rate, the largest of ten rounds, by one sample; return whether a round begins (4.1.1)."""
    now, delivered = reals[NOW], ints[layout.delivered + flow]
    begins = ints[layout.record_delivered + slot] >= ints[layout.bbr_next_round + flow]
    if begins:
        ints[layout.bbr_next_round + flow] = delivered
        ints[layout.bbr_round + flow] += 1
        reals[rate_position(layout, flow, ints[layout.bbr_round + flow] % BBR_ROUNDS)] = 0.0
        ints[layout.bbr_conserves + flow] = 0
    sent = reals[layout.record_sent_ticks + slot]
    elapsed = max(
        sent - reals[layout.record_first_sent_ticks + slot], now - reals[layout.record_delivered_ticks + slot]
    )
    reals[layout.bbr_first_sent_ticks + flow] = sent
    if elapsed > 0:
        sample = (delivered - ints[layout.record_delivered + slot]) / elapsed
        newest = rate_position(layout, flow, ints[layout.bbr_round + flow] % BBR_ROUNDS)
        reals[newest] = max(reals[newest], sample)
    largest = 0.0
    for index in range(BBR_ROUNDS):
        largest = max(largest, reals[rate_position(layout, flow, index)])
    reals[layout.bbr_rate + flow] = largest
    return bool(begins)


@inner_without_allocation
def advance_phase(ints: Ints, reals: Floats, layout: SenderLayout, flow: int) -> None:
    """Begin the next phase of probing for bandwidth (4.3.4.3)."""
    reals[layout.bbr_phase_ticks + flow] = reals[NOW]
    ints[layout.bbr_phase + flow] = (ints[layout.bbr_phase + flow] + 1) % PHASES


@inner_without_allocation
def begin_probing(ints: Ints, reals: Floats, layout: SenderLayout, flow: int) -> None:
    """Begin to probe for bandwidth, in any phase but the second (4.3.4.3)."""
    ints[layout.bbr_mode + flow] = PROBE_RATE
    ints[layout.bbr_phase + flow] = PHASES - 1 - flow % (PHASES - 1)
    advance_phase(ints, reals, layout, flow)


@inner_without_allocation
def check_phase(ints: Ints, reals: Floats, layout: SenderLayout, flow: int, before: int) -> None:
    """End a phase of probing when it has lasted, and filled or drained the queue (4.3.4.3).

    before  packets in flight before this reply
    """
    if ints[layout.bbr_mode + flow] != PROBE_RATE:
        return
    lasted = reals[NOW] - reals[layout.bbr_phase_ticks + flow] > reals[layout.bbr_rtt_ticks + flow]
    gain = pacing_gain(ints, layout, flow)
    if gain > 1:
        lasted = lasted and (
            ints[layout.bbr_lost + flow] > 0 or before >= in_flight(ints, reals, layout, flow, gain)
        )
    elif gain < 1:
        lasted = lasted or before <= in_flight(ints, reals, layout, flow, 1.0)
    if lasted:
        advance_phase(ints, reals, layout, flow)


@inner_without_allocation
def check_full(ints: Ints, reals: Floats, layout: SenderLayout, flow: int, begins: bool) -> None:
    """End startup when the rate has not increased for three rounds, and drain the queue (4.3.2.2, 4.3.3)."""
    if begins and not ints[layout.bbr_is_full + flow]:
        if reals[layout.bbr_rate + flow] >= reals[layout.bbr_full_rate + flow] * FULL_GROWTH:
            reals[layout.bbr_full_rate + flow] = reals[layout.bbr_rate + flow]
            ints[layout.bbr_full_rounds + flow] = 0
        else:
            ints[layout.bbr_full_rounds + flow] += 1
            if ints[layout.bbr_full_rounds + flow] >= FULL_ROUNDS:
                ints[layout.bbr_is_full + flow] = 1
    if ints[layout.bbr_mode + flow] == STARTUP and ints[layout.bbr_is_full + flow]:
        ints[layout.bbr_mode + flow] = DRAIN
    flight = ints[layout.outstanding + flow]
    if ints[layout.bbr_mode + flow] == DRAIN and flight <= in_flight(ints, reals, layout, flow, 1.0):
        begin_probing(ints, reals, layout, flow)


@inner_without_allocation
def check_rtt(ints: Ints, reals: Floats, layout: SenderLayout, flow: int, trip: float) -> None:
    """Keep the least round trip; where it is old, send little for a while to see it again (4.1.2, 4.3.5)."""
    now = reals[NOW]
    is_old = now > reals[layout.bbr_rtt_since_ticks + flow] + reals[RTT_WINDOW_TICKS]
    if trip >= 0 and (trip <= reals[layout.bbr_rtt_ticks + flow] or is_old):
        reals[layout.bbr_rtt_ticks + flow] = trip
        reals[layout.bbr_rtt_since_ticks + flow] = now
    if ints[layout.bbr_mode + flow] != PROBE_RTT:
        if not is_old:
            return
        save_window(ints, reals, layout, flow)
        ints[layout.bbr_mode + flow] = PROBE_RTT
        reals[layout.bbr_probe_end_ticks + flow] = np.nan
    if np.isnan(reals[layout.bbr_probe_end_ticks + flow]):
        if ints[layout.outstanding + flow] <= LEAST_WINDOW:
            reals[layout.bbr_probe_end_ticks + flow] = now + np.floor(PROBE_SHARE * reals[RTT_WINDOW_TICKS])
            ints[layout.bbr_probe_round + flow] = ints[layout.bbr_round + flow]
            ints[layout.bbr_next_round + flow] = ints[layout.delivered + flow]
        return
    has_passed = ints[layout.bbr_round + flow] > ints[layout.bbr_probe_round + flow]
    if has_passed and now > reals[layout.bbr_probe_end_ticks + flow]:
        reals[layout.bbr_rtt_since_ticks + flow] = now
        reals[layout.window + flow] = max(reals[layout.window + flow], reals[layout.bbr_before + flow])
        if ints[layout.bbr_is_full + flow]:
            begin_probing(ints, reals, layout, flow)
        else:
            ints[layout.bbr_mode + flow] = STARTUP


@inner_without_allocation
def save_window(ints: Ints, reals: Floats, layout: SenderLayout, flow: int) -> None:
    """Keep the window of before a recovery, or before the round trip is probed (4.2.3.3: BBRSaveCwnd)."""
    window = reals[layout.window + flow]
    if ints[layout.bbr_recovers + flow] or ints[layout.bbr_mode + flow] == PROBE_RTT:
        window = max(window, reals[layout.bbr_before + flow])
    reals[layout.bbr_before + flow] = window


@inner_without_allocation
def cut_window(ints: Ints, reals: Floats, layout: SenderLayout, flow: int) -> None:
    """Send one packet for each that arrives, for a round after a loss (4.2.3.4)."""
    save_window(ints, reals, layout, flow)
    ints[layout.bbr_recovers + flow] = ints[layout.bbr_conserves + flow] = 1
    ints[layout.bbr_next_round + flow] = ints[layout.delivered + flow]
    reals[layout.window + flow] = ints[layout.outstanding + flow] + 1.0


@inner_without_allocation
def set_window(ints: Ints, reals: Floats, layout: SenderLayout, flow: int, newly: int) -> None:
    """Set the pace and the window from the model (4.2.1, 4.2.3)."""
    pace = pacing_gain(ints, layout, flow) * reals[layout.bbr_rate + flow]
    if pace > 0 and (ints[layout.bbr_is_full + flow] or pace > reals[layout.bbr_pace + flow]):
        reals[layout.bbr_pace + flow] = pace
    mode, window = ints[layout.bbr_mode + flow], reals[layout.window + flow]
    gain = 1.0 if mode == PROBE_RTT else WINDOW_GAIN if mode == PROBE_RATE else HIGH_GAIN
    target = in_flight(ints, reals, layout, flow, gain)
    if ints[layout.bbr_recovers + flow]:
        has_recovered = ints[layout.expected_number + flow] >= ints[layout.recovery_number + flow]
        if has_recovered and ints[layout.to_retransmit + flow] == 0:
            ints[layout.bbr_recovers + flow] = ints[layout.bbr_conserves + flow] = 0
            window = max(window, reals[layout.bbr_before + flow])
        else:
            window = max(window - ints[layout.bbr_lost + flow], 1.0)
    if ints[layout.bbr_conserves + flow]:
        window = max(window, float(ints[layout.outstanding + flow] + newly))
    else:
        if ints[layout.bbr_is_full + flow]:
            window = min(window + newly, target)
        elif window < target or ints[layout.delivered + flow] < 10:
            window += newly
        window = max(window, LEAST_WINDOW)
    reals[layout.window + flow] = min(window, LEAST_WINDOW) if mode == PROBE_RTT else window
    ints[layout.bbr_lost + flow] = 0


@inner_without_allocation
def follow_reply(
    ints: Ints, reals: Floats, layout: SenderLayout, flow: int, number: int, before: int, newly: int
) -> None:
    """Update the model by a reply to a transmission, then pace and window (4.1, 4.2).

    before  packets in flight before it
    newly   packets that it shows to be delivered
    """
    if newly > 0:
        reals[layout.bbr_delivered_ticks + flow] = reals[NOW]
    slot, begins, trip = record_place(ints, layout, flow, number), False, -1.0
    if newly > 0 and ints[layout.record_number + slot] == number:
        ints[layout.record_number + slot] = -1
        trip = reals[NOW] - reals[layout.record_sent_ticks + slot]
        begins = update_rate(ints, reals, layout, flow, slot)
    check_phase(ints, reals, layout, flow, before)
    check_full(ints, reals, layout, flow, begins)
    check_rtt(ints, reals, layout, flow, trip)
    set_window(ints, reals, layout, flow, newly)
