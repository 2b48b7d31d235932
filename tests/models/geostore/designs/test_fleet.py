"""Regions with few servers: the brute force, the reference model, bounds, and prices by region."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.backends.pyomo import solve_model
from planner.errors import InputError
from planner.options import Options
from planner.search.deadline import NEVER
from planner_models.geostore import SYSTEM, Geostore, check, formulation, measure
from planner_models.geostore.designs import optimum
from planner_models.geostore.designs.assembly import assemble, weak_plan
from planner_models.geostore.designs.fleet import component_load
from planner_models.geostore.designs.placer import Placer
from planner_models.geostore.plan.evaluation import evaluate
from planner_models.geostore.problem import generators
from tests.models.geostore.stores import store

SEEDS = st.integers(0, 1_000)
EXACT = Options(gap=1e-6)


def limited(problem: Geostore, share: float) -> Geostore:
    """Return the problem in which every region may carry a share of all load of reads and writes."""
    total = float(problem.requests_per_s.sum())
    regions = problem.regions.assign(
        server_usd_month=100.0, server_kops=1.0, least_servers=0.0, most_servers=share * total / 1000.0
    )
    return replace(problem, regions=regions)


def cheapest_with_penalty(problem: Geostore) -> float:
    """Return the least cost with penalty over all replicas and attachments, by evaluating each."""
    count, best = len(problem.regions), np.inf
    sets = [np.array(bits, dtype=bool) for bits in product([False, True], repeat=count) if sum(bits) > 1]
    for opened in product(sets, repeat=len(problem.groups)):
        for attached in product(range(count), repeat=len(problem.access)):
            entry = np.array(attached)
            if not all(opened[group][entry[user]] for user, group in enumerate(problem.user_group)):
                continue
            plans = [
                weak_plan(problem, group, opened[group], entry[problem.users_of[group]])
                for group in range(len(problem.groups))
            ]
            best = min(best, evaluate(problem, assemble(problem, plans)).penalized_usd)
    return float(best)


@pytest.mark.parametrize(("seed", "share", "users"), [(0, 0.5, 2), (1, 0.8, 1), (3, 0.2, 1)])
def test_cost_and_bound_enclose_the_brute_force(seed: int, share: float, users: int) -> None:
    problem = limited(store(seed, regions=3, groups=2, users=users, limit_ms=None), share)
    decision = optimum.place(problem, options=EXACT)
    expected = cheapest_with_penalty(problem)
    assert decision.proof.metric == "penalized_usd"
    assert decision.proof.bound is not None
    assert decision.proof.objective is not None
    assert decision.proof.bound <= expected * (1 + 1e-9)
    assert decision.proof.objective >= expected * (1 - 1e-9)
    assert decision.proof.objective <= expected * 1.05  # two groups: a column each need not be the best pair


@given(seed=SEEDS, share=st.floats(0.1, 1.0))
@settings(max_examples=5)
def test_cost_and_bound_enclose_the_reference_model(seed: int, share: float) -> None:
    problem = limited(store(seed, regions=5, groups=4, users=3, chain=2, limit_ms=250.0), share)
    decision = optimum.place(problem, options=EXACT)
    solution = solve_model(formulation(problem), Options(threads=1, gap=1e-7))
    assert solution.objective is not None
    assert decision.proof.bound is not None
    assert decision.proof.objective is not None
    assert decision.proof.bound <= solution.objective * (1 + 1e-6)
    assert decision.proof.objective >= solution.objective * (1 - 1e-6)


@given(seed=SEEDS, share=st.floats(0.05, 0.6))
@settings(max_examples=4)
def test_no_design_beats_the_bound_and_plans_state_what_they_refuse(seed: int, share: float) -> None:
    problem = limited(store(seed, regions=6, groups=6, users=4, limit_ms=None), share)
    bound = optimum.place(problem).proof.bound
    assert bound is not None
    for name in ("optimum", "priced", "near_users", "everywhere", "bids"):
        plan = SYSTEM.design(name).run(problem).plan
        assert plan is not None
        assert not len(check(problem, plan).of_limits(["servers"]))
        metrics = measure(problem, plan, None)
        assert metrics["penalized_usd"] is not None
        assert metrics["penalized_usd"] >= bound * (1 - 1e-9), name
        if plan.servers is not None and metrics["refused_per_s"]:
            hidden = replace(plan, servers=plan.servers.assign(refused_per_s=0.0))
            assert len(check(problem, hidden).of_limits(["servers"]))
            assert metrics["missed_per_s"]


@pytest.mark.parametrize("share", [None, 100.0])
def test_prices_without_scarcity_choose_the_optimum(share: float | None) -> None:
    problem = store(2, regions=6, groups=5, users=4, limit_ms=None)
    problem = problem if share is None else limited(problem, share)
    cost = {}
    for name in ("optimum", "priced"):
        plan = SYSTEM.design(name).run(problem).plan
        assert plan is not None
        cost[name] = measure(problem, plan, None)["usd_per_month"]
    assert cost["priced"] == pytest.approx(cost["optimum"], rel=1e-4)


def test_scarce_servers_cost_more_and_more_servers_never_do() -> None:
    problem = store(4, regions=6, groups=6, users=4, limit_ms=None)
    costs = [optimum.place(limited(problem, share)).proof for share in (0.1, 0.3, 1.0, 10.0)]
    for scarce, ample in pairwise(costs):
        assert ample.bound is not None
        assert scarce.objective is not None
        assert ample.bound <= scarce.objective * (1 + 1e-9)
    assert costs[0].objective is not None
    assert costs[-1].objective is not None
    assert costs[0].objective > costs[-1].objective


def test_the_load_of_columns_is_that_of_the_evaluation() -> None:
    problem = generators.small()
    placed = Placer(problem=problem, gap=1e-4, deadline=NEVER).place_all()
    plan = assemble(problem, [plan for item in placed for plan in item.groups])
    load = np.asarray(sum(component_load(problem, item.groups) for item in placed))
    assert load == pytest.approx(evaluate(problem, plan).load)


def test_fewer_servers_than_the_least_are_refused() -> None:
    problem = generators.small()
    with pytest.raises(InputError, match="most_servers is 1, must be at least least_servers, which is 3"):
        replace(problem, regions=problem.regions.assign(least_servers=3.0, most_servers=1.0))


def test_the_preset_limits_the_busiest_regions() -> None:
    problem = generators.fleet(regions=10, limited=3, groups=20, users=5)
    operations = np.bincount(problem.user_region, problem.requests_per_s, 10)
    assert set(np.flatnonzero(problem.is_limited)) == set(np.argsort(-operations)[:3])
