"""The least time that plans with the flows of each demand take, from the size of the problem."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from planner_models.graphs.distances import find_distances
from planner_models.traffic.problem.problem import Traffic
from planner_models.traffic.problem.tables import lightest_links

S_PER_FLOW: Final = 1e-6
"""CPU seconds for a row of the table of flows, to route, list and check it in the fastest such design."""


def tell_listing_time(problem: Traffic, parameters: Mapping[str, Any], limit_s: float) -> str:  # noqa: ARG001
    """Return the reason for which a time limit is too short to list all flows; "" if it may suffice.

    Each demand has a flow on as many links as its shortest path has, or more.
    """
    demands = int((problem.rate_mbps > 0).sum())
    if S_PER_FLOW * demands * len(problem.nodes) <= limit_s:
        return ""
    flows = count_flows(problem)
    if S_PER_FLOW * flows <= limit_s:
        return ""
    return (
        f"the flows of {demands:,} demands on {flows:,} links in all take {S_PER_FLOW * flows:.0f} s or more "
        f"to route, list and check; the time limit is {limit_s:g} s"
    )


def count_flows(problem: Traffic) -> int:
    """Return the sum over demands with a rate and a path of the fewest links between their ends."""
    weight = problem.weight[0]
    if (problem.weight == weight).all():
        distance = problem.distance
    else:
        weight, ones = 1.0, np.ones(len(problem.links))
        unit = lightest_links(len(problem.nodes), problem.tail, problem.head, ones)
        distance = find_distances(unit, problem.targets)
    has_rate = problem.rate_mbps > 0
    far = distance[problem.target_row[has_rate], problem.source[has_rate]]
    return round(float(far[np.isfinite(far)].sum() / weight))
