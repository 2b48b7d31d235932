"""Workbooks: sheets of Excel (xlsx, xls) and OpenDocument (ods) files as tables.

python-calamine reads all three; a child process with limited memory calls it, see `workbook_child`.
openpyxl writes xlsx, and says what is typed into a cell that has no saved value.
"""

from __future__ import annotations

import datetime
import functools
import itertools
import pickle
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from planner.contract.columns import ColumnMatch, shorten_name
from planner.contract.synonyms import names_called
from planner.contract.table import Table
from planner.contract.tables import SHOWN_ROWS, abbreviate, shorten_faults
from planner.contract.units import plain, unit_of
from planner.errors import InputError, did_you_mean
from planner.formatting import counted
from planner.io.layout import TableFile
from planner.io.raw_table import (
    MAX_TITLE_ROWS,
    RawTable,
    find_columns,
    find_header,
    is_header,
    likely_headers,
    name_columns,
    number_columns,
    place_notes,
    require_header,
    require_short_names,
    tell_apart,
    title_notes,
    with_numbers,
    without_blank_end,
)
from planner.io.sheet_rows import add_units, drop_other_rows
from planner.io.text_files import MAX_LINE_BYTES, require_file

SUFFIXES: Final = (".xlsx", ".xlsm", ".xls", ".ods")
CHILD: Final = Path(__file__).with_name("workbook_child.py")
MAX_WAIT_S: Final = 180
HEADER_ROWS: Final = 4
"""Rows by which a header is told from other rows: its own, and those below."""
BLOCK: Final = re.compile(r"(?P<sheet>.+)!(?P<first>[A-Z]{1,3}):(?P<last>[A-Z]{1,3})")
"""Some columns of a sheet, as spreadsheet programs write it."""
MAX_KNOWN_CELLS: Final = 100_000
"""Cells of a workbook that stay in memory after it is read: a few MB."""
MAX_SECTIONS: Final = 50
"""Tables that one sheet may have, one below the other."""
MAX_UNPACKED: Final = 1 << 30
"""Bytes of all parts of a workbook when unpacked."""


def sheet_names(path: Path) -> list[str]:
    """Return the names of the sheets of a workbook."""
    require_file(path)
    names: list[str] = _ask_child(path, "sheets")
    return names


def read_sheet(table: Table, file: TableFile) -> RawTable:
    """Read a sheet: the one that the layout names, the one with the table's name, or the only one."""
    sheet = file.layout.sheet or _choose_sheet(table, file.path)
    is_part = sheet not in sheet_names_of(file.path)
    where = (
        f"{file.path.name} sheet {sheet}" if is_part or len(sheet_names_of(file.path)) > 1 else file.path.name
    )
    names, start, first = _header(table, file, sheet, where)
    end = None if file.layout.header is None else _end_of_section(file.path, sheet, file.layout.header)
    data = _cells(file.path, sheet)[first:end]
    match = find_columns(table, file, names, where)
    _require_short_texts(names, data, where, first_row=first + 1)
    values = {
        name: pd.Series([row[index] if row[index] != "" else None for row in data], dtype=object)
        for index, name in enumerate(names)
    }
    first_row = first + 1
    frame, others = drop_other_rows(
        table, pd.DataFrame(values, columns=names), match, first_row, can_merge=True
    )
    formats = _formats(file.path, sheet)
    notes = [*title_notes(_cells(file.path, sheet)[:start], where, start)]
    if first > start + 1:
        notes.append(f"{where}: units in row {start + 2}")
    notes += place_notes(others, where)
    notes += [*_hidden_notes(formats, match, names, len(data), where, first_row)]
    notes += _show_percent(frame, formats["percent"], names, number_columns(table, match), where, first_row)
    faults = _date_faults(table, frame, match, where, first_row)
    faults += _formula_faults(file.path, sheet, table, frame, match.names, where, first_row)
    for name in dict.fromkeys([*match.names.values(), *(name for name, _ in match.backward.values())]):
        change = _plain_numbers if name in number_columns(table, match) else _label_texts
        frame[name] = change(frame[name])
    raw = RawTable(frame=frame, match=match, first_row=first_row, notes=tuple(notes))
    return with_numbers(table, file, raw, point_is_decimal=False, faults=faults)


def _require_short_texts(
    names: Sequence[str], rows: Sequence[Sequence[Any]], where: str, first_row: int
) -> None:
    """Raise InputError where a cell has a longer text than a line of any other file may have."""
    for row, cells in enumerate(rows, start=first_row):
        for name, cell in zip(names, cells, strict=False):
            if isinstance(cell, str) and len(cell) > MAX_LINE_BYTES:
                limit = f"must have at most {MAX_LINE_BYTES:,}"
                raise InputError(f"{where} row {row}: {abbreviate(name)} has {len(cell):,} letters, {limit}")


def sheet_columns(path: Path, sheet: str, header: int | None = None) -> list[list[str]]:
    """Return the names of the columns of a sheet, for each row that may be its header.

    header  number of the row of the header, where it is known
    raises  InputError where it has none
    """
    if header is not None:
        above = max(0, header - 2)
        known = [[_text(cell) for cell in row] for row in _cells(path, sheet)[above : header + 2]]
        return [_names_of(known, header - 1 - above)[0]] if header - 1 - above < len(known) else []
    rows = [[_text(cell) for cell in row] for row in _cells(path, sheet)[:MAX_TITLE_ROWS]]
    headers = [_names_of(rows, index)[0] for index in likely_headers(rows)]
    if not headers:
        require_header(f"{path.name} sheet {sheet}", [])
    for names in headers:
        require_short_names(f"{path.name} sheet {sheet}", names)
    return headers


def _names_of(rows: Sequence[Sequence[str]], index: int) -> tuple[list[str], bool]:
    """Return the names of the columns in a row, and whether the row below it says their units."""
    header = without_blank_end(rows[index])
    names = name_columns(tell_apart(header, rows[index - 1] if index else ()))
    first = rows[index + 2] if index + 2 < len(rows) else None
    with_units = add_units(names, rows[index + 1], first) if index + 1 < len(rows) else None
    return (names, False) if with_units is None else (with_units, True)


def find_sections(path: Path, sheet: str) -> list[tuple[int, str]]:
    """Return the number of the header of each table in a sheet, with the title above it; [] for one table.

    Tables stand one below the other, with an empty row before each, or before its title.
    """
    cells = _cells(path, sheet)
    starts: list[tuple[int, str]] = []
    is_after_blank, title = True, ""
    for index, row in enumerate(cells):
        if not any(cell != "" for cell in row):
            is_after_blank, title = True, ""
            continue
        if not is_after_blank:
            continue
        rows = _texts_of(cells[index : index + HEADER_ROWS])
        texts = [text for text in rows[0] if text]
        if len(texts) == 1:
            title = texts[0]
            continue
        if is_header(rows):
            starts.append((index + 1, title))
            if len(starts) > MAX_SECTIONS:
                return []
        is_after_blank = False
    return starts if len(starts) > 1 else []


def _texts_of(rows: Iterable[Iterable[Any]]) -> list[list[str]]:
    """Return the texts of cells, without spaces around them."""
    return [[_text(cell).strip() for cell in row] for row in rows]


def _end_of_section(path: Path, sheet: str, header: int) -> int | None:
    """Return the number of the first row that is not of the table with a header; None for the last one."""
    sections = find_sections(path, sheet)
    if header not in [number for number, _ in sections]:
        return None
    after = [number - (2 if title else 1) for number, title in sections if number > header]
    return min(after, default=None)


def has_rows(path: Path, sheet: str) -> bool:
    """Return whether a sheet has two rows at least that are not empty: a header alone is no table."""
    count = 0
    for row in _cells(path, sheet):
        count += any(cell != "" for cell in row)
        if count > 1:
            return True
    return False


def title_texts(path: Path, sheet: str) -> list[str]:
    """Return the texts that stand alone in one of the first rows of a sheet, such as its title."""
    rows = [
        [_text(cell).strip() for cell in row if cell != ""] for row in _cells(path, sheet)[:MAX_TITLE_ROWS]
    ]
    return [row[0] for row in rows if len(row) == 1]


def _header(table: Table, file: TableFile, sheet: str, where: str) -> tuple[list[str], int, int]:
    """Return the names of the columns of a sheet, the index of their row, and that of the first data."""
    cells = _cells(file.path, sheet)
    start = (file.layout.header or 0) - 1
    if start < 0:
        rows = [[_text(cell) for cell in row] for row in cells[:MAX_TITLE_ROWS]]
        start = find_header(table, file, [tell_apart(row, above) for above, row in pairwise([[], *rows])])
    above = max(0, start - 1)
    rows = [[_text(cell) for cell in row] for row in cells[above : start + 3]]
    if start >= len(cells):
        require_header(where, [])
    names, has_units = _names_of(rows, start - above)
    require_header(where, names)
    return names, start, start + 1 + has_units


def _choose_sheet(table: Table, path: Path) -> str:
    names = sheet_names_of(path)
    if len(names) == 1:
        return names[0]
    sheets = names_called(table, (), names)
    if len(sheets) == 1:
        return sheets[0]
    raise InputError(
        f"{path.name}: has no sheet '{table.name}'"
        + (did_you_mean(table.name, names) or f" (it has {names[:12]})")
    )


@functools.lru_cache(maxsize=8)
def _known_sheets(path: Path, stamp: tuple[int, int]) -> tuple[str, ...]:  # noqa: ARG001 - the state of the file
    return tuple(sheet_names(path))


def sheet_names_of(path: Path) -> tuple[str, ...]:
    """Return the names of the sheets of a workbook, from memory where the file has not changed."""
    return _known_sheets(path, _stamp(path))


class _LastWorkbook:
    """Answers of the child process on the last workbook, until the file changes."""

    def __init__(self) -> None:
        self._key: tuple[Path, tuple[int, int]] | None = None
        self._answers: dict[tuple[str, ...], Any] = {}

    def ask(self, path: Path, command: str, *words: str) -> Any:
        """Return the answer of the child process, from memory where it has given it already."""
        key = path, _stamp(path)
        if key != self._key:
            self._key, self._answers = key, {}
        answers = self._answers
        if (command, *words) not in answers:
            answers[command, *words] = _ask_child(path, command, *words)
        return answers[command, *words]

    def forget_many(self) -> None:
        """Free the cells where they are many; few may stay, which are often read again at once."""
        sheets = [
            rows for words, answer in self._answers.items() if words[0] == "read" for rows in answer.values()
        ]
        if sum(len(rows) * len(rows[0]) for rows in sheets if rows) > MAX_KNOWN_CELLS:
            self._key, self._answers = None, {}


_last_workbook: Final = _LastWorkbook()


def _cells(path: Path, sheet: str) -> list[list[Any]]:
    name, columns = _columns_of(path, sheet)
    if name not in sheet_names_of(path):
        raise InputError(f"{path.name}: has no sheet '{sheet}'" + did_you_mean(sheet, sheet_names_of(path)))
    rows = _last_workbook.ask(path, "read", *sheet_names_of(path))[name]
    return rows if columns is None else [row[columns.start : columns.stop] for row in rows]


def _columns_of(path: Path, sheet: str) -> tuple[str, range | None]:
    """Return the name of a sheet and the columns of it that are meant, as in `Network!E:G`; None for all."""
    match = None if sheet in sheet_names_of(path) else BLOCK.fullmatch(sheet)
    if match is None:
        return sheet, None
    return match["sheet"], range(_column_number(match["first"]) - 1, _column_number(match["last"]))


def _column_number(letters: str) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter) - ord("A") + 1
    return number


def _column_letters(number: int) -> str:
    letters = ""
    while number:
        number, digit = divmod(number - 1, 26)
        letters = chr(ord("A") + digit) + letters
    return letters


def find_blocks(path: Path, sheet: str) -> list[tuple[str, str]]:
    """Return the tables that stand side by side in a sheet, as `Network!E:G`, each with its title.

    An empty column is between them, and each has a header. They are several tables where names of columns
    occur again, where they differ in their numbers of rows, or each has a title; [] for one table.
    """
    rows = [row for row in _cells(path, sheet) if any(cell != "" for cell in row)]
    blocks: list[tuple[str, str]] = []
    names: list[str] = []
    heights: set[int] = set()
    for columns in _used_columns(rows):
        part = list(filter(any, _texts_of(row[columns.start : columns.stop] for row in rows)))
        start = next((index for index, row in enumerate(part) if sum(map(bool, row)) > 1), None)
        if start is None or not is_header(part[start : start + HEADER_ROWS]):
            return []
        first, last = _column_letters(columns.start + 1), _column_letters(columns.stop)
        title = next(filter(None, itertools.chain.from_iterable(part[:start])), "")
        blocks.append((f"{sheet}!{first}:{last}", title))
        names += [plain(text) for text in part[start] if text]
        heights.add(len(part) - start)
    are_several = len(set(names)) < len(names) or len(heights) > 1 or all(title for _, title in blocks)
    return blocks if len(blocks) > 1 and are_several else []


def _used_columns(rows: Sequence[Sequence[Any]]) -> Iterator[range]:
    """Yield the columns that stand together, with empty ones between them; titles alone use no column."""
    width = max(map(len, rows), default=0)
    wide = [row for row in rows if sum(cell != "" for cell in row) > 1]
    is_used = [any(index < len(row) and row[index] != "" for row in wide) for index in range(width)]
    for used, group in itertools.groupby(range(width), key=lambda index: is_used[index]):
        columns = list(group)
        if used:
            yield range(columns[0], columns[-1] + 1)


def _formats(path: Path, sheet: str) -> dict[str, Any]:
    """Return the hidden parts of a sheet, and the cells in percent; see `workbook_formats`."""
    name, columns = _columns_of(path, sheet)
    plain_formats: dict[str, Any] = {
        "hidden": False,
        "rows": [],
        "columns": [],
        "percent": {},
        "typed": True,
    }
    formats = {**plain_formats, **_last_workbook.ask(path, "formats").get(name, {})}
    if columns is None:
        return formats
    hidden = [column - columns.start for column in formats["columns"] if column - 1 in columns]
    percent = {
        column - columns.start: rows for column, rows in formats["percent"].items() if column - 1 in columns
    }
    return {**formats, "columns": hidden, "percent": percent}


def forget_workbooks() -> None:
    """Free the cells of the last workbook where they are many."""
    _last_workbook.forget_many()


def _stamp(path: Path) -> tuple[int, int]:
    require_file(path)
    status = path.stat()
    return status.st_mtime_ns, status.st_size


def _ask_child(path: Path, command: str, *words: str) -> Any:
    """Return the answer of the child process; raise InputError where it has none."""
    _require_small_parts(path)
    try:
        result = subprocess.run(
            [sys.executable, "-P", str(CHILD), command, str(path.resolve()), *words],
            capture_output=True,
            timeout=MAX_WAIT_S,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        raise InputError(f"{path.name}: takes over {MAX_WAIT_S} s to read") from None
    if result.returncode:
        raise InputError(f"{path.name}: is no readable workbook (it needs too much memory or time)")
    answer = pickle.loads(result.stdout)
    if isinstance(answer, str):
        raise InputError(f"{path.name}: is no readable workbook ({' '.join(answer.split())[:160]})")
    return answer


def _require_small_parts(path: Path) -> None:
    """Raise InputError where a zipped workbook unpacks to more than any table needs."""
    if path.suffix.lower() == ".xls":
        return
    try:
        with zipfile.ZipFile(path) as parts:
            size = sum(member.file_size for member in parts.infolist())
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise InputError(f"{path.name}: is no {path.suffix[1:]} workbook ({error})") from None
    if size > MAX_UNPACKED:
        raise InputError(f"{path.name}: unpacks to {size >> 20:,} MiB, at most {MAX_UNPACKED >> 20:,}")


# --- cells --------------------------------------------------------------------------------


def _text(cell: Any) -> str:
    """Return a cell of a header as text."""
    return _label_text(cell) or ""


def _label_text(cell: Any) -> str | None:
    """Return a cell as the name that it shows: 7, not 7.0."""
    if cell is None:
        return None
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 1e15:
        return str(int(cell))
    return str(cell)


def _present(cells: pd.Series) -> pd.Series:
    """Return the cells that are not empty; most of a sheet with one far cell are."""
    return cells[cells.notna()]


def _label_texts(cells: pd.Series) -> pd.Series:
    """Return cells as the names that they show."""
    return _present(cells).map(_label_text).reindex(cells.index)


def _plain_numbers(cells: pd.Series) -> pd.Series:
    """Return cells as numbers where all are numbers or empty, else as they are."""
    is_number = _present(cells).map(lambda cell: isinstance(cell, int | float) and not isinstance(cell, bool))
    return cells.astype(float) if bool(is_number.all()) else cells


def is_hidden(path: Path, sheet: str) -> bool:
    """Return whether a workbook does not show a sheet."""
    return bool(_formats(path, sheet)["hidden"])


def _hidden_notes(
    formats: dict[str, Any], match: ColumnMatch, names: Sequence[str], rows: int, where: str, first_row: int
) -> list[str]:
    """Return a doubt about a hidden sheet, about hidden rows, and about hidden columns that are read."""
    used = set(match.names.values())
    hidden = [str(row) for row in formats["rows"] if first_row <= row < first_row + rows]
    read = [names[column - 1] for column in formats["columns"] if column <= len(names)]
    columns = [f"'{shorten_name(name)}'" for name in read if name in used]
    hidden_items = ["the hidden sheet is"] if formats["hidden"] else []
    hidden_items += [
        _say_hidden(kind, items) for kind, items in (("row", hidden), ("column", columns)) if items
    ]
    return [f"warning: {where}: {what} read; delete what is not to be read" for what in hidden_items]


def _say_hidden(kind: str, items: Sequence[str]) -> str:
    """Return the subject and verb of a sentence on hidden rows or columns, of which the first are named."""
    shown = ", ".join(items[:SHOWN_ROWS])
    if len(items) > SHOWN_ROWS:
        shown += f" and {len(items) - SHOWN_ROWS:,} more"
    return f"hidden {kind} {shown} is" if len(items) == 1 else f"hidden {kind}s {shown} are"


def _show_percent(
    frame: pd.DataFrame,
    percent: Mapping[int, Sequence[int]],
    names: Sequence[str],
    numbers: Sequence[str],
    where: str,
    first_row: int,
) -> list[str]:
    """Change numbers in cells that are shown in percent to such texts, as `10%`, and return notes."""
    notes = []
    for column, rows in percent.items():
        name = names[column - 1] if column <= len(names) else ""
        if name not in numbers:
            continue
        inside = frame.index.intersection([row - first_row for row in rows])
        shown = [row for row in inside if isinstance(frame[name].loc[row], int | float)]
        if not shown:
            continue
        example = frame[name].loc[shown[0]]
        cells = frame[name].copy()
        cells.loc[shown] = [f"{float(frame[name].loc[row]) * 100:.15g}%" for row in shown]
        frame[name] = cells
        count = counted(len(shown), "cells")
        notes.append(
            f"{where}: {count} of '{shorten_name(name)}' in percent: {example:g} is {cells.loc[shown[0]]}"
        )
    return notes


def _date_faults(
    table: Table, frame: pd.DataFrame, match: ColumnMatch, where: str, first_row: int
) -> list[str]:
    """Return a fault for each cell that a spreadsheet program has made a date of, where none can be."""
    faults = []
    for ours, name in match.names.items():
        unit = unit_of(ours)[1]
        is_time = unit is not None and unit.dimension == "time"
        if table.columns[ours].kind == "window" or is_time:
            continue  # windows may be times; durations are read, and the rules of numbers refuse the others
        kind = "text" if table.columns[ours].is_label else "number"
        present = _present(frame[name])
        dates = present.map(lambda cell: isinstance(cell, datetime.date | datetime.time | datetime.timedelta))
        faults += [
            f"{where} row {first_row + int(index)}: {name} is the date {present[index]}, must be "
            f"{'text' if kind == 'text' else 'a number'}: format the cell as {kind} and type it again"
            for index in present.index[dates.to_numpy(bool)]
        ]
    return shorten_faults(faults, where, "with dates")


def _formula_faults(
    path: Path,
    sheet: str,
    table: Table,
    frame: pd.DataFrame,
    names: Any,
    where: str,
    first_row: int,
) -> list[str]:
    """Return a fault for each formula or error without a value, in a row that is not empty."""
    if path.suffix.lower() not in (".xlsx", ".xlsm"):
        return []
    names_of_numbers = [names[ours] for ours in table.columns if ours in names]
    cells = _missing_cells(frame, names_of_numbers, first_row)
    if not cells or not _formats(path, sheet)["typed"]:
        return []
    base, columns = _columns_of(path, sheet)
    offset = 0 if columns is None else columns.start
    words = [str(number) for row, column, _ in cells for number in (row, column + offset)]
    asked: dict[tuple[int, int], str] = _last_workbook.ask(path, "cells", base, *words)
    typed = {(row, column - offset): text for (row, column), text in asked.items()}
    return [
        f"{where} row {row}: {name} is the formula {typed[row, column][:40]} without a value; calculate and "
        "save the workbook in a spreadsheet program"
        if typed[row, column].startswith("=")
        else f"{where} row {row}: {name} is {typed[row, column][:40]}, must have a value"
        for row, column, name in sorted(cells)
        if (row, column) in typed
    ]


def _missing_cells(frame: pd.DataFrame, names: Sequence[str], first_row: int) -> list[tuple[int, int, str]]:
    """Return row and column of the sheet, and name, of the first cells without a value in rows with one."""
    is_row = frame.notna().any(axis=1)
    return [
        (first_row + int(frame.index[row]), 1 + list(frame.columns).index(name), name)
        for name in names
        for row in np.flatnonzero((frame[name].isna() & is_row).to_numpy())[:SHOWN_ROWS]
    ]


def write_sheets(frames: dict[str, pd.DataFrame], path: Path) -> None:
    """Write tables as the sheets of an xlsx workbook."""
    with pd.ExcelWriter(path, engine="openpyxl") as writer:
        for name, frame in frames.items():
            frame.to_excel(writer, sheet_name=name[:31], index=False)
