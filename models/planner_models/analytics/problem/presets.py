"""The presets of system `analytics` by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from planner_models.analytics.problem.generated_queries import cdn, latency_histogram, sensors
from planner_models.analytics.problem.generators import diurnal, small
from planner_models.analytics.problem.problem import Analytics

PRESETS: Final[Mapping[str, Callable[..., Analytics]]] = {
    "diurnal": diurnal,
    "cdn": cdn,
    "latency_histogram": latency_histogram,
    "sensors": sensors,
    "small": small,
}
