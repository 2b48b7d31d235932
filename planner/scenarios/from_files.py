"""A scenario over a user's own files: their system and tables, and the reading of their columns.

The files stay where and as they are: the scenario names them, and is run again when they change. It is
written once all tables are read and fit together.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from planner.contract.notes import add_note
from planner.contract.parameters import check_parameters
from planner.contract.questions import OpenQuestion
from planner.errors import InputError, did_you_mean
from planner.io.file_replacement import replace_text
from planner.io.layout import Layout
from planner.io.recognition import Mappings, Sheet
from planner.io.table_files import suffix_of
from planner.scenarios.adjusted_problems import adjust_problem
from planner.scenarios.catalogue import find_system
from planner.scenarios.commands import value_text
from planner.scenarios.read_columns import (
    ReadColumn,
    assume_entries,
    assume_units,
    list_read_columns,
    map_read_columns,
)
from planner.scenarios.sheet_choice import (
    OPTION,
    OpenChoice,
    check_names,
    choose_sheets,
    list_all_sheets,
    recognize_system,
)
from planner.scenarios.source_files import SourceFiles, find_source, make_problem
from planner.scenarios.sources import read_files
from planner.scenarios.starter import starter_text
from planner.scenarios.window_columns import find_windows

if TYPE_CHECKING:
    from planner.contract.problem import Problem
    from planner.contract.system import System

FILE: Final = "scenario.toml"
ADVICE: Final = "say --decimal . or --decimal , or save it as CSV in UTF-8 with commas and decimal points"


@dataclass(frozen=True, kw_only=True)
class NewScenario:
    """A scenario over files.

    problem  that of the first window, where a table has a time in each row
    sheets   the file or sheet of each table
    columns  what is read of them
    windows  number of windows of a table over time; None for one problem
    """

    path: Path
    system: System
    problem: Problem
    sheets: Mapping[str, Sheet]
    columns: Sequence[ReadColumn]
    windows: int | None = None


def write_scenario(
    paths: Sequence[Path],
    out: Path | None = None,
    *,
    system: str | None = None,
    tables: Mapping[str, str] | None = None,
    columns: Mappings | None = None,
    units: Mapping[str, str] | None = None,
    decimal: str | None = None,
    settings: Mapping[str, Any] | None = None,
    ask: Callable[[OpenQuestion], Any] | None = None,
    save_columns: bool = False,
) -> NewScenario:
    """Write a scenario over files, workbooks or folders of them, after reading all their tables.

    out       the scenario's file; default: scenario.toml beside the first file
    system    its name; default: the one whose tables the files are
    tables    name of the file or sheet by table, where the columns do not tell
    columns   names in the files where they are not recognized
    units     unit of the entries of a matrix, by table
    decimal   "." or "," in text files, where both are possible
    settings  keys of [problem], such as {"both_directions": True}
    ask       returns the user's answer to a question that the tables leave open, None for none; default: what
              the question assumes, which a note says

    raises  InputError where files are no tables, columns are missing or in doubt, rows are faulty, or `out`
            exists
    """
    files = [file for path in paths for file in _files_of(path)]
    out = _require_new(out or _beside(paths[0]))
    settings = settings or {}
    if (found := find_source(files, system)) is not None:
        return _write_over_source(found, paths, out, settings)
    sheets = list_all_sheets(files, _folders_of(paths))
    given = _Given.of(system, tables or {}, columns or {}, units or {}, decimal)
    system_found, adjustments, sheets_of, problem = _read_with_answers(
        sheets, given, settings, out.parent, ask
    )
    mappings, units = given.mappings, given.units
    windows = None
    if given.windows:
        windows, (_, problem) = len(problem), next(iter(problem))
    answers, reasons = _answer_questions(system_found, problem, settings, ask)
    problem = _adjust(system_found, problem, {**adjustments, **answers})
    read = list_read_columns(system_found, sheets_of, mappings, units, given.windows)
    if save_columns:
        given.mappings = map_read_columns(system_found, sheets_of, mappings, units)
    keys = {**settings, **answers, **_problem_section(sheets_of, given, out.parent)}
    _write_text(out, starter_text(system_found, origin=_origin_of(paths), problem=keys, reasons=reasons))
    return NewScenario(
        path=out, system=system_found, problem=problem, sheets=sheets_of, columns=read, windows=windows
    )


def _write_over_source(
    found: SourceFiles, paths: Sequence[Path], out: Path, settings: Mapping[str, Any]
) -> NewScenario:
    """Write a scenario over files that a source of a system reads, such as a graph and a matrix."""
    problem, keys = make_problem(found, settings, out.parent)
    _write_text(out, starter_text(found.system, origin=_origin_of(paths), problem=keys, source=found.source))
    return NewScenario(path=out, system=found.system, problem=problem, sheets={}, columns=found.columns)


def _folders_of(paths: Sequence[Path]) -> set[Path]:
    """Return the paths that are folders, without links in them."""
    return {path.resolve() for path in paths if path.is_dir()}


def _beside(path: Path) -> Path:
    """Return the usual file of a scenario over a file or folder."""
    return (path if path.is_dir() else path.parent) / FILE


def _require_new(out: Path) -> Path:
    """Return the path; raise InputError where a file is there already."""
    if out.exists():
        raise InputError(f"{out}: exists already; name another file with --out")
    return out


def _origin_of(paths: Sequence[Path]) -> str:
    """Return the first line of a scenario over files: the command that wrote it."""
    return f"Written by: planner new scenario {shlex.join(str(path) for path in paths)}"


def _write_text(out: Path, text: str) -> None:
    """Write a scenario's text, into a folder that need not exist yet."""
    out.parent.mkdir(parents=True, exist_ok=True)
    replace_text(out, text)


@dataclass(kw_only=True)
class _Given:
    """What a user says of files, with the answers to questions.

    windows  column of times by table, as found in the files
    """

    system: str | None
    tables: dict[str, str]
    mappings: dict[str, dict[str, str]]
    units: dict[str, str]
    decimal: str | None
    windows: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        system: str | None,
        tables: Mapping[str, str],
        columns: Mappings,
        units: Mapping[str, str],
        decimal: str | None,
    ) -> _Given:
        """Return the arguments of `write_scenario`, copied, since answers are added to them."""
        return cls(
            system=system,
            tables=dict(tables),
            mappings={name: dict(mapping) for name, mapping in columns.items()},
            units=dict(units),
            decimal=decimal,
        )

    def answer(self, settings: Sequence[tuple[str, str]], value: Any) -> None:
        """Set the answer of a question."""
        for kind, name in settings:
            match kind:
                case "system":
                    self.system = value
                case "unit":
                    self.units[name] = value
                case "decimal":
                    self.decimal = value
                case "column":
                    table, _, column = name.partition(".")
                    self.mappings.setdefault(table, {})[column] = value


def _read_with_answers(
    sheets: Sequence[Sheet],
    given: _Given,
    settings: Mapping[str, Any],
    folder: Path,
    ask: Callable[[OpenQuestion], Any] | None,
) -> tuple[System, dict[str, Any], dict[str, Sheet], Any]:
    """Return the result of `_read` after the user's answers to all that the tables leave open.

    raises  OpenChoice, an InputError, for a question without an answer
    """
    while True:
        try:
            return _read(sheets, given, settings, folder)
        except OpenChoice as choice:
            answer = None if ask is None else ask(choice.question)
            if answer is None:
                raise
            given.answer(choice.settings, answer)


def _read(
    sheets: Sequence[Sheet], given: _Given, settings: Mapping[str, Any], folder: Path
) -> tuple[System, dict[str, Any], dict[str, Sheet], Any]:
    """Return the system of sheets, its adjustments, the sheet of each table, and the problem or series.

    raises  OpenChoice, an InputError, where one question decides what is open
    """
    mappings, units = given.mappings, given.units
    system = (
        find_system(given.system)
        if given.system is not None
        else recognize_system(sheets, mappings, given.tables)
    )
    check_names(system, given.tables, units, mappings)
    adjustments = _check_settings(system, settings, folder)
    sheets_of = choose_sheets(sheets, system, given.tables, mappings, units)
    for name, unit in assume_units(system, sheets_of, mappings, units).items():
        units[name] = unit.symbol
        add_note(
            f"{assume_entries(sheets_of[name], unit)}; for another unit say --unit {name}=UNIT, or change "
            "it in the scenario"
        )
    given.windows = find_windows(system, sheets_of, mappings, given.decimal)
    files = {
        name: sheet.file(
            Layout(
                columns=mappings.get(name, {}),
                decimal=given.decimal,
                unit=units.get(name),
                window=given.windows.get(name),
                advice=ADVICE,
                option=OPTION,
            )
        )
        for name, sheet in sheets_of.items()
    }
    try:
        return system, adjustments, sheets_of, read_files(system, files)
    except InputError as error:
        if all(fault.endswith(ADVICE) for fault in error.faults):
            raise _ask_decimal(error.faults) from None
        raise


def _ask_decimal(faults: Sequence[str]) -> OpenChoice:
    """Return the question for the decimal mark, which decides all faults."""
    question = OpenQuestion(
        parameter="decimal",
        text=f"how are numbers written: {faults[0].partition('? say')[0]}",
        answers={".": "with a decimal point: 1,000 is a thousand", ",": "with a decimal comma: 1,000 is one"},
    )
    return OpenChoice(faults, question, [("decimal", "")])


def _adjust(system: System, problem: Problem, values: Mapping[str, Any]) -> Problem:
    """Return the adjusted problem; where a question is left open that settings must answer, warn of it.

    raises  InputError where the values that are given are refused
    """
    try:
        adjusted: Problem = adjust_problem(system.problem.adjust, problem, values)
    except InputError as error:
        if values:
            raise
        for fault in error.faults:
            add_note(f"warning: {fault}")
        return problem
    return adjusted


def _files_of(path: Path) -> list[Path]:
    """Return the files of tables that a path names: itself, or those in its folder."""
    if not path.exists():
        near = [str(path_) for path_ in sorted(path.parent.iterdir())] if path.parent.is_dir() else []
        raise InputError(f"{path}: no such file or folder" + did_you_mean(str(path), near))
    if not path.is_dir():
        return [path]
    files = [
        path_
        for path_ in sorted(path.iterdir())
        if path_.is_file() and suffix_of(path_) and path_.name[0] != "."
    ]
    if not files:
        raise InputError(f"{path}: has no file of a table")
    return files


def _check_settings(system: System, settings: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return the values of adjustments that the user sets; raise InputError for those that are none."""
    values, faults = check_parameters(
        system.problem.adjust, settings, where="problem", what="the problem", folder=folder
    )
    if faults:
        raise InputError(*faults)
    return dict(values)


def _answer_questions(
    system: System,
    problem: Problem,
    settings: Mapping[str, Any],
    ask: Callable[[OpenQuestion], Any] | None,
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the answers to the open questions of tables, by parameter, with reasons for assumed ones."""
    answers: dict[str, Any] = {}
    reasons: dict[str, str] = {}
    questions = system.problem.questions(problem) if system.problem.questions is not None else ()
    for question in questions:
        if question.parameter in settings:
            continue
        answer = ask(question) if ask is not None else None
        if answer is None and question.assumed is None:
            continue  # the adjustment says all readings
        if answer is None:
            answer = question.assumed
            reasons[question.parameter] = question.reason
            others = " or ".join(
                f"--set problem.{question.parameter}={value_text(value)} ({meaning})"
                for value, meaning in question.others.items()
            )
            add_note(f"assumed: {question.assumption}; otherwise say {others}, or change the scenario")
        answers[question.parameter] = answer
    return answers, reasons


def _problem_section(sheets: Mapping[str, Sheet], given: _Given, folder: Path) -> dict[str, Any]:
    """Return the [problem] section that names the file, sheet, unit and mapped columns of each table."""
    layouts: dict[str, dict[str, str | int]] = {}
    for name, sheet in sheets.items():
        layouts[name] = {"file": Path(os.path.relpath(sheet.path, folder)).as_posix()}
        if sheet.is_in_workbook:
            layouts[name]["sheet"] = sheet.sheet
        if sheet.header is not None:
            layouts[name]["header"] = sheet.header
        settings = {
            "decimal": given.decimal,
            "unit": given.units.get(name),
            "window": given.windows.get(name),
        }
        layouts[name] |= {key: value for key, value in settings.items() if value is not None}
    columns = {name: dict(mapping) for name, mapping in given.mappings.items() if mapping}
    return {"tables": layouts} | ({"columns": columns} if columns else {})
