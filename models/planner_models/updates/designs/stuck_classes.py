"""Classes that fit in no batch, whatever the order, and how much more space would be enough."""

from __future__ import annotations

from typing import Final

import numpy as np
import scipy.sparse as sp

from planner.arrays import Floats, Ints
from planner_models.updates.designs.batch_needs import Needs

MOST_RAISED: Final = 50  # classes for which space is added one after another


def find_stuck(needs: Needs) -> Ints:
    """Return classes that can be in no batch, in whatever order and number: none of them, or all that wait.

    A class that frees space is taken to do so at once, and one that takes some to take none: a class that
    does not fit even then never moves. The same holds for the way back, from after the update, so that
    classes of which none can be the last one to move never do.
    """
    return np.union1d(_wait(needs), _wait(_reverse(needs)))


def _reverse(needs: Needs) -> Needs:
    """Return what classes need on the way back."""
    return Needs(
        needs.classes, needs.during - needs.after, -needs.after, needs.free - needs.after.sum(axis=1)
    )


def _wait(needs: Needs) -> Ints:
    """Return the classes that do not fit after all others have freed what they can, one after another."""
    during, after = sp.coo_array(needs.during), sp.coo_array(needs.after)
    column, row = during.col, during.row
    free = needs.free.copy()
    is_moved = np.zeros(len(needs.classes), dtype=bool)
    while True:
        waits = np.bincount(column[during.data > free[row] + 1e-9], minlength=len(is_moved)) > 0
        moves = ~waits & ~is_moved
        if not moves.any():
            return np.flatnonzero(~is_moved)
        is_moved |= moves
        frees = moves[after.col] & (after.data < 0)
        np.subtract.at(free, after.row[frees], after.data[frees])


def find_shortage(needs: Needs) -> Floats:
    """Return by how much resources must be larger so that no class is stuck, (resources,); not the least.

    Class by class, the one that lacks the least first; after `MOST_RAISED` classes, all that are stuck.
    """
    more = np.zeros(len(needs.free))
    for raised in range(MOST_RAISED + 1):
        larger = needs._replace(free=needs.free + more)
        waits, ends = _wait(larger), _wait(_reverse(larger))
        if not len(waits) and not len(ends):
            break
        lack = _find_lack(larger, waits) if len(waits) else _find_lack(_reverse(larger), ends)
        total = np.asarray(lack.sum(axis=0)).ravel()
        chosen = np.arange(len(total)) if raised == MOST_RAISED else np.array([total.argmin()])
        more += lack[:, chosen].max(axis=1).toarray().ravel()
    return more


def _find_lack(needs: Needs, waits: Ints) -> sp.csc_array:
    """Return what each of some classes lacks of each resource after all others have freed what they can."""
    others = np.setdiff1d(np.arange(len(needs.classes)), waits)
    freed = np.asarray(sp.csc_array(needs.after[:, others]).minimum(0).sum(axis=1)).ravel()
    lack = sp.coo_array(needs.during[:, waits])
    data = np.maximum(lack.data - (needs.free - freed)[lack.row], 0.0)
    return sp.csc_array((data, (lack.row, lack.col)), shape=lack.shape)
