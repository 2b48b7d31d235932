"""OSPF areas against routers that are simulated one by one, and the harm that areas do."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
import pytest

from planner.contract.proof import Status
from planner.errors import InputError
from planner.options import Options
from planner_models.traffic import Traffic, check, measure
from planner_models.traffic.designs import ecmp, ospf_areas
from planner_models.traffic.plan.plan import Routing
from tests.models.traffic.designs.grouped_networks import (
    distance,
    draw,
    evenly,
    first_hops,
    graph_of,
    grouped,
    simulate,
)

AREAS = {"a": "1", "b": "2", "x": "0", "y": "0", "z": "0", "c": "1"}
"""Area 1 is a and c behind x and y; area 2 is b behind z."""
LINKS = [("a", "x", 1.0), ("c", "y", 1.0), ("a", "c", 9.0), ("x", "y", 1.0), ("x", "z", 1.0), ("z", "b", 1.0)]


class Routers:
    """Routers of OSPF with an area of the group "0"; summaries of nodes or of whole areas."""

    def __init__(self, problem: Traffic, *, by_area: bool) -> None:
        self.problem, self.by_area = problem, by_area
        self.group = dict(zip(problem.nodes["node"], problem.nodes["group"], strict=True))
        self.graphs = {
            area: graph_of(problem, lambda tail, head, area=area: self.area_of(tail, head) == area)
            for area in sorted(set(self.group.values()))
        }
        self.border = {
            area: [n for n in graph if self.group[n] == "0" and graph.degree(n)]
            for area, graph in self.graphs.items()
            if area != "0"
        }

    def area_of(self, tail: str, head: str) -> str | None:
        first, second = self.group[tail], self.group[head]
        if first == second or "0" in (first, second):
            return second if first == "0" else first
        return None

    def announced(self, router: str, target: str) -> float:
        """Return what a border router of the target's area announces to the backbone."""
        graph = self.graphs[self.group[target]]
        if not self.by_area:
            return distance(graph, router, target)
        members = [name for name in self.group if self.group[name] == self.group[target]]
        return max((far for n in members if (far := distance(graph, router, n)) < np.inf), default=np.inf)

    def cost(self, router: str, target: str) -> float:
        """Return the cost that a router of the backbone announces to its other areas."""
        home = self.group[target]
        if home == "0":
            return distance(self.graphs["0"], router, target)
        if router in self.border[home] and (far := self.announced(router, target)) < np.inf:
            return far
        return min(
            distance(self.graphs["0"], router, b) + self.announced(b, target) for b in self.border[home]
        )

    def next_hops(self, router: str, target: str) -> Mapping[str, float]:
        home, own = self.group[target], self.group[router]
        inside = self.graphs[home]
        if distance(inside, router, target) < np.inf:
            return evenly(first_hops(inside, router, target))
        if own == "0":
            if home == "0" or self.drops(router, target):
                return {}
            border, cost = self.border[home], self.announced
        else:
            border, cost = self.border[own], self.cost
        graph = self.graphs[own]
        sums = {b: distance(graph, router, b) + cost(b, target) for b in border}
        least = min(sums.values(), default=np.inf)
        if least == np.inf:
            return {}
        ways = [first_hops(graph, router, b) for b, total in sums.items() if total <= least * (1 + 1e-9)]
        return evenly(set().union(*ways))

    def drops(self, router: str, target: str) -> bool:
        home = self.group[target]
        return self.by_area and router in self.border[home] and self.announced(router, target) < np.inf


def arriving(problem: Traffic, plan: Routing) -> tuple[np.ndarray, np.ndarray]:
    shed = np.zeros(len(problem.demands))
    if plan.shed is not None:
        shed[problem.find_demands(plan.shed)] = plan.shed["rate_mbps"]
    return 1 - shed, plan.links["load_mbps"].to_numpy(float)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("summaries", ["nodes", "areas"])
def test_traffic_goes_where_routers_send_it(seed: int, summaries: str) -> None:
    problem = draw(seed, ["0", "1", "2"], between=[("0", "1"), ("0", "2"), ("1", "2")])
    decision = ospf_areas.route(problem, summaries=summaries)
    assert decision.plan is not None
    arrived, load = simulate(problem, Routers(problem, by_area=summaries == "areas").next_hops)
    arrives, carried = arriving(problem, decision.plan)
    np.testing.assert_allclose(arrives, arrived, atol=1e-9)
    np.testing.assert_allclose(carried, load, atol=1e-9)
    assert "demand" not in set(check(problem, decision.plan).frame["limit"])


def test_a_path_within_the_area_comes_first_however_long() -> None:
    problem = grouped(AREAS, LINKS, [("a", "c")])
    areas, plain = ospf_areas.route(problem).plan, ecmp.route(problem).plan
    assert areas is not None
    assert plain is not None
    assert measure(problem, areas, None)["mean_path_stretch"] == pytest.approx(9 / 3)
    assert measure(problem, plain, None)["mean_path_stretch"] == pytest.approx(1.0)


def test_a_summary_of_the_whole_area_stretches_paths_to_it() -> None:
    """From b, c is nearest behind y, but x and y announce the same distance, that of their farthest node."""
    problem = grouped(AREAS, [*LINKS, ("y", "z", 1.0)], [("b", "c")])
    by_node, by_area = (ospf_areas.route(problem, summaries=how).plan for how in ("nodes", "areas"))
    assert by_node is not None
    assert by_area is not None
    assert measure(problem, by_node, None)["mean_path_stretch"] == pytest.approx(1.0)
    assert measure(problem, by_area, None)["mean_path_stretch"] == pytest.approx((12 + 3) / 2 / 3)


def test_a_partitioned_area_loses_traffic_where_its_summary_hides_the_partition() -> None:
    apart = [link for link in LINKS if link[:2] != ("a", "c")]
    problem = grouped(AREAS, apart, [("b", "c"), ("b", "a")])
    by_node, by_area = (ospf_areas.route(problem, summaries=how).plan for how in ("nodes", "areas"))
    assert by_node is not None
    assert by_node.shed is None
    assert by_area is not None
    assert by_area.shed is not None
    assert by_area.shed[["source", "target"]].to_numpy().tolist() == [["b", "c"]]
    refused = ospf_areas.route(problem, summaries="areas", options=Options(service="all"))
    assert refused.plan is None
    assert refused.proof.status is Status.UNDECIDED
    assert refused.proof.reasons == ("its routers drop 1 Mbit/s for want of a route",)


def test_links_between_two_areas_carry_nothing_and_are_named() -> None:
    problem = grouped(AREAS, [*LINKS, ("a", "b", 0.1)], [("a", "b")])
    plan = ospf_areas.route(problem).plan
    assert plan is not None
    carried = plan.links.set_index(["tail", "head"])["load_mbps"]
    assert carried["a", "b"] == 0
    assert carried["a", "x"] == carried["z", "b"] == 1
    told = ospf_areas.describe_areas(problem, {})
    assert told == "2 links between two areas other than the backbone carry nothing"


def test_one_area_is_plain_ospf() -> None:
    problem = draw(3, ["0", "1"], between=[("0", "1")])
    alike = Traffic.from_tables(
        {**problem.to_tables(), "nodes": problem.nodes.assign(group="all")[["node", "group"]]}
    )
    areas, plain = ospf_areas.route(alike).plan, ecmp.route(alike).plan
    assert areas is not None
    assert plain is not None
    pd.testing.assert_frame_equal(areas.links, plain.links)
    assert ospf_areas.describe_areas(alike, {}) == (
        "no group of nodes is the backbone, so that all nodes are in one area"
    )


def test_a_backbone_that_is_no_group_is_an_input_error() -> None:
    problem = grouped(AREAS, LINKS, [("a", "b")])
    with pytest.raises(InputError, match="backbone is '00', no group of nodes; did you mean '0'"):
        ospf_areas.route(problem, backbone="00")
