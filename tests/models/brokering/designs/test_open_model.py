"""The open model of a broker: constraints of users beside the formal model in Pyomo with the same ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import planner
from planner.backends import pyomo
from planner.errors import InputError
from planner.options import Options
from planner_models.brokering import Brokering, formulation
from tests.models.brokering.markets import market, markets

REFERENCE = Options(backend="pyomo:highs", gap=1e-9)
CLIENTS = [("Lyon", 2000.0, 20), ("Turin", 2000.0, 10)]
CLUSTERS = [
    ("x1", "x", "Lyon", 70.0, 0.02),
    ("x2", "x", "Turin", 20.0, 0.03),
    ("y1", "y", "Oslo", 60.0, 0.05),
]
SCORES = [
    *(("Lyon", cluster, score) for cluster, score in (("x1", 1.0), ("x2", 2.0), ("y1", 3.0))),
    *(("Turin", cluster, score) for cluster, score in (("x1", 1.5), ("x2", 1.0), ("y1", 1.2))),
    *(("Oslo", cluster, 1.0) for cluster in ("x1", "x2", "y1")),
]


def solve_reference(problem: Brokering, rule: Any = None) -> float:
    """Return the least objective of the formal model in Pyomo, perhaps with a rule."""
    import pyomo.environ as pyo

    reference = formulation(problem)
    if rule is not None:
        reference.rule = pyo.Constraint(expr=rule(reference))
    objective = pyomo.solve_model(reference, REFERENCE).objective
    assert objective is not None
    return -objective


@settings(max_examples=6)
@given(problem=markets(tight=False))
def test_without_changes_it_is_the_optimum(problem: Brokering) -> None:
    run = planner.model(problem, design="omniscient").solve()
    expected = solve_reference(problem)
    assert run.objective == pytest.approx(expected, rel=1e-5)
    assert run.metrics["objective"] == pytest.approx(expected, rel=1e-5)
    assert run.proof.metric == "objective"
    assert run.proof.bound == pytest.approx(expected, rel=1e-4)
    assert run.proof.bound_scope is None


@settings(max_examples=6)
@given(problem=markets(), most=st.integers(0, 3))
def test_few_clients_with_a_cdn_in_two_expressions(problem: Brokering, most: int) -> None:
    of_cdn = np.flatnonzero(problem.clusters["cdn"] == "cdn0").tolist()
    model = planner.model(problem, design="omniscient")
    clients = model.variables["clients"].where(cdn="cdn0") if of_cdn else model.variables["clients"][[]]
    model.add_constraint("few", clients.sum(), upper=most)
    run = model.solve()
    expected = solve_reference(
        problem, lambda m: sum(m.U[r, c] for r, c in m.RM if c in of_cdn) + 0 * sum(m.S.values()) <= most
    )
    assert run.objective == pytest.approx(expected, rel=1e-5)
    assert run.proof.bound_scope == "plans of the changed model"
    assert run.proof.metric is None
    cdn = problem.clusters.set_index("cluster")["cdn"]
    rows = run.plan.assignments
    assert rows["clients"][rows["cluster"].map(cdn) == "cdn0"].sum() <= most


def test_shares_of_a_cdn_of_clients_that_are_all_served() -> None:
    problem = market(CLIENTS, CLUSTERS)
    model = planner.model(problem, design="omniscient", service="all")
    assert set(model.variables) == {"clients"}
    clients = model.variables["clients"]
    model.add_constraint("share of x", clients.where(cdn="x").sum(), upper=0.5 * 30)
    run = model.solve()
    rows = run.plan.assignments
    assert rows["clients"].sum() == 30
    assert rows.loc[rows["cluster"].str.startswith("x"), "clients"].sum() == 15
    assert len(run.violations) == 0
    assert run.price("share of x") < 0


def test_aims_use_fewer_clusters_and_less_of_a_cdn() -> None:
    problem = market(CLIENTS, CLUSTERS, scores=SCORES)
    result = planner.alternatives(
        problem,
        design="omniscient",
        within=0.9,
        goals=["fewest_clusters", "best_score", "least_busiest", "least_with=x"],
    )
    fewest, score, busiest, least = result.alternatives
    assert fewest.amount == pytest.approx(fewest.run.plan.assignments["cluster"].nunique())
    assert fewest.amount == 1
    assert score.amount <= score.at_optimum + 1e-6
    assert busiest.amount <= busiest.at_optimum + 1e-6
    rows = least.run.plan.assignments
    of_x = rows["cluster"].str.startswith("x")
    assert least.amount == pytest.approx((rows["clients"] * rows["bitrate_kbps"])[of_x].sum() / 1000)
    assert least.amount < least.at_optimum


def test_the_marketplace_has_its_bids() -> None:
    problem = market(CLIENTS, CLUSTERS, bids=[("Lyon", "x1"), ("Turin", "y1"), ("Turin", "x1")])
    model = planner.model(problem, design="marketplace")
    pairs = model.variables["clients"].members[["location", "cluster"]].to_numpy().tolist()
    assert pairs == [["Lyon", "x1"], ["Turin", "x1"], ["Turin", "y1"]]


def test_infeasible_changes_and_unknown_names_are_named() -> None:
    problem = market(CLIENTS, CLUSTERS)
    model = planner.model(problem, design="omniscient")
    model.add_constraint("many", model.variables["clients"].where(cdn="x").sum(), lower=50)
    run = model.solve()
    assert run.plan is None
    assert any("many" in reason for reason in run.proof.reasons)
    with pytest.raises(InputError, match="no variables 'client'; did you mean 'clients'"):
        model.variables["client"]
    with pytest.raises(InputError, match="least_with: 'w' is no CDN"):
        planner.alternatives(problem, design="omniscient", goals="least_with=w")
