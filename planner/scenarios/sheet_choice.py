"""Choice of the system that files are of, and of the sheet of each table; missing ones are named once."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from planner.contract.columns import ADDRESSES, ColumnMatch, resolve_column
from planner.contract.notes import add_note
from planner.contract.questions import OpenQuestion
from planner.contract.units import unit_of
from planner.errors import InputError, did_you_mean
from planner.formatting import few
from planner.io.matrices import can_be_matrix
from planner.io.open_columns import names_of_dimension
from planner.io.recognition import (
    MIN_COLUMNS,
    Mappings,
    Reading,
    Sheet,
    list_sheets,
    match_sheet,
    read_as,
    recognize,
)
from planner.scenarios.catalogue import find_system, system_names

if TYPE_CHECKING:
    from planner.contract.system import System
    from planner.contract.table import Table


class OpenChoice(InputError):
    """Faults that one question decides, such as the unit of columns that name none.

    settings  what an answer sets, each a kind (system, unit, column, table or decimal) and a name
    """

    def __init__(
        self, faults: Sequence[str], question: OpenQuestion, settings: Sequence[tuple[str, str]]
    ) -> None:
        self.question, self.settings = question, tuple(settings)
        super().__init__(*faults)


UNITS: Final[Mapping[str, tuple[str, ...]]] = {
    "rate": ("Mbit/s", "Gbit/s", "kbit/s", "Tbit/s"),
    "data": ("GB", "MB", "TB", "kB"),
    "time": ("ms", "s", "us"),
    "distance": ("km", "m", "mi"),
    "requests": ("kops", "ops", "Mops"),
}
"""Units that a question offers, by dimension."""
OPTION: Final = "--column"
"""Option that maps a column, in advice."""


def list_all_sheets(files: Sequence[Path], folders: set[Path]) -> list[Sheet]:
    """Return the sheets of files; an unreadable file is an error if it was named.

    folders  those that were named in place of their files
    """
    sheets: list[Sheet] = []
    faults = []
    for file in files:
        for sheet in list_sheets(file):
            if not sheet.fault:
                sheets.append(sheet)
            elif file.parent.resolve() in folders:
                add_note(f"{sheet.fault}; left out")
            else:
                faults.append(sheet.fault)
    if faults:
        raise InputError(*faults)
    if not sheets:
        raise InputError("no file has a table")
    return sheets


def recognize_system(sheets: Sequence[Sheet], mappings: Mappings, tables: Mapping[str, str]) -> System:
    """Return the system of the tables in the sheets.

    raises  InputError where several fit, and where none does: with all that the nearest one lacks
    """
    systems = _select_systems(mappings, tables)
    recognition = recognize(sheets, systems, mappings)
    complete = [reading for reading in recognition.readings if _is_whole(reading, tables)]
    if recognition.system in {reading.system for reading in complete}:
        return find_system(str(recognition.system))
    if len(complete) == 1:
        return find_system(complete[0].system)
    if complete:
        raise _choice_of_system(sheets, complete)
    raise _refusal_of_sheets(sheets, systems, mappings, tables)


def _select_systems(mappings: Mappings, tables: Mapping[str, str]) -> list[System]:
    """Return the systems that have the named tables and columns; all systems where none has them."""
    systems = [find_system(name) for name in system_names()]
    named = {*tables, *mappings}
    systems = [system for system in systems if named <= system.problem.table_by_name.keys()] or systems
    return [system for system in systems if _has_columns(system, mappings)] or systems


def _choice_of_system(sheets: Sequence[Sheet], complete: Sequence[Reading]) -> OpenChoice:
    """Return the choice between the systems of which the sheets have all tables."""
    names = ", ".join(sheet.name for sheet in sheets)
    options = " or ".join(f"--system {reading.system}" for reading in complete)
    question = OpenQuestion(
        parameter="system",
        text="what shall be planned",
        answers={item.system: f"{item.system}: {find_system(item.system).question}" for item in complete},
    )
    return OpenChoice(
        [f"{names}: may be tables of several systems; say {options}"], question, [("system", "")]
    )


def _refusal_of_sheets(
    sheets: Sequence[Sheet], systems: Sequence[System], mappings: Mappings, tables: Mapping[str, str]
) -> InputError:
    """Return the error of sheets that are of no system, with all that the nearest one lacks."""
    names = ", ".join(sheet.name for sheet in sheets)
    has = [f"{sheet.name}: has columns {few(sheet.widest)}" for sheet in sheets]
    nearest = _nearest_system(sheets, systems, mappings)
    if nearest is None:
        systems_text = f"say --system NAME, one of: {', '.join(system_.name for system_ in systems)}"
        return InputError(f"{names}: are not all tables of any system", *has, systems_text)
    try:
        choose_sheets(sheets, nearest, tables, mappings)
        lacks: tuple[str, ...] = ()
    except OpenChoice as choice:
        return OpenChoice([*has, *choice.faults], choice.question, choice.settings)
    except InputError as error:
        lacks = error.faults
    return InputError(
        f"{names}: are not all tables of any system; nearest is {nearest.name} (--system {nearest.name})",
        *(line for line in has if not any(line.partition(": has")[0] in lack for lack in lacks)),
        *lacks,
    )


def _has_columns(system: System, mappings: Mappings) -> bool:
    """Return whether a system has all the columns that a user maps."""
    tables = system.problem.table_by_name
    return all(
        name in tables and resolve_column(tables[name], ours) is not None
        for name, mapping in mappings.items()
        for ours in mapping
    )


def _is_whole(reading: Reading, tables: Mapping[str, str]) -> bool:
    """Return whether sheets with all their columns are the required tables of a system."""
    return set(reading.missing) <= set(tables) and not any(choice.lacks for choice in reading.choices)


def _nearest_system(sheets: Sequence[Sheet], systems: Sequence[System], mappings: Mappings) -> System | None:
    """Return the system with the largest share of its required columns in the sheets; None where all are 0.

    A table that a sheet is by its name counts as a column.
    """
    shares = {}
    for system in systems:
        kind = system.problem
        required = [table for table in kind.tables if table.name not in kind.optional_tables]
        total = sum(len(table.required_columns) + 1 for table in required)
        count = 0
        for table in required:
            matches = [match_sheet(sheet, table, mappings.get(table.name)) for sheet in sheets]
            count += max(sum(ours in match.names for ours in table.required_columns) for match in matches)
            count += any(sheet.is_named(table, kind.tables) for sheet in sheets)
        shares[system.name] = count / max(total, 1)
    nearest = max(shares, key=lambda name: shares[name])
    return find_system(nearest) if shares[nearest] > 0 else None


def check_names(system: System, tables: Collection[str], units: Collection[str], mappings: Mappings) -> None:
    """Raise InputError for tables and columns that the system does not have, with the option of each."""
    declared = system.problem.table_by_name
    faults = [
        f"{option} {name}: {system.name} has no such table" + did_you_mean(name, declared)
        for option, names in (("--table", tables), ("--unit", units))
        for name in names
        if name not in declared
    ]
    for name, columns in mappings.items():
        if name not in declared:
            faults.append(f"{OPTION} {name}: {system.name} has no such table" + did_you_mean(name, declared))
            continue
        faults += [
            f"{OPTION} {name}.{ours}: {name} has no such column" + did_you_mean(ours, declared[name].columns)
            for ours in columns
            if resolve_column(declared[name], ours) is None
        ]
    if faults:
        raise InputError(*faults)


def choose_sheets(
    sheets: Sequence[Sheet],
    system: System,
    tables: Mapping[str, str],
    mappings: Mappings,
    units: Mapping[str, str] | None = None,
) -> dict[str, Sheet]:
    """Return the sheet of each table; raise InputError with all that is missing or in doubt, and its options.

    tables  name of the file or sheet by table, as the user says
    units   of columns that name none, by table
    raises  OpenChoice, an InputError, where one question decides all of it
    """
    selected = {name: _named_sheet(sheets, name, text) for name, text in tables.items()}
    remaining = [sheet for sheet in sheets if sheet not in selected.values()]
    reading = read_as(remaining, system, mappings, provided=selected)
    declared = system.problem.table_by_name
    assigned, unused, faults = _assign_sheets(system, remaining, reading, selected)
    selected |= assigned
    selected = _drop_empty(system, selected, tables)
    more, open_choices = _match_sheets(system, selected, mappings, units or {})
    faults += more
    faults += [
        _missing_fault(system, declared[name], unused) for name in reading.missing if name not in selected
    ]
    if faults:
        _raise_choice(faults, open_choices)
        raise InputError(*faults)
    for sheet in unused:
        add_note(f"{sheet.name}: is no table of {system.name}, left out")
    return selected


class _AssignedSheets(NamedTuple):
    """Sheets of tables that no user named.

    sheets  sheet by table
    unused  sheets that are no table
    faults  an error for each sheet that may be several tables
    """

    sheets: dict[str, Sheet]
    unused: list[Sheet]
    faults: list[str]


def _assign_sheets(
    system: System, remaining: Sequence[Sheet], reading: Reading, named: Collection[str]
) -> _AssignedSheets:
    """Return the sheets of tables by the columns of the sheets that no user named.

    named  tables whose sheets the user named
    """
    declared = system.problem.table_by_name
    result = _AssignedSheets({}, [], [])
    missing = [declared[name] for name in reading.missing if name not in named]
    for sheet, choice in zip(remaining, reading.choices, strict=True):
        others = [
            table for name, table in declared.items() if name not in named and name not in result.sheets
        ]
        # a sheet with the name of a required table is that table, also where another lacks fewer columns
        table = _table_called(sheet, missing) or choice.table or _table_called(sheet, others)
        if table is not None:
            result.sheets[table] = sheet
        elif len(choice.fitting) > 0:
            options = " or ".join(f"--table {name}='{sheet.name}'" for name in choice.fitting)
            result.faults.append(
                f"{sheet.name}: may be the table {' or '.join(choice.fitting)}; say {options}"
            )
        else:
            result.unused.append(sheet)
    return result


def _drop_empty(system: System, selected: Mapping[str, Sheet], named: Collection[str]) -> dict[str, Sheet]:
    """Return the sheets in the order of the system's tables, without empty ones of optional tables.

    named  tables whose sheets the user named, which stay
    """
    optional = system.problem.optional_tables
    return {
        name: selected[name]
        for name in system.problem.table_by_name
        if name in selected and (name in named or name not in optional or not selected[name].is_empty)
    }


OpenColumns = tuple[int, OpenQuestion, tuple[str, str]]
"""Number of faults of a table's columns, the question that decides them all, and what it sets."""


def _match_sheets(
    system: System, selected: Mapping[str, Sheet], mappings: Mappings, units: Mapping[str, str]
) -> tuple[list[str], list[OpenColumns]]:
    """Return the faults of the columns of all sheets, and the questions that decide them."""
    faults: list[str] = []
    open_choices: list[OpenColumns] = []
    for name, sheet in selected.items():
        table = system.problem.table_by_name[name]
        match = match_sheet(sheet, table, mappings.get(name), unit=units.get(name), option=OPTION)
        faults += match.faults
        if choice := _find_choice(table, match):
            open_choices.append((len(match.faults), *choice))
    return faults, open_choices


def _find_choice(table: Table, match: ColumnMatch) -> tuple[OpenQuestion, tuple[str, str]] | None:
    """Return the question that decides all faults of a table's columns, and what it sets; None for none."""
    return _find_choice_of_unit(table, match) or _find_choice_of_column(table, match)


def _find_choice_of_unit(table: Table, match: ColumnMatch) -> tuple[OpenQuestion, tuple[str, str]] | None:
    """Return the question for the unit of columns that name none, where these are all faults."""
    without_unit = [ours for ours, name in match.names.items() if name in match.ignored]
    if not without_unit or len(match.faults) != len(without_unit):
        return None
    dimensions = {unit.dimension for ours in without_unit if (unit := unit_of(ours)[1])}
    if len(dimensions) != 1:
        return None
    listed = few([f"'{match.names[ours]}'" for ours in without_unit])
    answers = {symbol: symbol for symbol in UNITS[dimensions.pop()]}
    text = f"in which unit is {listed} of {table.name}"
    return OpenQuestion(parameter="unit", text=text, answers=answers), ("unit", table.name)


def _find_choice_of_column(table: Table, match: ColumnMatch) -> tuple[OpenQuestion, tuple[str, str]] | None:
    """Return the question for the column that is one of ours, where this is the only fault."""
    missing = [ours for ours in table.required_columns if ours not in match.names]
    if len(match.faults) != 1:
        return None
    likely = {ours: names_of_dimension(match.ignored, ours) for ours in missing} | dict(match.several)
    if len(likely) != 1:
        return None
    ours, names = next(iter(likely.items()))
    if len(names) < 2:
        return None
    text = f"which column is {ours} of {table.name}"
    question = OpenQuestion(parameter="column", text=text, answers={name: name for name in names})
    return question, ("column", f"{table.name}.{ours}")


def _raise_choice(faults: Sequence[str], open_choices: Sequence[OpenColumns]) -> None:
    """Raise OpenChoice where one question decides all faults: one of columns, or one of a common unit."""
    questions = [question for _, question, _ in open_choices]
    if not questions or sum(count for count, _, _ in open_choices) < len(faults):
        return
    answers = questions[0].answers
    if len(questions) > 1 and not _have_common_unit(questions):
        return
    text = " and ".join(
        [questions[0].text, *(question.text.removeprefix("in which unit is ") for question in questions[1:])]
    )
    settings = [setting for _, _, setting in open_choices]
    more = []
    if questions[0].parameter == "unit":
        options = " ".join(f"--unit {name}={next(iter(list(answers)[1:]))}" for _, name in settings)
        more = [f"to give the unit of columns that name none, say {options} (or {', '.join(answers)})"]
    raise OpenChoice([*faults, *more], replace(questions[0], text=text), settings)


def _have_common_unit(questions: Sequence[OpenQuestion]) -> bool:
    """Return whether all questions are for a unit, of the same units."""
    answers = questions[0].answers
    return all(question.parameter == "unit" and question.answers == answers for question in questions)


def _table_called(sheet: Sheet, tables: Sequence[Table]) -> str | None:
    """Return the first table of a sheet's name of which it has a column; None for none."""
    return next(
        (table.name for table in tables if sheet.is_named(table, tables) and match_sheet(sheet, table).names),
        None,
    )


def _missing_fault(system: System, table: Table, unused: Sequence[Sheet]) -> str:
    """Return the fault of a required table that no sheet is, and the options for a sheet that is no table."""
    text = f"no file is the table {table.name} of {system.name} ({', '.join(table.required_columns)})"
    if not unused:
        return f"{text}: name a further file or sheet that is"
    sheet = unused[0]
    options = [f"--table {table.name}='{sheet.name}'"]
    options += [f"{OPTION} '{table.name}.{ours}=NAME'" for ours in table.required_columns]
    if faults := [fault for fault in match_sheet(sheet, table).faults if ADDRESSES in fault]:
        text = f"{faults[0]}; {text}"
    matrix = ""
    if can_be_matrix(table) and len(sheet.widest) >= MIN_COLUMNS:
        matrix = f"; where {sheet.name} is a matrix, write from\\to in its first cell"
    return f"{text}: name a further file, or say {' '.join(options)}{matrix}"


def _named_sheet(sheets: Sequence[Sheet], table: str, text: str) -> Sheet:
    """Return the sheet of which a user gives the file, the sheet or both."""
    candidates = [
        sheet
        for sheet in sheets
        if text in (sheet.name, str(sheet.path), sheet.path.name, sheet.sheet, sheet.stem)
    ]
    exact = [sheet for sheet in candidates if text == sheet.name] or candidates
    if len(exact) == 1:
        return exact[0]
    names = [sheet.name for sheet in exact or sheets]
    if exact:
        raise InputError(f"--table {table}={text}: may be {' or '.join(names)}; name one of them")
    raise InputError(f"--table {table}={text}: no such file or sheet" + did_you_mean(text, names))
