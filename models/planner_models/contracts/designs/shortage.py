"""Proof that contracts cannot carry all traffic, where all of it must be carried."""

from __future__ import annotations

import numpy as np

from planner.contract.proof import Proof
from planner.formatting import amount
from planner.options import Options
from planner.search.judged import infeasible
from planner_models.contracts.problem.problem import Month


def prove_shortage(problem: Month, options: Options) -> Proof | None:
    """Return the proof that no plan carries all traffic; None where one does, or where it need not."""
    shortage = problem.traffic_mbps - problem.servable_mbps
    if options.service != "all" or shortage.max() <= 1e-9 * max(float(problem.traffic_mbps.max()), 1.0):
        return None
    window, region = np.unravel_index(int(shortage.argmax()), shortage.shape)
    traffic = float(problem.traffic_mbps[window, region])
    reason = (
        f"window {window + 1} has {amount(traffic, 'Mbit/s')} of traffic in region "
        f"'{problem.regions[int(region)]}'; its contracts carry at most "
        f"{amount(float(problem.servable_mbps[window, region]), 'Mbit/s')}"
    )
    return infeasible(reason, metric="objective")
