"""Timers of senders: for a timeout, a tail loss probe, or an early retransmission."""

from __future__ import annotations

from typing import Final

import numpy as np

from planner.compiled import inner_without_allocation
from planner_models.packets.events import drop_timer, place_timer, set_timer
from planner_models.packets.losses import DUPLICATES, notice_losses, time_out
from planner_models.packets.senders import (
    NO_PROBE,
    PROBE_DUE,
    active_sender,
    is_open,
    may_send,
    owner,
    timeout_ticks,
)
from planner_models.packets.state import LEAST_TIMEOUT_TICKS, NOW, Floats, Ints, Layout

PROBE_SHARE: Final = 10 / 200  # shortest time to a tail loss probe, in shortest timeouts (Linux 4.4)
EARLY_SHARE: Final = 2 / 200  # shortest delay of an early retransmission, in shortest timeouts (Linux 4.4)
TIMEOUT, PROBE, EARLY = 0, 1, 2
"""Purposes of a flow's timer: a timeout, a tail loss probe, or an early retransmission."""


@inner_without_allocation
def arm_timer(ints: Ints, reals: Floats, layout: Layout, sender: int) -> None:
    """Set the timer of a flow with packets outstanding to the first event.

    That is the timeout; a tail loss probe after two round trips, where nothing is lost and nothing more can
    be sent; or an early retransmission a quarter of a round trip after a loss that too few packets follow
    to show.
    """
    min_timeout, rtt = reals[LEAST_TIMEOUT_TICKS], max(reals[layout.smooth_rtt_ticks + sender], 0.0)
    ticks, kind = reals[layout.timeout_ticks + sender], TIMEOUT
    is_active = sender == active_sender(ints, reals, layout, owner(layout, sender))
    waits = not is_active or not may_send(ints, reals, layout, sender)
    few = ints[layout.outstanding + sender] + ints[layout.later_arrivals + sender] <= DUPLICATES
    few = few and ints[layout.reordering + sender] == DUPLICATES
    may_probe = ints[layout.probe_code + sender] == NO_PROBE and ints[layout.backoff + sender] == 0
    if waits and is_active and may_probe and is_open(ints, layout, sender):
        probe = max(2 * rtt, PROBE_SHARE * min_timeout)
        if ints[layout.outstanding + sender] == 1:
            probe = max(probe, 1.5 * rtt + min_timeout)
        ticks, kind = min(ticks, np.floor(reals[NOW] + probe)), PROBE
    elif waits and few and ints[layout.missing + sender] > 0 and ints[layout.later_arrivals + sender] > 0:
        ticks, kind = min(ticks, np.floor(reals[NOW] + max(rtt / 4, EARLY_SHARE * min_timeout))), EARLY
    reals[layout.deadline_ticks + sender] = ticks
    ints[layout.timer + sender] = kind
    set_timer(ints, reals, layout, sender, ticks)


@inner_without_allocation
def expire_timer(ints: Ints, reals: Floats, layout: Layout, sender: int) -> None:
    """Run the action of a flow's timer; put it off if it goes off early."""
    flow = owner(layout, sender)
    if not np.isnan(reals[layout.end_ticks + flow]) or ints[layout.outstanding + sender] == 0:
        drop_timer(ints, reals, layout, sender)
    elif reals[layout.deadline_ticks + sender] > reals[NOW]:
        reals[layout.timer_ticks + sender] = reals[layout.deadline_ticks + sender]
        place_timer(ints, reals, layout, ints[layout.timer_place + sender], sender)
    else:
        drop_timer(ints, reals, layout, sender)
        if ints[layout.timer + sender] == PROBE and sender != active_sender(ints, reals, layout, flow):
            ticks = max(reals[layout.timeout_ticks + sender], reals[NOW])
            reals[layout.deadline_ticks + sender] = ticks
            ints[layout.timer + sender] = TIMEOUT
            set_timer(ints, reals, layout, sender, ticks)
        elif ints[layout.timer + sender] == PROBE:
            ints[layout.probe_code + sender] = PROBE_DUE
            if reals[layout.timeout_ticks + sender] <= reals[NOW]:
                reals[layout.timeout_ticks + sender] = reals[NOW] + timeout_ticks(ints, reals, layout, sender)
        elif ints[layout.timer + sender] == EARLY:
            notice_losses(ints, reals, layout, sender)
            arm_timer(ints, reals, layout, sender)
        else:
            time_out(ints, reals, layout, sender)
