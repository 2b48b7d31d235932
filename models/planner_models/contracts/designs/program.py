"""The month of one region as a linear or integer program: relaxation by groups of windows, or exact.

Variables of each contract: the level q up to which windows are billed, the load x and the excess s above q
of each group of windows, and the billed volume as a sum of price steps. For billing by the 95th percentile
with F free windows and most loads h_w,

    x_w <= q + s_w,    sum_w s_w <= (sum of the F largest h_w) - F q.

The second holds for every plan, because s_w <= h_w - q in at most F windows. It is linear, so no binary
choice of windows is needed for a bound; the relaxation lets a free window be shared out among windows.
Windows of similar traffic are averaged, which keeps every plan's average feasible: so the bound holds for all
plans. The exact program has a binary variable for each free window of a contract.

source  Singh et al., NSDI 2021 (CASCARA), offline problem: choice of free windows under the 95th percentile
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from planner.arrays import Bools, Floats, Ints
from planner.backends.linear_program import LinearProgram
from planner.backends.program_builder import Expression, ProgramBuilder, Variables
from planner_models.contracts.problem.problem import MEAN, Month

MOST_GROUPS: Final = 240  # groups of windows in the relaxation
PRICE_STEPS: Final = "price step"
"""Name of the variables for volumes in steps of prices."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Region:
    """One region of a month, with contracts that carry its traffic; W windows, N contracts of this region.

    contracts    (N,) rows of the problem's contracts
    traffic      (W,) traffic that can be carried, Mbit/s
    least, most  (W, N) limits of each contract
    free         (N,) windows of each contract that are not billed
    is_mean      (N,) True where the mean is billed
    commitment   (N,) Mbit/s
    steps        (N,) volumes from which prices apply, and the prices
    moved_share  share of the traffic that may change its CDN between consecutive windows; 1: no limit
    """

    contracts: Ints
    traffic: Floats
    least: Floats
    most: Floats
    free: Ints
    is_mean: Bools
    commitment: Floats
    steps: list[tuple[Floats, Floats]]
    moved_share: float = 1.0

    @classmethod
    def of(cls, problem: Month, region: int, *, use_free_windows: bool = True) -> Region:
        """Return one region of a problem."""
        rows = np.flatnonzero(problem.region == region)
        rules = [problem.billing[row] for row in rows]
        free = problem.unbilled_windows[rows] * use_free_windows
        return cls(
            contracts=rows,
            traffic=problem.servable_mbps[:, region],
            least=problem.least_mbps[:, rows],
            most=problem.most_mbps[:, rows],
            free=free,
            is_mean=np.array([rule == MEAN for rule in rules], dtype=bool),
            commitment=problem.column("commitment_mbps")[rows],
            steps=[problem.price_steps[row] for row in rows],
            moved_share=float(problem.moved_share[region]),
        )

    def amount(self, contract: int, volume_mbps: float) -> float:
        """Return the cost of a contract for a volume, at least its commitment."""
        commitment, steps = self._amounts[contract]
        billed = max(volume_mbps, commitment)
        return sum(price * (min(billed, end) - start) for start, end, price in steps if billed > start)

    @cached_property
    def _amounts(self) -> list[tuple[float, list[tuple[float, float, float]]]]:
        """(N,) commitment of each contract, and the start, end and price of each of its price steps."""
        ends = [[*volumes[1:].tolist(), np.inf] for volumes, _ in self.steps]
        return [
            (commitment, list(zip(volumes.tolist(), end, prices.tolist(), strict=True)))
            for commitment, (volumes, prices), end in zip(
                self.commitment.tolist(), self.steps, ends, strict=True
            )
        ]

    @cached_property
    def largest_free(self) -> Floats:
        """(N,) sum of the largest loads that the free windows of each contract can have, Mbit/s."""
        ordered = np.sort(self.most, axis=0)[::-1]
        return np.array([ordered[:count, row].sum() for row, count in enumerate(self.free.tolist())])

    @cached_property
    def level_limits(self) -> tuple[Floats, Floats]:
        """(N,) least and most level up to which windows are billed."""
        lower, upper = np.sort(self.least, axis=0)[::-1], np.sort(self.most, axis=0)[::-1]
        index = np.minimum(self.free, len(self.traffic) - 1)
        rows = np.arange(len(self.free))
        return lower[index, rows], upper[0]


def group_windows(traffic: Floats, groups: int) -> Ints:
    """Return the group of each window, (W,), from 0 in ascending order of traffic.

    A group has at most one of `groups` equal parts of the windows, and of the range of the traffic: so there
    are at most twice as many groups, and the few busiest windows, which decide the peak, are apart.
    """
    order = np.argsort(traffic, kind="stable")
    ascending = traffic[order]
    span = float(ascending[-1] - ascending[0]) / groups
    size = -(-len(ascending) // groups)
    starts, start = [0], 0
    while True:
        start = min(start + size, int(np.searchsorted(ascending, ascending[start] + span, side="right")))
        if start >= len(ascending):
            break
        starts.append(start)
    group = np.empty(len(ascending), dtype=np.int64)
    group[order] = np.repeat(np.arange(len(starts)), np.diff([*starts, len(ascending)]))
    return group


@dataclass(frozen=True, eq=False)
class _Groups:
    """Groups of windows.

    group  (W,) group of each window
    """

    group: Ints

    @cached_property
    def size(self) -> Floats:
        """(G, 1) windows of each group."""
        return np.bincount(self.group).astype(float)[:, None]

    def average(self, values: Floats) -> Floats:
        """Return the mean of each group, (G, ...), of values of windows (W, ...)."""
        total = np.zeros((len(self.size), *values.shape[1:]))
        np.add.at(total, self.group, values)
        return np.asarray((total.T / self.size[:, 0]).T)


@dataclass(frozen=True, kw_only=True, eq=False)
class _PriceSteps:
    """Price steps of all contracts, one contract after the other.

    contract  (K,)
    price     (K,) of a Mbit/s
    volume    (K,) Mbit/s that can be bought at that price
    ordered   steps after which the same contract has another one, where prices fall: they are filled first
    """

    contract: Ints
    price: Floats
    volume: Floats
    ordered: Ints

    @classmethod
    def of(cls, region: Region) -> _PriceSteps:
        """Return the price steps of a region's contracts."""
        largest = np.maximum(region.level_limits[1], region.commitment)
        contract = np.repeat(np.arange(len(largest)), [len(prices) for _, prices in region.steps])
        start, price = (np.concatenate(column) for column in zip(*region.steps, strict=True))
        width = np.concatenate([np.diff(np.append(volumes, np.inf)) for volumes, _ in region.steps])
        # an order of price steps has to be enforced where prices fall
        falls = np.array([(np.diff(prices) < 0).any() for _, prices in region.steps])
        return cls(
            contract=contract,
            price=price,
            volume=np.minimum(width, np.maximum(largest[contract] - start, 0.0)),
            ordered=np.flatnonzero(falls[contract[:-1]] & (contract[:-1] == contract[1:])),
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class MonthProgram:
    """The program of a region, and its variables.

    level            (N,) variables q
    load             (groups, N) variables x
    steps            (K,) variables of the price steps z, whose costs are the bill
    price_contracts  (K,) contract of each of them
    """

    program: LinearProgram
    level: Variables
    load: Variables
    steps: Variables
    price_contracts: Ints


def build(
    region: Region,
    *,
    groups: int = MOST_GROUPS,
    exact: bool = False,
    free_share: float = 1.0,
    total: tuple[float, float] | None = None,
    in_order: bool = False,
    is_free: Bools | None = None,
) -> MonthProgram:
    """Build the program of a region: level q, load x, excess s, price step z, and binary o, b where needed.

    o is 1 where a step is full, b where a window is free; d is the load that moves away before the next one.

    groups      groups of windows, where not exact
    exact       one group for each window, and binary choice of free windows
    free_share  part of the free windows that may be used, for plans that cannot use all of them
    in_order    one group for each window, in the order of time: needed for limits of switching
    is_free     (W, N) windows that may be free, in order; None: the program chooses them
    total       limits of the sum of the billed levels, Mbit/s: only plans within them are considered, and an
                excess is limited by what that sum leaves of a window's traffic
    """
    windows, count = region.most.shape
    in_order = in_order or exact or is_free is not None
    grouped = _Groups(np.arange(windows) if in_order else group_windows(region.traffic, groups))
    steps = _PriceSteps.of(region)
    lower_load, upper_load, traffic = map(grouped.average, (region.least, region.most, region.traffic))
    bursting, mean = np.flatnonzero(region.free > 0), np.flatnonzero(region.is_mean)
    billed = np.flatnonzero(~region.is_mean)
    lowest, highest = region.level_limits
    largest_excess = (
        np.inf if is_free is None else np.where(is_free[:, bursting], upper_load[:, bursting], 0.0)
    )
    has_shares = exact or total is not None
    is_limited = in_order and region.moved_share < 1 and windows > 1
    is_integer = total is None  # with limits of the sum, price steps and free windows may be shared

    m = ProgramBuilder(name="contracts")
    q = m.variables("level", count, lower=np.where(region.is_mean, 0.0, lowest), upper=highest)
    x = m.variables("load", (len(traffic), count), lower=lower_load, upper=np.maximum(upper_load, lower_load))
    s = m.variables("excess", (len(traffic), len(bursting)), upper=largest_excess)
    z = m.variables(PRICE_STEPS, len(steps.contract), upper=steps.volume, cost=steps.price)
    o = m.variables("step order", len(steps.ordered), upper=1.0, integer=is_integer)
    b = m.variables("free window", s.shape if has_shares else 0, upper=1.0, integer=is_integer)
    d = m.variables("lost traffic", (windows - 1, count) if is_limited else 0)

    m.constrain("served", x.sum(axis=1), equal=traffic)
    if is_limited:
        _limit_switching(m, region, load=x, lost=d)
    m.constrain("billed level", x[:, billed] - q[billed] - s @ (bursting[:, None] == billed), upper=0.0)
    m.constrain(
        "free windows",
        (s * grouped.size).sum(axis=0) + q[bursting] * (free_share * region.free[bursting]),
        upper=free_share * region.largest_free[bursting],
    )
    if has_shares:
        excess = upper_load[:, bursting]
        if total is not None:
            excess = _most_excess(region, grouped.group, bursting, total[0])
        m.constrain("chosen windows", s - b * excess, upper=0.0)
        m.constrain("chosen count", (b * grouped.size).sum(axis=0), upper=region.free[bursting])
    if total is not None:
        m.constrain("sum of levels", q[billed].sum(), lower=total[0], upper=total[1])
    average = (x[:, mean] * (grouped.size / windows)).sum(axis=0)
    paid = q[billed].sum_by(billed, count) + average.sum_by(mean, count)
    _buy_volumes(m, region, steps, volume=z, is_full=o, paid=paid)
    return MonthProgram(program=m.build(), level=q, load=x, steps=z, price_contracts=steps.contract)


def _limit_switching(m: ProgramBuilder, region: Region, *, load: Variables, lost: Variables) -> None:
    """Limit the traffic that moves away from its contract between two windows, beyond that which ends."""
    before, after = region.traffic[:-1], region.traffic[1:]
    movable = np.maximum(before - after, 0.0) + region.moved_share * np.minimum(before, after)
    m.constrain("lost traffic", load[:-1] - load[1:] - lost, upper=0.0)
    m.constrain("moved traffic", lost.sum(axis=1), upper=movable)


def _buy_volumes(
    m: ProgramBuilder,
    region: Region,
    steps: _PriceSteps,
    *,
    volume: Variables,
    is_full: Variables,
    paid: Expression,
) -> None:
    """Add the constraints of price steps: the volumes bought are at least those paid for, and commitments."""
    bought = volume.sum_by(steps.contract, len(region.contracts))
    m.constrain("volume", bought - paid, lower=0.0)
    m.constrain("commitment", bought, lower=region.commitment)
    # a step is used only where the one before it is full
    ordered = steps.ordered
    m.constrain("step full", volume[ordered] - is_full * steps.volume[ordered], lower=0.0)
    m.constrain("step used", volume[ordered + 1] - is_full * steps.volume[ordered + 1], upper=0.0)


def _most_excess(region: Region, group: Ints, bursting: Ints, least_total: float) -> Floats:
    """Return the most excess above its level of each contract in a window of each group, (groups, bursting).

    No plan needs more than what levels of at least `least_total` together leave of the window's traffic,
    beside what least shares require. Where a contract's most load is below its level, the level counts for
    less: by no more than its highest level less that load.
    """
    least_level, most_level = region.level_limits
    lost = np.maximum(most_level - region.most, 0.0)[:, ~region.is_mean].sum(axis=1)
    remaining = np.maximum(region.traffic - least_total + lost, 0.0)
    excess = np.minimum(remaining[:, None], np.maximum(region.most - least_level, 0.0)[:, bursting])
    excess = excess + np.maximum(region.least - least_level, 0.0)[:, bursting]
    largest = np.zeros((int(group.max()) + 1, len(bursting)))
    np.maximum.at(largest, group, excess)
    return largest


def repair(region: Region, load: Floats) -> Floats:
    """Return the loads (W, N) of a solution within all limits, without rounding errors."""
    return fit_loads(load, region.least, region.most, region.traffic)


def fit_loads(load: Floats, lower: Floats, upper: Floats, traffic: Floats) -> Floats:
    """Return loads (W, N) of one region within their limits (W, N) that carry the traffic (W,)."""
    load = np.clip(load, lower, upper)
    short = traffic - load.sum(axis=1)
    for contract in range(load.shape[1]):
        change = np.clip(
            short, lower[:, contract] - load[:, contract], upper[:, contract] - load[:, contract]
        )
        load[:, contract] += change
        short = short - change
    return np.asarray(load)
