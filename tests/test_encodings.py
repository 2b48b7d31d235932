"""Output to what is no friendly terminal: with ASCII letters only, or a pipe that is closed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCENARIO = """
system = "traffic"
[problem]
source = "tables"
path = "."
[designs."grün"]
design = "ecmp"
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    (tmp_path / "links.csv").write_text("tail,head,capacity_mbps\na,b,1\n")
    (tmp_path / "demands.csv").write_text("source,target,rate_mbps\na,b,2\n")
    path = tmp_path / "s.toml"
    path.write_text(SCENARIO, encoding="utf-8")
    return path


def solved(scenario: Path, encoding: str, *more: str) -> str:
    result = subprocess.run(
        [sys.executable, "-m", "planner", "solve", str(scenario), *more],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": encoding},
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.decode(encoding)


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "utf-8"])
def test_json_is_whole_in_any_encoding(scenario: Path, encoding: str) -> None:
    plain = json.loads(solved(scenario, encoding, "--json"))
    assert plain["runs"][0]["design"] == "grün"


@pytest.mark.slow
def test_tables_are_shown_with_the_letters_that_there_are(scenario: Path) -> None:
    text = solved(scenario, "ascii")
    assert "Max utilization" in text
    assert "gr?n" in text


@pytest.mark.slow
def test_who_stops_reading_ends_it_quietly() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "planner", "list", "traffic"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    said = process.stderr.read()
    process.stderr.close()
    assert process.wait() == 141
    assert said == b""
