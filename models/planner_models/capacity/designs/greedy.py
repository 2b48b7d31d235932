"""Greedy purchases: the module that saves most for its cost, again and again, until all demands fit.

Heuristics over purchases: buy the most useful module by cost until all demands fit, then drop others.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from planner.arrays import Floats
from planner.contract.design import Decision
from planner.options import Options
from planner.search.deadline import NEVER, Deadline
from planner_models.capacity.designs.decision import Proven, decide
from planner_models.capacity.plan.check import least_shed
from planner_models.capacity.plan.plan import Purchases
from planner_models.capacity.problem.problem import CapacityPlanning
from planner_models.capacity.problem.tables import FITS
from planner_models.capacity.routing import FlowProgram, capacity_by_year, required_rate, usable_share

KEPT: Final = frozenset({"limits", "capacity", "budget"})
MOST_PROGRAMS = 4_000
MOST_FLOWS = 4_000_000
"""Linear programs, and flow variables of all of them, that dropping may take: it ends in seconds, and always
the same way."""
SHED_AT_ONCE = 0.01
"""Part of what is shed that modules bought at once may carry; few modules are bought one by one."""
BUDGET_ROUNDING: Final = 1 + 1e-9
"""Factor of the budget up to which the rounded sum of costs is within it."""


def plan(problem: CapacityPlanning, *, options: Options = Options()) -> Decision[Purchases]:
    """Buy the module that makes most traffic fit for its cost, until all fits; then drop unnecessary ones.

    What a module saves is found by the dual prices of the linear program of what fits in a state. At the time
    limit, the purchases so far are the plan: it may leave demand unserved, or modules that are not needed.
    """
    search = PurchaseSearch.start(problem, deadline=Deadline.of(options))
    search.climb()
    search.drop()
    return decide(
        problem, search.counts, options=options, guarantees=KEPT, proven=Proven(is_cut=search.is_cut)
    )


@dataclass(frozen=True, kw_only=True)
class Step:
    """One purchase of a ladder.

    year    its place
    module  row of the problem's options
    """

    year: int
    module: int


@dataclass(eq=False, kw_only=True)
class PurchaseSearch:
    """State of a search over purchases.

    counts    (Y, M) modules bought in each year
    most      (Y, M) most that may be bought in each year; None: what the problem allows
    steps     purchases in their order
    programs  linear programs that were solved
    deadline  at which buying and dropping end
    is_cut    whether they ended there
    """

    problem: CapacityPlanning
    program: FlowProgram
    counts: Floats
    most: Floats | None = None
    steps: list[Step] = field(default_factory=list)
    programs: int = 0
    deadline: Deadline = NEVER
    is_cut: bool = False

    @classmethod
    def start(
        cls, problem: CapacityPlanning, program: FlowProgram | None = None, *, deadline: Deadline = NEVER
    ) -> PurchaseSearch:
        """Return a search that has bought nothing."""
        shape = (len(problem.year_numbers), len(problem.options.link))
        counts = np.zeros(shape)
        return cls(problem=problem, program=program or FlowProgram(problem), counts=counts, deadline=deadline)

    def only(self, counts: Floats) -> None:
        """Allow no other purchases than these, (Y, M)."""
        self.most = counts

    @property
    def spent(self) -> float:
        """Cost of modules and setup so far."""
        return purchase_cost(self.problem, self.counts)

    def shed(self, year: int, state: int, capacity: Floats) -> tuple[float, Floats]:
        """Return the traffic shed beyond the unavoidable, and the prices of capacity, (L,)."""
        self.programs += 1
        up = usable_share(self.problem, state) * capacity
        rate = required_rate(self.problem, year, state)
        shed, price = self.program.price(up, rate)
        must = least_shed(self.problem)[year, state]
        cut = float((self.problem.rate_mbps[year] * self.problem.cut_off[0]).sum())
        rounding = self.problem.rounding_share * float(rate.sum())
        if shed <= rounding:  # demands without a path, or none
            return (shed if must - cut <= rounding else 0.0), price
        beyond = shed + cut - must
        return (beyond if beyond > rounding / 2 else 0.0), price

    def climb(self) -> None:
        """Buy until all demands fit in every year and state, nothing more can be bought, or time is up."""
        for year in range(len(self.counts)):
            for _ in range(2):  # a purchase for one state may not undo another, but prices may mislead once
                for state in range(1 + len(self.problem.states.names)):
                    while not self._is_late() and self._buy(year, state):
                        pass

    def _is_late(self) -> bool:
        """Return whether time is up, and remember it."""
        self.is_cut |= self.deadline.is_over
        return self.is_cut

    def _buy(self, year: int, state: int) -> bool:
        """Buy the module that saves most for its cost in a state; return whether there was one to buy."""
        problem, options = self.problem, self.problem.options
        capacity = capacity_by_year(problem, self.counts)[year]
        shed, price = self.shed(year, state, capacity)
        if shed <= 0:
            return False
        price = usable_share(problem, state) * price
        total = self.counts.sum(axis=0)
        remaining = options.limit - largest_later(problem, self.counts, year)
        if self.most is not None:
            remaining = np.minimum(remaining, self.most[year] - self.counts[year])
        if problem.one_module:
            taken = on_lines_later(problem, self.counts, year) > 0
            remaining = np.where(taken, 0.0, remaining)
        has = np.bincount(options.link, weights=total, minlength=len(problem.lines)) > 0
        setup = np.where(has, 0.0, problem.setup_cost)[options.link]
        cost = lasting_cost(problem, year) + setup * problem.price_factor[year]
        saved = np.minimum(price[options.link] * options.size, shed)
        able = (remaining >= 1) & (saved > 0)
        if problem.budget is not None:
            able &= self.spent + cost <= problem.budget * BUDGET_ROUNDING
        if not able.any():
            return False
        saved_per_cost = np.where(able, saved / np.maximum(cost, 1e-9 * max(float(cost.max()), 1e-9)), -1.0)
        best = int(np.argmax(saved_per_cost))
        count = self._count_at_once(year, best, shed, float(remaining[best]), float(setup[best]))
        self.counts[year, best] += count
        self.steps += [Step(year=year, module=best)] * count
        return True

    def _count_at_once(self, year: int, module: int, shed: float, remaining: float, setup: float) -> int:
        """Return the number of modules to buy for one price of capacity: 1 if few are missing.

        Prices change as modules are bought: so many add up to a small part of what is shed.
        """
        options = self.problem.options
        count = min(SHED_AT_ONCE * shed / float(options.size[module]), remaining)
        if self.problem.one_module:
            count = 1.0
        if self.problem.budget is not None:
            cost = float(options.cost[module] * self.problem.price_factor[year])
            limit = self.problem.budget * BUDGET_ROUNDING
            remaining_budget = limit - self.spent - setup * float(self.problem.price_factor[year])
            count = min(count, remaining_budget / cost if cost > 0 else count)
        return max(int(count), 1)

    def fits(self, year: int, first: list[int]) -> bool:
        """Return whether all demands fit in all states of the years from one on; `first` is tried first.

        The state that fails moves to the front.
        """
        capacity = capacity_by_year(self.problem, self.counts)
        for later_year in range(year, len(self.counts)):
            for state in list(first):
                if self.shed(later_year, state, capacity[later_year])[0] > 0:
                    first.remove(state)
                    first.insert(0, state)
                    return False
        return True

    def drop(self) -> None:
        """Drop modules that are not needed, the most expensive first, or buy them in a later year."""
        problem, options = self.problem, self.problem.options
        order = list(range(1 + len(problem.states.names)))
        max_programs = self.programs + min(MOST_PROGRAMS, MOST_FLOWS // max(self.program.flow_columns, 1))
        if self._is_late() or not self.fits(0, order):
            return
        for year in range(len(self.counts)):
            value = options.cost + problem.setup_cost[options.link]
            for module in np.argsort(-value, kind="stable").tolist():
                while self.counts[year, module] > 0 and self.programs < max_programs and not self._is_late():
                    self.counts[year, module] -= 1
                    if self.fits(year, order):
                        continue
                    self.counts[year, module] += 1
                    if not self._defer(year, module, order):
                        break

    def _defer(self, year: int, module: int, order: list[int]) -> bool:
        """Buy a module in a later year instead, the last one in which all demands fit and it costs less."""
        price = self.problem.price_factor
        for later in range(len(self.counts) - 1, year, -1):
            if price[later] >= price[year] or self.problem.options.leased[module]:
                continue
            self.counts[year, module] -= 1
            self.counts[later, module] += 1
            if self.fits(year, order):
                return True
            self.counts[year, module] += 1
            self.counts[later, module] -= 1
        return False


def lasting_cost(problem: CapacityPlanning, year: int) -> Floats:
    """Return the cost of each module from a year to the end, (M,): a leased one is paid in each year."""
    price = np.where(problem.options.leased, problem.price_factor[year:].sum(), problem.price_factor[year])
    return np.asarray(problem.options.cost * price)


def largest_later(problem: CapacityPlanning, counts: Floats, year: int) -> Floats:
    """Return the most of each module that are there while one more from a year on would be, (M,)."""
    options = problem.options
    present = options.in_force(counts)
    return np.asarray(np.where(options.leased, present[year], present[year:].max(axis=0)))


def on_lines_later(problem: CapacityPlanning, counts: Floats, year: int) -> Floats:
    """Return the modules on each link while one more from a year on would be there, by module, (M,)."""
    options = problem.options
    present = options.in_force(counts)
    lines = len(problem.lines)
    on_line = np.array([np.bincount(options.link, weights=row, minlength=lines) for row in present])
    later = on_line[year:].max(axis=0)
    return np.asarray(np.where(options.leased, on_line[year][options.link], later[options.link]))


def serve_small_demands(problem: CapacityPlanning, counts: Floats) -> Floats:
    """Return purchases with the modules that small demands lack, which programs take for none, (Y, M).

    The tolerance of a program over all demands hides those that are small beside the others.
    """
    if problem.rounding_share >= FITS:
        return counts
    search = PurchaseSearch.start(problem)
    search.counts = counts.copy()
    capacity = capacity_by_year(problem, counts)
    for year in range(len(counts)):
        hidden = FITS * float(problem.rate_mbps[year].sum())
        for state in range(1 + len(problem.states.names)):
            if 0 < search.shed(year, state, capacity[year])[0] <= hidden:
                search.climb()
                return search.counts
    return counts


def purchase_cost(problem: CapacityPlanning, counts: Floats) -> float:
    """Return the cost of (Y, M) modules, with setup."""
    options = problem.options
    total, paid = 0.0, np.zeros(len(problem.lines), dtype=bool)
    for price, bought in zip(problem.price_factor.tolist(), counts, strict=True):
        has = np.bincount(options.link, weights=bought, minlength=len(problem.lines)) > 0
        total += price * float(bought @ options.cost + problem.setup_cost[has & ~paid].sum())
        paid |= has
    return total
