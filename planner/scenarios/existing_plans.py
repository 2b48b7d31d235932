"""Plans made elsewhere: objects, tables in memory, folders, workbooks and files of other tools.

An existing plan stands beside the designs of a comparison: it is read for the problem, then checked and
measured as theirs are. It claims nothing, so that each limit that it violates is a result.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from planner.contract.columns import match_columns
from planner.contract.design import Decision, Design
from planner.contract.proof import Proof, Status
from planner.contract.system import System
from planner.contract.table import Table
from planner.errors import InputError, PlanRejected
from planner.formatting import few
from planner.io.in_memory import take_tables
from planner.io.recognition import choose_table, list_sheets
from planner.io.table_files import find_tables, read_tables
from planner.scenarios.installed_systems import load_system

PLAN_FOLDER = "plan"
"""Subfolder of a saved run that has the tables of its plan."""


def take_plan(system: System, problem: Any, plan: Any, where: str) -> Any:
    """Return a plan of a system from any of its forms.

    plan    a plan; its tables by name, as frames, lists of records or columns; one table alone; a path
    where   name of the plan in errors, such as "plans.today"
    raises  InputError for another form and for invalid tables, PlanRejected for tables of another problem
    """
    try:
        if isinstance(plan, str | Path):
            return read_plan(system, problem, Path(plan))
        return system.plan.from_tables(problem, _tables_of(system, plan))
    except InputError as error:
        raise InputError(*_prefixed(error.faults, where)) from None
    except PlanRejected as error:
        raise PlanRejected(*_prefixed([str(error)], where)) from None


def _prefixed(texts: Iterable[str], where: str) -> list[str]:
    """Return texts that begin with the name of their plan."""
    return [text if text.startswith(where) else f"{where}: {text.removeprefix('plan: ')}" for text in texts]


def read_plan(system: System, problem: Any, path: Path) -> Any:
    """Read a plan from the tables in a folder, or in `plan/` there, as `planner solve --out` writes them.

    A file is a workbook or a table of a plan, or a form of another tool that the system reads.

    raises  InputError where no table of the system is there, PlanRejected if the tables are no plan
    """
    tables = system.plan.tables
    names = [table.name for table in tables]
    if path.is_dir():
        files: Mapping[str, Any] = find_tables(tables, path, names)
        if not files:
            files = find_tables(tables, _saved_plan(path), names)
    elif path.is_file():
        read = None if system.plan.read_file is None else system.plan.read_file(problem, path)
        if read is not None:
            return system.plan.from_tables(problem, read)
        choices = [(choose_table(sheet, tables), sheet) for sheet in list_sheets(path)]
        files = {str(choice.table): sheet.file() for choice, sheet in choices if choice.is_complete}
    else:
        raise InputError(f"{path}: no such file or folder")
    if not files:
        raise InputError(f"{path}: has no table of a plan; {system.name} has {', '.join(names)}")
    return system.plan.from_tables(problem, read_tables(tables, files))


def _saved_plan(folder: Path) -> Path:
    """Return the folder with the tables of the plan in a saved run, or in the saved result of one design.

    raises  InputError where the result has plans of several designs
    """
    if (folder / PLAN_FOLDER).is_dir():
        return folder / PLAN_FOLDER
    saved = sorted(path.name for path in folder.iterdir() if (path / PLAN_FOLDER).is_dir())
    if len(saved) > 1:
        raise InputError(
            f"{folder}: has plans of {few(saved)}; name one of them, such as {folder / saved[0]}"
        )
    return folder / saved[0] / PLAN_FOLDER if saved else folder


def _tables_of(system: System, plan: Any) -> Mapping[str, pd.DataFrame]:
    """Return the tables of a plan in memory; raise InputError for another object."""
    tables = system.plan.tables
    names = [table.name for table in tables]
    if hasattr(plan, "to_tables"):
        plan = plan.to_tables()
        unknown = [name for name in plan if name not in names]
        if unknown:
            raise PlanRejected(f"is no plan of {system.name}: it has the table '{unknown[0]}'")
    elif _is_table(plan, names):
        frame = pd.DataFrame(plan)
        plan = {_name_table(tables, frame): frame}
    elif not isinstance(plan, Mapping):
        raise InputError(
            f"is of type {type(plan).__name__}, must be a plan of {system.name}, or tables of one: "
            + ", ".join(names)
        )
    if not plan:
        raise InputError(f"has no table of a plan; {system.name} has {', '.join(names)}")
    frames = take_tables(tables, plan, optional=names)
    return {name: _with_texts(frame) for name, frame in frames.items()}


def _is_table(plan: Any, names: Iterable[str]) -> bool:
    """Return whether data are one table: a frame, records, or columns of which none is a table's name."""
    if isinstance(plan, Mapping):
        has_tables = any(name in plan for name in names) or any(
            isinstance(value, pd.DataFrame) or _is_records(value) for value in plan.values()
        )
        return bool(plan) and not has_tables
    return isinstance(plan, pd.DataFrame) or _is_records(plan)


def _is_records(data: Any) -> bool:
    return isinstance(data, list) and bool(data) and all(isinstance(row, Mapping) for row in data)


def _name_table(tables: Iterable[Table], frame: pd.DataFrame) -> str:
    """Return the name of the table of a plan that has the columns of a frame."""
    columns = [str(name) for name in frame.columns] + [str(name) for name in frame.index.names if name]
    matches = {table.name: match_columns(table, columns, where=table.name) for table in tables}
    counts = {name: len(match.names) for name, match in matches.items() if not match.faults}
    fitting = [name for name, count in counts.items() if count == max(counts.values())]
    if len(fitting) != 1:
        which = f"fit the tables {' and '.join(fitting)}" if fitting else "are those of no table of a plan"
        example = fitting[0] if fitting else next(iter(matches))
        raise InputError(f"its columns {', '.join(columns)} {which}; name the table: {{'{example}': frame}}")
    return fitting[0]


def _with_texts(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table in which cells with a list, such as a path's nodes, are JSON as in files."""
    listed = [
        name
        for name in frame.columns
        if frame[name].dtype == object and frame[name].map(lambda cell: isinstance(cell, list | tuple)).any()
    ]
    return frame.assign(**{name: frame[name].map(_to_text) for name in listed}) if listed else frame


def _to_text(cell: Any) -> Any:
    if not isinstance(cell, list | tuple):
        return cell
    return json.dumps([item if isinstance(item, int) and not isinstance(item, bool) else str(item)
                       for item in cell], ensure_ascii=False)  # fmt: skip


class ExistingPlan:
    """Returns an existing plan as a design decides, whatever it observes."""

    def __init__(self, system: str, label: str, plan: Any) -> None:
        self.system, self.label, self.plan = system, label, plan
        self.__annotations__: dict[str, Any] = {}
        self.__qualname__ = type(self).__qualname__

    def __call__(self, problem: Any) -> Decision[Any]:
        """Read the existing plan."""
        plan = take_plan(load_system(self.system), problem, self.plan, f"plans.{self.label}")
        return Decision(plan=plan, proof=Proof(status=Status.FEASIBLE), guarantees=frozenset())


def existing_plan_design(system: System, label: str, plan: Any) -> Design:
    """Return an existing plan as a design of a comparison."""
    return Design(
        name=label, decide=ExistingPlan(system.name, label, plan), source="existing plan", is_search=False
    )
