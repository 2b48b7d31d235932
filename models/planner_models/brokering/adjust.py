"""What can be changed of any problem: weights, room, and which clusters are lost."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import Field

from planner.errors import InputError, did_you_mean
from planner.tables import few
from planner_models.brokering import restrictions
from planner_models.brokering.problem import Brokering, PerformancePer

Weight = Annotated[float, Field(ge=0)] | None


def adjust(
    problem: Brokering,
    *,
    performance_weight: Annotated[Weight, Field(description="wp, over that of the terms")] = None,
    cost_weight: Annotated[Weight, Field(description="wc, over that of the terms")] = None,
    performance_per: Annotated[
        PerformancePer | None,
        Field(description="client: a score counts once a client, as printed; bit: by its Mbit/s"),
    ] = None,
    capacity_scale: Annotated[
        float,
        Field(gt=0, allow_inf_nan=False, description="every cluster's capacity is multiplied by this"),
    ] = 1.0,
    free_scale: Annotated[
        float,
        Field(
            gt=0,
            allow_inf_nan=False,
            description="the room that background leaves in every cluster, times this",
        ),
    ] = 1.0,
    fail_clusters: Annotated[
        tuple[str, ...], Field(description="clusters that are lost; * ? [..] match any names")
    ] = (),
) -> Brokering:
    """The problem with other weights, without lost clusters, and with more or less room.

    Background stays as it is where capacity is scaled, which is before room is.

    raises  InputError for a name that is no cluster's, and clients that no cluster is left to serve
    """
    given = {
        "performance_weight": performance_weight,
        "cost_weight": cost_weight,
        "performance_per": performance_per,
    }
    if any(value is not None for value in given.values()):
        problem = problem.weighing(**{name: value for name, value in given.items() if value is not None})
    problem = without(problem, fail_clusters)
    with np.errstate(over="ignore"):  # room without end is refused in words
        if capacity_scale != 1:
            problem = _roomy(problem, problem.capacity_mbps * capacity_scale, "capacity_scale")
        if free_scale != 1:
            capacity = problem.background_mbps + free_scale * problem.free_mbps
            problem = _roomy(problem, capacity, "free_scale")
    return problem


def _roomy(problem: Brokering, capacity_mbps: NDArray[np.float64], key: str) -> Brokering:
    if not np.isfinite(capacity_mbps).all():
        raise InputError(f"problem.{key}: is so large that a capacity is no finite number")
    return problem.with_clusters(capacity_mbps=capacity_mbps)


def without(problem: Brokering, clusters: Sequence[str]) -> Brokering:
    """The problem without the clusters that are named, and without CDNs that have none left.

    What was found by regression of scores stays as it was. Bids of lost clusters go, as do contracts
    and rules that name nothing else; clients pinned to several clusters keep to those left.

    raises  InputError for a name that is no cluster's, and clients that no cluster is left to serve
    """
    if not clusters:
        return problem
    kept = _kept(problem, clusters)
    groups = problem.groups
    stranded = np.unique(groups.location[~problem.allowed[:, kept].any(axis=1)])
    if len(stranded):
        names = problem.locations["location"].iloc[stranded]
        faults = [f"problem.fail_clusters: no cluster is left to serve clients in {name}" for name in names]
        raise InputError(*few(faults, "problem", "of clients that no cluster is left to serve"))
    left = problem.clusters[kept].reset_index(drop=True)
    there = {"cluster": set(left["cluster"]), "cdn": set(left["cdn"])}

    def of_those(frame: pd.DataFrame | None, column: str) -> pd.DataFrame | None:
        return None if frame is None else frame[frame[column].isin(there[column])].reset_index(drop=True)

    contracts = of_those(problem.contracts, "cdn")

    return replace(
        problem,
        clusters=left,
        scores=of_those(_all_scores(problem), "cluster"),
        contracts=contracts if contracts is not None and len(contracts) else None,
        bids=of_those(problem.bids, "cluster"),
        pinned=restrictions.naming(problem.pinned, left),
        forbidden=restrictions.naming(problem.forbidden, left),
    )


def _kept(problem: Brokering, clusters: Sequence[str]) -> NDArray[np.bool_]:
    """(C,) the clusters that none of the names, or patterns, is of."""
    names = problem.clusters["cluster"].tolist()
    lost: set[str] = set()
    faults = []
    for name in clusters:
        found = {name} if name in names else {one for one in names if fnmatch.fnmatchcase(one, name)}
        if not found:
            faults.append(f"problem.fail_clusters: '{name}' is no cluster" + did_you_mean(name, names))
        lost |= found
    if not faults and len(lost) == len(names):
        faults.append("problem.fail_clusters: no cluster is left")
    if faults:
        raise InputError(*faults)
    return ~np.isin(np.array(names, dtype=object), list(lost))


def _all_scores(problem: Brokering) -> pd.DataFrame | None:
    """The table `scores` with what regression finds: it would find other values from fewer scores."""
    scores = problem.scores
    if scores is None:
        return None
    at = problem.location_places.get_indexer(pd.Index(scores["location"]))
    of = problem.cluster_places.get_indexer(pd.Index(scores["cluster"]))
    given = np.zeros((len(problem.locations), len(problem.clusters)), dtype=bool)
    given[at, of] = True
    place, cluster = np.nonzero(~given)
    if not len(place):
        return scores
    found = {
        "location": problem.locations["location"].to_numpy()[place],
        "cluster": problem.clusters["cluster"].to_numpy()[cluster],
        "score": problem.score[place, cluster],
    }
    return pd.concat([scores, pd.DataFrame(found)], ignore_index=True)
