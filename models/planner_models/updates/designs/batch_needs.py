"""Needs of changed classes on tables and links, during their batch and after it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from planner.arrays import Floats, Ints
from planner_models.updates.designs.two_phase import phases
from planner_models.updates.problem.problem import Update


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


def find_needs(problem: Update, *, links: bool = False) -> Needs:
    """Return what changed classes need of tables, and of links where `links`; unlimited ones are left out."""
    slots = problem.slots
    classes = np.flatnonzero(slots.changes)
    column = np.full(len(problem.classes), -1)
    column[classes] = np.arange(len(classes))
    one = phases(problem, classes)
    mine = slots.of(classes)
    only = problem.ingress[slots.owner[mine]] == slots.switch[mine]
    door = mine[only]
    has_now, has_next = slots.now.has_rule(), slots.next.has_rule()
    # at an only ingress the new rule takes the place of the old one
    begins = door[has_next[door] & ~has_now[door]]
    ends = door[has_now[door] & ~has_next[door]]
    parts = [
        (one.add, slots.rules[one.add], slots.rules[one.add]),
        (begins, slots.rules[begins], slots.rules[begins]),
        (one.remove, 0 * slots.rules[one.remove], -slots.rules[one.remove]),
        (ends, 0 * slots.rules[ends], -slots.rules[ends]),
    ]
    slot = np.concatenate([part[0] for part in parts])
    shape = (len(problem.switches), len(classes))
    where = slots.switch[slot], column[slots.owner[slot]]
    during, after = (
        sp.csc_array((np.concatenate([part[which] for part in parts]).astype(float), where), shape=shape)
        for which in (1, 2)
    )
    during.eliminate_zeros()
    after.eliminate_zeros()
    free = problem.rule_capacity - problem.rules_now
    kept = np.flatnonzero(np.isfinite(free))
    needs = Needs(classes, during[kept], after[kept], free[kept])
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
    kept = np.flatnonzero(np.isfinite(free))
    slack = 1e-9 * problem.load_limit_mbps[kept]
    rise = sp.csc_array((after - before).maximum(0))
    return Needs(classes, rise[kept], sp.csc_array(after - before)[kept], free[kept] + slack)
