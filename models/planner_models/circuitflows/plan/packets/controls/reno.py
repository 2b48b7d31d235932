"""Reno: one packet more a round trip, half the window after a loss (RFC 5681, 3.1)."""

from __future__ import annotations

from typing import Final

from planner.compiled import inner
from planner_models.circuitflows.plan.packets.state import Floats, Ints, Layout

LEAST_WINDOW: Final = 2.0  # packets, after a loss (RFC 5681)


@inner
def grow_window(reals: Floats, at: Layout, sender: int, fresh: int) -> None:
    """Grow the window in congestion avoidance by packets that have arrived (RFC 5681, equation 3)."""
    reals[at.window + sender] += fresh / reals[at.window + sender]


@inner
def cut_window(reals: Floats, at: Layout, sender: int) -> None:
    """Halve the window after a loss (RFC 5681, equation 4)."""
    reals[at.threshold + sender] = max(reals[at.window + sender] / 2, LEAST_WINDOW)
    reals[at.window + sender] = reals[at.threshold + sender]


@inner
def follow_signal(ints: Ints, reals: Floats, at: Layout, sender: int, circuit: int, factor: float) -> None:
    """Multiply the window as replies begin or cease to signal a circuit (reTCP, Mukerjee 2018, 2.4.4)."""
    reals[at.window + sender] = max(reals[at.window + sender] * factor, 1.0)
    ints[at.circuit_signalled + sender] = circuit
