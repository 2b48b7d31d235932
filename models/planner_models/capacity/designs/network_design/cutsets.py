"""Separation of rounded cutset rows: traffic out of a node set needs an integer number of modules.

Node sets are found by local search with a tabu list from many random starts at once, in each of many states;
each set then gives rows for the states in which it is violated, and one that combines its failures.

Mixed-integer rounding of a row that capacities must satisfy (Marchand and Wolsey 2001).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from planner.search.tolerances import FEASIBILITY, SOLVER
from planner_models.capacity.designs.network_design.instance import Instance
from planner_models.capacity.designs.network_design.master import Master
from planner_models.capacity.designs.network_design.network import Bools, Floats, Network
from planner_models.capacity.designs.network_design.states import States

STARTS = 100
MAX_STATES = 10
"""States that are searched at once."""

STEPS = 40
MIN_VIOLATION = 0.02
"""Violation in modules from which a node set is kept."""

TIGHT = 0.1
"""Modules more than needed across a node set that counts as tight."""

RANDOM_FRACTIONS = 0.3
"""Share of searches for sets that need any fraction of a module, not one that modules have."""

SMALL_FRACTION = FEASIBILITY
"""Fraction of a module that counts as a whole one in searches where all modules have whole sizes."""

MAX_SETS = 60
"""Node sets that give rows in one round."""
TOLERANCE = SOLVER
"""Distance from a whole number below which a right-hand side counts as one, relative to it."""
MAX_DIVISORS = 8
"""Divisors of one row; those of several modules are rounded again by larger ones."""
MAX_RATIO = 1e6
"""Ratio of coefficients up to which a row is scaled by its largest: solvers drop those of 1e-9 and less."""


class CutsetSeparator:
    """Finds violated cutset rows and adds them to a master program."""

    def __init__(self, instance: Instance, network: Network, states: States, master: Master) -> None:
        self.instance, self.network, self.states, self.master = instance, network, states, master
        self.sizes = np.unique(instance.module_size)
        self._sets: dict[bytes, None] = {}
        self._opened = np.full(instance.edges, -1)
        self._opened[master.setup_edges] = np.arange(master.opened.start, master.opened.stop)

    def rates(self, point: Floats) -> Floats:
        """Return the rate of each demand that a point delivers, shape (D,)."""
        if self.master.budget is None:
            return self.instance.rate
        rates: Floats = np.maximum(0.0, point[self.master.delivered])
        return rates

    def add_node_rows(self) -> int:
        """Add the rows of all single nodes; return their number."""
        single = np.eye(self.network.nodes, dtype=bool)
        point = np.zeros(self.master.pooled)
        if self.master.budget is not None:
            point[self.master.delivered] = self.instance.rate
        sets = np.vstack([single, ~single]) if self.instance.direction != "undirected" else single
        return self._add_rows(sets, point)

    def separate(self, point: Floats, rng: np.random.Generator) -> int:
        """Add rows that a point violates; return their number."""
        sets = self.find_sets(point, rng)
        return self._add_rows(sets, point) if len(sets) else 0

    def find_sets(self, point: Floats, rng: np.random.Generator) -> Bools:
        """Return node sets with rounded rows that a point violates, the most violated first, (U, nodes)."""
        instance, network, states = self.instance, self.network, self.states
        sampled = np.arange(len(states))
        if len(states) > MAX_STATES:
            sampled = np.sort(rng.choice(len(states), MAX_STATES, replace=False))
        size = float(rng.choice(self.sizes)) if len(self.sizes) else 1.0
        fraction = self._draw_fraction(size, rng)
        counts = point[: instance.modules]
        bought: Floats = np.bincount(
            instance.module_edge,
            weights=counts * round_down(instance.module_size / size, fraction),
            minlength=instance.edges,
        ).astype(float)
        rates = self.rates(point)
        installed = network.link_matrix(instance.installed * states.up[sampled] / size)
        total = network.link_matrix(bought * states.up[sampled])
        demand = network.demand_matrix(rates * states.required[sampled] / size)
        starts = np.stack(
            [
                _starts(total[i] + installed[i], max(1, STARTS // len(sampled)), rng)
                for i in range(len(sampled))
            ]
        )
        candidates = _search(total, demand - installed, starts, rng, fraction)
        best = sorted(candidates.items(), key=lambda item: -item[1])[:MAX_SETS]
        if not best:
            return np.zeros((0, network.nodes), dtype=bool)
        return np.stack([np.frombuffer(key, dtype=bool) for key, _ in best])

    def _draw_fraction(self, size: float, rng: np.random.Generator) -> float:
        """Return a fraction of a module that sets are to need beyond whole ones; 1 for rows not rounded.

        Rows of sets that need a larger fraction count smaller modules less.
        """
        if self.master.budget is not None:
            return 1.0
        rests = np.unique(np.round(self.sizes / size % 1.0, 9))
        drawn = float(rng.choice(rests)) if len(rests) else 0.0
        if len(rests) > 1 and rng.random() < RANDOM_FRACTIONS:
            drawn = float(rng.random())
        return max(drawn, SMALL_FRACTION)

    def _add_rows(self, sets: Bools, point: Floats) -> int:
        instance, states = self.instance, self.states
        crossing = self.network.crosses(sets)
        demand_crossing = self.network.demand_crosses(sets)
        demand = (demand_crossing * self.rates(point)) @ states.required.T
        capacity = instance.capacity(point[: instance.modules])
        across = (crossing * capacity) @ states.up.T.astype(float)
        added = 0
        self._sets.update(dict.fromkeys(row.tobytes() for row in sets))
        for links, demands, needed, have in zip(crossing, demand_crossing, demand, across, strict=True):
            shortage = needed - have
            failing = np.flatnonzero((~states.up & links).any(axis=1))
            order = np.argsort(-shortage, kind="stable")[:2]
            hit = failing[np.argsort(-shortage[failing], kind="stable")[:3]]
            for state in dict.fromkeys([*order.tolist(), *hit.tolist()]):
                added += self.add_state_row(links, demands, int(state), point)
            if len(failing) > 1 and self.master.budget is None:
                added += self._add_combined_row(links, demands, failing, point)
        return added

    def tight_sets(self, point: Floats) -> Bools:
        """Return stored node sets with no more modules than needed at a point, (U, nodes)."""
        sets = np.array([np.frombuffer(key, dtype=bool) for key in self._sets]).reshape(
            -1, self.network.nodes
        )
        capacity = self.instance.capacity(point[: self.instance.modules])
        have = self.network.crosses(sets) @ (capacity - self.instance.installed)
        need = self.network.demand_crosses(sets) @ self.instance.rate
        need -= self.network.crosses(sets) @ self.instance.installed
        size = float(self.sizes.min(initial=np.inf))
        tight: Bools = sets[(need > 0) & (have <= size * np.ceil(need / size - 1e-7) + TIGHT * size)]
        return tight

    def _base_row(self, links: Bools, demands: Bools, state: int) -> tuple[Floats, float]:
        instance, states = self.instance, self.states
        usable = (links & states.up[state]).astype(float)
        needed = instance.rate * states.required[state]
        limit = float(needed[demands].sum() - usable @ instance.installed)
        return instance.module_size * usable[instance.module_edge], limit

    def add_state_row(self, links: Bools, demands: Bools, state: int, point: Floats) -> bool:
        """Add the row of links (E,) that demands (D,) must cross in a state; return whether it is new."""
        master = self.master
        row = np.zeros(master.pooled)
        if master.budget is not None:
            usable = links & self.states.up[state]
            row[: master.modules] = self.instance.module_size * usable[self.instance.module_edge]
            row[master.delivered] = -(demands * self.states.required[state])
            unit = float(self.instance.module_size.max(initial=1.0))
            return master.add_row(row / unit, -float(self.instance.installed[usable].sum()) / unit)
        coefficients, limit = self._base_row(links, demands, state)
        if limit <= 1e-9:
            return False
        row[: master.modules], rounded = round_row(coefficients, limit, point[: master.modules])
        added = master.add_row(row, rounded)
        setups = self._opened[np.flatnonzero(links & self.states.up[state])]
        if len(setups) and (setups >= 0).all():
            opening = np.zeros(master.pooled)
            opening[setups] = 1.0
            master.add_row(opening, 1.0)
        return added

    def _add_combined_row(
        self, links: Bools, demands: Bools, failing: NDArray[np.int64], point: Floats
    ) -> bool:
        """Add the rounded sum of one set's rounded rows over the failures that hit it."""
        master = self.master
        worst, limit = self._base_row(links, demands, int(failing[0]))
        sizes = np.unique(worst[worst > 0])
        if not len(sizes):
            return False
        best, best_row = 1e-6, None
        for size in (sizes[0], sizes[-1]) if len(sizes) > 1 else sizes:
            total, total_limit = np.zeros(master.modules), 0.0
            for state in failing.tolist():
                coefficients, limit = self._base_row(links, demands, state)
                if limit > 1e-9:
                    coefficients, limit = round_with(coefficients, limit, float(size))
                    total, total_limit = total + coefficients, total_limit + limit
            if total_limit <= 0.0:
                continue
            coefficients, limit = round_row(total, total_limit, point[: master.modules])
            violation = limit - float(coefficients @ point[: master.modules])
            if violation > best:
                best, best_row = violation, (coefficients, limit)
        if best_row is None:
            return False
        row = np.zeros(master.pooled)
        row[: master.modules] = best_row[0]
        return master.add_row(row, best_row[1])


def _starts(capacity: Floats, count: int, rng: np.random.Generator) -> Bools:
    """Return random connected node sets that grow along links with much capacity, (count, nodes)."""
    nodes = len(capacity)
    weight = capacity + capacity.T + 1e-3 * ((capacity + capacity.T) > 0) + 1e-9
    sets = np.zeros((count, nodes), dtype=bool)
    for row in sets:
        size = int(rng.integers(1, max(2, nodes // 2 + 1)))
        first = int(rng.integers(nodes))
        row[first] = True
        pull = weight[first].copy()
        for _ in range(size - 1):
            draw = np.where(row, -1.0, pull * rng.random(nodes))
            node = int(draw.argmax())
            row[node] = True
            pull += weight[node]
    return sets


def _search(
    capacity: Floats, demand: Floats, starts: Bools, rng: np.random.Generator, fraction: float
) -> dict[bytes, float]:
    """Return node sets with their violation: whole modules that demand needs, less capacity across.

    capacity, demand  (G, nodes, nodes) in modules, for each of G states
    fraction          of a module from which what is needed counts as a whole one; less counts in proportion
    starts            (G, B, nodes)
    """
    sets = starts.astype(float)
    states, batch, nodes = sets.shape
    capacity_back, demand_back = np.swapaxes(capacity, -1, -2), np.swapaxes(demand, -1, -2)
    tabu = np.zeros(sets.shape, dtype=np.int64)
    positions = np.indices((states, batch))
    violation_of: dict[bytes, float] = {}

    def modules(needed: Floats) -> Floats:
        needed = np.maximum(needed, 0.0)
        rounded_up = np.ceil(needed - 1e-7)
        rounded: Floats = rounded_up - np.maximum(0.0, 1.0 - (needed - rounded_up + 1.0) / fraction)
        return rounded if fraction < 1.0 else needed

    for step in range(min(STEPS, 4 * nodes)):
        outside = 1.0 - sets
        leaving, entering = outside @ capacity_back, sets @ capacity
        demand_leaving, demand_entering = outside @ demand_back, sets @ demand
        across, needed = (sets * leaving).sum(axis=-1), (sets * demand_leaving).sum(axis=-1)
        violation = modules(needed) - across
        for state, item in np.argwhere(violation > MIN_VIOLATION):
            key = (sets[state, item] > 0).tobytes()
            violation_of[key] = max(violation_of.get(key, 0.0), float(violation[state, item]))
        sign = np.where(sets > 0, -1.0, 1.0)
        next_across = across[..., None] + sign * (leaving - entering)
        next_needed = needed[..., None] + sign * (demand_leaving - demand_entering)
        gain = modules(next_needed) - next_across
        size = sets.sum(axis=-1)[..., None] + sign
        gain[(size < 1) | (size > nodes - 1) | (tabu > step)] = -np.inf
        node = gain.argmax(axis=-1)
        tabu[positions[0], positions[1], node] = step + rng.integers(3, 9, node.shape)
        sets[positions[0], positions[1], node] = 1.0 - sets[positions[0], positions[1], node]
    return violation_of


def round_row(coefficients: Floats, limit: float, point: Floats) -> tuple[Floats, float]:
    """Return the row `a x >= b` that rounding with the best divisor gives at a point, a (n,) and b.

    Where no rounded row is violated more, it is the row itself, scaled: with modules of several sizes a whole
    point may violate a row and none of its rounded ones.

    coefficients  (n,) at least 0
    limit         right-hand side, greater than 0
    point         (n,) at which the rounded row should be violated most
    """
    divisors = np.unique(np.round(coefficients[coefficients > 1e-9], 9))
    if len(divisors) > MAX_DIVISORS:
        divisors = divisors[np.linspace(0, len(divisors) - 1, MAX_DIVISORS).astype(int)]
    smallest = float(coefficients[coefficients > 1e-9].min(initial=np.inf))
    scale = max(min(float(coefficients.max(initial=0.0)), MAX_RATIO * smallest), 1e-12)
    best_row = coefficients / scale, limit / scale
    best = (limit - float(coefficients @ point)) / max(float(np.linalg.norm(coefficients)), 1e-12)
    for first, divisor in enumerate(divisors):
        row, rhs = round_with(coefficients, limit, float(divisor))
        for larger in divisors[first:]:  # rounding again gives the hull where sizes divide each other
            if larger > divisor:
                row, rhs = round_with(row, rhs, float(larger / divisor))
            violation = (rhs - float(row @ point)) / max(float(np.linalg.norm(row)), 1e-12)
            if violation > best + 1e-9:
                best, best_row = violation, (row, rhs)
    return best_row


def round_down(sizes: Floats, fraction: float) -> Floats:
    """Return the coefficients of sizes in a rounded row with a fractional right-hand side."""
    rounded = np.floor(sizes + TOLERANCE)
    remainder: Floats = np.maximum(0.0, sizes - rounded)
    return rounded + np.minimum(1.0, remainder / fraction)


def round_with(coefficients: Floats, limit: float, divisor: float) -> tuple[Floats, float]:
    """Return the row `a x >= b` after rounding `coefficients x / divisor >= limit / divisor`; x whole."""
    scaled, rhs = coefficients / divisor, limit / divisor
    ceiling = float(np.ceil(rhs - TOLERANCE * max(1.0, rhs)))
    fraction = rhs - (ceiling - 1.0)
    if fraction >= 1.0 - TOLERANCE:  # the limit is whole: only what exceeds it can shrink
        return np.minimum(scaled, ceiling), ceiling
    return np.minimum(round_down(scaled, fraction), ceiling), ceiling
