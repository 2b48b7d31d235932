"""Series of problems: a day in which rules change, hour by hour."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import pandas as pd
from pydantic import Field

from planner.arrays import Floats, Ints
from planner.contract.parameters import spread
from planner_models.flowtables.problem import generators
from planner_models.flowtables.problem.problem import FlowTables

HOURS = 24
NIGHT = 0.3  # connections in the quietest hour, as a part of those in the busiest


@dataclass(frozen=True, kw_only=True, eq=False)
class Day:
    """Hours of one switch, each with its rules and its connections.

    rules        rules of all hours, by falling priority
    rank         (R,) how popular each rule is, from 1
    active       the rules of each hour, by their rows
    connections  (H,) of each hour
    """

    rules: pd.DataFrame
    rank: Floats
    active: tuple[Ints, ...]
    connections: Ints
    skew: float
    seed: int

    def __len__(self) -> int:
        return len(self.active)

    def __iter__(self) -> Iterator[tuple[str, FlowTables]]:
        for hour, rows in enumerate(self.active):
            random = np.random.default_rng([self.seed, hour])
            rules = self.rules.iloc[rows].reset_index(drop=True)
            flows = generators.draw_flows(
                rules, int(self.connections[hour]), self.skew, random, rank=self.rank[rows]
            )
            yield f"{hour + 1:02d}h", FlowTables(rules=rules, flows=flows)


@dataclass(frozen=True, kw_only=True)
class HourlyRules:
    """Hours of a series, and the part of the rules that each replaces."""

    changed: Annotated[float, Field(ge=0, le=1, description="part of the rules that each hour replaces")] = (
        0.02
    )
    hours: Annotated[int, Field(ge=1, le=1_000, description="hours")] = HOURS


@spread(hourly=HourlyRules())
def day(
    *,
    kind: generators.RuleKind = "acl",
    rules: generators.RuleCount = 1_000,
    connections: Annotated[
        int, Field(ge=1, le=1_000_000, description="new connections in the busiest hour")
    ] = 4_000,
    hourly: HourlyRules,
    skew: generators.Skew = 1.1,
    accept: generators.Accept = 0.5,
    seed: generators.Seed = 1,
) -> Day:
    """Replace some rules of a switch each hour, with more connections by day than by night."""
    random = np.random.default_rng(seed)
    count = round(hourly.changed * rules)
    made = generators.draw_rules(generators.KINDS[kind], rules + count * (hourly.hours - 1), accept, random)
    order = random.permutation(len(made))
    active = [np.sort(order[:rules])]
    fresh = order[rules:]
    for _ in range(hourly.hours - 1):
        new, fresh = fresh[:count], fresh[count:]
        continued = random.permutation(active[-1])[len(new) :]
        active.append(np.sort(np.concatenate([continued, new])))
    busy = NIGHT + (1 - NIGHT) * (1 - np.cos(2 * np.pi * np.arange(hourly.hours) / HOURS)) / 2
    return Day(
        rules=made,
        rank=np.asarray(random.permutation(len(made)) + 1.0, dtype=np.float64),
        active=tuple(active),
        connections=np.maximum(1, (connections * busy).round()).astype(np.int64),
        skew=skew,
        seed=seed,
    )
