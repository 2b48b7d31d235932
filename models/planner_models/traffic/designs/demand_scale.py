"""Factors for demands that bring a flow program near the size at which solvers are exact."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from planner.backends import Solution
from planner_models.flows import split_ratios
from planner_models.flows.path_flow_program import CandidatePaths
from planner_models.graphs.indexing import sum_by_index
from planner_models.traffic.problem.problem import Traffic
from planner_models.traffic.problem.schema import LEAST_MBPS, MOST_MBPS


def demand_scale(problem: Traffic) -> float:
    """Return a factor for demands that brings loads near capacities: solvers are exact to 1e-7 absolute.

    A power of 2, to be free of rounding; 1 where the shortest paths load the busiest link to between
    1% and 100 times its capacity. All scaled rates are in the range of rates.
    """
    ratios = split_ratios.take_first_link(problem, split_ratios.shortest_path_links(problem))
    load = split_ratios.apply_ratios(problem, ratios, problem.rate_mbps).sum(axis=0)
    busiest = float((np.asarray(load).ravel() / problem.capacity_mbps).max())
    if 0.01 < busiest < 100:
        return 1.0
    return _power_of_two(problem, 1 / busiest)


def _power_of_two(problem: Traffic, factor: float) -> float:
    """Return the power of 2 next to a factor that keeps all rates in the range of rates."""
    rate = problem.rate_mbps[problem.rate_mbps > 0]
    lowest, highest = np.ceil(np.log2(LEAST_MBPS / rate.min())), np.floor(np.log2(MOST_MBPS / rate.max()))
    return float(2.0 ** np.clip(np.round(np.log2(factor)), lowest, highest))


def path_scale(problem: Traffic, paths: CandidatePaths) -> float:
    """Return a factor for demands, a power of 2, at which the largest concurrent flow is near 1.

    The narrowest links of the paths of a demand bound the flow. Far from 1, HiGHS 1.13 takes programs with
    capacities over ten decades for unbounded ones.
    """
    start, link = paths.found.start, paths.found.link
    if not len(link):
        return 1.0
    share = 1.0 if paths.share is None else paths.share
    narrowest = np.minimum.reduceat(problem.capacity_mbps[link] / share, start[:-1])
    demands = np.unique(paths.demand)
    max_rate = sum_by_index(paths.demand, narrowest, len(problem.demands))[demands]
    bound = float((max_rate / problem.rate_mbps[demands]).min())
    return _power_of_two(problem, bound) if bound > 0 else 1.0


def rescale_solution(solution: Solution, unit: float) -> Solution:
    """Return the solution with its objective and bound multiplied by `unit`."""
    objective, bound = solution.objective, solution.bound
    return replace(
        solution,
        objective=None if objective is None else objective * unit,
        bound=None if bound is None else bound * unit,
    )
