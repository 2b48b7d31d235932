"""What becomes of a plan as hosts join and leave: what switches do at once, before a controller decides anew.

The controller's choices stay: which groups have entries, of which part of the addresses, and which
share one. Switches hear of joins and leaves themselves. A group that is new at a switch takes an entry
where there is one left; else, where the plan shares entries, the one that it makes least more costly;
else the switch refuses it, and the group goes by unicast. So every member is served.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from planner_models.multicast import designs, select
from planner_models.multicast.incremental import Tracker
from planner_models.multicast.plan import Channels
from planner_models.multicast.problem import LAYERS, Multicast
from planner_models.multicast.stored import Stored, at_aggregations, at_edges, rows_of


def enact(truth: Multicast, believed: Multicast, plan: Channels) -> Channels:
    """The plan as it plays out among the members that there are; rates change nothing.

    All groups of the plan must have as many copies.
    """
    if believed.members is truth.members or not len(plan.partitions):
        return plan
    kept = np.zeros(len(truth.groups), dtype=bool)
    partition = np.zeros(len(truth.groups), dtype=np.int64)
    row = rows_of(truth.group_names, plan.partitions["group"])
    kept[row] = True
    partition[row] = plan.partitions["partition"].to_numpy(np.int64)
    (copies,) = set(plan.partitions["copies"].astype(int))
    layer_of = truth.wiring.layers[rows_of(truth.wiring.switches, plan.meta_groups["switch"])]
    sharing = [layer for layer in LAYERS if layer in layer_of]
    room = select.room(truth, partition, copies, layers=[name for name in LAYERS if name not in sharing])
    mine = select.Room(takes=room.takes[:, np.flatnonzero(kept)], free=room.free)
    kept[kept] = select.by_arrival(mine)
    frames = [designs.nothing_shared()]
    for layer in sharing:
        now, before = (_stored(each, layer, kept, partition, copies) for each in (truth, believed))
        frames.append(_carried_on(truth, believed, now, before, plan))
    shared = pd.concat(frames[1:], ignore_index=True) if len(frames) > 1 else frames[0]
    return designs.plan_of(truth, kept, partition, copies, shared)


def _stored(
    problem: Multicast, layer: str, kept: NDArray[np.bool_], partition: NDArray[np.int64], copies: int
) -> Stored:
    if layer == "edge":
        return at_edges(problem, kept)
    return at_aggregations(problem, partition, problem.distribution(copies), kept)


def _carried_on(
    truth: Multicast, believed: Multicast, now: Stored, before: Stored, plan: Channels
) -> pd.DataFrame:
    """The table meta_groups of a layer: of the switches that share, or have to now."""
    old = designs.entries_before(truth, now, plan)
    assert old is not None  # the plan shares entries in this layer
    was_here = np.isin(
        now.switch * len(truth.groups) + now.group, before.switch * len(truth.groups) + before.group
    )
    free = truth.free(now.layer)
    rates = believed.rate_mbps[now.group]
    meta, shares = np.zeros(len(now.group), dtype=np.int64), np.zeros(len(now.group), dtype=bool)
    for switch, size in enumerate(free.tolist()):
        rows = slice(int(now.start[switch]), int(now.start[switch + 1]))
        mine, here = old[rows], was_here[rows]
        if (mine < 0).all():
            if len(mine) <= size:
                continue
            # each group that was here has an entry of its own
            mine = np.where(here, np.cumsum(here) - 1, -1)
        known = np.unique(mine[mine >= 0])
        mine = np.where(mine >= 0, np.searchsorted(known, mine), -1)
        masks = now.ports[rows]
        tracker = Tracker(
            masks=np.where(mine >= 0, masks, np.uint64(0)),
            rates=rates[rows],
            meta=mine,
            table_size=size,
            drift=float("inf"),
        )
        for group in np.flatnonzero(mine < 0).tolist():
            tracker.set_ports(group, masks[group])
        meta[rows] = np.unique(tracker.assigned, return_inverse=True)[1]
        shares[rows] = True
    return designs.shared_entries(truth, now, shares, meta)
