"""Sizes of the parts of an Arrow IPC file (Feather), read from its messages before anything is unpacked.

Source: Apache Arrow columnar format 1.5, "Serialization and interprocess communication", and `Message.fbs`.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import pyarrow

MAGIC: Final = b"ARROW1\0\0"
"""First bytes of a file, before its messages."""
MESSAGE_HEADER, DICTIONARY_DATA = 2, 1
"""Fields of the tables Message and DictionaryBatch, by their numbers."""
LENGTH, BUFFERS, COMPRESSION = 0, 2, 3
"""Fields of the table RecordBatch."""
BUFFER_BYTES: Final = 16
"""Bytes of an entry of the list of buffers: its offset and its length."""


@dataclass(frozen=True, kw_only=True)
class MessageSizes:
    """Rows of all batches, and bytes of all buffers, of dictionaries too, when unpacked."""

    rows: int
    decoded: int


def measure_messages(source: pyarrow.NativeFile) -> tuple[pyarrow.Schema, MessageSizes]:
    """Return the schema of a file that stands behind its magic bytes, and the sizes of its messages.

    raises  ValueError where a message is damaged, and pyarrow's exceptions
    """
    import pyarrow

    start = source.tell()
    schema = pyarrow.ipc.open_stream(source).schema
    source.seek(start)
    rows = decoded = 0
    for message in pyarrow.ipc.MessageReader.open_stream(source):
        if message.type not in ("record batch", "dictionary"):
            continue
        metadata = memoryview(message.metadata)
        body = memoryview(message.body) if message.body is not None else memoryview(b"")
        try:
            batch = _sub_table(metadata, _root(metadata), MESSAGE_HEADER)
            if message.type == "dictionary":
                batch = _sub_table(metadata, batch, DICTIONARY_DATA)
            else:
                rows += _read_length(metadata, batch)
            decoded += _measure_batch(metadata, batch, body)
        except struct.error:
            raise ValueError("a message of it is damaged") from None
    return schema, MessageSizes(rows=rows, decoded=decoded)


def _measure_batch(metadata: memoryview, batch: int, body: memoryview) -> int:
    """Return the bytes of all buffers of a batch when unpacked; compressed ones begin with theirs."""
    is_compressed = _field(metadata, batch, COMPRESSION) is not None
    field = _field(metadata, batch, BUFFERS)
    if field is None:
        return 0
    first = field + _number("<I", metadata, field)
    decoded = 0
    for entry in range(_number("<I", metadata, first)):
        position = first + 4 + BUFFER_BYTES * entry
        offset, length = _number("<q", metadata, position), _number("<q", metadata, position + 8)
        size = _number("<q", body, offset) if is_compressed and length > 0 else -1
        decoded += length if size < 0 else size
    return decoded


def _read_length(metadata: memoryview, batch: int) -> int:
    field = _field(metadata, batch, LENGTH)
    return 0 if field is None else _number("<q", metadata, field)


def _root(metadata: memoryview) -> int:
    return _number("<I", metadata, 0)


def _field(metadata: memoryview, table: int, number: int) -> int | None:
    """Return the position of a field of a table; None where the table does not have it."""
    types = table - _number("<i", metadata, table)
    slot = 4 + 2 * number
    if slot >= _number("<H", metadata, types):
        return None
    offset = _number("<H", metadata, types + slot)
    return table + offset if offset else None


def _sub_table(metadata: memoryview, table: int, number: int) -> int:
    """Return the position of the table that a field refers to."""
    field = _field(metadata, table, number)
    if field is None:
        raise struct.error
    return field + _number("<I", metadata, field)


def _number(kind: str, content: memoryview, position: int) -> int:
    if position < 0:  # would count from the end
        raise struct.error
    value: int = struct.unpack_from(kind, content, position)[0]
    return value
