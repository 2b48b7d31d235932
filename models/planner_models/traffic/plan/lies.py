"""Lies of Fibbing: fake nodes that a controller shows to routers of OSPF, and the flows that they make."""

from __future__ import annotations

import numpy as np
import pandas as pd
import scipy.sparse as sp

from planner.arrays import Floats
from planner.errors import PlanRejected
from planner_models.traffic.plan.next_hop_flow import flow_over_next_hops
from planner_models.traffic.plan.references import require_links, require_targets
from planner_models.traffic.problem.problem import Traffic


def list_lies(problem: Traffic, copies: sp.coo_array) -> pd.DataFrame:
    """Return the table `lies` of numbers of fake nodes towards targets behind links, (D, E)."""
    names = problem.nodes["node"].to_numpy()
    order = np.lexsort((copies.col, copies.row))
    row, link = copies.row[order], copies.col[order]
    return pd.DataFrame(
        {
            "target": names[problem.targets[row]],
            "tail": problem.links["tail"].to_numpy()[link],
            "head": problem.links["head"].to_numpy()[link],
            "parallel": problem.parallel[link],
            "fake_nodes": copies.data[order].astype(np.int64),
        }
    )


def flow_of_lies(problem: Traffic, lies: pd.DataFrame, served_mbps: Floats) -> sp.csr_array:
    """Return the flow of demands, (K, E) Mbit/s, with rates (K,) under OSPF with these lies.

    A router with lies about a target splits its traffic over the fake nodes, the others evenly over shortest
    paths.

    raises  PlanRejected for a target that no demand has, an unknown link, or routes that circle
    """
    row = require_targets(problem, lies["target"], "lies")
    link = require_links(problem, lies["tail"], lies["head"], lies["parallel"], "lies")
    try:
        return flow_over_next_hops(problem, row, link, lies["fake_nodes"].to_numpy(float), served_mbps)
    except PlanRejected as error:
        raise PlanRejected(f"lies: {error}") from error
