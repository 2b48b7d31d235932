"""Diving heuristic: fix fractional trees to whole ones round by round, and let the prices adapt.

An object with a combination close to a single tree is fixed to that tree and occupies its links for
good; the combinations of the others adapt to the residual capacity and the prices that follow. Objects
of the highest bitrate are fixed first, since small objects fill the gaps that large ones leave, not the
other way round; with them go the few objects of the highest value.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from planner.arrays import Bools, Floats, Ints
from planner.search.deadline import NEVER, Deadline
from planner_models.livevideo.designs.decomposition.frank_wolfe import (
    PENALTY_SCALE,
    Combinations,
    FrankWolfe,
    mark_tree,
)
from planner_models.livevideo.designs.decomposition.layered_problem import RowArrays
from planner_models.livevideo.designs.decomposition.pricing import Effort, add_tree_rate, fits
from planner_models.livevideo.designs.tree.local_network import (
    CAPACITY_TOLERANCE,
    ObjectArrays,
    PerLayer,
    kernel,
)

NEARLY_INTEGRAL: Final = 0.02
"""Distance of a combination from a tree up to which an object is fixed in any case."""

HIGH_VALUE_FACTOR: Final = 16
"""Value over the mean of the objects of the highest bitrates from which an object is fixed with them."""


class DivePace(NamedTuple):
    """Passes in a round, and the least share of the objects of the highest bitrates that it fixes."""

    passes: int
    share: float


SLOW: Final = DivePace(2, 0.25)
BRISK: Final = DivePace(3, 0.5)
FAST: Final = DivePace(2, 0.5)

PRICE_EFFORT: Final = Effort(6, 1)  # for trees that move prices
FIXING_EFFORT: Final = Effort(30, 129)  # for trees that objects may be fixed to
MIN_FIXED: Final = 12  # objects that a round fixes, at least; so few are priced together with all others


class Dive:
    """A dive from a Frank-Wolfe state, which it changes.

    residual        residual capacity of the links of each layer beside fixed trees, Mbit/s
    paths           (Q, 3) links of the trees fixed, -1 elsewhere
    fixed_load      (M,) load of fixed trees on each row
    fixed_value     value of the trees fixed
    value_estimate  estimated value of all trees in the end: those fixed, and the Lagrangian bound of the
                    others. Updated while the objects of the highest bitrate are the only ones, or many
    """

    def __init__(self, relaxation: FrankWolfe, *, pace: DivePace = SLOW) -> None:
        layered = relaxation.layered
        bitrate, value = layered.objects.bitrate, layered.object_value
        self.relaxation, self.pace = relaxation, pace
        self.residual = PerLayer(*(capacity.copy() for capacity in relaxation.pricer.capacity))
        self.paths = np.full((len(layered.objects.group), 3), -1, dtype=np.int64)
        self.size_class = np.floor(np.log2(bitrate))
        top_class = self.size_class[relaxation.active].max()
        top = (self.size_class == top_class) & (value > 0)
        if top.any():
            self.size_class[value > HIGH_VALUE_FACTOR * value[top].mean()] = top_class
        self.fixed_load = np.zeros(len(relaxation.rows.limit))
        self.fixed_value, self.value_estimate = 0.0, np.inf
        relaxation.penalty_scale = PENALTY_SCALE
        relaxation.pricing_residual = self.residual

    @property
    def remaining(self) -> int:
        """Number of objects that are not fixed."""
        return len(self.relaxation.active)

    @property
    def round_work(self) -> int:
        """Approximate number of pricing problems of the next round."""
        return self.pace.passes * self.remaining

    def run_round(self, *, deadline: Deadline = NEVER) -> None:
        """Run some passes and fix some objects; after the deadline, fix all that fit."""
        relaxation, bitrate = self.relaxation, self.relaxation.layered.objects.bitrate
        self._update_limits()
        size = self.size_class[relaxation.active]
        largest = np.flatnonzero(size == size.max())
        for _ in range(self.pace.passes - 1):
            if not deadline.is_over:
                relaxation.run_pass(PRICE_EFFORT, deadline=deadline)
        if not deadline.is_over:
            if MIN_FIXED < len(largest) < self.remaining:
                careful = (self.size_class == size.max(), FIXING_EFFORT)
                relaxation.run_pass(PRICE_EFFORT, careful=careful, deadline=deadline)
            else:
                relaxation.run_pass(FIXING_EFFORT, deadline=deadline)
                self.value_estimate = self.fixed_value
                self.value_estimate += float(relaxation.trees.value[relaxation.active].sum())
                self.value_estimate += float(relaxation.price @ (relaxation.terms.limit - self.fixed_load))
        is_late = deadline.is_over
        distance = relaxation.distances_to_trees()[largest]
        order = np.argsort(distance, kind="stable")
        nearly_integral = int(np.searchsorted(distance[order], NEARLY_INTEGRAL))
        count = max(MIN_FIXED, int(self.pace.share * len(order)), nearly_integral)
        if is_late:
            largest, order = np.arange(len(size)), np.arange(len(size))
            count = len(order)
        selected = relaxation.active[largest[order[:count]]]
        value_per_mbps = relaxation.trees.value[selected] / bitrate[selected]
        selected = selected[np.argsort(-value_per_mbps, kind="stable")]
        fixed = self._fix(selected)
        if is_late or not fixed.any():  # objects whose trees do not fit now are left out
            unfit = selected[~fixed[selected]]
            relaxation.trees.paths[np.isin(relaxation.layered.request_object, unfit)] = -1
            fixed |= self._fix(unfit)
        self.fixed_value += float(relaxation.combinations.value[fixed].sum())
        relaxation.active = relaxation.active[~fixed[relaxation.active]]

    def _update_limits(self) -> None:
        """Limit each row to the whole objects of the active bitrates that fit beside fixed trees.

        Combinations may use links without residual capacity, which raises prices, until one bitrate is left.
        """
        relaxation, rows = self.relaxation, self.relaxation.rows
        limit = relaxation.terms.limit
        rates = np.unique(relaxation.layered.objects.bitrate[relaxation.active])
        counts = rows.min_bitrate > 0
        unit = np.where(counts, rows.min_bitrate, rates[0])
        residual = np.maximum(np.concatenate(self.residual)[rows.link], 0.0)
        number = np.floor(residual / unit + CAPACITY_TOLERANCE)
        limit[counts] = (self.fixed_load + number)[counts]
        if len(rates) == 1:
            limit[~counts] = (self.fixed_load + rates[0] * number)[~counts]
            relaxation.required_residual = self.residual

    def _fix(self, selected: Ints) -> Bools:
        """Fix the selected objects to their last trees where these fit; return which are fixed, (O,)."""
        relaxation = self.relaxation
        objects = relaxation.layered.objects
        fixed = np.zeros(len(objects.bitrate), dtype=np.bool_)
        fix_trees(
            selected, objects, relaxation.trees.paths, relaxation.combinations, relaxation.rows.arrays,
            relaxation.on_tree, self.residual, self.paths, self.fixed_load, fixed,
        )  # fmt: skip
        return fixed


@kernel
def fix_trees(
    selected: Ints,
    objects: ObjectArrays,
    paths: Ints,
    combinations: Combinations,
    rows: RowArrays,
    on_tree: Ints,
    residual: PerLayer,
    fixed_paths: Ints,
    fixed_load: Floats,
    fixed: Bools,
) -> None:
    """Fix objects to their trees in `paths`, one after the other where these fit; changes the last four."""
    for o in selected:
        first, last = objects.first[o], objects.first[o + 1]
        if not fits(first, last, objects.bitrate[o], paths, residual):
            continue
        fixed[o] = True
        add_tree_rate(first, last, -objects.bitrate[o], paths, residual)
        for i in range(first, last):
            for column in range(3):
                fixed_paths[i, column] = paths[i, column]
        value = mark_tree(first, last, paths, objects.value, rows.n_a, rows.n_b, on_tree)
        for n in range(combinations.first[o], combinations.first[o + 1]):
            link = combinations.link[n]
            is_used = on_tree[link]
            on_tree[link] = 0
            change = is_used - combinations.share[n]
            value -= is_used * objects.bitrate[o] * rows.cost[link]
            if is_used == 0 and change == 0.0:
                continue
            combinations.share[n] = is_used
            for j in range(rows.first[link], rows.first[link + 1]):
                usage = rows.usage[objects.object_class[o], rows.row[j]] * rows.streams[link]
                combinations.row_load[rows.row[j]] += change * usage
                fixed_load[rows.row[j]] += is_used * usage
        combinations.value[o] = value
