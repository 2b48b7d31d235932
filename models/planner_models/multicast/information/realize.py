"""The outcome of a plan as hosts join and leave: switches adapt at once, before a controller decides again.

The controller's choices stay: the groups with entries, their partition of the addresses, and the groups that
share an entry. Switches learn of joins and leaves themselves. A group that is new at a switch takes a free
entry; where none is free and the plan shares entries, it joins the one that it makes least more costly;
otherwise the switch refuses it, and the group goes by unicast. So every member is served.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from planner.arrays import Ints
from planner_models.multicast.plan import table_limits
from planner_models.multicast.plan.entry_tracker import insert_new_groups
from planner_models.multicast.plan.plan import Channels, build_plan
from planner_models.multicast.plan.switch_groups import (
    StoredGroups,
    build_meta_groups,
    groups_at,
    previous_entries,
)
from planner_models.multicast.problem.problem import LAYERS, Multicast
from planner_models.multicast.problem.topology import find_rows


def realize(truth: Multicast, observed: Multicast, plan: Channels) -> Channels:
    """Return the plan as it plays out among the true members; true rates change nothing.

    All groups of the plan must have the same number of copies.
    """
    if observed.members is truth.members or not len(plan.partitions):
        return plan
    kept = np.zeros(len(truth.groups), dtype=bool)
    partition = np.zeros(len(truth.groups), dtype=np.int64)
    row = find_rows(truth.group_names, plan.partitions["group"])
    kept[row] = True
    partition[row] = plan.partitions["partition"].to_numpy(np.int64)
    (copies,) = set(plan.partitions["copies"].astype(int))
    layer_of = truth.wiring.layers[find_rows(truth.wiring.switches, plan.meta_groups["switch"])]
    sharing = [layer for layer in LAYERS if layer in layer_of]
    others = [name for name in LAYERS if name not in sharing]
    limits = table_limits.join_limits(
        table_limits.build_limits(truth, copies, partition=partition, layers=others),
        table_limits.build_limits(truth, copies, partition=partition, layers=sharing).without_free_entries(),
    )
    kept[kept] = table_limits.admit_in_order(limits.of_groups(kept))
    frames = []
    for layer in sharing:
        now, before = (groups_at(layer, each, kept, partition, copies) for each in (truth, observed))
        frames.append(_place_new_groups(truth, observed, now, before, plan))
    shared = pd.concat(frames, ignore_index=True) if frames else None
    return build_plan(truth, kept, copies, partition=partition, meta_groups=shared)


def _place_new_groups(
    truth: Multicast, observed: Multicast, now: StoredGroups, before: StoredGroups, plan: Channels
) -> pd.DataFrame:
    """Return the table meta_groups of a layer: of the switches that shared entries, or have to now."""
    old = previous_entries(truth, now, plan.meta_groups)
    assert old is not None  # the plan shares entries in this layer
    was_here = np.isin(
        now.switch * len(truth.groups) + now.group, before.switch * len(truth.groups) + before.group
    )
    rates = observed.rate_mbps[now.group]
    meta: Ints = np.zeros(len(now.group), dtype=np.int64)
    shares = np.zeros(len(now.group), dtype=bool)
    for switch, size in enumerate(truth.free(now.layer).tolist()):
        rows = slice(int(now.start[switch]), int(now.start[switch + 1]))
        entries, here = old[rows], was_here[rows]
        if (entries < 0).all():
            if len(entries) <= size:
                continue
            # each group that was here has its own entry
            entries = np.where(here, np.cumsum(here) - 1, -1)
        found = insert_new_groups(now.ports[rows], rates[rows], entries, table_size=size)
        meta[rows] = np.unique(found, return_inverse=True)[1]
        shares[rows] = True
    return build_meta_groups(truth, now, shares, meta)
