"""Exits between networks against routers that exchange routes in rounds, and what each exchange is worth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest

from planner_models.traffic import Traffic, check, measure
from planner_models.traffic.designs import bgp_exits, ecmp
from tests.models.traffic.designs.grouped_networks import (
    distance,
    draw,
    evenly,
    first_hops,
    graph_of,
    grouped,
    simulate,
)

ROUTE = {
    "hot_potato": bgp_exits.route_hot_potato,
    "med": bgp_exits.route_med,
    "exchanged_cost": bgp_exits.route_exchanged_cost,
}
TWO = {"w": "A", "e": "A", "W": "B", "E": "B"}
"""Networks A and B in the west and in the east, with an exit at both ends."""
LINKS = [("w", "e", 3.0), ("W", "E", 9.0), ("w", "W", 1.0), ("e", "E", 1.0)]


@dataclass(frozen=True)
class Route:
    """Route of a router: networks to the target, what it announces, and its next hops."""

    length: int
    announced: float
    hops: frozenset[str]


class Routers:
    """Routers that exchange routes until none changes."""

    def __init__(self, problem: Traffic, rule: str) -> None:
        self.rule = rule
        self.group = dict(zip(problem.nodes["node"], problem.nodes["group"], strict=True))
        self.inside = graph_of(problem, lambda tail, head: self.group[tail] == self.group[head])
        self.exits = [
            (tail, head, weight)
            for tail, head, weight in problem.links[["tail", "head", "weight"]].itertuples(index=False)
            if self.group[tail] != self.group[head]
        ]
        self.routes = {target: self.converge(target) for target in self.group}

    def converge(self, target: str) -> dict[str, Route]:
        routes: dict[str, Route] = {}
        while True:
            fresh = {name: route for name in self.group if (route := self.select(name, target, routes))}
            if fresh == routes:
                return routes
            routes = fresh

    def select(self, router: str, target: str, routes: Mapping[str, Route]) -> Route | None:
        own = self.group[router]
        if own == self.group[target]:
            far = distance(self.inside, router, target)
            return Route(0, far, frozenset(first_hops(self.inside, router, target)))
        offers = [
            (routes[head].length + 1, tail, head, weight, routes[head].announced)
            for tail, head, weight in self.exits
            if self.group[tail] == own and head in routes
        ]
        if not offers:
            return None
        length = min(offer[0] for offer in offers)
        offers = [offer for offer in offers if offer[0] == length]
        if self.rule == "med":
            ranked = {
                group: min(o[4] for o in offers if self.group[o[2]] == group)
                for group in self.group.values()
                if any(self.group[o[2]] == group for o in offers)
            }
            offers = [offer for offer in offers if offer[4] == ranked[self.group[offer[2]]]]
        costs = [distance(self.inside, router, tail) + self.added(w, a) for _, tail, _, w, a in offers]
        least = min(costs)
        hops: set[str] = set()
        for (_, tail, head, _, _), cost in zip(offers, costs, strict=True):
            if cost == least:
                hops |= {head} if tail == router else first_hops(self.inside, router, tail)
        return Route(length, least, frozenset(hops))

    def added(self, weight: float, announced: float) -> float:
        return weight + announced if self.rule == "exchanged_cost" else 0.0

    def next_hops(self, router: str, target: str) -> Mapping[str, float]:
        return evenly(set(self.routes[target][router].hops))


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("rule", ROUTE)
def test_traffic_goes_where_routers_send_it(seed: int, rule: str) -> None:
    problem = draw(seed, ["A", "B", "C"], between=[("A", "B"), ("B", "C")])
    plan = ROUTE[rule](problem).plan
    assert plan is not None
    assert plan.shed is None
    _, load = simulate(problem, Routers(problem, rule).next_hops)
    np.testing.assert_allclose(plan.links["load_mbps"], load, atol=1e-9)
    assert "demand" not in set(check(problem, plan).frame["limit"])


@pytest.mark.parametrize("seed", range(12))
def test_exchanged_costs_are_shortest_paths_between_two_networks(seed: int) -> None:
    """But for traffic within a network, which stays in it, and a way that leaves a network twice."""
    problem = draw(seed, ["A", "B"], between=[("A", "B")])
    plan = bgp_exits.route_exchanged_cost(problem).plan
    assert plan is not None
    group = dict(zip(problem.nodes["node"], problem.nodes["group"], strict=True))
    cost = dict.fromkeys(range(len(problem.demands)), 0.0)
    weight = problem.links.set_index(["tail", "head"])["weight"]
    for row in plan.flows.itertuples(index=False):
        demand = int(problem.demands.query("source == @row.source and target == @row.target").index[0])
        cost[demand] += row.rate_mbps * float(np.min(weight[row.tail, row.head]))
    layered = graph_of(problem, lambda tail, head: group[tail] == group[head])
    for demand, (source, target) in enumerate(problem.demands[["source", "target"]].to_numpy()):
        if group[source] == group[target]:
            continue
        crossing = min(
            distance(layered, source, tail) + w + distance(layered, head, target)
            for tail, head, w in problem.links[["tail", "head", "weight"]].itertuples(index=False)
            if group[tail] == group[source] and group[head] == group[target]
        )
        assert cost[demand] == pytest.approx(crossing)


def test_hot_potato_harms_the_next_network_and_a_ranking_harms_the_first() -> None:
    problem = grouped(TWO, LINKS, [("w", "E")])
    load = {
        name: route(problem).plan.links.set_index(["tail", "head"])["load_mbps"]
        for name, route in ROUTE.items()
    }
    assert load["hot_potato"]["W", "E"] == 1
    assert load["med"]["w", "e"] == load["exchanged_cost"]["w", "e"] == 1
    longer = grouped(TWO, [("w", "e", 30.0), *LINKS[1:]], [("w", "E")])
    load = {
        name: route(longer).plan.links.set_index(["tail", "head"])["load_mbps"]
        for name, route in ROUTE.items()
    }
    assert load["med"]["w", "e"] == 1
    assert load["hot_potato"]["W", "E"] == load["exchanged_cost"]["W", "E"] == 1


def test_one_network_is_plain_ospf() -> None:
    problem = draw(5, ["A", "B"], between=[("A", "B")])
    alike = Traffic.from_tables({**problem.to_tables(), "nodes": problem.nodes[["node"]]})
    plain = ecmp.route(alike).plan
    assert plain is not None
    for route in ROUTE.values():
        plan = route(alike).plan
        assert plan is not None
        pd.testing.assert_frame_equal(plan.links, plain.links)
    told = "all nodes are in one group, so that no traffic leaves its network"
    assert bgp_exits.describe_networks(alike, {}) == told
    assert bgp_exits.describe_networks(problem, {}) == ""


def test_a_network_that_fell_apart_does_not_meet_itself_through_another() -> None:
    apart = [link for link in LINKS if link[:2] != ("w", "e")]
    problem = grouped(TWO, apart, [("w", "e"), ("w", "E")])
    for route in ROUTE.values():
        plan = route(problem).plan
        assert plan is not None
        assert plan.shed is not None
        assert plan.shed[["source", "target"]].to_numpy().tolist() == [["w", "e"]]
        assert measure(problem, plan, None)["delivered_mbps"] == pytest.approx(1.0)
