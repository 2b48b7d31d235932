"""Lagrangian relaxation of the choice of groups with entries: for problems too large for branch and bound.

A price for each entry of a full table leaves a choice by group: it has entries where it saves more than they
cost. The value at any prices bounds every choice. Subgradient steps lower it; groups in the order of what is
left of their savings fill the tables.

source  Lagrangian relaxation of the multidimensional knapsack problem: Fisher 1981
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from planner.arrays import Bools, Floats
from planner.search.ascent import Ascent
from planner.search.deadline import NEVER, Deadline
from planner.search.tolerances import ROUNDING
from planner_models.multicast.plan.table_limits import TableLimits, admit_in_order

MAX_STEPS: Final = 300
FIRST_STEP: Final = 1.0  # of the length that would close the gap
LAST_STEP: Final = 0.02
STEPS_WITHOUT_GAIN: Final = 8  # then steps are half as long
PLAN_PERIOD: Final = 15  # steps from one choice to the next


class Selection(NamedTuple):
    """Groups with entries, what they save, and what no choice saves more than, Mbit/s."""

    kept: Bools
    saved_mbps: float
    bound_mbps: float


def select_by_prices(
    saved_mbps: Floats, limits: TableLimits, *, gap_mbps: float, deadline: Deadline = NEVER
) -> Selection:
    """Return groups that save much, within the limits, and a bound.

    saved_mbps  (G,) what each group saves
    gap_mbps    difference to the bound at which the search ends
    deadline    at which it ends
    """
    uses, free = limits.uses.astype(float), limits.free.astype(float)
    of_group = uses.T.tocsr()
    refused = np.asarray(of_group @ (free < 1) > 0)
    value = np.where(refused, 0.0, saved_mbps)
    price = _first_prices(value, limits)
    best, kept = -1.0, np.zeros(len(value), dtype=bool)
    descent = Ascent(price, factor=FIRST_STEP, stall_limit=STEPS_WITHOUT_GAIN)  # of the bound from above
    for step in range(MAX_STEPS):
        left = value - of_group @ price
        chosen = left > 0
        reached = float(left[chosen].sum() + price @ free) * (1 + ROUNDING)
        if step % PLAN_PERIOD == 0:
            admitted = admit_in_order(limits, order=np.argsort(-left, kind="stable")) & ~refused
            if (found := float(value[admitted].sum())) > best:
                best, kept = found, admitted
        if descent.tell(-reached, price):
            price = descent.go_back()
            continue
        is_late = deadline.is_over
        if -descent.best - best <= gap_mbps or descent.factor < LAST_STEP or is_late:
            break
        slope = uses @ chosen - free
        slope = np.where((slope > 0) | (price > 0), slope, 0.0)
        norm = float(slope @ slope)
        if norm == 0:
            break
        price = np.maximum(price + descent.length(reached - best, norm) * slope, 0.0)
    return Selection(kept, best, max(-descent.best, best))


def _first_prices(value: Floats, limits: TableLimits) -> Floats:
    """Return prices at which each table by itself holds the groups that save the most for each entry."""
    uses = limits.uses.tocsr()
    each = value / np.maximum(np.bincount(uses.indices, minlength=len(value)), 1)
    price = np.zeros(len(limits.free))
    for row, free in enumerate(limits.free.tolist()):
        here = each[uses.indices[uses.indptr[row] : uses.indptr[row + 1]]]
        if len(here) > free > 0:
            price[row] = np.partition(here, len(here) - free - 1)[len(here) - free - 1]
    return price
