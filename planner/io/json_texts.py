"""JSON of files from elsewhere: plain data, or one line that says what is wrong."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from typing import Any, Final

from planner.errors import InputError

ESCAPE: Final = re.compile(r"\\u[dD][89a-fA-F]|\\U0000[dD][89a-fA-F]")
"""Escape of half of a character beyond the first 65,536 in JSON or YAML; two of them are a whole one."""


def parse_json(name: str, text: str) -> Any:
    """Return the content of a JSON text of a file of that name; raise InputError where it is none."""
    with refuse_faults(name):
        content = json.loads(text)
    require_unicode(name, text, content)
    return content


@contextlib.contextmanager
def refuse_faults(name: str) -> Iterator[None]:
    """Raise InputError for a text that is no JSON, nested too deeply, or has too long a number."""
    try:
        yield
    except json.JSONDecodeError as error:
        raise InputError(f"{name} row {error.lineno}: is no JSON ({error.msg})") from None
    except RecursionError:
        raise InputError(f"{name}: its lists or objects are nested too deeply") from None
    except ValueError as error:  # Python refuses numbers of thousands of digits
        raise InputError(f"{name}: is no JSON ({str(error).partition(';')[0]})") from None


def require_unicode(name: str, text: str, content: Any) -> None:
    """Raise InputError where a name, key or value has half a character, which no text file can hold.

    content  plain data of a JSON or YAML text
    """
    if not ESCAPE.search(text):
        return
    records = content if isinstance(content, list) else [content]
    for row, record in enumerate(records, start=1):
        try:
            json.dumps(record, ensure_ascii=False, default=str).encode()
        except UnicodeEncodeError as error:
            half = error.object[error.start]
            where = f" row {row}" if isinstance(content, list) else ""
            raise InputError(
                f"{name}{where}: has half a character, \\u{ord(half):04x}, which is no text; was it cut?"
            ) from None
