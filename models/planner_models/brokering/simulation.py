"""A market in time: demand changes by window, CDNs change their bids, the broker assigns anew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final

import numpy as np
import pandas as pd
from pydantic import Field

from planner.arrays import Floats
from planner.contract import control_loop
from planner.contract.design import Decision, Design
from planner.contract.drawing import Curve
from planner.contract.frames import FrameRecorder, no_frames
from planner.contract.metrics import Headline, Metric
from planner.contract.parameters import spread
from planner.contract.simulation import Simulation, SimulationResult
from planner.options import Options
from planner_models.brokering.designs import DESIGNS
from planner_models.brokering.designs.learning_bidders import (
    STEP,
    TARGET,
    Caution,
    Step,
    Target,
    update_bids,
    with_bids,
)
from planner_models.brokering.plan.check import read_assignment
from planner_models.brokering.plan.metrics import METRICS, measure
from planner_models.brokering.plan.plan import Assignment
from planner_models.brokering.plan.presentation import draw
from planner_models.brokering.problem import drawing, series
from planner_models.brokering.problem.problem import Brokering

WINDOW_METRICS: Final = (
    "objective",
    "median_cost",
    "median_score",
    "congested_percent",
    "moved_between_cdns_percent",
    "unserved",
)
ROUND_COLUMNS: Final = ("window", "traffic_mbps", "paid_per_hour", "profit_per_hour", *WINDOW_METRICS)
CDN_COLUMNS: Final = ("window", "cdn", "traffic_mbps", "profit")
MARKET_METRICS: Final = (
    Metric(
        name="paid_per_hour",
        unit="/h",
        better="less",
        about="cost of all traffic at each cluster's cost and markup",
    ),
    Metric(
        name="profit_per_hour", unit="/h", better="more", about="profit of all CDNs from markups over cost"
    ),
)
RUN_METRICS: Final = tuple(
    replace(metric, about=f"{metric.about}; mean over windows")
    for metric in (*MARKET_METRICS, *(metric for metric in METRICS if metric.name in WINDOW_METRICS))
)


@dataclass(frozen=True, kw_only=True, eq=False)
class BidStrategy:
    """The bids of one CDN from now on.

    cdn      its place in the problem's `cdn_names`
    markup   (C,) price over cost; only its own clusters count
    promise  (C,) announced share of the residual capacity
    """

    cdn: int
    markup: Floats
    promise: Floats


@dataclass(frozen=True, kw_only=True, eq=False)
class MarketState:
    """The state of the market, as observed.

    problem        the true problem of this window
    markup         (C,) of all CDNs' present bids
    promise        (C,)
    accepted_mbps  (C,) traffic of the last assignment; None before the first
    """

    problem: Brokering
    markup: Floats
    promise: Floats
    accepted_mbps: Floats | None


class Market:
    """An `Execution` of the control loop: windows of demand, the CDNs' bids and the assignment in force.

    A broker's decision is a Decision with an Assignment; a CDN's is a BidStrategy. The record has
    `rounds`, one row per window with an assignment, and `cdns`, one row per window and CDN.
    """

    def __init__(
        self,
        problems: Sequence[Brokering],
        *,
        window_s: float = 300.0,
        frames: FrameRecorder | None = None,
        labels: Sequence[str] = (),
    ) -> None:
        """Begin the first window.

        frames  show each window under its assignment; labels: of the windows
        """
        self._problems, self._window_s = list(problems), window_s
        self._frames, self._labels = frames or no_frames(), labels
        self._now_s = 0.0
        clusters = len(problems[0].clusters)
        self._markup, self._promise = np.ones(clusters), np.ones(clusters)
        self._plan: Assignment | None = None
        self._accepted_mbps: Floats | None = None
        self._rounds: list[dict[str, Any]] = []
        self._cdns: list[pd.DataFrame] = []

    @property
    def _window(self) -> int:
        return min(int(self._now_s / self._window_s + 1e-9), len(self._problems) - 1)

    def advance(self, until_s: float) -> None:
        """Let time pass."""
        self._take_frames(until_s)
        self._now_s = until_s

    def apply(self, decision: Decision[Assignment] | BidStrategy) -> None:
        """Apply bids or an assignment, from now on."""
        problem = self._problems[self._window]
        if isinstance(decision, BidStrategy):
            is_own_cluster = problem.cdn == decision.cdn
            self._markup = np.where(is_own_cluster, decision.markup, self._markup)
            self._promise = np.where(is_own_cluster, decision.promise, self._promise)
        elif decision.plan is not None:
            self._accepted_mbps = read_assignment(problem, decision.plan).load_mbps
            self._record(problem, decision.plan, self._accepted_mbps)
            self._plan = decision.plan

    def observe(self) -> MarketState:
        """Return the window's problem, the present bids, and the traffic that was accepted last."""
        return MarketState(
            problem=self._problems[self._window],
            markup=self._markup,
            promise=self._promise,
            accepted_mbps=self._accepted_mbps,
        )

    def record(self) -> Mapping[str, pd.DataFrame]:
        """Return rounds and cdns so far."""
        none = pd.DataFrame(columns=list(CDN_COLUMNS))
        cdns = pd.concat(self._cdns, ignore_index=True) if self._cdns else none
        return {"rounds": pd.DataFrame(self._rounds, columns=list(ROUND_COLUMNS)), "cdns": cdns}

    def _take_frames(self, until_s: float) -> None:
        """Draw the windows that begin before a time; one without an assignment as the market alone."""
        window = self._window
        for time_s in self._frames.due(until_s):
            problem, last = self._problems[window], self._rounds[-1] if self._rounds else None
            is_decided = last is not None and last["window"] == window and self._plan is not None
            drawn = draw(problem, self._plan) if is_decided else drawing.draw(problem)  # type: ignore[arg-type]
            paid = last["paid_per_hour"] if is_decided and last is not None else None
            self._frames.take(time_s, drawn[0], paid, self._labels[window])

    def _record(self, problem: Brokering, plan: Assignment, load_mbps: Floats) -> None:
        metrics = measure(problem, plan, self._plan)
        cost = load_mbps * problem.unit_cost * problem.terms.units_per_mbps_hour
        profit = cost * (self._markup - 1)
        self._rounds.append(
            {
                "window": self._window,
                "traffic_mbps": float(load_mbps.sum()),
                "paid_per_hour": float((cost + profit).sum()),
                "profit_per_hour": float(profit.sum()),
                **{name: metrics[name] for name in WINDOW_METRICS},
            }
        )
        count = len(problem.cdn_names)
        columns = (
            self._window,
            problem.cdn_names,
            np.bincount(problem.cdn, weights=load_mbps, minlength=count),
            np.bincount(problem.cdn, weights=profit, minlength=count),
        )
        self._cdns.append(pd.DataFrame(dict(zip(CDN_COLUMNS, columns, strict=True))))


def simulate_market(
    problems: Sequence[Brokering],
    *,
    design: Design[Brokering, Assignment],
    information: Mapping[str, Any] | None = None,
    decision_parameters: Mapping[str, Any] | None = None,
    window_s: float = 300.0,
    options: Options = Options(),
    frames: FrameRecorder | None = None,
    labels: Sequence[str] = (),
    **learning: float,
) -> control_loop.Outcome:
    """Run one round of the market in each window; the outcome's tables are those of `Market`.

    The broker decides at the start of each window. Where the design announces prices, CDNs learn half a
    window later, with step, target and caution of `learning`.
    """
    broker = control_loop.Controller.of_design(
        design, period_s=window_s, parameters=decision_parameters, options=options
    )
    announcement = design.observe(problems[0], **(information or {})).announcement
    has_bids = announcement is not None and announcement.price

    def observe(state: MarketState) -> Brokering:
        observed = design.observe(state.problem, **(information or {}))
        if announcement is None or not has_bids:
            return observed
        promise = state.promise if announcement.capacity else np.ones(len(state.promise))
        return with_bids(observed, state.markup, promise)

    def bid(cdn: int, state: MarketState) -> BidStrategy | None:
        if state.accepted_mbps is None:
            return None
        load, residual = state.accepted_mbps, state.problem.residual_mbps
        markup, promise = update_bids(state.markup, state.promise, load, residual, **learning)
        return BidStrategy(cdn=cdn, markup=markup, promise=promise)

    cdns: list[control_loop.Controller[Any]] = [
        control_loop.Controller(
            name=name,
            decide=lambda state, _, cdn=cdn: bid(cdn, state),  # type: ignore[misc]
            period_s=window_s,
            first_s=window_s / 2,
        )
        for cdn, name in enumerate(problems[0].cdn_names if has_bids else ())
    ]
    controllers: list[control_loop.Controller[Any]] = [replace(broker, observe=observe), *cdns]
    return control_loop.run(
        Market(problems, window_s=window_s, frames=frames, labels=labels),
        controllers,
        until_s=window_s * len(problems),
    )


@dataclass(frozen=True, kw_only=True)
class MarketDay:
    """Windows of the simulated day, and the learning of bids in it."""

    windows: series.Count = 24
    swing: series.Swing = 0.5
    window_s: Annotated[float, Field(gt=0, description="time between two decisions of the broker, s")] = 300.0
    step: Step = STEP
    target: Target = TARGET
    caution: Caution = 0.0


@spread(market_day=MarketDay())
def run(
    problem: Brokering,
    *,
    design: Design[Brokering, Assignment],
    information: Mapping[str, Any],
    decision_parameters: Mapping[str, Any],
    options: Options,
    frames: bool = False,
    market_day: MarketDay,
) -> SimulationResult:
    """Simulate a day of the market under a broker, with CDNs that learn from accepted bids.

    returns  metrics that are means over windows; tables `rounds` (by window) and `cdns` (by window and CDN)
    """
    day = list(series.Day(problem=problem, windows=market_day.windows, swing=market_day.swing))
    problems = [window_problem for _, window_problem in day]
    recorder = FrameRecorder(
        market_day.window_s * len(problems), step_s=market_day.window_s, includes_end=False, is_on=frames
    )
    outcome = simulate_market(
        problems,
        design=design,
        information=information,
        decision_parameters=decision_parameters,
        window_s=market_day.window_s,
        step=market_day.step,
        target=market_day.target,
        caution=market_day.caution,
        options=options,
        frames=recorder,
        labels=[label for label, _ in day],
    )
    rounds = outcome.tables["rounds"]
    means = rounds.drop(columns="window").astype(float).mean()
    values = {metric.name: float(means[metric.name]) for metric in RUN_METRICS}
    metrics = {name: None if np.isnan(value) else value for name, value in values.items()}
    curve = Curve(title="Paid by the broker in each window", frame=rounds[["window", "paid_per_hour"]])
    return SimulationResult(
        metrics=metrics,
        tables=outcome.tables,
        rounds=outcome.rounds,
        drawings=(curve,) if len(rounds) else (),
        frames=tuple(recorder.frames),
    )


SIMULATION: Final = Simulation(
    run=run,
    metrics=RUN_METRICS,
    headline=Headline(
        metric="paid_per_hour",
        verb="pays {} in the mean",
        then="median_score",
        then_words="for a median score of",
        losses={"unserved": "leaves {} unserved"},
    ),
    designs=tuple(design.name for design in DESIGNS if design.name != "learning_bidders"),
)
