"""Designs that the command line of the dashboard names: in its processes, and refused before it starts."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest

from planner.scenarios import catalogue, user_designs
from planner.scenarios.catalogue import find_system
from planner_dashboard.named_designs import VARIABLE, add_named_designs
from planner_dashboard.question import Question, form_fields
from tests.commands import planner

DIRECT = '''
def direct(problem, share: float = 1.0):
    """Send a share of each demand on its direct link."""
    links = set(zip(problem.links["tail"], problem.links["head"]))
    rows = problem.demands.to_dict(orient="records")
    direct = [row for row in rows if (row["source"], row["target"]) in links]
    columns = ("source", "target")
    return [
        {**{name: row[name] for name in columns}, "path": [row["source"], row["target"]],
         "rate_mbps": row["rate_mbps"] * share}
        for row in direct
    ]
'''


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "dashboard_mine.py"
    path.write_text(DIRECT)
    yield path
    catalogue._added.clear()
    user_designs._references.clear()
    find_system.cache_clear()
    add_named_designs.cache_clear()


def test_a_named_design_is_one_of_its_system(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, f"traffic={file}:direct")
    add_named_designs()
    add_named_designs()
    assert find_system("traffic").design("direct").about == "Send a share of each demand on its direct link."
    question = Question(scenario="traffic/abilene", designs=("direct", "ecmp"))
    scenario = question.load(file.parent)
    assert "designs.direct.share" in form_fields(scenario)


def test_the_command_names_it_for_all_processes(file: Path) -> None:
    with mock.patch.object(os, "execve") as started:
        result = planner("dashboard", "--design", f"traffic={file}:direct", "--no-browser")
    assert result.code == 0, result.err
    assert started.call_args.args[2][VARIABLE] == f"traffic={file}:direct"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("mine.py:direct", "must be SYSTEM=FILE.py:FUNCTION, such as traffic=mine.py:route"),
        ("traffic=nowhere.py:direct", "nowhere.py: no such file"),
        ("trafic={file}:direct", "trafic: no such system; did you mean 'traffic'?"),
        ("traffic={file}:indirect", "has no 'indirect'"),
    ],
)
def test_what_is_no_design_is_refused_before_the_start(file: Path, text: str, line: str) -> None:
    with mock.patch.object(os, "execve") as started:
        result = planner("dashboard", "--design", text.format(file=file), "--no-browser")
    assert result.code == 1
    assert line in result.err
    assert not started.called


@pytest.mark.slow
def test_workers_load_it_before_they_fork(file: Path) -> None:
    lines = "import planner_dashboard.preload\nfrom planner.scenarios.catalogue import find_system\n"
    done = subprocess.run(
        [sys.executable, "-c", lines + "print(find_system('traffic').designs[-1].name)"],
        env={**os.environ, VARIABLE: f"traffic={file}:direct"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.strip() == "direct"
