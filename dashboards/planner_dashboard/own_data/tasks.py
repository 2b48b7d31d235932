"""Tasks of worker processes for the page "Your data": recognize files, read, check and save tables."""

from __future__ import annotations

import hashlib
import io
import re
import shutil
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
import tomli_w

from planner.contract.columns import ColumnMatch, shorten_name
from planner.contract.drawing import Drawing
from planner.contract.notes import doubts_of, make_with_notes, observe_notes
from planner.contract.periods import UnclearTimes, is_time, number_times, read_times
from planner.contract.plausibility import find_disproportions, find_unusual
from planner.contract.questions import OpenQuestion
from planner.contract.system import System
from planner.contract.table import WINDOW, Table
from planner.contract.tables import digest
from planner.contract.units import Unit
from planner.errors import InputError, PlanRejected
from planner.formatting import sizes
from planner.io.file_replacement import replace_folder
from planner.io.layout import Layout
from planner.io.names import name_fault
from planner.io.node_names import unify_names
from planner.io.recognition import Recognition, Sheet, list_sheets, match_sheet, recognize
from planner.io.table_files import Cells, check_problem, read_cells, write_table
from planner.io.text_files import read_text
from planner.io.toml import parse_toml
from planner.runs.files import write_plan
from planner.scenarios.adjusted_problems import adjust_with_notes
from planner.scenarios.catalogue import find_system, system_names
from planner.scenarios.existing_plans import take_plan
from planner.scenarios.from_files import write_scenario
from planner.scenarios.read_columns import ReadColumn, assume_entries, assume_units, list_read_columns
from planner.scenarios.scenario import PLANS_FOLDER, Scenario, load
from planner.scenarios.shipped import own_folders, scenario_names
from planner.scenarios.template_workbook import write_template
from planner.scenarios.window_columns import find_windows
from planner_dashboard.own_data.intake import SCENARIO, GivenFile, store_files
from planner_dashboard.own_data.limits import active_cells
from planner_dashboard.question import Question

MAX_ROWS: Final = 1_000_000
"""Rows of a table that the page edits."""
KEPT_SECTIONS: Final = ("designs", "solver")
"""Sections of a scenario that stay with its tables."""
GIVEN: Final = "given"
"""Folder of the files as they were given."""


@dataclass(frozen=True, kw_only=True)
class Taken:
    """Files that were given, and their content."""

    sheets: tuple[Sheet, ...]
    recognition: Recognition
    system: str | None
    notes: tuple[str, ...]
    faults: tuple[str, ...]


class TableWindows(NamedTuple):
    """Windows of a table with a time in each row.

    column  with the times, in the file
    labels  the times of the windows in their order, or their numbers
    """

    column: str
    labels: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class Read:
    """Tables as read from files, or those of a scenario.

    frames    cells by table, under our names and in our units
    notes     on what was converted and ignored, by table
    faults    why a table cannot be read, by table
    missing   columns that the user may find among those of the sheet, by table
    matrices  tables that are read from matrices
    unitless  tables with columns that name no unit
    columns   each column of the files as it is read
    windows   the windows of tables with a time in each row, of which one is read, by table
    sections  of the scenario that the tables come from
    name      of that scenario
    """

    system: str
    frames: Mapping[str, pd.DataFrame]
    notes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    faults: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    missing: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    matrices: frozenset[str] = frozenset()
    unitless: frozenset[str] = frozenset()
    columns: tuple[ReadColumn, ...] = ()
    windows: Mapping[str, TableWindows] = field(default_factory=dict)
    sections: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""


@dataclass(frozen=True, kw_only=True, eq=False)
class Checked:
    """Tables after their check.

    faults   with the table's name and the row where a row is at fault; empty: valid
    doubts   what is assumed, and figures that look like another unit
    questions  that the tables leave open
    size     of the problem, in words
    digest   of the stored scenario; "" where there are faults
    drawing  of the problem, without a plan
    """

    faults: tuple[str, ...]
    doubts: tuple[str, ...] = ()
    questions: tuple[OpenQuestion, ...] = ()
    size: str = ""
    digest: str = ""
    drawing: Drawing | None = None


def take_files(files: Sequence[GivenFile], folder: Path) -> Taken:
    """Store files in place of those before, and recognize which system and which tables they are."""
    root = folder / GIVEN
    shutil.rmtree(root, ignore_errors=True)
    stored = store_files(files, root)
    sheets: list[Sheet] = []
    faults = list(stored.faults)
    for path in stored.paths:
        for sheet in list_sheets(path):
            if sheet.fault:
                faults.append(sheet.fault.replace(f"{path.parent}/", ""))
            elif not sheet.is_empty:
                sheets.append(sheet)
    recognition = recognize(sheets, [find_system(name) for name in system_names()])
    system = stored.system if recognition.reading(stored.system) else recognition.system
    return Taken(
        sheets=tuple(sheets), recognition=recognition, system=system, notes=stored.notes, faults=tuple(faults)
    )


def read_sheets(
    system_name: str,
    chosen: Mapping[str, tuple[Sheet, Layout]],
    picked: Mapping[str, str] | None = None,
) -> Read:
    """Read sheets as tables of a system.

    chosen  the sheet of each table, and how it is written where that is not found by itself
    picked  label of the window that is read of a table over time; default: the first
    """
    system = find_system(system_name)
    tables = system.problem.table_by_name
    frames: dict[str, pd.DataFrame] = {}
    notes: dict[str, tuple[str, ...]] = {}
    sheets = {name: sheet for name, (sheet, _) in chosen.items()}
    said_units = {name: layout.unit for name, (_, layout) in chosen.items() if layout.unit is not None}
    mappings = {name: layout.columns for name, (_, layout) in chosen.items()}
    units = assume_units(system, sheets, mappings, set(said_units))
    layouts = {
        name: replace(layout, unit=units[name].symbol) if name in units else layout
        for name, (_, layout) in chosen.items()
    }
    matches = {
        name: match_sheet(sheet, tables[name], layouts[name].columns, unit=layouts[name].unit)
        for name, sheet in sheets.items()
    }
    windows: dict[str, TableWindows] = {}
    times, unclear = _find_times(system, sheets, mappings)
    faults = dict(unclear)
    for name, sheet in sheets.items():
        try:
            if name in times:
                cells = _read_over_time(tables[name], sheet, layouts[name], times[name])
                windows[name], cells = _pick_window(times[name], cells, (picked or {}).get(name))
            else:
                cells = read_cells(tables[name], sheet.file(layouts[name]))
            _require_editable(cells)
        except InputError as error:
            faults[name] = tuple(fault.replace(f"{sheet.path.parent}/", "") for fault in error.faults)
            continue
        frames[name] = editable(tables[name], cells.frame)
        notes[name] = (*cells.notes, *_assumed_unit(sheet, units.get(name)))
        if cells.faults:
            faults[name] = cells.faults
    frames = _unify_names(system, frames, notes)
    units_of = said_units | {name: unit.symbol for name, unit in units.items()}
    return Read(
        system=system_name,
        frames=frames,
        notes=notes,
        faults=faults,
        missing={name: _missing_columns(tables[name], match) for name, match in matches.items()},
        matrices=frozenset(name for name, match in matches.items() if match.form == "matrix"),
        unitless=frozenset(name for name, match in matches.items() if _has_open_unit(match)),
        columns=tuple(list_read_columns(system, sheets, mappings, units_of, times)),
        windows=windows,
    )


def _has_open_unit(match: ColumnMatch) -> bool:
    """Return whether the columns that were found leave the unit of an amount open."""
    return bool(match.stated) or bool(set(match.names.values()) & set(match.ignored))


def _require_editable(cells: Cells) -> None:
    """Raise InputError for a table with more rows than the editor takes."""
    if len(cells.frame) > MAX_ROWS:
        raise InputError(f"{cells.where}: has {len(cells.frame):,} rows, at most {MAX_ROWS:,} can be edited")


def _unify_names(
    system: System, frames: Mapping[str, pd.DataFrame], notes: dict[str, tuple[str, ...]]
) -> dict[str, pd.DataFrame]:
    """Return the tables with one spelling of each node; the assumptions join the notes of the first table."""
    spellings: list[str] = []
    with observe_notes(spellings.append):
        unified = unify_names(system.problem.tables, frames)
    if spellings:
        first = next(iter(frames))
        notes[first] = (*notes[first], *spellings)
    return unified


def _find_times(
    system: System, sheets: Mapping[str, Sheet], mappings: Mapping[str, Mapping[str, str]]
) -> tuple[dict[str, str], dict[str, tuple[str, ...]]]:
    """Return the columns of times of tables over time, and the faults of unclear times by table."""
    try:
        return find_windows(system, sheets, mappings, None), {}
    except InputError as error:
        return {}, {next(name for name in system.problem.over_time if name in sheets): error.faults}


def _read_over_time(table: Table, sheet: Sheet, layout: Layout, column: str) -> Cells:
    """Return the cells of a table with the time of each row."""
    layout = replace(layout, columns={**layout.columns, WINDOW: column})
    return read_cells(table.over_time(), sheet.file(layout))


def _pick_window(column: str, cells: Cells, label: str | None) -> tuple[TableWindows, Cells]:
    """Return the windows of a table over time, and the cells of one of them: the first where none is named.

    raises  InputError for times with several readings
    """
    values = cells.frame[WINDOW]
    try:
        is_timed = values.map(is_time).all()
        numbers = number_times(values).numbers if is_timed else pd.to_numeric(values).to_numpy(float)
    except (UnclearTimes, ValueError) as error:
        raise InputError(f"{cells.where}: {shorten_name(column)}: {error}") from None
    shown = (
        [str(value) for value in read_times(values)] if is_timed else [f"{number:g}" for number in numbers]
    )
    names = {number: text.removesuffix(":00") for number, text in zip(numbers.tolist(), shown, strict=True)}
    labels = tuple(names[number] for number in sorted(names))
    selected = label if label in labels else labels[0]
    rows = np.array([names[number] == selected for number in numbers.tolist()])
    frame = cells.frame[rows].drop(columns=WINDOW)
    note = f"{cells.where}: window {selected} of {len(labels):,}, by column '{shorten_name(column)}'"
    return TableWindows(column, labels), replace(cells, frame=frame, notes=(*cells.notes, note))


def pack_windows(
    system_name: str, chosen: Mapping[str, tuple[Sheet, Layout]], settings: Mapping[str, Any], name: str
) -> bytes:
    """Return a scenario over the given files with all windows as a zip archive, which `planner roll` takes.

    settings  answers to questions that the tables leave open, by parameter
    name      of the folder in the archive
    """
    with tempfile.TemporaryDirectory(prefix="planner-") as temporary:
        folder = Path(temporary, name)
        folder.mkdir()
        for path in {sheet.path for sheet, _ in chosen.values()}:
            shutil.copy(path, folder / path.name)
        write_scenario(
            [folder],
            system=system_name,
            tables={table: sheet.name for table, (sheet, _) in chosen.items()},
            columns={table: layout.columns for table, (_, layout) in chosen.items() if layout.columns},
            units={table: layout.unit for table, (_, layout) in chosen.items() if layout.unit},
            decimal=next((layout.decimal for _, layout in chosen.values() if layout.decimal), None),
            settings=settings,
        )
        return pack(folder, name)


def make_template(system_name: str) -> tuple[str, bytes]:
    """Return the name and the content of a workbook to fill in for a system."""
    with tempfile.TemporaryDirectory(prefix="planner-") as folder:
        path = Path(folder, f"{system_name}.xlsx")
        write_template(find_system(system_name), path)
        return path.name, path.read_bytes()


def _assumed_unit(sheet: Sheet, unit: Unit | None) -> tuple[str, ...]:
    """Return the note on the unit that is assumed of a matrix, if there is one."""
    if unit is None:
        return ()
    return (f"{assume_entries(sheet, unit)}; choose another unit under 'Columns and numbers'",)


def _missing_columns(table: Table, match: ColumnMatch) -> tuple[str, ...]:
    """Return our columns that were not found, the required ones first."""
    absent = [name for name in table.columns if name not in match.names]
    return tuple(sorted(absent, key=lambda name: not table.columns[name].required))


def read_scenario(name: str) -> Read:
    """Return the tables of a scenario that ships with planner, or of the user's own."""
    if name not in scenario_names():
        raise InputError(f"{name}: no such scenario")
    return _read(load(name), name)


def read_question(question: Question, tables: Path) -> Read:
    """Return the tables of a question's problem, with its changes.

    tables  folder of the uploaded tables
    """
    return _read(question.load(tables), question.scenario)


def _read(scenario: Scenario, name: str) -> Read:
    frames = scenario.make_problem().to_tables()
    tables = scenario.system.problem.table_by_name
    large = [f"{table}: has {len(frame):,} rows, at most {MAX_ROWS:,} can be edited"
             for table, frame in frames.items() if len(frame) > MAX_ROWS]  # fmt: skip
    if large:
        raise InputError(*large)
    sections = {key: scenario.raw[key] for key in KEPT_SECTIONS if key in scenario.raw}
    return Read(
        system=scenario.system.name,
        frames={table: editable(tables[table], frame) for table, frame in frames.items()},
        sections=sections,
        name=name,
    )


def editable(table: Table, frame: pd.DataFrame) -> pd.DataFrame:
    """Return cells in the table's order of columns: names as text, numbers as numbers where all are."""
    columns = {}
    for name, column in table.columns.items():
        if name not in frame:
            continue
        values = frame[name]
        if column.is_label:
            columns[name] = _texts(values)
        else:
            numbers = pd.to_numeric(values, errors="coerce")
            is_numeric = bool((numbers.notna() | values.isna()).all())
            columns[name] = numbers.astype(float) if is_numeric else _texts(values)
    return pd.DataFrame(columns).reset_index(drop=True)


def _texts(values: pd.Series) -> pd.Series:
    return values.astype(object).map(_text).astype(object)


def _text(value: Any) -> str | None:
    if pd.isna(value):
        return None
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def check_tables(
    system_name: str,
    frames: Mapping[str, pd.DataFrame],
    sections: Mapping[str, Any],
    folder: Path,
    answers: Mapping[str, Any] | None = None,
) -> Checked:
    """Check tables, and store the scenario that solves them where they are valid.

    answers  to questions that the tables leave open, by parameter; others are assumed as the questions say
    """
    system = find_system(system_name)
    kind = system.problem
    needed = [table.name for table in kind.tables if table.name not in kind.optional_tables]
    lost = [f"{name}: is missing" for name in needed if name not in frames]
    cells = {name: _without_empty(frame) for name, frame in frames.items()}
    faults = [fault for name, frame in cells.items() for fault in active_cells(_from_one(frame), name)]
    questions: tuple[OpenQuestion, ...] = ()
    try:
        tables = check_problem(kind.tables, cells, kind.from_tables, [*lost, *faults])
        made = make_with_notes(lambda: kind.from_tables(tables))
        questions = tuple(kind.questions(made)) if kind.questions is not None else ()
        values = {
            question.parameter: (answers or {}).get(question.parameter, question.assumed)
            for question in questions
        }
        values = {name: value for name, value in values.items() if value is not None}
        problem = adjust_with_notes(kind.adjust, made, values)
    except InputError as error:
        return Checked(faults=error.faults, questions=questions)
    doubts = [
        doubt
        for name, frame in tables.items()
        for doubt in find_unusual(kind.table_by_name[name], frame, name)
    ]
    doubts += find_disproportions(kind.proportions, tables)
    doubts += doubts_of(problem)
    drawings = kind.draw(problem) if kind.draw is not None else ()
    return Checked(
        faults=(),
        doubts=tuple(doubts),
        questions=questions,
        size=sizes(problem.size()),
        digest=_store(system, made.to_tables(), {**sections, "problem": values}, folder),
        drawing=next(iter(drawings), None),
    )


def _without_empty(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table without optional columns that are empty, which a user has added and not filled."""
    return frame.dropna(axis=1, how="all") if len(frame) else frame


def _from_one(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame with rows counted from 1 in errors."""
    frame = frame.copy(deep=False)
    frame.attrs["first_row"] = 1
    return frame


def _store(
    system: System, tables: Mapping[str, pd.DataFrame], sections: Mapping[str, Any], folder: Path
) -> str:
    """Store a scenario with its tables in a folder named by a digest of both; return the digest.

    sections  of the scenario; that of the problem has adjustments only
    """
    problem = {"source": "tables", "path": ".", **sections.get("problem", {})}
    document = {"system": system.name, **sections, "problem": problem}
    text = tomli_w.dumps(document)
    name = hashlib.sha256((digest(tables) + text).encode()).hexdigest()[:16]
    if not (folder / name / SCENARIO).is_file():
        with replace_folder(folder / name) as partial:
            _write(system, tables, partial)
            (partial / SCENARIO).write_text(text, encoding="utf-8")
    return name


def _write(system: System, tables: Mapping[str, pd.DataFrame], folder: Path) -> None:
    """Write the tables of a problem as CSV; optional ones without rows are left out."""
    for name, frame in tables.items():
        if len(frame) or name not in system.problem.optional_tables:
            write_table(frame, folder / f"{name}.csv")


def add_plan(stored: Path, given: Sequence[GivenFile], label: str = "today") -> str:
    """Store a scenario again with an existing plan that stands beside its designs; return its digest.

    stored  folder of the scenario
    given   the tables of the plan, or a file that its system reads, such as a list of tunnels
    raises  InputError and PlanRejected for what is no plan of its problem
    """
    document = parse_toml(read_text(stored / SCENARIO))
    scenario = load(stored / SCENARIO)
    with tempfile.TemporaryDirectory(dir=stored.parent) as temporary:
        files = store_files(given, Path(temporary))
        if files.faults or not files.paths:
            raise InputError(*(files.faults or ("no file is given",)))
        path = files.paths[0]
        if len(files.paths) > 1:  # the tables of one plan, each in a folder of its own
            path = Path(temporary, PLANS_FOLDER)
            path.mkdir()
            for file in files.paths:
                shutil.copy(file, path / file.name)
        try:
            plan = take_plan(scenario.system, scenario.make_problem(), path, label)
        except (InputError, PlanRejected) as error:
            lines = str(error).replace(f"{path.parent}/", "").split("\n")
            raise InputError(*lines) from None
    document["plans"] = {**document.get("plans", {}), label: f"{PLANS_FOLDER}/{label}"}
    text = tomli_w.dumps(document)
    name = hashlib.sha256((stored.name + digest(plan.to_tables()) + text).encode()).hexdigest()[:16]
    if not (stored.parent / name / SCENARIO).is_file():
        with replace_folder(stored.parent / name) as partial:
            shutil.copytree(stored, partial, dirs_exist_ok=True)
            write_plan(plan, partial / PLANS_FOLDER / label, "csv")
            (partial / SCENARIO).write_text(text, encoding="utf-8")
    return name


def pack(folder: Path, name: str) -> bytes:
    """Return a stored scenario as a zip archive of a folder `name`, which `planner solve` takes unpacked."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                archive.write(path, f"{name}/{path.relative_to(folder)}")
    return content.getvalue()


def plain_scenario_name(text: str) -> str:
    """Return a name in plain letters for files, such as `my_network`; raise InputError where none is left."""
    name = re.sub(r"\s+", "_", text.strip())
    if fault := name_fault(name):
        raise InputError(f"the name {fault}")
    return name


def save_scenario(stored: Path, name: str) -> str:
    """Copy a stored scenario into the first folder of the user's scenarios; return its name there.

    raises  InputError for a name that is taken, and where there is no folder or it cannot be written
    """
    folders = own_folders()
    if not folders:
        raise InputError("no folder for scenarios: start the dashboard with --scenarios FOLDER")
    plain = plain_scenario_name(name)
    document = parse_toml(read_text(stored / SCENARIO))
    full_name = f"{document['system']}/{plain}"
    if full_name in scenario_names():
        raise InputError(f"{full_name}: there is a scenario of this name; choose another")
    document["problem"]["path"] = plain
    if "plans" in document:
        document["plans"] = {label: f"{plain}/{path}" for label, path in document["plans"].items()}
    system_folder = folders[0] / document["system"]
    try:
        system_folder.mkdir(parents=True, exist_ok=True)
        with replace_folder(system_folder / plain) as partial:
            for path in stored.glob("*.csv"):
                shutil.copy(path, partial / path.name)
            if (stored / PLANS_FOLDER).is_dir():
                shutil.copytree(stored / PLANS_FOLDER, partial / PLANS_FOLDER)
        (system_folder / f"{plain}.toml").write_text(tomli_w.dumps(document), encoding="utf-8")
    except OSError as error:
        raise InputError(f"{full_name}: cannot be written ({error.strerror or error})") from None
    return full_name
