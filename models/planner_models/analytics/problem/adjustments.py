"""Adjustments that apply to every problem of system `analytics`, whatever its source."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import numpy as np
from pydantic import Field

from planner.errors import InputError, did_you_mean
from planner_models.analytics.problem.problem import Analytics

Factor = Annotated[float, Field(ge=0, allow_inf_nan=False)]


def adjust(
    problem: Analytics,
    *,
    scale: Annotated[
        float, Field(gt=0, le=1e6, description="records and cells of all sites are multiplied by this")
    ] = 1.0,
    bandwidth_scale: Annotated[
        float, Field(gt=0, le=1e6, description="capacity of all uplinks is multiplied by this")
    ] = 1.0,
    link_factors: Annotated[
        dict[str, Factor],
        Field(description="sites or points of presence, and what their uplinks' capacity is multiplied by"),
    ] = {},  # noqa: B006 - never changed
    fail_links: Annotated[
        tuple[str, ...], Field(description="sites or points of presence whose uplinks are lost")
    ] = (),
    fail_from_s: Annotated[float, Field(ge=0, description="start of the loss of fail_links, s")] = 0.0,
    fail_hours: Annotated[
        float, Field(ge=0, description="length of the loss of fail_links, hours; 0: until the end")
    ] = 0.0,
) -> Analytics:
    """Return the problem with other volumes or capacities.

    raises  InputError for a name that is neither a site nor a point of presence
    """
    faults = [
        f"{parameter}: '{name}' is neither a site nor a point of presence"
        + did_you_mean(name, problem.link_names)
        for parameter, names in (("link_factors", link_factors), ("fail_links", fail_links))
        for name in names
        if name not in problem.link_names
    ]
    if faults:
        raise InputError(*faults)
    changed = problem
    if scale != 1:
        volume = problem.volume.assign(
            records=problem.volume["records"] * scale, cells=problem.volume["cells"] * scale
        )
        changed = replace(changed, volume=volume)
    if bandwidth_scale != 1 or link_factors or fail_links:
        factor = np.full((len(problem.interval_numbers), len(problem.link_names)), bandwidth_scale)
        for name, value in link_factors.items():
            factor[:, problem.link_names.index(name)] *= value
        until = fail_from_s + fail_hours * 3600 if fail_hours > 0 else np.inf
        lost = (problem.start_s + problem.length_s > fail_from_s) & (problem.start_s < until)
        for name in fail_links:
            factor[lost, problem.link_names.index(name)] = 0.0
        changed = changed.with_capacity(problem.capacity_mbps * factor)
    return changed
