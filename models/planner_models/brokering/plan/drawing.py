"""Drawings of an assignment: clusters and their traffic to clients on a map, and load of clusters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pandas as pd

from planner.contract.drawing import Distribution, Drawing
from planner_models.brokering.plan.check import is_overloaded, read_assignment
from planner_models.brokering.plan.plan import Assignment
from planner_models.brokering.problem.drawing import draw_market
from planner_models.brokering.problem.problem import Brokering

MAX_PAIRS: Final = 600  # of clusters and places of clients, by traffic; more would not be readable on a map


def draw(problem: Brokering, plan: Assignment) -> Sequence[Drawing]:
    """Draw clusters by load with the largest flows to clients, and the load with background traffic.

    Congested clusters lose the clients that they serve; places lose those that no cluster serves.
    """
    assignment = read_assignment(problem, plan)
    load = problem.background_mbps + assignment.load_mbps
    # a cluster that is full but for rounding is not congested
    is_full = (assignment.load_mbps > 0) & ~is_overloaded(problem, assignment.load_mbps)
    load = np.where(is_full, np.minimum(load, problem.capacity_mbps), load)
    count = assignment.count.astype(float)
    served = np.bincount(assignment.cluster, weights=count, minlength=len(load))
    assigned = np.bincount(assignment.location, weights=count, minlength=len(problem.locations))
    clients = np.bincount(problem.location, weights=problem.count, minlength=len(problem.locations))
    flows = pd.DataFrame(
        {
            "cluster": assignment.cluster,
            "location": assignment.location,
            "mbps": assignment.count * assignment.bitrate_mbps,
        }
    )
    is_remote = problem.cluster_location[flows["cluster"]] != flows["location"]
    by_pair = flows[is_remote].groupby(["cluster", "location"], as_index=False).agg({"mbps": "sum"})
    by_pair = by_pair[by_pair["mbps"] > 0]
    largest = by_pair.sort_values("mbps", ascending=False, kind="stable").head(MAX_PAIRS)
    title = "Clusters by load, and flows to clients elsewhere"
    if len(largest) < len(by_pair):
        title += f", the {len(largest):,} largest of {len(by_pair):,}"
    percent = np.divide(100 * load, problem.capacity_mbps, out=np.zeros(len(load)), where=load > 0)
    picture = draw_market(
        problem,
        title,
        load_mbps=load,
        congested=np.where(is_overloaded(problem, assignment.load_mbps), served, 0.0),
        shed=np.maximum(clients - assigned, 0.0),
        flows=largest,
    )
    return (
        picture,
        Distribution(
            title="Load of the clusters that serve clients, background included",
            values={"clusters": pd.Series(percent[assignment.load_mbps > 0])},
            what="load",
            unit="%",
            limit=100.0,
        ),
    )
