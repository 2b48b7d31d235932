"""Adjustments that apply to every problem of system `updates`, whatever its source."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import numpy as np
from pydantic import Field

from planner.errors import InputError, did_you_mean
from planner_models.updates.problem.problem import Update


def adjust(
    problem: Update,
    *,
    scale: Annotated[
        float, Field(gt=0, allow_inf_nan=False, description="every class's traffic is multiplied by this")
    ] = 1.0,
    table_headroom: Annotated[
        float | None,
        Field(
            ge=0,
            allow_inf_nan=False,
            description="space of all tables beyond the larger of before and after, as a part of it; "
            "default: as in the tables",
        ),
    ] = None,
    table_factors: Annotated[
        dict[str, Annotated[float, Field(ge=1, allow_inf_nan=False)]],
        Field(description="switches, and what the size of their tables is multiplied by"),
    ] = {},  # noqa: B006 - never changed
    link_slack: Annotated[
        float | None,
        Field(
            ge=0,
            allow_inf_nan=False,
            description="capacity of links beyond the larger load of before and after, as a part of it; "
            "default: as in the tables",
        ),
    ] = None,
    rule_ms: Annotated[
        float | None,
        Field(
            ge=0,
            allow_inf_nan=False,
            description="time of every switch for one rule, ms; default: as in the tables",
        ),
    ] = None,
    back: Annotated[bool, Field(description="plan the update back from next to now")] = False,
) -> Update:
    """Return the problem with other traffic, tables, links or times, or the update back.

    raises  InputError for switches that are none
    """
    changed = problem.reverse() if back else problem
    switches, links, classes = changed.switches, changed.links, changed.classes
    if scale != 1:
        classes = classes.assign(traffic_mbps=classes["traffic_mbps"] * scale)
    if table_headroom is not None:
        held = np.maximum(changed.rules_now, changed.rules_next)
        switches = switches.assign(rule_capacity=np.floor(held * (1 + table_headroom) + 1e-9))
    if table_factors:
        for name in table_factors:
            if name not in changed.switch_index:
                suggestion = did_you_mean(name, changed.switch_index)
                raise InputError(
                    f"problem.table_factors: '{name}' is no switch of the table switches" + suggestion
                )
        if "rule_capacity" in switches:
            factor = np.array([table_factors.get(str(name), 1.0) for name in switches["switch"]])
            switches = switches.assign(rule_capacity=np.floor(switches["rule_capacity"] * factor + 1e-9))
    if rule_ms is not None:
        switches = switches.assign(rule_ms=rule_ms)
    if link_slack is not None:
        load = np.maximum(*changed.link_loads) * scale
        capacity = np.where(load > 0, load * (1 + link_slack), max(float(load.max(initial=0.0)), 1.0))
        links = links.assign(capacity_mbps=capacity)
    if switches is changed.switches and links is changed.links and classes is changed.classes:
        return changed
    return replace(changed, switches=switches, links=links, classes=classes)
