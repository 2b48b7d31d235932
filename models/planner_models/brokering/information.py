"""Observations of a broker: the choice of Share, Matching and Announce of each design, and their degradation.

Information that a broker has without announcements stays true: its own clients, contracts, and the
performance of the one cluster that a CDN uses today. So the observations of `brokered` and
`dynamic_pricing` have no age, noise or granularity.

Signalling of brokers and CDNs in the rounds of the decision protocol: messages and bytes.

A message is sent by one party to another in one step: Share, Announce or Accept. Its rows are as the paper
has them; designs without Share name the location in place of a share's id.

source  Mukerjee 2018, 3.4.1 (steps), 3.6.1 (formats)

Messages of one round of the decision protocol.

Estimate  CDNs know capacity, cost and performance of their clusters: the problem's own tables
Gather    the broker counts its clients: the problem's groups
Share     `share_messages`: the broker's clients, sent to CDNs
Matching  `problem.cluster_matching`: clusters that each CDN offers
Announce  `bid_messages`: the offers, sent to the broker
Optimize  `designs.broker.assignment.assign`: the broker decides on its observation
Accept    `accept_messages`: the bids that were used

source  Mukerjee 2018, 3.4.1 and Fig. 3.9; formats: 3.6.1
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any, Final, Literal

import numpy as np
import pandas as pd
from pydantic import Field

from planner.contract.degradation import AgeS, GranularityKm, Noise, Seed, add_noise, average_within, drift
from planner.contract.signalling import FIGURE, NAME, NONE, Signalling
from planner_models import globe
from planner_models.brokering.plan.plan import Assignment, MessageCounts
from planner_models.brokering.problem import cluster_matching, geography
from planner_models.brokering.problem.cluster_matching import SIMILAR
from planner_models.brokering.problem.problem import Announcement, Brokering

Bids = Annotated[int, Field(ge=1, description="clusters that a CDN offers to each location, at most")]
Similar = Annotated[
    float,
    Field(ge=1, description="ratio of an offered cluster's score to the CDN's best, at most"),
]
Price = Literal["contract", "cluster"]
Capacity = Literal["guessed", "total", "free"]
Usable = Annotated[
    float,
    Field(
        gt=0,
        le=1,
        description="share of its residual capacity that a CDN announces, to protect from overload",
    ),
]
Rule = Annotated[
    cluster_matching.Rule,
    Field(description="choice of offers by a CDN: ranked by cost among similar scores, or a stable matching"),
]
SHARE_BYTES: Final = 4 * NAME + 2 * FIGURE  # share_id, location, isp, content_id, data_size, client_count
OFFER_BYTES: Final = 2 * NAME  # cluster_id, share_id or location; then figures
MAX_FIGURES: Final = 3  # performance_estimate, capacity, price


def estimate(
    problem: Brokering,
    *,
    age_s: AgeS = 0.0,
    noise: Noise = 0.0,
    granularity_km: GranularityKm = 0.0,
    swing: Annotated[
        float, Field(ge=0, description="standard deviation over time of the logarithm of background traffic")
    ] = 0.3,
    score_swing: Annotated[
        float, Field(ge=0, description="standard deviation over time of the logarithm of scores")
    ] = 0.05,
    memory_s: Annotated[
        float,
        Field(gt=0, description="time in which the autocorrelation of traffic and scores falls to 1/e, s"),
    ] = 300.0,
    seed: Seed = 0,
) -> Brokering:
    """Return the market as CDNs estimate it before they match and announce (step Estimate).

    Age: the logarithm of each cluster's background traffic, and of each score, is an Ornstein-Uhlenbeck
    process. Its parameters are not published; the defaults are readings: brokers decide every few minutes
    (3.4.1); the share of sessions that they move goes from 20% to 60% (Fig. 3.5), four standard deviations
    of 0.3; and scores in the calibrated market (`generators`) differ by pair by 0.05, which includes all
    change over time.

    Noise: each score, and the capacity and background of each cluster, times a lognormal factor of median 1.
    Granularity: all clients in a square of the map have the mean score of these clients, by traffic.
    Costs are announced, not estimated, and always true.

    source  Mukerjee 2018, 3.4.1 (Estimate, Gather)
    """
    if age_s == 0 and noise == 0 and granularity_km == 0:
        return problem
    score, capacity = problem.score, problem.capacity_mbps
    background = problem.background_mbps
    rng = np.random.default_rng([seed, 0])
    background = drift(background, age=age_s, memory=memory_s, spread=swing, rng=rng)
    score = drift(score, age=age_s, memory=memory_s, spread=score_swing, rng=rng)
    rng = np.random.default_rng([seed, 1])
    factor = add_noise(np.ones(len(capacity)), noise, rng)
    score = add_noise(score, noise, rng)
    if granularity_km > 0:
        coordinates = (problem.locations[name].to_numpy(float) for name in ("latitude", "longitude"))
        corner = globe.squares(*coordinates, side_km=granularity_km, radius_km=geography.EARTH_RADIUS_KM)
        square = np.unique(corner, axis=0, return_inverse=True)[1].ravel()
        score = average_within(score, square, problem.demand_mbps)
    return problem.with_observation(
        offered=problem.offered,
        score=score,
        price=problem.price,
        capacity_mbps=capacity * factor,
        background_mbps=background * factor,
    )


def with_degradation(observe: Callable[..., Brokering]) -> Callable[..., Brokering]:
    """Return the observation of the CDNs' estimates, with the parameters of `estimate` besides its own."""
    degradations = list(inspect.signature(estimate).parameters.values())[1:]  # without the problem

    @functools.wraps(observe)
    def observe_estimates(problem: Brokering, **parameters: Any) -> Brokering:
        arguments = {each.name: parameters.pop(each.name) for each in degradations if each.name in parameters}
        return observe(estimate(problem, **arguments), **parameters)

    signature = inspect.signature(observe)
    together = signature.replace(parameters=[*signature.parameters.values(), *degradations])
    vars(observe_estimates).update(__signature__=together)
    observe_estimates.__annotations__ = {**estimate.__annotations__, **observe.__annotations__}
    return observe_estimates


def with_usable_share(problem: Brokering, usable: float) -> Brokering:
    """Return the observation in which every CDN announces that share of its residual capacity."""
    if usable == 1:
        return problem
    return problem.with_observation(
        offered=problem.offered,
        score=problem.score,
        price=problem.price,
        capacity_mbps=problem.background_mbps + usable * problem.residual_mbps,
        background_mbps=problem.background_mbps,
    )


@with_degradation
def protocol(
    problem: Brokering,
    *,
    bids: Annotated[
        Annotated[int, Field(ge=1)] | Literal["all"],
        Field(description="clusters that a CDN offers to each location, at most; all: every cluster it has"),
    ] = 1,
    price: Annotated[
        Price, Field(description="contract: flat, by contract; cluster: each cluster's cost is announced")
    ] = "contract",
    capacity: Annotated[
        Capacity,
        Field(
            description="guessed: the CDN's median; total: announced without regard to the broker's "
            "clients; free: announced, less background traffic"
        ),
    ] = "guessed",
    usable: Usable = 1.0,
    rule: Rule = "ranked",
    similar: Similar = SIMILAR,
) -> Brokering:
    """Return the problem as a broker observes it under any choice of Share, Matching and Announce.

    Only a CDN that knows the broker's clients can announce residual capacity, and match them stably.

    bids      Matching: single-cluster is 1
    price     Announce cost, or keep to contracts
    capacity  Announce capacity, or leave the broker to guess
    usable    of residual capacity, where that is announced
    source    Mukerjee 2018, Table 3.2; guesses and candidates: 3.5.1
    """
    offered = problem.offered
    if rule == "stable":
        offered = cluster_matching.match_stably(
            problem.score, problem.demand_mbps, problem.residual_mbps, problem.cdn, offered
        )
    elif bids != "all":
        offered = cluster_matching.match_by_rank(
            problem.score, problem.unit_cost, problem.cdn, offered, bids=bids, similar=similar
        )
    prices = problem.price
    if price == "contract":
        prices = problem.contract_price[:, problem.cdn]
        offered = offered & ~np.isnan(prices)
    by_client = capacity == "free" or rule == "stable"
    background = np.zeros(len(problem.clusters)) if capacity != "free" else problem.background_mbps
    observed = problem.with_observation(
        offered=offered,
        score=problem.score,
        price=prices,
        capacity_mbps=problem.guessed_capacity_mbps if capacity == "guessed" else problem.capacity_mbps,
        background_mbps=background,
        announcement=Announcement(
            by_client=by_client,
            score=by_client or bids != 1,
            price=price == "cluster",
            capacity=capacity != "guessed",
        ),
    )
    return with_usable_share(observed, usable if capacity == "free" else 1.0)


def brokered(problem: Brokering, *, similar: Similar = SIMILAR) -> Brokering:
    """Return the observation of today's broker: one cluster per CDN, contract prices, guessed capacities."""
    return protocol(problem, similar=similar)


@with_degradation
def multicluster(problem: Brokering, *, bids: Bids = 100, similar: Similar = SIMILAR) -> Brokering:
    """Return several clusters per CDN with their performance, contract prices, guessed capacities."""
    return protocol(problem, bids=bids, similar=similar)


def dynamic_pricing(problem: Brokering, *, similar: Similar = SIMILAR) -> Brokering:
    """Return one cluster per CDN at that cluster's cost, guessed capacities."""
    return protocol(problem, price="cluster", similar=similar)


@with_degradation
def dynamic_multicluster(problem: Brokering, *, bids: Bids = 100, similar: Similar = SIMILAR) -> Brokering:
    """Return several clusters per CDN, each at its cost, guessed capacities."""
    return protocol(problem, bids=bids, price="cluster", similar=similar)


@with_degradation
def best_lookup(problem: Brokering, *, bids: Bids = 100, similar: Similar = SIMILAR) -> Brokering:
    """Return several clusters per CDN, each at its cost with its capacity, without background traffic."""
    return protocol(problem, bids=bids, price="cluster", capacity="total", similar=similar)


@with_degradation
def marketplace(
    problem: Brokering,
    *,
    bids: Bids = 100,
    usable: Usable = 1.0,
    rule: Rule = "ranked",
    similar: Similar = SIMILAR,
) -> Brokering:
    """Return bids for the broker's clients: several clusters per CDN, with cost and residual capacity."""
    return protocol(
        problem, bids=bids, price="cluster", capacity="free", usable=usable, rule=rule, similar=similar
    )


@with_degradation
def omniscient(problem: Brokering, *, usable: Usable = 1.0) -> Brokering:
    """Return the problem as CDNs estimate it: every cluster with its cost and residual capacity."""
    return with_usable_share(problem, usable)


def own_clusters(problem: Brokering, *, similar: Similar = SIMILAR) -> Brokering:
    """Return the market as each CDN knows its own part of it, which it announces to nobody.

    Clusters on offer are those that score at most `similar` times the CDN's best for the location.
    """
    every = len(problem.clusters)
    return problem.with_observation(
        offered=cluster_matching.match_by_rank(
            problem.score, problem.unit_cost, problem.cdn, problem.offered, bids=every, similar=similar
        ),
        score=problem.score,
        price=problem.price,
        capacity_mbps=problem.capacity_mbps,
        background_mbps=problem.background_mbps,
        announcement=Announcement(by_client=False, score=False, price=False, capacity=False),
    )


@functools.wraps(omniscient)
def global_and_local(problem: Brokering, **parameters: Any) -> Brokering:
    """Return the problem as it is, for local control, and as global control observes it, as `omniscient`."""
    return problem.with_earlier(omniscient(problem, **parameters))


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


def share_messages(problem: Brokering) -> pd.DataFrame:
    """Return one row for each kind of client: its share_id, and its number.

    Columns: share_id, location, isp, content_id, data_size (bitrate of each client, kbit/s), client_count.
    """
    rows = problem.clients[problem.clients["clients"] > 0]
    return pd.DataFrame(
        {
            "share_id": np.arange(len(rows)),
            "location": rows["location"].to_numpy(),
            "isp": rows["isp"].to_numpy(),
            "content_id": rows["content"].to_numpy(),
            "data_size": rows["bitrate_kbps"].to_numpy(float),
            "client_count": rows["clients"].to_numpy(np.int64),
        }
    )


def bid_messages(observed: Brokering, shares: pd.DataFrame) -> pd.DataFrame:
    """Return the CDNs' bids for `shares`: cluster_id, share_id, performance_estimate, capacity, price.

    observed  the broker's observation, such as `marketplace(problem)`: its offers are by
              location, and so the same for all shares there
    """
    location = observed.location_index.get_indexer(pd.Index(shares["location"]))
    share, cluster = np.nonzero(observed.offered[location])
    location_of = location[share]
    return pd.DataFrame(
        {
            "cluster_id": observed.clusters["cluster"].to_numpy()[cluster],
            "share_id": shares["share_id"].to_numpy()[share],
            "performance_estimate": observed.score[location_of, cluster],
            "capacity": observed.residual_mbps[cluster],
            "price": observed.price[location_of, cluster],
        }
    )


def accept_messages(observed: Brokering, shares: pd.DataFrame, plan: Assignment) -> pd.DataFrame:
    """Return the bids that a plan uses, in the columns of `bid_messages`; capacity is the used Mbit/s."""
    frame = plan.assignments[plan.assignments["clients"] > 0].merge(
        shares.rename(columns={"content_id": "content", "data_size": "bitrate_kbps"}),
        on=["location", "isp", "content", "bitrate_kbps"],
    )
    location = observed.location_index.get_indexer(pd.Index(frame["location"]))
    cluster = observed.cluster_index.get_indexer(pd.Index(frame["cluster"]))
    return pd.DataFrame(
        {
            "cluster_id": frame["cluster"].to_numpy(),
            "share_id": frame["share_id"].to_numpy(),
            "performance_estimate": observed.score[location, cluster],
            "capacity": frame["clients"].to_numpy(float) * frame["bitrate_kbps"].to_numpy(float) / 1000,
            "price": observed.price[location, cluster],
        }
    )
