"""Tables in files of any usual format: finding, reading with every fault, writing whole or not at all."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Final, Literal

import pandas as pd

from planner.contract.cell_units import has_units
from planner.contract.columns import ColumnMatch, find_bare_columns, match_columns, shorten_name
from planner.contract.date_and_hour import find_hours
from planner.contract.directed_columns import add_opposite_rows, ends_of, split_ends
from planner.contract.fault_rounds import find_faults_across
from planner.contract.notes import add_note
from planner.contract.plausibility import find_unusual
from planner.contract.readings import assume_absent, find_unclear_readings
from planner.contract.synonyms import names_called
from planner.contract.table import Table
from planner.contract.tables import FaultyRows, abbreviate, check_rows, convert_units
from planner.contract.units import Unit, find_units, name_in_unit, plain, unit_of
from planner.errors import InputError, did_you_mean
from planner.io import workbooks
from planner.io.arrow_files import arrow_columns, read_arrow
from planner.io.cell_words import read_words
from planner.io.content_kinds import describe_other_kind
from planner.io.csv_files import possible_columns, read_csv
from planner.io.file_replacement import replace_file
from planner.io.formulas import quote_formulas, unquote_formulas
from planner.io.joined_times import join_times
from planner.io.json_files import json_columns, read_json
from planner.io.layout import Layout, TableFile
from planner.io.matrices import SquareTable, can_be_matrix, list_pairs, read_square_table
from planner.io.node_names import nodes_of, note_alike_keys, unify_names
from planner.io.open_columns import (
    describe_guess,
    find_context_unit,
    find_row_units,
    guess_column,
    join_row_units,
)
from planner.io.raw_table import FaultyCells, RawTable, place_notes
from planner.io.repeated_rows import number_parts
from planner.io.service_status import drop_out_of_service
from planner.io.wide_tables import can_be_wide, read_wide

READERS: Final[Mapping[str, Callable[[Table, TableFile], RawTable]]] = {
    ".csv": read_csv,
    ".parquet": read_arrow,
    ".xlsx": workbooks.read_sheet,
    ".ods": workbooks.read_sheet,
    ".feather": read_arrow,
    ".json": read_json,
    ".jsonl": read_json,
    ".ndjson": read_json,
    ".csv.gz": read_csv,
    ".tsv": read_csv,
    ".txt": read_csv,
    ".xls": workbooks.read_sheet,
    ".xlsm": workbooks.read_sheet,
}
"""Reader of each format, by the ending of the file's name."""
SUFFIXES: Final = tuple(READERS)
SPREADSHEETS: Final = (".csv", ".csv.gz", ".tsv", ".txt", *workbooks.SUFFIXES)
"""Formats in which a text may be quoted, so that a spreadsheet program takes it for no formula."""


def read_tables(tables: Iterable[Table], files: Mapping[str, Path | TableFile]) -> dict[str, pd.DataFrame]:
    """Read and validate the tables of `files`, by table name; raise InputError with the faults of all."""
    tables = list(tables)
    read, _, faults = _take_all(tables, _readers(tables, files))
    if faults:
        raise InputError(*dict.fromkeys(faults))
    return read


def read_problem(
    tables: Sequence[Table],
    files: Mapping[str, Path | TableFile],
    build: Callable[[Mapping[str, pd.DataFrame]], Any],
    faults: Sequence[str] = (),
) -> dict[str, pd.DataFrame]:
    """Read the tables of a problem; raise InputError with the faults of all, and of the rules across them.

    build   makes a problem of tables, and raises InputError where they do not fit together
    faults  those that are known already, such as of missing files
    """
    unified = unify_names(tables, _take_problem(tables, _readers(tables, files), build, faults))
    note_alike_keys(tables, unified)
    return unified


def check_problem(
    tables: Sequence[Table],
    frames: Mapping[str, pd.DataFrame],
    build: Callable[[Mapping[str, pd.DataFrame]], Any],
    faults: Sequence[str] = (),
) -> dict[str, pd.DataFrame]:
    """Return checked cells of a problem's tables; raise InputError with every fault, as `read_problem` does.

    frames  under our names and in our units; rows are named by the table's name, and count from 1
    """
    checks = {
        table.name: partial(check_cells, table, frames[table.name], where=table.name, first_row=1)
        for table in tables
        if table.name in frames
    }
    return _take_problem(tables, checks, build, faults)


Take = Callable[[], pd.DataFrame]
"""A function that returns a valid table, or raises InputError."""


def _readers(tables: Iterable[Table], files: Mapping[str, Path | TableFile]) -> dict[str, Take]:
    return {
        table.name: partial(read_table, table, files[table.name]) for table in tables if table.name in files
    }


def _take_problem(
    tables: Sequence[Table],
    takes: Mapping[str, Take],
    build: Callable[[Mapping[str, pd.DataFrame]], Any],
    faults: Sequence[str],
) -> dict[str, pd.DataFrame]:
    """Return the valid tables of a problem; raise InputError with the faults of all, and across them."""
    read, faulty, more = _take_all(tables, takes)
    all_faults = [*faults, *more]
    if not all_faults:
        return read
    if not faults and len(read) + len(faulty) == len(takes):
        unified = unify_names(tables, read)
        all_faults += find_faults_across({table.name: table for table in tables}, unified, faulty, build)
    raise InputError(*dict.fromkeys(all_faults))


def _take_all(
    tables: Sequence[Table], takes: Mapping[str, Take]
) -> tuple[dict[str, pd.DataFrame], dict[str, pd.DataFrame], list[str]]:
    """Return the valid tables, those with faults in rows only, and all faults."""
    read: dict[str, pd.DataFrame] = {}
    faulty: dict[str, pd.DataFrame] = {}
    faults: list[str] = []
    pending = [(table, takes[table.name]) for table in tables if table.name in takes]
    while pending:
        table, take = pending.pop(0)
        try:
            read[table.name] = take()
        except UnclearEnds as error:  # again after the others, with their names
            names = nodes_of(tables, read)
            layout = replace(error.file.layout, names=names)
            pending.append((table, partial(read_table, table, replace(error.file, layout=layout))))
        except InputError as error:
            faults += error.faults
            if isinstance(error, FaultyRows):
                faulty[table.name] = error.frame
    workbooks.forget_workbooks()
    return read, faulty, faults


def read_table(table: Table, file: Path | TableFile) -> pd.DataFrame:
    """Read and validate the table in a file; raise InputError with every fault.

    Whatever is not plain of the file, such as other units in the names of its columns, is said by a note.
    """
    cells = read_cells(table, file)
    if cells.faults:
        raise InputError(*cells.faults)
    frame = check_cells(table, cells.frame, where=cells.where, first_row=cells.first_row)
    for note in (*cells.notes, *find_unusual(table, frame, cells.where)):
        add_note(note)
    return frame


@dataclass(frozen=True, kw_only=True)
class Cells:
    """The cells of a table in a file, under our names and in our units, not yet checked.

    frame      cells that are no numbers where numbers must be are texts
    where      name of the file, with the sheet, in faults
    first_row  number of the first row in faults
    notes      what is not plain of the file
    faults     of cells that no table can have, such as dates
    """

    frame: pd.DataFrame
    where: str
    first_row: int
    notes: tuple[str, ...]
    faults: tuple[str, ...] = ()


def read_cells(table: Table, file: Path | TableFile) -> Cells:
    """Read the table in a file without the check of its rows.

    raises  InputError where the file cannot be read, or its columns are not those of the table
    """
    if isinstance(file, Path):
        file = TableFile(path=file)
    suffix = suffix_of(file.path)
    if suffix is None:
        raise InputError(f"{file.path.name}: must end in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}")
    faults: tuple[str, ...] = ()
    try:
        raw = _read_raw(table, file, suffix)
    except FaultyCells as error:
        raw, faults = error.raw, error.faults
    raw, more = _join_hours(table, file, raw)
    faults = (*faults, *more)
    match = raw.match
    try:
        frame = raw.frame.dropna(how="all")
        if suffix in SPREADSHEETS:
            frame = unquote_formulas(frame)
        frame, left_out = drop_out_of_service(table, frame, match, raw.first_row, file.layout.ignore)
        converted, unsplit = _name_ends(table, convert_units(frame, match), match, file)
        frame, said = read_words(table, _add_opposites(table, converted, frame, match))
        frame, numbered = number_parts(table, frame, raw.first_row)
        said += [*numbered, *left_out]
    except UnicodeDecodeError:  # Parquet may hold any bytes as names
        raise InputError(f"{match.where}: has names that are not UTF-8 text") from None
    unclear = find_unclear_readings(
        table,
        frame,
        match.names,
        file.layout.columns,
        where=match.where,
        advise=partial(file.layout.advise_reading, table.name),
    )
    traits = (f"{match.where}: {', '.join(raw.traits)}",) if raw.traits else ()
    return Cells(
        frame=frame,
        where=match.where,
        first_row=raw.first_row,
        notes=(
            *traits,
            *raw.notes,
            *match.notes(),
            *place_notes(said, match.where),
            *assume_absent(table, match.names, match.where),
        ),
        faults=(*faults, *unclear, *unsplit),
    )


def find_joined_hours(table: Table, file: TableFile) -> str | None:
    """Return the column of hours that is read together with the dates of a file; None where it has none."""
    suffix = suffix_of(file.path)
    try:
        raw = None if suffix is None else _read_raw(table, file, suffix)
    except FaultyCells as error:
        raw = error.raw
    except InputError:
        return None
    if raw is None or (hours := _find_hours(table, raw.match)) is None:
        return None
    joined, faults = _join_hours(table, file, raw)
    return hours if joined is not raw or faults else None


def _find_hours(table: Table, match: ColumnMatch) -> str | None:
    """Return the column of hours beside the dates of a table; None where it has none."""
    dates = [name for ours, name in match.names.items() if table.columns[ours].kind == "window"]
    return find_hours(table, dates[0], match.ignored) if dates and match.form == "rows" else None


def _join_hours(table: Table, file: TableFile, raw: RawTable) -> tuple[RawTable, tuple[str, ...]]:
    """Return the table with the time of each row, where dates and hours are two columns, and the faults."""
    hours = _find_hours(table, raw.match)
    if hours is None or hours in file.layout.ignore:
        return raw, ()
    window, dates = next(
        (ours, name) for ours, name in raw.match.names.items() if table.columns[ours].kind == "window"
    )
    cells = _read_times(table, file, dates, hours)
    if cells is None or not raw.frame.index.isin(cells.index).all():
        return raw, ()
    cells = cells.loc[raw.frame.index]
    is_row = raw.frame[dates].notna() & cells[hours].notna()
    try:
        joined = join_times(
            raw.frame[dates][is_row], cells[hours][is_row], window=window, where=raw.match.where
        )
    except InputError as error:
        return raw, error.faults
    if joined is None:
        return raw, ()
    times, note = joined
    match = replace(raw.match, ignored=[name for name in raw.match.ignored if name != hours])
    frame = raw.frame.assign(**{dates: times.reindex(raw.frame.index)})
    return replace(raw, frame=frame, match=match, notes=(*raw.notes, note)), ()


def _read_times(table: Table, file: TableFile, dates: str, hours: str) -> pd.DataFrame | None:
    """Return the cells of a column of dates and one of hours; None where they cannot be read."""
    column = next(column for column in table.columns.values() if column.kind == "window")
    declared = Table(name=table.name, about="", columns={dates: column, hours: column})
    layout = replace(file.layout, columns={})
    try:
        return READERS[str(suffix_of(file.path))](declared, replace(file, layout=layout)).frame
    except FaultyCells as error:
        return error.raw.frame
    except InputError:
        return None


def _name_ends(
    table: Table, frame: pd.DataFrame, match: ColumnMatch, file: TableFile
) -> tuple[pd.DataFrame, list[str]]:
    """Return the cells with both ends of each row where one column names them, and faults of unclear cells.

    raises  UnclearEnds where names of nodes of other tables may tell more
    """
    ends = ends_of(table)
    if ends is None or match.names.get(ends[0]) != match.names.get(ends[1]) or ends[0] not in match.names:
        return frame, []
    splits = split_ends(frame[ends[0]].tolist(), file.layout.names or ())
    if splits.unclear and file.layout.names is None:
        raise UnclearEnds(table, file)
    name = shorten_name(match.names[ends[0]])
    faults = [
        f"{match.where} row {frame.index[row]}: {name} is '{abbreviate(frame[ends[0]].iloc[row])}', must "
        f"name both ends, such as London - Paris, with names that other tables have too; or add columns "
        f"{ends[0]} and {ends[1]}"
        for row in splits.unclear
    ]
    split = {ours: pd.Series(cells, index=frame.index, dtype=object)
             for ours, cells in zip(ends, (splits.first, splits.second), strict=True)}  # fmt: skip
    return frame.assign(**split), faults


class UnclearEnds(InputError):
    """Cells with the names of two ends that may be split in several ways: those of other tables may tell."""

    def __init__(self, table: Table, file: TableFile) -> None:
        self.table, self.file = table, file
        super().__init__(f"{file.name}: cells that name two ends can be split in several ways")


def _add_opposites(
    table: Table, converted: pd.DataFrame, raw: pd.DataFrame, match: ColumnMatch
) -> pd.DataFrame:
    """Return the rows of both directions where a second column has the amounts of the opposite one."""
    ends = ends_of(table)
    if ends is None or not match.backward:
        return converted
    names = {ours: name for ours, (name, _) in match.backward.items()}
    factors = {ours: factor for ours, (_, factor) in match.backward.items() if factor != 1}
    amounts = convert_units(raw, ColumnMatch(where=match.where, names=names, factors=factors))
    return add_opposite_rows(converted, ends, {ours: amounts[ours] for ours in names})


def _read_raw(table: Table, file: TableFile, suffix: str) -> RawTable:
    """Return the table in a file; one that lacks its columns may have units in cells, or be a matrix."""
    try:
        raw = READERS[suffix](table, file)
        if guess_column(table, raw.match):
            return resolve_open_columns(table, file) or raw
        return raw
    except FaultyCells:
        raise
    except InputError:
        if (other := describe_other_kind(file.path)) is not None:
            raise InputError(other) from None
        other_raw = resolve_open_columns(table, file) or find_matrix(table, file) or find_wide(table, file)
        if other_raw is None:
            raise
        return other_raw


def resolve_open_columns(table: Table, file: TableFile) -> RawTable | None:
    """Return the table in a file with columns that name no unit, or are found by their unit alone.

    Without a unit in its name, a column has one in each cell, as `10G`, or that of the layout, of a title,
    or of the name of the sheet or file. None where that is not so, or other columns are missing.

    raises  FaultyCells where numbers can be read in two ways
    """
    suffix = suffix_of(file.path)
    try:
        headers = list_headers(file) if suffix is not None else []
    except InputError:
        return None
    for names in headers:
        columns = file.layout.columns
        match = match_columns(table, names, where=file.name, mapping=columns, ignore=file.layout.ignore)
        missing = [ours for ours in table.columns if ours not in match.names]
        bare = find_bare_columns(table, missing, match.ignored)
        guess = {} if set(table.required_columns) & set(bare) else guess_column(table, match)
        if (not bare and not guess) or not set(table.required_columns) <= {*match.names, *bare, *guess}:
            continue
        raw = _try_columns(table, file, {**bare, **guess})
        if raw is None:
            continue
        row_units = find_row_units(bare, match.ignored, raw.frame)
        open_columns = {
            ours: name
            for ours, name in bare.items()
            if ours not in row_units and not has_units(ours, raw.frame[name])
        }
        units, notes = _find_units_of(file, open_columns)
        mapping = {name_in_unit(ours, unit): open_columns[ours] for ours, unit in units.items()}
        if len(mapping) < len(open_columns):
            continue
        in_cells = {ours: name for ours, name in bare.items() if ours not in open_columns}
        layout = replace(file.layout, columns={**columns, **in_cells, **guess, **mapping})
        raw = READERS[str(suffix)](table, replace(file, layout=layout))
        stated = {ours: unit.symbol for ours, unit in units.items()}
        match = replace(
            raw.match,
            guessed=tuple(guess.values()),
            stated=stated,
            row_units=row_units,
            ignored=[name for name in raw.match.ignored if name not in row_units.values()],
        )
        notes += place_notes(describe_guess(guess), raw.match.where)
        frame = join_row_units(raw.frame, {bare[ours]: column for ours, column in row_units.items()})
        return replace(raw, frame=frame, match=match, notes=(*raw.notes, *notes))
    return None


def _try_columns(table: Table, file: TableFile, columns: Mapping[str, str]) -> RawTable | None:
    """Return the table with further columns mapped; None where it cannot be read."""
    layout = replace(file.layout, columns={**file.layout.columns, **columns})
    try:
        return READERS[str(suffix_of(file.path))](table, replace(file, layout=layout))
    except FaultyCells as error:
        return error.raw
    except InputError:
        return None


def _find_units_of(file: TableFile, columns: Mapping[str, str]) -> tuple[dict[str, Unit], list[str]]:
    """Return the units that the layout or a title says of columns without one, by our name, and notes."""
    units: dict[str, Unit] = {}
    notes: list[str] = []
    for ours, name in columns.items():
        unit = unit_of(ours)[1]
        assert unit is not None
        stated = [other for other in find_units(file.layout.unit or "") if other.dimension == unit.dimension]
        context = stated[0] if len(stated) == 1 else find_context_unit(title_texts(file), unit.dimension)
        if context is None:
            continue
        units[ours] = context
        if not stated:
            notes.append(
                f"assumed: {file.name}: column '{shorten_name(name)}' is in {context.symbol}, as the title "
                "or the name of the sheet or file says"
            )
    return units, notes


def title_texts(file: TableFile) -> list[str]:
    """Return the names of a sheet and its file, and the texts that stand alone in its first rows."""
    texts = [file.layout.sheet or "", file.path.name.split(".")[0]]
    if suffix_of(file.path) in workbooks.SUFFIXES:
        names = workbooks.sheet_names_of(file.path)
        sheet = file.layout.sheet or (names[0] if len(names) == 1 else "")
        return [*texts, *(workbooks.title_texts(file.path, sheet) if sheet else ())]
    return texts


def find_matrix(table: Table, file: TableFile) -> RawTable | None:
    """Return the pairs of a matrix in a file; None where it has none, or cannot be read.

    raises  InputError with the cells of the matrix that are no numbers, or below 0
    """
    if not can_be_matrix(table) or file.layout.columns:
        return None
    square = find_square_table(file)
    return None if square is None else list_pairs(table, file, square, title_texts(file))


def find_wide(table: Table, file: TableFile) -> RawTable | None:
    """Return the rows of a time series in a file that has a column for each name; None where it is none."""
    suffix = suffix_of(file.path)
    try:
        headers = list_headers(file) if suffix is not None and can_be_wide(table) else []
    except InputError:
        return None
    for names in headers:
        match = match_columns(
            table, names, where=file.name, mapping=file.layout.columns, ignore=file.layout.ignore
        )
        if raw := read_wide(table, file, READERS[str(suffix)], match, title_texts(file)):
            return raw
    return None


def find_square_table(file: TableFile) -> SquareTable | None:
    """Return the square table of a file, with or without faults; None where it has none or is unreadable."""
    suffix = suffix_of(file.path)
    if suffix is None:
        return None
    try:
        headers = list_headers(file)
    except InputError:
        return None
    return read_square_table(file, READERS[suffix], headers)


def list_headers(file: TableFile) -> list[list[str]]:
    """Return the names of the columns of a file with one table, in each way in which it may be read.

    raises  InputError where the columns cannot be read
    """
    match suffix_of(file.path):
        case suffix if suffix in workbooks.SUFFIXES:
            names = workbooks.sheet_names_of(file.path)
            sheet = file.layout.sheet or (names[0] if len(names) == 1 else "")
            return workbooks.sheet_columns(file.path, sheet, file.layout.header)
        case ".json" | ".jsonl" | ".ndjson":
            return list(json_columns(file).values())
        case ".parquet" | ".feather":
            return [arrow_columns(file.path)]
        case _:
            return possible_columns(file)


def check_cells(table: Table, frame: pd.DataFrame, *, where: str, first_row: int) -> pd.DataFrame:
    """Return cells in the types of the table's columns, with defaults; raise InputError with every fault."""
    try:
        frame = check_rows(table, frame, where=where, first_row=first_row)
    except UnicodeDecodeError:
        raise InputError(f"{where}: has names that are not UTF-8 text") from None
    frame.attrs |= {"where": where, "first_row": first_row}
    return frame


def suffix_of(path: Path) -> str | None:
    """Return the ending of a file's name that tells its format; None where it tells none."""
    name = path.name.lower()
    return max((suffix for suffix in SUFFIXES if name.endswith(suffix)), key=len, default=None)


def find_tables(
    tables: Iterable[Table],
    folder: Path,
    optional: Sequence[str] = (),
    layouts: Mapping[str, Layout] | None = None,
) -> dict[str, TableFile]:
    """Return the file of each table in a folder, or its sheet in a workbook, by table name."""
    files, faults = locate_tables(tables, folder, optional, layouts or {})
    if faults:
        raise InputError(*faults)
    return files


def locate_tables(
    tables: Iterable[Table], folder: Path, optional: Sequence[str], layouts: Mapping[str, Layout]
) -> tuple[dict[str, TableFile], list[str]]:
    """Return the file of each table that is there, and a fault for each that is missing or there twice.

    An optional table that is there under another name only must have its columns too.
    """
    tables = list(tables)
    if folder.is_file() and suffix_of(folder) in workbooks.SUFFIXES:
        return _find_sheets(tables, folder, optional, layouts)
    if not folder.is_dir():
        raise InputError(
            f"{folder}: "
            + ("is a file, must be a folder or a workbook" if folder.exists() else "no such folder")
        )
    present = _named_files(folder)
    files: dict[str, TableFile] = {}
    faults: list[str] = []
    for table in tables:
        layout = layouts.get(table.name, Layout())
        stems = names_called(table, tables, present)
        candidates = [TableFile(path=path, layout=layout) for stem in stems for path in present[stem]]
        candidates = _without_others(table, candidates, stems, table.name in optional)
        if len(candidates) > 1:
            faults.append(_several_fault(f"{folder}", table, [file.path.name for file in candidates], layout))
        elif candidates:
            files[table.name] = candidates[0]
            _note_other_name(table, candidates[0].path.name, stems)
        elif table.name not in optional:
            faults.append(_missing_fault(folder, table, chain.from_iterable(present.values())))
    return files, faults


def _missing_fault(folder: Path, table: Table, present: Iterable[Path]) -> str:
    """Return the fault of a table that is not in a folder, with the file that may be meant."""
    near = did_you_mean(table.name, [path.name for path in present])
    hint = near if "did you mean" in near else ""
    return f"{folder}: has no {table.name}.csv (nor {', '.join(SUFFIXES[1:6])}){hint}"


def _without_others(
    table: Table, files: list[TableFile], names: Sequence[str], is_optional: bool
) -> list[TableFile]:
    """Return the files without those that lack the columns of an optional table of another name."""
    if not is_optional or _has_own_name(table, names):
        return files
    return [file for file in files if _has_columns(table, file)]


def _has_own_name(table: Table, names: Sequence[str]) -> bool:
    """Return whether a name of files or sheets is the table's own, and not another one for it."""
    return any(plain(name) == plain(table.name) for name in names)


def _has_columns(table: Table, file: TableFile) -> bool:
    """Return whether a file has the required columns of a table."""
    try:
        headers = list_headers(file)
    except InputError:
        return False
    mapping = file.layout.columns
    matches = [match_columns(table, names, where=file.name, mapping=mapping) for names in headers]
    return any(set(table.required_columns) <= set(match.names) for match in matches)


def _several_fault(where: str, table: Table, shown: Sequence[str], layout: Layout) -> str:
    """Return the fault of files or sheets that may both be a table."""
    advice = "keep one"
    if layout.key is not None:
        setting = 'sheet = "NAME"' if shown[0].startswith("sheet ") else 'file = "PATH"'
        advice += f", or write [{layout.key}] {setting}"
    return f"{where}: has both {shown[0]} and {shown[1]} for table {table.name}; {advice}"


def _note_other_name(table: Table, shown: str, names: Sequence[str]) -> None:
    """Report the file or sheet of a table that has another name."""
    if not _has_own_name(table, names):
        add_note(f"read {shown} as table {table.name}")


def note_other_files(folder: Path, used: Iterable[Path]) -> None:
    """Report the files of a folder that are tables, by their endings, but none of the problem."""
    if not folder.is_dir():
        return
    used_paths = {path.resolve() for path in used}
    present = [path for paths in _named_files(folder).values() for path in paths]
    _note_names(
        f"{folder.resolve().name}: no tables of the problem:",
        [p.name for p in present if p.resolve() not in used_paths],
    )


def _note_names(start: str, names: Sequence[str]) -> None:
    """Add a note that lists names, where there are some."""
    if names:
        shown = ", ".join(f"'{name}'" for name in names[:5]) + (" and more" if len(names) > 5 else "")
        add_note(f"{start} {shown}")


def table_files(tables: Iterable[Table], folder: Path) -> list[Path]:
    """Return the files in a folder that have the name of one of the tables, in any format."""
    present = _named_files(folder)
    tables = list(tables)
    return [
        path for table in tables for stem in names_called(table, tables, present) for path in present[stem]
    ]


def _named_files(folder: Path) -> dict[str, list[Path]]:
    """Return the files in a folder by their names without ending."""
    present: dict[str, list[Path]] = {}
    for path in sorted(folder.iterdir()):
        if suffix := suffix_of(path):
            present.setdefault(path.name[: -len(suffix)], []).append(path)
    return present


def _find_sheets(
    tables: Iterable[Table], book: Path, optional: Sequence[str], layouts: Mapping[str, Layout]
) -> tuple[dict[str, TableFile], list[str]]:
    """Return the sheet of each table in a workbook, by table name, and the faults."""
    tables = list(tables)
    sheets = workbooks.sheet_names(book)
    files: dict[str, TableFile] = {}
    faults: list[str] = []
    for table in tables:
        layout = layouts.get(table.name, Layout())
        sheet_name = layout.sheet or table.name
        names = [sheet for sheet in sheets if plain(sheet) == plain(sheet_name)]
        if sheet_name in names:
            names = [sheet_name]
        if not names and layout.sheet and workbooks.BLOCK.fullmatch(layout.sheet):
            names = [layout.sheet]
        if not names and not layout.sheet:
            names = names_called(table, tables, sheets)
        if table.name in optional and not layout.sheet:
            names = [name for name in names if workbooks.has_rows(book, name)]
        candidates = [TableFile(path=book, layout=replace(layout, sheet=name)) for name in names]
        candidates = _without_others(table, candidates, names, table.name in optional)
        if len(candidates) > 1:
            shown = [f"sheet '{file.layout.sheet}'" for file in candidates]
            faults.append(_several_fault(book.name, table, shown, layout))
        elif candidates:
            files[table.name] = candidates[0]
            _note_other_name(
                table, f"{book.name} sheet {candidates[0].layout.sheet}", [sheet_name, *names][-1:]
            )
        elif layout.sheet or table.name not in optional:
            faults.append(f"{book.name}: has no sheet '{sheet_name}'" + did_you_mean(sheet_name, sheets))
    used = {file.layout.sheet for file in files.values()}
    _note_names(f"{book.name}: ignored sheets", [sheet for sheet in sheets if sheet not in used])
    return files, faults


def write_table(frame: pd.DataFrame, path: Path, *, suffix: str | None = None) -> None:
    """Write a table as Parquet, Feather, xlsx, JSON or compressed CSV by the suffix, else as CSV.

    The file is written completely or not at all.

    suffix  default: that of the path
    raises  OSError
    """
    with replace_file(path) as partial:
        match suffix or suffix_of(path):
            case ".parquet":
                frame.to_parquet(partial, index=False)
            case ".feather":
                frame.to_feather(partial)
            case ".json":
                partial.write_text(_list_records(frame) + "\n", encoding="utf-8")
            case ".xlsx":
                workbooks.write_sheets({path.stem: quote_formulas(frame)}, partial)
            case ".csv.gz":
                _write_csv(quote_formulas(frame), partial, "gzip")
            case _:
                _write_csv(quote_formulas(frame), partial)


def _write_csv(frame: pd.DataFrame, path: Path, compression: Literal["gzip"] | None = None) -> None:
    """Write a CSV file; texts are in quotes where one of them has a carriage return, which may end a line."""
    texts = [frame[name] for name in frame if not pd.api.types.is_numeric_dtype(frame[name])]
    has_return = any("\r" in text for column in texts for text in column.unique() if isinstance(text, str))
    quoting: Any = csv.QUOTE_NONNUMERIC if has_return else csv.QUOTE_MINIMAL
    frame.to_csv(path, index=False, quoting=quoting, compression=compression)


def _list_records(frame: pd.DataFrame) -> str:
    """Return the rows as a JSON list of objects; numbers with all digits, null for missing values."""
    finite = frame.replace([float("inf"), float("-inf")], float("nan")).astype(object)
    rows = finite.where(finite.notna(), None).to_dict("records")
    return json.dumps(rows, indent=1, ensure_ascii=False, default=str)


def write_workbook(frames: Mapping[str, pd.DataFrame], path: Path) -> None:
    """Write tables as the sheets of one xlsx workbook, completely or not at all; raise OSError."""
    with replace_file(path) as partial:
        workbooks.write_sheets({name: quote_formulas(frame) for name, frame in frames.items()}, partial)


def export_table(frame: pd.DataFrame, path: Path, suffix: str) -> None:
    """Write a frame of any columns to a user's path; raise InputError where it cannot be written."""
    if path.is_dir():
        raise InputError(f"{path}: is a folder, must be a file")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_table(_with_text_columns(frame), path, suffix=suffix)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror or error})") from None


def _with_text_columns(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame with columns of both numbers and text, as of a parameter `integer | any`, as text."""
    mixed = [
        str(name)
        for name in frame
        if frame[name].dtype == object and len({isinstance(value, str) for value in frame[name].dropna()}) > 1
    ]
    text = {name: frame[name].map(lambda value: None if value is None else str(value)) for name in mixed}
    return frame.assign(**text) if text else frame
