"""Forms made from what parameters take: a slider, a switch, a choice."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import streamlit as st

from planner.parameters import Parameter

LARGE: Final = 200
"""A count that is larger is written, not slid to."""


def ask(
    key: str, parameter: Parameter, value: Any, options: Sequence[str] = (), most: float | None = None
) -> Any:
    """The field of a parameter, at `value`; returns what it is set to.

    options  what a list may hold, where that is known
    most     how far a number is worth moving, where the parameter itself sets no end
    """
    schema = parameter.schema
    label = parameter.name.replace("_", " ")
    given: dict[str, Any] = {"label": label, "help": parameter.about or None, "key": f"field {key}"}
    kinds = [part for part in schema.get("anyOf", [schema]) if part.get("type") != "null"]
    may_be_none = len(kinds) < len(schema.get("anyOf", [schema]))
    kind = kinds[0] if kinds else schema
    if len(kinds) == 1 and "enum" in kind:
        choices = [*([None] if may_be_none else []), *kind["enum"]]
        return st.selectbox(options=choices, index=choices.index(value) if value in choices else 0, **given)
    if len(kinds) == 1 and kind.get("type") == "boolean":
        return st.toggle(value=bool(value), **given)
    if len(kinds) == 1 and kind.get("type") in ("integer", "number"):
        return _number(given, kind, value, may_be_none, most)
    if len(kinds) == 1 and kind.get("type") == "array":
        held = [str(one) for one in value or ()]
        choices = [*dict.fromkeys([*held, *options])]
        return tuple(st.multiselect(options=choices, default=held, accept_new_options=True, **given))
    if kind.get("type") == "object":
        return value  # tables of values are for scenario files
    return _text(given, kinds, value, may_be_none)


def _number(
    given: Mapping[str, Any], kind: Mapping[str, Any], value: Any, may_be_none: bool, most: float | None
) -> Any:
    """A slider where the value has a scale of its own, else a field for a number."""
    number: Any = int if kind["type"] == "integer" else float
    low = kind.get("minimum", kind.get("exclusiveMinimum"))
    high = kind.get("maximum", kind.get("exclusiveMaximum"))
    written = value is None or may_be_none or low is None or "seed" in given["label"]
    if written or (high is None and number is int and value > LARGE):
        limits: dict[str, Any] = {"min_value": low, "max_value": high, "value": value}
        limits = {name: None if limit is None else number(limit) for name, limit in limits.items()}
        limits["format"] = None if number is int else "%g"
        return st.number_input(step=1 if number is int else None, placeholder="none", **limits, **given)
    if high is None:
        # far enough to see what more does; a scenario file takes any value
        high = max(4 * value, 10 if number is int else 1) if most is None else max(most, value)
    step: Any = 1 if number is int else 10.0 ** math.floor(math.log10((high - low) / 100))
    first = number(low) + (step if "exclusiveMinimum" in kind else 0)
    last = number(high) - (step if "exclusiveMaximum" in kind else 0)
    return st.slider(
        min_value=min(first, number(value)),
        max_value=max(last, number(value), first + step),
        value=number(value),
        step=step,
        format=None if number is int else "%g",
        **given,
    )


def _text(given: Mapping[str, Any], kinds: Sequence[Mapping[str, Any]], value: Any, may_be_none: bool) -> Any:
    """A word or a number, where a parameter takes both."""
    text = st.text_input(value="" if value is None else str(value), **given)
    if not text and may_be_none:
        return None
    for number in (int, float):
        if any(kind.get("type") == {int: "integer", float: "number"}[number] for kind in kinds):
            try:
                return number(text)
            except ValueError:
                continue
    return text
