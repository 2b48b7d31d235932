"""The Lagrangian bound against optima of the plain program, brute force over links and closed forms."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.contract.proof import Status
from planner.search.deadline import NEVER
from planner_models.capacity.designs.network_design import link_programs
from planner_models.capacity.designs.network_design.design import reduce_instance
from planner_models.capacity.designs.network_design.instance import Instance
from planner_models.capacity.designs.network_design.lagrangian_relaxation import LagrangianBound
from planner_models.capacity.designs.network_design.link_programs import (
    Potentials,
    build_steps,
    solve_links,
    write_gains,
)
from tests.models.capacity.designs.network_design.instances import instances, solve_extended


def potentials_of(instance: Instance, seed: int) -> Potentials:
    value = np.random.default_rng(seed).normal(0.0, 2.0, (instance.nodes, len(instance.rate)))
    return Potentials(value, instance.source, instance.target, instance.rate)


def gain_within(instance: Instance, demands: Potentials, edge: int, capacity: float) -> float:
    """Most gain of demands on a link with a capacity, without the code under test."""
    ends, total = (instance.tail[edge], instance.head[edge]), 0.0
    ways = [ends, ends[::-1]] if instance.direction == "bidirected" else [ends]
    for tail, head in ways:
        gain = demands.value[tail] - demands.value[head]
        gain = np.abs(gain) if instance.direction == "undirected" else gain
        gain = gain - instance.routing_cost[edge]
        remaining = capacity
        for k in sorted(range(len(gain)), key=lambda k: -gain[k]):
            if gain[k] > 0:
                total += min(remaining, demands.rate[k]) * gain[k]
                remaining -= min(remaining, demands.rate[k])
    return float(total)


def value_of(instance: Instance, demands: Potentials) -> float:
    """The Lagrangian function by all combinations of modules of each link."""
    index = np.arange(len(instance.rate))
    value = float(
        (demands.value[demands.source, index] - demands.value[demands.target, index]) @ demands.rate
    )
    for edge in range(instance.edges):
        kinds = np.flatnonzero(instance.module_edge == edge)
        best = np.inf
        for counts in itertools.product(*[range(int(instance.module_limit[m]) + 1) for m in kinds]):
            if instance.explicit and sum(counts) > 1:
                continue
            capacity = instance.installed[edge] + float(np.dot(counts, instance.module_size[kinds]))
            cost = float(np.dot(counts, instance.module_cost[kinds]))
            cost += instance.setup_cost[edge] * (sum(counts) > 0)
            best = min(best, cost - gain_within(instance, demands, edge, capacity))
        value += best
    return value


def solve_at(instance: Instance, demands: Potentials) -> float:
    bound = LagrangianBound(instance)
    missing, bought = np.empty_like(demands.value), np.empty(instance.modules)
    return float(
        solve_links(
            bound.links, bound.steps, demands, instance.setup_cost, instance.module_cost, missing, bought
        )
    )


@settings(max_examples=25)
@given(instances(failures=False), st.integers(0, 1000))
def test_links_are_solved_as_by_brute_force(instance: Instance, seed: int) -> None:
    reduced = reduce_instance(instance, merge=True).instance
    if not len(reduced.rate):
        return
    demands = potentials_of(reduced, seed)
    assert solve_at(reduced, demands) == pytest.approx(value_of(reduced, demands), abs=1e-7)


@settings(max_examples=15)
@given(instances(failures=False), st.integers(0, 1000))
def test_combinations_left_out_only_lower_the_bound(instance: Instance, seed: int) -> None:
    reduced = reduce_instance(instance, merge=True).instance
    if not len(reduced.rate):
        return
    demands = potentials_of(reduced, seed)
    full = solve_at(reduced, demands)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(link_programs, "MAX_STEPS", 2)
        assert solve_at(reduced, demands) <= full + 1e-7


@pytest.mark.slow
@settings(max_examples=20)
@given(instances(failures=False), st.integers(0, 1000))
def test_no_plan_costs_less_than_the_bound_or_violates_the_row(instance: Instance, seed: int) -> None:
    reduced = reduce_instance(instance, merge=True).instance
    optimum = solve_extended(reduced)
    if not len(reduced.rate) or optimum.status is not Status.OPTIMAL:
        return
    assert optimum.objective is not None
    assert optimum.x is not None
    bound = LagrangianBound(reduced)
    none = sp.csr_array((0, reduced.modules))
    result = bound.ascend(
        bound.zero(), none, np.zeros(0), np.zeros(0), pace=1.0, iterations=150, deadline=NEVER
    )
    assert result is not None
    assert result.bound <= optimum.objective + 1e-6 * max(1.0, optimum.objective)
    counts = np.round(optimum.x[: reduced.modules])
    unpriced = replace(reduced, routing_cost=np.zeros(reduced.edges))
    demands = potentials_of(unpriced, seed)
    gain = np.empty(reduced.modules)
    there = write_gains(
        LagrangianBound(unpriced).links,
        demands,
        unpriced.module_edge,
        unpriced.module_size,
        unpriced.installed,
        gain,
    )
    index = np.arange(len(unpriced.rate))
    needed = (demands.value[demands.source, index] - demands.value[demands.target, index]) @ unpriced.rate
    assert gain @ counts >= needed - there - 1e-6


def test_a_small_demand_needs_a_whole_module() -> None:
    """One demand of 1 over a module of 10 at cost 7: the linear relaxation with flow says 0.7."""
    instance = Instance(
        nodes=2,
        tail=np.array([0]),
        head=np.array([1]),
        direction="undirected",
        installed=np.zeros(1),
        setup_cost=np.zeros(1),
        routing_cost=np.zeros(1),
        module_edge=np.array([0]),
        module_size=np.array([10.0]),
        module_cost=np.array([7.0]),
        module_limit=np.array([1.0]),
        explicit=False,
        source=np.array([0]),
        target=np.array([1]),
        rate=np.array([1.0]),
        failures=np.zeros((0, 1), dtype=bool),
    )
    bound = LagrangianBound(instance)
    none = sp.csr_array((0, 1))
    result = bound.ascend(
        bound.zero(), none, np.zeros(0), np.zeros(0), pace=10.0, iterations=1000, deadline=NEVER
    )
    assert result is not None
    assert result.bound == pytest.approx(7.0, rel=1e-2)
    assert len(build_steps(instance).capacity) == 2
