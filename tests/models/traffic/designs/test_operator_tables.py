"""Every design on networks with classes, latency limits, tunnels, rules and failures, in all combinations."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest

import planner
from planner.errors import PlannerError
from planner_models.traffic import SYSTEM, Traffic
from planner_models.traffic.designs import optimum
from tests.models.traffic.networks import both_ways, network
from tests.models.traffic.operator_tables import draw_tables

DESIGNS = [design.name for design in SYSTEM.designs]
VARIANTS = [
    *[("optimum", {"objective": one}) for one in ("concurrent", "utilization", "total", "cost")],
    *[("fptas", {"objective": one}) for one in ("concurrent", "utilization")],
    *[("utility", {"fairness": "max-min", "of": one}) for one in ("share", "rate", "weighted")],
    ("teavar", {"loss": "total"}),
    ("ffc", {"k": 2}),
    ("oblivious", {"paths": 2}),
]
"""Other objectives and parameters than the defaults."""
SEEDS = range(12)
MORE_SEEDS = range(12, 400)


def find_faults(seed: int, service: str) -> list[str]:
    """Return the designs whose plan is rejected, or that end in an error, with its text."""
    problem = draw_tables(seed)
    if problem is None:
        return []
    result = planner.compare(problem, designs=DESIGNS, service=service)
    faults = [f"{run.label}: {run.error}" for run in result.runs if run.error is not None]
    for design, parameters in VARIANTS:
        try:
            planner.solve(problem, design=design, service=service, **parameters)
        except PlannerError as error:
            faults.append(f"{design} with {parameters}: {error}")
    return faults


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_every_design_has_a_plan_that_keeps_its_claims(seed: int) -> None:
    assert not find_faults(seed, "best")


@pytest.mark.exhaustive
@pytest.mark.parametrize("service", ["best", "all"])
@pytest.mark.parametrize("seed", MORE_SEEDS)
def test_every_design_has_a_plan_that_keeps_its_claims_also_here(seed: int, service: str) -> None:
    assert not find_faults(seed, service)


def test_classes_whose_limits_no_route_keeps_are_shed() -> None:
    links = both_ways([("a", "b", 10.0), ("b", "c", 10.0)])
    plain = network(links, [("a", "c", 4.0), ("c", "a", 2.0)])
    problem = Traffic(
        nodes=plain.nodes,
        links=plain.links.assign(latency_ms=5.0),
        demands=plain.demands.assign(max_latency_ms=9.0, **{"class": ["gold", "bronze"]}),
        classes=pd.DataFrame({"class": ["gold", "bronze"], "priority": [1, 2]}),
    )
    decision = optimum.route(problem)
    assert decision.plan is not None
    assert decision.plan.shed is not None
    assert decision.plan.shed["rate_mbps"].sum() == pytest.approx(6.0)
    looser = replace(problem, demands=problem.demands.assign(max_latency_ms=10.0))
    assert optimum.route(looser).proof.objective == pytest.approx(6.0)
