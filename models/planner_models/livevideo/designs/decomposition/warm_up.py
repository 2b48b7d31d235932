"""Compilation of all kernels before a time limit starts, where no run on this machine has done so.

It takes half a minute and more, once, which the first run would otherwise lose.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd

from planner_models.livevideo.designs.decomposition.capacity_rows import CapacityRows
from planner_models.livevideo.designs.decomposition.diving import Dive
from planner_models.livevideo.designs.decomposition.ejection_chains import LagrangianSolution
from planner_models.livevideo.designs.decomposition.frank_wolfe import FrankWolfe
from planner_models.livevideo.designs.decomposition.layered_problem import build_layers
from planner_models.livevideo.designs.decomposition.pricing import Effort, Pricer
from planner_models.livevideo.designs.decomposition.ruin_recreate import FeasibleTrees
from planner_models.livevideo.designs.tree.local_network import MAX_EXACT_REQUESTS
from planner_models.livevideo.problem.problem import LiveVideo


@cache
def get_ready() -> None:
    """Call each kernel of the decomposition once, with the types of a run."""
    layered = build_layers(_create_example())
    rows, pricer = CapacityRows(layered), Pricer(layered, 1)
    relaxation, feasible = FrankWolfe(layered, rows, pricer, 0), FeasibleTrees(layered, pricer, 0)
    prices = rows.link_prices(np.zeros(len(rows.limit)))
    dual = relaxation.trees.dual
    trees = pricer.price_all(prices, dual.copy(), Effort(1, 1))
    feasible.rebuild(trees.paths, prices, dual, trees.value)
    feasible.adopt(feasible.state.paths)
    feasible.eject(LagrangianSolution(prices, trees.paths, trees.value), 1, 1.0)
    feasible.ruin_recreate(prices, 1, 1, 1.0, 0.0)
    relaxation.warm_start(feasible.state.paths, None)
    relaxation.run_pass()
    Dive(relaxation).run_round()


def _create_example() -> LiveVideo:
    """Return a problem of two objects, one with many requests, over links that can carry one."""
    groups = [f"group{n}" for n in range(MAX_EXACT_REQUESTS + 1)]
    above = [("source", "reflector"), ("reflector", "edge")]
    return LiveVideo(
        clusters=pd.DataFrame(
            [("source", "source"), ("reflector", "reflector"), ("edge", "edge")]
            + [(group, "group") for group in groups],
            columns=["cluster", "tier"],
        ),
        links=pd.DataFrame(above + [("edge", group) for group in groups], columns=["tail", "head"]).assign(
            capacity_mbps=1.0
        ),
        objects=pd.DataFrame({"channel": ["many", "one"], "bitrate_kbps": 1000.0}),
        requests=pd.DataFrame(
            [(group, "many") for group in groups] + [(groups[0], "one")], columns=["group", "channel"]
        ).assign(bitrate_kbps=1000.0),
    )
