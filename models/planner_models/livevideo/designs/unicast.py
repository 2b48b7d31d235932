"""Trees and viewers where the last hop is unicast: a bound from dual prices, and trees by a local search.

Each viewer takes a stream of its own over the link into its group, so that a group may be served in part, and
by several edges. At prices of the links objects are independent, and all viewers of a request take its
cheapest edge: the best tree of an object is found as with multicast, where a request pays for as many streams
as it has clients (`ViewerRows`). So Frank-Wolfe gives prices and a bound on every plan.

Trees are built at these prices: objects of the highest value per Mbit/s first, each over the links of its
best tree and over others that pay for themselves, to as many viewers as fit. Ruin and recreate follows:
objects that share links with unserved viewers are removed and inserted again in another order.

source  Dantzig and Wolfe 1960, for the bound; Schrimpf, Schneider, Stamm-Wilbrandt and Dueck, "Record
        breaking optimization results using the ruin and recreate principle" (Journal of Computational
        Physics 2000)
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from planner.arrays import Floats
from planner.contract import progress
from planner.contract.design import Decision
from planner.contract.proof import relative_gap
from planner.errors import InputError
from planner.options import Options
from planner.search.deadline import Deadline
from planner.search.judged import judged
from planner.search.tolerances import IMPROVEMENT, ROUNDING
from planner_models.livevideo.designs import integer_program
from planner_models.livevideo.designs.admission import admit_pinned
from planner_models.livevideo.designs.decomposition import decomposition, layered_problem
from planner_models.livevideo.designs.decomposition.decomposition import GOOD, QUICK, TIGHT, get_ready
from planner_models.livevideo.designs.decomposition.frank_wolfe import FrankWolfe
from planner_models.livevideo.designs.decomposition.layered_problem import CapacityRows, build_layers
from planner_models.livevideo.designs.decomposition.pricing import Effort, Pricer, used_links
from planner_models.livevideo.designs.decomposition.viewer_rows import ViewerRows, split_last_hop
from planner_models.livevideo.plan.metrics import OBJECTIVE, measure
from planner_models.livevideo.plan.plan import PricedDecision, Streams, Trees
from planner_models.livevideo.problem.problem import LiveVideo
from planner_models.livevideo.problem.schema import PINNED, empty_table

PRICE_SHARE: Final = 0.4  # share of the time limit for prices
PASSES: Final = 120  # passes for prices, at most
QUICK_PASSES: Final = 4  # passes before those that find good trees
PASSES_PER_BOUND: Final = 8
STALL_LIMIT: Final = 3  # bounds without MIN_PROGRESS after which no more are computed
MIN_PROGRESS: Final = 2e-4  # improvement of a bound that counts, as a share of it
DAMPING: Final = 0.5  # factor on the growth of prices after a bound without progress
MIN_BOUND_S: Final = 1.0  # time for a bound, at least
SMOOTHING: Final = decomposition.DUAL_SMOOTHING
PRICE_FACTORS: Final = (1.0, 0.9, 0.7, 0.4, 0.0)
"""Shares of the dual prices, in turn, at which objects are inserted to serve the viewers that are left."""

MAX_REMOVED: Final = 8  # objects that a move removes, at most
MAX_STALLS: Final = 3_000  # moves in a row without a gain after which the search ends
MAX_SMALL_STALLS: Final = 100  # the same where the integer program follows
MAX_DRAWS: Final = 64  # requests that are drawn until one has viewers who wait, before all are looked at
CHECKED: Final = 16  # moves between two looks at the gap


def distribute(
    problem: LiveVideo, *, most_moved: int | None = None, options: Options = Options()
) -> Decision[Trees]:
    """Return trees and the viewers of each edge, with a bound on every plan.

    Stops at the gap of `options` (default 0.1%), at the time limit (default 60 s), or where moves no longer
    gain. Small problems are left to the integer program in the end, those of more than four tiers at once.

    raises  InputError for another backend, or for `most_moved`
    source  Mukerjee 2018, Fig. 4.8, with the last hop of `formulation`
    """
    _require_options(most_moved, options)
    if len(problem.tiers) > layered_problem.MAX_TIERS or not len(problem.requests):
        return integer_program.solve(problem, options=options)
    get_ready()  # before the time limit starts
    deadline = Deadline.of(options, default_s=decomposition.TIME_LIMIT_S)
    start = admit_pinned(problem, options)
    if isinstance(start, Decision):
        return start
    prices = Prices(problem, options)
    prices.run(deadline.share(PRICE_SHARE))
    search = TreeSearch(start, prices, np.random.default_rng(options.seed or 0))
    gap = decomposition.GAP if options.gap is None else options.gap
    is_small = integer_program.count_links(problem) <= decomposition.MAX_EXACT_LINKS
    search.run(prices.bound, gap, MAX_SMALL_STALLS if is_small else MAX_STALLS, deadline)
    plan, bound = search.streams.plan(), prices.bound
    if is_small and not _is_close(_value(problem, plan), bound, gap) and not deadline.is_over:
        exact = integer_program.solve(problem, options=deadline.options(replace(options, gap=gap)))
        bound = min(bound, bound if exact.proof.bound is None else exact.proof.bound)
        if exact.plan is not None:
            plan = max(plan, exact.plan, key=lambda trees: _value(problem, trees))
    proof = judged(
        "max",
        _value(problem, plan),
        bound,
        gap=max(gap, ROUNDING),
        metric=OBJECTIVE,
        backend=decomposition.BACKEND,
    )
    return PricedDecision(plan=plan, proof=proof, prices=prices.labels())


def _require_options(most_moved: int | None, options: Options) -> None:
    """Check options that the search cannot follow: raises InputError."""
    if options.backend != "highs":
        raise InputError(f"backend is '{options.backend}': 'vdn' is a solver of its own, leave it out")
    if most_moved is not None:
        raise InputError("most_moved counts trees that reach groups: leave it out where last_hop = unicast")


def _value(problem: LiveVideo, plan: Trees) -> float:
    """Return the objective value of a plan."""
    return measure(problem, plan, None)[OBJECTIVE] or 0.0


def _is_close(objective: float, bound: float, limit: float) -> bool:
    """Return whether the gap of an objective value is at most the limit."""
    progress.report(OBJECTIVE, objective, bound)
    gap = relative_gap(objective, bound)
    return gap is not None and gap <= limit


class Prices:
    """Dual prices of links, the bound that follows on every plan, and the best tree of each object.

    bound  on the value of every plan; pins only restrict plans, so that it holds with them too
    paths  (Q, 3) links of the best trees at the prices of the bound
    """

    def __init__(self, problem: LiveVideo, options: Options) -> None:
        self.problem = replace(problem, pinned=empty_table(PINNED))
        self.layered = build_layers(self.problem)
        self.rows = CapacityRows(self.layered)
        self.split = split_last_hop(self.layered)
        viewer_rows = ViewerRows(self.rows, self.split)
        self.pricer = Pricer(self.split.layered, options.threads or 1)
        self.relaxation = FrankWolfe(self.split.layered, viewer_rows, self.pricer, options.seed or 0)
        self.price = np.zeros(len(self.rows.limit))
        self.bound, self.paths = np.inf, self.relaxation.trees.paths

    def run(self, deadline: Deadline) -> None:
        """Improve prices and bound until the deadline or until the bound makes no progress."""
        start = self._last_hop_prices()
        self._compute_bound(start, deadline, GOOD)
        self.relaxation.warm_start(self.paths, start)
        stalls, smoothed = 0, start
        for number in range(PASSES):
            self.relaxation.run_pass(QUICK if number < QUICK_PASSES else GOOD, deadline=deadline)
            smoothed = (1 - SMOOTHING) * smoothed + SMOOTHING * self.relaxation.price
            is_late = deadline.is_over
            if is_late or (number + 1) % PASSES_PER_BOUND == 0:
                before = self.bound
                self._compute_bound(smoothed, deadline)
                if before - self.bound <= MIN_PROGRESS * abs(self.bound):
                    stalls += 1
                    self.relaxation.penalty_scale *= DAMPING  # for smaller changes of prices
            if is_late or stalls == STALL_LIMIT:
                break
        self.pricer.close()

    def _last_hop_prices(self) -> Floats:
        """Return prices of rows, (M,), at which each group fills its links with the streams of most value.

        They are those of a fractional knapsack: the value per Mbit/s of the last request that fits.
        """
        problem, count = self.problem, len(self.problem.clusters)
        capacity = np.bincount(problem.head, problem.capacity_mbps, minlength=count)
        density = problem.value / (problem.bitrate_mbps[problem.object] * problem.clients)
        order = np.lexsort((-density, problem.group))
        group = problem.group[order]
        load = (problem.bitrate_mbps[problem.object] * problem.clients)[order]
        total = np.cumsum(load)
        first = np.flatnonzero(np.diff(group, prepend=-1))
        before = (total - load)[first]
        reached = total - np.repeat(before, np.diff(np.append(first, len(group))))
        price = np.zeros(count)
        is_full = reached > capacity[group] * (1 + ROUNDING)
        full, row = np.unique(group[is_full], return_index=True)
        price[full] = density[order][is_full][row]
        link = self.rows.problem_link[self.rows.link]
        is_last = (link >= 0) & problem.is_last_hop[link] & (self.rows.min_bitrate == 0)
        return np.where(is_last, price[problem.head[link]], 0.0)

    def _compute_bound(self, price: Floats, deadline: Deadline, effort: Effort = TIGHT) -> None:
        """Compute the bound at these prices of rows; keep them if it is the best so far."""
        relaxation = self.relaxation
        trees = relaxation.trees
        priced = self.pricer.price_all(
            relaxation.rows.link_prices(price),
            trees.dual.copy(),
            effort,
            trees.paths,
            deadline.beyond(MIN_BOUND_S),
        )
        total = float(priced.bound.sum() + price @ self.rows.limit)
        total += decomposition.BOUND_ROUNDING * total
        if total < self.bound:
            self.bound, self.price, self.paths = total, price.copy(), priced.paths.copy()

    def labels(self) -> dict[tuple[str, float], float]:
        """Return the prices of links at the best bound, as in `PricedDecision`."""
        return self.rows.to_labels(self.price)

    def per_mbps(self, factor: float) -> Floats:
        """Return cost and that share of the price of each link above it, per Mbit/s of each class, (K, L)."""
        layered = self.layered
        price = np.tile(self.problem.cost_weight * self.problem.cost, (len(layered.class_rate), 1))
        real = np.concatenate([layer.link for layer in layered.layers])
        above = self.rows.arrays
        dual = np.zeros((len(layered.class_rate), self.rows.link_count))
        for row in np.flatnonzero(self.price).tolist():
            dual[:, above.link[row]] += self.price[row] * above.usage[:, row]
        is_real = real >= 0
        price[:, real[is_real]] += factor * (dual / layered.class_rate[:, None])[:, is_real]
        return price

    def trees(self) -> list[list[int]]:
        """Return the links between clusters of the best tree of each object, upper tiers first."""
        n_a, n_b, _ = self.split.layered.sizes
        item, link = used_links(self.split.layered, self.paths)
        inner = link < n_a + n_b
        real = np.concatenate([self.layered.a.link, self.layered.b.link])[link[inner]]
        trees: list[list[int]] = [[] for _ in range(len(self.problem.objects))]
        for o, used in zip(item[inner][real >= 0].tolist(), real[real >= 0].tolist(), strict=True):
            trees[o].append(used)
        return trees


class Saved(NamedTuple):
    """Streams of an object that were removed: links and clients, upper tiers first, and their value."""

    item: int
    streams: list[tuple[int, float]]
    value: float


class TreeSearch:
    """Streams that fit, and the moves that change them. Streams that are there at the start stay.

    links      links that each object uses beside these, upper tiers first
    users      objects that use each link
    """

    def __init__(self, streams: Streams, prices: Prices, random: np.random.Generator) -> None:
        self.streams, self.random = streams, random
        problem = streams.problem
        self.problem = problem
        self.client_value: list[float] = (problem.service_weight * problem.priority).tolist()
        self.cost: list[float] = (problem.cost_weight * problem.cost).tolist()
        object_class = prices.layered.objects.object_class
        self.object_class: list[int] = object_class.tolist()
        self.price: list[list[list[float]]] = [prices.per_mbps(factor).tolist() for factor in PRICE_FACTORS]
        self.trees = prices.trees()
        self.groups: list[list[int]] = [[] for _ in range(len(problem.objects))]
        for item, group in zip(problem.object.tolist(), problem.group.tolist(), strict=True):
            self.groups[item].append(group)
        self.requests = list(streams.waiting)
        self.links: list[list[int]] = [[] for _ in self.groups]
        self.users: list[set[int]] = [set() for _ in streams.tail]
        requested = np.unique(problem.object)
        demand = np.bincount(problem.object, problem.clients, minlength=len(problem.objects))
        density = problem.service_weight * problem.priority / problem.bitrate_mbps
        order = np.lexsort((-demand[requested], -density[requested]))
        self.order: list[int] = requested[order].tolist()
        self.density: list[float] = density.tolist()

    def run(self, bound: float, gap: float, max_stalls: int, deadline: Deadline) -> None:
        """Insert all objects, then make moves until the gap, the deadline, or so many gain nothing."""
        value = _value(self.problem, self.streams.plan())
        number = 0
        while number < len(PRICE_FACTORS):
            if deadline.is_over:  # the last share serves whom it can, so that there is a plan
                number = len(PRICE_FACTORS) - 1
            for item in self.order:
                before = self.value(item)
                self.insert(item, number)
                value += self.value(item) - before
            number += 1
        stalls = 0
        smallest_gain = IMPROVEMENT * abs(bound)
        while stalls < max_stalls and not deadline.is_over:
            if stalls % CHECKED == 0 and _is_close(value, bound, gap):
                return
            gain = self.move()
            if gain is None:  # nobody waits
                return
            value += gain
            stalls = 0 if gain > smallest_gain else stalls + 1

    def value(self, item: int) -> float:
        """Return the value of the clients that the links of an object serve, less the cost of the streams."""
        streams, rate = self.streams, self.streams.bitrate[item]
        total = 0.0
        for link in self.links[item]:
            if streams.is_unicast_link[link]:
                total += streams.viewers[item, link] * (self.client_value[item] - rate * self.cost[link])
            else:
                total -= rate * self.cost[link]
        return total

    def insert(self, item: int, number: int) -> None:
        """Serve viewers that wait for an object where that pays at the prices of PRICE_FACTORS[number]."""
        streams = self.streams
        groups = [group for group in self.groups[item] if streams.waiting[item, group] > 0]
        if not groups:
            return
        price = self.price[number][self.object_class[item]]
        self._open_tree(item)
        for group in groups:
            while self._serve(item, group, price):
                pass
        self._close_branches(item)

    def _open_tree(self, item: int) -> None:
        """Send an object down its best tree, as far as it fits."""
        streams = self.streams
        for link in sorted(self.trees[item], key=lambda link: streams.level[streams.tail[link]]):
            tail = streams.tail[link]
            is_new = not streams.has(item, streams.head[link])
            if is_new and streams.has(item, tail) and streams.can_carry(item, link):
                self._add(item, link)

    def _add(self, item: int, link: int, clients: float | None = None) -> None:
        if link not in self.links[item]:
            self.links[item].append(link)
            self.users[link].add(item)
        self.streams.add(item, link, clients)

    def _remove(self, item: int, link: int) -> None:
        self.links[item].remove(link)
        self.users[link].discard(item)
        self.streams.remove(item, link)

    def _serve(self, item: int, group: int, price: list[float]) -> bool:
        """Serve waiting clients of a group over the link into it that gains most; return whether one does."""
        streams, rate = self.streams, self.streams.bitrate[item]
        best, best_path = 0.0, None
        for link in streams.into[group]:
            if not streams.can_carry(item, link):
                continue
            clients = streams.count_fitting(item, link)
            gain = clients * (self.client_value[item] - rate * price[link])
            if gain <= best:
                continue
            path = streams.cheapest_path(item, streams.tail[link], price, gain - best)
            if path is not None:
                best, best_path = gain - rate * sum(price[upper] for upper in path), [*path, link]
        if best_path is None or best <= ROUNDING * self.client_value[item]:
            return False
        for link in best_path:
            self._add(item, link)
        return True

    def _close_branches(self, item: int) -> None:
        """Take down links of an object that serve nobody, and all where they cost more than they serve."""
        streams = self.streams
        feeding = {streams.tail[link] for link in self.links[item]}
        for link in sorted(self.links[item], key=lambda link: -streams.level[streams.tail[link]]):
            if not streams.is_unicast_link[link] and streams.head[link] not in feeding:
                self._remove(item, link)
                feeding = {streams.tail[other] for other in self.links[item]}
        if self.value(item) < 0:
            self.remove(item)

    def remove(self, item: int) -> Saved:
        """Remove the streams of an object, except for those at the start."""
        streams = self.streams
        links = sorted(self.links[item], key=lambda link: streams.level[streams.tail[link]])
        saved = Saved(
            item, [(link, streams.viewers.get((item, link), 1.0)) for link in links], self.value(item)
        )
        for link in links:
            self._remove(item, link)
        return saved

    def move(self) -> float | None:
        """Remove objects that share links with viewers who wait, and insert them again; return the gain.

        A move that loses is undone. None where no viewer waits.
        """
        random = self.random
        waiting = self._draw_waiting()
        if waiting is None:
            return None
        item, group = waiting
        removed = [item, *self._draw_rivals(item, group)]
        saved = [self.remove(other) for other in removed]
        number = int(random.random() * len(PRICE_FACTORS))
        keys = {other: -self.density[other] * (0.5 + random.random()) for other in removed}
        for other in sorted(removed, key=keys.__getitem__):
            self.insert(other, number)
        gain = sum(self.value(other) for other in removed) - sum(tree.value for tree in saved)
        if gain >= 0:
            return gain
        for other in removed:
            self.remove(other)
        for tree in saved:
            self._restore(tree)
        return 0.0

    def _draw_waiting(self) -> tuple[int, int] | None:
        """Draw an object and a group with viewers who wait; None where nobody waits."""
        waiting, random = self.streams.waiting, self.random
        for _ in range(MAX_DRAWS):
            key = self.requests[int(random.random() * len(self.requests))]
            if waiting[key] > 0:
                return key
        keys = [key for key in self.requests if waiting[key] > 0]
        return keys[int(random.random() * len(keys))] if keys else None

    def _draw_rivals(self, item: int, group: int) -> list[int]:
        """Draw other objects that use the links into a group, or into an edge above it."""
        streams = self.streams
        last = streams.into[group]
        links = {*last, *(upper for link in last for upper in streams.into[streams.tail[link]])}
        rivals = sorted({other for link in links for other in self.users[link]} - {item})
        count = min(len(rivals), 1 + int(self.random.random() * MAX_REMOVED))
        return [rivals[index] for index in self.random.permutation(len(rivals))[:count].tolist()]

    def _restore(self, tree: Saved) -> None:
        """Add the streams of an object that were removed."""
        for link, clients in tree.streams:
            self._add(tree.item, link, clients)
