"""Weighted ECMP (WCMP): shares by bandwidth or given weights, in as many entries as switches have."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import Annotated, Literal

import numpy as np
import pandas as pd
import scipy.sparse as sp
from pydantic import Field

from planner.arrays import Floats
from planner.contract.design import Decision
from planner_models.flows import split_ratios
from planner_models.flows.multipath_groups import MAX_GROUP_SIZE, Group, fit_groups
from planner_models.traffic.designs.routable import shed_unreachable
from planner_models.traffic.plan.flow_decision import Rates, route_shares
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.problem.problem import Traffic

Weights = Annotated[
    Literal["link", "path", "given"],
    Field(
        description="of next hops; link: capacity of the link; path: the most that shortest paths over it "
        "can carry to the target, hop by hop; given: the column split_weight of links"
    ),
]
GroupSize = Annotated[
    int, Field(ge=1, le=MAX_GROUP_SIZE, description="largest number of entries of a group of next hops")
]
TableEntries = Annotated[
    int | None,
    Field(ge=0, description="largest number of entries of all groups of a switch; default: no limit"),
]


@shed_unreachable
def route(
    problem: Traffic,
    *,
    weights: Weights = "link",
    group_size: GroupSize = 64,
    table_entries: TableEntries = None,
    rates: Rates = "given",
) -> Decision[Routing]:
    """Split traffic at every hop over the next hops on shortest paths, by weights in whole table entries.

    A switch has one group of next hops for each target, and stores equal ones once. Groups are reduced to
    the limits with the least oversubscription, which is the largest factor by which a next hop gets more
    than its ideal share. Where a table has no entry left, traffic to a target takes a single next hop. With
    rates "given" every demand is served and links may be overloaded.

    source  RFC 2992; the link bandwidth community of BGP for weights (draft-ietf-idr-link-bandwidth)
    """
    ideal = _ideal_shares(problem, weights)
    entries = _count_entries(problem, ideal, group_size, table_entries)
    ratios = split_ratios.compute_ratios(problem, _replace(ideal, entries))
    share = split_ratios.apply_ratios(problem, ratios, (problem.rate_mbps > 0).astype(float))
    decision = route_shares(problem, sp.csr_array(share), rates)
    assert decision.plan is not None
    groups = _list_groups(problem, ideal, entries)
    return replace(decision, plan=replace(decision.plan, groups=groups))


def _replace(entries: sp.coo_array, values: Floats) -> sp.coo_array:
    return sp.coo_array((values, (entries.row, entries.col)), shape=entries.shape)


def _ideal_shares(problem: Traffic, weights: Weights) -> sp.coo_array:
    """Return the share of each next hop in the traffic to a target, (D, E), by weights; rows ascending."""
    next_hops = sp.coo_array(sp.csr_array(split_ratios.shortest_path_links(problem)))
    if weights == "given":
        weight = problem.split_weight[next_hops.col]
    elif weights == "link":
        weight = problem.capacity_mbps[next_hops.col]
    else:
        weight = _path_capacities(problem, next_hops)
    return split_ratios.compute_ratios(problem, _replace(next_hops, weight))


def _path_capacities(problem: Traffic, next_hops: sp.coo_array) -> Floats:
    """Return the most that shortest paths over each next hop can carry, hop by hop, Mbit/s.

    That of a node is the sum over its next hops; that of a next hop at most the capacity of its link.
    """
    distance = problem.distance[next_hops.row, problem.tail[next_hops.col]]
    order = np.lexsort((distance, next_hops.row))
    of_node = np.zeros((len(problem.targets), len(problem.nodes)))
    of_node[np.arange(len(problem.targets)), problem.targets] = np.inf
    capacity = np.zeros(len(order))
    rows, links = next_hops.row.tolist(), next_hops.col.tolist()
    tail, head = problem.tail.tolist(), problem.head.tolist()
    for entry in order.tolist():
        row, link = rows[entry], links[entry]
        capacity[entry] = min(problem.capacity_mbps[link], of_node[row, head[link]])
        of_node[row, tail[link]] += capacity[entry]
    return capacity


def _count_entries(
    problem: Traffic, ideal: sp.coo_array, group_size: int, table_entries: int | None
) -> Floats:
    """Return the entries of each next hop in the reduced group of its switch and target, as `ideal.data`."""
    members: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    tails = problem.tail[ideal.col].tolist()
    for entry, (node, row) in enumerate(zip(tails, ideal.row.tolist(), strict=True)):
        members[node][row].append(entry)
    entries = np.ones(len(ideal.data))
    for of_target in members.values():
        several = [np.array(group) for group in of_target.values() if len(group) > 1]
        groups = [
            Group(tuple(ideal.col[rows].tolist()), tuple(ideal.data[rows].tolist())) for rows in several
        ]
        reduced = fit_groups(groups, max_size=group_size, table_entries=table_entries)
        for rows, group in zip(several, reduced, strict=True):
            entries[rows] = group.entries
    return entries


def _list_groups(problem: Traffic, ideal: sp.coo_array, entries: Floats) -> pd.DataFrame:
    """Return the table `groups` of all switches with several next hops to a target."""
    tail = problem.tail[ideal.col]
    _, group, size = np.unique(
        ideal.row.astype(np.int64) * len(problem.nodes) + tail, return_inverse=True, return_counts=True
    )
    rows = np.flatnonzero(size[group] > 1)
    rows = rows[np.lexsort((ideal.col[rows], ideal.row[rows], tail[rows]))]
    names = problem.nodes["node"].to_numpy()
    return pd.DataFrame(
        {
            "node": names[tail[rows]],
            "target": names[problem.targets[ideal.row[rows]]],
            "head": names[problem.head[ideal.col[rows]]],
            "parallel": problem.parallel[ideal.col[rows]],
            "entries": entries[rows],
            "ideal_share": ideal.data[rows],
        }
    )
