"""Local search over routes: demands of a few links are routed anew, one by one, where capacity is cheapest.

Each demand, or each piece of a large one, takes one path; a link costs the cheapest modules for its load. A
move takes traffic off some links and routes it again over the paths that add least cost; simulated annealing
accepts or rejects it (ruin and recreate).

Reference: Schrimpf, Schneider, Stamm-Wilbrandt and Dueck, "Record breaking optimization results using the
ruin and recreate principle", Journal of Computational Physics 159, 2000.
"""

from __future__ import annotations

import numpy as np

from planner_models.capacity.designs.network_design.instance import Instance
from planner_models.capacity.designs.network_design.network import Floats, Network
from planner_models.capacity.designs.network_design.route_moves import (
    OVERLOAD_PRICE,
    Graph,
    Pieces,
    Prices,
    Routes,
    anneal,
    route_all,
)
from planner_models.capacity.designs.network_design.staircases import build_staircases

PIECES = 400
"""Pieces of all demands together that large ones are divided into."""

MAX_PIECES = 32
"""Pieces of one demand."""

INITIAL_TEMPERATURE = 1.0
"""Of the annealing, as a share of the median cost of a step."""

FINAL_TEMPERATURE = 0.05

SMOOTHED_PRICE = 1.0
"""First price of load in the annealing, relative to the smoothed price of capacity."""


class RouteSearch:
    """Routes of all demands of a network without failures and tunnels, and their local search."""

    def __init__(self, instance: Instance, network: Network) -> None:
        self.instance, self.network = instance, network
        self.steps = build_staircases(instance)
        self.graph = _graph_of(network)
        mean = max(float(instance.rate.sum()), 1e-12) / PIECES
        count = np.clip(np.ceil(instance.rate / mean), 1, MAX_PIECES).astype(int)
        demand = np.repeat(np.arange(len(count)), count)
        self.pieces = Pieces(
            network.source[demand], network.target[demand], instance.rate[demand] / count[demand]
        )
        rises = np.delete(np.diff(self.steps.cost), self.steps.first[1:-1] - 1)
        self.scale = float(np.median(rises[rises > 0])) if (rises > 0).any() else 1.0
        dearest = float((instance.module_cost / instance.module_size).max(initial=0.0))
        dearest = max(dearest, self.scale / max(float(self.pieces.rate.max(initial=0.0)), 1e-12))
        self.prices = Prices(instance.routing_cost, OVERLOAD_PRICE * dearest)
        self.routes: Routes | None = None

    def start(self, capacity: Floats) -> bool:
        """Route all demands, at first over links that have capacity (E,); return whether all have paths.

        Links that are short of capacity are overloaded, at a price.
        """
        count = len(self.pieces.rate)
        self.routes = Routes(
            np.zeros((count, self.network.nodes), dtype=np.int64),
            np.zeros(count, dtype=np.int64),
            np.zeros(self.network.capacities),
            self.steps.first[:-1].copy(),
        )
        return bool(route_all(self.graph, self.steps, self.routes, self.pieces, self.prices, capacity))

    def improve(self, path_searches: int, temperature: float, rng: np.random.Generator) -> float:
        """Search by annealing within so many searches for paths; return the cost of the best routes, which
        has the price of their overload in it.

        temperature  factor of the temperatures
        """
        assert self.routes is not None
        hot, cold = (
            temperature * self.scale * INITIAL_TEMPERATURE,
            temperature * self.scale * FINAL_TEMPERATURE,
        )
        graph, steps, pieces, prices = self.graph, self.steps, self.pieces, self.prices
        return float(
            anneal(graph, steps, self.routes, pieces, prices, path_searches, hot, cold, SMOOTHED_PRICE, rng)
        )

    def most(self) -> Floats:
        """Return the capacity of the last step of each link, shape (E,)."""
        most: Floats = self.steps.capacity[self.steps.first[1:] - 1]
        return most

    def capacity(self) -> Floats:
        """Return the capacity that the routes need of each link, shape (E,)."""
        assert self.routes is not None
        needed = np.zeros(self.instance.edges)
        np.maximum.at(needed, self.graph.edge, self.routes.load)
        return needed


def _graph_of(network: Network) -> Graph:
    order = np.argsort(network.arc_tail, kind="stable")
    first = np.r_[0, np.cumsum(np.bincount(network.arc_tail, minlength=network.nodes))]
    rows = np.arange(network.capacities)
    is_paired = network.capacities > network.instance.edges
    other = (rows + network.instance.edges) % network.capacities if is_paired else rows
    return Graph(
        first, order, network.arc_tail, network.arc_head, network.arc_capacity, network.capacity_edge, other
    )
