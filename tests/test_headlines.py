"""What every comparison says at first sight, over the shipped scenarios: true, comparable, in words."""

from __future__ import annotations

import re

import pytest

import planner
from planner.contract.ranking import compare_ranks
from planner.options import Options
from planner.reports import run_pages
from planner.runs.run import Comparison
from planner.runs.verdict import headline_values, proven_bounds
from planner.scenarios.catalogue import system_names
from planner.scenarios.shipped import scenario_names

SCENARIOS = {
    "brokering/fig_3_7": {},
    "brokering/own_data": {},
    "brokering/learning_market": {},
    "circuitflows/strobe": {},
    "circuits/exact_8": {},
    "circuits/shuffle": {},
    "circuits/skewed_64": {},
    "livevideo/figure_4_16": {},
    "livevideo/session_window": {},
    "livevideo/testbed_failure": {},
    "multicast/own_data": {},
    "multicast/own_tree": {},
    "traffic/abilene": {},
    "traffic/figure_8": {},
    "traffic/flow_simulation": {},
    "traffic/germany50": {},
    "traffic/localflow": {},
}
"""Shipped scenarios that every design answers within seconds."""
OVERLOADED = {
    "brokering/own_data": {"problem.capacity_scale": 0.2},
    "circuits/skewed_64": {"problem.scale": 10.0},
    "livevideo/session_window": {"problem.capacity_scale": 0.2},
    "multicast/own_data": {"problem.table_size": 1},
    "traffic/abilene": {"problem.scale": 5.0},
    "traffic/germany50": {"problem.fail_nodes": ["Koblenz"]},
}
CASES = [*SCENARIOS.items(), *OVERLOADED.items()]
TIME_LIMIT_S = 20.0

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=CASES, ids=[f"{name}{list(changes)}" for name, changes in CASES])
def comparison(request: pytest.FixtureRequest) -> Comparison:
    name, changes = request.param
    return planner.compare(planner.load(name, changes=changes), options=Options(time_limit_s=TIME_LIMIT_S))


def test_every_system_is_here() -> None:
    assert {name.partition("/")[0] for name in SCENARIOS} == set(system_names())
    assert set(SCENARIOS) <= set(scenario_names())


def test_no_design_beats_a_bound_that_another_proves(comparison: Comparison) -> None:
    ranks = comparison.system.ranks
    for run in comparison.runs:
        for other in comparison.runs:
            beyond = compare_ranks(ranks, headline_values(run), proven_bounds(other), 1e-6)
            assert beyond <= 0, f"{run.label} beats the bound of {other.label}"


def test_no_design_that_violates_or_loses_more_is_marked_best(comparison: Comparison) -> None:
    table = run_pages.comparison_page(comparison, all_metrics=True).parts[0].tables[0]
    least = min((sum(run.constraints.lost.values()) for run in comparison.runs if run.plan), default=0.0)
    for place, run in enumerate(comparison.runs):
        if run.constraints.violated or sum(run.constraints.lost.values()) > least * (1 + 1e-6):
            assert all(row[2 + place].kind != "best" for row in table.cells()), run.label


def test_every_design_gives_a_plan_or_a_bound(comparison: Comparison) -> None:
    for run in comparison.runs:
        assert run.exit_code == 0, f"{run.label}: {run.verdict}"


def test_the_verdict_is_in_words(comparison: Comparison) -> None:
    labels = {run.label for run in comparison.runs}
    words = set(re.findall(r"\w+", comparison.verdict))
    assert comparison.verdict.endswith(".")
    assert not {word for word in words - labels if "_" in word}
    assert words & labels, "it names the best design"


def test_tables_are_short(comparison: Comparison) -> None:
    assert len(comparison.system.table_metrics) <= 8
