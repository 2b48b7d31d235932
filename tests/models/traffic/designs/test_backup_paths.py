"""Backup paths: every failure is replayed, small networks by hand, and no pair is missed without a trap."""

from __future__ import annotations

import itertools
import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner_models.traffic import Traffic, check, measure
from planner_models.traffic.designs.backup_paths import route
from planner_models.traffic.designs.failure_robust import robust
from planner_models.traffic.plan.failure_outcomes import PlanInFailures
from planner_models.traffic.plan.plan import Routing
from planner_models.traffic.problem.failure_sets import build_failure_set
from tests.models.traffic.networks import both_ways, network, problems


def plan_of(problem: Traffic, **parameters: Any) -> Routing:
    plan = route(problem, **parameters).plan
    assert plan is not None
    assert check(problem, plan).of_limits({"capacity", "guarantees"}).frame.empty
    return plan


def links_on(problem: Traffic, path: str) -> list[int]:
    """Return the links of a path of names, each the first of its parallel links."""
    nodes = json.loads(path)
    ends = list(zip(problem.links["tail"], problem.links["head"], strict=True))
    return [ends.index(pair) for pair in itertools.pairwise(nodes)]


@given(problems(max_nodes=6, max_demands=6), st.sampled_from(["shared", "dedicated"]))
def test_what_is_protected_arrives_in_each_failure_and_nothing_overloads(
    problem: Traffic, bandwidth: str
) -> None:
    plan = plan_of(problem, bandwidth=bandwidth, failures="links")
    failures = build_failure_set(problem, "links")
    after = PlanInFailures.of(problem, plan).deliver(failures)
    assert plan.guarantees is not None
    rate = np.zeros(len(problem.demands))
    rate[problem.find_demands(plan.guarantees)] = plan.guarantees["rate_mbps"]
    for row, down in enumerate(failures.link_down):
        needed = np.where(problem.disconnected_demands(~down), 0.0, rate)
        assert (after[row] >= needed * (1 - 1e-9)).all()


@given(problems(max_nodes=6, max_demands=6))
def test_no_plan_guarantees_more_than_rerouting_can(problem: Traffic) -> None:
    guaranteed = measure(problem, plan_of(problem, failures="links"), None)["guaranteed_mbps"] or 0.0
    best = robust.route(problem, failures="links").proof.bound
    assert best is not None
    assert guaranteed <= best * (1 + 1e-6) + 1e-9


SQUARE = both_ways([("a", "b", 10.0), ("b", "d", 10.0), ("a", "c", 10.0), ("c", "d", 10.0)])


def test_backup_paths_of_demands_that_do_not_fail_together_share_bandwidth() -> None:
    middle = [("a", 10.0), ("b", 10.0), ("c", 6.0)]
    links = both_ways([(end, name, capacity) for name, capacity in middle for end in ("s", "t")])
    problem = network(links, [("s", "a", 6.0), ("s", "b", 6.0)])
    shared = plan_of(problem, bandwidth="shared", failures="links")
    dedicated = plan_of(problem, bandwidth="dedicated", failures="links")
    assert shared.guarantees is not None
    assert shared.guarantees["rate_mbps"].tolist() == [6.0, 6.0]
    assert shared.routes is not None
    assert shared.routes["preference"].tolist() == [0.0, 0.0, 1.0, 1.0]
    assert shared.routes["rate_mbps"].tolist() == [6.0, 6.0, 0.0, 0.0]
    assert dedicated.guarantees is not None
    assert dedicated.guarantees["rate_mbps"].tolist() == [6.0]


def test_links_of_one_risk_are_no_backup_of_each_other() -> None:
    problem = network(SQUARE, [("a", "d", 4.0)])
    together = Traffic.from_tables(
        {
            **problem.to_tables(),
            "failures": [
                {"failure": "duct", "member": "a<->b"},
                {"failure": "duct", "member": "c<->d"},
                {"failure": "fibre", "member": "b<->d"},
            ],
        }
    )
    lines = plan_of(problem, failures="links").guarantees
    assert lines is not None
    assert lines["rate_mbps"].tolist() == [4.0]
    ducts = plan_of(together, failures="table")
    assert ducts.guarantees is not None
    # the duct cuts the demand off, so only the fibre asks for a backup path
    assert ducts.guarantees["rate_mbps"].tolist() == [4.0]
    assert ducts.routes is not None
    first, backup = (set(links_on(together, path)) for path in ducts.routes["path"])
    assert not first & backup


def test_the_first_path_moves_where_it_takes_the_only_bridge_of_two_paths() -> None:
    """A trap: the shortest path s-a-b-t leaves no second one, though s-a-t and s-b-t share no link."""
    ends = [("s", "a", 10.0), ("a", "b", 10.0), ("b", "t", 10.0), ("a", "t", 10.0), ("s", "b", 10.0)]
    problem = network(both_ways(ends), [("s", "t", 5.0)])
    ends = zip(problem.links["tail"], problem.links["head"], strict=True)
    weight = [10.0 if {*pair} in ({"a", "t"}, {"s", "b"}) else 1.0 for pair in ends]
    problem = Traffic.from_tables({**problem.to_tables(), "links": problem.links.assign(weight=weight)})
    plan = plan_of(problem, failures="links")
    assert plan.guarantees is not None
    assert plan.guarantees["rate_mbps"].tolist() == [5.0]


def test_a_demand_without_a_backup_path_is_sent_or_shed() -> None:
    thin = both_ways([("a", "b", 10.0), ("b", "d", 10.0), ("a", "c", 10.0), ("c", "d", 1.0)])
    problem = network(thin, [("a", "d", 4.0)])
    sent = plan_of(problem, failures="links")
    assert sent.guarantees is not None
    assert sent.guarantees.empty
    assert measure(problem, sent, None)["delivered_mbps"] == pytest.approx(4.0)
    shed = plan_of(problem, failures="links", unprotected="shed")
    assert shed.shed is not None
    assert shed.shed["rate_mbps"].tolist() == [4.0]
