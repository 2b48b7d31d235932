"""Cutting planes over capacities: a master program of purchases, and cuts from what does not fit.

The master chooses modules; for each year and state a linear program says what does not fit. Its dual prices
give a cut, a metric inequality: capacities c in which at most u is shed satisfy

    sum_l price_l c_l + u >= shed + sum_l price_l capacity_l

Routing costs are of the state without failures, whose flows are in the master where there are such costs, or
no failures.

Source: Iri 1971, Onaga and Kakusho 1971 (metric inequalities); Benders 1962; Dahl and Stoer 1998
(survivable network design by cutting planes).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import scipy.sparse as sp

from planner.arrays import Floats, Ints
from planner.backends.dispatch import solve
from planner.backends.linear_program import Columns, LinearProgram, Rows
from planner.backends.solution import Solution
from planner.options import Options
from planner.search.deadline import Deadline
from planner_models.capacity.plan.module_limits import largest_counts, largest_unit
from planner_models.capacity.plan.routing import (
    FlowProgram,
    capacity_by_year,
    down_links,
    required_rate,
)
from planner_models.capacity.problem.problem import FITS, CapacityPlanning

MOST_ROUNDS = 2_000
MOST_FLOWS = 100_000
"""Flow variables up to which a problem without failures is solved with its flows, without cuts."""

Objective = Literal["cost", "unserved"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Cut:
    """A cut: price @ capacity of a year + shed rate of a state in it >= least.

    price  (L,), without unit
    least  Mbit/s
    """

    year: int
    state: int
    price: Floats
    least: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Chosen:
    """Purchases that the master chose.

    counts     (Y, M) of modules, whole or not
    unserved   worst shed rate that it assumes, Mbit/s
    objective  of the master
    bound      no purchases are better
    is_final   whether they satisfy all states
    """

    counts: Floats
    unserved: float
    objective: float
    bound: float | None
    is_final: bool


class Master:
    """The master program of a problem; cuts stay from one question to the next."""

    def __init__(self, problem: CapacityPlanning, options: Options) -> None:
        self.problem, self.options = problem, options
        self.program = FlowProgram(problem)
        self.cuts: list[Cut] = []
        self.deadline = Deadline.of(options)
        flows = self.program.flow_columns * len(problem.year_numbers)
        is_compact = not problem.states.names and flows <= MOST_FLOWS
        self.has_flow = bool(problem.routing_cost.any()) or is_compact
        offered = float(problem.rate_mbps.sum(axis=1).max(initial=0.0))
        largest = largest_unit(problem.options.size, problem.options.limit, offered)
        self.unit = max(min(float(problem.rate_mbps.max(initial=0.0)), largest), 1e-9)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of years, and of states with the one without failures."""
        return len(self.problem.year_numbers), 1 + len(self.problem.states.names)

    def build(
        self, *, objective: Objective, allowed: float | Floats | None = None, integer: bool = True
    ) -> LinearProgram:
        """Return the master with the cuts that are known.

        objective  "cost", or "unserved": the worst shed rate
        allowed    largest shed rate, Mbit/s, of the worst state or of each year and state, (Y, 1 + S); None
                   for any
        """
        problem, modules = self.problem, self.problem.options
        years, kinds = len(problem.year_numbers), len(modules.link)
        setups = np.flatnonzero(problem.setup_cost > 0)
        has_flow = self.has_flow
        flows, demands = self.program.flow_columns, len(problem.demands)
        first_setup = years * kinds
        first_worst = first_setup + years * len(setups)
        first_flow = first_worst + 1
        width = flows + demands if has_flow else 0
        total = first_flow + years * width

        price = problem.price_factor
        most = largest_counts(problem)
        cost = np.zeros(total)
        spending = np.zeros(total)
        for year in range(years):
            spending[year * kinds : (year + 1) * kinds] = price[year] * modules.cost
            start = first_setup + year * len(setups)
            spending[start : start + len(setups)] = price[year] * problem.setup_cost[setups]
            if has_flow:
                start = first_flow + year * width
                per_arc = price[year] * self.unit * problem.routing_cost[self.program.arcs.line]
                cost[start : start + flows] = self.program.column_cost(per_arc)
        cost += spending
        offset = problem.installed_cost
        if objective == "unserved":
            cost, offset = np.zeros(total), 0.0
            cost[first_worst] = self.unit

        upper = np.full(total, np.inf)
        upper[:first_setup] = np.tile(most, years)
        upper[first_setup:first_worst] = 1.0
        by_state = np.zeros(self.shape)
        if isinstance(allowed, np.ndarray):
            by_state, upper[first_worst] = allowed, 0.0
        elif allowed is not None:
            upper[first_worst] = allowed / self.unit
        whole = np.zeros(total, dtype=bool)
        whole[:first_worst] = integer

        rows = self._limit_rows(total, most)
        if problem.budget is not None:
            # what costs more than the budget cannot be bought at all, so that no coefficient is above 1
            affordable = np.where(spending <= problem.budget, spending, 0.0)
            upper[spending > problem.budget] = 0.0
            scale = problem.budget or 1.0
            rows.append(Rows("budget", sp.csr_array(affordable[None] / scale), upper=problem.budget / scale))
        rows += self._setup_rows(total, setups, most, first_setup)
        rows += self._cut_rows(total, first_worst, by_state)
        if has_flow:
            rows += self._flow_rows(total, first_worst, first_flow, width, by_state[:, 0])
        columns = [
            Columns("bought", years * kinds),
            Columns("setup", years * len(setups)),
            Columns("worst_unserved", 1),
        ]
        if has_flow:
            columns.append(Columns("flow", years * width))
        return LinearProgram.build(
            cost=cost,
            offset=offset,
            rows=rows,
            columns=[one for one in columns if one.count],
            upper=upper,
            integer=whole if integer else None,
            name="capacity",
        )

    def _limit_rows(self, total: int, most: Floats) -> list[Rows]:
        """Return the limits of modules over all years."""
        problem, modules = self.problem, self.problem.options
        years, kinds = len(problem.year_numbers), len(modules.link)
        rows: list[Rows] = []
        every_year = sp.hstack([sp.eye_array(kinds)] * years)
        rest = sp.csr_array((kinds, total - years * kinds))
        if years > 1:
            rows.append(Rows("limits", sp.hstack([every_year, rest], format="csr"), upper=most))
        if problem.one_module:
            on_link = sp.csr_array(
                (np.ones(kinds), (modules.link, np.arange(kinds))), shape=(len(problem.lines), kinds)
            )
            rows.append(Rows("one_module", sp.hstack([on_link @ every_year, on_link @ rest]), upper=1.0))
        return rows

    def _setup_rows(self, total: int, setups: Ints, most: Floats, first_setup: int) -> list[Rows]:
        """Return the rows that make a link pay its setup with its first module."""
        problem, modules = self.problem, self.problem.options
        kinds, years = len(modules.link), len(problem.year_numbers)
        place = {int(line): column for column, line in enumerate(setups.tolist())}
        data, row, column, count = [], [], [], 0
        for module in np.flatnonzero(np.isin(modules.link, setups) & (most > 0)).tolist():
            for year in range(years):
                for before in range(year + 1):
                    data += [1.0, -most[module]]
                    row += [count, count]
                    setup = first_setup + before * len(setups) + place[int(modules.link[module])]
                    column += [before * kinds + module, setup]
                count += 1
        if not count:
            return []
        matrix = sp.csr_array((data, (row, column)), shape=(count, total))
        return [Rows("setup", matrix, upper=0.0)]

    def _capacity_rows(self, weights: Sequence[tuple[int, Floats]], total: int) -> sp.csr_array:
        """Return weighted sums of the capacity that is bought until a year, a row each, in units."""
        modules = self.problem.options
        kinds = len(modules.link)
        data, row, column = [], [], []
        for place, (year, weight) in enumerate(weights):
            value = weight[modules.link] * modules.size / self.unit
            used = np.flatnonzero(value)
            for before in range(year + 1):
                data.append(value[used])
                row.append(np.full(len(used), place))
                column.append(before * kinds + used)
        if not data:
            return sp.csr_array((len(weights), total))
        joined = (np.concatenate(data), (np.concatenate(row), np.concatenate(column)))
        return sp.csr_array(joined, shape=(len(weights), total))

    def _cut_rows(self, total: int, first_worst: int, allowed: Floats) -> list[Rows]:
        """Return the cuts."""
        if not self.cuts:
            return []
        matrix = self._capacity_rows([(cut.year, cut.price) for cut in self.cuts], total).tolil()
        matrix[:, first_worst] = 1.0
        installed = self.problem.installed_mbps
        least = np.array(
            [cut.least - float(cut.price @ installed) - allowed[cut.year, cut.state] for cut in self.cuts]
        )
        return [Rows("cuts", sp.csr_array(matrix), lower=least / self.unit)]

    def _flow_rows(
        self, total: int, first_worst: int, first_flow: int, width: int, allowed: Floats
    ) -> list[Rows]:
        """Return flow conservation and capacities without failures, for each year."""
        problem, program = self.problem, self.program
        rows: list[Rows] = []
        for year in range(len(problem.year_numbers)):
            rate = required_rate(problem, year, 0)
            start = first_flow + year * width
            before, after = start, total - start - width
            kept = program.matrix.shape[0] - len(program.arcs.row_line)
            block = sp.hstack(
                [
                    sp.csr_array((program.matrix.shape[0], before)),
                    program.matrix,
                    sp.csr_array((program.matrix.shape[0], after)),
                ],
                format="csr",
            )
            supply = program.supply(rate) / self.unit
            rows.append(Rows(f"conserve_{year}", block[:kept], lower=supply, upper=supply))
            row_line = program.arcs.row_line
            one_each = [(year, np.eye(len(problem.lines))[line]) for line in row_line.tolist()]
            bought = self._capacity_rows(one_each, total)
            rows.append(
                Rows(
                    f"capacity_{year}",
                    block[kept:] - bought,
                    upper=problem.installed_mbps[row_line] / self.unit,
                )
            )
            shed = np.zeros(total)
            shed[start + program.flow_columns : start + width] = 1.0
            shed[first_worst] = -1.0
            most = allowed[year] - float(problem.rate_mbps[year].sum() - rate.sum())
            rows.append(Rows(f"shed_{year}", sp.csr_array(shed[None]), upper=most / self.unit))
        return rows

    def solve(
        self, *, objective: Objective, allowed: float | Floats | None = None, integer: bool = True
    ) -> Solution:
        """Return the solution of the master as it is."""
        options = self.deadline.options(self.options, minimum_s=0.01)
        if not integer:
            options = replace(options, gap=None)
        return solve(self.build(objective=objective, allowed=allowed, integer=integer), options)

    def counts_of(self, x: Floats) -> Floats:
        """Return the modules bought in each year in a point of the master, (Y, M)."""
        years, kinds = len(self.problem.year_numbers), len(self.problem.options.link)
        return np.maximum(x[: years * kinds], 0.0).reshape(years, kinds)

    def unserved_of(self, x: Floats) -> float:
        """Return the worst shed rate in a point of the master, Mbit/s."""
        setups = int((self.problem.setup_cost > 0).sum())
        first_worst = len(self.problem.year_numbers) * (len(self.problem.options.link) + setups)
        return max(float(x[first_worst]), 0.0) * self.unit

    def separate(self, counts: Floats, allowed: Floats) -> int:
        """Add a cut for each year and state that sheds more than allowed, (Y, 1 + S); return how many."""
        problem = self.problem
        capacity = capacity_by_year(problem, counts)
        added = 0
        for year in range(len(capacity)):
            cut_off = float((problem.rate_mbps[year] * problem.cut_off[0]).sum())
            for state in range(1 + len(problem.states.names)):
                up = ~down_links(problem, state)
                rate = required_rate(problem, year, state)
                shed, price = self.program.price(np.where(up, capacity[year], 0.0), rate)
                if shed + cut_off <= allowed[year, state] + FITS * problem.rate_mbps[year].sum() / 2:
                    continue
                price = np.where(up, price, 0.0)
                least = shed + cut_off + float(price @ capacity[year])
                self.cuts.append(Cut(year=year, state=state, price=price, least=least))
                added += 1
                if self.deadline.is_over:
                    return added
        return added

    def iterate(
        self, *, objective: Objective = "cost", allowed: float | Floats | None = None, integer: bool = True
    ) -> Chosen | None:
        """Return the best purchases for all states, or the last ones within the time; None for none.

        integer  False: modules may be fractional, which is the linear relaxation
        """
        last: Chosen | None = None
        for _ in range(MOST_ROUNDS):
            solution = self.solve(objective=objective, allowed=allowed, integer=integer)
            bound = solution.bound if integer else solution.objective
            bounds = [one for one in (bound, None if last is None else last.bound) if one is not None]
            bound = max(bounds, default=None)
            if solution.x is None or solution.objective is None:
                return None if last is None else replace(last, bound=bound)
            counts = self.counts_of(solution.x)
            counts = np.round(counts) if integer else counts
            worst = self.unserved_of(solution.x) if allowed is None else allowed
            added = self.separate(counts, np.broadcast_to(worst, self.shape))
            last = Chosen(
                counts=counts,
                unserved=self.unserved_of(solution.x),
                objective=solution.objective,
                bound=bound,
                is_final=added == 0,
            )
            if not added or self.deadline.is_over:
                return last
        return last
