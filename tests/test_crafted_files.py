"""Files that were made to stop a reader: the answer is one clear line, in time that grows with the file."""

from __future__ import annotations

import contextlib
import gzip
import json
import resource
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import openpyxl
import pandas as pd
import pytest

from planner.cli.output import report_error
from planner.contract.table import Table
from planner.errors import InputError
from planner.io import csv_files, json_files, workbooks
from planner.io.number_texts import MAX_DIGITS, long_number
from planner.io.recognition import list_sheets
from planner.io.table_files import read_tables, suffix_of, write_table
from planner.io.text_files import read_text
from planner.io.toml import parse_toml
from planner.scenarios.catalogue import find_system
from planner_models.traffic.problem.readers import file_errors
from tests.planner.io.spreadsheets import ods

LINKS = next(table for table in find_system("traffic").problem.tables if table.name == "links")
SLACK_S = 0.3


def read(path: Path, table: Table = LINKS) -> int:
    """Return the number of rows that are read."""
    return len(read_tables([table], {table.name: path})[table.name])


def fault(path: Path) -> str:
    with pytest.raises(InputError) as error:
        read(path)
    assert len(str(error.value).splitlines()) == 1
    return str(error.value)


def cpu_s(work: Callable[[], object]) -> float:
    """Return the CPU seconds of this process and of the children that it has waited for."""

    def total() -> float:
        used = (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN))
        return sum(item.ru_utime + item.ru_stime for item in used)

    before = total()
    work()
    return total() - before


# --- texts --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "where"),
    [
        ('[{"tail": "a", "head": "b"}, {"tail": "\\ud800", "head": "b"}]', "row 2"),
        ('[{"tail": "a", "head": "b", "\\uDFFF": 1}]', "row 1"),
        ('{"tail": "a", "head": "b"}\n{"tail": "\\udc00\\ud800", "head": "b"}\n', "row 2"),
    ],
)
def test_half_a_character_in_json_is_refused(tmp_path: Path, rows: str, where: str) -> None:
    (tmp_path / "links.json").write_text(rows)
    assert fault(tmp_path / "links.json").startswith(f"links.json {where}: has half a character, \\u")


def test_two_halves_are_a_character(tmp_path: Path) -> None:
    row = '{"tail": "\\ud83d\\ude00", "head": "b", "capacity_mbps": 1}'
    (tmp_path / "links.json").write_text(f"[{row}]")
    frame = read_tables([LINKS], {"links": tmp_path / "links.json"})["links"]
    assert frame["tail"].tolist() == ["\U0001f600"]


@pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\x85", "\x0c"])
def test_a_line_of_json_ends_at_a_line_feed_only(tmp_path: Path, mark: str) -> None:
    rows = [
        {"tail": f"a{mark}b", "head": "c", "capacity_mbps": 1},
        {"tail": "c", "head": "d", "capacity_mbps": 2},
    ]
    (tmp_path / "links.jsonl").write_text(
        "\n".join(json.dumps(row, ensure_ascii=mark == "\x0c") for row in rows)
    )
    (tmp_path / "links.json").write_bytes((tmp_path / "links.jsonl").read_bytes())
    frame = read_tables([LINKS], {"links": tmp_path / "links.json"})["links"]
    assert frame["tail"].tolist() == [f"a{mark}b", "c"]


def test_a_number_of_thousands_of_digits_is_refused_in_any_text(tmp_path: Path) -> None:
    assert long_number("9" * MAX_DIGITS) is None
    (tmp_path / "trace.txt").write_text("1 2\n3 " + "9" * 5000 + "\n")
    with pytest.raises(InputError) as error:
        read_text(tmp_path / "trace.txt")
    assert str(error.value) == "trace.txt row 2: has a number of 5,000 digits, must have at most 1,000"


def test_what_unpacks_to_more_than_the_limit_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_files, "MAX_UNPACKED", 1 << 20)
    monkeypatch.setattr(workbooks, "MAX_UNPACKED", 1 << 20)
    monkeypatch.setattr(json_files, "MAX_JSON_BYTES", 1 << 20)
    write_packed(tmp_path / "links.csv.gz", 200_000)
    assert fault(tmp_path / "links.csv.gz") == "links.csv.gz: unpacks to over 1 MiB"
    write_gaps(tmp_path / "links.xlsx", 2)
    with zipfile.ZipFile(tmp_path / "links.xlsx", "a", zipfile.ZIP_DEFLATED) as parts:
        parts.writestr("xl/media/picture.png", bytes(3 << 20))
    assert fault(tmp_path / "links.xlsx") == "links.xlsx: unpacks to 3 MiB, at most 1"
    write_lines(tmp_path / "links.json", 30_000)
    assert fault(tmp_path / "links.json") == "links.json: has over 1 MiB; use Parquet"


def test_a_text_of_json_is_no_longer_than_a_line(tmp_path: Path) -> None:
    rows = [{"tail": "a", "head": "b", "capacity_mbps": 1}, {"tail": "x" * (2 << 20), "head": "b"}]
    (tmp_path / "links.json").write_text(json.dumps(rows))
    message = "links.json row 2: tail has 2,097,152 letters, must have at most 1,048,576"
    assert fault(tmp_path / "links.json") == message


def test_objects_of_json_are_counted_before_they_are_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An object of two letters takes 64 bytes of memory."""
    (tmp_path / "links.json").write_text("[" + "{}," * 26_000_000 + "{}]")
    message = "links.json: has 26,000,002 lists and objects, must have at most 10,000,000; use Parquet"
    assert fault(tmp_path / "links.json") == message
    monkeypatch.setattr(json_files, "MAX_OBJECTS", 3)
    (tmp_path / "links.json").write_text('[{"tail": "a", "head": "b", "capacity_mbps": 1}]')
    assert read(tmp_path / "links.json") == 1


def test_a_text_of_a_workbook_is_no_longer_than_a_line(tmp_path: Path) -> None:
    ods(["tail", "head", "capacity_mbps"], ["a", "b", 1], ["x" * (2 << 20), "b", 1])(tmp_path / "links.ods")
    message = "links.ods row 3: tail has 2,097,152 letters, must have at most 1,048,576"
    assert fault(tmp_path / "links.ods") == message


@pytest.mark.skipif(sys.platform == "win32", reason="has no SIGKILL")
def test_a_process_that_is_killed_while_it_reads_a_workbook_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ods(["tail", "head", "capacity_mbps"], ["a", "b", 1])(tmp_path / "links.ods")
    killed = tmp_path / "killed.py"
    killed.write_text("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n")
    with monkeypatch.context() as patch:
        patch.setattr(workbooks, "CHILD", killed)
        words = "is no readable workbook (it needs too much memory or time)"
        assert fault(tmp_path / "links.ods") == f"links.ods: {words}"
    assert read(tmp_path / "links.ods") == 1, "the next question is answered"


@pytest.mark.parametrize("ending", ["csv.bz2", "csv.xz", "csv.zst", "zip", "tar", "7z", "pkl"])
def test_other_archives_are_not_read(tmp_path: Path, ending: str) -> None:
    (tmp_path / f"links.{ending}").write_bytes(b"x")
    assert fault(tmp_path / f"links.{ending}").startswith(f"links.{ending}: must end in .csv, ")


# --- growth -------------------------------------------------------------------------------


def write_open_quote(path: Path, size: int) -> None:
    """Write a header whose quote nothing closes, before many lines."""
    path.write_text('tail,head,"capacity_mbps\n' + "a,b,1\n" * size)


def write_quotes(path: Path, size: int) -> None:
    path.write_text('"tail,head\n' + '"x"",\n' * size)


def write_plain(path: Path, size: int) -> None:
    path.write_text("tail,head,capacity_mbps\n" + "".join(f"n{i},m{i},1\n" for i in range(size)))


def write_packed(path: Path, size: int) -> None:
    rows = "".join(f"n{i},m{i},1\n" for i in range(size))
    path.write_bytes(gzip.compress(f"tail,head,capacity_mbps\n{rows}".encode()))


def write_lines(path: Path, size: int) -> None:
    rows = [{"tail": f"n{i}", "head": f"m{i}", "capacity_mbps": 1} for i in range(size)]
    path.write_text("\n".join(map(json.dumps, rows)))


def write_gaps(path: Path, size: int) -> None:
    """Write a workbook with a blank optional cell in its first and in its last row."""
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet("links")
    sheet.append(["tail", "head", "capacity_mbps", "weight"])
    for row in range(size):
        sheet.append([f"n{row}", f"m{row}", 1, None if row in (0, size - 1) else 1])
    book.save(path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("write", "name", "size"),
    [
        (write_open_quote, "links.csv", 100_000),
        (write_quotes, "links.csv", 100_000),
        (write_plain, "links.csv", 50_000),
        (write_packed, "links.csv.gz", 50_000),
        (write_lines, "links.json", 20_000),
        (write_gaps, "links.xlsx", 2_000),
    ],
)
def test_the_time_of_a_file_grows_as_the_file_does(
    tmp_path: Path, write: Callable[[Path, int], None], name: str, size: int
) -> None:
    """Four times the rows take at most six times the time: 16 times would be a quadratic reader."""
    times = []
    for rows in (size, size, 4 * size):  # the first loads modules
        folder = tmp_path / str(len(times))
        folder.mkdir()
        write(folder / name, rows)

        def work(path: Path = folder / name) -> None:
            with contextlib.suppress(InputError):
                read(path)

        times.append(cpu_s(work))
    assert times[2] <= 6 * times[1] + SLACK_S, times


def test_a_header_with_an_open_quote_is_one_clear_line_at_once(tmp_path: Path) -> None:
    write_open_quote(tmp_path / "links.csv", 500_000)
    started = time.process_time()
    assert fault(tmp_path / "links.csv").startswith("links.csv")
    assert time.process_time() - started < 10.0


def test_line_ends_within_the_quotes_of_a_header_are_read(tmp_path: Path) -> None:
    (tmp_path / "links.csv").write_text('tail,head,capacity_mbps,"a\nnote"\na,b,1,x\n')
    assert read(tmp_path / "links.csv") == 1


# --- formulas -----------------------------------------------------------------------------

STARTS = ["=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20"]


@pytest.mark.parametrize("name", ["links.csv", "links.csv.gz", "links.xlsx"])
@pytest.mark.parametrize("start", STARTS, ids=[f"{ord(field):04x}" for field in STARTS])
def test_a_text_that_may_be_a_formula_is_quoted_and_read_back(tmp_path: Path, start: str, name: str) -> None:
    if name.endswith("xlsx") and start == "\r":
        pytest.skip("a workbook has no carriage return alone")
    text = f"{start}1+1"
    frame = pd.DataFrame({"tail": [text], "head": ["b"], "capacity_mbps": [1.0]})
    path = tmp_path / name
    write_table(frame, path)
    if suffix_of(path) == ".csv":
        cell = path.read_text().split("\n", 1)[1]
        assert cell.lstrip('"').startswith("'")
    assert read_tables([LINKS], {"links": path})["links"]["tail"].tolist() == [text]


# --- long lines, many columns -------------------------------------------------------------


def test_a_text_within_quotes_over_many_lines_is_refused_in_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "links.csv"
    path.write_text('tail,head,capacity_mbps\na,b,1\nc,"' + "d\n" * 600_000 + '",1\n')
    assert cpu_s(lambda: fault(path)) < 2.0
    assert fault(path) == ("links.csv row 3: field larger than field limit (131072); is a quote open?")


@pytest.mark.parametrize("mark", ['5" disk', 'a"'])
def test_a_quote_within_a_field_has_no_meaning_in_long_files(tmp_path: Path, mark: str) -> None:
    """A quote that opens nothing is no reason to count the lines after it as one."""
    path = tmp_path / "links.csv"
    rows = 70_000
    path.write_text(f"tail,head,capacity_mbps\n{mark},b,1\n" + "node_a,node_b,12.5\n" * rows)
    assert path.stat().st_size > 1 << 20
    assert read(path) == rows + 1


def test_columns_are_counted_before_their_cells_are_looked_at(tmp_path: Path) -> None:
    cells = {f"c{number}": 0 for number in range(40_000)}
    path = tmp_path / "links.json"
    row = {"tail": "a", "head": "b", "capacity_mbps": 1.0}
    for records in ([{**row, **cells}], [{**row, name: 0} for name in cells]):
        path.write_text(json.dumps(records))
        assert fault(path) == "links.json: has over 1,000 columns, must have at most 1,000"
    path = tmp_path / "links.csv"
    path.write_text(",".join([*row, *(f"c{number}" for number in range(100_000))]) + "\n")
    assert "has 100,003 columns, must have at most 1,000" in fault(path)
    path.write_text(",".join(f"column_{number}" for number in range(1_000_000)) + "\n")
    assert "has a line of over 1,048,576 bytes" in fault(path)


@pytest.mark.parametrize("ending", ["json", "parquet", "feather", "ods"])
def test_long_names_of_columns_are_refused_before_they_are_compared(tmp_path: Path, ending: str) -> None:
    """Each name is compared with all of ours: one of 200 MB took minutes and gigabytes."""
    path = tmp_path / f"links.{ending}"
    names, values = ["tail", "head", "capacity_mbps", "x" * 70_000], ["a", "b", 1.0, 1.0]
    frame = pd.DataFrame([values], columns=names)
    match ending:
        case "json":
            frame.to_json(path, orient="records")
        case "parquet":
            frame.to_parquet(path)
        case "feather":
            frame.to_feather(path)
        case _:
            ods(names, values)(path)
    words = "the name of column 4 has 70,000 letters, must have at most 65,536"
    assert fault(path) == f"links.{ending}: {words}"
    (sheet,) = list_sheets(path)
    assert words in sheet.fault


def test_names_of_columns_are_not_long_together(tmp_path: Path) -> None:
    path = tmp_path / "links.json"
    names = {f"{number} " + "x" * 60_000: 1 for number in range(30)}
    path.write_text(json.dumps([{"tail": "a", "head": "b", "capacity_mbps": 1, **names}]))
    assert cpu_s(lambda: fault(path)) < 2.0
    assert fault(path) == (
        "links.json: the names of its columns have 1,800,101 letters, must have at most 1,048,576"
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a." * 200_000 + "b = 1", "a key has over 64 parts"),
        ("[" + '"a" . ' * 100_000 + "b]", "a key has over 64 parts"),
        ("x = 1\n" * 1_000_000, "must have at most 4,194,304 as TOML"),
    ],
)
def test_toml_that_would_take_minutes_is_refused(text: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        parse_toml(text)


@pytest.mark.parametrize(
    "text", ["x = '" + "a" * 1_000_000 + "'", "a" * 1_000_000 + " = 1", "a" + " " * 1_000_000 + " = 1"]
)
def test_long_lines_of_toml_take_little_time(text: str) -> None:
    """The search for keys of many parts grows as the text does."""
    assert cpu_s(lambda: len(parse_toml(text))) < 2.0


def test_keys_of_some_parts_are_read() -> None:
    assert parse_toml("a.'b.c'.\"d\" = 1") == {"a": {"b.c": {"d": 1}}}


def test_xml_has_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "network.xml"
    path.write_text('<network version="' + "1" * 2_100_000 + '"/>')
    assert file_errors.parse(path, "network").tag == "network"
    monkeypatch.setattr(file_errors, "MAX_XML_BYTES", 1 << 21)
    with pytest.raises(InputError, match=r"network\.xml: has 2 MiB, must have at most 2 as XML"):
        file_errors.parse(path, "network")


def test_a_name_with_line_ends_is_one_line_of_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    report_error(InputError("links.csv row 2: node 'a" + "\n" * 100_000 + "b' is unknown", "second"))
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("links.csv row 2: node 'a\\n\\n")
    assert len(first) <= 600
    assert second == "second"
