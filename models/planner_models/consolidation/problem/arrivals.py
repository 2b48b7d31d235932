"""Machines that arrive and leave: their numbers at a time, and a day hour by hour."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Final

import numpy as np
import pandas as pd
from pydantic import Field

from planner.arrays import Ints
from planner_models.consolidation.problem.generators import Count, Seed, awkward
from planner_models.consolidation.problem.problem import Consolidation
from planner_models.networks.nodes import find_names

HOUR_S: Final = 3600.0
NIGHT: Final = 0.4
"""Machines of the quietest hour over those of the busiest one."""


def count_at(problem: Consolidation, at_s: float) -> Ints:
    """Return the machines of each shape after the events up to a time, (M,); never below 0."""
    count = problem.count.astype(float)
    if problem.events is not None and len(problem.events):
        past = problem.events[problem.events["at_s"].to_numpy(float) <= at_s]
        sign = np.where(past["what"].to_numpy() == "arrives", 1.0, -1.0)
        shape = find_names(problem.machine_index, past["machine"])
        np.add.at(count, shape, sign * past["machines"].to_numpy(float))
        if "into" in past:
            resized = past[past["what"] == "resizes"]
            shape = find_names(problem.machine_index, resized["into"])
            np.add.at(count, shape, resized["machines"].to_numpy(float))
    return np.asarray(np.maximum(np.rint(count), 0.0), dtype=np.int64)


def after_events(problem: Consolidation, at_s: float) -> Consolidation:
    """Return the problem with the machines that are there at a time, and the events after it."""
    events = problem.events
    if events is not None:
        events = events[events["at_s"].to_numpy(float) > at_s].reset_index(drop=True)
    machines = problem.machines.assign(count=count_at(problem, at_s).astype(float))
    return replace(problem, machines=machines, events=events)


@dataclass(frozen=True, kw_only=True, eq=False)
class Day:
    """A problem with events, at the end of each hour."""

    problem: Consolidation
    hours: int

    def __len__(self) -> int:
        return self.hours

    def __iter__(self) -> Iterator[tuple[str, Consolidation]]:
        for hour in range(self.hours):
            yield f"{hour + 1:02d}h", after_events(self.problem, (hour + 1) * HOUR_S)


def arrivals(
    *,
    machines: Count = 1_000,
    shapes: Annotated[int, Field(ge=1, le=100, description="number of different shapes")] = 12,
    hours: Annotated[int, Field(ge=1, le=1_000, description="number of hours")] = 24,
    seed: Seed = 1,
) -> Day:
    """Build a day in which machines of awkward sizes arrive by day and leave at night, hour by hour."""
    random = np.random.default_rng([seed, 2])
    busiest = awkward(machines=machines, shapes=shapes, network=False, seed=seed)
    phase = np.arange(hours + 1) / 24
    level = NIGHT + (1 - NIGHT) * (0.5 - 0.5 * np.cos(2 * np.pi * phase))
    noise = random.uniform(0.9, 1.1, (hours + 1, shapes))
    count = np.rint(busiest.count[None] * level[:, None] * noise)
    rows = [
        (hour * HOUR_S, name, "arrives" if change > 0 else "leaves", abs(change))
        for hour in range(1, hours + 1)
        for name, change in zip(busiest.machine_index, count[hour] - count[hour - 1], strict=True)
        if change
    ]
    events = pd.DataFrame(rows, columns=["at_s", "machine", "what", "machines"])
    start = replace(busiest, machines=busiest.machines.assign(count=count[0]), events=events)
    return Day(problem=start, hours=hours)
