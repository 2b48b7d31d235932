"""Channelization, proven: a p-median over unions of port sets, its Lagrangian bound, and its exact model.

Each meta-group goes to the union of its groups' ports. So choose `table_size` unions and let every
distinct port set take one that covers it, at its traffic times the union's size. Without the rule that
every set takes one, but with a price for each that does not, each union is worth what it saves by
itself; the best `table_size` of them bound every plan. Only unions that could still beat the best plan
known are left for the exact model. Congestion is linear, without background.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np
import scipy.sparse as sp
from numba import njit

from planner.backends import Solution, solve
from planner.backends.linear import Columns, LinearProgram, Rows
from planner.errors import InputError
from planner.options import Options
from planner.proof import Status
from planner_models.multicast import agglomerate
from planner_models.multicast.channels import Masks, Meta, Rates, bits, distinct, least_extra_mbps

MOST_UNIONS: Final = 400_000  # looked at for one price vector; beyond, prices say nothing
MODELLED: Final = 6_000  # unions that the exact model is given at most
FEW_SETS: Final = 12  # so few have few unions in any case
STEPS: Final = 600  # of the subgradient method
CLOSED: Final = 1e-9  # relative gap that counts as none


@dataclass(frozen=True, kw_only=True, eq=False)
class Certified:
    """A plan of one switch with a bound.

    meta        the meta-group of each group
    extra_mbps  its traffic to ports without members
    bound_mbps  no plan has less
    total_mbps  all traffic of the plan, wanted or not: equation (6) with linear cost
    """

    meta: Meta
    extra_mbps: float
    bound_mbps: float
    total_mbps: float

    @property
    def gap(self) -> float:
        """Of all traffic, which is what equation (6) counts."""
        return max(0.0, self.extra_mbps - self.bound_mbps) / max(self.total_mbps, 1e-9)


def certified(
    masks: Masks, rates: Rates, *, table_size: int, seconds: float = 10.0, options: Options = Options()
) -> Certified:
    """The best plan found and the best bound proven in about that time.

    raises  InputError for a table without entries
    """
    start = time.perf_counter()
    sets, weights, place = distinct(masks, rates)
    wanted = float(weights @ np.bitwise_count(sets))
    if len(sets) <= table_size:
        return Certified(meta=place, extra_mbps=0.0, bound_mbps=0.0, total_mbps=wanted)
    meta = agglomerate.aggregate(sets, weights, table_size=table_size, rounds=3)
    search = _Search(sets=sets, weights=weights, table_size=table_size, meta=meta)
    search.run(start + seconds)
    if search.gap > CLOSED:
        left = max(0.1, start + 2 * seconds - time.perf_counter())
        search.finish(options, left)
    bound = max(search.bound - wanted, least_extra_mbps(masks, rates, table_size))
    extra = max(search.total - wanted, 0.0)
    return Certified(
        meta=search.meta[place], extra_mbps=extra, bound_mbps=min(bound, extra), total_mbps=search.total
    )


def bound_mbps(masks: Masks, rates: Rates, *, table_size: int, seconds: float = 10.0) -> float:
    """No plan has less extra traffic than this; nothing is planned that one could carry out."""
    return certified(masks, rates, table_size=table_size, seconds=seconds).bound_mbps


# --- prices -------------------------------------------------------------------------------


@dataclass(kw_only=True, eq=False)
class _Search:
    """Prices of port sets by the subgradient method, with the best plan and bound so far."""

    sets: Masks
    weights: Rates
    table_size: int
    meta: Meta
    bound: float = 0.0
    unions: Masks | None = None  # all that could be in a better plan; None where too many are

    def __post_init__(self) -> None:
        self.total = agglomerate.traffic_mbps(self.sets, self.weights, self.meta)
        self.bound = float(self.weights @ np.bitwise_count(self.sets))

    @property
    def gap(self) -> float:
        return (self.total - self.bound) / max(self.total, 1e-9)

    def run(self, until: float) -> None:
        """Raises the price of sets that no union takes, lowers that of sets that several do."""
        least = self.weights * np.bitwise_count(self.sets)
        size = np.bitwise_count(self._unions(self.meta)[self.meta])
        # a set pays what it costs where it is now; those that no union takes will pay more
        price = np.maximum(self.weights * (size - 0.5), least + 0.5 * self.weights)
        best_price, slope = price.copy(), np.zeros(len(price))
        step, calm, worth, known = 0.7, 0, 0.5 * float(self.weights.min()), False
        for _ in range(STEPS):
            if self.gap <= CLOSED or step < 1e-3 or time.perf_counter() > until:
                break
            unions, values, whole = _search_unions(self.sets, self.weights, price, worth, MOST_UNIONS)
            if not whole and known:  # too many unions are worth something here: half way back
                price, step, slope = (price + best_price) / 2, 0.8 * step, 0 * slope
                continue
            if not whole:
                worth *= 2  # only those worth more: the bound is weaker and holds
                continue
            order = np.argsort(-values)[: self.table_size]
            short = self.table_size - len(order)
            bound = float(price.sum() - values[order].sum() - short * worth)
            self._plan(unions[order])
            if bound > self.bound + 1e-7 * self.total:
                self.bound, best_price, calm, known = bound, price.copy(), 0, True
            else:
                calm += 1
                if calm % 8 == 0:
                    step, price, slope = step / 2, best_price.copy(), 0 * slope
            slope = 0.6 * slope + 1.0 - _taken(self.sets, self.weights, price, unions[order])
            norm = float(slope @ slope)
            if norm == 0:
                break
            worth = max(0.8 * float(values[order[-1]]) if not short else 0.7 * worth, 1e-9 * self.total)
            price = np.maximum(price + step * (1.02 * self.total - bound) / norm * slope, least)
        self._fix(best_price, 0.5 * worth)

    def _fix(self, price: Rates, worth: float) -> None:
        """Which unions could be in a plan better than the best: those that cost the bound little."""
        found = _priced(self.sets, self.weights, price, worth, MOST_UNIONS)
        if found is None:
            return
        top = np.sort(found[1])[::-1][: self.table_size]
        if len(top) < self.table_size:
            return
        bound = float(price.sum() - top.sum())
        needed = float(top[-1]) - (self.total - bound) - 1e-9 * self.total
        if needed <= 0:
            return  # unions that save nothing at these prices may be in it, too
        if needed < worth:
            found = _priced(self.sets, self.weights, price, needed, MOST_UNIONS)
        if found is not None:
            self.unions = found[0][found[1] >= needed]

    def _unions(self, meta: Meta) -> Masks:
        union = np.zeros(int(meta.max()) + 1, dtype=np.uint64)
        np.bitwise_or.at(union, meta, self.sets)
        return union

    def _plan(self, unions: Masks) -> None:
        """The plan with these unions, where they cover every set, and better."""
        if not len(unions) or not _covered(self.sets, unions):
            unions = np.concatenate([unions[: self.table_size - 1], [np.bitwise_or.reduce(self.sets)]])
        meta = agglomerate.improved(self.sets, self.weights, unions)
        total = agglomerate.traffic_mbps(self.sets, self.weights, meta)
        if total < self.total:
            self.total, self.meta = total, np.unique(meta, return_inverse=True)[1].astype(np.int64)

    def finish(self, options: Options, seconds: float) -> None:
        """Solves the exact model over the unions that are left, where they are few enough."""
        left = self.unions
        if left is None and len(self.sets) <= FEW_SETS:
            left = np.array(unions_of(self.sets.tolist(), 1 << FEW_SETS), dtype=np.uint64)
        if left is None or len(left) > MODELLED:
            return
        unions = np.unique(np.concatenate([left, self._unions(self.meta)]))
        limit = seconds if options.time_limit_s is None else min(seconds, options.time_limit_s)
        program = _model(self.sets, self.weights, unions, self.table_size)
        solution = solve(
            program, Options(backend=options.backend, threads=options.threads, time_limit_s=limit)
        )
        wanted = float(self.weights @ np.bitwise_count(self.sets))
        if solution.x is not None:
            self._plan(unions[solution.x[: len(unions)] > 0.5])
        if solution.status is Status.INFEASIBLE:
            self.bound = self.total
        elif solution.bound is not None:
            # what was left out is in no better plan
            self.bound = max(self.bound, min(solution.bound + wanted, self.total))


@njit(cache=True, nogil=True)
def _value(sets: Masks, weights: Rates, price: Rates, union: np.uint64) -> float:
    size, value = bits(union), 0.0
    for i in range(len(sets)):
        if (sets[i] & ~union) == 0:
            value += max(0.0, price[i] - weights[i] * size)
    return value


@njit(cache=True, nogil=True)
def _slot(table: Masks, mask: np.uint64) -> int:
    """The place of a union in a table of open addressing, or the free place where it belongs."""
    cap = np.uint64(len(table) - 1)
    at = (mask * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32) & cap
    while table[at] != 0 and table[at] != mask:
        at = (at + np.uint64(1)) & cap
    return int(at)


@njit(cache=True, nogil=True)
def _search_unions(  # noqa: C901 - one compiled loop
    sets: Masks, weights: Rates, price: Rates, worth: float, most: int
) -> tuple[Masks, Rates, bool]:
    """Every union worth more than `worth` at these prices; False where more than `most` were looked at.

    A union of useful sets only grows; where all that could still come of it is worth too little, what
    lies beyond is left out.
    """
    slots = 16
    while slots < 4 * most:
        slots *= 2
    seen = np.zeros(slots, dtype=np.uint64)
    stack = np.empty(most + 1, dtype=np.uint64)
    found, values = np.empty(most + 1, dtype=np.uint64), np.empty(most + 1)
    ahead = np.zeros(65)
    depth, count, looked = 0, 0, 0
    for i in range(len(sets)):
        at = _slot(seen, sets[i])
        if seen[at] == 0 and price[i] > weights[i] * bits(sets[i]):
            seen[at] = sets[i]
            if looked >= most:
                return found[:count], values[:count], False
            looked += 1
            stack[depth] = sets[i]
            depth += 1
    while depth:
        depth -= 1
        union = stack[depth]
        size = bits(union)
        value, ahead[:] = 0.0, 0.0
        for i in range(len(sets)):
            grown = bits(union | sets[i])
            if grown == size:
                value += max(0.0, price[i] - weights[i] * size)
            # a larger union has one size, whatever it holds: what sets would save in unions of each
            for larger_size in range(max(grown, size + 1), 65):
                saved = price[i] - weights[i] * larger_size
                if saved <= 0:
                    break
                ahead[larger_size] += saved
        largest = 0  # of the sizes that could still be worth enough
        for larger_size in range(size + 1, 65):
            if ahead[larger_size] > worth:
                largest = larger_size
        if value > worth:
            found[count] = union
            values[count] = value
            count += 1
        if largest == 0:
            continue
        for i in range(len(sets)):
            larger = union | sets[i]
            grown = bits(larger)
            if size < grown <= largest and price[i] > weights[i] * grown:
                at = _slot(seen, larger)
                if seen[at] == 0:
                    seen[at] = larger
                    if looked >= most:
                        return found[:count], values[:count], False
                    looked += 1
                    stack[depth] = larger
                    depth += 1
    return found[:count], values[:count], True


def _priced(sets: Masks, weights: Rates, price: Rates, worth: float, most: int) -> tuple[Masks, Rates] | None:
    unions, values, whole = _search_unions(sets, weights, price, worth, most)
    return (unions.copy(), values.copy()) if whole else None


@njit(cache=True, nogil=True)
def _taken(sets: Masks, weights: Rates, price: Rates, unions: Masks) -> Rates:
    """How many of the unions would take each set at these prices."""
    taken = np.zeros(len(sets))
    for m in range(len(unions)):
        size = bits(unions[m])
        for i in range(len(sets)):
            if (sets[i] & ~unions[m]) == 0 and price[i] > weights[i] * size:
                taken[i] += 1.0
    return taken


@njit(cache=True, nogil=True)
def _covered(sets: Masks, unions: Masks) -> bool:
    for i in range(len(sets)):
        covered = False
        for m in range(len(unions)):
            if (sets[i] & ~unions[m]) == 0:
                covered = True
                break
        if not covered:
            return False
    return True


# --- the exact model ----------------------------------------------------------------------


def unions_of(masks: Sequence[int], most: int) -> list[int]:
    """Every union of the port sets, each once; InputError where there are more than `most`."""
    found: set[int] = set()
    for mask in set(masks):
        found |= {mask} | {mask | other for other in found}
        if len(found) > most:
            raise InputError(f"the port sets have more than {most} unions: too large for the exact method")
    return sorted(found)


def model(masks: Masks, rates: Rates, *, table_size: int, most_unions: int = 4096) -> LinearProgram:
    """The exact model: open `table_size` unions, assign each distinct port set to one that covers it.

    raises  InputError for more unions than `most_unions`
    """
    sets, weights, _ = distinct(masks, rates)
    unions = np.array(unions_of([int(mask) for mask in sets], most_unions), dtype=np.uint64)
    return _model(sets, weights, unions, table_size)


def _model(sets: Masks, weights: Rates, unions: Masks, table_size: int) -> LinearProgram:
    item, union = np.nonzero((sets[:, None] & ~unions[None, :]) == 0)
    extra = weights[item] * np.bitwise_count(unions[union] & ~sets[item])
    count, pairs = len(unions), len(item)
    assign = sp.coo_array(
        (np.ones(pairs), (item, count + np.arange(pairs))), shape=(len(sets), count + pairs)
    )
    rows = np.tile(np.arange(pairs), 2)
    columns = np.concatenate([count + np.arange(pairs), union])
    linked = sp.coo_array((np.repeat([1.0, -1.0], pairs), (rows, columns)), shape=(pairs, count + pairs))
    opened = sp.coo_array(
        (np.ones(count), (np.zeros(count, int), np.arange(count))), shape=(1, count + pairs)
    )
    return LinearProgram.build(
        cost=np.concatenate([np.zeros(count), extra]),
        rows=[
            Rows("assigned", assign, lower=1.0, upper=1.0),
            Rows("open", linked, upper=0.0),
            Rows("table", opened, upper=float(table_size)),
        ],
        columns=[Columns("union", count), Columns("assign", pairs)],
        upper=1.0,
        integer=np.arange(count + pairs) < count,
        name="channelization",
    )


def optimum(
    masks: Masks, rates: Rates, *, table_size: int, options: Options = Options()
) -> tuple[Meta | None, Solution]:
    """The least extra traffic, with the solver's bound; None without a plan. For switches with few unions."""
    solution = solve(model(masks, rates, table_size=table_size), options)
    if solution.x is None:
        return None, solution
    sets, _, place = distinct(masks, rates)
    unions = np.array(unions_of([int(mask) for mask in sets], 4096), dtype=np.uint64)
    chosen = unions[solution.x[: len(unions)] > 0.5]
    sizes = np.bitwise_count(chosen).astype(np.int64)
    cost = np.where((sets[:, None] & ~chosen[None, :]) == 0, sizes[None, :], 65)
    return np.unique(cost.argmin(axis=1)[place], return_inverse=True)[1].astype(np.int64), solution


def brute_force(masks: Sequence[int], rates: Sequence[float], table_size: int) -> float:
    """The least extra traffic of a tiny switch, by trying every choice of unions."""
    unions = unions_of(masks, 20)
    best = float("inf")
    for chosen in combinations(unions, min(table_size, len(unions))):
        cost = 0.0
        for mask, rate in zip(masks, rates, strict=True):
            extras = [(union & ~mask).bit_count() for union in chosen if mask & ~union == 0]
            cost += rate * min(extras) if extras else float("inf")
        best = min(best, cost)
    return best
