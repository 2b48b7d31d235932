"""CUBIC: the window is a cubic function of the time since the last loss (RFC 9438).

Times are seconds and windows packets, as in the RFC, of whose sections the functions name the equations. The
window is also the amount in flight that a loss reduces (4.6 lets it be, of senders that use what they may).
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from planner.compiled import inner_without_allocation
from planner_models.packets.controls.reno import LEAST_WINDOW
from planner_models.packets.state import NOW, TICKS_PER_US, Floats, SenderLayout

GROWTH: Final = 0.4  # C, packets/s^3 (RFC 9438, 5)
DECREASE: Final = 0.7  # beta_cubic: of the window, what a loss leaves (RFC 9438, 4.6)
RENO_GROWTH: Final = 3 * (1 - DECREASE) / (1 + DECREASE)  # alpha_cubic (RFC 9438, 4.3)
MOST_TARGET: Final = 1.5  # of the window, which the target of a round trip may be at most (RFC 9438, 4.2)
TICKS_PER_S: Final = TICKS_PER_US * 1e6


@inner_without_allocation
def cubic_window(reals: Floats, layout: SenderLayout, sender: int, seconds: float) -> float:
    """Return W_cubic(t), packets, t seconds after congestion avoidance began (RFC 9438, figure 1)."""
    offset = seconds - reals[layout.cubic_k_s + sender]
    return float(GROWTH * offset * offset * offset + reals[layout.cubic_most + sender])


@inner_without_allocation
def begin_epoch(reals: Floats, layout: SenderLayout, sender: int) -> None:
    """Begin congestion avoidance: the time K until the window is restored (RFC 9438, figure 2).

    Without a loss that was noticed in time, as after a timeout, K is 0 and W_max the window (4.8).
    """
    window = reals[layout.window + sender]
    reals[layout.cubic_epoch_ticks + sender] = reals[NOW]
    reals[layout.cubic_reno + sender] = window
    reals[layout.cubic_most + sender] = max(reals[layout.cubic_most + sender], window)
    lost = (reals[layout.cubic_most + sender] - window) / GROWTH
    reals[layout.cubic_k_s + sender] = math.pow(lost, 1 / 3)  # np.cbrt has other bits where it is compiled


@inner_without_allocation
def grow_window(reals: Floats, layout: SenderLayout, sender: int, fresh: int) -> None:
    """Grow the window by packets that have arrived: as Reno, or towards the cubic (RFC 9438, 4.2-4.5)."""
    if np.isnan(reals[layout.cubic_epoch_ticks + sender]):
        begin_epoch(reals, layout, sender)
    window = reals[layout.window + sender]
    share = RENO_GROWTH if reals[layout.cubic_reno + sender] < reals[layout.cubic_before + sender] else 1.0
    reals[layout.cubic_reno + sender] += share * fresh / window
    seconds = (reals[NOW] - reals[layout.cubic_epoch_ticks + sender]) / TICKS_PER_S
    if cubic_window(reals, layout, sender, seconds) < reals[layout.cubic_reno + sender]:
        reals[layout.window + sender] = max(window, reals[layout.cubic_reno + sender])
    else:
        trip = max(reals[layout.smooth_rtt_ticks + sender], 0.0) / TICKS_PER_S
        target = cubic_window(reals, layout, sender, seconds + trip)
        target = min(max(target, window), MOST_TARGET * window)
        reals[layout.window + sender] += fresh * (target - window) / window


@inner_without_allocation
def cut_window(reals: Floats, layout: SenderLayout, sender: int) -> None:
    """Reduce the window after a loss, and store the old one (RFC 9438, 4.6); faster convergence (4.7)."""
    window = reals[layout.window + sender]
    reals[layout.cubic_undo_most + sender] = reals[layout.cubic_most + sender]
    reals[layout.cubic_undo_k_s + sender] = reals[layout.cubic_k_s + sender]
    reals[layout.cubic_undo_epoch_ticks + sender] = reals[layout.cubic_epoch_ticks + sender]
    reals[layout.cubic_undo_reno + sender] = reals[layout.cubic_reno + sender]
    reals[layout.cubic_undo_before + sender] = reals[layout.cubic_before + sender]
    is_lower = window < reals[layout.cubic_most + sender]
    reals[layout.cubic_most + sender] = window * (1 + DECREASE) / 2 if is_lower else window
    reals[layout.cubic_before + sender] = window
    reals[layout.cubic_epoch_ticks + sender] = np.nan
    reals[layout.threshold + sender] = max(window * DECREASE, LEAST_WINDOW)
    reals[layout.window + sender] = reals[layout.threshold + sender]


@inner_without_allocation
def forget_most(reals: Floats, layout: SenderLayout, sender: int) -> None:
    """Forget the largest window after a timeout: the next congestion avoidance begins with K = 0 (4.8)."""
    reals[layout.cubic_most + sender] = 0.0


@inner_without_allocation
def undo_cut(reals: Floats, layout: SenderLayout, sender: int) -> None:
    """Take the last reduction back, in which nothing was lost (RFC 9438, 4.9)."""
    reals[layout.cubic_most + sender] = reals[layout.cubic_undo_most + sender]
    reals[layout.cubic_k_s + sender] = reals[layout.cubic_undo_k_s + sender]
    reals[layout.cubic_epoch_ticks + sender] = reals[layout.cubic_undo_epoch_ticks + sender]
    reals[layout.cubic_reno + sender] = reals[layout.cubic_undo_reno + sender]
    reals[layout.cubic_before + sender] = reals[layout.cubic_undo_before + sender]
