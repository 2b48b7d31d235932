"""Least-cost purchases of one year in which all demands fit, by the solver of network design."""

from __future__ import annotations

import numpy as np

from planner.contract import progress
from planner.options import Options
from planner_models.capacity.designs.network_design.instance import Instance, Solution
from planner_models.capacity.problem.problem import CapacityPlanning


def buy_at_least_cost(problem: CapacityPlanning, options: Options) -> Solution:
    """Return the cheapest purchases of a problem with one year; their cost is without installed capacity."""
    from planner_models.capacity.designs.network_design.design import solve  # loads HiGHS

    def report(cost: float | None, bound: float) -> None:
        there = problem.installed_cost
        progress.report("cost_of_all", None if cost is None else cost + there, bound + there)

    return solve(make_instance(problem), options, report=report, with_flows=False)


def make_instance(problem: CapacityPlanning) -> Instance:
    """Return the first year of a problem as arrays; demands without a path in a failure are excused in it."""
    modules, price = problem.options, float(problem.price_factor[0])
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
        source=problem.source,
        target=problem.target,
        rate=problem.rate_mbps[0],
        failures=problem.states.link_down,
        excused=problem.cut_off[1:],
    )
