"""Simulated annealing of one region's free windows, where the traffic that may change its CDN is limited.

For given billed levels, a move gives a contract another free window, in place of one that it has where all
are used; a second contract may take the opposite exchange. Traffic above all levels and free windows costs
the price of contracts billed by the mean up to what they carry, and beyond that the square of what is
missing, as slightly higher levels carry a little of it. Traffic that must change its contract beyond a limit
costs too: what contracts that are no longer free carry at least, and what newly free ones have to take.

source  Kirkpatrick et al., Science 1983 (simulated annealing)
"""

from __future__ import annotations

from typing import Final

import numba
import numpy as np

from planner.arrays import Bools, Floats
from planner_models.contracts.designs.program import Region

MOVES_PER_CELL: Final = 128  # cells: windows times contracts
SHORTAGE_SHARE: Final = 0.02  # of the largest traffic: a shortage that costs its price once
INITIAL_TEMPERATURE: Final = 1.0  # times the price of a shortage of `SHORTAGE_SHARE`
FINAL_TEMPERATURE: Final = 1e-3
NEAR: Final = 0.6  # probability that a contract's new window is beside one that it has
EXCHANGE: Final = 0.4  # probability that a second contract takes the opposite exchange
FORCED: Final = 1e-9  # relative to the level: least loads above it need a free window


def choose(region: Region, level: Floats, *, moved_weight: float, random: np.random.Generator) -> Bools:
    """Return free windows (W, N) for billed levels (N,), at most as many as each contract has.

    moved_weight  cost of traffic that changes its contract beyond the limit, over a level's price
    """
    paid = ~region.is_mean
    forced = paid & (region.least > level * (1 + FORCED))
    base = np.where(region.is_mean, region.least, np.maximum(region.least, np.minimum(region.most, level)))
    base = np.where(forced, region.most, base)
    excess = region.traffic - base.sum(axis=1)
    slots = np.maximum(region.free - forced.sum(axis=0), 0)
    gain = np.where(slots > 0, region.most - base, 0.0)
    able = np.flatnonzero(gain.max(axis=0) > 0)
    busy = np.flatnonzero(excess > 0)
    if not len(able) or not len(busy):
        return forced
    windows = len(region.traffic)
    change = np.diff(region.traffic)
    movable = region.moved_share * np.minimum(region.traffic[:-1], region.traffic[1:])
    price = float(np.median([region.steps[row][1][0] for row in able]))
    mean_price = min((float(region.steps[row][1][0]) for row in np.flatnonzero(~paid)), default=0.0)
    shortage = SHORTAGE_SHARE * float(region.traffic.max())
    chosen = _anneal(
        np.ascontiguousarray(gain[:, able]),
        np.ascontiguousarray(excess),
        np.ascontiguousarray((region.most - base)[:, ~paid].sum(axis=1)),
        np.ascontiguousarray(movable - np.minimum(change, 0.0)),
        np.ascontiguousarray(movable + np.maximum(change, 0.0)),
        slots[able],
        busy,
        np.array([mean_price / windows, price / shortage, moved_weight * price]),
        MOVES_PER_CELL * windows * len(able),
        price * shortage,
        random,
    )
    is_free: Bools = forced.copy()
    is_free[:, able] |= chosen
    return is_free


@numba.njit(cache=True)
def _anneal(  # type: ignore[no-untyped-def]
    gain, excess, mean, may_lose, may_gain, slots, busy, prices, moves, unit, random
):
    """Return the free windows (W, n) of least cost found.

    gain      (W, n) what a contract adds where it is free, Mbit/s
    excess    (W,) traffic above the levels
    mean      (W,) what contracts billed by the mean can take
    may_lose  (W - 1,) what contracts may lose together to the next window; may_gain: what they may gain
    slots     (n,) free windows of each contract
    busy      windows with traffic above the levels
    prices    of traffic on contracts billed by the mean, of a shortage squared, and of moved traffic
    unit      cost that temperatures are relative to
    """
    windows, contracts = gain.shape
    free = np.zeros((windows, contracts), dtype=np.bool_)
    cover = np.zeros(windows)
    own = np.zeros((contracts, slots.max()), dtype=np.int64)  # free windows of each contract
    count = np.zeros(contracts, dtype=np.int64)
    best, value, least = free.copy(), 0.0, 0.0
    temperature = INITIAL_TEMPERATURE * unit
    cooling = (FINAL_TEMPERATURE / INITIAL_TEMPERATURE) ** (1 / moves)
    for _ in range(moves):
        temperature *= cooling
        one, added, removed, place, other = _draw_move(free, gain, excess, slots, busy, own, count, random)
        if one < 0:
            continue
        before = _cost_around(added, removed, free, gain, cover, excess, mean, may_lose, may_gain, prices)
        _exchange(one, added, removed, free, gain, cover)
        if other >= 0:
            _exchange(other, removed, added, free, gain, cover)
        after = _cost_around(added, removed, free, gain, cover, excess, mean, may_lose, may_gain, prices)
        if after > before and random.random() >= np.exp((before - after) / temperature):
            _exchange(one, removed, added, free, gain, cover)
            if other >= 0:
                _exchange(other, added, removed, free, gain, cover)
            continue
        value += after - before
        own[one, place] = added
        count[one] = max(count[one], place + 1)
        if other >= 0:
            for place in range(count[other]):
                if own[other, place] == added:
                    own[other, place] = removed
        if value < least - 1e-9 * unit:
            least = value
            best[:] = free
    return best


@numba.njit(cache=True)
def _draw_move(free, gain, excess, slots, busy, own, count, random):  # type: ignore[no-untyped-def]
    """Return a random contract, its new free window, the one that it loses, and a second contract.

    The place of the lost window among the contract's own comes before the second contract. -1 is for none,
    and for no move where it is the first contract.
    """
    windows, contracts = gain.shape
    one = int(random.random() * contracts)
    if count[one] > 0 and random.random() < NEAR:
        step = 1 if random.random() < 0.5 else -1
        added = own[one, int(random.random() * count[one])] + step
        while 0 <= added < windows and free[added, one]:
            added += step
    else:
        added = busy[int(random.random() * len(busy))]
    if not 0 <= added < windows or free[added, one] or excess[added] <= 0 or gain[added, one] <= 0:
        return -1, -1, -1, -1, -1
    if count[one] < slots[one]:
        return one, added, -1, count[one], -1
    place = int(random.random() * count[one])
    removed, other = own[one, place], -1
    if random.random() < EXCHANGE:
        other = int(random.random() * contracts)
        if other == one or not free[added, other] or free[removed, other]:
            other = -1
    return one, added, removed, place, other


@numba.njit(cache=True)
def _exchange(contract, added, removed, free, gain, cover):  # type: ignore[no-untyped-def]
    """Give a contract a free window and take one away; -1 for none."""
    if added >= 0:
        free[added, contract] = True
        cover[added] += gain[added, contract]
    if removed >= 0:
        free[removed, contract] = False
        cover[removed] -= gain[removed, contract]


@numba.njit(cache=True)
def _cost_around(  # type: ignore[no-untyped-def]
    added, removed, free, gain, cover, excess, mean, may_lose, may_gain, prices
):
    """Return the cost of two windows and of what moves before and after each; `removed` is -1 for none."""
    cost = 0.0
    for window in (added - 1, added):
        cost += _cost_from(window, free, gain, cover, excess, mean, may_lose, may_gain, prices)
    for window in (removed - 1, removed):
        if removed >= 0 and window != added and window != added - 1:
            cost += _cost_from(window, free, gain, cover, excess, mean, may_lose, may_gain, prices)
    return cost


@numba.njit(cache=True)
def _cost_from(window, free, gain, cover, excess, mean, may_lose, may_gain, prices):  # type: ignore[no-untyped-def]
    """Return the cost of a window and of what moves to the next one; 0 for a window that is none."""
    if window < 0:
        return 0.0
    short = max(excess[window] - cover[window], 0.0)
    carried = min(short, mean[window])
    cost = carried * prices[0] + (short - carried) ** 2 * prices[1]
    if window + 1 == len(excess):
        return cost
    lost, taken = 0.0, 0.0
    for contract in range(gain.shape[1]):
        if free[window, contract] and not free[window + 1, contract]:
            lost += gain[window, contract]
        elif free[window + 1, contract] and not free[window, contract]:
            taken += gain[window + 1, contract]
    lost = min(lost, max(excess[window] - cover[window] + lost, 0.0))
    taken = min(taken, max(excess[window + 1] - cover[window + 1] + taken, 0.0))
    moved = max(lost - may_lose[window], 0.0) + max(taken - may_gain[window], 0.0)
    return cost + moved * prices[2]
