"""`planner new scenario`: files as users have them become the same problem as tables in our own columns."""

from __future__ import annotations

from pathlib import Path

import openpyxl
import pandas as pd
import pytest

from planner.contract.notes import observe_notes
from planner.errors import InputError
from planner.scenarios.from_files import write_scenario
from planner.scenarios.scenario import load
from planner.scenarios.shipped import scenario_file, scenario_names
from tests.commands import planner

LINKS = [("paris", "lyon", 10), ("lyon", "paris", 10), ("lyon", "nice", 4.5), ("nice", "lyon", 4.5)]
DEMANDS = [("paris", "nice", 3), ("nice", "lyon", 1.5)]
FOLDERS = [
    name for name in scenario_names() if "own" in name and scenario_file(name).with_suffix("").is_dir()
]


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    """Two tables with columns of a user's own names and units."""
    folder = tmp_path / "tables"
    folder.mkdir()
    pd.DataFrame(LINKS, columns=["A end", "B end", "Capacity (Gbit/s)"]).to_csv(
        folder / "lines of 2026.csv", index=False
    )
    pd.DataFrame(DEMANDS, columns=["source", "target", "rate_gbps"]).to_csv(
        folder / "matrix.csv", index=False
    )
    return folder


ENDS = {"links": {"tail": "A end", "head": "B end"}}


def test_files_of_any_name_are_recognized_and_stay_as_they_are(tables: Path) -> None:
    before = {path.name: path.read_bytes() for path in tables.iterdir()}
    notes: list[str] = []
    with observe_notes(notes.append):
        written = write_scenario([tables], columns=ENDS)
    assert written.path == tables / "scenario.toml"
    assert {path.name: path.read_bytes() for path in tables.glob("*.csv")} == before
    assert {name: sheet.path.name for name, sheet in written.sheets.items()} == {
        "links": "lines of 2026.csv",
        "demands": "matrix.csv",
    }
    assert any("'Capacity (Gbit/s)' as capacity_mbps (times 1,000)" in note for note in notes)
    problem = load(written.path).make_problem()
    found = problem.to_tables()
    assert list(found["links"]["capacity_mbps"]) == [10_000, 10_000, 4_500, 4_500]
    assert list(found["demands"]["rate_mbps"]) == [3_000, 1_500]


def test_a_question_to_the_tables_is_said_when_the_scenario_is_written(tmp_path: Path) -> None:
    (tmp_path / "links.csv").write_text("tail,head,capacity_mbps\na,b,10\nb,a,10\n")
    (tmp_path / "demands.csv").write_text("source,target,rate_mbps\na,b,8\n")
    (tmp_path / "modules.csv").write_text("module,capacity_mbps,cost\nm,10,1\n")
    notes: list[str] = []
    with observe_notes(notes.append):
        written = write_scenario([tmp_path], system="capacity")
    (question,) = (note for note in notes if note.startswith("warning: "))
    assert question.startswith("warning: links.csv: every row has its opposite")
    with pytest.raises(InputError) as found:
        load(written.path).make_problem()
    assert question == f"warning: {found.value.faults[0]}"
    answered = written.path.read_text().replace(
        'source = "tables"', 'source = "tables"\ndirection = "directed"'
    )
    written.path.write_text(answered)
    assert load(written.path).make_problem().direction == "directed"


def test_a_workbook_with_sheets_of_any_name(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    first = book.active
    assert first is not None
    first.title = "Read me"
    first.append(["This workbook was made in 2026"])
    for title, columns, rows in (
        ("Backbone", ["tail", "head", "capacity_gbps", "owner"], [(*row, "us") for row in LINKS]),
        ("Traffic 2026", ["source", "target", "Rate (Gbit/s)"], DEMANDS),
    ):
        sheet = book.create_sheet(title)
        for row in (columns, *rows):
            sheet.append(row)
    book.save(tmp_path / "net.xlsx")
    done = planner("new", "scenario", tmp_path / "net.xlsx", "--out", tmp_path / "new" / "net.toml")
    assert done.code == 0, done.err
    assert "net.xlsx, sheet Backbone: table links" in done.err
    assert "ignored columns 'owner'" in done.err
    assert "traffic, 3 nodes, 4 links, 2 demands" in done.err
    assert planner("check", tmp_path / "new" / "net.toml").code == 0


@pytest.mark.parametrize("name", FOLDERS)
def test_the_tables_that_ship_are_recognized_as_what_they_are(name: str, tmp_path: Path) -> None:
    assert len(FOLDERS) > 8
    written = write_scenario([scenario_file(name).with_suffix("")], tmp_path / "scenario.toml")
    assert written.system is load(name).system
    assert written.problem.size() == load(written.path).make_problem().size()


def test_marks_of_numbers_that_are_in_doubt_are_asked_for_once(tables: Path) -> None:
    (tables / "matrix.csv").write_text("source;target;rate_mbps\nparis;nice;1.000\n")
    with pytest.raises(InputError, match=r"matrix\.csv row 2: rate_mbps is '1\.000'.*say --decimal"):
        write_scenario([tables], columns=ENDS)
    assert not (tables / "scenario.toml").exists()
    written = write_scenario([tables], columns=ENDS, decimal=".")
    assert list(load(written.path).make_problem().to_tables()["demands"]["rate_mbps"]) == [1]


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ([], "lines of 2026.csv, matrix.csv: are not all tables of any system"),
        (["--system", "traffic"], "no file is the table links of traffic (tail, head, capacity_mbps)"),
        (["--system", "trafic"], "did you mean 'traffic'?"),
        (["--table", "links=lines"], "--table links=lines: no such file or sheet"),
        (["--table", "links=lines of 2026.csv"], "by --column links.COLUMN=NAME"),
        (["--column", "links=A end"], "--column links=A end: must be TABLE.COLUMN=NAME"),
        (["--column", "links.tail"], "--column links.tail: must be TABLE.COLUMN=NAME"),
        (
            ["--system", "traffic", "--column", "links.tial=A end"],
            "--column links.tial: links has no such column; did you mean 'tail'?",
        ),
        (["--system", "traffic", "--column", "lynks.tail=A end"], "traffic has no such table"),
        (
            [
                "--column",
                "links.tail=A-end",
                "--column",
                "links.head=B end",
                "--table",
                "links=lines of 2026",
                "--system",
                "traffic",
            ],
            "lines of 2026.csv: has no column 'A-end', which tail is mapped to; did you mean 'A end'?",
        ),
        (["elsewhere"], "elsewhere: no such file or folder"),
    ],
)
def test_what_is_missing_is_one_line(
    tables: Path, words: list[str], line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tables)
    done = planner("new", "scenario", ".", *words)
    assert done.code == 1
    assert line in done.err
    assert "Traceback" not in done.err
    assert not (tables / "scenario.toml").exists()


def test_no_scenario_is_overwritten(tables: Path) -> None:
    (tables / "scenario.toml").write_text("mine")
    with pytest.raises(InputError, match="exists already"):
        write_scenario([tables], columns=ENDS)
    assert (tables / "scenario.toml").read_text() == "mine"


def test_rows_at_fault_are_named_and_nothing_is_written(tables: Path) -> None:
    (tables / "matrix.csv").write_text("source,target,rate_mbps\nparis,nice,-3\nparis,rome,3\n")
    with pytest.raises(InputError) as caught:
        write_scenario([tables], columns=ENDS)
    text = "\n".join(caught.value.faults)
    assert "matrix.csv row 2: rate_mbps is -3" in text
    assert "rome" in text
    assert not (tables / "scenario.toml").exists()


def test_files_that_are_no_tables_of_the_system_are_left_out(tables: Path) -> None:
    (tables / "staff.csv").write_text("name,room\nAda,4\n")
    notes: list[str] = []
    with observe_notes(notes.append):
        written = write_scenario([tables], system="traffic", columns=ENDS)
    assert set(written.sheets) == {"links", "demands"}
    assert "staff.csv: is no table of traffic, left out" in notes
