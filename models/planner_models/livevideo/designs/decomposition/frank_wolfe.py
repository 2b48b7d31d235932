"""Block-coordinate Frank-Wolfe on an augmented Lagrangian: dual prices of rows, fractional trees of objects.

Each object has a convex combination of trees, stored as the share of each link. The price of a row
grows with its load: a multiplier, and a quadratic penalty. A few objects at a time find their best tree
at the current prices, and their combination moves towards it by an exact line search; objects that
follow see the loads that result. So prices converge within some ten passes over all objects, where
methods that update prices once a pass need hundreds.

source  Lacoste-Julien, Jaggi, Schmidt and Pletscher, "Block-coordinate Frank-Wolfe optimization for
        structural SVMs" (ICML 2013), for the steps; Hestenes 1969 and Powell 1969 for the multipliers
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from planner.arrays import Bools, Floats, Ints
from planner.search.deadline import NEVER, Deadline
from planner_models.livevideo.designs.decomposition.layered_problem import (
    CapacityRows,
    LayeredProblem,
    RowArrays,
    links_to,
)
from planner_models.livevideo.designs.decomposition.pricing import Effort, PricedTrees, Pricer, used_links
from planner_models.livevideo.designs.tree.local_network import (
    CAPACITY_TOLERANCE,
    ObjectArrays,
    PerLayer,
    allocating_kernel,
    inner_kernel,
    kernel,
)

PENALTY_SCALE: Final = 2.0
"""Growth of a row's price as its load grows by the whole limit, over the typical price of such rows."""

MAX_BATCHES: Final = 100  # batches of a pass, at most
MIN_BATCHES: Final = 8  # batches of a pass, at least
MIN_BATCH_SIZE: Final = 48  # objects of a batch, at least, where MIN_BATCHES allows
MULTIPLIER_START: Final = 1  # passes before the first update of multipliers
DEFAULT_EFFORT: Final = Effort(6, 1)


class Combinations(NamedTuple):
    """Convex combinations of trees, as shares of links.

    first     (O + 1,) object o has the candidate links first[o]:first[o + 1]
    link      (N,) candidate links, numbered through layers a, b and c
    share     (N,) share of the combination that uses each candidate link, 0 to 1
    value     (O,) value of each object's combination
    row_load  (M,) load of all combinations on each row
    """

    first: Ints
    link: Ints
    share: Floats
    value: Floats
    row_load: Floats

    def copy(self) -> Combinations:
        """Return a copy that can change on its own."""
        return self._replace(share=self.share.copy(), value=self.value.copy(), row_load=self.row_load.copy())


class PriceTerms(NamedTuple):
    """Terms of the price of each row (M,): multiplier + penalty x (load - limit), where above 0."""

    multiplier: Floats
    penalty: Floats
    limit: Floats


class FrankWolfe:
    """Combinations of trees of all objects, the loads they cause, and the dual prices that follow.

    active     objects with combinations that may change
    trees      the last best trees of all objects, and multipliers of their pricing
    terms      multiplier, penalty and limit of each row
    price      (M,) price of each row, mean over the last pass
    pricing_residual   (n,) of each layer: trees only use links with so much residual capacity
    required_residual  (n,) of each layer: combinations on links with less are replaced by the tree
    """

    def __init__(self, layered: LayeredProblem, rows: CapacityRows, pricer: Pricer, seed: int) -> None:
        self.layered, self.rows, self.pricer = layered, rows, pricer
        objects = layered.objects
        self.active = np.flatnonzero(layered.request_count > 0)
        first, link = find_candidate_links(layered)
        count, row_count = len(objects.bitrate), len(rows.limit)
        self.combinations = Combinations(
            first, link, np.zeros(len(link)), np.zeros(count), np.zeros(row_count)
        )
        self.trees = PricedTrees(
            paths=np.full((len(objects.group), 3), -1, dtype=np.int64),
            dual=np.full(len(objects.group), -1.0),
            value=np.zeros(count),
            bound=np.zeros(count),
        )
        self.price = np.zeros(row_count)
        self.terms = PriceTerms(np.zeros(row_count), np.zeros(row_count), rows.limit.copy())
        self.random = np.random.default_rng(seed)
        self.direction = np.zeros(int(np.diff(first).max(initial=1)))  # workspace of the kernels
        self.on_tree = np.zeros(rows.link_count, dtype=np.int64)
        self.pricing_residual = self.required_residual = pricer.unlimited
        self.passes = 0
        self.penalty_scale = PENALTY_SCALE
        self.unit_price = self._initial_unit_price()
        self._update_penalties()

    def copy(self, pricer: Pricer, seed: int) -> FrankWolfe:
        """Return a copy of the current state that can change on its own."""
        other = copy.copy(self)
        other.active, other.combinations = self.active.copy(), self.combinations.copy()
        other.trees = self.trees.copy()
        other.terms = PriceTerms(*(array.copy() for array in self.terms))
        other.direction, other.on_tree = self.direction.copy(), self.on_tree.copy()
        other.pricer, other.random = pricer, np.random.default_rng(seed)
        return other

    def warm_start(self, paths: Ints, price: Floats | None) -> None:
        """Start from whole trees, and from these row prices, if any."""
        self.trees = self.trees._replace(paths=paths.copy())
        item, link = used_links(self.layered, paths)
        objects, rows, combinations = self.layered.objects, self.rows, self.combinations
        key = np.repeat(np.arange(len(objects.bitrate)), np.diff(combinations.first)) * rows.link_count
        combinations.share[:] = np.isin(key + combinations.link, item * rows.link_count + link)
        cost = np.bincount(item, rows.cost[link], minlength=len(objects.bitrate)) * objects.bitrate
        served = np.where(paths[:, 2] >= 0, objects.value, 0.0)
        combinations.value[:] = self.layered.sum_by_object(served) - cost
        combinations.row_load[:] = rows.load(objects.object_class[item], link)
        if price is not None:
            self.terms = self.terms._replace(multiplier=price.copy())
            self.passes = 4
            self._update_penalties()

    def _initial_unit_price(self) -> float:
        """Return a guess at the price per Mbit/s of a scarce row: a fifth of the median value per Mbit/s."""
        layered = self.layered
        if layered.problem.is_unicast:  # links into groups are scarce: the value of one viewer
            per_mbps = layered.objects.value / (
                layered.streams * layered.objects.bitrate[layered.request_object]
            )
            return float(np.median(per_mbps)) / 5.0
        # pinned requests are worth any price
        value = np.minimum(layered.object_value, 1e3 * np.median(layered.objects.value))
        return float(np.median((value / layered.objects.bitrate)[layered.request_count > 0])) / 5.0

    def _update_penalties(self) -> None:
        """Set the penalty of each row by the typical price of the rows of its layer."""
        rows, (price, penalty, _) = self.rows, self.terms
        layer = np.searchsorted(np.cumsum(rows.sizes), rows.link, side="right")
        counts = rows.min_bitrate > 0
        for kind in range(3):
            capacity = (layer == kind) & ~counts
            priced = capacity & (price > 0)
            unit = float((price * rows.limit)[priced].sum() / max(rows.limit[priced].sum(), 1e-9))
            unit = max(unit, 0.1 * self.unit_price) if self.passes else self.unit_price
            penalty[capacity] = self.penalty_scale * np.maximum(unit, price[capacity]) / rows.limit[capacity]
            counting = (layer == kind) & counts
            per_object = np.maximum(0.1 * unit * rows.min_bitrate[counting], price[counting])
            penalty[counting] = self.penalty_scale * per_object / rows.limit[counting]
        if self.passes:
            priced = (rows.min_bitrate == 0) & (price > 0)
            if priced.any():
                self.unit_price = float((price * rows.limit)[priced].sum() / rows.limit[priced].sum())

    def run_pass(
        self,
        effort: Effort = DEFAULT_EFFORT,
        *,
        careful: tuple[Bools, Effort] | None = None,
        deadline: Deadline = NEVER,
    ) -> float:
        """Make one pass over the active objects in random order; return an estimate of the bound.

        effort   for objects with many requests
        careful  (O,) objects with another effort, and that effort
        deadline  from which the rest of the pass is left out
        """
        layered, rows = self.layered, self.rows.arrays
        order = self.random.permutation(self.active)
        batches = max(min(MIN_BATCHES, len(order)), min(MAX_BATCHES, len(order) // MIN_BATCH_SIZE), 1)
        total_price = np.zeros(len(self.price))
        priced_count = 0
        for batch in np.array_split(order, batches):
            if priced_count and deadline.is_over:
                break
            priced_count += 1
            selected = batch[np.argsort(-layered.request_count[batch], kind="stable")]
            multiplier, penalty, limit = self.terms
            price = np.maximum(0.0, multiplier + penalty * (self.combinations.row_load - limit))
            total_price += price
            link_price = self.rows.link_prices(price)
            for chunk, part_effort in _split_by_effort(selected, effort, careful):
                self.pricer.price_some(chunk, link_price, self.pricing_residual, self.trees, part_effort)
            take_steps(
                selected, layered.objects, self.trees.paths, self.combinations, rows, self.terms,
                self.required_residual, self.on_tree, self.direction,
            )  # fmt: skip
        self.price = total_price / priced_count
        self.passes += 1
        if self.passes > MULTIPLIER_START:
            multiplier, penalty, limit = self.terms
            violation = self.combinations.row_load - limit
            self.terms = self.terms._replace(multiplier=np.maximum(0.0, multiplier + penalty * violation))
            self._update_penalties()
        return float(self.trees.value[self.active].sum() + self.price @ self.terms.limit)

    def distances_to_trees(self) -> Floats:
        """Return the distance of each active object's combination from its last tree, 0 to 1."""
        return measure_distances(
            self.active,
            self.layered.objects,
            self.trees.paths,
            self.combinations,
            self.rows.arrays,
            self.on_tree,
        )


def _split_by_effort(
    selected: Ints, effort: Effort, careful: tuple[Bools, Effort] | None
) -> Iterator[tuple[Ints, Effort]]:
    """Yield the objects in parts of one effort each."""
    if careful is None:
        yield selected, effort
        return
    is_careful = careful[0][selected]
    for subset, part_effort in ((selected[is_careful], careful[1]), (selected[~is_careful], effort)):
        if len(subset):
            yield subset, part_effort


def find_candidate_links(layered: LayeredProblem) -> tuple[Ints, Ints]:
    """Return the candidate links of each object, as `first` and `link` of Combinations."""
    (n_a, n_b, _), edges = layered.sizes, len(layered.b.first) - 1
    requested = np.flatnonzero(layered.request_count)
    c, repeats = links_to(layered.c.first, layered.objects.group)
    c_object = np.repeat(layered.request_object, repeats)
    at_edge = np.unique(c_object * edges + layered.c.tail[c])
    b, repeats = links_to(layered.b.first, at_edge % edges)
    item = np.concatenate([np.repeat(requested, n_a), np.repeat(at_edge // edges, repeats), c_object])
    link = np.concatenate([np.tile(np.arange(n_a), len(requested)), n_a + b, n_a + n_b + c])
    order = np.argsort(item, kind="stable")
    return np.searchsorted(item[order], np.arange(len(layered.request_count) + 1)), link[order]


@inner_kernel
def mark_tree(first: int, last: int, paths: Ints, value: Floats, n_a: int, n_b: int, on_tree: Ints) -> float:
    """Set on_tree to 1 for the links of the tree of requests first:last; return the value that it serves."""
    served = 0.0
    for i in range(first, last):
        if paths[i, 2] >= 0:
            served += value[i]
            on_tree[paths[i, 0]] = 1
            on_tree[n_a + paths[i, 1]] = 1
            on_tree[n_a + n_b + paths[i, 2]] = 1
    return served


@kernel
def take_steps(  # noqa: C901
    selected: Ints,
    objects: ObjectArrays,
    paths: Ints,
    combinations: Combinations,
    rows: RowArrays,
    terms: PriceTerms,
    required: PerLayer,
    on_tree: Ints,
    direction: Floats,
) -> None:
    """Move the combinations of the selected objects towards their trees in `paths`, by exact line search.

    A combination on a link with less residual capacity in `required` than the bitrate becomes the tree.
    """
    value, share, load = combinations.value, combinations.share, combinations.row_load
    n_a, n_b = rows.n_a, rows.n_b
    for o in selected:
        k, rate = objects.object_class[o], objects.bitrate[o]
        start, end = combinations.first[o], combinations.first[o + 1]
        tree_value = mark_tree(
            objects.first[o], objects.first[o + 1], paths, objects.value, n_a, n_b, on_tree
        )
        gain, curvature = 0.0, 0.0
        has_to_change = False
        for n in range(start, end):
            link = combinations.link[n]
            d = -share[n]
            if share[n] > 0.0:
                if link < n_a:
                    residual = required.a[link]
                elif link < n_a + n_b:
                    residual = required.b[link - n_a]
                else:
                    residual = required.c[link - n_a - n_b]
                has_to_change = has_to_change or residual < rate * (1 - CAPACITY_TOLERANCE)
            if on_tree[link] == 1:
                d += 1.0
                tree_value -= rate * rows.cost[link]
                on_tree[link] = 0
            direction[n - start] = d
            if d == 0.0:
                continue
            for j in range(rows.first[link], rows.first[link + 1]):
                m = rows.row[j]
                change = d * rows.usage[k, m] * rows.streams[link]
                price = terms.multiplier[m] + terms.penalty[m] * (load[m] - terms.limit[m])
                if price > 0:
                    gain -= change * price
                    curvature += terms.penalty[m] * change * change
                elif change > 0 and price + terms.penalty[m] * change > 0:
                    curvature += terms.penalty[m] * change * change
        gain += tree_value - value[o]
        if gain <= 0 and not has_to_change:
            continue
        step = 1.0 if has_to_change or curvature <= gain else gain / curvature
        value[o] += step * (tree_value - value[o])
        for n in range(start, end):
            d = direction[n - start]
            if d == 0.0:
                continue
            share[n] += step * d
            link = combinations.link[n]
            for j in range(rows.first[link], rows.first[link + 1]):
                load[rows.row[j]] += step * d * rows.usage[k, rows.row[j]] * rows.streams[link]


@allocating_kernel
def measure_distances(
    selected: Ints,
    objects: ObjectArrays,
    paths: Ints,
    combinations: Combinations,
    rows: RowArrays,
    on_tree: Ints,
) -> Floats:
    """Return the mean change of share from each combination to the tree, over the links that either uses."""
    distance = np.zeros(len(selected))
    for index in range(len(selected)):
        o = selected[index]
        mark_tree(objects.first[o], objects.first[o + 1], paths, objects.value, rows.n_a, rows.n_b, on_tree)
        change, total = 0.0, 0.0
        for n in range(combinations.first[o], combinations.first[o + 1]):
            link = combinations.link[n]
            tree_share = float(on_tree[link])
            on_tree[link] = 0
            change += abs(tree_share - combinations.share[n])
            total += max(tree_share, combinations.share[n])
        distance[index] = change / total if total > 0 else 0.0
    return distance
