"""Designs that stamp packets with a version: install, flip the ingresses, let old packets leave, delete."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, NamedTuple

import numpy as np
from pydantic import Field

from planner.arrays import Bools, Ints
from planner.contract.design import Decision
from planner.errors import InputError
from planner.options import Options
from planner_models.updates.designs.decision import decide
from planner_models.updates.plan.plan import Step, UpdatePlan
from planner_models.updates.plan.replay import ADD, FLIP, REMOVE, SWAP
from planner_models.updates.problem.problem import Update

CONSISTENT = ("loop", "black_hole", "waypoint", "mixture")
"""Guarantees that hold where each packet meets one configuration only."""

DrainS = Annotated[
    float | None,
    Field(
        ge=0,
        allow_inf_nan=False,
        description="time until old packets have left, s; default: the longest path's delay",
    ),
]


class Phases(NamedTuple):
    """Changes of some classes by phase, as slots: rules to add, ingresses to flip, rules to remove."""

    add: Ints
    flip: Ints
    remove: Ints


def drain_time_s(problem: Update, classes: Ints | Bools, drain_s: float | None = None) -> float:
    """Return the time until packets of some classes have left, s; raise InputError for a shorter one."""
    longest = float(problem.path_ms[classes].max(initial=0.0)) * 1e-3
    if drain_s is None:
        return longest
    if drain_s < longest * (1 - 1e-9):
        raise InputError(
            f"drain_s is {drain_s:g}, must be at least {longest:g}, the delay of the longest path: old "
            "packets would meet deleted rules"
        )
    return drain_s


def phases(problem: Update, classes: Ints, *, every: bool = False) -> Phases:
    """Return the changes of a two-phase update of classes.

    At a class's only ingress the flip itself puts the new rule in the place of the old one. A rule that is
    the same before and after stays, as rules of `now` do not test versions, unless `every` rule is
    installed anew.

    source  Foster et al. 2013, IV.A
    """
    slots = problem.slots
    slots_of = slots.of(classes)
    only = problem.ingress[slots.owner[slots_of]] == slots.switch[slots_of]
    has_now, has_next = slots.now.has_rule()[slots_of], slots.next.has_rule()[slots_of]
    inner = ~only & (~slots.same[slots_of] | every)
    return Phases(
        add=slots_of[has_next & inner],
        flip=slots_of[problem.entering[slots_of]],
        remove=slots_of[has_now & inner],
    )


def steps_of(
    problem: Update, batches: Sequence[Ints], drain_s: float | None = None, *, every: bool = False
) -> list[Step]:
    """Return the steps of two-phase updates of batches of classes, one after another."""
    steps = []
    for classes in batches:
        rule_phases = phases(problem, classes, every=every)
        wait_s = drain_time_s(problem, classes, drain_s)
        steps += [
            Step("install", rule_phases.add, ADD),
            Step("flip", rule_phases.flip, FLIP, wait_s),
            Step("delete", rule_phases.remove, REMOVE),
        ]
    return steps


def update_once(problem: Update, *, options: Options = Options()) -> Decision[UpdatePlan]:
    """Change all rules at once, in any order."""
    slots = problem.slots
    has_now, has_next = slots.now.has_rule(), slots.next.has_rule()
    changed = ~slots.same
    slot = np.flatnonzero(changed)
    action = np.where(has_now & has_next, SWAP, np.where(has_next, ADD, REMOVE))[slot]
    return decide(problem, [Step("swap", slot, action)], claims=(), options=options)


def update_all(
    problem: Update, *, drain_s: DrainS = None, options: Options = Options()
) -> Decision[UpdatePlan]:
    """Install all rules of the next configuration under a new version, flip the ingresses, drain, delete.

    source  Foster et al. 2013, IV.A
    """
    classes = np.arange(len(problem.classes))
    steps = steps_of(problem, [classes], drain_s, every=True)
    return decide(problem, steps, claims=CONSISTENT, options=options)


def update_changed(
    problem: Update, *, drain_s: DrainS = None, options: Options = Options()
) -> Decision[UpdatePlan]:
    """Update only the classes and the rules that change, all in two phases and at once.

    source  Foster et al. 2013, IV.A: "the run-time system can perform the update on a subset"
    """
    classes = np.flatnonzero(problem.slots.changes)
    return decide(problem, steps_of(problem, [classes], drain_s), claims=CONSISTENT, options=options)


def update_few(
    problem: Update, *, drain_s: DrainS = None, options: Options = Options()
) -> Decision[UpdatePlan]:
    """Update classes without versions where one change moves all packets, the others in two phases.

    New rules go first to switches that no packet reaches. Then one swap at the only switch that both paths
    share and where they part moves a class; it also starts a new class and ends an old one. Only classes that
    part at several switches need versions.

    source  Foster et al. 2013, IV.A: "extension", "retraction", "a subset of the switches and rules"
    """
    slots = problem.slots
    has_now, has_next = slots.now.has_rule(), slots.next.has_rule()
    moved = has_now & has_next & ~slots.same
    swaps = np.bincount(slots.owner[moved], minlength=len(problem.classes))
    single = problem.ingress >= 0
    is_swap = slots.changes & single & problem.enters_now & problem.enters_next & (swaps == 1)
    is_swap &= _stays_unreached(problem)
    is_ended = slots.changes & single & (problem.enters_now != problem.enters_next)
    other = slots.changes & ~is_swap & ~is_ended
    entrance = problem.entering & is_ended[slots.owner]
    rule_phases = phases(problem, np.flatnonzero(other))
    fresh = np.flatnonzero((is_swap | is_ended)[slots.owner] & has_next & ~has_now & ~entrance)
    stale = np.flatnonzero((is_swap | is_ended)[slots.owner] & has_now & ~has_next & ~entrance)
    turn = np.flatnonzero(moved & is_swap[slots.owner])
    door = np.flatnonzero(entrance & (has_now | has_next))
    turns = np.concatenate([turn, door, rule_phases.flip])
    actions = np.concatenate(
        [
            np.full(len(turn), SWAP),
            np.where(has_next[door], ADD, REMOVE),
            np.full(len(rule_phases.flip), FLIP),
        ]
    )
    steps = [
        Step("install", np.concatenate([fresh, rule_phases.add]), ADD),
        Step("flip", turns, actions, drain_time_s(problem, slots.changes, drain_s)),
        Step("delete", np.concatenate([stale, rule_phases.remove]), REMOVE),
    ]
    return decide(problem, steps, claims=CONSISTENT, options=options)


def _stays_unreached(problem: Update) -> Bools:
    """Return the (C,) classes with all rules on the paths of their packets.

    A rule of `now` that no packet uses could lead to a switch that gets a new rule, so that a packet of the
    new path would use both; rules of `next` likewise. All rules of such a class must be on its paths.
    """
    slots = problem.slots
    fine: Bools = np.ones(len(problem.classes), dtype=bool)
    for configuration, share in zip((slots.now, slots.next), problem.hop_shares, strict=True):
        counts = np.diff(configuration.start)
        unused = np.repeat(slots.owner, counts)[share <= 0]
        fine[unused] = False
    return fine
