"""Amounts that people see first, headlines and labels of maps, against the tables of plans and problems.

Every shipped scenario is here, the large ones in the sizes of `benchmarks.reduced_scenarios`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import pytest

import planner
from benchmarks.reduced_scenarios import CHANGES, SMALL
from planner.contract.drawing import NetworkMap
from planner.formatting import UNIT_SCALES, amount, amount_or_number
from planner.reports.network_svg import network_svg
from planner.runs.evaluation import entries, evaluate
from planner.runs.run import Run
from planner.runs.verdict import headline_words
from planner.scenarios.catalogue import system_names
from planner.scenarios.shipped import scenario_names
from tests.plan_figures import FIGURES

DESIGNS: Final = 3
"""Designs of each scenario of `SEVERAL`, and of those under scarcity."""
TIME_LIMIT_S: Final = 3.0
SHORT_TIME_LIMIT_S: Final = 1.0
OVERLOADED: Final = {
    "brokering/own_data": {"problem.capacity_scale": 0.2},
    "capacity/own_data": {"problem.budget": 15.0},
    "cdnrouting/own_data": {"problem.client_scale": 3.0},
    "consolidation/own_data": {"problem.most": 1},
    "geostore/own_data": {"problem.fail_regions": ["ireland", "tokyo"]},
    "membership/own_data": {"problem.target_scale": 10.0},
    "livevideo/session_window": {"problem.capacity_scale": 0.2},
    "topology/own_data": {"problem.scale": 3.0},
    "traffic/abilene": {"problem.scale": 5.0},
    "traffic/germany50": {"problem.fail_links": ["Koblenz<->Koeln"]},
}
SEVERAL: Final = (
    "analytics/own_data", "brokering/own_data", "capacity/own_data", "circuitflows/own_data",
    "coflows/own_data", "contracts/own_data", "fairshare/own_data", "flowtables/own_data",
    "livevideo/session_window", "multicast/own_data", "rotors/own_data", "topology/own_data",
    "queries/own_data",
    "traffic/abilene", "traffic/abilene_classes", "traffic/germany50", "cdnrouting/own_data",
    "consolidation/own_data", "geostore/own_data", "membership/two_datacenters",
)  # fmt: skip
LOSSES: Final[Mapping[str, tuple[str, ...]]] = {
    "brokering": ("shed", "congested"),
    "circuitflows": ("undelivered_gb",),
    "circuits": ("unserved_bits",),
    "geostore": ("missed_per_s",),
    "livevideo": ("unserved_clients", "degraded_clients", "lower_bitrate_clients"),
    "multicast": ("lost_mbps",),
    "rotors": ("unserved_mbps",),
    "topology": ("unserved_mbps",),
    "traffic": ("lost_mbps", "shed_mbps"),
}
"""The metrics whose sum the labels of a system's map give."""

pytestmark = pytest.mark.slow


def test_every_scenario_and_system_is_here() -> None:
    assert set(CHANGES) == set(scenario_names())
    assert set(FIGURES) == set(system_names())


def runs_of(name: str, changes: Mapping[str, Any], designs: int, time_limit_s: float) -> list[Run]:
    scenario = planner.load(name, changes=changes)
    options = replace(scenario.options, time_limit_s=time_limit_s)
    series = scenario.make_series() if scenario.make_series else [("", scenario.make_problem())]
    problem = next(iter(series))[1]
    selected = [entry for entry in entries(scenario) if not entry.design.is_bound][:designs]
    return [evaluate(scenario.system, problem, entry, options=options) for entry in selected]


FIRST: Final = frozenset(
    name
    for system in system_names()
    for name in [name for name in CHANGES if name.startswith(f"{system}/") and name not in SEVERAL][:2]
)
"""Two scenarios of each system beside those of `SEVERAL`; the exhaustive tests show all."""
SEVERAL_CASES: Final = [*((name, SMALL[name]) for name in SEVERAL), *OVERLOADED.items()]


@pytest.mark.parametrize(
    ("name", "changes"), SEVERAL_CASES, ids=[f"{name}{list(changes)}" for name, changes in SEVERAL_CASES]
)
def test_headlines_and_labels_are_those_of_the_tables(name: str, changes: dict[str, Any]) -> None:
    for run in runs_of(name, changes, DESIGNS, TIME_LIMIT_S):
        if run.plan is not None:
            check_amounts(run)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name in FIRST else [pytest.mark.exhaustive])
        for name in CHANGES
        if name not in SEVERAL
    ],
)
def test_the_first_design_of_every_scenario_shows_what_its_tables_say(name: str) -> None:
    for run in runs_of(name, CHANGES[name], 1, SHORT_TIME_LIMIT_S):
        assert run.plan is not None or "no plan" in run.verdict
        if run.plan is not None:
            check_amounts(run)


def check_amounts(run: Run) -> None:
    """Check metrics, the words of the headline, and labels against the tables of a run."""
    assert run.plan is not None
    system = run.system.name
    figures = FIGURES[system](run.problem.to_tables(), run.plan.to_tables())
    if system == "traffic" and run.problem.overload != "drop" and run.metrics["overloaded_links"]:
        figures = {name: figures[name] for name in ("offered_mbps", "shed_mbps")}
    for metric, value in figures.items():
        shown = run.metrics[metric]
        assert shown == pytest.approx(value, rel=1e-5, abs=1e-6), f"{run.label}: {metric}"
    if run.system.plan.headline.metric in figures:
        assert headline_words(run.system, {**run.metrics, **figures}) in run.verdict
    if system == "capacity":
        check_labels_without_failures(run)
    else:
        check_labels(run)


def check_labels(run: Run) -> None:
    """Check that the amounts on maps are those that the verdict gives, and that maps say so."""
    for drawing in maps_of(run):
        total = sum(float(amounts.sum()) for amounts in drawing.amounts_lost())
        if run.system.name in LOSSES and "lost" in {*drawing.nodes, *drawing.links}:
            names = LOSSES[run.system.name]
            lost = sum(
                (run.metrics[name] or 0.0) * size_of(run.system.metric(name).unit) for name in names
            ) / size_of(drawing.lost_unit)
            assert total == pytest.approx(lost, rel=1e-5, abs=1e-5), f"{run.label}: labels"
        picture = network_svg(drawing)
        assert ("Labels cover" in picture) == (total > 0)
        assert not total or f"the {amount_or_number(total, drawing.lost_unit)} that " in picture


def size_of(unit: str) -> float:
    """Return the size of a unit in the smallest one of its kind, bits for bytes too; else 1."""
    size = next((scale[unit] for scale in UNIT_SCALES if unit in scale), 1.0)
    return size * 8 if unit.endswith(("bytes", "B")) else size


def check_labels_without_failures(run: Run) -> None:
    """Check that the map of purchases, which shows no failure, says in its title what the worst one takes."""
    drawing = maps_of(run)[0]
    unserved = run.metrics["unserved_mbps"] or 0.0
    total = sum(float(amounts.sum()) for amounts in drawing.amounts_lost())
    assert total <= unserved * (1 + 1e-6)
    says = f"{amount(unserved, 'Mbit/s')} not served in the worst case"
    assert (says in drawing.title) == (unserved > total * (1 + 1e-6) + 1e-6)


def maps_of(run: Run) -> list[NetworkMap]:
    if run.system.plan.draw is None or run.plan is None:
        return []
    drawings = run.system.plan.draw(run.problem, run.plan)
    return [drawing for drawing in drawings if isinstance(drawing, NetworkMap)]
