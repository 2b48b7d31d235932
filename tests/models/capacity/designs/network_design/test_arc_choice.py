"""Arcs that flow may take near a plan: their detours, and that the plan stays feasible."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from planner.options import Options
from planner_models.capacity.designs.network_design.arc_choice import ArcChoice
from planner_models.capacity.designs.network_design.design import _Search
from planner_models.capacity.designs.network_design.network import Network
from planner_models.capacity.designs.network_design.reduction import reduce_instance
from tests.models.capacity.designs.network_design.test_design import dense


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
