"""Simulated annealing of one region's free windows and levels, where the traffic that may move is limited.

A move gives a contract another free window, in place of one that it has where all are used, and a second
contract may take the opposite exchange; or it changes the billed level of a contract, mostly against that of
another. A run of free windows adds no more traffic than the contracts that begin one with it or later can
gain until then: what traffic rises by and what may move, summed over the windows; nor more than those that
end it then or earlier can lose. Without switching only these rises and falls are left; the looser the limit,
the less they bind. Traffic above the levels and free windows is carried by contracts billed by the mean,
committed volumes first; what is beyond those costs more than levels that carry it.

source  Kirkpatrick et al., Science 1983 (simulated annealing)
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from planner.arrays import Bools, Floats, Ints
from planner.compiled import njit
from planner.search.deadline import NEVER, Deadline
from planner.search.tolerances import ROUNDING
from planner_models.contracts.designs.free_windows import price_at
from planner_models.contracts.designs.program import Region

MOST_MOVES: Final = 3_000_000
SHORTAGE_SHARE: Final = 0.02  # of the largest traffic: a shortage whose square costs its price once
SHORTAGE_PRICE: Final = 0.3  # of a shortage, in each window, beside that of its square; over a level's price
FINAL_TEMPERATURE: Final = 1e-3  # times the price of a shortage of `SHORTAGE_SHARE`
NEAR: Final = 0.6  # probability that a contract's new window is beside one that it has
MOVES_PER_CALL: Final = 100_000  # between two looks at the clock
EXCHANGE: Final = 0.4  # probability that a second contract takes the opposite exchange
LARGEST_STEP: Final = 0.1  # of the highest level, in a move
SMALLEST_STEP: Final = 1e-3
AGAINST: Final = 0.6  # probability that another contract's level takes the opposite change
FORCED: Final = ROUNDING  # relative to the level: least loads above it need a free window


class Schedule(NamedTuple):
    """The length and the temperatures of an annealing.

    moves_per_cell       cells: windows times contracts with free windows
    initial_temperature  times the price of a shortage of `SHORTAGE_SHARE`
    level_moves          moves of levels, in as many moves as there are windows
    """

    moves_per_cell: int
    initial_temperature: float
    level_moves: float


GIVEN_LEVELS: Final = Schedule(150, 30.0, 0.0)
ALL: Final = Schedule(1_024, 0.3, 5.0)


class Annealed(NamedTuple):
    """The choice of least cost found.

    is_free  (W, N) free windows, at most as many as each contract has
    level    (N,) billed levels; 0 where the mean is billed
    cost     bill of the levels and of volumes beyond commitments where the mean is billed, and of shortages
    """

    is_free: Bools
    level: Floats
    cost: float


class _Limits(NamedTuple):
    """Figures that stay fixed in a search; least loads of contracts billed by the mean are off the traffic.

    traffic      (W,) Mbit/s
    least, most  (W, N) loads of contracts that are not billed by the mean; 0 for the others
    forced       (W, N) windows that are free because a least share is above the first level
    mean         (W,) what contracts billed by the mean can take
    gained       (W,) what contracts can gain together from the first window to each, Mbit/s
    lost         (W,) what they can lose
    slots        (N,) free windows of each contract beside the forced ones
    lowest       (N,) levels, at least; highest: at most
    price        (N,) of a level
    prepaid      committed volumes of contracts billed by the mean, Mbit/s times windows
    mean_price   of a Mbit/s in one window beyond those
    short_price  of a Mbit/s of shortage in one window
    square       of its square
    """

    traffic: Floats
    least: Floats
    most: Floats
    forced: Bools
    mean: Floats
    gained: Floats
    lost: Floats
    slots: Floats
    lowest: Floats
    highest: Floats
    price: Floats
    prepaid: float
    mean_price: float
    short_price: float
    square: float


class _State(NamedTuple):
    """The choice at present.

    free    (W, N) free windows
    gain    (W, N) what a contract adds where it is free, Mbit/s
    excess  (W,) traffic above the levels
    level   (N,) Mbit/s
    cost    (W, 2) traffic of contracts billed by the mean, and the cost of the shortage
    totals  (3,) sums of both over the windows, and the cost of the choice
    own     (N, F) free windows of each contract, of which the first `used`, (N,), count
    fresh   (W, 2) costs after a move; stamp, places: (W,) windows that it changes
    """

    free: Bools
    gain: Floats
    excess: Floats
    level: Floats
    cost: Floats
    totals: Floats
    own: Ints
    used: Ints
    fresh: Floats
    stamp: Ints
    places: Ints


def choose(
    region: Region,
    level: Floats,
    schedule: Schedule,
    *,
    random: np.random.Generator,
    deadline: Deadline = NEVER,
) -> Annealed:
    """Return free windows and billed levels, from levels (N,) at first.

    schedule   `GIVEN_LEVELS` keeps the levels; `ALL` changes them too
    deadline  after which the best choice so far is returned
    """
    limits = _find_limits(region, level)
    able = int((limits.slots > 0).sum())
    first = np.clip(level, limits.lowest, limits.highest)
    if not able:
        return Annealed(limits.forced, first, np.inf)
    moves = min(schedule.moves_per_cell * limits.most.shape[0] * able, MOST_MOVES)
    state = _start(limits, first)
    best = (state.free.copy(), state.level.copy())
    unit = limits.square * (SHORTAGE_SHARE * limits.traffic.max()) ** 2
    amounts = np.array([state.totals[2], schedule.initial_temperature * unit])
    cooling = (FINAL_TEMPERATURE / schedule.initial_temperature) ** (1 / moves)
    for turn in range(1, moves + 1, MOVES_PER_CALL):
        turns = (turn, min(turn + MOVES_PER_CALL, moves + 1))
        _anneal(limits, state, best, amounts, turns, cooling, unit, schedule, random)
        if deadline.is_over:
            break
    return Annealed(limits.forced | best[0], best[1], float(amounts[0]))


def _find_limits(region: Region, level: Floats) -> _Limits:
    windows, paid = len(region.traffic), ~region.is_mean
    mean = np.flatnonzero(region.is_mean)
    forced = paid & (region.least > level * (1 + FORCED))
    lower, upper = region.level_limits
    lowest = np.where(paid, np.maximum(lower, np.minimum(region.commitment, upper)), 0.0)
    highest = np.where(paid, upper, 0.0)
    is_fixed = forced.any(axis=0)  # another level would force other windows
    change = np.diff(region.traffic)
    movable = region.moved_share * np.minimum(region.traffic[:-1], region.traffic[1:])
    prices = np.array([price_at(region, row, float(level[row])) for row in range(len(level))])
    price = float(np.median(prices[paid])) if paid.any() else 1.0
    shortage = max(SHORTAGE_SHARE * float(region.traffic.max()), 1e-9)
    unused = region.commitment[mean] * windows - region.least[:, mean].sum(axis=0)
    return _Limits(
        traffic=np.ascontiguousarray(region.traffic - region.least[:, mean].sum(axis=1)),
        least=np.where(paid, region.least, 0.0),
        most=np.where(paid, region.most, 0.0),
        forced=forced,
        mean=np.ascontiguousarray((region.most - region.least)[:, mean].sum(axis=1)),
        gained=np.append(0.0, np.cumsum(movable + np.maximum(change, 0.0))),
        lost=np.append(0.0, np.cumsum(movable + np.maximum(-change, 0.0))),
        slots=np.maximum(region.free - forced.sum(axis=0), 0).astype(float),
        lowest=np.where(is_fixed, np.clip(level, lowest, highest), lowest),
        highest=np.where(is_fixed, np.clip(level, lowest, highest), highest),
        price=prices,
        prepaid=float(np.maximum(unused, 0.0).sum()),
        mean_price=float(prices[mean].min()) / windows if len(mean) else 0.0,
        short_price=SHORTAGE_PRICE * price,
        square=price / shortage,
    )


@njit(cache=True)
def _anneal(limits, state, best, amounts, turns, cooling, unit, schedule, random):  # type: ignore[no-untyped-def]
    """Run the moves of numbers turns[0] to turns[1] - 1; keep the choice of least cost.

    best     free windows (W, N) and levels (N,) of least cost
    amounts  (2,) least cost and temperature
    """
    windows = len(state.excess)
    for turn in range(turns[0], turns[1]):
        amounts[1] *= cooling
        if random.random() < schedule.level_moves / windows:
            _move_levels(limits, state, amounts[1], random)
        else:
            _move_windows(limits, state, turn, amounts[1], random)
        if state.totals[2] < amounts[0] - 1e-9 * unit:
            amounts[0] = state.totals[2]
            best[0][:] = state.free
            best[1][:] = state.level


@njit(cache=True)
def _start(limits, level):  # type: ignore[no-untyped-def]
    """Return the state with levels (N,) and no free window."""
    windows, contracts = limits.most.shape
    state = _State(
        np.zeros((windows, contracts), dtype=np.bool_),
        np.zeros((windows, contracts)),
        limits.traffic.copy(),
        level.copy(),
        np.zeros((windows, 2)),
        np.zeros(3),
        np.zeros((contracts, int(limits.slots.max())), dtype=np.int64),
        np.zeros(contracts, dtype=np.int64),
        np.zeros((windows, 2)),
        np.zeros(windows, dtype=np.int64),
        np.zeros(windows, dtype=np.int64),
    )
    for contract in range(contracts):
        _set_level(limits, state, contract, level[contract], True)
    for window in range(windows):
        state.cost[window, 0], state.cost[window, 1] = _cost_of(limits, state, window)
    _set_totals(limits, state, state.cost[:, 0].sum(), state.cost[:, 1].sum())
    return state


@njit(cache=True)
def _move_levels(limits, state, temperature, random):  # type: ignore[no-untyped-def]
    """Change one or two levels, unless that costs too much at the temperature."""
    contract, other, now, then = _draw_levels(limits, state.level, random)
    if contract < 0:
        return
    before, before_other = state.level[contract], state.level[other]
    carried, short, value = state.totals[0], state.totals[1], state.totals[2]
    _set_level(limits, state, contract, now, False)
    _set_level(limits, state, other, then, False)
    for window in range(len(state.excess)):
        state.fresh[window, 0], state.fresh[window, 1] = _cost_of(limits, state, window)
    _set_totals(limits, state, state.fresh[:, 0].sum(), state.fresh[:, 1].sum())
    if _is_accepted(state.totals[2] - value, temperature, random):
        state.cost[:] = state.fresh
        return
    _set_level(limits, state, other, before_other, False)
    _set_level(limits, state, contract, before, False)
    state.totals[0], state.totals[1], state.totals[2] = carried, short, value


@njit(cache=True)
def _move_windows(limits, state, turn, temperature, random):  # type: ignore[no-untyped-def]
    """Give a contract another free window, unless that costs too much at the temperature."""
    first, added, removed, slot, other = _draw_windows(limits, state, random)
    if first < 0:
        return
    _exchange(state.free, first, added, removed)
    _exchange(state.free, other, removed, added)
    changed = 0
    for contract in (first, other):
        for window in (added, removed):
            if contract >= 0 and window >= 0:
                changed = _stamp_run(state, contract, window, turn, changed)
    before, value = (state.totals[0], state.totals[1]), state.totals[2]
    carried, short = before
    for row in range(changed):
        window = state.places[row]
        state.fresh[row, 0], state.fresh[row, 1] = _cost_of(limits, state, window)
        carried += state.fresh[row, 0] - state.cost[window, 0]
        short += state.fresh[row, 1] - state.cost[window, 1]
    _set_totals(limits, state, carried, short)
    if not _is_accepted(state.totals[2] - value, temperature, random):
        _exchange(state.free, first, removed, added)
        _exchange(state.free, other, added, removed)
        state.totals[0], state.totals[1], state.totals[2] = before[0], before[1], value
        return
    for row in range(changed):
        state.cost[state.places[row]] = state.fresh[row]
    state.own[first, slot] = added
    state.used[first] = max(state.used[first], slot + 1)
    if other >= 0:
        state.own[other, np.flatnonzero(state.own[other, : state.used[other]] == added)] = removed


@njit(cache=True)
def _is_accepted(change, temperature, random):  # type: ignore[no-untyped-def]
    """Return whether a change of the cost is accepted."""
    return change <= 0 or random.random() < np.exp(-change / temperature)


@njit(cache=True)
def _set_totals(limits, state, carried, short):  # type: ignore[no-untyped-def]
    """Set the sums of traffic billed by the mean and of the costs of shortages, and the cost of all."""
    beyond = max(carried - limits.prepaid, 0.0)
    state.totals[0], state.totals[1] = carried, short
    state.totals[2] = (state.level * limits.price).sum() + limits.mean_price * beyond + short


@njit(cache=True)
def _set_level(limits, state, contract, level, is_first):  # type: ignore[no-untyped-def]
    """Set a contract's level, its load in free windows, and the traffic above the levels.

    is_first  whether nothing is set for the contract yet
    """
    before = state.level[contract]
    state.level[contract] = level
    for window in range(len(state.excess)):
        base = _load_at(limits, window, contract, level)
        state.excess[window] -= base
        if not is_first:
            state.excess[window] += _load_at(limits, window, contract, before)
        if limits.slots[contract] > 0:
            state.gain[window, contract] = limits.most[window, contract] - base


@njit(cache=True)
def _load_at(limits, window, contract, level):  # type: ignore[no-untyped-def]
    """Return the load of a contract that carries up to its level where it is not free."""
    if limits.forced[window, contract]:
        return limits.most[window, contract]
    return max(limits.least[window, contract], min(limits.most[window, contract], level))


@njit(cache=True)
def _draw_levels(limits, level, random):  # type: ignore[no-untyped-def]
    """Return two contracts and their new levels; the same contract twice for one, -1 for no move."""
    contracts = len(level)
    contract, other = int(random.random() * contracts), int(random.random() * contracts)
    if limits.highest[contract] <= limits.lowest[contract]:
        return -1, -1, 0.0, 0.0
    step = limits.highest[contract] * LARGEST_STEP * (SMALLEST_STEP / LARGEST_STEP) ** random.random()
    if random.random() < 0.5:
        step = -step
    now = min(max(level[contract] + step, limits.lowest[contract]), limits.highest[contract])
    if other == contract or random.random() >= AGAINST:
        return contract, contract, now, now
    then = level[other] - (now - level[contract])
    return contract, other, now, min(max(then, limits.lowest[other]), limits.highest[other])


@njit(cache=True)
def _draw_windows(limits, state, random):  # type: ignore[no-untyped-def]
    """Return a random contract, its new free window, the one that it loses, and a second contract.

    The place of the lost window among the contract's own comes before the second contract. -1 is for none,
    and for no move where it is the first contract.
    """
    windows, contracts = state.free.shape
    contract = int(random.random() * contracts)
    if limits.slots[contract] == 0:
        return -1, -1, -1, -1, -1
    if state.used[contract] > 0 and random.random() < NEAR:
        step = 1 if random.random() < 0.5 else -1
        added = state.own[contract, int(random.random() * state.used[contract])] + step
        while 0 <= added < windows and state.free[added, contract]:
            added += step
    else:
        added = int(random.random() * windows)
    if not 0 <= added < windows or state.free[added, contract] or state.gain[added, contract] <= 0:
        return -1, -1, -1, -1, -1
    if state.used[contract] < limits.slots[contract]:
        return contract, added, -1, state.used[contract], -1
    slot = int(random.random() * state.used[contract])
    removed, other = state.own[contract, slot], -1
    if random.random() < EXCHANGE:
        other = int(random.random() * contracts)
        if other == contract or not state.free[added, other] or state.free[removed, other]:
            other = -1
    return contract, added, removed, slot, other


@njit(cache=True)
def _exchange(free, contract, added, removed):  # type: ignore[no-untyped-def]
    """Give a contract a free window and take one away; -1 for none."""
    if contract >= 0 and added >= 0:
        free[added, contract] = True
    if contract >= 0 and removed >= 0:
        free[removed, contract] = False


@njit(cache=True)
def _run_of(free, contract, window):  # type: ignore[no-untyped-def]
    """Return the first and last window of a contract's free windows around one."""
    first = last = window
    while first > 0 and free[first - 1, contract]:
        first -= 1
    while last + 1 < len(free) and free[last + 1, contract]:
        last += 1
    return first, last


@njit(cache=True)
def _stamp_run(state, contract, window, turn, changed):  # type: ignore[no-untyped-def]
    """Add the windows of a run to `places`, those of this turn once; return their number then."""
    first, last = _run_of(state.free, contract, window)
    for row in range(first, last + 1):
        if state.stamp[row] != turn:
            state.stamp[row] = turn
            state.places[changed] = row
            changed += 1
    return changed


@njit(cache=True)
def _cost_of(limits, state, window):  # type: ignore[no-untyped-def]
    """Return the traffic of contracts billed by the mean in a window, and the cost of the shortage."""
    if state.excess[window] <= 0:
        return 0.0, 0.0
    windows, contracts = state.free.shape
    rise, fall, gain = np.empty(contracts), np.empty(contracts), np.empty(contracts)
    count = 0
    for contract in range(contracts):
        if state.free[window, contract]:
            first, last = _run_of(state.free, contract, window)
            rise[count] = limits.gained[window] - limits.gained[first - 1] if first > 0 else np.inf
            fall[count] = limits.lost[last + 1] - limits.lost[window] if last + 1 < windows else np.inf
            gain[count] = min(state.gain[window, contract], rise[count], fall[count])
            count += 1
    rise, fall, gain = rise[:count], fall[:count], gain[:count]
    cover = _cover(rise, gain, fall)
    cover = min(cover, _cover(fall, gain, rise))
    short = max(state.excess[window] - cover, 0.0)
    carried = min(short, limits.mean[window])
    short -= carried
    return carried, short * limits.short_price + short**2 * limits.square


@njit(cache=True)
def _cover(limit, gain, other):  # type: ignore[no-untyped-def]
    """Return the largest sum of gains, (n,), where those of the lowest limits, (n,), add up to at most these.

    It sorts all three arrays by the limits.
    """
    for row in range(1, len(limit)):
        position = row
        while position > 0 and limit[position - 1] > limit[position]:
            for values in (limit, gain, other):
                values[position - 1], values[position] = values[position], values[position - 1]
            position -= 1
    total = 0.0
    for row in range(len(limit)):
        total = min(total + gain[row], limit[row])
    return total
