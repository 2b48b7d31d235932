"""What a routing's objective would be under other capacities, found by solving again.

Designs with a linear program are asked through it: its duals price capacity, and one solver session,
always from the same vertex, solves it changed. Other designs are run again.
"""

from __future__ import annotations

import contextlib
import math
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from planner.backends.linear import LinearProgram
from planner.errors import InputError, SolverFailure
from planner.options import Options
from planner.proof import Status
from planner.system import Decided
from planner_models.traffic.measure import METRICS, measure
from planner_models.traffic.problem import Traffic

SAME: Final = 3e-6  # relative; objectives that differ by less are the same: designs stop at gaps of 1e-6
ROUNDING: Final = 1e-9  # an objective this near to 0 is 0
LARGEST_PROGRAM: Final = 1_000_000  # variables, about; above, designs are run again instead
MORE: Final = {metric.name for metric in METRICS if metric.better == "more"}


class Judge(Protocol):
    """Says what the objective would be under other capacities.

    value  of the problem as it is
    price  (E,) objective per Mbit/s of each link's capacity, None where not known
    how    in words
    """

    value: float
    how: str

    @property
    def price(self) -> NDArray[np.float64] | None:
        """(E,)"""

    def under(self, capacity_mbps: NDArray[np.float64]) -> float | None:
        """The objective; None where no plan carries what has to be carried. 0 is a lost link."""

    def at_most(self, worth: NDArray[np.float64]) -> NDArray[np.float64]:
        """No plan gains more than this from more capacity that is worth that much by its price."""


def judge_of(problem: Traffic, decided: Decided, metric: str, options: Options) -> Judge:
    design = decided.design
    over_links = decided.parameters.get("paths", "any") == "any"
    size = len(problem.targets) * len(problem.links) if over_links else len(problem.demands)
    if design.model is not None and options.backend == "highs" and 0 < size <= LARGEST_PROGRAM:
        program = design.model(problem, **decided.parameters)
        block = [block for block in program.row_blocks if block.name == "capacity"]
        if block and not program.is_integer:
            with contextlib.suppress(OutOfTime):
                session = _Session(problem, program, block[0].start, options)
                by_itself = (decided.decision.proof.backend or "highs").startswith("highs")
                return session if by_itself else _Priced(problem, decided, metric, options, session)
    return _Rerun(problem, decided, metric, options)


class OutOfTime(Exception):
    """The solver's limits stopped it before a change was verified."""


class _Session:
    """The design's linear program, kept in the solver, solved again from the first one's vertex.

    In it capacities are either the limits of the capacity rows, or, where the largest utilization
    U is minimised, what U is multiplied by there.
    """

    def __init__(self, problem: Traffic, program: LinearProgram, start: int, options: Options) -> None:
        from planner.backends import highs  # only where it is wanted: imports the solver

        self._highs, self._start, self._limit_s = highs, start, options.time_limit_s
        self._capacity = problem.capacity_mbps
        rows = slice(start, start + len(self._capacity))
        self._scaled = bool((program.row_upper[rows] == 0).all())
        self._factor = program.shape[1] - 1
        self._sign = 1.0 if program.sense == "min" else -1.0
        self._session = highs.load(program, options)
        first = "ipm" if program.shape[0] > highs.SMALL else "simplex"
        self._session.setOptionValue("solver", first)
        value = self._solve()
        if value is None:  # the plan was found in another way, and the program says there is none
            raise SolverFailure(f"{highs.NAME} finds no plan where the design found one")
        self._session.setOptionValue("solver", "simplex")
        self._vertex = self._session.getBasis()
        self.value = value
        dual = self._sign * np.array(self._session.getSolution().row_dual)[rows]
        # a Mbit/s more raises the limit by 1, or by U
        self.price = dual * (value if self._scaled else 1.0)
        self.solver = highs.NAME
        self.how = f"{highs.NAME}, from the same vertex each time"

    def under(self, capacity_mbps: NDArray[np.float64]) -> float | None:
        changed = np.flatnonzero(capacity_mbps != self._capacity).tolist()
        self._session.setBasis(self._vertex)
        for link in changed:
            self._set(link, float(capacity_mbps[link]))
        value = self._solve()
        for link in changed:
            self._set(link, float(self._capacity[link]))
        return value

    def at_most(self, worth: NDArray[np.float64]) -> NDArray[np.float64]:
        if self._scaled:  # U falls as 1 / (1 + x), not as 1 - x
            return self.value - self.value / (1 + worth / self.value) if self.value > 0 else worth
        return worth

    def _set(self, link: int, capacity_mbps: float) -> None:
        row = self._start + link
        if self._scaled:
            self._session.changeCoeff(row, self._factor, -capacity_mbps)
        else:
            self._session.changeRowBounds(row, -math.inf, capacity_mbps)

    def _solve(self) -> float | None:
        """The objective; None where there is none."""
        if self._limit_s is not None:  # for each solve; the solver counts all that its session ran
            self._session.setOptionValue("time_limit", self._session.getRunTime() + self._limit_s)
        status = self._highs.run(self._session, self._highs.NAME)
        if status is Status.INFEASIBLE:
            return None
        if status is not Status.OPTIMAL:
            raise OutOfTime
        value = self._sign * float(self._session.getInfo().objective_function_value)
        return 0.0 if abs(value) < ROUNDING else value


class _Rerun:
    """The design itself, run again on the changed network."""

    price: NDArray[np.float64] | None = None

    def __init__(self, problem: Traffic, decided: Decided, metric: str, options: Options) -> None:
        self._problem, self._decided, self._metric, self._options = problem, decided, metric, options
        value = decided.metrics[metric]
        self.value = 0.0 if value is None else value
        self.how = f"{decided.design.name}, run again"

    def under(self, capacity_mbps: NDArray[np.float64]) -> float | None:
        problem, kept = self._problem, capacity_mbps > 0
        links = problem.links.assign(capacity_mbps=capacity_mbps)[kept].reset_index(drop=True)
        try:
            changed = Traffic(nodes=problem.nodes, links=links, demands=problem.demands)
        except InputError:  # a demand has lost its last path
            return 0.0 if self._metric == "concurrent_flow" else None
        design = self._decided.design
        decision = design.decide(changed, options=self._options, previous=None, **self._decided.parameters)
        return None if decision.plan is None else measure(changed, decision.plan, None)[self._metric]

    def at_most(self, worth: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.full_like(worth, math.inf)


class _Priced(_Rerun):
    """A design that solves the same program in a way of its own: it verifies, the program prices.

    Such a way exists because it is faster: on 52,000 variables column generation takes a fifth of a
    second, and the program's session several for each change.
    """

    def __init__(
        self, problem: Traffic, decided: Decided, metric: str, options: Options, session: _Session
    ) -> None:
        super().__init__(problem, decided, metric, options)
        self.value, self.price, self._session = session.value, session.price, session
        self.how += f", shadow prices from {session.solver}"

    def at_most(self, worth: NDArray[np.float64]) -> NDArray[np.float64]:
        return self._session.at_most(worth)


def better(metric: str, value: float, than: float) -> float:
    """By how much the value is better: more or less, as the metric has it; 0 where they are the same."""
    if abs(value - than) <= SAME * max(abs(value), abs(than)):
        return 0.0
    return value - than if metric in MORE else than - value
