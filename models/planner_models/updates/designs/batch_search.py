"""Search for K batches within tables and links: prices for the bound, best responses for the batches.

With a price on every resource and batch, each class has a cheapest batch; what all of them cost at least,
less the price of what is free, is a bound on the excess of any K batches (Lagrangian relaxation). Prices
follow the excess by multiplicative weights, with a step for each of them that shrinks with its own excess so
far. Batches come from moving each class in turn to the batch of least excess.

source  Arora, Hazan and Kale 2012, "The multiplicative weights update method", section 3.3; Duchi, Hazan and
        Singer 2011, "Adaptive subgradient methods", section 1.1 (the steps)
"""

from __future__ import annotations

import time
from typing import Final, NamedTuple

import numpy as np
import scipy.sparse as sp

from planner.arrays import Floats, Ints
from planner.compiled import inner, kernel

ITERATIONS: Final = 300
QUICK_ITERATIONS: Final = 60
SWEEPS: Final = 120
QUICK_SWEEPS: Final = 15
STALL_SWEEPS: Final = 40
STARTS: Final = 6


class Needs(NamedTuple):
    """Space that classes need on resources: tables of switches and, where links count, links.

    classes  (C,) classes that change
    during   (R, C) resource that a class takes while it moves, beyond what it takes before
    after    (R, C) what it takes after it has moved, beyond before; negative where it frees some
    free     (R,) what is free before the update
    """

    classes: Ints
    during: sp.csc_array
    after: sp.csc_array
    free: Floats

    @property
    def minimum(self) -> int:
        """The least number of batches: 0 without classes, else 1."""
        return min(len(self.classes), 1)

    @property
    def scale(self) -> Floats:
        """(R,) unit in which excess is counted: what is free, at least 1."""
        return np.maximum(self.free, 1.0)


def bound_excess(needs: Needs, batches: int, iterations: int = ITERATIONS) -> tuple[float, Ints]:
    """Return a bound on the largest relative excess of K batches, and the batch that each class prefers.

    Where the bound is above 0, no K batches are within all limits, whole or in parts.
    """
    unit = sp.diags_array(1 / needs.scale)
    during, after = sp.csr_array(unit @ needs.during), sp.csr_array(unit @ needs.after)
    during_t, after_t = sp.csr_array(during.T), sp.csr_array(after.T)
    free = needs.free / needs.scale
    count, resources = len(needs.classes), len(needs.free)
    if not resources or not count:
        return -1.0, np.zeros(count, dtype=np.int64)
    score, seen = np.zeros((batches, resources)), np.full((batches, resources), 1e-12)
    chosen = np.zeros((batches, count))
    best = -np.inf
    rows = np.arange(count)
    for _ in range(iterations):
        price = np.exp(score - score.max())
        price /= price.sum()
        later = np.vstack([np.cumsum(price[::-1], axis=0)[::-1][1:], np.zeros(resources)])
        cost = (during_t @ price.T + after_t @ later.T).T
        pick = cost.argmin(axis=0)
        value = float(cost[pick, rows].sum() - (price @ free).sum())
        best = max(best, value)
        if best > 1e-6:
            break
        x = np.zeros((batches, count))
        x[pick, rows] = 1.0
        chosen += x
        before = np.cumsum(np.vstack([np.zeros(count), x[:-1]]), axis=0)
        excess = (during @ x.T + after @ before.T).T - free
        seen += excess * excess
        score += excess / np.sqrt(seen)
    return best, chosen.argmax(axis=0).astype(np.int64)


def find_batches(
    needs: Needs,
    batches: int,
    start: Ints,
    seed: int,
    *,
    starts: int = STARTS,
    sweeps: int = SWEEPS,
    until: float = np.inf,
) -> Ints | None:
    """Return the batch of each class, from 0, with K batches within all limits; None where none is found.

    starts  number of starts: the given one, and random ones
    sweeps  most sweeps over all classes from each
    until   value of `time.perf_counter` after which no other one begins
    """
    random = np.random.default_rng(seed)
    during, after = needs.during, needs.after
    for turn in range(starts):
        if turn > 0 and time.perf_counter() > until:
            break
        first = start if turn == 0 else random.integers(batches, size=len(start))
        batch, excess = _descend(
            first.astype(np.int64),
            random.permutation(len(start)).astype(np.int64),
            needs.free,
            needs.scale,
            during.indptr.astype(np.int64),
            during.indices.astype(np.int64),
            during.data,
            after.indptr.astype(np.int64),
            after.indices.astype(np.int64),
            after.data,
            batches,
            sweeps,
            STALL_SWEEPS,
        )
        if excess <= 0:
            return batch
    return None


@inner
def _over(load: float, free: float, scale: float) -> float:
    """Return the squared relative excess of a load."""
    beyond = (load - free) / scale
    return beyond * beyond if beyond > 1e-9 else 0.0


@kernel
def _descend(  # noqa: C901
    batch: Ints,
    order: Ints,
    free: Floats,
    scale: Floats,
    during_start: Ints,
    during_row: Ints,
    during: Floats,
    after_start: Ints,
    after_row: Ints,
    after: Floats,
    batches: int,
    sweeps: int,
    stall: int,
) -> tuple[Ints, float]:
    """Return batches after moving classes in turn to the best batch, and the excess that is left.

    sweeps, stall  most sweeps over all classes, and most of them without less excess
    """
    batch = batch.copy()
    load = np.zeros((batches, len(free)))
    for one in range(len(batch)):
        _put(load, one, batch[one], 1.0, during_start, during_row, during, after_start, after_row, after)
    cost = np.zeros(batches)
    weight = np.ones((batches, len(free)))  # of excess; grows where best responses get stuck
    total, least, since = 0.0, np.inf, 0
    for sweep in range(sweeps):
        total = 0.0
        for number in range(batches):
            for row in range(len(free)):
                total += _over(load[number, row], free[row], scale[row])
        if total == 0.0:
            return batch, 0.0
        since = 0 if total < least else since + 1
        least = min(least, total)
        if since > stall:
            return batch, total
        moved = 0
        for one in order:
            if not _can_relieve(
                load, free, scale, one, batch[one], during_start, during_row, after_start, after_row, after
            ):
                continue
            _put(load, one, batch[one], -1.0, during_start, during_row, during, after_start, after_row, after)
            for number in range(batches):
                cost[number] = 0.0
                for at in range(during_start[one], during_start[one + 1]):
                    row = during_row[at]
                    now = load[number, row]
                    change = _over(now + during[at], free[row], scale[row]) - _over(
                        now, free[row], scale[row]
                    )
                    cost[number] += weight[number, row] * change
                for later in range(number + 1, batches):
                    for at in range(after_start[one], after_start[one + 1]):
                        row = after_row[at]
                        now = load[later, row]
                        change = _over(now + after[at], free[row], scale[row]) - _over(
                            now, free[row], scale[row]
                        )
                        cost[number] += weight[later, row] * change
            best = batch[one]
            for number in range(batches):
                if cost[number] < cost[best] - 1e-15:
                    best = number
            _put(load, one, best, 1.0, during_start, during_row, during, after_start, after_row, after)
            moved += best != batch[one]
            batch[one] = best
        if moved <= len(order) // 200:
            for number in range(batches):
                for row in range(len(free)):
                    if _over(load[number, row], free[row], scale[row]) > 0:
                        weight[number, row] *= 2.0
        order = order[::-1].copy() if sweep % 2 else np.roll(order, len(order) // 3)
    total = 0.0
    for number in range(batches):
        for row in range(len(free)):
            total += _over(load[number, row], free[row], scale[row])
    return batch, total


@inner
def _can_relieve(
    load: Floats,
    free: Floats,
    scale: Floats,
    one: int,
    number: int,
    during_start: Ints,
    during_row: Ints,
    after_start: Ints,
    after_row: Ints,
    after: Floats,
) -> bool:
    """Return whether a class takes space that a batch lacks, or would free some in an earlier batch."""
    for at in range(during_start[one], during_start[one + 1]):
        row = during_row[at]
        if _over(load[number, row], free[row], scale[row]) > 0:
            return True
    for at in range(after_start[one], after_start[one + 1]):
        row = after_row[at]
        if after[at] > 0:
            for later in range(number + 1, len(load)):
                if _over(load[later, row], free[row], scale[row]) > 0:
                    return True
        else:
            for earlier in range(1, number + 1):
                if _over(load[earlier, row], free[row], scale[row]) > 0:
                    return True
    return False


@inner
def _put(
    load: Floats,
    one: int,
    number: int,
    sign: float,
    during_start: Ints,
    during_row: Ints,
    during: Floats,
    after_start: Ints,
    after_row: Ints,
    after: Floats,
) -> None:
    """Add a class to a batch, or take it out."""
    for at in range(during_start[one], during_start[one + 1]):
        load[number, during_row[at]] += sign * during[at]
    for later in range(number + 1, load.shape[0]):
        for at in range(after_start[one], after_start[one + 1]):
            load[later, after_row[at]] += sign * after[at]
