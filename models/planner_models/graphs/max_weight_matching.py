"""Max-weight bipartite matching by shortest augmenting paths, warm-started from the last dual prices.

Weights that change a little from one matching to the next keep most prices: only rows that violate
them are augmented again.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from planner.compiled import inner, kernel
from planner.search.tolerances import SUM_ROUNDING

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
FREE: Final = -1
ROUNDING: Final = SUM_ROUNDING


class Pairs(NamedTuple):
    """The pairs that may be matched, by source and by target.

    first       (n + 1,) where the pairs of each source start
    target      (m,) of each pair, in order of source and target
    back_first  (n + 1,) where the pairs of each target start in the order of target
    source      (m,) of each pair, in order of target and source
    pair        (m,) number of each pair, in order of target and source
    number      (m,) number of each pair, in order of source and target
    """

    first: Ints
    target: Ints
    back_first: Ints
    source: Ints
    pair: Ints
    number: Ints

    @classmethod
    def of(cls, allowed: NDArray[np.bool_]) -> Pairs:
        """Return the pairs of an (n, n) matrix."""
        # contiguous, as Numba compiles functions anew for other layouts
        source, target = np.ascontiguousarray(np.nonzero(allowed))
        back = np.lexsort((source, target))
        return cls(
            first=index_first(source, len(allowed)),
            target=target,
            back_first=index_first(target, len(allowed)),
            source=source[back],
            pair=back,
            number=np.arange(len(source)),
        )


def index_first(ends: Ints, n: int) -> Ints:
    """Return (n + 1,) where the entries of each of n ends start, in their order."""
    return np.concatenate([[0], np.cumsum(np.bincount(ends, minlength=n))]).astype(np.int64)


def sum_ends(ends: Ints, values: Floats, n: int) -> Floats:
    """Return (n,) the sum of the values at each end."""
    return np.asarray(np.bincount(ends, weights=values, minlength=n), dtype=np.float64)


class State(NamedTuple):
    """A matching and the dual prices that prove it optimal, from which the next one starts.

    price, back_price  (n,) of sources and targets: no pair weighs more than both of its ends
    mate, back_mate    (n,) the other end, or FREE
    distance, parent, front, reached  (n,) scratch arrays of a search
    """

    price: Floats
    back_price: Floats
    mate: Ints
    back_mate: Ints
    distance: Floats
    parent: Ints
    front: Ints
    reached: Ints

    @classmethod
    def of(cls, n: int) -> State:
        """Return a state without matched pairs or prices."""
        prices, mates, scratch = np.zeros((2, n)), np.full((2, n), FREE), np.zeros((3, n), np.int64)
        return cls(prices[0], prices[1], mates[0], mates[1], np.full(n, np.inf), *scratch)


class _Side(NamedTuple):
    """The matching as seen from one side, whose ends search for augmenting paths; back_* is the other side.

    first, target, pair  pairs of each end: the other end, and its number
    """

    first: Ints
    target: Ints
    pair: Ints
    price: Floats
    back_price: Floats
    mate: Ints
    back_mate: Ints


@kernel
def update_matching(pairs: Pairs, weight: Floats, state: State) -> None:
    """Make `state` a matching of the most weight; weights (m,) are at least 0.

    Prices are lowered or raised to what the new weights need; pairs whose weight is below the sum of their
    prices are unmatched; then each end that is free and has a price starts a search for an augmenting path,
    to an end that is free or to one whose price is cheapest to give up.
    """
    price, back_price, mate, back_mate = state.price, state.back_price, state.mate, state.back_mate
    n = len(price)
    largest = 0.0
    for k in range(len(weight)):
        largest = max(largest, weight[k])
    tolerance = ROUNDING * largest
    _fit_prices(pairs, weight, state, tolerance)
    _match_tight_pairs(pairs, weight, state, tolerance)
    side = _Side(pairs.first, pairs.target, pairs.number, price, back_price, mate, back_mate)
    for i in range(n):
        if mate[i] == FREE and price[i] > tolerance:
            _augment(i, side, weight, state)
    side = _Side(pairs.back_first, pairs.source, pairs.pair, back_price, price, back_mate, mate)
    for j in range(n):
        if back_mate[j] == FREE and back_price[j] > tolerance:
            _augment(j, side, weight, state)


@inner
def _fit_prices(pairs: Pairs, weight: Floats, state: State, tolerance: float) -> None:
    """Make prices fit the weights; unmatch pairs whose weight is below the sum of their prices."""
    first, target, back_first = pairs.first, pairs.target, pairs.back_first
    price, back_price, mate = state.price, state.back_price, state.mate
    for i in range(len(price)):
        need, surplus_i = 0.0, -1.0
        for k in range(first[i], first[i + 1]):
            surplus = weight[k] - back_price[target[k]]
            need = max(need, surplus)
            if target[k] == mate[i]:
                surplus_i = surplus
        price[i] = need
        if mate[i] != FREE and surplus_i < need - tolerance:
            state.back_mate[mate[i]] = FREE
            mate[i] = FREE
    for j in range(len(price)):
        need = 0.0
        for k in range(back_first[j], back_first[j + 1]):
            need = max(need, weight[pairs.pair[k]] - price[pairs.source[k]])
        back_price[j] = need


@inner
def _match_tight_pairs(pairs: Pairs, weight: Floats, state: State, tolerance: float) -> None:
    """Match free sources to free targets where the pair weighs as much as the prices of its ends."""
    price, back_price, mate, back_mate = state.price, state.back_price, state.mate, state.back_mate
    for i in range(len(price)):
        if mate[i] != FREE or price[i] <= tolerance:
            continue
        for k in range(pairs.first[i], pairs.first[i + 1]):
            j = pairs.target[k]
            if back_mate[j] == FREE and weight[k] - back_price[j] >= price[i] - tolerance:
                mate[i], back_mate[j] = j, i
                break


@inner
def _augment(start: int, side: _Side, weight: Floats, state: State) -> None:
    """Match `start`, or reduce its price to 0, along the shortest augmenting path."""
    distance, front, reached = state.distance, state.front, state.reached
    price, back_price, mate, back_mate = side.price, side.back_price, side.mate, side.back_mate
    best, last, gives_up, scanned, touched = _search_path(start, side, weight, state)
    price[start] -= best
    for f in range(len(front) - scanned, len(front)):
        j = front[f]
        back_price[j] += best - distance[j]
        price[back_mate[j]] -= best - distance[j]
    for f in range(touched):
        distance[reached[f]] = np.inf
    j = last
    if gives_up != FREE:
        price[gives_up] = 0.0
        j = mate[gives_up]
        mate[gives_up] = FREE
        if gives_up == start:
            return
    while True:
        i = state.parent[j]
        before = mate[i]
        mate[i], back_mate[j] = j, i
        if i == start:
            return
        j = before


@inner
def _search_path(  # noqa: C901 - one compiled loop
    start: int, side: _Side, weight: Floats, state: State
) -> tuple[float, int, int, int, int]:
    """Find the shortest augmenting path from `start`.

    Returns its length; the free end that it reaches, or the end whose price it gives up; the number of ends
    that were scanned, which stand last in `state.front`; and the number that were reached.
    """
    distance, parent, front, reached = state.distance, state.parent, state.front, state.reached
    first, target, pair, price, back_price, _, back_mate = side
    waiting, touched, scanned = 0, 0, 0
    so_far, here = 0.0, start
    best, last, gives_up = price[start], FREE, start
    while True:
        for k in range(first[here], first[here + 1]):
            j = target[k]
            length = so_far + max(0.0, price[here] + back_price[j] - weight[pair[k]])
            if length < best and length < distance[j]:
                if back_mate[j] == FREE:
                    best, last, gives_up = length, j, FREE
                elif distance[j] == np.inf:
                    front[waiting] = j
                    waiting += 1
                if distance[j] == np.inf:
                    reached[touched] = j
                    touched += 1
                distance[j] = length
                parent[j] = here
        near, position = best, -1
        for f in range(waiting):
            if distance[front[f]] < near:
                near, position = distance[front[f]], f
        if position < 0:
            return best, last, gives_up, scanned, touched
        j = front[position]
        waiting -= 1
        front[position] = front[waiting]
        # scanned ends stay behind waiting ones: `front` has never more than n
        scanned += 1
        front[len(front) - scanned] = j
        so_far, here = near, back_mate[j]
        if so_far + price[here] < best:
            best, last, gives_up = so_far + price[here], FREE, here
