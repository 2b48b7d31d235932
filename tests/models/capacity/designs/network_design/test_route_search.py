"""The search over routes: its cost, its capacities, and that it never beats the optimum."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.contract.proof import Status
from planner_models.capacity.designs.network_design.design import reduce_instance
from planner_models.capacity.designs.network_design.instance import Instance
from planner_models.capacity.designs.network_design.network import Network
from planner_models.capacity.designs.network_design.plan_building import Purchase
from planner_models.capacity.designs.network_design.route_search import RouteSearch, build_staircases
from tests.models.capacity.designs.network_design.instances import can_route, instances, solve_extended


def loads_of(search: RouteSearch) -> np.ndarray:
    """Load of each link by the paths, the larger of both directions where they have their own capacity."""
    network, routes = search.network, search.routes
    assert routes is not None
    on_row = np.zeros(network.capacities)
    for piece, hops in enumerate(routes.hops.tolist()):
        path = routes.path[piece, :hops]
        ends = [search.pieces.source[piece], *network.arc_head[path][::-1].tolist()]
        assert ends[:-1] == network.arc_tail[path][::-1].tolist()
        assert ends[-1] == search.pieces.target[piece]
        np.add.at(on_row, network.arc_capacity[path], search.pieces.rate[piece])
    load = np.zeros(network.instance.edges)
    np.maximum.at(load, network.capacity_edge, on_row)
    return load


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(instances(failures=False), st.integers(0, 3))
def test_routes_carry_all_demands_at_the_cost_that_is_reported(instance: Instance, seed: int) -> None:
    reduced = reduce_instance(instance, merge=True).instance
    if not len(reduced.rate):
        return
    network = Network(reduced)
    search = RouteSearch(reduced, network)
    if not search.start(np.zeros(reduced.edges)):
        return
    first = search.improve(1, 1.0, np.random.default_rng(seed))
    cost = search.improve(2_000, 1.0, np.random.default_rng(seed))
    assert cost <= first + 1e-6
    load = loads_of(search)
    assert search.capacity() == pytest.approx(load)
    if (load > search.most() + 1e-6).any():  # no routes of whole pieces were found within the capacities
        return
    assert search.routes is not None
    steps = search.steps
    assert (load <= steps.capacity[search.routes.step] + 1e-6).all()
    flow = np.zeros(reduced.edges)
    for piece, hops in enumerate(search.routes.hops.tolist()):
        path = search.routes.path[piece, :hops]
        np.add.at(flow, network.arc_edge[path], search.pieces.rate[piece])
    assert cost == pytest.approx(float(steps.cost[search.routes.step].sum() + flow @ reduced.routing_cost))
    counts = Purchase(reduced).cheapest(load)
    assert counts is not None
    assert can_route(reduced, counts, reduced.rate)
    assert reduced.purchase_cost(counts) <= steps.cost[search.routes.step].sum() + 1e-6
    plain = solve_extended(reduced)
    assert plain.status is Status.OPTIMAL
    assert plain.objective is not None
    assert cost >= plain.objective - 1e-5 * max(1.0, abs(plain.objective))


def test_one_path_for_all_saves_a_module() -> None:
    """Two demands of half a module each share the links around a square."""
    instance = Instance(
        nodes=4,
        tail=np.array([0, 1, 2, 3]),
        head=np.array([1, 2, 3, 0]),
        direction="undirected",
        installed=np.zeros(4),
        setup_cost=np.zeros(4),
        routing_cost=np.zeros(4),
        module_edge=np.arange(4),
        module_size=np.full(4, 10.0),
        module_cost=np.full(4, 7.0),
        module_limit=np.full(4, np.inf),
        explicit=False,
        source=np.array([0, 1, 0]),
        target=np.array([2, 2, 1]),
        rate=np.array([5.0, 5.0, 5.0]),
        failures=np.zeros((0, 4), dtype=bool),
    )
    search = RouteSearch(instance, Network(instance))
    assert search.start(np.zeros(4))
    assert search.improve(5_000, 1.0, np.random.default_rng(0)) == pytest.approx(14.0)
    assert search.capacity() == pytest.approx([10.0, 10.0, 0.0, 0.0])


def test_routes_leave_links_that_are_short_of_capacity() -> None:
    """The large demand goes first over both links of node 0, which sell no modules and the others need."""
    instance = Instance(
        nodes=3,
        tail=np.array([0, 0, 1]),
        head=np.array([1, 2, 2]),
        direction="undirected",
        installed=np.array([4.0, 4.0, 0.0]),
        setup_cost=np.zeros(3),
        routing_cost=np.zeros(3),
        module_edge=np.array([2]),
        module_size=np.array([10.0]),
        module_cost=np.array([7.0]),
        module_limit=np.array([np.inf]),
        explicit=False,
        source=np.array([1, 0, 0]),
        target=np.array([2, 1, 2]),
        rate=np.array([8.0, 4.0, 4.0]),
        failures=np.zeros((0, 3), dtype=bool),
    )
    search = RouteSearch(instance, Network(instance))
    assert search.start(np.zeros(3))
    assert (search.capacity() > search.most()).any()
    assert search.improve(5_000, 1.0, np.random.default_rng(0)) == pytest.approx(7.0)
    assert search.capacity() == pytest.approx([4.0, 4.0, 8.0])


def cheapest(instance: Instance, edge: int, needed: float) -> float:
    """Least cost of modules and setup that give a link a capacity, by trying all."""
    kinds = np.flatnonzero(instance.module_edge == edge)
    limit_of = [int(min(instance.module_limit[m], np.ceil(needed / instance.module_size[m]))) for m in kinds]
    best = np.inf
    for counts in itertools.product(*[range(n + 1) for n in limit_of]):
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
        own_values = slice(steps.first[edge], steps.first[edge + 1])
        capacity, cost = steps.capacity[own_values], steps.cost[own_values]
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
