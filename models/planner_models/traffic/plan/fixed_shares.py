"""Fixed shares of demands on links, and the demand matrices that load links the most under them."""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd
import scipy.sparse as sp

from planner.arrays import Floats
from planner.errors import PlanRejected
from planner.search.tolerances import FEASIBILITY, NEGLIGIBLE
from planner_models.graphs.indexing import sum_by_index
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.plan.references import require_links
from planner_models.traffic.plan.schema import WORST_MATRICES
from planner_models.traffic.problem.problem import Traffic

CONSERVED: Final = FEASIBILITY  # of a demand; by so much may the shares into and out of a node differ
SMALLEST_SHARE: Final = NEGLIGIBLE  # of a demand on a link


def list_shares(problem: Traffic, share: sp.csr_array) -> pd.DataFrame:
    """Return the table `shares` of shares (K, E)."""
    entries = sp.csr_array(share).tocoo()
    is_listed = entries.data > SMALLEST_SHARE
    demand, link = entries.row[is_listed], entries.col[is_listed]
    return pd.DataFrame(
        {
            "source": problem.demands["source"].to_numpy()[demand],
            "target": problem.demands["target"].to_numpy()[demand],
            "tail": problem.links["tail"].to_numpy()[link],
            "head": problem.links["head"].to_numpy()[link],
            "parallel": problem.parallel[link],
            "share": np.minimum(entries.data[is_listed], 1.0),
        }
    )


def list_matrices(problem: Traffic, matrices: Floats, names: list[str]) -> pd.DataFrame:
    """Return the table `worst_matrices` of rates (M, K), each name once."""
    frames = []
    for name, row in zip(*np.unique(names, return_index=True), strict=True):
        demand = np.flatnonzero(matrices[row] > 0)
        ends = problem.demands[["source", "target"]].iloc[demand]
        frames.append(ends.assign(rate_mbps=matrices[row][demand]).assign(matrix=str(name)))
    columns = list(WORST_MATRICES.columns)
    return pd.concat(frames, ignore_index=True)[columns] if frames else pd.DataFrame(columns=columns)


def read_shares(problem: Traffic, table: pd.DataFrame) -> sp.csr_array:
    """Return the shares (K, E) of a table; PlanRejected where they are no whole flow of a demand.

    Demands with classes are one for each pair, as in `problem.merged`.
    """
    demand = problem.find_demands(table)
    unknown = np.flatnonzero(demand < 0)
    if len(unknown):
        row = int(unknown[0])
        name = f"{table['source'].iloc[row]}->{table['target'].iloc[row]}"
        raise PlanRejected(f"shares row {row + 1}: {name} is no demand of the problem")
    link = require_links(problem, table["tail"], table["head"], table["parallel"], "shares")
    shape = (len(problem.demands), len(problem.links))
    share = sp.csr_array((table["share"].to_numpy(float), (demand, link)), shape=shape)
    surplus = (share @ problem.incidence.T).toarray()
    listed = np.unique(demand)
    expected = np.zeros(surplus.shape)
    expected[listed, problem.source[listed]] = 1.0
    expected[listed, problem.target[listed]] = -1.0
    wrong = np.abs(surplus - expected) > CONSERVED
    if wrong.any():
        k, node = (int(indices[0]) for indices in np.nonzero(wrong))
        raise PlanRejected(
            f"shares: {problem.demand_labels[k]} has {surplus[k, node]:.6g} of its traffic too much or too "
            f"little at {problem.nodes['node'].iloc[node]}"
        )
    return share


def flow_of_shares(problem: Traffic, table: pd.DataFrame, served_mbps: Floats) -> sp.csr_array:
    """Return the flow (K, E) that shares of pairs make of served rates (K,) Mbit/s."""
    share = read_shares(problem.merged, table)
    of_demand = share[problem.merged_row] if problem.has_classes else share
    return sp.csr_array(sp.diags_array(served_mbps) @ of_demand)


def measure_worst_utilization(problem: Traffic, plan: Routing) -> float | None:
    """Return the largest utilization under the plan's shares and its worst matrices; None without them."""
    if plan.shares is None or plan.worst_matrices is None:
        return None
    pairs = problem.merged
    share = read_shares(pairs, plan.shares)
    worst = 0.0
    for _, matrix in plan.worst_matrices.groupby("matrix", sort=False):
        demand = pairs.find_demands(matrix)
        if (demand < 0).any():
            row = matrix.index[int(np.argmax(demand < 0))]
            name = f"{matrix['source'].loc[row]}->{matrix['target'].loc[row]}"
            raise PlanRejected(f"worst_matrices row {row + 1}: {name} is no demand of the problem")
        rate = sum_by_index(demand, matrix["rate_mbps"].to_numpy(float), len(pairs.demands))
        worst = max(worst, float((share.T @ rate / pairs.capacity_mbps).max(initial=0.0)))
    return worst
