"""Switches of bitrates in the middle of sessions, by each client itself.

The thesis takes it for given that clients adapt "through some black-box assessment of delivery quality", and
that they switch rarely (Mukerjee 2018, 4.8). Here a client looks at each period of its session: where less
than a share of its stream came, it requests the highest bitrate that it accepts and that would have come;
where all of it came, the next higher bitrate, up to the one that it requested at first. It switches at most
once in a period.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pandas as pd

from planner_models.livevideo.plan.plan import SLACK

SWITCH_BELOW: Final = 0.95
"""Share of a stream below which a client requests a lower bitrate; the thesis names none."""

COLUMNS: Final = ("time_s", "group", "channel", "from_kbps", "to_kbps", "received_share", "viewers")


@dataclass(frozen=True, kw_only=True)
class SwitchRule:
    """Rule by which clients switch their bitrate.

    period_s  time over which a client assesses its stream, and between two switches
    below     share of the stream below which it requests a lower bitrate
    """

    period_s: float
    below: float = SWITCH_BELOW

    def choose(self, rates: Sequence[float], current: int, received_share: float) -> int:
        """Return the index of the bitrate to request, of those from the highest down; `current` to stay.

        Downwards it is the highest that is at most what came, else the lowest; upwards the next one.
        """
        if received_share < self.below:
            lower = range(current + 1, len(rates))
            came = received_share * rates[current] * (1 + SLACK)
            return next((index for index in lower if rates[index] <= came), len(rates) - 1)
        return current - 1 if current > 0 and received_share >= 1 - SLACK else current


@dataclass(frozen=True, kw_only=True)
class Switch:
    """One switch of a client: when, between which bitrates, and the share of the stream before it."""

    time_s: float
    group: str
    channel: str
    from_kbps: float
    to_kbps: float
    received_share: float
    viewers: float


def tabulate_switches(switches: list[Switch]) -> pd.DataFrame:
    """Return one row for each switch, with COLUMNS."""
    return pd.DataFrame([vars(switch) for switch in switches], columns=list(COLUMNS))
