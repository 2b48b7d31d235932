"""Flows of least convex cost on large networks: Frank-Wolfe with conjugate directions, and a bound.

Each step finds the cheapest flow under the slopes of the cost at the present load: shortest trees to all
targets, and the cheapest sources. The step goes towards a mixture of that flow and the target of the step
before, such that both directions are conjugate under the cost's second derivative. No linear program of the
network is solved, and a step takes one shortest tree for each target. Near the optimum steps become slow:
column generation is better for small gaps and small networks.

source  Mitradjieva and Lindberg 2013, "The stiff is moving: conjugate direction Frank-Wolfe methods with
        applications to traffic assignment"; Frank and Wolfe 1956
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
import scipy.sparse as sp

from planner.arrays import Floats, Ints32
from planner.errors import SolverFailure
from planner.options import Options
from planner.search.deadline import Deadline
from planner_models.flows.convex_flow_problem import (
    ConvexFlow,
    ConvexFlowProblem,
    Prices,
    find_step,
    is_within_gap,
    measure_prices,
    tangent_bound,
)
from planner_models.flows.source_choice import cheapest_sources, usable_sources
from planner_models.graphs.shortest_path_trees import tree_flows

MAX_STEPS: Final = 500
MAX_MIXTURE: Final = 0.99
"""Largest share of the target of the step before in the next one."""
DIFFERENCE: Final = 1e-4
"""Utilization over which the second derivative of the cost is a difference of slopes."""
MAX_STEPS_SINCE_RESTART: Final = 50
BACKEND: Final = "Frank-Wolfe with conjugate directions"


@dataclass(frozen=True, kw_only=True, eq=False)
class _Flow:
    """A flow: (T, E) traffic to each target on each link, (G, S) assigned traffic, (E,) load."""

    flow: Floats
    assigned: Floats
    load: Floats

    def towards(self, other: _Flow, step: float) -> _Flow:
        """Return the flow that is a step from 0 to 1 nearer to another one."""
        return _Flow(
            flow=self.flow + step * (other.flow - self.flow),
            assigned=self.assigned + step * (other.assigned - self.assigned),
            load=self.load + step * (other.load - self.load),
        )


def solve_by_conjugate_directions(
    problem: ConvexFlowProblem,
    *,
    options: Options,
    gap: float,
    deadline: Deadline,
    observe: Callable[[float, float], None] | None = None,
) -> ConvexFlow:
    """Return a flow within a relative gap of its bound, or the incumbent at the deadline or the last step.

    observe  receives each step's incumbent and bound
    """
    cost, usable = problem.cost, usable_sources(problem.choice)
    prices = measure_prices(problem, cost.slope(np.zeros(len(cost.capacity))))
    current, _ = _cheapest_flow(problem, prices, options)
    aim, bound, is_cut = current, -np.inf, False
    for step in range(MAX_STEPS):
        prices = measure_prices(problem, cost.slope(current.load))
        cheapest, multiplier = _cheapest_flow(problem, prices, options)
        bound = max(bound, tangent_bound(problem, current.load, prices, usable, multiplier))
        value = float(cost.value(current.load).sum())
        if observe is not None:
            observe(value, bound)
        if is_within_gap(value, bound, gap):
            break
        if deadline.is_over:
            is_cut = True
            break
        share = _find_mixture(problem, current, aim, cheapest) if step % MAX_STEPS_SINCE_RESTART else 0.0
        aim = cheapest.towards(aim, share)
        change = aim.load - current.load
        current = current.towards(aim, find_step(cost, current.load, change))
    return _make_result(problem, current, bound, prices.parent, is_cut=is_cut)


def _cheapest_flow(problem: ConvexFlowProblem, prices: Prices, options: Options) -> tuple[_Flow, Floats]:
    """Return the cheapest flow under prices, and the sources' prices of capacity, (S,)."""
    choice, graph = problem.choice, problem.graph
    solved = cheapest_sources(choice, prices.cost, options)
    if solved is None:
        raise SolverFailure("convex flow: the capacities of sources do not suffice")
    assigned, multiplier = solved
    count, links = len(problem.targets), len(graph.tail)
    supply = problem.fixed + (choice.target_share.T @ assigned) @ choice.source_share.toarray()
    supply[np.arange(count), problem.targets] = 0.0
    sent = tree_flows(graph, prices.parent, supply, np.arange(count))
    row, node = np.nonzero(sent > 0)
    flow = np.zeros((count, links))
    flow[row, prices.parent[row, node]] = sent[row, node]
    return _Flow(flow=flow, assigned=assigned, load=flow.sum(axis=0)), multiplier


def _find_mixture(problem: ConvexFlowProblem, current: _Flow, aim: _Flow, cheapest: _Flow) -> float:
    """Return the share of the former aim that makes the next direction conjugate to the former one."""
    cost = problem.cost
    width = DIFFERENCE * cost.capacity
    curvature = (cost.slope(current.load + width) - cost.slope(current.load)) / width
    former, next_ = aim.load - current.load, cheapest.load - current.load
    along = float(former @ (curvature * next_))
    scale = float(former @ (curvature * (next_ - former)))
    if scale == 0 or along / scale < 0:
        return 0.0
    return min(along / scale, MAX_MIXTURE)


def _make_result(
    problem: ConvexFlowProblem, current: _Flow, bound: float, parent: Ints32, *, is_cut: bool
) -> ConvexFlow:
    objective = float(problem.cost.value(current.load).sum())
    return ConvexFlow(
        flow=sp.csr_array(current.flow),
        assigned=current.assigned,
        objective=objective,
        bound=min(bound, objective),
        price=problem.cost.slope(current.load),
        is_cut=is_cut,
        trees=(parent, problem.targets),
        backend=BACKEND,
    )
