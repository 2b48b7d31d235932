"""Lower bound on the host traffic of any plan, whatever its partitions, copies and shared entries."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from planner_models.multicast.plan.meta_groups import extra_mbps_bound
from planner_models.multicast.problem.problem import Multicast


def bound_mbps(problem: Multicast) -> float:
    """Return the traffic of all groups with entries, and the least that full tables add to it.

    Edge switches: groups at one without a free entry go by unicast. At others all port sets beyond the table
    cost extra: a group is either carried to one port too many, or by unicast, which adds its rate for all
    members but one; that is divided evenly over its edge switches. Cores: groups of several pods need an
    entry in at least one, where none can be shared.
    """
    edge, group, masks = problem.at_edge
    rate, members = problem.rate_mbps, problem.member_counts
    reached = problem.edges_in_pod.sum(axis=1)
    weight, saved = rate * np.minimum(1.0, (members - 1) / reached), rate * (members - 1)
    refused = np.bincount(group, problem.free("edge")[edge] < 1, minlength=len(rate)) > 0
    others = ~refused[group]
    edge, group, masks = edge[others], group[others], masks[others]
    start = np.searchsorted(edge, np.arange(problem.edge_count + 1)).tolist()
    at_edges = float(saved[refused].sum()) + sum(
        extra_mbps_bound(masks[a:b], weight[group[a:b]], size)
        for size, (a, b) in zip(problem.free("edge").tolist(), pairwise(start), strict=True)
        if b - a > size
    )
    across = np.diff(problem.below.start) > 1
    beyond = max(0, int(across.sum()) - int(problem.free("core").sum()))
    at_cores = float(np.sort(saved[across])[:beyond].sum())
    return float(rate @ (1 + members)) + max(at_edges, at_cores)
