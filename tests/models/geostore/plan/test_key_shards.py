"""Shards in plans: brute force, overload, splits, and rows that are none."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pandas as pd
import pytest

from planner.errors import PlanRejected
from planner_models.geostore import SYSTEM, Geostore, StorePlan, check, measure
from planner_models.geostore.problem import generators, key_generators
from planner_models.geostore.shards import optimum

SHARDINGS = ("hashed", "equal_ranges", "best_ranges", "split_hot", "partitioned", "optimum", "near_users")


def solve(problem: Geostore, name: str) -> StorePlan:
    """Return the plan of a design."""
    plan = SYSTEM.design(name).run(problem).plan
    assert plan is not None
    return plan


def objective(problem: Geostore, shards: pd.DataFrame) -> float:
    """Return the largest load over capacity and the weighted messages, from rows alone."""
    assert problem.ranges is not None
    assert problem.servers is not None
    assert problem.transactions is not None
    kops = dict(zip(problem.ranges["range"], problem.ranges["kops"], strict=True))
    server = dict(zip(shards["range"], shards["server"], strict=True))
    load = dict.fromkeys(problem.servers["server"], 0.0)
    for name, value in kops.items():
        load[server[name]] += value
    capacity = dict(zip(problem.servers["server"], problem.servers["kops"], strict=True))
    largest = max(load[name] / capacity[name] for name in load)
    messages = rate = 0.0
    for cell, per_s in zip(problem.transactions["ranges"], problem.transactions["per_s"], strict=True):
        messages += per_s * (4 * len({server[name] for name in cell.split(" + ")}) - 2)
        rate += per_s
    return largest + 0.1 * messages / rate


def test_the_optimum_is_that_of_all_placements() -> None:
    problem = generators.small()
    assert problem.ranges is not None
    assert problem.servers is not None
    names = problem.ranges["range"].tolist()
    best = min(
        objective(problem, pd.DataFrame({"range": names, "server": servers}))
        for servers in product(problem.servers["server"], repeat=len(names))
    )
    assert problem.keyspace is not None
    assert optimum.solve(problem.keyspace).objective == pytest.approx(best)
    metrics = measure(problem, solve(problem, "optimum"), None)
    assert metrics["max_load"] is not None
    assert metrics["messages_per_s"] is not None
    assert metrics["max_load"] + 0.1 * metrics["messages_per_s"] / 30 <= best * (1 + 1e-9)  # it may split


@pytest.mark.parametrize("name", SHARDINGS)
def test_each_design_gives_each_range_a_server(name: str) -> None:
    problem = key_generators.keyspace(ranges=120, servers=5, popularity="transactions", transactions=200)
    plan = solve(problem, name)
    assert plan.shards is not None
    assert not len(check(problem, plan))
    assert set(plan.shards["range"]) == set(problem.ranges["range"])  # type: ignore[index]
    metrics = measure(problem, plan, None)
    assert metrics["max_load_over_bound"] is not None
    assert metrics["max_load_over_bound"] >= 1 - 1e-9
    assert metrics["servers_per_op"] is not None
    assert 1 <= metrics["servers_per_op"] <= 3


def test_overloaded_servers_refuse_requests_and_splits_mend_that() -> None:
    problem = key_generators.keyspace(ranges=500, servers=20, popularity="zipf", skew=1.2)
    metrics = {name: measure(problem, solve(problem, name), None) for name in ("hashed", "split_hot")}
    assert metrics["hashed"]["max_load"] is not None
    assert metrics["hashed"]["max_load"] > 1
    assert metrics["hashed"]["missed_per_s"]
    assert metrics["split_hot"]["max_load"] is not None
    assert metrics["split_hot"]["max_load"] <= 1
    assert metrics["split_hot"]["missed_per_s"] == pytest.approx(0.0, abs=1e-6)


def test_problems_without_ranges_have_no_shards() -> None:
    problem = generators.vicci()
    plan = solve(problem, "hashed")
    assert plan.shards is None
    assert measure(problem, plan, None)["max_load"] is None


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"server": "third"}, "server 'third' is unknown"),
        ({"range": "a-f"}, "has no server"),
        ({"piece": 2.0}, "must be numbered from 1"),
    ],
)
def test_rows_that_are_no_shards(columns: dict[str, object], message: str) -> None:
    problem = generators.small()
    plan = solve(problem, "near_users")
    assert plan.shards is not None
    with pytest.raises(PlanRejected, match=message):
        check(problem, replace(plan, shards=plan.shards.assign(**columns)))


def test_plans_without_shards_are_refused() -> None:
    problem = generators.small()
    with pytest.raises(PlanRejected, match="the problem has ranges"):
        check(problem, replace(solve(problem, "near_users"), shards=None))
