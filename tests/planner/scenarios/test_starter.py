"""The scenario that `planner generate` writes: short, valid, and so is each line in its comments."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from planner.runs import files
from planner.scenarios.catalogue import find_system, system_names
from planner.scenarios.scenario import load
from planner.scenarios.starter import MOST_DESIGNS, WIDTH

COMMENTED = re.compile(r"^# (?=\w+ = )", re.MULTILINE)


@pytest.mark.slow
@pytest.mark.parametrize("system", system_names())
def test_the_scenario_is_valid_with_and_without_its_comments(system: str, tmp_path: Path) -> None:
    files.generate(system, out=tmp_path)
    path = tmp_path / "scenario.toml"
    text = path.read_text(encoding="utf-8")
    assert max(map(len, text.splitlines())) <= WIDTH
    assert f"planner generate {system} --preset" in text
    plain = load(path)
    result = find_system(system)
    first = [*dict.fromkeys([result.default_design.name, *(design.name for design in result.designs)])]
    assert [entry.label for entry in plain.designs] == (list(result.usual) or first[:MOST_DESIGNS])
    assert plain.make_problem().size() == load(path).make_problem().size()
    active, count = COMMENTED.subn("", text)
    assert count > 1
    path.write_text(active, encoding="utf-8")
    full = load(path)
    assert full.options.time_limit_s == 60


def test_the_command_that_made_it_is_named(tmp_path: Path) -> None:
    files.generate("traffic", "fat_tree", k=4, seed=3, out=tmp_path)
    text = (tmp_path / "scenario.toml").read_text(encoding="utf-8")
    assert "# Tables made by: planner generate traffic --preset fat_tree --set k=4 --set seed=3\n" in text
