"""Recognition of tables by their content: which system and which table each file or sheet is.

A sheet is a table whose columns it has, found as when it is read: by name without case and punctuation, and
by unit. Of tables that it has all columns of, it is the one that ignores the fewest of its columns. Where
that leaves several, the name of the file or sheet decides; where it does not tell either, the user is asked.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

from planner.contract.columns import ColumnMatch, find_bare_columns, match_columns, resolve_column
from planner.contract.synonyms import is_mentioned, names_called
from planner.contract.units import plain
from planner.errors import InputError
from planner.io import workbooks
from planner.io.arrow_files import arrow_columns
from planner.io.content_kinds import describe_other_kind
from planner.io.csv_files import possible_columns
from planner.io.json_files import json_columns
from planner.io.layout import Layout, TableFile
from planner.io.matrices import can_be_matrix
from planner.io.open_columns import guess_column
from planner.io.raw_table import FaultyCells
from planner.io.table_files import SUFFIXES, find_square_table, find_wide, resolve_open_columns, suffix_of
from planner.io.wide_tables import can_be_wide

if TYPE_CHECKING:
    from planner.contract.system import System
    from planner.contract.table import Table

LEAST_SHARE: Final = 0.5
"""Share of a table's required columns that a sheet has at least to be taken for it, with faults."""

LEAST_FOUND: Final = 0.75
"""Share of the sheets' columns that a system has at least to be chosen while tables of it are missing.

Names such as `from` and `to` alone, beside a column that the system does not have, say too little.
"""


MIN_COLUMNS: Final = 3
"""Columns of a matrix at least: that of the names of its rows, and two of amounts."""

DESCRIPTION_HEADER: Final = (
    *("Table", "Column", "Needed", "Unit", "Meaning", "Limits", "If empty", "Example", "Also understood"),
)
"""Header of the sheet in which the workbook of a system describes its columns, which is no table."""


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """A file, or a sheet of a workbook, with the names of its columns.

    sheet    name of the sheet, or of the table within a JSON file; "" where the file has one table only
    header   number of the row of the header, where a sheet has several tables
    title    what stands above that table
    columns  names of the columns, in each way in which a CSV file may be separated
    fault    why the columns cannot be read
    is_empty whether the sheet has a header only, as of a template that is not filled in
    is_hidden whether a workbook does not show it
    """

    path: Path
    sheet: str = ""
    header: int | None = None
    title: str = ""
    columns: tuple[tuple[str, ...], ...] = ()
    fault: str = ""
    is_empty: bool = False
    is_hidden: bool = False

    @property
    def name(self) -> str:
        """The name to show: `net.xlsx, sheet Links`."""
        name = f"{self.path.name}, sheet {self.sheet}" if self.sheet else self.path.name
        return f"{name}, row {self.header}" if self.header else name

    @property
    def stem(self) -> str:
        """The name of the table that the file or sheet may have, without ending."""
        suffix = suffix_of(self.path) or self.path.suffix
        return self.title or self.sheet or self.path.name[: len(self.path.name) - len(suffix)]

    def is_named(self, table: Table, others: Iterable[Table]) -> bool:
        """Return whether the file or sheet has a table's name, or another name that is no other table's."""
        return bool(names_called(table, others, [self.stem]))

    def mentions(self, table: Table, others: Iterable[Table]) -> bool:
        """Return whether the name of the file or sheet has that of a table in it, and no other's."""
        return self.is_named(table, others) or is_mentioned(table, others, self.stem)

    @property
    def widest(self) -> tuple[str, ...]:
        """The names of the columns in the way of separating them that shows the most."""
        return max(self.columns, key=len, default=())

    @property
    def is_in_workbook(self) -> bool:
        return suffix_of(self.path) in workbooks.SUFFIXES

    @cached_property
    def is_square(self) -> bool:
        """Whether the sheet is a square table of amounts, with or without faults."""
        return len(self.widest) >= MIN_COLUMNS and find_square_table(self.file()) is not None

    def file(self, layout: Layout | None = None) -> TableFile:
        """Return the file with its sheet, for reading."""
        layout = layout or Layout()
        if self.is_in_workbook:
            layout = replace(layout, sheet=self.sheet, header=self.header or layout.header)
        return TableFile(path=self.path, layout=layout)


@dataclass(frozen=True, kw_only=True)
class Choice:
    """The table of a system that a sheet is, as far as its content tells.

    table    name of the table; None: none fits, or several do
    fitting  names of all tables that fit equally well
    match    columns found for `table`; its faults say what is missing, ambiguous or misspelled
    lacks    whether the sheet lacks columns of each of these tables
    """

    table: str | None
    fitting: tuple[str, ...] = ()
    match: ColumnMatch | None = None
    lacks: bool = False

    @property
    def is_complete(self) -> bool:
        """Return whether the table is chosen and the sheet has all its required columns."""
        return self.table is not None and not self.lacks


@dataclass(frozen=True, kw_only=True)
class Reading:
    """Sheets as the tables of one system.

    choices  a choice for each sheet, in their order
    missing  names of required tables that no sheet is
    """

    system: str
    choices: tuple[Choice, ...]
    missing: tuple[str, ...]

    @property
    def rank(self) -> tuple[int, int, int]:
        """Numbers of unexplained sheets, then of tables, then of columns."""
        unknown = sum(
            2 - choice.lacks if choice.lacks or not choice.fitting else 0 for choice in self.choices
        )
        ignored = sum(choice.match.unexplained for choice in self.choices if choice.match)
        return unknown, len(self.missing), ignored

    @property
    def found(self) -> int:
        """Number of columns of the sheets that are columns of the chosen tables."""
        return sum(len(choice.match.names) for choice in self.choices if choice.match)


@dataclass(frozen=True, kw_only=True)
class Recognition:
    """Readings of sheets: the best one of each system, best first.

    system  the system that the sheets are of; None where several fit, or none
    """

    system: str | None
    readings: tuple[Reading, ...]

    def reading(self, system: str) -> Reading | None:
        """Return the reading of a system; None where no sheet fits any of its tables."""
        return next((reading for reading in self.readings if reading.system == system), None)


def list_sheets(path: Path) -> list[Sheet]:
    """Return the sheets of a file with the names of their columns; those that are empty are left out."""
    try:
        match suffix_of(path):
            case None:
                raise InputError(f"{path.name}: must end in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}")
            case suffix if suffix in workbooks.SUFFIXES:
                return _list_workbook(path)
            case ".json" | ".jsonl" | ".ndjson":
                parts = json_columns(TableFile(path=path))
                return [
                    Sheet(path=path, sheet=name, columns=(tuple(columns),)) for name, columns in parts.items()
                ]
            case ".parquet" | ".feather":
                return [Sheet(path=path, columns=(tuple(arrow_columns(path)),))]
            case _:
                columns_of = possible_columns(TableFile(path=path))
                return [Sheet(path=path, columns=tuple(map(tuple, columns_of)))]
    except InputError as error:
        return [Sheet(path=path, fault=describe_other_kind(path) or error.faults[0])]


def _list_workbook(path: Path) -> list[Sheet]:
    sheets = []
    names = workbooks.sheet_names_of(path)
    parts: list[tuple[str, str]] = []
    for name in names:
        parts += workbooks.find_blocks(path, name) or [(name, "")]
    for name, block_title in parts:
        if sections := workbooks.find_sections(path, name):
            for header, title in sections:
                columns = workbooks.sheet_columns(path, name, header)
                sheets.append(
                    Sheet(
                        path=path,
                        sheet=name,
                        header=header,
                        title=title or block_title,
                        is_hidden=workbooks.is_hidden(path, name),
                        columns=tuple(map(tuple, columns)),
                    )
                )
            continue
        try:
            columns = workbooks.sheet_columns(path, name)
        except InputError as error:
            if "is no readable workbook" in error.faults[0] or len(parts) == 1:
                raise
            continue  # an empty sheet, or one of notes
        if any(tuple(names[: len(DESCRIPTION_HEADER)]) == DESCRIPTION_HEADER for names in columns):
            continue  # it describes columns
        is_empty = not workbooks.has_rows(path, name)
        sheets.append(
            Sheet(
                path=path,
                sheet=name,
                title=block_title or ("" if name in names else name.rpartition("!")[0]),
                columns=tuple(map(tuple, columns)),
                is_empty=is_empty,
                is_hidden=workbooks.is_hidden(path, name),
            )
        )
    workbooks.forget_workbooks()
    return sheets


Mappings = Mapping[str, Mapping[str, str]]
"""Names of columns in a file by our names, by table, as a user maps them."""


def recognize(
    sheets: Sequence[Sheet], systems: Iterable[System], mappings: Mappings | None = None
) -> Recognition:
    """Return the system and the tables of sheets."""
    readings = [reading for system in systems if (reading := read_as(sheets, system, mappings)).choices]
    readings = [item for item in readings if any(choice.table or choice.fitting for choice in item.choices)]
    readings.sort(key=lambda item: item.rank)
    return Recognition(system=_choose_system(readings), readings=tuple(readings))


def _choose_system(readings: Sequence[Reading]) -> str | None:
    """Return the system that explains the sheets best; None where another explains them as well."""
    if not readings:
        return None
    best, *others = readings
    unknown, missing, ignored = best.rank
    if missing > 0 and best.found < LEAST_FOUND * (best.found + ignored):
        return None
    for other in others:
        # where tables are missing, their number tells nothing: the user may add them
        is_as_good = other.rank[0] == unknown and (missing > 0 or len(other.missing) == 0)
        if is_as_good and other.rank[2] <= ignored:
            return None
    return best.system


def read_as(
    sheets: Sequence[Sheet],
    system: System,
    mappings: Mappings | None = None,
    *,
    provided: Collection[str] = (),
) -> Reading:
    """Return sheets as tables of a system; no table is chosen twice.

    provided  names of tables that are there already
    """
    tables = [table for table in system.problem.tables if table.name not in provided]
    choices = [choose_table(sheet, tables, mappings) for sheet in sheets]
    choices = [_without_rivals(index, choices, sheets, tables) for index in range(len(choices))]
    tables_found = {choice.table for choice in choices}
    missing = [
        table.name
        for table in tables
        if table.name not in tables_found and table.name not in system.problem.optional_tables
    ]
    return Reading(system=system.name, choices=tuple(choices), missing=tuple(missing))


def _without_rivals(
    index: int, choices: Sequence[Choice], sheets: Sequence[Sheet], tables: Sequence[Table]
) -> Choice:
    """Return a choice, or a question where another sheet is the same table and fits as well or better."""
    choice = choices[index]
    if choice.table is None:
        return choice
    others = [
        position
        for position, other in enumerate(choices)
        if position != index and other.table == choice.table
    ]
    visible = [position for position in others if not sheets[position].is_hidden]
    if sheets[index].is_hidden and _any_complete(choices, visible):
        return Choice(table=None)  # such as the table of last year
    if choice.is_complete and not sheets[index].is_hidden:
        others = visible
    if not others or (choice.is_complete and not _any_complete(choices, others)):
        return choice
    if not choice.is_complete and _any_complete(choices, others):
        return Choice(table=None)  # such as a sheet of notes beside the table
    table = next(item for item in tables if item.name == choice.table)
    mentions = [sheets[position].mentions(table, tables) for position in (index, *others)]
    if choice.is_complete and mentions[0] and sum(mentions) == 1:
        return choice
    fitting = tuple(dict.fromkeys([*choice.fitting, choice.table]))
    return Choice(table=None, fitting=fitting, lacks=choice.lacks)


def _any_complete(choices: Sequence[Choice], positions: Iterable[int]) -> bool:
    """Return whether one of some sheets has all required columns of its table."""
    return any(choices[position].is_complete for position in positions)


def choose_table(sheet: Sheet, tables: Sequence[Table], mappings: Mappings | None = None) -> Choice:
    """Return the table that a sheet is by its columns, then by its name; none where that leaves several."""
    if not sheet.columns:
        return Choice(table=None)
    matches = {table.name: match_sheet(sheet, table, (mappings or {}).get(table.name)) for table in tables}
    named = next((table.name for table in tables if sheet.is_named(table, tables)), None)
    mentioned = named or next((table.name for table in tables if sheet.mentions(table, tables)), None)
    complete = _complete_matches(matches, tables, named)
    if not complete:
        return _choose_incomplete(matches, {table.name: table for table in tables}, mentioned)
    return _choose_complete(complete, named, mentioned)


def _complete_matches(
    matches: Mapping[str, ColumnMatch], tables: Sequence[Table], named: str | None
) -> dict[str, ColumnMatch]:
    """Return the matches with all required columns that say enough, or are of the sheet's namesake."""
    complete = {}
    for table in tables:
        match = matches[table.name]
        has_required = bool(match.names) and set(table.required_columns) <= set(match.names)
        if has_required and (table.name == named or not _says_little(table, match)):
            complete[table.name] = match
    return complete


def _choose_complete(complete: Mapping[str, ColumnMatch], named: str | None, mentioned: str | None) -> Choice:
    """Return the table, of complete ones, that explains most columns; of several the mentioned one.

    named, mentioned  the table whose name the sheet's name is, and has in it
    """
    fewest = min(match.unexplained for match in complete.values())
    fitting = tuple(name for name, match in complete.items() if match.unexplained == fewest)
    by_name = complete.get(named or "")
    if named and by_name is not None and not by_name.guessed and named not in fitting:
        return Choice(table=None, fitting=(named, *fitting))  # the name and the columns contradict each other
    selected = mentioned if mentioned in fitting else fitting[0] if len(fitting) == 1 else None
    return Choice(table=selected, fitting=fitting, match=complete[selected] if selected else None)


def _says_little(table: Table, match: ColumnMatch) -> bool:
    """Return whether a table requires one column only, and a sheet has it under another name than ours."""
    required = table.required_columns
    return len(required) == 1 and plain(match.names.get(required[0], "")) != plain(required[0])


def match_sheet(
    sheet: Sheet,
    table: Table,
    mapping: Mapping[str, str] | None = None,
    *,
    unit: str | None = None,
    option: str | None = None,
) -> ColumnMatch:
    """Return the columns of a table found in a sheet, by the delimiter that shows the most of them.

    A matrix has all columns of a table of amounts from a source to a target.

    unit    of columns that name none
    option  of a command that maps columns, for the advice of faults
    """
    mapping = {ours: name for ours, name in (mapping or {}).items() if resolve_column(table, ours)}
    matches = [
        match_columns(table, names, where=sheet.name, mapping=mapping, option=option)
        for names in sheet.columns
    ]
    best = max(matches, key=lambda match: len(match.names) + len(guess_column(table, match)))
    is_complete = set(table.required_columns) <= set(best.names)
    if is_complete and not guess_column(table, best):
        return best
    bare = find_bare_columns(table, [name for name in table.columns if name not in best.names], best.ignored)
    if bare or guess_column(table, best):
        try:
            raw = resolve_open_columns(table, sheet.file(Layout(columns=mapping or {}, unit=unit)))
        except FaultyCells as error:
            raw = error.raw
        if raw is not None:
            return raw.match
    if set(table.required_columns) <= {*best.names, *bare}:
        return replace(best, names={**best.names, **bare})  # the unit alone is open, which its faults say
    if can_be_wide(table) and (wide := find_wide(table, sheet.file(Layout(columns=mapping or {})))):
        return wide.match
    if mapping or not can_be_matrix(table) or not sheet.is_square:
        return best
    return ColumnMatch(where=best.where, names={ours: ours for ours in table.required_columns}, form="matrix")


def _choose_incomplete(
    matches: Mapping[str, ColumnMatch], tables: Mapping[str, Table], named: str | None
) -> Choice:
    """Return the table that a sheet without all columns of any table is most likely; its match has faults."""
    shares = {}
    for name, match in matches.items():
        required = tables[name].required_columns
        present = {*match.names, *find_bare_columns(tables[name], required, match.ignored)}
        shares[name] = sum(ours in present for ours in required) / max(1, len(required))
        if _says_little(tables[name], match) and name != named:
            shares[name] = 0.0
    if named is not None and shares[named] > 0:
        return Choice(table=named, fitting=(named,), match=matches[named], lacks=True)
    best = max(shares.values(), default=0.0)
    fitting = tuple(name for name, share in shares.items() if share == best and best >= LEAST_SHARE)
    if len(fitting) == 1:
        return Choice(table=fitting[0], fitting=fitting, match=matches[fitting[0]], lacks=True)
    return Choice(table=None, fitting=fitting, lacks=bool(fitting))
