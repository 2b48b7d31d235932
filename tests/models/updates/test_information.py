"""Traffic as a controller knows it, and plans made on it in truth."""

from __future__ import annotations

import pytest

from planner_models.updates import SYSTEM, check, measure
from planner_models.updates.information import observe_traffic, realize
from planner_models.updates.problem import generators
from planner_models.updates.problem.adjustments import adjust
from planner_models.updates.problem.problem import Update


def crowded() -> Update:
    return generators.reweigh(name="sndlib/abilene", classes="pairs", count=40, headroom=0.5, slack=0.3)


def test_exact_information_is_the_truth_and_old_information_differs_in_traffic_alone() -> None:
    truth = crowded()
    assert observe_traffic(truth) is truth
    old = observe_traffic(truth, age_s=600.0, noise=0.2, seed=3)
    assert (old.traffic_mbps != truth.traffic_mbps).all()
    assert (old.traffic_mbps > 0).all()
    for name, table in truth.to_tables().items():
        columns = [column for column in table if column != "traffic_mbps"]
        assert old.to_tables()[name][columns].equals(table[columns])


def test_a_plan_on_old_traffic_overloads_links_and_one_on_true_traffic_does_not() -> None:
    truth = crowded()
    design = SYSTEM.design("congestion_free")
    exact = design.run(truth).plan
    assert exact is not None
    assert measure(truth, exact, None)["lost_traffic_mbit"] == 0
    lost = []
    for seed in range(4):
        observed = observe_traffic(truth, noise=0.8, seed=seed)
        plan = design.run(observed).plan
        assert plan is not None
        assert measure(observed, plan, None)["lost_traffic_mbit"] == 0
        lost.append(measure(truth, realize(truth, observed, plan), None)["lost_traffic_mbit"])
    assert max(item or 0.0 for item in lost) > 0


def test_steps_take_the_time_of_the_true_switches() -> None:
    truth = adjust(crowded(), rule_ms=8.0)
    observed = adjust(crowded(), rule_ms=2.0)
    plan = SYSTEM.design("two_phase_changed").run(observed).plan
    assert plan is not None
    assert "time" in set(check(truth, plan).frame["limit"])
    real = realize(truth, observed, plan)
    assert "time" not in set(check(truth, real).frame["limit"])
    steps = real.steps.merge(plan.steps, on=["step", "kind"])
    took, planned = (steps[f"end_s_{item}"] - steps[f"start_s_{item}"] for item in "xy")
    is_drain = steps["kind"] == "drain"
    assert took[is_drain].to_numpy() == pytest.approx(planned[is_drain].to_numpy())
    assert took[~is_drain].to_numpy() == pytest.approx(4 * planned[~is_drain].to_numpy())


def test_the_least_loss_is_no_more_than_that_of_any_design() -> None:
    for slack in (0.02, 0.3):
        problem = adjust(crowded(), link_slack=slack, table_headroom=0.3)
        decision = SYSTEM.design("least_loss").run(problem)
        assert decision.plan is not None
        lowest_metrics = measure(problem, decision.plan, None)
        assert decision.proof.objective == lowest_metrics["lost_traffic_mbit"]
        assert not len(check(problem, decision.plan).of_limits(decision.guarantees))
        for name in ("two_phase_changed", "ordered", "batches", "congestion_free", "optimum"):
            plan = SYSTEM.design(name).run(problem).plan
            assert plan is not None
            other = measure(problem, plan, None)
            keys = ("broken_classes", "overflow_rules", "lost_traffic_mbit")
            assert tuple(lowest_metrics[key] or 0.0 for key in keys) <= tuple(
                other[key] or 0.0 for key in keys
            )
