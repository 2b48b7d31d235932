"""Information of control planes of system `flowtables`, and signalling between datapath and userspace.

Observations of connections: a sampled trace, only its most frequent headers, or one of some time ago.

Realization of a pool of masks: each miss installs an entry with a mask of the pool.

Signalling between datapath and userspace: packets that miss, and the entries that they install.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from planner.contract.degradation import AgeS, Seed
from planner.contract.signalling import FIGURE, NAME, Signalling
from planner_models.flowtables.plan.bit_index import make_bit_index
from planner_models.flowtables.plan.classification import classify
from planner_models.flowtables.plan.lookup import find_all, install_all, make_table
from planner_models.flowtables.plan.plan import Cache, make_plan, read_plan
from planner_models.flowtables.problem.problem import FlowTables

MEMORY_S = 600.0
"""Time after which 1/e of the connections in an old trace are still like those of today."""

Sampling = Annotated[
    float, Field(ge=0, le=1e6, description="one in so many connections is sampled; 0: all are known")
]
LeastPackets = Annotated[
    float, Field(ge=0, description="connections of fewer packets are not known; 0: all are known")
]
HEAVY = 1e6  # of a bit of the mask that is taken last


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


def realize(truth: FlowTables, observed: FlowTables, plan: Cache) -> Cache:
    """Return the cache after all true connections, from the planned masks.

    A connection without an entry gets one with a mask of the pool that keeps its action, the one with the
    most connections for an entry in the plan; where none does, one that matches all bits that rules match.
    """
    if truth is observed:
        return plan
    content, service = read_plan(observed, plan)
    headers, masks = truth.headers, content.masks
    table = make_table(headers.shape[1], len(headers), len(masks) + 1)
    table.masks[: len(masks)] = masks
    table.counts[1] = len(masks)
    entries_of = np.bincount(content.mask_of, minlength=len(masks))
    hit_masks = service.searched[service.entry >= 0] - 1
    table.weight[: len(masks)] = entries_of / np.maximum(np.bincount(hit_masks, minlength=len(masks)), 0.5)
    used_masks = np.broadcast_to(truth.used_mask, headers.shape).copy()
    install_all(
        table,
        headers,
        used_masks,
        truth.entries,
        make_bit_index(truth),
        np.full(64 * headers.shape[1], HEAVY),
        True,
    )
    entries, used = int(table.counts[0]), int(table.counts[1])
    value = table.value[:entries].copy()
    action = [truth.actions[number] for number in classify(value, truth.entries).tolist()]
    assert (np.asarray(find_all(table, headers)[0]) >= 0).all()
    return make_plan(truth, value, table.mask_of[:entries].copy(), table.masks[:used].copy(), action)


def count_installs(problem: FlowTables, plan: Cache) -> Signalling:
    """Return a message for each miss with its header, and one for each entry with value, mask and action."""
    content, service = read_plan(problem, plan)
    entries, uncached = len(content.value), int((service.entry < 0).sum())
    header = FIGURE * problem.layout.words
    return Signalling(
        messages=2 * entries + uncached, bytes=(entries + uncached) * header + entries * (2 * header + NAME)
    )
