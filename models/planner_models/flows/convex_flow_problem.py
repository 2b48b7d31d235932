"""Flows of least convex cost with selectable sources: problem, result, and the tangent bound.

Traffic goes to targets. Some of it is fixed: it starts at given nodes. The rest belongs to groups, such
as the clients of a place, and each group takes its traffic from sources that may serve it, within their
capacities.

With the slopes p of the cost f at any load l, no flow costs less than

    f(l) - p l + (cost of the cheapest trees and sources under p)

in which capacities of sources have multipliers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import scipy.sparse as sp

from planner.arrays import Bools, Floats, Ints, Ints32
from planner_models.flows.link_cost import LinkCost
from planner_models.flows.source_choice import SourceChoice, bound_on_cost
from planner_models.graphs.shortest_path_trees import Graph, shortest_trees

MAX_SEARCH_STEPS: Final = 40
"""Halvings of a line search."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ConvexFlowProblem:
    """Traffic to T targets over a directed network of N nodes and E links, at least convex cost.

    targets  (T,) nodes
    fixed    (T, N) traffic to each target that starts at each node; all of it has a path
    choice   traffic whose sources are selected
    cost     of links
    """

    graph: Graph
    targets: Ints
    fixed: Floats
    choice: SourceChoice
    cost: LinkCost


@dataclass(frozen=True, kw_only=True, eq=False)
class ConvexFlow:
    """Result of a search.

    flow       (T, E) traffic to each target on each link
    assigned   (G, S) traffic of each group from each source
    objective  cost of the flow
    bound      no flow costs less
    price      (E,) slope of each link's cost at its load
    is_cut     whether the time limit ended the search
    trees      (C, N) int32 trees that carry traffic, to start another search from, and (C,) their targets
    backend    solver of the master problem
    """

    flow: sp.csr_array
    assigned: Floats
    objective: float
    bound: float
    price: Floats
    is_cut: bool
    trees: tuple[Ints32, Ints]
    backend: str


@dataclass(frozen=True, kw_only=True, eq=False)
class Prices:
    """Shortest trees under some prices, and the cost of traffic on them.

    parent  (T, N) trees
    value   (T,) cost of the fixed traffic to each target
    cost    (G, S) cost of a unit from a source to a group
    """

    parent: Ints32
    value: Floats
    cost: Floats


def measure_prices(problem: ConvexFlowProblem, price: Floats) -> Prices:
    """Return the shortest trees under prices of links, (E,), and the cost of traffic on them."""
    choice = problem.choice
    parent, value = shortest_trees(problem.graph, price, problem.targets, problem.fixed)
    if not len(choice.amount):
        return Prices(parent=parent, value=value, cost=np.zeros(choice.allowed.shape))
    by_source = choice.source_share @ _distances(problem.graph, parent, price).T
    return Prices(parent=parent, value=value, cost=np.asarray(choice.target_share @ by_source.T))


def _distances(graph: Graph, parent: Ints32, price: Floats) -> Floats:
    """Return the length of the path from each node on each tree, (T, N); 0 without one."""
    if not len(price):
        return np.zeros((len(parent), graph.nodes))
    rows = np.arange(len(parent))[:, None]
    ahead = np.where(parent >= 0, graph.head[parent], np.arange(graph.nodes))
    length = np.where(parent >= 0, price[parent], 0.0)
    for _ in range(max(graph.nodes, 2).bit_length()):
        length = length + length[rows, ahead]
        ahead = ahead[rows, ahead]
    return length


def tangent_bound(
    problem: ConvexFlowProblem, load: Floats, prices: Prices, usable: Bools, multiplier: Floats
) -> float:
    """Return a lower bound on the cost of all flows, by the tangent plane of the cost at a load.

    load        (E,)
    prices      under the slopes at that load
    usable      (G, S) as `usable_sources` returns it
    multiplier  (S,) price of a unit of each source's capacity
    """
    slope = problem.cost.slope(load)
    bound = float(problem.cost.value(load).sum()) - float(slope @ load) + float(prices.value.sum())
    return bound + bound_on_cost(problem.choice, usable, prices.cost, multiplier)


def find_step(cost: LinkCost, load: Floats, change: Floats) -> float:
    """Return the step from 0 to 1 along a change of loads of least cost, by bisection of the slope."""
    if float(cost.slope(np.maximum(load + change, 0.0)) @ change) <= 0:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(MAX_SEARCH_STEPS):
        middle = (low + high) / 2
        if float(cost.slope(np.maximum(load + middle * change, 0.0)) @ change) > 0:
            high = middle
        else:
            low = middle
    return low


def is_within_gap(value: float, bound: float, gap: float) -> bool:
    """Return whether a value is within a relative gap of its bound."""
    return value - bound <= gap * max(abs(value), abs(bound), 1e-300)
