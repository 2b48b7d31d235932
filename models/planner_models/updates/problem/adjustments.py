"""Adjustments that apply to every problem of system `updates`, whatever its source."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Annotated

import numpy as np
import pandas as pd
from pydantic import Field

from planner.contract.parameters import spread
from planner.errors import InputError, did_you_mean
from planner_models.updates.problem.problem import Update


@dataclass(frozen=True, kw_only=True)
class Adjustments:
    """Other traffic, tables, links or times."""

    scale: Annotated[
        float, Field(gt=0, allow_inf_nan=False, description="every class's traffic is multiplied by this")
    ] = 1.0
    table_headroom: Annotated[
        float | None,
        Field(
            ge=0,
            allow_inf_nan=False,
            description="space of all tables beyond the larger of before and after, as a part of it; "
            "default: as in the tables",
        ),
    ] = None
    table_factors: Annotated[
        dict[str, Annotated[float, Field(ge=1, allow_inf_nan=False)]],
        Field(description="switches, and what the size of their tables is multiplied by"),
    ] = field(default_factory=dict)
    link_slack: Annotated[
        float | None,
        Field(
            ge=0,
            allow_inf_nan=False,
            description="capacity of links beyond the larger load of before and after, as a part of it; "
            "default: as in the tables",
        ),
    ] = None
    rule_ms: Annotated[
        float | None,
        Field(
            ge=0,
            allow_inf_nan=False,
            description="time of every switch for one rule, ms; default: as in the tables",
        ),
    ] = None
    back: Annotated[bool, Field(description="plan the update back from next to now")] = False


@spread(adjustments=Adjustments())
def adjust(problem: Update, *, adjustments: Adjustments) -> Update:
    """Return the problem with other traffic, tables, links or times, or the update back.

    raises  InputError for switches that are none
    """
    changed = problem.reverse() if adjustments.back else problem
    classes = changed.classes
    if adjustments.scale != 1:
        classes = classes.assign(traffic_mbps=classes["traffic_mbps"] * adjustments.scale)
    switches, links = _adjust_switches(changed, adjustments), changed.links
    if adjustments.link_slack is not None:
        load = np.maximum(*changed.link_loads) * adjustments.scale
        idle = max(float(load.max(initial=0.0)), 1.0)
        links = links.assign(capacity_mbps=np.where(load > 0, load * (1 + adjustments.link_slack), idle))
    if switches is changed.switches and links is changed.links and classes is changed.classes:
        return changed
    return replace(changed, switches=switches, links=links, classes=classes)


def _adjust_switches(problem: Update, adjustments: Adjustments) -> pd.DataFrame:
    """Return the table of switches with other sizes of tables and times."""
    switches = problem.switches
    if adjustments.table_headroom is not None:
        held = np.maximum(problem.rules_now, problem.rules_next)
        capacity = np.floor(held * (1 + adjustments.table_headroom) + 1e-9)
        switches = switches.assign(rule_capacity=capacity)
    for name in adjustments.table_factors:
        if name not in problem.switch_index:
            suggestion = did_you_mean(name, problem.switch_index)
            raise InputError(
                f"problem.table_factors: '{name}' is no switch of the table switches" + suggestion
            )
    if adjustments.table_factors and "rule_capacity" in switches:
        factors = adjustments.table_factors
        factor = np.array([factors.get(str(name), 1.0) for name in switches["switch"]])
        switches = switches.assign(rule_capacity=np.floor(switches["rule_capacity"] * factor + 1e-9))
    if adjustments.rule_ms is not None:
        switches = switches.assign(rule_ms=adjustments.rule_ms)
    return switches
