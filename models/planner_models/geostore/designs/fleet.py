"""Placement over regions with few servers: column generation, with a price of load for each region.

A column is a plan of one component of groups, with its cost and its load of each region. The master program
picks one column for each component; load beyond the servers of a region is refused at a penalty:

    min  sum_k usd_k v_k + p sum_j r_j
    s.t. sum of v_k of each component = 1,  sum_k load_kj v_k - r_j <= capacity_j,  v, r >= 0

Prices of load by region, from the duals of the capacities, make new columns: each component is placed alone
at these prices. The bounds of these placements less the price of all capacity are a bound on the cost of all
plans (Lagrangian relaxation), for prices from 0 to the penalty. Prices are smoothed between those of the
master and those of the best bound (Wentges 1997).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import scipy.sparse as sp

from planner import backends
from planner.arrays import Bools, Floats, Ints
from planner.backends.program_builder import ProgramBuilder
from planner.options import Options
from planner_models.geostore.designs.placed import Placed
from planner_models.geostore.designs.placer import Placer
from planner_models.geostore.plan.plan import GroupPlan
from planner_models.geostore.problem.costs import load_factor
from planner_models.geostore.problem.problem import Geostore
from planner_models.geostore.problem.schema import CODED

MAX_ROUNDS: Final = 40
SMOOTHING: Final = 0.5
"""Weight of the prices of the best bound in those of the next columns."""
MASTER_SHARE: Final = 0.2
"""Share of the gap between the master and the bound at which no more columns are made."""
MAX_INTEGER: Final = 500
"""Components up to which the last master is solved as an integer program."""
INTEGER_LIMIT_S: Final = 20.0
MAX_PASSES: Final = 5


@dataclass(frozen=True, kw_only=True, eq=False)
class Column:
    """A plan of a component: its cost without prices, USD a month, and its load, (N,) operations a second."""

    groups: tuple[GroupPlan, ...]
    usd: float
    load: Floats

    @property
    def key(self) -> bytes:
        """Content of the plan; plans with the same one are the same column."""
        return b"".join(
            plan.copies.tobytes() + plan.reads.tobytes() + plan.writes.tobytes() for plan in self.groups
        )


def group_load(problem: Geostore, plan: GroupPlan) -> Floats:
    """Return the operations a second of a group on the servers of each region, (N,)."""
    users = problem.users_of[plan.group]
    reads, writes = problem.use("reads_per_s")[users], problem.use("writes_per_s")[users]
    share = problem.term("replication_load")
    load = share * writes.sum() * plan.copies + reads @ plan.reads
    if share != 1.0:
        entry = np.argmax(plan.writes, axis=1)
        if plan.leader >= 0:
            entry = np.full(len(users), plan.leader)
        elif plan.kind in ("quorum", CODED):
            entry = problem.user_region[users]
        np.add.at(load, entry, (1 - share) * writes * (plan.copies[entry] > 0))
    return np.asarray(load * load_factor(problem, plan.kind == "causal"))


def component_load(problem: Geostore, groups: tuple[GroupPlan, ...]) -> Floats:
    """Return the operations a second of some groups on the servers of each region, (N,)."""
    return np.asarray(sum(group_load(problem, plan) for plan in groups))


class Fleet:
    """Column generation over the plans of all components.

    bound  no plan costs less, with the penalty of what is refused, USD a month
    """

    def __init__(self, placer: Placer, first: list[Placed]) -> None:
        self.problem, self.gap, self.deadline = placer.problem, placer.gap, placer.deadline
        self.placer = placer
        self.limited: Ints = np.flatnonzero(self.problem.is_limited)
        self.capacity = self.problem.capacity[self.limited]
        self.columns: list[list[Column]] = [[] for _ in first]
        self.keys: set[tuple[int, bytes]] = set()
        self.bound = placer.bound
        self.best_prices = np.zeros(len(self.limited))
        self.starts: dict[int, Bools] = {}
        self._add_columns(first, self.best_prices)

    def solve(self) -> list[GroupPlan]:
        """Return the plans of all groups, after columns until the bound is near the master program."""
        for _ in range(MAX_ROUNDS):
            weights, prices, value = self._solve_master()
            self._select(weights)
            if self._is_proven():
                return [plan for column in self._selected for plan in column.groups]
            is_near = value - self.bound <= MASTER_SHARE * self.gap * abs(value)
            if is_near or self.deadline.is_over or not self._price(prices):
                break
        weights, _, _ = self._solve_master(integer=len(self.columns) <= MAX_INTEGER)
        self._select(weights)
        self.placer.is_cut = False  # what was cut in the search shows in the bound
        return [plan for column in self._selected for plan in column.groups]

    def _is_proven(self) -> bool:
        """Return whether the selected plans cost no more than the bound and the gap."""
        load = sum(column.load[self.limited] for column in self._selected)
        refused = float(np.maximum(load - self.capacity, 0.0).sum())
        usd = sum(column.usd for column in self._selected) + self.problem.refused_usd * refused
        return bool(usd - self.bound <= self.gap * abs(usd))

    # --- columns ----------------------------------------------------------------------------

    def _add_columns(self, placed: list[Placed], prices: Floats) -> bool:
        """Add the plans of all components at some prices; return whether any is new."""
        is_new = False
        for number, item in enumerate(placed):
            load = component_load(self.problem, item.groups)
            usd = item.cost - float(prices @ load[self.limited])
            column = Column(groups=item.groups, usd=usd, load=load)
            key = (number, column.key)
            if key not in self.keys:
                self.keys.add(key)
                self.columns[number].append(column)
                is_new = True
            first = item.groups[0].group
            if len(item.groups) == 1:
                self.starts[first] = item.groups[0].copies[None, :] > 0
        return is_new

    def _price(self, prices: Floats) -> bool:
        """Add the plans of all components at smoothed prices, and the bound; return whether any is better."""
        for smoothing in (SMOOTHING, 0.0):
            smoothed = smoothing * self.best_prices + (1 - smoothing) * prices
            if self._price_at(smoothed):
                return True
        return False

    def _price_at(self, prices: Floats) -> bool:
        """Add the plans of all components at prices, (L,), and their bound; return whether any is better."""
        load_usd = np.zeros(len(self.problem.regions))
        load_usd[self.limited] = prices
        placer = self.placer.at_prices(load_usd, self.starts)
        placed = placer.place_all()
        bound = placer.bound - float(prices @ self.capacity)
        is_better = bound > self.bound + 1e-9 * abs(self.bound)
        if is_better:
            self.bound, self.best_prices = bound, prices
        return self._add_columns(placed, prices) or is_better

    # --- master program ---------------------------------------------------------------------

    def _solve_master(self, *, integer: bool = False) -> tuple[Floats, Floats, float]:
        """Return the weight of each column, the price of load in each limited region, (L,), and the cost."""
        owner = np.repeat(np.arange(len(self.columns)), [len(columns) for columns in self.columns])
        flat = [column for columns in self.columns for column in columns]
        usd = np.array([column.usd for column in flat])
        load = np.array([column.load[self.limited] for column in flat])
        m = ProgramBuilder(name="fleet")
        weight = m.variables("plan", len(flat), upper=1.0, cost=usd, integer=integer)
        refused = m.variables("refused", len(self.limited), cost=self.problem.refused_usd)
        m.constrain("one", weight.sum_by(owner, len(self.columns)), equal=1.0)
        capacity = m.constrain("capacity", sp.csr_array(load.T) @ weight - refused, upper=self.capacity)
        limit = Options(threads=1, gap=self.gap / 10, time_limit_s=INTEGER_LIMIT_S if integer else None)
        solution = backends.solve(m.build(), limit)
        if solution.x is None:  # an integer program that found nothing in time
            return self._solve_master()
        prices = np.zeros(len(self.limited))
        if solution.row_duals is not None:
            prices = np.clip(-capacity.values(solution.row_duals), 0.0, self.problem.refused_usd)
        return weight.values(solution.x), prices, float(solution.objective or 0.0)

    def _select(self, weights: Floats) -> None:
        """Select the column of each component with the largest weight, then exchange columns by cost."""
        ends = np.cumsum([len(columns) for columns in self.columns])
        rows = [int(chunk.argmax()) for chunk in np.split(weights, ends[:-1])]
        load = sum(columns[row].load[self.limited] for columns, row in zip(self.columns, rows, strict=True))
        for _ in range(MAX_PASSES):
            is_improved = False
            for number, columns in enumerate(self.columns):
                if len(columns) == 1:
                    continue
                others = load - columns[rows[number]].load[self.limited]
                row = self._cheapest(columns, others)
                if row != rows[number]:
                    rows[number], is_improved = row, True
                load = others + columns[row].load[self.limited]
            if not is_improved:
                break
        self._selected = [columns[row] for columns, row in zip(self.columns, rows, strict=True)]

    def _cheapest(self, columns: list[Column], others: Floats) -> int:
        """Return the column of least cost with penalty beside the load of all other components, (L,)."""
        load = others + np.array([column.load[self.limited] for column in columns])
        excess = np.maximum(load - self.capacity, 0.0).sum(axis=1)
        usd = np.array([column.usd for column in columns])
        return int(np.argmin(usd + self.problem.refused_usd * excess))
