"""Old, noisy or coarse observations of access and round-trip times, plans in truth, and messages."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Final

import numpy as np
from pydantic import Field

from planner.arrays import Ints
from planner.contract.degradation import (
    AgeS,
    GranularityKm,
    Noise,
    Seed,
    add_noise,
    average_within,
    drift,
)
from planner.contract.parameters import spread
from planner.contract.signalling import FIGURE, NAME, Signalling
from planner.errors import InputError
from planner_models.geostore.plan.evaluation import evaluate, find_users, refused_load, servers_for
from planner_models.geostore.plan.plan import StorePlan, tabulate_servers
from planner_models.geostore.problem.problem import Geostore
from planner_models.geostore.problem.routes import EARTH_KM
from planner_models.globe import squares

PRICE_ROUNDS: Final = 12
"""Announcements of prices in design `priced`, unless it is told another number."""


@dataclass(frozen=True, kw_only=True)
class Change:
    """Change of access and round-trip times over time."""

    swing: Annotated[
        float, Field(ge=0, description="standard deviation of the logarithm of an access rate over time")
    ] = 0.5
    rtt_swing: Annotated[
        float, Field(ge=0, description="standard deviation of the logarithm of a round-trip time over time")
    ] = 0.05
    memory_s: Annotated[
        float, Field(gt=0, description="time in which the autocorrelation of both falls to 1/e, s")
    ] = 21_600.0


@spread(change=Change())
def observe(
    problem: Geostore,
    *,
    age_s: AgeS = 0.0,
    noise: Noise = 0.0,
    granularity_km: GranularityKm = 0.0,
    change: Change,
    seed: Seed = 0,
) -> Geostore:
    """Return the problem with access and round-trip times as they were reported.

    age    figures are those of `age_s` ago; each has drifted since then (Ornstein-Uhlenbeck)
    noise  every reported access rate is multiplied by a lognormal factor of median 1
    granularity  users of a group in regions within one square have equal rates: the mean of theirs

    raises  InputError for a granularity of regions without latitude and longitude
    """
    if age_s == 0 and noise == 0 and granularity_km == 0:
        return problem
    age_random, noise_random = np.random.default_rng([seed, 1]), np.random.default_rng([seed, 0])
    rates = []
    for column in ("reads_per_s", "writes_per_s"):
        rate = drift(
            problem.use(column), age=age_s, memory=change.memory_s, spread=change.swing, rng=age_random
        )
        rate = add_noise(rate, noise, noise_random)
        if granularity_km > 0:
            rate = average_within(rate, _blocks(problem, granularity_km))
        rates.append(rate)
    rtt = problem.links["rtt_ms"].to_numpy(float)
    rtt = drift(rtt, age=age_s, memory=change.memory_s, spread=change.rtt_swing, rng=age_random)
    return replace(problem.with_rates(*rates), links=problem.links.assign(rtt_ms=rtt))


def _blocks(problem: Geostore, side_km: float) -> Ints:
    """Return the number of each user's group and square of the map, (A,)."""
    if "latitude" not in problem.regions or "longitude" not in problem.regions:
        raise InputError("granularity_km: regions have no latitude and longitude")
    square = squares(
        problem.price("latitude"), problem.price("longitude"), side_km=side_km, radius_km=EARTH_KM
    )
    rows = np.column_stack([problem.user_group, square[problem.user_region]])
    return np.asarray(np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1), dtype=np.int64)


def realize(truth: Geostore, observed: Geostore, plan: StorePlan) -> StorePlan:
    """Return the plan with the true times of pages; servers that are billed by use follow the true load."""
    if truth is observed:
        return plan
    state = evaluate(truth, plan)
    user = find_users(truth, plan.routes)
    routes = plan.routes.assign(read_ms=state.read_ms[user], write_ms=state.write_ms[user])
    by_use = truth.price("least_servers") == 0
    number = np.where(by_use, servers_for(truth, state.load), state.servers)
    refused = refused_load(truth, state.load, 1000.0 * truth.price("server_kops") * number)
    return replace(plan, routes=routes, servers=tabulate_servers(truth, number, refused))


def _access(problem: Geostore) -> int:
    """Return the bytes of all access reports: group, region, reads and writes."""
    return len(problem.access) * (2 * NAME + 2 * FIGURE)


def _decided(plan: StorePlan) -> int:
    """Return the bytes of replicas and routes that are sent to regions."""
    return len(plan.replicas) * 2 * NAME + len(plan.routes) * 4 * NAME


def signal_own_access(problem: Geostore, plan: StorePlan) -> Signalling:
    """Count each group's report of its own access, and its decision."""
    return Signalling(messages=len(problem.groups), bytes=_access(problem) + _decided(plan))


def signal_all(problem: Geostore, plan: StorePlan) -> Signalling:
    """Count reports of access, prices and round-trip times to one controller, and its decision."""
    regions = len(problem.regions)
    reported = regions * (NAME + 6 * FIGURE) + regions * regions * 2 * FIGURE
    return Signalling(messages=2 * regions, bytes=reported + _access(problem) + _decided(plan))


def signal_prices(problem: Geostore, plan: StorePlan) -> Signalling:
    """Count the prices of limited regions to each group, and the groups' load, in each round of prices."""
    rounds = PRICE_ROUNDS if problem.is_limited.any() else 1
    groups, regions = len(problem.groups), len(problem.regions)
    sent = rounds * (groups * regions * (NAME + FIGURE) + len(plan.replicas) * (NAME + FIGURE))
    return Signalling(messages=2 * rounds * groups, bytes=_access(problem) + sent + _decided(plan))


def signal_bids(problem: Geostore, plan: StorePlan) -> Signalling:
    """Count the bids of all regions for each user, and the owners' selection."""
    bids = len(problem.access) * len(problem.regions) * (2 * NAME + 2 * FIGURE)
    return Signalling(messages=2 * len(problem.groups), bytes=_access(problem) + bids + _decided(plan))
