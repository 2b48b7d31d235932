"""Neighbourhoods of plans, and searches below a cutoff."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from planner_models.capacity.designs.network_design.design import reduce_instance
from planner_models.capacity.designs.network_design.instance import Instance
from planner_models.capacity.designs.network_design.master import Master
from planner_models.capacity.designs.network_design.neighbourhoods import MAX_KEPT, MOST_ABOVE, Neighbourhoods
from planner_models.capacity.designs.network_design.network import Network
from tests.models.capacity.designs.network_design.instances import instances
from tests.models.capacity.designs.network_design.test_design import dense


def ring(links: int) -> Instance:
    ends = np.arange(links)
    return Instance(
        nodes=links,
        tail=ends,
        head=(ends + 1) % links,
        direction="undirected",
        installed=np.zeros(links),
        setup_cost=np.zeros(links),
        routing_cost=np.zeros(links),
        module_edge=ends,
        module_size=np.ones(links),
        module_cost=np.ones(links),
        module_limit=np.full(links, np.inf),
        explicit=False,
        source=np.array([0]),
        target=np.array([links // 2]),
        rate=np.array([1.0]),
        failures=np.zeros((0, links), dtype=bool),
    )


def test_good_plans_are_kept_once_and_bad_ones_are_not() -> None:
    neighbourhoods = Neighbourhoods(Network(ring(8)), np.random.default_rng(0))
    costs = np.random.default_rng(1).uniform(100.0, 110.0, 40)
    for cost in [*costs, *costs]:
        neighbourhoods.remember(np.full(8, cost), cost)
    lower = costs.min()
    right = sorted(cost for cost in costs if cost <= lower * (1 + MOST_ABOVE))[:MAX_KEPT]
    assert [item.cost for item in neighbourhoods.known] == pytest.approx(right)
    assert len({item.capacity.tobytes() for item in neighbourhoods.known}) == len(neighbourhoods.known)


@pytest.mark.parametrize("count", [1, 3, 8, 20])
def test_so_many_links_are_chosen_and_among_them_those_where_plans_differ(count: int) -> None:
    chooser = Neighbourhoods(Network(ring(8)), np.random.default_rng(2))
    plan = np.ones(8)
    other = plan.copy()
    other[[2, 5]] = 2.0
    chooser.remember(plan, 8.0)
    chooser.remember(other, 8.1)
    drawn = [chooser.choose(plan, plan, count) for _ in range(40)]
    assert all(int(free.sum()) == min(count, 8) for free in drawn)
    full = [free[[2, 5]].sum() for free in drawn]
    assert max(full) == min(count, 2)


def without_cutoff(master: Master, relaxed: np.ndarray) -> float | None:
    match = master.search(time_limit_s=10.0, relaxed=relaxed)
    return float(master.cost @ match.points[0]) if match.points else None


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(instances(failures=False, routing=False), st.sampled_from([0.6, 0.999, 1.001, 1.5]))
def test_a_search_finds_points_below_its_cutoff_or_proves_that_there_are_none(
    instance: Instance, share: float
) -> None:
    reduced = reduce_instance(instance, merge=True).instance
    assume(len(reduced.rate) > 0 and reduced.modules > 0)
    network = Network(reduced)
    master = Master(reduced, network, None, with_flow=True)
    relaxed = np.zeros(master.columns)
    lower = without_cutoff(master, relaxed)
    assume(lower is not None and lower > 0)
    assert lower is not None
    cutoff = share * lower
    around = np.zeros(master.columns)
    free = np.ones(master.columns, dtype=bool)
    match = master.search(time_limit_s=10.0, relaxed=relaxed, cutoff=cutoff, free=free, around=around)
    assert all(master.cost @ point <= cutoff for point in match.points)
    assert match.is_infeasible == (share < 1.0)
    if share > 1.0:
        assert float(master.cost @ match.points[0]) == pytest.approx(lower)


def test_a_search_at_other_costs_finds_what_is_cheapest_at_them() -> None:
    instance = reduce_instance(dense(4), merge=True).instance
    network, rng = Network(instance), np.random.default_rng(4)
    cost = instance.module_cost * rng.uniform(0.5, 2.0, instance.modules)
    priced = Master(replace(instance, module_cost=cost), network, None, with_flow=True)
    master, relaxed = Master(instance, network, None, with_flow=True), np.zeros(priced.columns)
    lower = without_cutoff(priced, relaxed)
    assert lower is not None
    assert lower != pytest.approx(without_cutoff(master, relaxed))
    match = master.search(time_limit_s=10.0, relaxed=relaxed, cost=priced.cost)
    assert float(priced.cost @ match.points[0]) == pytest.approx(lower)
    below = master.search(time_limit_s=10.0, relaxed=relaxed, cost=priced.cost, cutoff=0.99 * lower)
    assert below.is_infeasible
    assert not below.points


@settings(max_examples=8, deadline=None)
@given(instances(failures=False, routing=False), st.integers(0, 6))
def test_points_within_a_radius_differ_by_so_many_modules_and_are_the_best_of_these(
    instance: Instance, radius: int
) -> None:
    reduced = reduce_instance(instance, merge=True).instance
    assume(len(reduced.rate) > 0 and 0 < reduced.modules <= 6)
    master = Master(reduced, Network(reduced), None)
    rng = np.random.default_rng(radius)
    row = np.ones(master.pooled)
    row[master.modules :] = 0.0
    master.add_row(row, 3.0)
    around = np.zeros(master.columns)
    around[: master.modules] = np.minimum(rng.integers(0, 3, master.modules), reduced.module_limit)
    if reduced.explicit:
        around[: master.modules] = 0.0
    free = np.ones(master.columns, dtype=bool)
    match = master.search(time_limit_s=10.0, relaxed=around, around=around, free=free, radius=radius)
    upper = np.minimum(reduced.module_limit, 3.0).astype(int)  # no cheapest point has more
    counts = np.array(list(itertools.product(*(range(item + 1) for item in upper))))
    counts = counts[np.abs(counts - around[: master.modules]).sum(axis=1) <= radius]
    counts = counts[counts.sum(axis=1) >= 3]
    if reduced.explicit:
        kinds = np.eye(reduced.edges)[reduced.module_edge]
        counts = counts[(counts @ kinds <= 1).all(axis=1)]
    assert match.is_infeasible == (not len(counts))
    if len(counts):
        lower = min(reduced.purchase_cost(count) for count in counts)
        assert float(master.cost @ match.points[0]) == pytest.approx(lower)
        assert np.abs(match.points[0] - around)[: master.modules].sum() <= radius + 1e-6
