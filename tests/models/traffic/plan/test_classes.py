"""Plans of demands with classes: what they merge to, and what overload takes from each class."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner import compare, load, solve
from planner.errors import PlanRejected
from planner.reports import run_pages, run_tables
from planner_models.traffic import Traffic, check, measure
from planner_models.traffic.designs import DESIGNS, ecmp
from planner_models.traffic.designs.optimum import optimum
from planner_models.traffic.information import realize
from planner_models.traffic.plan.classes import divide_among_classes, merge_classes, take_class
from planner_models.traffic.plan.delivery import delivered_rates, dropped_rates
from planner_models.traffic.plan.deployment import deployment_tables
from planner_models.traffic.plan.multiresolution_splitting import compile_rules
from planner_models.traffic.plan.plan import Routing, routing_by_target, routing_from_tables
from planner_models.traffic.plan.verified_flow import verify_flow
from tests.models.networks.test_classes import example, share_one
from tests.models.traffic.networks import class_problems

QUICK = [field for field in DESIGNS if field.name not in ("fptas", "mptcp")]  # those take long on their own


def deliver(problem: Traffic, plan: Routing) -> np.ndarray:
    return delivered_rates(problem, verify_flow(problem, plan))


@pytest.mark.parametrize("design", QUICK, ids=[field.name for field in QUICK])
@given(problem=class_problems())
@settings(max_examples=5)
def test_every_design_plans_for_classes(design: Any, problem: Traffic) -> None:
    plan = design.decide(problem).plan
    check(problem, plan)  # raises where the plan is no flow
    for table in ("flows", "routes", "shed"):
        result = getattr(plan, table)
        assert result is None or "class" in result
    merged = merge_classes(problem, plan)
    check(problem.merged, merged)
    assert measure(problem, plan, None)["shed_mbps"] == pytest.approx(
        measure(problem.merged, merged, None)["shed_mbps"], abs=1e-6
    )
    again = routing_from_tables(problem, plan.to_tables())
    assert again.links["load_mbps"].to_numpy() == pytest.approx(plan.links["load_mbps"].to_numpy())


@given(class_problems())
@settings(max_examples=12)
def test_overload_that_drops_does_not_tell_classes_apart(problem: Traffic) -> None:
    plan, merged = ecmp.route(problem).plan, ecmp.route(problem.merged).plan
    assert plan is not None
    assert merged is not None
    by_pair = np.bincount(problem.merged_row, weights=deliver(problem, plan))
    assert by_pair == pytest.approx(deliver(problem.merged, merged), rel=1e-9, abs=1e-12)
    for other in ("max_utilization", "mean_path_stretch", "delivered_mbps"):
        assert measure(problem, plan, None)[other] == pytest.approx(
            measure(problem.merged, merged, None)[other], rel=1e-9
        )


@pytest.mark.slow
@given(class_problems())
@settings(max_examples=12)
def test_plans_with_flows_per_target_have_those_of_each_class(problem: Traffic) -> None:
    by_demand = ecmp.route(problem).plan
    assert by_demand is not None
    merged = merge_classes(problem, by_demand)
    flows = merged.flows.drop(columns="source")
    sums = flows.groupby(["target", "tail", "head", "parallel"], observed=True, sort=False)["rate_mbps"]
    by_target = replace(merged, flows=sums.sum().reset_index())
    plan = divide_among_classes(problem, by_target)
    assert "source" not in plan.flows
    assert "class" in plan.flows
    check(problem, plan)
    flow = verify_flow(problem, plan)
    assert flow.served_mbps == pytest.approx(verify_flow(problem, by_demand).served_mbps, abs=1e-9)
    for overload in ("drop", "priority"):
        true = replace(problem, overload=overload)
        # ECMP to a target splits alike whatever the source, so that both plans are the same
        assert deliver(true, plan) == pytest.approx(deliver(true, by_demand), rel=1e-6, abs=1e-9)
    other = problem.with_rates(problem.rate_mbps * 0.5)
    half = realize(other, problem, plan)
    assert verify_flow(other, half).served_mbps == pytest.approx(0.5 * flow.served_mbps, abs=1e-9)


# --- overload by priority -----------------------------------------------------------------


Hop = tuple[str, str, int]


def follow_paths(problem: Traffic, plan: Routing) -> np.ndarray:
    """Return what arrives of each demand on one path each, by plain iteration over dictionaries.

    It shares no code with `delivery`: each round, every link serves classes in their order, and those of one
    priority by progressive filling.
    """
    assert plan.routes is not None
    ends = (problem.links["tail"], problem.links["head"], problem.parallel)
    capacity = dict(zip(zip(*ends, strict=True), problem.capacity_mbps, strict=True))
    flows = []
    for row in plan.routes.to_dict("records"):
        path = json.loads(row["path"])
        numbers = json.loads(row["parallel"]) if "parallel" in row else [1] * (len(path) - 1)
        flows.append((row["class"], row["rate_mbps"], list(zip(path, path[1:], numbers, strict=False))))
    passed: dict[tuple[Hop, str], float] = {}
    for _ in range(150):
        arriving: dict[tuple[Hop, str], float] = {}
        for name, rate, path in flows:
            for link in path:
                arriving[link, name] = arriving.get((link, name), 0.0) + rate
                rate *= passed.get((link, name), 1.0)
        passed = {
            (link, name): share
            for link, limit in capacity.items()
            for name, share in serve_link(problem, limit, link, arriving).items()
        }
    result = np.zeros(len(problem.demands))
    for demand, (name, rate, path) in zip(problem.find_demands(plan.routes), flows, strict=True):
        result[demand] += rate * np.prod([passed[link, name] for link in path])
    return result


def serve_link(
    problem: Traffic, capacity: float, link: Hop, arriving: dict[tuple[Hop, str], float]
) -> dict[str, float]:
    """Return the share of the arriving traffic of each class that a link passes."""
    passed = {}
    for _, level in problem.class_table.groupby("priority"):
        there = [row for row in level.to_dict("records") if (link, row["class"]) in arriving]
        asked = [arriving[link, row["class"]] for row in there]
        granted = share_one(capacity, asked, [row["weight"] for row in there])
        capacity = max(capacity - sum(granted), 0.0)
        for row, rate, share in zip(there, asked, granted, strict=True):
            passed[row["class"]] = share / rate if rate > 0 else 1.0
    return passed


@pytest.mark.slow
@given(class_problems())
@settings(max_examples=10)
def test_priority_agrees_with_plain_iteration(problem: Traffic) -> None:
    problem = replace(problem, overload="priority")
    plan = optimum.route(problem, objective="utilization", paths=1).plan
    assert plan is not None
    result, expected = deliver(problem, plan), follow_paths(problem, plan)
    assert result == pytest.approx(expected, rel=1e-6, abs=1e-6)
    lost = verify_flow(problem, plan).served_mbps.sum() - result.sum()
    dropped = dropped_rates(problem, verify_flow(problem, plan)).sum()
    assert lost == pytest.approx(dropped, rel=1e-6, abs=1e-6)


@given(class_problems())
@settings(max_examples=12)
def test_higher_classes_do_not_feel_lower_ones(problem: Traffic) -> None:
    problem = replace(problem, overload="priority")
    plan = ecmp.route(problem).plan
    assert plan is not None
    result = deliver(problem, plan)
    top = problem.class_table.iloc[problem.class_of]["priority"].to_numpy()
    highest = top == top.min()
    alone = replace(problem, demands=problem.demands[highest])
    assert result[highest] == pytest.approx(deliver(alone, ecmp.route(alone).plan), rel=1e-9, abs=1e-12)  # type: ignore[arg-type]


@given(class_problems(), st.integers(2, 5))
@settings(max_examples=12)
def test_one_class_is_the_plain_rule(problem: Traffic, priority: int) -> None:
    name = problem.class_table["class"].iloc[0]
    merged = problem.merged
    demands = merged.demands.assign(**{"class": name})
    classes = pd.DataFrame({"class": [name], "priority": [priority]})
    item = replace(problem, demands=demands, classes=classes, overload="priority")
    plan, plain = ecmp.route(item).plan, ecmp.route(merged).plan
    assert plan is not None
    assert plain is not None
    assert deliver(item, plan) == pytest.approx(deliver(merged, plain), rel=1e-9, abs=1e-12)


def test_a_link_serves_gold_first_and_classes_of_one_priority_by_weight() -> None:
    links = pd.DataFrame({"tail": ["a"], "head": ["b"], "capacity_mbps": [10.0]})
    rows = [("gold", 4.0), ("video", 6.0), ("data", 6.0), ("bulk", 5.0)]
    demands = pd.DataFrame(rows, columns=["class", "rate_mbps"]).assign(source="a", target="b")
    classes = pd.DataFrame(
        [("gold", 1, 1), ("video", 2, 2), ("data", 2, 1), ("bulk", 3, 1)],
        columns=["class", "priority", "weight"],
    )
    tables = {"links": links, "demands": demands, "classes": classes}
    problem = replace(Traffic.from_tables(tables), overload="priority")
    plan = ecmp.route(problem).plan
    assert plan is not None
    assert deliver(problem, plan).tolist() == pytest.approx([4.0, 4.0, 2.0, 0.0])


# --- tables -------------------------------------------------------------------------------


def test_a_plan_without_classes_is_rejected() -> None:
    problem = example()
    plan = ecmp.route(problem).plan
    assert plan is not None
    for name in ("flows", "shed"):
        tables = plan.to_tables() | {
            "shed": pd.DataFrame({"source": ["a"], "target": ["c"], "rate_mbps": [0.0]})
        }
        tables["flows"] = tables["flows"].drop(columns="class") if name == "flows" else tables["flows"]
        with pytest.raises(PlanRejected, match=f"{name}: column 'class' is missing; demands have classes"):
            check(problem, routing_from_tables(problem, tables))
    flows = plan.flows.astype({"class": str}).replace({"class": {"bulk": "silver"}})
    with pytest.raises(PlanRejected, match="class 'silver' is no class of demands"):
        check(problem, replace(plan, flows=flows))


def test_flows_per_target_need_their_classes() -> None:
    problem = example()
    plan = ecmp.route(problem.merged).plan
    assert plan is not None
    from planner_models.traffic.plan.plan import flow_by_target

    with pytest.raises(ValueError, match="classes"):
        routing_by_target(problem, flow_by_target(problem.merged, plan))


def test_a_class_of_a_plan_is_a_plan() -> None:
    problem = example()
    plan = ecmp.route(problem).plan
    assert plan is not None
    alone, share = take_class(problem, plan, 1)
    assert not alone.has_classes
    assert verify_flow(alone, share).served_mbps.tolist() == [6.0, 1.0]
    tables = deployment_tables(problem, plan)
    assert tables["rates"]["class"].tolist() == ["gold", "bulk", "bulk"]
    assert tables["paths"].groupby("class")["share"].sum().to_dict() == {"gold": 1.0, "bulk": 2.0}
    rules = compile_rules(problem, plan).rules
    assert len(rules) == len(compile_rules(problem.merged, merge_classes(problem, plan)).rules)


# --- figures by class ---------------------------------------------------------------------


def test_a_comparison_shows_figures_by_class_and_names_the_class_that_loses() -> None:
    result = compare(load("traffic/abilene_classes"), designs=("optimum", "ecmp"))
    optimum_run, ecmp_run = result.runs
    assert optimum_run.verdict.endswith(", all of class background.")
    assert ", all of class background" in ecmp_run.verdict
    for run in result.runs:
        assert run.breakdown is not None
        frame = run.breakdown.frame.set_index("class")
        assert list(frame.index) == ["interactive", "elastic", "background"]
        for name in ("offered_mbps", "delivered_mbps", "lost_mbps", "shed_mbps"):
            assert frame[name].sum() == pytest.approx(run.metrics[name], abs=1e-6)
        assert frame["delivered_share"].iloc[:2].tolist() == pytest.approx([1.0, 1.0])
        parts = frame[["delivered_mbps", "lost_mbps", "shed_mbps"]].sum(axis=1)
        assert parts.tolist() == pytest.approx(frame["offered_mbps"].tolist())
        assert run.to_dict()["breakdown"]["rows"][2]["class"] == "background"
    (table,) = run_tables.breakdown_tables(result.runs)
    assert [cell.text for cell in table.cells()[5]][:2] == ["ecmp", "background"]
    assert len(table.rows) == 6
    (alone,) = run_tables.breakdown_tables(result.runs[:1])
    assert [column.label for column in alone.columns][:2] == ["Class", "Offered"]
    page = run_pages.run_page(optimum_run)
    assert any("Level interactive" in str(row[0]) for row in page.parts[0].tables[0].rows)


def test_a_problem_without_classes_has_no_figures_by_class() -> None:
    problem = example().merged
    run = solve(problem, design="ecmp")
    assert run.breakdown is None
    assert run_tables.breakdown_tables([run]) == []
    assert "breakdown" not in run.to_dict()
    assert "class" not in run.verdict
