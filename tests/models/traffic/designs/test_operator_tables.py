"""Every design on networks with classes, latency limits, tunnels, rules and failures, in all combinations."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

import planner
from planner.errors import PlannerError
from planner_models.traffic import SYSTEM, Traffic, measure
from planner_models.traffic.designs import concurrent_flow_fptas, utility_maximization
from planner_models.traffic.designs.optimum import optimum
from tests.models.traffic.networks import both_ways, network
from tests.models.traffic.operator_tables import draw_tables

DESIGNS = [design.name for design in SYSTEM.designs]
VARIANTS = [
    *[("optimum", {"objective": field}) for field in ("concurrent", "utilization", "total", "cost")],
    *[("fptas", {"objective": field}) for field in ("concurrent", "utilization")],
    *[("utility", {"fairness": "max-min", "of": field}) for field in ("share", "rate", "weighted")],
    ("teavar", {"loss": "total"}),
    ("ffc", {"k": 2}),
    ("oblivious", {"paths": 2}),
]
"""Other objectives and parameters than the defaults."""
SEEDS = range(6)
MORE_SEEDS = range(6, 400)


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


# --- fairness among the classes of a pair, against networks where each class has its own source -------------

TRIANGLE = both_ways([("a", "b", 10.0), ("b", "c", 6.0), ("a", "c", 4.0)])
OFFERED = [
    ("a", "c", 9.0, "gold"),
    ("a", "c", 3.0, "bronze"),
    ("b", "c", 5.0, "bronze"),
    ("c", "a", 2.0, "gold"),
]


def with_classes() -> Traffic:
    plain = network(TRIANGLE, [("a", "c", 1.0)])
    return Traffic(
        nodes=plain.nodes,
        links=plain.links,
        demands=pd.DataFrame(OFFERED, columns=["source", "target", "rate_mbps", "class"]),
        classes=pd.DataFrame({"class": ["gold", "bronze"], "priority": [1, 2]}),
    )


def with_sources() -> Traffic:
    """Return the network in which each demand starts at a node of its own behind its source."""
    entries = [(f"{source}{index}", source, 1000.0) for index, (source, *_) in enumerate(OFFERED)]
    return network(
        [*TRIANGLE, *entries],
        [(f"{source}{index}", target, rate) for index, (source, target, rate, _) in enumerate(OFFERED)],
    )


@pytest.mark.parametrize(
    "parameters",
    [{"fairness": "proportional"}, *({"fairness": "max-min", "of": field} for field in ("share", "rate"))],
    ids=str,
)
def test_each_class_is_a_demand_of_its_own(parameters: dict[str, Any]) -> None:
    ours = utility_maximization.route(with_classes(), **parameters)
    apart = utility_maximization.route(with_sources(), **parameters)
    assert ours.plan is not None
    assert apart.plan is not None
    figures, others = measure(with_classes(), ours.plan, None), measure(with_sources(), apart.plan, None)
    for name in ("geometric_rate_share", "min_rate_share"):
        assert figures[name] == pytest.approx(others[name], rel=1e-3)


@pytest.mark.parametrize("design", [optimum.route, concurrent_flow_fptas.route])
def test_classes_get_the_same_share_of_the_concurrent_flow(design: Any) -> None:
    decision = design(with_classes(), objective="concurrent")
    assert decision.plan is not None
    assert decision.proof.objective == pytest.approx(10 / 17, rel=0.06)  # both links into c, of 17 Mbit/s
    assert measure(with_classes(), decision.plan, None)["concurrent_flow"] == pytest.approx(
        decision.proof.objective
    )
