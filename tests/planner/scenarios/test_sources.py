"""Adjustments of any problem: none by default, and a source's own parameters come first."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.scenarios.catalogue import find_system, system_names
from planner.scenarios.scenario import load


@pytest.mark.parametrize("name", system_names())
def test_by_default_a_problem_is_what_it_is(name: str) -> None:
    system = find_system(name)
    problem = next(iter(system.problem.presets.values()))()
    assert system.problem.adjust(problem) is problem


def test_what_a_preset_takes_itself_comes_first(tmp_path: Path) -> None:
    # a week shorter than the preset's own night, which only a preset that is told both can make
    (tmp_path / "s.toml").write_text(
        'system = "circuits"\n[problem]\nsource = "generate"\npreset = "rings"\nracks = 4\n'
        "window_us = 15.0\nshortest_day_us = 1.0\nnight_us = 2.0\n[designs.solstice]\n"
    )
    assert load(tmp_path / "s.toml").make_problem().night_us == 2.0


def test_tables_take_what_a_preset_took(tmp_path: Path) -> None:
    system = find_system("circuits")
    for name, frame in system.problem.presets["rings"](racks=4).to_tables().items():
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    (tmp_path / "s.toml").write_text(
        'system = "circuits"\n[problem]\nsource = "tables"\npath = "."\nnight_us = 2.0\n[designs.solstice]\n'
    )
    assert load(tmp_path / "s.toml").make_problem().night_us == 2.0
