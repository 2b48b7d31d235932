"""Ruin and recreate: trees of objects that share a full link are removed, and inserted in another order.

It alternates with ejection chains in a local search over trees that fit together.

source  Schrimpf, Schneider, Stamm-Wilbrandt and Dueck, "Record breaking optimization results using the
        ruin and recreate principle" (Journal of Computational Physics 2000)
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from planner.arrays import Floats, Ints
from planner.search.deadline import NEVER, Deadline
from planner_models.livevideo.designs.decomposition.ejection_chains import (
    LagrangianSolution,
    Lists,
    TreeState,
    call_for_none,
    clear_tree,
    insert_objects,
    object_value,
    occupy,
    occupy_all,
    remove_tree,
    run_ejection_chains,
    sort_by_key,
    undo_move,
)
from planner_models.livevideo.designs.decomposition.layered_problem import LayeredProblem, links_to
from planner_models.livevideo.designs.decomposition.pricing import UNLIMITED, Pricer, used_links
from planner_models.livevideo.designs.tree.local_network import PerLayer, allocating_kernel

PRICE_FACTORS: Final = (1.0, 0.9, 0.8, 0.6, 0.9, 0.3)
"""Shares of the dual prices, in turn, at which removed objects are inserted again."""

COMPLETION_FACTORS: Final = (1.0, 0.9, 0.5, 0.0)
"""Shares of the dual prices, in turn, at which objects are inserted that lack some requests."""

CHAIN_ROUNDS: Final = 0.3  # rounds of ejection chains that take as long as one of ruin and recreate
LIST_ROUNDS: Final = 4_000  # rounds after which the lists of objects by link are computed anew
CHUNK_ROUNDS: Final = 500  # rounds between two checks of the time limit
DRAWN_SEEDS: Final = 4_000  # seeds of ejection chains that are drawn at a time, by reduced cost
FULL_SHARE: Final = 0.1  # share of its capacity below which a link's residual capacity makes it full
MAX_REQUESTS: Final = 64  # requests of an object that moves may remove, at most
SAVED_OBJECTS: Final = 64  # objects of any number of requests whose trees a move can save


@allocating_kernel
def run_ruin_recreate(  # noqa: C901
    rounds: int,
    random: Any,
    max_removed: int,
    temperature: float,
    full_links: Lists,
    users: Lists,
    waiting: Lists,
    price: PerLayer,
    state: TreeState,
) -> float:
    """Make ruin and recreate moves on objects that share a full link; return the gain.

    max_removed  objects that use the link, and others that lack requests behind it, removed at most
    temperature  scale of the losses that are accepted, as in simulated annealing
    full_links   by layer, links numbered through layers a, b and c
    users        objects that use each link
    waiting      objects that lack requests and could use each link; one list for all links of layer a
    price        (K, n) at which objects are inserted

    The lists may be out of date. Most rounds insert the objects of the highest value per Mbit/s first,
    others those of the highest bitrate.
    """
    total = 0.0
    objects, network = state.objects, state.network
    removed = np.zeros(2 * max_removed, dtype=np.int64)
    keys = np.zeros(2 * max_removed)
    order = np.zeros(2 * max_removed, dtype=np.int64)
    n_a = len(state.residual.a)
    for _ in range(rounds):
        count = 0
        layer = max(0, int(random.random() * 12) - 9)
        size = full_links.first[layer + 1] - full_links.first[layer]
        if size == 0:
            continue
        link = full_links.number[full_links.first[layer] + int(random.random() * size)]
        end = link + 1
        if layer == 0:  # all links to that reflector
            r = network.a_head[link]
            link, end = network.a_first[r], network.a_first[r + 1]
        for kind in range(2):
            if kind == 0:
                start, size = users.first[link], users.first[end] - users.first[link]
            elif layer == 0:
                start, size = 0, waiting.first[n_a]
            else:
                start, size = waiting.first[link], waiting.first[link + 1] - waiting.first[link]
            if size == 0:
                continue
            for _ in range(1 + int(random.random() * max_removed)):
                position = start + int(random.random() * size)
                o = users.number[position] if kind == 0 else waiting.number[position]
                if state.marked[o] == 0:
                    state.marked[o] = 1
                    removed[count] = o
                    count += 1
        by_bitrate = random.random() < 0.2
        is_cleared = random.random() < 0.8
        before, row = 0.0, 0
        for n in range(count):
            o = removed[n]
            state.marked[o] = 0
            before += object_value(o, state)
            row = remove_tree(o, state, row)
            if is_cleared:
                clear_tree(o, state)
            priority = objects.bitrate[o] if by_bitrate else objects.value_per_mbps[o]
            keys[n] = -priority * (0.5 + random.random())
        after = 0.0
        sort_by_key(keys, count, order)
        for n in range(count):
            o = removed[order[n]]
            call_for_none(state.inserter, (o, price, state))
            occupy(o, state)
            after += object_value(o, state)
        if after >= before - temperature * -np.log(max(random.random(), 1e-12)):
            total += after - before
            continue
        undo_move(removed[:count], state)
    return total


class FeasibleTrees:
    """Trees of all objects that fit the links together, the best ones so far, and the moves between them.

    state       paths of the requests, and residual capacities beside the trees
    value       value of the trees less their cost, pin bonus included
    best_paths  (Q, 3) paths of the best trees so far
    best_value  their value
    movable     (O,) whether moves may remove an object's tree
    """

    def __init__(self, layered: LayeredProblem, pricer: Pricer, seed: int) -> None:
        self.layered, self.capacity = layered, pricer.capacity
        requests = layered.request_count
        self.state = TreeState(
            objects=layered.objects,
            network=layered.network,
            net=pricer.create_workspace(),
            paths=np.full((len(layered.objects.group), 3), -1, dtype=np.int64),
            dual=np.full(len(layered.objects.group), -1.0),
            residual=self._copy_capacity(),
            saved=np.zeros((int(requests.max(initial=1)) * SAVED_OBJECTS, 3), dtype=np.int64),
            marked=np.zeros(len(requests), dtype=np.int64),
        ).with_inserter()
        self.random = np.random.default_rng(seed)
        self.is_free = np.ones(len(requests), dtype=bool)
        self.movable = requests <= MAX_REQUESTS
        self.value = 0.0
        self.best_value, self.best_paths = 0.0, self.state.paths
        self.step = 0

    def _copy_capacity(self) -> PerLayer:
        return PerLayer(*(capacity.copy() for capacity in self.capacity))

    def set_dual(self, dual: Floats) -> None:
        """Set the multipliers (Q,) to start from in the pricing of objects."""
        self.state = self.state._replace(dual=dual.copy())

    def scale_prices(self, prices: PerLayer, factor: float) -> PerLayer:
        """Return costs and that share of the prices above them, (K, n); infinite prices stay infinite."""
        scaled = []
        for price, cost in zip(prices, self.layered.network.cost, strict=True):
            base = np.outer(self.layered.class_rate, cost)
            finite = np.where(np.isinf(price), 0, price)
            scaled.append(np.where(np.isinf(price), np.inf, base + factor * (finite - base)))
        return PerLayer(*scaled)

    def objective(self) -> float:
        """Return the value of the best trees, less the bonus of all pins."""
        return self.best_value - self.layered.pin_bonus * self.layered.pinned_count

    def served_pins(self) -> int:
        """Return the number of pinned requests that the best trees serve."""
        if not self.layered.pinned_count:
            return 0
        is_pinned = self.layered.objects.value >= self.layered.pin_bonus
        return int((is_pinned & (self.best_paths[:, 2] >= 0)).sum())

    def improve(
        self, solution: LagrangianSolution, rounds: int, temperature: float, deadline: Deadline = NEVER
    ) -> None:
        """Run ruin and recreate and ejection chains in turn, for about so many rounds.

        Inserts at the prices of the solution, now and then below them to use residual capacity. Ends at
        the deadline.
        """
        while rounds > 0 and not deadline.is_over:
            count = min(rounds, LIST_ROUNDS)
            rounds -= count
            self.step += 1
            factor = PRICE_FACTORS[self.step // 2 % len(PRICE_FACTORS)]
            if self.step % 2 == 0:
                max_removed = 4 + self.step % 9
                self.value += self.ruin_recreate(
                    solution.prices, count, max_removed, factor, temperature, deadline
                )
            else:
                self.value += self.eject(solution, int(count * CHAIN_ROUNDS), factor, deadline)
            if self.value > self.best_value:
                self.record_best()

    def record_best(self) -> None:
        """Record the trees as the best so far."""
        self.best_value = self.value
        self.best_paths = self.state.paths.copy()

    def return_to_best(self) -> None:
        """Return to the best trees."""
        if self.value < self.best_value:
            self.adopt(self.best_paths)

    def adopt(self, paths: Ints) -> None:
        """Replace all trees by those of the paths (Q, 3), which fit."""
        self.state = self.state._replace(paths=paths.copy(), residual=self._copy_capacity())
        self.value = occupy_all(self.state)
        if self.value > self.best_value:
            self.record_best()

    def order_by_value(self, value: Floats) -> Ints:
        """Return all objects, the highest value (O,) per Mbit/s first."""
        return np.argsort(-value / self.layered.objects.bitrate, kind="stable").astype(np.int64)

    def rebuild(self, paths: Ints, prices: PerLayer, dual: Floats, value: Floats) -> None:
        """Insert all objects anew, the highest value per Mbit/s first; trees of `paths` stay where they fit.

        Objects that are not free, and have no tree in `paths`, get none.
        """
        layered = self.layered
        self.state = self.state._replace(paths=paths.copy(), residual=self._copy_capacity())
        self.set_dual(dual)
        order = self.order_by_value(value)
        if not self.is_free.all():
            has_tree = np.zeros(len(self.is_free), dtype=bool)
            has_tree[layered.request_object[paths[:, 2] >= 0]] = True
            order = order[(self.is_free | has_tree)[order]]
        price = self.scale_prices(prices, 1.0)
        insert_objects(order, price, True, self.state)
        self.complete(prices, order, COMPLETION_FACTORS[1:])
        self.adopt(self.state.paths)

    def freeze(self, objects: Ints) -> None:
        """Keep the trees of these objects as they are from now on."""
        self.is_free[objects] = False
        self.movable &= self.is_free

    def complete(
        self,
        prices: PerLayer,
        order: Ints,
        factors: tuple[float, ...] = COMPLETION_FACTORS,
        deadline: Deadline = NEVER,
    ) -> None:
        """Insert objects that lack some requests anew, at each share of the prices; ends at the deadline."""
        order = order[self.is_free[order]]
        for factor in factors:
            price = self.scale_prices(prices, factor)
            self.value += insert_objects(order, price, False, self.state)
            if deadline.is_over:
                break

    def ruin_recreate(
        self,
        prices: PerLayer,
        rounds: int,
        max_removed: int,
        factor: float,
        temperature: float,
        deadline: Deadline = NEVER,
    ) -> float:
        """Make ruin and recreate moves at that share of the prices; return the gain."""
        lists = self._full_links(), self._users(), self._waiting()
        price = self.scale_prices(prices, factor)
        return self._make_moves(run_ruin_recreate, rounds, deadline, max_removed, temperature, *lists, price)

    def eject(
        self, solution: LagrangianSolution, rounds: int, factor: float, deadline: Deadline = NEVER
    ) -> float:
        """Make ejection chain moves at that share of the solution's prices; return the gain."""
        reduced_cost = solution.reduced_costs(self.layered, self.state.paths)
        negligible = solution.negligible_reduced_cost()
        seeds = np.flatnonzero((reduced_cost > negligible) & self.movable)
        if not len(seeds):
            return 0.0
        share = reduced_cost[seeds] / reduced_cost[seeds].sum()
        drawn = (self.random.choice(seeds, DRAWN_SEEDS, p=share), negligible)
        price = self.scale_prices(solution.prices, factor)
        return self._make_moves(run_ejection_chains, rounds, deadline, *drawn, solution, self._users(), price)

    def _make_moves(self, kernel: Any, rounds: int, deadline: Deadline, *arguments: Any) -> float:
        """Make moves in chunks, as long as there is time; return the gain."""
        gain = 0.0
        while rounds > 0 and not deadline.is_over:
            gain += kernel(min(rounds, CHUNK_ROUNDS), self.random, *arguments, self.state)
            rounds -= CHUNK_ROUNDS
        return gain

    def _full_links(self) -> Lists:
        """Return the full links of each layer, numbered through layers a, b and c."""
        parts, offset = [], 0
        for residual, capacity in zip(self.state.residual, self.capacity, strict=True):
            is_full = (residual < FULL_SHARE * capacity) & (capacity < 0.1 * UNLIMITED)
            parts.append(offset + np.flatnonzero(is_full))
            offset += len(capacity)
        first = np.cumsum([0, *(len(numbers) for numbers in parts)])
        return Lists(np.concatenate(parts).astype(np.int64), first.astype(np.int64))

    def _users(self) -> Lists:
        """Return the movable objects that use each link."""
        objects, link = used_links(self.layered, self.state.paths)
        is_movable = self.movable[objects]
        objects, link = objects[is_movable], link[is_movable]
        order = np.argsort(link, kind="stable")
        first = np.searchsorted(link[order], np.arange(sum(self.layered.sizes) + 1))
        return Lists(objects[order].astype(np.int64), first.astype(np.int64))

    def _waiting(self) -> Lists:
        """Return the movable objects that lack requests and could use each link; one list for layer a."""
        layered = self.layered
        n_a, n_b, n_c = layered.sizes
        count = len(layered.objects.bitrate)
        unserved = np.flatnonzero((self.state.paths[:, 2] < 0) & self.movable[layered.request_object])
        c, repeats = links_to(layered.c.first, layered.objects.group[unserved])
        c_object = np.repeat(layered.request_object[unserved], repeats)
        at_edge = np.unique(layered.c.tail[c] * count + c_object)
        b, repeats = links_to(layered.b.first, at_edge // count)
        b_object = np.repeat(at_edge % count, repeats)
        a_object = np.unique(c_object)
        number = np.concatenate(
            [a_object, b_object[np.argsort(b, kind="stable")], c_object[np.argsort(c, kind="stable")]]
        )
        sizes = np.concatenate([np.bincount(b, minlength=n_b), np.bincount(c, minlength=n_c)])
        first = np.zeros(n_a + n_b + n_c + 1, dtype=np.int64)
        first[n_a:] = len(a_object) + np.concatenate([[0], np.cumsum(sizes)])
        return Lists(number.astype(np.int64), first)
