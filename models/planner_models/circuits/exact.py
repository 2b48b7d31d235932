"""The best schedule, proven: every matching listed, most struck out by prices, the rest decided whole.

For each number of days K, column generation solves the linear program over matchings and lengths: K
days share the week, and a day of matching M and length t serves of each of its pairs what t has time
for. At prices of demand, time and the packet switch, the worth of a day is linear in t between the
lengths of its demands, so that those lengths are all that is tried. The prices give a proven bound
for K days, by Lagrange, whatever the solver says of it:

    bound(K) = A + K R,    value of a schedule of K days with matching M <= bound(K) - (R - r(M))

with A the worth of demand, the week and the packet switch, R that of the best day, r(M) that of M's
best. What is then below the best schedule known is struck out: numbers of days, then matchings, then
lengths. What is left is a small integer program.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numba as nb
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from planner import backends
from planner.backends.linear import Columns, LinearProgram, Rows
from planner.options import Options
from planner_models.circuits.bound import Units
from planner_models.circuits.problem import Circuits
from planner_models.circuits.schedule import IDLE, Day

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
GAP: Final = 1e-7
MOST_ROUNDS: Final = 1_000
COLUMNS: Final = 12  # days added in each round of column generation


@dataclass(frozen=True, kw_only=True, eq=False)
class Answer:
    """The best days, and what none beats in the problem's objective: bits served, or us until done.

    days   None where the schedule that was known already is the best
    bound  None where time ran out before every number of days was bounded
    """

    days: list[Day] | None
    bound: float | None
    backend: str | None


def decide(problem: Circuits, matchings: Ints, known: float, known_days: int, options: Options) -> Answer:
    """The best of all schedules over `matchings` (M, n), all maximal ones of the demand.

    known       objective of a schedule at hand: served bits, or us until done
    known_days  how many days it has
    """
    task = _Task(problem=problem, matchings=matchings)
    deadline = None if options.time_limit_s is None else time.perf_counter() + options.time_limit_s
    best = task.value(known)
    days: list[Day] | None = None
    proven, backend = best, None
    # bounds are concave in the number of days: on either side of the best schedule's, beyond one that
    # is struck out all are
    for numbers in (range(known_days, task.most_days + 1), range(known_days - 1, 0, -1)):
        for count in numbers:
            left = _left(deadline)
            if left is not None and left <= 1e-3:
                return Answer(days=days, bound=None, backend=backend)
            prices = _priced(task, count, best, replace(options, time_limit_s=left))
            if prices is None:
                return Answer(days=days, bound=None, backend=backend)
            if prices.bound <= best + GAP * abs(best):
                proven = max(proven, prices.bound)
                if count == known_days:  # says nothing of more days yet
                    continue
                break
            left = _left(deadline)
            found = _decided(task, count, prices, best, replace(options, time_limit_s=left))
            backend = found.backend or backend
            if found.bound is None:
                return Answer(days=days, bound=None, backend=backend)
            proven = max(proven, found.bound)
            if found.days is not None and found.value > best:
                best, days = found.value, found.days
    return Answer(days=days, bound=task.objective(proven), backend=backend)


def _left(deadline: float | None) -> float | None:
    return None if deadline is None else max(1e-3, deadline - time.perf_counter())


@dataclass(frozen=True, kw_only=True, eq=False)
class _Task:
    """The problem in units near 1, to be maximised: bits served, or less the time until done."""

    problem: Circuits
    matchings: Ints

    @cached_property
    def unit(self) -> Units:
        return Units.of(self.problem)

    @cached_property
    def timeless(self) -> bool:
        return self.problem.window_us is None

    @cached_property
    def week(self) -> float:
        return 0.0 if self.problem.window_us is None else self.problem.window_us / self.unit.us

    @cached_property
    def night(self) -> float:
        return self.problem.night_us / self.unit.us

    @cached_property
    def wanted(self) -> Floats:
        return self.problem.pair_bits / self.unit.bits

    @cached_property
    def rate(self) -> Floats:
        return self.problem.pair_mbps * self.unit.us / self.unit.bits

    @cached_property
    def packet(self) -> Floats:
        """(2n,) what each rack's link to the packet switch carries in a unit of time, out and in."""
        return np.tile(self.problem.packet_mbps, 2) * self.unit.us / self.unit.bits

    @cached_property
    def lines(self) -> tuple[Ints, Ints]:
        """(m,) rows of `packet` that each pair uses."""
        source, target = self.problem.pairs
        return source, len(self.problem.racks) + target

    @cached_property
    def shortest(self) -> float:
        return self.problem.shortest_day_us / self.unit.us

    @cached_property
    def lengths(self) -> Floats:
        """The lengths of day that can be best at some prices: those of demands, and the limits."""
        needs = self.wanted / self.rate
        high = max(self.shortest, float(needs.max()))
        if not self.timeless:
            high = min(high, self.week - self.night)
        lengths: Floats = np.unique(np.clip(np.append(needs, self.shortest), self.shortest, high))
        return lengths

    @cached_property
    def pairs_of(self) -> Ints:
        """(M, n) the pair that each rack of a matching sends, or m for none."""
        source, target = self.problem.pairs
        number = np.full(self.problem.bits.shape, len(source), dtype=np.int64)
        number[source, target] = np.arange(len(source))
        rows = np.arange(len(self.problem.racks))
        numbers: Ints = np.where(self.matchings == IDLE, len(source), number[rows, self.matchings])
        return numbers

    @cached_property
    def most_days(self) -> int:
        """No schedule has use for more: a matching twice is worth no more than once, and days take time."""
        each = self.night + max(self.shortest, 0.0)
        many = len(self.matchings)
        if each <= 0:
            return many
        whole = self.week
        if self.timeless:  # one day for each pair would do
            whole = float((self.wanted / self.rate + each).sum())
        return min(many, int(whole / each * (1 + 1e-12)))

    def value(self, objective: float) -> float:
        return -objective / self.unit.us if self.timeless else objective / self.unit.bits

    def objective(self, value: float) -> float:
        return -value * self.unit.us if self.timeless else value * self.unit.bits

    def serves(self, length: float) -> Floats:
        """(m,) what a day of that length serves of each pair."""
        served: Floats = np.minimum(self.wanted, self.rate * length)
        return served


@dataclass(frozen=True, kw_only=True, eq=False)
class _Prices:
    """Prices of circuits' bits (m,) and of time, and what they prove of schedules of some days.

    worth  (M,) of each matching's best day; best  the most of all, an empty day's included
    """

    pair: Floats
    time: float
    worth: Floats
    best: float
    bound: float


def _priced(task: _Task, count: int, known: float, options: Options) -> _Prices | None:
    """Prices that bound schedules of `count` days best, or below what is known; None out of time."""
    columns: list[tuple[int, float]] = []
    seen: set[tuple[int, int]] = set()
    best: _Prices | None = None
    for _ in range(MOST_ROUNDS):
        program = _master(task, columns, count, known)
        solution = backends.solve(program, options)
        if solution.row_duals is None:
            return best
        m = len(task.wanted)
        duals = np.abs(solution.row_duals)
        prices, worths, where = _prove(
            task, duals[:m], float(duals[-2]), duals[2 * m : 2 * m + len(task.packet)], count
        )
        if best is None or prices.bound < best.bound:
            best = prices
        value = None if solution.objective is None else (-1 if task.timeless else 1) * solution.objective
        if best.bound <= known + GAP * abs(known):
            return best
        if value is not None and best.bound - value <= GAP * abs(value):
            return best
        added = 0
        for place in np.argsort(-worths)[: 4 * COLUMNS].tolist():
            key = int(where[place]), place
            if key not in seen and added < COLUMNS:
                seen.add(key)
                columns.append((key[0], float(task.lengths[place])))
                added += 1
        if not added:
            return best
    return best


def _prove(
    task: _Task, pair: Floats, price: float, packet: Floats, count: int
) -> tuple[_Prices, Floats, Ints]:
    """The bound that prices prove, made feasible first where they are not quite.

    returns  prices; (lengths,) the worth of the best day of each length; (lengths,) its matching
    """
    out, into = task.lines
    if task.timeless:  # time has a price of 1 in all: that of circuits and of the packet switch
        total = price + float(task.packet @ packet)
        if total <= 0:
            price, total = 1.0, 1.0
        pair, price, packet = pair / total, price / total, packet / total
    worth, top, where = _worths(
        task.pairs_of,
        np.append(pair, 0.0),
        np.array([*task.wanted, 0.0]),
        np.array([*task.rate, 0.0]),
        task.lengths,
        price,
        task.night,
    )
    best = max(float(worth.max()), -price * task.night)
    over_packet = packet[out] + packet[into]
    if task.timeless:
        rest = -float((task.wanted * np.minimum(pair, over_packet)).sum())
    else:
        # a bit is worth 1, less the price of what carries it
        gains = np.maximum(0.0, np.maximum(1 - pair, 1 - over_packet))
        rest = float((task.wanted * gains).sum() + task.week * (task.packet @ packet + price))
    prices = _Prices(pair=pair, time=price, worth=worth, best=best, bound=rest + count * best)
    return prices, top, where


@nb.njit(cache=True)
def _worths(
    pairs_of: Ints, pair: Floats, wanted: Floats, rate: Floats, lengths: Floats, price: float, night: float
) -> tuple[Floats, Floats, Ints]:
    """Worth (M,) of each matching's best day, (lengths,) of each length's best, and its matching."""
    worth = np.full(len(pairs_of), -np.inf)
    top, where = np.full(len(lengths), -np.inf), np.zeros(len(lengths), np.int64)
    gain = np.empty(len(pair))
    for place in range(len(lengths)):
        length = lengths[place]
        for k in range(len(pair)):
            gain[k] = pair[k] * min(wanted[k], rate[k] * length)
        cost = price * (length + night)
        for m in range(len(pairs_of)):
            total = -cost
            for i in range(pairs_of.shape[1]):
                total += gain[pairs_of[m, i]]
            worth[m] = max(worth[m], total)
            if total > top[place]:
                top[place], where[place] = total, m
    return worth, top, where


def _master(task: _Task, columns: list[tuple[int, float]], count: int, known: float) -> LinearProgram:
    """The linear program over some days: X, Y (m,), how much of each day, of an empty one, and the end.

    Without a window, what these days cannot serve is left over (m,) at ten times the time that is known
    to do for all; the bound holds whatever the prices.
    """
    m, racks = len(task.wanted), len(task.packet)
    wide = len(columns) + 1
    served = np.zeros((m + 1, wide))
    for place, (matching, length) in enumerate(columns):
        pairs = task.pairs_of[matching]
        served[pairs, place] = np.append(task.serves(length), 0.0)[pairs]
    spent = np.array([[*(length + task.night for _, length in columns), task.night]])
    eye, none = sp.eye_array(m), sp.csr_array((m, wide))
    at = sp.csr_array(
        (np.ones(2 * m), (np.concatenate(task.lines), np.tile(np.arange(m), 2))), shape=(racks, m)
    )

    def rows(name: str, parts: list[object], last: Floats, upper: object, lower: object = -np.inf) -> Rows:
        missing = eye if name == "demand" else sp.csr_array((len(last), m))
        extra = [sp.csr_array(last.reshape(-1, 1)), missing] if task.timeless else []
        return Rows(name, sp.csr_array(sp.hstack([*parts, *extra])), lower=lower, upper=upper)  # type: ignore[arg-type]

    blocks = [
        rows("circuits", [eye, sp.csr_array((m, m)), -sp.csr_array(served[:m])], np.zeros(m), 0.0),
        rows("demand", [eye, eye, none], np.zeros(m), task.wanted, task.wanted if task.timeless else -np.inf),
        rows(
            "packet",
            [sp.csr_array((racks, m)), at, sp.csr_array((racks, wide))],
            -task.packet,
            0.0 if task.timeless else task.packet * task.week,
        ),
        rows("week", [sp.csr_array((1, 2 * m)), sp.csr_array(spent)], -np.ones(1), task.week),
        rows("days", [sp.csr_array((1, 2 * m)), sp.csr_array(np.ones((1, wide)))], np.zeros(1), count, count),
    ]
    if task.timeless:
        cost = np.concatenate([np.zeros(2 * m + wide), [1.0], 10 * abs(known) / task.wanted])
    else:
        cost = np.concatenate([np.ones(2 * m), np.zeros(wide)])
    return LinearProgram.build(
        sense="min" if task.timeless else "max",
        cost=cost,
        rows=blocks,
        columns=[Columns("x", len(cost))],
        name="days of a schedule",
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Found:
    days: list[Day] | None
    value: float
    bound: float | None
    backend: str | None


def _decided(task: _Task, count: int, prices: _Prices, known: float, options: Options) -> _Found:
    """The best of at most `count` days over the matchings and lengths that prices leave."""
    slack = prices.bound - known
    kept = np.flatnonzero(prices.worth >= prices.best - slack - GAP * max(1.0, abs(prices.best)))
    low, high = _ranges(task, kept, prices, slack)
    program = _program(task, kept, low, high, count, known)
    solution = backends.solve(program, replace(options, gap=options.gap or GAP))
    sign = -1 if task.timeless else 1
    if solution.x is None:
        infeasible = solution.bound is None and bool(solution.reasons)
        # all that could be better is struck out
        return _Found(days=None, value=known, bound=known if infeasible else None, backend=solution.backend)
    m, kinds = len(task.wanted), len(kept)
    lengths = solution.x[2 * m : 2 * m + kinds]
    used = np.flatnonzero(solution.x[2 * m + kinds : 2 * m + 2 * kinds] > 0.5)
    days = [
        Day(duration_us=float(lengths[k] * task.unit.us), target=task.matchings[kept[k]])
        for k in used
        if lengths[k] > 0
    ]
    bound = None if solution.bound is None else max(known, sign * solution.bound)
    value = known if solution.objective is None else sign * solution.objective
    return _Found(days=days, value=value, bound=bound, backend=solution.backend)


def _ranges(task: _Task, kept: Ints, prices: _Prices, slack: float) -> tuple[Floats, Floats]:
    """(k,) between which lengths a day of each matching can be part of something better."""
    low, high = np.full(len(kept), np.inf), np.zeros(len(kept))
    pair = np.append(prices.pair, 0.0)
    grain = GAP * max(1.0, abs(prices.best))
    lengths = task.lengths
    for place, length in enumerate(lengths):
        gain = pair * np.append(task.serves(float(length)), 0.0)
        worth = gain[task.pairs_of[kept]].sum(axis=1) - prices.time * (length + task.night)
        good = worth >= prices.best - slack - grain
        # worth is linear up to the next length on either side
        low[good] = np.minimum(low[good], lengths[max(0, place - 1)] if place else task.shortest)
        high[good] = np.maximum(high[good], lengths[min(len(lengths) - 1, place + 1)])
    low = np.where(np.isfinite(low), low, task.shortest)
    return np.minimum(low, high), high


def _as_good(task: _Task, rows: Callable[..., Rows], known: float, m: int) -> Rows:
    """What is as good as the schedule at hand: cuts branches off, and never that schedule itself."""
    grain = 10 * GAP * abs(known)
    if task.timeless:
        return rows("as good", {5: np.ones((1, 1))}, -known + grain)
    return rows("as good", {0: np.ones((1, m)), 1: np.ones((1, m))}, np.inf, known - grain)


def _program(task: _Task, kept: Ints, low: Floats, high: Floats, count: int, known: float) -> LinearProgram:
    """X, Y (m,), length and use of each matching, what each serves of each of its pairs, and the end."""
    m, kinds, racks = len(task.wanted), len(kept), len(task.packet)
    place, rack = np.nonzero(task.pairs_of[kept] < m)
    pair = task.pairs_of[kept][place, rack]
    parts = len(pair)
    width = [m, m, kinds, kinds, parts] + [1] * task.timeless
    at = sp.csr_array(
        (np.ones(2 * m), (np.concatenate(task.lines), np.tile(np.arange(m), 2))), shape=(racks, m)
    )
    each = np.arange(parts)

    def rows(name: str, filled: dict[int, object], upper: object, lower: object = -np.inf) -> Rows:
        height = next(part.shape[0] for part in filled.values())  # type: ignore[attr-defined]
        blocks = [filled.get(k, sp.csr_array((height, wide))) for k, wide in enumerate(width)]
        return Rows(name, sp.csr_array(sp.hstack(blocks)), lower=lower, upper=upper)  # type: ignore[arg-type]

    def entries(values: Floats, row: Ints, column: Ints, shape: tuple[int, int]) -> sp.csr_array:
        return sp.csr_array((values, (row, column)), shape=shape)

    most = np.minimum(task.wanted[pair], task.rate[pair] * high[place])
    eye, kind = sp.eye_array(m), sp.eye_array(kinds)
    week: dict[int, object] = {2: np.ones((1, kinds)), 3: np.full((1, kinds), task.night)}
    packet: dict[int, object] = {1: at}
    if task.timeless:
        week[5] = -np.ones((1, 1))
        packet[5] = -task.packet.reshape(-1, 1)
    blocks = [
        rows("circuits", {0: eye, 4: -entries(np.ones(parts), pair, each, (m, parts))}, 0.0),
        rows(
            "in time",
            {2: -entries(task.rate[pair], each, place, (parts, kinds)), 4: sp.eye_array(parts)},
            0.0,
        ),
        rows("if used", {3: -entries(most, each, place, (parts, kinds)), 4: sp.eye_array(parts)}, 0.0),
        rows("demand", {0: eye, 1: eye}, task.wanted, task.wanted if task.timeless else -np.inf),
        rows("packet", packet, 0.0 if task.timeless else task.packet * task.week),
        rows("week", week, task.week),
        rows("days", {3: np.ones((1, kinds))}, float(count)),
        rows("longest", {2: kind, 3: -sp.diags_array(high)}, 0.0),
        rows("shortest", {2: kind, 3: -sp.diags_array(low)}, np.inf, 0.0),
        _as_good(task, rows, known, m),
    ]
    cost = np.zeros(sum(width))
    if task.timeless:
        cost[-1] = 1.0
    else:
        cost[: 2 * m] = 1.0
    upper = np.full(len(cost), np.inf)
    upper[2 * m + kinds : 2 * m + 2 * kinds] = 1.0
    integer = np.zeros(len(cost), dtype=bool)
    integer[2 * m + kinds : 2 * m + 2 * kinds] = True
    return LinearProgram.build(
        sense="min" if task.timeless else "max",
        cost=cost,
        rows=blocks,
        columns=[Columns("x", len(cost))],
        upper=upper,
        integer=integer,
        name="circuit schedule of a number of days",
    )
