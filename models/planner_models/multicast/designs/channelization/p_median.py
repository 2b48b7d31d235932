"""Lagrangian bound of a p-median over unions of port sets, and exact channelization near it.

Each meta-group goes to the union of its groups' ports. So channelization chooses `table_size` unions, and
assigns every distinct port set to one that covers it, at its traffic times the union's size. Relaxing the
assignment with a price for each unassigned set, each union has a value by itself: the savings of its sets;
the best `table_size` of them bound every plan. Only unions that can still beat the incumbent are left for
the exact model. Congestion is linear, without background.

Branch and bound over ports: the unions of port sets that save the most at given prices.

A union of `size` ports saves, for each port set within it, the set's price less its weight times `size`,
where that is positive. Each node has ports that the union has, and ports that it has not; a port that it has
not excludes all sets with it. What the sets that are left could save at each size, if no two of them excluded
each other, bounds all unions below the node.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from planner.arrays import Floats, Ints
from planner.backends import Solution, solve
from planner.backends.linear_program import LinearProgram
from planner.backends.program_builder import ProgramBuilder
from planner.bits import count_bits
from planner.compiled import njit, run_small_in_python
from planner.contract.proof import Status
from planner.errors import InputError
from planner.options import Options
from planner.search.ascent import Ascent
from planner.search.deadline import Deadline
from planner.search.tolerances import ROUNDING
from planner_models.multicast.designs.channelization import local_search
from planner_models.multicast.plan.meta_groups import Masks, distinct_sets, extra_mbps_bound

MAX_NODES: Final = 4_000_000  # of a search for unions at one price vector; beyond, prices say nothing
MAX_UNIONS_MODELLED: Final = 6_000  # in the exact model
FEW_PORT_SETS: Final = 12  # all unions of so few sets fit the model
MAX_STEPS: Final = 600  # of the subgradient method
GAP_TOLERANCE: Final = ROUNDING  # relative


@dataclass(frozen=True, kw_only=True, eq=False)
class CertifiedSharing:
    """A plan of one switch with a bound.

    meta        the meta-group of each group
    extra_mbps  its traffic to ports without members
    bound_mbps  lower bound of the extra traffic of any plan
    total_mbps  all traffic of the plan, wanted or not: equation (6) with linear cost
    """

    meta: Ints
    extra_mbps: float
    bound_mbps: float
    total_mbps: float

    @property
    def gap(self) -> float:
        """Gap relative to all traffic, which equation (6) counts."""
        return max(0.0, self.extra_mbps - self.bound_mbps) / max(self.total_mbps, 1e-9)


def certify(
    masks: Masks, rates: Floats, *, table_size: int, seconds: float = 10.0, options: Options = Options()
) -> CertifiedSharing:
    """Return the best plan and the best bound found in about that time.

    raises  InputError for a table without entries
    """
    deadline = Deadline.after(seconds)
    sets, weights, inverse = distinct_sets(masks, rates)
    demand_mbps = float(weights @ np.bitwise_count(sets))
    if len(sets) <= table_size:
        return CertifiedSharing(meta=inverse, extra_mbps=0.0, bound_mbps=0.0, total_mbps=demand_mbps)
    meta = local_search.aggregate(sets, weights, table_size=table_size, rounds=3)
    search = _LagrangianSearch(sets=sets, weights=weights, table_size=table_size, meta=meta)
    search.run(deadline)
    if search.gap > GAP_TOLERANCE:
        search.finish(options, max(0.1, deadline.share(2.0).left_s))
    bound = max(search.bound - demand_mbps, extra_mbps_bound(masks, rates, table_size))
    extra = max(search.total - demand_mbps, 0.0)
    return CertifiedSharing(
        meta=search.meta[inverse], extra_mbps=extra, bound_mbps=min(bound, extra), total_mbps=search.total
    )


def bound_mbps(masks: Masks, rates: Floats, *, table_size: int, seconds: float = 10.0) -> float:
    """Return a lower bound of the extra traffic of any plan."""
    return certify(masks, rates, table_size=table_size, seconds=seconds).bound_mbps


# --- Lagrangian bound -------------------------------------------------------------------------------


@dataclass(kw_only=True, eq=False)
class _LagrangianSearch:
    """Subgradient method on the prices of port sets, with the incumbent plan and bound."""

    sets: Masks
    weights: Floats
    table_size: int
    meta: Ints
    bound: float = 0.0
    unions: Masks | None = None  # all that can be in a better plan; None where there are too many

    def __post_init__(self) -> None:
        self.total = local_search.total_mbps(self.sets, self.weights, self.meta)
        self.bound = float(self.weights @ np.bitwise_count(self.sets))

    @property
    def gap(self) -> float:
        """Relative gap of the incumbent."""
        return (self.total - self.bound) / max(self.total, 1e-9)

    def run(self, deadline: Deadline) -> None:
        """Raise the price of sets that no union takes, and lower that of sets that several take."""
        lowest_price = self.weights * np.bitwise_count(self.sets)
        size = np.bitwise_count(self._unions(self.meta)[self.meta])
        # the cost of each set at present; sets that no union takes will pay more
        price = np.maximum(self.weights * (size - 0.5), lowest_price + 0.5 * self.weights)
        ascent = Ascent(price, factor=0.7, stall_limit=8, best=self.bound)
        slope, min_value, is_known = np.zeros(len(price)), 0.5 * float(self.weights.min()), False
        for _ in range(MAX_STEPS):
            if self.gap <= GAP_TOLERANCE or ascent.factor < 1e-3 or deadline.is_over:
                break
            unions, values, is_complete = search_unions(self.sets, self.weights, price, min_value, MAX_NODES)
            if not is_complete and is_known:  # too many unions of value at these prices: go back half way
                price, slope = (price + ascent.best_point) / 2, 0 * slope
                ascent.factor *= 0.8
                continue
            if not is_complete:
                min_value *= 2  # fewer unions: the bound is weaker and still valid
                continue
            order = np.argsort(-values)[: self.table_size]
            short = self.table_size - len(order)
            bound = float(price.sum() - values[order].sum() - short * min_value)
            self._plan(unions[order])
            if ascent.tell(bound, price, progress=1e-7 * self.total):
                price, slope = ascent.go_back(), 0 * slope
            is_known |= ascent.best > self.bound
            self.bound = ascent.best
            slope = 0.6 * slope + 1.0 - _count_takers(self.sets, self.weights, price, unions[order])
            norm = float(slope @ slope)
            if norm == 0:
                break
            min_value = max(
                0.8 * float(values[order[-1]]) if not short else 0.7 * min_value, 1e-9 * self.total
            )
            price = np.maximum(price + ascent.length(1.02 * self.total - bound, norm) * slope, lowest_price)
        self._fix(ascent.best_point, 0.5 * min_value)

    def _fix(self, price: Floats, min_value: float) -> None:
        """Keep the unions that can be in a better plan: their reduced cost is below the gap."""
        _, values, is_complete = search_unions(self.sets, self.weights, price, min_value, MAX_NODES)
        if not is_complete:
            return
        top = np.sort(values)[::-1][: self.table_size]
        if len(top) < self.table_size:
            return
        bound = float(price.sum() - top.sum())
        needed = float(top[-1]) - (self.total - bound) - 1e-9 * self.total
        if needed <= 0:
            return  # unions that save nothing at these prices may be in it, too
        unions, _, is_complete = search_unions(self.sets, self.weights, price, needed, MAX_NODES, every=True)
        if is_complete:
            self.unions = unions

    def _unions(self, meta: Ints) -> Masks:
        """Return the union of each meta-group."""
        union = np.zeros(int(meta.max()) + 1, dtype=np.uint64)
        np.bitwise_or.at(union, meta, self.sets)
        return union

    def _plan(self, unions: Masks) -> None:
        """Complete these unions to a plan, and keep it where it is better than the incumbent."""
        if not len(unions) or not _is_covering(self.sets, unions):
            unions = np.concatenate([unions[: self.table_size - 1], [np.bitwise_or.reduce(self.sets)]])
        meta = local_search.reassign_sets(self.sets, self.weights, unions)
        total = local_search.total_mbps(self.sets, self.weights, meta)
        if total < self.total:
            self.total, self.meta = total, np.unique(meta, return_inverse=True)[1].astype(np.int64)

    def finish(self, options: Options, seconds: float) -> None:
        """Solve the exact model over the remaining unions, where they are few enough."""
        candidates = self.unions
        if candidates is None and len(self.sets) <= FEW_PORT_SETS:
            candidates = np.array(list_unions(self.sets.tolist(), 1 << FEW_PORT_SETS), dtype=np.uint64)
        if candidates is None or len(candidates) > MAX_UNIONS_MODELLED:
            return
        unions = np.unique(np.concatenate([candidates, self._unions(self.meta)]))
        limit = seconds if options.time_limit_s is None else min(seconds, options.time_limit_s)
        program = build_model(self.sets, self.weights, unions, self.table_size)
        solution = solve(
            program, Options(backend=options.backend, threads=options.threads, time_limit_s=limit)
        )
        demand_mbps = float(self.weights @ np.bitwise_count(self.sets))
        if solution.x is not None:
            self._plan(unions[solution.x[: len(unions)] > 0.5])
        if solution.status is Status.INFEASIBLE:
            self.bound = self.total
        elif solution.bound is not None:
            # excluded unions are in no better plan
            self.bound = max(self.bound, min(solution.bound + demand_mbps, self.total))


@run_small_in_python(max_elements=1_000)
@njit(cache=True, nogil=True)
def _count_takers(sets: Masks, weights: Floats, price: Floats, unions: Masks) -> Floats:
    """Return the number of the unions that would take each set at these prices."""
    taken = np.zeros(len(sets))
    for m in range(len(unions)):
        size = count_bits(unions[m])
        for i in range(len(sets)):
            if (sets[i] & ~unions[m]) == 0 and price[i] > weights[i] * size:
                taken[i] += 1.0
    return taken


@run_small_in_python(max_elements=1_000)
@njit(cache=True, nogil=True)
def _is_covering(sets: Masks, unions: Masks) -> bool:
    """Return whether every set is covered by a union."""
    for i in range(len(sets)):
        covered = False
        for m in range(len(unions)):
            if (sets[i] & ~unions[m]) == 0:
                covered = True
                break
        if not covered:
            return False
    return True


def list_unions(masks: Sequence[int], limit: int) -> list[int]:
    """Return every union of the port sets, each once; InputError where there are more than `limit`."""
    unions: set[int] = set()
    for mask in set(masks):
        unions |= {mask} | {mask | other for other in unions}
        if len(unions) > limit:
            raise InputError(f"the port sets have more than {limit} unions: too large for the exact method")
    return sorted(unions)


def p_median_model(masks: Masks, rates: Floats, *, table_size: int, most_unions: int = 4096) -> LinearProgram:
    """Return the exact model: open `table_size` unions, assign each distinct port set to one that covers it.

    raises  InputError for more unions than `most_unions`
    """
    sets, weights, _ = distinct_sets(masks, rates)
    unions = np.array(list_unions([int(mask) for mask in sets], most_unions), dtype=np.uint64)
    return build_model(sets, weights, unions, table_size)


def build_model(sets: Masks, weights: Floats, unions: Masks, table_size: int) -> LinearProgram:
    """Return the exact model over these unions."""
    item, union = np.nonzero((sets[:, None] & ~unions[None, :]) == 0)
    extra = weights[item] * np.bitwise_count(unions[union] & ~sets[item])
    m = ProgramBuilder(name="channelization")
    opened = m.variables("union", len(unions), upper=1.0, integer=True)
    assign = m.variables("assign", len(item), upper=1.0, cost=extra)
    m.constrain("assigned", assign.sum_by(item, len(sets)), equal=1.0)
    m.constrain("open", assign - opened[union], upper=0.0)
    m.constrain("table", opened.sum(), upper=table_size)
    return m.build()


def solve_exactly(
    masks: Masks, rates: Floats, *, table_size: int, options: Options = Options()
) -> tuple[Ints | None, Solution]:
    """Return the sharing with least extra traffic, and the solution with its bound; None without a plan.

    For switches with few unions of port sets.
    """
    solution = solve(p_median_model(masks, rates, table_size=table_size), options)
    if solution.x is None:
        return None, solution
    sets, _, inverse = distinct_sets(masks, rates)
    unions = np.array(list_unions([int(mask) for mask in sets], 4096), dtype=np.uint64)
    unions_used = unions[solution.x[: len(unions)] > 0.5]
    sizes = np.bitwise_count(unions_used).astype(np.int64)
    cost = np.where((sets[:, None] & ~unions_used[None, :]) == 0, sizes[None, :], 65)
    return np.unique(cost.argmin(axis=1)[inverse], return_inverse=True)[1].astype(np.int64), solution


def search_unions(
    sets: Masks, weights: Floats, price: Floats, min_value: float, most_nodes: int, *, every: bool = False
) -> tuple[Masks, Floats, bool]:
    """Return the unions of more value than `min_value` with their values, and whether these are all.

    A union is listed where it is the union of the sets that save something in it: a larger one is worse.
    In a plan, each union may be replaced by that of the sets that save something there; where two become the
    same, they count once, as no set is in both. So the values bound every plan.

    sets        (n,) port sets, not all distinct
    every       list the unions of any sets, whether these save something there
    most_nodes  of the search; beyond, not all unions are found
    """
    ports = int(np.bitwise_or.reduce(sets)).bit_length() if len(sets) else 0
    size = np.bitwise_count(sets).astype(np.int64)
    with np.errstate(divide="ignore", invalid="ignore"):
        # the largest union in which each set saves something
        largest = np.clip(np.ceil(price / weights) - 1, 0, ports).astype(np.int64)
    rows = np.arange(len(sets)) if every else np.flatnonzero(largest >= size)
    saving = _Sets(sets[rows], weights[rows], price[rows], largest[rows])
    unions, values, count, is_whole = _search(saving, min_value, ports, most_nodes, every)
    return unions[:count].copy(), values[:count].copy(), bool(is_whole)


class _Sets(NamedTuple):
    """Port sets, rate and price of each, and the most ports of a union in which it saves something."""

    masks: Masks
    weights: Floats
    price: Floats
    largest: Ints


@run_small_in_python(max_elements=1_000)
@njit(cache=True, nogil=True)
def _search(  # noqa: C901 - one compiled loop
    sets: _Sets, min_value: float, ports: int, most_nodes: int, every: bool
) -> tuple[Masks, Floats, int, bool]:
    """Return unions, values, their number, and whether the search ended; depth first, one port a level."""
    levels, total = ports + 2, len(sets.masks)
    candidates = np.empty((levels, total), dtype=np.int64)  # sets that a union below the node may contain
    count = np.zeros(levels, dtype=np.int64)
    inside = np.zeros(levels, dtype=np.uint64)
    branch = np.zeros(levels, dtype=np.uint64)  # the port that each level branches on
    state = np.zeros(levels, dtype=np.int64)  # 0: new; 1: with the port is done; 2: both are
    unions, values, listed = np.zeros(1024, dtype=np.uint64), np.zeros(1024), 0
    ahead, gains = np.zeros((2, levels)), np.zeros(ports + 1)
    candidates[0] = np.arange(total)
    count[0] = total
    depth, nodes = 0, 0
    while depth >= 0:
        if state[depth] == 0:
            nodes += 1
            if nodes > most_nodes:
                return unions, values, listed, False
            mask, below = inside[depth], candidates[depth]
            count[depth] = _prune(sets, below[: count[depth]], mask, min_value, ahead, every)
            if count[depth] < 0:
                depth -= 1
                continue
            branch[depth] = _choose_port(
                sets.masks, sets.weights, sets.price, below, count[depth], mask, gains
            )
            if branch[depth] == 0:
                value = _rate_union(sets, below[: count[depth]], mask)
                if value > min_value:
                    if listed == len(unions):
                        unions = np.append(unions, np.zeros_like(unions))
                        values = np.append(values, np.zeros_like(values))
                    unions[listed], values[listed] = mask, value
                    listed += 1
                depth -= 1
                continue
            inside[depth + 1] = mask | branch[depth]
            candidates[depth + 1, : count[depth]] = candidates[depth, : count[depth]]
            count[depth + 1] = count[depth]
        elif state[depth] == 1:
            next_count = 0
            for i in candidates[depth, : count[depth]]:
                if sets.masks[i] & branch[depth] == 0:
                    candidates[depth + 1, next_count] = i
                    next_count += 1
            inside[depth + 1], count[depth + 1] = inside[depth], next_count
        else:
            depth -= 1
            continue
        state[depth] += 1
        depth += 1
        state[depth] = 0
    return unions, values, listed, True


@njit(cache=True, nogil=True)
def _rate_union(sets: _Sets, candidates: Ints, mask: np.uint64) -> float:
    """Return the value of a union of some sets, -inf where these are not all of it."""
    value, union, size = 0.0, np.uint64(0), count_bits(mask)
    for i in candidates:
        value += max(sets.price[i] - sets.weights[i] * size, 0.0)
        union |= sets.masks[i]
    return value if union == mask else -np.inf


@njit(cache=True, nogil=True)
def _prune(
    sets: _Sets, candidates: Ints, mask: np.uint64, min_value: float, ahead: Floats, every: bool
) -> int:
    """Leave first in `candidates` the sets that a union above `min_value` may contain; return their number.

    -1 where there is no such union; `ahead` is work space.
    """
    masks, weights, price, largest = sets
    size, last = count_bits(mask), ahead.shape[1] - 2
    ahead[:] = 0.0
    next_count = 0
    for i in candidates:
        union_size = count_bits(mask | masks[i])
        if every or union_size <= largest[i]:
            candidates[next_count] = i
            next_count += 1
        if union_size <= largest[i]:
            ahead[0, union_size] += price[i]
            ahead[1, union_size] += weights[i]
            ahead[0, largest[i] + 1] -= price[i]
            ahead[1, largest[i] + 1] -= weights[i]
    top, prices, slopes = -1, 0.0, 0.0
    for ports in range(size, last + 1):
        prices += ahead[0, ports]
        slopes += ahead[1, ports]
        if prices - slopes * ports > min_value:
            top = ports
    if top < 0:
        return -1
    count = 0
    for i in candidates[:next_count]:
        if count_bits(mask | masks[i]) <= top:
            candidates[count] = i
            count += 1
    return count


@njit(cache=True, nogil=True)
def _choose_port(
    sets: Masks, weights: Floats, price: Floats, candidates: Ints, count: int, mask: np.uint64, gains: Floats
) -> np.uint64:
    """Return the port, as a bit, outside of `mask` with sets that save the most now; 0 if there is none."""
    gains[:] = 0.0
    size, best = count_bits(mask), -1
    for a in range(count):
        i = candidates[a]
        remaining = sets[i] & ~mask
        while remaining:
            bit = remaining & (~remaining + np.uint64(1))
            port = count_bits(bit - np.uint64(1))
            gains[port] += max(price[i] - weights[i] * size, 0.0)
            if best < 0 or gains[port] > gains[best]:
                best = port
            remaining ^= bit
    return np.uint64(0) if best < 0 else np.uint64(1) << np.uint64(best)
