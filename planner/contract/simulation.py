"""Simulation in time: a system runs under the controllers of a design."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pandas as pd

from planner.contract.drawing import Drawing
from planner.contract.frames import Frame
from planner.contract.metrics import Headline, Metric


@dataclass(frozen=True, kw_only=True, eq=False)
class SimulationResult:
    """Record of a simulation.

    metrics   figures of the whole run, by the names that `Simulation.metrics` declares; None: unknown
    tables    recorded tables by name: flows, requests, windows, ...
    rounds    a row for each round of each controller, as `control_loop.Outcome` has them
    drawings  drawings of the run
    frames    pictures of the running system in ascending order of time, at most `frames.MAX_FRAMES`; only
              where they were asked for
    """

    metrics: Mapping[str, float | None]
    tables: Mapping[str, pd.DataFrame]
    rounds: pd.DataFrame
    drawings: tuple[Drawing, ...] = ()
    frames: tuple[Frame, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Simulation:
    """Simulation of a system's problems in time.

    run       (problem, *, design, information, decision_parameters, options, frames, **parameters) ->
             SimulationResult; `design` decides in every round, on observations made with
             `information`, with its `decision_parameters`. `frames`, which it may leave out, says whether
             to draw the system as it runs (`planner.contract.frames`). The other arguments are the
             parameters of a scenario's [simulation]
    metrics   figures of a run
    headline  the metric that a run is about, and how a sentence gives it; None: the first one, by its label
    designs   names of the designs that can control it; empty: all
    """

    run: Callable[..., SimulationResult]
    metrics: tuple[Metric, ...]
    headline: Headline | None = None
    designs: tuple[str, ...] = field(default=())

    @property
    def has_frames(self) -> bool:
        """True where a run can draw the system as it runs."""
        return "frames" in inspect.signature(self.run).parameters

    @property
    def headline_metric(self) -> Metric:
        """The metric that a run is about."""
        return self.metric(self.headline.metric) if self.headline else self.metrics[0]

    def metric(self, name: str) -> Metric:
        """Return the metric of that name."""
        return next(metric for metric in self.metrics if metric.name == name)
