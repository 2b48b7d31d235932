"""Completion of arguments, as a shell asks for it."""

from __future__ import annotations

import logging
from pathlib import Path
from unittest import mock

import pytest

from tests.commands import planner


def complete(words: str) -> list[str]:
    """Return the words that may follow a line in bash, whose last word may be begun."""
    asked = {
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split(" ")) - 1),
        "_PLANNER_COMPLETE": "complete_bash",
    }
    with mock.patch.dict("os.environ", asked):
        result = planner()
    assert result.code == 0, result
    return result.out.split()


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
        ("planner reproduce multicast/figure_5", [f"multicast/figure_5{field}" for field in "abc"]),
        ("planner solve traffic/abilene --backend ortools:g", ["ortools:glop"]),
    ],
)
def test_words_that_may_follow(
    words: str, expected: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    text = 'system = "traffic"\n[problem]\nsource = "tables"\npath = "."\n[designs.plain]\ndesign = "ecmp"\n'
    (tmp_path / "mine.toml").write_text(text + '[designs.two]\ndesign = "optimum"\n')
    assert sorted(complete(words)) == sorted(expected)


def test_warnings_are_kept_back_while_words_are_found_only() -> None:
    log = logging.getLogger("planner")
    before = log.level
    complete("planner compare traffic/abilene --designs opt")
    assert log.level == before
