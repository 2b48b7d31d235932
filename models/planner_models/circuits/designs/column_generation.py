"""The proven optimum by column generation over matchings and lengths, and reduced-cost fixing.

For each number of days K, column generation solves the linear program over days: K of them share the
week, and a day of matching M and length t serves of each pair what t has time for. At dual prices of
demand, time and the packet switch, the value of a day is linear in t between the lengths of its demands,
so only those lengths are tried. The prices give a Lagrangian bound for K days, valid whatever the solver
reports:

    bound(K) = A + K R,    value of a schedule of K days with matching M <= bound(K) - (R - r(M))

with A the value of demand, the week and the packet switch, R that of the best day, r(M) that of M's best.
Numbers of days, then matchings, then lengths below the incumbent are eliminated. A small integer program
decides over the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np
import scipy.sparse as sp

from planner import backends
from planner.backends.linear_program import LinearProgram
from planner.compiled import kernel, run_small_in_python
from planner.options import Options
from planner.search.deadline import Deadline
from planner.search.tolerances import SOLVER
from planner_models.circuits.designs.week_program import (
    BlockProgram,
    Floats,
    Ints,
    ScaledProblem,
    build_schedule_program,
    split_columns,
)
from planner_models.circuits.plan.plan import Day
from planner_models.circuits.problem.problem import Circuits

GAP: Final = SOLVER
MIN_TIME_S: Final = 1e-3  # time left below which nothing more is solved
MAX_ROUNDS: Final = 1_000
COLUMNS_PER_ROUND: Final = 12  # days added in each round of column generation


@dataclass(frozen=True, kw_only=True, eq=False)
class ProvenSchedule:
    """The best days, and a bound on the rate at which demand is served, Mbit/s.

    days   None where the incumbent is the best
    bound  None where time ran out before every number of days was bounded
    """

    days: list[Day] | None
    bound: float | None
    backend: str | None


def prove_optimum(
    problem: Circuits,
    matchings: Ints,
    incumbent: float,
    incumbent_days: int,
    options: Options,
    *,
    report: Callable[[float], None],
) -> ProvenSchedule:
    """Return the best of all schedules over `matchings` (M, n), all maximal ones of the demand.

    incumbent       rate at which a schedule serves demand, Mbit/s
    incumbent_days  how many days it has
    report          is called with the rate of each better schedule
    """
    task = _Days(problem=problem, matchings=matchings)
    deadline = Deadline.of(options)
    best = task.value(incumbent)
    days: list[Day] | None = None
    proven, backend = best, None
    # bounds are concave in the number of days: beyond a number that is eliminated all are
    for numbers in (range(incumbent_days, task.most_days + 1), range(incumbent_days - 1, 0, -1)):
        for count in numbers:
            if deadline.left_s <= MIN_TIME_S:
                return ProvenSchedule(days=days, bound=None, backend=backend)
            prices = _generate_columns(task, count, best, deadline.options(options, minimum_s=MIN_TIME_S))
            if prices is None:
                return ProvenSchedule(days=days, bound=None, backend=backend)
            if prices.bound <= best + GAP * abs(best):
                proven = max(proven, prices.bound)
                if count == incumbent_days:  # more days may still be better
                    continue
                break
            solution = _solve_remaining(
                task, count, prices, best, deadline.options(options, minimum_s=MIN_TIME_S)
            )
            backend = solution.backend or backend
            if solution.bound is None:
                return ProvenSchedule(days=days, bound=None, backend=backend)
            proven = max(proven, solution.bound)
            if solution.days is not None and solution.value > best:
                best, days = solution.value, solution.days
                report(task.objective(best))
    return ProvenSchedule(days=days, bound=task.objective(proven), backend=backend)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Days(ScaledProblem):
    """The problem with the matchings and lengths that its days can have."""

    matchings: Ints

    @cached_property
    def lengths(self) -> Floats:
        """The lengths of day that can be best at some prices: those of demands, and the limits."""
        needs = np.append(self.wanted / self.rate, self.shortest)
        lengths: Floats = np.unique(np.clip(needs, self.shortest, self.longest))
        return lengths

    @cached_property
    def pairs(self) -> Ints:
        """(M, n) number of the pair that each rack of a matching sends, or m for none."""
        return self.pairs_of(self.matchings)

    @cached_property
    def most_days(self) -> int:
        """The most days that can be of use: no matching twice, and as many as there is time for."""
        each = self.night + max(self.shortest, 0.0)
        many = len(self.matchings)
        if each <= 0:
            return many
        max_time = self.week
        if self.timeless:  # one day for each pair would do
            max_time = float((self.wanted / self.rate + each).sum())
        return min(many, int(max_time / each * (1 + 1e-12)))


@dataclass(frozen=True, kw_only=True, eq=False)
class _DualPrices:
    """Dual prices of circuits' bits (m,) and of time, and the bound that they prove for a number of days.

    day_value  (M,) value of each matching's best day; best  the largest, that of an empty day included
    """

    pair: Floats
    time: float
    day_value: Floats
    best: float
    bound: float


def _generate_columns(task: _Days, count: int, incumbent: float, options: Options) -> _DualPrices | None:
    """Return the prices of the best bound for `count` days, or below the incumbent; None out of time."""
    columns: list[tuple[int, float]] = []
    tried: set[tuple[int, int]] = set()
    best: _DualPrices | None = None
    deadline = Deadline.of(options)
    for _ in range(MAX_ROUNDS):
        if deadline.left_s <= MIN_TIME_S:
            return best
        program = _build_master(task, columns, count, incumbent)
        solution = backends.solve(program, deadline.options(options, minimum_s=MIN_TIME_S))
        if solution.row_duals is None:
            return best
        m = len(task.wanted)
        duals = np.abs(solution.row_duals)
        prices, day_values, where = _bound_by_prices(
            task, duals[:m], float(duals[-2]), duals[2 * m : 2 * m + len(task.packet)], count
        )
        if best is None or prices.bound < best.bound:
            best = prices
        value = None if solution.objective is None else (-1 if task.timeless else 1) * solution.objective
        if best.bound <= incumbent + GAP * abs(incumbent):
            return best
        if value is not None and best.bound - value <= GAP * abs(value):
            return best
        nearest = np.argsort(-day_values)[: 4 * COLUMNS_PER_ROUND].tolist()
        keys = [key for index in nearest if (key := (int(where[index]), index)) not in tried]
        if not keys:
            return best
        added = keys[:COLUMNS_PER_ROUND]
        tried.update(added)
        columns += [(matching, float(task.lengths[index])) for matching, index in added]
    return best


def _bound_by_prices(
    task: _Days, pair: Floats, price: float, packet: Floats, count: int
) -> tuple[_DualPrices, Floats, Ints]:
    """Return the Lagrangian bound of dual prices, which are made feasible first.

    returns  prices; (lengths,) the value of the best day of each length; (lengths,) its matching
    """
    out, into = task.lines
    if task.timeless:  # time has a price of 1 in all: that of circuits and of the packet switch
        total = price + float(task.packet @ packet)
        if total <= 0:
            price, total = 1.0, 1.0
        pair, price, packet = pair / total, price / total, packet / total
    day_value, top, where = _price_days(
        task.pairs,
        np.append(pair, 0.0),
        np.array([*task.wanted, 0.0]),
        np.array([*task.rate, 0.0]),
        task.lengths,
        price,
        task.night,
    )
    best = max(float(day_value.max()), -price * task.night)
    over_packet = packet[out] + packet[into]
    if task.timeless:
        remainder = -float((task.wanted * np.minimum(pair, over_packet)).sum())
    else:
        # a served bit has value 1, less the price of what carries it
        gains = np.maximum(0.0, np.maximum(1 - pair, 1 - over_packet))
        remainder = float((task.wanted * gains).sum() + task.week * (task.packet @ packet + price))
    prices = _DualPrices(
        pair=pair, time=price, day_value=day_value, best=best, bound=remainder + count * best
    )
    return prices, top, where


@run_small_in_python(max_elements=1_000)
@kernel
def _price_days(
    pairs_of: Ints, pair: Floats, demand: Floats, rate: Floats, lengths: Floats, price: float, night: float
) -> tuple[Floats, Floats, Ints]:
    """Return values (M,) of each matching's best day, (lengths,) of each length's best, and its matching."""
    day_value = np.full(len(pairs_of), -np.inf)
    top, where = np.full(len(lengths), -np.inf), np.zeros(len(lengths), np.int64)
    gain = np.empty(len(pair))
    for index in range(len(lengths)):
        length = lengths[index]
        for k in range(len(pair)):
            gain[k] = pair[k] * min(demand[k], rate[k] * length)
        cost = price * (length + night)
        for m in range(len(pairs_of)):
            total = -cost
            for i in range(pairs_of.shape[1]):
                total += gain[pairs_of[m, i]]
            day_value[m] = max(day_value[m], total)
            if total > top[index]:
                top[index], where[index] = total, m
    return day_value, top, where


def _build_master(
    task: _Days, columns: list[tuple[int, float]], count: int, incumbent: float
) -> LinearProgram:
    """Return the master program over some days: X, Y (m,), shares of each day and of an empty one, the end.

    Without a window, slack (m,) for demand that these days cannot serve costs ten times the incumbent's time;
    the bound holds at any prices.
    """
    m, wide = len(task.wanted), len(columns) + 1
    served = np.zeros((m + 1, wide))
    for index, (matching, length) in enumerate(columns):
        pairs = task.pairs[matching]
        served[pairs, index] = np.append(task.serves(length), 0.0)[pairs]
    spent = np.array([[*(length + task.night for _, length in columns), task.night]])
    eye = sp.eye_array(m)
    program = BlockProgram(circuit=m, packet=m, share=wide, end=int(task.timeless), missing=m * task.timeless)
    program.add("circuits", upper=0.0, circuit=eye, share=-sp.csr_array(served[:m]))
    task.add_demand(program, circuit=eye, missing=eye)
    task.add_packet(program)
    program.add("week", upper=task.week, share=spent, end=-np.ones((1, 1)))
    program.add("days", lower=count, upper=count, share=np.ones((1, wide)))
    if not task.timeless:
        return task.build(program, name="days of a schedule")
    cost = {"end": 1.0, "missing": 10 * abs(incumbent) / task.wanted}
    return task.build(program, name="days of a schedule", cost=cost)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Incumbent:
    """The best days found over the remaining matchings, and a bound."""

    days: list[Day] | None
    value: float
    bound: float | None
    backend: str | None


def _solve_remaining(
    task: _Days, count: int, prices: _DualPrices, incumbent: float, options: Options
) -> _Incumbent:
    """Return the best of at most `count` days over the matchings and lengths not eliminated."""
    slack = prices.bound - incumbent
    remaining = np.flatnonzero(prices.day_value >= prices.best - slack - GAP * max(1.0, abs(prices.best)))
    low, high = _length_ranges(task, remaining, prices, slack)
    program = build_schedule_program(
        task,
        task.matchings[remaining],
        low=low,
        high=high,
        count=count,
        cutoff=incumbent - 10 * GAP * abs(incumbent),
        by_parts=True,
    )
    solution = backends.solve(program, replace(options, gap=options.gap or GAP))
    sign = -1 if task.timeless else 1
    if solution.x is None:
        infeasible = solution.bound is None and bool(solution.reasons)
        # all that could be better is eliminated
        return _Incumbent(
            days=None, value=incumbent, bound=incumbent if infeasible else None, backend=solution.backend
        )
    parts = split_columns(program, solution.x)
    lengths = parts["length"]
    days = [
        Day(duration_us=float(lengths[k] * task.unit.us), target=task.matchings[remaining[k]])
        for k in np.flatnonzero(parts["used"] > 0.5)
        if lengths[k] > 0
    ]
    bound = None if solution.bound is None else max(incumbent, sign * solution.bound)
    value = incumbent if solution.objective is None else sign * solution.objective
    return _Incumbent(days=days, value=value, bound=bound, backend=solution.backend)


def _length_ranges(task: _Days, remaining: Ints, prices: _DualPrices, slack: float) -> tuple[Floats, Floats]:
    """Return (k,) least and greatest length of a day of each matching in any better schedule."""
    low, high = np.full(len(remaining), np.inf), np.zeros(len(remaining))
    pair = np.append(prices.pair, 0.0)
    tolerance = GAP * max(1.0, abs(prices.best))
    lengths = task.lengths
    for index, length in enumerate(lengths):
        gain = pair * np.append(task.serves(float(length)), 0.0)
        day_value = gain[task.pairs[remaining]].sum(axis=1) - prices.time * (length + task.night)
        good = day_value >= prices.best - slack - tolerance
        # the value is linear up to the next length on either side
        low[good] = np.minimum(low[good], lengths[max(0, index - 1)] if index else task.shortest)
        high[good] = np.maximum(high[good], lengths[min(len(lengths) - 1, index + 1)])
    low = np.where(np.isfinite(low), low, task.shortest)
    return np.minimum(low, high), high
