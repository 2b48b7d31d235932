"""Demands without a path are shed and listed by every design; strict service proves them infeasible."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner import Options, Status
from planner.contract.design import Design
from planner.runs.evaluation import evaluate
from planner.scenarios.scenario import Entry
from planner_models.traffic import SYSTEM, Traffic, measure
from planner_models.traffic.designs import hedera
from planner_models.traffic.designs.optimum import optimum
from planner_models.traffic.problem.adjustments import adjust
from tests.models.traffic.bounds import optimum_bound
from tests.models.traffic.networks import both_ways, network, problems

FAST: dict[str, dict[str, Any]] = {"weights": {"evaluations": 50}, "hedera_annealing": {"iterations": 5}}
PARTS = network(
    both_ways([("a", "b", 4.0), ("b", "c", 4.0), ("x", "y", 2.0)]),
    [("a", "c", 2.0), ("a", "x", 1.5), ("y", "x", 1.0), ("c", "y", 0.5)],
)


def run_design(problem: Traffic, design: Design, **parameters: Any) -> Any:
    names = {**FAST.get(design.name, {}), **parameters}
    return evaluate(SYSTEM, problem, Entry(label=design.name, design=design, parameters=names))


@pytest.mark.parametrize("design", SYSTEM.designs, ids=lambda design: design.name)
def test_every_design_sheds_and_lists_what_has_no_path(design: Design) -> None:
    run = run_design(PARTS, design)
    assert run.plan.shed[["source", "target"]].to_numpy().tolist() == [["a", "x"], ["c", "y"]]
    assert run.plan.shed["rate_mbps"].tolist() == pytest.approx([1.5, 0.5])
    assert run.metrics["delivered_mbps"] == pytest.approx(3.0, rel=1e-4)
    assert run.metrics["shed_mbps"] == pytest.approx(2.0, rel=1e-4)
    assert run.metrics["lost_mbps"] == pytest.approx(0.0, abs=1e-9)
    assert run.metrics["min_rate_share"] == pytest.approx(1.0, rel=1e-4)
    assert run.constraints.met


@pytest.mark.parametrize("design", SYSTEM.designs, ids=lambda design: design.name)
def test_the_demands_of_a_failed_node_are_shed(design: Design) -> None:
    links = both_ways([("a", "b", 4.0), ("b", "c", 4.0), ("c", "a", 4.0)])
    full = network(links, [("a", "b", 3.0), ("c", "b", 1.0), ("c", "a", 1.0)])
    run = run_design(adjust(full, fail_nodes=("c",)), design)
    assert run.metrics["delivered_mbps"] == pytest.approx(3.0, rel=1e-4)
    assert run.metrics["shed_mbps"] == pytest.approx(2.0, rel=1e-4)


@pytest.mark.parametrize(
    "design",
    [
        pytest.param(
            design, id=design.name, marks=[pytest.mark.exhaustive] if design.name == "oblivious" else []
        )
        for design in SYSTEM.designs
    ],
)
@settings(max_examples=5)
@given(problem=problems(max_nodes=5), scale=st.sampled_from([0.2, 1e-6]))
def test_every_design_has_a_plan_under_any_overload(problem: Traffic, design: Design, scale: float) -> None:
    scarce = adjust(problem, capacity_scale=scale)
    run = run_design(scarce, design)
    total = sum(run.metrics[name] for name in ("delivered_mbps", "lost_mbps", "shed_mbps"))
    assert total == pytest.approx(run.metrics["offered_mbps"])
    upper = optimum_bound(scarce)
    assert run.metrics["delivered_mbps"] <= upper * (1 + 1e-6)


@pytest.mark.parametrize("objective", ["delivered", "concurrent", "utilization", "total"])
def test_strict_service_proves_that_a_demand_has_no_path(objective: Any) -> None:
    proof = optimum.route(PARTS, objective=objective, options=Options(service="all")).proof
    assert proof.status is Status.INFEASIBLE
    assert proof.reasons == ("demand a->x has no path", "demand c->y has no path")


def flows_of_a_pair() -> Traffic:
    """Return three flows of one pair over two parallel links of 1,000 Mbit/s."""
    links = pd.DataFrame({"tail": ["a", "a"], "head": ["b", "b"], "capacity_mbps": [1000.0, 1000.0]})
    rates = {"source": "a", "target": "b", "rate_mbps": [500.0, 300.0, 600.0], "class": ["f1", "f2", "f3"]}
    return Traffic.from_tables({"links": links, "demands": pd.DataFrame(rates)})


@pytest.mark.parametrize("paths", ["equal_cost", 2])
def test_first_fit_places_each_flow_of_a_pair_by_itself(paths: Any) -> None:
    plan = hedera.route_first_fit(flows_of_a_pair(), paths=paths).plan
    assert plan is not None
    assert dict(zip(plan.flows["class"], plan.flows["parallel"], strict=True)) == {"f1": 1, "f2": 1, "f3": 2}
    assert sorted(plan.links["load_mbps"]) == [600.0, 800.0]


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("hedera_annealing", {}),
        ("hedera_annealing", {"paths": 2}),
        ("localflow", {}),
        ("localflow_ns", {}),
        ("mptcp", {}),
    ],
)
def test_designs_that_place_flows_deliver_all_flows_of_a_pair(name: str, parameters: dict[str, Any]) -> None:
    design = next(item for item in SYSTEM.designs if item.name == name)
    problem = flows_of_a_pair()
    plan = design.decide(problem, **parameters).plan
    assert plan is not None
    metrics = measure(problem, plan, None)
    assert metrics["delivered_mbps"] == pytest.approx(1400.0, rel=1e-4)


@pytest.mark.parametrize(("name", "parameters"), [("ecmp_hash", {}), ("valiant", {"split": False})])
def test_hashes_tell_flows_of_a_pair_apart(name: str, parameters: dict[str, Any]) -> None:
    design = next(item for item in SYSTEM.designs if item.name == name)
    divisions = set()
    for seed in range(40):
        plan = design.decide(flows_of_a_pair(), seed=seed, **parameters).plan
        assert plan is not None
        flows = plan.flows
        assert len(flows) == 3  # no flow is split
        divisions.add(tuple(flows.sort_values("class")["parallel"]))
    assert len(divisions) == 2**3  # every assignment of three flows to two links occurs
