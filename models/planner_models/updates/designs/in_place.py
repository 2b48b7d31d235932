"""Designs that change rules in place, round by round: no switch holds two rules of a class."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

import numpy as np

from planner.arrays import Bools, Ints
from planner.contract.design import Decision
from planner.options import Options
from planner.search.deadline import Deadline
from planner_models.updates.designs.decision import Evidence, decide
from planner_models.updates.designs.fewest_rounds import improve, improve_guaranteed
from planner_models.updates.designs.loop_free_order import (
    MOST_TRIES,
    Rounds,
    find_rounds,
    order_by_neighbours,
)
from planner_models.updates.designs.two_phase import drain_time_s
from planner_models.updates.plan.plan import Step, UpdatePlan, as_network
from planner_models.updates.plan.replay import ADD, REMOVE, SWAP
from planner_models.updates.problem.problem import Update
from planner_models.updates.problem.schema import GUARANTEES, NO_GUARANTEE, NO_LOOP

LOOP_FREE: Final = ("loop", "black_hole")
SCOPE: Final = "changes in place"


def update_in_order(problem: Update, *, options: Options = Options()) -> Decision[UpdatePlan]:
    """Change rules in place in greedy rounds, so that no mixture within a round breaks a class's guarantee.

    Classes without a guarantee change in the first round, those that may lose packets keep free of loops, and
    the others lose none. Waypoints and paths without rules of both are kept only by chance. The bound counts
    waits that are forced for one class; it holds for changes in place. Once a time limit is over, other
    classes change as in `update_by_neighbours`, and their waits do not count.
    """
    deadline = Deadline.of(options)
    rounds = find_rounds(
        as_network(problem), _ordered(problem), may_lose=_may_lose(problem), deadline=deadline
    )
    is_cut = deadline.is_over
    return _decide(problem, _order(problem, rounds), options, is_cut=is_cut)


def update_in_few_rounds(problem: Update, *, options: Options = Options()) -> Decision[UpdatePlan]:
    """Change rules in place in the fewest rounds: greedily in several orders, and by search where small.

    The search of small classes also keeps waypoints and paths without rules of both, where rounds exist that
    do. Once a time limit is over, other classes keep their greedy rounds.
    """
    net, may_lose, deadline = as_network(problem), _may_lose(problem), Deadline.of(options)
    greedy = find_rounds(net, _ordered(problem), may_lose=may_lose, tries=MOST_TRIES, deadline=deadline)
    improved, is_cut = improve(net, greedy, may_lose, deadline)
    rounds, is_late = improve_guaranteed(problem, _order(problem, improved), deadline)
    return _decide(problem, rounds, options, is_cut=is_cut or is_late)


def update_by_neighbours(problem: Update, *, options: Options = Options()) -> Decision[UpdatePlan]:
    """Change each switch once its new next hops say that they are ready: no control plane decides for all.

    A rule that ends does so once no switch sends to it any more.
    """
    rounds = order_by_neighbours(as_network(problem), np.flatnonzero(problem.slots.changes))
    evidence = Evidence(metric="rounds")
    return decide(
        problem, steps_of_rounds(problem, rounds), claims=LOOP_FREE, options=options, evidence=evidence
    )


def _is_free(problem: Update) -> Bools:
    """Return the (C,) classes without a guarantee, with rules that may change at any time."""
    free: Bools = problem.guarantee == GUARANTEES.index(NO_GUARANTEE)
    return free


def _ordered(problem: Update) -> Bools:
    """Return the (C,) classes with changes that need an order."""
    return problem.slots.changes & ~_is_free(problem)


def _may_lose(problem: Update) -> Bools:
    """Return the (C,) classes with packets that may be lost during the update, but not loop."""
    may_lose: Bools = problem.guarantee == GUARANTEES.index(NO_LOOP)
    return may_lose


def _order(problem: Update, rounds: Rounds) -> Rounds:
    """Return the rounds of all classes, those without a guarantee in the first round."""
    slots = problem.slots
    free = _is_free(problem) & slots.changes
    return Rounds(
        np.where(free[slots.owner] & ~slots.same, 1, rounds.of_slot),
        np.where(free, 1, rounds.most),
        np.where(free, 1, rounds.least),
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
        slots_of = order[first:last]
        actions = action[slots_of]
        kind = "swap" if (actions == SWAP).any() else "install" if (actions == ADD).all() else "delete"
        steps.append(Step(kind, slots_of, actions, 0.0 if (actions == ADD).all() else wait_s))
    return steps


def _decide(
    problem: Update, rounds: Rounds, options: Options, *, is_cut: bool = False
) -> Decision[UpdatePlan]:
    return decide(
        problem,
        steps_of_rounds(problem, rounds.of_slot),
        claims=LOOP_FREE,
        options=options,
        evidence=Evidence(
            metric="rounds", bound=float(rounds.least.max(initial=0)), scope=SCOPE, is_cut=is_cut
        ),
    )
