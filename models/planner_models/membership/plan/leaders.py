"""Failures of leaders in the long run: a Markov chain of who leads, as no member hands its role back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from planner.arrays import Bools, Floats, Ints
from planner_models.membership.plan.evaluation import Downtime, commit_time_ms, detection_of, evaluate
from planner_models.membership.plan.plan import AGREEMENT_RULES, QUORUM_RULES, Placement
from planner_models.membership.problem.problem import Membership, Service
from planner_models.membership.problem.tree import SiteTree

SQUARINGS: Final = 60
"""Doublings of the time after which shares are those of the long run."""


@dataclass(frozen=True, kw_only=True, eq=False)
class LongRun:
    """Who leads in the long run, and how often leaders fail.

    leaf       (N,) site of each member, in the order in which they take over
    share      (N,) share of time in which each member leads
    failovers  failures of leaders in a month after which another member leads
    covered    those of them that leave a quorum, so that detection and failover are all that is lost
    """

    leaf: Ints
    share: Floats
    failovers: float
    covered: float


def succession(problem: Membership, placement: Placement) -> Ints:
    """Return the site of each member that may lead, (N,), in order: the nearest to a quorum takes over."""
    members = placement.members
    may_lead = [site for site in members if not problem.is_witness[site]]
    times = {site: commit_time_ms(problem, members, site, placement.quorum) for site in may_lead}
    sites = sorted((site for site in may_lead if members[site]), key=lambda site: (times[site], site))
    return np.repeat(np.array(sites, dtype=np.int64), [members[site] for site in sites])


def follow_failures(problem: Membership, placement: Placement) -> LongRun:
    """Return the long run of leaders: each failure takes the role to the first member in order that is up.

    One failure at a time; those that no member survives change nothing.
    """
    leaf = succession(problem, placement)
    count = len(leaf)
    voters = [
        site for site, number in placement.members.items() if problem.is_witness[site] for _ in range(number)
    ]
    every = np.concatenate([leaf, np.array(voters, dtype=np.int64)])
    moves, covered = np.zeros((count, count)), np.zeros(count)
    needed = placement.quorum if placement.rule in QUORUM_RULES else 1
    for member in range(count if placement.rule not in AGREEMENT_RULES else 0):
        for rate, is_down in _failures_of(problem.tree, every, member):
            alive = np.flatnonzero(~is_down)
            if (~is_down[:count]).any():
                moves[member, alive[0]] += rate
                covered[member] += rate * (len(alive) >= needed)
    share = _stationary(moves, int(np.flatnonzero(leaf == placement.leader)[0]))
    return LongRun(
        leaf=leaf, share=share, failovers=float(share @ moves.sum(axis=1)), covered=float(share @ covered)
    )


def _failures_of(tree: SiteTree, leaf: Ints, member: int) -> Iterator[tuple[float, Bools]]:
    """Yield the rate of each failure that takes a member down, and the members, (N,), that it takes down."""
    paths = [set(tree.paths[site]) for site in leaf.tolist()]
    for site in tree.paths[int(leaf[member])]:
        if tree.is_host[site]:
            yield float(tree.rate[site]), np.arange(len(leaf)) == member
        else:
            yield float(tree.rate[site]), np.array([site in path for path in paths])
    for risk in range(len(tree.risk_rate)):
        struck = set(np.flatnonzero(tree.risk_sites[risk]).tolist())
        is_down = np.array([bool(struck & path) for path in paths])
        if is_down[member]:
            yield float(tree.risk_rate[risk]), is_down


def _stationary(moves: Floats, first: int) -> Floats:
    """Return the share of time in each state of a Markov chain with these rates, (N,), from a first state.

    A chain that ends in states without failures stays where it is then: the mean over a very long time.
    """
    count = len(moves)
    rates = moves - np.diag(moves.sum(axis=1))
    largest = float(np.abs(rates).max(initial=0.0))
    start = np.zeros(count)
    start[first] = 1.0
    if largest == 0:
        return start
    step = np.eye(count) + rates / (2 * largest)
    for _ in range(SQUARINGS):
        step = step @ step
        step /= step.sum(axis=1, keepdims=True)
    return np.asarray(start @ step)


def evaluate_long_run(problem: Membership, service: Service, placement: Placement) -> Downtime:
    """Return the seconds in a month by cause where whoever took over leads on until it fails itself.

    `evaluate` has the failures of the first leader alone: those of members to which the role is handed back.
    """
    first = evaluate(problem, service, placement)
    covered = follow_failures(problem, placement).covered
    detection, failover = covered * detection_of(problem, placement), covered * service.failover_s
    return replace(first, detection=detection, failover=failover).within_a_month()
