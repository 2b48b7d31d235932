"""Flows over next hops that a plan configures, and over shortest paths where it configures none."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from planner.arrays import Floats, Ints
from planner.errors import PlanRejected
from planner_models.flows import split_ratios
from planner_models.traffic.problem.problem import Traffic


def flow_over_next_hops(
    problem: Traffic, row: Ints, link: Ints, amount: Floats, served_mbps: Floats
) -> sp.csr_array:
    """Return the flow of demands, (K, E) Mbit/s, with rates (K,) under configured next hops.

    A node with next hops for a target splits its traffic by their amounts, the others evenly over shortest
    paths.

    row, link, amount  (n,) target as a row of `problem.targets`, link and amount of each next hop

    raises  PlanRejected for routes that circle
    """
    shape = len(problem.targets), len(problem.links)
    given = sp.csr_array((amount, (row, link)), shape=shape)
    configured = row * len(problem.nodes) + problem.tail[link]
    plain = split_ratios.shortest_path_links(problem)
    is_plain = ~np.isin(plain.row.astype(np.int64) * len(problem.nodes) + problem.tail[plain.col], configured)
    others = sp.csr_array((plain.data[is_plain], (plain.row[is_plain], plain.col[is_plain])), shape=shape)
    ratios = split_ratios.compute_ratios(problem, sp.coo_array(given + others))
    try:
        served = np.where(problem.unreachable, 0.0, served_mbps)
        return sp.csr_array(split_ratios.apply_ratios(problem, ratios, served))
    except ValueError as error:
        raise PlanRejected(str(error)) from error
