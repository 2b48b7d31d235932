"""Completion of arguments, as a shell asks for it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def complete(words: str, folder: Path) -> list[str]:
    """Return the words that may follow a line in bash, whose last word may be begun."""
    typed = words.split(" ")
    done = subprocess.run(
        [sys.executable, "-c", "from planner.cli.application import app; app(prog_name='planner')"],
        env={
            **os.environ,
            "COMP_WORDS": words,
            "COMP_CWORD": str(len(typed) - 1),
            "_PLANNER_COMPLETE": "complete_bash",
        },
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("planner compare traffic/ab", ["traffic/abilene", "traffic/abilene_classes"]),
        ("planner compare mi", ["mine/", "mine.toml"]),
        ("planner compare traffic/abilene --designs opt", ["optimum"]),
        ("planner compare traffic/abilene --designs ecmp,sh", ["ecmp,shortest_path"]),
        ("planner compare mine.toml --designs ", ["plain", "two"]),
        ("planner compare missing.toml --designs ", []),
        ("planner compare mine.toml --set designs.two.ob", ["designs.two.objective="]),
        ("planner compare mine.toml --set problem.fail_g", ["problem.fail_groups="]),
        ("planner compare mine.toml --set solver.th", ["solver.threads="]),
        ("planner list tr", ["traffic"]),
        ("planner list traffic --section ta", ["tables"]),
        ("planner generate traffic --preset vl", ["vl2"]),
        ("planner reproduce mult", ["multicast"]),
        ("planner reproduce multicast/figure_5", [f"multicast/figure_5{one}" for one in "abc"]),
        ("planner solve traffic/abilene --backend ortools:g", ["ortools:glop"]),
    ],
)
def test_words_that_may_follow(words: str, expected: list[str], tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    text = 'system = "traffic"\n[problem]\nsource = "tables"\npath = "."\n[designs.plain]\ndesign = "ecmp"\n'
    (tmp_path / "mine.toml").write_text(text + '[designs.two]\ndesign = "optimum"\n')
    assert sorted(complete(words, tmp_path)) == sorted(expected)
