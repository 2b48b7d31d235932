"""Files that are no tables or scenarios: one clear line each, no crash, no hang."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.commands import planner

SCENARIO = 'system = "traffic"\n[problem]\nsource = "tables"\npath = "."\n'
LINKS = "tail,head,capacity_mbps\na,b,10\nb,a,10\n"


def write_fifo(folder: Path) -> None:
    (folder / "links.csv").unlink()
    os.mkfifo(folder / "links.csv")


def write_memory(folder: Path) -> None:
    (folder / "links.csv").unlink()
    (folder / "links.csv").symlink_to("/proc/self/mem")


def write_bytes(folder: Path) -> None:
    (folder / "links.csv").unlink()
    names = pa.array([b"\xff\xfe", b"a"])
    table = pa.table({"tail": names, "head": ["b", "a"], "capacity_mbps": [1.0, 2.0]})
    parquet.write_table(table, folder / "links.parquet")


def links(text: str) -> Callable[[Path], object]:
    return lambda folder: (folder / "links.csv").write_text(text)


def scenario(text: str) -> Callable[[Path], object]:
    return lambda folder: (folder / "scenario.toml").write_text(text)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (scenario('system = "traffic"\n[problem]\nsource = ["tables"]\n'), "problem.source must be a name"),
        (scenario('system = "traffic"\n[problem]\nsource = 1\n'), "problem.source must be a name"),
        (
            scenario('system = "traffic"\n[problem]\nsource = "generate"\npreset = ["x"]\n'),
            "no such preset",
        ),
        (scenario(SCENARIO + "[designs.ecmp]\ninformation = 1\n"), "information must be a table"),
        (scenario("x = " + "[" * 5_000 + "]" * 5_000), "nested too deeply"),
        (
            scenario(SCENARIO + "scale = " + "9" * 5_000),
            "has a number of 5,000 digits, must have at most 1,000",
        ),
        (scenario(SCENARIO + "scale = " + "9" * 900), "must be a finite number"),
        (scenario(SCENARIO + "scale = " + "[" * 300 + "]" * 300), "must be"),
        (scenario(SCENARIO.replace('"."', f'"{"x" * 300}"')), "File name too long"),
        (scenario(SCENARIO.replace('"."', r'"\u0000"')), "no such folder"),
        (write_fifo, "is a device or a pipe"),
        pytest.param(
            write_memory,
            "cannot be read",
            marks=pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="needs Linux"),
        ),
        (write_bytes, "not UTF-8 text"),
        (links(f"tail,head,{'x' * 140_000}\na,b,1\n"), "column 'tail' is missing"),
        (links(",".join(f"c{index}" for index in range(60_000)) + "\n1\n"), "has 60,000 columns"),
        (links("tail,head,capacity_mbps\n" + ",".join("x" * 60_000)), "has 60000 fields"),
        (links("\xff\xfe\x00"), "must be"),
        (links(""), "is empty"),
    ],
)
def test_a_hostile_file_is_one_line(
    spoil: Callable[[Path], object], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "links.csv").write_text(LINKS)
    (tmp_path / "demands.csv").write_text("source,target,rate_mbps\na,b,5\n")
    (tmp_path / "scenario.toml").write_text(SCENARIO)
    monkeypatch.chdir(tmp_path)
    spoil(tmp_path)
    result = planner("solve", "scenario.toml", "--design", "ecmp")
    assert result.code == 1, result.err
    assert words in result.err
    assert len(result.err.splitlines()) <= 4
    assert max(map(len, result.err.splitlines())) <= 500


@pytest.mark.parametrize("name", ["x" * 300, "/dev/null", "/proc/self/mem", ".", "a\nb"])
def test_a_hostile_name_is_one_line(name: str) -> None:
    result = planner("solve", name)
    assert result.code == 1
    assert "internal error" not in result.err


def test_control_characters_do_not_reach_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "links.csv").write_text("tail,head,capacity_mbps\na\x1b[2J,b,10\nb,a\x1b[2J,10\n")
    (tmp_path / "demands.csv").write_text("source,target,rate_mbps\na\x1b[2J,c\x07,5\n")
    (tmp_path / "scenario.toml").write_text(SCENARIO)
    monkeypatch.chdir(tmp_path)
    result = planner("solve", "scenario.toml")
    assert result.code == 1
    assert r"'c\x07'" in result.err
    (tmp_path / "demands.csv").write_text("source,target,rate_mbps\na\x1b[2J,b,50\n")
    for command in (("solve",), ("solve", "--json"), ("explain",)):
        result = planner(command[0], "scenario.toml", *command[1:])
        assert result.code == 0, result.err
        assert not {"\x1b", "\x07"} & set(result.out + result.err)


def test_an_error_of_many_faults_is_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = "".join(f"{'x' * 2_000}{index} = 1\n" for index in range(200))
    (tmp_path / "scenario.toml").write_text(keys + SCENARIO)
    monkeypatch.chdir(tmp_path)
    result = planner("check", "scenario.toml")
    assert result.code == 1
    assert len(result.err.splitlines()) <= 60
    assert max(map(len, result.err.splitlines())) <= 600
    assert "more faults" in result.err
