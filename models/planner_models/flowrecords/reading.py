"""Files of flow records: recognized by their first bytes, and read block by block."""

from __future__ import annotations

import json
import zoneinfo
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from planner.contract.notes import add_note
from planner.errors import InputError
from planner_models.flowrecords.blocks import open_expanded
from planner_models.flowrecords.captures import is_capture, read_capture
from planner_models.flowrecords.clocks import StartHours, describe_far
from planner_models.flowrecords.dialects import Form, find_dialect, split_header
from planner_models.flowrecords.records import FlowRecords, join_records
from planner_models.flowrecords.stored_records import MAX_RECORDS, StoredRecords, require_few
from planner_models.flowrecords.text_records import read_text_records, text_form

BEGIN_BYTES: Final = 1 << 16
MAX_HELD_RECORDS: Final = 20_000_000
"""Records of sources that need all of them in memory."""


@dataclass(frozen=True, kw_only=True)
class ReadFile:
    """A file that was read: its form in words, its records, and the field of each column."""

    path: Path
    form: str
    records: int
    columns: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class ReadSettings:
    """Settings of reading files of flow records.

    columns    column of each field, for delimited tables and JSON objects of no known tool
    time_zone  of times that do not say theirs
    idle_s     gap between packets of a capture that ends a flow
    """

    columns: Mapping[str, str] | None = None
    time_zone: str = "UTC"
    idle_s: float = 30.0

    def __post_init__(self) -> None:
        if self.time_zone not in _names_of_zones():
            raise InputError(
                f"time_zone is '{self.time_zone[:60]}', must be a zone such as Europe/Berlin, or UTC"
            )


@dataclass(frozen=True, kw_only=True, eq=False)
class FileBlock:
    """Records of a block of a file, the form of the file in words, and the field of each column."""

    records: FlowRecords
    form: str
    columns: Mapping[str, str]
    has_zones: bool = True


def read_records(
    paths: Sequence[Path],
    *,
    columns: Mapping[str, str] | None = None,
    time_zone: str = "UTC",
    idle_s: float = 30.0,
) -> tuple[FlowRecords, list[ReadFile]]:
    """Read the records of files of any form into memory; the order of files and records does not matter.

    raises     InputError for files that are none, records far outside the time of all others, and more than
               MAX_HELD_RECORDS
    """
    settings = ReadSettings(columns=columns, time_zone=time_zone, idle_s=idle_s)
    shares: list[FlowRecords] = []
    files = []
    count = 0
    for path in sorted(paths):

        def add(records: FlowRecords, name: str = path.name) -> None:
            nonlocal count
            count += len(records)
            require_few(count, MAX_HELD_RECORDS, name)
            shares.append(records)

        files.append(read_file(path, settings, add))
    return join_records(shares), files


def open_records(paths: Sequence[Path], settings: ReadSettings) -> tuple[StoredRecords, list[ReadFile]]:
    """Return the records of files of any form, in memory where they are few, else in a temporary file.

    The caller enters the records as a context, whose end removes the file.

    raises  InputError as `read_records`, for more than MAX_RECORDS, and where there is no space for the file
    """
    stored = StoredRecords()
    files = []
    try:
        for path in sorted(paths):

            def add(records: FlowRecords, name: str = path.name) -> None:
                require_few(len(stored) + len(records), MAX_RECORDS, name)
                stored.add(records)

            files.append(read_file(path, settings, add))
    except BaseException:
        stored.close()
        raise
    return stored, files


@cache
def _names_of_zones() -> frozenset[str]:
    """Return the names of all time zones; the system's folder of zones is read once."""
    return frozenset(zoneinfo.available_timezones())


def read_file(path: Path, settings: ReadSettings, add: Callable[[FlowRecords], None]) -> ReadFile:
    """Read a file, and give each block of its records to `add`.

    raises  InputError for a file that is none, and records far outside the time of all others
    """
    hours = StartHours()
    count = 0
    has_zones = True
    block: FileBlock | None = None
    for block in read_file_blocks(path, settings):
        hours.add(block.records)
        add(block.records)
        count += len(block.records)
        has_zones = has_zones and block.has_zones
    assert block is not None
    if not has_zones:
        zone = settings.time_zone
        reading = "are read as UTC; else set time_zone" if zone == "UTC" else f"are of {zone}"
        add_note(f"assumed: {path.name}: times without a zone {reading}")
    if not hours.is_one_time():
        again = (same.records for same in read_file_blocks(path, settings))
        raise describe_far(again, hours.limits(), path.name)
    return ReadFile(path=path, form=block.form, records=count, columns=block.columns)


def read_file_blocks(path: Path, settings: ReadSettings) -> Iterator[FileBlock]:
    """Yield the records of a file in blocks, one or more; raise InputError for a file that is none."""
    with open_expanded(path) as file:
        begin = file.read(BEGIN_BYTES)
    if not begin:
        raise InputError(f"{path.name}: is empty")
    if is_capture(begin[:4]):
        for records in read_capture(path, idle_s=settings.idle_s):
            yield FileBlock(records=records, form="capture of packets", columns={})
        return
    if b"\0" in begin:
        raise InputError(f"{path.name}: is no text and no capture (pcap, pcapng); export it as CSV or JSON")
    for text in read_text_records(
        path, text_form(begin), columns=settings.columns, time_zone=settings.time_zone
    ):
        yield FileBlock(
            records=text.records, form=text.dialect.name, columns=text.columns, has_zones=text.has_zones
        )


def recognize_file(path: Path) -> tuple[str, dict[str, str]] | None:
    """Return the form of a file of flow records in words, and the field of each column, "" for none.

    None where its first bytes are of no such file.
    """
    try:
        with open_expanded(path) as file:
            begin = file.read(BEGIN_BYTES)
    except InputError:
        return None
    if is_capture(begin[:4]):
        return "capture of packets", {}
    if b"\0" in begin or not begin:
        return None
    form = text_form(begin)
    keys = _keys(begin, form)
    dialect = find_dialect(keys, form)
    if dialect is None:
        return None
    return dialect.name, dialect.fields_of(keys)


def _keys(begin: bytes, form: Form) -> list[str]:
    """Return the columns of the header, or the keys of the first object, at the begin of a text."""
    text = begin.decode("utf-8", errors="replace").lstrip("\ufeff")
    if form == "csv":
        return split_header(text.partition("\n")[0].strip())[0]
    try:
        first, _ = json.JSONDecoder().raw_decode(text[max(text.find("{"), 0) :])
    except (ValueError, RecursionError):
        return []
    return list(first) if isinstance(first, dict) else []
