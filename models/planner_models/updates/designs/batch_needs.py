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
        """(R,) unit of excess: the free amount, at least 1."""
        return np.maximum(self.free, 1.0)


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
