"""Reservations: replayed one after another by another program, and small cases by hand."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import InputError
from planner.options import Options
from planner_models.traffic import Traffic, check, measure
from planner_models.traffic.designs.cspf import route
from planner_models.traffic.designs.reserved_paths import Order, Tie
from planner_models.traffic.plan.plan import Routing
from tests.models.traffic.networks import network, problems

WEAK = 7


def with_priorities(problem: Traffic, setup: list[int], hold: list[int]) -> Traffic:
    demands = problem.demands.assign(setup_priority=setup, hold_priority=hold)
    return Traffic.from_tables({**problem.to_tables(), "demands": demands})


@st.composite
def reservations(draw: st.DrawFn) -> Traffic:
    problem = draw(problems(max_nodes=6, max_demands=8))
    count = len(problem.demands)
    setup = draw(st.lists(st.integers(0, 7), min_size=count, max_size=count))
    hold = [draw(st.integers(0, limit)) for limit in setup]
    return with_priorities(problem, setup, hold)


def plan_of(problem: Traffic, **parameters: Any) -> Routing:
    plan = route(problem, **parameters).plan
    assert plan is not None
    assert check(problem, plan).of_limits({"capacity"}).frame.empty
    return plan


def paths_of(problem: Traffic, plan: Routing) -> dict[int, list[int]]:
    """Return the links of each admitted demand in order, from its flows on links."""
    links = {
        (tail, head, parallel): row
        for row, (tail, head, parallel) in enumerate(
            zip(problem.links["tail"], problem.links["head"], problem.parallel, strict=True)
        )
    }
    flows = plan.flows.assign(parallel=plan.flows.get("parallel", 1))
    paths = {}
    for row, demand in enumerate(problem.demands.itertuples()):
        own = flows[(flows["source"] == demand.source) & (flows["target"] == demand.target)]
        if not len(own):
            continue
        assert own["rate_mbps"].to_numpy(float) == pytest.approx(demand.rate_mbps), "whole, on one path"
        leaves = {flow.tail: links[flow.tail, flow.head, flow.parallel] for flow in own.itertuples()}
        assert len(leaves) == len(own)
        path, node = [], demand.source
        while node != demand.target:
            path.append(leaves[node])
            node = problem.links["head"].iloc[path[-1]]
        paths[row] = path
    return paths


def shortest(problem: Traffic, room: np.ndarray, demand: int) -> float:
    """Return the length of the shortest path over links with room; inf without one."""
    graph = nx.DiGraph()
    graph.add_nodes_from(problem.nodes["node"])
    for row in np.flatnonzero(room).tolist():
        link = problem.links.iloc[row]
        known = graph.get_edge_data(link["tail"], link["head"], {"weight": np.inf})["weight"]
        graph.add_edge(link["tail"], link["head"], weight=min(known, link["weight"]))
    source, target = problem.demands[["source", "target"]].iloc[demand]
    try:
        return float(nx.shortest_path_length(graph, source, target, weight="weight"))
    except nx.NetworkXNoPath:
        return np.inf


@given(reservations(), st.sampled_from(["first", "least_filled", "most_filled"]))
def test_each_takes_a_shortest_path_over_the_links_with_room_in_its_turn(problem: Traffic, tie: Tie) -> None:
    paths = paths_of(problem, plan_of(problem, tie=tie))
    available = problem.capacity_mbps.copy()
    for demand in np.argsort(problem.setup_priority, kind="stable").tolist():
        room = available >= problem.rate_mbps[demand] - 1e-9
        length = shortest(problem, room, demand)
        if demand in paths:
            assert problem.weight[paths[demand]].sum() == pytest.approx(length)
            available[paths[demand]] -= problem.rate_mbps[demand]
        else:
            assert length == np.inf


@given(reservations())
def test_in_the_order_of_the_table_none_that_is_refused_could_preempt(problem: Traffic) -> None:
    paths = paths_of(problem, plan_of(problem, order="table"))
    for demand in set(range(len(problem.demands))) - set(paths):
        stronger = np.zeros(len(problem.links))
        for other, path in paths.items():
            if problem.hold_priority[other] <= problem.setup_priority[demand]:
                stronger[path] += problem.rate_mbps[other]
        room = problem.capacity_mbps - stronger >= problem.rate_mbps[demand] - 1e-9
        assert shortest(problem, room, demand) == np.inf


def test_what_fits_no_link_is_refused_and_the_rest_is_admitted_whole() -> None:
    problem = network([("r1", "r2", 100.0), ("r2", "r3", 100.0)], [("r1", "r2", 200.0), ("r1", "r3", 60.0)])
    plan = plan_of(problem)
    assert measure(problem, plan, None)["delivered_mbps"] == 60.0
    assert plan.shed is not None
    assert plan.shed["rate_mbps"].tolist() == [200.0]


LADDER = [("a", "b", 10.0), ("b", "c", 10.0), ("a", "x", 10.0), ("x", "b", 10.0)]
WEIGHTS = [1.0, 1.0, 2.0, 2.0]


@pytest.mark.parametrize(
    ("order", "links", "delivered"),
    [
        ("table", LADDER, {("a", "b"): 2, ("a", "c"): 2}),  # the first is moved to the way over x
        ("priority", LADDER, {("a", "b"): 2, ("a", "c"): 2}),
        ("table", LADDER[:2], {("a", "c"): 2}),  # and lost where there is none
    ],
)
def test_a_stronger_reservation_preempts(
    order: Order, links: list[tuple[str, str, float]], delivered: dict[tuple[str, str], int]
) -> None:
    problem = network(links, [("a", "b", 8.0), ("a", "c", 5.0)], weight=WEIGHTS[: len(links)])
    plan = plan_of(with_priorities(problem, [WEAK, 0], [WEAK, 0]), order=order)
    assert plan.flows.groupby(["source", "target"], observed=True).size().to_dict() == delivered


def test_a_strong_hold_keeps_what_a_weak_setup_took() -> None:
    problem = network(LADDER[:2], [("a", "b", 8.0), ("a", "c", 5.0)])
    plan = plan_of(with_priorities(problem, [WEAK, 0], [0, 0]), order="table")
    assert set(zip(plan.flows["source"], plan.flows["target"], strict=True)) == {("a", "b")}


@pytest.mark.parametrize(("tie", "over"), [("first", "x"), ("least_filled", "y"), ("most_filled", "x")])
def test_ties_are_broken_by_what_is_available(tie: Tie, over: str) -> None:
    links = [("a", "x", 10.0), ("x", "b", 20.0), ("a", "y", 20.0), ("y", "b", 20.0)]
    problem = network(links, [("a", "x", 3.0), ("y", "b", 1.0), ("a", "b", 4.0)])
    paths = paths_of(problem, plan_of(problem, tie=tie))
    assert problem.links["head"].iloc[paths[2][0]] == over


def test_latency_limits_and_rules_are_kept() -> None:
    links = [("a", "b", 10.0), ("b", "c", 10.0), ("a", "c", 10.0), ("a", "d", 10.0), ("d", "c", 10.0)]
    frame = pd.DataFrame(links, columns=["tail", "head", "capacity_mbps"]).assign(
        weight=[1.0, 1.0, 9.0, 1.0, 1.0], latency_ms=[5.0, 5.0, 2.0, 1.0, 1.0]
    )
    demands = pd.DataFrame(
        {"source": ["a", "a"], "target": ["c", "b"], "rate_mbps": [6.0, 1.0], "max_latency_ms": [3.0, np.nan]}
    )
    rules = pd.DataFrame({"source": ["a"], "target": ["c"], "rule": ["avoid"], "node": ["d"]})
    problem = Traffic.from_tables({"links": frame, "demands": demands})
    assert paths_of(problem, plan_of(problem))[0] == [3, 4]
    problem = Traffic.from_tables({"links": frame, "demands": demands, "rules": rules})
    assert paths_of(problem, plan_of(problem))[0] == [2]


def test_at_the_time_limit_the_rest_is_shed() -> None:
    problem = network([("a", "b", 10.0)], [("a", "b", 5.0)])
    plan = route(problem, options=Options(time_limit_s=1e-9)).plan
    assert plan is not None
    assert plan.shed is not None
    assert plan.shed["rate_mbps"].tolist() == [5.0]


@pytest.mark.parametrize(
    ("setup", "hold", "fault"),
    [
        (3, 5, "demands row 1: hold_priority is 5, must be at most setup_priority, 3 (0 is the strongest)"),
        (8, 0, "demands row 1: setup_priority is 8.0, must be at most 7"),
        (2.5, 0, "demands row 1: setup_priority is 2.5, must be a whole number"),
    ],
)
def test_bad_priorities_are_refused(setup: float, hold: float, fault: str) -> None:
    problem = network([("a", "b", 10.0)], [("a", "b", 5.0)])
    with pytest.raises(InputError) as error:
        with_priorities(problem, [setup], [hold])  # type: ignore[list-item]
    assert fault in str(error.value)
