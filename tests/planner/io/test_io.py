"""Titles, comments, percent, hidden cells, times and orients of JSON: read with a line, or refused."""

from __future__ import annotations

import io
import json
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openpyxl
import pandas as pd
import pytest

from planner.contract.notes import observe_notes
from planner.contract.table import Table, label, number, window
from planner.errors import InputError
from planner.io.json_files import json_columns
from planner.io.layout import Layout, TableFile
from planner.io.table_files import read_table

TABLE = Table(
    name="rates",
    about="",
    columns={
        "window": window("w", other_names=("time",)),
        "node": label("n"),
        "rate_mbps": number("r"),
        "share": number("s", optional=True, share=True, at_most=1),
        "moved_percent": number("p", optional=True, at_most=100),
    },
)
HEADER = ["window", "node", "rate_mbps"]
ROWS = [[1, "a", 10.0], [2, "a", 20.5], [3, "a", 30.0]]
RATES = [10.0, 20.5, 30.0]
SLOW_MACHINE_S = 30.0
"""CPU seconds that no machine needs, and that work which grows as the square of the input exceeds by far."""


def read(path: Path, **layout: Any) -> tuple[pd.DataFrame, list[str]]:
    notes: list[str] = []
    with observe_notes(notes.append):
        frame = read_table(TABLE, TableFile(path=path, layout=Layout(**layout)))
    return frame, notes


def workbook(path: Path, change: Callable[[Any], None], rows: list[list[Any]] | None = None) -> Path:
    book = openpyxl.Workbook()
    assert book.active is not None
    book.active.title = "rates"
    for row in rows or [HEADER, *ROWS]:
        book.active.append(row)
    change(book.active)
    book.save(path)
    return path


TEXT = "window,node,rate_mbps\n1,a,10\n2,a,20.5\n3,a,30\n"


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("Rates of March\n\n" + TEXT, "x.csv: header in row 3; what is above it is left out"),
        ("Rates,of,March\n" + TEXT, "x.csv: header in row 2; what is above it is left out"),
        ("# made by a tool\n# UTC\n" + TEXT, "x.csv: header in row 3; what is above it is left out"),
        ("#" + TEXT, None),
        ("\n" + TEXT, None),
        ("sep=,\n" + TEXT, None),
        ("sep=;\nRates\n" + TEXT.replace(",", ";"), "x.csv: header in row 3; what is above it is left out"),
        ("Rates; March\n" + TEXT.replace(",", ";"), "x.csv: header in row 2; what is above it is left out"),
        (TEXT.replace("2,a", "# a, b, c\n#short\n2,a"), "x.csv: 2 lines of comments left out"),
        (TEXT + "# end\n", "x.csv: 1 line of comments left out"),
        (TEXT.replace("\n", "\r\n"), None),
        ("\ufeff" + TEXT.replace("\n", ",,\n"), None),
        (TEXT.replace("window", " Window "), "x.csv: read columns 'Window' as window"),
        (TEXT.replace("rate_mbps", "Rate (kbit/s)").replace("10", "10000").replace("20.5", "20500")
         .replace("30", "30000"), "x.csv: read columns 'Rate (kbit/s)' as rate_mbps (divided by 1,000)"),
        (TEXT.replace(",", ";").replace(".", ","), "x.csv: separated by semicolons, decimal comma"),
    ],
)  # fmt: skip
def test_a_csv_file_with_titles_or_comments_is_the_same_table(
    text: str, note: str | None, tmp_path: Path
) -> None:
    (tmp_path / "x.csv").write_text(text, encoding="utf-8", newline="")
    frame, notes = read(tmp_path / "x.csv")
    assert frame["rate_mbps"].tolist() == RATES
    assert frame["node"].tolist() == ["a"] * 3
    assert note is None or note in notes, notes


def test_rows_in_faults_count_titles_and_comments(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("Title\n" + TEXT.replace("2,a,20.5", "# note\n2,a,x"))
    with pytest.raises(InputError, match=r"x.csv row 5: rate_mbps is 'x', must be a number"):
        read(tmp_path / "x.csv")
    (tmp_path / "y.csv").write_text(TEXT.replace("1,a", "#1,a"))
    with pytest.raises(InputError, match=r"y.csv row 2: window is '#1', must be a number"):
        read(tmp_path / "y.csv")


def test_the_row_of_the_header_can_be_set(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("window,node,rate_mbps\n" + TEXT)
    assert read(tmp_path / "x.csv", header=2)[0]["rate_mbps"].tolist() == RATES
    path = workbook(tmp_path / "x.xlsx", lambda _: None, [HEADER, HEADER, *ROWS])
    assert read(path, header=2)[0]["rate_mbps"].tolist() == RATES


@pytest.mark.parametrize(
    "cell", ["10" + " " * 300_000 + "x", "10" + "% " * 150_000 + "x", "%" * 300_000 + "x"]
)
def test_long_cells_of_numbers_are_refused_in_linear_time(tmp_path: Path, cell: str) -> None:
    """A pattern that tried each start of the spaces would take minutes here."""
    (tmp_path / "x.csv").write_text(TEXT.replace("20.5", cell))
    begin = time.process_time()
    with pytest.raises(InputError, match=r"x.csv row 3: rate_mbps is ") as error:
        read(tmp_path / "x.csv")
    assert time.process_time() - begin < SLOW_MACHINE_S
    assert max(map(len, error.value.faults)) < 500


def test_empty_rows_before_a_far_cell_take_little_time(tmp_path: Path) -> None:
    path = workbook(tmp_path / "x.xlsx", lambda sheet: sheet.cell(1_048_576, 2, 7.0))
    begin = time.process_time()
    with pytest.raises(InputError) as error:
        read(path)
    assert time.process_time() - begin < SLOW_MACHINE_S
    assert error.value.faults == (
        "x.xlsx row 1048576: rate_mbps is empty",
        "x.xlsx row 1048576: window is empty",
    )


def test_empty_rows_and_cells_within_a_sheet_keep_the_numbers_of_rows(tmp_path: Path) -> None:
    path = workbook(tmp_path / "x.xlsx", lambda _: None, [HEADER, ROWS[0], [], [2, 7, 20.5], [3, "b", 3.0]])
    assert read(path)[0]["node"].tolist() == ["a", "7", "b"]
    path = workbook(
        tmp_path / "x.xlsx", lambda _: None, [HEADER, ROWS[0], [], [2, None, 20.5], [3, "b", "x"]]
    )
    with pytest.raises(InputError) as error:
        read(path)
    assert sorted(error.value.faults) == [
        "x.xlsx row 4: node is empty",
        "x.xlsx row 5: rate_mbps is 'x', must be a number",
    ]


def test_titles_above_the_header_of_a_sheet(tmp_path: Path) -> None:
    path = workbook(tmp_path / "x.xlsx", lambda _: None, [["Rates"], [], ["UTC", "v2"], HEADER, *ROWS])
    frame, notes = read(path)
    assert frame["rate_mbps"].tolist() == RATES
    assert notes == ["x.xlsx: header in row 4; what is above it is left out"]


def test_numbers_that_a_sheet_shows_in_percent(tmp_path: Path) -> None:
    def show(sheet: Any) -> None:
        for cell in (sheet["D2"], sheet["E2"], sheet["E3"]):
            cell.number_format = "0.0%"

    rows = [[1, "a", 10.0, 0.5, 0.1], [2, "a", 1.0, 0.25, 0.2], [3, "a", 1.0, "40%", 7]]
    path = workbook(tmp_path / "x.xlsx", show, [[*HEADER, "share", "Moved (%)"], *rows])
    frame, notes = read(path)
    assert frame["share"].tolist() == [0.5, 0.25, 0.4]
    assert frame["moved_percent"].tolist() == [10.0, 20.0, 7.0]
    assert "x.xlsx: 2 cells of 'Moved (%)' in percent: 0.1 is 10%" in notes
    text = "window,node,rate_mbps,share,moved_percent\n1,a,1,50%,10%\n"
    (tmp_path / "x.csv").write_text(text)
    frame, _ = read(tmp_path / "x.csv")
    assert (frame["share"].tolist(), frame["moved_percent"].tolist()) == ([0.5], [10.0])
    (tmp_path / "y.csv").write_text("window,node,rate_mbps,Share (%)\n1,a,1,50\n")
    assert read(tmp_path / "y.csv")[0]["share"].tolist() == [0.5]


def test_a_number_in_percent_is_no_rate(tmp_path: Path) -> None:
    def show(sheet: Any) -> None:
        sheet["C2"].number_format = "0%"

    path = workbook(tmp_path / "x.xlsx", show)
    with pytest.raises(InputError, match=r"row 2: rate_mbps is '1000%', must be a number without a percent"):
        read(path)


@pytest.mark.parametrize(
    ("hide", "note"),
    [
        (lambda sheet: setattr(sheet.row_dimensions[3], "hidden", True), "hidden row 3 is read"),
        (
            lambda sheet: setattr(sheet.column_dimensions["C"], "hidden", True),
            "hidden column 'rate_mbps' is read",
        ),
        (lambda sheet: setattr(sheet.row_dimensions[9], "hidden", True), None),
    ],
)
def test_hidden_cells_are_read_and_said(
    hide: Callable[[Any], None], note: str | None, tmp_path: Path
) -> None:
    frame, notes = read(workbook(tmp_path / "x.xlsx", hide))
    assert frame["rate_mbps"].tolist() == RATES
    assert notes == ([] if note is None else [f"warning: x.xlsx: {note}; delete what is not to be read"])


def test_hidden_sheets_are_read_and_said(tmp_path: Path) -> None:
    def hide(sheet: Any) -> None:
        sheet.parent.create_sheet("About")
        sheet.sheet_state = "hidden"

    _, notes = read(workbook(tmp_path / "x.xlsx", hide))
    assert notes == ["warning: x.xlsx sheet rates: the hidden sheet is read; delete what is not to be read"]


ODS = """<?xml version="1.0" encoding="UTF-8"?>
<office:document-content xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"
 xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0"
 xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"><office:body><office:spreadsheet>
<table:table table:name="rates">{rows}</table:table></office:spreadsheet></office:body>
</office:document-content>"""


def test_an_open_document_with_hidden_rows_and_percent(tmp_path: Path) -> None:
    def cell(value: Any, kind: str = "float") -> str:
        if isinstance(value, str):
            kind = "string"
        shown = "" if kind == "string" else f' office:value="{value}"'
        return (
            f'<table:table-cell office:value-type="{kind}"{shown}><text:p>{value}</text:p></table:table-cell>'
        )

    rows = [[cell(name) for name in [*HEADER, "moved_percent"]]]
    rows += [[cell(value) for value in row] + [cell(0.1, "percentage")] for row in ROWS]
    texts = [f"<table:table-row>{''.join(row)}</table:table-row>" for row in rows]
    texts[2] = texts[2].replace("<table:table-row>", '<table:table-row table:visibility="collapse">')
    manifest = (
        '<?xml version="1.0"?><manifest:manifest xmlns:manifest='
        '"urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"><manifest:file-entry manifest:full-path="/" '
        'manifest:media-type="application/vnd.oasis.opendocument.spreadsheet"/></manifest:manifest>'
    )
    with zipfile.ZipFile(tmp_path / "x.ods", "w") as parts:
        parts.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        parts.writestr("META-INF/manifest.xml", manifest)
        parts.writestr("content.xml", ODS.format(rows="".join(texts)))
    frame, notes = read(tmp_path / "x.ods")
    assert frame["moved_percent"].tolist() == [10.0] * 3
    assert notes == [
        "warning: x.ods: hidden row 3 is read; delete what is not to be read",
        "x.ods: 3 cells of 'moved_percent' in percent: 0.1 is 10%",
    ]


def test_times_of_a_sheet_are_windows(tmp_path: Path) -> None:
    times = pd.date_range("2024-03-31", periods=3, freq="5min").to_pydatetime()
    rows = [["Time", *HEADER[1:]], *([time, *row[1:]] for time, row in zip(times, ROWS, strict=True))]
    frame, notes = read(workbook(tmp_path / "x.xlsx", lambda _: None, rows))
    assert frame["window"].tolist() == [1.0, 2.0, 3.0]
    assert "x.xlsx: windows 1 to 3 are 2024-03-31 00:00 to 2024-03-31 00:10, every 5 minutes" in notes


FRAME = pd.DataFrame(ROWS, columns=HEADER)


@pytest.mark.parametrize("orient", ["records", "split", "columns", "index", "table"])
@pytest.mark.parametrize("index", [[0, 1, 2], ["x", "y", "z"]])
def test_what_pandas_writes_as_json_is_read(orient: Any, index: list[Any], tmp_path: Path) -> None:
    (tmp_path / "rates.json").write_text(FRAME.set_axis(index).to_json(orient=orient))
    assert read(tmp_path / "rates.json")[0]["rate_mbps"].tolist() == RATES
    within = {"rates": json.loads((tmp_path / "rates.json").read_text()), "nodes": [{"node": "a"}]}
    (tmp_path / "all.json").write_text(json.dumps(within))
    assert read(tmp_path / "all.json")[0]["rate_mbps"].tolist() == RATES
    if orient != "index":  # without a table, only the index of rows tells columns from rows
        assert (
            set(HEADER) <= set(json_columns(TableFile(path=tmp_path / "all.json"))["rates"])
            or index[0] == "x"
        )


def test_lists_of_columns_and_times_of_pandas(tmp_path: Path) -> None:
    (tmp_path / "rates.json").write_text(json.dumps(FRAME.to_dict("list")))
    assert read(tmp_path / "rates.json")[0]["rate_mbps"].tolist() == RATES
    timed = FRAME.assign(window=pd.date_range("2024-03-31", periods=3, freq="h"))
    milliseconds = FRAME.assign(window=[1711843200000, 1711846800000, 1711850400000])
    (tmp_path / "rates.json").write_text(milliseconds.to_json())
    frame, notes = read(tmp_path / "rates.json")
    assert frame["window"].nunique() == 3
    assert "assumed: rates.json: window counts ms since 1970, in UTC" in notes
    (tmp_path / "rates.json").write_text(timed.to_json(date_format="iso"))
    assert read(tmp_path / "rates.json")[0]["window"].tolist() == [1.0, 2.0, 3.0]


def test_json_without_names_of_columns_is_read_in_our_order_or_refused(tmp_path: Path) -> None:
    (tmp_path / "rates.json").write_text(FRAME.to_json(orient="values"))
    frame, notes = read(tmp_path / "rates.json")
    assert frame["rate_mbps"].tolist() == RATES
    assert "assumed: rates.json: values are window, node, rate_mbps, in this order" in notes
    (tmp_path / "rates.json").write_text(FRAME[["window", "node"]].to_json(orient="values"))
    with pytest.raises(InputError) as error:
        read(tmp_path / "rates.json")
    (line,) = error.value.faults
    assert line == (
        "rates.json row 1: has 2 values without names of columns, must have 3: window, node, rate_mbps; "
        'pandas writes names by to_json(orient="records")'
    )
    written = io.StringIO()
    FRAME.to_json(written, orient="records")
    (tmp_path / "rates.json").write_text(written.getvalue())
    assert read(tmp_path / "rates.json")[0]["rate_mbps"].tolist() == RATES
