"""Values of parameters to try in conformance tests, read from their declarations.

Every choice, both booleans, none where it is allowed, and numbers at the ends of the range, in between and
beyond the default.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from planner.contract.parameters import Parameter

LARGEST: Final = 1_000
"""Largest number that is tried: rounds, steps and times above it only take longer."""
COMPARISONS: Final[Mapping[str, Callable[[float, float], bool]]] = {
    "minimum": operator.ge,
    "maximum": operator.le,
    "exclusiveMinimum": operator.gt,
    "exclusiveMaximum": operator.lt,
}
"""Comparison of a number with a limit, by the limit's name in a schema."""


def values_to_try(parameter: Parameter) -> list[Any]:
    """Return valid values of a parameter as a scenario writes them, without its default; [] for files."""
    if parameter.is_path:
        return []
    default = list(parameter.default) if isinstance(parameter.default, tuple) else parameter.default
    values: list[Any] = []
    for schema in parameter.schema.get("anyOf", [parameter.schema]):
        values += [value for value in _values_of(schema, default) if value not in values]
    return [value for value in values if value != default or type(value) is not type(default)]


def _values_of(schema: Mapping[str, Any], default: Any) -> Iterator[Any]:
    if "enum" in schema:
        yield from schema["enum"]
    elif "const" in schema:
        yield schema["const"]
    elif schema.get("type") == "null":
        yield None
    elif schema.get("type") == "boolean":
        yield from (False, True)
    elif schema.get("type") == "integer":
        yield from _numbers(schema, default, is_integer=True)
    elif schema.get("type") == "number":
        yield from _numbers(schema, default, is_integer=False)
    elif schema.get("type") == "array" and schema["items"].get("type") in ("integer", "number"):
        yield from ([1], [1, 2])


def _numbers(schema: Mapping[str, Any], default: Any, *, is_integer: bool) -> Iterator[float]:
    """Yield the ends of the range of a number, and numbers between them, the least first."""
    usual = default if isinstance(default, int | float) and not isinstance(default, bool) else 1
    spread = {usual / 4, usual * 2, *((1, 2) if is_integer else (0.5,))}
    ends = _find_ends(schema, is_integer=is_integer)
    numbers = {math.ceil(value) if is_integer else float(value) for value in ends | spread}
    for number in sorted(numbers):
        if _is_in_range(schema, number) and number <= max(LARGEST, 2 * usual):
            yield number


def _find_ends(schema: Mapping[str, Any], *, is_integer: bool) -> set[float]:
    """Return the least and the largest number of a range; none where it is open or has no limit."""
    ends = {schema[key] for key in ("minimum", "maximum") if schema.get(key) is not None}
    if is_integer and (above := schema.get("exclusiveMinimum")) is not None:
        ends.add(above + 1)
    return ends


def _is_in_range(schema: Mapping[str, Any], number: float) -> bool:
    """Return whether a number is within all limits of a schema."""
    limits = {key: schema[key] for key in COMPARISONS if schema.get(key) is not None}
    return all(COMPARISONS[key](number, limit) for key, limit in limits.items())
