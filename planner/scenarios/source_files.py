"""Files that a source of a system reads, such as graphs of other tools: recognized by their endings.

A source that reads files of its own formats has an attribute `suffixes`, their endings; a parameter
`demands` or `matrix` takes a further file. One that finds its files by their content has an attribute
`recognize`, a function (files, whether the system is given) -> parameters that name files, and columns (file,
column, field), or None where none is of the source.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from planner.contract.parameters import parameters_of
from planner.errors import InputError
from planner.scenarios.catalogue import find_system, system_names
from planner.scenarios.read_columns import ReadColumn
from planner.scenarios.scenario import from_document

if TYPE_CHECKING:
    from planner.contract.problem import Problem
    from planner.contract.system import System

MATRICES: Final = (".npy", ".npz", ".pkl", ".pickle")
"""Endings of files that are a matrix of numbers, and no table."""
DEMANDS: Final = frozenset({"demands", "matrix", "total_mbps"})
"""Parameters of sources that say where demands are from."""
BEGIN: Final = 4096
"""Bytes of a JSON file in which networkx says what it is."""


@dataclass(frozen=True, kw_only=True)
class SourceFiles:
    """Files of a source: its name, its parameters that name them, and what is read of their columns."""

    system: System
    source: str
    files: Mapping[str, Path]
    columns: Sequence[ReadColumn] = ()


def find_source(files: Sequence[Path], system: str | None) -> SourceFiles | None:
    """Return the source that reads the first of the files by its ending, with the other one as its demands.

    None where no file has such an ending, as for tables.
    """
    for name in [system] if system is not None else system_names():
        candidate = find_system(name)
        for source, make in candidate.problem.sources.items():
            read = _recognize(candidate, source, make, files, is_given=system is not None)
            read = read or _read_graph(candidate, source, make, files)
            if read is not None:
                return read
    return None


def _recognize(
    system: System, source: str, make: Callable[..., Problem], files: Sequence[Path], *, is_given: bool
) -> SourceFiles | None:
    """Return the files that a source recognizes by their content; None for none.

    is_given  whether the system is given
    """
    recognize = getattr(make, "recognize", None)
    recognized = None if recognize is None else recognize(files, is_given)
    if recognized is None:
        return None
    return SourceFiles(
        system=system,
        source=source,
        files=recognized.files,
        columns=[
            ReadColumn(sheet=sheet, given=given, ours=ours and f"records.{ours}")
            for sheet, given, ours in recognized.columns
        ],
    )


def _read_graph(
    system: System, source: str, make: Callable[..., Problem], files: Sequence[Path]
) -> SourceFiles | None:
    """Return the first file with an ending of a source, with the others as its demands; None for none."""
    graph = next((file for file in files if _is_of(file, getattr(make, "suffixes", ()))), None)
    if graph is None:
        return None
    others = [file for file in files if file != graph]
    named = _name_files(graph, others, parameters_of(make), f"source {source} of {system.name}")
    return SourceFiles(system=system, source=source, files=named)


def _name_files(
    graph: Path, others: Sequence[Path], parameters: Collection[str], reader: str
) -> dict[str, Path]:
    """Return the file of each parameter of a source; raise InputError for one that it does not read.

    reader  the source, in the error
    """
    named = {"path": graph}
    for file in others:
        key = "matrix" if file.suffix.lower() in MATRICES or _is_square_text(file) else "demands"
        if key not in parameters or key in named:
            raise InputError(f"{file}: is nothing that {reader} reads beside {graph.name}")
        named[key] = file
    return named


def _is_of(file: Path, suffixes: Sequence[str]) -> bool:
    """Return whether a file has one of the endings; a JSON file must say that it is a graph."""
    suffix = file.suffix.lower()
    if suffix not in suffixes or not file.is_file():
        return False
    if suffix != ".json":
        return True
    with file.open("rb") as opened:
        begin = opened.read(BEGIN)
    return b'"directed"' in begin or b'"multigraph"' in begin


def _is_square_text(file: Path) -> bool:
    """Return whether the first line of a text has numbers only, as that of a matrix."""
    if file.suffix.lower() not in (".txt", ".csv", ".dat") or not file.is_file():
        return False
    with file.open("rb") as opened:
        words = opened.read(BEGIN).partition(b"\n")[0].replace(b",", b" ").replace(b";", b" ").split()
    try:
        return len([float(word) for word in words]) > 1
    except ValueError:
        return False


def make_problem(
    found: SourceFiles, settings: Mapping[str, Any], folder: Path
) -> tuple[Problem, dict[str, Any]]:
    """Return the problem of the files of a source, and the keys of [problem] that read it.

    settings  further keys of [problem], such as {"total_mbps": 1000}
    """
    keys = {name: Path(os.path.relpath(file, folder)).as_posix() for name, file in found.files.items()}
    document = {"system": found.system.name, "problem": {"source": found.source, **keys, **settings}}
    try:
        problem = from_document(document, name="scenario", folder=folder).make_problem()
    except InputError as error:
        takes_demands = DEMANDS & parameters_of(found.system.problem.sources[found.source]).keys()
        if takes_demands and not DEMANDS & {*keys, *settings}:
            first = found.files["path"].name
            advice = f"{first}: add a file of demands to the command, or say --set problem.total_mbps=1000"
            raise InputError(*error.faults, advice) from None
        raise
    return problem, {**keys, **settings}
