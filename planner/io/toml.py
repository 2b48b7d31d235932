"""TOML from users: every text that cannot be read is an InputError with its reason."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from typing import Any, Final

import tomli_w

from planner.errors import InputError

MAX_TOML_LETTERS: Final = 1 << 22
MAX_KEY_PARTS: Final = 64
"""Python's reader takes time that grows as the square of them."""
_PART: Final = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+"""
LONG_KEY: Final = re.compile(rf"(?<![\w-])(?:{_PART}){{{MAX_KEY_PARTS}}}")


def parse_toml(text: str) -> dict[str, Any]:
    """Return the document of a TOML text; raise InputError with the reason where it is none."""
    if len(text) > MAX_TOML_LETTERS:
        raise InputError(f"has {len(text):,} letters, must have at most {MAX_TOML_LETTERS:,} as TOML")
    if LONG_KEY.search(text):
        raise InputError(f"is no valid TOML: a key has over {MAX_KEY_PARTS} parts")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"is no valid TOML: {error}") from None
    except RecursionError:
        raise InputError("is no valid TOML: its lists or tables are nested too deeply") from None
    except ValueError as error:  # Python refuses numbers of thousands of digits
        raise InputError(f"is no valid TOML: {str(error).partition(';')[0]}") from None


def parse_value(text: str) -> Any:
    """Return the value of a text as in TOML; raise InputError where it is no value."""
    document = parse_toml(f"value = {text}")
    if list(document) != ["value"]:
        raise InputError("is more than one value")
    return document["value"]


def format_value(value: Any) -> str:
    """Return a value as TOML on one line, a mapping as an inline table: `{"A<->B" = 2.0}`."""
    if isinstance(value, Mapping):
        return (
            "{"
            + ", ".join(f"{_quote(str(key))} = {format_value(value_)}" for key, value_ in value.items())
            + "}"
        )
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(format_value, value)) + "]"
    return tomli_w.dumps({"value": value}).removeprefix("value = ").rstrip("\n")


def _quote(key: str) -> str:
    return tomli_w.dumps({"value": key}).removeprefix("value = ").rstrip("\n")
