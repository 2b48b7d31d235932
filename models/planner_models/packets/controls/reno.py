"""Reno: one packet more a round trip, half the window after a loss (RFC 5681, 3.1)."""

from __future__ import annotations

from typing import Final

from planner.compiled import inner_without_allocation
from planner_models.packets.state import Floats, Ints, Layout, SenderLayout

LEAST_WINDOW: Final = 2.0  # packets, after a loss (RFC 5681)


@inner_without_allocation
def grow_window(reals: Floats, layout: SenderLayout, sender: int, fresh: int) -> None:
    """Grow the window in congestion avoidance by packets that have arrived (RFC 5681, equation 3)."""
    reals[layout.window + sender] += fresh / reals[layout.window + sender]


@inner_without_allocation
def cut_window(reals: Floats, layout: SenderLayout, sender: int) -> None:
    """Halve the window after a loss (RFC 5681, equation 4)."""
    reals[layout.threshold + sender] = max(reals[layout.window + sender] / 2, LEAST_WINDOW)
    reals[layout.window + sender] = reals[layout.threshold + sender]


@inner_without_allocation
def follow_signal(
    ints: Ints, reals: Floats, layout: Layout, sender: int, circuit: int, factor: float
) -> None:
    """Multiply the window as replies begin or cease to signal a circuit (reTCP, Mukerjee 2018, 2.4.4)."""
    reals[layout.window + sender] = max(reals[layout.window + sender] * factor, 1.0)
    ints[layout.circuit_signalled + sender] = circuit
