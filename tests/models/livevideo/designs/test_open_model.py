"""The open model of live video: constraints of users beside the formal model in Pyomo with the same ones."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import planner
from planner.backends import pyomo
from planner.errors import InputError
from planner.options import Options
from planner_models.livevideo import LiveVideo, formulation
from tests.models.livevideo.networks import problem as make
from tests.models.livevideo.networks import problems

REFERENCE = Options(backend="pyomo:highs", gap=1e-9)
LINKS = [
    ("S", "X", 2.0, 1.0),
    ("S", "Y", 2.0, 1.0),
    ("X", "A", 2.0, 1.0),
    ("Y", "A", 2.0, 10.0),
    ("Y", "B", 2.0, 1.0),
]
TIERS = {"S": "source", "X": "reflector", "Y": "reflector", "A": "group", "B": "group"}
SETTINGS = pd.DataFrame({"service_weight": [1.0], "cost_weight": [0.05], "chunk_s": [2.0]})


def small(**tables: Any) -> LiveVideo:
    """Return a source, two reflectors and two groups that request one channel."""
    requests = [("A", "v", 2000.0, 3.0), ("B", "v", 2000.0, 1.0)]
    return make(LINKS, [("v", 2000.0, 1.0)], requests, tiers=TIERS, settings=SETTINGS, **tables)


def solve_reference(problem: LiveVideo, rule: Any = None) -> float:
    """Return the largest value of the formal model in Pyomo, perhaps with a rule."""
    import pyomo.environ as pyo

    reference = formulation(problem)
    if rule is not None:
        reference.rule = pyo.Constraint(expr=rule(reference))
    objective = pyomo.solve_model(reference, REFERENCE).objective
    assert objective is not None
    return objective


@settings(max_examples=6)
@given(problem=problems(rules=True))
def test_without_changes_it_is_the_optimum(problem: LiveVideo) -> None:
    run = planner.model(problem, design="optimum").solve()
    expected = solve_reference(problem)
    assert run.objective == pytest.approx(expected, rel=1e-4, abs=1e-6)
    assert run.metrics["service_minus_cost"] == pytest.approx(expected, rel=1e-4, abs=1e-6)
    assert run.proof.bound == pytest.approx(expected, rel=1e-3, abs=1e-6)
    assert run.proof.bound_scope is None


@settings(max_examples=6)
@given(problem=problems(), most=st.integers(0, 2))
def test_few_streams_from_a_source_in_two_expressions(problem: LiveVideo, most: int) -> None:
    source = str(problem.clusters["cluster"].iloc[problem.sources[0]])
    leaving = [link for link, tail in enumerate(problem.links["tail"]) if tail == source]
    model = planner.model(problem, design="optimum")
    serves = model.variables["serves"]
    has_any = (serves.members["tail"] == source).any()
    streams = serves.where(tail=source) if has_any else serves[[]]
    model.add_constraint("few", streams.sum(), upper=most)
    run = model.solve()
    expected = solve_reference(
        problem,
        lambda m: (
            sum(m.serves[link, o] for link in leaving for o in m.O) + 0 * m.takes[m.steps.at(1)] <= most
        ),
    )
    assert run.objective == pytest.approx(expected, rel=1e-4, abs=1e-6)
    assert run.metrics["service_minus_cost"] == pytest.approx(expected, rel=1e-4, abs=1e-6)
    assert (run.plan.trees["tail"] == source).sum() <= most


def test_a_cluster_that_no_stream_enters() -> None:
    model = planner.model(small(), design="optimum")
    serves = model.variables["serves"]
    assert list(serves.members.columns) == ["channel", "bitrate_kbps", "tail", "head", "tier", "mbps"]
    model.add_constraint("not by X", serves.where(head="X").sum(), equal=0)
    run = model.solve()
    assert run.proof.bound_scope == "plans of the changed model"
    assert set(run.plan.trees["head"]) == {"Y", "A", "B"}


def test_a_stream_that_nobody_requests_there_stays_in_the_plan() -> None:
    model = planner.model(small(), design="optimum")
    model.add_constraint("by both", model.variables["serves"].where(tail="S").sum(), lower=2)
    run = model.solve()
    assert {"X", "Y"} <= set(run.plan.trees["head"])


def test_aims_send_less_and_avoid_a_cluster() -> None:
    goals = ["fewest_links", "least_traffic", "least_cost", "least_through=X"]
    result = planner.alternatives(small(), design="optimum", within=0.3, goals=goals)
    links, traffic, cost, through = result.alternatives
    assert links.amount == pytest.approx(len(links.run.plan.trees[["tail", "head"]].drop_duplicates()))
    assert traffic.amount <= traffic.at_optimum + 1e-6
    assert cost.amount <= cost.at_optimum + 1e-6
    assert through.amount == pytest.approx(0)


def test_infeasible_changes_and_unknown_names_are_named() -> None:
    model = planner.model(small(), design="optimum")
    model.add_constraint("many", model.variables["serves"].where(tail="S").sum(), lower=3)
    run = model.solve()
    assert run.plan is None
    assert run.proof.reasons[0].startswith("many"), "the constraint of the user comes first"
    with pytest.raises(InputError, match="least_through: 'Z' is no cluster"):
        planner.alternatives(small(), design="optimum", goals="least_through=Z")


def test_all_are_served_or_none_is() -> None:
    model = planner.model(small(), design="optimum", service="all")
    run = model.solve()
    assert not len(run.plan.unserved)
    model.add_constraint("not to B", model.variables["serves"].where(head="B").sum(), equal=0)
    assert model.solve().plan is None
