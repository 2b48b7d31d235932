"""Metrics: the figures by which plans are measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from planner.formatting import heading


@dataclass(frozen=True, kw_only=True)
class Metric:
    """One figure of a plan; its value is None where it has no meaning."""

    name: str
    unit: str
    better: Literal["more", "less"]
    about: str
    source: str = ""

    @property
    def label(self) -> str:
        """The name as a label without its unit, such as "Max utilization"."""
        words = heading(self.name, self.unit)
        return words[0].upper() + words[1:]


SIGNALLING_METRICS: Final = (
    Metric(
        name="messages",
        unit="messages",
        better="less",
        about="messages between control planes for this decision",
    ),
    Metric(
        name="signalling_bytes",
        unit="bytes",
        better="less",
        about="content of these messages, without headers",
    ),
)
"""Metrics of every system with designs that count their signalling."""
