"""Signalling of brokers and CDNs in the rounds of the decision protocol: messages and bytes.

A message is sent by one party to another in one step: Share, Announce or Accept. Its rows are as the paper
has them; designs without Share name the location in place of a share's id.

source  Mukerjee 2018, 3.4.1 (steps), 3.6.1 (formats)
"""

from __future__ import annotations

from typing import Final

from planner.contract.signalling import FIGURE, NAME, NONE, Signalling
from planner_models.brokering.plan.plan import Assignment, MessageCounts
from planner_models.brokering.problem.problem import Brokering

SHARE_BYTES: Final = 4 * NAME + 2 * FIGURE  # share_id, location, isp, content_id, data_size, client_count
OFFER_BYTES: Final = 2 * NAME  # cluster_id, share_id or location; then figures
MAX_FIGURES: Final = 3  # performance_estimate, capacity, price


def count_full_information(problem: Brokering, plan: Assignment) -> Signalling:
    """Count all clusters and their performance for all locations, sent by CDNs; and Accept."""
    cdns, clusters = len(problem.cdn_names), len(problem.clusters)
    costs = clusters * (NAME + 2 * FIGURE)  # cluster_id, cost, capacity
    performance = len(problem.locations) * clusters * (OFFER_BYTES + FIGURE)
    used = len(plan.assignments[["location", "cluster"]].drop_duplicates())
    accepts = used * (OFFER_BYTES + MAX_FIGURES * FIGURE)
    return Signalling(messages=2 * cdns, bytes=costs + performance + accepts)


def count_rounds(problem: Brokering, plan: Assignment) -> Signalling:
    """Count Share where the design shares clients, Announce where it announces, and Accept."""
    counts = _message_counts(plan)
    if not counts.figures:
        return NONE
    pairs = len(problem.cdn_names) * counts.rounds
    shares = counts.shares * SHARE_BYTES * len(problem.cdn_names)  # of all clients, to every CDN
    offers = (counts.offers + counts.accepted) * (OFFER_BYTES + counts.figures * FIGURE)
    return Signalling(messages=pairs * (3 if counts.shares else 2), bytes=shares + offers)


def count_transactions(problem: Brokering, plan: Assignment) -> Signalling:
    """Count Share and Announce; then in each round, every broker's request to every CDN and its answer.

    An answer names the refused clusters and the capacity promised there instead. The requests of each round
    are counted as large as those of the last.
    """
    counts, once = _message_counts(plan), count_rounds(problem, plan)
    rounds, refused = 1, 0
    if plan.rounds is not None and len(plan.rounds):
        rounds, refused = len(plan.rounds), int(plan.rounds["overbooked"].sum())
    request = counts.accepted * (OFFER_BYTES + counts.figures * FIGURE)
    pairs = len(problem.cdn_names) * counts.rounds
    # the requests of the last round are the Accept of `once`
    answers = refused * counts.rounds * (NAME + FIGURE)
    return once + Signalling(messages=pairs * (2 * rounds - 1), bytes=request * (rounds - 1) + answers)


def _message_counts(plan: Assignment) -> MessageCounts:
    if plan.message_counts is None:
        raise ValueError("the plan has no counts of messages")
    return plan.message_counts
