"""Examples in the help of each command: every command has some, and each can be typed as it stands."""

from __future__ import annotations

import shlex

import pytest

from planner.cli import application
from planner.cli.examples import EXAMPLES
from planner.cli.options import changes_of
from planner.scenarios.scenario import load
from planner.scenarios.shipped import scenario_names
from tests.commands import parse, planner

LINES = [line for lines in EXAMPLES.values() for line in lines]


def test_every_command_has_examples() -> None:
    names = {command.name for command in application.app.registered_commands}
    assert {name for name in EXAMPLES if not name.startswith("new ")} == names


@pytest.mark.parametrize("command", EXAMPLES)
def test_help_shows_them_whole(command: str) -> None:
    text = planner(*command.split(), "--help").out
    assert "Examples:" in text
    for line in EXAMPLES[command]:
        assert f"{line}\n" in text
        assert line.startswith(f"planner {command}")


@pytest.mark.parametrize("line", LINES)
def test_an_example_is_a_valid_command_line(line: str) -> None:
    """Its options exist, and its scenario is valid with the changes; `mine` is a folder of the reader."""
    words = shlex.split(line)
    inputs = parse(words).params
    scenario = inputs.get("scenario")
    if scenario in scenario_names():
        loaded = load(scenario, changes=changes_of(inputs.get("changes")))
        names = [entry.label for entry in loaded.designs] or [design.name for design in loaded.system.designs]
        for name in (inputs.get("designs") or inputs.get("design") or names[0]).split(","):
            assert name in names
    else:
        assert scenario is None or scenario.startswith("mine/")


def test_the_list_of_commands_is_whole_at_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert "..." not in planner("--help").out.replace("[ARGS]...", "")
