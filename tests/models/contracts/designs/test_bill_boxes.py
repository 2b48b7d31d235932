"""Bounds on bills over regions and directions, against exact optima of small months."""

from __future__ import annotations

import numpy as np
import pytest

from planner.options import Options
from planner.search.deadline import Deadline
from planner_models.contracts import Month
from planner_models.contracts.designs import bill_boxes, shared_bills
from planner_models.contracts.designs.optimum import plan, plan_part
from planner_models.contracts.plan.check import check
from planner_models.contracts.problem.bills import IN, LARGER, METERED, OUT
from planner_models.contracts.problem.problem import MEAN, PEAK, PERCENTILE
from tests.models.contracts.designs.test_shared_bills import draw, least_bill, solve

EXACT = Options(gap=1e-7, time_limit_s=60.0, threads=1)


def part_of(problem: Month) -> shared_bills.Part:
    """Return the only part of a problem."""
    (regions,) = problem.parts
    return shared_bills.Part.of(problem, regions)


def raise_from_zero(problem: Month, enough: float, limit_s: float = 3.0) -> float:
    """Return the bound of boxes alone."""
    part = part_of(problem)
    assert bill_boxes.is_suitable(part)
    return bill_boxes.find_bound(
        part, lower=0.0, enough=enough, options=EXACT, deadline=Deadline.after(limit_s)
    ).bound


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_the_bound_is_near_the_optimum_of_a_small_month_and_no_more(seed: int) -> None:
    problem = draw(seed, metered=METERED[seed], commitment_mbps=40.0 * (seed % 2))
    best, _ = solve(problem, "exact")
    bound = raise_from_zero(problem, 1.1 * best)
    assert bound <= best * (1 + 1e-5)
    assert bound >= best * 0.95


@pytest.mark.slow
def test_the_bound_holds_against_brute_force() -> None:
    problem = draw(3, metered=IN).with_contracts(billing=[PERCENTILE, PERCENTILE, PEAK, MEAN])
    best = least_bill(problem)
    assert 0.9 * best <= raise_from_zero(problem, 1.1 * best) <= best * (1 + 1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("metered", [IN, LARGER])
def test_a_month_of_168_windows_is_proven_within_a_thousandth(
    monkeypatch: pytest.MonkeyPatch, metered: str
) -> None:
    """The relaxation alone leaves 9% and 25%."""
    monkeypatch.setattr("tests.models.contracts.designs.test_shared_bills.WINDOWS", 168)
    problem = draw(1, metered=metered)
    decision = plan(problem, options=Options(gap=1e-3, time_limit_s=60.0, threads=1))
    assert decision.plan is not None
    assert decision.proof.gap is not None
    assert decision.proof.gap <= 1e-3
    assert not len(check(problem, decision.plan))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_bound_and_plan_of_boxes_hold_the_optimum_between_them(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr("tests.models.contracts.designs.test_shared_bills.WINDOWS", 40)
    problem = draw(seed, metered=LARGER if seed == 1 else IN)
    exact = shared_bills.plan_part(
        part_of(problem), method="exact", limits=shared_bills.Limits(EXACT, 1e-3, Deadline.after(30.0), 1.0)
    )
    assert exact.cost is not None
    assert exact.bound is not None
    made = plan_part(problem, problem.parts[0], method="search", options=EXACT, time_limit_s=30.0)
    assert made.cost is not None
    assert made.bound is not None
    assert made.bound <= exact.cost * (1 + 1e-6)
    assert made.cost >= exact.bound * (1 - 1e-6)
    assert made.cost <= 1.01 * made.bound


def test_plans_have_what_the_conditions_need() -> None:
    """For loads of any kind, levels and free windows of these loads carry the traffic by the conditions."""
    rng = np.random.default_rng(5)
    problem = draw(7, metered=OUT)
    part = part_of(problem)
    boxes = bill_boxes._PartBoxes(part)
    whole = np.arange(len(part.traffic))
    meters = part.rated[part.meter_free[part.rated] > 0]
    needs = bill_boxes._collect(part, boxes.bills, meters, whole, whole)
    for _ in range(20):
        share = rng.uniform(size=part.most.shape) * part.most
        load = shared_bills._fit(part, share)
        samples = part.samples(load)
        level = part.volumes(load)[boxes.bills]
        missing = bill_boxes._find_missing(needs, level, len(meters))
        for window in range(len(load)):
            free = [
                slot
                for slot, m in enumerate(meters)
                if samples[window, m] > part.volumes(load)[part.meter_bill[m]]
            ]
            assert missing[window, sum(1 << slot for slot in free)] == 0


def test_one_bill_of_two_regions_is_bounded_by_hand() -> None:
    """Two regions of 60 and 20 in turn on one bill: 80 in each window, whatever is free."""
    problem = draw(0)
    traffic = problem.traffic.assign(traffic_mbps=[60.0, 20.0] * 10 + [20.0, 60.0] * 10)
    rows = problem.contracts.iloc[:2].assign(price_per_mbps=1.0, capacity_mbps=100.0)
    alone = Month(traffic=traffic, contracts=rows)
    assert raise_from_zero(alone, 79.99) == pytest.approx(79.99)
    assert raise_from_zero(alone, 81.0) == pytest.approx(80.0, rel=1e-3)
