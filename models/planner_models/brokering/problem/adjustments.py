"""Adjustments of any problem: other weights, other capacities, failed clusters."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated

import numpy as np
import pandas as pd
from pydantic import Field

from planner.arrays import Bools, Floats
from planner.contract.parameters import spread
from planner.errors import InputError, did_you_mean
from planner_models.brokering.problem import restrictions
from planner_models.brokering.problem.problem import Brokering
from planner_models.brokering.problem.schema import RULE
from planner_models.brokering.problem.terms import PerformancePer

Factors = dict[str, Annotated[float, Field(gt=0, allow_inf_nan=False)]]
Weight = Annotated[float, Field(ge=0)] | None


@dataclass(frozen=True, kw_only=True)
class Adjustments:
    """Weights, factors on capacity, prices and demand, and failed elements."""

    performance_weight: Annotated[Weight, Field(description="wp, over that of the terms")] = None
    cost_weight: Annotated[Weight, Field(description="wc, over that of the terms")] = None
    performance_per: Annotated[
        PerformancePer | None,
        Field(
            description="client: a score counts once a client, as printed; bit: by its Mbit/s; "
            "location: once a client, and costs by the mean bitrate of its location"
        ),
    ] = None
    capacity_scale: Annotated[
        float,
        Field(gt=0, allow_inf_nan=False, description="every cluster's capacity is multiplied by this"),
    ] = 1.0
    free_scale: Annotated[
        float,
        Field(
            gt=0,
            allow_inf_nan=False,
            description="every cluster's residual capacity (less background traffic) is multiplied by this",
        ),
    ] = 1.0
    capacity_factors: Annotated[
        Factors, Field(description="clusters whose capacity is multiplied, and by what")
    ] = field(default_factory=dict)
    price_factors: Annotated[
        Factors,
        Field(description="CDNs whose costs, contract prices and prices of bids are multiplied, and by what"),
    ] = field(default_factory=dict)
    demand_factors: Annotated[
        Factors, Field(description="places whose numbers of clients are multiplied, rounded, and by what")
    ] = field(default_factory=dict)
    fail_clusters: Annotated[
        tuple[str, ...],
        Field(
            description="clusters that are lost; * ? [..] match any names where no cluster has exactly "
            "this one"
        ),
    ] = ()
    fail_cdns: Annotated[
        tuple[str, ...], Field(description="CDNs that leave the market, with all their clusters")
    ] = ()


@spread(adjustments=Adjustments())
def adjust(problem: Brokering, *, adjustments: Adjustments) -> Brokering:
    """Return the problem with other weights, prices, demand and capacities, without failed elements.

    Background traffic is not scaled. `capacity_scale` is applied before `free_scale`. Where no cluster is
    left, all clusters stay in the table and must serve nobody.

    raises  InputError for a name that is no cluster's, CDN's or place's
    """
    weights = {"performance_weight": adjustments.performance_weight, "cost_weight": adjustments.cost_weight}
    terms = {**weights, "performance_per": adjustments.performance_per}
    if changes := {name: value for name, value in terms.items() if value is not None}:
        problem = problem.with_terms(**changes)
    problem = _change_prices(problem, adjustments.price_factors)
    problem = _change_demand(problem, adjustments.demand_factors)
    if adjustments.capacity_factors:
        factor = _factors(
            "capacity_factors", "cluster", problem.clusters["cluster"], adjustments.capacity_factors
        )
        problem = problem.with_clusters(capacity_mbps=problem.capacity_mbps * factor)
    lost = _clusters_of(problem, adjustments.fail_cdns)
    problem = remove_clusters(problem, adjustments.fail_clusters, lost)
    with np.errstate(over="ignore"):  # an infinite capacity is refused with a message
        if adjustments.capacity_scale != 1:
            problem = _set_capacity(
                problem, problem.capacity_mbps * adjustments.capacity_scale, "capacity_scale"
            )
        if adjustments.free_scale != 1:
            capacity = problem.background_mbps + adjustments.free_scale * problem.residual_mbps
            problem = _set_capacity(problem, capacity, "free_scale")
    return problem


def _factors(key: str, kind: str, names: pd.Series, factors: Mapping[str, float]) -> Floats:
    """Return the factor of each name, shape (names,)."""
    names_known = set(names)
    faults = [
        f"problem.{key}: '{name}' is no {kind}" + did_you_mean(name, list(names_known))
        for name in factors
        if name not in names_known
    ]
    if faults:
        raise InputError(*faults)
    return names.map(lambda name: factors.get(name, 1.0)).to_numpy(float)


def _change_prices(problem: Brokering, factors: Mapping[str, float]) -> Brokering:
    """Return the problem with other costs, contract prices and prices of bids of some CDNs."""
    if not factors:
        return problem
    clusters = problem.clusters
    factor = _factors("price_factors", "CDN", clusters["cdn"], factors)
    costs = {name: clusters[name].to_numpy(float) * factor for name in ("bandwidth_cost", "colocation_cost")}
    contracts, bids = problem.contracts, problem.bids
    if contracts is not None:
        by_cdn = contracts["cdn"].map(lambda name: factors.get(name, 1.0))
        contracts = contracts.assign(price=contracts["price"] * by_cdn)
    if bids is not None and "price" in bids:
        by_cluster = pd.Series(factor, index=clusters["cluster"])
        bids = bids.assign(price=bids["price"] * bids["cluster"].map(by_cluster))
    return replace(problem, clusters=clusters.assign(**costs), contracts=contracts, bids=bids)


def _change_demand(problem: Brokering, factors: Mapping[str, float]) -> Brokering:
    """Return the problem with other numbers of clients at some places."""
    if not factors:
        return problem
    factor = _factors("demand_factors", "place", problem.locations["location"], factors)
    return problem.with_client_counts(np.rint(problem.count * factor[problem.location]))


def _clusters_of(problem: Brokering, cdns: Sequence[str]) -> list[str]:
    """Return the clusters of some CDNs."""
    of_cdn = problem.clusters["cdn"]
    _factors("fail_cdns", "CDN", of_cdn, dict.fromkeys(cdns, 1.0))  # names that are unknown
    return problem.clusters["cluster"][of_cdn.isin(cdns)].tolist()


def _set_capacity(problem: Brokering, capacity_mbps: Floats, key: str) -> Brokering:
    if not np.isfinite(capacity_mbps).all():
        raise InputError(f"problem.{key}: is so large that a capacity is no finite number")
    return problem.with_clusters(capacity_mbps=capacity_mbps)


def remove_clusters(problem: Brokering, clusters: Sequence[str], others: Sequence[str] = ()) -> Brokering:
    """Return the problem without the clusters that are named, and without CDNs that have none left.

    Scores from regression stay as they were. Bids of removed clusters go, as do contracts and rules that
    name nothing else; pinned clients keep to the clusters that remain. Clients that no cluster is left to
    serve stay in the problem. Where all clusters are removed, they stay, and must serve nobody.

    clusters  names or patterns
    others    further names, exact

    raises    InputError for a name that is no cluster's
    """
    if not clusters and not others:
        return problem
    remains = _remaining_clusters(problem, clusters) & ~problem.clusters["cluster"].isin(others).to_numpy()
    if not remains.any():
        nobody = pd.DataFrame([[restrictions.ANY] * len(RULE)], columns=list(RULE))
        return replace(problem, forbidden=nobody)
    remaining = problem.clusters[remains].reset_index(drop=True)
    remaining_names = {"cluster": set(remaining["cluster"]), "cdn": set(remaining["cdn"])}

    def of_those(frame: pd.DataFrame | None, column: str) -> pd.DataFrame | None:
        return (
            None
            if frame is None
            else frame[frame[column].isin(remaining_names[column])].reset_index(drop=True)
        )

    contracts, limits = of_those(problem.contracts, "cdn"), of_those(problem.limits, "cdn")
    return replace(
        problem,
        clusters=remaining,
        scores=of_those(_completed_scores(problem), "cluster"),
        contracts=contracts if contracts is not None and len(contracts) else None,
        limits=limits if limits is not None and len(limits) else None,
        bids=of_those(problem.bids, "cluster"),
        pinned=restrictions.select_rules(problem.pinned, remaining),
        forbidden=restrictions.select_rules(problem.forbidden, remaining),
    ).with_pinned(problem.pinned)


def _remaining_clusters(problem: Brokering, clusters: Sequence[str]) -> Bools:
    """Return the clusters that match none of the names or patterns, a mask (C,)."""
    names = problem.clusters["cluster"].tolist()
    failed: set[str] = set()
    faults = []
    for name in clusters:
        matching = {name} if name in names else {each for each in names if fnmatch.fnmatchcase(each, name)}
        if not matching:
            faults.append(f"problem.fail_clusters: '{name}' is no cluster" + did_you_mean(name, names))
        failed |= matching
    if faults:
        raise InputError(*faults)
    return ~np.isin(np.array(names, dtype=object), list(failed))


def _completed_scores(problem: Brokering) -> pd.DataFrame | None:
    """Return the table `scores` with those from regression, which fewer scores would change."""
    scores = problem.scores
    if scores is None:
        return None
    is_given = np.zeros((len(problem.locations), len(problem.clusters)), dtype=bool)
    is_given[problem.locate_pairs(scores)] = True
    location, cluster = np.nonzero(~is_given)
    if not len(location):
        return scores
    filled = {
        "location": problem.locations["location"].to_numpy()[location],
        "cluster": problem.clusters["cluster"].to_numpy()[cluster],
        "score": problem.score[location, cluster],
    }
    return pd.concat([scores, pd.DataFrame(filled)], ignore_index=True)
