"""What a broker believes: the choice of Share, Matching and Announce that makes a design, and how good
what CDNs announce is.

What a broker has without being told stays true: its own clients, contracts, and how the one cluster
performs that a CDN uses today. So `brokered` and `dynamic_pricing` are the same however bad the rest.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from planner_models import globe
from planner_models.brokering import geography, matching
from planner_models.brokering.problem import Announced, Brokering

Bids = Annotated[int, Field(ge=1, description="most clusters that a CDN offers to each location")]
Similar = Annotated[
    float,
    Field(ge=1, description="a cluster is on offer if it scores at most this many times the CDN's best"),
]
Price = Literal["contract", "cluster"]
Capacity = Literal["guessed", "total", "free"]
RULE_ABOUT = "how a CDN chooses: ranked by cost among similar scores, or a stable matching of all clients"


def told(
    problem: Brokering,
    *,
    age_s: Annotated[
        float, Field(ge=0, description="how old what CDNs estimate is: other traffic and performance")
    ] = 0.0,
    noise: Annotated[
        float,
        Field(ge=0, description="standard deviation of the logarithm of each estimate: performance, room"),
    ] = 0.0,
    grain_km: Annotated[
        float,
        Field(ge=0, description="clients within squares of this side have one estimate of performance"),
    ] = 0.0,
    swing: Annotated[
        float, Field(ge=0, description="standard deviation, over time, of the logarithm of other traffic")
    ] = 0.3,
    score_swing: Annotated[
        float, Field(ge=0, description="standard deviation, over time, of the logarithm of scores")
    ] = 0.05,
    memory_s: Annotated[
        float, Field(gt=0, description="after how long a deviation of what ages has faded to 1/e")
    ] = 300.0,
    seed: Annotated[int, Field(ge=0, description="seed of what happened since, and of noise")] = 0,
) -> Brokering:
    """The market as CDNs estimate it before they match and announce (step Estimate).

    Age: the logarithm of every cluster's other traffic, and of every score, is an Ornstein-Uhlenbeck
    process; what is told is what was, given what is. How fast they move is not published, so the
    defaults are readings: brokers decide anew every few minutes (3.4.1); the share of sessions that
    they move goes from 20% to 60% (Fig. 3.5), four standard deviations of 0.3; and scores in the
    calibrated market (`generate`) differ by pair by 0.05, which holds all that changes with time.

    Noise: every score, and the room of every cluster, times a lognormal factor of median 1. Grain: all
    clients in a square of the map have the mean score of these clients, by traffic. Costs are not
    estimated but asked for, and always true.

    source  Mukerjee 2018, 3.4.1 (Estimate, Gather)
    """
    if age_s == 0 and noise == 0 and grain_km == 0:
        return problem
    score, capacity = problem.score, problem.capacity_mbps
    background = problem.background_mbps
    if age_s > 0:
        # what was over what is: both have the same spread, and correlate by exp(-age/memory)
        apart = np.sqrt(2 * -np.expm1(-age_s / memory_s))
        since = np.random.default_rng([seed, 0])
        background = background * since.lognormal(0.0, swing * apart, size=background.shape)
        score = score * since.lognormal(0.0, score_swing * apart, size=score.shape)
    if noise > 0:
        wrong = np.random.default_rng([seed, 1])
        factor = wrong.lognormal(0.0, noise, size=capacity.shape)
        capacity, background = capacity * factor, background * factor
        score = score * wrong.lognormal(0.0, noise, size=score.shape)
    if grain_km > 0:
        score = _by_square(problem, score, grain_km)
    return problem.believing(
        offered=problem.offered,
        score=score,
        price=problem.price,
        capacity_mbps=capacity,
        background_mbps=background,
    )


def _by_square(problem: Brokering, score: NDArray[np.float64], side_km: float) -> NDArray[np.float64]:
    """(L, C) the mean score of the clients in each location's square, by traffic."""
    latitude, longitude = (problem.locations[name].to_numpy(float) for name in ("latitude", "longitude"))
    place = globe.squares(latitude, longitude, side_km=side_km, radius_km=geography.EARTH_RADIUS_KM)
    squares, square = np.unique(place, axis=0, return_inverse=True)
    square = square.ravel()
    traffic = problem.demand_mbps
    busy = np.bincount(square, weights=traffic, minlength=len(squares))
    weight = np.where(busy[square] > 0, traffic, 1.0)  # where nobody is, all places count alike
    total = np.zeros((len(squares), score.shape[1]))
    np.add.at(total, square, score * weight[:, None])
    mean = total / np.bincount(square, weights=weight, minlength=len(squares))[:, None]
    return np.asarray(mean[square], dtype=np.float64)


def announced(believes: Callable[..., Brokering]) -> Callable[..., Brokering]:
    """What a broker believes when CDNs go by their estimates: with the parameters of `told` besides."""
    blurs = inspect.signature(told)

    @functools.wraps(believes)
    def sees(problem: Brokering, **parameters: Any) -> Brokering:
        how = {name: parameters.pop(name) for name in blurs.parameters if name in parameters}
        return believes(told(problem, **how), **parameters)

    own = inspect.signature(believes)
    names = [
        *own.parameters.values(),
        *(each for each in blurs.parameters.values() if each.name != "problem"),
    ]
    vars(sees).update(__signature__=own.replace(parameters=names))
    sees.__annotations__ = {**told.__annotations__, **believes.__annotations__}
    return sees


@announced
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
    shares = capacity == "free" or rule == "stable"
    background = np.zeros(len(problem.clusters)) if capacity != "free" else problem.background_mbps
    return problem.believing(
        offered=offered,
        score=problem.score,
        price=asked,
        capacity_mbps=problem.guessed_mbps if capacity == "guessed" else problem.capacity_mbps,
        background_mbps=background,
        announced=Announced(
            shares=shares,
            figures=(shares or bids != 1) + (price == "cluster") + (capacity != "guessed"),
        ),
    )


def brokered(problem: Brokering, *, similar: Similar = matching.SIMILAR) -> Brokering:
    """Today's broker: one cluster a CDN, contract prices, guessed capacities."""
    return protocol(problem, similar=similar)


@announced
def multicluster(problem: Brokering, *, bids: Bids = 100, similar: Similar = matching.SIMILAR) -> Brokering:
    """Several clusters a CDN with their performance, contract prices, guessed capacities."""
    return protocol(problem, bids=bids, similar=similar)


def dynamic_pricing(problem: Brokering, *, similar: Similar = matching.SIMILAR) -> Brokering:
    """One cluster a CDN at that cluster's cost, guessed capacities."""
    return protocol(problem, price="cluster", similar=similar)


@announced
def dynamic_multicluster(
    problem: Brokering, *, bids: Bids = 100, similar: Similar = matching.SIMILAR
) -> Brokering:
    """Several clusters a CDN, each at its cost, guessed capacities."""
    return protocol(problem, bids=bids, price="cluster", similar=similar)


@announced
def best_lookup(problem: Brokering, *, bids: Bids = 100, similar: Similar = matching.SIMILAR) -> Brokering:
    """Several clusters a CDN, each at its cost with its capacity, other traffic not told."""
    return protocol(problem, bids=bids, price="cluster", capacity="total", similar=similar)


@announced
def marketplace(
    problem: Brokering,
    *,
    bids: Bids = 100,
    rule: Annotated[matching.Rule, Field(description=RULE_ABOUT)] = "ranked",
    similar: Similar = matching.SIMILAR,
) -> Brokering:
    """Bids for the broker's clients: several clusters a CDN, each at its cost with the room it has."""
    return protocol(problem, bids=bids, price="cluster", capacity="free", rule=rule, similar=similar)
