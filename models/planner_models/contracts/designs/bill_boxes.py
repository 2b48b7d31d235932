"""Bound on bills of several regions and directions, by branching on boxes of billed levels.

All meters of a bill have its level. In a window, the traffic of every set of regions must fit into what the
contracts there carry: of a bill that is not free in the window at most its level over the least samples of a
Mbit/s, else the contracts' own limits. That is the cut condition of a transport problem, so every plan keeps
it. A set of free meters is possible in a window where all these conditions hold, and what is missing goes to
contracts that are billed by the mean. Regions count alike, or with what a Mbit/s there counts for a meter, so
that a bill of traffic in carries exactly its level. Lagrangian multipliers price a free window of each meter,
and a Mbit/s billed by the mean; each group of similar windows takes its cheapest set. Boxes of levels are
halved and cut as in `level_boxes`. Where a box of no size is left, a linear program chooses the free windows
at its levels, from which a plan is searched for.

source  Gale, Pacific Journal of Mathematics 1957 (feasibility of supplies and demands); Tuy, SIAM Journal on
        Optimization 2000 (monotonic optimization)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from planner import backends
from planner.arrays import Bools, Floats, Ints
from planner.backends.program_builder import ProgramBuilder
from planner.compiled import njit
from planner.options import Options
from planner.search.deadline import Deadline
from planner.search.tolerances import ROUNDING
from planner_models.contracts.designs.level_boxes import MOST_LEVELS, Boxes, put_first, raise_bound
from planner_models.contracts.designs.shared_bills import Part, group_similar

MOST_METERS: Final = 8  # with free windows
MOST_REGIONS: Final = 6
GROUPS: Final = 1_000  # of the windows that the lowest levels do not carry
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
        self.meters = meters
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


class RaisedBound(NamedTuple):
    """Bound on the bills of a part, and free windows at the levels where it could not be raised.

    score  (W, M) how much each window is free for each meter in the relaxation at these levels; None: unknown
    """

    bound: float
    score: Floats | None


def find_bound(
    area: Part, *, lower: float, enough: float, options: Options, deadline: Deadline
) -> RaisedBound:
    """Return a bound on the bills of a part, at least `lower`, and free windows to start a search from.

    lower      a bound that is proven already
    enough     bound at which the search stops
    deadline   when the search ends
    """
    boxes = _PartBoxes(area)
    bound, level = raise_bound(boxes, lower=lower, enough=enough, deadline=deadline)
    score = None if level is None or deadline.is_over else _choose_free(boxes, level, options)
    return RaisedBound(bound, score)


def _choose_free(boxes: _PartBoxes, level: Floats, options: Options) -> Floats | None:
    """Return the share to which each window is free for each meter, (W, M), at levels; None: unknown.

    A linear program takes sets of free meters for each window, at the least volume billed by the mean; more
    free windows than there are cost more than any bill.
    """
    area, slots = boxes.area, len(boxes.slots)
    windows = np.arange(len(area.traffic))
    every = _collect(area, boxes.bills, boxes.meters, windows, windows)
    missing = _find_missing(every, level, slots)
    active = np.flatnonzero(missing[:, 0] > 0)
    if not len(active):
        return None
    window, subset = np.nonzero(np.isfinite(missing[active]))
    is_in = (subset[:, None] >> np.arange(slots) & 1).astype(float)
    m = ProgramBuilder(name="free windows")
    cost = boxes.mean_price * missing[active][window, subset]
    x = m.variables("set", len(window), cost=cost)
    over = m.variables("over", slots, cost=np.full(slots, max(boxes.cost(boxes.most), 1.0)))
    m.constrain("one", x.sum_by(window, len(active)), equal=1.0)
    for slot in range(slots):
        m.constrain(f"free {slot}", (x * is_in[:, slot]).sum() - over[[slot]].sum(), upper=boxes.slots[slot])
    solution = backends.solve(m.build(), options)
    if solution.x is None:
        return None
    share = x.values(solution.x)[:, None] * is_in
    score = np.zeros(area.most_sample.shape)
    for slot, meter in enumerate(boxes.meters.tolist()):
        np.add.at(score[:, meter], active[window], share[:, slot])
    return score


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
    for members, weight in _list_weights(area, sets, windows):
        inside, counted = members[area.region], weight[:, area.region]
        traffic.append(
            (area.traffic[windows] * weight)[:, members].sum(axis=1)
            - (least * counted)[:, inside].sum(axis=1)
        )
        room = spare * counted
        rooms.append(np.stack([room[:, inside & (area.bill == bill)].sum(axis=1) for bill in bills], axis=1))
        factors.append(
            np.stack([_least_factor(area, m, inside, windows, counted) for m in rated.tolist()], axis=1)
        )
        mean_most.append(room[:, inside & mean_contract].sum(axis=1))
        units = [
            _least_factor(area, m, inside, windows, counted)
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


def _list_weights(area: Part, sets: Bools, windows: Ints) -> Iterator[tuple[Bools, Floats]]:
    """Yield sets of regions (R,) with weights of their traffic, (W, R), for which conditions are made.

    Beside equal weights these are what a Mbit/s counts for meters of several regions in the set, and the mean
    of both. They are scaled so that the traffic of a window stays the same.
    """
    traffic = area.traffic[windows]
    kinds: list[Floats] = []
    for bill, factor in zip(area.meter_bill.tolist(), area.factors, strict=True):
        regions = area.region[area.bill == bill]
        if len(regions) < 2 or np.ptp(factor[windows], axis=1).max(initial=0.0) <= 0:
            continue
        weight = np.zeros(traffic.shape)
        weight[:, regions] = factor[windows]
        if not any(np.array_equal(weight, other) for other in kinds):
            kinds.append(weight)
    for members in sets:
        yield members, np.ones(traffic.shape)
        if members.sum() < 2:
            continue
        total = traffic[:, members].sum(axis=1, keepdims=True)
        for kind in kinds:
            weighted = (traffic * kind)[:, members].sum(axis=1, keepdims=True)
            scale = np.divide(total, weighted, out=np.ones(total.shape), where=weighted > 0)
            yield members, kind * scale
            yield members, (1 + kind * scale) / 2


def _least_factor(area: Part, meter: int, inside: Bools, windows: Ints, counted: Floats) -> Floats:
    """Return the least sample of a weighted Mbit/s of a meter's contracts in some regions, (W,).

    It is 0 without any contracts, and where one has no weight it counts no less than nothing: such contracts
    are left out, and without others the sample is infinite.

    counted  (W, N) weight of each contract's traffic
    """
    of_bill = area.bill == area.meter_bill[meter]
    members = inside[np.flatnonzero(of_bill)]
    factor, weight = area.factors[meter][windows][:, members], counted[:, of_bill & inside]
    if not factor.shape[1]:
        return np.zeros(len(windows))
    each = np.divide(factor, weight, out=np.full(factor.shape, np.inf), where=weight > 0)
    return np.asarray(each.min(axis=1))


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
    used[:] = 0.0
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
