"""Templates: a filled workbook of every system is the problem that it was filled from."""

from __future__ import annotations

from pathlib import Path

import openpyxl
import pandas as pd
import pytest

from planner.errors import InputError
from planner.io.recognition import DESCRIPTION_HEADER
from planner.scenarios.catalogue import find_system, system_names
from planner.scenarios.from_files import write_scenario
from planner.scenarios.scenario import load
from planner.scenarios.template_workbook import ABOUT_SHEET, write_template
from tests.fuzzing.bases import bases

SMALL = {base.system.name: base for base in bases()}
QUICK = ("capacity", "contracts", "fairshare", "traffic")
SYSTEMS = [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in system_names()]


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_filled_template_reads_back(name: str, tmp_path: Path) -> None:
    base = SMALL[name]
    path = tmp_path / f"{name}.xlsx"
    write_template(base.system, path)
    book = openpyxl.load_workbook(path)
    for table, frame in base.tables.items():
        sheet = book[table]
        columns = {cell.value: cell.column for cell in sheet[1]}
        for row, record in enumerate(frame.to_dict("records"), start=2):
            for column, value in record.items():
                if not (pd.isna(value) or value == ""):
                    sheet.cell(row=row, column=columns[str(column)], value=value)
    book.save(path)
    written = write_scenario([path], system=name)
    problem = load(written.path).make_problem()
    expected = base.system.problem.from_tables(base.tables).to_tables()
    tables = problem.to_tables()
    for table, frame in base.tables.items():
        assert len(tables[table]) == len(expected[table]), table
        for column in [column for column in frame if frame[column].notna().all()]:
            values, again = expected[table][column].tolist(), tables[table][column].tolist()
            if isinstance(values[0], float):
                values = pytest.approx(values, rel=1e-14)  # a workbook has 16 digits
            assert again == values, (table, column)


@pytest.mark.parametrize("name", SYSTEMS)
def test_every_column_is_explained(name: str, tmp_path: Path) -> None:
    system = find_system(name)
    path = tmp_path / "template.xlsx"
    write_template(system, path)
    book = openpyxl.load_workbook(path, read_only=True)
    header, *rows = book[ABOUT_SHEET].iter_rows(values_only=True)
    assert header == DESCRIPTION_HEADER
    columns = {(table.name, column) for table in system.problem.tables for column in table.columns}
    assert {row[:2] for row in rows} == columns
    assert all(row[4] for row in rows), "a meaning each"
    assert book.sheetnames[1:] == list(dict.fromkeys(row[0] for row in rows))


def test_a_template_overwrites_nothing(tmp_path: Path) -> None:
    path = tmp_path / "t.xlsx"
    path.write_text("mine")
    with pytest.raises(InputError, match=r"t\.xlsx: exists already; name another file with --out"):
        write_template(find_system("rotors"), path)
    with pytest.raises(InputError, match=r"t\.csv: must end in \.xlsx"):
        write_template(find_system("rotors"), tmp_path / "t.csv")
    assert path.read_text() == "mine"
