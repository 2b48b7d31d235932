"""Adjustments that apply to every problem of system `geostore`, whatever its source."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Annotated, Literal

import numpy as np
import pandas as pd
from pydantic import Field

from planner.contract.parameters import spread
from planner.errors import InputError
from planner_models.geostore.problem.problem import Geostore
from planner_models.networks.nodes import find_names

Factor = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
LIMITS = ("read_ms", "write_ms")


@dataclass(frozen=True, kw_only=True)
class Adjustments:
    """Factors on access, prices and limits, other goals, and lost regions."""

    scale: Annotated[Positive, Field(description="all operations a second are multiplied by this")] = 1.0
    fail_regions: Annotated[
        tuple[str, ...], Field(description="regions that hold no replica; their users use others")
    ] = ()
    fail_providers: Annotated[
        tuple[str, ...], Field(description="providers whose regions hold no replica")
    ] = ()
    open_regions: Annotated[
        tuple[str, ...], Field(description="regions in which no group is forbidden any more")
    ] = ()
    price_factors: Annotated[
        dict[str, Factor], Field(description="regions, and what all their prices are multiplied by")
    ] = field(default_factory=dict)
    limit_ms: Annotated[
        Positive | None,
        Field(description="limit of reads and writes of all groups, ms; default: as in the tables"),
    ] = None
    limit_factor: Annotated[Positive, Field(description="limits of all groups are multiplied by this")] = 1.0
    failures: Annotated[
        int | None,
        Field(ge=0, le=100, description="failures that all groups survive; default: as in the tables"),
    ] = None
    frontends: Annotated[
        Literal["colocated", "every_region"] | None,
        Field(description="where front-end servers are; default: as in the tables"),
    ] = None
    checks: Annotated[
        Literal["closure", "remote", "cheapest"] | None,
        Field(description="where the order of dependent writes is checked; default: as in the tables"),
    ] = None


@spread(adjustments=Adjustments())
def adjust(problem: Geostore, *, adjustments: Adjustments) -> Geostore:
    """Return the problem with other access, prices, limits or regions.

    raises  InputError for regions and providers that are none, and where too few regions remain
    """
    changed, scale = problem, adjustments.scale
    if scale != 1:
        changed = changed.with_rates(scale * changed.use("reads_per_s"), scale * changed.use("writes_per_s"))
    changed = _adjust_groups(changed, adjustments)
    if adjustments.price_factors:
        changed = _scale_prices(changed, adjustments.price_factors)
    if adjustments.open_regions:
        changed = _open_to_all(changed, adjustments.open_regions)
    lost = _lost_regions(problem, adjustments.fail_regions, adjustments.fail_providers)
    if lost.any():
        changed = without_regions(changed, lost)
    if adjustments.frontends is not None:
        changed = changed.with_protocol(frontends=adjustments.frontends)
    return changed if adjustments.checks is None else changed.with_protocol(checks=adjustments.checks)


def _adjust_groups(problem: Geostore, adjustments: Adjustments) -> Geostore:
    """Return the problem with other limits and numbers of failures."""
    groups, factor = problem.groups, adjustments.limit_factor
    if adjustments.limit_ms is not None:
        groups = groups.assign(**dict.fromkeys(LIMITS, adjustments.limit_ms))
    if factor != 1:
        names = [name for name in (*LIMITS, "failover_ms", "stale_ms") if name in groups]
        groups = groups.assign(**{name: groups[name] * factor for name in names})
    if adjustments.failures is not None:
        groups = groups.assign(failures=float(adjustments.failures))
    return problem if groups is problem.groups else replace(problem, groups=groups)


def _open_to_all(problem: Geostore, names: tuple[str, ...]) -> Geostore:
    """Return the problem in which every group may be in some regions."""
    problem.require("open_regions", names, problem.region_index, "region")
    if problem.forbidden is None:
        return problem
    still = problem.forbidden[~problem.forbidden["region"].isin(list(names))]
    return replace(problem, forbidden=still.reset_index(drop=True))


def _scale_prices(problem: Geostore, factors: dict[str, float]) -> Geostore:
    """Return the problem with all prices of some regions, and of traffic from them, multiplied."""
    rows = problem.require("price_factors", factors, problem.region_index, "region")
    factor = np.ones(len(problem.regions))
    factor[rows] = np.array(list(factors.values()))
    names = ("storage_usd_gb_month", "put_usd", "get_usd", "server_usd_month")
    regions = problem.regions.assign(**{name: problem.regions[name] * factor for name in names})
    of_source = factor[find_names(problem.region_index, problem.links["source"])]
    links = problem.links.assign(usd_per_gb=problem.links["usd_per_gb"] * of_source)
    return replace(problem, regions=regions, links=links)


def _lost_regions(
    problem: Geostore, fail_regions: tuple[str, ...], fail_providers: tuple[str, ...]
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return whether each region is lost, (N,)."""
    lost = np.zeros(len(problem.regions), dtype=bool)
    lost[problem.require("fail_regions", fail_regions, problem.region_index, "region")] = True
    if fail_providers:
        if "provider" not in problem.regions:
            raise InputError("fail_providers: regions have no column provider")
        names = pd.Index(pd.unique(problem.regions["provider"].astype(str)))
        problem.require("fail_providers", fail_providers, names, "provider")
        lost |= problem.regions["provider"].isin(list(fail_providers)).to_numpy()
    return lost


def without_regions(problem: Geostore, lost: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Geostore:
    """Return the problem in which no group may be in lost regions; their users are still there.

    Groups must survive as many further failures as the remaining regions allow.
    """
    names = problem.region_index[lost]
    forbidden = problem.is_forbidden | lost
    group, region = np.nonzero(forbidden)
    frame = pd.DataFrame(
        {
            "group": problem.group_index.to_numpy(object)[group],
            "region": problem.region_index.to_numpy(object)[region],
        }
    )
    groups = problem.groups
    remaining = (~forbidden).sum(axis=1)
    possible = np.where(problem.is_strong, (remaining - 1) // 2, remaining - 1)
    failures = np.minimum(groups["failures"].to_numpy(float), np.maximum(possible, 0))
    groups = groups.assign(failures=failures)
    if "survive" in groups:
        is_single = possible < 1
        providers = np.array([len(np.unique(problem.provider[~row])) for row in forbidden])
        survive = groups["survive"].astype(object).to_numpy().copy()
        survive[(survive == "provider") & (providers < np.where(problem.is_strong, 3, 2))] = "region"
        survive[is_single & np.isin(survive, ("region", "provider"))] = "none"
        groups = groups.assign(survive=survive)
    pinned = problem.pinned
    if pinned is not None:
        pinned = pinned[~pinned["region"].isin(names)].reset_index(drop=True)
    return replace(problem, groups=groups, forbidden=frame, pinned=pinned)
