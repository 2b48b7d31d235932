"""Drawings of a plan: table fill of switches by pod, and table entries layer by layer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from planner.arrays import Floats
from planner.contract.drawing import Distribution, Drawing, NetworkMap
from planner.formatting import counted, counted_of, number
from planner_models.multicast.plan import loads, metrics
from planner_models.multicast.plan.plan import Channels
from planner_models.multicast.plan.rerouting import find_missed_members
from planner_models.multicast.problem.drawing import fabric_map, has_links, list_nodes
from planner_models.multicast.problem.failures import working_links
from planner_models.multicast.problem.problem import Multicast


def draw(problem: Multicast, plan: Channels) -> Sequence[Drawing]:
    """Draw the table fill of switches by pod, then the distribution of entries by layer."""
    layers = plan.entries.groupby("layer", sort=False, observed=True)["entries"]
    return (
        draw_tables(problem, plan),
        Distribution(
            title="Table entries of switches by layer",
            values={str(layer): entries.reset_index(drop=True) for layer, entries in layers},
            what="entries",
        ),
    )


def draw_tables(problem: Multicast, plan: Channels) -> NetworkMap:
    """Return the map of the fabric, with table fill at switches and the load of groups on links."""
    wires = problem.wiring
    entries, (size, occupied) = plan_entries(problem, plan), problem.table_sizes
    used = entries + occupied
    fill = np.divide(100 * used, size, out=np.full(len(size), np.nan), where=size > 0)
    over = np.zeros(len(size))
    over[-problem.edge_count :] = metrics.host_links_mbps(problem, plan)[1].sum(axis=1)
    lost = lost_at_edges(problem, plan)
    words = [
        f"{number(count)} of {counted(limit, 'entries')}"
        + (f", overhead {number(extra)} Mbit/s to hosts that are no members" if extra > 0 else "")
        for count, limit, extra in zip(used, size, over, strict=True)
    ]
    lost_of = np.concatenate([np.zeros(len(size) - problem.edge_count), lost])
    nodes = list_nodes(problem)
    nodes = nodes.assign(value=fill[nodes.index], lost=lost_of[nodes.index])
    stored = counted_of(len(plan.partitions), len(problem.groups), "groups", "have")
    title = f"Table fill of switches: {stored} entries"
    if plan.headers is not None:  # which share entries where they are too short
        title += f" of their own, {len(plan.headers):,} have headers"
    drawn = has_links(wires)
    return fabric_map(
        problem,
        nodes,
        pd.Series(words)[nodes.index],
        title=title,
        up_mbps=loads.core_link_loads(problem, plan) if drawn else None,
        down_mbps=loads.edge_link_loads(problem, plan) if drawn else None,
    )


def plan_entries(problem: Multicast, plan: Channels) -> Floats:
    """Return the table entries that a plan uses at each switch, (switches,)."""
    entries = plan.entries.set_index("switch")["entries"].reindex(problem.wiring.switches)
    return entries.to_numpy(float)


def lost_at_edges(problem: Multicast, plan: Channels) -> Floats:
    """Return the traffic that members at each edge switch miss through failures, (edge switches,), Mbit/s."""
    lost = np.zeros(problem.edge_count)
    if problem.has_failures:
        missed = find_missed_members(problem, plan, working_links(problem))
        edge = problem.edge_of_host[problem.host_of[missed]]
        lost += np.bincount(edge, problem.rate_mbps[problem.group_of[missed]], minlength=len(lost))
    return lost
