"""Form fields of parameters: a slider, a switch or a choice, by the values that a parameter takes."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import streamlit as st

from planner.contract.parameters import Parameter
from planner.contract.units import unit_of
from planner.formatting import ABBREVIATIONS, UNIT_WORDS

MAX_SLIDER_COUNT: Final = 200
"""A larger count has a field for a number instead of a slider."""

WORDS: Final = {
    **ABBREVIATIONS,
    "rtt": "RTT",
    "vcpu": "vCPU",
    "vcpus": "vCPUs",
    "usd": "USD",
    "gb": "GB",
    "mbps": "Mbit/s",
}
"""Words of names as labels write them."""
UNITS: Final = {"s": "s", "ms": "ms", "us": "µs", "min": "min", "km": "km", "gb": "GB", **UNIT_WORDS}


def show_field(
    key: str, parameter: Parameter, value: Any, options: Sequence[str] = (), upper: float | None = None
) -> Any:
    """Show the field of a parameter at `value`; return the value that it is set to.

    options  choices of a list, where they are known
    upper    end of a slider, where the parameter itself has none
    """
    schema = parameter.schema
    arguments: dict[str, Any] = {
        "label": field_label(parameter.name),
        "help": parameter.about or None,
        "key": f"field {key}",
    }
    kinds = [kind_ for kind_ in schema.get("anyOf", [schema]) if kind_.get("type") != "null"]
    may_be_none = len(kinds) < len(schema.get("anyOf", [schema]))
    kind = kinds[0] if kinds else schema
    is_switch = len(kinds) == 1 and kind.get("type") == "boolean"
    if len(kinds) == 1 and ("enum" in kind or (is_switch and may_be_none)):
        choices = [*([None] if may_be_none else []), *kind.get("enum", [True, False])]
        return st.selectbox(
            options=choices, index=choices.index(value) if value in choices else 0, **arguments
        )
    if is_switch:
        return st.toggle(value=bool(value), **arguments)
    if len(kinds) == 1 and kind.get("type") in ("integer", "number"):
        return _number(arguments, kind, value, may_be_none, upper)
    if len(kinds) == 1 and kind.get("type") == "array":
        selected = [str(item) for item in value or ()]
        choices = [*dict.fromkeys([*selected, *options])]
        # where the names are known, a text selects one of them and never several
        picked = st.multiselect(
            options=choices, default=selected, accept_new_options=not options, **arguments
        )
        return tuple(_parse(text, [kind.get("items", {})]) for text in picked)
    if kind.get("type") == "object":
        return value  # tables of values are for scenario files
    return _text(arguments, kinds, value, may_be_none)


def field_label(name: str) -> str:
    """Return a parameter's name in words, with the unit that it ends in: `Time limit [s]`."""
    words, unit = name.replace("_", " "), ""
    for ending, symbol in UNITS.items():
        if name.endswith(f"_{ending}") and not name.endswith(f"_per_{ending}"):
            words, unit = words[: -len(ending) - 1], f" [{symbol}]"
            break
    return _in_words(words) + unit


def column_label(name: str) -> str:
    """Return a column's name in words with its unit: `Capacity [Mbit/s]`."""
    stem, unit = (name, None) if re.search(r"_per_[a-z]+$", name) else unit_of(name)
    return _in_words((stem or name).replace("_", " ")) + (f" [{unit.symbol}]" if stem and unit else "")


def _in_words(name: str) -> str:
    """Return a name with its abbreviations and its first letter as headings have them."""
    first, *others = [WORDS.get(word, word) for word in name.split(" ")]
    return " ".join([first if first in WORDS.values() else first[:1].upper() + first[1:], *others])


def _number(
    arguments: Mapping[str, Any], kind: Mapping[str, Any], value: Any, may_be_none: bool, upper: float | None
) -> Any:
    """Show a slider where the value has a scale of its own, else a field for a number."""
    number: Any = int if kind["type"] == "integer" else float
    low = kind.get("minimum", kind.get("exclusiveMinimum"))
    high = kind.get("maximum", kind.get("exclusiveMaximum"))
    has_scale = not (value is None or may_be_none or low is None or "seed" in arguments["label"].lower())
    if not has_scale or (high is None and number is int and value > MAX_SLIDER_COUNT):
        limits: dict[str, Any] = {"min_value": low, "max_value": high, "value": value}
        limits = {name: None if limit is None else number(limit) for name, limit in limits.items()}
        limits["format"] = None if number is int else "%g"
        return st.number_input(step=1 if number is int else None, placeholder="none", **limits, **arguments)
    if high is None:
        # a range that shows the effect of larger values; a scenario file takes any value
        high = max(4 * value, 10 if number is int else 1) if upper is None else max(upper, value)
    step: Any = 1 if number is int else 10.0 ** math.floor(math.log10((high - low) / 100))
    first = number(low) + (step if "exclusiveMinimum" in kind else 0)
    last = number(high) - (step if "exclusiveMaximum" in kind else 0)
    has_maximum = "maximum" in kind or "exclusiveMaximum" in kind
    limits = {"min_value": min(first, number(value)), "max_value": last if has_maximum else None}
    return _slider_and_field(
        arguments,
        number(value),
        scale={
            "min_value": min(first, number(value)),
            "max_value": max(last, number(value), first + step),
            "step": step,
            "format": None if number is int else "%g",
        },
        limits=limits | {"step": step, "format": None if number is int else "%g"},
    )


def show_count(key: str, label: str, lower: int, upper: int, value: int, about: str = "") -> int:
    """Show a slider and a field for an integer from `lower` to `upper`; return its value.

    about  help behind a question mark; "" for none
    """
    scale = {"min_value": lower, "max_value": upper, "step": 1}
    return int(
        _slider_and_field(
            {"label": label, "help": about or None, "key": key}, value, scale=scale, limits=scale
        )
    )


def _slider_and_field(
    arguments: Mapping[str, Any], value: Any, *, scale: Mapping[str, Any], limits: Mapping[str, Any]
) -> Any:
    """Show a slider, and beside it a field for the same number, which also takes one beyond the slider.

    scale   arguments of the slider; `limits` of the field
    """
    state, key = st.session_state, str(arguments["key"])
    typed = f"{key} typed"
    low, high = scale["min_value"], scale["max_value"]
    if typed not in state:
        state[typed] = state.get(key, value)
    if key not in state:
        state[key] = min(max(state[typed], low), high)

    def follow_slider() -> None:
        state[typed] = state[key]

    def follow_field() -> None:
        if state[typed] is not None:
            state[key] = min(max(state[typed], low), high)

    with st.container(horizontal=True, vertical_alignment="bottom", key=f"number {key}"):
        st.slider(**scale, **arguments, on_change=follow_slider)
        st.number_input(
            **limits,
            **{**arguments, "key": typed, "help": None},
            on_change=follow_field,
            label_visibility="collapsed",
            width=120,
        )
    return state[key] if state[typed] is None else state[typed]


def _text(
    arguments: Mapping[str, Any], kinds: Sequence[Mapping[str, Any]], value: Any, may_be_none: bool
) -> Any:
    """Show a field for text, or for a number or text."""
    text = st.text_input(value="" if value is None else str(value), **arguments)
    if not text and may_be_none:
        return None
    return _parse(text, kinds)


def _parse(text: str, kinds: Sequence[Mapping[str, Any]]) -> int | float | str:
    """Return a text as a number where one of the kinds is a number and the text is one."""
    types = {kind.get("type") for kind in kinds}
    for number, name in ((int, "integer"), (float, "number")):
        if name in types:
            with contextlib.suppress(ValueError):
                return number(text)
    return text
