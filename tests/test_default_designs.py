"""The design that runs where a user names none: the best of the scenario, not its first."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import planner
from planner.runs.evaluation import select_entry
from planner.runs.rolling import start_roll
from planner.scenarios.catalogue import find_system, system_names
from planner.scenarios.shipped import scenario_names
from planner.sweeps.failures import failures
from tests.commands import planner as command

TABLES = 'system = "traffic"\n[problem]\nsource = "generate"\npreset = "fat_tree"\nk = 4\n'
WORST_FIRST = TABLES + '[designs.ecmp]\n[designs.best]\ndesign = "optimum"\n[designs.shortest_path]\n'


def test_every_verb_takes_the_best_design_of_a_scenario(tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text(WORST_FIRST)
    scenario = planner.load(file)
    assert select_entry(scenario).label == "best"
    assert select_entry(scenario, "ecmp").label == "ecmp"
    assert planner.solve(scenario).label == "best"
    assert planner.explain(scenario, candidates=1).run.label == "best"
    assert failures(scenario, kinds="link", limit=1).run.label == "best"


def test_of_several_entries_of_a_design_the_one_without_parameters_runs(tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text(
        TABLES + '[designs.few]\ndesign = "optimum"\npaths = 1\n[designs.optimum]\n[designs.ecmp]\n'
    )
    assert select_entry(planner.load(file)).label == "optimum"


def test_a_scenario_without_designs_takes_that_of_the_system(tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text(TABLES + "[series]\nwindows = 2\n")
    scenario = planner.load(file)
    assert planner.solve(scenario.make_problem()).label == "optimum"
    assert [entry.label for entry in start_roll(scenario).entries] == ["optimum"]


def test_the_command_says_which_design_runs(tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text(WORST_FIRST)
    said = command("solve", file, "--json")
    assert json.loads(said.out)["runs"][0]["design"] == "best"
    assert "design: best; --design names another: " in said.err
    assert "design:" not in command("solve", file, "--design", "ecmp", "--json").err


@pytest.mark.parametrize("name", system_names())
def test_no_shipped_scenario_takes_practice_or_a_bound_where_it_has_more(name: str) -> None:
    system = find_system(name)
    assert system.default_design.name != system.studies.practice
    for shipped in scenario_names():
        if shipped.partition("/")[0] != name:
            continue
        scenario = planner.load(shipped)
        design, listed = select_entry(scenario).design, {entry.design.name for entry in scenario.designs}
        assert not design.is_bound, shipped
        assert design.name != system.studies.practice or listed == {design.name}, shipped
        ranked = [item for item in system.best if item in listed]
        assert design.name == (ranked or [design.name])[0], shipped


BOUNDS = [
    (name, design.name)
    for name in system_names()
    for design in find_system(name).designs
    if design.is_bound or design.name == "bound"
]


@pytest.mark.parametrize(("name", "design"), BOUNDS)
def test_a_design_that_only_bounds_says_so_and_ends_well(name: str, design: str) -> None:
    system = find_system(name)
    assert system.design(design).is_bound
    assert system.problem.sample is not None
    run = planner.solve(system.problem.sample(), design=design)
    assert run.plan is None
    assert run.proof.bound is not None
    assert run.exit_code == 0
    assert "possible" in run.verdict
