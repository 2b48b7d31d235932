"""Files of flow records: recognized by their first bytes, and read into one table."""

from __future__ import annotations

import json
import zoneinfo
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np

from planner.contract.notes import add_note
from planner.contract.tables import SHOWN_ROWS
from planner.contract.units import DAY_S
from planner.errors import InputError
from planner_models.flowrecords.blocks import open_expanded
from planner_models.flowrecords.captures import is_capture, read_capture
from planner_models.flowrecords.dialects import Form, find_dialect, split_header
from planner_models.flowrecords.records import FlowRecords, join_records
from planner_models.flowrecords.text_records import read_text_records, text_form

BEGIN_BYTES: Final = 1 << 16
MAX_RECORDS: Final = 20_000_000


@dataclass(frozen=True, kw_only=True)
class ReadFile:
    """A file that was read: its form in words, its records, and the field of each column."""

    path: Path
    form: str
    records: int
    columns: Mapping[str, str]


def read_records(
    paths: Sequence[Path],
    *,
    columns: Mapping[str, str] | None = None,
    time_zone: str = "UTC",
    idle_s: float = 30.0,
) -> tuple[FlowRecords, list[ReadFile]]:
    """Read the records of files of any form; the order of files and records does not matter.

    columns    column of each field, for delimited tables and JSON objects of no known tool
    time_zone  of times that do not say theirs
    idle_s     gap between packets of a capture that ends a flow

    raises     InputError for files that are none, and records far outside the time of all others
    """
    if time_zone not in _names_of_zones():
        raise InputError(f"time_zone is '{time_zone[:60]}', must be a zone such as Europe/Berlin, or UTC")
    shares: list[FlowRecords] = []
    files: list[ReadFile] = []
    for path in sorted(paths):
        records, file = _read_file(path, columns, time_zone, idle_s)
        _require_one_time(records, path.name)
        shares.append(records)
        files.append(file)
        if sum(map(len, shares)) > MAX_RECORDS:
            raise InputError(f"{path.name}: makes over {MAX_RECORDS:,} records in all; read shorter times")
    return join_records(shares), files


@cache
def _names_of_zones() -> frozenset[str]:
    """Return the names of all time zones; the system's folder of zones is read once."""
    return frozenset(zoneinfo.available_timezones())


def _read_file(
    path: Path, columns: Mapping[str, str] | None, time_zone: str, idle_s: float
) -> tuple[FlowRecords, ReadFile]:
    with open_expanded(path) as file:
        begin = file.read(BEGIN_BYTES)
    if not begin:
        raise InputError(f"{path.name}: is empty")
    if is_capture(begin[:4]):
        records = read_capture(path, idle_s=idle_s)
        return records, ReadFile(path=path, form="capture of packets", records=len(records), columns={})
    if b"\0" in begin:
        raise InputError(f"{path.name}: is no text and no capture (pcap, pcapng); export it as CSV or JSON")
    text = read_text_records(path, text_form(begin), columns=columns, time_zone=time_zone)
    if not text.has_zones:
        reading = "are read as UTC; else set time_zone" if time_zone == "UTC" else f"are of {time_zone}"
        add_note(f"assumed: {path.name}: times without a zone {reading}")
    file_read = ReadFile(path=path, form=text.dialect.name, records=len(text.records), columns=text.columns)
    return text.records, file_read


def _require_one_time(records: FlowRecords, name: str) -> None:
    """Raise InputError for records over a day outside the time of the others: an exporter's clock is wrong.

    That time is the middle half of the starts, and as much again on both sides.
    """
    lower, upper = np.quantile(records.start_s, [0.25, 0.75])
    width = 2 * (upper - lower) + DAY_S
    far = (records.start_s < lower - width) | (records.end_s > upper + width)
    if not far.any():
        return
    rows = np.flatnonzero(far)
    exporters = sorted({records.exporters[code] for code in records.exporter[rows].tolist() if code >= 0})
    of = f", of exporter {', '.join(exporters[:SHOWN_ROWS])}" if exporters else ""
    shown = np.datetime_as_string(np.array([records.start_s[rows[0]]]).astype("datetime64[s]"))[0]
    raise InputError(
        f"{name}: {len(rows):,} of {len(records):,} records are over a day outside the time of the others, "
        f"the first at {shown}{of}; is a clock wrong?"
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
