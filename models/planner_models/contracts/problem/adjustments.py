"""Adjustments that apply to every problem of system `contracts`, whatever its source."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Annotated

import numpy as np
import pandas as pd
from pydantic import Field

from planner.errors import InputError, did_you_mean
from planner_models.contracts.problem.problem import Month

Factor = Annotated[float, Field(ge=0, allow_inf_nan=False)]


def adjust(
    problem: Month,
    *,
    scale: Annotated[
        float, Field(gt=0, allow_inf_nan=False, description="traffic of all windows is multiplied by this")
    ] = 1.0,
    commitment_scale: Annotated[
        float, Field(ge=0, allow_inf_nan=False, description="every commitment is multiplied by this")
    ] = 1.0,
    capacity_scale: Annotated[
        float, Field(gt=0, allow_inf_nan=False, description="every contract's capacity is multiplied by this")
    ] = 1.0,
    max_moved_percent: Annotated[
        float | None,
        Field(
            ge=0,
            le=100,
            description="most traffic of every region that changes its CDN between consecutive windows, in "
            "percent, in place of the limits of table switching",
        ),
    ] = None,
    price_factors: Annotated[
        dict[str, Factor], Field(description="CDNs, and what all their prices are multiplied by")
    ] = {},  # noqa: B006 - never changed
    fail_cdns: Annotated[
        tuple[str, ...], Field(description="CDNs that carry nothing; their commitments are paid for")
    ] = (),
) -> Month:
    """Return the problem with other traffic, commitments, capacities, prices or limits of switching.

    raises  InputError for a name that is no CDN's
    """
    changed, contracts = problem, problem.contracts
    cdns = contracts["cdn"].astype(str)
    _require_cdns("price_factors", price_factors, set(cdns))
    _require_cdns("fail_cdns", fail_cdns, set(cdns))
    if scale != 1:
        names = [name for name in ("traffic_mbps", "traffic_in_mbps") if name in changed.traffic]
        traffic = changed.traffic.assign(**{name: changed.traffic[name] * scale for name in names})
        changed = replace(changed, traffic=traffic)
    if commitment_scale != 1:
        changed = changed.with_contracts(commitment_mbps=contracts["commitment_mbps"] * commitment_scale)
    if capacity_scale != 1:
        changed = changed.with_contracts(capacity_mbps=contracts["capacity_mbps"] * capacity_scale)
    if max_moved_percent is not None:
        limits = pd.DataFrame({"region": problem.regions, "max_moved_percent": float(max_moved_percent)})
        changed = replace(changed, switching=limits)
    if price_factors:
        changed = _scale_prices(changed, price_factors)
    if fail_cdns:
        works = ~np.isin(cdns.to_numpy(object), list(fail_cdns))
        capacity = changed.contracts["capacity_mbps"] * works
        changed = changed.with_contracts(capacity_mbps=capacity)
    return changed


def _require_cdns(parameter: str, names: Iterable[str], cdns: set[str]) -> None:
    """Refuse names that are no CDN's."""
    faults = [
        f"{parameter}: '{name}' is no CDN" + did_you_mean(name, cdns) for name in names if name not in cdns
    ]
    if faults:
        raise InputError(*faults)


def _scale_prices(problem: Month, factors: Mapping[str, float]) -> Month:
    """Return the problem with other prices of some CDNs, those of tiers too."""
    contracts, tiers = problem.contracts, problem.tiers
    if tiers is not None and len(tiers):
        factor = tiers["cdn"].astype(str).map(factors).fillna(1.0).to_numpy(float)
        tiers = tiers.assign(price_per_mbps=tiers["price_per_mbps"] * factor)
    factor = contracts["cdn"].astype(str).map(factors).fillna(1.0).to_numpy(float)
    names = [name for name in ("price_per_mbps", "burst_price_per_mbps") if name in contracts]
    changed = contracts.assign(**{name: contracts[name] * factor for name in names})
    return replace(problem, contracts=changed, tiers=tiers)
