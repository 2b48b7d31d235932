"""Latency limits and rules of small demands whose flows join those of large ones to the same target."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from planner_models.traffic import Routing, Traffic, check

LARGE, SMALL = 1e9, 1e-6


def problem_of(limit_ms: float = np.inf, rule: str = "") -> Traffic:
    """Return a problem with two ways from b to d, over c in 2 ms or over e in 20 ms; s sends over c, too."""
    ends = [("s", "c", 1.0), ("c", "d", 1.0), ("b", "c", 1.0), ("b", "e", 10.0), ("e", "d", 10.0)]
    links = pd.DataFrame(ends, columns=["tail", "head", "latency_ms"]).assign(capacity_mbps=2 * LARGE)
    demands = pd.DataFrame({"source": ["s", "b"], "target": "d", "rate_mbps": [LARGE, SMALL]})
    tables = {"links": links, "demands": demands.assign(max_latency_ms=[np.nan, limit_ms])}
    if np.isinf(limit_ms):
        tables["demands"] = demands
    if rule:
        tables["rules"] = pd.DataFrame({"source": ["b"], "target": ["d"], "rule": [rule], "node": ["e"]})
    return Traffic.from_tables(tables)


def to_target(problem: Traffic, over_e_mbps: float) -> Routing:
    """Return flows to d where b sends so much over e, and the rest over c."""
    flow = [LARGE, LARGE + SMALL - over_e_mbps, SMALL - over_e_mbps, over_e_mbps, over_e_mbps]
    load = np.array(flow)
    ends = problem.links[["tail", "head"]].assign(parallel=1)
    flows = ends.assign(target="d", rate_mbps=load)
    links = ends.assign(load_mbps=load, utilization=load / problem.capacity_mbps)
    return Routing(flows=flows[load > 0], links=links)


@pytest.mark.parametrize(
    ("over_e", "limits"), [(0.0, []), (1e-8, []), (1e-3, ["latency"]), (0.5, ["latency"]), (1.0, ["latency"])]
)
def test_a_small_demand_that_takes_a_long_way_is_late(over_e: float, limits: list[str]) -> None:
    problem = problem_of(limit_ms=5.0)
    frame = check(problem, to_target(problem, over_e * SMALL)).frame
    assert frame["limit"].tolist() == limits
    if limits:
        assert frame[["where", "amount", "allowed"]].to_numpy().tolist() == [["b->d", 20.0, 5.0]]


@pytest.mark.parametrize(("limit_ms", "is_late"), [(20.0, False), (20.0 * (1 - 5e-7), False), (19.999, True)])
def test_latency_is_compared_with_its_limit(limit_ms: float, is_late: bool) -> None:
    problem = problem_of(limit_ms=limit_ms)
    assert len(check(problem, to_target(problem, SMALL))) == is_late


@pytest.mark.parametrize(("over_e", "is_broken"), [(0.0, False), (1e-8, False), (1e-3, True), (1.0, True)])
def test_a_small_demand_that_passes_a_node_to_avoid_breaks_its_rule(over_e: float, is_broken: bool) -> None:
    problem = problem_of(rule="avoid")
    assert len(check(problem, to_target(problem, over_e * SMALL))) == is_broken
