"""Routes with less transit at the same demand scale: direct where links have capacity left; a program."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from planner import backends
from planner.arrays import Floats, Ints
from planner.backends.linear_program import LinearProgram
from planner.compiled import inner, njit, run_small_in_python
from planner.contract.ranking import EQUAL
from planner.options import Options
from planner_models.topology.designs.joint_program import JointProgram, Paths, every_path
from planner_models.topology.plan.balance import Routing, capacity_of, loads_of, scale_of
from planner_models.topology.problem.problem import Fabric

EXACT_BLOCKS: Final = 24
"""Blocks up to which a linear program finds the least transit."""
MAX_PASSES: Final = 50
STALL: Final = 1e-6
"""Share of the demand below which a pass has moved nothing."""
KEPT: Final = 1 - EQUAL
"""Share of the demand scale that the program's answer must keep to rank no lower."""


def shorten(problem: Fabric, links: Ints, routing: Routing) -> Routing:
    """Return a routing over (n, n) links with the same demand scale, and less traffic by transit blocks.

    The scale is never smaller but for rounding. For many blocks the transit is not proven to be the least.
    """
    scale = routing.scale
    if scale <= 0 or not np.isfinite(scale):
        return routing
    capacity = capacity_of(links, problem.link_mbps) / scale
    flow = routing.shares * problem.demand_mbps[:, :, None]
    residual = np.maximum(capacity - loads_of(flow), 0.0)
    _go_direct(flow, residual, MAX_PASSES, STALL * float(problem.demand_mbps.sum()))
    total = problem.demand_mbps[:, :, None]
    shares = np.divide(flow, total, out=np.zeros_like(flow), where=total > 0)
    shorter = replace(routing, shares=shares)
    if len(links) > EXACT_BLOCKS or transit_of(problem, shares) <= 0:
        return shorter
    return _least_transit(problem, links, shorter)


def _least_transit(problem: Fabric, links: Ints, routing: Routing) -> Routing:
    """Return the routing with the least transit at the demand scale, by a linear program over all paths."""
    program, paths = JointProgram(problem=problem, links=links), every_path(problem)
    solution = backends.solve(transit_program(program, paths, routing.scale), Options())
    if solution.x is None:
        return routing
    _, shares = program.read(solution.x, paths)
    load = loads_of(shares * problem.demand_mbps[:, :, None])
    scale = scale_of(load, capacity_of(links, problem.link_mbps))
    is_better = scale >= KEPT * routing.scale and transit_of(problem, shares) < transit_of(
        problem, routing.shares
    )
    return Routing(shares=shares, scale=min(scale, routing.scale)) if is_better else routing


def transit_program(
    program: JointProgram, paths: Paths, scale: float, *, integer: bool = False
) -> LinearProgram:
    """Return the program of the least traffic by transit blocks at a demand scale.

    Its objective is that traffic in units of the fastest link, with all demand multiplied by the scale.
    """
    model = program.build(paths, integer=integer)
    cost = np.zeros(len(model.cost))
    cost[len(cost) - len(paths.via) :] = 1.0
    lower, upper = model.lower.copy(), model.upper.copy()
    lower[0] = upper[0] = scale / program.unit
    return replace(model, sense="min", cost=cost, lower=lower, upper=upper)


def transit_of(problem: Fabric, shares: Floats) -> float:
    """Return the traffic by transit blocks of (n, n, n) shares, Mbit/s."""
    each = np.arange(len(shares))
    by_transit = shares.sum(axis=2) - shares[each, :, each]
    return float((by_transit * problem.demand_mbps).sum())


@run_small_in_python(max_elements=1_000)
@njit(cache=True, error_model="numpy")
def _go_direct(flow: Floats, residual: Floats, passes: int, min_move: float) -> None:
    """Move (n, n, n) flows in place from transit paths to direct links, as far as those have capacity left.

    residual  (n, n) capacity left from row to column; changed in place
    min_move     a pass that moves less is the last
    """
    count = len(residual)
    for _ in range(passes):
        moved = 0.0
        for i in range(count):
            for j in range(count):
                if residual[i, j] > 0.0:
                    moved = _fill_link(flow, residual, i, j, moved)
        if moved <= min_move:
            break


@inner
def _fill_link(flow: Floats, residual: Floats, i: int, j: int, moved: float) -> float:
    """Move flows of a pair to its direct link within its capacity; return `moved` plus the moved traffic."""
    for k in range(len(residual)):
        if k in (i, j) or flow[i, j, k] <= 0.0:
            continue
        amount = min(flow[i, j, k], residual[i, j])
        flow[i, j, k] -= amount
        flow[i, j, i] += amount
        residual[i, j] -= amount
        residual[i, k] += amount
        residual[k, j] += amount
        moved += amount
        if residual[i, j] <= 0.0:
            break
    return moved
