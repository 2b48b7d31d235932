"""Paths of plans: what they carry, and what is left of them in another network."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner_models.flows.previous_routes import LEAST_SHARE, PreviousRoutes
from planner_models.graphs.indexing import sum_by_index
from planner_models.traffic import Traffic
from planner_models.traffic.designs.optimum import optimum
from planner_models.traffic.plan import plan as routing
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.plan.verified_flow import verify_flow
from tests.models.traffic.networks import both_ways, network, problems


def as_flows_per_target(problem: Traffic, plan: Routing) -> Routing:
    flow = routing.flow_by_target(problem, plan)
    return replace(routing.routing_by_target(problem, flow), shed=plan.shed)


@pytest.mark.slow
@settings(deadline=None, max_examples=40)
@given(problems(), st.sampled_from([0.5, 3.0, 20.0]), st.booleans())
def test_paths_carry_what_the_plan_delivers(problem: Traffic, factor: float, by_target: bool) -> None:
    problem = problem.routable.scale_demands(factor)
    plan = optimum.route(problem, objective="total").plan
    assert plan is not None
    plan = as_flows_per_target(problem, plan) if by_target else plan
    routes = PreviousRoutes.of(problem, plan)
    paths, served = routes.paths, verify_flow(problem, plan).served_mbps
    carried = sum_by_index(paths.demand, routes.share * problem.rate_mbps[paths.demand], len(served))
    assert carried == pytest.approx(served, rel=1e-4, abs=1e-5 * problem.rate_mbps.max())
    for path, demand in enumerate(paths.demand.tolist()):
        links = paths.link[paths.start[path] : paths.start[path + 1]]
        assert problem.tail[links[0]] == problem.source[demand]
        assert problem.head[links[-1]] == problem.target[demand]
        assert (problem.head[links[:-1]] == problem.tail[links[1:]]).all()
        assert len(np.unique(problem.tail[links])) == len(links)  # no cycle
    on_links = np.repeat(routes.share * problem.rate_mbps[paths.demand], np.diff(paths.start))
    load = sum_by_index(paths.link, on_links, len(problem.links))
    assert (load <= plan.links["load_mbps"].to_numpy(float) * (1 + 1e-6) + 1e-9).all()


def test_paths_over_links_that_are_gone_are_left_out() -> None:
    links = both_ways([("a", "b", 4.0), ("b", "c", 4.0), ("a", "c", 6.0)])
    problem = network(links, [("a", "c", 8.0), ("a", "b", 1.0)])
    plan = optimum.route(problem, objective="total").plan
    assert plan is not None
    less = network([link for link in links if link[:2] != ("b", "c")], [("a", "c", 2.0), ("c", "a", 1.0)])
    routes = PreviousRoutes.of(less, plan)
    assert routes.paths.demand.tolist() == [0]
    assert routes.share[0] == pytest.approx(1 - routes.lost)
    assert LEAST_SHARE < routes.lost < 1
    assert less.link_labels[routes.paths.link[0]] == "a->c"


def test_a_plan_without_any_flow_has_no_paths() -> None:
    problem = network([("a", "b", 1.0)], [("a", "b", 1.0)])
    plan = optimum.route(problem).plan
    assert plan is not None
    empty = replace(plan, flows=plan.flows.iloc[:0])
    assert len(PreviousRoutes.of(problem, empty).share) == 0
