"""Rules that a value violates, in plain words, in place of those of the library that checks it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from planner.formatting import counted

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

RULES: Final[Mapping[str, str]] = {
    "string_type": "must be text",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "finite_number": "must be a finite number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    "dict_type": "must be a table of names and values",
    "path_type": "must be the name of a file",
}
"""Rule by the type of pydantic's fault."""


def rule_of(fault: ErrorDetails) -> str:
    """Return the violated rule: `must be a number`, `item 2 must be text`, `must have at least 1 item`."""
    return _place(fault["loc"]) + (RULES.get(fault["type"]) or _rule_with_limit(fault))


def _rule_with_limit(fault: ErrorDetails) -> str:
    limits: Mapping[str, Any] = fault.get("ctx", {})
    if fault["type"] == "too_short":
        return f"must have at least {_items(limits['min_length'])}"
    if fault["type"] == "too_long":
        return f"must have at most {_items(limits['max_length'])}"
    return fault["msg"].replace("Input should be", "must be")


def _items(count: int) -> str:
    return counted(count, "items")


def _place(location: tuple[int | str, ...]) -> str:
    """Return the place within a list: `item 2 `; the names that pydantic gives to parts of types are none."""
    indices = [str(index + 1) for index in location if isinstance(index, int)]
    return f"item {' of item '.join(reversed(indices))} " if indices else ""
