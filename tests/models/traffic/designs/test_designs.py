"""Demands that no plan can serve do not stop the others, and are named first; classes that are ignored."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest

import planner
from planner_models.traffic import Traffic
from planner_models.traffic.designs.failure_robust import ffc
from tests.models.traffic.networks import both_ways, network


def with_limit(latency_ms: float) -> Traffic:
    problem = network(
        [("a", "b", 10.0), ("b", "c", 10.0)],
        [("a", "b", 5.0), ("b", "c", 8.0), ("a", "c", 3.0)],
        latency_ms=[5.0, 5.0],
    )
    return replace(problem, demands=problem.demands.assign(max_latency_ms=[100.0, 100.0, latency_ms]))


@pytest.mark.parametrize(("latency_ms", "factor"), [(100.0, 10 / 11), (10.0, 10 / 11), (9.0, 1.25)])
def test_the_concurrent_flow_is_that_of_demands_that_can_be_served(latency_ms: float, factor: float) -> None:
    run = planner.solve(with_limit(latency_ms), design="optimum", objective="concurrent")
    assert run.proof.objective == pytest.approx(factor)  # the link b-c carries 11, or 8
    assert run.proof.bound == pytest.approx(factor)
    assert run.metrics["concurrent_flow"] == pytest.approx(factor)
    if latency_ms < 10:
        assert run.verdict.startswith(
            "1 demand has no path that keeps its latency limit and rules: a->c (3 Mbit/s)."
        )


@pytest.mark.slow
def test_a_demand_beyond_a_hop_limit_is_the_stated_reason_for_zero() -> None:
    run = planner.solve(with_limit(100.0), design="optimum", objective="concurrent", paths=1, max_hops=1)
    assert run.proof.objective == 0.0
    assert "so the concurrent flow is 0; of the others it is 1.25" in run.verdict


def test_ignored_classes_count_alike_whatever_their_weights() -> None:
    square = both_ways([("a", "b", 10.0), ("b", "d", 10.0), ("a", "c", 10.0), ("c", "d", 10.0)])
    problem = network([*square, ("a", "d", 4.0), ("d", "a", 4.0)], [("a", "d", 12.0), ("b", "c", 9.0)])
    plain = ffc.route(problem, failures="links").proof.objective
    classes = pd.DataFrame({"class": ["hi", "lo"], "priority": [1, 2], "weight": [1.0, 50.0]})
    tagged = replace(problem, demands=problem.demands.assign(**{"class": ["lo", "hi"]}), classes=classes)
    ignored = ffc.route(tagged, failures="links", classes="ignored").proof
    assert ignored.objective == pytest.approx(plain)
    assert ignored.bound == pytest.approx(plain)
