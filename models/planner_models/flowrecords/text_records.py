"""Flow records in text: delimited tables and JSON objects of the tools that `dialects` lists."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from planner.arrays import Bools, Floats, Ints, Ints32
from planner.contract.tables import abbreviate
from planner.errors import InputError, did_you_mean
from planner.io.text_files import MAX_LINE_BYTES
from planner_models.flowrecords.blocks import read_blocks
from planner_models.flowrecords.cell_values import read_addresses, read_integers, read_times
from planner_models.flowrecords.cells import BROKEN, CUT, Bytes, scan_objects, split_rows
from planner_models.flowrecords.dialects import (
    Dialect,
    Form,
    describe_unknown,
    dialect_of_columns,
    find_dialect,
    split_header,
)
from planner_models.flowrecords.protocols import NUMBERS
from planner_models.flowrecords.records import UNKNOWN, FlowRecords, address_text

ROWS: Final = 1 << 16
"""Records whose cells are found at once, which limits memory whatever a file has."""
MAX_INTEGER: Final = 10**15
"""Most bytes or packets of one record, which a double holds to the integer."""
MAX_COLUMNS: Final = 1_000
SHORTENED: Final = re.compile(r"[0-9.]+ *[KMGT]")
SUMMARY: Final = (b"Summary", b"No matching flows", b"Sys: ", b"Time window", b"Total flows processed")
"""Beginnings of lines that nfdump writes behind its records."""
SURROUNDING: Final = b"\xef\xbb\xbf"
LINE_BREAK: Final = ord("\n")
RETURN: Final = ord("\r")


@dataclass(frozen=True, kw_only=True, eq=False)
class TextRecords:
    """Records of a block of a text file.

    dialect    of the file
    columns    field by column that was read, and "" for the others, in the file's order
    has_zones  whether all times say their zone
    """

    records: FlowRecords
    dialect: Dialect
    columns: Mapping[str, str]
    has_zones: bool


@dataclass(frozen=True, kw_only=True, eq=False)
class _Cells:
    """Limits of the cells of some rows of a block, by field; `rows` counts lines or objects from 1."""

    name: str
    text: Bytes
    begins: Mapping[str, Ints32]
    ends: Mapping[str, Ints32]
    rows: Ints
    given: Mapping[str, str]

    def __len__(self) -> int:
        return len(self.rows)

    def cell(self, field: str, row: int) -> str:
        """Return the text of a cell."""
        begin, end = int(self.begins[field][row]), int(self.ends[field][row])
        return self.text[max(begin, 0) : max(end, 0)].tobytes()[:100].decode("utf-8", errors="replace")

    def fault(self, field: str, row: int, rule: str) -> InputError:
        """Return the error of a cell."""
        shown = abbreviate(self.cell(field, row))
        state = f"is '{shown}'" if shown else "is missing"
        return InputError(f"{self.name} row {int(self.rows[row]):,}: {self.given[field]} {state}, {rule}")


def read_text_records(
    path: Path, form: Form, *, columns: Mapping[str, str] | None = None, time_zone: str = "UTC"
) -> Iterator[TextRecords]:
    """Yield the records of a text file block by block, at most ROWS in each.

    columns    name of the column or key of each field, in place of a dialect
    time_zone  of times that do not say theirs

    raises     InputError for a file of no dialect, and for the first record that is none
    """
    source = _delimited(path, columns) if form == "csv" else _objects(path, columns)
    is_empty = True
    for cells, dialect, keys in source:
        records, has_zones = _records(cells, dialect, time_zone)
        is_empty = False
        yield TextRecords(
            records=records, dialect=dialect, columns=dialect.fields_of(keys), has_zones=has_zones
        )
    if is_empty:
        raise InputError(f"{path.name}: has no flow record")


Scanned = Iterator[tuple[_Cells, Dialect, list[str]]]


def _delimited(path: Path, columns: Mapping[str, str] | None) -> Scanned:
    """Yield the cells of a delimited table."""
    name = path.name
    header: list[str] | None = None
    slots: Ints = np.empty(0, np.int64)
    dialect: Dialect | None = None
    delimiter = ","
    line = 1
    for block in _whole_lines(path):
        begin_at = 0
        if header is None:
            first, newline, _ = block.partition(b"\n")
            begin_at = len(first) + len(newline)
            text = first.removeprefix(SURROUNDING).removesuffix(b"\r").decode("utf-8", errors="replace")
            header, delimiter = split_header(text)
            if len(header) > MAX_COLUMNS:
                raise InputError(
                    f"{name} row 1: has {len(header):,} columns, must have at most {MAX_COLUMNS:,}"
                )
            dialect = _dialect(header, "csv", columns, name)
            slots = _slots(header, dialect)
            line = 2
        assert dialect is not None
        text_bytes = np.frombuffer(block, dtype=np.uint8)
        ends = np.flatnonzero(text_bytes == LINE_BREAK).astype(np.int64)
        if not block.endswith(b"\n"):
            ends = np.append(ends, len(block))
        begins = np.append(0, ends[:-1] + 1)
        is_row = begins >= begin_at
        begins, ends = begins[is_row], ends[is_row]
        lines = line + np.arange(len(begins), dtype=np.int64)
        line += len(begins)
        has_return = (ends > begins) & (text_bytes[np.maximum(ends - 1, 0)] == RETURN)
        ends = ends - has_return
        filled = ends > begins
        begins, ends, lines = begins[filled], ends[filled], lines[filled]
        stop = _summary(block, text_bytes, begins)
        yield from _cells_of_rows(
            name, text_bytes, begins[:stop], ends[:stop], lines[:stop], ord(delimiter), slots, header, dialect
        )
        if stop < len(begins):
            return


def _cells_of_rows(
    name: str,
    text: Bytes,
    begins: Ints,
    ends: Ints,
    lines: Ints,
    delimiter: int,
    slots: Ints,
    header: list[str],
    dialect: Dialect,
) -> Scanned:
    fields = _fields(header, dialect)
    for low in range(0, len(begins), ROWS):
        rows = lines[low : low + ROWS]
        limits = [np.full((len(fields), len(rows)), -1, dtype=np.int32) for _ in range(2)]
        wrong = split_rows(
            text, begins[low : low + ROWS], ends[low : low + ROWS], delimiter, slots, limits[0], limits[1]
        )
        if wrong >= 0:
            content = text[begins[low + wrong] : ends[low + wrong]].tobytes()
            count = content.count(bytes([delimiter])) + 1
            raise InputError(
                f"{name} row {int(rows[wrong]):,}: has {count:,} fields, the header has {len(header):,}; "
                "is the file whole?"
            )
        yield (
            _Cells(
                name=name,
                text=text,
                begins={field: limits[0][slot] for slot, field in enumerate(fields)},
                ends={field: limits[1][slot] for slot, field in enumerate(fields)},
                rows=rows,
                given=fields,
            ),
            dialect,
            header,
        )


def _summary(block: bytes, text: Bytes, begins: Ints) -> int:
    """Return the first row that is a summary of nfdump, or the number of rows."""
    letters = np.array(sorted({start[0] for start in SUMMARY}), dtype=np.uint8)
    for row in np.flatnonzero(np.isin(text[begins], letters)).tolist():
        begin = int(begins[row])
        if block.startswith(SUMMARY, begin):
            return int(row)
    return len(begins)


def _whole_lines(path: Path) -> Iterator[bytes]:
    """Yield a file in blocks of whole lines."""
    tail = b""
    is_first = True
    for block in read_blocks(path):
        if b"\0" in block:
            raise InputError(f"{path.name}: is a binary file, must be text")
        end = block.rfind(b"\n") + 1
        if not end:
            tail += block
            if len(tail) > MAX_LINE_BYTES:
                raise InputError(f"{path.name}: has a line of over {MAX_LINE_BYTES:,} bytes; is it a table?")
            continue
        yield tail + block[:end]
        is_first = False
        tail = block[end:]
    if tail:
        yield tail
    elif is_first:
        raise InputError(f"{path.name}: is empty")


def _objects(path: Path, columns: Mapping[str, str] | None) -> Scanned:
    """Yield the cells of JSON objects, one on each line or in a list."""
    name = path.name
    dialect: Dialect | None = None
    keys: list[str] = []
    tail, row, offset = b"", 0, 0
    fields: dict[str, str] = {}
    table = (np.empty(0, np.uint8), np.empty(0, np.int64), np.empty(0, np.int64))
    for block in _with_end(read_blocks(path)):
        is_last = block is None
        content = tail + (block or b"")
        if dialect is None:
            content = content.removeprefix(SURROUNDING)
            first = _first_object(content, name, is_last)
            if first is None:
                tail = content
                continue
            keys = list(first)
            dialect = _dialect(keys, "json", columns, name)
            fields = {field: names[0] for field, names in dialect.names.items()}
            table = _key_table(dialect, list(fields))
        text = np.frombuffer(content, dtype=np.uint8)
        position, result = 0, 0
        while position < len(text):
            begins, ends = (np.empty((len(fields), ROWS), dtype=np.int32) for _ in range(2))
            count, position, result = scan_objects(text, position, *table, begins, ends)
            if count:
                yield (
                    _Cells(
                        name=name,
                        text=text,
                        begins={field: begins[slot, :count] for slot, field in enumerate(fields)},
                        ends={field: ends[slot, :count] for slot, field in enumerate(fields)},
                        rows=row + 1 + np.arange(count, dtype=np.int64),
                        given=fields,
                    ),
                    dialect,
                    keys,
                )
            row += count
            if result == BROKEN:
                raise InputError(f"{name} row {row + 1:,}: is no JSON, at byte {offset + position:,}")
            if result == CUT:
                break
        offset += position
        tail = content[position:]
        if len(tail) > MAX_LINE_BYTES:
            raise InputError(f"{name} row {row + 1:,}: has over {MAX_LINE_BYTES:,} bytes, is no flow record")
        if is_last and result == CUT and tail:
            raise InputError(
                f"{name} row {row + 1:,}: is cut, at byte {offset + len(tail):,}; is the file whole?"
            )


def _with_end(blocks: Iterator[bytes]) -> Iterator[bytes | None]:
    yield from blocks
    yield None


def _first_object(content: bytes, name: str, is_last: bool) -> dict[str, Any] | None:
    """Return the first object of a text; None where it may go on behind the block."""
    begin = content.find(b"{")
    if begin < 0 or content[:begin].strip(b" \t\r\n["):
        if begin < 0 and not is_last and len(content) <= MAX_LINE_BYTES:
            return None
        raise InputError(f"{name} row 1: is no JSON object" if content.strip() else f"{name}: is empty")
    try:
        first, _ = json.JSONDecoder().raw_decode(
            content[begin : begin + MAX_LINE_BYTES].decode("utf-8", errors="replace")
        )
    except (ValueError, RecursionError) as error:
        if not is_last and len(content) - begin <= MAX_LINE_BYTES:
            return None
        raise InputError(f"{name} row 1: is no JSON ({str(error)[:80]})") from None
    return dict(first)


def _key_table(dialect: Dialect, fields: list[str]) -> tuple[Bytes, Ints, Ints]:
    """Return the keys of a dialect, where each ends, and the slot of its field."""
    pairs = [(key.encode(), slot) for slot, field in enumerate(fields) for key in dialect.names[field]]
    return (
        np.frombuffer(b"".join(key for key, _ in pairs), dtype=np.uint8),
        np.cumsum([len(key) for key, _ in pairs]).astype(np.int64),
        np.array([slot for _, slot in pairs], dtype=np.int64),
    )


def _dialect(keys: list[str], form: Form, columns: Mapping[str, str] | None, name: str) -> Dialect:
    if columns is not None:
        absent = [
            f"{name}: {field}: has no column '{column}'" + did_you_mean(column, keys)
            for field, column in columns.items()
            if form == "csv" and column not in keys
        ]
        dialect = dialect_of_columns(columns, form, name)
        if absent:
            raise InputError(*absent)
        return dialect
    recognized = find_dialect(keys, form)
    if recognized is None:
        raise InputError(f"{name} row 1: {describe_unknown(keys, form)}")
    return recognized


def _fields(header: list[str], dialect: Dialect) -> dict[str, str]:
    """Return the column of each field that a header has."""
    return {
        field: next(name for name in names if name in header)
        for field, names in dialect.names.items()
        if any(name in header for name in names)
    }


def _slots(header: list[str], dialect: Dialect) -> Ints:
    """Return the slot of each column, -1 for those that are not read."""
    fields = _fields(header, dialect)
    twice = [name for name in fields.values() if header.count(name) > 1]
    if twice:
        raise InputError(f"column {twice[0]} is in the header more than once")
    slot_of = {name: slot for slot, name in enumerate(fields.values())}
    return np.array([slot_of.get(name, -1) for name in header], dtype=np.int64)


def _records(cells: _Cells, dialect: Dialect, time_zone: str) -> tuple[FlowRecords, bool]:
    """Return the records of some rows, and whether their times say their zone."""
    start_s, has_zone = _times(cells, dialect, "start", time_zone)
    end_s, end_zone = _ends(cells, dialect, start_s, time_zone)
    absent = np.isnan(start_s)
    if absent.any():
        raise cells.fault("start", int(absent.argmax()), "must be a time")
    early = end_s < start_s
    if early.any():
        row = int(early.argmax())
        field = "end" if "end" in cells.begins else "duration"
        raise cells.fault(field, row, "must not be before the start of the record")
    source, target = _addresses(cells, "source"), _addresses(cells, "target")
    octets, packets = _required(cells, "bytes"), _integers(cells, "packets", MAX_INTEGER)
    packets = np.where(packets == UNKNOWN, np.where(octets > 0, 1, 0), packets)
    odd = ((octets == 0) & (packets > 0)) | ((octets > 0) & (packets == 0))
    if odd.any():
        row = int(odd.argmax())
        raise cells.fault("bytes", row, f"which does not fit {packets[row]:,} packets")
    sampling = _integers(cells, "sampling", 1 << 31)
    exporter, names = _exporters(cells)
    records = FlowRecords(
        start_s=start_s,
        end_s=end_s,
        source_high=source[0],
        source_low=source[1],
        target_high=target[0],
        target_low=target[1],
        protocol=_protocols(cells),
        source_port=_integers(cells, "source_port", 65535, is_dotted=True),
        target_port=_integers(cells, "target_port", 65535, is_dotted=True),
        packets=packets,
        octets=octets,
        sampling=np.where(sampling == 0, UNKNOWN, sampling),
        exporter=exporter,
        input_interface=_integers(cells, "input", 1 << 32),
        output_interface=_integers(cells, "output", 1 << 32),
        direction=_integers(cells, "direction", 255),
        exporters=names,
    )
    return records, bool(has_zone and end_zone)


def _times(cells: _Cells, dialect: Dialect, field: str, time_zone: str) -> tuple[Floats, bool]:
    times_s, has_zone = np.empty(len(cells)), np.empty(len(cells), dtype=np.bool_)
    wrong = read_times(cells.text, cells.begins[field], cells.ends[field], dialect.per_s, times_s, has_zone)
    if wrong >= 0:
        raise cells.fault(field, wrong, "must be a time, such as 2026-11-29 08:00:00.125")
    if has_zone.all():
        return times_s, True
    return _in_utc(times_s, has_zone, time_zone, cells.name), False


def _in_utc(times_s: Floats, has_zone: Bools, time_zone: str, name: str) -> Floats:
    """Return times in UTC; those without a zone are in `time_zone`."""
    if time_zone == "UTC":
        return times_s
    local = np.flatnonzero(~has_zone & np.isfinite(times_s))
    stamps = pd.to_datetime(pd.Series(np.floor(times_s[local])), unit="s")
    try:
        in_zone = stamps.dt.tz_localize(time_zone)
    except ValueError as error:
        raise InputError(
            f"{name}: a time has no single reading in {time_zone} ({str(error)[:80]}); export in UTC"
        ) from None
    utc_s = in_zone.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy("datetime64[s]").astype(np.int64)
    result = times_s.copy()
    result[local] = utc_s + (times_s[local] - np.floor(times_s[local]))
    return result


def _ends(cells: _Cells, dialect: Dialect, start_s: Floats, time_zone: str) -> tuple[Floats, bool]:
    """Return the end of each record: as written, else start and duration, else the start."""
    if "end" in cells.begins:
        end_s, has_zone = _times(cells, dialect, "end", time_zone)
        return np.where(np.isnan(end_s), start_s, end_s), has_zone
    if "duration" not in cells.begins:
        return start_s.copy(), True
    duration_s, is_number = np.empty(len(cells)), np.empty(len(cells), dtype=np.bool_)
    wrong = read_times(cells.text, cells.begins["duration"], cells.ends["duration"], 1, duration_s, is_number)
    if wrong >= 0 or not (np.nan_to_num(duration_s) < 1e8).all():
        row = wrong if wrong >= 0 else int((np.nan_to_num(duration_s) >= 1e8).argmax())
        raise cells.fault("duration", row, "must be a number of seconds, at least 0")
    return start_s + np.nan_to_num(duration_s), True


def _addresses(cells: _Cells, field: str) -> tuple[Ints, Ints]:
    high, low = (np.empty(len(cells), dtype=np.int64) for _ in range(2))
    wrong = read_addresses(cells.text, cells.begins[field], cells.ends[field], high, low)
    if wrong >= 0:
        raise cells.fault(field, wrong, "must be an IPv4 or IPv6 address")
    return high, low


def _integers(cells: _Cells, field: str, limit: int, *, is_dotted: bool = False) -> Ints:
    """Return the integers of a field, UNKNOWN where it is absent."""
    values = np.full(len(cells), UNKNOWN, dtype=np.int64)
    if field not in cells.begins:
        return values
    wrong = read_integers(cells.text, cells.begins[field], cells.ends[field], is_dotted, values)
    if wrong < 0 and len(values) and values.max() > limit:
        wrong = int(values.argmax())
    if wrong >= 0:
        rule = f"must be an integer from 0 to {limit:,}"
        if SHORTENED.match(cells.cell(field, wrong)):
            rule += "; nfdump writes plain numbers with -N"
        raise cells.fault(field, wrong, rule)
    return values


def _required(cells: _Cells, field: str) -> Ints:
    values = _integers(cells, field, MAX_INTEGER)
    if len(values) and values.min() < 0:
        raise cells.fault(field, int(values.argmin()), "must be an integer")
    return values


def _protocols(cells: _Cells) -> Ints:
    """Return the number of each protocol; UNKNOWN for a name that is not in the list."""
    values = np.full(len(cells), UNKNOWN, dtype=np.int64)
    if "protocol" not in cells.begins:
        return values
    begins, ends = cells.begins["protocol"], cells.ends["protocol"]
    remaining = np.arange(len(cells))
    for _ in range(len(NUMBERS) + 1):
        share = np.empty(len(remaining), dtype=np.int64)
        wrong = read_integers(cells.text, begins[remaining], ends[remaining], False, share)
        values[remaining[:wrong] if wrong >= 0 else remaining] = share[:wrong] if wrong >= 0 else share
        if wrong < 0:
            break
        remaining = remaining[wrong:]
        word = cells.cell("protocol", int(remaining[0]))
        same = _equal_cells(cells.text, begins[remaining], ends[remaining], word.encode())
        values[remaining[same]] = NUMBERS.get(word.upper(), UNKNOWN)
        remaining = remaining[~same]
    return values


def _equal_cells(text: Bytes, begins: Ints32, ends: Ints32, word: bytes) -> Bools:
    """Return whether each cell is a word."""
    same: Bools = (ends - begins) == len(word)
    for offset, letter in enumerate(word):
        same[same] = text[begins[same] + offset] == letter
    return same


def _exporters(cells: _Cells) -> tuple[Ints, tuple[str, ...]]:
    """Return the row of each record's exporter, and their names; UNKNOWN for 0.0.0.0 and empty cells."""
    rows = np.full(len(cells), UNKNOWN, dtype=np.int64)
    if "exporter" not in cells.begins:
        return rows, ()
    present = np.flatnonzero(cells.ends["exporter"] > cells.begins["exporter"])
    begins, ends = cells.begins["exporter"][present], cells.ends["exporter"][present]
    high, low = (np.empty(len(present), dtype=np.int64) for _ in range(2))
    wrong = read_addresses(cells.text, begins, ends, high, low)
    if wrong >= 0:
        raise cells.fault("exporter", int(present[wrong]), "must be an IPv4 or IPv6 address")
    order = np.lexsort((low, high))
    is_new = np.ones(len(order), dtype=bool)
    is_new[1:] = (np.diff(high[order]) != 0) | (np.diff(low[order]) != 0)
    code = np.empty(len(order), dtype=np.int64)
    code[order] = np.cumsum(is_new) - 1
    names = [address_text(high[row], low[row]) for row in order[is_new]]
    rows[present] = code
    absent = {"0.0.0.0", "::"}
    present_names = [name for name in names if name not in absent]
    new_row = np.array(
        [present_names.index(name) if name in present_names else UNKNOWN for name in names], dtype=np.int64
    )
    rows[present] = new_row[code] if len(names) else UNKNOWN
    return rows, tuple(present_names)


def text_form(begin: bytes) -> Form:
    """Return whether a text is JSON or a delimited table, by its first byte."""
    return "json" if begin.removeprefix(SURROUNDING).lstrip()[:1] in (b"{", b"[") else "csv"
