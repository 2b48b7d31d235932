"""Plans from points of the master program: rounded up, repaired where states overload, and completed.

Cheapest modules that give links a required capacity.
"""

from __future__ import annotations

import numpy as np

from planner.search.tolerances import SOLVER
from planner_models.capacity.designs.network_design.feasibility import (
    OVERLOAD_TOLERANCE,
    Feasibility,
    OverloadProgram,
)
from planner_models.capacity.designs.network_design.instance import Instance
from planner_models.capacity.designs.network_design.neighbourhoods import Neighbourhoods
from planner_models.capacity.designs.network_design.network import Floats

ROUNDING = SOLVER
"""Share of a required capacity that is rounding of a solver."""
MAX_STEPS = 2000
"""Combinations of modules of one link that are tried; the best of them is bought."""


class PlanBuilder:
    """Builds plans that all states can route, and offers them as the best one."""

    def __init__(self, feasibility: Feasibility, neighbourhoods: Neighbourhoods) -> None:
        self.feasibility, self.neighbourhoods = feasibility, neighbourhoods
        self.master, self.instance = feasibility.master, feasibility.instance
        self.network, self.states = feasibility.network, feasibility.states
        self.incumbent, self.budget = feasibility.incumbent, feasibility.budget
        self.purchase = Purchase(self.instance)
        self.repairing = OverloadProgram(self.network, self._unit_costs())
        self.most = self.instance.capacity(feasibility.most_counts())

    def _unit_costs(self) -> Floats:
        """Return the least module cost per unit of capacity of each link, high where none can be bought."""
        instance = self.instance
        ratio = instance.module_cost / instance.module_size
        price = np.full(instance.edges, np.inf)
        np.minimum.at(price, instance.module_edge, ratio)
        finite = np.isfinite(price)
        worst = float(price[finite].max(initial=1.0))
        price[~finite] = 1e3 * max(worst, 1e-6)
        return price / max(float(price[finite].mean()) if finite.any() else 1.0, 1e-9) + 1e-3

    def offer(self, point: Floats) -> bool:
        """Take a feasible point of the master program as the best plan if it is better."""
        is_better = self.incumbent.offer(point, float(self.master.cost @ point))
        if is_better:
            self.remember(point[: self.instance.modules])
        return is_better

    def remember(self, counts: Floats | None) -> None:
        """Store a plan to be combined with others, where capacities alone determine its cost."""
        if counts is not None and not self.master.has_flow:
            cost = self.instance.purchase_cost(counts)
            self.neighbourhoods.remember(self.instance.capacity(counts), cost)

    def complete(self, counts: Floats) -> Floats | None:
        """Return the point with these modules, and with the cheapest flow where it has a cost."""
        master = self.master
        point = np.zeros(master.columns)
        point[: master.modules] = counts
        bought = np.bincount(self.instance.module_edge, weights=counts, minlength=self.instance.edges) > 0
        point[master.opened] = bought[master.setup_edges]
        if not master.has_flow:
            return point
        return master.solve_flow(point, self.incumbent.left_s())

    def plan_first(self) -> None:
        """Offer the plans that need no relaxation: all modules, and the repair of no modules."""
        counts = np.zeros(self.instance.modules)
        if self.budget is not None:
            self._deliver_most(counts)
            return
        point = self.complete(self.feasibility.most_counts())
        if point is not None and self.feasibility.violated_states(point, 1) == []:
            self.offer(point)
        self.repair(counts)

    def round_up(self, relaxed: Floats) -> None:
        """Offer plans of rounded capacities, repaired for the overload of each state."""
        if self.budget is not None:
            self._plan_within_budget(relaxed)
            return
        for share in (1.0, 0.7, 0.3):
            if not self.repair(self._round(relaxed, np.full(self.instance.modules, share))):
                break

    def round_at_random(self, relaxed: Floats, rng: np.random.Generator) -> None:
        """Offer a plan of capacities rounded at random, repaired for the overload of each state."""
        self.repair(self._round(relaxed, rng.random(self.instance.modules)))

    def _round(self, relaxed: Floats, share: Floats) -> Floats:
        """Return modules (M,), rounded up where their fraction is above 1 less a share (M,)."""
        rounded = np.maximum(np.floor(relaxed[: self.instance.modules] + share - 1e-6), 0.0)
        upper = (
            np.minimum(self.instance.module_limit, 1.0)
            if self.instance.explicit
            else self.instance.module_limit
        )
        return np.minimum(rounded, upper)

    def repair(self, counts: Floats) -> bool:
        """Offer the plan that buys capacity for the overload of each state; False if time runs out."""
        capacity = self.instance.capacity(counts)
        for state in np.argsort(-self.feasibility.recent, kind="stable").tolist():
            while True:
                up = self.states.up[state]
                rates = self.instance.rate * self.states.required[state]
                extra = np.where(up, self.most - capacity, 0.0)
                left_s = self.incumbent.left_s()
                solved = self.repairing.solve(capacity * up, rates, left_s, np.maximum(0.0, extra))
                if solved is None:
                    return False
                over = np.where(up, solved[1], 0.0)
                if solved[0] <= OVERLOAD_TOLERANCE * float(self.instance.rate.sum()):
                    break
                bought = self.purchase.cheapest(np.where(over > 1e-9, capacity + over, 0.0))
                if bought is None:
                    return True
                edges = over > 1e-9
                capacity = np.where(edges, np.maximum(capacity, self.instance.capacity(bought)), capacity)
        self.offer_capacity(capacity)
        return True

    def offer_capacity(self, capacity: Floats) -> None:
        """Offer the plan that buys at least a capacity (E,), where all states can route it."""
        counts = self.purchase.cheapest(self._connect(capacity))
        if counts is None or self.instance.purchase_cost(counts) >= self.incumbent.value:
            return
        point = self.complete(counts)
        if point is None or self.feasibility.separate_unreached(point):
            return
        if self.feasibility.violated_states(point, 1) == []:
            self.offer(point)

    def _connect(self, capacity: Floats) -> Floats:
        """Return capacities (E,) with the cheapest new links over which each demand has a path."""
        instance, network, capacity = self.instance, self.network, capacity.copy()
        for state, demand, _ in list(self.feasibility.unreached(capacity, instance.rate)):
            usable = self.states.up[state] & (self.most > 0)
            price = np.where(capacity > 0, 0.0, self.repairing.weights_by_link)[network.arc_edge]
            links = network.cheapest_links(demand, price + 1e-9, usable)
            capacity[links] = np.maximum(capacity[links], 1e-6 * self.most[links])
        return capacity

    def _plan_within_budget(self, relaxed: Floats) -> None:
        """Offer the plan that delivers most over modules rounded down."""
        self._deliver_most(np.floor(relaxed[: self.instance.modules] + 1e-6))

    def _deliver_most(self, counts: Floats) -> None:
        while self.incumbent.left_s() > 0.0:
            point = self.complete(counts)
            if point is None:
                return
            violated = self.feasibility.separate(point)
            if violated is None:
                return
            if not violated:
                self.offer(point)
                return

    def take(self, candidate: Floats) -> None:
        """Offer the plan with the modules of a point that all states can route."""
        point = self.complete(candidate[: self.master.modules])
        if point is not None and self.master.has_flow and self.budget is not None:
            self._deliver_most(candidate[: self.master.modules])
        elif point is not None:
            self.offer(point)

    def take_points(self, points: list[Floats]) -> bool:
        """Take the best of the points that all states can route, and repair the best; False out of time."""
        for candidate in points[:3]:
            if not self._is_candidate(candidate):
                continue
            violated = self.feasibility.separate(candidate)
            if violated is None:
                return False
            if not violated:
                self.take(candidate)
                break
        if points and self.master.cost @ points[0] < self.incumbent.value:
            self.repair_candidate(points[0])
        return True

    def repair_candidate(self, candidate: Floats) -> None:
        """Offer the plan that a candidate becomes once all states can route it."""
        if self.budget is None:
            self.repair(candidate[: self.master.modules])
        else:
            self._deliver_most(candidate[: self.master.modules])

    def _is_candidate(self, point: Floats) -> bool:
        """Return whether a point keeps all rows of the pool and is better than the best plan."""
        if self.master.cost @ point >= self.incumbent.value - 1e-9:
            return False
        return not self.master.is_cut_off(point)


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
            bought = np.zeros(len(kinds))
            bought[enough[cost[enough].argmin()]] = 1.0
            return bought
        order = np.argsort(cost / size, kind="stable")
        ratios = [*(cost / size)[order].tolist(), np.inf]
        best: list[float] = [np.inf]
        best_counts: list[Floats | None] = [None]
        steps = [0]

        def descend(position: int, remaining: float, spent: float, counts: Floats) -> None:
            if remaining <= 0.0:
                if spent < best[0]:
                    best[0], best_counts[0] = spent, counts.copy()
                return
            if position == len(order) or steps[0] > MAX_STEPS:
                return
            steps[0] += 1
            kind = order[position]
            if spent + remaining * cost[kind] / size[kind] >= best[0]:
                return
            for number in range(int(min(limit[kind], np.ceil(remaining / size[kind]))), -1, -1):
                remaining_after = remaining - number * size[kind]
                # fewer of this kind leave more for dearer ones: no smaller number is better
                is_worse = (
                    remaining_after > 0
                    and spent + number * cost[kind] + remaining_after * ratios[position + 1] >= best[0]
                )
                if is_worse or steps[0] > MAX_STEPS:
                    break
                counts[kind] = number
                descend(position + 1, remaining - number * size[kind], spent + number * cost[kind], counts)
            counts[kind] = 0.0

        descend(0, needed, 0.0, np.zeros(len(kinds)))
        return best_counts[0]
