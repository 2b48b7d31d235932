"""Numbers of members at sites: dynamic programming up the tree, over alternatives that none dominates.

An alternative is a number of members at each leaf below a site. It is dominated by another one with as many
members where, for every number of live members elsewhere, the other is no more likely to be too few; costs no
more; and has as many members near the leader. A site's alternatives are those of the sites in it, convolved;
sites that enough others cover are left out, and those that are alike are computed once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from planner.arrays import Bools, Floats, Ints
from planner.contract.units import MONTH_S
from planner.search.deadline import NEVER, Deadline
from planner_models.membership.designs.substitutes import Substitutes
from planner_models.membership.plan.availability import (
    LiveTable,
    RiskScope,
    convolve,
    live_at_leaf,
)
from planner_models.membership.problem.tree import SiteTree

GAP: Final = 2e-5
"""Relative difference of the first values up to which a choice is no better."""
EQUAL: Final = 1e-12
"""Difference of probabilities, relative to the larger one, up to which alternatives are equal."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Request:
    """One choice of numbers of members.

    size        members in all
    quorum      members that must be up
    quorum_near  members that must be near the leader, the leader among them
    allowed     (S,) leaves that may have members
    near        (S,) leaves near enough to the leader
    seconds     (S,) seconds down in a month that each member at a leaf adds, such as by false alarms
    price       (S,) price of a member
    leader      leaf that must have a member; None: any
    base_s      seconds down in a month of every alternative, such as failovers of the leader
    price_limit largest price of all members
    witness     (S,) leaves whose members only vote; None: none
    witnesses   most members that only vote
    """

    size: int
    quorum: int
    quorum_near: int
    allowed: Bools
    near: Bools
    seconds: Floats
    price: Floats
    leader: int | None = None
    base_s: float = 0.0
    price_limit: float = float("inf")
    witness: Bools | None = None
    witnesses: int = 0


@dataclass(frozen=True, kw_only=True, eq=False)
class Alternatives:
    """K alternatives below a site.

    members, near  (K,) members, and those near the leader
    witnesses  (K,) members that only vote
    seconds, price  (K,) of all members
    leaves, counts  (L,) leaves, and (K, L) members at each
    """

    members: Ints
    near: Ints
    witnesses: Ints
    seconds: Floats
    price: Floats
    live: LiveTable
    leaves: Ints
    counts: Ints

    def take(self, rows: Ints) -> Alternatives:
        """Return some of the alternatives."""
        return Alternatives(
            members=self.members[rows],
            near=self.near[rows],
            witnesses=self.witnesses[rows],
            seconds=self.seconds[rows],
            price=self.price[rows],
            live=self.live.take(rows),
            leaves=self.leaves,
            counts=self.counts[rows],
        )


Value = Callable[[Floats, Floats], tuple[Floats, Floats]]
"""(seconds down in a month, price) -> the values to compare, first and second; smaller is better."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Choice:
    """The best numbers of members by site.

    quorum_s  seconds in a month without a quorum
    down_s    the same with the seconds that members add, and those of every alternative
    price     of all members for a month
    """

    counts: dict[int, int]
    quorum_s: float
    down_s: float
    price: float


def least_down(down_s: Floats, price: Floats) -> tuple[Floats, Floats]:
    """Return seconds down first, a month of them at most, then the price."""
    return np.minimum(down_s, MONTH_S), price


class CountSearch:
    """Search of the best numbers of members for one request."""

    def __init__(
        self,
        tree: SiteTree,
        request: Request,
        *,
        value: Value = least_down,
        incumbent: tuple[float, float] = (float("inf"), float("inf")),
        deadline: Deadline = NEVER,
    ) -> None:
        """Prepare a search.

        incumbent  values, which a choice must improve on to be returned
        """
        self.tree, self.request, self.value, self.deadline = tree, request, value, deadline
        self.incumbent = incumbent
        leaves = tree.leaves[request.allowed[tree.leaves]]
        used = np.zeros(len(tree.parent), dtype=bool)
        for leaf in leaves.tolist():
            used[list(tree.paths[leaf])] = True
        self._used = used
        self._scope = RiskScope(tree, used)
        self._substitutes = Substitutes(
            tree=tree,
            scope=self._scope,
            used=used,
            leader=request.leader,
            of_leaf=_figures_of_leaves(tree, request),
            size=request.size,
        )
        self._shared: dict[bytes, tuple[Alternatives | None, Ints | None]] = {}
        capacity = np.minimum(tree.capacity[leaves], request.size)
        self._cheapest: Floats = np.sort(np.repeat(request.price[leaves], capacity))[: request.size]
        self._fewest_s: Floats = np.sort(np.repeat(request.seconds[leaves], capacity))[: request.size]
        self.is_cut = False
        self.dropped_first = float("inf")
        """Least first value of what was dropped although it may be better, by less than the gap."""

    def run(self) -> Choice | None:
        """Return the best choice; None where none improves on the incumbent, or where time is over."""
        if len(self._cheapest) < self.request.size:
            return None
        total = self._merge_children(-1)
        if total is None or self.is_cut:
            return None
        total = replace(total, live=self._scope.close(-1, total.live))
        is_full = (total.members == self.request.size) & (total.near >= self.request.quorum_near)
        if self.request.witness is not None:
            is_full &= total.witnesses <= self.request.witnesses
        total = total.take(np.flatnonzero(is_full & (total.price <= self.request.price_limit * (1 + 1e-9))))
        if not len(total.members):
            return None
        short = total.live.table[:, : self.request.quorum].sum(axis=(1, 2))
        down = MONTH_S * short + total.seconds + self.request.base_s
        first, second = self.value(down, total.price)
        best = pick(first, second)
        if not improves((float(first[best]), float(second[best])), self.incumbent):
            self.dropped_first = min(self.dropped_first, float(first[best]))
            return None
        counts = dict(zip(total.leaves.tolist(), total.counts[best].tolist(), strict=True))
        return Choice(
            counts={leaf: counts[leaf] for leaf in sorted(counts) if counts[leaf]},
            quorum_s=float(MONTH_S * short[best]),
            down_s=float(down[best]),
            price=float(total.price[best]),
        )

    def _below(self, site: int, key: bytes | None) -> Alternatives | None:
        """Return the alternatives of a site with its own failures; those with the same key are found once."""
        if key is None:
            return self._find_below(site)
        leaves = np.array(self._substitutes.shape(site).leaves)
        if key not in self._shared:
            below = self._find_below(site)
            positions = None if below is None else np.flatnonzero(np.isin(leaves, below.leaves))
            self._shared[key] = below, positions
        shared, rows = self._shared[key]
        return None if shared is None else replace(shared, leaves=leaves[rows])

    def _find_below(self, site: int) -> Alternatives | None:
        if not self.tree.children[site]:
            return self._at_leaf(site)
        inside = self._merge_children(site)
        return None if inside is None else replace(inside, live=self._scope.pass_up(site, inside.live))

    def _merge_children(self, site: int) -> Alternatives | None:
        """Return the alternatives of all sites in one; None where none may lead to a better choice."""
        merged: Alternatives | None = None
        used = [child for child in self.tree.children[site] if self._used[child]]
        children = self._substitutes.select(used)
        for child, key in children:
            if self.deadline.is_over:
                self.is_cut = True
                return None
            below = self._below(child, key)
            if below is not None and merged is not None:
                if site < 0 and child == children[-1][0]:
                    return self._combine(merged, below, is_last=True)
                below = self._prune(self._combine(merged, below))
            if below is None:
                return None
            merged = below
        return merged

    def _at_leaf(self, leaf: int) -> Alternatives:
        """Return an alternative for each number of members at a leaf; at least one of the leader's."""
        request = self.request
        upper = min(int(self.tree.capacity[leaf]), request.size)
        numbers = np.arange(1 if leaf == request.leader else 0, upper + 1)
        tables = [
            live_at_leaf(self.tree, self._scope, leaf, (count, 0), (request.size, 0))
            for count in numbers.tolist()
        ]
        return Alternatives(
            members=numbers,
            near=numbers * int(request.near[leaf]),
            witnesses=numbers * int(request.witness is not None and request.witness[leaf]),
            seconds=numbers * request.seconds[leaf],
            price=numbers * request.price[leaf],
            live=LiveTable(risks=tables[0].risks, table=np.concatenate([table.table for table in tables])),
            leaves=np.array([leaf]),
            counts=numbers[:, None],
        )

    def _combine(self, first: Alternatives, other: Alternatives, *, is_last: bool = False) -> Alternatives:
        """Return all pairs of alternatives with no more members than requested, or just as many."""
        total = first.members[:, None] + other.members[None]
        row, column = np.nonzero(total == self.request.size if is_last else total <= self.request.size)
        limit = int(other.members.max(initial=0))
        return Alternatives(
            members=first.members[row] + other.members[column],
            near=first.near[row] + other.near[column],
            witnesses=first.witnesses[row] + other.witnesses[column],
            seconds=first.seconds[row] + other.seconds[column],
            price=first.price[row] + other.price[column],
            live=convolve(first.live.take(row), other.live.take(column), (limit, 0)),
            leaves=np.concatenate([first.leaves, other.leaves]),
            counts=np.concatenate([first.counts[row], other.counts[column]], axis=1),
        )

    def _prune(self, options: Alternatives) -> Alternatives | None:
        """Return the alternatives that may improve and that no other one dominates; None for none."""
        request = self.request
        missing = request.size - options.members
        cheapest = np.concatenate([[0.0], np.cumsum(self._cheapest)])
        fewest_s = np.concatenate([[0.0], np.cumsum(self._fewest_s)])
        price = options.price + cheapest[missing]
        enough = (options.near + missing >= request.quorum_near) & (price <= request.price_limit * (1 + 1e-9))
        if request.witness is not None:
            enough &= options.witnesses <= request.witnesses
        short = shortfalls(options.live, request.quorum)
        best_short = _mean_over_risks(options.live.risks, short, self._scope.down)[
            np.arange(len(missing)), np.minimum(missing, request.quorum)
        ]
        down = MONTH_S * best_short + options.seconds + fewest_s[missing] + request.base_s
        first, second = self.value(down, price)
        is_better = first < self.incumbent[0] * (1 - GAP)
        is_better |= (first <= self.incumbent[0] * (1 + EQUAL)) & (second < self.incumbent[1])
        self.dropped_first = min(self.dropped_first, float(first[enough & ~is_better].min(initial=np.inf)))
        rows = np.flatnonzero(enough & is_better)
        if not len(rows):
            return None
        columns = [options.seconds, options.price, -options.near, options.witnesses]
        costs = np.column_stack(columns).astype(float)[rows]
        features = np.concatenate([short[rows].reshape(len(rows), -1), costs], axis=1)
        return options.take(rows[select_undominated(options.members[rows], features)])


def _figures_of_leaves(tree: SiteTree, request: Request) -> Floats:
    """Return figures of which a smaller one is better for a request, for each site, (S, 6)."""
    witness = np.zeros(len(tree.parent)) if request.witness is None else request.witness
    of_host = np.where(tree.is_host, tree.down, 0.0)
    columns = [of_host, -tree.capacity, ~request.near, witness, request.seconds, request.price]
    return np.column_stack([np.asarray(column, dtype=float) for column in columns])


def shortfalls(live: LiveTable, quorum: int) -> Floats:
    """Return the probability that a quorum is missing, with j live members elsewhere, (K, ..., q + 1)."""
    below = np.cumsum(live.table[..., 0], axis=-1)
    last = below.shape[-1] - 1
    columns = [below[..., min(quorum - 1 - elsewhere, last)] for elsewhere in range(quorum)]
    return np.stack([*columns, np.zeros(below.shape[:-1])], axis=-1)


def _mean_over_risks(risks: tuple[int, ...], short: Floats, down: Floats) -> Floats:
    """Return the mean over the states of the risks that are still open, (K, q + 1)."""
    for risk in reversed(risks):
        axis = short.ndim - 2
        share = down[risk]
        short = (1 - share) * np.take(short, 0, axis=axis) + share * np.take(short, 1, axis=axis)
    return short


def select_undominated(groups: Ints, features: Floats) -> Ints:
    """Return the rows that no other row of the same group is at most in every column.

    Of rows with equal features the first stays.
    """
    rows = _first_of_equal(groups, features)
    selected: list[int] = []
    for group in np.unique(groups[rows]).tolist():
        members = rows[groups[rows] == group]
        values = features[members]
        order = np.lexsort(values.T[::-1])
        selected += members[order[_pareto(values[order])]].tolist()
    return np.array(sorted(selected), dtype=np.int64)


def _first_of_equal(groups: Ints, values: Floats) -> Ints:
    """Return the first row of each set of rows of a group that differ by rounding only."""
    size = np.abs(values)
    digits = 11 - np.floor(np.log10(np.where(size > 0, size, 1.0)))
    scale = 10.0 ** np.clip(digits, -300, 300)
    rounded = np.column_stack([groups, np.round(values * scale) / scale])
    weights = np.random.default_rng(0).random(rounded.shape[1])
    order = np.lexsort((np.arange(len(groups)), rounded @ weights))  # equal rows lie together
    is_new = np.ones(len(order), dtype=bool)
    is_new[1:] = (rounded[order[1:]] != rounded[order[:-1]]).any(axis=1)
    return np.sort(order[is_new])


def _pareto(values: Floats) -> Ints:
    """Return the rows that no earlier row is at most in every column; rows ascend in the first column."""
    rows: list[int] = []
    best = np.empty_like(values)
    limits = values + EQUAL * np.abs(values)
    for row in range(len(values)):
        if not (best[: len(rows)] <= limits[row]).all(axis=1).any():
            best[len(rows)] = values[row]
            rows.append(row)
    return np.array(rows, dtype=np.int64)


def pick(first: Floats, second: Floats) -> int:
    """Return the row with the smallest first value, and of those equal in it the smallest second one."""
    smallest = float(first.min())
    rows = np.flatnonzero(first <= smallest + 1e-9 * abs(smallest))
    return int(rows[np.argmin(second[rows])])


def improves(values: tuple[float, float], incumbent: tuple[float, float]) -> bool:
    """Return whether values are better than an incumbent's: the first by more than the gap, or by a tie."""
    if not np.isfinite(incumbent[0]):
        return True
    margin = 1e-9 * abs(incumbent[0])
    if values[0] < incumbent[0] - GAP * abs(incumbent[0]):
        return True
    return values[0] <= incumbent[0] + margin and values[1] < incumbent[1] * (1 - 1e-9)
