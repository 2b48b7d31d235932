"""Local search over routes: demands of a few links are routed anew, one by one, where capacity is cheapest.

Each demand, or each piece of a large one, takes one path; a link costs the cheapest modules for its load. A
move takes traffic off some links and routes it again over the paths that add least cost; simulated annealing
accepts or rejects it (ruin and recreate).

Reference: Schrimpf, Schneider, Stamm-Wilbrandt and Dueck, "Record breaking optimization results using the
ruin and recreate principle", Journal of Computational Physics 159, 2000.

Staircases of links: the least cost of modules and setup for each amount of capacity that a link needs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from planner_models.capacity.designs.network_design.instance import Instance
from planner_models.capacity.designs.network_design.network import Floats, Ints, Network
from planner_models.capacity.designs.network_design.route_moves import (
    OVERLOAD_PRICE,
    Graph,
    Pieces,
    Prices,
    Routes,
    anneal,
    route_all,
)

PIECES = 400
"""Pieces of all demands together that large ones are divided into."""

MAX_PIECES = 32
"""Pieces of one demand."""

INITIAL_TEMPERATURE = 1.0
"""Of the annealing, as a share of the median cost of a step."""

FINAL_TEMPERATURE = 0.05

SMOOTHED_PRICE = 1.0
"""First price of load in the annealing, relative to the smoothed price of capacity."""
MAX_STEPS = 4000
"""Steps of one link; where modules combine to more capacities, the higher ones are left out."""


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
        upper: Floats = self.steps.capacity[self.steps.first[1:] - 1]
        return upper

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


class Staircases(NamedTuple):
    """Steps of all links: those of link e are first[e] to first[e + 1] - 1, by rising capacity and cost.

    first     (E + 1,)
    capacity  (T,) that a step gives, with what is installed
    cost      (T,) of modules and setup
    """

    first: Ints
    capacity: Floats
    cost: Floats


def build_staircases(instance: Instance) -> Staircases:
    """Return the steps of each link, up to the capacity that carries all traffic."""
    useful = float(instance.rate.sum())
    first, capacity, cost = [0], [], []
    for edge in range(instance.edges):
        kinds = np.flatnonzero(instance.module_edge == edge)
        size, price = _combinations(instance, kinds, useful)
        capacity.append(size + instance.installed[edge])
        cost.append(price + instance.setup_cost[edge] * (size > 0))
        first.append(first[-1] + len(size))
    return Staircases(np.array(first), np.concatenate(capacity), np.concatenate(cost))


def _combinations(instance: Instance, kinds: Ints, useful: float) -> tuple[Floats, Floats]:
    """Return capacities and least costs of combinations of the modules of one link, rising from nothing."""
    size, cost = np.zeros(1), np.zeros(1)
    each_size, each_cost = instance.module_size[kinds], instance.module_cost[kinds]
    counts = np.minimum(instance.module_limit[kinds], np.ceil(useful / each_size - 1e-9))
    if instance.explicit:
        enough = counts >= 1
        return _rising(np.r_[size, each_size[enough]], np.r_[cost, each_cost[enough]], useful)
    for kind in np.argsort(-each_size, kind="stable"):
        larger = (each_size > each_size[kind]) & (counts >= np.ceil(useful / each_size - 1e-9))
        copies = np.arange(min(counts[kind], MAX_STEPS) + 1)
        for other in np.flatnonzero(larger):  # modules that larger ones replace at no higher cost
            needed_count = np.ceil(copies * each_size[kind] / each_size[other] - 1e-9)
            needed = np.maximum(needed_count, 1.0) * each_cost[other]
            copies = copies[(copies == 0) | (needed > copies * each_cost[kind])]
        size = (size[:, None] + copies * each_size[kind]).ravel()
        cost = (cost[:, None] + copies * each_cost[kind]).ravel()
        size, cost = _rising(size, cost, useful)
    return size, cost


def _rising(size: Floats, cost: Floats, useful: float) -> tuple[Floats, Floats]:
    """Return the combinations that no other one replaces at no higher cost, up to the useful size."""
    order = np.lexsort((-size, cost))
    size, cost = size[order], cost[order]
    before = np.r_[-1.0, np.maximum.accumulate(size)[:-1]]
    rising = (size > before * (1 + 1e-12) + 1e-12) & (before < useful)
    return size[rising][:MAX_STEPS], cost[rising][:MAX_STEPS]
