"""Lists of segments: the links that traffic takes between the nodes listed, by shortest paths with ECMP."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import scipy.sparse as sp

from planner.arrays import Bools
from planner_models.flows import split_ratios
from planner_models.traffic.problem.problem import Traffic


def segment_shares(problem: Traffic, lists: Sequence[tuple[int, ...]]) -> tuple[sp.csr_array, Bools]:
    """Return the share of a list's traffic on each link, (T, E), and whether each list can be followed, (T,).

    lists  nodes by row; between two of them, traffic splits evenly at each node over the links on shortest
           paths. A list with a segment without a path has shares for its other segments only
    """
    pairs = sorted({pair for nodes in lists for pair in itertools.pairwise(nodes)})
    shape = (len(lists), len(problem.links))
    if not pairs:
        return sp.csr_array(shape), np.zeros(len(lists), dtype=bool)
    names = problem.nodes["node"].to_numpy()
    ends = np.array(pairs, dtype=np.int64)
    demands = pd.DataFrame({"source": names[ends[:, 0]], "target": names[ends[:, 1]], "rate_mbps": 1.0})
    legs = replace(problem, demands=demands, classes=None, tunnels=None, rules=None)
    ratios = split_ratios.split_evenly(legs, split_ratios.shortest_path_links(legs))
    share = sp.csr_array(split_ratios.apply_ratios(legs, ratios, np.where(legs.unreachable, 0.0, 1.0)))
    index_of = {pair: row for row, pair in enumerate(pairs)}
    entries = [(t, index_of[pair]) for t, nodes in enumerate(lists) for pair in itertools.pairwise(nodes)]
    row, leg = np.array(entries, dtype=np.int64).T
    uses = sp.csr_array((np.ones(len(row)), (row, leg)), shape=(len(lists), len(pairs)))
    return sp.csr_array(uses @ share), (uses @ legs.unreachable.astype(float)) == 0
