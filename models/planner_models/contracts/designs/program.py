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

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import scipy.sparse as sp

from planner.arrays import Bools, Floats, Ints
from planner.backends.linear_program import Columns, LinearProgram, Rows
from planner_models.contracts.problem.problem import MEAN, PERCENTILE, Month

MOST_GROUPS: Final = 240  # groups of windows in the relaxation


@dataclass(frozen=True, kw_only=True, eq=False)
class Region:
    """One region of a month, whose contracts carry its traffic; W windows, N contracts of this region.

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
        own = np.flatnonzero(problem.region == region)
        rules = [problem.billing[row] for row in own]
        free = [problem.free_windows if rule == PERCENTILE and use_free_windows else 0 for rule in rules]
        return cls(
            contracts=own,
            traffic=problem.servable_mbps[:, region],
            least=problem.least_mbps[:, own],
            most=problem.most_mbps[:, own],
            free=np.array(free, dtype=np.int64),
            is_mean=np.array([rule == MEAN for rule in rules], dtype=bool),
            commitment=problem.column("commitment_mbps")[own],
            steps=[problem.price_steps[row] for row in own],
            moved_share=float(problem.moved_share[region]),
        )

    def amount(self, contract: int, volume_mbps: float) -> float:
        """Return what a contract costs for a volume, at least its commitment."""
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
        least, most = np.sort(self.least, axis=0)[::-1], np.sort(self.most, axis=0)[::-1]
        at = np.minimum(self.free, len(self.traffic) - 1)
        rows = np.arange(len(self.free))
        return least[at, rows], most[0]


def group_windows(traffic: Floats, groups: int) -> Ints:
    """Return the group of each window, (W,), from 0 in ascending order of traffic.

    A group has at most one of `groups` equal parts of the windows, and of the range of the traffic: so there
    are at most twice as many groups, and the few busiest windows, which decide the peak, are apart.
    """
    order = np.argsort(traffic, kind="stable")
    ascending = traffic[order]
    span = float(ascending[-1] - ascending[0]) / groups
    size = -(-len(ascending) // groups)
    starts, at = [0], 0
    while True:
        at = min(at + size, int(np.searchsorted(ascending, ascending[at] + span, side="right")))
        if at >= len(ascending):
            break
        starts.append(at)
    group = np.empty(len(ascending), dtype=np.int64)
    group[order] = np.repeat(np.arange(len(starts)), np.diff([*starts, len(ascending)]))
    return group


@dataclass(frozen=True, kw_only=True, eq=False)
class MonthProgram:
    """The program of a region, and the places of its variables.

    contracts        number of contracts, N
    price_columns    (K,) variables of the price steps, whose costs are the bill
    price_contracts  (K,) contract of each of them
    """

    program: LinearProgram
    contracts: int
    price_columns: Ints
    price_contracts: Ints

    def levels(self, x: Floats) -> Floats:
        """Return the billed level of each contract in a solution, (N,)."""
        return np.asarray(x[: self.contracts], dtype=float)

    def loads(self, x: Floats, windows: int) -> Floats:
        """Return the loads in a solution with one group for each window, (W, N)."""
        at = self.contracts
        return np.asarray(x[at : at + windows * at], dtype=float).reshape(windows, at)


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
    """Build the program of a region.

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
    group = np.arange(windows) if in_order else group_windows(region.traffic, groups)
    size = np.bincount(group).astype(float)
    kinds = len(size)

    def averaged(values: Floats) -> Floats:
        total = np.zeros((kinds, *values.shape[1:]))
        np.add.at(total, group, values)
        return np.asarray((total.T / size).T)

    least, most, traffic = averaged(region.least), averaged(region.most), averaged(region.traffic)
    bursting = np.flatnonzero(region.free > 0)
    widths = [np.diff(np.append(volumes, np.inf)) for volumes, _ in region.steps]
    pieces = [(row, place) for row in range(count) for place in range(len(widths[row]))]
    # an order of price steps has to be enforced where prices fall
    falls = [row for row in range(count) if (np.diff(region.steps[row][1]) < 0).any()]
    ordered = [(row, place) for row in falls for place in range(len(widths[row]) - 1)]
    cells = kinds * count
    starts = np.cumsum([0, count, cells, kinds * len(bursting), len(pieces), len(ordered)])
    q0, x0, s0, z0, o0, b0 = starts.tolist()
    has_shares = exact or total is not None
    d0 = b0 + (kinds * len(bursting) if has_shares else 0)
    is_limited = in_order and region.moved_share < 1 and windows > 1
    wide = d0 + ((windows - 1) * count if is_limited else 0)
    x_at = x0 + np.arange(cells).reshape(kinds, count)
    s_at = s0 + np.arange(kinds * len(bursting)).reshape(kinds, len(bursting))

    def matrix(rows: Any, columns: Any, values: Any, height: int) -> sp.csr_array:
        parts = [np.concatenate([np.ravel(part) for part in each]) for each in (rows, columns, values)]
        return sp.csr_array((parts[2], (parts[0], parts[1])), shape=(height, wide))

    every = np.arange(kinds)
    blocks = [
        Rows(
            "served",
            matrix([np.repeat(every, count)], [x_at], [np.ones(cells)], kinds),
            lower=traffic,
            upper=traffic,
        )
    ]
    level_least, level_most = region.level_limits
    lower, upper, cost = np.zeros(wide), np.full(wide, np.inf), np.zeros(wide)
    lower[:count], upper[:count] = np.where(region.is_mean, 0.0, level_least), level_most
    lower[x_at], upper[x_at] = least, np.maximum(most, least)
    upper[s_at] = np.inf if is_free is None else np.where(is_free[:, bursting], most[:, bursting], 0.0)
    if is_limited:
        blocks += _switching_rows(region, traffic, x_at, d0, matrix)
    # windows: x <= q + s
    billed = np.flatnonzero(~region.is_mean)
    height = kinds * len(billed)
    if height:
        row_of = np.arange(height).reshape(kinds, len(billed))
        own = np.searchsorted(billed, bursting)
        blocks.append(
            Rows(
                "billed level",
                matrix(
                    [row_of, row_of, row_of[:, own]],
                    [x_at[:, billed], np.broadcast_to(q0 + billed, row_of.shape), s_at],
                    [np.ones(height), -np.ones(height), -np.ones(s_at.size)],
                    height,
                ),
                upper=0.0,
            )
        )
    if len(bursting):
        at = np.arange(len(bursting))
        free = free_share * region.free[bursting]
        blocks.append(
            Rows(
                "free windows",
                matrix(
                    [np.broadcast_to(at, s_at.shape), at],
                    [s_at, q0 + bursting],
                    [np.broadcast_to(size[:, None], s_at.shape), free],
                    len(bursting),
                ),
                upper=free_share * region.largest_free[bursting],
            )
        )
        if has_shares:
            b_at = b0 + np.arange(s_at.size).reshape(s_at.shape)
            upper[b_at] = 1.0
            cell = np.arange(s_at.size).reshape(s_at.shape)
            excess = most[:, bursting] if total is None else _most_excess(region, group, bursting, total[0])
            blocks += [
                Rows(
                    "chosen windows",
                    matrix([cell, cell], [s_at, b_at], [np.ones(s_at.size), -excess], s_at.size),
                    upper=0.0,
                ),
                Rows(
                    "chosen count",
                    matrix(
                        [np.broadcast_to(at, s_at.shape)],
                        [b_at],
                        [np.broadcast_to(size[:, None], s_at.shape)],
                        len(bursting),
                    ),
                    upper=region.free[bursting].astype(float),
                ),
            ]
    lowest, highest = total or (-np.inf, np.inf)
    every_level = matrix([np.zeros(len(billed))], [q0 + billed], [np.ones(len(billed))], 1)
    blocks += [Rows("sum of levels", every_level, lower=lowest, upper=highest)] * (total is not None)
    # volume <= sum of the price steps, which is at least the commitment
    piece_row = np.array([row for row, _ in pieces])
    z_at = z0 + np.arange(len(pieces))
    mean = np.flatnonzero(region.is_mean)
    blocks.append(
        Rows(
            "volume",
            matrix(
                [piece_row, billed, np.broadcast_to(mean, (kinds, len(mean)))],
                [z_at, q0 + billed, x_at[:, mean]],
                [
                    np.ones(len(pieces)),
                    -np.ones(len(billed)),
                    np.broadcast_to(-size[:, None] / windows, (kinds, len(mean))),
                ],
                count,
            ),
            lower=0.0,
        )
    )
    blocks.append(
        Rows(
            "commitment", matrix([piece_row], [z_at], [np.ones(len(pieces))], count), lower=region.commitment
        )
    )
    largest = np.maximum(level_most, region.commitment)
    for column, (row, place) in zip(z_at.tolist(), pieces, strict=True):
        upper[column] = min(widths[row][place], max(largest[row] - region.steps[row][0][place], 0.0))
        cost[column] = region.steps[row][1][place]
    if ordered:  # a step is used only where the one before it is full
        o_at = o0 + np.arange(len(ordered))
        upper[o_at] = 1.0
        column_of = {piece: int(column) for piece, column in zip(pieces, z_at, strict=True)}
        this = np.array([column_of[piece] for piece in ordered])
        after = np.array([column_of[row, place + 1] for row, place in ordered])
        full = np.array([upper[column] for column in this])
        at = np.arange(len(ordered))
        ones = np.ones(len(ordered))
        blocks += [
            Rows("step full", matrix([at, at], [this, o_at], [ones, -full], len(ordered)), lower=0.0),
            Rows(
                "step used", matrix([at, at], [after, o_at], [ones, -upper[after]], len(ordered)), upper=0.0
            ),
        ]
    integer = np.zeros(wide, dtype=bool)
    integer[o0:d0] = total is None  # with limits of the sum, price steps and free windows may be shared
    names = ("level", "load", "excess", "price step", "step order", "free window", "lost traffic")
    ends = np.array([*starts.tolist(), d0, wide])
    sizes = np.diff(ends)
    return MonthProgram(
        program=LinearProgram.build(
            cost=cost,
            rows=blocks,
            columns=[Columns(name, int(length)) for name, length in zip(names, sizes, strict=True) if length],
            lower=lower,
            upper=upper,
            integer=integer if integer.any() else None,
            name="contracts",
        ),
        contracts=count,
        price_columns=z_at,
        price_contracts=piece_row,
    )


def _switching_rows(
    region: Region, traffic: Floats, x_at: Ints, first: int, matrix: Callable[..., sp.csr_array]
) -> list[Rows]:
    """Return the rows that limit switching: what contracts lose to the next window, and all of them together.

    x_at   (W, N) columns of the loads
    first  column of the first lost load
    """
    steps, count = len(traffic) - 1, x_at.shape[1]
    lost = np.arange(steps * count).reshape(steps, count)
    ones = np.ones(lost.size)
    fall = np.maximum(traffic[:-1] - traffic[1:], 0.0)
    movable = fall + region.moved_share * np.minimum(traffic[:-1], traffic[1:])
    columns = [x_at[:-1], x_at[1:], first + lost]
    return [
        Rows("lost traffic", matrix([lost, lost, lost], columns, [ones, -ones, -ones], lost.size), upper=0.0),
        Rows(
            "moved traffic",
            matrix([np.repeat(np.arange(steps), count)], [first + lost], [ones], steps),
            upper=movable,
        ),
    ]


def _most_excess(region: Region, group: Ints, bursting: Ints, least_total: float) -> Floats:
    """Return the most excess above its level of each contract in a window of each group, (groups, bursting).

    No plan needs more than what levels of at least `least_total` together leave of the window's traffic,
    beside what least shares require. Where a contract's most load is below its level, the level counts for
    less: by no more than its highest level less that load.
    """
    least_level, most_level = region.level_limits
    lost = np.maximum(most_level - region.most, 0.0)[:, ~region.is_mean].sum(axis=1)
    left = np.maximum(region.traffic - least_total + lost, 0.0)
    own = np.minimum(left[:, None], np.maximum(region.most - least_level, 0.0)[:, bursting])
    own = own + np.maximum(region.least - least_level, 0.0)[:, bursting]
    largest = np.zeros((int(group.max()) + 1, len(bursting)))
    np.maximum.at(largest, group, own)
    return largest


def repair(region: Region, load: Floats) -> Floats:
    """Return the loads (W, N) of a solution within all limits, without what rounding left out or over."""
    load = np.clip(load, region.least, region.most)
    short = region.traffic - load.sum(axis=1)
    for contract in range(load.shape[1]):
        change = np.clip(
            short, region.least[:, contract] - load[:, contract], region.most[:, contract] - load[:, contract]
        )
        load[:, contract] += change
        short = short - change
    return np.asarray(load)
