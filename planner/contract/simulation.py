"""Simulation in time: a system runs under the controllers of a design."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pandas as pd

from planner.contract.drawing import Drawing
from planner.contract.metrics import Headline, Metric


@dataclass(frozen=True, kw_only=True, eq=False)
class SimulationResult:
    """Record of a simulation.

    metrics   figures of the whole run, by the names that `Simulation.metrics` declares; None: unknown
    tables    recorded tables by name: flows, requests, windows, ...
    rounds    a row for each round of each controller, as `control_loop.Outcome` has them
    drawings  drawings of the run
    """

    metrics: Mapping[str, float | None]
    tables: Mapping[str, pd.DataFrame]
    rounds: pd.DataFrame
    drawings: tuple[Drawing, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Simulation:
    """Simulation of a system's problems in time.

    run       (problem, *, design, information, decision_parameters, options, **parameters) ->
             SimulationResult; `design` decides in every round, on observations made with
             `information`, with its `decision_parameters`. The other arguments are the parameters of a
             scenario's [simulation]
    metrics   figures of a run
    headline  the metric that a run is about, and how a sentence gives it; None: the first one, by its label
    designs   names of the designs that can control it; empty: all
    """

    run: Callable[..., SimulationResult]
    metrics: tuple[Metric, ...]
    headline: Headline | None = None
    designs: tuple[str, ...] = field(default=())

    def metric(self, name: str) -> Metric:
        """Return the metric of that name."""
        return next(metric for metric in self.metrics if metric.name == name)
