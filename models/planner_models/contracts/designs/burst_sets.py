"""Column generation for the free windows of one region: which contracts are free in how many windows.

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

from planner.arrays import Bools, Floats, Ints
from planner_models.contracts.designs.program import Region, group_windows

CELLS: Final = 300  # steps of the traffic that a set covers, in the dynamic program
MOST_ROUNDS: Final = 40
TOLERANCE: Final = 1e-4  # of the master's objective value: a smaller improvement ends the rounds
LEAST_GAIN: Final = 1e-3  # of the largest traffic: contracts that add less are never free
SHORT_PRICE: Final = 100.0  # times the highest price of a window: traffic without a contract


class BurstSets(NamedTuple):
    """Free windows for given levels.

    is_free  (W, N) True where a contract carries up to its most load
    cost     bill that the master program computes, with traffic without a contract at a high price
    """

    is_free: Bools
    cost: float


class _Groups(NamedTuple):
    """Groups of windows with traffic above the billed levels; A of them, n contracts that may be free.

    members  (A,) windows of each group, in descending order of traffic
    traffic  (A,) largest traffic above the levels, Mbit/s
    gain     (A, n) what each contract adds where it is free, Mbit/s
    mean     (A, J) most load of each contract billed by the mean, above its least, Mbit/s
    """

    members: list[Ints]
    traffic: Floats
    gain: Floats
    mean: Floats


def choose(region: Region, level: Floats, *, groups: int) -> BurstSets:
    """Return the free windows (W, N) for billed levels (N,), by column generation over `groups` groups."""
    windows, count = region.most.shape
    paid = ~region.is_mean
    forced = paid & (region.least > level * (1 + 1e-9))  # least shares above the level
    base = np.where(region.is_mean, region.least, np.maximum(region.least, np.minimum(region.most, level)))
    base = np.where(forced, region.most, base)
    slots = np.maximum(region.free - forced.sum(axis=0), 0)
    group = group_windows(region.traffic, groups)
    order = np.argsort(-region.traffic, kind="stable")
    order = order[np.argsort(group[order], kind="stable")]
    members = np.split(order, np.cumsum(np.bincount(group))[:-1])
    top = np.array([one[0] for one in members])
    above = region.traffic - base.sum(axis=1)
    largest = np.array([above[one].max() for one in members])
    gain = np.where(slots > 0, region.most - base, 0.0)[top]
    may_be_free = np.flatnonzero(gain.max(axis=0) > LEAST_GAIN * float(region.traffic.max()))
    rows = np.flatnonzero(largest > 0)
    mean = np.flatnonzero(region.is_mean)
    short = _Groups(
        members=[members[row] for row in rows],
        traffic=largest[rows],
        gain=gain[np.ix_(rows, may_be_free)],
        mean=(region.most - base)[np.ix_(top[rows], mean)],
    )
    fixed = sum(region.amount(row, float(level[row]) if paid[row] else 0.0) for row in range(count))
    if not len(rows):
        return BurstSets(forced, fixed)
    sets, numbers, cost = _solve_master(region, short, slots[may_be_free], mean)
    is_free = forced.copy()
    chosen = _round(short, sets, numbers, slots[may_be_free], windows)
    is_free[:, may_be_free] |= chosen
    return BurstSets(is_free, fixed + cost)


def _solve_master(
    region: Region, short: _Groups, slots: Ints, mean: Ints
) -> tuple[list[tuple[int, Bools]], Floats, float]:
    """Return the columns (group, set), how many windows use each, and the cost beyond the levels'."""
    import highspy

    windows = len(region.traffic)
    many, contracts = short.gain.shape
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("threads", 1)
    infinite = highspy.kHighsInf
    for one in short.members:
        highs.addRow(float(len(one)), float(len(one)), 0, [], [])
    for slot in slots.tolist():
        highs.addRow(-infinite, float(slot), 0, [], [])
    _add_volumes(highs, region, mean, many + contracts)
    first = highs.getNumCol()
    price = SHORT_PRICE * max(float(prices.max()) for _, prices in region.steps) / windows
    sets: list[tuple[int, Bools]] = []
    known: set[tuple[int, bytes, bytes]] = set()
    dual = np.zeros(contracts)
    mean_dual = np.array([region.steps[row][1][0] / windows for row in mean])
    group_dual = np.zeros(many)
    last = np.inf
    for turn in range(MOST_ROUNDS):
        chosen = _best_sets(short, dual, mean_dual, price) if turn else np.zeros(short.gain.shape, dtype=bool)
        load, missing = _fill_mean(short, chosen, mean_dual)
        if turn:
            reduced = missing * price + chosen @ dual + load @ mean_dual - group_dual
            sizes = np.array([len(one) for one in short.members])
            if float(-np.minimum(reduced, 0.0) @ sizes) <= TOLERANCE * max(last, 1e-9):
                break
        else:
            reduced = np.full(many, -1.0)
        for row in np.flatnonzero(reduced < 0).tolist():
            key = (row, chosen[row].tobytes(), np.round(load[row], 6).tobytes())
            if key in known:
                continue
            known.add(key)
            members = np.flatnonzero(chosen[row])
            carrying = np.flatnonzero(load[row] > 0)
            places = [row, *(many + members).tolist(), *(many + contracts + carrying).tolist()]
            values = [1.0] * (1 + len(members)) + load[row, carrying].tolist()
            highs.addCol(float(missing[row]) * price, 0.0, infinite, len(places), places, values)
            sets.append((row, chosen[row]))
        highs.run()
        last = float(highs.getInfo().objective_function_value)
        duals = np.array(highs.getSolution().row_dual)
        group_dual, dual = duals[:many], np.maximum(-duals[many : many + contracts], 0.0)
        mean_dual = np.maximum(-duals[many + contracts :], 0.0)
    numbers = np.array(highs.getSolution().col_value)[first:]
    return sets, numbers, last


def _add_volumes(highs: Any, region: Region, mean: Ints, first_row: int) -> None:
    """Add a row for the volume of each contract billed by the mean, and a column for each of its prices.

    Volumes beyond least shares and commitments are paid for.
    """
    windows = len(region.traffic)
    for place, row in enumerate(mean.tolist()):
        least = float(region.least[:, row].sum())
        prepaid = max(float(region.commitment[row]) * windows, least)
        highs.addRow(-np.inf, prepaid - least, 0, [], [])
        volumes, prices = region.steps[row]
        starts = np.maximum(volumes * windows, prepaid)
        ends = np.append(volumes[1:], np.inf) * windows
        for start, end, price in zip(starts.tolist(), ends.tolist(), prices.tolist(), strict=True):
            if end > start:
                highs.addCol(price / windows, 0.0, end - start, 1, [first_row + place], [-1.0])


def _best_sets(short: _Groups, dual: Floats, mean_dual: Floats, price: float) -> Bools:
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
    rest = np.maximum(short.traffic[:, None] - cells * unit[:, None], 0.0)
    for place in np.argsort(mean_dual, kind="stable").tolist():
        part = np.minimum(rest, short.mean[:, [place]])
        best, rest = best + part * mean_dual[place], rest - part
    at = (best + rest * price).argmin(axis=1)
    chosen = np.zeros((many, contracts), dtype=bool)
    every = np.arange(many)
    for row in range(contracts - 1, -1, -1):
        chosen[:, row] = taken[row][every, at]
        at = np.where(chosen[:, row], np.maximum(at - size[:, row], 0), at)
    return chosen


def _fill_mean(short: _Groups, chosen: Bools, mean_dual: Floats) -> tuple[Floats, Floats]:
    """Return the loads (A, J) of contracts billed by the mean beside the sets, and what remains, (A,)."""
    rest = np.maximum(short.traffic - (short.gain * chosen).sum(axis=1), 0.0)
    load = np.zeros_like(short.mean)
    for place in np.argsort(mean_dual, kind="stable").tolist():
        load[:, place] = np.minimum(rest, short.mean[:, place])
        rest = rest - load[:, place]
    return load, rest


def _round(
    short: _Groups, sets: list[tuple[int, Bools]], numbers: Floats, slots: Ints, windows: int
) -> Bools:
    """Return the free windows of each contract, (W, n), for fractional numbers of windows of each column.

    Numbers are rounded down; windows that remain take the largest set of their group with free windows left.
    In a group, windows of more traffic take the sets that cover more.
    """
    left = slots.astype(float).copy()
    whole = np.floor(numbers + 1e-6).astype(np.int64)
    by_group: list[list[int]] = [[] for _ in short.members]
    for column, (row, members) in enumerate(sets):
        if numbers[column] > 1e-9:
            by_group[row].append(column)
            left -= whole[column] * members
    free = np.zeros((windows, len(slots)), dtype=bool)
    for row in range(len(short.members) - 1, -1, -1):  # the groups of most traffic first
        own = short.members[row]
        gains = {column: float(short.gain[row] @ sets[column][1]) for column in by_group[row]}
        given = [column for column in by_group[row] for _ in range(int(whole[column]))][: len(own)]
        rows = [sets[column][1] for column in given]
        for _ in range(len(own) - len(given)):
            able = [c for c in by_group[row] if (left[sets[c][1]] >= 1).all()]
            if able:
                members = sets[max(able, key=lambda c: (numbers[c] - whole[c], gains[c]))][1]
            else:
                members = _smallest_cover(short, row, left)
            left = left - members
            rows.append(members)
        rows.sort(key=lambda members: -float(short.gain[row] @ members))
        if rows:
            free[own] = np.array(rows)
    return free


def _smallest_cover(short: _Groups, row: int, left: Floats) -> Bools:
    """Return contracts with free windows left that cover a group's traffic, the largest first."""
    members = np.zeros(len(left), dtype=bool)
    rest = float(short.traffic[row] - short.mean[row].sum())
    for contract in np.argsort(-short.gain[row], kind="stable").tolist():
        if rest <= 0:
            break
        if left[contract] >= 1 and short.gain[row, contract] > 0:
            members[contract] = True
            rest -= float(short.gain[row, contract])
    return members
