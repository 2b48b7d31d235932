"""Tables in Parquet and Feather files, with a limit on their size in memory before they are read.

A few bytes can hold millions of equal rows, or of equal texts. So headers are measured first, texts are read
as codes of their different values, and their letters are counted before each row gets a text of its own.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from planner.contract.table import Table
from planner.contract.tables import abbreviate
from planner.errors import InputError
from planner.io.arrow_messages import MAGIC, measure_messages
from planner.io.layout import TableFile
from planner.io.raw_table import (
    RawTable,
    find_columns,
    number_columns,
    require_header,
    require_short_names,
    shorten_error,
)
from planner.io.text_files import MAX_LINE_BYTES, require_file

if TYPE_CHECKING:
    import pyarrow

MAX_DECODED: Final = 2 << 30
"""Bytes of a table in memory."""
TEXT_BYTES, OBJECT_BYTES, NUMBER_BYTES = 4, 64, 8
"""Bytes of a value besides its letters: the code of a text, a date as an object of Python, a number."""
PREFIXED: Final = "DELTA_BYTE_ARRAY"
"""Encoding of texts as the letters that differ from the text before."""
PREFIXED_ROWS: Final = 256
"""Rows of such texts that are decoded at a time to count their letters."""
ROW_NUMBERS: Final = re.compile(r"__index_level_\d+__")
"""Column with the numbers of rows that pandas adds."""


def read_arrow(table: Table, file: TableFile) -> RawTable:
    """Read a Parquet or Feather file; raise InputError where it unpacks to more than the limit."""
    with _faults_of(file.path, file.name):
        content = _open(file.path, file.name)
        names = [name for name in content.schema.names if not ROW_NUMBERS.fullmatch(name)]
        require_header(file.name, names)
        match = find_columns(table, file, names, file.name)
        numbers = number_columns(table, match)
        _require_single_values(content.schema, list(match.names.values()), file.name)
        content_read = content.read([name for name in names if _is_single(content.schema.field(name).type)])
        labels = [name for name in match.names.values() if name not in numbers] if table.compact else []
        frame = _to_frame(content_read, labels, file.name)
    return RawTable(frame=frame, match=match, first_row=1)


def read_arrow_frame(path: Path) -> pd.DataFrame:
    """Return all columns of single values of a Parquet or Feather file, under the same limits."""
    with _faults_of(path, path.name):
        content = _open(path, path.name)
        names = _single_columns(content.schema, path.name)
        return _to_frame(content.read(names), [], path.name)


def read_parquet_parts(path: Path, rows: int) -> Iterator[pd.DataFrame]:
    """Yield the rows of a Parquet file in parts of at most `rows`, each under the same limits."""
    import pyarrow

    with _faults_of(path, path.name):
        content = ParquetContent(path, path.name)
        names = _single_columns(content.schema, path.name)
        for batch in content.iterate(names, rows):
            yield _to_frame(pyarrow.Table.from_batches([batch]), [], path.name)


@dataclass(frozen=True, kw_only=True)
class ArrowSize:
    """Columns and rows of a Parquet or Feather file, and its bytes when unpacked, without its letters."""

    columns: int
    rows: int
    decoded: int


def measure_arrow(path: Path) -> ArrowSize:
    """Return the size of a Parquet or Feather file from its header; InputError where it is none."""
    with _faults_of(path, path.name):
        content = _open(path, path.name)
    names = [name for name, count in Counter(content.schema.names).items() if count == 1]
    fixed = content.rows * sum(_width(content.schema.field(name).type) for name in names)
    return ArrowSize(
        columns=len(content.schema.names), rows=content.rows, decoded=max(fixed, content.decoded)
    )


def _single_columns(schema: pyarrow.Schema, name: str) -> list[str]:
    """Return the names of all columns; raise InputError where one has no single values."""
    names = [label for label in schema.names if not ROW_NUMBERS.fullmatch(label)]
    require_header(name, names)
    _require_single_values(schema, names, name)
    return names


def arrow_columns(path: Path) -> list[str]:
    """Return the names of the columns of a Parquet or Feather file."""
    with _faults_of(path, path.name):
        names = _open(path, path.name).schema.names
    require_short_names(path.name, names)
    return [name for name in names if not ROW_NUMBERS.fullmatch(name)]


@contextmanager
def _faults_of(path: Path, name: str) -> Iterator[None]:
    """Require that a file exists, and raise an error in this block as InputError, with the file's name."""
    import pyarrow

    require_file(path)
    try:
        yield
    except InputError:
        raise
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        kind = "Parquet" if path.suffix.lower() == ".parquet" else "Feather"
        raise InputError(f"{name}: is no {kind} file ({shorten_error(error)})") from None


def require_decoded(size: int, name: str) -> None:
    """Raise InputError where a table takes more bytes in memory than the limit."""
    if size > MAX_DECODED:
        raise InputError(
            f"{name}: unpacks to {size / (1 << 20):,.0f} MiB, must be at most {MAX_DECODED >> 20:,} MiB"
        )


# --- files --------------------------------------------------------------------------------


class ParquetContent:
    """A Parquet file with its header read.

    raises  InputError where its pages unpack to more than the limit
    """

    def __init__(self, path: Path, name: str) -> None:
        from pyarrow import parquet

        self._path, self._name = path, name
        with parquet.ParquetFile(path) as file:
            self.schema: pyarrow.Schema = file.schema_arrow
            self._metadata = file.metadata
        self.rows: int = self._metadata.num_rows
        groups = [self._metadata.row_group(group) for group in range(self._metadata.num_row_groups)]
        self.decoded: int = sum(group.total_byte_size for group in groups)

    def read(self, names: Sequence[str]) -> pyarrow.Table:
        """Return columns; texts are codes of their different values."""
        from pyarrow import parquet

        require_size(self.schema, names, self.rows, self._name)
        with parquet.ParquetFile(self._path, read_dictionary=self._coded_texts(names)) as file:
            return file.read(columns=list(names))

    def iterate(self, names: Sequence[str], rows: int) -> Iterator[pyarrow.RecordBatch]:
        """Yield columns in batches of at most `rows`; texts are codes of their different values."""
        from pyarrow import parquet

        require_size(self.schema, names, min(rows, self.rows), self._name)
        with parquet.ParquetFile(self._path, read_dictionary=self._coded_texts(names)) as file:
            yield from file.iter_batches(batch_size=rows, columns=list(names))

    def _coded_texts(self, names: Sequence[str]) -> list[str]:
        """Return the columns with texts to read as codes; the letters of the others are counted here."""
        from pyarrow import parquet

        texts, prefixed = self._measure_pages(names)
        letters = 0
        if prefixed:
            with parquet.ParquetFile(self._path) as file:
                for batch in file.iter_batches(PREFIXED_ROWS, columns=prefixed, use_threads=False):
                    letters += batch.nbytes
                    require_decoded(letters, self._name)
        return texts

    def _measure_pages(self, names: Sequence[str]) -> tuple[list[str], list[str]]:
        """Return the columns of texts, without and with prefixes, of a file with small enough pages."""
        size, prefixed = 0, set()
        for group in range(self._metadata.num_row_groups):
            row_group = self._metadata.row_group(group)
            for index in range(row_group.num_columns):
                column = row_group.column(index)
                if column.path_in_schema in names:
                    size += column.total_uncompressed_size
                    if PREFIXED in column.encodings:
                        prefixed.add(column.path_in_schema)
        require_decoded(size, self._name)
        texts = [name for name in names if _is_text(self.schema.field(name).type)]
        return [name for name in texts if name not in prefixed], sorted(prefixed)


class FeatherContent:
    """A Feather file with measured messages; one of version 1, which is not compressed, is mapped.

    raises  InputError where its buffers unpack to more than the limit
    """

    def __init__(self, path: Path, name: str) -> None:
        import pyarrow
        from pyarrow import feather

        self._path, self._name = path, name
        self._table: pyarrow.Table | None = None
        with path.open("rb") as file:
            start = file.read(len(MAGIC))
        if start != MAGIC:
            self._table = feather.read_table(path, memory_map=True)
            self.schema: pyarrow.Schema = self._table.schema
            self.rows: int = self._table.num_rows
            self.decoded: int = self._table.nbytes
            return
        with pyarrow.memory_map(str(path)) as source:
            source.seek(len(MAGIC))
            self.schema, sizes = measure_messages(source)
        self.rows, self.decoded = sizes.rows, sizes.decoded
        require_decoded(sizes.decoded, name)

    def read(self, names: Sequence[str]) -> pyarrow.Table:
        """Return columns as they are.

        Texts that begin or end outside of their buffer would end the process once pandas reads them.
        """
        import pyarrow

        require_size(self.schema, names, self.rows, self._name)
        table = self._table
        if table is None:
            with pyarrow.memory_map(str(self._path)) as source:
                source.seek(len(MAGIC))
                indices = [self.schema.get_field_index(name) for name in names]
                options = pyarrow.ipc.IpcReadOptions(included_fields=indices)
                table = pyarrow.ipc.open_stream(source, options=options).read_all()
        table = table.select(list(names))
        table.validate(full=True)
        return table


def _open(path: Path, name: str) -> ParquetContent | FeatherContent:
    return (ParquetContent if path.suffix.lower() == ".parquet" else FeatherContent)(path, name)


# --- values -------------------------------------------------------------------------------


def require_size(schema: pyarrow.Schema, names: Sequence[str], rows: int, name: str) -> None:
    """Raise InputError where rows of columns, without the letters of texts, take more than the limit."""
    require_decoded(rows * sum(_width(schema.field(column).type) for column in names), name)


def _is_text(kind: Any) -> bool:
    from pyarrow import types

    is_string = types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)
    is_bytes = types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind)
    return bool(is_string or is_bytes)


def _is_single(kind: Any) -> bool:
    """Return whether a type has single values: no lists, no records, no blocks of bytes of a fixed size."""
    from pyarrow import types

    if types.is_dictionary(kind):
        return _is_single(kind.value_type)
    is_number = types.is_null(kind) or types.is_boolean(kind) or types.is_integer(kind)
    is_number = is_number or types.is_floating(kind) or types.is_decimal(kind)
    is_duration = types.is_temporal(kind) and not types.is_interval(kind)
    return bool(is_number or is_duration or _is_text(kind))


def _width(kind: Any) -> int:
    from pyarrow import types

    if types.is_dictionary(kind) or _is_text(kind):
        return TEXT_BYTES
    return OBJECT_BYTES if types.is_date(kind) or types.is_time(kind) else NUMBER_BYTES


def _require_single_values(schema: pyarrow.Schema, names: Sequence[str], name: str) -> None:
    """Raise InputError where a column that is read has lists or records."""
    faults = [
        f"{name}: {abbreviate(column)} has values of type {abbreviate(kind)}, must have single values"
        for column in names
        if not _is_single(kind := schema.field(column).type)
    ]
    if faults:
        raise InputError(*faults)


def _to_frame(content: pyarrow.Table, labels: Sequence[str], name: str) -> pd.DataFrame:
    """Return columns for pandas.

    labels  columns whose texts stay codes of their different values, where the file has them as such
    raises  InputError where a text is too long, the texts have too many letters, or are not UTF-8
    """
    import pyarrow
    from pyarrow import types

    letters = 0
    columns = {}
    for label, column in zip(content.column_names, content.columns, strict=True):
        kind = column.type.value_type if types.is_dictionary(column.type) else column.type
        if _is_text(kind):
            for chunk in column.chunks:
                letters += _count_letters(chunk, name)
                require_decoded(letters, name)
            texts = pyarrow.large_string()
            if label in labels and types.is_dictionary(column.type):
                texts = pyarrow.dictionary(pyarrow.int32(), texts)
            column = _cast(column, texts, name)
        elif types.is_decimal(kind):
            column = column.cast(pyarrow.float64())
        elif types.is_dictionary(column.type):
            column = column.cast(kind)
        columns[label] = column
    frame: pd.DataFrame = pyarrow.table(columns).to_pandas(ignore_metadata=True)
    return frame


def _count_letters(chunk: pyarrow.Array, name: str) -> int:
    """Return the bytes of the texts of all rows; raise InputError where one is longer than a line may be."""
    from pyarrow import compute, types

    is_coded = types.is_dictionary(chunk.type)
    lengths = _lengths(chunk.dictionary if is_coded else chunk)
    longest = compute.max(lengths).as_py() or 0
    if longest > MAX_LINE_BYTES:
        raise InputError(f"{name}: has a text of {longest:,} bytes, must have at most {MAX_LINE_BYTES:,}")
    if is_coded:
        lengths = lengths.take(chunk.indices)
    return int(compute.sum(lengths).as_py() or 0)


def _lengths(texts: pyarrow.Array) -> pyarrow.Array:
    """Return the bytes of each text."""
    import pyarrow
    from pyarrow import compute, types

    if not (types.is_string_view(texts.type) or types.is_binary_view(texts.type)):
        return compute.binary_length(texts)
    views = np.frombuffer(texts.buffers()[1], dtype=np.int32)  # four numbers for a text, its length first
    return pyarrow.array(views[4 * texts.offset : 4 * (texts.offset + len(texts)) : 4].astype(np.int64))


def _cast(texts: pyarrow.ChunkedArray, kind: Any, name: str) -> pyarrow.ChunkedArray:
    """Return texts in a type of UTF-8 texts; raise InputError where they have other bytes."""
    import pyarrow
    from pyarrow import types

    try:
        if types.is_dictionary(texts.type) and types.is_dictionary(kind):
            chunks = [
                pyarrow.DictionaryArray.from_arrays(
                    chunk.indices.cast(kind.index_type),
                    chunk.dictionary.cast(kind.value_type),
                    ordered=kind.ordered,
                )
                for chunk in texts.chunks
            ]
            values = pyarrow.chunked_array(chunks, type=kind).unify_dictionaries()
        else:
            values = texts.cast(kind)
        values.validate(full=True)
    except (pyarrow.ArrowInvalid, UnicodeDecodeError) as error:
        if "utf8" in str(error).lower().replace("-", ""):
            raise InputError(f"{name}: has names that are not UTF-8 text") from None
        raise
    return values
