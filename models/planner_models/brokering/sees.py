"""What a broker believes: the choice of Share, Matching and Announce that makes a design."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from planner_models.brokering import matching
from planner_models.brokering.problem import Brokering

Bids = Annotated[int, Field(ge=1, description="most clusters that a CDN offers to each location")]
Similar = Annotated[
    float,
    Field(ge=1, description="a cluster is on offer if it scores at most this many times the CDN's best"),
]
Price = Literal["contract", "cluster"]
Capacity = Literal["guessed", "total", "free"]
RULE_ABOUT = "how a CDN chooses: ranked by cost among similar scores, or a stable matching of all clients"


def protocol(
    problem: Brokering,
    *,
    bids: Annotated[
        Annotated[int, Field(ge=1)] | Literal["all"],
        Field(description="most clusters that a CDN offers to each location; all: every cluster it has"),
    ] = 1,
    price: Annotated[
        Price, Field(description="contract: flat, by contract; cluster: each cluster's cost is announced")
    ] = "contract",
    capacity: Annotated[
        Capacity,
        Field(
            description="guessed: the CDN's median; total: announced, not knowing the broker's clients; "
            "free: announced, less what other traffic takes"
        ),
    ] = "guessed",
    rule: Annotated[matching.Rule, Field(description=RULE_ABOUT)] = "ranked",
    similar: Similar = matching.SIMILAR,
) -> Brokering:
    """What a broker believes under any choice of Share, Matching and Announce.

    Sharing clients is what lets a CDN announce the room that is free, and match them stably.

    bids      Matching: single-cluster is 1
    price     Announce cost, or keep to contracts
    capacity  Announce capacity, or leave the broker to guess
    source    Mukerjee 2018, Table 3.2; guesses and candidates: 3.5.1
    """
    offered = problem.offered
    if rule == "stable":
        offered = matching.stable(problem.score, problem.demand_mbps, problem.free_mbps, problem.cdn, offered)
    elif bids != "all":
        offered = matching.ranked(
            problem.score, problem.unit_cost, problem.cdn, offered, bids=bids, similar=similar
        )
    asked = problem.price
    if price == "contract":
        asked = problem.contract_price[:, problem.cdn]
        offered = offered & ~np.isnan(asked)
    background = np.zeros(len(problem.clusters)) if capacity != "free" else problem.background_mbps
    known = median_capacity(problem) if capacity == "guessed" else problem.capacity_mbps
    return problem.believing(
        offered=offered, score=problem.score, price=asked, capacity_mbps=known, background_mbps=background
    )


def median_capacity(problem: Brokering) -> NDArray[np.float64]:
    """(C,) the median capacity of the clusters of each one's CDN."""
    by_cdn = problem.clusters.groupby("cdn")["capacity_mbps"]
    return by_cdn.transform("median").to_numpy(float)


def brokered(problem: Brokering, *, similar: Similar = matching.SIMILAR) -> Brokering:
    """Today's broker: one cluster a CDN, contract prices, guessed capacities."""
    return protocol(problem, similar=similar)


def multicluster(problem: Brokering, *, bids: Bids = 100, similar: Similar = matching.SIMILAR) -> Brokering:
    """Several clusters a CDN with their performance, contract prices, guessed capacities."""
    return protocol(problem, bids=bids, similar=similar)


def dynamic_pricing(problem: Brokering, *, similar: Similar = matching.SIMILAR) -> Brokering:
    """One cluster a CDN at that cluster's cost, guessed capacities."""
    return protocol(problem, price="cluster", similar=similar)


def dynamic_multicluster(
    problem: Brokering, *, bids: Bids = 100, similar: Similar = matching.SIMILAR
) -> Brokering:
    """Several clusters a CDN, each at its cost, guessed capacities."""
    return protocol(problem, bids=bids, price="cluster", similar=similar)


def best_lookup(problem: Brokering, *, bids: Bids = 100, similar: Similar = matching.SIMILAR) -> Brokering:
    """Several clusters a CDN, each at its cost with its capacity, other traffic not told."""
    return protocol(problem, bids=bids, price="cluster", capacity="total", similar=similar)


def marketplace(
    problem: Brokering,
    *,
    bids: Bids = 100,
    rule: Annotated[matching.Rule, Field(description=RULE_ABOUT)] = "ranked",
    similar: Similar = matching.SIMILAR,
) -> Brokering:
    """Bids for the broker's clients: several clusters a CDN, each at its cost with the room it has."""
    return protocol(problem, bids=bids, price="cluster", capacity="free", rule=rule, similar=similar)
