"""Hosts to drain: their order, where machines go, those that must not be drained, and the price by memory."""

from __future__ import annotations

from pathlib import Path

import pytest

import planner
from planner_models.consolidation import Consolidation, ConsolidationPlan, measure
from planner_models.consolidation.designs import patterns, repack
from planner_models.consolidation.plan.drains import list_drains, list_held_hosts, say_targets, trace_saving
from planner_models.consolidation.plan.reading import read_plan
from planner_models.consolidation.problem.generators import present
from planner_models.consolidation.problem.today import count_machines
from tests.models.consolidation.problem.readers.clusters import node, pod, read


def decide(problem: Consolidation, budget: float) -> ConsolidationPlan:
    plan = repack.plan(problem, budget=budget).plan
    assert plan is not None
    return plan


def test_machines_of_drained_hosts_leave_by_the_moves_of_the_plan() -> None:
    problem = present(hosts=30, machines=200, use=0.4)
    plan = decide(problem, 0.1)
    drains = list_drains(read_plan(problem, plan), plan)
    hosts, machines = count_machines(problem)
    assert drains
    assert {drain.host for drain in drains} == {
        host for row, host in enumerate(hosts) if machines[row].any() and host not in set(plan.fleet["host"])
    }
    for drain in drains:
        assert len(drain.moves) == drain.machines.sum()
        assert set(drain.moves["to_host"]) <= set(plan.fleet["host"])
        assert all(f"to {host}" in say_targets(drain) for host in drain.moves["to_host"])
    ends = [float((drain.moves["start_s"] + drain.moves["seconds"]).max()) for drain in drains]
    assert ends == sorted(ends)


def test_price_falls_from_today_to_the_plan_as_memory_moves() -> None:
    problem = present(hosts=30, machines=200, use=0.4)
    plan = decide(problem, 0.1)
    reading = read_plan(problem, plan)
    drains = list_drains(reading, plan)
    curve = trace_saving(reading, drains)
    metrics = measure(problem, plan, None)
    _, machines = count_machines(problem)
    assert curve["price_per_h"].iloc[0] == (machines.sum(axis=1) > 0).sum()
    assert curve["price_per_h"].iloc[-1] == metrics["price_per_h"]
    assert curve["moved_gb"].iloc[-1] == pytest.approx(sum(drain.memory_gb for drain in drains))
    assert (curve.diff().dropna()["moved_gb"] >= 0).all()


def test_hosts_with_pods_that_may_not_be_evicted_are_refused(tmp_path: Path) -> None:
    pods = [
        pod("web-1", {"cpu": "1"}, on="n1"),
        pod("bare", {"cpu": "1"}, owner=None, on="n2"),
        pod("job-1", {"cpu": "1"}, owner=("Job", "job"), on="n3"),
    ]
    problem = read(tmp_path, *(node(f"n{row}") for row in (1, 2, 3)), *pods)
    cheapest = patterns.plan(problem).plan
    assert cheapest is not None
    drains = list_drains(read_plan(problem, cheapest), cheapest)
    refused = {drain.host for drain in drains if drain.held}
    assert refused == {"n2"} - set(cheapest.fleet["host"])
    kept = decide(problem, 1.0)
    assert all(not drain.held for drain in list_drains(read_plan(problem, kept), kept))
    assert list_held_hosts(read_plan(problem, kept)) == [("n2", ("shop/bare",))]


def test_explain_says_where_pods_go() -> None:
    result = planner.explain("consolidation/kubectl", design="repack", tried=False)
    frame = next(
        section.frame for section in result.explanation.sections if section.title == "Hosts to drain"
    )
    assert frame["machines"].str.contains(" to ").all()
