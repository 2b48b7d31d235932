"""Limits of switching: kept by every plan, exact where small, and looser ones never cost more."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pyomo.environ as pyo
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from planner.errors import InputError
from planner.options import Options
from planner_models.contracts import SYSTEM, Month, bill, check, formulation
from planner_models.contracts.designs import annealing, optimum, switching
from planner_models.contracts.designs.program import Region
from planner_models.contracts.plan.check import moved_mbps
from planner_models.contracts.plan.metrics import measure
from planner_models.contracts.plan.plan import make_plan, read_loads
from planner_models.contracts.problem import generators
from planner_models.contracts.problem.adjustments import adjust
from planner_models.contracts.problem.problem import PEAK, PERCENTILE
from tests.models.contracts.months import make, months

EXACT = Options(gap=1e-6, time_limit_s=30.0, threads=1)
LIMITS = st.sampled_from([0.0, 2.0, 10.0, 40.0])


def least_bill(problem: Month, options: Options = EXACT) -> tuple[float, float]:
    """Return the bill of the optimum and its bound."""
    decision = optimum.plan(problem, options=options)
    assert decision.plan is not None
    assert not len(check(problem, decision.plan))
    rank = decision.proof.ranks[1]
    return rank.objective, rank.bound


def test_moved_traffic_is_what_demand_does_not_change() -> None:
    problem = make([10.0, 10.0, 6.0], [("x", PEAK, 1.0, 10.0, 0.0), ("y", PEAK, 1.0, 10.0, 0.0)])
    load = np.array([[10.0, 0.0], [7.0, 3.0], [0.0, 6.0]])
    assert moved_mbps(problem, load)[:, 0].tolist() == [3.0, 3.0]
    figures = measure(problem, make_plan(problem, load), None)
    assert figures["most_moved_percent"] == pytest.approx(50.0)
    assert figures["moved_percent"] == pytest.approx(100 * 6 / 16)
    found = check(adjust(problem, max_moved_percent=30), make_plan(problem, load))
    assert len(found) == 1
    assert len(found.of_limits(["moved"])) == 1


def test_rounding_errors_are_no_moved_traffic() -> None:
    rows = [("x", PEAK, 1.0, 10.0, 0.0), ("y", PEAK, 1.0, 10.0, 0.0)]
    load = np.array([[0.1, 9.9], [0.1 + 1e-14, 9.9 - 1e-14], [0.1, 9.9]])
    figures = measure(make([10.0, 10.0, 10.0], rows), make_plan(make([10.0, 10.0, 10.0], rows), load), None)
    assert figures["most_moved_percent"] == figures["moved_percent"] == 0.0


@pytest.mark.slow
def test_a_limit_of_zero_keeps_traffic_where_it_is() -> None:
    # without a limit, x is free in one of the two busy windows and y in the other
    contracts = [(name, PERCENTILE, 1.0, 100.0, 0.0) for name in "xy"]
    problem = make([40.0] * 9 + [100.0, 100.0] + [40.0] * 9, contracts)
    assert least_bill(problem) == pytest.approx((40.0, 40.0), rel=1e-3)
    assert least_bill(adjust(problem, max_moved_percent=60)) == pytest.approx((40.0, 40.0), rel=1e-3)
    assert least_bill(adjust(problem, max_moved_percent=0)) == pytest.approx((100.0, 100.0), rel=1e-3)


@pytest.mark.slow
@settings(max_examples=4, suppress_health_check=[HealthCheck.too_slow])
@given(months(windows=20), LIMITS)
def test_the_formal_model_has_the_same_least_bill(problem: Month, percent: float) -> None:
    limited = adjust(problem, max_moved_percent=percent)
    model = formulation(limited)
    solver = pyo.SolverFactory("appsi_highs")
    solver.highs_options = {"mip_rel_gap": 1e-6, "threads": 1}
    solver.solve(model)
    cost = optimum.plan(limited, options=EXACT).proof.objective
    assert cost == pytest.approx(pyo.value(model.goal), rel=1e-4, abs=0.03)


@pytest.mark.slow
@settings(max_examples=4, suppress_health_check=[HealthCheck.too_slow])
@given(months(windows=20), LIMITS)
def test_looser_limits_never_cost_more(problem: Month, percent: float) -> None:
    tight = adjust(problem, max_moved_percent=percent)
    assert least_bill(problem)[1] <= least_bill(tight)[0] + 0.03
    looser = adjust(problem, max_moved_percent=percent + 10)
    assert least_bill(looser)[1] <= least_bill(tight)[0] + 0.03


@pytest.mark.slow
@settings(max_examples=10, suppress_health_check=[HealthCheck.too_slow])
@given(months(windows=24), LIMITS, st.booleans())
def test_no_plan_moves_more_than_it_may(problem: Month, percent: float, with_shares: bool) -> None:
    if with_shares:
        problem = problem.with_contracts(min_share=0.1, max_share=0.8)
    limited = adjust(problem, max_moved_percent=percent)
    region = Region.of(limited, 0)
    for name in ("optimum", "by_peak", "commitments_first", "cheapest_first", "fixed_shares"):
        plan = SYSTEM.design(name).run(limited, options=Options(time_limit_s=2.0, gap=0.05)).plan
        assert plan is not None
        load = read_loads(limited, plan)
        assert switching.is_within_limit(region, load), name
        assert not len(check(limited, plan))


@pytest.mark.slow
def test_a_month_too_long_for_one_program_keeps_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = generators.month(clients=2_000, cdns=5, days=2, window_minutes=30, seed=3)
    limited = adjust(problem, max_moved_percent=5)
    monkeypatch.setattr(switching, "MOST_CELLS", 10)
    monkeypatch.setattr(optimum, "MOST_BINARIES", 10)
    decision = optimum.plan(limited, options=Options(time_limit_s=8.0, gap=0.02))
    assert decision.plan is not None
    assert not len(check(limited, decision.plan))
    rank = decision.proof.ranks[1]
    assert rank.bound <= rank.objective
    assert bill(limited, read_loads(limited, decision.plan))["amount"].sum() == pytest.approx(rank.objective)


@st.composite
def two_contracts(draw: st.DrawFn) -> Month:
    """Draw a month of 20 windows with two contracts, of one free window each."""
    mbps = st.integers(min_value=20, max_value=100).map(float)
    names = [(name, PERCENTILE, draw(mbps) / 10, draw(mbps), 0.0) for name in "xy"]
    return make(draw(st.lists(mbps, min_size=20, max_size=20)), names)


def cost_of(region: Region, level: np.ndarray, is_free: np.ndarray, moved_weight: float) -> float:
    """Return the cost that simulated annealing minimises, where no contract is billed by the mean."""
    base = np.minimum(region.most, level)
    gain, excess = region.most - base, region.traffic - base.sum(axis=1)
    price = float(np.median([steps[1][0] for steps in region.steps]))
    shortage = annealing.SHORTAGE_SHARE * float(region.traffic.max())
    cover = (gain * is_free).sum(axis=1)
    cost = price / shortage * float((np.maximum(excess - cover, 0.0) ** 2).sum())
    for now in range(len(excess) - 1):
        then = now + 1
        change = float(region.traffic[then] - region.traffic[now])
        movable = region.moved_share * float(region.traffic[[now, then]].min())
        lost = float(gain[now, is_free[now] & ~is_free[then]].sum())
        taken = float(gain[then, is_free[then] & ~is_free[now]].sum())
        lost = min(lost, max(excess[now] - cover[now] + lost, 0.0)) - max(-change, 0.0) - movable
        taken = min(taken, max(excess[then] - cover[then] + taken, 0.0)) - max(change, 0.0) - movable
        cost += moved_weight * price * (max(lost, 0.0) + max(taken, 0.0))
    return cost


@settings(max_examples=8)
@given(two_contracts(), LIMITS, st.sampled_from([0.05, 0.3, 2.0]))
def test_annealed_windows_are_those_of_brute_force(problem: Month, percent: float, weight: float) -> None:
    region = Region.of(adjust(problem, max_moved_percent=percent), 0)
    level = 0.4 * region.level_limits[1]
    found = annealing.choose(region, level, moved_weight=weight, random=np.random.default_rng(0))
    assert (found.sum(axis=0) <= region.free).all()
    least = cost_of(region, level, np.zeros((20, 2), dtype=bool), weight)
    for first, second in itertools.product(range(20), repeat=2):
        is_free = np.zeros((20, 2), dtype=bool)
        is_free[first, 0] = is_free[second, 1] = True
        least = min(least, cost_of(region, level, is_free, weight))
    assert cost_of(region, level, found, weight) <= least * (1 + 1e-9) + 1e-9


@pytest.mark.slow
def test_a_week_of_hours_is_planned_near_its_bound() -> None:
    problem = generators.month(clients=5_000, cdns=13, days=7, window_minutes=60, seed=4)
    limited = adjust(problem, max_moved_percent=10)
    cost, bound = least_bill(limited, Options(gap=0.01, time_limit_s=60.0))
    assert bound <= cost <= 1.05 * bound


def test_a_limit_of_an_unknown_region_is_refused() -> None:
    problem = make([10.0], [("x", PERCENTILE, 1.0, 10.0, 0.0)])
    frame = pd.DataFrame({"region": ["word"], "max_moved_percent": [5.0]})
    with pytest.raises(InputError) as error:
        Month(traffic=problem.traffic, contracts=problem.contracts, switching=frame)
    assert error.value.faults == ("switching row 1: region 'word' has no traffic; did you mean 'world'?",)
