"""Texts that a spreadsheet program may take for formulas, and their form in written tables.

One place for files, exports, stores and uploads, so that no table that planner writes is computed elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import pandas as pd

FORMULA_START: Final = "([ \t\n\v\f\r\u00a0\u3000]*[=+@\uff1d\uff0b\uff0d\uff20-]|[\t\r\n])"
"""Start of a text that a spreadsheet program may take for a formula; full-width signs count too.

The letters themselves, not escapes of them: with these, pandas would try each cell in Python.
"""
BEGINS: Final = re.compile(FORMULA_START)
NUMBER: Final = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")


def may_be_formula(text: str) -> bool:
    """Return whether a spreadsheet program may compute a text; spaces before the sign do not matter."""
    return BEGINS.match(text) is not None and NUMBER.fullmatch(text.strip()) is None


def quote_formulas(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame with an apostrophe before each text that a spreadsheet would take for a formula.

    Names of columns get one too; readers ignore it.
    """
    names = {name: f"'{name}" for name in frame if isinstance(name, str) and BEGINS.match(name)}
    quoted = _map_texts(
        frame, rf"'*{FORMULA_START}", lambda text: text if NUMBER.fullmatch(text) else f"'{text}"
    )
    return quoted.rename(columns=names) if names else quoted


def unquote_formulas(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame without the apostrophes of `quote_formulas`."""
    return _map_texts(frame, rf"'+{FORMULA_START}", lambda text: text[1:])


def _map_texts(frame: pd.DataFrame, pattern: str, change: Callable[[str], str]) -> pd.DataFrame:
    """Return the frame with texts that begin with a pattern changed; frames without any stay as they are."""
    expression = re.compile(pattern)

    def begins(value: Any) -> bool:
        return isinstance(value, str) and expression.match(value) is not None

    def map_one(value: Any) -> Any:
        return change(value) if begins(value) else value

    changed = {}
    for name in frame:
        column = frame[name]
        if isinstance(column.dtype, pd.CategoricalDtype):
            categories = column.cat.categories
            if any(map(begins, categories)):
                changed[name] = column.cat.rename_categories(list(map(map_one, categories)))
        elif isinstance(column.dtype, pd.StringDtype) and not column.str.match(pattern).any():
            continue  # of all rows in one pass
        elif not pd.api.types.is_numeric_dtype(column):
            texts = column.map(map_one)
            if not texts.equals(column):
                changed[name] = texts.astype(column.dtype)
    return frame.assign(**{str(name): column for name, column in changed.items()}) if changed else frame
