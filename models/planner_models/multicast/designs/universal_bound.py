"""Lower bound on the host traffic of any plan, whatever its partitions, copies and shared entries."""

from __future__ import annotations

from itertools import pairwise
from weakref import WeakKeyDictionary

import numpy as np

from planner.search.deadline import NEVER, Deadline
from planner_models.multicast.designs import edge_bound
from planner_models.multicast.plan.meta_groups import extra_mbps_bound
from planner_models.multicast.problem.problem import Multicast

_KNOWN: WeakKeyDictionary[Multicast, float] = WeakKeyDictionary()  # several designs need the same bound


def bound_mbps(problem: Multicast, *, deadline: Deadline = NEVER) -> float:
    """Return the traffic of all groups with entries, and the least that full tables add to it.

    Edge switches: groups at one without a free entry go by unicast. At others all port sets beyond the table
    cost extra: a group is either carried to ports too many, at least one, or by unicast, which adds its rate
    for all members but one; that is divided evenly over its edge switches. The least of this is bounded by a
    p-median at each switch (`edge_bound`). Cores: groups of several pods need an entry in at least one, where
    none can be shared.

    deadline  at which a weaker bound is returned
    """
    if problem not in _KNOWN:
        bound = _bound_mbps(problem, deadline)
        if deadline.is_over:
            return bound
        _KNOWN[problem] = bound
    return _KNOWN[problem]


def _bound_mbps(problem: Multicast, deadline: Deadline) -> float:
    edge, group, masks = problem.at_edge
    rate, members = problem.rate_mbps, problem.member_counts
    reached = problem.edges_in_pod.sum(axis=1)
    weight, saved = rate * np.minimum(1.0, (members - 1) / reached), rate * (members - 1)
    refused = np.bincount(group, problem.free("edge")[edge] < 1, minlength=len(rate)) > 0
    others = ~refused[group]
    edge, group, masks = edge[others], group[others], masks[others]
    free = problem.free("edge")
    start = np.searchsorted(edge, np.arange(problem.edge_count + 1)).tolist()
    simple = np.zeros(len(free))
    for switch, (size, (a, b)) in enumerate(zip(free.tolist(), pairwise(start), strict=True)):
        if deadline.is_over:
            break
        if b - a > size:
            simple[switch] = extra_mbps_bound(masks[a:b], weight[group[a:b]], size)
    at_edges = float(saved[refused].sum() + simple.sum())
    if simple.any():
        unicast = (saved / reached)[group]
        switches = edge_bound.split_switches(edge, masks, rate[group], unicast, free)
        tighter = edge_bound.bound_extra_mbps(switches, deadline=deadline)
        at_edges += float(np.maximum(tighter - simple, 0.0).sum())
    across = np.diff(problem.below.start) > 1
    beyond = max(0, int(across.sum()) - int(problem.free("core").sum()))
    at_cores = float(np.sort(saved[across])[:beyond].sum())
    return float(rate @ (1 + members)) + max(at_edges, at_cores)
