"""Examples in the help of each command: every command has some, and each can be typed as it stands."""

from __future__ import annotations

import shlex

import pytest
from typer.main import get_command

from planner import cli
from planner.cli.examples import EXAMPLES
from planner.scenarios.scenario import load
from planner.scenarios.shipped import scenario_names
from tests.commands import planner

LINES = [line for lines in EXAMPLES.values() for line in lines]
MOST_LETTERS = 78


def test_every_command_has_examples() -> None:
    names = {command.name for command in cli.app.registered_commands}
    assert set(EXAMPLES) == names


@pytest.mark.parametrize("command", EXAMPLES)
def test_help_shows_them_whole(command: str) -> None:
    text = planner(command, "--help").out
    assert "Examples:" in text
    for line in EXAMPLES[command]:
        assert f"{line}\n" in text
        assert shlex.split(line)[:2] == ["planner", command]


@pytest.mark.parametrize("line", LINES)
def test_an_example_is_a_valid_command_line(line: str) -> None:
    """Its options exist, and its scenario is valid with the changes; `mine` is a folder of the reader."""
    words = shlex.split(line)
    group = get_command(cli.app)
    command = group.get_command(None, words[1])  # type: ignore[attr-defined,arg-type]
    context = command.make_context(words[1], words[2:], resilient_parsing=False)
    scenario = context.params.get("scenario")
    if scenario in scenario_names():
        changes = dict(one.split("=", 1) for one in context.params.get("changes") or ())
        if words[1] != "sweep":
            from planner.cli.options import changes_of

            loaded = load(scenario, changes=changes_of([f"{key}={value}" for key, value in changes.items()]))
            known = [entry.label for entry in loaded.designs] or [one.name for one in loaded.system.designs]
            for name in (context.params.get("designs") or context.params.get("design") or known[0]).split(
                ","
            ):
                assert name in known
    else:
        assert scenario is None or scenario.startswith("mine/")


def test_the_list_of_commands_is_whole_at_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert "..." not in planner("--help").out.replace("[ARGS]...", "")
