"""Bound on bills of several regions and directions, by branching on boxes of billed levels.

All meters of a bill have its level. In a window, the traffic of every set of regions must fit into what the
contracts there carry: of a bill that is not free in the window at most its level over the least samples of a
Mbit/s, else the contracts' own limits. That is the cut condition of a transport problem, so every plan keeps
it. A set of free meters is possible in a window where all these conditions hold, and what is missing goes to
contracts that are billed by the mean. Lagrangian multipliers price a free window of each meter, and a Mbit/s
billed by the mean; each group of similar windows takes its cheapest set. Boxes of levels are halved and cut
as in `level_boxes`.

source  Gale, Pacific Journal of Mathematics 1957 (feasibility of supplies and demands); Tuy, SIAM Journal on
        Optimization 2000 (monotonic optimization)
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from planner.arrays import Floats, Ints
from planner.compiled import njit
from planner.search.deadline import Deadline
from planner.search.tolerances import ROUNDING
from planner_models.contracts.designs.level_boxes import MOST_LEVELS, Boxes, put_first, raise_bound
from planner_models.contracts.designs.shared_bills import Part, group_similar

MOST_METERS: Final = 8  # with free windows
MOST_REGIONS: Final = 6
GROUPS: Final = 200  # of the windows that the lowest levels do not carry
STEP: Final = 0.3  # of the logarithms of multipliers
STEP_DECAY: Final = 0.15
MOST_MULTIPLIERS: Final = 24  # vectors of multipliers that are kept


class _Needs(NamedTuple):
    """Conditions of groups of windows: G groups, T sets of regions, B rated bills, M rated meters.

    All figures favour a low bound.

    size       (G,) windows of each group
    traffic    (G, T) least traffic of each set of regions, less the least loads of contracts
    most       (G, T, B) most that contracts of each bill carry in each set of regions beyond least loads
    factor     (G, T, M) least sample of a Mbit/s of these contracts; 0 where there are none
    base       (G, M) least sample of the least loads of contracts on the meter's bill
    mean_most  (G, T) most that contracts billed by the mean carry beyond their least loads
    mean_unit  (G, T) least sample of a Mbit/s of these
    bill       (M,) bill of each meter, as a position
    slot       (M,) bit of each meter in sets of free ones; -1 without free windows
    """

    size: Floats
    traffic: Floats
    most: Floats
    factor: Floats
    base: Floats
    mean_most: Floats
    mean_unit: Floats
    bill: Ints
    slot: Ints


class _PartBoxes(Boxes):
    """The boxes of a part, and the multipliers that are known."""

    def __init__(self, area: Part) -> None:
        self.area = area
        self.bills = np.flatnonzero(~area.is_mean)
        self.mean = np.flatnonzero(area.is_mean)
        lower, upper = _level_limits(area)
        free = np.array([_free_volume(*area.steps[bill]) for bill in self.bills.tolist()])
        self.least = np.maximum(np.maximum(lower, area.commitment)[self.bills], free)
        self.most = np.maximum(upper[self.bills], self.least)
        self.price = np.array([_least_price(*area.steps[bill]) for bill in self.bills.tolist()])
        self.fixed = sum(
            area.amount(bill, float(area.volumes(area.least)[bill])) for bill in self.mean.tolist()
        )
        meters = area.rated[area.meter_free[area.rated] > 0]
        self.slots = area.meter_free[meters].astype(float)
        self.needs = _find_needs(area, self.bills, meters, self.least)
        windows = len(area.traffic)
        committed = np.maximum(area.commitment, area.volumes(area.least))[self.mean]
        self.prepaid = float((committed - area.volumes(area.least)[self.mean]).sum()) * windows
        self.mean_price = min((float(area.steps[bill][1].min()) for bill in self.mean.tolist()), default=0.0)
        self.mean_price /= windows
        first = self.cost(self.most) / (len(meters) * self.slots)
        self.known = np.zeros((MOST_MULTIPLIERS, len(meters) + 1))
        self.known[0] = np.append(first, self.mean_price)
        self.count = 1

    def cost(self, level: Floats) -> float:
        """Return the bill of levels (n,), without volumes billed by the mean beyond commitments."""
        pairs = zip(self.bills.tolist(), level.tolist(), strict=True)
        return self.fixed + sum(self.area.amount(bill, volume) for bill, volume in pairs)

    def find_rest(self, low: Floats, high: Floats, steps: int) -> float:
        """Return a bound on the cost of plans in a box beyond its lowest levels; see `Boxes`."""
        needed = self.enough - self.cost(low)
        if needed <= 0:
            return np.inf
        missing = _find_missing(self.needs, high, len(self.slots))
        limits = _Limits(
            self.needs.size, np.append(self.slots, self.prepaid), self.mean_price, len(self.mean) > 0
        )
        remainder, self.count = _find_multipliers(missing, limits, needed, self.known, self.count, steps)
        return max(float(remainder), 0.0)


def is_suitable(area: Part) -> bool:
    """Return whether a part has few enough bills, meters and regions, and free windows."""
    free = int((area.meter_free[area.rated] > 0).sum())
    few = int((~area.is_mean).sum()) <= MOST_LEVELS and area.traffic.shape[1] <= MOST_REGIONS
    return few and 0 < free <= MOST_METERS


def find_bound(area: Part, *, lower: float, enough: float, deadline: Deadline) -> float:
    """Return a bound on the bills of a part, at least `lower`.

    lower      a bound that is proven already
    enough     bound at which the search stops
    deadline   when the search ends
    """
    return raise_bound(_PartBoxes(area), lower=lower, enough=enough, deadline=deadline)[0]


def _free_volume(starts: Floats, prices: Floats) -> float:
    """Return the volume up to which price steps cost nothing, Mbit/s; 0 where all do."""
    paid = np.flatnonzero(prices > 0)
    return float(starts[paid[0]]) if len(paid) else 0.0


def _least_price(starts: Floats, prices: Floats) -> float:
    """Return the least price of a Mbit/s beyond the volume that costs nothing."""
    return float(prices[starts >= _free_volume(starts, prices)].min())


def _level_limits(area: Part) -> tuple[Floats, Floats]:
    """Return the least and most level of each bill, (B,), Mbit/s."""
    lower, upper = np.zeros(len(area.free)), np.zeros(len(area.free))
    ordered = np.sort(area.samples(area.least), axis=0)[::-1]
    for meter, bill in enumerate(area.meter_bill.tolist()):
        index = min(int(area.meter_free[meter]), len(ordered) - 1)
        lower[bill] = max(lower[bill], float(ordered[index, meter]))
        upper[bill] = max(upper[bill], float(area.most_sample[:, meter].max()))
    return lower, upper


def _find_needs(area: Part, bills: Ints, free_meters: Ints, level: Floats) -> _Needs:
    """Return the conditions of groups of the windows that levels (n,) do not carry."""
    every = np.arange(len(area.traffic))
    single = _collect(area, bills, free_meters, every, every)
    missing = _find_missing(single, level, len(free_meters))
    active = np.flatnonzero(missing[:, 0] > 0)
    if not len(active):
        return _collect(area, bills, free_meters, active, active)
    columns = [area.traffic[active], *(area.most_sample[active][:, free_meters],)]
    return _collect(area, bills, free_meters, active, group_similar(np.hstack(columns), GROUPS))


def _collect(area: Part, bills: Ints, free_meters: Ints, windows: Ints, group: Ints) -> _Needs:
    """Return the conditions of windows in groups; see `_Needs`."""
    count, regions = int(group.max(initial=-1)) + 1, area.traffic.shape[1]
    sets = np.array(
        [[number >> r & 1 for r in range(regions)] for number in range(1, 1 << regions)], dtype=bool
    )
    rated = area.rated
    least = area.least[windows]
    spare = np.maximum(area.most[windows] - least, 0.0)

    def largest(values: Floats) -> Floats:
        result = np.zeros((count, *values.shape[1:]))
        np.maximum.at(result, group, values)
        return result

    def lowest(values: Floats) -> Floats:
        result = np.full((count, *values.shape[1:]), np.inf)
        np.minimum.at(result, group, values)
        return result

    mean_contract = area.is_mean[area.bill]
    traffic, rooms, factors, mean_most, mean_unit = [], [], [], [], []
    for members in sets:
        inside = members[area.region]
        traffic.append(area.traffic[windows][:, members].sum(axis=1) - least[:, inside].sum(axis=1))
        rooms.append(np.stack([spare[:, inside & (area.bill == bill)].sum(axis=1) for bill in bills], axis=1))
        factors.append(np.stack([_least_factor(area, m, inside, windows) for m in rated.tolist()], axis=1))
        mean_most.append(spare[:, inside & mean_contract].sum(axis=1))
        units = [
            _least_factor(area, m, inside, windows)
            for m in range(len(area.meter_bill))
            if area.is_mean[area.meter_bill[m]] and (inside & (area.bill == area.meter_bill[m])).any()
        ]
        mean_unit.append(np.min(units, axis=0) if units else np.zeros(len(windows)))
    slot = np.full(len(rated), -1, dtype=np.int64)
    slot[np.searchsorted(rated, free_meters)] = np.arange(len(free_meters))
    return _Needs(
        size=np.bincount(group, minlength=count).astype(float),
        traffic=lowest(np.stack(traffic, axis=1)),
        most=largest(np.stack(rooms, axis=1)),
        factor=lowest(np.stack(factors, axis=1)),
        base=lowest(area.samples(area.least)[windows][:, rated]),
        mean_most=largest(np.stack(mean_most, axis=1)),
        mean_unit=lowest(np.stack(mean_unit, axis=1)),
        bill=np.searchsorted(bills, area.meter_bill[rated]).astype(np.int64),
        slot=slot,
    )


def _least_factor(area: Part, meter: int, inside: np.ndarray, windows: Ints) -> Floats:
    """Return the least sample of a Mbit/s of a meter's contracts in some regions, (W,); 0 without any."""
    members = inside[np.flatnonzero(area.bill == area.meter_bill[meter])]
    factor = area.factors[meter][windows][:, members]
    return np.asarray(factor.min(axis=1)) if factor.shape[1] else np.zeros(len(windows))


class _Limits(NamedTuple):
    """Resources that multipliers price.

    size        (G,) windows of each group
    allowed     (J + 1,) free windows of each meter, then samples that are paid for where the mean is billed
    mean_price  largest multiplier of a sample billed by the mean
    has_means   whether any bill is by the mean
    """

    size: Floats
    allowed: Floats
    mean_price: float
    has_means: bool


@njit(cache=True)
def _find_multipliers(missing, limits, needed, known, count, steps):  # type: ignore[no-untyped-def]
    """Return a bound on the cost beyond that of levels, and the number of known multipliers.

    It is infinite where that is at least `needed`, or where free windows are missing and no bill is by the
    mean. Multipliers that prove this move to the front of `known`; new ones are added.
    """
    used = np.zeros(known.shape[1])
    best, dual = -np.inf, known[0].copy()
    for row in range(count):
        value = _take_cheapest(missing, limits.size, known[row], used) - (known[row] * limits.allowed).sum()
        if value >= needed or (value > 0 and not limits.has_means):
            put_first(known, known[row].copy(), row)
            return np.inf, count
        if value > best:
            best, dual = value, known[row].copy()
    for turn in range(steps):
        value = _take_cheapest(missing, limits.size, dual, used) - (dual * limits.allowed).sum()
        if value >= needed or (value > 0 and not limits.has_means):
            count = min(count + 1, len(known))
            put_first(known, dual, count - 1)
            return np.inf, count
        best = max(best, value)
        change = (used - limits.allowed) / np.maximum(np.maximum(limits.allowed, used), 1e-9)
        if change.max() <= 0:
            break
        dual *= np.exp(STEP / (1 + turn * STEP_DECAY) * change / np.sqrt((change**2).sum()))
        dual[-1] = min(dual[-1], limits.mean_price)
    return best, count


@njit(cache=True)
def _find_missing(needs, level, slots):  # type: ignore[no-untyped-def]
    """Return the samples billed by the mean that each set of free meters needs, (G, 2^slots).

    It is 0 where levels (n,) and free meters carry all traffic, and infinite where nothing does.
    """
    groups, sets = needs.traffic.shape
    missing = np.zeros((groups, 1 << slots))
    limit = np.zeros(len(needs.bill))
    for group in range(groups):
        for number in range(sets):
            traffic = needs.traffic[group, number] * (1 - ROUNDING)
            if traffic <= 0:
                continue
            for meter in range(len(limit)):
                factor = needs.factor[group, number, meter]
                spare = max(level[needs.bill[meter]] - needs.base[group, meter], 0.0)
                limit[meter] = spare / factor if factor > 0 else np.inf
            upper = needs.most[group, number]
            if traffic <= _carry(upper, limit, needs, 0):
                continue
            for subset in range(1 << slots):
                short = traffic - _carry(upper, limit, needs, subset)
                if short > needs.mean_most[group, number]:
                    missing[group, subset] = np.inf
                elif short > 0:
                    amount = short * needs.mean_unit[group, number]
                    missing[group, subset] = max(missing[group, subset], amount)
    return missing


@njit(cache=True)
def _carry(upper, limit, needs, subset):  # type: ignore[no-untyped-def]
    """Return the largest load that rated bills carry of a set of regions, where a set of meters is free.

    Meters of a bill stand beside each other.
    """
    carried, bill, limited = 0.0, 0, upper[0]
    for meter in range(len(limit)):
        if needs.bill[meter] != bill:
            carried += limited
            bill = needs.bill[meter]
            limited = upper[bill]
        slot = needs.slot[meter]
        if slot < 0 or not (subset >> slot) & 1:
            limited = min(limited, limit[meter])
    return carried + limited


@njit(cache=True)
def _take_cheapest(missing, size, dual, used):  # type: ignore[no-untyped-def]
    """Return the cost of the cheapest set of free meters of each group, together, at multipliers.

    used  what is taken of each: free windows, then samples billed by the mean
    """
    slots = len(dual) - 1
    price = np.zeros(1 << slots)
    for subset in range(1, 1 << slots):
        for slot in range(slots):
            if (subset >> slot) & 1:
                price[subset] += dual[slot]
    total = 0.0
    for group in range(len(size)):
        best, best_set = np.inf, -1
        for subset in range(1 << slots):
            cost = price[subset] + dual[slots] * missing[group, subset]
            if missing[group, subset] < np.inf and cost < best:
                best, best_set = cost, subset
        if best_set < 0:
            return np.inf
        total += best * size[group]
        for slot in range(slots):
            used[slot] += size[group] * ((best_set >> slot) & 1)
        used[slots] += size[group] * missing[group, best_set]
    return total
