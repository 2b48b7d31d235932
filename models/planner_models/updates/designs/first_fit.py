"""Batches by first fit: classes in an order, each in the first batch that has space for it."""

from __future__ import annotations

import numpy as np

from planner.arrays import Floats, Ints
from planner.compiled import kernel
from planner_models.updates.designs.batch_needs import Needs


@kernel
def _fill(
    order: Ints,
    earliest: Ints,
    free: Floats,
    during_start: Ints,
    during_row: Ints,
    during: Floats,
    after_start: Ints,
    after_row: Ints,
    after: Floats,
    limit: int,
) -> tuple[Ints, int]:
    """Return the batch of each class, from 0, filled in an order; and the number of batches, -1 for none.

    earliest  batch before which a class is not taken
    limit    batches at most
    """
    batch = np.full(len(order), -1)
    free = free.copy()
    waiting = order.copy()
    count = len(order)
    for number in range(limit):
        space = free.copy()
        count_left = 0
        for index in range(count):
            class_id = waiting[index]
            fits = earliest[class_id] <= number
            if fits:
                for entry in range(during_start[class_id], during_start[class_id + 1]):
                    if during[entry] > space[during_row[entry]] + 1e-9:
                        fits = False
                        break
            if not fits:
                waiting[count_left] = class_id
                count_left += 1
                continue
            batch[class_id] = number
            for entry in range(during_start[class_id], during_start[class_id + 1]):
                space[during_row[entry]] -= during[entry]
            for entry in range(after_start[class_id], after_start[class_id + 1]):
                free[after_row[entry]] -= after[entry]
        count = count_left
        if count == 0:
            return batch, number + 1
    return batch, -1


def fill(needs: Needs, order: Ints, requested: Ints | None = None, upper: int = 10_000) -> Ints | None:
    """Return the batch of each class, from 0, by first fit in an order; None where `upper` are too few."""
    first = np.zeros(len(needs.classes), dtype=np.int64) if requested is None else requested
    during, after = needs.during, needs.after
    batch, count = _fill(
        order,
        first,
        needs.free,
        during.indptr.astype(np.int64),
        during.indices.astype(np.int64),
        during.data,
        after.indptr.astype(np.int64),
        after.indices.astype(np.int64),
        after.data,
        min(upper, len(needs.classes) + 1),
    )
    return None if count < 0 else batch


def fill_greedily(needs: Needs) -> Ints | None:
    """Return the batch of each class by first fit, those first that free the scarcest tables most.

    None where classes are left that fit in no batch, such as two that wait for each other's space.
    """
    # what all moves need of a resource at once, over what is free
    needed = np.asarray(needs.during.sum(axis=1)).ravel()
    price = np.maximum(needed / np.maximum(needs.free, 0.5) - 1, 0.0)
    taken = price @ needs.during
    freed = -(price @ needs.after)
    best: Ints | None = None
    for key in (taken - freed, taken, -taken, np.zeros(len(taken))):
        batch_of = fill(needs, np.argsort(key, kind="stable").astype(np.int64))
        if batch_of is not None and (best is None or batch_of.max(initial=-1) < best.max(initial=-1)):
            best = batch_of
    return best
