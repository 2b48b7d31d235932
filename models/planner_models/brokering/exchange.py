"""What brokers and CDNs tell each other in a round of the decision protocol.

A message is what one tells another in one step: Share, Announce or Accept. Its rows are as the paper
has them; designs without Share name the location where it has a share's id.

source  Mukerjee 2018, 3.4.1 (steps), 3.6.1 (formats)
"""

from __future__ import annotations

from typing import Final

from planner.exchange import FIGURE, NAME, NONE, Exchange
from planner_models.brokering.assignment import Assignment, Told
from planner_models.brokering.problem import Brokering

SHARE: Final = 4 * NAME + 2 * FIGURE  # share_id, location, isp, content_id, data_size, client_count
OFFER: Final = 2 * NAME  # cluster_id, share_id or location; then figures
ALL_FIGURES: Final = 3  # performance_estimate, capacity, price


def everything(problem: Brokering, plan: Assignment) -> Exchange:
    """Every CDN tells the broker all of its clusters and their performance for all locations; Accept."""
    cdns, clusters = len(problem.cdn_names), len(problem.clusters)
    costs = clusters * (NAME + 2 * FIGURE)  # cluster_id, cost, capacity
    performance = len(problem.locations) * clusters * (OFFER + FIGURE)
    used = len(plan.assignments[["location", "cluster"]].drop_duplicates())
    accepts = used * (OFFER + ALL_FIGURES * FIGURE)
    return Exchange(messages=2 * cdns, bytes=costs + performance + accepts)


def rounds(problem: Brokering, plan: Assignment) -> Exchange:
    """Share where the design shares, Announce where it announces, then Accept."""
    told = _told(plan)
    if not told.figures:
        return NONE
    pairs = len(problem.cdn_names) * told.times
    shares = told.shares * SHARE * len(problem.cdn_names)  # all CDNs are told of all clients
    offers = (told.offers + told.accepted) * (OFFER + told.figures * FIGURE)
    return Exchange(messages=pairs * (3 if told.shares else 2), bytes=shares + offers)


def transactions(problem: Brokering, plan: Assignment) -> Exchange:
    """Share and Announce; then until no CDN refuses: every broker asks every CDN to commit, and is answered.

    An answer names the clusters that are refused and what the broker is promised there instead. What
    is asked for in a round is counted as large as in the last.
    """
    told, once = _told(plan), rounds(problem, plan)
    count, refused = 1, 0
    if plan.rounds is not None and len(plan.rounds):
        count, refused = len(plan.rounds), int(plan.rounds["overbooked"].sum())
    asked = told.accepted * (OFFER + told.figures * FIGURE)
    pairs = len(problem.cdn_names) * told.times
    # what is asked in the last round is the Accept of `once`
    answers = refused * told.times * (NAME + FIGURE)
    return once + Exchange(messages=pairs * (2 * count - 1), bytes=asked * (count - 1) + answers)


def _told(plan: Assignment) -> Told:
    if plan.told is None:
        raise ValueError("the plan does not say what was told for it")
    return plan.told
