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
    violations = check(adjust(problem, max_moved_percent=30), make_plan(problem, load))
    assert len(violations) == 1
    assert len(violations.of_limits(["moved"])) == 1


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


def cover_of(region: Region, gain: np.ndarray, is_free: np.ndarray, window: int) -> float:
    """Return the most that free windows add in a window, where no least shares are given."""
    windows = len(region.traffic)
    change = np.diff(region.traffic)
    movable = region.moved_share * np.minimum(region.traffic[:-1], region.traffic[1:])
    rise, fall = np.maximum(change, 0.0) + movable, np.maximum(-change, 0.0) + movable
    limits = []
    for contract in np.flatnonzero(is_free[window]).tolist():
        first = last = window
        while first > 0 and is_free[first - 1, contract]:
            first -= 1
        while last + 1 < windows and is_free[last + 1, contract]:
            last += 1
        up = rise[first - 1 : window].sum() if first > 0 else np.inf
        down = fall[window : last + 1].sum() if last + 1 < windows else np.inf
        limits.append((up, down, min(float(gain[window, contract]), up, down)))
    covers = []
    for side in (0, 1):
        total = 0.0
        for limit in sorted(limits, key=lambda row: row[side]):
            total = min(total + limit[2], limit[side])
        covers.append(total)
    return min(covers)


def cost_of(region: Region, level: np.ndarray, is_free: np.ndarray) -> float:
    """Return the cost that simulated annealing minimises, where no contract is billed by the mean."""
    base = np.minimum(region.most, level)
    gain, excess = region.most - base, region.traffic - base.sum(axis=1)
    prices = np.array([steps[1][0] for steps in region.steps])
    shortage = annealing.SHORTAGE_SHARE * float(region.traffic.max())
    cost = float(prices @ level)
    for window in range(len(excess)):
        short = max(excess[window] - cover_of(region, gain, is_free, window), 0.0)
        cost += float(np.median(prices)) * (annealing.SHORTAGE_PRICE * short + short**2 / shortage)
    return cost


@pytest.mark.slow
@settings(max_examples=2)
@given(two_contracts(), LIMITS)
def test_annealing_costs_no_more_than_any_choice_at_its_first_levels(problem: Month, percent: float) -> None:
    region = Region.of(adjust(problem, max_moved_percent=percent), 0)
    level = 0.4 * region.level_limits[1]
    result = annealing.choose(region, level, annealing.ALL, random=np.random.default_rng(0))
    assert (result.is_free.sum(axis=0) <= region.free).all()
    assert result.cost == pytest.approx(cost_of(region, result.level, result.is_free))
    nothing = cost_of(region, level, np.zeros((20, 2), dtype=bool))
    ways = ((True, False), (False, True), (True, True))  # a window may be free under each contract, or both
    saved = np.zeros((3, 20))
    for way, window in itertools.product(range(3), range(20)):
        is_free = np.zeros((20, 2), dtype=bool)
        is_free[window] = ways[way]
        saved[way, window] = nothing - cost_of(region, level, is_free)
    together = saved[0][:, None] + saved[1]
    np.fill_diagonal(together, saved[2])
    lower = nothing - max(float(together.max()), 0.0)
    assert result.cost <= lower * (1 + 1e-6)


@pytest.mark.slow
@settings(max_examples=10)
@given(two_contracts(), LIMITS)
def test_annealing_at_given_levels_keeps_them(problem: Month, percent: float) -> None:
    region = Region.of(adjust(problem, max_moved_percent=percent), 0)
    level = 0.4 * region.level_limits[1]
    result = annealing.choose(region, level, annealing.GIVEN_LEVELS, random=np.random.default_rng(0))
    assert result.level == pytest.approx(level)
    assert (result.is_free.sum(axis=0) <= region.free).all()
    nothing = cost_of(region, level, np.zeros((20, 2), dtype=bool))
    assert result.cost == pytest.approx(cost_of(region, level, result.is_free))
    assert result.cost <= nothing * (1 + 1e-9)


@settings(max_examples=10)
@given(two_contracts(), LIMITS, st.integers(0, 1_000))
def test_no_loads_within_the_limit_add_more_than_the_cover(problem: Month, percent: float, seed: int) -> None:
    region = Region.of(adjust(problem, max_moved_percent=percent), 0)
    random = np.random.default_rng(seed)
    start, share = 0.0, random.uniform(size=len(region.traffic))
    load = np.zeros_like(region.most)
    for window, traffic in enumerate(region.traffic.tolist()):  # a random walk of the first contract's load
        lower, upper = max(traffic - region.most[window, 1], 0.0), region.most[window, 0]
        if window:
            change = traffic - float(region.traffic[window - 1])
            movable = region.moved_share * min(traffic, float(region.traffic[window - 1]))
            lower = max(lower, start + min(change, 0.0) - movable)
            upper = min(upper, start + max(change, 0.0) + movable)
        if lower > upper + 1e-9:
            return  # no loads follow
        start = lower + share[window] * max(upper - lower, 0.0)
        load[window] = start, traffic - start
    assert switching.is_within_limit(region, load)
    level = random.uniform(0.2, 0.8, size=2) * region.level_limits[1]
    is_free = load > level
    gain = region.most - np.minimum(region.most, level)
    for window in range(len(load)):
        added = float(np.maximum(load[window] - level, 0.0).sum())
        assert added <= cover_of(region, gain, is_free, window) + 1e-6


@pytest.mark.exhaustive
@pytest.mark.parametrize(("seed", "percent"), [pytest.param(0, 0.0, marks=pytest.mark.exhaustive), (4, 10.0)])
def test_a_week_of_hours_is_planned_near_its_bound(seed: int, percent: float) -> None:
    problem = generators.month(days=7, window_minutes=60, seed=seed)
    limited = adjust(problem, max_moved_percent=percent)
    cost, bound = least_bill(limited, Options(gap=0.02, time_limit_s=120.0, threads=1))
    assert bound <= cost <= 1.021 * bound


def test_a_limit_of_an_unknown_region_is_refused() -> None:
    problem = make([10.0], [("x", PERCENTILE, 1.0, 10.0, 0.0)])
    frame = pd.DataFrame({"region": ["word"], "max_moved_percent": [5.0]})
    with pytest.raises(InputError) as error:
        Month(traffic=problem.traffic, contracts=problem.contracts, switching=frame)
    assert error.value.faults == ("switching row 1: region 'word' has no traffic; did you mean 'world'?",)
