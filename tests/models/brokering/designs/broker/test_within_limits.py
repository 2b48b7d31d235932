"""Limits of CDNs in regions: against enumeration, and with regions that are countries or continents."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import planner
from planner.errors import InputError
from planner.options import Options
from planner_models.brokering import Brokering
from planner_models.brokering.designs.broker import assignment, within_limits
from planner_models.brokering.plan.check import check, limited_mbps
from planner_models.brokering.plan.transportation import transportation_problem
from tests.models.brokering.markets import market, markets

REGION_OF = {"FR": "Europe", "IT": "Europe", "NO": "Europe", "BR": "South America"}
TIGHT = Options(gap=1e-9, time_limit_s=600)
COLUMNS = ["cdn", "region", "min_mbps", "max_mbps", "min_share", "max_share"]


@st.composite
def limited(draw: st.DrawFn) -> Brokering:
    """Draw a small market with one or two limits."""
    problem = draw(markets(max_clients=2))
    rows = []
    for cdn in draw(st.lists(st.sampled_from(problem.cdn_names), min_size=1, max_size=2, unique=True)):
        floor, cap = sorted(draw(st.tuples(st.floats(0, 1), st.floats(0, 1))))
        region = draw(st.sampled_from(["world", "Europe", "FR", "South America"]))
        rows.append(
            (cdn, region, np.nan, draw(st.sampled_from([np.nan, 3.0])), round(floor, 2), round(cap, 2))
        )
    return replace(problem, limits=pd.DataFrame(rows, columns=COLUMNS))


def find_best(problem: Brokering) -> tuple[int, float, float]:
    """Return the fewest shed clients, then the least lack of floors, then the least cost, by enumeration."""
    transport = transportation_problem(problem)
    country = problem.locations["country"].to_numpy()[problem.groups.location]
    clusters, cdn = len(problem.clusters), problem.clusters["cdn"].to_numpy()
    demand = transport.count * transport.bitrate_mbps
    best = (10**9, np.inf, np.inf)
    options = [
        [row for row in itertools.product(range(count + 1), repeat=clusters) if sum(row) <= count]
        for count in transport.count.tolist()
    ]
    for rows in itertools.product(*options):
        clients = np.array(rows)
        traffic = clients * transport.bitrate_mbps[:, None]
        if (traffic.sum(axis=0) > problem.residual_mbps + 1e-9).any() or (
            clients[np.isinf(transport.cost)] > 0
        ).any():
            continue
        lack = 0.0
        for limit in problem.limits.to_dict(orient="records"):
            inside = np.array(
                [limit["region"] in ("world", code, REGION_OF[code]) for code in country], dtype=bool
            )
            load = float(traffic[inside][:, cdn == limit["cdn"]].sum())
            total = float(demand[inside].sum())
            cap = np.nanmin([limit["max_mbps"], limit["max_share"] * total])
            if load > cap + 1e-9:
                lack = np.inf
                break
            lack += max(limit["min_share"] * total - load, 0.0)
        if np.isinf(lack):
            continue
        cost = float(np.where(clients > 0, transport.cost, 0.0).ravel() @ clients.ravel())
        best = min(best, (int(transport.count.sum() - clients.sum()), round(lack, 6), cost))
    return best


@pytest.mark.slow
@settings(max_examples=40)
@given(limited())
def test_no_assignment_is_better(problem: Brokering) -> None:
    transport = transportation_problem(problem)
    sizes = [len(problem.clusters) ** int(count) for count in transport.count]
    if np.prod([float((1 + count) ** len(problem.clusters)) for count in transport.count]) > 3e5 or not sizes:
        return
    decision = assignment.assign(problem, options=TIGHT)
    shed, lack, cost = find_best(problem)
    assert decision.plan is not None
    violations = set(check(problem, decision.plan).frame["limit"]) if check(problem, decision.plan) else set()
    assert violations <= {"floors"}
    served = {rank.metric: rank for rank in decision.proof.ranks}
    assert problem.count.sum() - served["served"].objective == shed
    missing = np.maximum(problem.volume_limits.floor_mbps - limited_mbps(problem, decision.plan), 0).sum()
    assert missing == pytest.approx(lack, abs=1e-4)
    assert served["weighted_cost"].objective == pytest.approx(cost, rel=1e-5, abs=1e-5)
    assert served["weighted_cost"].bound <= cost * (1 + 1e-6) + 1e-6


def make(limits: list[tuple[Any, ...]]) -> Brokering:
    """Return 10 clients in Lyon and 10 in Recife, of 1 Mbit/s, with a cheap and a dear CDN in both."""
    problem = market(
        [("Lyon", 1000.0, 10), ("Recife", 1000.0, 10)],
        [("cheap", "A", "Lyon", 100.0, 0.01), ("dear", "B", "Lyon", 100.0, 0.9)],
        scores=[(city, cluster, 1.0) for city in ("Lyon", "Recife") for cluster in ("cheap", "dear")],
    )
    return replace(problem, limits=pd.DataFrame(limits, columns=COLUMNS))


N = np.nan


@pytest.mark.parametrize(
    ("limit", "traffic"),
    [
        (("B", "FR", N, N, 0.3, N), [17, 3]),
        (("B", "EU", 4.0, N, N, N), None),
        (("B", "Europe", 4.0, N, N, N), [16, 4]),
        (("A", "South America", N, N, N, 0.0), [10, 10]),
        (("A", "world", N, 6.0, N, 0.5), [6, 14]),
        (("B", "NO", N, N, 0.9, N), [20, 0]),
    ],
)
def test_limits_by_region(limit: tuple[Any, ...], traffic: list[float] | None) -> None:
    run = planner.solve(make([limit]), design="omniscient")
    carried = run.plan.assignments.groupby("cluster")["clients"].sum()
    assert [carried.get("cheap", 0), carried.get("dear", 0)] == (traffic or [16, 4])
    assert run.metrics["floor_shortfall_mbps"] == pytest.approx(0.0, abs=1e-6)
    assert run.status == "optimal"


def test_what_does_not_fit_is_shed_and_what_floors_lack_is_said() -> None:
    caps = planner.solve(
        make([("A", "world", N, 6.0, N, N), ("B", "world", N, 5.0, N, N)]), design="omniscient"
    )
    assert caps.metrics["shed"] == 9
    assert caps.metrics["unserved"] == 9
    floors = planner.solve(make([("A", "FR", 12.0, N, N, N)]), design="omniscient")
    assert floors.metrics["floor_shortfall_mbps"] == pytest.approx(2.0)
    assert floors.proof.bound_scope == "plans that lack no more than 2 Mbit/s of the floors"
    assert set(floors.violations.frame["limit"]) == {"floors"}


def test_designs_that_do_not_keep_limits_say_how_much_they_exceed() -> None:
    problem = make([("A", "world", N, 6.0, N, N)])
    for run in planner.compare(problem, designs=("several_brokers", "transactions", "c3", "omniscient")):
        assert run.plan is not None, run.label


def test_divisible_clients_and_a_rest_of_whole_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = make([("A", "FR", N, N, N, 0.55), ("B", "world", 3.0, N, N, N)])
    whole = assignment.assign(problem, options=TIGHT)
    monkeypatch.setattr(within_limits, "MAX_EXACT_VARIABLES", 0)
    rounded = assignment.assign(problem, options=TIGHT)
    assert rounded.proof.objective >= whole.proof.objective - 1e-9
    assert rounded.proof.bound <= whole.proof.objective + 1e-6
    assert not check(problem, rounded.plan)


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ([("A", "FR", N, N, N, N)], "has no limit; give one of min_mbps, max_mbps, min_share, max_share"),
        ([("A", "FR", 5.0, 4.0, N, N)], "min_mbps is 5, must be at most max_mbps, 4"),
        ([("A", "FR", N, N, 0.6, 0.5)], "min_share is 0.6, must be at most max_share, 0.5"),
        ([("A", "FR", N, N, N, 1.5)], "max_share is 1.5, must be at most 1"),
        ([("Q", "FR", N, N, N, 0.5)], "cdn 'Q' is no CDN of the problem"),
        ([("A", "Gaul", N, N, N, 0.5)], "region 'Gaul' is no region"),
    ],
)
def test_bad_limits(limits: list[tuple[Any, ...]], message: str) -> None:
    with pytest.raises(InputError) as caught:
        make(limits)
    assert message in str(caught.value)


def test_codes_of_both_a_country_and_a_continent_are_refused() -> None:
    problem = make([("A", "SA", N, N, N, 0.5)])  # no location in Saudi Arabia: South America
    assert problem.volume_limits.in_region.tolist() == [[False, True]]
    in_saudi_arabia = problem.locations.assign(country=["SA", "BR"])
    with pytest.raises(InputError, match="write Saudi Arabia or South America"):
        replace(problem, locations=in_saudi_arabia)
    named = replace(problem, locations=in_saudi_arabia, limits=problem.limits.assign(region="Saudi Arabia"))
    assert named.volume_limits.in_region.tolist() == [[True, False]]
