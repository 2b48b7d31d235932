"""Metrics in words: which way is better, and whether values differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from planner.formatting import factor_of

if TYPE_CHECKING:
    from planner.contract.metrics import Metric

DIRECTION_SIGNS: Final = {"more": "↑", "less": "↓", "neither": ""}
"""Sign of the better direction."""


def better(metric: Metric, unit: str | None = None) -> str:
    """Return the better direction and the unit, the metric's own or that of the values: `↓ ms`."""
    return f"{DIRECTION_SIGNS[metric.better]} {metric.unit if unit is None else unit}".strip()


def differ(values: Sequence[float | None]) -> bool:
    """Return whether known values differ by more than rounding."""
    present = [value for value in values if value is not None]
    return len(present) > 1 and max(present) - min(present) > 1e-9 * max(abs(max(present)), abs(min(present)))


def chart_scale(metric: Metric, values: Sequence[float | None]) -> tuple[str, float]:
    """Return the unit that a chart shows values of a metric in, and the factor to it: shares in percent."""
    return factor_of(metric.name, values, metric.unit)
