"""Realization of a pool of masks: each miss installs an entry with a mask of the pool."""

from __future__ import annotations

import numpy as np

from planner_models.flowtables.plan.bit_index import make_bit_index
from planner_models.flowtables.plan.classification import classify
from planner_models.flowtables.plan.lookup import find_all, install_all, make_table
from planner_models.flowtables.plan.plan import Cache, make_plan, read_plan
from planner_models.flowtables.problem.problem import FlowTables

HEAVY = 1e6  # of a bit of the mask that is taken last


def realize(truth: FlowTables, observed: FlowTables, plan: Cache) -> Cache:
    """Return the cache after all true connections, from the planned masks.

    A connection without an entry gets one with a mask of the pool that keeps its action, the one with the
    most connections for an entry in the plan; where none does, one that matches all bits that rules match.
    """
    if truth is observed:
        return plan
    content, service = read_plan(observed, plan)
    headers, masks = truth.headers, content.masks
    table = make_table(headers.shape[1], len(headers), len(masks) + 1)
    table.masks[: len(masks)] = masks
    table.counts[1] = len(masks)
    entries_of = np.bincount(content.mask_of, minlength=len(masks))
    hit_masks = service.searched[service.entry >= 0] - 1
    table.weight[: len(masks)] = entries_of / np.maximum(np.bincount(hit_masks, minlength=len(masks)), 0.5)
    used_masks = np.broadcast_to(truth.used_mask, headers.shape).copy()
    install_all(
        table,
        headers,
        used_masks,
        truth.entries,
        make_bit_index(truth),
        np.full(64 * headers.shape[1], HEAVY),
        True,
    )
    entries, used = int(table.counts[0]), int(table.counts[1])
    value = table.value[:entries].copy()
    action = [truth.actions[number] for number in classify(value, truth.entries).tolist()]
    assert (np.asarray(find_all(table, headers)[0]) >= 0).all()
    return make_plan(truth, value, table.mask_of[:entries].copy(), table.masks[:used].copy(), action)
