"""Later starts of the search for plans, and the current plan beside the best one."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from planner.options import Options
from planner_models.capacity.designs.network_design.design import _Search, reduce_instance
from planner_models.capacity.designs.network_design.incumbent import Incumbent
from planner_models.capacity.designs.network_design.network import Network
from planner_models.capacity.designs.network_design.plan_search import ArcChoice
from tests.models.capacity.designs.network_design.instances import can_route
from tests.models.capacity.designs.network_design.test_design import dense


@pytest.mark.slow
def test_a_later_start_is_a_plan_and_keeps_the_best_one() -> None:
    reduction = reduce_instance(dense(5), merge=True)
    full = _Search(reduction, Options(time_limit_s=30.0), None)
    full.cutsets.add_node_rows()
    full.plans.plan_first()
    relaxed = full.relaxation.tighten()
    assert relaxed is not None
    starts = set()
    for _ in range(4):
        assert full.incumbent.best is not None
        before = full.incumbent.best.value
        full.search.start_anew(relaxed)
        current = full.incumbent.current
        assert current is not None
        counts = current.point[: reduction.instance.modules]
        assert can_route(reduction.instance, counts, reduction.instance.rate)
        assert current.value == pytest.approx(reduction.instance.purchase_cost(counts))
        assert full.incumbent.best.value <= min(before, current.value)
        starts.add(counts.tobytes())
    assert len(starts) > 1


def test_only_plans_better_than_the_best_one_are_reported() -> None:
    reported: list[tuple[float | None, float]] = []
    incumbent = Incumbent(
        bound=0.0,
        step=0.0,
        gap=0.0,
        time_limit_s=None,
        report=lambda best, bound: reported.append((best, bound)),
    )
    assert incumbent.offer(np.zeros(1), 5.0)
    incumbent.current = None
    assert incumbent.offer(np.ones(1), 7.0)
    assert incumbent.value == 7.0
    assert not incumbent.offer(np.ones(1), 7.0)
    assert incumbent.offer(np.ones(1), 6.0)
    assert incumbent.best is not None
    assert incumbent.best.value == 5.0
    assert incumbent.offer(np.ones(1), 4.0)
    assert reported == [(5.0, 0.0), (4.0, 0.0)]


def test_detours_are_those_of_shortest_paths_by_way_of_an_arc() -> None:
    instance = reduce_instance(dense(6), merge=True).instance
    network = Network(instance)
    rng = np.random.default_rng(3)
    lengths, usable = rng.uniform(1.0, 3.0, network.capacities), rng.random(instance.edges) < 0.7
    graph = nx.MultiDiGraph()
    graph.add_nodes_from(range(network.nodes))
    for arc in np.flatnonzero(usable[network.arc_edge]):
        length = lengths[network.arc_capacity[arc]]
        graph.add_edge(int(network.arc_tail[arc]), int(network.arc_head[arc]), weight=length)
    detours = network.detours(lengths, usable)
    for row, root in enumerate(network.roots.tolist()):
        distance = nx.single_source_dijkstra_path_length(graph, root)
        for arc in range(network.arcs):
            tail, head = int(network.arc_tail[arc]), int(network.arc_head[arc])
            if not usable[network.arc_edge[arc]] or tail not in distance:
                assert detours[row, arc] == np.inf
                continue
            expected = distance[tail] + lengths[network.arc_capacity[arc]] - distance[head]
            assert detours[row, arc] == pytest.approx(expected)


@pytest.mark.slow
def test_a_plan_stays_feasible_on_chosen_arcs_and_no_plan_on_them_is_cheaper_than_the_least_cost() -> None:
    reduction = reduce_instance(dense(5), merge=True)
    full = _Search(reduction, Options(time_limit_s=30.0), None)
    full.cutsets.add_node_rows()
    full.plans.plan_first()
    relaxed = full.relaxation.tighten()
    plan = full.incumbent.best
    assert relaxed is not None
    assert plan is not None
    edges = full.instance.edges
    choice = ArcChoice(full.feasibility, np.ones(edges))
    none, program = np.zeros(edges, dtype=bool), full.compact
    assert program.has_flow
    arcs = choice.choose(plan, none)
    assert arcs is not None
    assert not arcs.all()
    fixed = np.ones(program.columns, dtype=bool)
    fixed[: program.modules] = False
    match = program.search(time_limit_s=10.0, relaxed=relaxed, free=fixed, around=plan.point, arcs=arcs)
    assert program.cost @ match.points[0] == pytest.approx(plan.value)
    arcs = choice.choose(plan, ~none)
    lowest_match = program.search(time_limit_s=10.0, relaxed=relaxed)
    result = program.search(time_limit_s=10.0, relaxed=relaxed, arcs=arcs)
    value = float(program.cost @ lowest_match.points[0])
    assert value - 1e-6 <= program.cost @ result.points[0] <= plan.value + 1e-6
