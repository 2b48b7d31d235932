"""Observations of connections: a sampled trace, only its most frequent headers, or one of some time ago."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from planner.contract.degradation import AgeS, Seed
from planner_models.flowtables.problem.problem import FlowTables

MEMORY_S = 600.0
"""Time after which 1/e of the connections in an old trace are still like those of today."""

Sampling = Annotated[
    float, Field(ge=0, le=1e6, description="one in so many connections is sampled; 0: all are known")
]
LeastPackets = Annotated[
    float, Field(ge=0, description="connections of fewer packets are not known; 0: all are known")
]


def observe_trace(
    problem: FlowTables,
    *,
    age_s: AgeS = 0.0,
    sampling: Sampling = 0.0,
    least_packets: LeastPackets = 0.0,
    seed: Seed = 0,
) -> FlowTables:
    """Return the problem with the connections that a control plane knows, in their order.

    Of an old trace, a share exp(-age / 600 s) of the connections is as today; the others have addresses and
    ports of different connections, each field from another one, as popular values stay and pairs change.
    At least one connection is known.
    """
    if age_s == 0 and sampling <= 1 and least_packets == 0:
        return problem
    random = np.random.default_rng(seed)
    rows = np.arange(len(problem.flows))
    if sampling > 1:
        rows = rows[random.random(len(rows)) < 1 / sampling]
    rows = rows[problem.packets[rows] >= least_packets]
    rows = rows if len(rows) else np.zeros(1, dtype=np.int64)
    flows = problem.flows.iloc[rows].reset_index(drop=True)
    if age_s > 0:
        words = problem.headers[rows].copy()
        is_changed = random.random(len(rows)) >= np.exp(-age_s / MEMORY_S)
        for field in problem.layout.fields:
            field_mask = problem.layout.to_words([problem.layout.full_mask([field.name])])[0]
            donor = words[random.permutation(len(words))]
            words[is_changed] = (words[is_changed] & ~field_mask) | (donor[is_changed] & field_mask)
        full = problem.layout.full_mask(problem.layout.by_name)
        numbers = problem.layout.to_numbers(words)
        flows = flows.assign(header=[problem.layout.format_match(number, full) for number in numbers])
    return problem.with_flows(flows)
