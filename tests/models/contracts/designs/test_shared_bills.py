"""Bills of several regions and directions against bills by hand, brute force and the formal model."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pyomo.environ as pyo
import pytest
from scipy.optimize import linprog

import planner
from planner.errors import InputError
from planner.options import Options
from planner_models.contracts import Month, bill, check, formulation
from planner_models.contracts.designs import optimum, shared_bills
from planner_models.contracts.plan.plan import read_loads
from planner_models.contracts.problem.bills import BOTH, IN, LARGER, METERED, OUT
from planner_models.contracts.problem.problem import MEAN, PEAK, PERCENTILE

REGIONS = ("DE", "FR")
WINDOWS = 20  # of which 1 is free
EXACT = Options(gap=1e-6, time_limit_s=60.0, threads=1)


def draw(seed: int, *, metered: str = OUT, rule: str = PERCENTILE, **terms: object) -> Month:
    """Draw a month in which A has one bill for both regions, and B one for each."""
    rng = np.random.default_rng(seed)
    traffic = pd.DataFrame(
        [
            (window, region, float(rng.integers(20, 100)), float(rng.integers(1, 150)))
            for window in range(1, WINDOWS + 1)
            for region in REGIONS
        ],
        columns=["window", "region", "traffic_mbps", "traffic_in_mbps"],
    )
    of_a = {
        "cdn": "A",
        "bill": "EU",
        "metered": metered,
        "billing": rule,
        "price_per_mbps": 1.1,
        "commitment_mbps": 0.0,
        **terms,
    }
    rows = [{**of_a, "region": region, "capacity_mbps": float(rng.integers(60, 200))} for region in REGIONS]
    for region, billing in zip(REGIONS, (PEAK, PERCENTILE if metered != LARGER else MEAN), strict=True):
        price, capacity = float(rng.integers(8, 20)) / 10, float(rng.integers(60, 200))
        own = {"cdn": "B", "bill": "", "metered": "", "billing": billing, "region": region}
        rows.append({**own, "price_per_mbps": price, "capacity_mbps": capacity, "commitment_mbps": 0.0})
    return Month.from_tables({"traffic": traffic, "contracts": pd.DataFrame(rows)})


def factors(problem: Month) -> list[tuple[int, np.ndarray]]:
    """Return the bill of each meter, and what it counts of each load, (W, N)."""
    into = problem.traffic["traffic_in_mbps"].to_numpy(float).reshape(WINDOWS, len(REGIONS))
    ratio = (into / problem.traffic["traffic_mbps"].to_numpy(float).reshape(WINDOWS, len(REGIONS)))[
        :, [0, 1] * 2
    ]
    kinds = {OUT: [1 + 0 * ratio], IN: [ratio], BOTH: [1 + ratio], LARGER: [1 + 0 * ratio, ratio]}
    of_a = [(0, factor * [1, 1, 0, 0]) for factor in kinds[str(problem.contracts["metered"].iloc[0])]]
    return [*of_a, (1, np.tile([0, 0, 1.0, 0], (WINDOWS, 1))), (2, np.tile([0, 0, 0, 1.0], (WINDOWS, 1)))]


def least_bill(problem: Month) -> float:
    """Return the least bill by a linear program for each choice of free windows; prices have one step."""
    rules = [str(problem.contracts["billing"].iloc[row]) for row in (0, 2, 3)]
    meters = factors(problem)
    choices = [range(WINDOWS) if rules[number] == PERCENTILE else [None] for number, _ in meters]
    loads = WINDOWS * 4
    cost = np.append(np.zeros(loads), problem.contracts["price_per_mbps"].to_numpy(float)[[0, 2, 3]])
    equal = np.zeros((WINDOWS * 2, loads + 3))
    for window, region in itertools.product(range(WINDOWS), range(2)):
        equal[window * 2 + region, [window * 4 + region, window * 4 + 2 + region]] = 1.0
    capacity = problem.contracts["capacity_mbps"].to_numpy(float) / np.maximum(1.0, factors_in(problem))
    traffic = problem.traffic["traffic_mbps"].to_numpy(float).reshape(WINDOWS, 2)
    limits = [(0.0, bound) for bound in capacity.reshape(-1)] + [(0.0, None)] * 3
    rows: list[list[np.ndarray]] = []
    for number, factor in meters:
        samples = np.zeros((WINDOWS, loads + 3))
        for window in range(WINDOWS):
            samples[window, window * 4 : window * 4 + 4] = factor[window]
        samples = samples.mean(axis=0, keepdims=True) if rules[number] == MEAN else samples
        samples[:, loads + number] = -1.0
        rows.append(list(samples))
    best = np.inf
    served = np.minimum(traffic, capacity[:, :2] + capacity[:, 2:]).reshape(-1)
    for selected in itertools.product(*choices):
        less = [
            row
            for samples, free in zip(rows, selected, strict=True)
            for window, row in enumerate(samples)
            if window != free
        ]
        solution = linprog(
            cost, A_ub=np.array(less), b_ub=np.zeros(len(less)), A_eq=equal, b_eq=served, bounds=limits
        )
        best = min(best, solution.fun if solution.success else np.inf)
    return float(best)


def factors_in(problem: Month) -> np.ndarray:
    """Return the traffic in for each Mbit/s out of each contract, (W, N)."""
    shape = (WINDOWS, len(REGIONS))
    into, out = (
        problem.traffic[name].to_numpy(float).reshape(shape) for name in ("traffic_in_mbps", "traffic_mbps")
    )
    return (into / out)[:, [0, 1, 0, 1]]


def solve(problem: Month, method: str = "auto", options: Options = EXACT) -> tuple[float, float]:
    """Return the objective's bill before rounding and its bound."""
    decision = optimum.plan(problem, method=method, options=options)  # type: ignore[arg-type]
    assert decision.plan is not None
    assert not len(check(problem, decision.plan))
    computed = float(bill(problem, read_loads(problem, decision.plan))["computed"].sum())
    rank = decision.proof.ranks[1]
    assert rank.bound <= rank.objective
    return computed, rank.bound


@pytest.mark.slow
@pytest.mark.parametrize("metered", [IN, LARGER, BOTH])
def test_the_optimum_is_that_of_brute_force(metered: str) -> None:
    problem = draw(3, metered=metered)
    if metered != LARGER:  # two meters of one free window each: 400 programs
        problem = problem.with_contracts(billing=[PERCENTILE, PERCENTILE, PEAK, MEAN])
    served = problem.servable_mbps.sum() == pytest.approx(problem.traffic_mbps.sum())
    computed, bound = solve(problem)
    best = least_bill(problem)
    assert served
    assert computed == pytest.approx(best, rel=1e-5)
    assert bound == pytest.approx(best, abs=0.03)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_the_optimum_is_that_of_the_formal_model(seed: int) -> None:
    problem = draw(seed, metered=METERED[seed], commitment_mbps=40.0, credit=15.0, burst_price_per_mbps=1.6)
    model = formulation(problem)
    pyo.SolverFactory("appsi_highs").solve(model)
    computed, bound = solve(problem)
    assert computed == pytest.approx(pyo.value(model.goal), rel=1e-4)
    assert bound <= pyo.value(model.goal) + 0.03


@pytest.mark.parametrize("seed", range(6))
def test_the_search_is_between_the_bound_and_the_optimum(seed: int) -> None:
    problem = draw(seed, metered=METERED[seed % 4], rule=(PERCENTILE, PEAK)[seed % 2])
    part = shared_bills.Part.of(problem, problem.parts[0])
    computed, bound = solve(problem, "search")
    best, proven = solve(problem, "exact")
    assert bound <= proven + 0.03
    assert best <= computed + 1e-6 <= 1.1 * best
    exact = shared_bills.build(part, exact=True)
    assert exact.program.shape[1] > 0


def test_averages_of_groups_give_a_lower_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = draw(1, metered=BOTH)
    best, _ = solve(problem, "exact")
    part = shared_bills.Part.of(problem, problem.parts[0])
    every = shared_bills.relax(part, EXACT)
    monkeypatch.setattr(shared_bills, "MOST_CELLS", 0)
    monkeypatch.setattr(shared_bills, "GROUPS", 5)
    grouped = shared_bills.relax(part, EXACT)
    assert every is not None
    assert grouped is not None
    assert grouped <= every + 1e-6 <= best + 1e-5


def test_ports_of_one_bill_are_added_up_before_the_percentile() -> None:
    """Two ports, one of them idle, as in librenms 15239 and 18481: samples are windows, not rows of ports."""
    mbps = np.arange(1.0, 41.0)
    rows = [
        (window, port, value if port == "p1" else 0.0)
        for window, value in enumerate(mbps, 1)
        for port in ("p1", "p2")
    ]
    traffic = pd.DataFrame(rows, columns=["window", "region", "traffic_mbps"])
    port = {"cdn": "x", "billing": PERCENTILE, "price_per_mbps": 2.0, "capacity_mbps": 100.0, "bill": "all"}
    contracts = pd.DataFrame([{**port, "region": region} for region in ("p1", "p2")])
    problem = Month.from_tables({"traffic": traffic, "contracts": contracts})
    (row,) = bill(problem, problem.traffic_mbps).to_dict("records")
    assert (row["contract"], row["volume_mbps"], row["amount"]) == ("x, bill all", 38.0, 76.0)


def test_in_and_out_are_added_up_before_the_percentile() -> None:
    """Peaks of both directions in different windows, as in librenms 8890: percentiles do not add up."""
    out, into = np.full(20, 10.0), np.full(20, 10.0)
    out[[3, 4]], into[[11, 12]] = 50.0, 70.0
    traffic = pd.DataFrame(
        {"window": range(1, 21), "region": "EU", "traffic_mbps": out, "traffic_in_mbps": into}
    )
    expected = {OUT: 50.0, IN: 70.0, BOTH: 80.0, LARGER: 70.0}
    for metered, volume in expected.items():
        contract = {"cdn": "x", "region": "EU", "billing": PERCENTILE, "price_per_mbps": 1.0}
        contracts = pd.DataFrame([{**contract, "capacity_mbps": 100.0, "metered": metered}])
        problem = Month.from_tables({"traffic": traffic, "contracts": contracts})
        assert bill(problem, problem.traffic_mbps)["amount"].tolist() == [volume]
        assert solve(problem)[0] == pytest.approx(volume)


def test_a_common_bill_lets_peaks_of_regions_share_a_commitment() -> None:
    rows = [
        (window, region, 60.0 if (window <= 10) == (region == "DE") else 20.0)
        for window in range(1, 21)
        for region in REGIONS
    ]
    traffic = pd.DataFrame(rows, columns=["window", "region", "traffic_mbps"])
    contract = {"cdn": "x", "billing": PEAK, "price_per_mbps": 1.0, "capacity_mbps": 100.0}
    contracts = pd.DataFrame([{**contract, "region": region} for region in REGIONS])
    tables = {"traffic": traffic, "contracts": contracts}
    assert solve(Month.from_tables(tables))[0] == pytest.approx(120.0)
    together = Month.from_tables({**tables, "contracts": contracts.assign(bill="EU")})
    assert solve(together)[0] == pytest.approx(80.0)
    assert [part.tolist() for part in together.parts] == [[0, 1]]


def test_limits_of_switching_hold_with_common_bills() -> None:
    problem = draw(2)
    limits = pd.DataFrame({"region": ["DE"], "max_moved_percent": 5.0})
    limited = Month(traffic=problem.traffic, contracts=problem.contracts, switching=limits)
    free, _ = solve(problem)
    assert solve(limited)[0] >= free - 1e-6


def test_explain_names_bills_and_their_terms() -> None:
    problem = draw(0, metered=BOTH, commitment_mbps=90.0)
    explained = planner.explain(problem, options=Options(time_limit_s=5.0, threads=1))
    text = " ".join(explained.explanation.sentences)
    assert "under 3 contracts" in text
    tables = {section.title: section.frame for section in explained.explanation.sections}
    assert set(tables["bills"]["contract"]) == {"A, bill EU", "B in DE", "B in FR"}


PORT = {"cdn": "x", "billing": PEAK, "price_per_mbps": 1.0, "capacity_mbps": 9.0, "bill": "EU"}


@pytest.mark.parametrize(
    ("second", "tiers", "fault"),
    [
        (
            {"price_per_mbps": 2.0},
            [],
            "contracts row 2: price_per_mbps is 2.0, must be 1.0 as in contracts row 1, which is on",
        ),
        (
            {"metered": "in"},
            [],
            "contracts row 2: metered is 'in', but traffic has no column traffic_in_mbps",
        ),
        (
            {"metered": "sideways"},
            [],
            "contracts row 2: metered is 'sideways', must be one of out, in, in + out, larger",
        ),
        (
            {},
            [("DE", 3.0), ("FR", 3.0)],
            "tiers row 2: bill 'x, bill EU' has a price from 3 Mbit/s already; write each tier",
        ),
    ],
)
def test_faulty_bills_are_named(
    second: dict[str, object], tiers: list[tuple[str, float]], fault: str
) -> None:
    traffic = pd.DataFrame([(1, "DE", 5.0), (1, "FR", 6.0)], columns=["window", "region", "traffic_mbps"])
    rows = [{**PORT, "region": "DE", "metered": ""}, {**PORT, "region": "FR", "metered": "", **second}]
    tables = {"traffic": traffic, "contracts": pd.DataFrame(rows)}
    if tiers:
        steps = [("x", region, above, 0.5) for region, above in tiers]
        tables["tiers"] = pd.DataFrame(steps, columns=["cdn", "region", "above_mbps", "price_per_mbps"])
    with pytest.raises(InputError) as error:
        Month.from_tables(tables)
    assert any(message.startswith(fault) for message in error.value.faults), error.value.faults
