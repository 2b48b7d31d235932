"""A scenario over a user's own files: which system and table each file is, and how its columns are read.

The files stay where and as they are: the scenario names them, and is run again when they change. It is
written once all tables are read and fit together.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from planner.contract.notes import add_note
from planner.errors import InputError, did_you_mean
from planner.formatting import few
from planner.io.file_replacement import replace_text
from planner.io.layout import Layout
from planner.io.recognition import (
    Mappings,
    Reading,
    Sheet,
    list_sheets,
    match_sheet,
    read_as,
    recognize,
)
from planner.io.table_files import suffix_of
from planner.scenarios.adjusted_problems import adjust_with_notes
from planner.scenarios.catalogue import find_system, system_names
from planner.scenarios.sources import read_files
from planner.scenarios.starter import starter_text

if TYPE_CHECKING:
    from planner.contract.problem import Problem
    from planner.contract.system import System
    from planner.contract.tables import Table

FILE: Final = "scenario.toml"
ADVICE: Final = "say --decimal . or --decimal , or save it as CSV in UTF-8 with commas and decimal points"


@dataclass(frozen=True, kw_only=True)
class NewScenario:
    """A scenario over files.

    sheets  the file or sheet of each table
    """

    path: Path
    system: System
    problem: Problem
    sheets: Mapping[str, Sheet]


def write_scenario(
    paths: Sequence[Path],
    out: Path | None = None,
    *,
    system: str | None = None,
    tables: Mapping[str, str] | None = None,
    columns: Mappings | None = None,
    decimal: str | None = None,
) -> NewScenario:
    """Write a scenario over files, workbooks or folders of them, after reading all their tables.

    out      the scenario's file; default: scenario.toml beside the first file
    system   its name; default: the one whose tables the files are
    tables   name of the file or sheet by table, where the columns do not tell
    columns  names in the files where they are not recognized
    decimal  "." or "," in text files, where both are possible

    raises  InputError where files are no tables, columns are missing or in doubt, rows are faulty, or `out`
            exists
    """
    files = [file for path in paths for file in _files_of(path)]
    out = out or (paths[0] if paths[0].is_dir() else paths[0].parent) / FILE
    if out.exists():
        raise InputError(f"{out}: exists already; name another file with --out")
    sheets = _list_sheets(files, {path.resolve() for path in paths if path.is_dir()})
    named, mappings = tables or {}, columns or {}
    found = find_system(system) if system is not None else _recognize_system(sheets, mappings, named)
    _check_names(found, named, mappings)
    chosen = _choose_sheets(sheets, found, named, mappings)
    problem = read_files(
        found,
        {
            name: sheet.file(
                Layout(columns=mappings.get(name, {}), decimal=decimal, advice=ADVICE, option="--column")
            )
            for name, sheet in chosen.items()
        },
    )
    _note_questions(found, problem)
    section = _problem_section(chosen, mappings, decimal, out.parent)
    words = shlex.join(str(path) for path in paths)
    text = starter_text(found, origin=f"Written by: planner new scenario {words}", problem=section)
    out.parent.mkdir(parents=True, exist_ok=True)
    replace_text(out, text)
    return NewScenario(path=out, system=found, problem=problem, sheets=chosen)


def _note_questions(system: System, problem: Problem) -> None:
    """Add notes on what the problem assumes, and a warning for each question that settings must answer."""
    try:
        adjust_with_notes(system.problem.adjust, problem, {})
    except InputError as error:
        for fault in error.faults:
            add_note(f"warning: {fault}")


def _files_of(path: Path) -> list[Path]:
    """Return the files of tables that a path names: itself, or those in its folder."""
    if not path.exists():
        near = [str(one) for one in sorted(path.parent.iterdir())] if path.parent.is_dir() else []
        raise InputError(f"{path}: no such file or folder" + did_you_mean(str(path), near))
    if not path.is_dir():
        return [path]
    files = [one for one in sorted(path.iterdir()) if one.is_file() and suffix_of(one) and one.name[0] != "."]
    if not files:
        raise InputError(f"{path}: has no file of a table")
    return files


def _list_sheets(files: Sequence[Path], folders: set[Path]) -> list[Sheet]:
    """Return the sheets of files; what cannot be read is a fault of a file that was named."""
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


def _recognize_system(sheets: Sequence[Sheet], mappings: Mappings, tables: Mapping[str, str]) -> System:
    """Return the system whose tables the sheets are; raise InputError where none or several fit."""
    systems = [find_system(name) for name in system_names()]
    named = {*tables, *mappings}
    systems = [one for one in systems if named <= one.problem.table_by_name.keys()] or systems
    recognition = recognize(sheets, systems, mappings)
    whole = [one for one in recognition.readings if _is_whole(one, tables)]
    if recognition.system in {one.system for one in whole}:
        return find_system(str(recognition.system))
    if len(whole) == 1:
        return find_system(whole[0].system)
    likely = [one.system for one in whole] or _list_likely(sheets, systems)
    names = ", ".join(sheet.name for sheet in sheets)
    if whole:
        raise InputError(f"{names}: may be tables of {' or '.join(likely)}; say which with --system")
    faults = [f"{sheet.name}: has columns {few(sheet.widest)}" for sheet in sheets]
    advice = "say --system NAME, and what is missing is listed"
    likely_text = f"; nearest by their names: {', '.join(likely)}" if likely else ""
    raise InputError(f"{names}: are not all tables of any system{likely_text}", *faults, advice)


def _is_whole(reading: Reading, tables: Mapping[str, str]) -> bool:
    """Return whether sheets with all their columns are the required tables of a system."""
    return set(reading.missing) <= set(tables) and not any(choice.lacks for choice in reading.choices)


def _list_likely(sheets: Sequence[Sheet], systems: Sequence[System]) -> list[str]:
    """Return the systems with the most tables named as the sheets are, where there are any."""
    counts = {
        one.name: sum(any(sheet.is_named(table) for sheet in sheets) for table in one.problem.table_by_name)
        for one in systems
    }
    most = max(counts.values())
    return [name for name, count in counts.items() if count == most > 0]


def _check_names(system: System, tables: Mapping[str, str], mappings: Mappings) -> None:
    """Raise InputError for tables and columns that the system does not have."""
    known = system.problem.table_by_name
    faults = [
        f"--table {name}: {system.name} has no such table" + did_you_mean(name, known)
        for name in tables
        if name not in known
    ]
    for name, columns in mappings.items():
        if name not in known:
            faults.append(f"--column {name}: {system.name} has no such table" + did_you_mean(name, known))
            continue
        faults += [
            f"--column {name}.{ours}: {name} has no such column" + did_you_mean(ours, known[name].columns)
            for ours in columns
            if ours not in known[name].columns
        ]
    if faults:
        raise InputError(*faults)


def _choose_sheets(
    sheets: Sequence[Sheet], system: System, tables: Mapping[str, str], mappings: Mappings
) -> dict[str, Sheet]:
    """Return the sheet of each table; raise InputError where a required one is missing or in doubt."""
    chosen = {name: _named_sheet(sheets, name, text) for name, text in tables.items()}
    left = [sheet for sheet in sheets if sheet not in chosen.values()]
    reading = read_as(left, system, mappings, given=chosen)
    declared = system.problem.table_by_name
    faults: list[str] = []
    for sheet, choice in zip(left, reading.choices, strict=True):
        named = next((name for name in declared if name not in chosen and sheet.is_named(name)), None)
        if (table := choice.table or named) is not None:
            chosen[table] = sheet
        elif len(choice.fitting) > 0:
            options = " or ".join(f"--table {name}='{sheet.name}'" for name in choice.fitting)
            faults.append(f"{sheet.name}: may be the table {' or '.join(choice.fitting)}; say {options}")
        else:
            add_note(f"{sheet.name}: is no table of {system.name}, left out")
    chosen = {name: chosen[name] for name in declared if name in chosen}
    for name, sheet in chosen.items():
        faults += _column_faults(sheet, declared[name], mappings)
    faults += [
        f"no file is the table {name} of {system.name} ({', '.join(declared[name].required_columns)})"
        for name in reading.missing
        if name not in chosen
    ]
    if faults:
        raise InputError(*faults)
    return chosen


def _column_faults(sheet: Sheet, table: Table, mappings: Mappings) -> list[str]:
    """Return what is wrong with the columns of a sheet, and how one of another name is mapped."""
    match = match_sheet(sheet, table, mappings.get(table.name))
    if set(table.required_columns) <= set(match.names):
        return list(match.faults)
    advice = f"{match.where}: name a column of the file by --column {table.name}.COLUMN=NAME"
    return [*match.faults, advice]


def _named_sheet(sheets: Sequence[Sheet], table: str, text: str) -> Sheet:
    """Return the sheet of which a user gives the file, the sheet or both."""
    found = [one for one in sheets if text in (one.name, str(one.path), one.path.name, one.sheet, one.stem)]
    exact = [one for one in found if text == one.name] or found
    if len(exact) == 1:
        return exact[0]
    names = [one.name for one in exact or sheets]
    if exact:
        raise InputError(f"--table {table}={text}: may be {' or '.join(names)}; name one of them")
    raise InputError(f"--table {table}={text}: no such file or sheet" + did_you_mean(text, names))


def _problem_section(
    chosen: Mapping[str, Sheet], mappings: Mappings, decimal: str | None, folder: Path
) -> dict[str, Any]:
    """Return the [problem] section that names the file, sheet and mapped columns of each table."""
    layouts: dict[str, dict[str, str]] = {}
    for name, sheet in chosen.items():
        layouts[name] = {"file": Path(os.path.relpath(sheet.path, folder)).as_posix()}
        if sheet.is_in_workbook:
            layouts[name]["sheet"] = sheet.sheet
        elif decimal is not None:
            layouts[name]["decimal"] = decimal
    columns = {name: dict(own) for name, own in mappings.items() if own}
    return {"tables": layouts} | ({"columns": columns} if columns else {})
