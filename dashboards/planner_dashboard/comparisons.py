"""Stored comparisons: a worker that has solved a question leaves the result for the requests that follow.

The files lie in the session's own folder, which only this server writes. Systems, designs and tables are
stored by name, so that a comparison takes milliseconds to store, and any worker can load it.
"""

from __future__ import annotations

import pickle
import shutil
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from planner.contract.design import Design
from planner.contract.system import System
from planner.contract.table import Table
from planner.io.table_files import find_tables
from planner.scenarios.catalogue import find_system
from planner.scenarios.scenario import PLANS_FOLDER
from planner_dashboard.question import Question

if TYPE_CHECKING:
    from planner.runs.run import Comparison
    from planner.scenarios.scenario import Scenario

CONTENT: Final = "comparison.pickle"
TABLES: Final = "tables.txt"
"""File with the path of the uploaded tables of a comparison."""


class _Writer(pickle.Pickler):
    """Writes systems, designs and tables of a system by their names."""

    def __init__(self, file: Any, system: System) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self._system = system

    def persistent_id(self, obj: Any) -> tuple[str, ...] | None:
        if isinstance(obj, System):
            return ("system", obj.name)
        if isinstance(obj, Design) and obj.is_search:  # an existing plan has no design of the system
            return ("design", self._system.name, obj.name)
        if isinstance(obj, Table):
            parts = {"problem": self._system.problem.tables, "plan": self._system.plan.tables}
            for kind, tables in parts.items():
                if any(obj is table for table in tables):
                    return ("table", self._system.name, kind, obj.name)
        return None


class _Reader(pickle.Unpickler):
    """Reads the files of `_Writer`."""

    def persistent_load(self, pid: Any) -> Any:
        kind, system, *details = pid
        system_ = find_system(system)
        if kind == "system":
            return system_
        if kind == "design":
            return system_.design(details[0])
        section = system_.problem if details[0] == "problem" else system_.plan
        return next(table for table in section.tables if table.name == details[1])


def store(result: Comparison, scenario: Scenario, question: Question, tables: Path, folder: Path) -> None:
    """Store a comparison with the question that it answers."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with (folder / CONTENT).open("wb") as file:
        _Writer(file, scenario.system).dump((result, question))
    (folder / TABLES).write_text(str(tables), encoding="utf-8")


def copy(folder: Path, target: Path, tables: Path) -> None:
    """Copy a stored comparison into another folder.

    tables  folder of the uploaded tables that the copy refers to
    """
    target.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(folder / CONTENT, target / CONTENT)
    (target / TABLES).write_text(str(tables), encoding="utf-8")


@lru_cache(maxsize=2)
def _load(path: Path, changed_ns: int) -> tuple[Comparison, Question]:  # noqa: ARG001 - a key
    with path.open("rb") as file:
        content: tuple[Comparison, Question] = _Reader(file).load()
    return content


def _load_with_tables(folder: Path) -> tuple[Comparison, Question, Path]:
    """Return a stored comparison, its question, and the folder of its uploaded tables."""
    path = folder / CONTENT
    result, question = _load(path, path.stat().st_mtime_ns)
    return result, question, Path((folder / TABLES).read_text(encoding="utf-8"))


def load(folder: Path) -> Comparison:
    """Return the comparison that is stored in a folder."""
    path = folder / CONTENT
    return _load(path, path.stat().st_mtime_ns)[0]


def load_scenario(folder: Path) -> Scenario:
    """Return the scenario of a stored comparison, with the changes of its question."""
    _, question, tables = _load_with_tables(folder)
    return question.load(tables)


def write_files(folder: Path, out: Path) -> None:
    """Write a stored comparison as files: its scenario, its uploaded tables, and each plan."""
    from planner.runs import files

    result, question, tables = _load_with_tables(folder)
    scenario = question.load(tables)
    shutil.rmtree(out, ignore_errors=True)
    files.save_runs(scenario, result.runs, out)
    if question.upload:  # the download includes its tables
        problem = scenario.system.problem
        for table in find_tables(problem.tables, tables, problem.optional_tables).values():
            shutil.copy(table.path, out / table.path.name)
        if (tables / PLANS_FOLDER).is_dir():
            shutil.copytree(tables / PLANS_FOLDER, out / PLANS_FOLDER, dirs_exist_ok=True)
        (out / "scenario.toml").write_text(scenario.to_toml(tables), encoding="utf-8")
