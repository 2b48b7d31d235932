"""Moved traffic: what could stay on its routes and does not, against largest flows of networkx."""

from __future__ import annotations

import itertools

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from planner_models.traffic import Routing, Traffic, measure
from planner_models.traffic.designs import ecmp
from planner_models.traffic.designs.optimum import optimum
from planner_models.traffic.plan.moved_traffic import PresentFlow, largest_flows, measure_moved_share
from planner_models.traffic.plan.plan import routing_by_demand, routing_by_target
from tests.models.traffic.networks import both_ways, network, problems

SQUARE = network(
    both_ways([("a", "b", 10.0), ("b", "d", 10.0), ("a", "c", 10.0), ("c", "d", 10.0)]),
    [("a", "d", 8.0), ("b", "d", 2.0)],
)


def on(problem: Traffic, *flows: tuple[int, str, float]) -> Routing:
    """Return the plan with Mbit/s of demands on the paths whose nodes are the letters of a word."""
    labels = problem.link_labels
    rows = [
        (k, labels.index(f"{u}->{v}"), rate) for k, word, rate in flows for u, v in itertools.pairwise(word)
    ]
    demand, link, rate = (list(column) for column in zip(*rows, strict=True))
    shape = (len(problem.demands), len(problem.links))
    return routing_by_demand(problem, sp.coo_array((rate, (demand, link)), shape=shape))


def moved(problem: Traffic, plan: Routing, before: Routing) -> float:
    share = measure_moved_share(problem, plan, before)
    assert share is not None
    assert measure(problem, plan, before)["moved_share"] == share
    return share


BEFORE = on(SQUARE, (0, "abd", 8.0), (1, "bd", 2.0))


def test_share_of_what_could_stay() -> None:
    assert moved(SQUARE, BEFORE, BEFORE) == 0.0
    half = on(SQUARE, (0, "abd", 4.0), (0, "acd", 4.0), (1, "bd", 2.0))
    assert moved(SQUARE, half, BEFORE) == pytest.approx(0.4)
    assert moved(SQUARE, BEFORE, half) == pytest.approx(0.4)
    assert measure(SQUARE, half, None)["moved_share"] is None


def test_growth_in_the_same_shares_moves_nothing() -> None:
    half = on(SQUARE, (0, "abd", 4.0), (0, "acd", 4.0), (1, "bd", 2.0))
    grown = SQUARE.with_rates(np.array([10.0, 1.0]))
    same = on(grown, (0, "abd", 5.0), (0, "acd", 5.0), (1, "bd", 1.0))
    assert moved(grown, same, half) == 0.0


def test_what_is_shed_or_new_or_lost_its_links_has_not_moved() -> None:
    shed = on(SQUARE, (0, "abd", 3.0), (1, "bd", 2.0))
    assert moved(SQUARE, shed, BEFORE) == 0.0
    # what was shed before is new now, wherever it goes
    assert moved(SQUARE, on(SQUARE, (0, "abd", 3.0), (0, "acd", 5.0), (1, "bd", 2.0)), shed) == 0.0
    links = SQUARE.links[np.array(SQUARE.link_labels) != "a->b"]
    cut = Traffic.from_tables({"links": links, "demands": SQUARE.demands})
    assert moved(cut, on(cut, (0, "acd", 8.0), (1, "bd", 2.0)), BEFORE) == 0.0
    assert moved(cut, on(cut, (0, "acd", 8.0), (1, "bacd", 2.0)), BEFORE) == 1.0


def test_nothing_can_stay() -> None:
    quiet = SQUARE.with_rates(np.zeros(2))
    empty = routing_by_demand(quiet, sp.coo_array((2, len(quiet.links))))
    assert measure_moved_share(quiet, empty, BEFORE) is None
    assert measure_moved_share(SQUARE, BEFORE, empty) is None


@settings(max_examples=25)
@given(problems(max_nodes=5, max_demands=4), st.integers(0, 2**32 - 1))
def test_largest_flows_are_those_of_networkx(problem: Traffic, seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = (len(problem.demands), len(problem.links))
    capacity = rng.integers(0, 4, shape).astype(float)
    result = largest_flows(problem, sp.csr_array(capacity))
    for k in range(shape[0]):
        graph = nx.DiGraph()
        graph.add_nodes_from(range(len(problem.nodes)))
        for e, amount in enumerate(capacity[k].tolist()):
            item, other = int(problem.tail[e]), int(problem.head[e])
            before = graph.get_edge_data(item, other, {"capacity": 0.0})["capacity"]
            graph.add_edge(item, other, capacity=before + amount)
        expected = nx.maximum_flow_value(graph, int(problem.source[k]), int(problem.target[k]))
        assert result[k] == pytest.approx(expected, abs=1e-9)


@settings(max_examples=25)
@given(problems(max_nodes=5, max_demands=4))
def test_plans_by_target_and_by_demand_have_moved_the_same(problem: Traffic) -> None:
    before, after = (
        design.plan for design in (ecmp.route(problem), optimum.route(problem, objective="utilization"))
    )
    assert before is not None
    assert after is not None
    share = measure_moved_share(problem, after, before)
    if share is None:
        return
    assert 0 <= share <= 1 + 1e-9
    row = np.searchsorted(problem.targets, problem.find_nodes(before.flows["target"]))
    link = [problem.link_labels.index(name) for name in _labels(problem, before.flows)]
    flow = sp.coo_array(
        (before.flows["rate_mbps"], (row, link)), shape=(len(problem.targets), len(problem.links))
    )
    by_target = routing_by_target(problem, flow)
    present, same = PresentFlow.of(problem, before), PresentFlow.of(problem, by_target)
    assert same.total_mbps == pytest.approx(present.total_mbps)


def _labels(problem: Traffic, flows: pd.DataFrame) -> list[str]:
    names = []
    for row in flows.to_dict("records"):
        name = f"{row['tail']}->{row['head']}"
        names.append(name if name in problem.link_labels else f"{name}#{int(row['parallel'])}")
    return names
