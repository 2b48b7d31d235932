"""Numbers written as text: decimal comma or point, groups of three digits, and percent signs.

All number columns of a file are read in one way. Where no number of the file tells a decimal comma from
a comma between thousands, that is an error which names both readings.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd

from planner.contract.tables import abbreviate
from planner.io.layout import Layout

MAX_DIGITS: Final = 1_000
"""Digits of a number in a text; Python needs quadratic time for more, and refuses 4,300."""
_TOO_LONG: Final = re.compile(rf"\d{{{MAX_DIGITS + 1},}}")
SPACES: Final = " \u00a0\u2009\u202f"
APOSTROPHES: Final = "'\u2019"
_GROUPED: Final = r"[+-]?(?:[1-9]\d{{0,2}}(?:{group}\d{{3}})+|\d*)(?:{decimal}\d*)?(?:[eE][+-]?\d+)?"
BY_DECIMAL: Final = {
    decimal: re.compile(
        _GROUPED.format(group=f"(?:{re.escape(other)}|[{SPACES}{APOSTROPHES}])", decimal=re.escape(decimal))
    )
    for decimal, other in ((".", ","), (",", "."))
}
MARKED: Final = re.compile(rf"[.,{SPACES}{APOSTROPHES}]")
PERCENT: Final = re.compile(rf"(?<![{SPACES}])[{SPACES}]*%\s*$")
"""A percent sign at the end; the spaces before it are tried from the first on only, in linear time."""
CURRENCY: Final = re.compile(
    r"^\s*(?P<before>[$€£¥]|(?:USD|EUR|GBP|CHF|JPY)(?=[\s\d]))\s*(?=[\d.,+-])"
    r"|(?<=[\d.,])[ \u00a0]?(?P<after>[$€£¥]|USD|EUR|GBP|CHF|JPY)\s*$",
    re.IGNORECASE,
)
"""The currency of an amount of money, before or behind its number."""
AMOUNT: Final = re.compile(
    rf"(?P<count>\d{{1,4}}[ ]*[x×*][ ]*)?(?P<number>[+-]?[\d.,{SPACES}{APOSTROPHES}]*(?:[eE][+-]?\d+)?)"
    r"(?P<unit>[^\W\d_].*)"
)
"""A number with a unit behind it, also several of them, such as `4x1,000 Mbit/s`."""
NAMES: Final = {",": "comma", ".": "point"}
GROUP_NAMES: Final = {
    ",": "commas",
    ".": "points",
    **dict.fromkeys(SPACES, "spaces"),
    **dict.fromkeys(APOSTROPHES, "apostrophes"),
}


def long_number(text: str) -> str | None:
    """Return the error of a text that has a number of more than MAX_DIGITS digits; None without."""
    match = _TOO_LONG.search(text)
    if match is None:
        return None
    digits = match.end() - match.start()
    return f"has a number of {digits:,} digits, must have at most {MAX_DIGITS:,}"


@dataclass(frozen=True)
class NumberStyle:
    """The style in which numbers are written: the decimal mark, and the marks between thousands."""

    decimal: str = "."
    thousands: frozenset[str] = frozenset()
    currency: str = ""

    def notes(self) -> list[str]:
        """Return the differences from plain numbers, as text."""
        texts = ["decimal comma"] if self.decimal == "," else []
        texts += [f"amounts in {self.currency}"] if self.currency else []
        return texts + [
            f"{words} between thousands"
            for words in dict.fromkeys(GROUP_NAMES[mark] for mark in sorted(self.thousands))
        ]


@dataclass(frozen=True)
class _Evidence:
    """A number that tells or hides the decimal mark: its column, its place and its text."""

    column: str
    place: int
    text: str


def read_numbers(
    frame: pd.DataFrame,
    columns: Iterable[str],
    layout: Layout,
    *,
    where: str,
    first_row: int,
    point_is_decimal: bool,
) -> tuple[pd.DataFrame, NumberStyle, list[str]]:
    """Return the frame with texts of number columns as numbers where they are, the style found, and faults.

    point_is_decimal  whether 1.234 has a decimal point where nothing else tells, as in a plain CSV file
    """
    columns_of_text = {
        name: _texts(frame[name]) for name in columns if not pd.api.types.is_numeric_dtype(frame[name])
    }
    currencies = _currencies(columns_of_text.values())
    if len(currencies) > 1:
        return frame, NumberStyle(), [f"{where}: has amounts in {' and '.join(currencies)}; write all in one"]
    if currencies:
        columns_of_text = {
            name: column.str.replace(CURRENCY, "", regex=True) for name, column in columns_of_text.items()
        }
    texts = {name: _without_units(column) for name, column in columns_of_text.items()}
    only: dict[str, _Evidence] = {}
    both: dict[str, _Evidence] = {}
    groups: set[str] = set()
    for name, column in texts.items():
        marked = column[column.str.contains(MARKED)].str.strip()
        fits = {mark: marked.str.fullmatch(form) for mark, form in BY_DECIMAL.items()}
        for mark, other in ((".", ","), (",", ".")):
            _keep_first(only, mark, name, marked[fits[mark] & ~fits[other]])
        _keep_first(both, name, name, marked[fits["."] & fits[","] & marked.str.contains("[.,]")])
        numbers = marked[fits["."] | fits[","]]
        groups |= {mark for mark in SPACES + APOSTROPHES if numbers.str.contains(mark, regex=False).any()}
    decimal, faults = _choose_decimal(only, both, layout, where, first_row, point_is_decimal)
    if faults:
        return frame, NumberStyle(), faults
    other = "," if decimal == "." else "."
    groups |= {other for cell in (*only.values(), *both.values()) if other in cell.text}
    style = NumberStyle(decimal, frozenset(groups), next(iter(currencies), ""))
    changed = {
        name: _convert(frame[name], column, columns_of_text[name], style) for name, column in texts.items()
    }
    return (frame.assign(**changed) if changed else frame), style, []


def _currencies(columns: Iterable[pd.Series]) -> list[str]:
    """Return the signs of currencies in columns of texts, each once."""
    signs: dict[str, None] = {}
    for column in columns:
        for text in column[column.str.contains("[$€£¥A-Z]", regex=True)].unique().tolist():
            match = CURRENCY.search(text) if len(text) <= MAX_DIGITS else None
            if match is not None:
                signs[(match["before"] or match["after"]).upper()] = None
    return list(signs)


def _texts(column: pd.Series) -> pd.Series:
    """Return the texts among the values of a column."""
    present = column.dropna()
    if present.dtype == object:
        present = present[present.map(lambda value: isinstance(value, str))]
    return present.astype(str)


def _without_units(column: pd.Series) -> pd.Series:
    """Return the numbers of texts, without percent signs, and without the units behind marked ones."""
    numbers = column.str.replace(PERCENT, "", regex=True)
    has_unit = numbers.str.contains(r"\d\s*[^\W\d_]", regex=True) & numbers.str.contains(MARKED)
    cells = {text: _number_of(text) for text in numbers[has_unit].unique().tolist()}
    return numbers.where(~has_unit, numbers.map(cells)) if cells else numbers


def _number_of(text: str) -> str:
    """Return the number of a text that has a unit behind a number with marks; other texts as they are."""
    amount = AMOUNT.fullmatch(text.strip())
    if amount is None or not MARKED.search(number := amount["number"].strip()):
        return text
    return number if any(form.fullmatch(number) for form in BY_DECIMAL.values()) else text


def _with_unit(number: float, text: str) -> str:
    """Return a number in plain form with the percent sign or the unit of its text."""
    if PERCENT.search(text):
        return f"{number!r}%"
    amount = AMOUNT.fullmatch(text.strip())
    if amount is None:
        return text
    space = "" if amount["number"][-1:].isdigit() else " "
    return f"{amount['count'] or ''}{number!r}{space}{amount['unit']}"


def _keep_first(evidence: dict[str, _Evidence], key: str, column: str, cells: pd.Series) -> None:
    """Add the first of the texts found, unless there is one."""
    if len(cells):
        evidence.setdefault(key, _Evidence(column, int(cells.index[0]), str(cells.iloc[0])))


def _choose_decimal(
    only: dict[str, _Evidence],
    both: dict[str, _Evidence],
    layout: Layout,
    where: str,
    first_row: int,
    point_is_decimal: bool,
) -> tuple[str, list[str]]:
    """Return the decimal mark, and a fault where a number has two readings or numbers contradict."""
    if layout.decimal is not None:
        return layout.decimal, []
    if layout.thousands in (".", ","):
        return ("," if layout.thousands == "." else "."), []
    if len(only) == 2:
        point, comma = only["."], only[","]
        return ".", [
            f"{where}: {point.column} is '{abbreviate(point.text)}' in row {first_row + point.place}, with a "
            f"decimal point, but {comma.column} is '{abbreviate(comma.text)}' in row "
            f"{first_row + comma.place}, with a decimal comma; write all alike, or "
            + layout.advise('decimal = "." or ","')
        ]
    if only:
        return next(iter(only)), []
    unclear = [cell for cell in both.values() if not point_is_decimal or "," in cell.text]
    if not unclear:
        return ".", []
    return ".", [
        f"{where} row {first_row + cell.place}: {cell.column} is '{abbreviate(cell.text)}', "
        f"{_read(cell.text, '.')} or {_read(cell.text, ',')}? " + layout.advise('decimal = "." or ","')
        for cell in unclear
    ]


def _read(text: str, decimal: str) -> str:
    """Return a number in plain form, as read with a decimal mark."""
    other = "," if decimal == "." else "."
    return text.replace(other, "").replace(decimal, ".")


def _convert(column: pd.Series, texts: pd.Series, written: pd.Series, style: NumberStyle) -> pd.Series:
    """Return a column with its texts as numbers; those that are no numbers stay as they are.

    Numbers in percent or with a unit stay texts, in plain form, such as 12.5%: the column decides.

    texts  without percent signs and units
    written  with them
    """
    plain = texts.str.strip()
    marked = plain.str.contains(MARKED) & plain.str.fullmatch(BY_DECIMAL[style.decimal])
    other = "," if style.decimal == "." else "."
    without = plain[marked].str.replace(f"[{SPACES}{APOSTROPHES}{other}]", "", regex=True)
    plain = plain.where(~marked, without.str.replace(style.decimal, ".", regex=False))
    numbers: pd.Series = pd.to_numeric(plain, errors="coerce")
    numbers = numbers[np.isfinite(numbers)]  # "nan" and "inf" are left to the rule that numbers are finite
    with_unit = numbers.index[(written != texts)[numbers.index].to_numpy(bool)]
    if len(numbers) == column.notna().sum() and not len(with_unit):
        return numbers.astype(float).reindex(column.index)
    mixed = column.astype(object)
    mixed[numbers.index] = numbers.to_numpy(object)
    mixed[with_unit] = [
        _with_unit(number, text)
        for number, text in zip(numbers[with_unit].tolist(), written[with_unit].tolist(), strict=True)
    ]
    return mixed
