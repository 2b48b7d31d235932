"""Reoptimization of a routing under changed link capacities.

Designs with a linear program are solved through it: its duals price capacity, and one solver session
solves every change from the same basis. Other designs run again on the changed network.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from planner.arrays import Floats
from planner.backends.linear_program import LinearProgram
from planner.contract.proof import Status
from planner.contract.studies import Decided
from planner.contract.what_if import Change, Reoptimization, Trial
from planner.errors import PlannerError, SolverFailure
from planner.options import Options
from planner.search.tolerances import ROUNDING
from planner_models.traffic.plan.metrics import METRICS, measure
from planner_models.traffic.problem.problem import Traffic

GAIN_TOLERANCE: Final = 3e-6  # relative; smaller gains are none: designs stop at gaps of 1e-6
ZERO_TOLERANCE: Final = ROUNDING  # an objective this near to 0 is 0
MAX_VARIABLES: Final = 1_000_000  # about; designs with larger programs run again instead


class OutOfTime(SolverFailure):
    """The time limit stopped the solver before a change was solved."""


@dataclass(frozen=True, kw_only=True, eq=False)
class CapacityChange(Change[Traffic]):
    """A change of link capacities, (E,) Mbit/s; a link of capacity 0 is lost."""

    problem: Traffic | None = None
    capacity_mbps: Floats


class CapacityReoptimization(Reoptimization[Traffic]):
    """Solves a routing again under changed capacities.

    A design that solves its linear program in its own, faster way runs again itself, and the program
    only prices capacity: on 52,000 variables column generation takes a fifth of a second, and the
    program's session several seconds for each change.

    price       (E,) dual price of each link's capacity, metric per Mbit/s; None where unknown
    method      how changes are solved, in words
    best_gain   largest gain of the changes solved so far
    has_failed  whether a change could not be solved, such as for lack of time
    """

    def __init__(self, problem: Traffic, decided: Decided, options: Options) -> None:
        name, self._parameters = _choose_objective(decided)
        metric = next(metric for metric in METRICS if metric.name == name)
        super().__init__(decided, metric=metric, measure=measure, options=options)
        self._problem = problem
        self._session = _open_session(problem, decided, self._parameters, options)
        uses_session = (decided.decision.proof.backend or "highs").startswith("highs")
        self._runs_again = self._session is None or not uses_session
        self.objective = (self.value or 0.0) if self._session is None else self._session.objective
        self.value = self.objective
        self.price = None if self._session is None else self._session.price
        self.best_gain = 0.0
        self.has_failed = False
        words = [f"{decided.design.name}, run again"] if self._runs_again else []
        if self._session is not None:
            prices = f"shadow prices from {self._session.solver}"
            words += [prices] if words else [f"{self._session.solver}, from the same vertex each time"]
        self.method = ", ".join(words)

    @property
    def smallest_gain(self) -> float:
        """Gain up to which a change counts as none."""
        return GAIN_TOLERANCE * max(abs(self.objective), 1e-12)

    def solve_all(self, changes: Iterable[Change[Traffic]], limit: int | None = None) -> list[Trial[Traffic]]:
        """Return the trials of the changes, the largest gain first; `best_gain` starts from 0."""
        self.best_gain, self.has_failed = 0.0, False
        return super().solve_all(changes, limit)

    def solve(self, change: Change[Traffic]) -> Trial[Traffic]:
        """Return the trial of a change of capacities; without metrics where the demands cannot be served."""
        assert isinstance(change, CapacityChange)
        try:
            value = self._solve_at(change.capacity_mbps)
        except PlannerError:  # such as OutOfTime
            self.has_failed = True
            raise
        if value is None:
            return Trial(change=change, metrics=None, gain=None)
        gain = self.gain(value)
        self.best_gain = max(self.best_gain, gain or 0.0)
        return Trial(change=change, metrics={self.metric.name: value}, gain=gain)

    def gain(self, value: float | None) -> float | None:
        """Return the improvement of a value over the present one; 0 within the tolerance."""
        gain = super().gain(value)
        if gain is None or value is None:
            return None
        return gain if abs(gain) > GAIN_TOLERANCE * max(abs(value), abs(self.objective)) else 0.0

    def gain_bound(self, dual_value: Floats) -> Floats:
        """Return a bound on the gain from more capacity, given its value by dual prices."""
        if self._session is None:
            return np.full_like(dual_value, math.inf)
        return self._session.gain_bound(dual_value)

    def _solve_at(self, capacity_mbps: Floats) -> float | None:
        """Return the objective value; None if no plan serves the required demand."""
        if self._session is not None and not self._runs_again:
            return self._session.solve_at(capacity_mbps)
        up = capacity_mbps > 0
        links = self._problem.links.assign(capacity_mbps=capacity_mbps)
        if not (self._problem.names_links and up.any()):  # else tables may name links that are lost
            links = links[up].reset_index(drop=True)
        changed = replace(self._problem, links=links)
        if self.metric.name != "delivered_mbps" and (changed.unreachable > self._problem.unreachable).any():
            return 0.0 if self.metric.name == "concurrent_flow" else None  # a demand has lost its last path
        trial = super().solve(Change(name="capacity", problem=changed, parameters=self._parameters))
        return trial.metrics[self.metric.name] if trial.metrics else None


class ProgramSession:
    """The design's linear program in one solver session, solved from the basis of its first solution.

    Capacities are either the limits of the capacity rows or, where the largest utilization U is
    minimized, the coefficients of U in these rows.

    objective  value of the unchanged program
    price      (E,) dual price of each link's capacity
    """

    def __init__(self, problem: Traffic, program: LinearProgram, start: int, options: Options) -> None:
        from planner.backends import highs  # imports the solver, so only where it is needed

        self._highs, self._start, self._limit_s = highs, start, options.time_limit_s
        self._capacity = problem.capacity_mbps
        rows = slice(start, start + len(self._capacity))
        self._minimizes_utilization = bool((program.row_upper[rows] == 0).all())
        self._utilization = program.shape[1] - 1
        self._sign = 1.0 if program.sense == "min" else -1.0
        self._session = highs.load(program, options)
        self._session.setOptionValue("solver", "ipm" if program.shape[0] > highs.SMALL_ROWS else "simplex")
        objective = self._solve()
        if objective is None:
            raise SolverFailure(f"{highs.NAME} finds no plan where the design found one")
        self._session.setOptionValue("solver", "simplex")
        self._basis = self._session.getBasis()
        self.objective = objective
        dual = self._sign * np.array(self._session.getSolution().row_dual)[rows]
        # one more Mbit/s raises a row's limit by 1, or by U
        self.price = dual * (objective if self._minimizes_utilization else 1.0)
        self.solver = highs.NAME

    def solve_at(self, capacity_mbps: Floats) -> float | None:
        """Return the objective value under other capacities; None where the program is infeasible."""
        changed = np.flatnonzero(capacity_mbps != self._capacity).tolist()
        self._session.setBasis(self._basis)
        for link in changed:
            self._set_capacity(link, float(capacity_mbps[link]))
        value = self._solve()
        for link in changed:
            self._set_capacity(link, float(self._capacity[link]))
        return value

    def gain_bound(self, dual_value: Floats) -> Floats:
        """Return a bound on the gain from more capacity, given its value by dual prices."""
        if self._minimizes_utilization and self.objective > 0:  # U falls as 1 / (1 + x), not as 1 - x
            return self.objective - self.objective / (1 + dual_value / self.objective)
        return dual_value

    def _set_capacity(self, link: int, capacity_mbps: float) -> None:
        row = self._start + link
        if self._minimizes_utilization:
            self._session.changeCoeff(row, self._utilization, -capacity_mbps)
        else:
            self._session.changeRowBounds(row, -math.inf, capacity_mbps)

    def _solve(self) -> float | None:
        """Return the objective value; None where the program is infeasible."""
        if self._limit_s is not None:  # for each solve; the solver counts the time of its whole session
            self._session.setOptionValue("time_limit", self._session.getRunTime() + self._limit_s)
        status = self._highs.run(self._session, self._highs.NAME)
        if status is Status.INFEASIBLE:
            return None
        if status is not Status.OPTIMAL:
            raise OutOfTime(f"{self._highs.NAME}: {status}")
        value = self._sign * float(self._session.getInfo().objective_function_value)
        return 0.0 if abs(value) < ZERO_TOLERANCE else value


def _delivers_all(decided: Decided) -> bool:
    """Return whether the plan delivers all demand, but for rounding."""
    delivered, offered = (decided.metrics[name] or 0.0 for name in ("delivered_mbps", "offered_mbps"))
    return delivered >= offered * (1 - GAIN_TOLERANCE)


def _open_session(
    problem: Traffic, decided: Decided, parameters: Mapping[str, str], options: Options
) -> ProgramSession | None:
    """Return a session of the design's linear program; None without one, or without a solution in time."""
    design = decided.design
    # the program is that of all classes together, and knows no plan before
    is_other = bool(decided.decision.proof.levels) or decided.previous is not None
    if design.model is None or is_other or options.backend != "highs":
        return None
    over_links = decided.parameters.get("paths", "any") == "any"
    if over_links and (problem.parsed_rules or np.isfinite(problem.max_latency_ms).any()):
        return None  # the program over links knows no limits of routes
    size = len(problem.targets) * len(problem.links) if over_links else len(problem.demands)
    if not 0 < size <= MAX_VARIABLES:
        return None
    program = design.model(problem, **{**decided.parameters, **parameters})
    start = next((block.start for block in program.row_blocks if block.name == "capacity"), None)
    if start is not None and not program.is_integer:
        with contextlib.suppress(SolverFailure):  # out of time, or the program does not shed demand
            return ProgramSession(problem, program, start, options)
    return None


def _choose_objective(decided: Decided) -> tuple[str, dict[str, str]]:
    """Return the metric that is optimized again, and the parameters that make it the design's objective."""
    name = decided.decision.proof.metric or "delivered_mbps"
    if name != "delivered_mbps":
        return name, {}
    grows = _delivers_all(decided)  # where all arrives, the question is how far demands can grow
    name, objective = ("concurrent_flow", "concurrent") if grows else ("delivered_mbps", "total")
    return name, {"objective": objective} if "objective" in decided.design.parameters else {}
