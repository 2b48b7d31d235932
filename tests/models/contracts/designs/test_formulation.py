"""The open model of a month: constraints of users beside the formal model in Pyomo with the same ones."""

from __future__ import annotations

import itertools
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import planner
from planner.backends import pyomo
from planner.errors import InputError
from planner.options import Options
from planner_models.contracts import Month, formulation
from planner_models.contracts.problem.problem import MEAN, PEAK, PERCENTILE
from tests.models.contracts.months import COLUMNS, make, months

REFERENCE = Options(backend="pyomo:highs", gap=1e-6)
SMALL = make(
    [40.0, 60.0, 100.0, 50.0, 30.0],
    [("Acme", PEAK, 1.0, 60.0, 0.0), ("Beacon", MEAN, 3.0, 90.0, 0.0)],
)


def solve_reference(problem: Month, *rules: Any) -> float:
    """Return the least objective of the formal model in Pyomo with rules, (model) -> expression, added."""
    import pyomo.environ as pyo

    reference = formulation(problem)
    reference.rules = pyo.ConstraintList()
    for rule in rules:
        reference.rules.add(rule(reference))
    objective = pyomo.solve_model(reference, REFERENCE).objective
    assert objective is not None
    return objective


@settings(max_examples=6)
@given(problem=months(windows=20))
def test_without_changes_it_is_the_optimum(problem: Month) -> None:
    run = planner.model(problem).solve(gap=1e-6, time_limit_s=60)
    assert run.metrics["objective"] == pytest.approx(solve_reference(problem), rel=1e-5)
    assert run.proof.metric == "objective"
    assert run.proof.bound_scope is None


@settings(max_examples=6)
@given(problem=months(windows=20), share=st.sampled_from([0.0, 0.3, 0.6]))
def test_a_limit_on_a_cdn_in_two_expressions(problem: Month, share: float) -> None:
    carried = problem.servable_mbps[:, 0]
    others = problem.most_mbps[:, 1:].sum(axis=1)
    limit = max(share * float(carried.sum()), float((carried - others).clip(min=0.0).sum()))
    model = planner.model(problem)
    model.add_constraint("cap", model.variables["load"].where(cdn="cdn0").sum(), upper=limit)
    run = model.solve(gap=1e-6, time_limit_s=60)
    expected = solve_reference(problem, lambda m: sum(m.x[w, 0] for w in m.W) <= limit)
    assert run.objective == pytest.approx(expected, rel=1e-5)
    assert run.metrics["objective"] == pytest.approx(expected, rel=1e-5)
    assert run.proof.bound_scope == "plans of the changed model"
    loads = run.plan.loads
    assert loads.loc[loads["cdn"] == "cdn0", "load_mbps"].sum() <= limit + 1e-4


@settings(max_examples=3)
@given(problem=months(windows=20))
def test_the_fewest_contracts_are_those_of_enumeration(problem: Month) -> None:
    within = 0.2
    result = planner.alternatives(problem, within=within, goals="fewest_contracts", gap=1e-6, time_limit_s=60)
    (item,) = result.alternatives
    limit = (result.optimum.objective or 0.0) * (1 + within) * (1 + 1e-6)
    count = len(problem.names)
    fewest = count
    for unused in itertools.chain.from_iterable(
        itertools.combinations(range(count), size) for size in range(count)
    ):
        carried = problem.servable_mbps[:, 0]
        remaining = problem.most_mbps[:, [c for c in range(count) if c not in unused]].sum(axis=1)
        if (remaining < carried * (1 - 1e-9)).any():
            continue
        rules = [
            lambda m, out=unused: sum(m.x[w, c] for w in m.W for c in out) <= 0 for _ in range(bool(unused))
        ]
        if solve_reference(problem, *rules) <= limit:
            fewest = min(fewest, count - len(unused))
    assert item.amount == pytest.approx(fewest, abs=1e-6)
    assert item.run.metrics["cdns_used"] == fewest


def test_aims_about_moves_and_a_cdn() -> None:
    result = planner.alternatives(SMALL, within=0.5, goals=["least_moved", "least_with=Beacon"])
    moved, least = result.alternatives
    # Acme carries at most 60 of 100 in one window of five, so that Beacon carries 40 in it
    assert least.amount == pytest.approx(8.0, abs=1e-4)
    assert least.goal.unit == "Mbit/s"
    assert moved.amount <= moved.at_optimum + 1e-6
    measured = moved.run.metrics["moved_percent"]
    assert measured is not None
    together = [40.0, 60.0, 100.0, 50.0, 30.0]
    common = sum(min(pair) for pair in itertools.pairwise(together))
    assert moved.amount == pytest.approx(measured / 100 * common / 4, abs=1e-4)


def test_variables_of_regions_have_one_name() -> None:
    traffic = pd.DataFrame(
        [(w, region, 10.0 * w) for region in ("north", "south") for w in (1, 2)],
        columns=["window", "region", "traffic_mbps"],
    )
    contracts = [("Acme", "south", PEAK, 1.0, 50.0, 0.0), ("Acme", "north", PERCENTILE, 2.0, 50.0, 0.0)]
    contracts += [("Beacon", "south", MEAN, 2.0, 50.0, 0.0)]
    model = planner.model(Month(traffic=traffic, contracts=pd.DataFrame(contracts, columns=COLUMNS)))
    load = model.variables["load"]
    assert load.members.to_dict("list") == {
        "window": [1, 2, 1, 1, 2, 2],
        "cdn": ["Acme", "Acme", "Acme", "Beacon", "Acme", "Beacon"],
        "region": ["north", "north", "south", "south", "south", "south"],
    }
    model.add_constraint("Acme", load.where(cdn="Acme", window=2).sum(), upper=25.0)
    run = model.solve()
    frame = run.plan.loads
    assert frame.loc[frame["window"] == 2, "load_mbps"].sum() == pytest.approx(40.0)
    on_acme = frame[(frame["window"] == 2) & (frame["cdn"] == "Acme")]
    assert on_acme["load_mbps"].sum() == pytest.approx(25.0)
    assert run.values("level").tolist() == pytest.approx([20.0, 5.0, 0.0])


def test_rows_on_billed_levels_leave_no_metric() -> None:
    model = planner.model(SMALL)
    level = model.variables["level"]
    model.add_constraint("more than needed", level.where(cdn="Acme").sum(), lower=60.0)
    model.add_constraint("little sent", model.variables["load"].where(cdn="Acme").sum(), upper=100.0)
    run = model.solve()
    assert run.proof.metric is None
    assert run.objective > run.metrics["objective"] + 1.0


def test_infeasible_changes_are_named() -> None:
    model = planner.model(SMALL)
    model.add_constraint("little", model.variables["load"].where(cdn="Beacon", window=3).sum(), upper=10.0)
    run = model.solve()
    assert run.plan is None
    assert any("little" in reason for reason in run.proof.reasons)


def test_unknown_names_are_answered_with_the_nearest() -> None:
    model = planner.model(SMALL)
    with pytest.raises(InputError, match="no variables 'loads'; did you mean 'load'"):
        model.variables["loads"]
    with pytest.raises(InputError, match="cdn is 'Acmee': no such member; did you mean 'Acme'"):
        model.variables["load"].where(cdn="Acmee")
    with pytest.raises(InputError, match="least_with: 'Beacn' is no CDN; did you mean 'Beacon'"):
        planner.alternatives(SMALL, goals="least_with=Beacn")
    short = make([500.0], [("Acme", PEAK, 1.0, 60.0, 0.0)])
    with pytest.raises(InputError, match="its contracts carry at most 60 Mbit/s"):
        planner.model(short, service="all")
    assert planner.model(short).solve().metrics["unserved_mbps"] == pytest.approx(440.0)
