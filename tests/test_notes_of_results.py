"""What was assumed of data is said by every verb: in its JSON, in stored results and in Python."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import planner
from planner.contract.notes import notes_of
from tests.commands import planner as command

NOTE = "warning: traffic.csv: 1 window is missing (3): the 3 windows with rows count, no zeros are added"


@pytest.fixture
def scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "traffic.csv").write_text("window,region,traffic_mbps\n1,EU,5\n2,EU,6\n4,EU,7\n")
    (tmp_path / "contracts.csv").write_text(
        "cdn,region,billing,price_per_mbps,capacity_mbps\nA,EU,peak,1,10\n"
    )
    path = tmp_path / "scenario.toml"
    path.write_text(
        'system = "contracts"\n[problem]\nsource = "tables"\npath = "."\n[designs.cheapest_first]\n'
    )
    return path


@pytest.mark.parametrize(
    "words",
    [
        "check scenario.toml",
        "solve scenario.toml",
        "compare scenario.toml",
        "explain scenario.toml",
        "roll scenario.toml --windows 2 --out rolled",
        "sweep scenario.toml --set problem.scale=0.5,1 --out store --workers 1",
    ],
)
@pytest.mark.usefixtures("scenario")
def test_every_command_says_it_on_standard_error_and_in_json(words: str) -> None:
    result = command(*words.split(), "--json")
    assert result.code == 0, result.err
    assert result.err.count(NOTE) == 1
    answer = json.loads(result.out)
    assert NOTE in answer.get("notes", answer.get("problem", {}).get("notes", []))


def test_results_in_python_and_in_files_have_it(scenario: Path) -> None:
    result = planner.solve(str(scenario))
    assert NOTE in str(result)
    assert NOTE in notes_of(result.problem)
    assert NOTE in str(planner.compare(str(scenario)))
    command("solve", "scenario.toml", "--out", "out")
    assert json.loads(Path("out/cheapest_first/run.json").read_text())["notes"] == [NOTE]
    assert "1 window is missing (3)" in Path("out/report.txt").read_text()
    command("check", "scenario.toml", "--plan", "out/cheapest_first", "--json")
