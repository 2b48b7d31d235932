"""Column generation for splittable segment routing: the least utilization, and a bound for all designs.

    min U   subject to   sum_p load_e(p) w(p) <= U c_e  for every link e,   sum of a source's w = 1

A column is a segment list for every demand of one source. Dual prices y_e, scaled so that y_e c_e add up to
1, give prices of legs; the best columns follow by min-plus products of these: exact pricing over all
intermediate nodes. For any prices, the sum over demands of rate times price of the cheapest list is a lower
bound on U: it holds at every step. With at most `most_moved` demands off their shortest paths, only that many
of the largest savings count: the bound is the price of all demands on shortest paths, less these savings.

Programs over moves let some demands leave the list that they are on for one of a few others:

    min U   subject to   u_e + sum_j d_ej x_j <= U  for every link e,   sum of a demand's x_j <= 1,
                         sum of c_j x_j <= the moves that are left

with u_e the utilization now, d_ej the change by move j, and c_j 1 where the move takes a demand off its
shortest paths, -1 where it takes it back. With x whole it is the repair step of a large neighbourhood search;
with all demands on their shortest paths and fractional x, by column generation, it is the linear program of
few moved demands.

source  Dantzig-Wolfe decomposition; Shaw 1998 (large neighbourhood search)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import scipy.sparse as sp

from planner import backends
from planner.arrays import Bools, Floats, Ints, Ints32
from planner.backends import Solution
from planner.backends.program_builder import ProgramBuilder
from planner.options import Options
from planner.search.deadline import Deadline
from planner.search.tolerances import SOLVED_SHARE
from planner_models.flows import master_problem
from planner_models.flows.coordinate_descent import link_prices
from planner_models.graphs.indexing import sum_by_index
from planner_models.segments import segment_paths
from planner_models.segments.segment_paths import Legs

MAX_ITERATIONS: Final = 200
FIRST_ROWS: Final = 0.7  # of the largest utilization: links above it are rows of the first master problem
ROW_TOLERANCE: Final = 0.02  # links this close to the master's utilization become rows
REDUCED_COST_LIMIT: Final = 0.05  # of the mean dual value of a source: unused columns above it are removed
MIN_WEIGHT: Final = SOLVED_SHARE  # of a column that counts as used
MAX_SMOOTHING: Final = 0.02  # largest part of the load's prices in those for new columns


@dataclass(frozen=True, kw_only=True, eq=False)
class Items:
    """Demands with a rate: source, target (K,) nodes, rate (K,) Mbit/s; by source, ascending."""

    source: Ints
    target: Ints
    rate: Floats
    max_segments: int
    most_moved: int | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class SplitLists:
    """Segment lists with the share of a demand on each: demand (P,), lists (P, k - 1), share (P,)."""

    demand: Ints
    lists: Ints32
    share: Floats


def price_bound(items: Items, legs: Legs, price: Floats) -> tuple[float, Ints32]:
    """Return the bound on U for prices (E,), scaled as above, and the cheapest lists (K, k - 1)."""
    leg_price = segment_paths.price_legs(legs, price)
    list_price, first = segment_paths.cheapest_lists(leg_price, legs.middle, items.max_segments)
    plain = items.rate * leg_price[items.source, items.target]
    saved = plain - items.rate * list_price[-1, items.source, items.target]
    lists = segment_paths.follow_all(first, items.source, items.target)
    if items.most_moved is not None and items.most_moved < len(saved):
        order = np.argpartition(-saved, items.most_moved)
        saved[order[items.most_moved :]] = 0.0
    return float(plain.sum() - saved.sum()), lists


class SplittableFlow:
    """The master problem with its columns; `step` runs one iteration.

    bound, value  on the least utilization, and of the best weights of columns
    price         (E,) dual prices over capacity, of the best bound
    """

    def __init__(self, items: Items, legs: Legs, capacity: Floats, lists: Ints32) -> None:
        self.items, self.legs, self.capacity = items, legs, capacity
        self.sources, self.group = np.unique(items.source, return_inverse=True)
        self.first = np.searchsorted(self.group, np.arange(len(self.sources) + 1))
        self.columns: list[Ints32] = []
        self.owner = np.zeros(0, dtype=np.int64)
        self.load = np.zeros((0, len(capacity)))  # of each column, over capacity
        self.weight, self.best_weight = np.zeros(0), np.zeros(0)
        self.bound, self.price, self.best_price = 0.0, np.zeros(0), np.zeros(0)
        self.iterations = 0
        self._add(lists, np.arange(len(self.sources)))
        self.weight[:] = self.best_weight[:] = 1.0
        self.utilization = self.load.sum(axis=0)
        self.value = float(self.utilization.max())
        self.rows = np.flatnonzero(self.utilization > FIRST_ROWS * self.value)
        self._raise_bound(
            link_prices(
                self.utilization, np.ones(len(capacity)), np.log(len(capacity) + 1) / (0.02 * self.value)
            )
        )

    @property
    def gap(self) -> float:
        """The relative gap of value and bound."""
        return (self.value - self.bound) / self.value if self.value > 0 else 0.0

    def run(self, gap: float, deadline: Deadline) -> None:
        """Iterate to a relative gap, a deadline, or the optimum."""
        for _ in range(MAX_ITERATIONS):
            if self.gap <= gap or deadline.is_over or not self.step(gap, deadline):
                return

    def step(self, gap: float, deadline: Deadline) -> bool:
        """Solve the master, price, add columns and rows; return whether that may help on."""
        self.iterations += 1
        column = np.ascontiguousarray(self.load[:, self.rows].T)
        price = self.price[self.rows]
        master = master_problem.solve(
            column,
            self.owner,
            weight=self.weight,
            price=price if price.sum() > 0 else np.ones(len(price)),
            gap=max(min(0.1 * self.gap, 1e-2), 0.05 * gap),
            deadline=deadline,
        )
        self.weight = master.weight
        utilization = self._improve()
        error = 0.1 * self.value
        smooth = link_prices(
            self.utilization, np.ones(len(utilization)), np.log(len(utilization) + 1) / error
        )
        smoothing = min(0.2 * self.gap, MAX_SMOOTHING)
        self.price = smoothing * smooth
        self.price[self.rows] += (1 - smoothing) * master.price
        lists = self._raise_bound(self.price)
        cost = master.price @ column
        dual = np.minimum.reduceat(cost, np.searchsorted(self.owner, np.arange(len(self.sources))))
        new_load = self._column_loads(lists)
        new_cost = new_load[:, self.rows] @ master.price
        new = np.flatnonzero(new_cost < dual - 1e-9 * master.bound / len(self.sources))
        self._keep(
            (self.weight > MIN_WEIGHT)
            | (self.best_weight > 0)
            | (cost - dual[self.owner] < REDUCED_COST_LIMIT * master.value / len(dual))
        )
        self._add(lists, new, new_load)
        over = np.setdiff1d(np.flatnonzero(utilization > master.value * (1 - ROW_TOLERANCE)), self.rows)
        self.rows = np.sort(np.concatenate([self.rows, over]))
        return bool(len(new) or len(over)) or master.value - master.bound > 1e-9 * master.value

    def split(self) -> SplitLists:
        """Return the lists of the incumbent with the share of each demand, equal lists merged."""
        used = np.flatnonzero(self.best_weight > 0)
        demands, lists, shares = [], [], []
        for column in used.tolist():
            group = self.owner[column]
            span = np.arange(self.first[group], self.first[group + 1])
            demands.append(span)
            lists.append(self.columns[column])
            shares.append(np.full(len(span), self.best_weight[column]))
        demand, row = np.concatenate(demands), np.concatenate(lists)
        key = np.column_stack([demand, row])
        distinct, inverse = np.unique(key, axis=0, return_inverse=True)
        share = sum_by_index(inverse.ravel(), np.concatenate(shares), len(distinct))
        total = sum_by_index(distinct[:, 0], share, len(self.items.rate))
        return SplitLists(
            demand=distinct[:, 0], lists=distinct[:, 1:].astype(np.int32), share=share / total[distinct[:, 0]]
        )

    def _raise_bound(self, price: Floats) -> Ints32:
        value, lists = price_bound(self.items, self.legs, price / price.sum() / self.capacity)
        if value > self.bound or not len(self.best_price):
            self.bound, self.best_price = max(value, self.bound), price / price.sum() / self.capacity
        if not len(self.price):
            self.price = price
        return lists

    def _column_loads(self, lists: Ints32) -> Floats:
        items = self.items
        load = np.zeros((len(self.sources), len(self.capacity)))
        segment_paths.load_by_group(
            self.legs, items.source, items.target, items.rate, lists, self.group, load
        )
        return np.asarray(load / self.capacity)

    def _improve(self) -> Floats:
        """Move the incumbent by line search to the master's solution; return the latter's utilization."""
        load = self.weight @ self.load
        low, high, inner = 0.0, 1.0, (np.sqrt(5.0) - 1) / 2

        def largest(t: float) -> float:
            return float(((1 - t) * self.utilization + t * load).max())

        for _ in range(40):
            a, b = high - inner * (high - low), low + inner * (high - low)
            low, high = (low, b) if largest(a) <= largest(b) else (a, high)
        share = min((largest(t), t) for t in (0.0, (low + high) / 2, 1.0))[1]
        if share > 0:
            weight = (1 - share) * self.best_weight + share * self.weight
            weight = np.where(weight > 1e-9, weight, 0.0)
            self.best_weight = weight / sum_by_index(self.owner, weight, len(self.sources))[self.owner]
            self.utilization = self.best_weight @ self.load
            self.value = float(self.utilization.max())
        return np.asarray(load)

    def _add(self, lists: Ints32, groups: Ints, load: Floats | None = None) -> None:
        load = self._column_loads(lists) if load is None else load
        self.columns += [lists[self.first[g] : self.first[g + 1]] for g in groups.tolist()]
        self.owner = np.concatenate([self.owner, groups])
        self.load = np.concatenate([self.load, load[groups]])
        zero = np.zeros(len(groups))
        self.weight = np.concatenate([self.weight, zero])
        self.best_weight = np.concatenate([self.best_weight, zero])
        self._take(np.argsort(self.owner, kind="stable"))

    def _keep(self, mask: np.ndarray) -> None:
        self._take(np.flatnonzero(mask))
        self.weight /= sum_by_index(self.owner, self.weight, len(self.sources))[self.owner]
        self.best_weight /= sum_by_index(self.owner, self.best_weight, len(self.sources))[self.owner]

    def _take(self, columns: Ints) -> None:
        self.columns = [self.columns[c] for c in columns.tolist()]
        self.owner, self.load = self.owner[columns], self.load[columns]
        self.weight, self.best_weight = self.weight[columns], self.best_weight[columns]


@dataclass(frozen=True, kw_only=True, eq=False)
class Moves:
    """Moves of demands: item (J,), ascending, its new lists (J, k - 1), change (J, E) of utilization."""

    item: Ints
    lists: Ints32
    change: sp.csr_array


def find_changes(items: Items, legs: Legs, capacity: Floats, now: Ints32, item: Ints, lists: Ints32) -> Moves:
    """Return the moves of each item from its list in `now` (K, k - 1) to the one in `lists` (J, k - 1)."""
    order = np.argsort(item, kind="stable")
    item, lists = item[order], lists[order]
    parts = []
    for rows, sign in ((lists, 1.0), (now[item], -1.0)):
        start, link, amount = segment_paths.flow_of_lists(
            legs, items.source[item], items.target[item], rows, items.rate[item]
        )
        shape = (len(item), len(capacity))
        parts.append(sp.csr_array((sign * amount / capacity[link], link, start), shape=shape))
    return Moves(item=item, lists=lists, change=sp.csr_array(parts[0] + parts[1]))


def solve(
    moves: Moves,
    utilization: Floats,
    moved: Ints,
    most_moved: int | None,
    options: Options,
    *,
    whole: bool,
) -> tuple[Solution, Floats, float]:
    """Solve the program of some moves.

    utilization  (E,) now
    moved        (J,) c_j of each move
    most_moved   right-hand side of the moves that are left; None: no limit

    returns  solution, dual prices (E,) of links, at least 0 and adding up to 1 or 0, and that of the limit
    """
    count, links = len(moves.item), len(utilization)
    distinct, row = np.unique(moves.item, return_inverse=True)

    m = ProgramBuilder(name="moves of segment lists")
    x = m.variables("move", count, upper=1.0, integer=whole)
    t = m.variables("utilization", cost=1.0)
    m.constrain("capacity", moves.change.T @ x - t, upper=-utilization)
    m.constrain("one", x.sum_by(row, len(distinct)), upper=1.0)
    if most_moved is not None:
        m.constrain("moved", moved[None, :] @ x, upper=most_moved)
    solution = backends.solve(m.build(), options)
    duals = solution.row_duals
    if duals is None:
        return solution, np.zeros(links), 0.0
    price = np.maximum(-duals[:links], 0.0)
    return solution, price, max(-float(duals[-1]), 0.0) if most_moved is not None else 0.0


def apply(moves: Moves, x: Floats, lists: Ints32) -> Ints32:
    """Return the lists (K, k - 1) after the moves that are chosen, x of 1."""
    selected = np.flatnonzero(x[: len(moves.item)] > 0.5)
    after = lists.copy()
    after[moves.item[selected]] = moves.lists[selected]
    return after


def cheap_lists(items: Items, legs: Legs, price: Floats, selected: Ints, count: int) -> tuple[Ints, Ints32]:
    """Return the cheapest lists of the chosen items (C,) by first node, and their shortest paths.

    returns  item (J,) and lists (J, k - 1), at most `count` + 1 of each item
    """
    leg_price = segment_paths.price_legs(legs, price)
    list_price, first = segment_paths.cheapest_lists(leg_price, legs.middle, items.max_segments)
    source, target = items.source[selected], items.target[selected]
    through = leg_price[source][:, legs.middle] + list_price[-2][legs.middle][:, target].T  # (C, M)
    ends = (legs.middle == source[:, None]) | (legs.middle == target[:, None])
    through[ends] = np.inf
    best = np.argsort(through, axis=1, kind="stable")[:, :count]
    row, column = np.nonzero(np.isfinite(np.take_along_axis(through, best, axis=1)))
    node = legs.middle[best[row, column]]
    lists = segment_paths.follow_through(first, node, target[row])
    plain = np.repeat(target[:, None], items.max_segments - 1, axis=1).astype(np.int32)
    return np.r_[selected[row], selected], np.concatenate([lists, plain])


def differ(now: Ints32, item: Ints, lists: Ints32) -> Bools:
    """Return whether each list (J, k - 1) is another than that of its item in `now` (K, k - 1)."""
    return np.asarray((now[item] != lists).any(axis=1))
