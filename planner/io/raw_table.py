"""A table as a file has it, before its values are checked: the shared part of all readers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import pandas as pd

from planner.contract.columns import ColumnMatch, match_columns
from planner.contract.end_columns import is_node_word
from planner.contract.table import Table
from planner.contract.tables import abbreviate, shorten_faults
from planner.contract.units import plain
from planner.errors import InputError
from planner.io.layout import TableFile
from planner.io.number_texts import read_numbers
from planner.io.text_files import MAX_LINE_BYTES

MAX_COLUMNS: Final = 1_000
MAX_NAME_LETTERS: Final = 1 << 16
"""Letters of a column's name; each name is compared with all of ours."""
MAX_TITLE_ROWS: Final = 30
"""First rows of a file among which its header is searched."""


@dataclass(frozen=True, kw_only=True)
class RawTable:
    """A table with the columns of its file.

    match      our columns found among them
    first_row  number of the first row of data in faults
    traits     what is not plain of the file, in words, such as "separated by semicolons"
    notes      lines on what is read or left out, with the name of the file
    """

    frame: pd.DataFrame
    match: ColumnMatch
    first_row: int
    traits: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class FaultyCells(InputError):
    """Errors in cells of a file with complete columns; `raw` has the cells as they are."""

    def __init__(self, raw: RawTable, faults: Sequence[str]) -> None:
        self.raw = raw
        super().__init__(*faults)


def find_columns(table: Table, file: TableFile, names: Iterable[str], where: str) -> ColumnMatch:
    """Find the table's columns in a file; raise InputError where one is missing or ambiguous."""
    layout = file.layout
    match = match_columns(
        table,
        names,
        where=where,
        mapping=layout.columns,
        ignore=layout.ignore,
        mapping_key=layout.mapping_key,
        option=layout.option,
    )
    if match.faults:
        raise InputError(*match.faults)
    return match


def find_header(table: Table, file: TableFile, rows: Sequence[Sequence[str]]) -> int:
    """Return the index of the row that names the columns of a table: below titles, where there are some.

    It is the first row with all required columns; where none has them, the first of those with the most,
    and of these with the most cells.

    rows  texts of the first rows of a file
    """
    headers = _possible_headers(rows)
    best, largest = next(iter(headers), 0), (0, 0)
    for index, header in headers.items():
        match = match_columns(
            table,
            name_columns(header),
            where=file.name,
            mapping=file.layout.columns,
            ignore=file.layout.ignore,
        )
        if match.names and set(table.required_columns) <= set(match.names):
            return index
        size = len(match.names), sum(1 for text in header if text.strip())
        if match.names and size > largest:
            best, largest = index, size
    return best


def _possible_headers(rows: Sequence[Sequence[str]]) -> dict[int, list[str]]:
    """Return the rows that are not blank, by their indices, with texts and rows of limited length."""
    shortened = ([text[: MAX_NAME_LETTERS + 1] for text in row] for row in rows)
    headers = {index: without_blank_end(row)[:MAX_COLUMNS] for index, row in enumerate(shortened)}
    return {index: header for index, header in headers.items() if header}


def likely_headers(rows: Sequence[Sequence[str]]) -> list[int]:
    """Return the indices of rows that may name columns: the first one, and wider ones of texts below."""
    indices: list[int] = []
    widest = 0
    for index, row in enumerate(rows):
        texts = [text for text in row if text.strip()]
        if not texts or (indices and any(_is_number(text) for text in texts)):
            continue
        if len(texts) > widest:
            indices.append(index)
            widest = len(texts)
    return indices


def is_header(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether the first row has names of columns only, two at least, above rows with a number."""
    below = [[text for text in row if text] for row in rows[1:]]
    return (
        _are_names([text for text in rows[0] if text])
        and len(below) > 0
        and len(below[0]) > 1
        and any(_is_number(text) for row in below for text in row)
    )


def _are_names(texts: Sequence[str]) -> bool:
    """Return whether texts may name columns: two at least, all different, and no number."""
    is_distinct = len({plain(text) for text in texts}) == len(texts)
    return len(texts) > 1 and is_distinct and not any(_is_number(text) for text in texts)


def _is_number(text: str) -> bool:
    return text.strip()[:1].isdigit()


def without_blank_end(row: Sequence[str]) -> list[str]:
    """Return the texts of a row without blank ones at its end."""
    texts = list(row)
    while texts and not texts[-1].strip():
        texts.pop()
    return texts


def title_notes(rows: Iterable[Iterable[object]], where: str, start: int) -> list[str]:
    """Return a note where rows with text are above the header.

    start  index of the row of the header
    """
    if not any(str(cell).strip() for row in rows for cell in row):
        return []
    return [f"{where}: header in row {start + 1}; what is above it is left out"]


def place_notes(notes: Iterable[str], where: str) -> list[str]:
    """Return notes with the name of the file, behind the mark of an assumption or a warning."""
    placed = []
    for note in notes:
        mark = next((mark for mark in ("assumed: ", "warning: ") if note.startswith(mark)), "")
        placed.append(f"{mark}{where}: {note.removeprefix(mark)}")
    return placed


def number_columns(table: Table, match: ColumnMatch) -> list[str]:
    """Return the given names of the columns that hold numbers."""
    backward = [name for name, _ in match.backward.values()]
    return [name for ours, name in match.names.items() if not table.columns[ours].is_label] + backward


def with_numbers(
    table: Table, file: TableFile, raw: RawTable, *, point_is_decimal: bool, faults: Sequence[str] = ()
) -> RawTable:
    """Return the table with numbers in place of their texts; raise InputError with all faults.

    faults  those that are known already
    """
    frame, style, more = read_numbers(
        raw.frame,
        number_columns(table, raw.match),
        file.layout,
        where=raw.match.where,
        first_row=raw.first_row,
        point_is_decimal=point_is_decimal,
    )
    if faults or more:
        raise FaultyCells(raw, [*faults, *more])
    return replace(raw, frame=frame, traits=(*raw.traits, *style.notes()))


def names_in(where: str, records: Iterable[Any]) -> list[str]:
    """Return the names of the columns of records, in the order in which they occur.

    raises  InputError as soon as there are more than a table may have
    """
    names: dict[str, None] = {}
    for record in records:
        names |= dict.fromkeys(record)
        if len(names) > MAX_COLUMNS:
            raise InputError(f"{where}: has over {MAX_COLUMNS:,} columns, must have at most {MAX_COLUMNS:,}")
    require_short_names(where, list(names))
    return list(names)


def require_short_names(where: str, names: Sequence[str]) -> None:
    """Raise InputError where names of columns, one or all together, are too long to compare with ours."""
    for column, name in enumerate(names, start=1):
        if len(name) > MAX_NAME_LETTERS:
            raise InputError(
                f"{where}: the name of column {column} has {len(name):,} letters, must have at most "
                f"{MAX_NAME_LETTERS:,}"
            )
    letters = sum(map(len, names))
    if letters > MAX_LINE_BYTES:
        raise InputError(
            f"{where}: the names of its columns have {letters:,} letters, must have at most "
            f"{MAX_LINE_BYTES:,}"
        )


def require_header(where: str, header: Sequence[str]) -> None:
    """Raise InputError where a header is empty, too wide, has a long name, or names a column twice."""
    if not any(header):
        raise InputError(f"{where}: is empty, must begin with a line of column names")
    if len(header) > MAX_COLUMNS:
        raise InputError(f"{where}: has {len(header):,} columns, must have at most {MAX_COLUMNS:,}")
    require_short_names(where, header)
    twice = [name for name, count in Counter(header).items() if count > 1 and name.strip()]
    if twice:
        faults = [f"{where}: column '{abbreviate(name)}' occurs twice" for name in twice]
        raise InputError(*shorten_faults(faults, where, "of column names that occur twice"))


def name_columns(header: Sequence[str]) -> list[str]:
    """Return a unique name for each column; those without one are `column 5`."""
    return [name if name.strip() else f"column {index}" for index, name in enumerate(header, start=1)]


def tell_apart(header: Sequence[str], above: Sequence[str] = ()) -> list[str]:
    """Return a header in which names that occur twice have the name of their group before them.

    Groups are in the row above, each in the first of its columns, as `A end` above Site and Port. Without
    groups, the second of two names of nodes, such as Site, is `Site (2)`; others stay as they are.

    above  texts of the row above the header
    """
    counts = Counter(name.strip() for name in header if name.strip())
    if max(counts.values(), default=0) < 2:
        return list(header)
    groups = _groups_of_columns(above, len(header))
    if len(set(groups) - {""}) > 1:
        return [
            f"{group} {name}" if group and counts[name.strip()] > 1 else name
            for group, name in zip(groups, header, strict=True)
        ]
    return _number_second_node(header, counts)


def _groups_of_columns(above: Sequence[str], count: int) -> list[str]:
    """Return the group of each column: the last text of the row above up to it, "" before the first."""
    groups: list[str] = []
    for index in range(count):
        text = above[index].strip() if index < len(above) else ""
        groups.append(text or (groups[-1] if groups else ""))
    return groups


def _number_second_node(header: Sequence[str], counts: Mapping[str, int]) -> list[str]:
    """Return a header in which the second of two equal names of nodes has its number behind it."""
    seen: Counter[str] = Counter()
    names = []
    for name in header:
        seen[name.strip()] += 1
        is_second = counts[name.strip()] == 2 and seen[name.strip()] == 2 and is_node_word(name)
        names.append(f"{name.strip()} (2)" if is_second else name)
    return names


def shorten_error(error: BaseException) -> str:
    """Return a library's error as one short line."""
    text = " ".join(str(error).split()).removeprefix("Error tokenizing data. C error: ")
    return abbreviate(text) if len(text) > 160 else text
