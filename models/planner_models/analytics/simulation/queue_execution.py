"""Sites that generate data and send it over queues, in time, at the levels that a controller sets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np
import pandas as pd

from planner.arrays import Ints
from planner.contract.design import Decision
from planner_models.analytics.plan.answers import find_loads
from planner_models.analytics.plan.plan import Levels
from planner_models.analytics.problem.generators import draw_variation
from planner_models.analytics.problem.problem import Analytics
from planner_models.analytics.problem.windows import take_intervals

MOST_DRAINED: Final = 0.5
"""Part of an uplink's capacity that a controller sets aside for data that waits."""


class Applied(NamedTuple):
    """Levels that take effect, and the decision that they are of.

    levels  (S, Q), or (K, S, Q) for each interval
    """

    levels: Ints
    decision: Decision[Levels]


def vary(
    problem: Analytics, *, bandwidth_variation: float, volume_variation: float, rng: np.random.Generator
) -> Analytics:
    """Return the problem as it turns out: bandwidth and volumes times factors of mean 1."""
    truth = problem
    if bandwidth_variation > 0:
        links = len(problem.link_names)
        factor = draw_variation(rng, problem.length_s, links, bandwidth_variation)
        truth = truth.with_capacity(truth.capacity_mbps * factor)
    if volume_variation > 0:
        factor = draw_variation(rng, problem.length_s, len(problem.site_names), volume_variation)
        interval, site, _ = problem.volume_places
        site_factor = factor[interval, site]
        volume = problem.volume
        truth = truth.with_volume(
            records=volume["records"] * site_factor, cells=volume["cells"] * site_factor
        )
    return truth


class QueueExecution:
    """Sites and uplinks from time 0, the start of the first interval.

    An interval has the levels that are in force when it starts, after all events of that instant.
    """

    def __init__(self, truth: Analytics, forecast: Analytics, first: Ints, *, headroom: float = 1.0) -> None:
        """Start with levels `first`, (S, Q), and empty queues.

        forecast  what is known of the time before any measurement
        headroom  part of the measured capacity that controllers know of
        """
        self._headroom = headroom
        self.truth, self._forecast = truth, forecast
        self._levels = first.copy()
        self._ahead: Ints | None = None
        self.chosen = np.empty((len(truth.length_s), *first.shape), dtype=np.int64)
        self._starts = truth.start_s - truth.start_s[0]
        self._ends = self._starts + truth.length_s
        self._begun = self._completed = 0
        self._waiting = np.zeros(len(truth.link_names))
        self._rows: list[tuple[float, ...]] = []

    def advance(self, until_s: float) -> None:
        """Let intervals begin and end until `until_s`."""
        while self._begun < len(self._starts) and self._starts[self._begun] < until_s - 1e-9:
            k = self._begun
            if self._ahead is not None:
                self._levels = self._ahead[k]
            self.chosen[k] = self._levels
            self._begun += 1
        while self._completed < self._begun and self._ends[self._completed] <= until_s + 1e-9:
            self._send(self._completed)
            self._completed += 1

    def apply(self, decision: Applied) -> None:
        """Set levels from now on."""
        if decision.levels.ndim == 3:
            self._ahead = decision.levels
        else:
            self._levels = decision.levels

    def observe(self) -> Analytics:
        """Return the last two intervals as measured, less the capacity to drain the backlog in the last one.

        In the first interval, it is the forecast.
        """
        if self._completed == 0:
            return take_intervals(self._forecast, np.zeros(1, dtype=np.int64))
        rows = np.arange(max(self._completed - 2, 0), self._completed)
        measured = take_intervals(self.truth, rows)
        capacity = measured.capacity_bytes
        drained = np.minimum(self._waiting, MOST_DRAINED * capacity[-1])
        if not drained.any() and self._headroom == 1:
            return measured
        remaining = capacity * self._headroom
        remaining[-1] -= drained
        rate = np.divide(remaining, capacity, out=np.zeros_like(remaining), where=capacity > 0)
        return measured.with_capacity(measured.capacity_mbps * rate, is_valid=True)

    def record(self) -> Mapping[str, pd.DataFrame]:
        """Return the sent and the waiting bytes, by interval."""
        columns = ["interval", "start_s", "generated_gb", "sent_gb", "backlog_gb"]
        return {"queues": pd.DataFrame(self._rows, columns=columns)}

    def _send(self, k: int) -> None:
        """Send the data that the queues of sites, then of points of presence, carry in interval k."""
        sites = len(self.truth.site_names)
        window = take_intervals(self.truth, np.array([k]))
        loads = find_loads(window, self.chosen[k][None])
        capacity = window.capacity_bytes[0]
        waiting = self._waiting
        before = waiting[:sites] + loads.site[0]
        sent = np.minimum(before, capacity[:sites])
        arrived = waiting[sites:] + np.bincount(
            self.truth.pop_of, weights=sent * loads.shrunk[0], minlength=len(capacity) - sites
        )
        self._waiting = np.concatenate([before - sent, np.maximum(arrived - capacity[sites:], 0.0)])
        self._rows.append(
            (
                float(self.truth.interval_numbers[k]),
                float(self._starts[k]),
                float(loads.site.sum()) / 1e9,
                float(sent.sum()) / 1e9,
                float(self._waiting.sum()) / 1e9,
            )
        )
