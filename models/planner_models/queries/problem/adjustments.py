"""Adjustments that apply to every problem of system `queries`, whatever its source."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import numpy as np
from pydantic import Field

from planner.arrays import Floats
from planner_models.queries.problem.problem import Monitoring
from planner_models.queries.problem.schema import MOST_RATE, MOST_RULES

Scale = Annotated[float, Field(gt=0, le=1e6, allow_inf_nan=False)]


def adjust(
    problem: Monitoring,
    *,
    rule_scale: Annotated[
        Scale, Field(description="rules of each switch, of both kinds, are multiplied by this")
    ] = 1.0,
    packet_scale: Annotated[
        Scale, Field(description="packets that each switch may send to the controller are multiplied by this")
    ] = 1.0,
    poll_scale: Annotated[Scale, Field(description="polls of each switch are multiplied by this")] = 1.0,
    pipeline: Annotated[
        bool | None, Field(description="whether each query has a table of its own; default: as in the tables")
    ] = None,
    round_trip_ms: Annotated[
        float | None,
        Field(ge=0, le=1e6, description="round trip to the controller; default: as in the tables"),
    ] = None,
) -> Monitoring:
    """Return the problem with other limits of switches, or another controller."""
    columns: dict[str, Floats] = {}
    if rule_scale != 1:
        columns |= {
            name: np.minimum(np.floor(problem.limit(name) * rule_scale), MOST_RULES)
            for name in ("rules", "exact_rules")
        }
    if packet_scale != 1:
        columns["packets_per_s"] = np.minimum(problem.limit("packets_per_s") * packet_scale, MOST_RATE)
    if poll_scale != 1:
        columns["polls_per_s"] = np.minimum(problem.limit("polls_per_s") * poll_scale, MOST_RATE)
    if pipeline is not None:
        columns["pipeline"] = np.full(len(problem.switches), float(pipeline))
    changed = problem.with_switches(**columns) if columns else problem
    return (
        changed
        if round_trip_ms is None
        else replace(changed, controller=changed.find_controller(round_trip_ms))
    )
