"""A global decision and local deviations: who moves after an event, where to, and who stays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.contract.design import Decision
from planner.contract.proof import Status
from planner.options import Options
from planner.runs.evaluation import evaluate
from planner.runs.rolling import roll
from planner.scenarios.scenario import Entry
from planner_models.brokering import SYSTEM, Brokering, check, measure
from planner_models.brokering.designs import split_control
from planner_models.brokering.designs.broker.assignment import assign
from planner_models.brokering.plan.plan import Assignment
from planner_models.brokering.problem.adjustments import remove_clusters
from planner_models.brokering.problem.generators import world
from tests.models.brokering.markets import market, markets

DEVIATIONS = [split_control.assign_by_client, split_control.assign_by_group]
by_both = pytest.mark.parametrize("decide", DEVIATIONS, ids=["client", "group"])
Decide = Callable[..., Decision[Assignment]]


def two_cities(score: float = 1.0, capacity: float = 10.0, other: float = 10.0) -> Brokering:
    """Return 8 clients of 1 Mbit/s in Lyon and 4 in Turin; cluster b is the second choice of both."""
    return market(
        [("Lyon", 1000.0, 8), ("Turin", 1000.0, 4)],
        [("a", "x", "Lyon", capacity, 0.1), ("b", "y", "Turin", other, 0.1), ("c", "z", "Turin", 20.0, 0.1)],
        scores=[
            ("Lyon", "a", score), ("Lyon", "b", 2.0), ("Lyon", "c", 5.0),
            ("Turin", "a", 9.0), ("Turin", "b", 1.0), ("Turin", "c", 3.0),
        ],
    )  # fmt: skip


def clients(plan: Assignment) -> dict[tuple[str, str], int]:
    """Return the clients of each city in each cluster."""
    total = plan.assignments.groupby(["location", "cluster"])["clients"].sum()
    return {(str(city), str(cluster)): int(count) for (city, cluster), count in total.items()}  # type: ignore[misc]


@by_both
def test_without_an_event_the_global_decision_holds(decide: Decide) -> None:
    problem = two_cities()
    decision = decide(problem)
    assert decision.plan is not None
    assert clients(decision.plan) == {("Lyon", "a"): 8, ("Turin", "b"): 4}
    assert decision.proof.bound is None
    # a rise below the tolerance is no event, although another cluster would be better now
    now = two_cities(score=2.3).with_earlier(two_cities(score=1.95))
    assert clients(decide(now, tolerance=0.2).plan) == {("Lyon", "a"): 8, ("Turin", "b"): 4}


@by_both
def test_clients_leave_a_cluster_whose_score_has_risen(decide: Decide) -> None:
    now = two_cities(score=3.0, other=9.0).with_earlier(two_cities(score=1.0, other=9.0))
    # 5 of Lyon fit in b beside the 4 of Turin, the others keep a
    assert clients(decide(now).plan) == {("Lyon", "b"): 5, ("Lyon", "a"): 3, ("Turin", "b"): 4}
    assert clients(decide(now, tolerance=9.0).plan) == {("Lyon", "a"): 8, ("Turin", "b"): 4}


@by_both
def test_an_overloaded_cluster_loses_what_does_not_fit(decide: Decide) -> None:
    now = two_cities(capacity=5.0).with_earlier(two_cities())
    plan = decide(now).plan
    assert clients(plan) == {("Lyon", "a"): 5, ("Lyon", "b"): 3, ("Turin", "b"): 4}
    assert not check(now, plan)


def test_a_group_decides_again_for_all_its_clients_and_a_client_for_itself() -> None:
    """Two bitrates in Lyon: the group gives the scarce better cluster to those who gain most by it."""
    then = market(
        [("Lyon", 1000.0, 2), ("Lyon", 2000.0, 1)],
        [("a", "x", "Lyon", 4.0, 0.1), ("b", "y", "Lyon", 2.0, 0.1), ("c", "z", "Lyon", 9.0, 0.1)],
        scores=[("Lyon", "a", 1.0), ("Lyon", "b", 2.0), ("Lyon", "c", 8.0)],
    )
    now = then.with_clusters(capacity_mbps=np.array([0.0, 2.0, 9.0])).with_earlier(then)
    alone, grouped = split_control.assign_by_client(now).plan, split_control.assign_by_group(now).plan
    assert measure(now, grouped, None)["objective"] < measure(now, alone, None)["objective"]
    # of 2 Mbit/s, two clients of 1 Mbit/s make more than one of 2 Mbit/s
    at_b = grouped.assignments[grouped.assignments["cluster"] == "b"]
    assert at_b["bitrate_kbps"].tolist() == [1000.0]
    at_b = alone.assignments[alone.assignments["cluster"] == "b"]
    assert at_b["bitrate_kbps"].tolist() == [2000.0]


@by_both
def test_a_lost_cluster_between_two_global_decisions(decide: Decide) -> None:
    problem = two_cities()
    before = decide(problem, windows=3)
    after = decide(remove_clusters(problem, ["a"]), windows=3, previous=before)
    assert clients(after.plan) == {("Lyon", "b"): 6, ("Lyon", "c"): 2, ("Turin", "b"): 4}


@by_both
def test_clients_come_and_go_between_two_global_decisions(decide: Decide) -> None:
    problem = two_cities()
    before = decide(problem, windows=2)
    after = decide(problem.with_client_counts(np.array([3, 7])), windows=2, previous=before)
    assert clients(after.plan) == {("Lyon", "a"): 3, ("Turin", "b"): 7}
    # the third window decides for all again: new scores count
    third = decide(two_cities(score=3.0), windows=2, previous=after)
    assert clients(third.plan)["Lyon", "b"] == 6


@by_both
def test_all_are_served_or_it_is_said_that_deviations_do_not_serve_them(decide: Decide) -> None:
    now = two_cities(capacity=0.0, other=4.0).with_clusters(capacity_mbps=np.array([0.0, 4.0, 5.0]))
    now = now.with_earlier(two_cities())
    decision = decide(now)
    assert decision.plan is not None
    assert decision.plan.shed is not None
    assert decision.plan.shed["clients"].sum() == 3
    undecided = decide(now, options=Options(service="all"))
    assert undecided.plan is None
    assert undecided.proof.status is Status.UNDECIDED
    assert undecided.proof.reasons == (
        "local deviations from the global decision leave 3 clients without a cluster",
    )


@given(markets(), st.integers(0, 5), st.sampled_from([0.5, 0.9, 1.0]))
def test_deviations_overload_nothing_and_are_no_better_than_all_information(
    problem: Brokering, seed: int, usable: float
) -> None:
    best = assign(problem, method="exact")
    assert best.proof.bound is not None
    for name in ("c3", "pytheas"):
        design = SYSTEM.design(name)
        observed = design.observe(problem, age_s=600.0, seed=seed, usable=usable, swing=1.0, score_swing=1.0)
        plan = design.run(observed).plan
        assert not check(problem, plan)
        assert measure(problem, plan, None)["objective"] >= best.proof.bound * (1 - 1e-9)


def test_local_control_serves_what_an_old_global_decision_overloads() -> None:
    problem = world(clients=400, places=30, seed=2)
    information = {"age_s": 600.0, "usable": 0.9, "swing": 1.0}
    metrics = {}
    for name in ("omniscient", "c3", "pytheas"):
        entry = Entry(label=name, design=SYSTEM.design(name), information=information)
        metrics[name] = evaluate(SYSTEM, problem, entry, options=Options(gap=0.01)).metrics
    assert metrics["omniscient"]["congested"] > 0
    assert metrics["c3"]["congested"] == metrics["pytheas"]["congested"] == 0
    assert metrics["pytheas"]["objective"] <= metrics["c3"]["objective"]


def test_a_day_with_few_global_decisions_moves_less_traffic() -> None:
    problem = world(clients=400, places=30, seed=2)
    rng = np.random.default_rng(1)
    days = [problem] + [
        problem.with_observation(
            offered=problem.offered, score=problem.score * rng.lognormal(0.0, 0.3, problem.score.shape),
            price=problem.price, capacity_mbps=problem.capacity_mbps, background_mbps=problem.background_mbps,
        )
        for _ in range(3)
    ]  # fmt: skip
    moved = {}
    for windows in (1, 4):
        runs = list(roll(days, designs={"c3": {"windows": windows}}))
        metric = [run.run["metrics"]["moved_between_clusters_percent"] for run in runs[1:]]
        moved[windows] = float(np.mean(metric))
    assert moved[4] == 0
    assert moved[1] > 0


def test_rows_of_plans_made_elsewhere_may_name_what_is_gone() -> None:
    problem = two_cities()
    rows = [("Lyon", "a", 6.0), ("Lyon", "gone", 2.0), ("Oslo", "b", 1.0), ("Turin", "b", 9.0)]
    frame = pd.DataFrame(rows, columns=["location", "cluster", "clients"])
    frame = frame.assign(isp="isp", content="news", bitrate_kbps=1000.0)
    last = replace(assign(problem), plan=Assignment(assignments=frame))
    plan = split_control.assign_by_client(problem, windows=2, previous=last).plan
    assert clients(plan) == {("Lyon", "a"): 8, ("Turin", "b"): 4}
