"""Timers of senders: for a timeout, a tail loss probe, or an early retransmission."""

from __future__ import annotations

from typing import Final

import numpy as np

from planner.compiled import inner
from planner_models.circuitflows.plan.packets.events import drop_timer, place_timer, set_timer
from planner_models.circuitflows.plan.packets.losses import DUPLICATES, notice_losses, time_out
from planner_models.circuitflows.plan.packets.senders import (
    NO_PROBE,
    PROBE_DUE,
    active_sender,
    is_open,
    may_send,
    owner,
    timeout_ticks,
)
from planner_models.circuitflows.plan.packets.state import LEAST_TIMEOUT_TICKS, NOW, Floats, Ints, Layout

PROBE_SHARE: Final = 10 / 200  # shortest time to a tail loss probe, in shortest timeouts (Linux 4.4)
EARLY_SHARE: Final = 2 / 200  # shortest delay of an early retransmission, in shortest timeouts (Linux 4.4)
TIMEOUT, PROBE, EARLY = 0, 1, 2
"""Purposes of a flow's timer: a timeout, a tail loss probe, or an early retransmission."""


@inner
def arm_timer(ints: Ints, reals: Floats, at: Layout, sender: int) -> None:
    """Set the timer of a flow with packets outstanding to what comes first.

    That is the timeout; a tail loss probe after two round trips, where nothing is lost and nothing more can
    be sent; or an early retransmission a quarter of a round trip after a loss that too few packets follow
    to show.
    """
    least, rtt = reals[LEAST_TIMEOUT_TICKS], max(reals[at.smooth_rtt_ticks + sender], 0.0)
    ticks, kind = reals[at.timeout_ticks + sender], TIMEOUT
    is_active = sender == active_sender(ints, reals, at, owner(at, sender))
    waits = not is_active or not may_send(ints, reals, at, sender)
    few = ints[at.outstanding + sender] + ints[at.later_arrivals + sender] <= DUPLICATES
    few = few and ints[at.reordering + sender] == DUPLICATES
    may_probe = ints[at.probe_code + sender] == NO_PROBE and ints[at.backoff + sender] == 0
    if waits and is_active and may_probe and is_open(ints, at, sender):
        probe = max(2 * rtt, PROBE_SHARE * least)
        if ints[at.outstanding + sender] == 1:
            probe = max(probe, 1.5 * rtt + least)
        ticks, kind = min(ticks, np.floor(reals[NOW] + probe)), PROBE
    elif waits and few and ints[at.missing + sender] > 0 and ints[at.later_arrivals + sender] > 0:
        ticks, kind = min(ticks, np.floor(reals[NOW] + max(rtt / 4, EARLY_SHARE * least))), EARLY
    reals[at.deadline_ticks + sender] = ticks
    ints[at.timer + sender] = kind
    set_timer(ints, reals, at, sender, ticks)


@inner
def expire_timer(ints: Ints, reals: Floats, at: Layout, sender: int) -> None:
    """Do what a flow's timer is for; put it off where it goes off early."""
    flow = owner(at, sender)
    if not np.isnan(reals[at.end_ticks + flow]) or ints[at.outstanding + sender] == 0:
        drop_timer(ints, reals, at, sender)
    elif reals[at.deadline_ticks + sender] > reals[NOW]:
        reals[at.timer_ticks + sender] = reals[at.deadline_ticks + sender]
        place_timer(ints, reals, at, ints[at.timer_place + sender], sender)
    else:
        drop_timer(ints, reals, at, sender)
        if ints[at.timer + sender] == PROBE and sender != active_sender(ints, reals, at, flow):
            ticks = max(reals[at.timeout_ticks + sender], reals[NOW])
            reals[at.deadline_ticks + sender] = ticks
            ints[at.timer + sender] = TIMEOUT
            set_timer(ints, reals, at, sender, ticks)
        elif ints[at.timer + sender] == PROBE:
            ints[at.probe_code + sender] = PROBE_DUE
            if reals[at.timeout_ticks + sender] <= reals[NOW]:
                reals[at.timeout_ticks + sender] = reals[NOW] + timeout_ticks(ints, reals, at, sender)
        elif ints[at.timer + sender] == EARLY:
            notice_losses(ints, reals, at, sender)
            arm_timer(ints, reals, at, sender)
        else:
            time_out(ints, reals, at, sender)
