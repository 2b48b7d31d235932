"""Least-cost purchases of one year in which all demands fit, by the solver of network design."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from planner.arrays import Floats, Ints
from planner.contract import progress
from planner.options import Options
from planner_models.capacity.designs.network_design.instance import Instance, Solution, Tunnels
from planner_models.capacity.problem.problem import CapacityPlanning


def buy_at_least_cost(problem: CapacityPlanning, options: Options) -> Solution:
    """Return the cheapest purchases of a problem with one year; their cost is without installed capacity."""
    from planner_models.capacity.designs.network_design.design import solve  # loads HiGHS

    def report(cost: float | None, bound: float) -> None:
        there = problem.installed_cost
        progress.report("cost_of_all", None if cost is None else cost + there, bound + there)

    return solve(make_instance(problem), options, report=report, with_flows=False)


def make_instance(problem: CapacityPlanning) -> Instance:
    """Return the first year of a problem as arrays, with the share of demands that each failure requires.

    Demands that share tunnels are one demand.
    """
    modules, price = problem.options, float(problem.price_factor[0])
    pairs = _join_demands(problem)
    return Instance(
        nodes=len(problem.nodes),
        tail=problem.tail,
        head=problem.head,
        direction=problem.direction,
        installed=problem.installed_mbps,
        setup_cost=problem.setup_cost * price,
        routing_cost=problem.routing_cost * price,
        module_edge=modules.link,
        module_size=modules.size,
        module_cost=modules.cost * price,
        module_limit=np.floor(modules.limit),
        explicit=problem.one_module,
        source=pairs.source,
        target=pairs.target,
        rate=pairs.rate,
        failures=problem.states.link_down,
        required=pairs.required,
        tunnels=pairs.tunnels,
    )


class _Joined(NamedTuple):
    """Demands of an instance, of which those with the same tunnels are joined."""

    source: Ints
    target: Ints
    rate: Floats
    required: Floats
    tunnels: Tunnels | None


def _join_demands(problem: CapacityPlanning) -> _Joined:
    """Return the demands of the first year."""
    rate, share, paths = problem.rate_mbps[0], problem.required_share[1:], problem.tunnel_paths
    if paths is None:
        return _Joined(problem.source, problem.target, rate, share, None)
    demands = len(rate)
    key = np.where(paths.pair_of < 0, paths.pairs + np.arange(demands), paths.pair_of)
    known, first, row = np.unique(key, return_index=True, return_inverse=True)
    total: Floats = np.bincount(row, weights=rate).astype(float)
    needed = np.zeros((len(share), len(known)))
    np.add.at(needed.T, row, (share * rate).T)
    required = np.divide(needed, total, out=np.zeros_like(needed), where=total > 0)
    tunnels = Tunnels(demand=np.searchsorted(known, paths.pair), arcs=paths.arcs)
    return _Joined(problem.source[first], problem.target[first], total, required, tunnels)
