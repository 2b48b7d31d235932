"""Old or noisy observations of traffic, realization of plans in truth, and messages of the parties."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

import numpy as np
import pandas as pd
from pydantic import Field

from planner.contract.degradation import AgeS, Noise, Seed, add_noise, drift
from planner.contract.parameters import spread
from planner.contract.signalling import FIGURE, NAME, Signalling
from planner_models.cdnrouting.plan.plan import DeliveryPlan
from planner_models.cdnrouting.problem.problem import Delivery

NOT_SERVED: Final = 1e-6
"""Share of a group's traffic above which it is listed as unserved."""


@dataclass(frozen=True, kw_only=True)
class RateChange:
    """Change of traffic over time."""

    swing: Annotated[
        float, Field(ge=0, description="standard deviation of the logarithm of a rate over time")
    ] = 0.5
    memory_s: Annotated[
        float, Field(gt=0, description="time in which the autocorrelation of a rate falls to 1/e, s")
    ] = 3600.0


@spread(change=RateChange())
def observe(
    problem: Delivery, *, age_s: AgeS = 0.0, noise: Noise = 0.0, change: RateChange, seed: Seed = 0
) -> Delivery:
    """Return the problem with rates of background traffic and of clients as they were reported.

    age    rates are those of `age_s` ago; each has drifted since then (Ornstein-Uhlenbeck)
    noise  every reported rate is multiplied by a lognormal factor of median 1
    """
    if age_s == 0 and noise == 0:
        return problem
    age_random, noise_random = np.random.default_rng([seed, 1]), np.random.default_rng([seed, 0])
    rates = [problem.rate_mbps, problem.group_mbps]
    rates = [
        drift(rate, age=age_s, memory=change.memory_s, spread=change.swing, rng=age_random) for rate in rates
    ]
    background, clients = (add_noise(rate, noise, noise_random) for rate in rates)
    return problem.with_rates(background, clients)


def realize(truth: Delivery, observed: Delivery, plan: DeliveryPlan) -> DeliveryPlan:
    """Return the plan for the true clients: each group is served by the clusters in the planned shares.

    A cluster that more traffic comes to than it has capacity serves the same share of all of it.
    """
    if truth is observed:
        return plan
    key = ["location", "content"]
    factor = np.divide(
        truth.group_mbps,
        observed.group_mbps,
        out=np.zeros(len(truth.group_mbps)),
        where=observed.group_mbps > 0,
    )
    of_group = pd.Series(factor, index=pd.MultiIndex.from_frame(truth.groups[key]))
    frame = plan.assignments
    rows = pd.MultiIndex.from_frame(frame[key])
    mbps = frame["mbps"].to_numpy(float) * of_group.reindex(rows).to_numpy(float)
    state = ["move", "cluster"] if "move" in frame else ["cluster"]
    load = frame.assign(mbps=mbps).groupby(state)["mbps"].transform("sum").to_numpy(float)
    capacity = truth.capacity_mbps[truth.cluster_index.get_indexer(pd.Index(frame["cluster"]))]
    assignments = frame.assign(mbps=mbps * np.minimum(1.0, capacity / np.maximum(load, 1e-300)))
    return DeliveryPlan(
        assignments=assignments,
        routes=plan.routes,
        rounds=plan.rounds,
        shed=_tabulate_unserved(truth, assignments),
        outcome=None,
        front=plan.front,
    )


def _tabulate_unserved(truth: Delivery, assignments: pd.DataFrame) -> pd.DataFrame | None:
    """Return the traffic of groups that no cluster serves in the last state; None without any."""
    key = ["location", "content"]
    last = assignments
    if "move" in assignments and len(assignments):
        last = assignments[assignments["move"] == assignments["move"].max()]
    served = last.groupby(key)["mbps"].sum().reindex(pd.MultiIndex.from_frame(truth.groups[key]))
    missing = truth.group_mbps - served.fillna(0.0).to_numpy(float)
    rows = np.flatnonzero(missing > NOT_SERVED * truth.group_mbps)
    if not len(rows):
        return None
    return truth.groups[key].iloc[rows].assign(mbps=missing[rows]).reset_index(drop=True)


def _rounds(plan: DeliveryPlan) -> int:
    return 1 if plan.rounds is None or not len(plan.rounds) else int(plan.rounds["round"].max())


def _links(problem: Delivery) -> int:
    """Return the bytes of all links: ends, capacity, latency and load."""
    return len(problem.network.tail) * (2 * NAME + 3 * FIGURE)


def _clients(problem: Delivery) -> int:
    """Return the bytes of all groups of clients: location, content and traffic."""
    return len(problem.groups) * (2 * NAME + FIGURE)


def _accepted(plan: DeliveryPlan) -> int:
    """Return the bytes of the assignment in force: location, content, cluster and traffic."""
    rows = plan.assignments
    last = rows if "move" not in rows else rows[rows["move"] == rows["move"].max()]
    return len(last) * (3 * NAME + FIGURE)


def signal_network(problem: Delivery, plan: DeliveryPlan) -> Signalling:
    """Count the ISP's reports of links, and of the splits of routes, in each round."""
    rounds = _rounds(plan)
    rows = plan.routes
    routes = len(rows) if "move" not in rows else len(rows) // max(rows["move"].nunique(), 1)
    return Signalling(messages=rounds, bytes=rounds * (_links(problem) + routes * (3 * NAME + FIGURE)))


def signal_ranks(problem: Delivery, plan: DeliveryPlan) -> Signalling:
    """Count the ISP's ranks of clusters for each location, in each round."""
    pairs = problem.groups["location"].nunique() * len(problem.clusters)
    rounds = _rounds(plan)
    return Signalling(messages=rounds, bytes=rounds * int(pairs) * (2 * NAME + FIGURE))


def signal_offers(problem: Delivery, plan: DeliveryPlan) -> Signalling:
    """Count the CDN's offers with the traffic of its clients, and the ISP's selection among them."""
    offered = len(plan.assignments) * 2 * NAME
    return Signalling(messages=2, bytes=_clients(problem) + offered + _accepted(plan))


def signal_totals(problem: Delivery, plan: DeliveryPlan) -> Signalling:
    """Count the CDN's totals of clusters and traffic of clients, and the ISP's selection within them."""
    totals = len(problem.clusters) * (NAME + FIGURE)
    return Signalling(messages=2, bytes=totals + _clients(problem) + _accepted(plan))


def signal_all(problem: Delivery, plan: DeliveryPlan) -> Signalling:
    """Count all information of both parties, sent to one controller, and its decision."""
    reported = _links(problem) + _clients(problem) + len(problem.clusters) * (NAME + FIGURE)
    reported += len(problem.demands) * (2 * NAME + FIGURE)
    decided = len(plan.routes) * (3 * NAME + FIGURE) + _accepted(plan)
    return Signalling(messages=4, bytes=reported + decided)
