"""Names from users that become folders stay in the folder asked for."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st

from planner.io.names import name_fault
from planner.runs.rolling import _file_name
from tests.commands import planner

OUTSIDE = [
    "",
    ".",
    "..",
    "../x",
    "../../x",
    "/x",
    "a/b",
    "a\\b",
    "x\0y",
    "a\nb",
    "~",
    ".hidden",
    "x ",
    "x.",
    "n" * 300,
]


@pytest.mark.parametrize("name", OUTSIDE)
def test_what_is_no_plain_name_has_a_fault(name: str) -> None:
    assert name_fault(name) is not None


@pytest.mark.parametrize("name", ["ecmp", "two paths", "v1.2", "größer", "a-b_c+d"])
def test_plain_names_have_none(name: str) -> None:
    assert name_fault(name) is None


@given(st.text(max_size=40))
def test_a_plain_name_is_one_part_of_a_path(name: str) -> None:
    if name_fault(name) is None:
        assert Path("folder", name).parent == Path("folder")
        assert Path("folder", name).name == name
        assert len(name.encode()) <= 255


@pytest.mark.parametrize("label", OUTSIDE)
def test_a_label_never_leads_out_of_the_folder(label: str, tmp_path: Path) -> None:
    victim = tmp_path / "victim" / "plan"
    victim.mkdir(parents=True)
    (victim / "links.csv").write_text("precious")
    name = str(tmp_path / "victim") if label == "/x" else label
    document = {"system": "traffic", "problem": {"source": "abilene"}, "designs": {name: {"design": "ecmp"}}}
    text = tomli_w.dumps(document)
    assert tomllib.loads(text) == document
    (tmp_path / "scenario.toml").write_text(text)
    result = planner("solve", tmp_path / "scenario.toml", "--out", tmp_path / "out")
    assert result.code == 1
    assert "plain name" in result.err or "short name" in result.err
    assert (victim / "links.csv").read_text() == "precious"
    assert not (tmp_path / "out").exists()


def test_files_that_are_not_ours_are_never_deleted(tmp_path: Path) -> None:
    assert planner("solve", "traffic/abilene", "--design", "ecmp", "--out", tmp_path).code == 0
    own_values = tmp_path / "ecmp" / "plan" / "own.csv"
    own_values.write_text("precious")
    result = planner(
        "solve", "traffic/abilene", "--design", "ecmp", "--out", tmp_path, "--table-format", "csv"
    )
    assert result.code == 0, result.err
    assert own_values.read_text() == "precious"
    assert {path.suffix for path in own_values.parent.iterdir()} == {".csv"}, (
        "tables of the earlier run are gone"
    )


@given(st.text(min_size=1, max_size=400), st.text(min_size=1, max_size=400))
def test_folders_of_windows_are_unique_and_of_possible_length(one: str, other: str) -> None:
    for label in (one, other):
        name = _file_name(label)
        assert len(name.encode()) <= 200
        assert "/" not in name
        assert not name.startswith(".")
    assert (_file_name(one) == _file_name(other)) == (one == other)
