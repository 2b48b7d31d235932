"""Several brokers or marketplaces that share the clusters.

Each decides on its own, in its own part of the capacity, or all commit in transactions. Clients come by any
broker, or each continent, country, ISP or content has a marketplace of its own, which sees no other clients.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Final, Literal

import numpy as np
import pandas as pd
from pydantic import Field

from planner.arrays import Floats, Ints
from planner.contract.design import Decision
from planner.formatting import counted, sizes
from planner.options import Options
from planner.search.deadline import Deadline
from planner.search.judged import undecided
from planner_models import geonames
from planner_models.brokering.designs.broker import assignment
from planner_models.brokering.plan import billing
from planner_models.brokering.plan.check import read_assignment
from planner_models.brokering.plan.plan import KEY, Assignment, MessageCounts, sum_clients
from planner_models.brokering.problem.problem import Brokering

Brokers = Annotated[int, Field(ge=1, description="number of brokers that the clients are divided among")]
DealSeed = Annotated[int, Field(ge=0, description="seed of the random division")]
Division = Literal["random", "continent", "country", "isp", "content"]
By = Annotated[
    Division,
    Field(
        description="division of the clients: random: among brokers, each with equal probability; else a "
        "marketplace for each continent, country, ISP or content"
    ),
]
MostRounds = Annotated[int, Field(ge=1, description="maximum number of rounds")]
ROUNDS_AHEAD: Final = 4  # rounds that the time left is shared by; their number is known at the end only
LEAST_TIME_S: Final = 0.01  # of a broker's decision
Headroom = Annotated[
    float,
    Field(gt=0, le=1, description="share of the announced capacity that a CDN commits to, at most"),
]
Overbooking = Annotated[
    float,
    Field(
        ge=1,
        allow_inf_nan=False,
        description="capacity that a CDN announces to all marketplaces together, over what it has: 1 is a "
        "guarantee, more is a hint; at most all of it to each",
    ),
]


def assign_independently(
    problem: Brokering,
    *,
    brokers: Brokers = 2,
    deal_seed: DealSeed = 0,
    by: By = "random",
    options: Options = Options(),
    previous: Decision[Assignment] | None = None,
) -> Decision[Assignment]:
    """Assign the clients of several brokers, each of which decides as if there were no other.

    All brokers observe the same residual capacity, so that together they may overbook it: the plan
    guarantees to serve all clients, not to keep capacities.

    returns  Decision with an Assignment of all brokers' clients; no bound
    source   Mukerjee 2018, 3.4.2 (BestLookup: capacity 10, two brokers that send 9 each)
    """
    counts = divide_clients(problem, by, brokers, deal_seed)
    problems = [problem.with_client_counts(count) for count in counts]
    decision = _assign_each(problem, problems, frozenset({"demand", "pinned", "forbidden"}), options)
    return billing.add_traffic_history(problem, decision, previous)


def assign_in_shares(
    problem: Brokering,
    *,
    by: By = "continent",
    brokers: Brokers = 2,
    deal_seed: DealSeed = 0,
    overbooking: Overbooking = 1.0,
    options: Options = Options(),
    previous: Decision[Assignment] | None = None,
) -> Decision[Assignment]:
    """Assign the clients of several marketplaces, each in its own part of the capacity.

    Every CDN divides the residual capacity of each cluster among the marketplaces, in proportion to their
    traffic. No cluster is overbooked, but what one marketplace leaves is of no use to another. With an
    `overbooking` above 1 a CDN announces that many times each part, at most all of its capacity: bids are
    hints then, which it cannot keep where too many are accepted.

    returns  Decision with an Assignment of all clients; without a plan where the clients of a marketplace do
             not fit its part; no bound; its guarantees include the capacities where `overbooking` is 1
    source   Mukerjee 2018, 3.6.3 (scalability: an instance for each region, content provider or content
             type, at the cost of a limited view) and 5.3 (bids as hints or guarantees, several brokers); the
             proportion is a reading
    """
    counts = divide_clients(problem, by, brokers, deal_seed)
    demand_mbps = np.array([float((count * problem.bitrate_mbps).sum()) for count in counts])
    announced = np.minimum(overbooking * demand_mbps / max(demand_mbps.sum(), 1e-12), 1.0)
    problems = [
        _with_capacity(problem, count, share * problem.residual_mbps)
        for count, share in zip(counts, announced, strict=True)
    ]
    guarantees = None if problem.limits is None else assignment.WITHOUT_LIMITS
    if overbooking > 1:
        guarantees = frozenset({"demand", "pinned", "forbidden"})
    decision = _assign_each(problem, problems, guarantees, options)
    return billing.add_traffic_history(problem, decision, previous)


def _assign_each(
    problem: Brokering, problems: Sequence[Brokering], guarantees: frozenset[str] | None, options: Options
) -> Decision[Assignment]:
    """Return the clients of all problems in one plan, each problem decided by itself."""
    deadline = Deadline.of(options)
    decisions = []
    for number, subproblem in enumerate(problems):
        share = _with_share_of_time(options, deadline, len(problems) - number)
        decisions.append(assignment.assign(subproblem, options=share))
        if decisions[-1].plan is None:
            return decisions[-1]
    plan = merge_plans([decision.plan for decision in decisions if decision.plan is not None])
    proof = assignment.unproven(problem, plan, decisions[0].proof.backend)
    return Decision(plan=plan, proof=proof, guarantees=guarantees)


def assign_in_transactions(
    problem: Brokering,
    *,
    brokers: Brokers = 2,
    headroom: Headroom = 1.0,
    most_rounds: MostRounds = 50,
    deal_seed: DealSeed = 0,
    by: By = "random",
    options: Options = Options(),
    previous: Decision[Assignment] | None = None,
) -> Decision[Assignment]:
    """Assign the clients of several brokers in rounds, until every CDN commits to all mappings.

    A CDN refuses a cluster that all brokers together would fill above `headroom` of its residual
    capacity; then all mappings are withdrawn. For the next round it promises each broker its own part of
    that capacity, in proportion to what the broker requested there. A promise never grows again, so that
    the rounds end.

    returns  Decision with an Assignment whose `rounds` count clusters refused and mappings withdrawn;
             without a plan where the clients of a broker no longer fit, or rounds run out
    source   Mukerjee 2018, 3.4.2 (Transactions)
    """
    counts = divide_clients(problem, by, brokers, deal_seed)
    brokers = len(counts)
    capacity = headroom * problem.residual_mbps
    promised = np.tile(problem.residual_mbps, (brokers, 1))
    rows: list[tuple[int, int, int]] = []
    deadline = Deadline.of(options)
    for number in range(1, most_rounds + 1):
        if number > 1 and deadline.is_over:
            refuse = f"CDNs still refuse {_clusters(rows[-1][1])}"
            reason = f"{refuse} at the time limit, after {counted(number - 1, 'rounds')}"
            return Decision(plan=None, proof=undecided(reason))
        decisions = _assign_round(problem, counts, promised, options, deadline)
        plans = [decision.plan for decision in decisions if decision.plan is not None]
        if len(plans) < brokers:
            failed = next(decision for decision in decisions if decision.plan is None)
            reason = f"round {number}: the clients of a broker do not fit the capacity promised to it"
            proof = undecided(reason, *failed.proof.reasons)
            return Decision(plan=None, proof=proof)
        requested = np.array([read_assignment(problem, plan).load_mbps for plan in plans])
        refused = requested.sum(axis=0) > capacity * (1 + 1e-9) + 1e-9
        rows.append((number, int(refused.sum()), brokers if refused.any() else 0))
        if not refused.any():
            rounds = pd.DataFrame(rows, columns=["round", "overbooked", "withdrawn"], dtype=float)
            plan = replace(merge_plans(plans), rounds=rounds)
            proof = assignment.unproven(problem, plan, decisions[0].proof.backend)
            guarantees = None if problem.limits is None else assignment.WITHOUT_LIMITS
            decision = Decision(plan=plan, proof=proof, guarantees=guarantees)
            return billing.add_traffic_history(problem, decision, previous)
        # capacity that other brokers may still request cannot be promised twice
        share = requested / np.maximum(requested.sum(axis=0), 1e-12)
        promised[:, refused] = np.minimum(promised, share * capacity)[:, refused]
    reason = f"CDNs still refuse {_clusters(rows[-1][1])} after {most_rounds} rounds"
    return Decision(plan=None, proof=undecided(reason))


def _clusters(count: int) -> str:
    return sizes({"clusters": count})


def _assign_round(
    problem: Brokering, counts: Sequence[Ints], promised: Floats, options: Options, deadline: Deadline
) -> list[Decision[Assignment]]:
    """Return the assignment of each broker's clients to the capacity that is promised to it.

    counts    clients of each group, by broker
    promised  (brokers, C) Mbit/s
    """
    return [
        assignment.assign(
            _with_capacity(problem, count, capacity_mbps),
            options=_with_share_of_time(options, deadline, ROUNDS_AHEAD * len(promised)),
        )
        for count, capacity_mbps in zip(counts, promised, strict=True)
    ]


def _with_capacity(problem: Brokering, count: Ints, capacity_mbps: Floats) -> Brokering:
    """Return the problem of one broker or market: its clients, (R,), and its part of the clusters, (C,)."""
    background_mbps = np.zeros(len(problem.clusters))
    clients = problem.with_client_counts(count)
    return clients.with_clusters(capacity_mbps=capacity_mbps, background_mbps=background_mbps)


def _with_share_of_time(options: Options, deadline: Deadline, decisions: int) -> Options:
    """Return options that leave an equal share of the time to each of `decisions`."""
    return deadline.share_left(1 / decisions).options(options, minimum_s=LEAST_TIME_S)


def divide_clients(problem: Brokering, by: Division, brokers: int, seed: int) -> list[Ints]:
    """Return the clients of each broker or marketplace, (R,); those without any are left out."""
    if by == "random":
        return deal_clients(problem, brokers, seed)
    if by in ("continent", "country"):
        country = problem.locations["country"]
        region = country if by == "country" else country.map(geonames.continent_by_country()).fillna(country)
        names = region.to_numpy(object)[problem.location]
    else:
        names = problem.clients[by].to_numpy(object)
    markets, numbers = np.unique(names.astype(str), return_inverse=True)
    counts = [np.where(numbers == market, problem.count, 0) for market in range(len(markets))]
    return [count for count in counts if count.any()] or [problem.count]


def deal_clients(problem: Brokering, brokers: int, seed: int) -> list[Ints]:
    """Return the clients of each broker, (R,); every client comes by any broker with equal probability."""
    random = np.random.default_rng(seed)
    counts = random.multinomial(problem.count, np.full(brokers, 1 / brokers))
    return [np.ascontiguousarray(counts[:, broker]) for broker in range(brokers)]


def merge_plans(plans: list[Assignment]) -> Assignment:
    """Return all brokers' clients in one plan."""
    frames = pd.concat([plan.assignments for plan in plans], ignore_index=True)
    shed = [plan.shed for plan in plans if plan.shed is not None]
    return Assignment(
        assignments=sum_clients(frames),
        shed=sum_clients(pd.concat(shed, ignore_index=True)) if shed else None,
        message_counts=MessageCounts.total([plan.message_counts for plan in plans]),
    )


def count_shed(problem: Brokering, plan: Assignment) -> Floats:
    """Return the clients of each row of the table that a plan sheds, (R,)."""
    assert plan.shed is not None
    keys = list(KEY[:-1])
    shed = sum_clients(plan.shed).set_index(keys)["clients"]
    count = problem.clients[keys].assign(clients=problem.count)
    of_kind = shed.reindex(pd.MultiIndex.from_frame(count[keys])).fillna(0.0).to_numpy(float)
    before = count.groupby(keys, sort=False)["clients"].cumsum().to_numpy(float) - problem.count
    return np.asarray(np.clip(of_kind - before, 0.0, problem.count))
