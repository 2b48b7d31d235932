"""False bids: CDNs that claim better scores than clients then measure, and a broker that remembers it.

A false bid costs its CDN nothing in the round in which it wins. The broker compares what the clients of
each CDN measure with what its bids claimed, and serves by the bids of CDNs with a bad reputation only
clients that no other bids can serve.

source  Mukerjee 2018, 3.4.2 (Fraud): CDNs that consistently send fraudulent bids are marked by a
        reputation system, and their bids are handled at lower priority. The thesis has no rule; the
        measure, the number of rounds and the two steps of the decision are readings
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from planner.arrays import Bools, Floats
from planner.contract.design import Decision
from planner.contract.notes import add_note
from planner.errors import InputError, did_you_mean
from planner.formatting import few
from planner.options import Options
from planner.search.deadline import Deadline
from planner.search.judged import undecided
from planner.search.tolerances import NEGLIGIBLE
from planner_models.brokering.designs.broker import assignment
from planner_models.brokering.designs.several_brokers import LEAST_TIME_S, count_shed, merge_plans
from planner_models.brokering.plan import billing
from planner_models.brokering.plan.check import read_assignment
from planner_models.brokering.plan.plan import Assignment, MessageCounts, locate_rows
from planner_models.brokering.problem.problem import Brokering

FalseBidders = Annotated[
    tuple[str, ...], Field(description="CDNs whose bids claim better scores than their clients measure")
]
Claim = Annotated[
    float, Field(gt=0, le=1, description="score that a false bid claims, as a share of the true one")
]
Handling = Annotated[
    Literal["priority", "trust"],
    Field(
        description="priority: bids of a CDN with a bad reputation serve only whom no others can; trust: the "
        "broker believes all bids"
    ),
]
Tolerance = Annotated[
    float, Field(ge=0, description="relative excess of measured over claimed scores that is no fault")
]
Strikes = Annotated[int, Field(ge=1, description="rounds with a fault after which a reputation is bad")]
MarketRounds = Annotated[int, Field(ge=1, description="rounds of the market; the plan is that of the last")]


def assign(
    problem: Brokering,
    *,
    false_bidders: FalseBidders = (),
    claim: Claim = 0.5,
    handling: Handling = "priority",
    tolerance: Tolerance = 0.1,
    strikes: Strikes = 2,
    rounds: MarketRounds = 3,
    options: Options = Options(),
    previous: Decision[Assignment] | None = None,
) -> Decision[Assignment]:
    """Assign clients at the bids of CDNs of which some are false, in rounds in which reputations fall.

    After each round the clients of each CDN measure their scores. A CDN whose traffic has more than
    `1 + tolerance` times the claimed score in the mean has a fault; with `strikes` faults its reputation is
    bad to the end.

    returns  Decision with an Assignment; no bound, as the broker does not know the true scores
    raises   InputError for a name that is no CDN
    source   Mukerjee 2018, 3.4.2 (Fraud); see the module
    """
    is_false = _find_false(problem, false_bidders)
    score = np.where(is_false[problem.cdn], claim, 1.0) * problem.score
    claimed = _with_bids(problem, score, problem.offered)
    faults = np.zeros(len(is_false), dtype=np.int64)
    deadline = Deadline.of(options)
    decision: Decision[Assignment] | None = None
    bad = np.zeros(len(is_false), dtype=bool)
    counts: list[MessageCounts | None] = []
    for number in range(rounds):
        before, bad = bad, (faults >= strikes) & (handling == "priority")
        if decision is None or (bad != before).any():  # the same bids and reputations have the same decision
            share = deadline.share_left(1 / (rounds - number)).options(options, minimum_s=LEAST_TIME_S)
            decision = _decide(claimed, bad, share)
        if decision.plan is None:
            return decision
        counts.append(decision.plan.message_counts)
        faults += _find_faults(problem, claimed, decision.plan, tolerance)
    assert decision is not None
    assert decision.plan is not None
    _say_reputations(problem, bad, faults >= strikes)
    plan = replace(decision.plan, message_counts=MessageCounts.total(counts))
    proof = assignment.unproven(problem, plan, decision.proof.backend)
    guarantees = None if problem.limits is None else assignment.WITHOUT_LIMITS
    decided = Decision(plan=plan, proof=proof, guarantees=guarantees)
    return billing.add_traffic_history(problem, decided, previous)


def _find_false(problem: Brokering, names: tuple[str, ...]) -> Bools:
    """Return whether each CDN sends false bids; raise InputError for an unknown name."""
    for name in names:
        if name not in problem.cdn_names:
            raise InputError(f"false_bidders: '{name}' is no CDN{did_you_mean(name, problem.cdn_names)}")
    return np.isin(problem.cdn_names, list(names))


def _with_bids(problem: Brokering, score: Floats, offered: Bools) -> Brokering:
    """Return the market with those scores and offers, (L, C)."""
    return problem.with_observation(
        offered=offered,
        score=score,
        price=problem.price,
        capacity_mbps=problem.capacity_mbps,
        background_mbps=problem.background_mbps,
    )


def _decide(claimed: Brokering, bad: Bools, options: Options) -> Decision[Assignment]:
    """Return the broker's decision: bids of good reputation first, then the others for whom is left.

    bad  (CDNs,)
    """
    of_bad = bad[claimed.cdn]
    if not of_bad.any():
        return assignment.assign(claimed, options=options)
    deadline = Deadline.of(options)
    first_options = deadline.share_left(0.5).options(options, minimum_s=LEAST_TIME_S)
    trusted = _with_bids(claimed, claimed.score, claimed.offered & ~of_bad)
    first = assignment.assign(trusted, options=replace(first_options, service="best"))
    if first.plan is None or first.plan.shed is None:
        return first
    remaining = claimed.with_client_counts(count_shed(claimed, first.plan))
    capacity_mbps = np.maximum(claimed.residual_mbps - read_assignment(claimed, first.plan).load_mbps, 0.0)
    remaining = remaining.with_clusters(
        capacity_mbps=capacity_mbps, background_mbps=np.zeros(len(capacity_mbps))
    )
    second = assignment.assign(remaining, options=deadline.options(options, minimum_s=LEAST_TIME_S))
    if second.plan is None:
        reason = "clients that only CDNs with a bad reputation can serve do not fit what is left"
        return Decision(plan=None, proof=undecided(reason, *second.proof.reasons))
    plan = merge_plans([replace(first.plan, shed=None), second.plan])
    return Decision(plan=plan, proof=first.proof)


def _find_faults(problem: Brokering, claimed: Brokering, plan: Assignment, tolerance: float) -> Bools:
    """Return whether the clients of each CDN measure worse scores than it claims, (CDNs,)."""
    location, cluster, mbps = locate_rows(problem, plan)
    cdn, count = problem.cdn[cluster], len(problem.cdn_names)
    measured = np.bincount(cdn, mbps * problem.score[location, cluster], minlength=count)
    promised = np.bincount(cdn, mbps * claimed.score[location, cluster], minlength=count)
    return measured > (1 + tolerance) * promised * (1 + NEGLIGIBLE)


def _say_reputations(problem: Brokering, bad: Bools, is_faulty: Bools) -> None:
    """Note the CDNs with a bad reputation in the last round, or with faults but still trusted."""
    names = np.array(problem.cdn_names, dtype=object)
    if bad.any():
        add_note(f"bids of {few(names[bad].tolist())} come last: clients measured worse scores than claimed")
    elif is_faulty.any():
        add_note(
            f"clients of {few(names[is_faulty].tolist())} measure worse scores than claimed; the broker "
            "believes these bids"
        )
