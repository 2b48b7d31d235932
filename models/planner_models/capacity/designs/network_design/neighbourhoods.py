"""Neighbourhoods of a plan: the links with modules that a search may change, all others keep theirs.

Among them is path relinking: where two good plans agree, the links keep their modules, and where they differ,
branch and bound searches all modules, of which those of both plans are only two choices.

Reference: Danna, Rothberg and Le Pape, "Exploring relaxation induced neighborhoods to improve MIP
solutions", Mathematical Programming 102, 2005; Rothberg, "An evolutionary algorithm for polishing mixed
integer programming solutions", INFORMS Journal on Computing 19, 2007.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner_models.capacity.designs.network_design.network import Bools, Floats, Network

MAX_KEPT = 10
"""Good plans that are kept to be combined with the best one."""

MOST_ABOVE = 0.05
"""Cost above that of the best plan, relative to it, up to which a plan is kept."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Known:
    """A plan that all states can route, or nearly so.

    capacity  (E,) of each link
    cost      of its modules
    """

    capacity: Floats
    cost: float


class Neighbourhoods:
    """Chooses the links of neighbourhoods, and keeps good plans to combine."""

    def __init__(self, network: Network, rng: np.random.Generator) -> None:
        self.network, self.rng = network, rng
        self.known: list[Known] = []
        self._near: Floats | None = None

    def remember(self, capacity: Floats, cost: float) -> None:
        """Keep a plan, unless it is known or too expensive beside the others."""
        if any(np.array_equal(capacity, plan.capacity) for plan in self.known):
            return
        self.known.append(Known(capacity=capacity.copy(), cost=cost))
        self.known.sort(key=lambda plan: plan.cost)
        max_cost = self.known[0].cost * (1 + MOST_ABOVE)
        self.known = [plan for plan in self.known[:MAX_KEPT] if plan.cost <= max_cost]

    def forget(self) -> None:
        """Drop all plans."""
        self.known = []

    def choose(self, capacity: Floats, relaxed: Floats, count: int) -> Bools:
        """Return `count` links with modules that may change, shape (E,).

        capacity  (E,) of the plan
        relaxed   (E,) of the linear relaxation
        """
        edges, rng = len(capacity), self.rng
        others = [plan for plan in self.known if not np.array_equal(plan.capacity, capacity)]
        kind = rng.integers(4 if others else 3)
        if kind == 0:
            return self.choose_near_node(edges, count)
        if kind == 1:  # where the relaxation disagrees
            away = np.abs(capacity - relaxed)
            order = np.argsort(-away * (0.3 + rng.random(edges)))
        elif kind == 2:
            order = rng.permutation(edges)
        else:  # where another plan disagrees, and near such links
            other = others[rng.integers(len(others))].capacity
            rank = self._distance_of_any() * rng.random() + 0.9 * rng.random(edges)
            order = np.lexsort((rank, capacity == other))
        free = np.zeros(edges, dtype=bool)
        free[order[:count]] = True
        return free

    def choose_near_node(self, edges: int, count: int) -> Bools:
        """Return `count` links near a random node, shape (E,)."""
        order = np.argsort(self._distance_of_any() + 0.9 * self.rng.random(edges))
        free = np.zeros(edges, dtype=bool)
        free[order[:count]] = True
        return free

    def _distance_of_any(self) -> Floats:
        """Return the hops of each link from a random node, (E,)."""
        instance = self.network.instance
        if self._near is None:
            self._near = self.network.distances(
                np.ones(self.network.capacities), np.ones(instance.edges, dtype=bool)
            )
        node = self.rng.integers(self.network.nodes)
        nearest: Floats = np.minimum(self._near[node, instance.tail], self._near[node, instance.head])
        return nearest
