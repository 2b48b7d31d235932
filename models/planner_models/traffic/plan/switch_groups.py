"""Groups of next hops in the tables of switches: the flows that they make, and what they need and miss."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pandas as pd
import scipy.sparse as sp

from planner.arrays import Floats, Ints
from planner.contract.tolerances import RELATIVE
from planner.errors import PlanRejected
from planner_models.flows import split_ratios
from planner_models.flows.multipath_groups import count_entries
from planner_models.traffic.plan.next_hop_flow import flow_over_next_hops
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.plan.references import require_links, require_targets
from planner_models.traffic.problem.problem import Traffic


def flow_of_groups(problem: Traffic, groups: pd.DataFrame, served_mbps: Floats) -> sp.csr_array:
    """Return the flow of each demand, (K, E) Mbit/s, that follows groups, and shortest paths without one.

    raises  PlanRejected where a row names no link, no target, or a link on no shortest path to it, and where
            a group has no entry or ideal shares that do not add up to 1
    """
    row, link = _find_rows(problem, groups)
    next_hops = split_ratios.shortest_path_links(problem)
    count = len(problem.links)
    is_shortest = np.isin(row * count + link, next_hops.row.astype(np.int64) * count + next_hops.col)
    if not is_shortest.all():
        fault = int(np.flatnonzero(~is_shortest)[0])
        raise PlanRejected(
            f"groups row {fault + 1}: {problem.link_labels[link[fault]]} is on no shortest path to "
            f"{groups['target'].iloc[fault]}"
        )
    nodes = len(problem.nodes)
    of_group = row * nodes + problem.tail[link]
    entries = groups["entries"].to_numpy(float)
    group, position = np.unique(of_group, return_inverse=True)
    ideal = np.bincount(position, groups["ideal_share"].to_numpy(float), len(group))
    empty = np.bincount(position, entries, len(group)) == 0
    for number in np.flatnonzero(empty | (abs(ideal - 1) > RELATIVE)).tolist():
        target, node = divmod(int(group[number]), nodes)
        names = problem.nodes["node"].tolist()
        ends = f"{names[node]} to {names[problem.targets[target]]}"
        reason = "no entry" if empty[number] else f"ideal shares of {ideal[number]:.6g}, must add up to 1"
        raise PlanRejected(f"groups: from {ends}, there is {reason}")
    return flow_over_next_hops(problem, row, link, entries, served_mbps)


def _find_rows(problem: Traffic, groups: pd.DataFrame) -> tuple[Ints, Ints]:
    """Return the target of each row of the table, as a row of `problem.targets`, and its link."""
    link = require_links(problem, groups["node"], groups["head"], groups["parallel"], "groups")
    return require_targets(problem, groups["target"], "groups"), link


def measure_groups(problem: Traffic, plan: Routing) -> dict[str, float | None]:
    """Return the entries of the switch with most, and the largest oversubscription; None without groups."""
    if plan.groups is None:
        return {"group_entries": None, "oversubscription": None}
    row, link = _find_rows(problem, plan.groups)
    entries = plan.groups["entries"].to_numpy(float)
    ideal = plan.groups["ideal_share"].to_numpy(float)
    members: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for position, (target, node) in enumerate(zip(row.tolist(), problem.tail[link].tolist(), strict=True)):
        members[node][target].append(position)
    largest, factor = 0, 1.0
    for of_target in members.values():
        stored = []
        for positions in of_target.values():
            used = entries[positions]
            factor = max(factor, float((used / used.sum() / ideal[positions]).max()))
            stored.append((tuple(link[positions].tolist()), tuple(used.astype(int).tolist())))
        largest = max(largest, count_entries(stored))
    return {"group_entries": float(largest), "oversubscription": factor}
