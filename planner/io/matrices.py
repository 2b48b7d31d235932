"""Square tables with names: amounts from the name of each row to that of each column, as traffic matrices.

Such a table is read as rows of source, target and amount. Its first cell may name the unit of the amounts,
and which end the rows are, as in `from \\ to (Gbps)`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from fractions import Fraction
from typing import Final

import numpy as np
import pandas as pd

from planner.contract.cell_units import ABSENT, read_amounts
from planner.contract.columns import ColumnMatch
from planner.contract.end_columns import DEMAND_ENDS, OTHER_NAMES
from planner.contract.table import Table, label, number
from planner.contract.tables import shorten_faults
from planner.contract.units import Unit, find_units, split_unit, unit_of
from planner.errors import InputError, did_you_mean
from planner.formatting import counted
from planner.io.layout import TableFile
from planner.io.node_names import FOOTNOTE
from planner.io.open_columns import find_context_unit
from planner.io.raw_table import FaultyCells, RawTable, place_notes
from planner.io.sheet_rows import is_sum

Reader = Callable[[Table, TableFile], RawTable]
PAIR: Final = re.compile(r"\s[-–—]\s|[-=]>|→|↔")
"""Signs between the two ends of a link or demand in one cell."""
MIN_NAMES: Final = 2
"""Names that rows and columns of a matrix have in common at least."""
NO_AMOUNT: Final = frozenset({"-", "--", "–", "—"})
"""Texts in place of an amount that say that there is none."""
NO_ENTRY: Final = NO_AMOUNT | {"x", "\\", "/", "."}
"""Texts of entries likewise, as people write on the diagonal."""


def can_be_matrix(table: Table) -> bool:
    """Return whether the rows of a table are amounts, with a unit, from a source to a target."""
    required = table.required_columns
    return len(required) == 3 and tuple(required[:2]) in DEMAND_ENDS and unit_of(required[2])[1] is not None


@dataclass(frozen=True, kw_only=True)
class SquareTable:
    """A square table as a file has it: a column of names, then one for each name.

    faults  its cells that are no numbers
    """

    raw: RawTable
    names: Sequence[str]
    faults: Sequence[str] = ()


def read_square_table(file: TableFile, read: Reader, headers: Sequence[Sequence[str]]) -> SquareTable | None:
    """Return the square table of a file; None where it has none.

    read     the reader of the file's format
    headers  names of the columns, in each way in which the file may be read
    """
    for header in headers:
        names = [name for name in header if name not in file.layout.ignore]
        if len(names) <= MIN_NAMES:
            continue
        faults: Sequence[str] = ()
        try:
            raw = read(_declare(names), file)
        except FaultyCells as error:
            raw, faults = error.raw, error.faults
        except InputError:
            continue
        if _is_matrix(names, raw.frame[names[0]]):
            return SquareTable(raw=raw, names=names, faults=faults)
    return None


def _declare(names: Sequence[str]) -> Table:
    """Return the declaration of a square table: a column of names, then one of numbers for each name."""
    first, *others = names
    columns = {name: number(f"amounts to {name}", may_be_blank=True) for name in others}
    return Table(
        name="matrix", about="amounts between names", columns={first: label("name of the row"), **columns}
    )


def _is_matrix(names: Sequence[str], labels: pd.Series) -> bool:
    """Return whether rows have the names of columns, each once; either may lack some, and have sums.

    At least half of the names of the shorter side are also on the other one, or the first cell names both
    ends, such as `from \\ to`.
    """
    rows = [_plain(str(name)) for name in labels.dropna() if not is_sum(name)]
    columns = [_plain(name) for name in names[1:] if not is_sum(name)]
    shorter = min(len(rows), len(columns))
    if shorter < MIN_NAMES or len(set(rows)) != len(rows) or len(set(columns)) != len(columns):
        return False
    shared = len(set(rows) & set(columns))
    if any(PAIR.search(name) for name in rows):
        return False  # a table with both ends in one column
    return (shared >= MIN_NAMES and 2 * shared >= shorter) or _names_both_ends(names[0])


def _plain(name: str) -> str:
    """Return a name without case, outer spaces and the mark of a footnote."""
    return FOOTNOTE.sub("", " ".join(name.split())).casefold()


def list_pairs(table: Table, file: TableFile, square: SquareTable, titles: Sequence[str] = ()) -> RawTable:
    """Return the entries of a square table that are not 0 or blank as rows of a table.

    titles  texts above the matrix that may name the unit
    raises  InputError with the cells that are no numbers
    """
    if square.faults:
        raise InputError(*square.faults)
    raw, corner = square.raw, square.names[0]
    where, amount = raw.match.where, table.required_columns[2]
    cells, row_numbers, has_sums = _without_sums(raw.frame, square.names)
    unit, ours = find_entry_unit(table, file, corner, titles), unit_of(amount)[1]
    assert ours is not None
    cells, said = _read_entries(cells, amount, unit or ours)
    _check_entries(cells, where)
    values = cells.fillna(0.0).to_numpy(float)
    rows_are_sources, says_ends = read_ends(corner)
    said += _describe_missing(cells, rows_are_sources=rows_are_sources)
    if not rows_are_sources:
        cells, values = cells.T, values.T
    starts, ends = np.nonzero(values)
    source, target = table.required_columns[:2]
    factor = Fraction(1) if unit is None else unit.factor_to(ours)
    amounts = values[starts, ends] * float(factor.numerator) / float(factor.denominator)
    frame = pd.DataFrame({source: cells.index[starts], target: cells.columns[ends], amount: amounts})
    frame.index = pd.Index(row_numbers[starts if rows_are_sources else ends])  # rows of the file, for faults
    notes = [f"{where}: is a matrix, with {counted(len(frame), 'entries')} other than 0"]
    notes += place_notes(said, where)
    if has_sums:
        notes.append(f"{where}: rows and columns of sums left out")
    if not says_ends and not _is_symmetric(cells, values):
        notes.append(
            f"assumed: {where}: traffic is from the names of rows to the names of columns; "
            "otherwise write to\\from in the first cell"
        )
    has_units = any(note.startswith("read ") for note in said)
    notes += _note_unit(unit, ours, where, "" if has_units else _advise_unit(table, file))
    match = ColumnMatch(where=where, names={str(name): str(name) for name in frame.columns})
    return replace(raw, frame=frame, match=match, notes=(*raw.notes, *notes))


def _note_unit(unit: Unit | None, ours: Unit, where: str, advice: str) -> Iterator[str]:
    """Yield the note on the unit of a matrix: assumed where none is named, or converted.

    advice  how to name another unit; "" where the entries have their units
    """
    if unit is None and advice:
        yield (
            f"assumed: {where}: entries are in {ours.symbol}, as no unit is named; "
            f"write another one in the first cell, or {advice}"
        )
    if unit is not None and unit != ours:
        yield f"{where}: entries in {unit.symbol}, converted to {ours.symbol}"


def _without_sums(frame: pd.DataFrame, names: Sequence[str]) -> tuple[pd.DataFrame, np.ndarray, bool]:
    """Return the entries with one spelling of each name, their rows in the file, and whether there are sums.

    names  of the columns, of which the first has the names of rows
    """
    corner = names[0]
    sums = [name for name in names[1:] if is_sum(name)]
    is_sum_row = frame[corner].map(is_sum).to_numpy(bool)
    named = frame[corner].notna().to_numpy(bool)
    cells = frame.loc[named & ~is_sum_row].set_index(corner)[[name for name in names[1:] if name not in sums]]
    row_numbers = frame.index[named & ~is_sum_row].to_numpy(np.int64)
    cells.columns = cells.columns.astype(str).str.strip()
    spelling = {_plain(name): name for name in cells.columns}
    cells.index = pd.Index([spelling.get(_plain(str(name)), str(name).strip()) for name in cells.index])
    return cells, row_numbers, bool(is_sum_row.any()) or bool(sums)


def _read_entries(cells: pd.DataFrame, amount: str, unit: Unit) -> tuple[pd.DataFrame, list[str]]:
    """Return entries as numbers in a unit where their texts say them, blank where none is, and notes.

    `4G` and `500 Mbps` are amounts; `-` and `x` say that there is none; `n/a` is warned of.
    """
    if all(pd.api.types.is_numeric_dtype(cells[name]) for name in cells):
        return cells, []
    values = cells.to_numpy(object, copy=True)
    rows, columns, texts = _find_texts(values)
    ours = unit_of(amount)[1]
    assert ours is not None
    amounts, notes = read_amounts(amount, texts)
    notes = [note.replace("cells of", "entries of") for note in notes]
    factor = float(ours.factor_to(unit))
    unknown: list[str] = []
    for index, (row, column) in enumerate(zip(rows, columns, strict=True)):
        text = texts.iloc[index]
        is_diagonal = cells.index[row] == cells.columns[column]
        if not isinstance(amounts.iloc[index], str):
            values[row, column] = amounts.iloc[index] * factor
        elif text.lower() in NO_ENTRY or (is_diagonal and text.lower() in ABSENT):
            values[row, column] = np.nan
        elif text.lower() in ABSENT:
            values[row, column] = np.nan
            unknown.append(f"{cells.index[row]} to {cells.columns[column]}")
    if unknown:
        notes.append(
            f"warning: {counted(len(unknown), 'entries')} without a number, such as of {unknown[0]}, "
            "read as no traffic"
        )
    return pd.DataFrame(values, index=cells.index, columns=cells.columns), notes


def _find_texts(values: np.ndarray) -> tuple[list[int], list[int], pd.Series]:
    """Return row, column and text of each entry of a matrix that is a text."""
    rows, columns = np.nonzero([[isinstance(cell, str) for cell in row] for row in values])
    texts = [str(values[row, column]).strip() for row, column in zip(rows, columns, strict=True)]
    return rows.tolist(), columns.tolist(), pd.Series(texts, dtype=object)


def _check_entries(cells: pd.DataFrame, where: str) -> None:
    """Raise InputError for entries that are no numbers or below 0, by the names of their row and column."""
    numbers = cells.apply(pd.to_numeric, errors="coerce")
    faults = []
    for is_wrong, rule in (
        (numbers.isna() & cells.notna(), "a number without a unit"),
        (numbers < 0, "at least 0"),
        (np.isinf(numbers), "a finite number"),
    ):
        faults += [
            f"{where}: row {cells.index[row]}, column {cells.columns[column]} is "
            f"{cells.iloc[row, column]!s}, must be {rule}"
            for row, column in np.argwhere(is_wrong.to_numpy(bool)).tolist()
        ]
    if faults:
        raise InputError(*shorten_faults(faults, where, "with such entries"))


def _is_symmetric(cells: pd.DataFrame, values: np.ndarray) -> bool:
    return list(cells.index) == list(cells.columns) and bool(np.array_equal(values, values.T))


def _describe_missing(cells: pd.DataFrame, *, rows_are_sources: bool) -> list[str]:
    """Return notes on the names that are rows but no columns, or the reverse, and what is read of them."""
    from_rows, to_rows = ("to", "from") if rows_are_sources else ("from", "to")
    notes = []
    for names, others, kinds, word in (
        (cells.index, cells.columns, ("row", "column"), from_rows),
        (cells.columns, cells.index, ("column", "row"), to_rows),
    ):
        missing = [str(name) for name in names if name not in set(others)]
        if missing:
            unmatched = [str(name) for name in others if name not in set(names)]
            notes.append(_note_missing(missing, unmatched, kinds, word))
    return notes


def _note_missing(missing: Sequence[str], unmatched: Sequence[str], kinds: tuple[str, str], word: str) -> str:
    """Return the note on names of one kind that are missing in the other: a warning near another name.

    unmatched  names of the other kind that are missing in this one
    kinds      of the names, and of those among which they are missing
    word       "from" or "to", for the traffic that is missing
    """
    kind, other_kind = kinds
    near = next((name for name in missing if get_close_matches(name, unmatched, 1)), None)
    mark = "warning" if near else "assumed"
    first, hint = near or missing[0], did_you_mean(near, unmatched) if near else ""
    if len(missing) == 1:
        return f"{mark}: '{first}' is a {kind} but no {other_kind}, read as no traffic {word} it{hint}"
    return (
        f"{mark}: {counted(len(missing), 'names')}, such as '{first}', are {kind}s but no {other_kind}s, "
        f"read as no traffic {word} them{hint}"
    )


def read_ends(corner: str) -> tuple[bool, bool]:
    """Return whether rows are sources by the first cell, and whether it says so.

    The first word that names an end is about the rows: `from \\ to`, `Destination`.
    """
    sources = frozenset().union(*(first for first, _ in OTHER_NAMES))
    targets = frozenset().union(*(second for _, second in OTHER_NAMES))
    for word in _words_of(corner):
        if word in sources or word in targets:
            return word in sources, True
    return True, False


def _names_both_ends(corner: str) -> bool:
    """Return whether the first cell has the names of both ends, as they occur together: `from \\ to`."""
    words = set(_words_of(corner))
    return any(words & first and words & second for first, second in OTHER_NAMES)


def _words_of(corner: str) -> list[str]:
    return re.findall(r"[^\W\d_]+", corner.lower())


def _advise_unit(table: Table, file: TableFile) -> str:
    """Return the other places to state the unit of a matrix."""
    if file.layout.key is not None:
        return f'[{file.layout.key}] unit = "Gbit/s"'
    return f"call the file {table.name}_gbps{file.path.suffix}"


def find_entry_unit(table: Table, file: TableFile, corner: str, titles: Sequence[str] = ()) -> Unit | None:
    """Return the unit of a matrix: as its layout, first cell, sheet's or file's name says, else None.

    titles  texts above the matrix that may name it too
    """
    ours = unit_of(table.required_columns[2])[1]
    if file.layout.unit is not None:
        stated = _units_alike(find_units(file.layout.unit), ours)
        if len(stated) != 1:
            raise InputError(
                f"{file.name}: unit '{file.layout.unit}' is no unit of {table.required_columns[2]}"
            )
        return stated[0]
    for text in (corner, file.layout.sheet or "", file.path.name.split(".")[0]):
        for _, units in split_unit(text):
            fitting = _units_alike(units, ours)
            if len(fitting) == 1:
                return fitting[0]
    return None if ours is None else find_context_unit(titles, ours.dimension)


def _units_alike(units: Iterable[Unit], ours: Unit | None) -> list[Unit]:
    """Return the units of the dimension of ours."""
    return [unit for unit in units if ours is not None and unit.dimension == ours.dimension]
