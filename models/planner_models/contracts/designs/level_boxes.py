"""Bound on the bill of one region with few contracts, by branching on boxes of billed levels.

Levels in a box carry no more than its highest levels, and cost no less than its lowest. A box is left out
where its highest levels need more free windows than there are, or volumes billed by the mean that cost more
than what is left of the bill. Lagrangian multipliers prove that: prices of a free window of each contract and
of a Mbit/s of each contract billed by the mean, at which each group of windows takes the cheapest set of free
contracts that carries it. Multipliers of one box mostly serve others too, so that few are searched for. The
box of the least cost is halved; before, its levels are cut where the same proof leaves a part out.

source  Tuy, SIAM Journal on Optimization 2000 (monotonic optimization: branch, reduce and bound); Kivinen and
        Warmuth, Information and Computation 1997 (exponentiated gradient steps, for the multipliers)

Bound on the bill of one region by branching on the sum of its billed levels.

What a free window adds is limited by what the levels leave of its traffic, which depends on their sum alone.
Where the sum is known to lie in an interval, the relaxation cannot share a free window out among several
windows that each need only a part of it. Intervals are halved, the one of the least bound first.

source  Land and Doig, Econometrica 1960 (branch and bound)
"""

from __future__ import annotations

import heapq
from typing import Final, NamedTuple

import numpy as np

from planner import backends
from planner.arrays import Floats, Ints
from planner.compiled import njit
from planner.contract.proof import Status
from planner.options import Options
from planner.search.deadline import Deadline
from planner.search.tolerances import ROUNDING
from planner_models.contracts.designs import program
from planner_models.contracts.designs.program import Region, group_windows

MOST_LEVELS: Final = 6  # contracts that are not billed by the mean
GROUPS: Final = 150  # of the windows that the lowest levels do not carry
MOST_BOXES: Final = 50_000
MOST_MULTIPLIERS: Final = 24  # vectors of multipliers that are kept
STEPS: Final = 60  # of the search of multipliers for a box
LAST_STEPS: Final = 2_000  # of that for a box that is too small to be halved
CUT_STEPS: Final = 15  # of that for a part of a box
CUTS: Final = (0.5, 0.25, 0.1)  # parts of a level's range that are tried, the largest first
LAST_RAISE: Final = 2e-3  # of the bound that is enough: what is left of it is proven at once
LEAST_RANGE: Final = 1e-4  # of the bill: a level whose range costs less is neither cut nor halved
FIRST_STEP: Final = 0.3  # of the logarithms of multipliers
STEP_DECAY: Final = 0.15
BEYOND: Final = 2e-4  # of the bill: levels up to so much above it stay in a box, which else may be empty
CARRIED: Final = -np.inf
INTERVAL_GROUPS: Final = 60  # of windows
MOST_INTERVALS: Final = 120


class _Groups(NamedTuple):
    """Groups of windows that the lowest levels do not carry; A of them, n levels, J billed by the mean.

    Contracts with free windows come first among the levels. All figures favour a low bound.

    traffic      (A,) least traffic of a window, less the least loads of contracts billed by the mean
    size         (A,) windows
    least, most  (A, n) largest limits of a window
    mean         (A, J) most that a contract billed by the mean adds to its least load
    slots        (b,) free windows of the first b contracts
    prepaid      (J,) committed volumes beyond least loads, Mbit/s times windows
    price        (J,) least price of a Mbit/s in one window beyond those
    """

    traffic: Floats
    size: Floats
    least: Floats
    most: Floats
    mean: Floats
    slots: Floats
    prepaid: Floats
    price: Floats


class Box(NamedTuple):
    """Lowest and highest levels (n,), and a bound on the bill of plans between them."""

    bound: float
    low: Floats
    high: Floats


class Boxes:
    """Boxes of billed levels, of which parts are left out where every plan costs `enough`.

    least, most  (n,) limits of the levels
    price        (n,) least price of a Mbit/s of each level
    enough       bill from which boxes are left out
    """

    least: Floats
    most: Floats
    price: Floats
    enough: float = 0.0

    def cost(self, level: Floats) -> float:
        """Return the bill of levels (n,), without volumes billed by the mean beyond commitments."""
        raise NotImplementedError

    def find_rest(self, low: Floats, high: Floats, steps: int) -> float:
        """Return a bound on the cost of plans in a box beyond its lowest levels.

        It is infinite where every plan in the box costs at least `enough`.
        """
        raise NotImplementedError

    def cut(self, low: Floats, high: Floats) -> Box | None:
        """Return a box without parts in which every plan costs `enough`; None where no part is left."""
        low, high = low.copy(), self._lower(low, high, 0.0)
        remainder = self.find_rest(low, high, STEPS)
        if remainder == np.inf:
            return None
        high = self._lower(low, high, remainder)
        for index in range(len(low)):
            span = high[index] - low[index]
            if span * self.price[index] <= LEAST_RANGE * self.enough:
                continue
            for fraction in CUTS:
                below = high.copy()
                below[index] = low[index] + fraction * span
                if self.find_rest(low, below, CUT_STEPS) == np.inf:
                    low[index] = below[index]
                    break
        bound = self.cost(low) + remainder
        return None if bound >= self.enough else Box(bound, low, self._lower(low, high, remainder))

    def _lower(self, low: Floats, high: Floats, remainder: float) -> Floats:
        """Return the highest level of each contract up to about `enough`, the others at their lowest."""
        slack = max((1 + BEYOND) * self.enough - self.cost(low) - remainder, 0.0)
        max_step = np.divide(slack, self.price, out=np.full(len(low), np.inf), where=self.price > 0)
        return np.asarray(np.minimum(high, low + max_step))


class _RegionBoxes(Boxes):
    """The boxes of one region, and the multipliers that are known."""

    def __init__(self, region: Region) -> None:
        self.region = region
        paid, least_price = np.flatnonzero(~region.is_mean), [prices.min() for _, prices in region.steps]
        self.paid = paid[np.argsort(region.free[paid] == 0, kind="stable")]
        self.mean = np.flatnonzero(region.is_mean)
        lower, upper = region.level_limits
        self.most = upper[self.paid]
        self.least = np.maximum(lower, np.minimum(region.commitment, upper))[self.paid]
        self.price = np.array(least_price)[self.paid]
        self.fixed = sum(region.amount(row, float(region.least[:, row].mean())) for row in self.mean.tolist())
        self.groups = _find_groups(region, self.paid, self.mean, self.least)
        width = len(self.groups.slots) + len(self.mean)
        self.known = np.zeros((MOST_MULTIPLIERS, width))
        free = self.cost(self.most) / (len(self.groups.slots) * self.groups.slots)
        self.known[0] = np.append(free, self.groups.price)
        self.count = 1
        self.carrying = np.empty((0, len(self.paid)))  # levels that carry all traffic, at no more cost

    def cost(self, level: Floats) -> float:
        """Return the bill of levels (n,), without volumes billed by the mean beyond commitments."""
        pairs = zip(self.paid.tolist(), level.tolist(), strict=True)
        return self.fixed + sum(self.region.amount(row, volume) for row, volume in pairs)

    def find_rest(self, low: Floats, high: Floats, steps: int) -> float:
        """Return a bound on the cost of plans in a box beyond its lowest levels.

        It is infinite where every plan in the box costs at least `enough`.
        """
        needed = self.enough - self.cost(low)
        if needed <= 0:
            return np.inf
        if (self.carrying <= high).all(axis=1).any():
            return 0.0
        remainder, self.count = _find_multipliers(self.groups, high, needed, self.known, self.count, steps)
        if remainder == CARRIED:
            self.carrying = np.vstack([self.carrying, high])
        return max(float(remainder), 0.0)


def is_suitable(region: Region) -> bool:
    """Return whether the region has few enough levels, and free windows."""
    return bool((region.free > 0).any()) and int((~region.is_mean).sum()) <= MOST_LEVELS


def find_bound(region: Region, *, lower: float, enough: float, deadline: Deadline) -> IntervalBound:
    """Return a bound on the bill of the region, at least `lower`, and the highest levels of its last box.

    The bound is raised towards `enough` by half of what is left each time, as low bills are proven soon.

    lower      a bound that is proven already
    enough     bound at which the search stops
    deadline   when the search ends
    """
    boxes = _RegionBoxes(region)
    lower, level = raise_bound(boxes, lower=lower, enough=enough, deadline=deadline)
    if level is None:
        return IntervalBound(lower, None)
    levels = np.zeros(len(region.free))
    levels[boxes.paid] = level
    return IntervalBound(lower, levels)


def raise_bound(
    boxes: Boxes, *, lower: float, enough: float, deadline: Deadline
) -> tuple[float, Floats | None]:
    """Return a bound on the bill, at least `lower`, and the highest levels (n,) of a box that is left.

    See `find_bound`.
    """
    level = None
    while lower < enough and level is None and not deadline.is_over:
        middle = (lower + enough) / 2
        boxes.enough = enough if enough - middle <= LAST_RAISE * enough else middle
        bound, level = _branch(boxes, deadline)
        lower = max(lower, bound)
    return lower, level


def _branch(boxes: Boxes, deadline: Deadline) -> tuple[float, Floats | None]:
    """Return a bound of up to `boxes.enough`, and the highest levels (n,) of a box that is left."""
    first = Box(boxes.cost(boxes.least), boxes.least, boxes.most)
    heap = [(first.bound, 0, first)]
    for turn in range(1, MOST_BOXES, 2):
        if not heap:
            return boxes.enough, None
        if deadline.is_over:
            break
        _, _, box = heapq.heappop(heap)
        ranges = (box.high - box.low) * boxes.price
        index = int(np.argmax(ranges))
        if ranges[index] <= LEAST_RANGE * boxes.enough:
            if boxes.find_rest(box.low, box.high, LAST_STEPS) == np.inf:
                continue  # multipliers that a short search misses
            return min(box.bound, boxes.enough), box.high
        middle = (box.low[index] + box.high[index]) / 2
        for half in (0, 1):
            bounds = (box.low.copy(), box.high.copy())
            bounds[1 - half][index] = middle
            child = boxes.cut(*bounds)
            if child is not None:
                heapq.heappush(heap, (max(child.bound, box.bound), turn + half, child))
    return min(heap[0][0], boxes.enough), heap[0][2].high


def _find_groups(region: Region, paid: Ints, mean: Ints, level: Floats) -> _Groups:
    """Return the groups of windows that levels (n,) do not carry."""
    lower, upper = region.least[:, paid], region.most[:, paid]
    traffic = region.traffic - region.least[:, mean].sum(axis=1)
    carried = np.maximum(lower, np.minimum(upper, level)).sum(axis=1)
    active = np.flatnonzero(traffic > carried * (1 + ROUNDING))
    group = group_windows(traffic[active], GROUPS) if len(active) else np.zeros(0, dtype=np.int64)
    count = int(group.max(initial=-1)) + 1

    def largest(values: Floats) -> Floats:
        result = np.zeros((count, values.shape[1]))
        np.maximum.at(result, group, values[active])
        return result

    windows, prepaid, price = len(region.traffic), [], []
    for row in mean.tolist():
        volume = max(float(region.commitment[row]), float(region.least[:, row].mean()))
        prepaid.append(volume * windows - float(region.least[:, row].sum()))
        price.append(float(region.steps[row][1].min()) / windows)
    lowest = np.full(count, np.inf)
    np.minimum.at(lowest, group, traffic[active])
    return _Groups(
        traffic=lowest,
        size=np.bincount(group, minlength=count).astype(float),
        least=largest(lower),
        most=largest(upper),
        mean=largest(region.most[:, mean] - region.least[:, mean]),
        slots=region.free[paid][region.free[paid] > 0].astype(float),
        prepaid=np.array(prepaid, dtype=float),
        price=np.array(price, dtype=float),
    )


@njit(cache=True)
def _find_multipliers(groups, level, needed, initial, count, steps):  # type: ignore[no-untyped-def]
    """Return a bound on the needs of levels beyond their own cost, and the number of stored multipliers.

    It is infinite where that is more than `needed`, and `CARRIED` where a choice of free windows needs
    nothing beyond those of the contracts. Multipliers that prove the former are moved to the front of
    `initial`; new ones are added.
    """
    slots, volumes = len(groups.slots), len(groups.prepaid)
    allowed, used = np.append(groups.slots, groups.prepaid), np.empty(slots + volumes)
    best, dual = -np.inf, initial[0].copy()
    for row in range(count):
        value = _value(groups, level, initial[row], used)
        if value >= needed or (value > 0 and volumes == 0):
            put_first(initial, initial[row].copy(), row)
            return np.inf, count
        if value > best:
            best, dual = value, initial[row].copy()
    for turn in range(steps):
        value = _value(groups, level, dual, used)
        if value >= needed or (value > 0 and volumes == 0):
            count = min(count + 1, len(initial))
            put_first(initial, dual, count - 1)
            return np.inf, count
        best = max(best, value)
        change = (used - allowed) / np.maximum(np.maximum(allowed, used), 1e-9)
        if change.max() <= 0:
            return CARRIED, count
        step = FIRST_STEP / (1 + turn * STEP_DECAY)
        dual *= np.exp(step * change / np.sqrt((change**2).sum()))
        dual[slots:] = np.minimum(dual[slots:], groups.price)
    return best, count


@njit(cache=True)
def put_first(duals, dual, row):  # type: ignore[no-untyped-def]
    """Put multipliers first; those before `row` move on by one, over it."""
    for index in range(row, 0, -1):
        duals[index] = duals[index - 1]
    duals[0] = dual


@njit(cache=True)
def _value(groups, level, dual, used):  # type: ignore[no-untyped-def]
    """Return the Lagrangian bound on the cost of free windows and mean volumes that levels (n,) need.

    used  what it takes of each: free windows, then volumes
    """
    slots = len(groups.slots)
    price, highest = _price_sets(dual[:slots])
    order, load = np.argsort(dual[slots:]), np.zeros(len(price))
    gain = np.zeros(slots)
    used[:] = 0.0
    total = 0.0
    for group in range(len(groups.size)):
        traffic = groups.traffic[group] * (1 - ROUNDING)
        load[0] = 0.0
        for row in range(len(level)):
            upper = groups.most[group, row]
            carried = min(upper, max(groups.least[group, row], level[row]))
            load[0] += carried
            if row < slots:
                gain[row] = upper - carried
        if load[0] >= traffic:
            continue
        for subset in range(1, len(load)):
            load[subset] = load[subset - (1 << highest[subset])] + gain[highest[subset]]
        mean = groups.mean[group]
        best, best_set = _cheapest_set(load, price, traffic, mean, order, dual[slots:])
        if best_set < 0:
            return np.inf
        total += best * groups.size[group]
        for row in range(slots):
            used[row] += groups.size[group] * ((best_set >> row) & 1)
        remaining = traffic - load[best_set]
        for index in order:
            amount = min(max(remaining, 0.0), mean[index])
            used[slots + index] += amount * groups.size[group]
            remaining -= amount
    return total - (dual[:slots] * groups.slots).sum() - (dual[slots:] * groups.prepaid).sum()


@njit(cache=True)
def _price_sets(dual):  # type: ignore[no-untyped-def]
    """Return the price of each set of contracts, (2^b,), by bits of its number, and its last contract."""
    price, highest = np.zeros(1 << len(dual)), np.zeros(1 << len(dual), np.int64)
    for row in range(len(dual)):
        for subset in range(1 << row, 1 << (row + 1)):
            highest[subset] = row
            price[subset] = price[subset - (1 << row)] + dual[row]
    return price, highest


@njit(cache=True)
def _cheapest_set(load, price, traffic, mean, order, mean_price):  # type: ignore[no-untyped-def]
    """Return the least cost of a window's traffic, and the set of free contracts that it takes; -1 for none.

    Shapes are (2^b,) and (J,). What a set leaves goes to contracts billed by the mean, in `order`.
    """
    best, best_set = np.inf, -1
    for subset in range(len(load)):
        if price[subset] >= best:
            continue
        cost, remaining = price[subset], traffic - load[subset]
        if remaining > 0:
            for index in order:
                amount = min(max(remaining, 0.0), mean[index])
                cost += amount * mean_price[index]
                remaining -= amount
        if remaining <= 0 and cost < best:
            best, best_set = cost, subset
    return best, best_set


class IntervalBound(NamedTuple):
    """A bound on the bill, and levels (N,) of the relaxation of the interval that it comes from."""

    bound: float
    level: Floats | None


def find_interval_bound(
    region: Region, *, lower: float, enough: float, options: Options, deadline: Deadline
) -> IntervalBound:
    """Return a bound on the bill of the region, at least `lower`.

    lower      a bound that is proven already
    enough     bound at which the search stops
    deadline   when the search ends
    """
    paid = ~region.is_mean
    lowest, highest = (float(limit[paid].sum()) for limit in region.level_limits)
    open_intervals: list[tuple[float, float, float, Floats | None]] = [(lower, lowest, highest, None)]
    for _ in range(MOST_INTERVALS):
        bound, low, high, level = open_intervals[0]
        if bound >= enough or deadline.is_over or high - low <= 1e-6 * max(highest, 1.0):
            break
        heapq.heappop(open_intervals)
        middle = (low + high) / 2
        for interval in ((low, middle), (middle, high)):
            entry: tuple[float, float, float, Floats | None]
            built = program.build(region, groups=INTERVAL_GROUPS, total=interval)
            solution = backends.solve(built.program, options)
            if solution.x is not None and solution.bound is not None:
                entry = (max(bound, solution.bound), *interval, built.level.values(solution.x))
            elif solution.status is Status.INFEASIBLE:
                continue
            else:
                entry = (bound, *interval, level)
            heapq.heappush(open_intervals, entry)
        if not open_intervals:
            return IntervalBound(lower, None)
    bound, _, _, level = open_intervals[0]
    return IntervalBound(bound, level)
