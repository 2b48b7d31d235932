"""A market in time: demand changes by window, CDNs change how they bid, the broker assigns anew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from planner.system import Decision
from planner_models.brokering.assignment import Assignment
from planner_models.brokering.measure import measure
from planner_models.brokering.problem import Brokering
from planner_models.brokering.protocol import Accept, accepted

ROUND_COLUMNS: Final = (
    "window",
    "median_cost",
    "median_score",
    "paid_per_hour",
    "congested_percent",
    "moved_between_cdns_percent",
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Strategy:
    """How one CDN bids from now on.

    cdn      its place among the problem's CDNs
    markup   (C,) price over cost; only its own clusters count
    promise  (C,) share of the free room that it announces
    """

    cdn: int
    markup: NDArray[np.float64]
    promise: NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Seen:
    """What there is to see now.

    problem   the true problem of this window
    markup    (C,) of all CDNs' present strategies
    promise   (C,)
    accepted  what the broker told the CDNs last; None before its first decision
    """

    problem: Brokering
    markup: NDArray[np.float64]
    promise: NDArray[np.float64]
    accepted: Accept | None


class Market:
    """An execution (`planner.loop`): windows of demand, strategies and the assignment in force.

    A broker's decision is a Decision with an Assignment; a CDN's is a Strategy. The record has
    `rounds`, one row a window that an assignment was made for, and `cdns`, one row a window and CDN.
    """

    def __init__(self, problems: Sequence[Brokering], *, window_s: float = 300.0) -> None:
        self._problems, self._window_s = list(problems), window_s
        self._now_s = 0.0
        clusters = len(problems[0].clusters)
        self._markup, self._promise = np.ones(clusters), np.ones(clusters)
        self._plan: Assignment | None = None
        self._accepted: Accept | None = None
        self._rounds: list[dict[str, Any]] = []
        self._cdns: list[pd.DataFrame] = []

    @property
    def _window(self) -> int:
        return min(int(self._now_s / self._window_s + 1e-9), len(self._problems) - 1)

    def advance(self, until_s: float) -> None:
        """Let time pass."""
        self._now_s = until_s

    def apply(self, decision: Decision[Assignment] | Strategy) -> None:
        """From now on, bid or assign as decided."""
        problem = self._problems[self._window]
        if isinstance(decision, Strategy):
            mine = problem.cdn == decision.cdn
            self._markup = np.where(mine, decision.markup, self._markup)
            self._promise = np.where(mine, decision.promise, self._promise)
            return
        if decision.plan is None:
            return
        self._record(problem, decision.plan)
        self._plan = decision.plan
        self._accepted = accepted(problem, decision.plan, price=problem.unit_cost * self._markup)

    def observe(self) -> Seen:
        """The window's problem, how CDNs bid, and what was accepted last."""
        return Seen(
            problem=self._problems[self._window],
            markup=self._markup,
            promise=self._promise,
            accepted=self._accepted,
        )

    def record(self) -> Mapping[str, pd.DataFrame]:
        """rounds and cdns so far."""
        columns = ["window", "cdn", "traffic_mbps", "profit"]
        cdns = pd.concat(self._cdns, ignore_index=True) if self._cdns else pd.DataFrame(columns=columns)
        return {"rounds": pd.DataFrame(self._rounds, columns=list(ROUND_COLUMNS)), "cdns": cdns}

    def _record(self, problem: Brokering, plan: Assignment) -> None:
        metrics = measure(problem, plan, self._plan)
        told = accepted(problem, plan, price=problem.unit_cost * self._markup)
        per_hour = problem.terms.units_per_mbps_hour
        paid = told.load_mbps * problem.unit_cost * self._markup * per_hour
        cost = told.load_mbps * problem.unit_cost * per_hour
        self._rounds.append(
            {name: metrics.get(name) for name in ROUND_COLUMNS}
            | {"window": self._window, "paid_per_hour": float(paid.sum())}
        )
        count = len(problem.cdn_names)
        self._cdns.append(
            pd.DataFrame(
                {
                    "window": self._window,
                    "cdn": problem.cdn_names,
                    "traffic_mbps": np.bincount(problem.cdn, weights=told.load_mbps, minlength=count),
                    "profit": np.bincount(problem.cdn, weights=paid - cost, minlength=count),
                }
            )
        )
