"""Adjustments that apply to every problem of system `topology`, whatever its source."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import numpy as np
import pandas as pd
from pydantic import Field

from planner.errors import InputError
from planner_models.topology.problem.problem import ENDS, TARGETS, Fabric, tabulate_links


def adjust(
    problem: Fabric,
    *,
    scale: Annotated[
        float, Field(gt=0, allow_inf_nan=False, description="every demand's rate is multiplied by this")
    ] = 1.0,
    fail_blocks: Annotated[
        tuple[str, ...],
        Field(description="blocks that are lost; demand from and to them, and their links, are left out"),
    ] = (),
    port_factors: Annotated[
        dict[str, Annotated[float, Field(ge=1, allow_inf_nan=False)]],
        Field(description="blocks, and what their number of ports is multiplied by"),
    ] = {},  # noqa: B006 - never changed
    free_links: Annotated[
        bool, Field(description="ignore the links of today: all links may be made from nothing")
    ] = False,
    move_limit: Annotated[
        int | None, Field(ge=0, description="most links that may be made anew; default: as in the tables")
    ] = None,
    step_limit: Annotated[
        int | None, Field(ge=1, description="most links that a step may move; default: as in the tables")
    ] = None,
) -> Fabric:
    """Return the problem with other demands, blocks, ports or limits on changes.

    raises  InputError for blocks that are none, and where no demand is left
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
    given = {name: float(value) for name, value in limits.items() if value is not None}
    if given and changed.links is None:
        raise InputError(f"{next(iter(given))}: the problem has no links of today that could be moved")
    if given:
        changed = changed.with_limits(**given)
    return remove_blocks(changed, fail_blocks) if fail_blocks else changed


def remove_blocks(problem: Fabric, names: tuple[str, ...]) -> Fabric:
    """Return the problem without some blocks, their links and the demand from and to them."""
    rows = problem.require_blocks("fail_blocks", names)
    lost = set(problem.block_index[rows])

    def rest(frame: pd.DataFrame, columns: tuple[str, ...]) -> pd.DataFrame:
        kept = ~np.logical_or.reduce([frame[column].isin(lost).to_numpy() for column in columns])
        left: pd.DataFrame = frame[kept].reset_index(drop=True)
        return left

    present = problem.present
    links = None
    if present is not None:
        kept = present.copy()
        kept[rows], kept[:, rows] = 0, 0
        links = tabulate_links(problem, kept)
        links = rest(links, ENDS)
    demands = rest(problem.demands, TARGETS)
    if not len(demands):
        raise InputError("fail_blocks: no demand is left without these blocks")
    return replace(problem, blocks=rest(problem.blocks, ("block",)), demands=demands, links=links)
