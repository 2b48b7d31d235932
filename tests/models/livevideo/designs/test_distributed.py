"""Distributed control on announcements with noise and age."""

from __future__ import annotations

from dataclasses import replace

from planner.runs.evaluation import evaluate
from planner.scenarios.scenario import Entry
from planner_models.livevideo import SYSTEM
from planner_models.livevideo.designs import distributed
from tests.models.livevideo.networks import problem
from tests.models.livevideo.observations import TIERS, cluster_view, heads, one_way, run, small


def test_clusters_use_announcements_and_know_their_own_links() -> None:
    item = one_way()
    near = item.links.assign(latency_ms=[1.0, 1.0, 1.0, 1.0, 1.0, 9.0])  # E is A's nearest edge
    item = replace(item, links=near)
    assert heads(distributed.distribute(cluster_view(item)).plan) == {"X", "E", "A"}
    # X announces too little capacity from S: E has no path, A goes to F
    assert heads(distributed.distribute(cluster_view(item, ("S", "X", -0.5))).plan) == {"Y", "F", "A"}
    # E knows its own link from X
    assert heads(distributed.distribute(cluster_view(item, ("X", "E", -0.5))).plan) == {"X", "E", "A"}
    # X announces more than there is, and is refused itself: A goes to F
    narrow = replace(item, links=near.assign(capacity_mbps=[0.5, 1.0, 1.0, 1.0, 9.0, 9.0]))
    assert heads(distributed.distribute(cluster_view(narrow, ("S", "X", 0.5))).plan) == {"Y", "F", "A"}


def test_old_announcements_deny_requests_without_overload() -> None:
    """E hears a minute later that w fills S->X at 5 s: v is sent to X, which has no path."""
    item = problem(
        [("S", "X", 1.0, 1.0), ("S", "Y", 1.0, 1.0), ("X", "E", 9.0, 1.0), ("X", "F", 9.0, 1.0),
         ("Y", "E", 9.0, 1.0), ("E", "A", 9.0, 0.0), ("F", "B", 9.0, 0.0)],
        [("v", 1000.0, 1.0), ("w", 1000.0, 1.0)],
        [("B", "w", 1000.0, 1.0), ("A", "v", 1000.0, 1.0)], tiers=TIERS,
    )  # fmt: skip
    item = item.with_requests(item.requests.assign(arrival_s=[5.0, 20.0]))
    served = {}
    for age_s in (0.0, 10.0, 60.0):
        plans = [run(item, "distributed", age_s=age_s)]
        for seed in range(1, 8):  # E chooses by chance between X and Y while it believes both
            entry = Entry(label="d", design=SYSTEM.design("distributed"), information={"age_s": age_s},
                          parameters={"seed": seed})  # fmt: skip
            plans.append(evaluate(SYSTEM, item, entry))
        assert all(not len(result.violations) for result in plans)
        served[age_s] = {result.metrics["requests_served"] for result in plans}
    assert served[0.0] == served[10.0] == {100.0}
    assert served[60.0] == {50.0, 100.0}


def test_announcements_age_only_within_the_window() -> None:
    item = small()
    fresh, old = run(item, "distributed", age_s=1e-6), run(item, "distributed")
    assert fresh.metrics["service_minus_cost"] == old.metrics["service_minus_cost"]
