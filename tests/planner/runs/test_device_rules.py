"""Rules of plans as files: from a design, from a saved plan, and bad input."""

from __future__ import annotations

from pathlib import Path

import pytest

import planner
from planner.errors import InputError
from planner.runs.device_rules import write_rules
from planner.runs.files import write_plan
from tests.commands import planner as command


def test_a_design_and_its_saved_plan_have_the_same_files(tmp_path: Path) -> None:
    written = write_rules("queries/own_data", tmp_path / "a", design="specialization")
    assert written.plan == "the plan of specialization"
    assert written.files == ("leaf_1.txt", "leaf_2.txt")
    write_plan(planner.solve("queries/own_data", design="specialization").plan, tmp_path / "plan")
    again = write_rules("queries/own_data", tmp_path / "b", plan=tmp_path / "plan")
    for name in again.files:
        assert (tmp_path / "a" / name).read_text() == (tmp_path / "b" / name).read_text()


def test_the_command_writes_a_file_for_each_switch(tmp_path: Path) -> None:
    made = command(
        "export", "multicast/own_data", "--format", "openflow", "--design", "partitioned", "--out", tmp_path
    )
    assert made.code == 0, made.err
    assert "wrote the rules of the plan of partitioned" in made.err
    names = {path.name for path in tmp_path.iterdir()}
    assert {"edge-0-0.flows.txt", "edge-0-0.groups.txt", "ports.csv", "addresses.csv"} <= names
    assert "group_id" not in (tmp_path / "edge-0-0.flows.txt").read_text()


def test_bad_input(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"^traffic: its plans are no rules of switches, as those of .*queries"
    ):
        write_rules("traffic/abilene", tmp_path)
    with pytest.raises(InputError, match="plan: is given, must be absent where a design is named"):
        write_rules("queries/own_data", tmp_path, design="optimum", plan=tmp_path)
    with pytest.raises(InputError, match=r"no such file or folder"):
        write_rules("queries/own_data", tmp_path, plan=tmp_path / "none")
    with pytest.raises(InputError, match=r"groups share an entry at|headers carry group"):
        write_rules("multicast/own_data", tmp_path, design="elmo")
    made = command("export", "traffic/abilene", "--plan", tmp_path, "--out", tmp_path / "model.lp")
    assert made.code == 1
    assert made.err.strip() == "--plan: is of --format openflow only; a model is that of a design"
