"""Cutting planes over capacities: a master program of purchases, and cuts from unserved demand.

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

from planner.arrays import Floats, Ints
from planner.backends.dispatch import solve
from planner.backends.linear_program import LinearProgram
from planner.backends.program_builder import Expression, ProgramBuilder, Variables
from planner.backends.solution import Solution
from planner.options import Options
from planner.search.deadline import Deadline
from planner_models.capacity.plan.module_limits import largest_counts, largest_unit
from planner_models.capacity.problem.problem import CapacityPlanning
from planner_models.capacity.problem.tables import FITS
from planner_models.capacity.routing import FlowProgram, capacity_by_year, required_rate, usable_share

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
        largest = largest_counts(problem)
        price = problem.price_factor[:, None]
        is_cost = objective == "cost"
        buying, setting_up = price * modules.cost, price * problem.setup_cost[setups]
        budget = np.inf if problem.budget is None else problem.budget
        by_state, shed = np.zeros(self.shape), np.inf
        if isinstance(allowed, np.ndarray):
            by_state, shed = allowed, 0.0
        elif allowed is not None:
            shed = allowed / self.unit

        # what costs more than the budget cannot be bought at all, so that no coefficient is above 1
        m = ProgramBuilder(name="capacity", offset=problem.installed_cost if is_cost else 0.0)
        bought = m.variables(
            "bought",
            (years, kinds),
            upper=np.where(buying > budget, 0.0, largest),
            cost=buying if is_cost else 0.0,
            integer=integer,
        )
        setup = m.variables(
            "setup",
            (years, len(setups)),
            upper=np.where(setting_up > budget, 0.0, 1.0),
            cost=setting_up if is_cost else 0.0,
            integer=integer,
        )
        worst = m.variables("worst_unserved", upper=shed, cost=0.0 if is_cost else self.unit)
        _limit_modules(m, problem, bought, largest)
        if problem.budget is not None:
            _limit_spending(m, problem.budget, ((buying, bought), (setting_up, setup)))
        _require_setup(m, problem, bought, setup, largest)
        self._add_cuts(m, bought, worst, by_state)
        if self.has_flow:
            self._add_flows(m, bought, worst, by_state[:, 0], is_cost=is_cost)
        return m.build()

    def _capacity(self, bought: Variables, year: Ints, weight: Floats) -> Expression:
        """Return weighted sums (R, L) of the capacity that is bought until a year (R,), in units."""
        modules = self.problem.options
        value = weight[:, modules.link] * modules.size / self.unit
        row, module = np.nonzero(value)
        counts_in = modules.counts_in(bought.shape[0])
        entry, before = np.nonzero(counts_in[:, year[row], module].T)
        row, module = row[entry], module[entry]
        return (bought[before, module] * value[row, module]).sum_by(row, len(year))

    def _add_cuts(self, m: ProgramBuilder, bought: Variables, worst: Variables, allowed: Floats) -> None:
        """Add the cuts."""
        if not self.cuts:
            return
        year = np.array([cut.year for cut in self.cuts])
        capacity = self._capacity(bought, year, np.array([cut.price for cut in self.cuts]))
        installed = self.problem.installed_mbps
        lower = np.array(
            [cut.least - float(cut.price @ installed) - allowed[cut.year, cut.state] for cut in self.cuts]
        )
        m.constrain("cuts", capacity + worst, lower=lower / self.unit)

    def _add_flows(
        self, m: ProgramBuilder, bought: Variables, worst: Variables, allowed: Floats, *, is_cost: bool
    ) -> None:
        """Add flow conservation and capacities without failures, for each year."""
        problem, program = self.problem, self.program
        width, count = program.matrix.shape[1], len(problem.year_numbers)
        cost = np.zeros((count, width))
        if is_cost:
            for year in range(count):
                per_arc = problem.price_factor[year] * self.unit * problem.routing_cost[program.arcs.line]
                cost[year, : program.flow_columns] = program.column_cost(per_arc)
        flow = m.variables("flow", (count, width), cost=cost)
        row_line = program.arcs.row_line
        conserved = program.matrix.shape[0] - len(row_line)
        each_link = np.eye(len(problem.lines))[row_line]
        for year in range(count):
            rate = required_rate(problem, year, 0)
            supply = program.supply(rate) / self.unit
            m.constrain(f"conserve_{year}", program.matrix[:conserved] @ flow[year], equal=supply)
            capacity = self._capacity(bought, np.full(len(row_line), year), each_link)
            limit = float(problem.utilization_limit[0])
            installed = limit * problem.installed_mbps[row_line] / self.unit
            m.constrain(
                f"capacity_{year}",
                program.matrix[conserved:] @ flow[year] - capacity * limit,
                upper=installed,
            )
            upper = allowed[year] - float(problem.rate_mbps[year].sum() - rate.sum())
            shed = flow[year, program.flow_columns :].sum()
            m.constrain(f"shed_{year}", shed - worst, upper=upper / self.unit)

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
        """Add a cut for each year and state that sheds more than allowed, (Y, 1 + S); return their number."""
        problem = self.problem
        capacity = capacity_by_year(problem, counts)
        added = 0
        for year in range(len(capacity)):
            cut_off = float((problem.rate_mbps[year] * problem.cut_off[0]).sum())
            for state in range(1 + len(problem.states.names)):
                share = usable_share(problem, state)
                rate = required_rate(problem, year, state)
                shed, price = self.program.price(share * capacity[year], rate)
                if shed + cut_off <= allowed[year, state] + FITS * problem.rate_mbps[year].sum() / 2:
                    continue
                price = share * price  # of capacity, not of what a state may use of it
                lower = shed + cut_off + float(price @ capacity[year])
                self.cuts.append(Cut(year=year, state=state, price=price, least=lower))
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
            bounds = [item for item in (bound, None if last is None else last.bound) if item is not None]
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


def _limit_spending(m: ProgramBuilder, budget: float, purchases: Sequence[tuple[Floats, Variables]]) -> None:
    """Add the row of the budget, in its unit; purchases above all of it cannot be made at all."""
    scale = budget or 1.0
    spent = [
        np.where(cost <= budget, cost / scale, 0.0).reshape(1, -1) @ variables.reshape(-1)
        for cost, variables in purchases
    ]
    m.constrain("budget", sum(spent), upper=budget / scale)


def _limit_modules(m: ProgramBuilder, problem: CapacityPlanning, bought: Variables, largest: Floats) -> None:
    """Add the limits of modules over all years, and of one module on a link in each year.

    largest  (M,) most of each module
    """
    modules, years = problem.options, len(problem.year_numbers)
    owned, leased = np.flatnonzero(~modules.leased), np.flatnonzero(modules.leased)
    in_all_years = bought[:, owned].sum(axis=0)
    if years > 1:
        m.constrain("limits", in_all_years, upper=largest[owned])
    if problem.one_module:
        on_links = in_all_years.sum_by(modules.link[owned], len(problem.lines))
        for year in range(years if len(leased) else 0):
            on_lease = bought[year, leased].sum_by(modules.link[leased], len(problem.lines))
            m.constrain(f"one_module_{year}", on_links + on_lease, upper=1.0)
        if not len(leased):
            m.constrain("one_module", on_links, upper=1.0)


def _require_setup(
    m: ProgramBuilder, problem: CapacityPlanning, bought: Variables, setup: Variables, largest: Floats
) -> None:
    """Add the rows by which a link pays its setup with its first module.

    largest  (M,) most of each module
    """
    modules, years = problem.options, len(problem.year_numbers)
    setups = np.flatnonzero(problem.setup_cost > 0)
    # a link pays its setup with its first module
    first = np.flatnonzero(np.isin(modules.link, setups) & (largest > 0))
    link_setup = setup.T[np.searchsorted(setups, modules.link[first])]
    until = np.triu(np.ones((years, years)))
    stays, given_back = first[~modules.leased[first]], first[modules.leased[first]]
    paid = (link_setup * largest[first, None]) @ until
    of_owned, of_leased = ~modules.leased[first], modules.leased[first]
    m.constrain("setup", bought.T[stays] @ until - paid[of_owned], upper=0.0)
    if len(given_back):
        m.constrain("setup_of_leases", bought.T[given_back] - paid[of_leased], upper=0.0)
