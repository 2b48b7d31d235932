"""A market whose broker has failed: each content provider asks one CDN, which serves its clients by itself.

source  Mukerjee 2018, 3.6.3 (Failures): software of the content provider ignores the broker and requests
        content from a given CDN directly. Which CDN that is, is a reading: one that is named, the one with
        the cheapest contracts, the best scores, or the least weighted sum of both
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from planner.arrays import Bools, Floats, Ints
from planner.contract.design import Decision
from planner.contract.notes import add_note
from planner.errors import InputError, did_you_mean
from planner.formatting import few
from planner.options import Options
from planner.search.deadline import Deadline
from planner.search.judged import undecided
from planner_models.brokering.designs.broker import assignment
from planner_models.brokering.designs.several_brokers import LEAST_TIME_S, count_shed, merge_plans
from planner_models.brokering.plan import billing
from planner_models.brokering.plan.check import read_assignment
from planner_models.brokering.plan.plan import Assignment
from planner_models.brokering.problem.problem import Brokering

Fallback = Annotated[
    tuple[str, ...],
    Field(
        description="CDNs that a content provider asks, each for the clients that those before it cannot "
        "serve; without any, one by `choice`"
    ),
]
Choice = Annotated[
    Literal["weighted", "contract", "performance"],
    Field(
        description="CDN that each content provider asks where `fallback` names none: contract: with the "
        "cheapest contracts for its traffic; performance: with the best scores of its clients; weighted: "
        "with the least weighted sum of both"
    ),
]


def assign(
    problem: Brokering,
    *,
    fallback: Fallback = (),
    choice: Choice = "weighted",
    options: Options = Options(),
    previous: Decision[Assignment] | None = None,
) -> Decision[Assignment]:
    """Assign the clients of each content to one CDN after the other, without a broker.

    A CDN serves them from the clusters that it offers, at the least sum of weighted scores and costs within
    its capacity. Contents that ask the same CDN share its capacity.

    returns  Decision with an Assignment; no bound; without a plan where all clients must be served, and do
             not fit
    raises   InputError for a name that is no CDN
    source   Mukerjee 2018, 3.6.3 (Failures); see the module
    """
    content, requests = _list_requests(problem, fallback, choice)
    deadline = Deadline.of(options)
    plans: list[Assignment] = []
    waiting = problem.count.astype(float)
    residual_mbps = problem.residual_mbps.copy()
    steps = [(step, int(cdn)) for step in range(requests.shape[1]) for cdn in np.unique(requests[:, step])]
    for number, (step, cdn) in enumerate(steps):
        asks = requests[content, step] == cdn
        if plans and not waiting[asks].any():
            continue
        share = deadline.share_left(1 / (len(steps) - number)).options(options, minimum_s=LEAST_TIME_S)
        is_last = step == requests.shape[1] - 1
        subproblem = _of_cdn(problem, cdn, np.where(asks, waiting, 0.0), residual_mbps)
        decision = assignment.assign(subproblem, options=share if is_last else replace(share, service="best"))
        if decision.plan is None:
            reason = f"the clients do not fit the clusters of {problem.cdn_names[cdn]}"
            return Decision(plan=None, proof=undecided(reason, *decision.proof.reasons))
        shed = np.zeros(len(waiting)) if decision.plan.shed is None else count_shed(subproblem, decision.plan)
        waiting = np.where(asks, shed, waiting)
        residual_mbps = np.maximum(residual_mbps - read_assignment(problem, decision.plan).load_mbps, 0.0)
        plans.append(decision.plan if is_last else replace(decision.plan, shed=None))
    if not fallback:
        asked = [problem.cdn_names[cdn] for cdn in np.unique(requests)]
        add_note(f"without a broker, content providers ask {few(asked)}")
    plan = merge_plans(plans)
    proof = assignment.unproven(problem, plan, decision.proof.backend)
    guarantees = None if problem.limits is None else assignment.WITHOUT_LIMITS
    return billing.add_traffic_history(
        problem, Decision(plan=plan, proof=proof, guarantees=guarantees), previous
    )


def _list_requests(problem: Brokering, fallback: tuple[str, ...], choice: Choice) -> tuple[Ints, Ints]:
    """Return the content of each row of clients, (R,), and the CDNs that it asks, (contents, steps)."""
    names = problem.cdn_names
    for name in fallback:
        if name not in names:
            raise InputError(f"fallback: '{name}' is no CDN{did_you_mean(name, names)}")
    contents, content = np.unique(
        problem.clients["content"].to_numpy(object).astype(str), return_inverse=True
    )
    content = content.ravel()
    if fallback:
        order = [names.index(name) for name in dict.fromkeys(fallback)]
        return content, np.tile(np.array(order, dtype=np.int64), (len(contents), 1))
    values = _value_cdns(problem, choice)
    shape = (len(contents), len(names))
    unserved, total = np.zeros(shape), np.zeros(shape)
    is_known = np.isfinite(values)
    np.add.at(unserved, content, np.where(is_known, 0.0, problem.count[:, None]))
    np.add.at(total, content, np.where(is_known, values, 0.0))
    first = [np.lexsort((total[row], unserved[row]))[0] for row in range(len(contents))]
    return content, np.array(first, dtype=np.int64)[:, None]


def _value_cdns(problem: Brokering, choice: Choice) -> Floats:
    """Return the value by which a content provider compares CDNs, (R, CDNs), less is better.

    It is infinite or NaN where a CDN has no contract, or no cluster, for the clients of a row.
    """
    terms, count = problem.terms, problem.count[:, None]
    scored = best_score(problem)[problem.location] * count
    if terms.performance_per == "bit":
        scored = scored * problem.bitrate_mbps[:, None]
    priced_mbps = problem.priced_bitrate_mbps(problem.location, problem.bitrate_mbps)[:, None]
    paid = problem.contract_price[problem.location] * priced_mbps * count * terms.units_per_mbps_hour
    if choice == "performance":
        return np.asarray(scored)
    if choice == "contract":
        return np.asarray(paid)
    return np.asarray(terms.performance_weight * scored + terms.cost_weight * paid)


def best_score(problem: Brokering) -> Floats:
    """Return the best score that each CDN offers to each location, (L, CDNs); inf where it offers none."""
    score = np.where(problem.offered, problem.score, np.inf)
    best = np.full((len(score), len(problem.cdn_names)), np.inf)
    for cdn in range(best.shape[1]):
        best[:, cdn] = score[:, problem.cdn == cdn].min(axis=1, initial=np.inf)
    return best


def _of_cdn(problem: Brokering, cdn: int, count: Floats, residual_mbps: Floats) -> Brokering:
    """Return the clients that ask a CDN, and its clusters with the capacity that is left."""
    is_own: Bools = problem.cdn == cdn
    clients = problem.with_client_counts(count)
    return clients.with_observation(
        offered=problem.offered & is_own,
        score=problem.score,
        price=problem.price,
        capacity_mbps=residual_mbps,
        background_mbps=np.zeros(len(residual_mbps)),
    )
