"""What two plans differ in: the rules to add and remove in each switch."""

from __future__ import annotations

import numpy as np
import pandas as pd

from planner_models.multicast.forwarding import compiled
from planner_models.multicast.plan import Channels
from planner_models.multicast.problem import Multicast

COLUMNS = ("switch", "layer", "add", "remove")
SHARED = -1  # the match of shared entries, whose numbers mean nothing


def changed(
    problem: Multicast, plan: Channels, previous: Channels, *, before: Multicast | None = None
) -> pd.DataFrame:
    """Entries to add and to remove, one row a switch where there are any: switch, layer, add, remove.

    An entry is the same where it matches the same address and goes to the same ports; a changed one is
    removed and added. Shared entries of a switch that go to the same ports are the same, whatever their
    numbers. A group's address is of its partition, so that in another partition all its entries are new.

    before  the problem that the previous plan was made for, on the same network; default: the same
    """
    first = problem if before is None else before
    names = pd.Index(first.groups["group"]).union(pd.Index(problem.groups["group"]), sort=False)
    old, new = _numbered(first, previous, names), _numbered(problem, plan, names)
    # equal entries of a switch cancel out one by one
    each = pd.concat([old.assign(count=-1), new.assign(count=1)], ignore_index=True)
    net = each.groupby(["switch", "match", "ports"], sort=False)["count"].sum().reset_index()
    switches = len(problem.wiring.switches)
    add = np.bincount(net["switch"], weights=net["count"].clip(lower=0), minlength=switches)
    remove = np.bincount(net["switch"], weights=-net["count"].clip(upper=0), minlength=switches)
    where = np.flatnonzero((add > 0) | (remove > 0))
    columns = (
        problem.wiring.switches[where],
        problem.wiring.layers[where],
        add[where].astype(int),
        remove[where].astype(int),
    )
    return pd.DataFrame(dict(zip(COLUMNS, columns, strict=True)))


def _numbered(problem: Multicast, plan: Channels, names: pd.Index) -> pd.DataFrame:
    """switch, match, ports of every entry; the match is one number for group, partition and copies."""
    rules = compiled(problem, plan).rules
    address = rules["address"].to_numpy()
    row = names.get_indexer(pd.Index(plan.partitions["group"]))
    partition, copies = (plan.partitions[name].to_numpy(np.int64) for name in ("partition", "copies"))
    match = np.full(len(names), SHARED, dtype=np.int64)
    # a fat tree of 64 ports has 1,024 partitions and 32 copies at most
    match[row] = (row * (1 << 20) + partition) * (1 << 10) + copies
    own = names.get_indexer(pd.Index(problem.groups["group"]))
    return pd.DataFrame(
        {
            "switch": rules["switch"].to_numpy(),
            "match": np.where(address >= 0, match[own[np.maximum(address, 0)]], SHARED),
            "ports": rules["ports"].to_numpy(),
        }
    )
