"""Batches by first fit: classes in an order, each in the first batch that has space for it."""

from __future__ import annotations

import numpy as np

from planner.arrays import Floats, Ints
from planner.compiled import kernel
from planner_models.updates.designs.batch_needs import Needs


@kernel
def _fill(
    order: Ints,
    wanted: Ints,
    free: Floats,
    during_start: Ints,
    during_row: Ints,
    during: Floats,
    after_start: Ints,
    after_row: Ints,
    after: Floats,
    most: int,
) -> tuple[Ints, int]:
    """Return the batch of each class, from 0, filled in an order; and the number of batches, -1 for none.

    wanted  batch before which a class is not taken
    most    batches at most
    """
    batch = np.full(len(order), -1)
    free = free.copy()
    left = order.copy()
    count = len(order)
    for number in range(most):
        space = free.copy()
        kept = 0
        for place in range(count):
            one = left[place]
            fits = wanted[one] <= number
            if fits:
                for at in range(during_start[one], during_start[one + 1]):
                    if during[at] > space[during_row[at]] + 1e-9:
                        fits = False
                        break
            if not fits:
                left[kept] = one
                kept += 1
                continue
            batch[one] = number
            for at in range(during_start[one], during_start[one + 1]):
                space[during_row[at]] -= during[at]
            for at in range(after_start[one], after_start[one + 1]):
                free[after_row[at]] -= after[at]
        count = kept
        if count == 0:
            return batch, number + 1
    return batch, -1


def fill(needs: Needs, order: Ints, wanted: Ints | None = None, most: int = 10_000) -> Ints | None:
    """Return the batch of each class, from 0, by first fit in an order; None where `most` are too few."""
    first = np.zeros(len(needs.classes), dtype=np.int64) if wanted is None else wanted
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
        min(most, len(needs.classes) + 1),
    )
    return None if count < 0 else batch


def fill_greedily(needs: Needs) -> Ints | None:
    """Return the batch of each class by first fit, those first that free the scarcest tables most.

    None where classes are left that fit in no batch, such as two that wait for each other's space.
    """
    # what all moves need of a resource at once, over what is free
    wanted = np.asarray(needs.during.sum(axis=1)).ravel()
    price = np.maximum(wanted / np.maximum(needs.free, 0.5) - 1, 0.0)
    taken = price @ needs.during
    freed = -(price @ needs.after)
    best: Ints | None = None
    for key in (taken - freed, taken, -taken, np.zeros(len(taken))):
        found = fill(needs, np.argsort(key, kind="stable").astype(np.int64))
        if found is not None and (best is None or found.max(initial=-1) < best.max(initial=-1)):
            best = found
    return best
