"""Staircases of links: the least cost of modules and setup for each amount of capacity that a link needs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from planner_models.capacity.designs.network_design.instance import Instance
from planner_models.capacity.designs.network_design.network import Floats, Ints

MAX_STEPS = 4000
"""Steps of one link; where modules combine to more capacities, the higher ones are left out."""


class Staircases(NamedTuple):
    """Steps of all links: those of link e are first[e] to first[e + 1] - 1, by rising capacity and cost.

    first     (E + 1,)
    capacity  (T,) that a step gives, with what is installed
    cost      (T,) of modules and setup
    """

    first: Ints
    capacity: Floats
    cost: Floats


def build_staircases(instance: Instance) -> Staircases:
    """Return the steps of each link, up to the capacity that carries all traffic."""
    useful = float(instance.rate.sum())
    first, capacity, cost = [0], [], []
    for edge in range(instance.edges):
        kinds = np.flatnonzero(instance.module_edge == edge)
        size, price = _combinations(instance, kinds, useful)
        capacity.append(size + instance.installed[edge])
        cost.append(price + instance.setup_cost[edge] * (size > 0))
        first.append(first[-1] + len(size))
    return Staircases(np.array(first), np.concatenate(capacity), np.concatenate(cost))


def _combinations(instance: Instance, kinds: Ints, useful: float) -> tuple[Floats, Floats]:
    """Return capacities and least costs of combinations of the modules of one link, rising from nothing."""
    size, cost = np.zeros(1), np.zeros(1)
    each_size, each_cost = instance.module_size[kinds], instance.module_cost[kinds]
    most = np.minimum(instance.module_limit[kinds], np.ceil(useful / each_size - 1e-9))
    if instance.explicit:
        enough = most >= 1
        return _rising(np.r_[size, each_size[enough]], np.r_[cost, each_cost[enough]], useful)
    for kind in np.argsort(-each_size, kind="stable"):
        larger = (each_size > each_size[kind]) & (most >= np.ceil(useful / each_size - 1e-9))
        copies = np.arange(min(most[kind], MAX_STEPS) + 1)
        for other in np.flatnonzero(larger):  # modules that larger ones replace at no higher cost
            whole = np.ceil(copies * each_size[kind] / each_size[other] - 1e-9)
            needed = np.maximum(whole, 1.0) * each_cost[other]
            copies = copies[(copies == 0) | (needed > copies * each_cost[kind])]
        size = (size[:, None] + copies * each_size[kind]).ravel()
        cost = (cost[:, None] + copies * each_cost[kind]).ravel()
        size, cost = _rising(size, cost, useful)
    return size, cost


def _rising(size: Floats, cost: Floats, useful: float) -> tuple[Floats, Floats]:
    """Return the combinations that no other one replaces at no higher cost, up to what is useful."""
    order = np.lexsort((-size, cost))
    size, cost = size[order], cost[order]
    before = np.r_[-1.0, np.maximum.accumulate(size)[:-1]]
    kept = (size > before * (1 + 1e-12) + 1e-12) & (before < useful)
    return size[kept][:MAX_STEPS], cost[kept][:MAX_STEPS]
