"""One-way priority ranking: the ISP ranks clusters for each location, as P4P and ALTO do; the CDN follows."""

from __future__ import annotations

from typing import Annotated, Final, Literal

import numpy as np
from pydantic import Field

from planner.arrays import Bools, Floats, Ints
from planner.contract.design import Decision
from planner.options import Options
from planner.search.deadline import Deadline
from planner_models.cdnrouting.designs.decision import decide_without_bound, refuse_shortage
from planner_models.cdnrouting.designs.moves import Situation, cheapest_assignment, link_prices
from planner_models.cdnrouting.designs.reaction import Rounds, play
from planner_models.cdnrouting.plan.flow_problem import Kinds
from planner_models.cdnrouting.plan.plan import DeliveryPlan
from planner_models.cdnrouting.problem.problem import Delivery
from planner_models.networks.nodes import find_names

Shown = Annotated[
    float, Field(gt=0, le=1, description="share of clusters, those ranked first, that the ISP shows")
]
Form = Annotated[
    Literal["rank", "price"],
    Field(
        description="rank: the CDN uses clusters that are shown; price: it adds the p-distance to the latency"
    ),
]
AVOIDED: Final = 100.0
"""Factor of the largest latency that a cluster costs which is not shown: used where capacity is short."""


@refuse_shortage
def plan(
    problem: Delivery,
    *,
    form: Form = "rank",
    shown: Shown = 0.5,
    rounds: Rounds = 10,
    options: Options = Options(),
) -> Decision[DeliveryPlan]:
    """Let the ISP rank clusters by the prices of its links; the CDN selects among them by latency at rest.

    The CDN reacts to ranks alone, not to measured delays. The p-distance of a pair is what one more Mbit/s
    costs the network on its routes, at the mean of its links' prices after all moves so far. Prices of the
    last move alone change places with it and never settle: over 20 draws of clusters on Abilene
    (`cdnrouting/draws`, with equal capacities and with those of `traffic/abilene`) the median of the price of
    anarchy is 4.0 with them, 1.6 with an exponential mean of 0.3, and 1.1 with the mean; the worst draws are
    16.7, 9.9 and 3.7. Ranks are computed again in each round; the ISP's ranks of the problem's table replace
    them.

    source  Xie et al. 2008 (P4P), 4; RFC 7285 (ALTO)
    """
    kinds = Kinds.of(problem)
    stated = stated_ranks(kinds, "isp")

    def select(situations: list[Situation]) -> Floats:
        present = situations[-1]
        distance = stated_prices(kinds, "isp") if stated is not None else None
        if distance is None:
            prices = np.mean([link_prices(problem, past.load) for past in situations], axis=0)
            distance = present.usage.latency(prices)
        latency = present.usage.latency(problem.network.latency)
        if form == "price":
            return cheapest_assignment(kinds, _weigh(problem, latency, distance), options)
        ranked = distance if stated is None else stated
        is_shown = show_first(kinds, ranked, shown)
        avoided = AVOIDED * float(latency.max(initial=1e-9))
        return cheapest_assignment(kinds, latency + np.where(is_shown, 0.0, avoided), options)

    course = play(kinds, select, rounds=rounds, options=options, deadline=Deadline.of(options))
    return decide_without_bound(problem, course.states(kinds), rounds=course.moves)


def _weigh(problem: Delivery, latency: Floats, distance: Floats) -> Floats:
    """Return latency and p-distance, each over its mean, by the weight of the terms, (K, S)."""
    weight = problem.performance_weight
    first = latency / max(float(latency.mean()), 1e-300)
    second = distance / max(float(distance.mean()), 1e-300)
    return np.asarray(weight * first + (1 - weight) * second)


def show_first(kinds: Kinds, ranked: Floats, share: float) -> Bools:
    """Return whether a cluster is among the first of a share of those that may serve a kind, (K, S)."""
    count = np.ceil(share * kinds.allowed.sum(axis=1) - 1e-9).astype(np.int64)
    return first_of(kinds, ranked, count)


def first_of(kinds: Kinds, ranked: Floats, count: Ints) -> Bools:
    """Return whether a cluster is among the first so many, (K,), that may serve a kind, (K, S)."""
    order = np.argsort(np.where(kinds.allowed, ranked, np.inf), axis=1, kind="stable")
    position = np.empty_like(order)
    np.put_along_axis(position, order, np.arange(order.shape[1])[None, :], axis=1)
    return np.asarray(kinds.allowed & (position < count[:, None]))


def stated_ranks(kinds: Kinds, who: str) -> Floats | None:
    """Return the (K, S) ranks that the problem's table has by one party; None without."""
    return _stated(kinds, who, "rank")


def stated_prices(kinds: Kinds, who: str) -> Floats | None:
    """Return the (K, S) prices that the problem's table has by one party; None where one is missing."""
    prices = _stated(kinds, who, "price")
    return None if prices is None or np.isnan(prices).any() else prices


def _stated(kinds: Kinds, who: str, column: str) -> Floats | None:
    problem, frame = kinds.problem, kinds.problem.ranks
    if frame is None or column not in frame:
        return None
    rows = frame[frame["who"].astype(str) == who]
    if not len(rows):
        return None
    table = np.full((len(problem.location_index), len(problem.clusters)), np.nan)
    location = find_names(problem.location_index, rows["location"])
    cluster = find_names(problem.cluster_index, rows["cluster"])
    table[location, cluster] = rows[column].to_numpy(float)
    return np.asarray(table[kinds.location])
