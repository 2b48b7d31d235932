"""Matrices in files: the same demands as the list of pairs, whatever the file says of unit and direction."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import openpyxl
import pytest

from planner.contract.notes import observe_notes
from planner.contract.table import Table
from planner.errors import InputError
from planner.io.recognition import list_sheets, read_as
from planner.io.table_files import read_table
from planner.scenarios.catalogue import find_system
from planner.scenarios.from_files import write_scenario

TRAFFIC: Final = find_system("traffic")
DEMANDS: Final[Table] = TRAFFIC.problem.table_by_name["demands"]
PAIRS: Final = {("a", "b"): 20, ("a", "c"): 30, ("b", "a"): 5, ("b", "c"): 10, ("c", "a"): 15, ("c", "b"): 25}
"""Entries of all matrices below, from row to column."""
ROWS: Final = "a,0,20,30\nb,5,0,10\nc,15,25,0\n"


def read(text: str, folder: Path, name: str = "demands.csv") -> dict[tuple[str, str], float]:
    (folder / name).write_text(text, encoding="utf-8")
    frame = read_table(DEMANDS, folder / name)
    ends = zip(frame["source"], frame["target"], strict=True)
    return dict(zip(ends, frame["rate_mbps"].tolist(), strict=True))


def scaled(factor: float) -> dict[tuple[str, str], float]:
    return {pair: rate * factor for pair, rate in PAIRS.items()}


@pytest.mark.parametrize(
    ("text", "factor"),
    [
        (",a,b,c\n" + ROWS, 1),
        ("from,a,b,c\n" + ROWS, 1),
        ("Gbps,a,b,c\n" + ROWS, 1000),
        ("Source (kbit/s),a,b,c\n" + ROWS, 0.001),
        ("node;a;b;c\na;;20,0;30,0\nb;5,0;;10,0\nc;15,0;25,0;\n", 1),
        ("A title\n\nSource,a,b,c\n" + ROWS, 1),
        (",c,b,a\nb,10,0,5\nc,0,25,15\na,30,20,0\n", 1),
        (",a,b,c,Total\n" + "a,0,20,30,50\nb,5,0,10,15\nc,15,25,0,40\nTotal,20,45,40,105\n", 1),
    ],
)
def test_a_matrix_is_the_list_of_its_pairs(text: str, factor: float, tmp_path: Path) -> None:
    assert read(text, tmp_path) == pytest.approx(scaled(factor))


@pytest.mark.parametrize("corner", ["Destination", "to\\from", "Egress / ingress (Mbit/s)"])
def test_the_first_cell_says_that_rows_are_targets(corner: str, tmp_path: Path) -> None:
    turned = {(target, source): rate for (source, target), rate in PAIRS.items()}
    assert read(f"{corner},a,b,c\n{ROWS}", tmp_path) == turned


def test_rows_may_be_absent(tmp_path: Path) -> None:
    assert read(",a,b,c\na,0,20,30\nb,5,0,10\n", tmp_path) == {
        pair: rate for pair, rate in PAIRS.items() if pair[0] != "c"
    }


def test_what_is_assumed_is_said_once(tmp_path: Path) -> None:
    notes: list[str] = []
    with observe_notes(notes.append):
        read(",a,b,c\n" + ROWS, tmp_path)
    assumed = [note for note in notes if note.startswith("assumed: ")]
    assert len(assumed) == 2, notes
    assert "from the names of rows" in assumed[0]
    assert "Mbit/s" in assumed[1]
    notes.clear()
    with observe_notes(notes.append):
        read("from (Mbps),a,b,c\n" + ROWS, tmp_path)
    assert not [note for note in notes if note.startswith("assumed: ")]


def test_a_unit_in_the_name_of_the_file_counts(tmp_path: Path) -> None:
    assert read(",a,b,c\n" + ROWS, tmp_path, name="demands_gbps.csv") == scaled(1000)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (",a,b,c\na,0,-20,30\nb,5,0,10\nc,15,25,0\n", "row a, column b is -20"),
        (",a,b,c\na,0,many,30\nb,5,0,10\nc,15,25,0\n", "many"),
        (",x,y,z\n" + ROWS, "column 'source' is missing"),
        (",a,b,c\na,0,1,2\na,1,0,2\nb,1,2,0\n", "column 'source' is missing"),
    ],
)
def test_other_tables_are_refused(text: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=words):
        read(text, tmp_path)


def test_a_sheet_with_a_matrix_is_recognized(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    links, demands = book.active, book.create_sheet("Flows of today")
    links.title = "links"
    for row in (("tail", "head", "capacity_mbps"), ("a", "b", 100), ("b", "a", 100)):
        links.append(row)
    cells: list[tuple[object, ...]] = [("Source", "a", "b"), ("a", None, 7), ("b", 3.5, None)]
    for entries in cells:
        demands.append(entries)
    path = tmp_path / "network.xlsx"
    book.save(path)
    sheets = list_sheets(path)
    assert [choice.table for choice in read_as(sheets, TRAFFIC).choices] == ["links", "demands"]
    frame = read_table(DEMANDS, sheets[1].file())
    assert frame[["source", "target", "rate_mbps"]].to_numpy().tolist() == [["a", "b", 7.0], ["b", "a", 3.5]]


@pytest.mark.parametrize(
    ("text", "pairs", "notes"),
    [
        (
            "Mbps,London,Paris,Madird\nLondon,0,2,3\nParis,1,0,4\nMadrid,5,6,0\n",
            {
                ("London", "Paris"): 2, ("London", "Madird"): 3, ("Paris", "London"): 1,
                ("Paris", "Madird"): 4, ("Madrid", "London"): 5, ("Madrid", "Paris"): 6,
            },
            [
                "'Madrid' is a row but no column, read as no traffic to it; did you mean 'Madird'?",
                "'Madird' is a column but no row, read as no traffic from it; did you mean 'Madrid'?",
            ],
        ),
        (
            "to\\from,a,b\na,0,2\nb,1,0\nc,3,4\n",
            {("b", "a"): 2, ("a", "b"): 1, ("a", "c"): 3, ("b", "c"): 4},
            ["'c' is a row but no column, read as no traffic from it"],
        ),
        (
            "von / nach,c,d\na,1,2\nb,3,4\n",
            {("a", "c"): 1, ("a", "d"): 2, ("b", "c"): 3, ("b", "d"): 4},
            [
                "2 names, such as 'a', are rows but no columns, read as no traffic to them",
                "2 names, such as 'c', are columns but no rows, read as no traffic from them",
            ],
        ),
        (",London,Paris,Rome\nLONDON,0,2,3\nparis*,4,0,5\n",
         {("London", "Paris"): 2, ("London", "Rome"): 3, ("Paris", "London"): 4, ("Paris", "Rome"): 5},
         ["'Rome' is a column but no row, read as no traffic from it"]),
    ],
)  # fmt: skip
def test_names_that_only_rows_or_columns_have_are_said(
    text: str, pairs: dict[tuple[str, str], float], notes: list[str], tmp_path: Path
) -> None:
    observed: list[str] = []
    with observe_notes(observed.append):
        assert read(text, tmp_path) == pairs
    said = [note.split(": ", 2) for note in observed if "no traffic" in note]
    assert [text for _, _, text in said] == notes
    assert {mark for mark, *_ in said} == {"warning" if "did you mean" in notes[0] else "assumed"}


def test_a_table_with_both_ends_in_one_column_is_no_matrix(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"column .* is missing"):
        read("From/To,Foo,Bar\na - b,1,2\nb - c,3,4\n", tmp_path)


def test_an_unknown_name_of_a_matrix_is_said_with_its_row_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "links.csv").write_text("tail,head,capacity_mbps\na,b,9\nb,c,9\nc,a,9\n", encoding="utf-8")
    (tmp_path / "demands.csv").write_text(",a,b,x\na,0,2,3\nb,1,0,4\nx,5,6,0\n", encoding="utf-8")
    with pytest.raises(InputError) as error:
        write_scenario([tmp_path / "links.csv", tmp_path / "demands.csv"])
    assert error.value.faults == (
        "demands.csv row 4: source 'x' is no node of the network; valid: a, b, c",
        "demands.csv row 2: target 'x' is no node of the network; valid: a, b, c",
        "demands.csv row 3: target 'x' is no node of the network; valid: a, b, c",
    )
