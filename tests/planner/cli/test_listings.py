"""Commands that show what there is load no solver, no compiler and no data frames."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from planner.cli import application
from planner.cli.listings import runs_page
from planner.store.store import Store

HEAVY = {"pandas", "numba", "scipy", "streamlit", "pyomo", "highspy", "ortools", "planner_models"}

SCRIPT = """
import sys
from planner.cli import application
from planner.cli.listings import runs_page
from planner.scenarios import description_cache
description_cache.SETTLED_AFTER_S = 0.0  # these files may be as new as the test
for words in {commands}:
    sys.argv = ["planner", *words]
    try:
        application.run()
    except SystemExit as leaving:
        assert not leaving.code, (words, leaving.code)
print("loaded", *sorted({heavy} & set(sys.modules)), file=sys.stderr)
"""


def loaded(folder: Path, *commands: list[str]) -> list[str]:
    """Return the heavy packages that a fresh process loads for commands."""
    result = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(commands=list(commands), heavy=HEAVY)],
        env={**os.environ, "XDG_CACHE_HOME": str(folder / "cache")},
        capture_output=True,
        text=True,
        check=True,
    )
    return result.stderr.splitlines()[-1].split()[1:]


def test_help_of_every_command_loads_nothing_heavy(tmp_path: Path) -> None:
    names = [command.name or command.callback.__name__ for command in application.app.registered_commands]
    commands = [["--help"], ["--version"], *([name, "--help"] for name in [*names, "new"])]
    assert loaded(tmp_path, *commands) == []


@pytest.mark.slow
def test_the_list_of_systems_loads_none_of_them_again(tmp_path: Path) -> None:
    assert "planner_models" in loaded(tmp_path, ["list"])
    assert loaded(tmp_path, ["list"], ["list", "--json"]) == []


def test_stored_runs_are_listed_without_frames(tmp_path: Path) -> None:
    Store(tmp_path / "store", write=True).close()
    assert loaded(tmp_path, ["runs", str(tmp_path / "store")]) == []


def test_stored_runs_as_json_need_no_frames(tmp_path: Path) -> None:
    Store(tmp_path / "store", write=True).close()
    assert loaded(tmp_path, ["runs", str(tmp_path / "store"), "--json"]) == []


def test_stored_runs_show_what_their_system_is_about() -> None:
    """Details give way to whole names on a narrow terminal; the headline metrics stay."""
    runs = {
        "scenario": ["a/b"] * 2,
        "label": ["a_design_of_a_long_name", "other"],
        "problem.scale": [1.0, 2.0],
        "status": ["optimal", "within gap"],
        "constraints": ["met", "violated"],
        "objective": [1.0, 2.0],
        "metric.objective": [1.0, 2.0],
        "served": [33_400, 30_820],
        "gap": [0.0, 1e-4],
        "violations": [0, 10],
        "seconds": [1.1, 0.4],
        "digest": ["4187f72d5764ce86", "8e3d6f543d31c338"],
    }
    for width, last in ((85, "served"), (200, "digest")):
        [share] = runs_page(runs, None, width, ["served"]).parts
        [table] = share.tables
        labels = [column.label for column in table.columns]
        assert labels[:5] == ["label", "problem.scale", "status", "constraints", "served"]
        assert labels[-1] == last
    [share] = runs_page(runs, None, 200).parts
    assert "objective" in [column.label for column in share.tables[0].columns]
