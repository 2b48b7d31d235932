"""Recognition of tables by content: the right table or a question, never a wrong table."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pandas as pd
import pytest

from planner.errors import InputError
from planner.io.layout import Layout
from planner.io.recognition import Recognition, Sheet, list_sheets, recognize
from planner.io.table_files import read_table, write_table, write_workbook
from planner.scenarios.catalogue import find_system, system_names
from tests.fuzzing.bases import bases
from tests.planner.io.spreadsheets import in_other_words, table_of
from tests.planner.io.test_table_files import VARIANTS, write

SYSTEMS: Final = [find_system(name) for name in system_names()]


def tables_of(name: str) -> Mapping[str, pd.DataFrame]:
    return next(base.tables for base in bases() if base.system.name == name)


def recognize_files(*paths: Path) -> tuple[list[Sheet], Recognition]:
    sheets = [sheet for path in paths for sheet in list_sheets(path)]
    return sheets, recognize(sheets, SYSTEMS)


@pytest.mark.parametrize("name", VARIANTS)
def test_a_spreadsheet_is_the_right_table_or_a_question(name: str, tmp_path: Path) -> None:
    variant = VARIANTS[name]
    path = tmp_path / variant.file
    write(variant.content, path)
    system, _, right = variant.table.partition(".")
    sheets, result = recognize_files(path)
    reading = result.reading(system)
    if reading is None:  # nothing is recognized: the user is told why, or asked
        assert result.system != system
        assert variant.faults or variant.layout or "JSON" in name, sheets
        return
    assert result.system in (None, system), result.system
    selected = [choice.table for choice in reading.choices]
    assert set(selected) <= {right, None}, "a wrong table, without a question"
    for sheet, choice in zip(sheets, reading.choices, strict=True):
        if choice.is_complete and not variant.layout and not variant.faults:
            frame = read_table(table_of(variant.table), sheet.file())
            assert {column: frame[column].tolist() for column in variant.read} == dict(variant.read)


@pytest.mark.parametrize("renamed", [False, True], ids=["named", "unnamed"])
@pytest.mark.parametrize("name", system_names())
def test_the_tables_of_each_system_are_recognized(name: str, renamed: bool, tmp_path: Path) -> None:
    paths = []
    for index, (table, frame) in enumerate(tables_of(name).items()):
        if len(frame):
            paths.append(tmp_path / (f"sheet {index}.csv" if renamed else f"{table}.csv"))
            write_table(frame, paths[-1])
    tables = [table for table, frame in tables_of(name).items() if len(frame)]
    _, result = recognize_files(*paths)
    assert result.system == name, result
    reading = result.reading(name)
    assert reading is not None
    for table, choice in zip(tables, reading.choices, strict=True):
        assert choice.table == table or (renamed and choice.table is None and table in choice.fitting)


@pytest.mark.slow
@pytest.mark.parametrize("name", system_names())
def test_the_workbook_of_a_stranger_is_recognized(name: str, tmp_path: Path) -> None:
    sheets = {table.title(): in_other_words(frame) for table, frame in tables_of(name).items() if len(frame)}
    write_workbook({**sheets, "Notes": pd.DataFrame({"who": ["me"]})}, tmp_path / "mine.xlsx")
    _, result = recognize_files(tmp_path / "mine.xlsx")
    assert result.system == name
    reading = result.reading(name)
    assert reading is not None
    assert [choice.table for choice in reading.choices] == [*(name.lower() for name in sheets), None]


def test_links_alone_are_a_question(tmp_path: Path) -> None:
    (tmp_path / "links.csv").write_text("tail,head,capacity_mbps\na,b,1\n")
    _, result = recognize_files(tmp_path / "links.csv")
    assert result.system is None
    assert {reading.system for reading in result.readings} >= {"traffic", "livevideo"}
    (tmp_path / "demand.csv").write_text("Source;Target;Rate (Gbit/s)\na;b;1\n")
    _, result = recognize_files(tmp_path / "links.csv", tmp_path / "demand.csv")
    assert result.system == "traffic"
    assert [choice.table for choice in result.readings[0].choices] == ["links", "demands"]


def test_a_recognition_is_the_same_in_another_process(tmp_path: Path) -> None:
    (tmp_path / "links.csv").write_text("tail;head;Capacity (Gbit/x)\na;b;1\n")
    _, result = recognize_files(tmp_path / "links.csv")
    copied: Recognition = pickle.loads(pickle.dumps(result))
    faults = [
        [choice.match.faults for reading in each.readings for choice in reading.choices if choice.match]
        for each in (result, copied)
    ]
    assert faults[0] == faults[1]
    assert any(faults[0])


def test_content_goes_before_the_name(tmp_path: Path) -> None:
    (tmp_path / "links.csv").write_text("source,target,rate_mbps\na,b,1\n")
    (tmp_path / "demands.csv").write_text("tail,head,capacity_mbps\na,b,1\n")
    _, result = recognize_files(tmp_path / "demands.csv", tmp_path / "links.csv")
    assert result.system == "traffic"
    assert [choice.table for choice in result.readings[0].choices] == ["links", "demands"]


def test_a_name_that_contradicts_the_columns_is_a_question(tmp_path: Path) -> None:
    frames = dict(tables_of("circuits"))
    coflow = pd.DataFrame({"coflow": ["c"], "source_rack": ["a"], "target_rack": ["b"], "bits": [1.0]})
    for table, frame in {**frames, "demands": coflow}.items():
        write_table(frame, tmp_path / f"{table}.csv")
    paths = [tmp_path / "racks.csv", tmp_path / "demands.csv", tmp_path / "switch.csv"]
    _, result = recognize_files(*paths)
    reading = result.reading("circuits")
    assert reading is not None
    assert reading.choices[1].table is None
    assert set(reading.choices[1].fitting) == {"demands", "coflows"}


def test_two_files_of_one_table_are_a_question(tmp_path: Path) -> None:
    for name in ("old", "new"):
        (tmp_path / f"{name}.csv").write_text("source,target,rate_mbps\na,b,1\n")
    _, result = recognize_files(tmp_path / "new.csv", tmp_path / "old.csv")
    assert [choice.table for choice in result.readings[0].choices] == [None, None]
    assert [choice.fitting for choice in result.readings[0].choices] == [("demands",), ("demands",)]


def test_a_mapping_reads_names_that_planner_does_not_know(tmp_path: Path) -> None:
    (tmp_path / "net.csv").write_text("From;To;Bandwidth (Gbit/s)\na;b;1,5\n")
    (sheet,) = list_sheets(tmp_path / "net.csv")
    assert recognize([sheet], SYSTEMS).system is None
    layout = Layout(columns={"tail": "From", "head": "To", "capacity_mbps": "Bandwidth (Gbit/s)"})
    frame = read_table(table_of("traffic.links"), sheet.file(layout))
    assert frame["capacity_mbps"].tolist() == [1500.0]


def test_a_file_that_is_no_table_says_why(tmp_path: Path) -> None:
    (tmp_path / "x.doc").write_text("")
    (tmp_path / "x.parquet").write_bytes(b"PAR1")
    faults = [sheet.fault for name in ("x.doc", "x.parquet") for sheet in list_sheets(tmp_path / name)]
    assert "must end in" in faults[0]
    assert "is no Parquet file" in faults[1]
    with pytest.raises(InputError):
        read_table(table_of("traffic.links"), tmp_path / "x.doc")
