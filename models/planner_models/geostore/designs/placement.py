"""Branch and bound on the replicas of one component, with Lagrangian bounds and used multipliers."""

from __future__ import annotations

import heapq
import itertools
from dataclasses import dataclass
from typing import Final

import numpy as np

from planner.arrays import Bools, Floats, Ints
from planner.search.deadline import NEVER, Deadline
from planner_models.geostore.designs.component import Component
from planner_models.geostore.designs.dual_ascent import ascend_dual
from planner_models.geostore.designs.local_search import improve, placement_cost
from planner_models.geostore.designs.relaxation import (
    Arrays,
    Multipliers,
    ascend,
    open_cheapest,
    reduced_costs,
)

ROOT_ITERATIONS: Final = (40, 60, 100, 100)
"""Iterations of the ascents at the root, between which replicas are fixed and the incumbent is improved."""
NODE_ITERATIONS: Final = 40
MAX_PASSES: Final = 200
MAX_NODES: Final = 2_000


@dataclass(frozen=True, kw_only=True, eq=False)
class Placement:
    """Replicas of a component, their cost, and a bound on the cost of all placements.

    opened  (G, N) where replicas are; None where no placement keeps all constraints
    cost    USD a month; inf without a placement
    bound   no placement costs less; inf where it is proven that there is none
    """

    opened: Bools | None
    cost: float
    bound: float
    nodes: int = 0
    is_cut: bool = False


def solve_component(
    component: Component,
    *,
    gap: float,
    start: Bools | None = None,
    max_nodes: int = MAX_NODES,
    deadline: Deadline = NEVER,
) -> Placement:
    """Return the placement of least cost within a relative gap.

    start      (G, N) replicas to start from; default: none
    max_nodes  of the tree; beyond, the bound is the smallest of the open nodes
    """
    return _Tree(component, gap, deadline).solve(start, max_nodes)


def arrays_of(component: Component) -> Arrays:
    """Return a component as arrays of the kernels."""
    allowed = np.isfinite(component.attachment)
    cheapest = np.zeros((*component.uses.shape, component.opening.shape[1]))
    for i, entries in enumerate(allowed):
        if entries.any():
            price = component.price[:, entries].min(axis=1)
            volume = component.volume[:, i, None]
            cheapest[:, i] = np.where(volume > 0, np.maximum(volume, 1e-300) * price, 0.0)
    return Arrays(
        opening=np.ascontiguousarray(component.opening, float),
        attachment=np.ascontiguousarray(component.attachment, float),
        volume=np.ascontiguousarray(component.volume, float),
        uses=np.ascontiguousarray(component.uses),
        price_to=np.ascontiguousarray(component.price.transpose(0, 2, 1)),
        cheapest=cheapest,
        served_by=component.count,
        least=component.least,
        most=component.most,
        cover=np.ascontiguousarray(component.cover),
        cover_group=component.cover_group,
        need=component.need,
        child=component.child,
        parent=component.parent,
    )


class _Tree:
    """Best-first search on replicas that are set or excluded."""

    def __init__(self, component: Component, gap: float, deadline: Deadline) -> None:
        self.data = arrays_of(component)
        self.state = np.ascontiguousarray(component.state)
        self.gap, self.deadline = gap, deadline
        self.shape = component.opening.shape
        self.columns = np.arange(self.shape[1])
        self.opened: Bools = np.zeros(self.shape, dtype=bool)
        self.cost = np.inf

    def solve(self, start: Bools | None, max_nodes: int) -> Placement:
        self._improve(self.state == 1, self.state)
        if start is not None:
            self._improve(np.where(self.state == -1, start, self.state == 1), self.state)
        bound, prices, mean, state = self._solve_root()
        order = itertools.count()
        heap = [(bound, next(order), state, prices, mean)]
        nodes, is_cut = 0, False
        fathomed = np.inf
        while heap:
            bound = heap[0][0]
            if bound >= self._threshold:
                break
            if nodes >= max_nodes or self.deadline.is_over:
                is_cut = True
                break
            _, _, state, prices, mean = heapq.heappop(heap)
            for child in self._branch(state, mean):
                nodes += 1
                value, child_prices, child_mean = self._bound_node(child, prices)
                value = max(value, bound)
                if value < self._threshold:
                    self._round(child, child_mean)
                if value < self._threshold and (child == -1).any():
                    heapq.heappush(heap, (value, next(order), child, child_prices, child_mean))
                else:
                    fathomed = min(fathomed, value)
        lowest = min([fathomed, *(entry[0] for entry in heap[:1])])
        if not np.isfinite(self.cost):
            return Placement(opened=None, cost=np.inf, bound=lowest, nodes=nodes, is_cut=is_cut)
        lowest = min(lowest, self.cost)
        opened = np.zeros(self.shape, dtype=bool)
        opened[:, self.columns] = self.opened
        return Placement(opened=opened, cost=self.cost, bound=lowest, nodes=nodes, is_cut=is_cut)

    def _drop_columns(
        self, state: Ints, prices: Multipliers, mean: Floats
    ) -> tuple[Ints, Multipliers, Floats]:
        """Return state, prices and mean without the regions that no group may be in, nor is in now."""
        used = np.flatnonzero(((state != 0) | self.opened).any(axis=0))
        data = self.data
        if len(used) == state.shape[1]:
            return state, prices, mean
        self.data = data._replace(
            opening=np.ascontiguousarray(data.opening[:, used]),
            attachment=np.ascontiguousarray(data.attachment[:, used]),
            price_to=np.ascontiguousarray(data.price_to[:, used][:, :, used]),
            cheapest=np.ascontiguousarray(data.cheapest[:, :, used]),
            cover=np.ascontiguousarray(data.cover[:, used]),
        )
        self.columns = self.columns[used]
        self.opened = np.ascontiguousarray(self.opened[:, used])
        prices = Multipliers(
            np.ascontiguousarray(prices.attach[:, :, used]),
            np.ascontiguousarray(prices.copies[:, :, used]),
            prices.cover,
            np.ascontiguousarray(prices.close[:, used]),
        )
        return np.ascontiguousarray(state[:, used]), prices, np.ascontiguousarray(mean[:, used])

    @property
    def _threshold(self) -> float:
        """Bound from which a node holds nothing that is better than the incumbent by more than the gap."""
        return self.cost - self.gap * abs(self.cost) if np.isfinite(self.cost) else np.inf

    def _improve(self, start: Bools, state: Ints) -> None:
        opened, violated, cost = improve(
            self.data, state, np.ascontiguousarray(start, dtype=bool), MAX_PASSES
        )
        if violated == 0 and cost < self.cost:
            self.opened, self.cost = opened, cost

    def _round(self, state: Ints, mean: Floats) -> None:
        """Try the replicas that are set or open in most iterations."""
        opened = np.where(state == -1, mean > 0.5, state == 1)
        violated, cost = placement_cost(self.data, opened)
        if violated == 0 and cost < self.cost:
            self._improve(opened, state)

    def _solve_root(self) -> tuple[float, Multipliers, Floats, Ints]:
        """Return bound, prices and mean of the root, and its state after fixing by reduced costs."""
        state, prices = self.state.copy(), self._first_prices()
        best = -np.inf
        mean = np.zeros(state.shape)
        for ascent, iterations in enumerate(ROOT_ITERATIONS):
            upper = self.cost if np.isfinite(self.cost) else self._worst_cost()
            bound, prices, mean = ascend(
                self.data, state, prices, upper, iterations, 0.9 * self.gap * abs(upper)
            )
            best = max(best, bound)
            if best >= self._threshold or self.deadline.is_over:
                break
            self._improve(np.where(state == -1, mean > 0.5, state == 1), state)
            if ascent == 0:
                self._improve(np.where(state == -1, mean > 0.2, state == 1), state)
            state, prices, mean = self._drop_columns(self._fix(state, prices, best), prices, mean)
        return best, prices, mean, state

    def _worst_cost(self) -> float:
        """Return a cost that no placement exceeds: all replicas, and the dearest attachments."""
        finite = np.where(np.isfinite(self.data.attachment), self.data.attachment, 0.0)
        copies = np.where(np.isfinite(self.data.price_to), self.data.price_to, 0.0).max(initial=0.0)
        opening = np.maximum(self.data.opening, 0.0).sum()
        volume = self.data.volume.sum() * self.data.opening.shape[1]
        return float(opening + finite.max(axis=1, initial=0.0).sum() + copies * volume) + 1e-9

    def _first_prices(self) -> Multipliers:
        """Return the first prices: those of the incumbent at its replicas, and the least elsewhere."""
        groups, users = self.data.uses.shape
        regions = self.data.opening.shape[1]
        attach = np.zeros((groups, users, regions))
        copies = np.where(np.isfinite(self.data.cheapest), self.data.cheapest, self._dearest_copy)
        allowed = np.isfinite(self.data.attachment)
        for g in np.flatnonzero(self.opened.any(axis=1)).tolist():
            opened = np.flatnonzero(self.opened[g])
            for i in np.flatnonzero(self.data.uses[g]).tolist():
                inside = opened[allowed[i, opened]]
                if len(inside):
                    entry = inside[np.argmin(self.data.attachment[i, inside])]
                    price = self.data.volume[g, i] * self.data.price_to[g, opened, entry]
                    copies[g, i, opened] = np.where(np.isfinite(price), price, self._dearest_copy)
        prices = Multipliers(
            attach, copies, np.zeros(len(self.data.need)), np.zeros((len(self.data.child), regions))
        )
        if groups == 1 and (self.data.served_by == 1).all():
            ascend_dual(self.data, self.state, prices)
        return prices

    @property
    def _dearest_copy(self) -> float:
        """Cost of the dearest copy that may be, USD a month."""
        price = np.where(np.isfinite(self.data.price_to), self.data.price_to, 0.0).max(initial=0.0)
        return float(price * self.data.volume.max(initial=0.0))

    def _fix(self, state: Ints, prices: Multipliers, bound: float) -> Ints:
        """Return the state with replicas fixed by their reduced costs."""
        if not np.isfinite(self.cost):
            return state
        reduced = reduced_costs(self.data, prices)
        opened, _ = open_cheapest(self.data, state, reduced)
        slack = self._threshold - bound
        fixed = state.copy()
        for g in range(len(state)):
            number = int(opened[g].sum())
            last = float(reduced[g][opened[g]].max(initial=0.0)) if number <= self.data.least[g] else 0.0
            is_free = state[g] == -1
            fixed[g][
                is_free & ~opened[g] & (reduced[g] - max(last, 0.0) > slack) & (number < self.data.most[g])
            ] = 0
            fixed[g][is_free & opened[g] & (-reduced[g] > slack) & (number < self.data.most[g])] = 1
        return fixed

    def _branch(self, state: Ints, mean: Floats) -> list[Ints]:
        """Return the two states of the free replica with the mean nearest to 1/2."""
        score = np.where(state == -1, np.minimum(mean, 1 - mean), -1.0)
        g, j = np.unravel_index(int(score.argmax()), score.shape)
        children = []
        for value in (1, 0):
            child = state.copy()
            child[g, j] = value
            children.append(child)
        return children

    def _bound_node(self, state: Ints, prices: Multipliers) -> tuple[float, Multipliers, Floats]:
        """Return bound, prices and mean of a node; a node without free replicas is its own bound."""
        if not (state == -1).any():
            violated, cost = placement_cost(self.data, state == 1)
            if violated == 0 and cost < self.cost:
                self.opened, self.cost = state == 1, cost
            return (np.inf if violated else cost), prices, (state == 1).astype(float)
        upper = self.cost if np.isfinite(self.cost) else self._worst_cost()
        return ascend(self.data, state, prices, upper, NODE_ITERATIONS, 0.9 * self.gap * abs(upper))
