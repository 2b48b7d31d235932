"""Staircases against brute force over modules."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings

from planner_models.capacity.designs.network_design.instance import Instance
from planner_models.capacity.designs.network_design.staircases import build_staircases
from tests.models.capacity.designs.network_design.instances import instances


def cheapest(instance: Instance, edge: int, needed: float) -> float:
    """Least cost of modules and setup that give a link a capacity, by trying all."""
    kinds = np.flatnonzero(instance.module_edge == edge)
    most = [int(min(instance.module_limit[m], np.ceil(needed / instance.module_size[m]))) for m in kinds]
    best = np.inf
    for counts in itertools.product(*[range(n + 1) for n in most]):
        if instance.explicit and sum(counts) > 1:
            continue
        capacity = instance.installed[edge] + float(np.dot(counts, instance.module_size[kinds]))
        if capacity >= needed - 1e-9:
            cost = float(np.dot(counts, instance.module_cost[kinds]))
            best = min(best, cost + instance.setup_cost[edge] * (sum(counts) > 0))
    return best


@settings(max_examples=60, deadline=None)
@given(instances(failures=False))
def test_steps_are_the_least_cost_of_each_capacity(instance: Instance) -> None:
    steps = build_staircases(instance)
    total = float(instance.rate.sum())
    for edge in range(instance.edges):
        own = slice(steps.first[edge], steps.first[edge + 1])
        capacity, cost = steps.capacity[own], steps.cost[own]
        assert capacity[0] == instance.installed[edge]
        assert cost[0] == 0.0
        assert (np.diff(capacity) > 0).all()
        assert (np.diff(cost) >= 0).all()
        for needed in np.linspace(0.0, total, 6):
            enough = cost[capacity >= needed - 1e-9]
            assert (enough[0] if len(enough) else np.inf) == pytest.approx(cheapest(instance, edge, needed))


def test_a_small_module_is_not_replaced_by_a_part_of_a_large_one() -> None:
    """One of 1e-10 of a large module's size costs less than a whole large one, not nothing."""
    none: np.ndarray = np.zeros(1)
    instance = Instance(
        nodes=2,
        tail=np.array([0]),
        head=np.array([1]),
        direction="undirected",
        installed=none,
        setup_cost=none,
        routing_cost=none,
        module_edge=np.array([0, 0]),
        module_size=np.array([1e-10, 1.0]),
        module_cost=np.array([1.0, 5.0]),
        module_limit=np.full(2, 4.0),
        explicit=False,
        source=np.array([0]),
        target=np.array([1]),
        rate=np.array([1.0]),
        failures=np.zeros((0, 1), dtype=bool),
    )
    steps = build_staircases(instance)
    assert steps.cost.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    assert steps.capacity[1] == pytest.approx(1e-10)
