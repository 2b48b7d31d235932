"""Column generation for the free windows of one region: sets of free contracts, and their windows.

For given billed levels, windows of similar traffic form a group. A column is a set of contracts that are free
in a window of a group; what they leave without a contract goes to contracts that are billed by the mean, in
the order of their dual prices. The master program chooses how many windows of each group have which set, with
at most as many as each contract has free windows. Its columns are found by a dynamic program over the traffic
that a set covers, for all groups at once. There are few more columns in its basis than groups, so rounding
them down and filling up the rest changes little.

source  Gilmore and Gomory, Operations Research 1961 (column generation); Singh et al., NSDI 2021 (CASCARA:
        choice of free windows under the 95th percentile)
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import scipy.sparse as sp

from planner.arrays import Bools, Floats, Ints
from planner.search.tolerances import STATED_GAP
from planner_models.contracts.designs.program import Region, group_windows

CELLS: Final = 300  # steps of the traffic that a set covers, in the dynamic program
MOST_ROUNDS: Final = 40
TOLERANCE: Final = STATED_GAP  # of the master's objective value: a smaller improvement ends the rounds
LEAST_GAIN: Final = 1e-3  # of the largest traffic: contracts that add less are never free
SHORT_PRICE: Final = 100.0  # times the highest price of a window: traffic without a contract


class BurstSets(NamedTuple):
    """Free windows for given levels.

    is_free  (W, N) True where a contract carries up to its most load
    cost     bill that the master program computes, with traffic without a contract at a high price
    """

    is_free: Bools
    cost: float


class _Short(NamedTuple):
    """Groups of windows with traffic above the billed levels; A of them, n contracts that may be free.

    groups       (A,) numbers of the groups
    members      (A,) windows of each group, in descending order of traffic
    sizes        (A,) number of windows
    traffic      (A,) largest traffic above the levels, Mbit/s
    gain         (A, n) what each contract adds where it is free, Mbit/s
    mean         (A, J) most load of each contract billed by the mean, above its least, Mbit/s
    may_be_free  (n,) contracts
    slots        (n,) their free windows
    forced       (W, N) windows that are free because a least share is above the level
    fixed        bill of the levels
    """

    groups: Ints
    members: list[Ints]
    sizes: Floats
    traffic: Floats
    gain: Floats
    mean: Floats
    may_be_free: Ints
    slots: Ints
    forced: Bools
    fixed: float


class _Master(NamedTuple):
    """Solution of a master program.

    groups, sets  the columns: number of the group, and (columns, N) which contracts are free
    numbers       how many windows use each column
    dual          (N,) price of a free window of each contract
    mean_dual     (J,) price of a Mbit/s in one window of each contract billed by the mean
    cost          bill, with that of the levels
    """

    groups: Ints
    sets: Bools
    numbers: Floats
    dual: Floats
    mean_dual: Floats
    cost: float


class MasterProgram:
    """The master program of one region, for one level after the other.

    It starts from the columns of the last levels that were kept.
    """

    def __init__(self, region: Region, groups: int) -> None:
        self.region = region
        group = group_windows(region.traffic, groups)
        order = np.argsort(-region.traffic, kind="stable")
        self.order = order[np.argsort(group[order], kind="stable")]
        self.starts = np.concatenate([[0], np.cumsum(np.bincount(group))[:-1]])
        self.members = np.split(self.order, self.starts[1:])
        self.mean = np.flatnonzero(region.is_mean)
        self.price = SHORT_PRICE * max(float(prices.max()) for _, prices in region.steps) / len(group)
        self.kept: _Master | None = None

    def choose(self, level: Floats) -> BurstSets:
        """Return the free windows (W, N) for billed levels (N,)."""
        short = self._find_short(level)
        is_free = short.forced
        if not len(short.groups):
            return BurstSets(is_free, short.fixed)
        solved = self._solve(short)
        row_of = np.zeros(len(self.members), dtype=np.int64)
        row_of[short.groups] = np.arange(len(short.groups))
        sets = list(zip(row_of[solved.groups].tolist(), solved.sets[:, short.may_be_free], strict=True))
        is_free[:, short.may_be_free] |= _round(short, sets, solved.numbers, len(is_free))
        return BurstSets(is_free, solved.cost)

    def rate(self, level: Floats, below: float = np.inf) -> float:
        """Return the cost of levels (N,), and keep their columns and prices where that is below `below`.

        Where the Lagrangian bound at the kept prices is not below it, that is returned instead.
        """
        short = self._find_short(level)
        if not len(short.groups):
            return short.fixed
        if self.kept is not None:
            lower = self._lagrangian_bound(short, self.kept)
            if lower >= below:
                return lower
        solved = self._solve(short)
        if solved.cost < below:
            self.kept = solved
        return solved.cost

    def _find_short(self, level: Floats) -> _Short:
        """Return the groups of windows with traffic above levels (N,)."""
        region = self.region
        count = region.most.shape[1]
        paid = ~region.is_mean
        forced = paid & (region.least > level * (1 + 1e-9))  # least shares above the level
        base = np.where(
            region.is_mean, region.least, np.maximum(region.least, np.minimum(region.most, level))
        )
        base = np.where(forced, region.most, base)
        slots = np.maximum(region.free - forced.sum(axis=0), 0)
        above = region.traffic - base.sum(axis=1)
        largest = np.maximum.reduceat(above[self.order], self.starts)
        rows = np.flatnonzero(largest > 0)
        top = self.order[self.starts]
        gain = np.where(slots > 0, region.most[top] - base[top], 0.0)
        may_be_free = np.flatnonzero(gain.max(axis=0) > LEAST_GAIN * float(region.traffic.max()))
        members = [self.members[row] for row in rows]
        return _Short(
            groups=rows,
            members=members,
            sizes=np.array([len(member_list) for member_list in members], dtype=float),
            traffic=largest[rows],
            gain=gain[np.ix_(rows, may_be_free)],
            mean=(region.most - base)[np.ix_(top[rows], self.mean)],
            may_be_free=may_be_free,
            slots=slots[may_be_free],
            forced=forced,
            fixed=sum(region.amount(row, float(level[row]) if paid[row] else 0.0) for row in range(count)),
        )

    def _lagrangian_bound(self, short: _Short, master: _Master) -> float:
        """Return the least cost of the master program at known prices, as the dynamic program finds it."""
        dual = master.dual[short.may_be_free]
        sets = _best_sets(short, dual, master.mean_dual, self.price)
        load, missing = _fill_mean(short, sets, master.mean_dual, np.arange(len(sets)))
        value = short.sizes @ (missing * self.price + sets @ dual + load @ master.mean_dual)
        value -= short.slots @ dual
        for mean_dual, (prepaid, starts, ends, prices) in zip(
            master.mean_dual, self._volume_steps(), strict=True
        ):
            value -= mean_dual * prepaid
            gains = np.maximum(mean_dual - prices, 0.0)
            value -= float(np.where(gains > 0, ends - starts, 0.0) @ gains)
        return float(short.fixed + value)

    def _volume_steps(self) -> list[tuple[float, Floats, Floats, Floats]]:
        """Return the prepaid volume above the least of each contract billed by the mean, and its price steps.

        Volumes are sums over the windows. Those beyond least shares and commitments are paid for.
        """
        windows, steps = len(self.region.traffic), []
        for row in self.mean.tolist():
            lower = float(self.region.least[:, row].sum())
            prepaid = max(float(self.region.commitment[row]) * windows, lower)
            volumes, prices = self.region.steps[row]
            starts = np.maximum(volumes * windows, prepaid)
            ends = np.append(volumes[1:], np.inf) * windows
            used = ends > starts
            steps.append((prepaid - lower, starts[used], ends[used], prices[used] / windows))
        return steps

    def _solve(self, short: _Short) -> _Master:
        """Solve the master program by column generation."""
        many, contracts = short.gain.shape
        highs = self._build(short)
        first, rows, sets = highs.getNumCol(), np.zeros(0, dtype=np.int64), np.zeros((0, contracts), bool)
        dual, mean_dual, group_dual = np.zeros(contracts), self._least_prices(), np.full(many, np.inf)
        rows_of, set_matrix = np.arange(many), np.zeros((many, contracts), dtype=bool)
        if self.kept is not None:
            mean_dual, is_short = self.kept.mean_dual, np.isin(self.kept.groups, short.groups)
            rows_of = np.append(rows_of, np.searchsorted(short.groups, self.kept.groups[is_short]))
            set_matrix = np.vstack([set_matrix, self.kept.sets[np.ix_(is_short, short.may_be_free)]])
        seen: set[bytes] = set()
        last = np.inf
        for turn in range(MOST_ROUNDS):
            if turn:
                rows_of, set_matrix = np.arange(many), _best_sets(short, dual, mean_dual, self.price)
            load, missing = _fill_mean(short, set_matrix, mean_dual, rows_of)
            reduced = missing * self.price + set_matrix @ dual + load @ mean_dual - group_dual[rows_of]
            if turn and float(-np.minimum(reduced, 0.0) @ short.sizes) <= TOLERANCE * max(last, 1e-9):
                break
            keys = [row.tobytes() for row in np.hstack([rows_of[:, None], set_matrix, np.round(load, 6)])]
            first_of = {keys[row]: row for row in np.flatnonzero(reduced < 0)[::-1].tolist()}
            new = [row for key, row in first_of.items() if key not in seen]
            if not new:
                break
            seen.update(first_of)
            _add_columns(
                highs, rows_of[new], many, np.hstack([set_matrix[new], load[new]]), missing[new] * self.price
            )
            rows, sets = np.append(rows, rows_of[new]), np.vstack([sets, set_matrix[new]])
            highs.run()
            last = float(highs.getInfo().objective_function_value)
            duals = np.array(highs.getSolution().row_dual)
            group_dual, dual = duals[:many], np.maximum(-duals[many : many + contracts], 0.0)
            mean_dual = np.maximum(-duals[many + contracts :], 0.0)
        numbers = np.array(highs.getSolution().col_value)[first:]
        used = numbers > 1e-9
        every = np.zeros((int(used.sum()), len(self.region.free)), dtype=bool)
        every[:, short.may_be_free] = sets[used]
        prices = np.zeros(len(self.region.free))
        prices[short.may_be_free] = dual
        return _Master(short.groups[rows[used]], every, numbers[used], prices, mean_dual, short.fixed + last)

    def _build(self, short: _Short) -> Any:
        """Return the master program without columns of groups: rows of groups, contracts, mean volumes."""
        import highspy

        highs = highspy.Highs()
        highs.setOptionValue("output_flag", False)
        highs.setOptionValue("threads", 1)
        for size in short.sizes.tolist():
            highs.addRow(size, size, 0, [], [])
        for slot in short.slots.tolist():
            highs.addRow(-np.inf, float(slot), 0, [], [])
        for prepaid, starts, ends, prices in self._volume_steps():
            row = highs.getNumRow()
            highs.addRow(-np.inf, prepaid, 0, [], [])
            for start, end, price in zip(starts.tolist(), ends.tolist(), prices.tolist(), strict=True):
                highs.addCol(price, 0.0, end - start, 1, [row], [-1.0])
        return highs

    def _least_prices(self) -> Floats:
        """Return the first price of each contract billed by the mean, of a Mbit/s in one window."""
        return np.array([self.region.steps[row][1][0] for row in self.mean]) / len(self.region.traffic)


def choose(region: Region, level: Floats, *, groups: int) -> BurstSets:
    """Return the free windows (W, N) for billed levels (N,), by column generation over `groups` groups."""
    return MasterProgram(region, groups).choose(level)


def _add_columns(highs: Any, rows: Ints, many: int, values: Floats, cost: Floats) -> None:
    """Add columns with a 1 in the row of their group, and (columns, n + J) values after `many` rows."""
    count = len(rows)
    ones = sp.csr_array((np.ones(count), (np.arange(count), rows)), shape=(count, many))
    entries = sp.hstack([ones, sp.csr_array(values)]).tocsr()
    highs.addCols(
        count, cost, np.zeros(count), np.full(count, np.inf), entries.nnz,
        entries.indptr[:-1].astype(np.int32), entries.indices.astype(np.int32), entries.data,
    )  # fmt: skip


def _best_sets(short: _Short, dual: Floats, mean_dual: Floats, price: float) -> Bools:
    """Return the set of least reduced cost for each group, (A, n), by a dynamic program over cells."""
    many, contracts = short.gain.shape
    unit = short.traffic / CELLS
    cells = np.arange(CELLS + 1)
    size = np.minimum(np.floor(short.gain / unit[:, None] + 1e-9), CELLS).astype(np.int64)
    best = np.full((many, CELLS + 1), np.inf)
    best[:, 0] = 0.0
    taken = np.zeros((contracts, many, CELLS + 1), dtype=bool)
    for row in range(contracts):
        before = np.maximum(cells - size[:, [row]], 0)
        other = np.take_along_axis(best, before, axis=1) + dual[row]
        taken[row] = (other < best - 1e-15) & (size[:, [row]] > 0)
        best = np.where(taken[row], other, best)
    remaining = np.maximum(short.traffic[:, None] - cells * unit[:, None], 0.0)
    for index in np.argsort(mean_dual, kind="stable").tolist():
        taken_share = np.minimum(remaining, short.mean[:, [index]])
        best, remaining = best + taken_share * mean_dual[index], remaining - taken_share
    best_set = (best + remaining * price).argmin(axis=1)
    sets = np.zeros((many, contracts), dtype=bool)
    every = np.arange(many)
    for row in range(contracts - 1, -1, -1):
        sets[:, row] = taken[row][every, best_set]
        best_set = np.where(sets[:, row], np.maximum(best_set - size[:, row], 0), best_set)
    return sets


def _fill_mean(short: _Short, sets: Bools, mean_dual: Floats, rows: Ints) -> tuple[Floats, Floats]:
    """Return the loads of contracts billed by the mean beside sets (K, n) in groups (K,), and the remainder.

    Shapes are (K, J) and (K,).
    """
    remaining = np.maximum(short.traffic[rows] - (short.gain[rows] * sets).sum(axis=1), 0.0)
    load = np.zeros((len(rows), short.mean.shape[1]))
    for index in np.argsort(mean_dual, kind="stable").tolist():
        load[:, index] = np.minimum(remaining, short.mean[rows, index])
        remaining = remaining - load[:, index]
    return load, remaining


def _round(short: _Short, sets: list[tuple[int, Bools]], numbers: Floats, windows: int) -> Bools:
    """Return the free windows of each contract, (W, n), for fractional numbers of windows of each column.

    Numbers are rounded down; windows that remain take the largest set of their group with free windows left.
    In a group, windows of more traffic take the sets that cover more.
    """
    remaining = short.slots.astype(float)
    rounded = np.floor(numbers + 1e-6).astype(np.int64)
    by_group: list[list[int]] = [[] for _ in short.members]
    for column, (row, members) in enumerate(sets):
        if numbers[column] > 1e-9:
            by_group[row].append(column)
            remaining -= rounded[column] * members
    free = np.zeros((windows, len(remaining)), dtype=bool)
    for row in range(len(short.members) - 1, -1, -1):  # the groups of most traffic first
        windows_of, columns = short.members[row], by_group[row]
        priority = {c: (numbers[c] - rounded[c], float(short.gain[row] @ sets[c][1])) for c in columns}
        assigned = np.repeat(columns, rounded[columns]).tolist()[: len(windows_of)]
        rows = [sets[column][1] for column in assigned]
        for _ in range(len(windows_of) - len(assigned)):
            able = [c for c in columns if (remaining[sets[c][1]] >= 1).all()]
            if able:
                members = sets[max(able, key=priority.__getitem__)][1]
            else:
                members = _smallest_cover(short, row, remaining)
            remaining = remaining - members
            rows.append(members)
        rows.sort(key=lambda members: -float(short.gain[row] @ members))
        if rows:
            free[windows_of] = np.array(rows)
    return free


def _smallest_cover(short: _Short, row: int, remaining: Floats) -> Bools:
    """Return contracts with free windows left that cover a group's traffic, the largest first."""
    members = np.zeros(len(remaining), dtype=bool)
    missing = float(short.traffic[row] - short.mean[row].sum())
    for contract in np.argsort(-short.gain[row], kind="stable").tolist():
        if missing <= 0:
            break
        if remaining[contract] >= 1 and short.gain[row, contract] > 0:
            members[contract] = True
            missing -= float(short.gain[row, contract])
    return members
