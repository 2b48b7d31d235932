"""A plan among other members: switches adapt at once, before a controller decides again.

The controller's choices stay: the groups with entries, their partition of the addresses, and the groups that
share an entry. Switches learn of joins and leaves themselves. A group that is new at a switch takes a free
entry; where none is free and the plan shares entries, it joins the one that it makes least more costly;
otherwise the switch refuses it, and the group goes by unicast. So every member is served.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from planner.arrays import Floats, Ints
from planner_models.multicast.plan import table_limits
from planner_models.multicast.plan.entry_tracker import insert_new_groups
from planner_models.multicast.plan.headers import BIER, BIER_FIXED_BYTES, DEFAULT_RULE, ELMO, POD, read_trees
from planner_models.multicast.plan.plan import Channels, build_plan
from planner_models.multicast.plan.switch_groups import (
    StoredGroups,
    build_meta_groups,
    groups_at,
    previous_entries,
)
from planner_models.multicast.problem.problem import LAYERS, Multicast
from planner_models.multicast.problem.topology import find_rows


def adapt_plan(problem: Multicast, plan: Channels, *, before: Multicast | None = None) -> Channels:
    """Return the plan as switches carry it on among the members of `problem`.

    All groups of the plan must have the same number of copies; groups that are gone are left out.

    before  the problem of the plan, whose rates switches know; default: unknown. Then at a switch without
            shared entries groups are there in their order, as far as its table holds them
    """
    row = find_rows(problem.group_names, plan.partitions["group"])
    there = row >= 0
    if not there.any():
        nobody = np.zeros(len(problem.groups), dtype=bool)
        return build_plan(problem, nobody, problem.aggregation_copies)
    admitted = np.zeros(len(problem.groups), dtype=bool)
    partition = np.zeros(len(problem.groups), dtype=np.int64)
    admitted[row[there]] = True
    partition[row[there]] = plan.partitions["partition"].to_numpy(np.int64)[there]
    (copies,) = set(plan.partitions["copies"].astype(int))
    layer_of = problem.wiring.layers[find_rows(problem.wiring.switches, plan.meta_groups["switch"])]
    sharing = [layer for layer in LAYERS if layer in layer_of]
    others = [name for name in LAYERS if name not in sharing]
    limits = table_limits.join_limits(
        table_limits.build_limits(problem, copies, partition=partition, layers=others),
        table_limits.build_limits(
            problem, copies, partition=partition, layers=sharing
        ).without_free_entries(),
    )
    admitted[admitted] = table_limits.admit_in_order(limits.of_groups(admitted))
    frames = []
    for layer in sharing:
        now = groups_at(layer, problem, admitted, partition, copies)
        first = None if before is None else groups_at(layer, before, admitted, partition, copies)
        rates = (problem if before is None else before).rate_mbps
        frames.append(_place_new_groups(problem, rates[now.group], now, first, plan))
    shared = pd.concat(frames, ignore_index=True) if frames else None
    return build_plan(problem, admitted, copies, partition=partition, meta_groups=shared)


def adapt_headers(problem: Multicast, plan: Channels) -> Channels:
    """Return a plan with headers among the members of `problem`: sources learn of their groups' switches.

    Elmo: a switch that is new in a group uses the default rule of its layer. BIER: its bit is set; groups
    that the table of an edge switch cannot hold go by unicast.
    """
    assert plan.headers is not None
    assert plan.header_rules is not None
    row = find_rows(problem.group_names, plan.headers["group"])
    scheme = np.full(len(problem.groups), "", dtype=object)
    scheme[row[row >= 0]] = plan.headers["scheme"].astype(str).to_numpy()[row >= 0]
    # a design gives all groups strings of one length, and packets too
    strings = plan.headers.loc[plan.headers["scheme"] == BIER, "header_bytes"]
    size = float(strings.iloc[0]) if len(strings) else BIER_FIXED_BYTES + 1.0
    packet = float(plan.headers["packet_bytes"].iloc[0])
    limits = table_limits.build_limits(problem, problem.aggregation_copies, layers=("edge",))
    by_bits = scheme == BIER
    admitted = table_limits.admit_in_order(limits, order=np.flatnonzero(by_bits))
    scheme[by_bits & ~admitted] = ""
    frames = []
    pods = pd.Index([f"{POD}{pod}" for pod in range(problem.pods)])
    several, across = (np.diff(each.start) > 1 for each in (problem.spread, problem.below))
    elmo = scheme == ELMO
    for each, names, is_selected in (
        (problem.spread, problem.wiring.edges, (elmo & several) | (scheme == BIER)),
        (problem.below, pods, elmo & across),
    ):
        group = np.repeat(np.arange(len(is_selected)), np.diff(each.start))
        here = is_selected[group]
        frame = pd.DataFrame(
            {
                "group": problem.group_names[group[here]].astype(str),
                "switch": names[each.edge[here]].astype(str),
                "set": each.edge[here] // int(8 * (size - BIER_FIXED_BYTES)),
                "by_bits": scheme[group[here]] == BIER,
            }
        )
        frames.append(frame)
    rules = pd.concat(frames, ignore_index=True)
    old = plan.header_rules.astype({"group": str, "switch": str})
    rules = rules.merge(old, on=["group", "switch"], how="left")
    rules["rule"] = np.where(rules["by_bits"], rules["set"], rules["rule"].fillna(DEFAULT_RULE)).astype(float)
    rules = rules[["group", "switch", "rule"]]
    sent = np.flatnonzero(scheme != "")
    table = pd.DataFrame(
        {
            "group": problem.group_names[sent].astype(str),
            "scheme": scheme[sent].astype(str),
            "header_bytes": np.where(scheme[sent] == BIER, size, 1.0),
            "packet_bytes": packet,
        }
    )
    table["header_bytes"] = read_trees(problem, table, rules).needed_bytes[sent].astype(float)
    nobody = np.zeros(len(problem.groups), dtype=bool)
    return build_plan(problem, nobody, problem.aggregation_copies, headers=table, header_rules=rules)


def _place_new_groups(
    problem: Multicast, rates: Floats, now: StoredGroups, before: StoredGroups | None, plan: Channels
) -> pd.DataFrame:
    """Return the table meta_groups of a layer: of the switches that shared entries, or have to now."""
    old = previous_entries(problem, now, plan.meta_groups)
    assert old is not None  # the plan shares entries in this layer
    count = len(problem.groups)
    was_here = (
        None
        if before is None
        else np.isin(now.switch * count + now.group, before.switch * count + before.group)
    )
    meta: Ints = np.zeros(len(now.group), dtype=np.int64)
    shares = np.zeros(len(now.group), dtype=bool)
    for switch, size in enumerate(problem.free(now.layer).tolist()):
        rows = slice(int(now.start[switch]), int(now.start[switch + 1]))
        entries = old[rows]
        if (entries < 0).all():
            if len(entries) <= size:
                continue
            # each group that was here has its own entry
            here = np.arange(len(entries)) < size if was_here is None else was_here[rows]
            entries = np.where(here, np.cumsum(here) - 1, -1)
        assignment = insert_new_groups(now.ports[rows], rates[rows], entries, table_size=size)
        meta[rows] = np.unique(assignment, return_inverse=True)[1]
        shares[rows] = True
    return build_meta_groups(problem, now, shares, meta)
