"""Recognition of flow records and of the tables beside them, for scenarios over files as users have them."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from planner.errors import InputError
from planner.io.text_files import read_text
from planner_models.flowrecords.reading import recognize_file

MakeT = TypeVar("MakeT", bound=Callable[..., Any])
TABLES: Final[Mapping[str, frozenset[str]]] = {
    "prefixes": frozenset({"prefix"}),
    "exporters": frozenset({"exporter"}),
    "ports": frozenset({"protocol", "target_port", "class"}),
    "counters": frozenset({"node", "sent_bytes"}),
    "network": frozenset({"tail", "head"}),
}
"""Columns by which a table beside the records is recognized, by the parameter that names it."""


@dataclass(frozen=True, kw_only=True)
class Recognized:
    """Files by the parameters that name them, and the columns of the records.

    columns  (file, column, field of the records, "" for those that are not read)
    """

    files: Mapping[str, Path]
    columns: Sequence[tuple[str, str, str]]


def recognize_records(files: Sequence[Path]) -> Recognized | None:
    """Return the parameters that name files, of which some are flow records; None where none is.

    raises  InputError where a table that the records need is missing, and for files that are nothing of it
    """
    forms = {file: recognize_file(file) for file in files if file.is_file()}
    records = {file: form for file, form in forms.items() if form is not None}
    if not records:
        return None
    first, (form, columns) = next(iter(records.items()))
    file_of = {"path": first if len(records) == 1 else _common_folder(list(records))}
    file_of |= _name_tables([file for file in files if file not in records], first)
    if "prefixes" not in file_of:
        raise InputError(
            f"{first.name}: is {form}; add a table prefix, node to the command, which maps addresses to nodes"
        )
    if "network" in file_of:
        file_of["network"] = file_of["network"].parent
    rows = [(first.name, column, field) for column, field in columns.items()]
    return Recognized(files=file_of, columns=sorted(rows, key=lambda row: not row[2]))


def _name_tables(files: Sequence[Path], records: Path) -> dict[str, Path]:
    """Return the file of each table beside records, by the parameter that takes it."""
    file_of: dict[str, Path] = {}
    for file in files:
        name = _name_of_table(file)
        if name is None:
            raise InputError(
                f"{file.name}: is nothing that is read beside flow records, such as {records.name}"
            )
        if name in file_of:
            raise InputError(f"{file.name} and {file_of[name].name} are both a table of {name}; name one")
        file_of[name] = file
    return file_of


def recognized_by(make: MakeT, *, needs_network: bool) -> MakeT:
    """Return a source of problems with the attribute `recognize`.

    needs_network  whether a table of links belongs to its files; a source without one is that of a system
                   which the user names
    """

    def recognize(files: Sequence[Path], is_given: bool) -> Recognized | None:
        if not (needs_network or is_given):
            return None
        recognized = recognize_records(files)
        if recognized is None or ("network" in recognized.files) == needs_network:
            return recognized
        name = recognized.files["path"].name
        if needs_network:
            raise InputError(
                f"{name}: add a table of links (tail, head, capacity_mbps) to the command, or say --system "
                "circuits, coflows or circuitflows"
            )
        raise InputError(f"{name}: a table of links is of --system traffic; leave it out")

    make.recognize = recognize  # type: ignore[attr-defined]
    return make


def _common_folder(files: Sequence[Path]) -> Path:
    """Return the folder of files of records, where it has no other files."""
    folders = {file.parent for file in files}
    folder = folders.pop()
    others = [file.name for file in sorted(folder.iterdir()) if file.is_file() and file not in files]
    if folders or others:
        raise InputError(
            f"{files[0].name}: is one of {len(files)} files of records; put them into a folder of their own"
        )
    return folder


def _name_of_table(file: Path) -> str | None:
    """Return the parameter that a table is for, by its columns."""
    if file.suffix.lower() not in (".csv", ".tsv", ".txt"):
        return None
    header = {name.strip().lower() for name in next(csv.reader(read_text(file).splitlines()[:1]), [])}
    return next((name for name, columns in TABLES.items() if columns <= header), None)
