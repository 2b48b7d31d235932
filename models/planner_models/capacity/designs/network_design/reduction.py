"""Reduction of an instance to the modules and demands that matter, in units that suit solvers."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from planner_models.capacity.designs.network_design.instance import Instance, Tunnels
from planner_models.capacity.designs.network_design.network import Floats, Ints
from planner_models.capacity.plan.module_limits import largest_unit

MOST_UNIT = 50.0
"""Most capacity that is one unit, in mean demands: else demands are too small for solvers' tolerances."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Reduction:
    """A smaller instance with the same optimal cost.

    kept  (M',) modules of the original instance that remain
    pair  (D,) demand of the reduced instance that carries each original one, -1 for none
    unit  capacity and traffic of the reduced instance are in this unit
    """

    original: Instance
    instance: Instance
    kept: Ints
    pair: Ints
    unit: float

    def expand(self, counts: Floats) -> Floats:
        """Return the modules of the original instance, (M',) to (M,)."""
        expanded = np.zeros(self.original.modules)
        expanded[self.kept] = counts
        return expanded


def reduce_instance(instance: Instance, *, merge: bool) -> Reduction:
    """Drop modules that another one replaces at no higher cost, and merge demands of equal ends.

    merge  whether demands of equal ends become one, but for those with tunnels
    """
    explicit = instance.explicit
    setup, module_cost = instance.setup_cost, instance.module_cost
    upper = instance.module_limit
    if explicit:  # one module a link: the setup cost belongs to it
        module_cost, setup = module_cost + setup[instance.module_edge], np.zeros(instance.edges)
        upper = np.minimum(upper, 1.0)
    useful_kinds = _undominated(instance, module_cost, upper, explicit)
    pair, source, target, rate, required = _merge_demands(instance, merge)
    sizes = instance.module_size[useful_kinds]
    mean = float(rate[rate > 0].mean()) if (rate > 0).any() else 1.0
    unit = min(float(np.median(sizes)), MOST_UNIT * mean) if len(sizes) else mean
    unit = min(unit, largest_unit(sizes, upper[useful_kinds], float(instance.rate.sum())))
    useful = np.ceil(instance.rate.sum() / instance.module_size[useful_kinds] - 1e-9)
    return Reduction(
        original=instance,
        instance=replace(
            instance,
            installed=instance.installed / unit,
            setup_cost=setup,
            routing_cost=instance.routing_cost * unit,
            module_edge=instance.module_edge[useful_kinds],
            module_size=sizes / unit,
            module_cost=module_cost[useful_kinds],
            module_limit=np.floor(np.minimum(upper[useful_kinds], useful) + 1e-9),
            source=source,
            target=target,
            rate=rate / unit,
            required=required,
            tunnels=_move_tunnels(instance, pair),
        ),
        kept=useful_kinds,
        pair=pair,
        unit=unit,
    )


def _undominated(instance: Instance, cost: Floats, upper: Floats, explicit: bool) -> Ints:
    alive = upper >= 1.0
    size, edge = instance.module_size, instance.module_edge
    useful = np.ceil(instance.rate.sum() / size - 1e-9)
    for m in np.flatnonzero(alive):
        others = np.flatnonzero((edge == edge[m]) & alive)
        others = others[others != m]
        if explicit:
            copies = np.ones(len(others))
            can = size[others] >= size[m]
        else:
            copies = np.maximum(np.ceil(size[m] / size[others] - 1e-9), 1.0)
            can = upper[others] >= useful[others]
        price = copies * cost[others]
        better = price < cost[m]
        same = (price == cost[m]) & ((copies * size[others] > size[m]) | (size[others] <= size[m]))
        alive[m] = not (can & (better | same)).any()
    return np.flatnonzero(alive)


def _merge_demands(instance: Instance, merge: bool) -> tuple[Ints, Ints, Ints, Floats, Floats | None]:
    source, target = instance.source, instance.target
    if instance.direction == "undirected":
        source, target = np.minimum(source, target), np.maximum(source, target)
    bound = np.full(len(source), -1)
    if instance.tunnels is not None:
        bound[instance.tunnels.demand] = instance.tunnels.demand
    key = np.column_stack([source, target, bound])
    if not merge:
        key = np.column_stack([key, np.arange(len(source))])
    real = (instance.rate > 0) & (source != target)
    pair: Ints = np.full(len(source), -1)
    if real.any():
        _, first, pair[real] = np.unique(key[real], axis=0, return_index=True, return_inverse=True)
    else:
        first = np.zeros(0, dtype=np.int64)
    rate = np.zeros(len(first))
    np.add.at(rate, pair[real], instance.rate[real])
    first = np.flatnonzero(real)[first]
    if instance.required is None:
        return pair, source[first], target[first], rate, None
    required = np.zeros((len(instance.failures), len(first)))
    rows = np.flatnonzero(real)
    np.add.at(required.T, pair[rows], (instance.required[:, rows] * instance.rate[rows]).T)
    return pair, source[first], target[first], rate, required / rate


def _move_tunnels(instance: Instance, pair: Ints) -> Tunnels | None:
    """Return the tunnels of the reduced demands; None where no demand that is left has one."""
    if instance.tunnels is None:
        return None
    demand = pair[instance.tunnels.demand]
    rows = np.flatnonzero(demand >= 0)
    return Tunnels(demand=demand[rows], arcs=instance.tunnels.arcs[rows]) if len(rows) else None
