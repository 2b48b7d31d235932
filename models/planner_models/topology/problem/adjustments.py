"""Adjustments that apply to every problem of system `topology`, whatever its source."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import numpy as np
from pydantic import Field

from planner.errors import InputError
from planner_models.topology.problem.problem import Fabric, tabulate_links


def adjust(
    problem: Fabric,
    *,
    scale: Annotated[
        float, Field(gt=0, allow_inf_nan=False, description="every demand's rate is multiplied by this")
    ] = 1.0,
    fail_blocks: Annotated[
        tuple[str, ...],
        Field(description="blocks that are lost with their links; demand from and to them stays, unserved"),
    ] = (),
    port_factors: Annotated[
        dict[str, Annotated[float, Field(ge=1, allow_inf_nan=False)]],
        Field(description="blocks, and what their number of ports is multiplied by"),
    ] = {},  # noqa: B006 - never changed
    free_links: Annotated[
        bool, Field(description="ignore the links of today: all links may be made from nothing")
    ] = False,
    move_limit: Annotated[
        int | None,
        Field(ge=0, le=10**9, description="most links that may be made anew; default: as in the tables"),
    ] = None,
    step_limit: Annotated[
        int | None,
        Field(ge=1, le=10**9, description="most links that a step may move; default: as in the tables"),
    ] = None,
) -> Fabric:
    """Return the problem with other demands, blocks, ports or limits on changes.

    raises  InputError for blocks that are none
    """
    changed = problem
    if scale != 1:
        rate = changed.demands["rate_mbps"] * scale
        changed = replace(changed, demands=changed.demands.assign(rate_mbps=rate))
    if port_factors:
        rows = changed.require_blocks("port_factors", port_factors)
        ports = changed.ports.astype(float)
        ports[rows] = np.round(ports[rows] * np.array(list(port_factors.values())))
        changed = replace(changed, blocks=changed.blocks.assign(ports=ports))
    if free_links:
        changed = replace(changed, links=None, fabric=None)
    limits = {"move_limit": move_limit, "step_limit": step_limit}
    changes = {name: float(value) for name, value in limits.items() if value is not None}
    if changes and changed.links is None:
        raise InputError(f"{next(iter(changes))}: the problem has no links of today that could be moved")
    if changes:
        changed = changed.with_limits(**changes)
    return fail_all_ports(changed, fail_blocks) if fail_blocks else changed


def fail_all_ports(problem: Fabric, names: tuple[str, ...]) -> Fabric:
    """Return the problem in which some blocks have neither ports nor links; demand from and to them stays."""
    rows = problem.require_blocks("fail_blocks", names)
    ports = problem.ports.astype(float)
    ports[rows] = 0.0
    links, present = problem.links, problem.present
    if present is not None:
        remaining = present.copy()
        remaining[rows], remaining[:, rows] = 0, 0
        links = tabulate_links(problem, remaining)
    return replace(problem, blocks=problem.blocks.assign(ports=ports), links=links)
