"""Demands that no plan can serve do not stop the others, and are named first; classes that are ignored."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings

import planner
from planner.contract.design import Design, Mechanism
from planner.runs.evaluation import evaluate
from planner.scenarios.scenario import Entry
from planner_models.traffic import SYSTEM, Traffic, check, measure
from planner_models.traffic.designs.failure_robust import ffc
from planner_models.traffic.plan import plan
from planner_models.traffic.problem import generators
from tests.models.traffic.bounds import optimum_bound
from tests.models.traffic.networks import both_ways, network, problems
from tests.models.traffic.restricted_networks import draw_network


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


FAST: dict[str, dict[str, Any]] = {
    "weights": {"evaluations": 100},
    "hedera_annealing": {"iterations": 10},
    "mptcp": {"subflows": 3},
}
ELASTIC = [design for design in SYSTEM.designs if "rates" in design.parameters]


def run_design(problem: Traffic, design: Design, **parameters: Any) -> Any:
    names = {**FAST.get(design.name, {}), **parameters}
    return evaluate(SYSTEM, problem, Entry(label=design.name, design=design, parameters=names))


@pytest.mark.parametrize("design", SYSTEM.designs, ids=lambda design: design.name)
@settings(max_examples=8)
@given(problem=problems(max_nodes=5))
def test_no_design_beats_the_proven_bound(problem: Traffic, design: Design) -> None:
    """Nor violates what it guarantees: `evaluate` checks plan, claim and own bound."""
    bound = optimum_bound(problem, objective="concurrent")
    upper = optimum_bound(problem, objective="total")
    run = run_design(problem, design)
    assert run.plan is not None
    concurrent = run.metrics["concurrent_flow"]  # none where all is shed
    assert concurrent is None or concurrent <= bound * (1 + 1e-6)
    assert run.metrics["delivered_mbps"] <= upper * (1 + 1e-6)


@pytest.mark.parametrize("design", ELASTIC, ids=lambda design: design.name)
@pytest.mark.parametrize("rates", ["max-min", "proportional"])
@settings(max_examples=5)
@given(problem=problems(max_nodes=5))
def test_elastic_rates_fit_every_link(problem: Traffic, design: Design, rates: str) -> None:
    run = run_design(problem, design, rates=rates)
    assert "capacity" not in set(run.violations.frame["limit"])
    upper = optimum_bound(problem, objective="total")
    assert run.metrics["delivered_mbps"] <= upper * (1 + 1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("design", SYSTEM.designs, ids=lambda design: design.name)
def test_a_seed_and_a_plan_read_back_give_the_same(design: Design) -> None:
    problem = generators.fat_tree(k=4, seed=5)
    item, two = run_design(problem, design), run_design(problem, design)
    assert item.plan.links.equals(two.plan.links)
    again = plan.routing_from_tables(problem, item.plan.to_tables())
    assert measure(problem, again, None) == measure(problem, item.plan, None)


@pytest.mark.parametrize("design", SYSTEM.designs, ids=lambda design: design.name)
def test_demands_without_a_rate_are_no_trouble(design: Design) -> None:
    links = both_ways([("a", "b", 4.0), ("b", "c", 4.0), ("c", "a", 4.0)])
    run = run_design(network(links, [("a", "b", 1.0), ("b", "c", 0.0), ("c", "a", 2.0)]), design)
    assert run.metrics["mean_rate_share"] == pytest.approx(1.0, rel=1e-4)


def test_every_design_says_how_it_coordinates() -> None:
    for design in SYSTEM.designs:
        assert isinstance(design.mechanism, Mechanism)
        assert design.messages, design.name
        assert design.about.endswith("."), design.name
        for parameter in design.parameters.values():
            assert parameter.about, f"{design.name}.{parameter.name}"


@pytest.mark.parametrize("name", ["localflow", "hedera_gff", "weights", "utility"])
def test_designs_that_measure_rates_can_be_wrong_about_them(name: str) -> None:
    problem = generators.fat_tree(k=4, seed=5)
    design = SYSTEM.design(name)
    entry = Entry(label=name, design=design, parameters=FAST.get(name, {}), information={"noise": 0.5})
    run = evaluate(SYSTEM, problem, entry)
    assert not run.omniscient
    assert run.plan is not None


def test_rate_shares_of_a_plan_made_by_hand() -> None:
    problem = network([("a", "b", 3.0), ("b", "c", 9.0)], [("a", "b", 4.0), ("b", "c", 2.0)])
    run = run_design(problem, SYSTEM.design("ecmp"), rates="max-min")
    assert run.metrics["mean_rate_share"] == pytest.approx((0.75 + 1) / 2)
    assert run.metrics["min_rate_share"] == pytest.approx(0.75)
    assert run.metrics["geometric_rate_share"] == pytest.approx(np.sqrt(0.75))
    assert run.metrics["rate_fairness"] == pytest.approx(1.75**2 / (2 * (0.75**2 + 1)))


@pytest.mark.parametrize("design", SYSTEM.designs, ids=lambda design: design.name)
def test_plans_without_demand_carry_no_traffic(design: Design) -> None:
    run = run_design(network(both_ways([("a", "b", 4.0)]), [("a", "b", 0.0)]), design)
    assert run.plan.links["load_mbps"].tolist() == [0.0, 0.0]


@pytest.mark.slow
@pytest.mark.parametrize("seed", [11, 27])
def test_designs_keep_limits_of_routes_or_say_that_they_ignore_them(seed: int) -> None:
    problem = draw_network(seed, tunnels=True)
    latest = replace(problem, rules=None)
    for design in SYSTEM.designs:
        if design.name in ("fixed", "drain", "robust", "oblivious"):  # these refuse them, or need more tables
            continue
        routing = design.run(problem, parameters=FAST.get(design.name)).plan
        broken = set() if routing is None else set(check(problem, routing).frame["limit"])
        ignored = design.ignores(problem, {})
        assert not broken & {"latency", "rules"} or ignored, design.name
        if ignored:
            assert ("rules" in ignored) == bool(problem.parsed_rules)
            assert "rules" not in design.ignores(latest, {})
