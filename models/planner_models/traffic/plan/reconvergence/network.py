"""A network and its demands as arrays for compiled loops over failures."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from planner.arrays import Floats, Ints, read_only
from planner_models.traffic.problem.problem import Traffic

DROP, PRIORITY, MAX_MIN = range(3)
OVERLOADS: Final = {"drop": DROP, "priority": PRIORITY, "max-min": MAX_MIN}


class Network(NamedTuple):
    """A network and its demands, as arrays for compiled loops; T targets, G layers of traffic.

    tail, head, weight, capacity  (E,) of links
    leaving, first_leaving    links that leave node v, in the order of the table:
                              leaving[first_leaving[v]:first_leaving[v + 1]]
    entering, first_entering  links that enter it
    targets    (T,) nodes
    rate       (G, T, N) traffic from each node to each target, Mbit/s
    level      (G,) priority of each layer, from 0, ascending; a link serves lower levels first
    layer_weight  (G,) share of a link among layers of a level
    source, row, layer, demand_rate  (K,) node, row of `targets` and layer of each demand, and its rate
    order      (K,) demands in the order of admission
    is_single  whether all traffic takes the first of equally short links, not equal parts
    overload   DROP, PRIORITY or MAX_MIN
    """

    tail: Ints
    head: Ints
    weight: Floats
    capacity: Floats
    leaving: Ints
    first_leaving: Ints
    entering: Ints
    first_entering: Ints
    targets: Ints
    rate: Floats
    level: Ints
    layer_weight: Floats
    source: Ints
    row: Ints
    layer: Ints
    demand_rate: Floats
    order: Ints
    is_single: bool
    overload: int


def admission_order(problem: Traffic) -> Ints:
    """Return the demands in the order in which admission serves them, (K,).

    By the priority of their class, then by its weight, the largest first, then by the demand's own weight,
    the largest first, then as in the table.
    """
    if not problem.has_classes:
        return np.argsort(-problem.demand_weight, kind="stable")
    classes = problem.class_table
    priority = classes["priority"].to_numpy(float)[problem.class_of]
    weight = classes["weight"].to_numpy(float)[problem.class_of]
    return np.lexsort((-problem.demand_weight, -weight, priority))


def network_of(problem: Traffic, *, weight: Floats | None = None, is_single: bool = False) -> Network:
    """Return a problem as arrays; `weight`, (E,), is instead of the links' own."""
    nodes = len(problem.nodes)
    demands = np.flatnonzero(problem.rate_mbps > 0)
    by_priority = problem.overload == "priority" and problem.has_classes
    layer = problem.class_of if by_priority else np.zeros(len(problem.demands), dtype=np.int64)
    layers = len(problem.class_table) if by_priority else 1
    rate = np.zeros((layers, len(problem.targets), nodes))
    row = problem.target_row[demands]
    np.add.at(rate, (layer[demands], row, problem.source[demands]), problem.rate_mbps[demands])
    level, layer_weight = np.zeros(layers, dtype=np.int64), np.ones(layers)
    if by_priority:
        _, level = np.unique(problem.class_table["priority"].to_numpy(), return_inverse=True)
        layer_weight = problem.class_table["weight"].to_numpy(float)
    leaving, entering = (np.argsort(ends, kind="stable") for ends in (problem.tail, problem.head))
    first_leaving, first_entering = (
        np.searchsorted(ends[order], np.arange(nodes + 1)).astype(np.int64)
        for ends, order in ((problem.tail, leaving), (problem.head, entering))
    )
    order = admission_order(problem)
    return Network(
        tail=read_only(problem.tail),
        head=read_only(problem.head),
        weight=read_only(problem.weight if weight is None else weight),
        capacity=read_only(problem.capacity_mbps),
        leaving=read_only(leaving),
        first_leaving=read_only(first_leaving),
        entering=read_only(entering),
        first_entering=read_only(first_entering),
        targets=read_only(problem.targets),
        rate=read_only(rate),
        level=read_only(level.astype(np.int64)),
        layer_weight=read_only(layer_weight),
        source=read_only(problem.source),
        row=read_only(np.where(problem.rate_mbps > 0, problem.target_row, 0)),
        layer=read_only(layer),
        demand_rate=read_only(problem.rate_mbps),
        order=read_only(order[problem.rate_mbps[order] > 0]),
        is_single=is_single,
        overload=OVERLOADS[problem.overload] if by_priority or problem.overload != "priority" else DROP,
    )
