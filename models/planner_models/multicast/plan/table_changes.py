"""Differences of two plans: the rules to add and to remove in each switch."""

from __future__ import annotations

import numpy as np
import pandas as pd

from planner_models.multicast.plan.forwarding import compile_tables
from planner_models.multicast.plan.plan import Channels
from planner_models.multicast.problem.problem import Multicast

COLUMNS = ("switch", "layer", "add", "remove")
SHARED_MATCH = -1  # the match of every shared entry: their numbers are arbitrary


def compare_plans(
    problem: Multicast, plan: Channels, previous: Channels, *, before: Multicast | None = None
) -> pd.DataFrame:
    """Return the entries to add and to remove by switch: columns switch, layer, add, remove.

    An entry is the same where it matches the same address and goes to the same ports; a changed one is
    removed and added. Shared entries of a switch that go to the same ports are the same, whatever their
    numbers. A group's address belongs to its partition, so in another partition all its entries are new.

    before  the problem of the previous plan, on the same network; default: the same problem
    """
    first = problem if before is None else before
    names = pd.Index(first.groups["group"]).union(pd.Index(problem.groups["group"]), sort=False)
    old, new = _list_entries(first, previous, names), _list_entries(problem, plan, names)
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


def _list_entries(problem: Multicast, plan: Channels, names: pd.Index) -> pd.DataFrame:
    """Return switch, match and ports of every entry; a match numbers group, partition and copies."""
    rules = compile_tables(problem, plan).rules
    address = rules["address"].to_numpy()
    row = names.get_indexer(pd.Index(plan.partitions["group"]))
    partition, copies = (plan.partitions[name].to_numpy(np.int64) for name in ("partition", "copies"))
    match = np.full(len(names), SHARED_MATCH, dtype=np.int64)
    # a fat tree of 64 ports has 1,024 partitions and 32 copies at most
    match[row] = (row * (1 << 20) + partition) * (1 << 10) + copies
    own = names.get_indexer(pd.Index(problem.groups["group"]))
    return pd.DataFrame(
        {
            "switch": rules["switch"].to_numpy(),
            "match": np.where(address >= 0, match[own[np.maximum(address, 0)]], SHARED_MATCH),
            "ports": rules["ports"].to_numpy(),
        }
    )
