"""Documents of other tools, such as JSON of kubectl, as plain data, with errors in one line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from planner.errors import InputError
from planner.io.json_texts import parse_json
from planner.io.text_files import read_text, require_file

MAX_LINE_BYTES: Final = 1 << 31
"""kubectl writes a document in few lines, so lines are long."""


def read_document(path: Path) -> Any:
    """Return the content of a JSON file; raises InputError where it is none."""
    require_file(path)
    return parse_json(path.name, read_text(path, max_line_bytes=MAX_LINE_BYTES))


def read_items(path: Path) -> list[Mapping[str, Any]]:
    """Return the objects of a list as kubectl writes it, or the rows of one as OpenStack does."""
    content = read_document(path)
    if isinstance(content, Mapping):
        content = content.get("items", [content])
    if not isinstance(content, list) or not all(isinstance(item, Mapping) for item in content):
        raise InputError(f"{path.name}: must be a list of objects, or an object with items")
    return content


def get(item: Any, *keys: str) -> Any:
    """Return a nested value; None where a key is absent, or a value on the way is no object."""
    for key in keys:
        if not isinstance(item, Mapping):
            return None
        item = item.get(key)
    return item


def mapping(item: Any, *keys: str) -> Mapping[str, Any]:
    """Return a nested object; an empty one where there is none."""
    value = get(item, *keys)
    return value if isinstance(value, Mapping) else {}


def objects(item: Any, *keys: str) -> Iterator[Mapping[str, Any]]:
    """Yield the objects of a nested list; none where there is no list."""
    value = get(item, *keys)
    yield from (entry for entry in value if isinstance(entry, Mapping)) if isinstance(value, list) else ()
