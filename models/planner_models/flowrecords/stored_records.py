"""Flow records of any number: in memory where they are few, else in a temporary file, by parts of flows.

The file has no name: the system removes it with the process, however that ends. It has runs of records, each
in the order of their parts, so that the records of a part are few blocks of the file.
"""

from __future__ import annotations

import errno
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import IO, Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from planner.arrays import Ints
from planner.errors import InputError
from planner_models.flowrecords.partitions import PART_RECORDS, PARTS, group_parts, number_parts
from planner_models.flowrecords.records import COLUMNS, UNKNOWN, FlowRecords, join_records
from planner_models.flowrecords.summaries import Summary, SummaryBuilder

RUN_RECORDS: Final = PART_RECORDS
"""Records that are held in memory before they are written; not fewer than PART_RECORDS."""
MAX_RECORDS: Final = 1 << 30
"""Records of all files; beyond, a part would have more records than are handled together."""
NARROW: Final = {
    "start_s": "f8", "end_s": "f8", "protocol": "i2", "source_port": "i4", "target_port": "i4",
    "exporter": "i4", "direction": "i2",
}  # fmt: skip
"""Types of columns in the file; all others are of 64 bits."""
ROW: Final = np.dtype([(name, NARROW.get(name, "i8")) for name in COLUMNS])
"""A record in the file: 104 bytes."""
Rows = NDArray[np.void]


def require_few(count: int, limit: int, name: str) -> None:
    """Raise InputError where there are more records than may be."""
    if count > limit:
        raise InputError(f"{name}: makes over {limit:,} records in all; read shorter times")


class StoredRecords:
    """Flow records that are added block by block, and read part by part.

    Parts and their order depend on the records and their order alone, whatever the size of blocks and runs.
    It is a context, at whose end the file is gone.
    """

    def __init__(self) -> None:
        self.builder = SummaryBuilder()
        self.names: dict[str, int] = {}
        self.waiting: list[FlowRecords] = []
        self.waiting_count = 0
        self.file: IO[bytes] | None = None
        self.stack = ExitStack()
        self.run_begins: list[int] = []
        self.run_counts: list[Ints] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove the file, if there is one."""
        self.waiting.clear()
        self.stack.close()

    def add(self, records: FlowRecords) -> None:
        """Add a block of records.

        raises  InputError where there is no space for them
        """
        if self.waiting and self.waiting_count + len(records) > RUN_RECORDS:
            self._write_run()
        self.builder.add(records)
        self.waiting.append(records)
        self.waiting_count += len(records)

    def __len__(self) -> int:
        return self.builder.count

    def summary(self) -> Summary:
        """Return the summary of all records."""
        return self.builder.finish()

    def parts(self) -> Iterator[FlowRecords]:
        """Yield the records by parts: all records of a flow are in one, in their order.

        Up to PART_RECORDS are one part.
        """
        if not self.run_counts and self.waiting_count <= PART_RECORDS:
            if self.waiting_count:
                yield join_records(self.waiting)
            return
        if self.waiting:
            self._write_run()
        counts = np.array(self.run_counts)
        for first, behind in group_parts(counts.sum(axis=0)):
            yield self._read_parts(counts, first, behind)

    def _write_run(self) -> None:
        """Write the records that wait to the file, by parts."""
        rows = np.concatenate([self._rows_of(block) for block in self.waiting])
        part_of_row = np.concatenate([number_parts(block) for block in self.waiting])
        self.waiting.clear()
        self.waiting_count = 0
        self.run_begins.append(sum(int(counts.sum()) for counts in self.run_counts))
        self.run_counts.append(np.bincount(part_of_row, minlength=PARTS).astype(np.int64))
        words = rows.view(np.int64).reshape(len(rows), -1)  # taken faster than records of several types
        rows = np.take(words, np.argsort(part_of_row, kind="stable"), axis=0).view(ROW)[:, 0]
        try:
            if self.file is None:
                # unbuffered: a full disk must not be met again when the file is closed
                self.file = self.stack.enter_context(
                    tempfile.TemporaryFile(prefix="planner-", buffering=0)  # noqa: SIM115
                )
            self.file.seek(self.run_begins[-1] * ROW.itemsize)
            write_whole(self.file, rows)
        except OSError as error:
            raise full_disk(error, len(self)) from None

    def _rows_of(self, records: FlowRecords) -> Rows:
        """Return records as they are in the file, with exporters by their first records."""
        rows = np.empty(len(records), dtype=ROW)
        for name in COLUMNS:
            rows[name] = getattr(records, name)
        codes = [self.names.setdefault(name, len(self.names)) for name in records.exporters]
        rows["exporter"] = np.array([*codes, UNKNOWN])[records.exporter]
        return rows

    def _read_parts(self, counts: Ints, first: int, behind: int) -> FlowRecords:
        """Return the records of some parts, part by part, each run by run."""
        rows = np.empty(int(counts[:, first:behind].sum()), dtype=ROW)
        of_part = counts[:, first:behind].sum(axis=0)
        free = np.cumsum(of_part) - of_part
        for begin, of_run in zip(self.run_begins, counts, strict=True):
            run = self._read_rows(begin + int(of_run[:first].sum()), int(of_run[first:behind].sum()))
            position = 0
            for index_of_part, count in enumerate(of_run[first:behind].tolist()):
                rows[free[index_of_part] : free[index_of_part] + count] = run[position : position + count]
                free[index_of_part] += count
                position += count
        ordered = sorted(self.names)
        index = {name: code for code, name in enumerate(ordered)}
        code = np.array([*(index[name] for name in self.names), UNKNOWN], dtype=np.int64)
        columns: dict[str, Any] = {
            name: rows[name].astype(np.float64 if NARROW.get(name) == "f8" else np.int64) for name in COLUMNS
        }
        columns["exporter"] = code[columns["exporter"]]
        return FlowRecords(**columns, exporters=tuple(ordered))

    def _read_rows(self, begin: int, count: int) -> Rows:
        assert self.file is not None
        rows = np.empty(count, dtype=ROW)
        view = rows.view(np.uint8).data
        try:
            self.file.seek(begin * ROW.itemsize)
            while view:
                length = self.file.readinto(view)  # type: ignore[attr-defined]
                if not length:
                    raise OSError(errno.EIO, "the temporary file is cut")
                view = view[length:]
        except OSError as error:
            raise InputError(
                f"temporary file of flow records: cannot be read ({error.strerror or error})"
            ) from None
        return rows


def write_whole(file: IO[bytes], rows: Rows) -> None:
    """Write rows to a file without a buffer, which may take less than it is given."""
    view = np.ascontiguousarray(rows).view(np.uint8).data
    while view:
        view = view[file.write(view) :]


def full_disk(error: OSError, records: int) -> InputError:
    """Return the error of a temporary file that cannot be written."""
    try:
        folder = tempfile.gettempdir()
    except OSError:
        folder = "the folder of temporary files"
    reason = error.strerror or str(error)
    return InputError(
        f"{folder}: cannot be written ({' '.join(reason.split())[:80]}); flow records need "
        f"{ROW.itemsize} bytes each there, {records * ROW.itemsize / 1e9:.3g} GB up to here; "
        "TMPDIR names another folder"
    )


def store_records(blocks: Sequence[FlowRecords]) -> StoredRecords:
    """Return blocks of records as stored ones."""
    stored = StoredRecords()
    for block in blocks:
        stored.add(block)
    return stored
