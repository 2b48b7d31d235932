"""Cheapest modules that give links a required capacity."""

from __future__ import annotations

import numpy as np

from planner.search.tolerances import SOLVER
from planner_models.capacity.designs.network_design.instance import Instance
from planner_models.capacity.designs.network_design.network import Floats

ROUNDING = SOLVER
"""Share of a required capacity that is rounding of a solver."""
MAX_STEPS = 2000
"""Combinations of modules of one link that are tried; the best of them is bought."""


class Purchase:
    """Finds the cheapest modules of each link, and remembers them."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self._kinds = [np.flatnonzero(instance.module_edge == edge) for edge in range(instance.edges)]
        self._bought: dict[tuple[int, float], Floats | None] = {}

    def cheapest(self, capacity: Floats) -> Floats | None:
        """Return modules (M,) that give each link at least a capacity (E,); None where they do not exist."""
        counts = np.zeros(self.instance.modules)
        for edge in np.flatnonzero(capacity > self.instance.installed * (1 + 1e-9) + 1e-9):
            bought = self._cheapest_on(int(edge), float(capacity[edge] - self.instance.installed[edge]))
            if bought is None:
                return None
            counts[self._kinds[edge]] = bought
        return counts

    def _cheapest_on(self, edge: int, needed: float) -> Floats | None:
        key = (edge, float(f"{needed:.7g}"))
        if key not in self._bought:
            self._bought[key] = self._search(edge, needed * (1 - ROUNDING))
        return self._bought[key]

    def _search(self, edge: int, needed: float) -> Floats | None:
        """Return the cheapest modules of one link by branch and bound over counts, kind by kind."""
        kinds = self._kinds[edge]
        size, cost = self.instance.module_size[kinds], self.instance.module_cost[kinds]
        limit = self.instance.module_limit[kinds]
        if self.instance.explicit:
            enough = np.flatnonzero((size >= needed) & (limit >= 1))
            if not len(enough):
                return None
            chosen = np.zeros(len(kinds))
            chosen[enough[cost[enough].argmin()]] = 1.0
            return chosen
        order = np.argsort(cost / size, kind="stable")
        ratios = [*(cost / size)[order].tolist(), np.inf]
        best: list[float] = [np.inf]
        best_counts: list[Floats | None] = [None]
        steps = [0]

        def descend(position: int, rest: float, spent: float, counts: Floats) -> None:
            if rest <= 0.0:
                if spent < best[0]:
                    best[0], best_counts[0] = spent, counts.copy()
                return
            if position == len(order) or steps[0] > MAX_STEPS:
                return
            steps[0] += 1
            kind = order[position]
            if spent + rest * cost[kind] / size[kind] >= best[0]:
                return
            for number in range(int(min(limit[kind], np.ceil(rest / size[kind]))), -1, -1):
                left = rest - number * size[kind]
                # fewer of this kind leave more for dearer ones: no smaller number is better
                is_worse = left > 0 and spent + number * cost[kind] + left * ratios[position + 1] >= best[0]
                if is_worse or steps[0] > MAX_STEPS:
                    break
                counts[kind] = number
                descend(position + 1, rest - number * size[kind], spent + number * cost[kind], counts)
            counts[kind] = 0.0

        descend(0, needed, 0.0, np.zeros(len(kinds)))
        return best_counts[0]
