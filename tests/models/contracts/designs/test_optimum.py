"""The least bill against brute force, and what no change of terms may do to it."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import planner
from planner import backends
from planner.contract.proof import Status
from planner.options import Options
from planner_models.contracts import SYSTEM, Month, bill, check
from planner_models.contracts.designs import free_windows, optimum
from planner_models.contracts.designs.program import Region
from planner_models.contracts.designs.rules import pour_commitments_first
from planner_models.contracts.plan.plan import read_loads
from planner_models.contracts.problem import generators
from planner_models.contracts.problem.problem import MEAN, PEAK, PERCENTILE
from tests.models.contracts.months import make, months, only

EXACT = Options(gap=1e-6, time_limit_s=30.0, threads=1)
SLACK = 1e-4


def least_bill(problem: Month) -> float:
    """Return the least bill by a linear program for each choice of free windows; no price falls."""
    windows = problem.windows
    free = problem.unbilled_windows.tolist()
    choices = [list(itertools.combinations(range(windows), number)) for number in free]
    best = np.inf
    for selected in itertools.product(*choices):
        best = min(best, _least_bill_for(problem, selected))
    return best


def _least_bill_for(problem: Month, selected: tuple[tuple[int, ...], ...]) -> float:
    """Return the least bill where the free windows are given."""
    windows, count = problem.most_mbps.shape
    pieces = [(c, t) for c in range(count) for t in range(len(problem.price_steps[c][0]))]
    total = windows * count + count + len(pieces)
    cost = np.zeros(total)
    bounds: list[tuple[float, float | None]] = [
        (float(problem.least_mbps[w, c]), float(problem.most_mbps[w, c]))
        for w in range(windows)
        for c in range(count)
    ]
    bounds += [(0.0, None)] * count
    for index, (c, t) in enumerate(pieces):
        volumes, prices = problem.price_steps[c]
        cost[windows * count + count + index] = prices[t]
        bounds.append((0.0, float(volumes[t + 1] - volumes[t]) if t + 1 < len(volumes) else None))
    equal = np.zeros((windows, total))
    for w in range(windows):
        equal[w, w * count : (w + 1) * count] = 1.0
    less, limit = [], []
    for c in range(count):
        row = np.zeros(total)
        row[windows * count + c] = 1.0
        row[[windows * count + count + p for p, (d, _) in enumerate(pieces) if d == c]] = -1.0
        less.append(row)
        limit.append(0.0)
        committed = np.minimum(row, 0.0)
        less.append(committed)
        limit.append(-float(problem.column("commitment_mbps")[c]))
        if problem.billing[c] == MEAN:
            row = np.zeros(total)
            row[[w * count + c for w in range(windows)]] = 1 / windows
            row[windows * count + c] = -1.0
            less.append(row)
            limit.append(0.0)
            continue
        for w in set(range(windows)) - set(selected[c]):
            row = np.zeros(total)
            row[w * count + c] = 1.0
            row[windows * count + c] = -1.0
            less.append(row)
            limit.append(0.0)
    solution = linprog(
        cost, A_ub=np.array(less), b_ub=limit, A_eq=equal, b_eq=problem.servable_mbps[:, 0], bounds=bounds
    )
    return float(solution.fun) if solution.success else np.inf


def bill_of(problem: Month, options: Options = EXACT) -> tuple[float, float]:
    """Return the bill of the optimum and its bound."""
    decision = optimum.plan(problem, options=options)
    assert decision.plan is not None
    assert not len(check(problem, decision.plan))
    rank = decision.proof.ranks[1]
    assert rank.bound <= rank.objective + 1e-9
    return rank.objective, rank.bound


def with_terms(problem: Month) -> Month:
    """Return a month whose first contract is in force in a part, and whose others have other prices."""
    count = len(problem.names)
    return problem.with_contracts(
        burst_price_per_mbps=[np.nan] + [4.0] * (count - 1),
        credit=[9.0] + [0.0] * (count - 1),
        commitment_mbps=15.0,
        first_window=[3.0] + [np.nan] * (count - 1),
        capacity_mbps=150.0,
    )


@pytest.mark.slow
@settings(max_examples=10)
@given(months(windows=20, falling=False))
def test_the_bill_with_credits_and_burst_prices_is_that_of_brute_force(problem: Month) -> None:
    problem = with_terms(replace(problem, tiers=None))
    objective, bound = bill_of(problem)
    best = least_bill(problem)
    assert best - 0.01 * len(problem.names) <= objective <= best * (1 + SLACK) + 0.01 * len(problem.names)
    assert bound <= best + 0.01 * len(problem.names)


@pytest.mark.slow
@settings(max_examples=3)
@given(months(windows=20, falling=False))
def test_the_optimum_is_that_of_brute_force(problem: Month) -> None:
    if len(problem.names) > 2 and problem.billing.count(PERCENTILE) > 2:
        problem = problem.with_contracts(billing=[PERCENTILE, PERCENTILE, PEAK])
    cost, bound = bill_of(problem)
    assert cost == pytest.approx(least_bill(problem), rel=1e-5, abs=0.02)
    assert bound == pytest.approx(cost, rel=1e-4, abs=0.03)


def test_a_free_window_takes_the_busiest_one() -> None:
    item = ("x", PERCENTILE, 1.0, 120.0, 40.0)
    problem = make([100.0] * 19 + [160.0], [item, ("y", PERCENTILE, 2.0, 100.0, 0.0)])
    assert bill_of(problem)[0] == pytest.approx(100.0)
    assert bill_of(only(problem, PEAK))[0] == pytest.approx(120.0 + 2 * 40.0)
    assert bill_of(only(problem, MEAN))[0] == pytest.approx((100.0 * 19 + 120.0) / 20 + 2 * 2.0)


def test_falling_prices_gather_traffic_in_one_contract() -> None:
    problem = make(
        [60.0] * 20, [("x", PEAK, 2.0, 80.0, 0.0), ("y", PEAK, 1.9, 80.0, 0.0)], [("x", 20.0, 1.0)]
    )
    assert bill_of(problem)[0] == pytest.approx(20 * 2.0 + 40 * 1.0)


def require_no_higher_bill(problem: Month, before: float) -> None:
    """Require that the least bill of a problem, which carries as much, is at most `before`."""
    best, bound = bill_of(problem)
    assert best - bound <= SLACK * best + 0.02  # proven, so that bills compare
    assert best <= before * (1 + SLACK) + 0.02


@pytest.mark.slow
@settings(max_examples=6, suppress_health_check=[HealthCheck.too_slow])
@given(months(windows=24), st.integers(min_value=0, max_value=2))
def test_better_terms_never_cost_more(problem: Month, contract: int) -> None:
    contract = min(contract, len(problem.names) - 1)
    before = bill_of(problem)[0]
    commitment = problem.column("commitment_mbps").copy()
    commitment[contract] = 0.0
    capacity = problem.column("capacity_mbps").copy()
    capacity[contract] *= 1.5
    if problem.servable_mbps.sum() == problem.traffic_mbps.sum():  # else more is served
        require_no_higher_bill(problem.with_contracts(capacity_mbps=capacity), before)
    require_no_higher_bill(problem.with_contracts(commitment_mbps=commitment), before)


@pytest.mark.slow
@settings(max_examples=5, suppress_health_check=[HealthCheck.too_slow])
@given(months(windows=24))
def test_looser_shares_never_cost_more(problem: Month) -> None:
    tight = problem.with_contracts(min_share=0.1, max_share=0.7)
    if tight.servable_mbps.sum() < problem.servable_mbps.sum() - 1e-6:
        return  # tighter shares serve less
    require_no_higher_bill(problem, bill_of(tight)[0])


@pytest.mark.slow
@settings(max_examples=5, suppress_health_check=[HealthCheck.too_slow])
@given(months(windows=24, rules=(PERCENTILE,)))
def test_the_least_bill_by_the_95th_percentile_is_never_above_that_by_peak(problem: Month) -> None:
    require_no_higher_bill(problem, bill_of(only(problem, PEAK))[0])


@pytest.mark.slow
@settings(max_examples=10)
@given(months(windows=40, rules=(PERCENTILE,)))
def test_the_95_5_bill_is_never_above_the_bill_by_peak(problem: Month) -> None:
    for design in SYSTEM.designs:
        plan = design.run(problem, options=Options(time_limit_s=0.5)).plan
        assert plan is not None
        load = read_loads(problem, plan)
        assert bill(problem, load)["amount"].sum() <= bill(problem, load, billing=PEAK)["amount"].sum() + 1e-9


@pytest.mark.slow
@settings(max_examples=6)
@given(months(windows=30))
def test_no_plan_is_below_the_bound_and_none_beats_the_optimum(problem: Month) -> None:
    best, bound = bill_of(problem)
    for design in SYSTEM.designs:
        plan = design.run(problem, options=EXACT).plan
        assert plan is not None
        cost = float(bill(problem, read_loads(problem, plan))["amount"].sum())
        assert cost >= bound - 0.02
        assert cost >= best * (1 - SLACK) - 0.02, design.name


@pytest.mark.slow
def test_a_long_month_is_planned_near_its_bound() -> None:
    problem = generators.month(clients=2_000, cdns=8, days=7, window_minutes=15, seed=2)
    cost, bound = bill_of(problem, Options(gap=0.04, time_limit_s=30.0))
    assert cost <= 1.05 * bound


def test_traffic_beyond_all_contracts_is_left_or_proven_too_much() -> None:
    problem = make([50.0] * 19 + [150.0], [("x", PERCENTILE, 1.0, 100.0, 0.0)])
    decision = SYSTEM.design("optimum").run(problem)
    assert decision.proof.ranks[0].objective == pytest.approx(52.5)
    assert decision.proof.status is Status.OPTIMAL
    short = SYSTEM.design("optimum").run(problem, options=Options(service="all"))
    assert short.proof.status is Status.INFEASIBLE
    assert short.proof.reasons == (
        "window 20 has 150 Mbit/s of traffic in region 'world'; its contracts carry at most 100 Mbit/s",
    )


@pytest.mark.parametrize(("penalty", "expected"), [(3.0, 70 * 2.0 + 30 * 3.0 / 2), (5.0, 100 * 2.0)])
def test_content_is_refused_where_its_penalty_is_lower_than_what_carrying_it_costs(
    penalty: float, expected: float
) -> None:
    """A refused content is a contract billed by the mean, as docs/howto/contracts.md says."""
    rows = [("x", PEAK, 2.0, 200.0, 0.0), ("refused live", MEAN, penalty, 1000.0, 0.0)]
    problem = make([40.0] * 10 + [100.0] * 10, rows).with_contracts(max_share=[1.0, 0.3])
    best, bound = bill_of(problem)
    assert best == pytest.approx(expected, abs=0.011)
    assert bound == pytest.approx(expected, rel=1e-4, abs=0.02)


@pytest.mark.slow
def test_the_model_of_several_regions_has_the_sum_of_their_least_bills() -> None:
    problem = SYSTEM.problem.presets["small"]()
    assert len(problem.regions) > 1
    solution = backends.solve(optimum.build_model(problem), EXACT)
    decision = optimum.plan(problem, options=EXACT)
    assert decision.proof.bound is not None
    assert solution.objective == pytest.approx(decision.proof.objective, rel=1e-4)


def test_without_time_the_plan_is_no_dearer_than_to_pour_commitments_first() -> None:
    problem = generators.month(clients=200, cdns=4, days=2, window_minutes=15, seed=2)
    region = Region.of(problem, 0)
    poured = free_windows.load_cost(region, pour_commitments_first(region))
    decision = optimum.plan_region(region, method="search", options=Options(), time_limit_s=0.0)
    assert decision.load is not None
    assert decision.cost is not None
    assert decision.cost <= poured * (1 + 1e-9)
    remaining = region.traffic - decision.load.sum(axis=1)
    assert remaining.max() <= 1e-6 * region.traffic.max()
    assert free_windows.load_cost(region, decision.load) == pytest.approx(decision.cost)


def regions_of(problem: Month) -> list[Region]:
    return [Region.of(problem, row) for row in range(len(problem.regions))]


def least_bill_of_whole_loads(problem: Month) -> float:
    """Return the least bill of all loads in whole Mbit/s, two contracts, by trying them all."""
    traffic = problem.traffic_mbps[:, 0].astype(int).tolist()
    lower = math.inf
    for first in itertools.product(*(range(item + 1) for item in traffic)):
        load = np.array([first, np.subtract(traffic, first)], dtype=float).T
        if (load <= problem.most_mbps + 1e-9).all():
            lower = min(lower, float(bill(problem, load)["amount"].sum()))
    return lower


@pytest.mark.parametrize(
    ("contracts", "expected"),
    [
        ([("x", PEAK, 0.005, 60.0, 0.0), ("y", PEAK, 0.005, 60.0, 0.0)], 0.50),
        ([("x", PEAK, 1.0, 60.0, 0.0), ("y", PEAK, 1.0, 60.0, 0.0)], 100.0),
        ([(name, PEAK, 1.0, 60.0, 0.0) for name in "wxyz"], 100.0),
        ([("x", MEAN, 0.001, 60.0, 0.0), ("y", PEAK, 0.004, 60.0, 20.0)], 0.22),
    ],
)
def test_a_proven_bill_is_proven_to_the_cent(
    contracts: list[tuple[str, str, float, float, float]], expected: float
) -> None:
    run = planner.solve(make([100.0, 100.0, 100.0], contracts), design="optimum")
    assert run.proof.status is Status.OPTIMAL
    rank = next(rank for rank in run.proof.ranks if rank.metric == "bill")
    assert rank.objective <= expected + 1e-9
    assert rank.bound == rank.objective == run.metrics["bill"]
    assert "no less than" not in run.verdict


@pytest.mark.slow
@pytest.mark.parametrize("seed", [pytest.param(0, marks=pytest.mark.exhaustive), 1, 2, 3])
def test_no_design_has_a_bill_below_the_bound_of_any_method(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rules = rng.choice([MEAN, PEAK, PERCENTILE], 3)
    contracts = [
        (name, str(rule), float(rng.choice([0.002, 1.0, 3.0])), 60.0, float(rng.choice([0.0, 10.0])))
        for name, rule in zip("xyz", rules, strict=True)
    ]
    problem = make(rng.choice([0.0, 5.0, 30.0, 80.0], 20).tolist(), contracts)
    plans = [planner.solve(problem, design="optimum", method=name) for name in ("auto", "search", "exact")]
    bounds = [rank.bound for run in plans for rank in run.proof.ranks if rank.metric == "bill"]
    assert len(bounds) == 3
    plans += [
        planner.solve(problem, design=name)
        for name in ("by_peak", "commitments_first", "cheapest_first", "fixed_shares")
    ]
    for run in plans:
        assert not len(run.violations.frame)
        assert (run.metrics["bill"] or 0.0) >= max(bounds) - 1e-9


@pytest.mark.parametrize("seed", range(12))
def test_no_split_has_a_bill_below_the_bound(seed: int) -> None:
    rng = np.random.default_rng(seed)
    traffic = rng.integers(2, 10, 3).astype(float).tolist()
    rules = rng.choice([MEAN, PEAK, PERCENTILE], 2)
    contracts = [
        (name, str(rule), float(rng.integers(1, 60)) / 1e4, 12.0, float(rng.integers(0, 3)) * 1.5)
        for name, rule in zip("xy", rules, strict=True)
    ]
    problem = make(traffic, contracts)
    run = planner.solve(problem, design="optimum")
    bound = next(rank.bound for rank in run.proof.ranks if rank.metric == "bill")
    assert run.metrics["bill"] is not None
    assert bound <= run.metrics["bill"] <= least_bill_of_whole_loads(problem) + 1e-9
    assert bound == run.metrics["bill"]
    assert run.proof.status is Status.OPTIMAL


def test_amounts_of_commitments_round_as_they_are_known_to() -> None:
    problem = make([10.0, 10.0], [("x", PEAK, 0.0107, 10.0, 20.0)])  # 0.214, never more
    assert optimum.least_bill(problem, problem.parts, 0.214) == 0.21
    open_ended = make([10.0, 10.0], [("x", PEAK, 0.0107, 10.0, 0.0)])  # 0.107 rounds up
    assert optimum.least_bill(open_ended, open_ended.parts, 0.107) == 0.11
    assert optimum.least_bill(open_ended, open_ended.parts, 0.1049) == 0.10
    two = make([10.0, 10.0], [("x", PEAK, 1.0, 10.0, 0.0), ("y", PEAK, 1.0, 10.0, 0.0)])
    assert optimum.least_bill(two, two.parts, 100.0) == 100.0  # less than two halves of a cent below
    assert optimum.least_bill(two, two.parts, 99.9999) == 99.99
