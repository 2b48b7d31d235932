"""Designs that change rules in place, round by round: no switch holds two rules of a class."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

import numpy as np

from planner.arrays import Ints
from planner.contract.design import Decision
from planner.options import Options
from planner_models.updates.designs.decision import decide
from planner_models.updates.designs.loop_free_order import MOST_TRIES, find_rounds, order_by_neighbours
from planner_models.updates.designs.two_phase import drain_time_s
from planner_models.updates.plan.plan import Step, UpdatePlan, as_network
from planner_models.updates.plan.replay import ADD, REMOVE, SWAP
from planner_models.updates.problem.problem import Update

LOOP_FREE: Final = ("loop", "black_hole")
SCOPE: Final = "changes in place"


def update_in_order(problem: Update, *, options: Options = Options()) -> Decision[UpdatePlan]:
    """Change rules in place in greedy rounds, so that no mixture within a round has a loop or loses packets.

    The bound counts waits that are forced for one class; it holds for changes in place.
    """
    net = as_network(problem)
    found = find_rounds(net, problem.slots.changes)
    return _decide(problem, found.of_slot, int(found.least.max(initial=0)), options)


def update_in_few_rounds(problem: Update, *, options: Options = Options()) -> Decision[UpdatePlan]:
    """Change rules in place in the fewest rounds: greedily in several orders, and by search where small."""
    from planner_models.updates.designs.fewest_rounds import improve  # compiled only for this design

    net = as_network(problem)
    found = improve(net, find_rounds(net, problem.slots.changes, tries=MOST_TRIES))
    return _decide(problem, found.of_slot, int(found.least.max(initial=0)), options)


def update_by_neighbours(problem: Update, *, options: Options = Options()) -> Decision[UpdatePlan]:
    """Change each switch once its new next hops say that they are ready: no control plane decides for all."""
    rounds = order_by_neighbours(as_network(problem), np.flatnonzero(problem.slots.changes))
    return decide(
        problem, steps_of_rounds(problem, rounds), claims=LOOP_FREE, options=options, metric="rounds"
    )


def steps_of_rounds(problem: Update, rounds: Ints) -> list[Step]:
    """Return the steps of (N,) rounds, 0 for slots that stay."""
    slots = problem.slots
    has_now, has_next = slots.now.has_rule(), slots.next.has_rule()
    action = np.where(has_now & has_next, SWAP, np.where(has_next, ADD, REMOVE))
    wait_s = drain_time_s(problem, slots.changes)
    steps = []
    order = np.argsort(rounds, kind="stable")
    edges = np.searchsorted(rounds[order], np.arange(1, int(rounds.max(initial=0)) + 2))
    for first, last in pairwise(edges.tolist()):
        mine = order[first:last]
        own = action[mine]
        kind = "swap" if (own == SWAP).any() else "install" if (own == ADD).all() else "delete"
        steps.append(Step(kind, mine, own, 0.0 if (own == ADD).all() else wait_s))
    return steps


def _decide(problem: Update, rounds: Ints, least: int, options: Options) -> Decision[UpdatePlan]:
    return decide(
        problem,
        steps_of_rounds(problem, rounds),
        claims=LOOP_FREE,
        options=options,
        metric="rounds",
        bound=float(least),
        scope=SCOPE,
    )
