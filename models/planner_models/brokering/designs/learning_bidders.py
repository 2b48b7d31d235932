"""Bidders that learn from Accept: each CDN changes its prices and promises by the accepted bids.

A promise is the share of a cluster's residual capacity that its CDN announces.

source  Mukerjee 2018, 3.4.2 and 3.6.3 say that CDNs can learn risk-averse strategies, not how. The
        rule here is multiplicative: a cluster that filled most of its promise raises its price, any
        other lowers it, never below its cost; and promises follow the accepted traffic, so that a bad
        round cannot fill a cluster at once.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Final

import numpy as np
import pandas as pd
from pydantic import Field

from planner.arrays import Floats
from planner.contract.design import Decision
from planner.options import Options
from planner_models.brokering.designs.broker import assignment
from planner_models.brokering.plan import billing
from planner_models.brokering.plan.plan import Assignment, MessageCounts, cluster_traffic, read_bids
from planner_models.brokering.problem.problem import Brokering

STEP: Final = 0.05
TARGET: Final = 0.8
Step = Annotated[float, Field(ge=0, lt=1, description="relative change of prices in a round")]
Target = Annotated[
    float, Field(gt=0, le=1, description="share of a promise that must be accepted for a price to rise")
]
Caution = Annotated[
    float,
    Field(
        ge=0,
        le=1,
        description="0: promise all residual capacity; 1: at most twice the traffic accepted last",
    ),
]


def assign(
    problem: Brokering,
    *,
    rounds: Annotated[int, Field(ge=1, description="rounds of the market in one window")] = 1,
    step: Step = STEP,
    target: Target = TARGET,
    caution: Caution = 0.0,
    options: Options = Options(),
    previous: Decision[Assignment] | None = None,
) -> Decision[Assignment]:
    """Assign clients at the bids of CDNs that learn from accepted bids.

    They learn in each of `rounds`, and from the previous window. The first round of all is at cost and
    with all residual capacity.

    returns  Decision with an Assignment whose `offers` are the bids of its last round; the objective
             is at cost, as the metric has it, and has no bound: the broker optimised it at the bids
    source   Mukerjee 2018, 3.6.1 (Accept) and 3.6.3; the rule: see the module
    """
    markup, promise = np.ones(len(problem.clusters)), np.ones(len(problem.clusters))
    plan = None if previous is None else previous.plan
    counts: list[MessageCounts | None] = []
    for _ in range(rounds):
        if plan is not None:
            markup, promise = read_bids(problem, plan)
            load = cluster_traffic(problem, plan)
            markup, promise = update_bids(
                markup, promise, load, problem.residual_mbps, step=step, target=target, caution=caution
            )
        decision = assignment.assign(with_bids(problem, markup, promise), options=options)
        if decision.plan is None:
            return decision
        offers = pd.DataFrame({"cluster": problem.clusters["cluster"], "markup": markup, "promise": promise})
        counts.append(decision.plan.message_counts)
        plan = replace(decision.plan, offers=offers, message_counts=MessageCounts.total(counts))
    assert plan is not None
    proof = assignment.unproven(problem, plan, decision.proof.backend)
    return billing.add_traffic_history(problem, Decision(plan=plan, proof=proof), previous)


def update_bids(
    markup: Floats,
    promise: Floats,
    accepted_mbps: Floats,
    residual_mbps: Floats,
    *,
    step: float = STEP,
    target: float = TARGET,
    caution: float = 0.0,
) -> tuple[Floats, Floats]:
    """Return the next markup (price over cost) and promise of each cluster, (C,), after a round."""
    promised = promise * residual_mbps
    used = np.divide(accepted_mbps, promised, out=np.zeros(len(promised)), where=promised > 0)
    next_markup = np.maximum(markup * np.where(used >= target, 1 + step, 1 - step), 1.0)
    cautious = np.clip(2 * used * promise, 0.1, 1.0)
    return next_markup, (1 - caution) + caution * cautious


def with_bids(offers: Brokering, markup: Floats, promise: Floats) -> Brokering:
    """Return offers at cost and all residual capacity at the CDNs' markups and promises, (C,) each."""
    return offers.with_observation(
        offered=offers.offered,
        score=offers.score,
        price=offers.price * markup,
        capacity_mbps=offers.background_mbps + promise * offers.residual_mbps,
        background_mbps=offers.background_mbps,
    )
