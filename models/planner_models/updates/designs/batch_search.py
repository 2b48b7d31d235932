"""Search for K batches within tables and links: prices for the bound, best responses for the batches.

With a price on every resource and batch, each class has a cheapest batch; what all of them cost at least,
less the price of what is free, is a bound on the excess of any K batches (Lagrangian relaxation). Prices
follow the excess by multiplicative weights, with a step for each of them that shrinks with its own excess so
far. Batches come from moving each class in turn to the batch of least excess.

source  Arora, Hazan and Kale 2012, "The multiplicative weights update method", section 3.3; Duchi, Hazan and
        Singer 2011, "Adaptive subgradient methods", section 1.1 (the steps)

Needs of changed classes on tables and links, during their batch and after it.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import scipy.sparse as sp

from planner.arrays import Floats, Ints
from planner.compiled import inner, kernel, run_small_in_python
from planner.search.deadline import NEVER, Deadline
from planner_models.updates.designs.two_phase import phases
from planner_models.updates.problem.problem import Update

ITERATIONS: Final = 300
QUICK_ITERATIONS: Final = 60
SWEEPS: Final = 120
QUICK_SWEEPS: Final = 15
STALL_SWEEPS: Final = 40
STARTS: Final = 6


class Prices:
    """Prices of each resource in each of K batches, and the bound on the excess that they prove so far."""

    def __init__(self, needs: Needs, batches: int) -> None:
        self.free = needs.free / needs.scale
        self._during = Columns.of(needs.during, needs.scale)
        self._after = Columns.of(needs.after, needs.scale)
        self._score = np.zeros((len(needs.free), batches))
        self._seen = np.full((len(needs.free), batches), 1e-12)
        self._chosen = np.zeros((len(needs.classes), batches), dtype=np.int64)
        self.excess = -np.inf

    @property
    def preferred(self) -> Ints:
        """The batch that each class chose most often, (C,)."""
        return np.asarray(self._chosen.argmax(axis=1).astype(np.int64))

    def improve(self, iterations: int) -> float:
        """Return a bound on the largest relative excess of K batches, after at most so many more prices.

        Where the bound is above 0, no K batches are within all limits, whole or in parts.
        """
        if not self._score.size or not len(self._chosen):
            self.excess = -1.0
            return self.excess
        for _ in range(iterations):
            if self.excess > 1e-6:
                break
            price = np.exp(self._score - self._score.max())
            price /= price.sum()
            later = np.zeros_like(price)
            later[:, :-1] = np.cumsum(price[:, :0:-1], axis=1)[:, ::-1]
            load, moved = np.zeros_like(price), np.zeros_like(price)
            cost = _choose_batches(price, later, self._during, self._after, self._chosen, load, moved)
            self.excess = max(self.excess, cost - float(self.free @ price.sum(axis=1)))
            load[:, 1:] += np.cumsum(moved, axis=1)[:, :-1]
            excess = load - self.free[:, None]
            self._seen += excess * excess
            self._score += excess / np.sqrt(self._seen)
        return self.excess


class Columns(NamedTuple):
    """A sparse matrix by columns, for kernels.

    start  (C + 1,) first entry of each column
    row, value  of each entry
    """

    start: Ints
    row: Ints
    value: Floats

    @classmethod
    def of(cls, matrix: sp.csc_array, scale: Floats | None = None) -> Columns:
        """Return the columns of a matrix; with a scale, its rows divided by it."""
        rows = matrix.indices.astype(np.int64)
        value = matrix.data if scale is None else matrix.data / scale[rows]
        return cls(matrix.indptr.astype(np.int64), rows, value)


class Space(NamedTuple):
    """Space of resources and what classes need of it, as in `Needs`, for kernels.

    free, scale    (R,) what is free before the update, and the unit of excess
    during, after  (R, C) what a class takes while it moves, and after it
    """

    free: Floats
    scale: Floats
    during: Columns
    after: Columns


@run_small_in_python(max_elements=2_000)
@kernel
def _choose_batches(
    price: Floats,
    later: Floats,
    during: Columns,
    after: Columns,
    selected: Ints,
    load: Floats,
    moved: Floats,
) -> float:
    """Set each class to its cheapest batch; return the cost of all of them.

    price   (R, K) of each resource and batch; later (R, K) sum of those of the batches after
    selected  (C, K) how often each class took each batch; load, moved (R, K) what classes take, and leave
    """
    batches = price.shape[1]
    cost, total = np.zeros(batches), 0.0
    for class_id in range(len(selected)):
        cost[:] = 0.0
        for entry in range(during.start[class_id], during.start[class_id + 1]):
            for k in range(batches):
                cost[k] += during.value[entry] * price[during.row[entry], k]
        for entry in range(after.start[class_id], after.start[class_id + 1]):
            for k in range(batches):
                cost[k] += after.value[entry] * later[after.row[entry], k]
        pick = cost.argmin()
        total += cost[pick]
        selected[class_id, pick] += 1
        for entry in range(during.start[class_id], during.start[class_id + 1]):
            load[during.row[entry], pick] += during.value[entry]
        for entry in range(after.start[class_id], after.start[class_id + 1]):
            moved[after.row[entry], pick] += after.value[entry]
    return total


def find_batches(
    needs: Needs,
    batches: int,
    start: Ints,
    seed: int,
    *,
    starts: int = STARTS,
    sweeps: int = SWEEPS,
    deadline: Deadline = NEVER,
) -> Ints | None:
    """Return the batch of each class, from 0, with K batches within all limits; None where none is found.

    starts  number of starts: the given one, and random ones
    sweeps  most sweeps over all classes from each
    deadline  after which no other one begins
    """
    random = np.random.default_rng(seed)
    space = needs.space
    for turn in range(starts):
        if turn > 0 and deadline.is_over:
            break
        first = start if turn == 0 else random.integers(batches, size=len(start))
        batch, excess = _descend(
            first.astype(np.int64),
            random.permutation(len(start)).astype(np.int64),
            space,
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


@run_small_in_python(max_elements=2_000)
@kernel
def _descend(
    batch: Ints, order: Ints, space: Space, batches: int, sweeps: int, stall: int
) -> tuple[Ints, float]:
    """Return batches after moving classes in turn to the best batch, and the excess that is left.

    sweeps, stall  most sweeps over all classes, and most of them without less excess
    """
    batch = batch.copy()
    load = np.zeros((batches, len(space.free)))
    for class_id in range(len(batch)):
        _put(load, space, class_id, batch[class_id], 1.0)
    cost = np.zeros(batches)
    weight = np.ones((batches, len(space.free)))  # of excess; grows where best responses get stuck
    lowest, since = np.inf, 0
    for sweep in range(sweeps):
        total = _sum_excess(load, space)
        if total == 0.0:
            return batch, 0.0
        since = 0 if total < lowest else since + 1
        lowest = min(lowest, total)
        if since > stall:
            return batch, total
        moved = 0
        for class_id in order:
            if not _can_relieve(load, space, class_id, batch[class_id]):
                continue
            _put(load, space, class_id, batch[class_id], -1.0)
            _price_batches(load, space, class_id, weight, cost)
            best = batch[class_id]
            for number in range(batches):
                if cost[number] < cost[best] - 1e-15:
                    best = number
            _put(load, space, class_id, best, 1.0)
            moved += best != batch[class_id]
            batch[class_id] = best
        if moved <= len(order) // 200:
            _double_weights(load, space, weight)
        order = order[::-1].copy() if sweep % 2 else np.roll(order, len(order) // 3)
    return batch, _sum_excess(load, space)


@inner
def _sum_excess(load: Floats, space: Space) -> float:
    """Return the sum of the squared relative excess of all loads."""
    total = 0.0
    for number in range(load.shape[0]):
        for row in range(load.shape[1]):
            total += _over(load[number, row], space.free[row], space.scale[row])
    return total


@inner
def _double_weights(load: Floats, space: Space, weight: Floats) -> None:
    """Double the weight of each resource and batch with excess."""
    for number in range(load.shape[0]):
        for row in range(load.shape[1]):
            if _over(load[number, row], space.free[row], space.scale[row]) > 0:
                weight[number, row] *= 2.0


@inner
def _rise(load: float, change: float, free: float, scale: float) -> float:
    """Return the change of the squared relative excess of a load by a change of it."""
    return _over(load + change, free, scale) - _over(load, free, scale)


@inner
def _price_batches(load: Floats, space: Space, class_id: int, weight: Floats, cost: Floats) -> None:
    """Fill the weighted excess that a class adds in each batch."""
    free, scale, during, after = space.free, space.scale, space.during, space.after
    batches = load.shape[0]
    for number in range(batches):
        cost[number] = 0.0
        for entry in range(during.start[class_id], during.start[class_id + 1]):
            row = during.row[entry]
            rise = _rise(load[number, row], during.value[entry], free[row], scale[row])
            cost[number] += weight[number, row] * rise
        for later in range(number + 1, batches):
            for entry in range(after.start[class_id], after.start[class_id + 1]):
                row = after.row[entry]
                rise = _rise(load[later, row], after.value[entry], free[row], scale[row])
                cost[number] += weight[later, row] * rise


@inner
def _can_relieve(load: Floats, space: Space, class_id: int, number: int) -> bool:
    """Return whether a class takes space that a batch lacks, or would free some in an earlier batch."""
    free, scale, during, after = space.free, space.scale, space.during, space.after
    for entry in range(during.start[class_id], during.start[class_id + 1]):
        row = during.row[entry]
        if _over(load[number, row], free[row], scale[row]) > 0:
            return True
    for entry in range(after.start[class_id], after.start[class_id + 1]):
        row = after.row[entry]
        takes = after.value[entry] > 0
        first, end = (number + 1, len(load)) if takes else (1, number + 1)
        for other in range(first, end):
            if _over(load[other, row], free[row], scale[row]) > 0:
                return True
    return False


@inner
def _put(load: Floats, space: Space, class_id: int, number: int, sign: float) -> None:
    """Add a class to a batch, or take it out."""
    during, after = space.during, space.after
    for entry in range(during.start[class_id], during.start[class_id + 1]):
        load[number, during.row[entry]] += sign * during.value[entry]
    for later in range(number + 1, load.shape[0]):
        for entry in range(after.start[class_id], after.start[class_id + 1]):
            load[later, after.row[entry]] += sign * after.value[entry]


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
        """(R,) unit of excess: the free amount, at least 1."""
        return np.maximum(self.free, 1.0)

    @property
    def space(self) -> Space:
        """The same for kernels."""
        return Space(self.free, self.scale, Columns.of(self.during), Columns.of(self.after))


def find_needs(problem: Update, *, links: bool = False) -> Needs:
    """Return the needs of changed classes of tables, and of links if `links`; without unlimited ones."""
    slots = problem.slots
    classes = np.flatnonzero(slots.changes)
    column = np.full(len(problem.classes), -1)
    column[classes] = np.arange(len(classes))
    phases_ = phases(problem, classes)
    slots_of = slots.of(classes)
    only = problem.ingress[slots.owner[slots_of]] == slots.switch[slots_of]
    door = slots_of[only]
    has_now, has_next = slots.now.has_rule(), slots.next.has_rule()
    # at an only ingress the new rule takes the place of the old one
    begins = door[has_next[door] & ~has_now[door]]
    ends = door[has_now[door] & ~has_next[door]]
    parts = [
        (phases_.add, slots.rules[phases_.add], slots.rules[phases_.add]),
        (begins, slots.rules[begins], slots.rules[begins]),
        (phases_.remove, 0 * slots.rules[phases_.remove], -slots.rules[phases_.remove]),
        (ends, 0 * slots.rules[ends], -slots.rules[ends]),
    ]
    slot = np.concatenate([entry[0] for entry in parts])
    shape = (len(problem.switches), len(classes))
    where = slots.switch[slot], column[slots.owner[slot]]
    during, after = (
        sp.csc_array((np.concatenate([entry[which] for entry in parts]).astype(float), where), shape=shape)
        for which in (1, 2)
    )
    during.eliminate_zeros()
    after.eliminate_zeros()
    free = problem.rule_capacity - problem.rules_now
    finite = np.flatnonzero(np.isfinite(free))
    needs = Needs(classes, during[finite], after[finite], free[finite])
    if not links:
        return needs
    more = _find_link_needs(problem, classes)
    return Needs(
        classes,
        sp.csc_array(sp.vstack([needs.during, more.during])),
        sp.csc_array(sp.vstack([needs.after, more.after])),
        np.concatenate([needs.free, more.free]),
    )


def _find_link_needs(problem: Update, classes: Ints) -> Needs:
    before, after = problem.class_loads(classes)
    free = problem.load_limit_mbps - problem.link_loads[0]
    finite = np.flatnonzero(np.isfinite(free))
    slack = 1e-9 * problem.load_limit_mbps[finite]
    rise = sp.csc_array((after - before).maximum(0))
    return Needs(classes, rise[finite], sp.csc_array(after - before)[finite], free[finite] + slack)
