"""Compilation of all kernels before a time limit starts, where no run on this machine has done so."""

from __future__ import annotations

from functools import cache

import numpy as np

from planner_models.livevideo.designs.decomposition.capacity_rows import CapacityRows
from planner_models.livevideo.designs.decomposition.diving import Dive
from planner_models.livevideo.designs.decomposition.ejection_chains import LagrangianSolution
from planner_models.livevideo.designs.decomposition.frank_wolfe import FrankWolfe
from planner_models.livevideo.designs.decomposition.layered_problem import build_layers
from planner_models.livevideo.designs.decomposition.pricing import Effort, Pricer
from planner_models.livevideo.designs.decomposition.ruin_recreate import FeasibleTrees
from planner_models.livevideo.problem.sample import create_sample


@cache
def get_ready() -> None:
    """Call each kernel of the decomposition once, with the types of a run."""
    layered = build_layers(create_sample())
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
