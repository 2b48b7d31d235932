"""Bills in whole cents: their bound against all splits of small months, tried one by one."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import planner
from planner.contract.proof import Status
from planner_models.contracts import Month
from planner_models.contracts.designs import cents
from planner_models.contracts.designs.program import Region
from planner_models.contracts.plan.bill import bill
from planner_models.contracts.problem.problem import MEAN, PEAK, PERCENTILE
from tests.models.contracts.months import make


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
    assert cents.least_bill(regions_of(problem), 0.214) == 0.21
    open_ended = make([10.0, 10.0], [("x", PEAK, 0.0107, 10.0, 0.0)])  # 0.107 rounds up
    assert cents.least_bill(regions_of(open_ended), 0.107) == 0.11
    assert cents.least_bill(regions_of(open_ended), 0.1049) == 0.10
    two = make([10.0, 10.0], [("x", PEAK, 1.0, 10.0, 0.0), ("y", PEAK, 1.0, 10.0, 0.0)])
    assert cents.least_bill(regions_of(two), 100.0) == 100.0  # less than two halves of a cent below
    assert cents.least_bill(regions_of(two), 99.9999) == 99.99
