"""The shortest routes of the least utilization, against linear programs over the links of each demand."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given, settings
from scipy.optimize import linprog

from planner import load
from planner.contract.design import Decision
from planner_models.traffic import Traffic, check, measure
from planner_models.traffic.designs import optimum
from planner_models.traffic.designs.column_generation import column_generation
from planner_models.traffic.designs.path_flows import shortest_routes
from planner_models.traffic.designs.path_flows.shortest_routes import shorten
from planner_models.traffic.plan.plan import Routing
from tests.models.traffic.networks import network, problems


def least_length(problem: Traffic, utilization: float) -> float:
    """Return the least sum of routing metric times load within that utilization, by a program of its own."""
    nodes, links, demands = len(problem.nodes), len(problem.links), len(problem.demands)
    incidence = np.zeros((nodes, links))
    np.add.at(incidence, (problem.tail, np.arange(links)), 1.0)
    np.add.at(incidence, (problem.head, np.arange(links)), -1.0)
    supply = np.zeros((demands, nodes))
    np.add.at(supply, (np.arange(demands), problem.source), problem.rate_mbps)
    np.add.at(supply, (np.arange(demands), problem.target), -problem.rate_mbps)
    solution = linprog(
        np.tile(problem.weight, demands),
        A_ub=sp.hstack([sp.eye_array(links)] * demands),
        b_ub=problem.capacity_mbps * utilization,
        A_eq=sp.block_diag([incidence] * demands),
        b_eq=supply.ravel(),
    )
    return float(solution.fun)


def length(problem: Traffic, decision: Decision[Routing]) -> float:
    """Return the sum of routing metric times load of a plan."""
    assert decision.plan is not None
    return float(problem.weight @ decision.plan.links["load_mbps"].to_numpy(float))


@settings(max_examples=15)
@given(problems(max_nodes=6, max_demands=6))
def test_no_plan_of_the_same_utilization_is_shorter(problem: Traffic) -> None:
    problem = problem.scale_demands(0.05)
    before = column_generation.route(problem)
    assume((before.proof.objective or 0.0) >= 1 and before.plan is not None)
    assert before.plan is not None
    after = shorten(problem, before)
    assert after.plan is not None
    check(problem, after.plan)
    assert measure(problem, after.plan, None)["delivered_mbps"] == pytest.approx(problem.rate_mbps.sum())
    busiest = float(before.plan.links["utilization"].max())
    assert float(after.plan.links["utilization"].max()) <= busiest * (1 + 1e-9)
    assert length(problem, after) <= length(problem, before)
    assert length(problem, after) <= least_length(problem, busiest * (1 + 1e-7)) * (1 + 1e-5) + 1e-6
    assert after.proof == before.proof


def test_only_what_the_busiest_link_needs_takes_a_detour() -> None:
    links = [("s", "t", 10.0), ("s", "a", 10.0), ("a", "t", 10.0), ("t", "u", 2.0)]
    problem = network(links, [("s", "t", 6.0), ("t", "u", 1.0)])
    before = column_generation.route(problem)
    after = shorten(problem, before)
    assert after.plan is not None
    # half of the last link's capacity is used, so the direct link may carry 5, and 1 takes two links
    assert after.plan.links["load_mbps"].tolist() == pytest.approx([5, 1, 1, 1])


def test_on_too_many_links_the_plan_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shortest_routes, "MAX_SIMPLEX_LINKS", 3)
    links = [("s", "t", 10.0), ("s", "a", 10.0), ("a", "t", 10.0), ("t", "u", 2.0)]
    problem = network(links, [("s", "t", 6.0), ("t", "u", 1.0)])
    before = column_generation.route(problem)
    assert shorten(problem, before) is before


def test_plans_of_a_backbone_are_shorter_than_those_of_the_linear_program() -> None:
    problem = load("traffic/germany50").make_problem()
    ours, other = optimum.route(problem), optimum.route(problem, method="lp")
    assert ours.plan is not None
    assert other.plan is not None
    check(problem, ours.plan)
    ends = [measure(problem, item.plan, None) for item in (ours, other)]
    assert ends[0]["mean_path_stretch"] < ends[1]["mean_path_stretch"]
    assert ends[0]["max_utilization"] == pytest.approx(ends[1]["max_utilization"], rel=1e-6)
    assert ours.proof.objective == ours.proof.bound == pytest.approx(problem.rate_mbps.sum())
